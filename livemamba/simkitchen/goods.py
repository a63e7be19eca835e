"""What can stand on the counter: powders, liquids, produce, vessels and tools, with their colours. No torch."""

from dataclasses import dataclass
from typing import Literal

from livemamba.errors import InputError

Colour = tuple[int, int, int]
Form = Literal["powder", "liquid", "produce"]


@dataclass(frozen=True, kw_only=True)
class Good:
    """An ingredient.

    Attributes:
        form: powders go by the spoon, liquids are poured, produce is washed, cut and put.
        colour: of the stuff itself; the same in every kitchen up to the light, as in real ones.
        inside: colour of a cut face; produce only.
        plural: for counts; produce only.
    """

    form: Form
    colour: Colour
    inside: Colour = (0, 0, 0)
    plural: str = ""


GOODS: dict[str, Good] = {
    "sugar": Good(form="powder", colour=(205, 152, 88)),
    "salt": Good(form="powder", colour=(248, 248, 250)),
    "flour": Good(form="powder", colour=(240, 222, 176)),
    "cocoa": Good(form="powder", colour=(88, 48, 28)),
    "pepper": Good(form="powder", colour=(54, 54, 58)),
    "paprika": Good(form="powder", colour=(206, 62, 22)),
    "herbs": Good(form="powder", colour=(60, 120, 48)),
    "milk": Good(form="liquid", colour=(250, 248, 240)),
    "water": Good(form="liquid", colour=(120, 190, 236)),
    "oil": Good(form="liquid", colour=(232, 196, 40)),
    "juice": Good(form="liquid", colour=(250, 140, 30)),
    "tomato": Good(form="produce", colour=(212, 40, 34), inside=(240, 112, 92), plural="tomatoes"),
    "cucumber": Good(form="produce", colour=(40, 112, 52), inside=(190, 224, 150), plural="cucumbers"),
    "banana": Good(form="produce", colour=(246, 212, 60), inside=(252, 240, 190), plural="bananas"),
    "onion": Good(form="produce", colour=(138, 50, 122), inside=(232, 206, 232), plural="onions"),
    "carrot": Good(form="produce", colour=(238, 124, 32), inside=(250, 170, 92), plural="carrots"),
    "mushroom": Good(form="produce", colour=(176, 142, 112), inside=(236, 222, 204), plural="mushrooms"),
    "egg": Good(form="produce", colour=(250, 236, 220), inside=(250, 190, 40), plural="eggs"),
}

VESSELS = ("bowl", "pan", "plate")
SPOONS = ("tablespoon", "teaspoon")
STIRRERS = ("whisk", "knife")
COVERS = ("lid", "cloth")
LEVELS = ("off", "low", "medium", "high")
SHARES = ("half", "all")
PIECES = (2, 4, 8)
MOST_SPOONS = 4
MOST_MINUTES = 5

TOOL_COLOURS: dict[str, Colour] = {
    "tablespoon": (36, 92, 200),
    "teaspoon": (236, 96, 28),
    "whisk": (196, 202, 210),
    "knife": (40, 40, 46),
    "lid": (92, 128, 150),
    "cloth": (196, 44, 60),
}


def good(name: str) -> Good:
    """The ingredient of a name.

    Raises:
        InputError: if there is none.
    """
    if name not in GOODS:
        raise InputError(f"no ingredient {name!r} in the kitchen; it knows {', '.join(GOODS)}")
    return GOODS[name]


def goods_of(form: Form) -> tuple[str, ...]:
    """Names of the ingredients of a form."""
    return tuple(name for name, item in GOODS.items() if item.form == form)
