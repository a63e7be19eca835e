"""The kitchen's own recipes: graphs whose steps are acts. No torch."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from livemamba.errors import InputError
from livemamba.recipe import Recipe, RecipeStep
from livemamba.simkitchen.acts import Act, description, instruction_text
from livemamba.simkitchen.goods import GOODS
from livemamba.simkitchen.kitchens import Kitchen, goods_on_counter, make_kitchen
from livemamba.simkitchen.mistakes import Mistake, mistakes_for
from livemamba.yaml_files import read_yaml

STEPS_PER_ACTIVITY = 20
"""Step ids are numbered through over all recipes, as CaptainCook4D's: this many are kept for each."""


@dataclass(frozen=True, kw_only=True)
class DishStep:
    """A node of a dish's graph.

    Attributes:
        id: unique in the dish.
        act: what is asked for.
        after: nodes that the recipe wants done before.
        needs: nodes without which it can't be done at all; the others of `after` are a matter of order.
        during: node in whose waiting time it may be done; empty for none.
        typical: how long it takes, as other steps go, in standard deviations of the logarithm.
        step_id: number of its text, the same for a repeated text.
    """

    id: str
    act: Act
    after: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    during: str = ""
    typical: float = 0.0
    step_id: int


@dataclass(frozen=True, kw_only=True)
class Dish:
    """A recipe that can be cooked here.

    Attributes:
        name: the activity's name.
        activity_id: CaptainCook4D's number for it.
        unseen: it is kept out of training.
        steps: nodes, listed so that each comes after its predecessors.
    """

    name: str
    activity_id: int
    unseen: bool
    steps: tuple[DishStep, ...]
    recipe: Recipe = field(init=False, repr=False, compare=False)
    _by_id: dict[str, DishStep] = field(init=False, repr=False, compare=False)
    _mistakes: dict[str, tuple[Mistake, ...]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        nodes = tuple(RecipeStep(id=step.id, text=instruction_text(step.act), after=step.after) for step in self.steps)
        object.__setattr__(self, "recipe", Recipe(name=self.name, steps=nodes))
        object.__setattr__(self, "_by_id", {step.id: step for step in self.steps})
        on_counter = goods_on_counter(self.goods)
        mistakes = {step.id: mistakes_for(step.act, on_counter) for step in self.steps}
        object.__setattr__(self, "_mistakes", mistakes)

    def __getitem__(self, node: str) -> DishStep:
        return self._by_id[node]

    @property
    def goods(self) -> tuple[str, ...]:
        """The ingredients that it uses, in order of use."""
        return tuple(dict.fromkeys(step.act.what for step in self.steps if step.act.what in GOODS))

    @property
    def washed(self) -> tuple[str, ...]:
        """What it washes."""
        return tuple(step.act.what for step in self.steps if step.act.kind == "wash")

    def kitchen(self, number: int) -> Kitchen:
        """A kitchen laid for it."""
        return make_kitchen(number, self.goods)

    def mistakes(self, node: str) -> tuple[Mistake, ...]:
        """The mistakes that can be made at a node."""
        return self._mistakes[node]

    @property
    def skippable(self) -> tuple[str, ...]:
        """The nodes without which the others can still be done."""
        needed = {before for step in self.steps for before in step.needs}
        return tuple(step.id for step in self.steps if step.id not in needed)

    def task_graph(self) -> dict[str, Any]:
        """As CaptainCook4D's file has it: START is 0, END the last; edges from what comes before."""
        numbers = {step.id: number for number, step in enumerate(self.steps, 1)}
        end = len(self.steps) + 1
        texts = {"0": "START", **{str(numbers[step.id]): description(step.act) for step in self.steps}, str(end): "END"}
        edges = [[numbers[before], numbers[step.id]] for step in self.steps for before in step.after]
        edges += [[0, numbers[step.id]] for step in self.steps if not step.after]
        leads_on = {before for step in self.steps for before in step.after}
        edges += [[numbers[step.id], end] for step in self.steps if step.id not in leads_on]
        return {"steps": texts, "edges": edges}

    @property
    def graph_file(self) -> str:
        """Its task graph's file name: the activity's name, lower case, letters only."""
        return "".join(letter for letter in self.name.lower() if letter.isalpha()) + ".json"


# How long kinds of steps take beside each other, in standard deviations of the logarithm over all steps.
_TYPICAL = {
    "place": -0.5,
    "cover": -0.56,
    "pour": -0.22,
    "add": 0.0,
    "stir": 0.06,
    "wash": 0.06,
    "serve": -0.12,
    "cut": 0.37,
    "wait": 0.53,
    "heat": 0.65,
}


def load_dish(path: str | Path) -> Dish:
    """A dish from YAML: `name`, `activity_id`, optional `unseen`, and `steps` with `id`, `act` and optional
    `after`, `needs`, `during`.

    Raises:
        MissingError: if there is no such file.
        InputError: if it isn't such a recipe.
    """
    data = read_yaml(path, what="recipe")
    try:
        steps = [_step(raw, data["activity_id"], number) for number, raw in enumerate(data["steps"], 1)]
        steps = _shared_ids(steps)
        dish = Dish(
            name=data["name"], activity_id=data["activity_id"], unseen=data.get("unseen", False), steps=tuple(steps)
        )
    except (KeyError, TypeError) as error:
        raise InputError(f"{path}: not a recipe of the kitchen ({error}); see the ones that it comes with") from None
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    for step in dish.steps:
        if not set(step.needs) <= dish.recipe.ancestors(step.id):
            raise InputError(f"{path}: {step.id} needs {', '.join(step.needs)}, which must come before it in the graph")
        if step.during and dish[step.during].act.kind not in ("heat", "wait"):
            raise InputError(
                f"{path}: {step.id} is during {step.during}, which leaves no hands free; name a heat or wait"
            )
    return dish


def _step(raw: dict[str, Any], activity_id: int, number: int) -> DishStep:
    act = Act(**raw["act"])
    offset = float(np.random.default_rng((0xD15, activity_id, number)).normal(0, 0.25))
    return DishStep(
        id=raw["id"],
        act=act,
        after=tuple(raw.get("after", ())),
        needs=tuple(raw.get("needs", ())),
        during=raw.get("during", ""),
        typical=_TYPICAL[act.kind] + offset,
        step_id=STEPS_PER_ACTIVITY * activity_id + number,
    )


def _shared_ids(steps: list[DishStep]) -> list[DishStep]:
    first: dict[str, int] = {}
    for step in steps:
        first.setdefault(description(step.act), step.step_id)
    return [replace(step, step_id=first[description(step.act)]) for step in steps]


@cache
def all_dishes() -> tuple[Dish, ...]:
    """The recipes that come with the package, by number."""
    folder = resources.files("livemamba.simkitchen") / "recipes"
    with resources.as_file(folder) as path:
        dishes = [load_dish(file) for file in sorted(path.glob("*.yaml"))]
    return tuple(sorted(dishes, key=lambda dish: dish.activity_id))


def seen_dishes() -> Sequence[Dish]:
    """The recipes that training may see."""
    return tuple(dish for dish in all_dishes() if not dish.unseen)
