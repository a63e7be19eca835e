"""What a step asks for, as data, and how it is said. No torch.

A mistake is mostly another act done in place of the asked one (another count, spoon, heat, thing), so every
clip comes with the instruction it would have been right for.
"""

from collections.abc import Collection
from dataclasses import dataclass, fields
from typing import Any, Literal, get_args

from livemamba.errors import InputError
from livemamba.simkitchen.goods import (
    COVERS,
    LEVELS,
    MOST_MINUTES,
    MOST_SPOONS,
    PIECES,
    SHARES,
    SPOONS,
    STIRRERS,
    VESSELS,
    good,
    goods_of,
)

ActKind = Literal["add", "pour", "cut", "stir", "heat", "wait", "cover", "wash", "place", "serve"]
ACT_KINDS: tuple[ActKind, ...] = get_args(ActKind)

_FIELDS: dict[ActKind, tuple[str, ...]] = {
    "add": ("what", "to", "count", "tool"),
    "pour": ("what", "to", "share"),
    "cut": ("what", "count"),
    "stir": ("to", "tool"),
    "heat": ("to", "level", "minutes"),
    "wait": ("to", "minutes"),
    "cover": ("to", "tool"),
    "wash": ("what",),
    "place": ("what", "to", "count"),
    "serve": ("what", "to"),
}
_TOOLS: dict[ActKind, tuple[str, ...]] = {"add": SPOONS, "stir": STIRRERS, "cover": COVERS}


@dataclass(frozen=True, kw_only=True)
class Act:
    """One thing to do.

    Attributes:
        kind: see `ACT_KINDS`; each uses some of the other fields and leaves the rest empty.
        what: ingredient; for serve: the vessel it comes from.
        to: vessel that is filled, stirred, heated, covered; for serve also "board".
        count: spoonfuls, pieces after the cut, or things put in.
        tool: measuring spoon, stirrer or cover.
        level: heat.
        minutes: on the kitchen's timer, whose minutes pass faster than ours.
        share: how much of a liquid, half or all.
    """

    kind: ActKind
    what: str = ""
    to: str = ""
    count: int = 0
    tool: str = ""
    level: str = ""
    minutes: int = 0
    share: str = ""

    def __post_init__(self) -> None:
        if self.kind not in ACT_KINDS:
            raise InputError(f"act {self.kind!r} is not one of {', '.join(ACT_KINDS)}")
        for name in (field.name for field in fields(self) if field.name != "kind"):
            if bool(getattr(self, name)) != (name in _FIELDS[self.kind]):
                rule = f"needs {', '.join(_FIELDS[self.kind])} and nothing else"
                raise InputError(f"act {self.kind}: {name} is {getattr(self, name)!r}; it {rule}")
        for name, allowed in self._allowed().items():
            if getattr(self, name) not in allowed:
                listed = ", ".join(map(str, allowed))
                raise InputError(f"act {self.kind}: {name} {getattr(self, name)!r} is not one of {listed}")

    def _allowed(self) -> dict[str, Collection[Any]]:
        allowed: dict[str, Collection[Any]] = {
            "count": PIECES if self.kind == "cut" else range(1, MOST_SPOONS + 1),
            "tool": _TOOLS.get(self.kind, ()),
            "level": LEVELS[1:],
            "minutes": range(1, MOST_MINUTES + 1),
            "share": SHARES,
            "to": (*VESSELS, "board") if self.kind == "serve" else VESSELS,
        }
        if self.kind == "serve":
            allowed["what"] = VESSELS
        elif self.what:
            form = {"add": "powder", "pour": "liquid"}.get(self.kind, "produce")
            allowed["what"] = [
                name
                for name in goods_of("produce") + goods_of("powder") + goods_of("liquid")
                if good(name).form == form
            ]
        return {name: values for name, values in allowed.items() if name in _FIELDS[self.kind]}


def instruction_text(act: Act) -> str:
    """The recipe's sentence for an act: "Add 2 tablespoons of sugar to the bowl"."""
    match act.kind:
        case "add":
            return f"Add {counted(act.count, act.tool)} of {act.what} to the {act.to}"
        case "pour":
            return f"Pour {act.share} the {act.what} into the {act.to}"
        case "cut":
            return f"Cut the {act.what} into {act.count} pieces"
        case "stir":
            return f"Stir the {act.to} with the {act.tool}"
        case "heat":
            return f"Heat the {act.to} on {act.level} for {counted(act.minutes, 'minute')}"
        case "wait":
            return f"Let the {act.to} rest for {counted(act.minutes, 'minute')}"
        case "cover":
            return f"Cover the {act.to} with the {act.tool}"
        case "wash":
            return f"Wash the {act.what}"
        case "place":
            return f"Put {things(act)} into the {act.to}"
        case "serve":
            return f"Serve from the {act.what} onto the {act.to}"


def description(act: Act) -> str:
    """As CaptainCook4D writes it: "Add-Add 2 tablespoons of sugar to the bowl"."""
    text = instruction_text(act)
    return f"{text.split()[0]}-{text}"


def counted(count: int, unit: str) -> str:
    """A count with its unit: "1 minute", "2 tablespoons"."""
    return f"{count} {unit}" if count == 1 else f"{count} {unit}s"


def things(act: Act) -> str:
    """What a place act puts: "1 egg", "2 eggs"."""
    return f"{act.count} {act.what if act.count == 1 else good(act.what).plural}"
