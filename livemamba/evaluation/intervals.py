"""95% intervals of the scores, by resampling videos: segments of one video are not independent. No torch.

Percentile bootstrap; a resample's scores come from its videos' pooled counts, as the scores themselves do.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from livemamba.errors import InputError
from livemamba.evaluation.interactive_cooking import VideoScore, count

RESAMPLES = 2000
_COUNTED = ("hits", "plain", "true_positives", "false_positives", "false_negatives", "skipped_mistakes")

Interval = tuple[float, float]


def score_intervals(
    videos: Sequence[VideoScore], *, skipped_as_missed: bool = False, seed: int = 0, resamples: int = RESAMPLES
) -> dict[str, Interval]:
    """Intervals of IC-Acc (0 to 100) and of the mistakes' F1 (0 to 1).

    A resample without a plain segment counts as IC-Acc 0, one without mistakes and feedback as F1 0.

    Args:
        videos: scored, at least one.
        skipped_as_missed: as for `mistake_scores`: the interval of the F1 that is reported, not of another.
        seed: of the draws: equal seeds draw the same videos for every system, so differences can be paired.
        resamples: how many.
    """
    ic, f1 = _resampled(videos, skipped_as_missed, seed, resamples)
    return {"ic_acc": _interval(ic), "mistake_f1": _interval(f1)}


def difference_intervals(
    one: Sequence[VideoScore],
    other: Sequence[VideoScore],
    *,
    skipped_as_missed: bool = False,
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> dict[str, Interval]:
    """Intervals of one system's scores less another's, on the same videos.

    Each resample takes the same videos of both, so what makes a video hard for every system cancels out.

    Args:
        one: scored videos.
        other: the other system's, in the same order.
        skipped_as_missed: see `score_intervals`.
        seed: of the draws.
        resamples: how many.

    Raises:
        InputError: if they aren't the same videos in the same order.
    """
    if [video.video_id for video in one] != [video.video_id for video in other]:
        raise InputError("a difference is paired by video; score both systems on the same videos in the same order")
    first, second = (_resampled(videos, skipped_as_missed, seed, resamples) for videos in (one, other))
    return {
        name: _interval(mine - theirs)
        for name, mine, theirs in zip(("ic_acc", "mistake_f1"), first, second, strict=True)
    }


def _resampled(
    videos: Sequence[VideoScore], skipped_as_missed: bool, seed: int, resamples: int
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    counts = [count([video]) for video in videos]
    table = np.array([[getattr(one, name) for name in _COUNTED] for one in counts], dtype=np.float64)
    drawn = np.random.default_rng(seed).integers(len(table), size=(resamples, len(table)))
    hits, plain, true_positives, false_positives, missed, skipped = table[drawn].sum(1).T
    if skipped_as_missed:
        missed = missed + skipped
    ic = 100 * hits / np.maximum(plain, 1)
    f1 = 2 * true_positives / np.maximum(2 * true_positives + false_positives + missed, 1)
    return ic, f1


def _interval(values: npt.NDArray[np.float64]) -> Interval:
    low, high = np.percentile(values, [2.5, 97.5])
    return float(low), float(high)
