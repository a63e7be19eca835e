import itertools

import numpy as np
import pytest

from livemamba.errors import InputError
from livemamba.video.source import open_source


def test_it_moves_on_the_tick_grid():
    with open_source("testcard:5") as source:
        frames = list(source)
        info = source.info
    assert [frame.tick for frame in frames] == list(range(11))
    assert (info.width, info.height, info.live, info.duration_s) == (640, 360, False, 5.0)
    assert all((after.pixels != before.pixels).mean() > 1e-4 for before, after in itertools.pairwise(frames))
    assert np.array_equal(frames[4].pixels, list(open_source("testcard:5"))[4].pixels)


@pytest.mark.parametrize("spec", ["testcard:0", "testcard:61", "testcard:1.2.3"])
def test_a_length_out_of_range_is_refused(spec):
    with pytest.raises(InputError, match=r"test ?card"):
        open_source(spec)
