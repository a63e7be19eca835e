"""Drives one coach with real frames: source -> watcher -> coach -> messages. No torch.

The re-planner works on a thread of its own: live, frames never wait for it; for files the runner may wait
for it, so that a run's outcome doesn't depend on the machine's speed. Source: paper B.1 (where streaming begins),
spec/pitfalls.md (L2: a call that never returns).
"""

import logging
import queue
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from livemamba.coaching.coach import Coach, InstructionText, Outputs
from livemamba.coaching.events import Event, StartStep
from livemamba.coaching.replanner import Replanner, ReplanRequest, ReplanResult, RulesReplanner
from livemamba.coaching.watchers import StepWatcher
from livemamba.errors import InputError
from livemamba.recipe import Plan, Recipe
from livemamba.ticks import Frame
from livemamba.timeline import Message, Timeline, UserEvent

if TYPE_CHECKING:
    from livemamba.model.livemamba import LiveMamba

logger = logging.getLogger(__name__)

Sink = Callable[[Message], None]


@dataclass(frozen=True, kw_only=True)
class RunReport:
    """What a session came to.

    Attributes:
        finished: whether the finish message was said.
        frames_seen: frames that came.
        frames_judged: those shown to the watcher; not before the start tick, in pauses or while waiting.
        first_tick: of the first judged frame; None if none was.
        last_tick: of the last frame seen; None if none came.
        messages: how many, by kind.
        counts: what the coach ignored or refused, by reason.
        replans_asked: questions put to the re-planner.
        replans_answered: its answers in time.
        replans_failed: errors, and answers not there within the limit; the rules answered instead.
        replans_late: answers and errors that came when nobody waited for them any more.
        wall_s: seconds since the session began.
        mean_frame_s: seconds a judged frame took on average, until its messages were given out; 0 without frames.
        worst_frame_s: the slowest.
    """

    finished: bool
    frames_seen: int
    frames_judged: int
    first_tick: int | None
    last_tick: int | None
    messages: Mapping[str, int]
    counts: Mapping[str, int]
    replans_asked: int
    replans_answered: int
    replans_failed: int
    replans_late: int
    wall_s: float
    mean_frame_s: float
    worst_frame_s: float


@dataclass(frozen=True, kw_only=True)
class _Reply:
    """What came back from a re-planner's thread: a result, or none if it failed."""

    request: ReplanRequest
    result: ReplanResult | None


class Runner:
    """One session.

    `run` takes a whole source. Servers and engines go frame by frame: `begin`, then `step` for each frame;
    an engine that judges frames of several sessions at once uses `admit` and `deliver`, of which `step` is made.
    All methods may be called from any thread; they take turns.

    Args:
        coach: a new one, or a loaded one that goes on.
        watcher: judges the steps; of this session alone. What it raises is not caught.
        replanner: default `RulesReplanner`, which also stands in when another fails. It is asked one question
            at a time, on a thread of its own; a newer question waits for the call before to return.
        sinks: called with each message, in order. They may call `user`; what they raise is not caught.
        wait_for_replanner: whether frames wait for it (files: the outcome is the same each time).
        replan_limit_s: seconds an answer may take; None for no limit.

    Raises:
        InputError: if the limit is negative.
    """

    def __init__(
        self,
        coach: Coach,
        watcher: StepWatcher,
        *,
        replanner: Replanner | None = None,
        sinks: Sequence[Sink] = (),
        wait_for_replanner: bool = False,
        replan_limit_s: float | None = 20.0,
    ) -> None:
        if replan_limit_s is not None and not replan_limit_s >= 0:
            raise InputError(f"replan_limit_s is {replan_limit_s!r}; give seconds >= 0, or None for no limit")
        self.coach = coach
        self.watcher = watcher
        self._rules = RulesReplanner(coach.recipe)
        self._replanner = replanner if replanner is not None else self._rules
        self._sinks = tuple(sinks)
        self._waits = wait_for_replanner
        self._limit_s = replan_limit_s
        self._deadline: float | None = None
        self._queued: ReplanRequest | None = None
        self._busy = False
        self._replies: queue.SimpleQueue[_Reply] = queue.SimpleQueue()
        self._lock = threading.RLock()
        self._todo: deque[Message | StartStep | ReplanRequest] = deque()
        self._performing = False
        self._said: Counter[str] = Counter()
        self._replans: Counter[str] = Counter()
        self._began_s: float | None = None
        self._seen = self._judged = 0
        self._tick = 0
        self._first_tick: int | None = None
        self._last_tick: int | None = None
        self._frames_s = self._worst_s = 0.0

    # --- a whole source ------------------------------------------------------------------------------

    def run(
        self,
        source: Iterable[Frame],
        *,
        start_tick: int | None = None,
        should_stop: Callable[[], bool] | None = None,
        stop_when_finished: bool = True,
    ) -> RunReport:
        """Coach over a source until it ends, the recipe is finished, or someone says stop.

        Args:
            source: frames, ticks rising.
            start_tick: where streaming begins and the first instruction is given (in the benchmark the first
                action's start); default the first frame. Earlier frames aren't shown to the watcher.
            should_stop: asked before each frame is used.
            stop_when_finished: whether to leave the source once nothing is left to do.

        Raises:
            InputError: if the source ends before the session has begun, or its ticks don't rise.
        """
        for frame in source:
            if should_stop is not None and should_stop():
                break
            if start_tick is not None and frame.tick < start_tick:
                self._note(frame)
                continue
            if self._began_s is None:
                self.begin(frame.tick if start_tick is None else start_tick)
            self.step(frame)
            if stop_when_finished and self.coach.state == "finished":
                break
        else:
            if self._began_s is None:
                raise InputError(
                    f"the source ended after {self._seen} frames and the session never began "
                    f"(start tick {start_tick}); give a source with frames at or after it"
                )
        return self.report()

    # --- frame by frame ------------------------------------------------------------------------------

    def begin(self, tick: int) -> None:
        """Give the first instruction; for a loaded coach, start the watcher and ask the open question again.

        Raises:
            InputError: if the session has begun already.
        """
        with self._lock:
            if self._began_s is not None:
                raise InputError("this session has begun already; make a new runner for a new one")
            self._began_s = time.perf_counter()
            self._tick = tick
            self._perform(self.coach.start(tick) if self.coach.state == "ready" else self.coach.outstanding(tick))

    def step(self, frame: Frame) -> None:
        """Show one frame to the watcher, and do what follows.

        Raises:
            InputError: if the session hasn't begun, or the frame isn't later than the one before.
        """
        with self._lock:
            since = time.perf_counter()
            if self.admit(frame):
                self.deliver(self.watcher.see(frame))
                spent = time.perf_counter() - since
                self._frames_s += spent
                self._worst_s = max(self._worst_s, spent)

    def admit(self, frame: Frame) -> bool:
        """Take in what the re-planner has answered, and say whether this frame is to be judged.

        Raises:
            InputError: as `step`.
        """
        with self._lock:
            if self._began_s is None:
                raise InputError("this session hasn't begun; call begin with its first tick")
            self._note(frame)
            self._collect(frame.tick)
            if self.coach.state != "watching":
                return False
            self._judged += 1
            if self._first_tick is None:
                self._first_tick = frame.tick
            return True

    def deliver(self, events: Iterable[Event]) -> None:
        """Do what follows from all that the watcher made of one admitted frame."""
        with self._lock:
            self._perform(self.coach.on_events(events))

    def user(self, event: UserEvent) -> None:
        """Do what follows from a wish of the user."""
        with self._lock:
            self._perform(self.coach.on_user(event))

    def report(self) -> RunReport:
        """The session so far."""
        with self._lock:
            return RunReport(
                finished=self.coach.state == "finished",
                frames_seen=self._seen,
                frames_judged=self._judged,
                first_tick=self._first_tick,
                last_tick=self._last_tick,
                messages=dict(self._said),
                counts=self.coach.counts,
                replans_asked=self._replans["asked"],
                replans_answered=self._replans["answered"],
                replans_failed=self._replans["failed"],
                replans_late=self._replans["late"],
                wall_s=0.0 if self._began_s is None else time.perf_counter() - self._began_s,
                mean_frame_s=self._frames_s / self._judged if self._judged else 0.0,
                worst_frame_s=self._worst_s,
            )

    def _note(self, frame: Frame) -> None:
        if self._last_tick is not None and frame.tick <= self._last_tick:
            raise InputError(f"frame of tick {frame.tick} comes after tick {self._last_tick}; a source's ticks rise")
        self._last_tick = self._tick = frame.tick
        self._seen += 1

    def _perform(self, outputs: Outputs) -> None:
        """Do what the coach asks, in order; what a sink or an answer brings about meanwhile comes after it."""
        self._todo.extend(output for output in outputs if isinstance(output, Message | StartStep | ReplanRequest))
        if self._performing:
            return
        self._performing = True
        try:
            while self._todo:
                self._perform_one(self._todo.popleft())
        finally:
            self._performing = False

    def _perform_one(self, output: Message | StartStep | ReplanRequest) -> None:
        if isinstance(output, StartStep):
            self.watcher.start(output.plan, output.instruction, output.tick)
        elif isinstance(output, ReplanRequest):
            self._ask(output)
        else:
            self._said[output.kind] += 1
            for sink in self._sinks:
                sink(output)

    # --- the re-planner ------------------------------------------------------------------------------

    def _ask(self, request: ReplanRequest) -> None:
        self._replans["asked"] += 1
        self._deadline = None if self._limit_s is None else time.monotonic() + self._limit_s
        self._queued = request
        self._call()
        while self._waits and self._is_open(request):
            left_s = None if self._deadline is None else max(0.0, self._deadline - time.monotonic())
            try:
                self._take(self._replies.get(timeout=left_s), self._tick)
            except queue.Empty:
                self._give_up(self._tick)

    def _call(self) -> None:
        """Hand the newest question to the re-planner, which works on one at a time."""
        request = self._queued
        if self._busy or request is None:
            return
        self._queued = None
        if self._is_open(request):
            self._busy = True
            # A daemon: a call that never returns can't be ended, and must not keep the program from ending.
            threading.Thread(target=self._think, args=(request,), name=f"replan-{request.id}", daemon=True).start()

    def _think(self, request: ReplanRequest) -> None:
        result: ReplanResult | None = None
        try:
            answer: object = self._replanner.replan(request)
            if isinstance(answer, ReplanResult):
                result = answer
            else:
                logger.error("re-plan request %d was answered by %r, which is no ReplanResult", request.id, answer)
        except Exception:  # whatever somebody's model or service raises, the stream goes on
            logger.exception("the re-planner failed on request %d", request.id)
        self._replies.put(_Reply(request=request, result=result))

    def _is_open(self, request: ReplanRequest) -> bool:
        return self.coach.open_request is not None and self.coach.open_request.id == request.id

    def _collect(self, tick: int) -> None:
        while not self._replies.empty():
            self._take(self._replies.get(), tick)
        if self.coach.open_request is not None and self._deadline is not None and time.monotonic() >= self._deadline:
            self._give_up(tick)

    def _take(self, reply: _Reply, tick: int) -> None:
        self._busy = False
        self._call()
        if reply.result is None and self._is_open(reply.request):
            self._let_rules_answer(reply.request, tick)
            return
        self._replans["answered" if self._is_open(reply.request) else "late"] += 1
        if reply.result is not None:
            self._perform(self.coach.on_replan(reply.request.id, reply.result, tick))

    def _give_up(self, tick: int) -> None:
        request = self.coach.open_request
        assert request is not None
        logger.warning("no answer to re-plan request %d within %s s", request.id, self._limit_s)
        self._let_rules_answer(request, tick)

    def _let_rules_answer(self, request: ReplanRequest, tick: int) -> None:
        self._replans["failed"] += 1
        self._perform(self.coach.on_replan(request.id, self._rules.replan(request), tick))


# --- the short form ----------------------------------------------------------------------------------


def coach_video(
    model: "LiveMamba | StepWatcher",
    recipe: Recipe,
    source: Iterable[Frame],
    *,
    video_id: str = "video",
    plan: Plan | None = None,
    instruction_text: InstructionText | None = None,
    replanner: Replanner | None = None,
    replanning: bool = True,
    start_tick: int | None = None,
    sinks: Sequence[Sink] = (),
    wait_for_replanner: bool = True,
) -> Timeline:
    """Coach over a whole source; the log of what was said.

    Args:
        model: watches each step with a stream of its own; or any watcher.
        recipe: what to do.
        source: frames, ticks rising.
        video_id: names the timeline.
        plan: see `Coach`.
        instruction_text: see `Coach`.
        replanner: see `Runner`.
        replanning: see `Coach`.
        start_tick: see `Runner.run`.
        sinks: see `Runner`; `[lambda message: print(message.text)]` shows messages as they come.
        wait_for_replanner: False for live sources.

    Raises:
        InputError: as `Coach` and `Runner`.
    """
    watcher = _as_watcher(model, recipe)
    coach = Coach(recipe, plan=plan, instruction_text=instruction_text, replanning=replanning)
    runner = Runner(coach, watcher, replanner=replanner, sinks=sinks, wait_for_replanner=wait_for_replanner)
    runner.run(source, start_tick=start_tick)
    return coach.timeline(video_id)


def _as_watcher(model: "LiveMamba | StepWatcher", recipe: Recipe) -> StepWatcher:
    if not hasattr(model, "see"):  # a network: what watches with it needs torch, which this file doesn't
        from livemamba.coaching.model_watcher import LiveMambaWatcher

        return LiveMambaWatcher.of(cast("LiveMamba", model), recipe)
    return cast(StepWatcher, model)
