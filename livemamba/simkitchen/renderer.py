"""Pictures of the kitchen, a pure function of its state. No torch.

What matters is at least 8 px wide in a picture of 112 px (0.07 of its width): heaps, pieces, spoons, puddles,
flames, the timer's face.
"""

import math

import numpy as np
import numpy.typing as npt

from livemamba.errors import InputError
from livemamba.simkitchen import counter, food, utensils
from livemamba.simkitchen.drawing import Canvas, Pixels, oversampled
from livemamba.simkitchen.kitchens import Kitchen
from livemamba.simkitchen.world import World

LEAST_SIZE, LARGEST_SIZE = 32, 1024
_MARGIN = 0.12  # of the background beyond the picture, for the camera's drift


class Renderer:
    """Draws one kitchen at one size."""

    def __init__(self, kitchen: Kitchen, size: int) -> None:
        """Prepare what doesn't change.

        Args:
            kitchen: whose worlds will be drawn.
            size: width and height in pixels.

        Raises:
            InputError: if the size is out of range.
        """
        if not LEAST_SIZE <= size <= LARGEST_SIZE:
            raise InputError(f"picture size {size}; give {LEAST_SIZE} to {LARGEST_SIZE} pixels")
        self.kitchen, self.size = kitchen, size
        width = round(oversampled(size) * (1 + 2 * _MARGIN))
        self._counter = counter.counter_texture(kitchen, width)
        self._light = _light_field(kitchen, size)

    def draw(self, world: World) -> Pixels:
        """The picture at the world's moment, (size, size, 3) uint8 RGB."""
        canvas = self._canvas(world)
        counter.draw_stove(canvas, world)
        counter.draw_sink(canvas, world)
        food.draw_board(canvas, world)
        for name in ("pan", "plate", "bowl"):
            food.draw_vessel(canvas, world, name)
        food.draw_spills(canvas, world)
        food.draw_ingredients(canvas, world)
        utensils.draw_clutter(canvas, world)
        utensils.draw_tools(canvas, world)
        counter.draw_steam(canvas, world)
        utensils.draw_hands(canvas, world)
        pixels = canvas.pixels()
        flicker = 1.0 + 0.015 * math.sin(0.9 * world.time_s + self.kitchen.sway[5])
        lit = np.minimum(pixels * (self._light * np.float32(flicker)), 255).astype(np.uint8)
        return np.ascontiguousarray(lit[:, ::-1]) if self.kitchen.mirrored else lit

    def _canvas(self, world: World) -> Canvas:
        time_s, sway = world.time_s, self.kitchen.sway
        shift = (
            0.014 * math.sin(0.31 * time_s + sway[0]) + 0.006 * math.sin(1.1 * time_s + sway[1]),
            0.012 * math.sin(0.23 * time_s + sway[2]) + 0.005 * math.sin(0.9 * time_s + sway[3]),
        )
        width = oversampled(self.size)
        left, top = (round((_MARGIN - part) * width) for part in shift)
        background = self._counter.crop((left, top, left + width, top + width))
        angle = 0.02 * math.sin(0.17 * time_s + sway[4])
        zoom = 1.0 + 0.012 * math.sin(0.13 * time_s + sway[5])
        return Canvas(self.size, background, shift=shift, angle=angle, zoom=zoom)


def _light_field(kitchen: Kitchen, size: int) -> npt.NDArray[np.float32]:
    """Gains of each pixel and colour, (size, size, 3)."""
    places = np.linspace(-0.5, 0.5, size, dtype=np.float32)
    slope = np.cos(kitchen.light_from) * places[None, :] + np.sin(kitchen.light_from) * places[:, None]
    field = 1.0 + kitchen.light_slope * slope
    return np.asarray(field[..., None] * np.asarray(kitchen.light, dtype=np.float32), dtype=np.float32)
