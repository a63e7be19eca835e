"""The time-scale gate: blind systems fail on the default corpus, and would not with the unscaled window."""

import pytest

from livemamba.data.captaincook4d import read_annotations
from livemamba.data.interactive_cooking import build_benchmark
from livemamba.errors import InputError
from livemamba.simkitchen.corpus import CorpusSettings
from livemamba.simkitchen.gate import time_scale_gate
from livemamba.simkitchen.writer import write_corpus


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpora") / "default"
    return folder, write_corpus(folder, CorpusSettings(episodes=150, seed=1), video=False)


def test_the_builder_reads_the_corpus_as_it_reads_the_real_one(corpus):
    folder, played = corpus
    benchmark = build_benchmark(read_annotations(folder))
    for split, ours in (("train", "train"), ("validation", "val"), ("test", "test")):
        videos = benchmark.videos["main"][split]
        episodes = {planned.id: episode for planned, episode in played if planned.split == ours}
        assert {video.timeline.video_id for video in videos} == set(episodes)
        for video in videos:
            steps = episodes[video.timeline.video_id].steps
            wrong = sum(step.performance.mistake is not None for step in steps)
            assert len(video.timeline.of_kind("mistake")) == wrong
            assert len(video.timeline.of_kind("success")) == len(steps) - wrong
    unaligned = [
        message
        for video in benchmark.videos["advanced_planning"]["train"]
        for message in video.timeline.messages
        if message.aligned is False
    ]
    assert unaligned, "order errors become divergences from the plan"


def test_a_blind_timer_fails_with_the_scaled_window_only(corpus):
    folder, _ = corpus
    gate = time_scale_gate(folder, 3.5)
    assert gate.passed and "passed" in gate.text()
    score = {(one.system, one.protocol, round(one.window_s, 1)): one for one in gate.scores}
    assert score["timer", "streaming", 8.6].ic_acc <= 45
    assert score["chatty", "streaming", 8.6].f1 <= 0.15
    assert score["timer", "turn_based", 30.0].ic_acc > 75, "the reason for scaling the window"


def test_a_kitchen_at_real_speed_needs_no_scaling(tmp_path):
    write_corpus(tmp_path / "c", CorpusSettings(episodes=4, time_factor=1.0), video=False)
    assert len(time_scale_gate(tmp_path / "c", 1.0).scores) == 4  # one window, two systems, two protocols


def test_a_corpus_without_a_test_split_is_refused(tmp_path):
    write_corpus(tmp_path / "c", CorpusSettings(episodes=3, only="train"), video=False)
    with pytest.raises(InputError, match="train and test"):
        time_scale_gate(tmp_path / "c", 3.5)
