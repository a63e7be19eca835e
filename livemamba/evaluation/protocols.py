"""How a watcher is run over one benchmark video: streaming and turn-based. No torch.

The same functions run models and sanity rows; both go through `Coach` and `Runner`. Source: paper 5.2 to 5.4 and B.1,
spec/interactive_cooking.md (streaming, turn-based).
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from livemamba.coaching.coach import Coach
from livemamba.coaching.replanner import Replanner
from livemamba.coaching.runner import Runner
from livemamba.coaching.watchers import StepWatcher
from livemamba.errors import InputError
from livemamba.recipe import Plan, Recipe, RecipeStep, Step
from livemamba.ticks import Frame, tick_at_or_after, tick_at_or_before
from livemamba.timeline import Message, Segment, Timeline

OVERRUN_S = 15.0
"""Half of the benchmark's window: how long a turn goes on after the ground truth's step has ended."""


@dataclass(frozen=True, kw_only=True)
class Lesson:
    """What a system is told before it watches: the plan and its sentences, nothing of what will happen.

    Attributes:
        video_id: whose frames they are.
        recipe: steps and graph.
        plan: what is to be done, the first step in front.
        sentences: the ground truth's own sentence for each step it asks for (the benchmark compares texts).
        start_tick: when the first instruction is given.
        turn: which of the row's instructions this is about; None for the whole video.
    """

    video_id: str
    recipe: Recipe
    plan: Plan
    sentences: Mapping[Step, str]
    start_tick: int
    turn: int | None = None


MakeWatcher = Callable[[Lesson], StepWatcher]
"""Makes a new watcher for one session: a whole video when streaming, one instruction when turn-based."""


def lesson_of(row: Timeline) -> Lesson:
    """What streaming starts from: the row's plan at its first instruction.

    Raises:
        InputError: if the row has no instruction, or its plans don't begin with the steps it asks for.
    """
    recipe, asked = _asked(row)
    first, plan = asked[0]
    sentences: dict[Step, str] = {}
    for instruction, at in asked:
        sentences.setdefault(at.current, instruction.text)
    return Lesson(
        video_id=row.video_id,
        recipe=recipe,
        plan=plan,
        sentences=sentences,
        start_tick=tick_at_or_after(first.time_s),
    )


def turns_of(row: Timeline) -> list[Lesson]:
    """What each turn starts from: the row's plan at each of its instructions.

    Raises:
        InputError: as `lesson_of`.
    """
    recipe, asked = _asked(row)
    return [
        Lesson(
            video_id=row.video_id,
            recipe=recipe,
            plan=plan,
            sentences={plan.current: instruction.text},
            start_tick=tick_at_or_after(instruction.time_s),
            turn=place,
        )
        for place, (instruction, plan) in enumerate(asked)
    ]


def _asked(row: Timeline) -> tuple[Recipe, list[tuple[Message, Plan]]]:
    """Each instruction with the plan that begins with its step."""
    instructions = row.of_kind("instruction")
    if not instructions:
        raise InputError(f"{row.video_id}: the row has no instruction, so there is nothing to coach")
    if row.recipe is None or not row.plans:
        return _from_sentences(row, instructions)
    pairs = zip(row.messages, row.plans, strict=True)
    asked = [(message, plan) for message, plan in pairs if message.kind == "instruction"]
    for message, plan in asked:
        if not plan:
            raise InputError(f"{row.video_id}: the plan at {message.time_s} s is empty, but {message.text!r} is asked")
    return row.recipe, asked


def _from_sentences(row: Timeline, instructions: tuple[Message, ...]) -> tuple[Recipe, list[tuple[Message, Plan]]]:
    """A chain of the row's own instructions, for rows that carry texts only."""
    ids = [str(place) for place in range(1, len(instructions) + 1)]
    steps = tuple(
        RecipeStep(id=node, text=message.text, after=tuple(ids[place - 1 : place]))
        for place, (node, message) in enumerate(zip(ids, instructions, strict=True))
    )
    recipe = Recipe(name=row.activity or row.video_id, steps=steps)
    plans = (Plan(tuple((node,) for node in ids[place:])) for place in range(len(ids)))
    return recipe, list(zip(instructions, plans, strict=True))


# --- streaming ---------------------------------------------------------------------------------------


def evaluate_streaming(
    row: Timeline,
    make_watcher: MakeWatcher,
    frames: Iterable[Frame],
    *,
    replanner: Replanner | None = None,
    replanning: bool = True,
) -> Timeline:
    """One video from the first action's start on; every later instruction comes when the system itself ends a step.

    Args:
        row: the ground truth; only its plan, its sentences and its first instruction's time are used.
        make_watcher: called once.
        frames: of the whole video, ticks rising.
        replanner: default the rules.
        replanning: False for the ablation.

    Returns:
        All that was said; the first message is the first instruction.

    Raises:
        InputError: as `lesson_of`, or if the frames end before the first instruction.
    """
    lesson = lesson_of(row)
    coach = Coach(lesson.recipe, plan=lesson.plan, instruction_text=lesson.sentences, replanning=replanning)
    runner = Runner(coach, make_watcher(lesson), replanner=replanner, wait_for_replanner=True)
    runner.run(frames, start_tick=lesson.start_tick)
    return coach.timeline(row.video_id)


# --- turn-based --------------------------------------------------------------------------------------


def evaluate_turn_based(
    row: Timeline, make_watcher: MakeWatcher, frames: Iterable[Frame], *, overrun_s: float = OVERRUN_S
) -> tuple[Timeline, ...]:
    """Each of the row's instructions on its own, from its ground-truth time, with a watcher of its own.

    A turn ends when the watcher ends the step, or the frames end, or `overrun_s` after the ground truth's step has
    ended. Stopping at that end would cut off every system that speaks once it has seen the step end, and would let
    the clip's end tell when; half a window later nothing can be right any more, and the next turn has long begun:
    turns overlap.

    Args:
        row: the ground truth; its plans, sentences and the instructions' times are used.
        make_watcher: called once for each turn.
        frames: of the whole video, ticks rising; read once.
        overrun_s: seconds; at least half the scoring window, or late predictions are cut off that would count.

    Returns:
        A timeline for each instruction: it, at its own time, and what was said in its turn.

    Raises:
        InputError: as `lesson_of`, or if the frames end before the last turn begins.
    """
    turns = [
        _Turn(lesson, segment, make_watcher, overrun_s)
        for lesson, segment in zip(turns_of(row), row.segments(), strict=True)
    ]
    waiting, active = deque(turns), list[_Turn]()
    for frame in frames:
        while waiting and waiting[0].lesson.start_tick <= frame.tick:
            active.append(waiting.popleft())
        for turn in active:
            turn.see(frame)
        active = [turn for turn in active if not turn.is_over]
        if not waiting and not active:
            break
    if waiting:
        raise InputError(
            f"{row.video_id}: the frames end before the instruction at {waiting[0].segment.instruction.time_s} s; "
            "give the whole video"
        )
    return tuple(turn.timeline(row) for turn in turns)


class _Turn:
    """One instruction's session."""

    def __init__(self, lesson: Lesson, segment: Segment, make_watcher: MakeWatcher, overrun_s: float) -> None:
        self.lesson = lesson
        self.segment = segment
        self.is_over = False
        self._is_asked = False
        self._said: list[Message] = []
        end_s = segment.end_s
        self._last_tick = None if end_s is None else tick_at_or_before(end_s + overrun_s)
        self._make_watcher = make_watcher
        self._runner: Runner | None = None

    def see(self, frame: Frame) -> None:
        """Begin with the turn's first frame, then judge each until the turn is over."""
        if self._runner is None:
            self._runner = self._begin()
        if self._last_tick is not None and frame.tick > self._last_tick:
            self.is_over = True
        else:
            self._runner.step(frame)

    def _begin(self) -> Runner:
        lesson = self.lesson
        # What would be asked for next is given with the next turn, so a divergence is only said.
        coach = Coach(lesson.recipe, plan=lesson.plan, instruction_text=lesson.sentences, replanning=False)
        runner = Runner(coach, self._make_watcher(lesson), sinks=[self._hear])
        runner.begin(lesson.start_tick)
        return runner

    def _hear(self, message: Message) -> None:
        if message.kind in ("instruction", "finish"):
            self.is_over = self._is_asked  # the second one: the watcher has ended the step
            self._is_asked = True
        else:
            self._said.append(message)

    def timeline(self, row: Timeline) -> Timeline:
        """The ground truth's instruction and what was said after it."""
        return replace(row, messages=(self.segment.instruction, *self._said), plans=(), user_events=())
