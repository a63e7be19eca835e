"""Messages, what the user does, and the timeline that holds both. No torch.

`Timeline` is the one type for ground truth, predictions, simulated episodes and live logs. Source:
spec/interactive_cooking.md (official rows) and the paper's instruction and feedback protocol, section 3.
"""

import itertools
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from livemamba.errors import InputError
from livemamba.recipe import Plan, Recipe
from livemamba.texts import check_text

MessageKind = Literal["instruction", "success", "mistake", "divergence", "finish", "advance"]
MESSAGE_KINDS: tuple[str, ...] = get_args(MessageKind)

MistakeCategory = Literal["technique", "preparation", "measurement", "timing", "temperature"]
MISTAKE_CATEGORIES: tuple[str, ...] = get_args(MistakeCategory)

UserAction = Literal["back", "skip", "done", "repeat", "pause", "resume"]
USER_ACTIONS: tuple[str, ...] = get_args(UserAction)

FINISH_TEXT = "You have finished all the steps."


def _check_time(what: str, time_s: float) -> None:
    if not math.isfinite(time_s) or time_s < 0:
        raise InputError(f"{what} has time {time_s!r}; times are seconds >= 0 from the first shown frame")


@dataclass(frozen=True, kw_only=True)
class Message:
    """One thing said to the user, or (advance) the silent end of a step.

    Attributes:
        time_s: seconds from the video's first shown frame.
        kind: what it is. `advance` is internal: no official file carries it and its text is empty.
        text: the sentence, without the prediction files' prefix.
        aligned: whether the action followed the instruction; None where it isn't known.
        category: mistake category; None where there is none or it isn't known.
        actions: node ids of the recipe that the message is about; None where they aren't known.
        confidence: the model's own probability of the kind, 0 to 1; None for ground truth.
    """

    time_s: float
    kind: MessageKind
    text: str = ""
    aligned: bool | None = None
    category: MistakeCategory | None = None
    actions: tuple[str, ...] | None = None
    confidence: float | None = None

    def __post_init__(self) -> None:
        if self.kind not in MESSAGE_KINDS:
            raise InputError(f"message kind {self.kind!r} is not one of {', '.join(MESSAGE_KINDS)}")
        _check_time(f"{self.kind} message", self.time_s)
        if not isinstance(self.text, str):
            raise InputError(f"message at {self.time_s} s has text {self.text!r}; a text is needed")
        if (self.kind == "advance") != (not self.text.strip()):
            rule = "an advance says nothing" if self.kind == "advance" else f"a {self.kind} needs a text"
            raise InputError(f"message at {self.time_s} s has text {self.text!r}; {rule}")
        check_text(self.text, what=f"message at {self.time_s} s")
        if self.category is not None and self.category not in MISTAKE_CATEGORIES:
            raise InputError(f"mistake category {self.category!r} is not one of {', '.join(MISTAKE_CATEGORIES)}")
        if self.confidence is not None and not 0 <= self.confidence <= 1:
            raise InputError(f"confidence {self.confidence!r} of a {self.kind} is not between 0 and 1")

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready, without the fields that are None."""
        values = {
            "time_s": self.time_s,
            "kind": self.kind,
            "text": self.text,
            "aligned": self.aligned,
            "category": self.category,
            "actions": list(self.actions) if self.actions is not None else None,
            "confidence": self.confidence,
        }
        return {name: value for name, value in values.items() if value is not None}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "Message":
        """The inverse of `to_dict`.

        Raises:
            InputError: on unknown or missing fields and on values that break a rule.
        """
        unknown = set(values) - set(cls.__dataclass_fields__)
        if unknown or not {"time_s", "kind"} <= set(values):
            raise InputError(f"message {values!r} needs time_s and kind and knows no {sorted(unknown)}")
        actions = values.get("actions")
        return cls(**{**values, "actions": tuple(actions) if actions is not None else None})


@dataclass(frozen=True, kw_only=True)
class UserEvent:
    """What the user asks of the coach, in the same log as the messages.

    Attributes:
        time_s: seconds from the video's first shown frame.
        action: back (to the step before), skip (this step), done ("I did that already"), repeat (say it
            again), pause, resume.
    """

    time_s: float
    action: UserAction

    def __post_init__(self) -> None:
        if self.action not in USER_ACTIONS:
            raise InputError(f"user action {self.action!r} is not one of {', '.join(USER_ACTIONS)}")
        _check_time(f"user action {self.action}", self.time_s)


@dataclass(frozen=True, kw_only=True)
class Segment:
    """An instruction and what was said until the next one.

    Attributes:
        instruction: the message that opens it.
        messages: those after it, in order, the next instruction not among them.
        end_s: time of the next instruction or of the finish message; None if neither follows.
    """

    instruction: Message
    messages: tuple[Message, ...]
    end_s: float | None


@dataclass(frozen=True, kw_only=True)
class Timeline:
    """A video's messages in order.

    Attributes:
        video_id: as in the corpus, or the file's name without its ending.
        activity: the recipe's name.
        messages: in order of time; equal times keep their order (feedback, success, instruction).
        plans: what was left to do just after each message, one for each message; or empty if unknown.
        recipe: the graph and the texts of the plans' node ids; None if unknown.
        user_events: in order of time.
    """

    video_id: str
    activity: str = ""
    messages: tuple[Message, ...] = ()
    plans: tuple[Plan, ...] = ()
    recipe: Recipe | None = None
    user_events: tuple[UserEvent, ...] = ()

    def __post_init__(self) -> None:
        if not self.video_id:
            raise InputError("a timeline needs a video id")
        for what, items in (("message", self.messages), ("user event", self.user_events)):
            times = [item.time_s for item in items]
            for place, (before, after) in enumerate(itertools.pairwise(times), 1):
                if after < before:
                    raise InputError(
                        f"{self.video_id}: {what} {place} at {after} s comes after one at {before} s; "
                        "sort by time first"
                    )
        if self.plans and len(self.plans) != len(self.messages):
            raise InputError(
                f"{self.video_id}: {len(self.plans)} plans for {len(self.messages)} messages; "
                "give one for each message, or none"
            )

    def of_kind(self, *kinds: MessageKind) -> tuple[Message, ...]:
        """The messages of some kinds, in order."""
        return tuple(message for message in self.messages if message.kind in kinds)

    def with_messages(self, messages: Iterable[Message], plans: Iterable[Plan] = ()) -> "Timeline":
        """A copy with other messages (and plans)."""
        return replace(self, messages=tuple(messages), plans=tuple(plans))

    def segments(self) -> Iterator[Segment]:
        """Each instruction with the messages up to the next one, in order."""
        opened: Message | None = None
        said: list[Message] = []
        end_s: float | None = None
        for message in self.messages:
            if message.kind == "instruction":
                if opened is not None:
                    yield Segment(instruction=opened, messages=tuple(said), end_s=message.time_s)
                opened, said, end_s = message, [], None
            elif opened is not None:
                said.append(message)
                if message.kind == "finish":
                    end_s = message.time_s
        if opened is not None:
            yield Segment(instruction=opened, messages=tuple(said), end_s=end_s)
