"""A drawn picture that moves, to try the whole path without footage: a pan seen from above, filling and browning."""

from fractions import Fraction

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from livemamba.errors import InputError
from livemamba.ticks import TICKS_PER_SECOND
from livemamba.video.memory import FramesInMemory
from livemamba.video.sampling import Pixels

WIDTH, HEIGHT = 640, 360
LONGEST_S = 60.0


def make_test_card(seconds: float) -> FramesInMemory:
    """A source of drawn frames, one a tick, from 0 to `seconds`.

    Args:
        seconds: above 0, at most a minute; the pictures are held in memory.

    Raises:
        InputError: if it is out of range.
    """
    if not 0 < seconds <= LONGEST_S:
        raise InputError(f"test card of {seconds} s; give seconds above 0 and at most {LONGEST_S:g}")
    count = int(seconds * TICKS_PER_SECOND) + 1
    images = [_draw(index / (count - 1) if count > 1 else 0.0, index) for index in range(count)]
    return FramesInMemory(images, rate=Fraction(TICKS_PER_SECOND), name=f"testcard:{seconds:g}")


def _draw(progress: float, index: int) -> Pixels:
    """The counter at a share `progress` of the whole time."""
    image = Image.new("RGB", (WIDTH, HEIGHT), (196, 164, 124))
    draw = ImageDraw.Draw(image)
    for y in range(0, HEIGHT, 24):  # the counter's boards
        draw.line([(0, y), (WIDTH, y)], fill=(178, 146, 106), width=2)
    centre_x, centre_y, radius = 300, 190, 120
    draw.rounded_rectangle([centre_x + 100, centre_y - 14, WIDTH - 40, centre_y + 14], 12, fill=(60, 60, 66))
    _disc(draw, centre_x, centre_y, radius, (52, 54, 60))
    _disc(draw, centre_x, centre_y, radius - 12, (84, 86, 94))
    batter = min(1.0, progress * 2)
    if batter > 0:
        brown = max(0.0, progress * 2 - 1)
        colour = (int(246 - 90 * brown), int(226 - 130 * brown), int(168 - 120 * brown))
        _disc(draw, centre_x, centre_y, int(16 + 84 * batter), colour)
    draw.text(
        (16, 12), f"test card   {index / TICKS_PER_SECOND:4.1f} s", fill=(70, 50, 30), font=ImageFont.load_default(20)
    )
    return np.asarray(image)


def _disc(draw: ImageDraw.ImageDraw, x: int, y: int, radius: int, colour: tuple[int, int, int]) -> None:
    draw.ellipse([x - radius, y - radius, x + radius, y + radius], fill=colour)
