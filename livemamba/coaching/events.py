"""What watchers tell the coach, and what the coach asks of whoever drives it. No torch.

Source: spec/model.md (protocol); design.md (Coach, StepWatcher).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, get_args

from livemamba.conversation import DIVERGENCE_OPENINGS
from livemamba.errors import InputError
from livemamba.recipe import Plan
from livemamba.ticks import tick_to_s
from livemamba.timeline import Message, MistakeCategory

EventKind = Literal["success", "mistake", "divergence", "advance"]
EVENT_KINDS: tuple[str, ...] = get_args(EventKind)

# At equal times: feedback, success, and last what brings the next instruction (spec/interactive_cooking.md).
_ORDER = {"divergence": 0, "mistake": 0, "success": 1, "advance": 2}


@dataclass(frozen=True, kw_only=True)
class Event:
    """What a watcher makes of a frame.

    Attributes:
        kind: success (an action of the step is done), mistake, divergence (another step was done, or is
            being done), advance (the step is over).
        tick: of the frame that showed it.
        text: what to tell the user; empty for an advance. A divergence's starts with one of
            `livemamba.conversation.DIVERGENCE_OPENINGS`.
        category: of the mistake; None where it isn't known.
        actions: node ids that it is about; None where they aren't known. For a divergence: what was done
            instead.
        confidence: the watcher's own probability, 0 to 1; None where it has none.
    """

    kind: EventKind
    tick: int
    text: str = ""
    category: MistakeCategory | None = None
    actions: tuple[str, ...] | None = None
    confidence: float | None = None

    def __post_init__(self) -> None:
        if self.kind not in EVENT_KINDS:
            raise InputError(f"event kind {self.kind!r} is not one of {', '.join(EVENT_KINDS)}")
        if self.kind in ("mistake", "divergence"):
            opened = str(self.text).startswith(DIVERGENCE_OPENINGS)
            if opened != (self.kind == "divergence"):
                raise InputError(
                    f"{self.kind} {self.text!r}: a divergence, and nothing else, starts with one of "
                    f"{DIVERGENCE_OPENINGS}"
                )
        self.message(tick_to_s(self.tick))

    def message(self, time_s: float) -> Message:
        """The event as the coach says it.

        Raises:
            InputError: if a value breaks a rule of `Message`.
        """
        aligned = None if self.kind == "advance" else self.kind != "divergence"
        return Message(
            time_s=time_s,
            kind=self.kind,
            text=self.text,
            aligned=aligned,
            category=self.category,
            actions=self.actions,
            confidence=self.confidence,
        )


def in_order(events: Iterable[Event]) -> tuple[Event, ...]:
    """Events by tick; at equal ticks feedback, success, advance. Otherwise as given."""
    return tuple(sorted(events, key=lambda event: (event.tick, _ORDER[event.kind])))


@dataclass(frozen=True, kw_only=True)
class StartStep:
    """The watcher starts afresh on a step.

    Attributes:
        plan: what is left to do; the step is `plan.current`.
        instruction: the sentence that was said for it.
        tick: when.
    """

    plan: Plan
    instruction: str
    tick: int


@dataclass(frozen=True, kw_only=True)
class Finished:
    """Nothing is left to do.

    Attributes:
        tick: when.
    """

    tick: int
