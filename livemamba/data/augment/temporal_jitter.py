"""Temporal jitter: the instruction comes early or late. No torch.

Source: paper 4.3 ("a constant +-K seconds"); spec/model.md (training): uniform over whole ticks; a start after the end
means to respond at the first frame, a start before shows the step before, in silence.
"""

import numpy as np

from livemamba.data.step_clips import StepClip


def jittered(clip: StepClip, most_ticks: int, random: np.random.Generator) -> StepClip:
    """The clip with another start.

    Args:
        clip: that ends with its step.
        most_ticks: K, in ticks; 0 for none.
        random: draws the shift.
    """
    shift = int(random.integers(-most_ticks, most_ticks + 1))
    first = min(max(0, clip.first_tick + shift), clip.end_tick - 1)
    return clip.cut(first, clip.end_tick)
