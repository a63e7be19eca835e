"""Short episodes for the kitchen's tests."""

import numpy as np

from livemamba.simkitchen.cooks import EpisodePlan, Performance
from livemamba.simkitchen.episodes import Session
from livemamba.simkitchen.menu import Dish, all_dishes
from livemamba.simkitchen.renderer import Renderer
from livemamba.simkitchen.world import BEATS_PER_S, World

SIZE = 112


def one_of_each_kind() -> dict[str, tuple[Dish, str]]:
    """For each kind of act the first recipe step with it."""
    found: dict[str, tuple[Dish, str]] = {}
    for dish in all_dishes():
        for step in dish.steps:
            found.setdefault(step.act.kind, (dish, step.id))
    return found


def short_plan(dish: Dish, node: str, *, kitchen: int = 5, step_s: float = 6.0) -> EpisodePlan:
    """An episode with a step and what must come before it, as fast as it goes."""
    before = [step.id for step in dish.steps if step.id in dish.recipe.ancestors(node)]
    steps = tuple(Performance(node=one, duration_s=1.0, gap_s=0.3) for one in before)
    last = Performance(node=node, duration_s=step_s, gap_s=0.3, pause=(0.7, 0.5))
    return EpisodePlan(
        key=(1,),
        dish=dish,
        kitchen_number=kitchen,
        performances=(*steps, last),
        lead_in_s=0.3,
        tail_s=1.5,
    )


def world_at(plan: EpisodePlan, time_s: float) -> World:
    """The world of an episode at a moment."""
    session = Session(plan)
    session.advance_to(round(time_s * BEATS_PER_S))
    return session.world


def picture(world: World) -> np.ndarray:
    return Renderer(world.kitchen, SIZE).draw(world)


def largest_change(one: np.ndarray, other: np.ndarray, window: int = 8) -> float:
    """The largest share of clearly different pixels in any square of `window` pixels."""
    changed = np.abs(one.astype(int) - other.astype(int)).max(axis=2) > 24
    sums = np.pad(changed.astype(int).cumsum(0).cumsum(1), ((1, 0), (1, 0)))
    squares = sums[window:, window:] - sums[:-window, window:] - sums[window:, :-window] + sums[:-window, :-window]
    return float(squares.max()) / window**2
