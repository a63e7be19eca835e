"""Frames in presentation order onto the tick grid: what a player shows at each tick. No I/O.

The rule: at tick k (k / 2 seconds after the first shown frame) the frame on screen is the latest one whose
time isn't later. Every tick up to the last frame's time is given, once. Times are never computed from a
frame number or a rate. Source: spec/pitfalls.md T1, T2.
"""

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from livemamba.ticks import Frame, tick_at_or_after, tick_at_or_before

Pixels = npt.NDArray[np.uint8]
MakePixels = Callable[[], Pixels]


class _Shown:
    """A source frame whose picture is made when a tick first asks for it, and then kept."""

    def __init__(self, time_s: float, make_pixels: MakePixels) -> None:
        self.time_s = time_s
        self._make_pixels = make_pixels
        self._pixels: Pixels | None = None

    def at(self, tick: int) -> Frame:
        if self._pixels is None:
            self._pixels = self._make_pixels()
        return Frame(tick=tick, time_s=self.time_s, pixels=self._pixels)


class TickSampler:
    """Picks the frame on screen at every tick.

    A frame that isn't later than the frame before it is out of order: it is counted by the caller, who is
    told by `push`, and never used, since a picture that a player would show for no time has no tick.
    Pictures are made only for frames that a tick asks for; a frame shown over several ticks is one array.

    Attributes:
        first_time_s: time of the first shown frame on the source's own clock; None before it came.
        next_tick: the first tick that hasn't been given.
    """

    def __init__(self, *, first_time_s: float | None = None, first_tick: int = 0, end_tick: int | None = None) -> None:
        """Start a grid.

        Args:
            first_time_s: the first shown frame's time, where the caller begins later in the file; None takes
                it from the first frame pushed.
            first_tick: the first tick to give.
            end_tick: the tick to stop before; None gives all.
        """
        self.first_time_s = first_time_s
        self.next_tick = first_tick
        self._end_tick = end_tick
        self._shown: _Shown | None = None

    @property
    def done(self) -> bool:
        """Whether every tick that was asked for has been given."""
        return self._end_tick is not None and self.next_tick >= self._end_tick

    def in_order(self, time_s: float) -> bool:
        """Whether a frame of that time (source's clock, seconds) may come next."""
        return self._shown is None or time_s - self._origin(time_s) > self._shown.time_s

    def push(self, time_s: float, make_pixels: MakePixels) -> Iterator[Frame]:
        """Take the next frame that is `in_order`; give the ticks that it settles.

        Those are the ticks before it, at which its predecessor was still on screen, and its own if it falls
        on one. So no tick waits for the end of the source, and a live source is late by a frame at most.

        Args:
            time_s: seconds on the source's clock.
            make_pixels: gives the (height, width, 3) uint8 RGB picture; called at most once.
        """
        assert self.in_order(time_s), f"frame at {time_s} s isn't later than the one before"
        if self.first_time_s is None:
            self.first_time_s = time_s
        before = self._shown
        now = self._shown = _Shown(time_s - self.first_time_s, make_pixels)
        if before is not None:
            yield from self._give(before, tick_at_or_after(now.time_s))
        yield from self._give(now, tick_at_or_before(now.time_s) + 1)

    def _origin(self, time_s: float) -> float:
        return time_s if self.first_time_s is None else self.first_time_s

    def _give(self, shown: _Shown, until_tick: int) -> Iterator[Frame]:
        end = until_tick if self._end_tick is None else min(until_tick, self._end_tick)
        while self.next_tick < end:
            tick = self.next_tick
            self.next_tick += 1
            yield shown.at(tick)
