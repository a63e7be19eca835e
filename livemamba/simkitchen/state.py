"""The world's state as named classes: what one could say of a picture. No torch.

Labels for stage 0 of training (spec/simkitchen.md, training the tiny model), and the input of the trainings that see
the ground truth in place of pictures. Each field is a small set of classes; class 0 is "nothing" or "off".
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from livemamba.errors import InputError
from livemamba.simkitchen.goods import COVERS, GOODS, LEVELS, MOST_MINUTES, MOST_SPOONS, PIECES, goods_of
from livemamba.simkitchen.kitchens import Point
from livemamba.simkitchen.world import Item, Spill, Vessel, World

_TOOLS = ("tablespoon", "teaspoon", "whisk", "knife", "lid", "cloth")
_VESSELS = ("bowl", "pan", "plate")
_FIXTURES = ("bowl", "board", "plate", "pan", "dial", "timer", "sink", *_TOOLS, "rest_left", "rest_right")
_NOTHING = "nothing"
_NEAR = 0.075
"""Within this distance (shares of the picture's width) a hand is at a place."""

_WHATS = (_NOTHING, *GOODS)
_PLACES = ("on the way", *_FIXTURES, *GOODS)
_AMOUNTS = (_NOTHING, "some", "most")
_PIECE_COUNTS = (_NOTHING, "1", *map(str, PIECES), "other")


def _vessel_fields(name: str) -> dict[str, tuple[str, ...]]:
    counts = (_NOTHING, *map(str, range(1, MOST_SPOONS + 1)), "more")
    return {
        f"{name}: last": _WHATS,
        f"{name}: last form": (_NOTHING, "tablespoon", "teaspoon", "liquid", "piece"),
        f"{name}: heaps of it": counts,
        f"{name}: liquid": (_NOTHING, "half", "all"),
        f"{name}: pieces": counts,
        f"{name}: mixed": ("apart", "partly", "mixed"),
        f"{name}: brown": ("raw", "light", "brown", "dark"),
        f"{name}: cover": (_NOTHING, *COVERS),
        f"{name}: gap": ("closed", "open"),
        f"{name}: scale": (_NOTHING, "part", "whole"),
    }


FIELDS: Mapping[str, tuple[str, ...]] = {
    "holding": (_NOTHING, *_TOOLS, *GOODS),
    "loaded": (_NOTHING, *goods_of("powder"), "food"),
    "tilt": ("level", "tipped"),
    "right": _PLACES,
    "left": ("away", "bowl", "pan", "board"),
    "stove": LEVELS,
    "timer": (_NOTHING, *map(str, range(1, MOST_MINUTES + 1))),
    "ringing": ("quiet", "ringing"),
    "tap": ("off", "on"),
    "spill": _WHATS,
    "spills": (_NOTHING, "1", "2", "more"),
    "board": _WHATS,
    "board: pieces": _PIECE_COUNTS,
    "board: uneven": ("even", "uneven"),
    "at hand: dirt": ("clean", "partly", "dirty"),
    "washed": _WHATS,
    **{key: value for name in _VESSELS for key, value in _vessel_fields(name).items()},
    "board: food": _AMOUNTS,
}
"""Field -> its classes."""


def describe(world: World) -> dict[str, str]:
    """Each field's class at this moment."""
    right = world.right
    board = _on(world, "board")
    worked = world.items.get(right.holding) or _on(world, "sink") or board
    state = {
        "holding": right.holding or _NOTHING,
        "loaded": right.loaded or _NOTHING,
        "tilt": "tipped" if right.tilt > 0.4 else "level",
        "right": _place(world, right.at),
        "left": _held_vessel(world, world.left.at),
        "stove": LEVELS[world.level],
        "timer": _minutes(world.minutes),
        "ringing": "ringing" if world.ringing else "quiet",
        "tap": "on" if world.tap else "off",
        "spill": _spilled(world.spills),
        "spills": _up_to(sum(spill.size > 0.3 for spill in world.spills), 2),
        "board": _name_of(world, board),
        "board: pieces": _pieces(board),
        "board: uneven": "uneven" if board and _uneven(board) else "even",
        "at hand: dirt": _dirt(worked),
        "washed": _name_of(world, _on(world, "sink")),
        "board: food": _amount(world.vessels["board"]),
    }
    for name in _VESSELS:
        state |= {f"{name}: {field}": value for field, value in _vessel(world.vessels[name]).items()}
    return state


def labels(world: World) -> npt.NDArray[np.int64]:
    """The class numbers of all fields, (len(FIELDS),), in the order of `FIELDS`."""
    state = describe(world)
    return np.array([_number(name, state[name]) for name in FIELDS], dtype=np.int64)


def _number(name: str, value: str) -> int:
    try:
        return FIELDS[name].index(value)
    except ValueError:
        raise InputError(f"state {name!r} is {value!r}; its classes are {', '.join(FIELDS[name])}") from None


def tokens(numbers: npt.NDArray[np.int64], width: int) -> npt.NDArray[np.float32]:
    """States as a vision encoder would hand them over: one token for each field.

    Args:
        numbers: (T, F) class numbers, as `labels` gives them.
        width: of a token; room for the field's number and its class.

    Returns:
        (T, F, width): a one-hot field and a one-hot class behind it, scaled to a mean square of 1.

    Raises:
        InputError: if the width is too small.
    """
    num_fields, most = len(FIELDS), max(map(len, FIELDS.values()))
    if width < num_fields + most:
        raise InputError(f"token width {width}; {num_fields} fields and {most} classes need {num_fields + most}")
    out = np.zeros((len(numbers), num_fields, width), dtype=np.float32)
    out[:, np.arange(num_fields), np.arange(num_fields)] = 1.0
    rows, fields = np.indices(numbers.shape)
    out[rows, fields, num_fields + numbers] = 1.0
    return out * np.float32(np.sqrt(width / 2))


# --- parts ---------------------------------------------------------------------------------------------


def _near(one: Point, other: Point) -> float:
    return float(np.hypot(one[0] - other[0], one[1] - other[1]))


def _place(world: World, at: Point) -> str:
    """Vessels are wide: a hand over their rim is at them still."""
    distances = {name: _near(at, world.kitchen.spots[name]) for name in (*_FIXTURES, *world.kitchen.goods)}
    wide = {name: distances[name] / 1.6 for name in (*_VESSELS, "board")}
    name, distance = min((distances | wide).items(), key=lambda pair: pair[1])
    return name if distance < _NEAR else _PLACES[0]


def _held_vessel(world: World, at: Point) -> str:
    near = [name for name in ("bowl", "pan", "board") if _near(at, world.spot(f"hold:{name}")) < _NEAR]
    return near[0] if near else "away"


def _minutes(left: float) -> str:
    return str(min(MOST_MINUTES, int(np.ceil(left)))) if left > 0 else _NOTHING


def _up_to(count: int, most: int) -> str:
    return _NOTHING if count == 0 else str(count) if count <= most else "more"


def _spilled(spills: list[Spill]) -> str:
    shown = [spill.what for spill in spills if spill.size > 0.3]
    return shown[-1] if shown else _NOTHING


def _on(world: World, where: str) -> Item | None:
    return next((item for item in world.items.values() if item.where == where), None)


def _name_of(world: World, item: Item | None) -> str:
    return next((name for name, other in world.items.items() if other is item), _NOTHING)


def _pieces(item: Item | None) -> str:
    if item is None:
        return _NOTHING
    count = str(len(item.pieces))
    return count if count in _PIECE_COUNTS else "other"


def _uneven(item: Item) -> bool:
    areas = [(x1 - x0) * (y1 - y0) for x0, y0, x1, y1 in item.pieces]
    # In the middle of even cutting, a whole piece is twice a cut one.
    return max(areas) / min(areas) > 2.5


def _dirt(item: Item | None) -> str:
    if item is None or item.dirty < 0.05:
        return "clean"
    return "dirty" if item.dirty > 0.75 else "partly"


def _amount(vessel: Vessel) -> str:
    if not vessel.portions:
        return _NOTHING
    return "most" if vessel.scale > 0.75 else "some"


def _vessel(vessel: Vessel) -> dict[str, Any]:
    shown = [portion for portion in vessel.portions if portion.size > 0.3]
    last = shown[-1] if shown else None
    # What has been mixed is one stuff; only what lies on it can be counted.
    apart = shown[vessel.mixed_before :] if vessel.mixed == 0 else []
    alike = [portion for portion in apart if last and (portion.what, portion.form) == (last.what, last.form)]
    poured = sum(portion.size for portion in alike if portion.form == "liquid")
    scale = vessel.scale if shown else 0.0
    covered = vessel.cover and vessel.cover_share > 0.5
    return {
        "last": last.what if last else _NOTHING,
        "last form": last.form if last else _NOTHING,
        "heaps of it": _up_to(sum(portion.form in ("tablespoon", "teaspoon") for portion in alike), MOST_SPOONS),
        "liquid": _NOTHING if poured < 0.3 else "half" if poured < 0.8 else "all",
        "pieces": _up_to(sum(portion.form == "piece" for portion in alike), MOST_SPOONS),
        "mixed": "apart" if vessel.mixed < 0.1 else "mixed" if vessel.mixed > 0.9 else "partly",
        "brown": ("raw", "light", "brown", "dark")[min(3, int(vessel.brown / 0.27))],
        "cover": vessel.cover if covered else _NOTHING,
        "gap": "open" if covered and vessel.cover_askew else "closed",
        "scale": _NOTHING if scale == 0 else "whole" if scale > 0.75 else "part",
    }
