"""Decisions and responses read from the model: when to speak, of what kind, in which words.

The kind is decoded, not guessed from text: after `<response>` the few legal openings are scored, their
probabilities are the kinds' probabilities, each kind has a threshold, and only then is text generated
(design.md, decisions). Letters: R rows, L positions, V vocabulary rows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

from livemamba.config import DecodingConfig, ThresholdConfig
from livemamba.conversation import DIVERGENCE_OPENINGS, ResponseKind
from livemamba.dialogue.tokens import Tokens
from livemamba.errors import InputError

State = Any
"""The network's recurrent state; decoding only hands it on."""

COACHING_KINDS: tuple[ResponseKind, ...] = ("success", "mistake", "divergence", "advance")


class LanguageModel(Protocol):
    """What decoding needs of the network. No call changes the state that it is given."""

    def read(self, ids: Tensor, state: State, *, valid: Tensor | None = None) -> tuple[Tensor, State]:
        """Take in (R, L) token ids; returns (R, L, V) logits and the state after each row's last valid one."""
        ...

    def repeat_state(self, state: State, rows: int) -> State:
        """The state of one stream, copied to some rows."""
        ...

    def state_row(self, state: State, row: int) -> State:
        """One row of a state, as a batch of one."""
        ...


@dataclass(frozen=True, kw_only=True)
class Reading:
    """What the model would do at a decision position.

    Attributes:
        respond: P(`<response>`) against `<vision>`.
        kinds: P(kind | respond) over the legal openings; they sum to 1.
    """

    respond: float
    kinds: Mapping[ResponseKind, float]

    def score(self, kind: ResponseKind) -> float:
        """P(respond with this kind), what thresholds are compared with."""
        return self.respond * self.kinds[kind]


@dataclass(frozen=True, kw_only=True)
class Response:
    """One thing that the model says.

    Attributes:
        kind: decoded from the opening.
        text: the sentence, without the opening "Success:" or "Feedback:"; empty for an advance, and where the
            cap came before the first word.
        ends_step: it closed with `<next>`.
        confidence: P(respond) x P(kind | respond); None for an answer that was asked for.
        cut: the cap on tokens ended it.
    """

    kind: ResponseKind
    text: str
    ends_step: bool
    confidence: float | None
    cut: bool = False


def respond_probability(logits: Tensor, tokens: Tokens) -> float:
    """P(`<response>`) at a decision position, against `<vision>` alone.

    Args:
        logits: (V,) at the position.
        tokens: for the two ids.

    Raises:
        InputError: if the network gives no number there.
    """
    pair = logits[[tokens.config.response_id, tokens.config.vision_id]].float()
    if not torch.isfinite(pair).all():
        raise InputError("the network's decision is not a number; its weights are broken, load them anew")
    return float(torch.softmax(pair, dim=0)[0])


def choose(reading: Reading, thresholds: ThresholdConfig) -> ResponseKind | None:
    """Of the kinds that reach their threshold, the one that exceeds it by the largest factor; None for silence."""
    eligible = [kind for kind in reading.kinds if reading.score(kind) >= getattr(thresholds, kind)]

    def factor(kind: ResponseKind) -> float:
        return reading.score(kind) / max(float(getattr(thresholds, kind)), 1e-9)

    return max(eligible, key=factor, default=None)


@dataclass(frozen=True, kw_only=True)
class _Opening:
    """One legal opening after `<response>`, read onto a copy of the state.

    Attributes:
        kind: what it means.
        prefix: text that it contributes to the message.
        ids: its tokens.
        log_p: for each of its tokens, the log-probability given those before.
        logits: (V,) after it.
        state: after it, one row.
    """

    kind: ResponseKind
    prefix: str
    ids: tuple[int, ...]
    log_p: Tensor
    logits: Tensor
    state: State

    @property
    def probability(self) -> float:
        """Of all its tokens, given `<response>`."""
        return float(self.log_p.sum().exp())


@dataclass(frozen=True, kw_only=True)
class _Avoided:
    """Words that a mistake may not say, or it would be a divergence.

    Attributes:
        ids: their tokens.
        rest: for each, P(this token and all after it | those before): what has to be taken from it.
    """

    ids: tuple[int, ...]
    rest: Tensor


class Decoder:
    """Reads decisions and writes responses; holds no state of a stream.

    Args:
        model: the network.
        tokens: the tokenizer with the special ids.
        config: thresholds and caps.
        kinds: what may be said here; `("say",)` for a stream that narrates.
    """

    def __init__(
        self,
        model: LanguageModel,
        tokens: Tokens,
        config: DecodingConfig,
        kinds: Sequence[ResponseKind] = COACHING_KINDS,
    ) -> None:
        self.model = model
        self.tokens = tokens
        self.config = config
        self.kinds = tuple(kinds)

    def decide(self, logits: Tensor, state: State) -> tuple[Response, State, Tensor] | None:
        """Speak or stay silent at a decision position.

        Args:
            logits: (V,) there.
            state: after it, one row.

        Returns:
            None for silence; else the response, the state after its end and the (V,) logits there, where
            the same choice comes again.
        """
        respond = respond_probability(logits, self.tokens)
        if respond < min(getattr(self.config.thresholds, kind) for kind in self.kinds):
            return None  # no kind can reach its threshold: spare the reading of openings
        openings = self._read_openings(state, self.kinds)
        reading = Reading(respond=respond, kinds=_kind_probabilities(openings))
        kind = choose(reading, self.config.thresholds)
        if kind is None:
            return None
        avoided = self._divergences(openings) if kind == "mistake" else []
        return self._speak(_best(openings, kind), reading.score(kind), avoided)

    def reading(self, logits: Tensor, state: State) -> Reading:
        """The probabilities at a decision position, without acting on them."""
        openings = self._read_openings(state, self.kinds)
        return Reading(respond=respond_probability(logits, self.tokens), kinds=_kind_probabilities(openings))

    def answer(self, state: State) -> Response:
        """Free text after `<response>`, whether or not the model would have spoken."""
        (opening,) = self._read_openings(state, ("say",))
        return self._speak(opening, None, [])[0]

    def _read_openings(self, state: State, kinds: Sequence[ResponseKind]) -> list[_Opening]:
        """Every legal opening, in one batch of rows on copies of the state."""
        spelled = [
            (kind, prefix, ids)
            for kind in kinds
            for prefix, ids in zip(_PREFIXES.get(kind, ("",)), self.tokens.openings.get(kind, ((),)), strict=True)
        ]
        rows = [[self.tokens.config.response_id, *ids] for _, _, ids in spelled]
        longest = max(len(row) for row in rows)
        padded = [row + [self.tokens.config.padding_id] * (longest - len(row)) for row in rows]
        lengths = torch.tensor([len(row) for row in rows])
        valid = torch.arange(longest)[None, :] < lengths[:, None]
        logits, states = self.model.read(torch.tensor(padded), self.model.repeat_state(state, len(rows)), valid=valid)
        # Position i of a row predicts the row's token i + 1.
        log_p = torch.log_softmax(logits.float(), dim=-1)
        openings = []
        for index, ((kind, prefix, ids), row) in enumerate(zip(spelled, rows, strict=True)):
            openings.append(
                _Opening(
                    kind=kind,
                    prefix=prefix,
                    ids=tuple(ids),
                    log_p=log_p[index, torch.arange(len(ids)), list(ids)].double(),
                    logits=logits[index, len(row) - 1],
                    state=self.model.state_row(states, index),
                )
            )
        return openings

    def _divergences(self, openings: list[_Opening]) -> list[_Avoided]:
        """What follows "Feedback:" in a divergence, with the probability of the rest at each token."""
        shared = len(self.tokens.openings["mistake"][0])
        return [
            _Avoided(ids=opening.ids[shared:], rest=opening.log_p[shared:].flip(0).cumsum(0).flip(0).exp())
            for opening in openings
            if opening.kind == "divergence"
        ]

    def _speak(
        self, opening: _Opening, confidence: float | None, avoided: list[_Avoided]
    ) -> tuple[Response, State, Tensor]:
        """The whole response after its opening, the state and the logits after it."""
        if opening.kind == "advance":
            response = Response(kind="advance", text="", ends_step=True, confidence=confidence)
            return response, opening.state, opening.logits
        said, end, state, logits = self._generate(opening, avoided)
        text = f"{opening.prefix} {self.tokens.decode(said).strip()}".strip()
        # `avoided` closes the usual spelling of a divergence's words; by other tokens they can still come.
        became_divergence = opening.kind == "mistake" and text.startswith(DIVERGENCE_OPENINGS)
        response = Response(
            kind="divergence" if became_divergence else opening.kind,
            text=text,
            ends_step=end == self.tokens.config.next_id,
            confidence=confidence,
            cut=end is None,
        )
        return response, state, logits

    def _generate(self, opening: _Opening, avoided: list[_Avoided]) -> tuple[list[int], int | None, State, Tensor]:
        """Greedy text: its ids, what ended it (None for the cap), state and logits after the end."""
        said: list[int] = []
        logits, state = opening.logits, opening.state
        while len(said) < self.config.max_response_tokens:
            token_id = int(self._legal(logits, opening, said, avoided).argmax())
            logits, state = self._feed(token_id, state)
            if token_id in self.tokens.ends:
                return said, token_id, state, logits
            said.append(token_id)
        logits, state = self._feed(self.tokens.config.end_of_text_id, state)
        return said, None, state, logits

    def _feed(self, token_id: int, state: State) -> tuple[Tensor, State]:
        logits, state = self.model.read(torch.tensor([[token_id]]), state)
        return logits[0, -1], state

    def _legal(self, logits: Tensor, opening: _Opening, said: list[int], avoided: list[_Avoided]) -> Tensor:
        """P of every next token, 0 for all that may not come."""
        ids = self.tokens.config
        p = torch.softmax(logits.double(), dim=-1)
        for divergence in avoided:
            place = len(said)
            if place < len(divergence.ids) and list(divergence.ids[:place]) == said:
                p[divergence.ids[place]] = (p[divergence.ids[place]] - divergence.rest[place]).clamp_min(0.0)
        legal = torch.zeros_like(p)
        legal[: self.tokens.size] = p[: self.tokens.size]  # no spare rows, no special tokens
        legal[[ids.padding_id, ids.end_of_text_id]] = 0.0
        if self.tokens.decode(said).strip() or opening.prefix:  # else the message would be empty
            legal[ids.end_of_text_id] = p[ids.end_of_text_id]
            if opening.kind != "say":
                legal[ids.next_id] = p[ids.next_id]
        return legal


_PREFIXES: dict[ResponseKind, tuple[str, ...]] = {"divergence": DIVERGENCE_OPENINGS}


def _best(openings: list[_Opening], kind: ResponseKind) -> _Opening:
    return max((opening for opening in openings if opening.kind == kind), key=lambda opening: opening.probability)


def _kind_probabilities(openings: list[_Opening]) -> dict[ResponseKind, float]:
    """P(kind | respond): a divergence starts like a mistake, so its probability is taken out of that one."""
    total: dict[ResponseKind, float] = {}
    for opening in openings:
        if opening.kind != "say":
            total[opening.kind] = total.get(opening.kind, 0.0) + opening.probability
    if "mistake" in total:
        total["mistake"] = max(0.0, total["mistake"] - total.get("divergence", 0.0))
    if any(opening.kind == "say" for opening in openings):  # free text is all that is no other opening
        return {**total, "say": max(0.0, 1.0 - sum(total.values()))}
    mass = sum(total.values())
    # No mass at all means that the model would write something illegal: then no kind is likelier than another.
    return {kind: value / mass if mass > 0 else 1 / len(total) for kind, value in total.items()}
