"""The changes that phases make to the world. Each is a function of its phase's share (phases.Effect). No torch."""

from dataclasses import dataclass
from typing import Any, Literal

from livemamba.simkitchen.world import WHOLE, Portion, Rect, Spill, Vessel, World

_BROWNING = (0.0, 0.3, 0.55, 0.75)  # by level, over the asked time


SpoonForm = Literal["tablespoon", "teaspoon"]


class Instant:
    """Base of effects that need no memory and are over as soon as they are seen."""

    def begin(self, world: World) -> Any:
        """Nothing to remember."""
        return None


@dataclass(frozen=True)
class Take(Instant):
    """A tool or an ingredient goes into the right hand; "" puts down what is in it."""

    what: str

    def apply(self, world: World, begun: Any, share: float) -> None:
        """At once."""
        world.right.holding, world.right.loaded, world.right.tilt = self.what, "", 0.0
        if self.what in world.items:
            world.items[self.what].where = "hand"


@dataclass(frozen=True)
class Scoop(Instant):
    """The spoon in the hand is loaded."""

    what: str

    def apply(self, world: World, begun: Any, share: float) -> None:
        """From the middle on."""
        world.right.loaded = self.what if share >= 0.5 else ""


@dataclass(frozen=True)
class Tip:
    """A spoon is emptied over a vessel, or beside it."""

    what: str
    to: str
    spoon: SpoonForm
    beside: bool = False

    def begin(self, world: World) -> Portion | Spill:
        """The heap that will grow."""
        if self.beside:
            return _spilled(world, self.what, self.to, "powder")
        return _added(world, self.to, Portion(what=self.what, form=self.spoon))

    def apply(self, world: World, begun: Portion | Spill, share: float) -> None:
        """The spoon tips, the heap grows."""
        begun.size = share
        world.right.tilt = min(1.0, 2 * share)
        world.right.loaded = self.what if share < 0.5 else ""


@dataclass(frozen=True)
class Pour:
    """Half a jug goes into a vessel, or beside it."""

    what: str
    to: str
    beside: bool = False

    def begin(self, world: World) -> tuple[Portion | Spill, float]:
        """What will grow, and how full the jug was."""
        full = world.jugs[self.what]
        if self.beside:
            return _spilled(world, self.what, self.to, "liquid"), full
        return _added(world, self.to, Portion(what=self.what, form="liquid")), full

    def apply(self, world: World, begun: tuple[Portion | Spill, float], share: float) -> None:
        """The jug tips and empties."""
        grown, full = begun
        grown.size = share if self.beside else 0.5 * share
        world.jugs[self.what] = max(0.0, full - 0.5 * share)
        world.right.tilt = min(1.0, 4 * share)


@dataclass(frozen=True)
class PutDown(Instant):
    """The produce in the hand goes to the board; what was worked on there goes home."""

    what: str

    def apply(self, world: World, begun: Any, share: float) -> None:
        """At once."""
        for item in world.items.values():
            if item.where == "board":
                item.where = "home"
        world.items[self.what].where = "board"
        world.right.holding = ""


@dataclass(frozen=True)
class Split:
    """A piece on the board is cut in two."""

    what: str
    index: int
    at: float = 0.5

    def begin(self, world: World) -> tuple[Rect, ...]:
        """The pieces before."""
        return world.items[self.what].pieces

    def apply(self, world: World, begun: tuple[Rect, ...], share: float) -> None:
        """At once."""
        world.items[self.what].pieces = split(begun, self.index, self.at)


def split(pieces: tuple[Rect, ...], index: int, at: float) -> tuple[Rect, ...]:
    """Pieces after one was cut across its longer side; board pieces are a little wider than deep.

    Args:
        pieces: rectangles of the unit square.
        index: of the one that is cut.
        at: share of it that falls to the first half.
    """
    x0, y0, x1, y1 = pieces[index]
    if (x1 - x0) * 1.3 >= y1 - y0:
        middle = x0 + at * (x1 - x0)
        halves: tuple[Rect, ...] = ((x0, y0, middle, y1), (middle, y0, x1, y1))
    else:
        middle = y0 + at * (y1 - y0)
        halves = ((x0, y0, x1, middle), (x0, middle, x1, y1))
    return pieces[:index] + halves + pieces[index + 1 :]


@dataclass(frozen=True)
class Mix:
    """A vessel is stirred from one share to another."""

    to: str
    start: float
    end: float

    def begin(self, world: World) -> None:
        """Nothing to remember."""

    def apply(self, world: World, begun: None, share: float) -> None:
        """Evenly."""
        world.vessels[self.to].mixed = self.start + share * (self.end - self.start)


@dataclass(frozen=True)
class Splash:
    """Contents fly out of a vessel while it is stirred."""

    to: str

    def begin(self, world: World) -> list[Spill]:
        """The puddles that will spread."""
        portions = world.vessels[self.to].portions
        what = portions[-1].what if portions else "water"
        x, y = world.spot(self.to)
        places = ((x - 0.06, y + 0.21), (x + 0.12, y + 0.19), (x + 0.2, y + 0.02))
        spills = [Spill(what=what, at=place) for place in places]
        world.spills.extend(spills)
        return spills

    def apply(self, world: World, begun: list[Spill], share: float) -> None:
        """They spread."""
        for spill in begun:
            spill.size = 0.75 * share


@dataclass(frozen=True)
class SetLevel(Instant):
    """The stove's dial is turned."""

    level: int

    def apply(self, world: World, begun: Any, share: float) -> None:
        """At once."""
        world.level = self.level


@dataclass(frozen=True)
class SetTimer(Instant):
    """The timer is set; 0 stops it."""

    minutes: int

    def apply(self, world: World, begun: Any, share: float) -> None:
        """At once."""
        world.minutes, world.ringing = float(self.minutes), False


@dataclass(frozen=True)
class RunTimer:
    """The timer runs for some of its own minutes; at nought it rings."""

    minutes: float

    def begin(self, world: World) -> float:
        """What it showed."""
        return world.minutes

    def apply(self, world: World, begun: float, share: float) -> None:
        """Down."""
        world.minutes = max(0.0, begun - self.minutes * share)
        world.ringing = world.minutes == 0.0


@dataclass(frozen=True)
class Brown:
    """What lies in a vessel browns, as the stove's level has it.

    Attributes:
        to: the vessel.
        part: share of the asked time that this phase is.
        burn: it goes on until all is black instead.
    """

    to: str
    part: float
    burn: bool = False

    def begin(self, world: World) -> float:
        """How brown it was."""
        return world.vessels[self.to].brown

    def apply(self, world: World, begun: float, share: float) -> None:
        """Browner."""
        end = 1.0 if self.burn else min(0.8, begun + self.part * _BROWNING[world.level])
        world.vessels[self.to].brown = begun + share * (max(begun, end) - begun)


@dataclass(frozen=True)
class Cover(Instant):
    """The lid or cloth in the hand comes to lie on a vessel."""

    to: str
    tool: str
    askew: bool

    def apply(self, world: World, begun: Any, share: float) -> None:
        """It comes down."""
        vessel = world.vessels[self.to]
        vessel.cover, vessel.cover_share, vessel.cover_askew = self.tool, share, self.askew
        world.right.holding = ""


@dataclass(frozen=True)
class Uncover(Instant):
    """What lies on a vessel goes into the hand."""

    to: str

    def apply(self, world: World, begun: Any, share: float) -> None:
        """At once."""
        vessel = world.vessels[self.to]
        world.right.holding, vessel.cover, vessel.cover_share = vessel.cover, "", 0.0


@dataclass(frozen=True)
class Scrub:
    """Produce is rubbed under water."""

    what: str
    end: float

    def begin(self, world: World) -> float:
        """How dirty it was."""
        return world.items[self.what].dirty

    def apply(self, world: World, begun: float, share: float) -> None:
        """Cleaner."""
        world.tap = share < 1.0
        world.items[self.what].where = "sink"
        world.items[self.what].dirty = begun + share * (min(begun, self.end) - begun)


@dataclass(frozen=True)
class Put:
    """The produce in the hand goes into a vessel, or falls beside it; more of its kind lie at home."""

    what: str
    to: str
    beside: bool = False

    def begin(self, world: World) -> tuple[Rect, ...]:
        """It leaves the hand."""
        item = world.items[self.what]
        pieces = item.pieces
        item.where, item.pieces, world.right.holding = "home", WHOLE, ""
        if self.beside:
            world.spills.append(Spill(what=self.what, at=world.spot(f"beside:{self.to}"), size=1.0, form="produce"))
        else:
            _added(world, self.to, Portion(what=self.what, form="piece", size=1.0, pieces=pieces))
        return pieces

    def apply(self, world: World, begun: tuple[Rect, ...], share: float) -> None:
        """All of it happened at the beginning."""


@dataclass(frozen=True)
class Lift(Instant):
    """Half of a vessel's food is taken up."""

    source: str
    left: float

    def apply(self, world: World, begun: Any, share: float) -> None:
        """At once."""
        vessel = world.vessels[self.source]
        vessel.scale = self.left
        world.right.loaded = "food"
        if not vessel.portions:
            world.right.loaded = ""


@dataclass(frozen=True)
class Serve:
    """The food in the hand goes onto another vessel, or beside it."""

    source: str
    to: str
    scale: float
    beside: bool = False

    def begin(self, world: World) -> None:
        """It leaves the hand; after the last lot the source is empty."""
        source, goal = world.vessels[self.source], world.vessels[self.to]
        world.right.loaded = ""
        if self.beside:
            what = source.portions[-1].what if source.portions else "water"
            world.spills.append(Spill(what=what, at=world.spot(f"beside:{self.to}"), size=1.0, form="powder"))
        else:
            goal.portions, goal.brown = list(source.portions), source.brown
            goal.mixed, goal.mixed_before = source.mixed, source.mixed_before
            goal.scale = self.scale
        if source.scale == 0.0:
            world.vessels[self.source] = Vessel()

    def apply(self, world: World, begun: None, share: float) -> None:
        """All of it happened at the beginning."""


def _added(world: World, to: str, portion: Portion) -> Portion:
    vessel = world.vessels[to]
    if vessel.mixed > 0:
        vessel.mixed_before, vessel.mixed = len(vessel.portions), 0.0
    vessel.portions.append(portion)
    return portion


def _spilled(world: World, what: str, to: str, form: str) -> Spill:
    taken = sum(spill.at[1] > world.spot(to)[1] for spill in world.spills)
    x, y = world.spot(f"beside:{to}")
    spill = Spill(what=what, at=(x + 0.12 * (taken % 2), y), form=form)
    world.spills.append(spill)
    return spill
