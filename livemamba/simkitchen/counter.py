"""The counter and what is built into it: stove, timer, sink; steam. Pictures only. No torch."""

import math

import numpy as np
from PIL import Image

from livemamba.simkitchen.drawing import Canvas, darker, lighter
from livemamba.simkitchen.goods import Colour
from livemamba.simkitchen.kitchens import PAN_R, Kitchen
from livemamba.simkitchen.world import BEATS_PER_S, World

_STOVE: Colour = (46, 48, 54)
_FLAMES: tuple[Colour, ...] = ((0, 0, 0), (60, 120, 250), (255, 150, 30), (255, 36, 24))
TIMER_R = 0.064
MINUTES_ON_FACE = 5


def counter_texture(kitchen: Kitchen, width: int) -> Image.Image:
    """The bare counter, width x width."""
    random = np.random.default_rng((0xC0, kitchen.number))
    y, x = np.mgrid[0:width, 0:width].astype(np.float32) / width
    match kitchen.pattern:
        case "wood":
            grain = np.sin(2 * np.pi * (9 * y + 0.5 * np.sin(5 * x + random.uniform(0, 6))))
            shade = 6 * grain + 5 * np.sin(2 * np.pi * 31 * y + 3 * x)
        case "tiles":
            tile = random.uniform(0.16, 0.26)
            joint = (np.mod(x, tile) < 0.012) | (np.mod(y, tile) < 0.012)
            shade = np.where(joint, -26.0, 4.0)
        case "speckle":
            coarse = random.normal(0, 1, (48, 48)).astype(np.float32)
            index = np.minimum((np.arange(width) * 48) // width, 47)
            shade = 9 * coarse[index][:, index]
        case "plain":
            shade = 8 * np.sin(2 * np.pi * (x * random.uniform(0.5, 1.5) + y))
    colour = np.asarray(kitchen.counter, dtype=np.float32)
    return Image.fromarray(np.clip(colour + shade[..., None], 0, 255).astype(np.uint8))


def draw_fixtures(canvas: Canvas, kitchen: Kitchen) -> None:
    """What is built in and never changes: the stove's plate, the sink, the timer's case."""
    x, y = kitchen.spots["pan"]
    canvas.box((x - 0.185, y - 0.2), (x + 0.18, y + 0.315), 0.02, _STOVE)
    canvas.ring((x, y), PAN_R + 0.03, 0.012, (86, 88, 96))
    x, y = kitchen.spots["sink"]
    canvas.box((x - 0.095, y - 0.115), (x + 0.095, y + 0.115), 0.03, (150, 156, 164))
    canvas.box((x - 0.08, y - 0.1), (x + 0.08, y + 0.1), 0.025, (96, 104, 114))
    canvas.line((x, y - 0.13), (x, y - 0.07), 0.03, (210, 214, 220))
    canvas.disc(kitchen.spots["timer"], TIMER_R + 0.006, (210, 212, 216))


def draw_stove(canvas: Canvas, world: World) -> None:
    """The stove's flame, its lamps and the timer."""
    level = world.level
    if level:
        canvas.disc(world.spot("pan"), PAN_R + 0.012 + 0.012 * level, _FLAMES[level])
    dial_x, dial_y = world.spot("dial")
    for number in range(1, 4):
        lamp_x = dial_x + 0.062 * (number - 2)
        colour = _FLAMES[level] if number <= level else (92, 94, 100)
        canvas.box((lamp_x - 0.026, dial_y - 0.04), (lamp_x + 0.026, dial_y + 0.04), 0.0, colour)
    _draw_timer(canvas, world)


def ring_blinks(world: World) -> bool | None:
    """Whether the ringing timer is lit just now; None while it doesn't ring."""
    return (world.beat // (BEATS_PER_S // 2)) % 2 == 0 if world.ringing else None


def _draw_timer(canvas: Canvas, world: World) -> None:
    at = world.spot("timer")
    if world.ringing:
        canvas.disc(at, TIMER_R + 0.024, (255, 230, 60))
    canvas.disc(at, TIMER_R, (255, 60, 40) if ring_blinks(world) else (250, 250, 250))
    canvas.pie(at, TIMER_R - 0.004, world.minutes / MINUTES_ON_FACE, (214, 30, 60))
    for mark in range(MINUTES_ON_FACE):
        angle = 2 * math.pi * mark / MINUTES_ON_FACE - math.pi / 2
        end = (at[0] + TIMER_R * math.cos(angle), at[1] + TIMER_R * math.sin(angle))
        canvas.thin_line(at, end, 0.006, (70, 70, 76))


def draw_tap(canvas: Canvas, world: World) -> None:
    """Water in the sink, while the tap runs."""
    if world.tap:
        x, y = world.spot("sink")
        canvas.disc((x, y + 0.01), 0.07, (120, 186, 236))
        canvas.line((x, y - 0.06), (x, y + 0.01), 0.024, (190, 226, 250))


def draw_steam(canvas: Canvas, world: World) -> None:
    """Steam over a hot pan; smoke once it burns."""
    brown = world.vessels["pan"].brown
    burnt = brown > 0.82
    if not world.level and not burnt:
        return
    x, y = world.spot("pan")
    colour, strength = ((40, 36, 34), 150) if burnt else ((244, 246, 250), 26 + 16 * world.level)
    for number in range(3):
        share = math.fmod(0.45 * world.time_s + number / 3, 1.0)
        at = (x + 0.05 * math.sin(5 * share + 2 * number), y + 0.06 - 0.16 * share)
        fading = round(strength * math.sin(math.pi * share))
        canvas.disc(at, 0.022 + 0.03 * share, (*colour, fading))


def shaded(canvas: Canvas, at: tuple[float, float], radius: float, colour: Colour, *, rim: float = 0.014) -> None:
    """A round dish: a shadow on the counter, a rim and a darker floor."""
    canvas.disc((at[0] + 0.008, at[1] + 0.01), radius, (0, 0, 0, 60))
    canvas.disc(at, radius, lighter(colour, 0.25))
    canvas.disc(at, radius - rim, darker(colour, 0.12))
