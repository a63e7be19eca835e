"""A corpus of episodes: which are cooked, in which split, kitchen and with which seed. No torch."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from livemamba.errors import InputError
from livemamba.simkitchen.cooks import EpisodePlan, plan_episode, stream
from livemamba.simkitchen.menu import Dish, all_dishes, seen_dishes
from livemamba.simkitchen.pace import TIME_FACTOR, check_time_factor
from livemamba.simkitchen.rates import Rates, odds
from livemamba.simkitchen.variety import varied

SPLITS = ("train", "val", "test", "test_unseen")
"""As the split files of CaptainCook4D call them; the last one, with recipes and kitchens of its own, is ours."""

# Of all episodes; the real recordings are split 213, 62, 109.
_SHARES = {"train": 0.5, "val": 0.15, "test": 0.25, "test_unseen": 0.1}
# Kitchens (with the person who cooks there) of one split never occur in another, whatever the seed.
_KITCHENS = {"train": (1, 60), "val": (101, 20), "test": (201, 30), "test_unseen": (301, 20)}
_MANY_KITCHENS = (1000, 1_000_000)
"""Where recipes vary, kitchens do too: in training hardly two are the same."""


@dataclass(frozen=True, kw_only=True)
class CorpusSettings:
    """What a corpus follows from.

    Attributes:
        episodes: how many, over all splits.
        seed: of everything; episodes of two splits or seeds share nothing but, within a split, the kitchens.
        time_factor: by which the kitchen is faster than a real one.
        rates: of mistakes and the like.
        only: split in which all episodes are; empty for a share in each.
        varied: every episode has a recipe of its own (`variety`), so that an instruction alone tells nothing; in the
            train split also a kitchen of its own.
    """

    episodes: int
    seed: int = 0
    time_factor: float = TIME_FACTOR
    rates: Rates = field(default_factory=Rates)
    only: str = ""
    varied: bool = False

    def __post_init__(self) -> None:
        if self.episodes < 1:
            raise InputError(f"{self.episodes} episodes; give at least 1")
        if self.seed < 0:
            raise InputError(f"seed {self.seed}; give a whole number from 0")
        if self.only and self.only not in SPLITS:
            raise InputError(f"split {self.only!r} is not one of {', '.join(SPLITS)}")
        check_time_factor(self.time_factor)


@dataclass(frozen=True, kw_only=True)
class Planned:
    """An episode of a corpus.

    Attributes:
        id: recording id, activity and number: "2_17".
        split: one of `SPLITS`.
        plan: what happens.
    """

    id: str
    split: str
    plan: EpisodePlan


def plan_corpus(settings: CorpusSettings) -> tuple[Planned, ...]:
    """Every episode of a corpus, in order of splits.

    Raises:
        InputError: if the rates can't be reached.
    """
    planned: list[Planned] = []
    numbers: dict[int, int] = {}
    for split, count in split_sizes(settings).items():
        dishes = _dishes(split)
        chances = odds(settings.rates, dishes)
        if settings.varied:
            dishes = _variants(dishes, settings.seed, split, count, first=len(planned))
        first, many = _KITCHENS[split]
        if settings.varied and split == "train":
            first, many = _MANY_KITCHENS
        for index in range(count):
            dish = dishes[index % len(dishes)]
            key = (settings.seed, SPLITS.index(split), index)
            kitchen = first + int(stream(key, "kitchen").integers(many))
            numbers[dish.activity_id] = numbers.get(dish.activity_id, 0) + 1
            plan = plan_episode(dish, kitchen, key, chances, settings.time_factor)
            planned.append(Planned(id=f"{dish.activity_id}_{numbers[dish.activity_id]}", split=split, plan=plan))
    return tuple(planned)


def _dishes(split: str) -> Sequence[Dish]:
    return seen_dishes() if split != "test_unseen" else tuple(dish for dish in all_dishes() if dish.unseen)


def _variants(dishes: Sequence[Dish], seed: int, split: str, count: int, *, first: int) -> Sequence[Dish]:
    return tuple(
        varied(dishes[index % len(dishes)], first + index, stream((seed, SPLITS.index(split), index), "variant"))
        for index in range(count)
    )


def split_sizes(settings: CorpusSettings) -> Mapping[str, int]:
    """How many episodes each split gets: the asked shares, rounded so that they sum up; train first."""
    if settings.only:
        return {split: settings.episodes if split == settings.only else 0 for split in SPLITS}
    exact = {split: share * settings.episodes for split, share in _SHARES.items()}
    sizes = {split: int(value) for split, value in exact.items()}
    by_rest = sorted(SPLITS, key=lambda split: (sizes[split] - exact[split], SPLITS.index(split)))
    for split in by_rest[: settings.episodes - sum(sizes.values())]:
        sizes[split] += 1
    return sizes
