"""The tick grid and the frames that sit on it. No torch.

A tick is half a second on the video's own clock, counted from its first shown frame. Frames, segment
starts, temporal jitter and the feature cache sit on whole ticks; seconds appear only at the edges.
Source: 2 frames a second in the paper, D.3.
"""

import math
import operator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from livemamba.errors import InputError

TICKS_PER_SECOND = 2
TICK_S = 1 / TICKS_PER_SECOND

# Timestamps come out of rational time bases as floats: 1.4999999 s is meant to be 1.5 s.
_EPSILON_TICKS = 1e-4


def _in_ticks(time_s: float) -> float:
    if not math.isfinite(time_s):
        raise InputError(f"time {time_s!r} is not a finite number of seconds")
    return time_s * TICKS_PER_SECOND


def tick_to_s(tick: int) -> float:
    """Seconds from the first shown frame to a tick."""
    return tick / TICKS_PER_SECOND


def tick_at_or_after(time_s: float) -> int:
    """The first tick at which something that happened at `time_s` has been seen.

    An utterance at 1.2 s is due at tick 3 (1.5 s): the frame of tick 2 (1.0 s) doesn't show its cause yet.

    Raises:
        InputError: if the time is not finite.
    """
    return math.ceil(_in_ticks(time_s) - _EPSILON_TICKS)


def tick_at_or_before(time_s: float) -> int:
    """The last tick that isn't later than `time_s` seconds.

    Raises:
        InputError: if the time is not finite.
    """
    return math.floor(_in_ticks(time_s) + _EPSILON_TICKS)


@dataclass(frozen=True, kw_only=True, eq=False)
class Frame:
    """What was on screen at one tick.

    Attributes:
        tick: position on the grid, >= 0.
        time_s: the source frame's own time, seconds from the first shown frame (<= the tick's time when
            read from a file: a player still shows the last frame until the next one is due).
        pixels: (height, width, 3) uint8 RGB, upright, as a player shows it.
    """

    tick: int
    time_s: float
    pixels: npt.NDArray[np.uint8]

    def __post_init__(self) -> None:
        try:  # a numpy integer would turn up later in a session's file, as something that JSON doesn't know
            object.__setattr__(self, "tick", operator.index(self.tick))
        except TypeError:
            raise InputError(f"a frame's tick is {self.tick!r}; ticks are whole numbers") from None
        if self.tick < 0:
            raise InputError(f"a frame's tick is {self.tick}; ticks count from 0, the first shown frame")
        if not math.isfinite(self.time_s):
            raise InputError(f"the frame of tick {self.tick} has time {self.time_s!r}; give finite seconds")
        check_rgb(self.pixels)

    @property
    def height(self) -> int:
        """Rows of pixels."""
        return int(self.pixels.shape[0])

    @property
    def width(self) -> int:
        """Columns of pixels."""
        return int(self.pixels.shape[1])


def check_rgb(pixels: Any) -> None:
    """Refuse what is not an RGB picture.

    Raises:
        InputError: unless `pixels` is a (height, width, 3) uint8 array with at least one pixel.
    """
    if not isinstance(pixels, np.ndarray) or pixels.dtype != np.uint8:
        kind = f"{type(pixels).__name__} of {pixels.dtype}" if hasattr(pixels, "dtype") else type(pixels).__name__
        raise InputError(f"frame pixels are a {kind}; give a numpy array of uint8, values 0 to 255")
    if pixels.ndim != 3 or pixels.shape[2] != 3 or 0 in pixels.shape:
        raise InputError(f"frame pixels have shape {pixels.shape}; give (height, width, 3), RGB")
