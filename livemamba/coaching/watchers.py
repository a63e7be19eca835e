"""Who judges a step: the protocol, and the watchers that need no model. No torch.

Silent, timer and chatty are the benchmark's sanity rows (spec/interactive_cooking.md): the metric must
not be won by them. Scripted is for tests, replays and the oracle.
"""

import inspect
import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from livemamba.coaching.events import Event
from livemamba.errors import InputError
from livemamba.recipe import Plan, Recipe, Step
from livemamba.ticks import Frame, tick_at_or_after, tick_to_s
from livemamba.timeline import Timeline
from livemamba.wording import uncapitalised


class StepWatcher(Protocol):
    """Watches one step at a time.

    Ticks of the frames rise but may leave some out: frames of a pause aren't shown, and a live source
    drops what comes too fast.
    """

    def start(self, plan: Plan, instruction: str, tick: int) -> None:
        """Forget the step before; from the next frame on judge `plan.current`, asked for in `instruction`."""
        ...

    def see(self, frame: Frame) -> Sequence[Event]:
        """What this frame shows; mostly nothing. Events bear the frame's tick."""
        ...


class SilentWatcher:
    """Never says a word, so the first instruction stays the only one."""

    def start(self, plan: Plan, instruction: str, tick: int) -> None:
        """Nothing to prepare."""

    def see(self, frame: Frame) -> Sequence[Event]:
        """Nothing."""
        return ()


class TimerWatcher:
    """Open loop: says that a step is done once its usual time is over, whatever the frames show.

    The clock starts at the step's start. When the time is over there is a success for each action, and
    an advance. Pauses don't stop the clock.

    Args:
        recipe: for the texts.
        durations_s: seconds by step text (`recipe.text(step)`) or by node id. A compound step without an
            entry of its own takes as long as its longest action: they are done together. Texts of other
            recipes may be in it.
        default_s: for what isn't in it.

    Raises:
        InputError: if a duration isn't a finite number of seconds >= 0.
    """

    def __init__(
        self, recipe: Recipe, *, durations_s: Mapping[str, float] | None = None, default_s: float = 30.0
    ) -> None:
        self._recipe = recipe
        if not isinstance(durations_s, Mapping | None):
            raise InputError(f"durations_s is {durations_s!r}; give a mapping from steps to seconds")
        self._durations_s = dict(durations_s or {})
        self._default_s = default_s
        for what, seconds in (*self._durations_s.items(), ("the default", default_s)):
            _check_seconds(what, seconds)
        self._step: Step = ()
        self._due_tick = 0

    def start(self, plan: Plan, instruction: str, tick: int) -> None:
        """Set the clock."""
        self._step = plan.current
        self._due_tick = tick_at_or_after(tick_to_s(tick) + self._duration_s(self._step))

    def see(self, frame: Frame) -> Sequence[Event]:
        """At the first frame at or after the time: success for each action, advance; before and after: nothing."""
        if not self._step or frame.tick < self._due_tick:
            return ()
        step, self._step = self._step, ()
        said = [
            Event(kind="success", tick=frame.tick, text=done_text(self._recipe, (node,)), actions=(node,))
            for node in step
        ]
        return (*said, Event(kind="advance", tick=frame.tick))

    def _duration_s(self, step: Step) -> float:
        whole = self._durations_s.get(self._recipe.text(step))
        return max(self._action_s(node) for node in step) if whole is None else whole

    def _action_s(self, node: str) -> float:
        by_text = self._durations_s.get(self._recipe.text((node,)), self._default_s)
        return self._durations_s.get(node, by_text)


class ChattyWatcher:
    """Alerts a mistake at fixed intervals from the step's start on, whatever the frames show.

    Args:
        every_s: seconds between alerts, at least one tick.
        text: of the alert.
        advance_s: seconds after which it says that the step is over; None for never (turn-based evaluation
            restarts it at every instruction anyway).

    Raises:
        InputError: if a duration is out of range, or the text is no mistake's.
    """

    def __init__(
        self, *, every_s: float = 10.0, text: str = "You are making a mistake.", advance_s: float | None = None
    ) -> None:
        _check_seconds("every_s", every_s)
        _check_seconds("advance_s", advance_s or 0.0)
        # Whatever is no mistake's text is refused here, not at the first alert.
        Event(kind="mistake", tick=0, text=text)
        if tick_at_or_after(every_s) < 1:
            raise InputError(f"every_s is {every_s!r}; alerts are at least one tick (0.5 s) apart")
        self._every = tick_at_or_after(every_s)
        self._advance = None if advance_s is None else tick_at_or_after(advance_s)
        self._text = text
        self._start = self._alerts = 0

    def start(self, plan: Plan, instruction: str, tick: int) -> None:
        """Count from here."""
        self._start, self._alerts = tick, 0

    def see(self, frame: Frame) -> Sequence[Event]:
        """An alert if one is due (one, however many intervals were missed); an advance if it is time."""
        events = []
        due = (frame.tick - self._start) // self._every
        if due > self._alerts:
            self._alerts = due
            events.append(Event(kind="mistake", tick=frame.tick, text=self._text))
        if self._advance is not None and frame.tick >= self._start + self._advance:
            events.append(Event(kind="advance", tick=frame.tick))
        return events


class ScriptedWatcher:
    """Says what a script tells it to.

    Each event comes at the first frame at or after its tick, and bears that frame's tick. After an advance
    the rest waits for the next frame, since it speaks of the next step.

    Args:
        script: either events with ticks of the video, said whatever the instruction is (replays, the
            oracle: see `events_of`); or events by instruction, with ticks counted from the step's start,
            said anew each time that instruction starts. An instruction without a script is met in silence.
    """

    def __init__(self, script: Iterable[Event] | Mapping[str, Sequence[Event]]) -> None:
        self._by_instruction = script if isinstance(script, Mapping) else None
        self._todo = [] if isinstance(script, Mapping) else _by_tick(script)

    def start(self, plan: Plan, instruction: str, tick: int) -> None:
        """Take up the instruction's script, if scripts go by instruction."""
        if self._by_instruction is not None:
            events = self._by_instruction.get(instruction, ())
            self._todo = _by_tick(replace(event, tick=event.tick + tick) for event in events)

    def see(self, frame: Frame) -> Sequence[Event]:
        """The events that are due."""
        due: list[Event] = []
        while self._todo and self._todo[0].tick <= frame.tick and not (due and due[-1].kind == "advance"):
            due.append(replace(self._todo.pop(0), tick=frame.tick))
        return due


def _by_tick(events: Iterable[Event]) -> list[Event]:
    return sorted(events, key=lambda event: event.tick)


def events_of(timeline: Timeline) -> tuple[Event, ...]:
    """A timeline as a script: what was said at the first tick that shows its cause, an advance where a step ended.

    A step ends where the next instruction or the finish message stands.
    """
    events = []
    for message in itertools.dropwhile(lambda message: message.kind != "instruction", timeline.messages):
        tick = tick_at_or_after(message.time_s)
        if message.kind in ("success", "mistake", "divergence"):
            known = ("kind", "text", "category", "actions", "confidence")
            events.append(Event(tick=tick, **{name: getattr(message, name) for name in known}))
        else:
            events.append(Event(kind="advance", tick=tick))
    return tuple(events[1:])


def done_text(recipe: Recipe, step: Step) -> str:
    """A sentence that says that a step was done, in the recipe's words."""
    return f"You have done this: {uncapitalised(recipe.text(step))}."


def _check_seconds(what: str, seconds: Any) -> None:
    # From a command line it can be anything: YAML reads 1e3, without a point, as a text.
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not math.isfinite(seconds) or seconds < 0:
        raise InputError(f"duration {seconds!r} of {what} is not a finite number of seconds >= 0")


# --- by name -----------------------------------------------------------------------------------------


_WATCHERS: dict[str, Callable[..., StepWatcher]] = {
    "silent": SilentWatcher,
    "timer": TimerWatcher,
    "chatty": ChattyWatcher,
    "scripted": ScriptedWatcher,
}


def make_watcher(name: str, recipe: Recipe, **options: Any) -> StepWatcher:
    """A watcher by its short name: silent, timer, chatty or scripted.

    Args:
        name: of the watcher.
        recipe: what will be coached.
        options: of the watcher, by name.

    Raises:
        InputError: if there is no such watcher or option, one is missing, or a value is out of range.
    """
    if name not in _WATCHERS:
        raise InputError(f"watcher {name!r} is not one of {', '.join(_WATCHERS)}")
    make = _WATCHERS[name]
    parameters = dict(inspect.signature(make).parameters)
    fixed = {"recipe": recipe} if parameters.pop("recipe", None) else {}
    for option in options:
        if option not in parameters:
            raise InputError(f"watcher {name!r} has no option {option!r}; it has {', '.join(parameters) or 'none'}")
    for option, parameter in parameters.items():
        if parameter.default is inspect.Parameter.empty and option not in options:
            raise InputError(f"watcher {name!r} needs the option {option!r}; give it")
    return make(**fixed, **options)
