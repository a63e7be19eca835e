"""Phases, the bricks of what hands do, and scripts, their sequences. No torch."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    from livemamba.simkitchen.acts import Act
    from livemamba.simkitchen.mistakes import Mistake
    from livemamba.simkitchen.world import World

Motion = Literal["move", "hold", "stir", "saw", "scrub"]


class Effect(Protocol):
    """A change of the world, as a function of the share of its phase that is over."""

    def begin(self, world: "World") -> Any:
        """What `apply` needs to know of the state before; called once, when the phase begins."""

    def apply(self, world: "World", begun: Any, share: float) -> None:
        """Bring the state to a share, 0 to 1; called at least at 0 and at 1, in rising order."""


@dataclass(frozen=True, kw_only=True)
class Phase:
    """A stretch of a script in which one thing happens.

    Attributes:
        name: reach, take, tip...
        least_s: seconds that it takes at least.
        weight: its share of the time beyond that, among the script's phases.
        slack: its share of the time that is left over once the hands would move too slowly.
        right, left: spots that the hands go to; empty to stay.
        motion: of the right hand, once it is there.
        hands: whether it keeps the hands busy; if not, another script can run beside it.
        effects: what changes.
        marked: at its end one can see what was done: the world's log says so.
        beats: its length, once the script is timed.
    """

    name: str
    least_s: float = 0.0
    weight: float = 0.0
    slack: float = 0.0
    right: str = ""
    left: str = ""
    motion: Motion = "move"
    hands: bool = True
    effects: tuple[Effect, ...] = ()
    marked: bool = False
    beats: int = 0


@dataclass(frozen=True, kw_only=True)
class Contrast:
    """Another act that could have been asked for: then what is done would be a mistake.

    Attributes:
        asked: that act.
        mistake: what is done, as a mistake with it.
        index: the first phase of what is done that differs from the script of that act.
    """

    asked: "Act"
    mistake: "Mistake"
    index: int


@dataclass(frozen=True, kw_only=True, eq=False)
class Script:
    """Phases in order, timed.

    Attributes:
        name: of the step, or "idle".
        phases: what happens.
        evidence_index: the first phase in which it differs from the script without the mistake; None without one.
        contrasts: what could have been asked for in place of what is done; none where the manner is wrong.
    """

    name: str
    phases: tuple[Phase, ...] = field(repr=False)
    evidence_index: int | None = None
    contrasts: tuple[Contrast, ...] = field(default=(), repr=False)

    @property
    def beats(self) -> int:
        """Length, if the hands are free whenever they are needed."""
        return sum(phase.beats for phase in self.phases)
