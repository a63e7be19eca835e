"""Pictures of the kitchen, a pure function of its state. No torch.

What matters is at least 8 px wide in a picture of 112 px (0.07 of its width): heaps, pieces, spoons, puddles,
flames, the timer's face.
"""

import math

import numpy as np
import numpy.typing as npt
from PIL import Image

from livemamba.errors import InputError
from livemamba.simkitchen import counter, food, utensils
from livemamba.simkitchen.drawing import Canvas, Pixels, Pose, oversampled
from livemamba.simkitchen.kitchens import Kitchen, Point
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
        check_size(size)
        self.kitchen, self.size = kitchen, size
        self._width = oversampled(size)
        self._pose = Pose(angle=kitchen.camera_angle, zoom=kitchen.camera_zoom)
        self._light = _light_field(kitchen, size)
        self._lights: dict[int, npt.NDArray[np.uint16]] = {}
        self._counter = counter.counter_texture(kitchen, round(self._width * (1 + 2 * _MARGIN)))
        fixtures = Canvas(size, self._counter, pose=self._pose, shift=(_MARGIN, _MARGIN))
        counter.draw_fixtures(fixtures, kitchen)
        # Layers that stay as they are for a while are kept; the picture depends on the state alone all the same.
        self._still: tuple[object, Image.Image] | None = None
        self._scene: tuple[object, Image.Image] | None = None

    def draw(self, world: World) -> Pixels:
        """The picture at the world's moment, (size, size, 3) uint8 RGB."""
        shift = self._sway(world.time_s)
        left, top = (round((_MARGIN - part) * self._width) for part in shift)
        image = self._scene_without_hands(world).crop((left, top, left + self._width, top + self._width))
        canvas = Canvas(self.size, image, pose=self._pose, shift=shift)
        counter.draw_steam(canvas, world)
        utensils.draw_hands(canvas, world)
        pixels = canvas.pixels()
        lit = np.minimum((pixels * self._gains(world.time_s)) >> 7, 255).astype(np.uint8)
        return np.ascontiguousarray(lit[:, ::-1]) if self.kitchen.mirrored else lit

    def _scene_without_hands(self, world: World) -> Image.Image:
        blink = counter.ring_blinks(world)
        signature = repr(
            (world.vessels, world.items, world.jugs, world.spills, world.level, world.minutes, world.tap, blink)
        )
        key = (world.right.holding, signature)
        if self._scene is None or self._scene[0] != key:
            image = self._still_things(world).copy()
            canvas = Canvas(self.size, image, pose=self._pose, shift=(_MARGIN, _MARGIN))
            counter.draw_stove(canvas, world)
            counter.draw_tap(canvas, world)
            food.draw_board(canvas, world)
            for name in ("pan", "plate", "bowl"):
                food.draw_vessel(canvas, world, name)
            food.draw_spills(canvas, world)
            self._scene = (key, image)
        return self._scene[1]

    def _still_things(self, world: World) -> Image.Image:
        key = (world.right.holding, food.still_state(world), utensils.still_state(world))
        if self._still is None or self._still[0] != key:
            image = self._counter.copy()
            canvas = Canvas(self.size, image, pose=self._pose, shift=(_MARGIN, _MARGIN))
            food.draw_ingredients(canvas, world)
            utensils.draw_clutter(canvas, world)
            utensils.draw_tools(canvas, world)
            self._still = (key, image)
        return self._still[1]

    def _gains(self, time_s: float) -> npt.NDArray[np.uint16]:
        """The light with its flicker, which has few steps: gains of each pixel and colour, in parts of 128."""
        flicker = round(256 * 0.015 * math.sin(0.9 * time_s + self.kitchen.sway[5]))
        if flicker not in self._lights:
            # At most 2 times as bright, so that products with 255 fit into 16 bits.
            gains = np.clip(128 * self._light * (1 + flicker / 256), 0, 256)
            self._lights[flicker] = np.round(gains).astype(np.uint16)
        return self._lights[flicker]

    def _sway(self, time_s: float) -> Point:
        """The camera's drift, in whole pixels of the canvas, so that all layers move as one."""
        sway = self.kitchen.sway
        x = 0.016 * math.sin(0.31 * time_s + sway[0]) + 0.008 * math.sin(1.1 * time_s + sway[1])
        y = 0.014 * math.sin(0.23 * time_s + sway[2]) + 0.007 * math.sin(0.9 * time_s + sway[3])
        return round(x * self._width) / self._width, round(y * self._width) / self._width


def check_size(size: int) -> None:
    """Refuse sizes that can't be drawn, or become videos.

    Raises:
        InputError: if the size is out of range, or odd.
    """
    if not LEAST_SIZE <= size <= LARGEST_SIZE or size % 2:
        raise InputError(f"picture size {size}; give an even number from {LEAST_SIZE} to {LARGEST_SIZE}")


def _light_field(kitchen: Kitchen, size: int) -> npt.NDArray[np.float64]:
    """Gains of each pixel and colour, (size, size, 3)."""
    places = np.linspace(-0.5, 0.5, size)
    slope = np.cos(kitchen.light_from) * places[None, :] + np.sin(kitchen.light_from) * places[:, None]
    field = 1.0 + kitchen.light_slope * slope
    return np.asarray(field[..., None] * np.asarray(kitchen.light), dtype=np.float64)
