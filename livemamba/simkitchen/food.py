"""Ingredients at their places, on the board, in vessels and beside them. Pictures only. No torch."""

import itertools
import math

from livemamba.simkitchen.counter import shaded
from livemamba.simkitchen.drawing import Canvas, blend, darker, lighter
from livemamba.simkitchen.goods import Colour, good
from livemamba.simkitchen.kitchens import BOARD, BOWL_R, PAN_R, PLATE_R, SLOT_R, Point
from livemamba.simkitchen.world import WHOLE, Portion, Rect, Vessel, World

_RADIUS = {"bowl": BOWL_R, "pan": PAN_R, "plate": PLATE_R, "board": 0.14}
_HEAP_R = {"tablespoon": 0.054, "teaspoon": 0.036}
_AMOUNT = {"tablespoon": 1.0, "teaspoon": 0.5, "liquid": 4.0, "piece": 0.0}
_LONG = ("cucumber", "banana", "carrot")
_SOIL: Colour = (84, 58, 36)
_SOIL_SPOTS: tuple[Point, ...] = ((-0.4, -0.25), (0.45, 0.2), (0.05, 0.5), (0.2, -0.55))
_BROWN: Colour = (122, 66, 22)
_BURNT: Colour = (22, 16, 14)


def draw_board(canvas: Canvas, world: World) -> None:
    """The board with what is cut on it, or was served onto it."""
    x, y = world.spot("board")
    width, depth = BOARD
    left, top = x - width / 2, y - depth / 2
    canvas.box((left + 0.008, top + 0.01), (left + width + 0.008, top + depth + 0.01), 0.02, (0, 0, 0, 60))
    canvas.box((left, top), (left + width, top + depth), 0.02, world.kitchen.board)
    for name, item in world.items.items():
        if item.where == "board":
            draw_produce(canvas, name, (x, y), item.pieces, width=0.31, depth=0.24, dirty=item.dirty)
    _draw_contents(canvas, world.vessels["board"], (x, y), _RADIUS["board"])


def draw_vessel(canvas: Canvas, world: World, name: str) -> None:
    """Bowl, pan or plate with its contents."""
    at, radius, vessel = world.spot(name), _RADIUS[name], world.vessels[name]
    if name == "pan":
        canvas.line((at[0] - 0.1, at[1] + 0.1), (at[0] - 0.165, at[1] + 0.165), 0.035, (24, 24, 28))
        shaded(canvas, at, radius, (64, 66, 72))
    else:
        colour = world.kitchen.vessel if name == "bowl" else world.kitchen.plate
        shaded(canvas, at, radius, colour, rim=0.018 if name == "bowl" else 0.03)
    _draw_contents(canvas, vessel, at, radius - 0.02)
    if vessel.cover:
        draw_cover(canvas, vessel.cover, cover_place(at, vessel), radius)


def cover_place(at: Point, vessel: Vessel) -> Point:
    """Where the cover of a vessel lies: off its middle if it is askew."""
    return (at[0] + 0.085, at[1] - 0.075) if vessel.cover_askew else at


def draw_cover(canvas: Canvas, cover: str, at: Point, radius: float) -> None:
    """A lid with its knob, or a chequered cloth."""
    x, y = at
    if cover == "lid":
        canvas.disc((x + 0.008, y + 0.01), radius, (0, 0, 0, 70))
        canvas.disc(at, radius, (92, 128, 150))
        canvas.ring(at, radius - 0.02, 0.01, (150, 180, 196))
        canvas.disc(at, 0.036, (30, 34, 40))
        return
    r = radius * 0.95
    canvas.box((x - r, y - r), (x + r, y + r), 0.01, (240, 236, 232))
    step = 2 * r / 4
    for row in range(4):
        for column in range(row % 2, 4, 2):
            corner = (x - r + column * step, y - r + row * step)
            canvas.box(corner, (corner[0] + step, corner[1] + step), 0.0, (196, 44, 60))


def _draw_contents(canvas: Canvas, vessel: Vessel, at: Point, radius: float) -> None:
    """All that is in a vessel: what is one, what was poured, heaps, produce."""
    if not vessel.portions:
        return
    loose = [portion for portion in vessel.portions if portion.form != "piece"]
    pieces = [portion for portion in vessel.portions if portion.form == "piece"]
    scale = math.sqrt(vessel.scale)
    before = [portion for portion in vessel.portions[: vessel.mixed_before] if portion.form != "piece"]
    fresh = [portion for portion in vessel.portions[vessel.mixed_before :] if portion.form != "piece"]
    if loose:
        _draw_mixture(canvas, vessel, before, loose, at, radius * scale)
        _draw_fresh(canvas, vessel, fresh, loose, at, radius * scale)
    for number, portion in enumerate(pieces):
        _draw_piece(canvas, vessel, portion, at, radius, number, len(pieces))


def _draw_mixture(
    canvas: Canvas, vessel: Vessel, before: list[Portion], loose: list[Portion], at: Point, radius: float
) -> None:
    whole = _mean(loose)
    colour = _browned(blend(_mean(before), whole, vessel.mixed) if before else whole, vessel.brown)
    mixed_r = radius * (_spread(before) + vessel.mixed * (_spread(loose) - _spread(before)))
    if mixed_r <= 0:
        return
    canvas.disc(at, mixed_r, darker(colour, 0.14))
    canvas.disc(at, mixed_r * 0.93, colour)
    turns = vessel.mixed if vessel.mixed < 1 else 1.0
    for arm in range(3):  # the whisk's trace
        angle = 2.1 * arm + 9 * turns
        points = [
            (at[0] + mixed_r * part * math.cos(angle + 3 * part), at[1] + mixed_r * part * math.sin(angle + 3 * part))
            for part in (0.25, 0.45, 0.65)
        ]
        for start, end in itertools.pairwise(points):
            canvas.line(start, end, 0.014, lighter(colour, 0.3))


def _draw_fresh(
    canvas: Canvas, vessel: Vessel, fresh: list[Portion], loose: list[Portion], at: Point, radius: float
) -> None:
    whole = _mean(loose)
    poured: dict[str, float] = {}
    for portion in fresh:
        if portion.form == "liquid":
            poured[portion.what] = poured.get(portion.what, 0.0) + portion.size
    for what, amount in poured.items():
        colour = _browned(blend(good(what).colour, whole, vessel.mixed), vessel.brown)
        spread = radius * 0.97 * amount**0.6 * (1 - vessel.mixed)
        canvas.disc(at, spread, darker(colour, 0.18))
        canvas.disc(at, spread - 0.012, colour)
    heaps = [portion for portion in fresh if portion.form in _HEAP_R]
    for number, portion in enumerate(heaps):
        colour = _browned(blend(good(portion.what).colour, whole, vessel.mixed), vessel.brown)
        draw_heap(
            canvas, _heap_place(at, number, radius), _HEAP_R[portion.form] * portion.size * (1 - vessel.mixed), colour
        )


def draw_heap(canvas: Canvas, at: Point, radius: float, colour: Colour) -> None:
    """A spoonful of powder."""
    canvas.disc(at, radius, darker(colour, 0.35))
    canvas.disc((at[0] - 0.003, at[1] - 0.003), radius - 0.007, colour)
    canvas.disc((at[0] - 0.25 * radius, at[1] - 0.25 * radius), radius * 0.35, lighter(colour, 0.3))


def _heap_place(at: Point, number: int, radius: float) -> Point:
    """Heaps lie in a ring, four of them apart, further ones between."""
    angle = math.pi * (0.25 + 0.5 * number + (0.25 if number >= 4 else 0.0))
    reach = 0.6 * radius
    return at[0] + reach * math.cos(angle), at[1] + reach * math.sin(angle)


def _draw_piece(
    canvas: Canvas, vessel: Vessel, portion: Portion, at: Point, radius: float, number: int, count: int
) -> None:
    if vessel.scale < 1 and number >= math.ceil(count * vessel.scale):
        return
    colour_share = vessel.brown
    angle = 2.4 * number + 0.9
    reach = 0.0 if count == 1 else 0.52 * radius
    place = (at[0] + reach * math.cos(angle), at[1] + reach * math.sin(angle))
    size = 0.15 if portion.pieces == WHOLE else 0.19
    draw_produce(
        canvas, portion.what, place, portion.pieces, width=size, depth=size * 0.8, dirty=0.0, brown=colour_share
    )


def _mean(portions: list[Portion]) -> Colour:
    weights = [_AMOUNT[portion.form] * max(portion.size, 1e-3) for portion in portions]
    total = sum(weights)
    parts = [
        sum(weight * good(portion.what).colour[channel] for weight, portion in zip(weights, portions, strict=True))
        for channel in range(3)
    ]
    red, green, blue = (round(part / total) for part in parts)
    return red, green, blue


def _spread(portions: list[Portion]) -> float:
    amount = sum(_AMOUNT[portion.form] * portion.size for portion in portions)
    return min(1.0, 0.4 + 0.6 * amount / 8) if amount else 0.0


def _browned(colour: Colour, brown: float) -> Colour:
    if brown <= 0.8:
        return blend(colour, _BROWN, 0.9 * brown)
    return blend(blend(colour, _BROWN, 0.72), _BURNT, 5 * (brown - 0.8))


def draw_produce(
    canvas: Canvas,
    name: str,
    at: Point,
    pieces: tuple[Rect, ...],
    *,
    width: float,
    depth: float,
    dirty: float,
    brown: float = 0.0,
) -> None:
    """Produce, whole or cut, inside a rectangle around a place."""
    item = good(name)
    skin = _browned(item.colour, brown)
    if pieces == WHOLE:
        _draw_whole(canvas, name, at, width, depth, skin, dirty)
        return
    inside = _browned(item.inside, brown)
    left, top = at[0] - width / 2, at[1] - depth / 2
    gap = 0.008 if width < 0.25 else 0.013
    for x0, y0, x1, y1 in pieces:
        corner = (left + x0 * width + gap, top + y0 * depth + gap)
        opposite = (left + x1 * width - gap, top + y1 * depth - gap)
        canvas.box(corner, opposite, 0.014, darker(skin, 0.15))
        edge = 0.012
        canvas.box((corner[0] + edge, corner[1] + edge), (opposite[0] - edge, opposite[1] - edge), 0.01, inside)


def _draw_whole(canvas: Canvas, name: str, at: Point, width: float, depth: float, skin: Colour, dirty: float) -> None:
    radius_x = width / 2 if name in _LONG else min(width, depth) / 2
    radius_y = min(depth / 2, width * 0.2) if name in _LONG else min(width, depth) / 2
    if name == "egg":
        radius_x *= 0.76
    canvas.oval((at[0] + 0.006, at[1] + 0.008), radius_x, radius_y, (0, 0, 0, 60))
    canvas.oval(at, radius_x, radius_y, darker(skin, 0.25))
    canvas.oval(at, radius_x - 0.008, radius_y - 0.008, skin)
    canvas.oval((at[0] - 0.3 * radius_x, at[1] - 0.35 * radius_y), 0.3 * radius_x, 0.2 * radius_y, lighter(skin))
    if dirty > 0:
        for dx, dy in _SOIL_SPOTS:
            spot_r = 0.34 * min(radius_x, 1.4 * radius_y) * math.sqrt(dirty)
            canvas.disc((at[0] + dx * radius_x, at[1] + dy * radius_y), spot_r, _SOIL)


def draw_spills(canvas: Canvas, world: World) -> None:
    """What lies on the counter beside its vessel."""
    for spill in world.spills:
        if spill.form == "produce":
            draw_produce(canvas, spill.what, spill.at, WHOLE, width=0.12, depth=0.1, dirty=0.0)
            continue
        item = good(spill.what)
        colour = item.inside if item.form == "produce" else item.colour
        x, y = spill.at
        for dx, dy, part in ((0.0, 0.0, 1.0), (0.055, 0.012, 0.6), (-0.05, 0.02, 0.55), (0.02, -0.04, 0.5)):
            at, radius = (x + dx * spill.size, y + dy * spill.size), 0.058 * part * spill.size
            canvas.disc(at, radius + 0.006 * spill.size, darker(colour, 0.4))
        for dx, dy, part in ((0.0, 0.0, 1.0), (0.055, 0.012, 0.6), (-0.05, 0.02, 0.55), (0.02, -0.04, 0.5)):
            canvas.disc((x + dx * spill.size, y + dy * spill.size), 0.058 * part * spill.size, colour)


def still_state(world: World) -> tuple[object, ...]:
    """All that `draw_ingredients` depends on, besides what is in the hand."""
    jugs = tuple(full for name, full in world.jugs.items() if name != world.right.holding)
    return jugs, tuple((item.pieces, item.dirty) if item.where == "home" else None for item in world.items.values())


def draw_ingredients(canvas: Canvas, world: World) -> None:
    """Jars, jugs and produce at their places, but what is in a hand."""
    for name in world.kitchen.goods:
        at, item = world.spot(name), good(name)
        if item.form == "powder":
            draw_jar(canvas, at, item.colour)
        elif item.form == "liquid" and world.right.holding != name:
            draw_jug(canvas, at, item.colour, world.jugs[name])
        elif item.form == "produce":
            _draw_pile(canvas, world, name, at)


def draw_jar(canvas: Canvas, at: Point, colour: Colour) -> None:
    """An open square jar of powder."""
    x, y = at
    canvas.box((x - SLOT_R, y - SLOT_R), (x + SLOT_R, y + SLOT_R), 0.02, (232, 236, 240))
    inner = SLOT_R - 0.012
    canvas.box((x - inner, y - inner), (x + inner, y + inner), 0.016, darker(colour, 0.2))
    canvas.disc((x - 0.004, y - 0.004), inner - 0.006, colour)


def draw_jug(canvas: Canvas, at: Point, colour: Colour, full: float) -> None:
    """A round jug with a spout and a handle, seen into."""
    x, y = at
    canvas.line((x + 0.03, y), (x + 0.075, y), 0.022, (186, 192, 200))
    canvas.polygon([(x - 0.04, y - 0.03), (x - 0.04, y + 0.03), (x - 0.078, y)], (206, 212, 220))
    canvas.disc(at, SLOT_R, (206, 212, 220))
    canvas.disc(at, SLOT_R - 0.012, (112, 118, 126))
    canvas.disc(at, (SLOT_R - 0.012) * (0.4 + 0.6 * full) if full > 0 else 0.0, colour)


def _draw_pile(canvas: Canvas, world: World, name: str, at: Point) -> None:
    """Produce on a dish: some in reserve, and in front the one that is worked on, while it is at home."""
    canvas.disc(at, SLOT_R + 0.006, (198, 190, 176))
    x, y = at
    item = world.items[name]
    draw_produce(canvas, name, (x + 0.018, y - 0.022), WHOLE, width=0.08, depth=0.07, dirty=0.0)
    if item.where == "home":
        draw_produce(canvas, name, (x - 0.01, y + 0.014), item.pieces, width=0.09, depth=0.08, dirty=item.dirty)
