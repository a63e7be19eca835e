"""The rules of Interactive Cooking's scores that a reader may choose otherwise, in one place. No torch.

Source: spec/interactive_cooking.md (Scoring), paper 5.1 and 5.3. Where the paper is silent, the default is our
choice; the choice made is written into every result.
"""

import argparse
import math
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, get_args

from livemamba.errors import InputError

Protocol = Literal["streaming", "turn_based"]
PROTOCOLS: tuple[Protocol, ...] = get_args(Protocol)

Repeats = Literal["monotone", "nearest", "first"]
MistakeMatching = Literal["one_to_one", "greedy"]
Completion = Literal["success", "last_message"]
UnalignedSuccess = Literal["mistake", "neutral", "false_positive"]
Unmatched = Literal["skip", "fn"]
FeedbackInHit = Literal["forbidden", "allowed"]


@dataclass(frozen=True, kw_only=True)
class ScoringRules:
    """How predictions are held against the ground truth.

    Attributes:
        window_s: whole width of the window, centred on the ground truth's time (paper 5.1: 30, so 15 s either
            way, edges included).
        gate: ROUGE-L F from which a predicted instruction is taken for the ground truth's.
        repeats: which predicted instruction stands for a ground-truth one when several pass the gate. monotone:
            each is used once, in order, such that the texts agree best in all, then the times. nearest: the
            nearest in time. first: the first in the list. The last two may use one more than once.
        mistake_matching: one_to_one: each feedback finds one mistake, the nearest pairs first. greedy: a mistake
            is found by any feedback in its window, which may find others too.
        completion: success: a step is completed at its last success message; one with feedback and no success,
            at the next instruction. last_message: at its last message, whatever that says.
        unaligned_success: what another step, done well instead of the one asked for, is. mistake: something to
            be detected. neutral: neither demanded nor punished, and a segment with nothing else is no completion.
            false_positive: a completion like any other, so that feedback about it is a false alarm.
        unmatched: whether mistakes count where the instruction was not given (paper 5.3: they don't; skip), or as
            missed (fn). Results hold both.
        feedback_in_hit: whether a completion counts (allowed) when the segment also has predicted feedback.

    Raises:
        InputError: if a value is out of range or no choice of its rule.
    """

    window_s: float = 30.0
    gate: float = 0.8
    repeats: Repeats = "monotone"
    mistake_matching: MistakeMatching = "one_to_one"
    completion: Completion = "success"
    unaligned_success: UnalignedSuccess = "mistake"
    unmatched: Unmatched = "skip"
    feedback_in_hit: FeedbackInHit = "forbidden"

    def __post_init__(self) -> None:
        if not math.isfinite(self.window_s) or self.window_s <= 0:
            raise InputError(f"window_s is {self.window_s!r}; give the window's whole width, seconds > 0")
        if not 0 < self.gate <= 1:
            raise InputError(f"gate is {self.gate!r}; give a ROUGE-L value, more than 0 and at most 1")
        for name, choices in CHOICES.items():
            if getattr(self, name) not in choices:
                raise InputError(f"{name} is {getattr(self, name)!r}; choose one of {', '.join(choices)}")

    def in_window(self, first_s: float, second_s: float) -> bool:
        """Whether two times are at most half a window apart."""
        return abs(first_s - second_s) <= self.window_s / 2 + _EPSILON_S

    def to_dict(self) -> dict[str, Any]:
        """For the result file."""
        return asdict(self)


# Times are sums of floats: 115.2 - 100.2 must count as 15.
_EPSILON_S = 1e-6

CHOICES: dict[str, tuple[str, ...]] = {
    "repeats": get_args(Repeats),
    "mistake_matching": get_args(MistakeMatching),
    "completion": get_args(Completion),
    "unaligned_success": get_args(UnalignedSuccess),
    "unmatched": get_args(Unmatched),
    "feedback_in_hit": get_args(FeedbackInHit),
}

_HELP = {
    "window_s": "whole width of the window around a ground-truth time, seconds",
    "gate": "ROUGE-L from which a predicted instruction matches a ground-truth one",
    "repeats": "which of several matching instructions is taken",
    "mistake_matching": "may one feedback find several mistakes (greedy)",
    "completion": "what completes a step",
    "unaligned_success": "what another step, done well instead, is (advanced_planning)",
    "unmatched": "mistakes under an instruction that was not given",
    "feedback_in_hit": "may a completed step have predicted feedback",
}


def add_rule_arguments(parser: argparse.ArgumentParser) -> None:
    """An option for each rule, under its own name."""
    group = parser.add_argument_group("scoring rules", "the defaults are the documented ones")
    for field in fields(ScoringRules):
        kind: dict[str, Any] = {"choices": CHOICES[field.name]} if field.name in CHOICES else {"type": float}
        group.add_argument(
            f"--{field.name}", default=field.default, help=f"{_HELP[field.name]} (default {field.default})", **kind
        )


def rules_of(arguments: argparse.Namespace) -> ScoringRules:
    """The rules that a command line chose.

    Raises:
        InputError: as `ScoringRules`.
    """
    return ScoringRules(**{field.name: getattr(arguments, field.name) for field in fields(ScoringRules)})
