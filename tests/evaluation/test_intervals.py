from dataclasses import replace

import numpy as np
import pytest

from livemamba.data.simkitchen import read_rows
from livemamba.errors import InputError
from livemamba.evaluation.interactive_cooking import count, ic_acc, mistake_scores, score_videos
from livemamba.evaluation.intervals import difference_intervals, score_intervals
from livemamba.evaluation.report import differences_table, evaluate
from livemamba.evaluation.rules import ScoringRules
from livemamba.evaluation.sanity import jittered, run_row, sanity_rows, step_durations
from livemamba.evaluation.text_scores import BertChoice

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


@pytest.fixture(scope="module")
def half_given(tiny_corpus):
    """Every second instruction is another one, so that its mistakes are skipped."""
    rows = [*read_rows(tiny_corpus, "train"), *read_rows(tiny_corpus, "test")]
    said = {}
    for row in rows:
        places = [place for place, message in enumerate(row.messages) if message.kind == "instruction"][1::2]
        messages = [
            replace(message, text=f"Sing song {place}.") if place in places else message
            for place, message in enumerate(row.messages)
        ]
        said[row.video_id] = row.with_messages(messages, plans=row.plans)
    return rows, said


def test_an_interval_is_of_the_f1_that_is_reported(half_given):
    rows, said = half_given
    videos = score_videos(rows, said, RULES)
    assert count(videos).skipped_mistakes > 0
    drawn = np.random.default_rng(0).integers(len(videos), size=(300, len(videos)))
    for missed in (False, True):
        f1s = [mistake_scores(count([videos[p] for p in places]), skipped_as_missed=missed).f1 for places in drawn]
        found = score_intervals(videos, skipped_as_missed=missed, resamples=300)["mistake_f1"]
        assert found == pytest.approx(tuple(np.percentile(f1s, [2.5, 97.5])))
    for unmatched in ("skip", "fn"):
        rules = replace(RULES, unmatched=unmatched)
        result = evaluate("x", rows, said, protocol="streaming", rules=rules, bert=BertChoice(wanted=False))
        assert result.intervals() == score_intervals(videos, skipped_as_missed=unmatched == "fn")
        assert result.less(result)["mistake_f1"] == 0.0
    skipped, missed = (score_intervals(videos, skipped_as_missed=missed)["mistake_f1"] for missed in (False, True))
    assert missed[0] <= skipped[0] and missed != skipped


def test_a_result_less_another(half_given):
    rows, said = half_given
    silent = BertChoice(wanted=False)
    moved = {row.video_id: jittered(row, 8.0) for row in rows}
    one, other = (
        evaluate(name, rows, predictions, protocol="streaming", rules=RULES, bert=silent)
        for name, predictions in (("one", said), ("other", moved))
    )
    found = one.less(other)
    assert found["less"] == "other"
    assert found["ic_acc"] == pytest.approx(one.scores()["ic_acc"] - other.scores()["ic_acc"])
    low, high = found["intervals_95"]["ic_acc"]
    assert low <= found["ic_acc"] <= high
    drawn = np.random.default_rng(0).integers(len(rows), size=(2000, len(rows)))
    f1s = [
        mistake_scores(count([one.videos[p] for p in places])).f1
        - mistake_scores(count([other.videos[p] for p in places])).f1
        for places in drawn
    ]
    assert found["intervals_95"]["mistake_f1"] == pytest.approx(list(np.percentile(f1s, [2.5, 97.5])))
    assert f"({low:+.1f} to {high:+.1f})" in differences_table("one", [found])
    with pytest.raises(InputError, match="other rules"):
        one.less(replace(other, rules=replace(RULES, window_s=30.0)))


def test_a_difference_is_paired(tiny_corpus, videos):
    assert difference_intervals(videos, videos) == {"ic_acc": (0.0, 0.0), "mistake_f1": (0.0, 0.0)}
    rows = [*read_rows(tiny_corpus, "train"), *read_rows(tiny_corpus, "test")]
    perfect = score_videos(rows, {row.video_id: row for row in rows}, RULES)
    low, high = difference_intervals(perfect, videos)["ic_acc"]
    assert 0 < low < high
    with pytest.raises(InputError, match="same videos in the same order"):
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

    annotations = read_annotations(tiny_corpus)
    bare = {
        key: replace(one, actions=tuple(replace(action, seen_s=None) for action in one.actions))
        for key, one in annotations.recordings.items()
    }
    with pytest.raises(InputError, match="doesn't say when its mistake can be seen"):
        build_benchmark(replace(annotations, recordings=bare), mistake_time="exact")
