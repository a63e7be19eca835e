"""Rows that keep Interactive Cooking's metric honest: systems that see nothing, and ones that know everything.

Each goes through the same coach and protocols as a model, over frames without a picture. Source:
spec/interactive_cooking.md (sanity rows that must ship, since the metric can be gamed).
"""

import random
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from livemamba.coaching.events import Event
from livemamba.coaching.replanner import Replanner, ReplanRequest, ReplanResult
from livemamba.coaching.watchers import (
    ChattyWatcher,
    ScriptedWatcher,
    SilentWatcher,
    StepWatcher,
    TimerWatcher,
    events_of,
)
from livemamba.errors import InputError
from livemamba.evaluation.interactive_cooking import Prediction
from livemamba.evaluation.protocols import Lesson, MakeWatcher, evaluate_streaming, evaluate_turn_based
from livemamba.evaluation.rules import Protocol
from livemamba.recipe import Plan
from livemamba.ticks import TICKS_PER_SECOND, Frame, tick_at_or_after, tick_to_s
from livemamba.timeline import Message, Timeline

CHATTY_EVERY_S = 10.0
TAIL_S = 30.0
"""How long the ticks go on after a row's last message, where nobody says how long the video is."""


# --- frames without a picture ------------------------------------------------------------------------


def blank_frames(duration_s: float) -> Iterator[Frame]:
    """A tick source without video: a one-pixel frame at every tick up to the duration.

    Raises:
        InputError: if the duration is not finite.
    """
    last = tick_at_or_after(duration_s)
    return (_blank_frame(tick) for tick in range(last + 1))


@cache
def _blank_frame(tick: int) -> Frame:
    return Frame(tick=tick, time_s=tick_to_s(tick), pixels=_PIXEL)


_PIXEL = np.zeros((1, 1, 3), dtype=np.uint8)


def watched_s(row: Timeline) -> float:
    """How long a row is watched: to its last message and `TAIL_S` more."""
    return row.messages[-1].time_s + TAIL_S


# --- what a timer knows ------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class StepDurations:
    """How long steps take, from instruction to instruction.

    Attributes:
        by_text: median seconds for each instruction's text.
        overall_s: median over all steps.
        num_steps: over how many.
    """

    by_text: Mapping[str, float]
    overall_s: float
    num_steps: int


def step_durations(rows: Iterable[Timeline]) -> StepDurations:
    """The medians of some rows, of the train split as a rule.

    Raises:
        InputError: if no step in them has an end.
    """
    taken: dict[str, list[float]] = {}
    for row in rows:
        for segment in row.segments():
            if segment.end_s is not None:
                taken.setdefault(segment.instruction.text, []).append(segment.end_s - segment.instruction.time_s)
    every = [seconds for times in taken.values() for seconds in times]
    if not every:
        raise InputError("no step with a beginning and an end to learn durations from; give the train split's rows")
    medians = {text: statistics.median(times) for text, times in taken.items()}
    return StepDurations(by_text=medians, overall_s=statistics.median(every), num_steps=len(every))


# --- the oracle --------------------------------------------------------------------------------------


def jittered(row: Timeline, seconds: float, *, seed: int = 0) -> Timeline:
    """A row whose messages come early or late, each moment by its own draw; the first instruction stays.

    What is said at one time stays together. Draws are uniform over whole ticks from -seconds to +seconds, and the
    moved times are given out in order, so no message overtakes another and none moves further than `seconds`.

    Args:
        row: the ground truth.
        seconds: the most a message moves; 0 for none.
        seed: the same seed, seconds and video give the same draws, whatever else is drawn.
    """
    draw = random.Random(f"{seed}/{seconds}/{row.video_id}")
    most = round(seconds * TICKS_PER_SECOND)
    start_s = row.messages[0].time_s
    moments = sorted({message.time_s for message in row.messages} - {start_s})
    moved = sorted(max(start_s, moment + tick_to_s(draw.randint(-most, most))) for moment in moments)
    new = {start_s: start_s, **dict(zip(moments, moved, strict=True))}
    return row.with_messages(
        (replace(message, time_s=new[message.time_s]) for message in row.messages), plans=row.plans
    )


def oracle(said: Timeline) -> MakeWatcher:
    """A watcher that says what a row, jittered or not, says."""

    def make(lesson: Lesson) -> StepWatcher:
        return ScriptedWatcher(events_of(said) if lesson.turn is None else _turn_events(said, lesson.turn))

    return make


class RowReplanner:
    """After a divergence, the plan that the row itself has at its next instruction.

    Args:
        said: the row that the oracle says; with plans.
    """

    def __init__(self, said: Timeline) -> None:
        self._said = said

    def replan(self, request: ReplanRequest) -> ReplanResult:
        """The row's next plan; empty where no instruction follows."""
        pairs = list(zip(self._said.messages, self._said.plans, strict=True))
        place = max(
            place
            for place, (message, _) in enumerate(pairs)
            if message.text == request.feedback and tick_at_or_after(message.time_s) <= request.tick
        )
        plan = next((plan for message, plan in pairs[place:] if message.kind == "instruction"), Plan())
        return ReplanResult(
            plan=plan,
            repeats=bool(set(request.step) & set(plan.node_ids)),
            done_step=request.actions or (),
            reason="as in the row",
        )


def _turn_events(row: Timeline, turn: int) -> tuple[Event, ...]:
    segment = list(row.segments())[turn]
    messages: tuple[Message, ...] = (segment.instruction, *segment.messages)
    if segment.end_s is not None and messages[-1].kind != "finish":
        messages = (*messages, replace(segment.instruction, time_s=segment.end_s))  # whose advance ends the step
    return events_of(row.with_messages(messages))


# --- the rows ----------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class SanityRow:
    """A system for the table.

    Attributes:
        name: short.
        about: what it does, for the reader of the table.
        make: for each row of the ground truth, what makes its watchers.
        replanner: for each row, who re-plans when streaming; the rules, unless one is given.
    """

    name: str
    about: str
    make: Callable[[Timeline], MakeWatcher]
    replanner: Callable[[Timeline], Replanner] | None = None


def sanity_rows(durations: StepDurations, *, seed: int = 0) -> tuple[SanityRow, ...]:
    """The rows that ship.

    Args:
        durations: for the timer, from train.
        seed: of the jitter.
    """

    def timer(lesson: Lesson) -> StepWatcher:
        own = {lesson.recipe.text(step): text for step, text in lesson.sentences.items()}
        known = {what: durations.by_text[text] for what, text in own.items() if text in durations.by_text}
        # A compound step that train doesn't have takes the overall time, not that of its longest action.
        return TimerWatcher(
            lesson.recipe,
            durations_s={what: known.get(what, durations.overall_s) for what in own},
            default_s=durations.overall_s,
        )

    def knowing(name: str, about: str, jitter_s: float = 0.0) -> SanityRow:
        return SanityRow(
            name=name,
            about=f"says what the ground truth says, {about}; re-plans as the ground truth does",
            make=lambda row: oracle(jittered(row, jitter_s, seed=seed)),
            replanner=lambda row: RowReplanner(jittered(row, jitter_s, seed=seed)),
        )

    return (
        SanityRow(
            name="silent",
            about="never says a word and never moves on; turn-based, the instructions are the protocol's",
            make=lambda row: lambda lesson: SilentWatcher(),
        ),
        SanityRow(
            name="chatty",
            about=f"alerts a mistake every {CHATTY_EVERY_S:.0f} s from the instruction on, and never moves on",
            make=lambda row: lambda lesson: ChattyWatcher(every_s=CHATTY_EVERY_S),
        ),
        SanityRow(
            name="timer",
            about=(
                "open loop: says that a step is done after the median time that its instruction took in train "
                f"(unknown instructions: {durations.overall_s:.1f} s, the median of all {durations.num_steps})"
            ),
            make=lambda row: timer,
        ),
        knowing("oracle", "at the first tick at or after its time"),
        *(
            knowing(
                f"oracle +-{jitter_s:.0f} s", f"each moment moved by up to {jitter_s:.0f} s (seed {seed})", jitter_s
            )
            for jitter_s in (15.0, 30.0)
        ),
        SanityRow(
            name="oracle, rules",
            about="the oracle's eyes with the rules as re-planner: what planning by the graph alone costs",
            make=oracle,
        ),
    )


def run_row(row: SanityRow, truth: Sequence[Timeline], protocol: Protocol) -> dict[str, Prediction]:
    """What a sanity row says about every video."""
    predictions: dict[str, Prediction] = {}
    for video in truth:
        frames = blank_frames(watched_s(video))
        make = row.make(video)
        if protocol == "streaming":
            replanner = row.replanner(video) if row.replanner else None
            predictions[video.video_id] = evaluate_streaming(video, make, frames, replanner=replanner)
        else:
            predictions[video.video_id] = evaluate_turn_based(video, make, frames)
    return predictions
