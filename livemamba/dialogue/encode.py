"""A conversation as token ids, targets and decision positions, and back. No torch.

Targets are already shifted: `targets[p]` is the token that has to follow position p. Supervised are the
decision positions (end of prompt, last visual position of each frame, end-of-text) and response text;
prompts and the other visual positions are not (paper 4.1; spec/model.md, protocol).
Letters: L positions, Q visual embeddings of a frame, T frames.
"""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from livemamba.conversation import Conversation, Decision, Frames, Item, ResponseKind, Text
from livemamba.dialogue.tokens import Tokens
from livemamba.errors import InputError

IGNORE = -100
"""Target of a position that isn't supervised: what torch's cross-entropy leaves out."""


class Part(IntEnum):
    """What a position is."""

    PROMPT = 0
    USER = 1
    VISION = 2  # the <vision> token
    VISUAL = 3  # one of a frame's Q embeddings
    RESPONSE = 4  # the <response> token
    OPENING = 5
    TEXT = 6
    END = 7  # end-of-text or <next> after a response


@dataclass(frozen=True, kw_only=True, eq=False)
class Encoded:
    """A conversation, position by position.

    Attributes:
        ids: (L,) int64 token ids; the padding id where a visual embedding goes in.
        targets: (L,) int64, the token that has to follow, or `IGNORE`.
        visual: (L,) bool, where the T * Q visual embeddings go, in order.
        decisions: (L,) bool, where the model chooses between `<vision>` and `<response>`.
        parts: (L,) int8, a `Part` each.
        items: (L,) int32, index of the conversation's item that the position belongs to.
        ticks: (T,) int64, tick of each frame.
        kinds: for each item, its response kind; None for texts, frames and silence.
        video_id: as in the conversation.
    """

    ids: npt.NDArray[np.int64]
    targets: npt.NDArray[np.int64]
    visual: npt.NDArray[np.bool_]
    decisions: npt.NDArray[np.bool_]
    parts: npt.NDArray[np.int8]
    items: npt.NDArray[np.int32]
    ticks: npt.NDArray[np.int64]
    kinds: tuple[ResponseKind | None, ...]
    video_id: str = ""

    def __len__(self) -> int:
        return len(self.ids)


class _Builder:
    """Positions written one after the other; a target is put on the position before."""

    def __init__(self, padding_id: int) -> None:
        self.padding_id = padding_id
        self.ids: list[int] = []
        self.targets: list[int] = []
        self.decisions: list[bool] = []
        self.parts: list[int] = []
        self.items: list[int] = []

    def put(self, ids: list[int], part: Part, item: int, *, loss: bool = False) -> None:
        for token_id in ids:
            if loss:
                self.target(token_id)
            self.ids.append(token_id)
            self.targets.append(IGNORE)
            self.decisions.append(False)
            self.parts.append(part)
            self.items.append(item)

    def target(self, token_id: int) -> None:
        if self.targets:  # the very first token follows nothing
            self.targets[-1] = token_id

    def decide(self, token_id: int, *, loss: bool) -> None:
        if not self.ids:
            return
        self.decisions[-1] = True
        if loss:
            self.target(token_id)


def encode(conversation: Conversation, tokens: Tokens, *, num_queries: int) -> Encoded:
    """A conversation as positions.

    Args:
        conversation: the sample.
        tokens: the tokenizer with the special ids.
        num_queries: Q, visual embeddings of one frame.
    """
    ids = tokens.config
    out = _Builder(ids.padding_id)
    kinds: list[ResponseKind | None] = []
    for place, item in enumerate(conversation.items):
        kinds.append(item.kind if isinstance(item, Decision) else None)
        if isinstance(item, Text):
            out.put(tokens.encode(item.text), Part.PROMPT if item.role == "prompt" else Part.USER, place)
        elif isinstance(item, Frames):
            for _ in range(item.count):
                out.decide(ids.vision_id, loss=item.loss)
                out.put([ids.vision_id], Part.VISION, place)
                out.put([ids.padding_id] * num_queries, Part.VISUAL, place)
        elif item.choice == "vision":
            out.decide(ids.vision_id, loss=item.loss)
        else:
            _put_response(out, item, place, tokens)
    parts = np.array(out.parts, dtype=np.int8)
    return Encoded(
        ids=np.array(out.ids, dtype=np.int64),
        targets=np.array(out.targets, dtype=np.int64),
        visual=parts == Part.VISUAL,
        decisions=np.array(out.decisions, dtype=np.bool_),
        parts=parts,
        items=np.array(out.items, dtype=np.int32),
        ticks=np.array(conversation.ticks, dtype=np.int64),
        kinds=tuple(kinds),
        video_id=conversation.video_id,
    )


def _put_response(out: _Builder, item: Decision, place: int, tokens: Tokens) -> None:
    assert item.kind is not None
    out.decide(tokens.config.response_id, loss=item.loss)
    out.put([tokens.config.response_id], Part.RESPONSE, place)
    opening, text = tokens.response(item.kind, item.text)
    out.put(opening, Part.OPENING, place, loss=item.loss)
    out.put(text, Part.TEXT, place, loss=item.loss)
    end = tokens.config.next_id if item.ends_step else tokens.config.end_of_text_id
    out.put([end], Part.END, place, loss=item.loss)


def decode(encoded: Encoded, tokens: Tokens, *, num_queries: int) -> Conversation:
    """The inverse of `encode`: what a person checks, read from the ids and targets alone.

    Texts come back in Unicode's composed form (NFC), as the tokenizer makes them.

    Raises:
        InputError: if the visual positions are no whole number of frames.
    """
    num_visual = int(encoded.visual.sum())
    if num_visual != len(encoded.ticks) * num_queries:
        raise InputError(
            f"{num_visual} visual positions for {len(encoded.ticks)} frames of {num_queries} embeddings: "
            "the sample was encoded for another model"
        )
    items: list[Item] = []
    shown = 0
    for place, kind in enumerate(encoded.kinds):
        at = np.flatnonzero(encoded.items == place)
        if len(at) == 0:
            loss = bool(encoded.targets[-1] == tokens.config.vision_id)
            items.append(Decision(choice="vision", loss=loss))
            continue
        before = int(encoded.targets[at[0] - 1]) if at[0] > 0 else IGNORE
        if encoded.parts[at[0]] == Part.VISION:
            starts = at[encoded.parts[at] == Part.VISION]
            count = len(starts)
            asked = encoded.targets[starts[starts > 0] - 1]  # a sample's first token is asked for by nothing
            loss = len(asked) > 0 and bool((asked != IGNORE).all())
            items.append(Frames(first_tick=int(encoded.ticks[shown]), count=count, loss=loss))
            shown += count
        elif kind is None:
            role = "prompt" if encoded.parts[at[0]] == Part.PROMPT else "user"
            items.append(Text(role=role, text=tokens.decode(encoded.ids[at].tolist())))  # type: ignore[arg-type]
        else:
            items.append(_decode_response(encoded, at, kind, tokens, loss=before != IGNORE))
    return Conversation(items=tuple(items), video_id=encoded.video_id)


def _decode_response(
    encoded: Encoded, at: npt.NDArray[np.intp], kind: ResponseKind, tokens: Tokens, *, loss: bool
) -> Decision:
    said = at[encoded.parts[at] == Part.TEXT]
    opening = at[encoded.parts[at] == Part.OPENING]
    text = tokens.decode(encoded.ids[said].tolist())
    if kind == "divergence":
        text = tokens.decode(encoded.ids[opening].tolist()).removeprefix("Feedback: ") + text
    elif kind != "say":
        text = text.removeprefix(" ")
    ends_step = int(encoded.ids[at[-1]]) == tokens.config.next_id
    return Decision(kind=kind, text=text, ends_step=ends_step, loss=loss)
