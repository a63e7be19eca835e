from dataclasses import replace

import numpy as np
import pytest
import torch

from livemamba.errors import InputError, MissingError
from livemamba.model.livemamba import LiveMamba
from livemamba.simkitchen.state import FIELDS
from livemamba.training.config import OptimConfig, RunConfig
from livemamba.training.loop import train
from livemamba.training.metrics import read_metrics
from livemamba.training.stage0 import (
    Stage0Config,
    Stage0Task,
    class_weights,
)
from livemamba.training.state_frames import (
    FrameAugmentConfig,
    augmented_frame,
    frame_weights,
    read_state_frames,
)


@pytest.fixture
def config(tiny_corpus, tmp_path):
    return Stage0Config(
        run=RunConfig(out=str(tmp_path / "run"), steps=4, seed=1, log_every=1, save_every=2),
        optim=OptimConfig(learning_rate=0.003, warmup_steps=2),
        init="unused",
        corpora=(str(tiny_corpus),),
        validation=(str(tiny_corpus),),
        batch_size=8,
        validation_frames=20,
    )


@pytest.fixture
def live(make_live):
    live = make_live()
    live.config = replace(live.config, pruning=replace(live.config.pruning, keep=12))
    return live


def run(live, config, cache, **kwargs):
    task = Stage0Task(live, config, cache)
    return task, train(task, run=config.run, optim=config.optim, config=config, **kwargs)


def test_frames_and_states_are_of_the_same_tick(tiny_corpus, tmp_path):
    frames = read_state_frames([str(tiny_corpus)], "train", tmp_path)
    assert list(frames.fields) == list(FIELDS)
    assert [len(one) for one in frames.pixels] == [len(one) for one in frames.states]
    # The stove's flame lights up in the very frame in which the state says so.
    stove = list(FIELDS).index("tilt")
    moved = [np.abs(one[1:].astype(int) - one[:-1]).mean((1, 2, 3)) for one in frames.pixels]
    changed = [(rows[1:, stove] != rows[:-1, stove]) for rows in frames.states]
    all_moved, all_changed = np.concatenate(moved), np.concatenate(changed)
    assert all_moved[all_changed].mean() > 1.3 * all_moved[~all_changed].mean()


def test_one_of_several_ticks_is_taken_with_its_own_state(tiny_corpus, tmp_path):
    whole = read_state_frames([str(tiny_corpus)], "train", tmp_path)
    some = read_state_frames([str(tiny_corpus)], "train", tmp_path, every=3)
    for pixels, kept in zip(whole.pixels, some.pixels, strict=True):
        assert np.array_equal(pixels[::3], kept)
    for states, kept in zip(whole.states, some.states, strict=True):
        assert np.array_equal(states[::3], kept)
    again = read_state_frames([str(tiny_corpus)], "train", tmp_path, every=3)
    assert np.array_equal(some.pixels[0], again.pixels[0])


def test_a_varied_frame_moves_turns_round_and_changes_its_light():
    pixels = np.random.default_rng(0).integers(40, 200, size=(8, 10, 3), dtype=np.uint8)
    assert np.array_equal(augmented_frame(pixels, FrameAugmentConfig(), np.random.default_rng(1)), pixels)
    turned = augmented_frame(pixels, FrameAugmentConfig(mirrored=1.0), np.random.default_rng(1))
    assert np.array_equal(turned, pixels[:, ::-1])
    shifts = set()
    for seed in range(40):
        moved = augmented_frame(pixels, FrameAugmentConfig(shift=1), np.random.default_rng(seed))
        padded = np.pad(pixels, ((1, 1), (1, 1), (0, 0)), mode="edge")
        shifts |= {
            (down, right)
            for down in range(3)
            for right in range(3)
            if np.array_equal(moved, padded[down : down + 8, right : right + 10])
        }
    assert len(shifts) == 9
    lit = augmented_frame(pixels, FrameAugmentConfig(light=0.2), np.random.default_rng(1))
    gains = (lit / pixels).reshape(-1, 3)
    assert np.ptp(gains, axis=0).max() < 0.03 and np.ptp(gains.mean(0)) > 0.02 and abs(gains - 1).max() < 0.22


def test_training_frames_are_varied_and_validation_frames_are_not(live, config, tmp_path):
    plain = Stage0Task(live, config, tmp_path / "frames")
    varied = Stage0Task(live, replace(config, augment=FrameAugmentConfig(light=0.3)), tmp_path / "frames")
    one, other = plain.batch(0, 0, 1), varied.batch(0, 0, 1)
    assert torch.equal(one[1], other[1]) and not torch.equal(one[0], other[0])
    assert plain.validate(0) == varied.validate(0)


def test_frames_that_change_are_drawn_more_often():
    rows = np.array([[0], [0], [0], [1], [1], [1]], dtype=np.uint8)
    weights = frame_weights([rows], 3.0)
    assert weights / weights[0] == pytest.approx([1, 1, 3, 3, 1, 1])
    assert weights.sum() == pytest.approx(1.0)


def test_rare_classes_weigh_more():
    rows = np.zeros((10_000, 1), dtype=np.uint8)
    rows[:100] = 1
    (weights,) = class_weights([rows], [3])
    assert weights[1] / weights[0] == pytest.approx((9900 / 100) ** 0.5, rel=1e-3)
    seen = torch.tensor([0.99, 0.01, 0.0])
    assert float((weights * seen).sum()) == pytest.approx(1.0)


def test_it_trains_encoder_and_qformer_alone_and_drops_its_heads(live, config, tmp_path):
    before = {name: value.clone() for name, value in live.state_dict().items()}
    _, model = run(live, config, tmp_path / "frames")
    changed = {name.split(".")[0] for name, value in live.state_dict().items() if not torch.equal(before[name], value)}
    assert changed == {"vision", "qformer"}
    loaded = LiveMamba.from_pretrained(model)
    assert set(loaded.state_dict()) == set(before)
    assert "stage 0" in loaded.provenance["vision"] and "random" in loaded.provenance["backbone"]
    assert loaded.vision.frozen and not any(parameter.requires_grad for parameter in loaded.vision.parameters())
    rows = read_metrics(tmp_path / "run" / "metrics.jsonl")
    assert {f"balanced {name}" for name in FIELDS} < set(rows[-1])


def test_it_learns_a_few_frames_by_heart(live, config, tmp_path):
    task = Stage0Task(live, config, tmp_path / "frames")
    batch = task.batch(0, 0, 1)
    optimizer = torch.optim.AdamW([p for p in task.module.parameters() if p.requires_grad], lr=0.003)
    task.module.train()
    for _ in range(60):
        sums = task.module(batch)
        optimizer.zero_grad()
        (sums["loss"][0] / sums["loss"][1]).backward()
        optimizer.step()
    assert sums["accuracy"][0] / sums["accuracy"][1] > 0.99


def test_a_resumed_run_equals_the_unbroken_one(make_live, config, tmp_path):
    def small():
        live = make_live()
        live.config = replace(live.config, pruning=replace(live.config.pruning, keep=12))
        return live

    def at(folder, steps):
        return replace(config, run=replace(config.run, out=str(tmp_path / folder), steps=steps))

    unbroken, broken, again = small(), small(), small()
    run(unbroken, at("a", 4), tmp_path / "frames")
    run(broken, at("b", 2), tmp_path / "frames")
    run(again, at("b", 4), tmp_path / "frames", resume=True)
    one, other = unbroken.state_dict(), again.state_dict()
    assert all(torch.equal(one[name], other[name]) for name in one)


def test_processes_share_the_frames_of_a_step(live, config, tmp_path):
    task = Stage0Task(live, config, tmp_path / "frames")
    whole, parts = task.batch(3, 0, 1), [task.batch(3, rank, 2) for rank in range(2)]
    assert torch.equal(whole[1][0::2], parts[0][1]) and torch.equal(whole[0][1::2], parts[1][0])


def test_a_corpus_without_states_is_refused(tiny_corpus, tmp_path):
    import shutil

    copy = tmp_path / "copy"
    shutil.copytree(tiny_corpus, copy)
    shutil.rmtree(copy / "states")
    with pytest.raises(MissingError, match="simulate --states"):
        read_state_frames([str(copy)], "train", tmp_path / "frames")
    (copy / "states").mkdir()
    for file in (tiny_corpus / "states").iterdir():
        np.save(copy / "states" / file.name, np.load(file)[:5])
    with pytest.raises(InputError, match="ticks, its states 5"):
        read_state_frames([str(copy)], "train", tmp_path / "frames")


def test_a_teacher_draws_the_embeddings_to_its_own_of_the_state(make_live, live, config, tmp_path):
    teacher = make_live(seed=4).save_pretrained(tmp_path / "teacher")
    taught = replace(config, teacher=str(teacher))
    task = Stage0Task(live, taught, tmp_path / "frames")
    assert not any("teacher" in name for name in task.module.state_dict())
    batch = task.batch(0, 0, 1)
    optimizer = torch.optim.AdamW([p for p in task.module.parameters() if p.requires_grad], lr=0.003)
    distances = []
    for _ in range(100):
        sums = task.module(batch)
        optimizer.zero_grad()
        (sums["loss"][0] / sums["loss"][1]).backward()
        optimizer.step()
        distances.append(float(sums["distance"][0] / sums["distance"][1]))
    assert distances[-1] < 0.5 * distances[0], distances[::10]
    other = replace(live.config, pruning=replace(live.config.pruning, keep=20))
    few = LiveMamba(other, live.tokens).save_pretrained(tmp_path / "few")
    with pytest.raises(InputError, match="keeps too few tokens"):
        Stage0Task(live, replace(config, teacher=str(few)), tmp_path / "frames")
