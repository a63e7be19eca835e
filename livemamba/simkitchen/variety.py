"""Variants of a recipe: the same graph with other ingredients, counts, tools, heats and times. No torch.

In a corpus of a few fixed recipes the instruction alone nearly tells what is right: a model that knows that the batter
takes 3 tablespoons needs no eyes. Where every episode has a recipe of its own, it must look (spec/simkitchen.md, the
pair test).
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from livemamba.simkitchen.acts import Act
from livemamba.simkitchen.goods import (
    COVERS,
    LEVELS,
    MOST_MINUTES,
    MOST_SPOONS,
    PIECES,
    SHARES,
    SPOONS,
    STIRRERS,
    good,
    goods_of,
)
from livemamba.simkitchen.menu import STEPS_PER_ACTIVITY, Dish, DishStep

FIRST_VARIANT = 1000
"""Activity numbers of variants start here."""

_UNCUT = ("egg",)
"""Produce that nobody washes or cuts."""


def varied(dish: Dish, number: int, random: np.random.Generator) -> Dish:
    """A recipe of its own, with a dish's graph.

    Args:
        dish: whose graph it has.
        number: of the variant; its activity number and name follow from it.
        random: draws everything else.
    """
    names = _exchanged(dish, random)
    activity_id = FIRST_VARIANT + number
    steps = tuple(
        replace(
            step,
            act=_varied_act(step.act, names, random),
            step_id=STEPS_PER_ACTIVITY * activity_id + place,
        )
        for place, step in enumerate(dish.steps, 1)
    )
    return Dish(
        name=f"{dish.name} {_letters(number)}", activity_id=activity_id, unseen=dish.unseen, steps=_numbered(steps)
    )


def _numbered(steps: tuple[DishStep, ...]) -> tuple[DishStep, ...]:
    """Steps with the same text share the number of the first, as CaptainCook4D's do."""
    first: dict[Act, int] = {}
    for step in steps:
        first.setdefault(step.act, step.step_id)
    return tuple(replace(step, step_id=first[step.act]) for step in steps)


def _letters(number: int) -> str:
    """A number as capital letters, since graph files are named by letters alone: 0 "A", 25 "Z", 26 "AA"."""
    text = ""
    number += 1
    while number:
        number, rest = divmod(number - 1, 26)
        text = chr(ord("A") + rest) + text
    return text


def _exchanged(dish: Dish, random: np.random.Generator) -> Mapping[str, str]:
    """Each ingredient -> another one of its form, or itself; different ones stay different."""
    worked = {step.act.what for step in dish.steps if step.act.kind in ("wash", "cut")}
    names: dict[str, str] = {}
    for name in dish.goods:
        free = [other for other in goods_of(good(name).form) if other not in names.values()]
        if name in worked:
            free = [other for other in free if other not in _UNCUT]
        names[name] = free[int(random.integers(len(free)))]
    return names


def _varied_act(act: Act, names: Mapping[str, str], random: np.random.Generator) -> Act:
    def one(values: tuple[str, ...]) -> str:
        return values[int(random.integers(len(values)))]

    act = replace(act, what=names.get(act.what, act.what))
    match act.kind:
        case "add":
            return replace(act, count=int(random.integers(1, MOST_SPOONS + 1)), tool=one(SPOONS))
        case "pour":
            return replace(act, share=one(SHARES))
        case "cut":
            return replace(act, count=int(PIECES[int(random.integers(len(PIECES)))]))
        case "stir":
            return replace(act, tool=one(STIRRERS))
        case "heat":
            return replace(act, level=one(LEVELS[1:]), minutes=int(random.integers(1, MOST_MINUTES + 1)))
        case "wait":
            return replace(act, minutes=int(random.integers(1, MOST_MINUTES + 1)))
        case "cover":
            return replace(act, tool=one(COVERS))
        case "serve":
            return replace(act, to=one(("plate", "board")))
        case "place" if act.what in _UNCUT or act.count > 1:
            return replace(act, count=int(random.integers(1, 4)))
    return act
