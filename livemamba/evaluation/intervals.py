"""95% intervals of the scores, by resampling videos: segments of one video are not independent. No torch.

Percentile bootstrap; a resample's scores come from its videos' pooled counts, as the scores themselves do.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from livemamba.evaluation.interactive_cooking import VideoScore, count

RESAMPLES = 2000
_COUNTED = ("hits", "plain", "true_positives", "false_positives", "false_negatives")

Interval = tuple[float, float]


def score_intervals(videos: Sequence[VideoScore], *, seed: int = 0, resamples: int = RESAMPLES) -> dict[str, Interval]:
    """Intervals of IC-Acc (0 to 100) and of the mistakes' F1 (0 to 1).

    Args:
        videos: scored, at least one.
        seed: of the draws: equal seeds draw the same videos for every system, so differences can be paired.
        resamples: how many.
    """
    ic, f1 = _resampled(videos, seed, resamples)
    return {"ic_acc": _interval(ic), "mistake_f1": _interval(f1)}


def difference_intervals(
    one: Sequence[VideoScore], other: Sequence[VideoScore], *, seed: int = 0, resamples: int = RESAMPLES
) -> dict[str, Interval]:
    """Intervals of one system's scores less another's, on the same videos in the same order."""
    assert [video.video_id for video in one] == [video.video_id for video in other], "scores of other videos"
    first, second = _resampled(one, seed, resamples), _resampled(other, seed, resamples)
    return {
        name: _interval(mine - theirs)
        for name, mine, theirs in zip(("ic_acc", "mistake_f1"), first, second, strict=True)
    }


def _resampled(
    videos: Sequence[VideoScore], seed: int, resamples: int
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    counts = [count([video]) for video in videos]
    table = np.array([[getattr(one, name) for name in _COUNTED] for one in counts], dtype=np.float64)
    drawn = np.random.default_rng(seed).integers(len(table), size=(resamples, len(table)))
    hits, plain, true_positives, false_positives, false_negatives = table[drawn].sum(1).T
    ic = 100 * hits / np.maximum(plain, 1)
    f1 = 2 * true_positives / np.maximum(2 * true_positives + false_positives + false_negatives, 1)
    return ic, f1


def _interval(values: npt.NDArray[np.float64]) -> Interval:
    low, high = np.percentile(values, [2.5, 97.5])
    return float(low), float(high)
