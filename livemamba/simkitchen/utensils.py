"""Tools, hands and what lies about. Pictures only. No torch."""

import math

from livemamba.simkitchen.drawing import Canvas, darker, lighter
from livemamba.simkitchen.food import draw_cover, draw_jug, draw_produce
from livemamba.simkitchen.goods import GOODS, SPOONS, TOOL_COLOURS, good
from livemamba.simkitchen.kitchens import Point
from livemamba.simkitchen.world import Hand, World

_LENGTH = 0.15
_LONG_TOOLS = (*SPOONS, "whisk", "knife")
_HEADS = {"tablespoon": (0.044, 0.05), "teaspoon": (0.027, 0.032)}


def still_state(world: World) -> tuple[object, ...]:
    """All that `draw_tools` depends on, besides what is in the hand."""
    return tuple(vessel.cover for vessel in world.vessels.values())


def draw_tools(canvas: Canvas, world: World) -> None:
    """The tools that lie at their places."""
    for tool in _LONG_TOOLS:
        if world.right.holding != tool:
            _draw_tool(canvas, tool, world.spot(tool), loaded="")
    in_use = {vessel.cover for vessel in world.vessels.values()} | {world.right.holding}
    for cover in ("lid", "cloth"):
        if cover not in in_use:
            draw_cover(canvas, cover, world.spot(cover), 0.085)


def _draw_tool(canvas: Canvas, tool: str, tip: Point, *, loaded: str) -> None:
    x, y = tip
    colour = TOOL_COLOURS[tool]
    grip = (x, y + _LENGTH)
    if tool in _HEADS:
        wide, deep = _HEADS[tool]
        canvas.line((x, y + deep * 0.6), grip, 0.024 if tool == "tablespoon" else 0.018, colour)
        canvas.oval(tip, wide, deep, darker(colour, 0.2))
        canvas.oval(tip, wide - 0.009, deep - 0.009, lighter(colour, 0.45))
        if loaded:
            stuff = good(loaded).colour
            canvas.oval(tip, wide * 0.95, deep * 0.9, darker(stuff, 0.3))
            canvas.oval(tip, wide * 0.95 - 0.007, deep * 0.9 - 0.007, stuff)
    elif tool == "whisk":
        canvas.line((x, y + 0.03), grip, 0.022, darker(colour, 0.35))
        canvas.oval(tip, 0.034, 0.05, colour)
        canvas.oval(tip, 0.02, 0.036, darker(colour, 0.5))
        canvas.line((x, y - 0.04), (x, y + 0.04), 0.008, lighter(colour))
    else:
        canvas.line((x, y + 0.06), grip, 0.03, colour)
        canvas.polygon(
            [(x - 0.022, y - 0.06), (x + 0.024, y - 0.03), (x + 0.024, y + 0.07), (x - 0.022, y + 0.07)],
            (218, 222, 228),
        )


def draw_clutter(canvas: Canvas, world: World) -> None:
    """Things that mean nothing."""
    for kind, (x, y) in world.kitchen.clutter:
        if kind == "phone":
            canvas.box((x - 0.035, y - 0.06), (x + 0.035, y + 0.06), 0.012, (26, 28, 34))
            canvas.box((x - 0.028, y - 0.05), (x + 0.028, y + 0.05), 0.006, (70, 96, 130))
        elif kind == "cup":
            canvas.line((x, y), (x + 0.06, y), 0.02, (228, 226, 220))
            canvas.disc((x, y), 0.045, (228, 226, 220))
            canvas.disc((x, y), 0.035, (74, 46, 28))
        elif kind == "napkin":
            canvas.polygon(
                [(x - 0.05, y - 0.03), (x + 0.04, y - 0.05), (x + 0.05, y + 0.04), (x - 0.04, y + 0.05)],
                (236, 232, 222),
            )
        else:
            canvas.ring((x, y), 0.03, 0.01, (190, 170, 90))
            canvas.line((x + 0.02, y + 0.02), (x + 0.055, y + 0.05), 0.016, (176, 178, 184))


def draw_hands(canvas: Canvas, world: World) -> None:
    """Both hands, and what the right one holds."""
    _draw_hand(canvas, world, world.left, right=False, grip=0.02)
    hand = world.right
    grip = _draw_held(canvas, world, hand)
    _draw_hand(canvas, world, hand, right=True, grip=grip)


def _draw_held(canvas: Canvas, world: World, hand: Hand) -> float:
    """What a hand holds; returns how far below its tip the fingers are."""
    x, y = hand.at
    if hand.holding in _LONG_TOOLS:
        _draw_tool(canvas, hand.holding, hand.at, loaded=hand.loaded)
        if hand.tilt and hand.loaded:
            canvas.disc((x, y + 0.01), 0.026, good(hand.loaded).colour)
        return 0.14
    if hand.holding in ("lid", "cloth"):
        draw_cover(canvas, hand.holding, hand.at, 0.085)
        return 0.07
    if hand.holding in GOODS and good(hand.holding).form == "liquid":
        _draw_pouring(canvas, world, hand)
        return 0.13
    if hand.holding in world.items:
        item = world.items[hand.holding]
        draw_produce(canvas, hand.holding, hand.at, item.pieces, width=0.14, depth=0.12, dirty=item.dirty)
        return 0.06
    if hand.loaded == "food":
        canvas.disc(hand.at, 0.05, (190, 140, 80))
        canvas.disc(hand.at, 0.04, (214, 168, 104))
        return 0.06
    for name, item in world.items.items():
        if item.where == "sink":
            draw_produce(canvas, name, world.spot("sink"), item.pieces, width=0.14, depth=0.12, dirty=item.dirty)
            return 0.07
    return 0.03


def _draw_pouring(canvas: Canvas, world: World, hand: Hand) -> None:
    (x, y), colour = hand.at, good(hand.holding).colour
    if hand.tilt > 0:
        canvas.line((x, y), (x + 0.03, y + 0.06), 0.03 * hand.tilt, darker(colour, 0.1))
    draw_jug(canvas, (x + 0.06 * hand.tilt, y + 0.07), colour, world.jugs[hand.holding])


def _draw_hand(canvas: Canvas, world: World, hand: Hand, *, right: bool, grip: float) -> None:
    """Sleeve, forearm, palm, fingers; a little tremor, so that a resting hand is not a still."""
    side = 1 if right else -1
    tremor = 0.003 * math.sin(2.3 * world.time_s + side)
    x, y = hand.at[0] + tremor, hand.at[1] + grip
    skin, sleeve = world.kitchen.skin, world.kitchen.sleeve
    palm = (x + 0.012 * side, y + 0.055)
    elbow = (0.5 + 0.28 * side + 0.3 * (x - 0.5), 1.45)
    length = math.dist(palm, elbow)
    wrist = (palm[0] + 0.12 * (elbow[0] - palm[0]) / length, palm[1] + 0.12 * (elbow[1] - palm[1]) / length)
    canvas.line(wrist, elbow, 0.105, sleeve)
    canvas.line(palm, wrist, 0.07, darker(skin, 0.06))
    for number, spread in enumerate((-0.04, -0.014, 0.013, 0.038)):
        knuckle = (palm[0] + spread, palm[1] - 0.02)
        tip_y = y - (0.0, 0.012, 0.01, -0.004)[number]
        canvas.line(knuckle, (x + spread * 0.7, tip_y), 0.023, darker(skin, 0.12))
    canvas.disc(palm, 0.05, skin)
    thumb = (palm[0] - 0.055 * side, palm[1] - 0.03)
    canvas.line((palm[0] - 0.03 * side, palm[1] + 0.01), thumb, 0.024, darker(skin, 0.06))
