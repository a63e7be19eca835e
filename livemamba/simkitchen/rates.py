"""How often cooks err, skip and diverge, and what that makes of each step. No torch."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from livemamba.errors import InputError
from livemamba.simkitchen.menu import Dish
from livemamba.timeline import MISTAKE_CATEGORIES

# Paper Table 6, Main Set, training split: mistakes of each category in 2,913 instructions.
_REAL_INSTRUCTIONS = 2913
_REAL_MISTAKES: Mapping[str, int] = {
    "preparation": 198,
    "technique": 224,
    "measurement": 159,
    "temperature": 27,
    "timing": 78,
}


OTHER_RATES = ("skip", "order", "alternative", "together", "normal")
"""The rates beside those of the mistake categories."""


def real_mistake_rates() -> dict[str, float]:
    """Share of the real set's steps with a mistake of each category."""
    return {category: count / _REAL_INSTRUCTIONS for category, count in _REAL_MISTAKES.items()}


@dataclass(frozen=True, kw_only=True)
class Rates:
    """Shares of all steps.

    Attributes:
        mistakes: with a mistake, by category; the default is the paper's Table 6.
        skip: left out. The real annotations have 171 missing steps in 3,158 (train).
        order: done before their time. There are 237 order errors in them.
        alternative: done in another order than listed, where the recipe allows that.
        together: of the steps that can be done while another one waits, those that are.
        normal: of the episodes, those in which nothing goes wrong at all: 90 of the 213 real ones (train). The
            others take all mistakes, omissions and order errors on them.
    """

    mistakes: Mapping[str, float] = field(default_factory=real_mistake_rates)
    skip: float = 171 / 3158
    order: float = 237 / 3158
    alternative: float = 0.1
    together: float = 0.9
    normal: float = 90 / 213

    def __post_init__(self) -> None:
        unknown = set(self.mistakes) - set(MISTAKE_CATEGORIES)
        if unknown:
            raise InputError(f"mistake category {sorted(unknown)[0]!r} is not one of {', '.join(MISTAKE_CATEGORIES)}")
        named = {name: getattr(self, name) for name in OTHER_RATES}
        if not 0 <= self.normal < 1:
            raise InputError(f"rate normal is {self.normal}; it is a share of the episodes, below 1")
        for name, rate in (*self.mistakes.items(), *named.items()):
            if not (math.isfinite(rate) and 0 <= rate <= 1):
                raise InputError(f"rate {name} is {rate}; rates are shares of the steps, 0 to 1")

    def with_rate(self, name: str, share: float) -> "Rates":
        """With one of the rates changed.

        Args:
            name: a mistake category or one of `OTHER_RATES`.
            share: of the steps.

        Raises:
            InputError: if there is no such rate, or the share is out of range.
        """
        if name in MISTAKE_CATEGORIES:
            return replace(self, mistakes={**self.mistakes, name: share})
        if name not in OTHER_RATES:
            raise InputError(f"rate {name!r} is not one of {', '.join((*MISTAKE_CATEGORIES, *OTHER_RATES))}")
        others = {other: getattr(self, other) for other in OTHER_RATES}
        return Rates(mistakes=self.mistakes, **{**others, name: share})

    def scaled(self, factor: float) -> "Rates":
        """With all mistakes, omissions and order errors more or less frequent by a factor."""
        mistakes = {category: rate * factor for category, rate in self.mistakes.items()}
        return replace(self, mistakes=mistakes, skip=self.skip * factor, order=self.order * factor)


NO_MISTAKES = Rates(mistakes={}, skip=0.0, order=0.0)


@dataclass(frozen=True, kw_only=True)
class Odds:
    """Probabilities for single steps, in episodes that aren't normal, that give the asked rates over all steps.

    Not every step can go wrong in every way: those that can, do so more often than the rate.

    Attributes:
        mistakes: by category, for a step at which it is possible.
        skip: for a step that can be left out.
        early: for a moment at which some step could be done too early.
        other: for a moment at which another step is allowed as well.
        together: for a step that can be done while another one waits.
        normal: for an episode to go all right, whatever the others are.
    """

    mistakes: Mapping[str, float]
    normal: float
    skip: float
    early: float
    other: float
    together: float


def odds(rates: Rates, dishes: Sequence[Dish]) -> Odds:
    """What the rates mean for the steps of some dishes.

    Raises:
        InputError: if a rate can't be reached: its chances are too few.
    """
    wild = 1 - rates.normal
    total = sum(len(dish.steps) for dish in dishes)
    possible = [{mistake.category for mistake in dish.mistakes(step.id)} for dish in dishes for step in dish.steps]
    able: Counter[str] = Counter(category for categories in possible for category in categories)
    mistakes = {
        category: _probability(category, rate / wild, total, able[category])
        for category, rate in rates.mistakes.items()
    }
    most = max(sum(mistakes.get(category, 0.0) for category in categories) for categories in possible)
    if most > 1:
        raise InputError(
            f"mistake rates sum to {sum(rates.mistakes.values()):.2f}; some steps would need {most:.2f} mistakes each "
            "and can have at most one; lower them"
        )
    skippable = sum(len(dish.skippable) for dish in dishes)
    early, other = (sum(chances) for chances in zip(*(_chances(dish) for dish in dishes), strict=True))
    return Odds(
        mistakes=mistakes,
        normal=rates.normal,
        skip=_probability("skip", rates.skip / wild, total, skippable),
        early=_probability("order", rates.order / wild, total, early),
        other=min(1.0, rates.alternative * total / other) if other else 0.0,
        together=rates.together,
    )


def _probability(name: str, rate: float, total: int, able: int) -> float:
    if rate == 0:
        return 0.0
    if rate * total > able:
        raise InputError(
            f"rate {name} is {rate:.3g} in the episodes with errors, but only {able} of {total} steps allow it; "
            f"at most {able / total:.3g}"
        )
    return rate * total / able


def _chances(dish: Dish) -> tuple[int, int]:
    """At how many steps of the listed order another one could be done too early, or is allowed as well."""
    early = other = 0
    done: set[str] = set()
    for step in dish.steps:
        left = [node.id for node in dish.steps if node.id not in done]
        early += bool(early_nodes(dish, left, done, done))
        other += len(ready_nodes(dish, left, done)) > 1
        done.add(step.id)
    return early, other


def ready_nodes(dish: Dish, left: Sequence[str], done: set[str]) -> list[str]:
    """Nodes that the graph allows next, and that can be done: after an order error that isn't the same."""
    return [node for node in left if {*dish[node].after, *dish[node].needs} <= done]


def early_nodes(dish: Dish, left: Sequence[str], done: set[str], performed: set[str]) -> list[str]:
    """Nodes that could be done next, though the graph says that it is too early."""
    return [
        node
        for node in left
        if not set(dish[node].after) <= done and set(dish[node].needs) <= performed and not dish[node].during
    ]
