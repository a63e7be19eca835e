"""Counterfactual mistakes: the same frames under an instruction that they don't follow. No torch.

Source: paper 4.3 and D.2: the counterfactual becomes the instruction, so what is seen becomes the mistake. Beside each
one stands the same clip under the instruction that it does follow, in the same batch: only who compares what is asked
with what is seen can tell the two apart (spec/simkitchen.md, what a trial found).
"""

import numpy as np

from livemamba.data.step_clips import Counterfactual, StepClip
from livemamba.ticks import tick_at_or_after


def opposite_fields(clip: StepClip) -> tuple[str, ...]:
    """What the clip's counterfactuals turn round; empty for a clip that has no right instruction."""
    return () if clip.done is None else tuple(sorted({opposite.field for opposite in clip.counterfactuals}))


def drawn_opposite(clip: StepClip, random: np.random.Generator, field: str | None = None) -> Counterfactual | None:
    """One of the clip's counterfactuals; None if it has none.

    Args:
        clip: as in the corpus.
        random: draws.
        field: of the counterfactual, one of the clip's; default each of these as likely as another.
    """
    fields = opposite_fields(clip)
    if not fields:
        return None
    field = field or fields[int(random.integers(len(fields)))]
    among = [opposite for opposite in clip.counterfactuals if opposite.field == field]
    return among[int(random.integers(len(among)))]


def contrasted(clip: StepClip, random: np.random.Generator, field: str | None = None) -> tuple[StepClip, ...]:
    """The clip under its right instruction and under an opposite one; the clip alone if it has none.

    Args:
        clip: as in the corpus, or jittered.
        random: draws.
        field: see `drawn_opposite`.
    """
    opposite = drawn_opposite(clip, random, field)
    if opposite is None:
        return (clip,)
    return clip.right(), clip.under(opposite, way=int(random.integers(len(opposite.notes))))


def contrasted_windows(
    clip: StepClip, random: np.random.Generator, *, most_frames: int, most_late: int, field: str | None = None
) -> tuple[StepClip, ...]:
    """As `contrasted`, but only some frames around the moment at which the two part: short, and dense with evidence.

    Args:
        clip: as in the corpus.
        random: draws.
        most_frames: that are shown.
        most_late: ticks after that moment at which the window may still end.
        field: see `drawn_opposite`.
    """
    opposite = drawn_opposite(clip, random, field)
    if opposite is None:
        pair: tuple[StepClip, ...] = (clip,)
        seen = clip.end_tick - 1
        if clip.messages:
            seen = tick_at_or_after(clip.messages[0].time_s)
    else:
        pair = clip.right(), clip.under(opposite, way=int(random.integers(len(opposite.notes))))
        seen = tick_at_or_after(opposite.time_s)
    last = min(max(seen, clip.first_tick) + int(random.integers(0, most_late + 1)), clip.end_tick - 1)
    first = max(clip.first_tick, last - int(random.integers(0, most_frames)))
    return tuple(one.cut(first, last + 1) for one in pair)
