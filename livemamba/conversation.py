"""The torch-free sample: what was shown, what was said, what the model should choose. No torch.

Coaching steps, questions and answers, narration and images all take this shape; `dialogue.encode` turns
it into token ids, targets and decision positions. Source: paper section 4.1 ("when to say"),
spec/model.md (protocol).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Literal, get_args

from livemamba.errors import InputError
from livemamba.ticks import tick_at_or_after
from livemamba.timeline import Message

Role = Literal["prompt", "user"]
ResponseKind = Literal["success", "mistake", "divergence", "advance", "say"]
RESPONSE_KINDS: tuple[str, ...] = get_args(ResponseKind)

DIVERGENCE_OPENINGS = ("You did not follow the instruction.", "You are not following the instruction.")
"""How a divergence's text starts: another step was done, or is being done with a mistake."""


@dataclass(frozen=True, kw_only=True)
class Text:
    """Text that the model reads and never learns to write.

    Attributes:
        role: prompt (how to behave, recipe, instruction) or user (a question).
        text: not empty.
    """

    role: Role
    text: str

    def __post_init__(self) -> None:
        if self.role not in get_args(Role) or not self.text:
            raise InputError(f"text {self.text!r} with role {self.role!r}: give a text, role one of {get_args(Role)}")


@dataclass(frozen=True, kw_only=True)
class Frames:
    """Frames in a row, each asked for by its own `<vision>`: the choice to stay silent until then.

    Attributes:
        first_tick: tick of the first.
        count: how many, >= 1.
        loss: whether those choices are targets (not for images that are simply shown).
    """

    first_tick: int
    count: int
    loss: bool = True

    def __post_init__(self) -> None:
        if self.count < 1 or self.first_tick < 0:
            raise InputError(f"frames from tick {self.first_tick}, count {self.count}: both count up from 0 and 1")

    @property
    def end_tick(self) -> int:
        """The tick after the last."""
        return self.first_tick + self.count


@dataclass(frozen=True, kw_only=True)
class Decision:
    """A choice that isn't followed by a frame: to respond now, or (at the end) to stay silent.

    Attributes:
        choice: "response", or "vision" for a sample that ends in silence: a target, no token.
        kind: what is said; "say" is free text (answers, narration); "advance" says nothing.
        text: the sentence, without the kind's opening; a divergence's starts with one of
            `DIVERGENCE_OPENINGS`.
        ends_step: the response closes with `<next>` (the step is over), not with end-of-text.
        loss: whether choice and text are targets.
    """

    choice: Literal["vision", "response"] = "response"
    kind: ResponseKind | None = None
    text: str = ""
    ends_step: bool = False
    loss: bool = True

    def __post_init__(self) -> None:
        if self.choice == "vision":
            if self.kind is not None or self.text or self.ends_step:
                raise InputError("a silent decision carries no kind, text or end of step")
            return
        if self.choice != "response" or self.kind not in RESPONSE_KINDS:
            raise InputError(f"decision {self.choice!r} of kind {self.kind!r}: kinds are {', '.join(RESPONSE_KINDS)}")
        if (self.kind == "advance") == bool(self.text.strip()):
            raise InputError(f"a decision of kind {self.kind} has text {self.text!r}; only an advance has none")
        if self.kind == "advance" and not self.ends_step:
            raise InputError("an advance ends the step; set ends_step")
        if self.kind == "divergence" and not self.text.startswith(DIVERGENCE_OPENINGS):
            raise InputError(f"divergence {self.text!r} must start with one of {DIVERGENCE_OPENINGS}")
        if self.kind == "mistake" and self.text.startswith(DIVERGENCE_OPENINGS):
            raise InputError(f"mistake {self.text!r} starts like a divergence; give it that kind")


Item = Text | Frames | Decision


@dataclass(frozen=True, kw_only=True)
class Conversation:
    """An ordered sample.

    Attributes:
        items: what happens, in order. Frames go forward in time.
        video_id: whose frames they are; empty for text alone.
    """

    items: tuple[Item, ...]
    video_id: str = ""

    def __post_init__(self) -> None:
        if not self.items:
            raise InputError("a conversation needs at least one item")
        if isinstance(self.items[0], Decision):
            raise InputError("a conversation opens with a decision; the model must have read something before it")
        tick = -1
        for place, item in enumerate(self.items):
            if isinstance(item, Frames):
                if item.first_tick < tick:
                    raise InputError(f"item {place} goes back to tick {item.first_tick}, shown up to {tick}")
                tick = item.end_tick
            elif isinstance(item, Decision) and item.choice == "vision" and place != len(self.items) - 1:
                raise InputError(f"item {place} is a silent decision; elsewhere than at the end, frames follow it")

    @property
    def num_frames(self) -> int:
        """Frames shown in all."""
        return sum(item.count for item in self.items if isinstance(item, Frames))

    @property
    def ticks(self) -> tuple[int, ...]:
        """The tick of every frame, in order."""
        frames = (item for item in self.items if isinstance(item, Frames))
        return tuple(tick for item in frames for tick in range(item.first_tick, item.end_tick))

    @property
    def texts(self) -> tuple[str, ...]:
        """All that is read or said in it, in order."""
        return tuple(item.text for item in self.items if not isinstance(item, Frames) and item.text)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready; `from_dict` reads it back unchanged."""
        return {"video_id": self.video_id, "items": [_item_to_dict(item) for item in self.items]}

    @classmethod
    def from_dict(cls, data: Any, *, where: str = "conversation") -> "Conversation":
        """The inverse of `to_dict`.

        Raises:
            InputError: on anything that isn't a conversation, with its place.
        """
        if not isinstance(data, dict) or not isinstance(data.get("items"), list):
            raise InputError(f"{where}: expected an object with 'items', a list")
        unknown = set(data) - {"video_id", "items"}
        if unknown:
            raise InputError(f"{where}: unknown keys {sorted(unknown)}")
        items = tuple(_item_from_dict(item, f"{where}: item {place}") for place, item in enumerate(data["items"]))
        return cls(items=items, video_id=str(data.get("video_id", "")))


_ITEM_TYPES: dict[str, type[Text] | type[Frames] | type[Decision]] = {
    "text": Text,
    "frames": Frames,
    "decision": Decision,
}


def _item_to_dict(item: Item) -> dict[str, Any]:
    return {"type": type(item).__name__.lower(), **vars(item)}


def _item_from_dict(data: Any, where: str) -> Item:
    if not isinstance(data, dict) or data.get("type") not in _ITEM_TYPES:
        raise InputError(f"{where}: needs a 'type', one of {', '.join(_ITEM_TYPES)}")
    item_type = _ITEM_TYPES[data["type"]]
    values = {name: value for name, value in data.items() if name != "type"}
    unknown = set(values) - set(item_type.__dataclass_fields__)
    if unknown:
        raise InputError(f"{where}: a {data['type']} knows no {', '.join(sorted(unknown))}")
    try:
        return item_type(**values)
    except (TypeError, InputError) as error:
        raise InputError(f"{where}: {error}") from None


def coaching_step(
    *,
    prompt: str,
    first_tick: int,
    end_tick: int,
    messages: Iterable[Message],
    step_ends: bool,
    video_id: str = "",
) -> Conversation:
    """One recipe step as a sample: silence, then each message at the first tick that shows its cause.

    A message at or before the first tick is due right after the first frame (nothing is said before one
    has been seen); one after the last frame is an error, not something to drop.

    Args:
        prompt: the whole prompt text.
        first_tick: of the first frame.
        end_tick: the tick after the last frame.
        messages: success, mistake, divergence and advance messages of the step; instructions and finish
            messages are the coach's business and not allowed here.
        step_ends: the last response closes with `<next>`. If nothing is said at the end, an advance is.
        video_id: whose frames they are.

    Raises:
        InputError: if there are no frames, a message is of another kind or later than the last frame.
    """
    if end_tick <= first_tick:
        raise InputError(f"step from tick {first_tick} to {end_tick} holds no frame")
    due = []
    for message in sorted(messages, key=lambda message: message.time_s):
        if message.kind in ("instruction", "finish"):
            raise InputError(f"{message.kind} at {message.time_s} s: the coach says it, the model doesn't learn it")
        tick = max(first_tick, tick_at_or_after(message.time_s))
        if tick >= end_tick:
            raise InputError(
                f"{message.kind} at {message.time_s} s is due at tick {tick}, after the last frame "
                f"(tick {end_tick - 1}); show more frames or leave it out knowingly"
            )
        due.append((tick, message))
    items: list[Item] = [Text(role="prompt", text=prompt)]
    shown = first_tick
    for tick, group in groupby(due, key=lambda pair: pair[0]):
        if tick + 1 > shown:
            items.append(Frames(first_tick=shown, count=tick + 1 - shown))
            shown = tick + 1
        items.extend(_decision(message) for _, message in group)
    if shown < end_tick:
        items.append(Frames(first_tick=shown, count=end_tick - shown))
    return Conversation(items=tuple(_closed(items, step_ends)), video_id=video_id)


def _decision(message: Message) -> Decision:
    if message.kind == "advance":
        return Decision(kind="advance", ends_step=True)
    assert message.kind in ("success", "mistake", "divergence")
    return Decision(kind=message.kind, text=message.text)


def _closed(items: list[Item], step_ends: bool) -> list[Item]:
    """The items with the end of the step, or of the clip, put on."""
    last = items[-1]
    if not step_ends:
        return items if isinstance(last, Decision) and last.ends_step else [*items, Decision(choice="vision")]
    if isinstance(last, Frames):
        return [*items, Decision(kind="advance", ends_step=True)]
    assert isinstance(last, Decision)
    closed = Decision(kind=last.kind, text=last.text, ends_step=True, loss=last.loss)
    return [*items[:-1], closed]
