from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from video_clips import draw_number, read_number

from livemamba.video.sampling import TickSampler

T1_TIMES = [i / 30 for i in range(30)] + [1.0, 2.0, 3.0, 4.0, 5.0]


def sample(times, **grid):
    sampler = TickSampler(**grid)
    return [
        (frame.tick, read_number(frame.pixels), frame.time_s)
        for number, time_s in enumerate(times)
        for frame in sampler.push(time_s, partial(draw_number, number))
    ]


def on_screen(times, tick):
    """The rule itself, spelled out: the latest frame that isn't later than the tick."""
    return max(n for n, t in enumerate(times) if t - times[0] <= tick * 0.5 + 1e-5)


def test_uneven_clip_gives_the_frame_on_screen_at_every_tick():
    picked = sample(T1_TIMES)
    assert [tick for tick, _, _ in picked] == list(range(11))
    assert [number for _, number, _ in picked] == [0, 15, 30, 30, 31, 31, 32, 32, 33, 33, 34]


@given(st.lists(st.integers(1, 4000), max_size=40), st.integers(0, 10**9))
def test_equals_the_rule_for_any_times(steps_ms, start_ms):
    stamps = np.cumsum([start_ms, *steps_ms])
    times = [int(stamp) / 1000 for stamp in stamps]
    last_tick = int((int(stamps[-1]) - start_ms) // 500)
    assert [(tick, number) for tick, number, _ in sample(times)] == [
        (tick, on_screen(times, tick)) for tick in range(last_tick + 1)
    ]


def test_times_count_from_the_first_frame():
    assert [time_s for _, _, time_s in sample([100.0, 100.25, 100.5])] == [0.0, 0.5]


def test_time_base_rounding_does_not_move_a_frame_off_its_tick():
    third = 1 / 3
    times = [k * third * 1.5 for k in range(2000)]  # meant: 0.5 s apart
    assert [number for _, number, _ in sample(times)] == list(range(2000))


def test_ticks_come_as_soon_as_they_are_settled():
    sampler = TickSampler()
    ticks = [[frame.tick for frame in sampler.push(t, partial(draw_number, 0))] for t in (0.0, 0.4, 0.6, 1.0, 2.2)]
    assert ticks == [[0], [], [1], [2], [3, 4]]


def test_only_chosen_frames_are_converted_and_each_once():
    made = []

    def make(number):
        made.append(number)
        return draw_number(number)

    sampler = TickSampler()
    for number, time_s in enumerate(T1_TIMES):
        list(sampler.push(time_s, partial(make, number)))
    assert made == [0, 15, 30, 31, 32, 33, 34]


def test_a_frame_not_later_than_the_one_before_is_out_of_order():
    sampler = TickSampler()
    assert sampler.in_order(5.0)
    list(sampler.push(5.0, partial(draw_number, 0)))
    assert [sampler.in_order(t) for t in (4.9, 5.0, 5.001)] == [False, False, True]
    with pytest.raises(AssertionError):
        list(sampler.push(5.0, partial(draw_number, 1)))


def test_a_range_is_a_slice_of_the_whole():
    whole = sample(T1_TIMES)
    assert sample(T1_TIMES, first_tick=3, end_tick=7) == whole[3:7]
    later = TickSampler(first_time_s=0.0, first_tick=5)
    got = [f.tick for t in (2.0, 3.0, 4.0) for f in later.push(t, partial(draw_number, 0))]
    assert got == [5, 6, 7, 8]


def test_done_says_when_nothing_more_is_wanted():
    sampler = TickSampler(end_tick=2)
    states = []
    for time_s in (0.0, 0.4, 0.5, 0.6):
        list(sampler.push(time_s, partial(draw_number, 0)))
        states.append(sampler.done)
    assert states == [False, False, True, True]
