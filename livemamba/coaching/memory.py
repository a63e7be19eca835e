"""What a coach remembers, and how it is written down. No torch."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, get_args

from livemamba.coaching.replanner import ReplanRequest
from livemamba.errors import InputError
from livemamba.recipe import Plan, Step
from livemamba.timeline import Message, UserEvent

Phase = Literal["ready", "watching", "waiting", "finished"]


@dataclass(kw_only=True)
class Memory:
    """All of a coach's state; only the coach changes it.

    Attributes:
        plan: what is left to do.
        done: node ids, in the order in which they were done.
        left: the steps that were asked for and have left the plan, the latest last: where `back` goes.
        step: the step asked for last; a re-planned plan may not start with it.
        instruction: its sentence.
        phase: where the session stands, pauses apart.
        paused: whether the user paused.
        diverged_tick: of a divergence in this step that no success has mended; None without one.
        request: the question that is out; None without one.
        num_requests: asked so far; the latest id.
        open_tick: the first tick whose events speak of this step.
        heard_tick: of the latest event.
        messages: what was said.
        plans: what was left to do after each message.
        user_events: what the user did.
        counts: what was ignored or refused, by reason.
    """

    plan: Plan
    done: tuple[str, ...] = ()
    left: tuple[Step, ...] = ()
    step: Step = ()
    instruction: str = ""
    phase: Phase = "ready"
    paused: bool = False
    diverged_tick: int | None = None
    request: ReplanRequest | None = None
    num_requests: int = 0
    open_tick: int = 0
    heard_tick: int = -1
    messages: list[Message] = field(default_factory=list)
    plans: list[Plan] = field(default_factory=list)
    user_events: list[UserEvent] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready; `from_dict` reads it back unchanged."""
        return {
            **vars(self),
            "plan": _to_lists(self.plan.steps),
            "done": list(self.done),
            "left": _to_lists(self.left),
            "step": list(self.step),
            "request": self.request.to_dict() if self.request else None,
            "messages": [message.to_dict() for message in self.messages],
            "plans": [_to_lists(plan.steps) for plan in self.plans],
            "user_events": [dict(vars(event)) for event in self.user_events],
            "counts": dict(self.counts),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Memory":
        """The inverse of `to_dict`.

        Raises:
            InputError: if the data aren't what `to_dict` returned.
        """
        names = {item.name for item in fields(cls)}
        if set(data) != names:
            wrong = sorted(set(data) ^ names)
            raise InputError(f"not a saved coach: {', '.join(wrong)} missing or unknown; give what to_dict returned")
        if data["phase"] not in get_args(Phase):
            raise InputError(f"a coach is in phase {' or '.join(get_args(Phase))}, not {data['phase']!r}")
        try:
            return cls(**{**data, **_read(data)})
        except (TypeError, KeyError, AttributeError) as error:
            raise InputError(f"not a saved coach ({error}); give what to_dict returned") from None


def _read(data: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "plan": Plan(_to_tuples(data["plan"])),
        "done": tuple(data["done"]),
        "left": _to_tuples(data["left"]),
        "step": tuple(data["step"]),
        "request": ReplanRequest.from_dict(data["request"]) if data["request"] else None,
        "messages": [Message.from_dict(message) for message in data["messages"]],
        "plans": [Plan(_to_tuples(plan)) for plan in data["plans"]],
        "user_events": [UserEvent(**event) for event in data["user_events"]],
        "counts": Counter(data["counts"]),
    }


def _to_lists(steps: Iterable[Step]) -> list[list[str]]:
    return [list(step) for step in steps]


def _to_tuples(steps: Iterable[Iterable[str]]) -> tuple[Step, ...]:
    return tuple(tuple(step) for step in steps)
