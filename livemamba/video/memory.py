"""Frames that are in memory already, on the tick grid."""

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import partial
from types import TracebackType
from typing import Self

from livemamba.errors import InputError
from livemamba.ticks import Frame, check_rgb
from livemamba.video.protocol import SourceInfo, SourceReport
from livemamba.video.sampling import Pixels, TickSampler


class FramesInMemory:
    """Pictures with times, given like those of a file.

    Times count from the first picture. Unlike a file's, they come from the caller, so one that isn't later
    than its predecessor is an error rather than something to count.
    """

    def __init__(
        self,
        images: Sequence[Pixels],
        *,
        times_s: Sequence[float] | None = None,
        rate: float | Fraction | None = None,
        name: str = "frames in memory",
    ) -> None:
        """Take pictures with their times, or with a rate.

        Args:
            images: (height, width, 3) uint8 RGB arrays, not copied.
            times_s: one time each, seconds, rising.
            rate: pictures a second, instead of times.
            name: what to call them in reports.

        Raises:
            InputError: if there are none, one isn't RGB, or the times (or rate) break their rule.
        """
        if not len(images):
            raise InputError(f"{name}: no pictures; give at least one")
        for image in images:
            check_rgb(image)
        self._images = images
        self._times_s = _times(len(images), times_s, rate, name)
        self._name = name
        self._rate = None if rate is None else Fraction(rate)
        self._report = SourceReport(name=name)

    @property
    def info(self) -> SourceInfo:
        """The first picture's size and the time between first and last picture."""
        height, width = self._images[0].shape[:2]
        duration_s = self._times_s[-1] - self._times_s[0]
        return SourceInfo(
            name=self._name, width=width, height=height, duration_s=duration_s, average_rate=self._rate, live=False
        )

    @property
    def report(self) -> SourceReport:
        """What the latest pass gave."""
        return self._report

    def __iter__(self) -> Iterator[Frame]:
        report = self._report = SourceReport(name=self._name)
        sampler = TickSampler()
        for time_s, image in zip(self._times_s, self._images, strict=True):
            report.frames_decoded += 1
            for frame in sampler.push(time_s, partial(_itself, image)):
                report.ticks_given += 1
                yield frame

    def close(self) -> None:
        """Nothing is held but the arrays."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _itself(image: Pixels) -> Pixels:
    return image


def _times(count: int, times_s: Sequence[float] | None, rate: float | Fraction | None, name: str) -> tuple[float, ...]:
    if (times_s is None) == (rate is None):
        raise InputError(f"{name}: give either times_s or rate; a missing rate is never guessed")
    if rate is not None:
        if not math.isfinite(rate) or rate <= 0:
            raise InputError(f"{name}: rate is {rate}; give pictures a second, above 0")
        return tuple(float(index / Fraction(rate)) for index in range(count))
    assert times_s is not None
    if len(times_s) != count:
        raise InputError(f"{name}: {len(times_s)} times for {count} pictures; give one each")
    for place, time_s in enumerate(times_s):
        if not math.isfinite(time_s) or (place and time_s <= times_s[place - 1]):
            raise InputError(f"{name}: time {place} is {time_s}; times are finite seconds, each later than the last")
    return tuple(float(time_s) for time_s in times_s)
