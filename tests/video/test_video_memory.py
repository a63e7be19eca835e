from fractions import Fraction

import numpy as np
import pytest
from video_clips import draw_number, read_number

from livemamba.errors import InputError
from livemamba.video.memory import FramesInMemory


def pictures(count):
    return [draw_number(number, 32, 48) for number in range(count)]


def test_times_go_through_the_same_grid_as_a_file():
    times = [i / 30 for i in range(30)] + [1.0, 2.0, 3.0, 4.0, 5.0]
    source = FramesInMemory(pictures(35), times_s=times)
    for _ in range(2):
        frames = list(source)
        assert [read_number(frame.pixels) for frame in frames] == [0, 15, 30, 30, 31, 31, 32, 32, 33, 33, 34]
        assert [frame.tick for frame in frames] == list(range(11))
    assert source.report.text() == "frames in memory: 35 frames decoded, 11 ticks given"


def test_a_rate_may_be_a_fraction():
    with FramesInMemory(pictures(60), rate=Fraction(30000, 1001), name="drawn") as source:
        assert [read_number(frame.pixels) for frame in source] == [0, 14, 29, 44]
    assert (source.info.name, source.info.width, source.info.height, source.info.live) == ("drawn", 48, 32, False)
    assert source.info.duration_s == pytest.approx(59 * 1001 / 30000)


def test_pictures_at_two_a_second_are_one_a_tick():
    assert [read_number(frame.pixels) for frame in FramesInMemory(np.stack(pictures(5)), rate=2)] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("images", "arguments", "rule"),
    [
        ([], {"rate": 2}, "no pictures"),
        (pictures(2), {}, "either times_s or rate"),
        (pictures(2), {"rate": 2, "times_s": [0, 1]}, "either times_s or rate"),
        (pictures(2), {"rate": 0}, "rate is 0"),
        (pictures(2), {"rate": float("nan")}, "rate is nan"),
        (pictures(2), {"times_s": [0.0]}, "1 times for 2 pictures"),
        (pictures(2), {"times_s": [1.0, 1.0]}, "time 1 is 1.0"),
        (pictures(2), {"times_s": [0.0, float("inf")]}, "time 1 is inf"),
        ([np.zeros((4, 4), np.uint8)], {"rate": 2}, "RGB"),
        ([np.zeros((4, 4, 3), np.float32)], {"rate": 2}, "uint8"),
    ],
)
def test_what_breaks_a_rule_is_refused(images, arguments, rule):
    with pytest.raises(InputError, match=rule):
        FramesInMemory(images, **arguments)
