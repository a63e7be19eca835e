"""Cooks: what they mean to do, and the policy that does it. No torch.

Every choice has its own stream of random numbers, named by what it is about. So the same seed with and without
a mistake gives the same kitchen, order, pace and pauses: nothing but the mistake differs.
"""

import zlib
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from livemamba.simkitchen import pace
from livemamba.simkitchen.acts import instruction_text
from livemamba.simkitchen.menu import Dish
from livemamba.simkitchen.mistakes import Mistake, pick
from livemamba.simkitchen.phases import Script
from livemamba.simkitchen.rates import Odds, early_nodes, ready_nodes
from livemamba.simkitchen.scripts import idle_script, make_script
from livemamba.simkitchen.world import World

Key = tuple[int, ...]


def stream(key: Key, *names: str) -> np.random.Generator:
    """The random numbers of one choice of an episode."""
    return np.random.default_rng((*key, *(zlib.crc32(name.encode()) for name in names)))


@dataclass(frozen=True, kw_only=True)
class Performance:
    """How a step will be done.

    Attributes:
        node: of the dish.
        duration_s: if it goes right.
        gap_s: idle time before it.
        pause: idle moment within it, see `make_script`.
        mistake: None if it goes right.
        mistake_text: how the mistake is said.
        order_text: why it comes too early; empty if it doesn't.
        during: node in whose waiting time it is done; empty for none.
    """

    node: str
    duration_s: float
    gap_s: float
    pause: tuple[float, float] | None = None
    mistake: Mistake | None = None
    mistake_text: str = ""
    order_text: str = ""
    during: str = ""


@dataclass(frozen=True, kw_only=True)
class EpisodePlan:
    """All that an episode follows from.

    Attributes:
        key: seed of everything.
        dish: what is cooked.
        kitchen_number: where.
        performances: what is done, in order.
        skipped: nodes that are left out.
        lead_in_s, tail_s: idle time before the first and after the last step.
    """

    key: Key
    dish: Dish
    kitchen_number: int
    performances: tuple[Performance, ...]
    skipped: tuple[str, ...] = ()
    lead_in_s: float = 1.0
    tail_s: float = 1.0

    def without_mistake(self, node: str) -> "EpisodePlan":
        """The twin in which a step goes right."""
        return self.with_mistake(node, None)

    def with_mistake(self, node: str, mistake: Mistake | None) -> "EpisodePlan":
        """The twin in which a step goes right or wrong as given."""
        text = mistake.texts[0] if mistake else ""
        return replace(
            self,
            performances=tuple(
                replace(one, mistake=mistake, mistake_text=text) if one.node == node else one
                for one in self.performances
            ),
        )


def plan_episode(dish: Dish, kitchen_number: int, key: Key, odds: Odds, factor: float) -> EpisodePlan:
    """Draw what a cook will do.

    Args:
        dish: the recipe.
        kitchen_number: where it is cooked.
        key: seed.
        odds: of mistakes and the like.
        factor: by which the kitchen is faster than a real one.
    """
    if stream(key, "normal").random() < odds.normal:
        odds = replace(odds, mistakes={}, skip=0.0, early=0.0)
    skipped = tuple(node for node in dish.skippable if stream(key, "skip", node).random() < odds.skip)
    ordered = _order(dish, skipped, key, odds)
    performances = [_performance(dish, node, key, odds, factor) for node, _, _ in ordered]
    performances = [
        replace(one, order_text=order_text, during=during)
        for one, (_, order_text, during) in zip(performances, ordered, strict=True)
    ]
    return EpisodePlan(
        key=key,
        dish=dish,
        kitchen_number=kitchen_number,
        performances=tuple(_waiting_long_enough(performances)),
        skipped=skipped,
        lead_in_s=pace.lead_in_s(factor, stream(key, "lead in")),
        tail_s=pace.tail_s(factor, stream(key, "tail")),
    )


def _order(dish: Dish, skipped: tuple[str, ...], key: Key, odds: Odds) -> list[tuple[str, str, str]]:
    """Node, why it is too early, node during which it is done; in the order in which they begin."""
    random, chosen = stream(key, "order"), list[tuple[str, str, str]]()
    done, performed = set(skipped), set[str]()
    left = [step.id for step in dish.steps if step.id not in done]

    def take(node: str, order_text: str = "", during: str = "") -> None:
        chosen.append((node, order_text, during))
        left.remove(node)
        done.add(node)
        performed.add(node)

    while left:
        ready, early = ready_nodes(dish, left, done), early_nodes(dish, left, done, performed)
        chance, which, together = random.random(3)
        if early and chance < odds.early:
            node = early[int(which * len(early))]
            missing = next(before for before in dish[node].after if before not in done)
            take(node, f"Done before: {instruction_text(dish[missing].act)}")
        elif len(ready) > 1 and chance > 1 - odds.other:
            node = ready[1 + int(which * (len(ready) - 1))]
            take(node)
        else:
            node = ready[0]
            take(node)
        inner = [other for other in ready if other in left and dish[other].during == node]
        if inner and together < odds.together:
            take(inner[0], during=node)
    return chosen


def _performance(dish: Dish, node: str, key: Key, odds: Odds, factor: float) -> Performance:
    step = dish[node]
    duration_s = pace.step_duration_s(step.typical, factor, stream(key, "pace", node))
    mistake, text = _mistake(dish, node, key, odds)
    waits = step.act.kind in ("heat", "wait")
    return Performance(
        node=node,
        duration_s=duration_s,
        gap_s=pace.gap_s(factor, stream(key, "gap", node)),
        pause=None if waits else pace.pause(stream(key, "pause", node)),
        mistake=mistake,
        mistake_text=text,
    )


def _mistake(dish: Dish, node: str, key: Key, odds: Odds) -> tuple[Mistake | None, str]:
    random = stream(key, "mistake", node)
    options = dish.mistakes(node)
    possible = {mistake.category for mistake in options}
    chance = random.random()
    for category, probability in odds.mistakes.items():
        if category in possible:
            if chance < probability:
                mistake = pick(options, category, random)
                return mistake, mistake.texts[int(random.integers(len(mistake.texts)))]
            chance -= probability
    return None, ""


def _waiting_long_enough(performances: list[Performance]) -> list[Performance]:
    """Steps in which another one is done wait until it is over, even if that goes wrong.

    Only one of the two goes wrong, the inner one: a wait that ends early or late would not be its own doing.
    """
    inner = {one.during: one for one in performances if one.during}
    return [
        replace(
            one,
            duration_s=max(one.duration_s, 2 * max(inner[one.node].duration_s, 8.0) + inner[one.node].gap_s + 5.0),
            mistake=None if _of_timing(one) else one.mistake,
            mistake_text="" if _of_timing(one) else one.mistake_text,
        )
        if one.node in inner
        else one
        for one in performances
    ]


def _of_timing(one: Performance) -> bool:
    return one.mistake is not None and one.mistake.category == "timing"


class Cook(Protocol):
    """Who decides what the hands do next."""

    @property
    def done(self) -> bool:
        """Whether nothing more will come."""

    def act(self, world: World) -> Script | None:
        """What to begin now, the hands being free; None to wait for what is under way."""


class PlannedCook:
    """Does what an episode's plan says and listens to nobody."""

    def __init__(self, plan: EpisodePlan) -> None:
        """Begin.

        Args:
            plan: of the episode.
        """
        self.plan = plan
        self._coming = list(plan.performances)
        self._idle_s = [plan.lead_in_s]
        self._over = False

    @property
    def done(self) -> bool:
        """Whether the last script, the idle time after the last step, has begun."""
        return self._over

    def act(self, world: World) -> Script | None:
        """See `Cook`."""
        if self._idle_s:
            return idle_script(self._idle_s.pop())
        if not self._coming:
            if world.running or self._over:
                return None
            self._over = True
            return idle_script(self.plan.tail_s)
        coming = self._coming[0]
        if world.running and not coming.during:
            return None
        self._coming.pop(0)
        if self._coming:
            self._idle_s.append(self._coming[0].gap_s)
        return make_script(
            world,
            self.plan.dish[coming.node].act,
            name=coming.node,
            duration_s=coming.duration_s,
            mistake=coming.mistake,
            pause=coming.pause,
        )
