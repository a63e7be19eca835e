import importlib.util
import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from livemamba.cli import main as command
from livemamba.cli import run_safely
from livemamba.data.cache import FeatureCache
from livemamba.data.simkitchen import read_rows, read_step_clips
from livemamba.errors import MissingError
from livemamba.evaluation.pair_test import PairRules, pairs_of, run_pairs
from livemamba.evaluation.protocols import lesson_of
from livemamba.recipe import Plan
from livemamba.training.features import StateFeatures, cache_key, cache_videos
from livemamba.training.model_runs import CHUNK_TICKS, DeafWatcher, Frames, benchmark_watcher, clip_watcher

ROOT = Path(__file__).parent.parent.parent
RULES = PairRules(window_s=8.6)


def script(name):
    spec = importlib.util.spec_from_file_location(f"eval_{name}", ROOT / "eval" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run_script(name, monkeypatch, *arguments):
    module = script(name)
    monkeypatch.setattr(sys, "argv", [name, *map(str, arguments)])
    return run_safely(lambda: module.main(module.parse_arguments()))


@pytest.fixture
def seeing(live):
    """A network with fewer tokens than the state has fields: it takes pictures. It hardly ever speaks."""
    decoding = replace(live.config.decoding, max_response_tokens=2, thresholds=replace(live.config.decoding.thresholds))
    live.config = replace(live.config, pruning=replace(live.config.pruning, keep=12), decoding=decoding)
    return live


class Told:
    def __init__(self):
        self.starts = []

    def start(self, plan, instruction, tick):
        self.starts.append((plan, instruction))

    def see(self, frame):
        return ()


def test_the_deaf_are_told_of_another_step(tiny_corpus):
    row = read_rows(tiny_corpus, "train")[0]
    plan = lesson_of(row).plan
    told, again = Told(), Told()
    for watcher in (told, again):
        deaf = DeafWatcher(watcher, row.recipe, "seed")
        for place in range(len(plan)):
            deaf.start(Plan(plan.steps[place:]), "Do it.", 3)
    assert told.starts == again.starts
    for place, (given, instruction) in enumerate(told.starts):
        assert given.current != plan.steps[place]
        assert instruction == row.recipe.instruction(given.current)
    assert len({given.current for given, _ in told.starts}) > 1


def test_frames_from_a_cache_are_those_of_the_videos(seeing, tiny_corpus, tmp_path):
    video = sorted((tiny_corpus / "videos").glob("*.mp4"))[0]
    cache = FeatureCache(tmp_path / "cache", cache_key(seeing))
    list(cache_videos(seeing, [video], cache))
    from_videos, from_cache = Frames(seeing, videos=tiny_corpus / "videos"), Frames(seeing, features=cache)
    shown, blank = list(from_videos.of(video.stem)), list(from_cache.of(video.stem))
    assert [frame.tick for frame in shown] == [frame.tick for frame in blank]
    one, other = from_videos.stream(video.stem), from_cache.stream(video.stem)
    for stream, frames in ((one, shown), (other, blank)):
        stream.prompt("Do it.")
        stream.see(frames[0])
    for name, value in one.state.to_tensors().items():
        torch.testing.assert_close(value, other.state.to_tensors()[name], rtol=1e-2, atol=1e-2)
    # Frames are embedded many at once: each is its own all the same, also in the last, shorter part.
    for frame in (shown[0], shown[CHUNK_TICKS], shown[-1]):
        alone = seeing.qformer(cache.read(video.stem, [frame.tick]).float())
        torch.testing.assert_close(from_cache.encode(video.stem)(frame), alone, rtol=1e-4, atol=1e-4)
    with pytest.raises(MissingError, match="folder that holds"):
        next(from_videos.of("nowhere"))


def test_a_clip_is_shown_from_its_first_tick_to_its_last(live, tiny_corpus):
    features = StateFeatures(tiny_corpus, keep=47, width=96)
    pairs = pairs_of(read_step_clips(tiny_corpus, "train"), most=2)
    seen = []
    frames = Frames(live, features=features)
    encode = frames.encode
    frames.encode = lambda video: lambda frame: seen.append((video, frame.tick)) or encode(video)(frame)
    watch = clip_watcher(frames)
    clip = pairs[0].right
    watch(clip, clip.end_tick + 3)
    assert seen[0] == (clip.video_id, clip.first_tick)
    assert seen[-1][1] <= clip.end_tick + 3
    results = run_pairs(pairs, clip_watcher(Frames(live, features=features), deaf=True), RULES)
    assert len(results) == 2


def test_a_benchmark_run_goes_on_with_the_videos_that_are_missing(seeing, tiny_corpus, tmp_path, monkeypatch, capsys):
    checkpoint = seeing.save_pretrained(tmp_path / "checkpoint")
    rows = ["--mistake-time", "exact", "--out", str(tmp_path / "rows")]
    assert command(["build", "interactive-cooking", "--captaincook4d", str(tiny_corpus), *rows]) == 0
    out = tmp_path / "out"
    arguments = ["--checkpoint", checkpoint, "--data", tmp_path / "rows", "--split", "test", "--out", out]
    arguments += ["--videos", tiny_corpus / "videos", "--protocol", "streaming", "--window_s", 8.6, "--sanity_rows"]
    assert run_script("run_interactive_cooking", monkeypatch, *arguments) == 0
    first = json.loads((out / "result.json").read_text())
    said = json.loads((out / "streaming.json").read_text())
    assert len(said) == 2 and first["labels"]["mistake_time"] == "exact"
    assert {row["system"] for row in first["rows"]} >= {"LiveMamba", "silent", "oracle"}
    (out / "streaming.json").write_text(json.dumps(said[:1]))
    (tiny_corpus / "videos" / f"{said[0]['video_id']}.mp4").rename(tmp_path / "away.mp4")
    try:
        assert run_script("run_interactive_cooking", monkeypatch, *arguments) == 0
    finally:
        (tmp_path / "away.mp4").rename(tiny_corpus / "videos" / f"{said[0]['video_id']}.mp4")
    assert json.loads((out / "streaming.json").read_text()) == said
    assert json.loads((out / "result.json").read_text())["rows"] == first["rows"]
    capsys.readouterr()
    assert run_script("run_interactive_cooking", monkeypatch, *arguments, "--set", "thresholds.mistak=0.3") == 1
    assert "did you mean" in capsys.readouterr().err

    # Nothing that was said by another network, or at other thresholds, is taken for this one's.
    before = (out / "streaming.json").read_bytes()
    for options, what in (
        (["--set", "thresholds.mistake=0.3"], "(decoding differ)"),
        (["--instruction_blind"], "(instruction_blind differ)"),
        (["--features", tmp_path / "cache"], "(frames differ)"),
    ):
        chosen = [*arguments, *options]
        if "--features" in options:
            place = chosen.index("--videos")
            del chosen[place : place + 2]
        assert run_script("run_interactive_cooking", monkeypatch, *chosen) == 1
        assert what in capsys.readouterr().err
    assert (out / "streaming.json").read_bytes() == before

    arguments[arguments.index("--out") + 1] = tmp_path / "again"
    arguments.remove("--sanity_rows")
    assert run_script("run_interactive_cooking", monkeypatch, *arguments, "--compare_with", out) == 0
    result = json.loads((tmp_path / "again" / "result.json").read_text())
    assert [row["system"] for row in result["rows"]] == ["LiveMamba", "out"]
    assert result["differences"][0]["intervals_95"] == {"ic_acc": [0.0, 0.0], "mistake_f1": [0.0, 0.0]}
    assert {one["less"] for one in first["differences"]} >= {"silent", "chatty", "timer"}


def test_the_deaf_are_not_told_of_the_same_step_under_another_number(tiny_corpus):
    recipe = read_rows(tiny_corpus, "train")[0].recipe
    first, second, *rest = recipe.steps
    twice = replace(recipe, steps=(first, replace(second, text=first.text), *rest))
    told = Told()
    for seed in range(30):
        DeafWatcher(told, twice, str(seed)).start(twice.plan, "Do it.", 3)
    assert {plan.current for plan, _ in told.starts} == {(step.id,) for step in rest}


def test_watchers_of_one_benchmark_run_share_nothing(live, tiny_corpus):
    features = StateFeatures(tiny_corpus, keep=47, width=96)
    row = read_rows(tiny_corpus, "test")[0]
    make = benchmark_watcher(Frames(live, features=features))
    one, other = make(lesson_of(row)), make(lesson_of(row))
    assert one.stream is not other.stream
    assert np.isfinite(float(next(iter(live.parameters())).sum()))
