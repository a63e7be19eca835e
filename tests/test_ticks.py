import math

import numpy as np
import pytest

from livemamba.errors import InputError
from livemamba.ticks import Frame, tick_at_or_after, tick_at_or_before, tick_to_s


@pytest.mark.parametrize(
    ("time_s", "before", "after"), [(0, 0, 0), (1.2, 2, 3), (1.5, 3, 3), (1.4999999, 3, 3), (1.51, 3, 4)]
)
def test_seconds_become_the_ticks_around_them(time_s, before, after):
    assert (tick_at_or_before(time_s), tick_at_or_after(time_s)) == (before, after)


def test_ticks_are_half_seconds_and_come_back():
    assert [tick_to_s(tick) for tick in range(4)] == [0.0, 0.5, 1.0, 1.5]
    assert all(tick_at_or_after(tick_to_s(tick)) == tick_at_or_before(tick_to_s(tick)) == tick for tick in range(9999))


@pytest.mark.parametrize("time_s", [math.nan, math.inf])
def test_a_time_that_is_no_number_is_refused(time_s):
    with pytest.raises(InputError, match="not a finite number"):
        tick_at_or_after(time_s)


@pytest.mark.parametrize(
    ("pixels", "rule"),
    [
        (np.zeros((4, 4)), "array of float64"),
        (np.zeros((4, 4), np.uint8), "shape"),
        (np.zeros((4, 4, 4), np.uint8), "shape"),
        (np.zeros((0, 4, 3), np.uint8), "shape"),
        ([[1, 2, 3]], "list"),
    ],
)
def test_a_frame_is_an_rgb_picture(pixels, rule):
    with pytest.raises(InputError, match=rule):
        Frame(tick=0, time_s=0.0, pixels=pixels)


def test_a_frame_knows_its_size_and_has_no_negative_tick():
    frame = Frame(tick=3, time_s=1.5, pixels=np.zeros((4, 6, 3), np.uint8))
    assert (frame.height, frame.width) == (4, 6)
    with pytest.raises(InputError, match="count from 0"):
        Frame(tick=-1, time_s=0.0, pixels=frame.pixels)


@pytest.mark.parametrize(("tick", "time_s"), [(0.5, 0.0), (None, 0.0), (0, float("nan"))])
def test_a_frame_stands_on_a_whole_tick_at_a_finite_time(tick, time_s):
    with pytest.raises(InputError):
        Frame(tick=tick, time_s=time_s, pixels=np.zeros((4, 4, 3), np.uint8))
