"""Episodes: a cook let loose in a kitchen, what happened when, and the pictures of it. No torch."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from livemamba.errors import InputError
from livemamba.simkitchen import state
from livemamba.simkitchen.acts import Act, instruction_text
from livemamba.simkitchen.cooks import Cook, EpisodePlan, Performance, PlannedCook
from livemamba.simkitchen.drawing import Pixels
from livemamba.simkitchen.mistakes import Mistake
from livemamba.simkitchen.phases import Contrast, Script
from livemamba.simkitchen.renderer import Renderer
from livemamba.simkitchen.world import BEATS_PER_S, World, make_world
from livemamba.ticks import TICKS_PER_SECOND


class Session:
    """A world and its cook, moved on together. The state at a moment doesn't depend on the steps to it."""

    def __init__(self, plan: EpisodePlan, cook: Cook | None = None) -> None:
        """Set up.

        Args:
            plan: dish and kitchen, and what is done unless another cook is given.
            cook: who acts.
        """
        self.world: World = make_world(plan.dish.kitchen(plan.kitchen_number), dirty=plan.dish.washed)
        self.cook: Cook = cook or PlannedCook(plan)

    @property
    def finished(self) -> bool:
        """Whether the cook is done and nothing is under way."""
        return self.cook.done and not self.world.running

    def advance_to(self, beat: int) -> None:
        """Move on to a beat; stops earlier only when the episode is finished."""
        while True:
            while self.world.hands_free and (script := self.cook.act(self.world)) is not None:
                self.world.start(script)
            event, left = self.world.beats_to_event(), beat - self.world.beat
            if left <= 0 or event is None:
                return
            self.world.advance(min(left, event))

    def advance_to_end(self) -> None:
        """Move on until the episode is finished."""
        while not self.finished:
            self.advance_to(self.world.beat + 60 * BEATS_PER_S)


@dataclass(frozen=True, kw_only=True)
class ContrastRecord:
    """An instruction under which a step would have been a mistake, and when that shows.

    Attributes:
        asked: that act.
        mistake: what was done, as a mistake with it.
        evidence_s, seen_s: as in `StepRecord`.
    """

    asked: Act
    mistake: Mistake
    evidence_s: float
    seen_s: float

    @property
    def field(self) -> str:
        """The field of the act in which both differ: count, tool, level..."""
        return next(name for name, value in vars(self.asked).items() if value != getattr(self.mistake.done, name))


@dataclass(frozen=True, kw_only=True)
class StepRecord:
    """When a step was done.

    Attributes:
        performance: what was meant.
        start_s, end_s: of the step.
        evidence_s: first moment at which the picture differs from that of the twin without the mistake; None
            without a mistake.
        seen_s: moment by which one can see what went wrong.
        contrasts: opposite instructions; none where the manner was wrong.
    """

    performance: Performance
    start_s: float
    end_s: float
    evidence_s: float | None = None
    seen_s: float | None = None
    contrasts: tuple[ContrastRecord, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Episode:
    """An episode that has been played, without its pictures.

    Attributes:
        plan: what it follows from.
        steps: what was done, by start.
        duration_s: of the whole video.
    """

    plan: EpisodePlan
    steps: tuple[StepRecord, ...]
    duration_s: float

    def details(self) -> dict[str, Any]:
        """Everything that CaptainCook4D's files don't hold, JSON-ready."""
        return {
            "key": list(self.plan.key),
            "activity": self.plan.dish.name,
            "kitchen": self.plan.kitchen_number,
            "duration_s": self.duration_s,
            "skipped": [self.plan.dish[node].step_id for node in self.plan.skipped],
            "steps": [self._step_details(step) for step in self.steps],
        }

    def _step_details(self, step: StepRecord) -> dict[str, Any]:
        one, asked = step.performance, self.plan.dish[step.performance.node]
        details: dict[str, Any] = {
            "node": one.node,
            "step_id": asked.step_id,
            "start_s": step.start_s,
            "end_s": step.end_s,
            "asked": instruction_text(asked.act),
        }
        if one.during:
            details["during"] = one.during
        if one.order_text:
            details["order"] = one.order_text
        details["contrasts"] = [
            {
                "asked": instruction_text(contrast.asked),
                "field": contrast.field,
                "category": contrast.mistake.category,
                "texts": list(contrast.mistake.texts),
                "evidence_s": contrast.evidence_s,
                "seen_s": contrast.seen_s,
            }
            for contrast in step.contrasts
        ]
        if one.mistake:
            details["mistake"] = {
                "category": one.mistake.category,
                "kind": one.mistake.name,
                "text": one.mistake_text,
                "done": instruction_text(one.mistake.done),
                "evidence_s": step.evidence_s,
                "seen_s": step.seen_s,
            }
        return details


def play(plan: EpisodePlan) -> Episode:
    """Play an episode without drawing it; takes some milliseconds."""
    session = Session(plan)
    session.advance_to_end()
    return Episode(plan=plan, steps=_records(session.world, plan), duration_s=session.world.time_s)


def _records(world: World, plan: EpisodePlan) -> tuple[StepRecord, ...]:
    logs: dict[str, list[tuple[float, str]]] = {}
    scripts: dict[str, Script] = {}
    begun: dict[str, list[float]] = {}
    for beat, script, what in world.log:
        logs.setdefault(script.name, []).append((beat / BEATS_PER_S, what))
        scripts[script.name] = script
    for beat, script, _ in world.begun:
        begun.setdefault(script.name, []).append(beat / BEATS_PER_S)
    return tuple(_record(one, logs[one.node], scripts[one.node], begun.get(one.node, [])) for one in plan.performances)


def _record(performance: Performance, log: list[tuple[float, str]], script: Script, begun: list[float]) -> StepRecord:
    start_s, end_s = log[0][0], log[-1][0]
    ends = [*begun[1:], end_s]
    record = StepRecord(
        performance=performance,
        start_s=start_s,
        end_s=end_s,
        contrasts=tuple(_contrast(contrast, script, begun, ends) for contrast in script.contrasts),
    )
    if script.evidence_index is None:
        return record
    index = script.evidence_index
    return replace(record, evidence_s=begun[index], seen_s=_seen_s(index, script, ends))


def _contrast(contrast: Contrast, script: Script, begun: list[float], ends: list[float]) -> ContrastRecord:
    # What is left out at the very end shows when nothing more comes.
    evidence_s = [*begun, ends[-1]][contrast.index]
    return ContrastRecord(
        asked=contrast.asked,
        mistake=contrast.mistake,
        evidence_s=evidence_s,
        seen_s=_seen_s(contrast.index, script, ends),
    )


def _seen_s(index: int, script: Script, ends: list[float]) -> float:
    """The end of the first marked phase from an index on; of the script, if there is none."""
    marked = (end for phase, end in zip(script.phases[index:], ends[index:], strict=True) if phase.marked)
    return next(marked, ends[-1])


def check_rate(fps: int) -> None:
    """Refuse frame rates that don't fall on whole beats.

    Raises:
        InputError: naming what can be had.
    """
    if fps < 2 or fps > 60 or BEATS_PER_S % fps:
        rates = ", ".join(str(rate) for rate in range(2, 61) if BEATS_PER_S % rate == 0)
        raise InputError(f"frame rate {fps}; give one of {rates}")


def states(plan: EpisodePlan) -> npt.NDArray[np.uint8]:
    """The world's state at every tick, as `state.labels` numbers it: (T, F)."""
    session = Session(plan)
    rows: list[npt.NDArray[np.int64]] = []
    while True:
        beat = len(rows) * (BEATS_PER_S // TICKS_PER_SECOND)
        session.advance_to(beat)
        if session.world.beat < beat or session.finished:
            return np.array(rows, dtype=np.uint8)
        rows.append(state.labels(session.world))


def frames(plan: EpisodePlan, *, size: int, fps: int) -> Iterator[tuple[float, Pixels]]:
    """The episode's pictures: seconds, and (size, size, 3) uint8 RGB.

    Raises:
        InputError: if size or rate are out of range.
    """
    check_rate(fps)
    session = Session(plan)
    renderer = Renderer(session.world.kitchen, size)
    number = 0
    while True:
        beat = number * (BEATS_PER_S // fps)
        session.advance_to(beat)
        if session.world.beat < beat or session.finished:
            return
        yield session.world.time_s, renderer.draw(session.world)
        number += 1
