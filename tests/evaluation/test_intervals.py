from dataclasses import replace

import numpy as np
import pytest

from livemamba.data.simkitchen import read_rows
from livemamba.evaluation.interactive_cooking import count, ic_acc, mistake_scores, score_videos
from livemamba.evaluation.intervals import difference_intervals, score_intervals
from livemamba.evaluation.rules import ScoringRules
from livemamba.evaluation.sanity import jittered, run_row, sanity_rows, step_durations

RULES = ScoringRules(window_s=8.6)


@pytest.fixture(scope="module")
def videos(tiny_corpus):
    """Half-right predictions: the truth, its times moved by up to 8 s."""
    rows = [*read_rows(tiny_corpus, "train"), *read_rows(tiny_corpus, "test")]
    return score_videos(rows, {row.video_id: jittered(row, 8.0) for row in rows}, RULES)


def test_intervals_are_those_of_a_plain_bootstrap(videos):
    found = score_intervals(videos, seed=3, resamples=200)
    drawn = np.random.default_rng(3).integers(len(videos), size=(200, len(videos)))
    ics, f1s = [], []
    for places in drawn:
        counts = count([videos[place] for place in places])
        ics.append(ic_acc(counts) or 0.0)
        f1s.append(mistake_scores(counts).f1)
    assert found["ic_acc"] == pytest.approx(tuple(np.percentile(ics, [2.5, 97.5])))
    assert found["mistake_f1"] == pytest.approx(tuple(np.percentile(f1s, [2.5, 97.5])))
    assert found["ic_acc"][0] < ic_acc(count(videos)) < found["ic_acc"][1]


def test_a_difference_is_paired(tiny_corpus, videos):
    assert difference_intervals(videos, videos) == {"ic_acc": (0.0, 0.0), "mistake_f1": (0.0, 0.0)}
    rows = [*read_rows(tiny_corpus, "train"), *read_rows(tiny_corpus, "test")]
    perfect = score_videos(rows, {row.video_id: row for row in rows}, RULES)
    low, high = difference_intervals(perfect, videos)["ic_acc"]
    assert 0 < low < high
    with pytest.raises(AssertionError, match="other videos"):
        difference_intervals(videos, videos[1:])


def test_exact_times_replay_to_a_perfect_score(tiny_corpus):
    rows = read_rows(tiny_corpus, "test")
    durations = step_durations(read_rows(tiny_corpus, "train"))
    oracle = next(row for row in sanity_rows(durations) if row.name == "oracle")
    for protocol in ("streaming", "turn_based"):
        counts = count(score_videos(rows, run_row(oracle, rows, protocol), RULES))
        assert ic_acc(counts) == 100.0 and counts.false_negatives == counts.false_positives == 0


def test_mistakes_of_real_annotations_have_no_exact_time(tiny_corpus):
    from livemamba.data.captaincook4d import read_annotations
    from livemamba.data.interactive_cooking import build_benchmark
    from livemamba.errors import InputError

    annotations = read_annotations(tiny_corpus)
    bare = {
        key: replace(one, actions=tuple(replace(action, seen_s=None) for action in one.actions))
        for key, one in annotations.recordings.items()
    }
    with pytest.raises(InputError, match="doesn't say when its mistake can be seen"):
        build_benchmark(replace(annotations, recordings=bare), mistake_time="exact")
