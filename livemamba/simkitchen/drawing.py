"""Shapes with soft edges: drawn larger than wanted, through a camera that drifts, then averaged down. No torch."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw

from livemamba.simkitchen.goods import Colour
from livemamba.simkitchen.kitchens import Point

Pixels = npt.NDArray[np.uint8]
_LEAST_CANVAS = 336


@dataclass(frozen=True, kw_only=True)
class Pose:
    """How a camera is held: turned by an angle in radians, and near or far (1: the counter fills the picture)."""

    angle: float
    zoom: float


class Canvas:
    """A square picture under work.

    Lengths and places are shares of its width; colours RGB, with a fourth value for what shines through.
    """

    def __init__(self, size: int, image: Image.Image, *, pose: "Pose", shift: Point) -> None:
        """Begin with a picture, which is drawn upon.

        Args:
            size: pixels of the finished picture.
            image: `oversampled(size)` pixels to a length of 1.
            pose: of the camera.
            shift: where the picture of the counter's corner lies on the image.
        """
        self.size = size
        self._width = oversampled(size)
        self._image = image
        self._draw = ImageDraw.Draw(self._image, "RGBA")
        self._cos, self._sin = pose.zoom * math.cos(pose.angle), pose.zoom * math.sin(pose.angle)
        self._shift = (0.5 + shift[0], 0.5 + shift[1])
        self._zoom = pose.zoom * self._width

    def place(self, at: Point) -> Point:
        """Where a place of the counter lies on the canvas, in its pixels."""
        x, y = at[0] - 0.5, at[1] - 0.5
        return (
            (self._shift[0] + self._cos * x - self._sin * y) * self._width,
            (self._shift[1] + self._sin * x + self._cos * y) * self._width,
        )

    def disc(self, at: Point, radius: float, colour: Sequence[int]) -> None:
        """A filled circle."""
        self.oval(at, radius, radius, colour)

    def oval(self, at: Point, radius_x: float, radius_y: float, colour: Sequence[int]) -> None:
        """A filled ellipse along the axes."""
        if radius_x <= 0 or radius_y <= 0:
            return
        x, y = self.place(at)
        rx, ry = radius_x * self._zoom, radius_y * self._zoom
        self._draw.ellipse((x - rx, y - ry, x + rx, y + ry), fill=tuple(colour))

    def ring(self, at: Point, radius: float, width: float, colour: Sequence[int]) -> None:
        """A circle's outline, inside the radius."""
        x, y = self.place(at)
        r = radius * self._zoom
        self._draw.ellipse((x - r, y - r, x + r, y + r), outline=tuple(colour), width=max(1, round(width * self._zoom)))

    def pie(self, at: Point, radius: float, share: float, colour: Sequence[int]) -> None:
        """A share of a circle, clockwise from the top."""
        if share <= 0:
            return
        x, y = self.place(at)
        r = radius * self._zoom
        self._draw.pieslice((x - r, y - r, x + r, y + r), -90, -90 + 360 * share, fill=tuple(colour))

    def line(self, start: Point, end: Point, width: float, colour: Sequence[int]) -> None:
        """A line with round ends."""
        self.thin_line(start, end, width, colour)
        r = width * self._zoom / 2
        for x, y in (self.place(start), self.place(end)):
            self._draw.ellipse((x - r, y - r, x + r, y + r), fill=tuple(colour))

    def thin_line(self, start: Point, end: Point, width: float, colour: Sequence[int]) -> None:
        """A line with plain ends."""
        ends = [self.place(start), self.place(end)]
        self._draw.line(ends, fill=tuple(colour), width=max(1, round(width * self._zoom)))

    def polygon(self, points: Sequence[Point], colour: Sequence[int]) -> None:
        """A filled polygon."""
        self._draw.polygon([self.place(point) for point in points], fill=tuple(colour))

    def box(self, corner: Point, opposite: Point, radius: float, colour: Sequence[int]) -> None:
        """A filled rectangle with round corners."""
        (x0, y0), (x1, y1) = self.place(corner), self.place(opposite)
        if x1 <= x0 or y1 <= y0:
            return
        if radius == 0:
            self._draw.rectangle((x0, y0, x1, y1), fill=tuple(colour))
            return
        self._draw.rounded_rectangle((x0, y0, x1, y1), radius * self._zoom, fill=tuple(colour))

    def pixels(self) -> Pixels:
        """The finished picture, (size, size, 3)."""
        factor = self._width // self.size
        image = self._image.reduce(factor) if factor > 1 else self._image
        return np.asarray(image)


def oversampled(size: int) -> int:
    """Pixels of the canvas for a picture of a size: at least twice as many."""
    return size * max(2, round(_LEAST_CANVAS / size))


@lru_cache(maxsize=4096)
def blend(one: Colour, other: Colour, share: float) -> Colour:
    """A colour between two."""
    share = min(1.0, max(0.0, share))
    red, green, blue = (round(a + share * (b - a)) for a, b in zip(one, other, strict=True))
    return red, green, blue


def darker(colour: Colour, by: float = 0.25) -> Colour:
    """A colour nearer to black."""
    return blend(colour, (0, 0, 0), by)


def lighter(colour: Colour, by: float = 0.35) -> Colour:
    """A colour nearer to white."""
    return blend(colour, (255, 255, 255), by)
