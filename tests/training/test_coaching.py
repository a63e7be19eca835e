import os
import signal
import sys
import types
from dataclasses import replace

import pytest
import torch
import yaml

from livemamba.config import ThresholdConfig
from livemamba.data.cache import FeatureCache
from livemamba.data.collate import Target
from livemamba.data.simkitchen import read_step_clips
from livemamba.data.sources import AugmentConfig
from livemamba.dialogue.prompts import coaching_prompt
from livemamba.errors import InputError, MissingError
from livemamba.model.livemamba import LiveMamba
from livemamba.model.stream import Stream
from livemamba.model.weights import read_safetensors
from livemamba.ticks import Frame, tick_at_or_after
from livemamba.training import checkpoint, loop
from livemamba.training.checkpoint import checkpoints, find_resumed
from livemamba.training.coaching import (
    CoachingConfig,
    CoachingTask,
    CorpusConfig,
    features_of,
    losses,
)
from livemamba.training.config import OptimConfig, RunConfig
from livemamba.training.features import StateFeatures, cache_key, cache_videos, video_features
from livemamba.training.loop import check_folder, train
from livemamba.training.metrics import MetricsLog, read_metrics
from livemamba.training.traces import KINDS, Trace, events_at, traces
from livemamba.training.validate import Validator, calibrated


def config_of(out, corpus, *, steps=4, **changes):
    config = CoachingConfig(
        run=RunConfig(out=str(out), steps=steps, seed=7, log_every=1, save_every=2, keep_checkpoints=2),
        optim=OptimConfig(learning_rate=0.003, warmup_steps=2, decay_steps=2),
        init="unused",
        trained=("qformer", "backbone"),
        corpora=(CorpusConfig(simkitchen=str(corpus)),),
        augment=AugmentConfig(jitter_ticks=4, windows=0.5),
        groups_per_batch=2,
    )
    return replace(config, **changes)


def trained(live, config, **kwargs):
    task = CoachingTask(live, config)
    model = train(task, run=config.run, optim=config.optim, config=config, **kwargs)
    return task, model


def weights(live):
    return {name: value.clone() for name, value in live.state_dict().items()}


# --- the loss ------------------------------------------------------------------------------------------


def test_losses_by_hand():
    groups = torch.tensor([Target.SILENT, Target.MISTAKE, Target.MISTAKE, Target.KIND, Target.TEXT])
    targets = torch.tensor([0, 1, 1, 2, 3])  # <vision> is 0, <response> 1
    logits = torch.zeros(5, 4)
    logits[0, 0] = 2.0  # silent, rightly
    logits[1, 1] = 2.0  # responds, rightly
    logits[2, 0] = 2.0  # stays silent, wrongly
    logits[3, 2] = 2.0  # the right kind
    logits[4, 1] = 2.0  # the wrong word
    by_group = torch.ones(len(Target))
    by_group[Target.MISTAKE] = 3.0
    sums = losses(logits, targets, groups, by_group, vision_id=0)
    right, wrong = -torch.log_softmax(logits[0], 0)[[0, 1]]
    wanted = right * (1 + 3 + 1) + wrong * (3 + 1)
    torch.testing.assert_close(sums["loss"], torch.stack([wanted, torch.tensor(9.0)]))
    torch.testing.assert_close(sums["loss_decision"], torch.stack([2 * right + wrong, torch.tensor(3.0)]))
    torch.testing.assert_close(sums["loss_text"], torch.stack([right + wrong, torch.tensor(2.0)]))
    means = {name: (value[0] / value[1]).item() for name, value in sums.items() if value[1] > 0}
    assert {name: means[name] for name in ("silent", "mistake", "kind", "text")} == {
        "silent": 1.0,
        "mistake": 0.5,
        "kind": 1.0,
        "text": 0.0,
    }
    assert "success" not in means


def test_a_decision_is_right_if_it_beats_the_other_one_whatever_else_is_likely():
    logits = torch.tensor([[0.0, 1.0, 9.0]])
    sums = losses(logits, torch.tensor([1]), torch.tensor([Target.SUCCESS]), torch.ones(len(Target)), vision_id=0)
    assert sums["success"].tolist() == [1.0, 1.0]


def test_only_supervised_positions_count(live, tiny_corpus, tmp_path):
    task = CoachingTask(live, config_of(tmp_path, tiny_corpus))
    batch = task.batch(0, 0, 1)
    logits, targets, groups = task.module.predict(batch)
    assert len(logits) == int((batch.groups != 0).sum()) and logits.shape[1] == 608
    assert (targets >= 0).all() and (groups > 0).all()
    full, _ = live(batch.ids, visual=batch.visual, frames=live.qformer(batch.tokens)[batch.frames], valid=batch.valid)
    torch.testing.assert_close(full[batch.groups != 0], logits, rtol=1e-4, atol=1e-5)


# --- what is trained -------------------------------------------------------------------------------------


def test_stage_2_trains_qformer_and_backbone_and_leaves_the_encoder(live, tiny_corpus, tmp_path):
    before = weights(live)
    trained(live, config_of(tmp_path / "run", tiny_corpus))
    after = weights(live)
    changed = {name.split(".")[0] for name in before if not torch.equal(before[name], after[name])}
    assert changed == {"qformer", "backbone"}
    assert "trained by run" in live.provenance["backbone"] and "random" in live.provenance["vision"]


def test_stage_1_trains_the_special_tokens_rows_alone(live, tiny_corpus, tmp_path):
    before = weights(live)
    config = config_of(tmp_path / "run", tiny_corpus, trained=("qformer", "special_tokens"))
    config = replace(config, optim=replace(config.optim, weight_decay=0.0))
    trained(live, config)
    after = weights(live)
    changed = {name for name in before if name.startswith("backbone") and not torch.equal(before[name], after[name])}
    table = "backbone.backbone.embeddings.weight"
    assert changed <= {table, "backbone.lm_head.weight"} and table in changed  # the head is the same matrix
    rows = (before[table] != after[table]).any(1).nonzero()[:, 0].tolist()
    assert rows == [600, 601, 602]


def test_weight_decay_spares_the_other_rows(live, tiny_corpus, tmp_path):
    before = weights(live)["backbone.backbone.embeddings.weight"]
    config = config_of(tmp_path / "run", tiny_corpus, trained=("qformer", "special_tokens"))
    trained(live, replace(config, optim=replace(config.optim, weight_decay=0.5)))
    after = weights(live)["backbone.backbone.embeddings.weight"]
    assert torch.equal(before[:600], after[:600]) and not torch.equal(before[600:603], after[600:603])


def test_it_learns(live, tiny_corpus, tmp_path):
    config = config_of(tmp_path / "run", tiny_corpus, steps=30)
    config = replace(
        config, run=replace(config.run, save_every=0), optim=OptimConfig(learning_rate=0.01, warmup_steps=5)
    )
    trained(live, config)
    rows = read_metrics(tmp_path / "run" / "metrics.jsonl")
    assert rows[-1]["loss"] < 0.7 * rows[0]["loss"]


# --- runs ------------------------------------------------------------------------------------------------


def test_a_resumed_run_equals_the_unbroken_one_bit_for_bit(make_live, tiny_corpus, tmp_path, monkeypatch):
    unbroken = make_live()
    trained(unbroken, config_of(tmp_path / "a", tiny_corpus, steps=6))
    broken = make_live()
    config = config_of(tmp_path / "b", tiny_corpus, steps=6)
    task = CoachingTask(broken, config)
    batch = task.batch

    def dies(step, rank, world_size):
        if step == 5:  # after the checkpoint of step 4
            raise RuntimeError("the machine is gone")
        return batch(step, rank, world_size)

    monkeypatch.setattr(task, "batch", dies)
    with pytest.raises(RuntimeError):
        train(task, run=config.run, optim=config.optim, config=config)
    assert len(read_metrics(tmp_path / "b" / "metrics.jsonl")) == 5
    assert find_resumed(tmp_path / "b").step == 4
    again = make_live(seed=99)  # whatever it starts with, the checkpoint's weights count
    trained(again, config, resume=True)
    one, other = weights(unbroken), weights(again)
    # The frozen encoder isn't trained, but it is part of the checkpoint.
    assert all(torch.equal(one[name], other[name]) for name in one)
    assert read_metrics(tmp_path / "a" / "metrics.jsonl") == read_metrics(tmp_path / "b" / "metrics.jsonl")


def test_ctrl_c_saves_and_stops_and_the_run_goes_on_as_if_nothing_had_been(
    make_live, tiny_corpus, tmp_path, monkeypatch
):
    unbroken, stopped, again = make_live(), make_live(), make_live(seed=5)
    trained(unbroken, config_of(tmp_path / "a", tiny_corpus, steps=6))
    config = config_of(tmp_path / "b", tiny_corpus, steps=6)
    task = CoachingTask(stopped, config)
    batch = task.batch

    def interrupted(step, rank, world_size):
        if step == 2:
            os.kill(os.getpid(), signal.SIGINT)
            os.kill(os.getpid(), signal.SIGINT)  # the launcher's, after the terminal's
        return batch(step, rank, world_size)

    monkeypatch.setattr(task, "batch", interrupted)
    with pytest.raises(SystemExit) as stop:
        train(task, run=config.run, optim=config.optim, config=config)
    assert stop.value.code == 130 and find_resumed(tmp_path / "b").step == 3
    trained(again, config, resume=True)
    one, other = weights(unbroken), weights(again)
    assert all(torch.equal(one[name], other[name]) for name in one)


def test_a_later_ctrl_c_stops_at_once(live, tiny_corpus, tmp_path, monkeypatch):
    monkeypatch.setattr(loop, "SAME_INTERRUPT_S", -1.0)
    config = config_of(tmp_path / "run", tiny_corpus, steps=6)
    task = CoachingTask(live, config)

    def stuck(step, rank, world_size):
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)
        raise AssertionError("the second one was not heard")

    monkeypatch.setattr(task, "batch", stuck)
    with pytest.raises(KeyboardInterrupt):
        train(task, run=config.run, optim=config.optim, config=config)


def test_a_run_that_died_before_its_first_checkpoint_begins_again(
    make_live, tiny_corpus, tmp_path, monkeypatch, caplog
):
    unbroken = make_live()
    trained(unbroken, config_of(tmp_path / "a", tiny_corpus, steps=2))
    config = config_of(tmp_path / "b", tiny_corpus, steps=2)
    task = CoachingTask(make_live(), config)
    batch = task.batch
    monkeypatch.setattr(task, "batch", lambda step, *rest: batch(step, *rest) if step < 1 else 1 / 0)
    with pytest.raises(ZeroDivisionError):
        train(task, run=config.run, optim=config.optim, config=config)
    with pytest.raises(InputError, match="--resume goes on with it"):
        trained(make_live(), config)
    again = make_live()
    trained(again, config, resume=True)
    assert "begins again" in caplog.text
    assert read_metrics(tmp_path / "a" / "metrics.jsonl") == read_metrics(tmp_path / "b" / "metrics.jsonl")
    assert all(
        torch.equal(one, other) for one, other in zip(weights(unbroken).values(), weights(again).values(), strict=True)
    )


def test_a_resumed_run_has_the_unbroken_ones_optimiser(make_live, tiny_corpus, tmp_path):
    for name, stops in (("a", (4,)), ("b", (2, 4))):
        live, config = make_live(), config_of(tmp_path / name, tiny_corpus)
        for place, steps in enumerate(stops):  # the rate's fall begins only after both
            now = replace(config, run=replace(config.run, steps=steps), optim=replace(config.optim, decay_steps=0))
            trained(live, now, resume=place > 0)
    one, other = (
        read_safetensors(tmp_path / name / "checkpoints" / "step_000004" / "training.safetensors") for name in "ab"
    )
    assert set(one) == set(other) and any(name.endswith("exp_avg_sq") for name in one)
    assert all(torch.equal(one[name], other[name]) for name in one)


def test_a_changed_config_is_named_at_resume(live, tiny_corpus, tmp_path, caplog):
    config = config_of(tmp_path / "run", tiny_corpus, steps=2)
    trained(live, config)
    assert yaml.safe_load((find_resumed(tmp_path / "run").folder / "config.yaml").read_text())["groups_per_batch"] == 2
    trained(live, config, resume=True)
    assert "another config" not in caplog.text
    changed = replace(config, groups_per_batch=3, augment=replace(config.augment, windows=1.0))
    trained(live, changed, resume=True)
    assert "groups_per_batch: 2, now 3" in caplog.text and "augment.windows: 0.5, now 1.0" in caplog.text


def test_a_resume_that_would_forget_what_was_trained_is_refused(live, tiny_corpus, tmp_path):
    config = config_of(tmp_path / "run", tiny_corpus, steps=2)
    trained(live, config)
    with pytest.raises(InputError, match=r"trained live\.backbone.* and \d+ more too; .* init: .*model"):
        trained(live, replace(config, trained=("qformer",)), resume=True)


def test_a_killed_writing_leaves_the_last_checkpoint_and_nothing_for_long(live, tiny_corpus, tmp_path, monkeypatch):
    config = config_of(tmp_path / "run", tiny_corpus, steps=4)
    folder = tmp_path / "run" / "checkpoints"
    written = checkpoint.write_config

    def full_disk(where, values):
        if where.name.startswith(".step_000004"):
            raise OSError("the disk is full")
        written(where, values)

    monkeypatch.setattr(checkpoint, "write_config", full_disk)
    with pytest.raises(OSError, match="disk is full"):
        trained(live, config)
    assert [path.name for path in folder.iterdir()] == ["step_000002"]
    (folder / ".step_000004.partial-99-abc" / "model").mkdir(parents=True)  # what a kill -9 leaves
    assert find_resumed(tmp_path / "run").step == 2
    monkeypatch.undo()
    trained(live, config, resume=True)
    assert sorted(path.name for path in folder.iterdir()) == ["step_000002", "step_000004"]


def test_another_number_of_processes_is_warned_about(live, tiny_corpus, tmp_path, caplog):
    config = config_of(tmp_path / "run", tiny_corpus, steps=2)
    trained(live, config)
    state = tmp_path / "run" / "checkpoints" / "step_000002" / "training.json"
    state.write_text(state.read_text().replace('"world_size": 1', '"world_size": 4'))
    trained(live, replace(config, run=replace(config.run, steps=3)), resume=True)
    assert "had 4 processes and goes on with 1" in caplog.text


def test_a_checkpoint_of_another_shape_is_refused(live, kitchen_tokens, tiny_corpus, tmp_path):
    config = config_of(tmp_path / "run", tiny_corpus, steps=2)
    trained(live, config)
    wider = replace(live.config, qformer=replace(live.config.qformer, num_queries=3))
    with pytest.raises(InputError, match=r"qformer.queries"):
        trained(LiveMamba(wider, kitchen_tokens), config, resume=True)


def test_a_run_folder_holds_what_is_documented(live, tiny_corpus, tmp_path):
    config = config_of(tmp_path / "run", tiny_corpus, steps=6)
    _, model = trained(live, config)
    run = tmp_path / "run"
    assert [path.name for path in checkpoints(run)] == ["step_000004", "step_000006"]  # the newest two
    assert sorted(path.name for path in run.iterdir()) == ["checkpoints", "config.yaml", "metrics.jsonl", "model"]
    assert yaml.safe_load((run / "config.yaml").read_text())["optim"]["learning_rate"] == 0.003
    loaded = LiveMamba.from_pretrained(model)
    assert all(torch.equal(value, loaded.state_dict()[name]) for name, value in live.state_dict().items())
    steps = [row["step"] for row in read_metrics(run / "metrics.jsonl")]
    assert steps == [1, 2, 3, 4, 5, 6]


def test_a_run_is_not_started_over_another(live, tiny_corpus, tmp_path):
    config = config_of(tmp_path / "run", tiny_corpus, steps=2)
    trained(live, config)
    with pytest.raises(InputError, match="is there already; --resume"):
        trained(live, config)
    with pytest.raises(MissingError, match="no checkpoint to resume"):
        trained(live, config_of(tmp_path / "other", tiny_corpus), resume=True)


def test_a_loss_that_is_no_number_stops_the_run(live, tiny_corpus, tmp_path):
    with torch.no_grad():
        live.qformer.queries.fill_(float("nan"))
    with pytest.raises(InputError, match="loss of step 0 is nan; lower"):
        trained(live, config_of(tmp_path / "run", tiny_corpus))


def test_the_rate_rises_stays_and_falls():
    optim = OptimConfig(learning_rate=1.0, warmup_steps=3, decay_steps=4)
    rates = [optim.rate_at(step, 20) for step in range(20)]
    assert rates[:4] == [0.25, 0.5, 0.75, 1.0] and rates[4:16] == [1.0] * 12
    assert rates[16:] == pytest.approx([0.8, 0.6, 0.4, 0.2])


def test_metrics_keep_rising_over_a_resume(tmp_path):
    log = MetricsLog(tmp_path)
    for step in (10, 20, 30):
        log.write(step, "train", {"loss": 1.0 / step})
    again = MetricsLog(tmp_path, from_step=20)
    again.write(30, "train", {"loss": 0.5})
    assert [(row["step"], row["loss"]) for row in read_metrics(tmp_path / "metrics.jsonl")] == [
        (10, 0.1),
        (20, 0.05),
        (30, 0.5),
    ]
    (tmp_path / "metrics.jsonl").write_text('{"step": 1}\n{"st')
    with pytest.raises(InputError, match="line 2 is no JSON"):
        read_metrics(tmp_path / "metrics.jsonl")


def test_wandb_gets_what_the_file_gets(tmp_path, monkeypatch):
    class Run:
        def __init__(self):
            self.logged = []

        def log(self, values, step):
            self.logged.append((step, values))

        def finish(self):
            self.logged.append("finished")

    run, asked = Run(), {}

    def init(**settings):
        asked.update(settings)
        return run

    monkeypatch.setitem(sys.modules, "wandb", types.SimpleNamespace(init=init))
    log = MetricsLog(tmp_path / "night", project="kitchen", config={"seed": 1})
    log.write(10, "train", {"loss": 0.5})
    log.close()
    assert run.logged == [(10, {"train/loss": 0.5}), "finished"]
    assert asked["project"] == "kitchen" and asked["id"] == "night" and asked["config"] == {"seed": 1}
    assert len(read_metrics(tmp_path / "night" / "metrics.jsonl")) == 1


def test_wandb_is_asked_for_and_missing(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(MissingError, match=r"pip install 'livemamba\[wandb\]'"):
        MetricsLog(tmp_path, project="kitchen")
    run = RunConfig(out=str(tmp_path / "run"), steps=1, wandb="kitchen")
    with pytest.raises(MissingError, match="wandb is not installed"):
        check_folder(run, resume=False)
    assert not list(tmp_path.iterdir())


# --- features and traces -----------------------------------------------------------------------------------


def small_keep(live):
    """Fewer tokens than the state has fields: for features of pictures."""
    live.config = replace(live.config, pruning=replace(live.config.pruning, keep=12))
    return live


def test_cached_features_are_those_of_the_frames(live, tiny_corpus, tmp_path):
    live = small_keep(live)
    videos = sorted((tiny_corpus / "videos").glob("*.mp4"))[:2]
    cache = FeatureCache(tmp_path / "cache", cache_key(live))
    damaged = tmp_path / "damaged.mp4"
    damaged.write_bytes(b"no video")
    made = dict(cache_videos(live, [videos[0], damaged, videos[1]], cache))
    assert list(made) == [videos[0].stem, "damaged", videos[1].stem]  # the rest goes on
    assert [name for name, failure in made.items() if failure] == ["damaged"] and "damaged" not in cache
    tokens = video_features(live, videos[0])
    assert tokens.shape[1:] == (12, 96)
    assert torch.equal(cache.read(videos[0].stem, range(len(tokens))), tokens.half())
    with torch.no_grad():
        next(live.vision.parameters()).add_(0.1)
    with pytest.raises(InputError, match="encoder differ"):
        FeatureCache(tmp_path / "cache", cache_key(live))


def test_states_stand_in_for_features(live, tiny_corpus):
    features = StateFeatures(tiny_corpus, keep=47, width=96)
    clip = read_step_clips(tiny_corpus, "train")[0]
    tokens = features.read(clip.video_id, [3, 9])
    assert tokens.shape == (2, 47, 96) and ((tokens != 0).sum(-1) == 2).all()
    with pytest.raises(InputError, match="raise pruning"):
        StateFeatures(tiny_corpus, keep=46, width=96)
    with pytest.raises(InputError, match=r"tick 99999 of"):
        features.read(clip.video_id, [99999])
    corpus = CorpusConfig(simkitchen=str(tiny_corpus), features=str(tiny_corpus / "nowhere"))
    with pytest.raises(InputError, match="do not exist; make them with"):
        features_of(corpus, live)


@torch.inference_mode()
def test_traces_are_what_a_silent_stream_would_read(live, tiny_corpus):
    features = StateFeatures(tiny_corpus, keep=47, width=96)
    clips = [clip for clip in read_step_clips(tiny_corpus, "train") if clip.counterfactuals][:3]
    clips = [clip.right() for clip in clips]
    found = list(traces(live, [(clip, features, clip.end_tick) for clip in clips]))
    never = replace(live.config.decoding, thresholds=ThresholdConfig(**dict.fromkeys(vars(ThresholdConfig()), 2.0)))
    for clip, trace in zip(clips, found, strict=True):
        stream = Stream(
            live,
            decoding=never,
            encode=lambda frame, clip=clip: live.qformer(features.read(clip.video_id, [frame.tick])),
        )
        stream.prompt(coaching_prompt(live.config.dialogue, clip.recipe, clip.plan, clip.instruction))
        pixels = torch.zeros(1, 1, 3, dtype=torch.uint8).numpy()
        for place in range(4):
            tick = clip.first_tick + place
            assert stream.see(Frame(tick=tick, time_s=tick / 2, pixels=pixels)) == []
            respond = stream.peek().respond
            assert trace.scores[place].sum() == pytest.approx(respond, abs=1e-5)
            ids = torch.tensor([[live.config.dialogue.response_id]])
            logits, _ = live.read(ids, stream.state)
            firsts = torch.tensor([live.tokens.openings[kind][0][0] for kind in KINDS])
            wanted = respond * torch.softmax(logits[0, -1, firsts].double(), 0)
            torch.testing.assert_close(torch.tensor(trace.scores[place]), wanted.detach(), rtol=1e-3, atol=1e-6)


def test_events_of_a_trace_by_hand(tiny_corpus):
    clip = read_step_clips(tiny_corpus, "train")[0]
    scores = torch.tensor([[0.1, 0.1, 0.0], [0.1, 0.6, 0.0], [0.2, 0.7, 0.0], [0.9, 0.6, 0.1], [0.9, 0.0, 0.0]]).numpy()
    said = events_at(Trace(clip=clip, scores=scores), ThresholdConfig(success=0.5, mistake=0.5, advance=0.5))
    first = clip.first_tick
    assert [(event.kind, event.tick - first) for event in said] == [("mistake", 1), ("success", 3), ("advance", 3)]
    never = ThresholdConfig(success=2.0, mistake=2.0, advance=2.0)
    assert events_at(Trace(clip=clip, scores=scores), never) == []


def test_validation_scores_and_calibrates(live, tiny_corpus):
    features = StateFeatures(tiny_corpus, keep=47, width=96)
    validator = Validator([(str(tiny_corpus), features)], split="test", window_s=8.6, most_pairs=6, most_turns=12)
    values = validator(live)
    assert set(values) >= {"pair", "right", "wrong", "ic_acc", "f1", "success", "mistake"}
    assert values == validator(live)
    chosen, best = calibrated(live, validator)
    assert chosen.config.decoding.thresholds.mistake == best.mistake == chosen.config.decoding.thresholds.divergence
    assert best.objective() == max(scored.objective() for scored in validator.grid(live))
    _, best = calibrated(live, validator, "benchmark")
    scores = [scored.ic_acc / 100 + scored.f1 for scored in validator.grid(live)]
    assert best.ic_acc / 100 + best.f1 == best.objective("benchmark") == max(scores)


def test_a_trace_that_cannot_hear_itself_is_not_blamed_for_the_success_at_the_end(live, tiny_corpus):
    features = StateFeatures(tiny_corpus, keep=47, width=96)
    validator = Validator([(str(tiny_corpus), features)], split="test", window_s=8.6, most_pairs=3, most_turns=1)

    def silent(clip):
        return torch.zeros(clip.end_tick - clip.first_tick, len(KINDS)).numpy()

    paired = []
    for pair, _ in validator._pairs:
        right, wrong = silent(pair.right), silent(pair.wrong)
        right[-1, 0] = wrong[-1, 0] = 0.9
        wrong[tick_at_or_after(pair.opposite.time_s) - pair.wrong.first_tick - 1, 1] = 0.9
        paired += [Trace(clip=pair.right, scores=right), Trace(clip=pair.wrong, scores=wrong)]
    turns = [Trace(clip=clip, scores=silent(clip)) for clip, _ in validator._turns]
    assert validator._scored(paired, turns, 0.5, 0.5).pair == 1.0
    assert validator.rules.later_success == "forbidden", "a real run is"


def test_the_same_clips_go_through_streams_too(live, tiny_corpus):
    features = StateFeatures(tiny_corpus, keep=47, width=96)
    validator = Validator([(str(tiny_corpus), features)], split="test", window_s=8.6, most_pairs=3, most_turns=1)
    never = replace(live.config.decoding, thresholds=ThresholdConfig(**dict.fromkeys(vars(ThresholdConfig()), 2.0)))
    real = validator.through_streams(live.with_decoding(never))
    assert real == dict.fromkeys(("pair", "right", "wrong", "ic_acc", "f1", "streaming_ic_acc", "streaming_f1"), 0.0), (
        "a network that never speaks"
    )
