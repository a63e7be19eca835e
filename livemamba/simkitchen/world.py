"""The kitchen's state and how it moves on. No torch, no pictures.

Time is counted in beats, 600 to the second: every usual frame rate and the half-second tick are whole numbers
of them, so the state at a moment doesn't depend on how often it was looked at. State changes only through the
effects of running scripts (scripts.py), each a function of the share of its phase that is over.
"""

import math
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any, Literal

from livemamba.simkitchen.goods import good
from livemamba.simkitchen.kitchens import Kitchen, Point
from livemamba.simkitchen.phases import Motion, Phase, Script

BEATS_PER_S = 600

_REACH_BEATS = 270  # a hand is at its place after this, however long the phase
Rect = tuple[float, float, float, float]
WHOLE: tuple[Rect, ...] = ((0.0, 0.0, 1.0, 1.0),)


@dataclass(kw_only=True)
class Portion:
    """Something in a vessel.

    Attributes:
        what: the ingredient.
        form: tablespoon, teaspoon (a heap of that size), liquid, or piece.
        size: share that has arrived, 0 to 1; for a liquid also how much of the jug, in halves.
        pieces: of a piece: its cuts, as rectangles of the unit square.
    """

    what: str
    form: Literal["tablespoon", "teaspoon", "liquid", "piece"]
    size: float = 0.0
    pieces: tuple[Rect, ...] = WHOLE


@dataclass(kw_only=True)
class Vessel:
    """Bowl, pan, plate or board as something that food lies in.

    Attributes:
        portions: in the order in which they came.
        mixed: how far they have become one, 0 heaps as they fell.
        mixed_before: how many of them, from the first, were all one before the last came.
        brown: 0 raw, 0.6 done, 1 burnt.
        scale: share of the contents that is (still) here while it moves from vessel to vessel.
        cover, cover_share, cover_askew: what lies on it, how far it has come, whether it leaves a gap.
    """

    portions: list[Portion] = field(default_factory=list)
    mixed: float = 0.0
    mixed_before: int = 0
    brown: float = 0.0
    scale: float = 1.0
    cover: str = ""
    cover_share: float = 0.0
    cover_askew: bool = False


@dataclass(kw_only=True)
class Item:
    """The one piece of produce of its kind that is worked on; more of it lie at its place.

    Attributes:
        where: "home", "board", "sink", "hand" or "gone" (in a vessel).
        pieces: its cuts, as rectangles of the unit square.
        dirty: 0 clean, 1 as it came from the field.
    """

    where: Literal["home", "board", "sink", "hand", "gone"] = "home"
    pieces: tuple[Rect, ...] = WHOLE
    dirty: float = 0.0


@dataclass(kw_only=True)
class Spill:
    """Something on the counter that belongs elsewhere.

    Attributes:
        what: the ingredient.
        at: where.
        size: share of its full spread.
        form: powder and liquid spread, produce lies there.
    """

    what: str
    at: Point
    size: float = 0.0
    form: str = "liquid"


@dataclass(kw_only=True)
class Hand:
    """A hand.

    Attributes:
        at: what its fingers or its tool's tip are over.
        origin: where it was when the phase began.
        holding: tool or ingredient; empty for none.
        loaded: what lies on the spoon.
        tilt: 0 level, 1 tipped over.
    """

    at: Point
    origin: Point
    holding: str = ""
    loaded: str = ""
    tilt: float = 0.0


@dataclass(kw_only=True)
class Running:
    """A script under way: its phase and the beats since that began."""

    script: Script
    index: int = -1
    beats: int = 0
    begun: tuple[Any, ...] = ()
    blocked: bool = False

    @property
    def phase(self) -> Phase:
        """The phase it is in."""
        return self.script.phases[self.index]


@dataclass(kw_only=True)
class World:
    """A kitchen at a moment.

    Attributes:
        kitchen: places and looks, which don't change.
        beat: since the start.
        vessels: bowl, pan, plate, board.
        items: produce by name.
        jugs: how full each liquid's jug is.
        right, left: hands; the cook may still be left-handed (`Kitchen.mirrored`).
        level: of the stove, an index of `LEVELS`.
        minutes: left on the timer.
        ringing: the timer has run out and nobody has come.
        tap: water runs into the sink.
        spills: what lies on the counter.
        running: scripts under way.
        log: (beat, script, what), with what = "start", "end", "evidence" (the first phase that a mistake changes
            begins), or the name of a phase that was marked, at its end.
        begun: (beat, script, index) of every phase that has begun.
    """

    kitchen: Kitchen
    beat: int = 0
    vessels: dict[str, Vessel] = field(default_factory=dict)
    items: dict[str, Item] = field(default_factory=dict)
    jugs: dict[str, float] = field(default_factory=dict)
    right: Hand
    left: Hand
    level: int = 0
    minutes: float = 0.0
    ringing: bool = False
    tap: bool = False
    spills: list[Spill] = field(default_factory=list)
    running: list[Running] = field(default_factory=list)
    log: list[tuple[int, Script, str]] = field(default_factory=list)
    begun: list[tuple[int, Script, int]] = field(default_factory=list)

    @property
    def time_s(self) -> float:
        """Seconds since the start."""
        return self.beat / BEATS_PER_S

    @property
    def hands_free(self) -> bool:
        """Whether a new script can begin: nobody's hands are needed by one under way."""
        return all(not running.blocked and not running.phase.hands for running in self.running)

    def start(self, script: Script) -> None:
        """Begin a script now.

        Args:
            script: what to do; the hands must be free.
        """
        assert self.hands_free, f"{script.name} begins while the hands are busy"
        running = Running(script=script)
        self.running.append(running)
        self.log.append((self.beat, script, "start"))
        self._next_phase(running)

    def beats_to_event(self) -> int | None:
        """Beats until the next phase ends; None while nothing is under way."""
        left = [running.phase.beats - running.beats for running in self.running if not running.blocked]
        return min(left) if left else None

    def advance(self, beats: int) -> None:
        """Move on. No phase may end inside (`beats_to_event`); one may end at the last beat.

        Args:
            beats: >= 0.
        """
        self.beat += beats
        for running in list(self.running):
            if not running.blocked:
                running.beats += beats
                self._apply(running)
        for running in list(self.running):
            if running in self.running and not running.blocked and running.beats >= running.phase.beats:
                self._next_phase(running)
        self._unblock()

    def spot(self, name: str) -> Point:
        """Where a named place is: a spot of the kitchen, or "beside:bowl" for the counter next to a vessel."""
        home, _, vessel = name.partition(":")
        if not vessel:
            return self.kitchen.spots[name]
        x, y = self.kitchen.spots[vessel]
        if home == "hold":
            return x - 0.11, y + 0.11
        return (x - 0.2, y + 0.13) if vessel == "pan" else (x - 0.01, y + 0.215)

    def _next_phase(self, running: Running) -> None:
        """End the phase at hand; begin those after it until one takes time, waits for the hands or none is left."""
        while True:
            if running.index >= 0 and not running.blocked and running.phase.marked:
                self.log.append((self.beat, running.script, running.phase.name))
            if running.index + 1 == len(running.script.phases) and not running.blocked:
                self.running.remove(running)
                self.log.append((self.beat, running.script, "end"))
                return
            if not running.blocked:
                running.index, running.beats = running.index + 1, 0
            running.blocked = running.phase.hands and self._hands_taken_from(running)
            if running.blocked:
                return
            self._begin(running)
            if running.phase.beats > 0:
                return

    def _begin(self, running: Running) -> None:
        phase = running.phase
        self.begun.append((self.beat, running.script, running.index))
        if running.index == running.script.evidence_index:
            self.log.append((self.beat, running.script, "evidence"))
        if phase.hands:
            self.right.origin, self.left.origin = self.right.at, self.left.at
        running.begun = tuple(effect.begin(self) for effect in phase.effects)
        self._apply(running)

    def _apply(self, running: Running) -> None:
        phase = running.phase
        share = running.beats / phase.beats if phase.beats else 1.0
        for effect, begun in zip(phase.effects, running.begun, strict=True):
            effect.apply(self, begun, share)
        if phase.hands:
            self.right.at = self._moved(self.right, phase.right, phase.motion, running)
            self.left.at = self._moved(self.left, phase.left, "move", running)

    def _hands_taken_from(self, running: Running) -> bool:
        return any(other is not running and not other.blocked and other.phase.hands for other in self.running)

    def _unblock(self) -> None:
        for running in list(self.running):
            if running.blocked and not self._hands_taken_from(running):
                self._next_phase(running)

    def _moved(self, hand: Hand, target: str, motion: Motion, running: Running) -> Point:
        if not target:
            return hand.at
        phase = running.phase
        reach = min(phase.beats, _REACH_BEATS) if motion != "move" else phase.beats
        share = min(1.0, running.beats / reach) if reach else 1.0
        share = share * share * (3 - 2 * share)
        x, y = self.spot(target)
        dx, dy = _swing(motion, running.beats / BEATS_PER_S)
        return (
            hand.origin[0] + share * (x - hand.origin[0]) + share * dx,
            hand.origin[1] + share * (y - hand.origin[1]) + share * dy,
        )


def _swing(motion: Motion, time_s: float) -> Point:
    """How far a repeated motion is from its middle."""
    match motion:
        case "stir":
            return 0.065 * math.cos(6.2 * time_s), 0.065 * math.sin(6.2 * time_s)
        case "saw":
            return 0.0, 0.045 * math.sin(9.0 * time_s)
        case "scrub":
            return 0.03 * math.sin(11.0 * time_s), 0.015 * math.sin(7.0 * time_s)
    return 0.0, 0.0


def make_world(kitchen: Kitchen, *, dirty: Collection[str] = ()) -> World:
    """A kitchen before anything has happened: jugs full, stove off.

    Args:
        kitchen: places and looks.
        dirty: produce that wants washing.
    """
    right, left = kitchen.spots["rest_right"], kitchen.spots["rest_left"]
    return World(
        kitchen=kitchen,
        vessels={name: Vessel() for name in ("bowl", "pan", "plate", "board")},
        items={name: Item(dirty=float(name in dirty)) for name in kitchen.goods if good(name).form == "produce"},
        jugs={name: 1.0 for name in kitchen.goods if good(name).form == "liquid"},
        right=Hand(at=right, origin=right),
        left=Hand(at=left, origin=left),
    )
