"""Kitchens: where things stand and how they look. Everything follows from the kitchen's number. No torch.

Lengths are shares of the picture's width; x runs to the right, y away from the far edge towards the cook.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from livemamba.errors import InputError
from livemamba.simkitchen.goods import Colour, good

Point = tuple[float, float]
CounterPattern = Literal["plain", "wood", "tiles", "speckle"]

BOWL_R, PAN_R, PLATE_R = 0.155, 0.135, 0.135
SLOT_R = 0.058
BOARD = (0.345, 0.29)  # width and height

_SLOTS: tuple[Point, ...] = ((0.075, 0.1), (0.21, 0.1), (0.345, 0.1), (0.075, 0.265), (0.21, 0.265), (0.345, 0.265))
_SPOTS: dict[str, Point] = {
    "bowl": (0.52, 0.525),
    "board": (0.185, 0.53),
    "plate": (0.85, 0.66),
    "pan": (0.81, 0.2),
    "dial": (0.895, 0.435),
    "timer": (0.745, 0.43),
    "sink": (0.51, 0.165),
    "lid": (0.12, 0.83),
    "cloth": (0.3, 0.83),
    "knife": (0.44, 0.84),
    "tablespoon": (0.53, 0.84),
    "teaspoon": (0.61, 0.84),
    "whisk": (0.69, 0.84),
    "rest_left": (0.22, 1.05),
    "rest_right": (0.84, 1.05),
}
_CLUTTER: tuple[Point, ...] = ((0.92, 0.9), (0.36, 0.37), (0.035, 0.4), (0.05, 0.97))

_COUNTERS: tuple[Colour, ...] = (
    (196, 164, 124),
    (150, 118, 88),
    (184, 186, 188),
    (122, 128, 134),
    (214, 206, 192),
    (104, 122, 118),
    (168, 150, 160),
    (94, 84, 80),
)
_VESSELS: tuple[Colour, ...] = (
    (64, 104, 150),
    (110, 168, 200),
    (196, 112, 112),
    (112, 164, 120),
    (84, 90, 122),
    (150, 110, 160),
)
_BOARDS: tuple[Colour, ...] = ((222, 186, 134), (232, 214, 178), (172, 122, 76), (206, 216, 222))
_SKINS: tuple[Colour, ...] = ((244, 206, 178), (224, 176, 140), (190, 134, 98), (146, 98, 68), (98, 64, 46))
_SLEEVES: tuple[Colour, ...] = ((60, 80, 140), (150, 60, 60), (70, 120, 80), (50, 50, 56), (210, 200, 190))
PATTERNS: tuple[CounterPattern, ...] = ("plain", "wood", "tiles", "speckle")
CLUTTER: tuple[str, ...] = ("phone", "cup", "napkin", "keys")


@dataclass(frozen=True, kw_only=True)
class Kitchen:
    """One kitchen with the person who cooks in it, and what lies on its counter for a recipe.

    Attributes:
        number: what everything is drawn from.
        spots: where each thing is at home; ingredients by their names.
        mirrored: the picture is turned left to right.
        pattern, counter, vessel, plate, board, skin, sleeve: looks.
        light: gains of the lamp's colour.
        light_from: direction of the brighter side, in radians.
        light_slope: how much brighter that side is.
        clutter: things that lie about and mean nothing, with their places.
        camera_angle, camera_zoom: how the camera is held.
        sway: phases of the camera's drift.
    """

    number: int
    spots: dict[str, Point]
    mirrored: bool
    pattern: CounterPattern
    counter: Colour
    vessel: Colour
    plate: Colour
    board: Colour
    skin: Colour
    sleeve: Colour
    light: tuple[float, float, float]
    light_from: float
    light_slope: float
    clutter: tuple[tuple[str, Point], ...]
    camera_angle: float
    camera_zoom: float
    sway: tuple[float, ...]

    @property
    def goods(self) -> tuple[str, ...]:
        """The ingredients on the counter."""
        return tuple(self.spots)[len(_SPOTS) :]


def make_kitchen(number: int, needed: Sequence[str]) -> Kitchen:
    """A kitchen laid for a recipe.

    Args:
        number: of the kitchen; equal numbers look alike.
        needed: ingredients that the recipe uses.
    """
    random = np.random.default_rng((0x4B17, number))
    spots = {name: _jittered(spot, random) for name, spot in _SPOTS.items()}
    order = random.permutation(len(_SLOTS))
    for name, slot in zip(goods_on_counter(needed), order, strict=True):
        spots[name] = _jittered(_SLOTS[slot], random)
    return Kitchen(
        number=number,
        spots=spots,
        mirrored=bool(random.random() < 0.5),
        pattern=PATTERNS[int(random.integers(len(PATTERNS)))],
        counter=_tinted(_COUNTERS, random, 16),
        vessel=_tinted(_VESSELS, random, 14),
        plate=_tinted(_VESSELS, random, 14),
        board=_tinted(_BOARDS, random, 12),
        skin=_tinted(_SKINS, random, 6),
        sleeve=_tinted(_SLEEVES, random, 20),
        light=_light(random),
        light_from=float(random.uniform(0, 2 * np.pi)),
        light_slope=float(random.uniform(0.05, 0.22)),
        clutter=_clutter(random),
        camera_angle=float(random.uniform(-0.03, 0.03)),
        camera_zoom=float(random.uniform(0.96, 1.03)),
        sway=tuple(float(phase) for phase in random.uniform(0, 2 * np.pi, 6)),
    )


def goods_on_counter(needed: Sequence[str]) -> tuple[str, ...]:
    """The needed ingredients and decoys beside them, so that for each there is another one of its form.

    Raises:
        InputError: if a recipe needs so many that no decoy finds a place.
    """
    others = [name for name in _DECOYS if name not in needed]
    forms = [form for form, count in Counter(good(name).form for name in needed).items() if count == 1]
    first = [next(name for name in others if good(name).form == form) for form in forms]
    if len(needed) + len(first) > len(_SLOTS):
        raise InputError(
            f"{len(needed)} ingredients and {len(first)} decoys for those that are the only ones of their form; "
            f"the counter has {len(_SLOTS)} places"
        )
    return (*needed, *first, *(name for name in others if name not in first))[: len(_SLOTS)]


_DECOYS = ("salt", "oil", "carrot", "cocoa", "water", "cucumber", "paprika", "mushroom", "juice", "banana")


def _jittered(spot: Point, random: np.random.Generator) -> Point:
    dx, dy = random.uniform(-0.008, 0.008, 2)
    return spot[0] + float(dx), spot[1] + float(dy)


def _tinted(colours: Sequence[Colour], random: np.random.Generator, by: int) -> Colour:
    base = colours[int(random.integers(len(colours)))]
    red, green, blue = (int(np.clip(part + random.integers(-by, by + 1), 0, 255)) for part in base)
    return red, green, blue


def _light(random: np.random.Generator) -> tuple[float, float, float]:
    warmth, level = random.uniform(-0.06, 0.06), random.uniform(0.84, 1.04)
    return float(level * (1 + warmth)), float(level), float(level * (1 - warmth))


def _clutter(random: np.random.Generator) -> tuple[tuple[str, Point], ...]:
    places = random.permutation(len(_CLUTTER))[: int(random.integers(1, 4))]
    kinds = random.permutation(len(CLUTTER))
    return tuple(
        (CLUTTER[kind], _jittered(_CLUTTER[place], random)) for kind, place in zip(kinds, places, strict=False)
    )
