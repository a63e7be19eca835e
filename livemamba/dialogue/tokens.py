"""The tokenizer with the protocol's special tokens. No torch.

The special tokens live in spare rows of the embedding table, past the tokenizer's own entries, and the
tokenizer doesn't know them: no text that a user types can turn into one. Source: spec/model.md.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from livemamba.config import DialogueConfig
from livemamba.conversation import DIVERGENCE_OPENINGS, ResponseKind
from livemamba.errors import InputError, MissingError
from livemamba.json_files import parse_json
from livemamba.texts import check_text

TOKENIZER_FILE = "tokenizer.json"

_SUCCESS = "Success:"
_FEEDBACK = "Feedback:"


class Tokens:
    """Text to token ids and back, and the ids that the protocol needs.

    Args:
        tokenizer: any `tokenizers` tokenizer with entries for end-of-text and padding.
        config: the ids of the special tokens.

    Raises:
        InputError: if a special id is an entry of the tokenizer, or end-of-text or padding isn't one.
    """

    def __init__(self, tokenizer: Tokenizer, config: DialogueConfig) -> None:
        for name in ("vision_id", "response_id", "next_id"):
            if getattr(config, name) < tokenizer.get_vocab_size():
                taken = tokenizer.id_to_token(getattr(config, name))
                raise InputError(
                    f"dialogue.{name} is {getattr(config, name)}, which the tokenizer uses for {taken!r}; "
                    f"take a spare row, {tokenizer.get_vocab_size()} or above"
                )
        for name in ("end_of_text_id", "padding_id"):
            if tokenizer.id_to_token(getattr(config, name)) is None:
                raise InputError(f"dialogue.{name} is {getattr(config, name)}, which the tokenizer has no entry for")
        self._tokenizer = tokenizer
        # Text such as "<|endoftext|>" typed by a user stays text.
        self._tokenizer.encode_special_tokens = True
        self.config = config
        self._special_names = {
            config.vision_id: "<vision>",
            config.response_id: "<response>",
            config.next_id: "<next>",
        }
        self.openings = self._make_openings()

    def __reduce__(self) -> tuple[Any, ...]:
        # A copied or unpickled tokenizer would take typed text for special tokens: the constructor forbids it again.
        return type(self), (self._tokenizer, self.config)

    @property
    def size(self) -> int:
        """Entries of the tokenizer, its own special ones included; spare rows of a model start here."""
        return int(self._tokenizer.get_vocab_size())

    @property
    def ends(self) -> tuple[int, int]:
        """What closes a response: end-of-text (the step goes on) and `<next>` (it is over)."""
        return self.config.end_of_text_id, self.config.next_id

    def encode(self, text: str) -> list[int]:
        """Token ids of plain text; nothing in it becomes a special token.

        Raises:
            InputError: for half a character, which no tokenizer takes.
        """
        check_text(text, what="the text")
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False).ids
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        """The text of plain token ids.

        Raises:
            InputError: for an id that the tokenizer doesn't have.
        """
        for token_id in ids:
            if self._tokenizer.id_to_token(token_id) is None:
                raise InputError(f"token id {token_id} is no text; the tokenizer has {self.size} entries")
        return str(self._tokenizer.decode(list(ids), skip_special_tokens=False))

    def name(self, token_id: int) -> str:
        """A token as shown to people: its text with spaces visible, or its special name."""
        if token_id in self._special_names:
            return self._special_names[token_id]
        token = self._tokenizer.id_to_token(token_id)
        return f"<{token_id}>" if token is None else str(token).replace("Ġ", "·").replace("Ċ", "\\n")

    def response(self, kind: ResponseKind, text: str) -> tuple[list[int], list[int]]:
        """The ids of a response, apart: its opening (what kind it is) and the text that follows.

        They are tokenised apart, so that what decoding produces (an opening, then free text) is what
        training has seen. An advance has neither.

        Raises:
            InputError: if a divergence doesn't start with one of its openings.
        """
        if kind == "advance":
            return [], []
        if kind == "say":
            return [], self.encode(text)
        if kind != "divergence":
            return list(self.openings[kind][0]), self.encode(" " + text)
        for opening, ids in zip(DIVERGENCE_OPENINGS, self.openings["divergence"], strict=True):
            if text.startswith(opening):
                return list(ids), self.encode(text[len(opening) :])
        raise InputError(f"divergence {text!r} starts with none of {DIVERGENCE_OPENINGS}")

    def _make_openings(self) -> dict[ResponseKind, tuple[tuple[int, ...], ...]]:
        feedback = tuple(self.encode(_FEEDBACK))
        return {
            "success": (tuple(self.encode(_SUCCESS)),),
            "mistake": (feedback,),
            "divergence": tuple(feedback + tuple(self.encode(" " + text)) for text in DIVERGENCE_OPENINGS),
            "advance": ((self.config.next_id,),),
        }

    def same_as(self, other: "Tokens") -> bool:
        """Whether another tokenizer makes the same ids of every text."""
        return bool(self._tokenizer.to_str() == other._tokenizer.to_str())

    def save(self, folder: str | Path) -> None:
        """Write the tokenizer's file into a checkpoint folder."""
        # Not the tokenizer's own `save`: a full disk would come out of it as a bare Exception.
        (Path(folder) / TOKENIZER_FILE).write_text(self._tokenizer.to_str(pretty=True), encoding="utf-8")

    @classmethod
    def load(cls, folder_or_file: str | Path, config: DialogueConfig) -> "Tokens":
        """From a folder with a `tokenizer.json`, or from that file.

        Raises:
            MissingError: if it isn't there.
            InputError: if it is no tokenizer, or doesn't fit the config.
        """
        path = Path(folder_or_file)
        path = path / TOKENIZER_FILE if path.is_dir() else path
        if not path.is_file():
            raise MissingError(f"tokenizer {path} does not exist; give a folder that holds {TOKENIZER_FILE}")
        try:
            text = path.read_text(encoding="utf-8")
            parse_json(text)
            tokenizer = Tokenizer.from_str(text)
        except Exception as error:  # noqa: BLE001 (tokenizers raises bare Exception)
            raise InputError(f"{path}: not a tokenizer file ({str(error).splitlines()[0]})") from None
        try:
            return cls(tokenizer, config)
        except InputError as error:
            raise InputError(f"{path}: {error}") from None


def train_tokenizer(texts: Iterable[str], size: int) -> Tokenizer:
    """A byte-level BPE tokenizer for a small model, trained on its own corpus.

    End-of-text is 0 and padding 1, as in the GPT-NeoX tokenizer; every byte has an entry, so any text
    can be encoded and comes back unchanged (in Unicode's composed form).

    Args:
        texts: the corpus.
        size: entries at most; at least 258.

    Raises:
        InputError: if the size leaves no room for the bytes.
    """
    special = ["<|endoftext|>", "<|padding|>"]
    if size < 256 + len(special):
        raise InputError(f"tokenizer size {size} is too small; 256 bytes and {len(special)} special tokens need rows")
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=special,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer
