"""The scripts as users start them."""

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
import yaml

from livemamba.cli import run_safely
from livemamba.config import DialogueConfig
from livemamba.conversation import Conversation, Decision, Text
from livemamba.data.conversation_file import write_conversations
from livemamba.data.simkitchen import read_step_clips
from livemamba.model.livemamba import LiveMamba
from livemamba.model.weights import read_safetensors
from livemamba.training.checkpoint import checkpoints, find_resumed
from livemamba.training.coaching_script import main
from livemamba.training.metrics import read_metrics

ROOT = Path(__file__).parent.parent.parent


ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}


def launching(script, *arguments, processes=1):
    command = [sys.executable, "-m", "accelerate.commands.launch"]
    command += ["--config_file", str(ROOT / f"configs/accelerate/cpu_{processes}.yaml")]
    return [*command, str(ROOT / "train" / script), *map(str, arguments)]


def launched(script, *arguments, processes=1, cwd=ROOT):
    command = launching(script, *arguments, processes=processes)
    return subprocess.run(command, cwd=cwd, env=ENVIRONMENT, capture_output=True, text=True, timeout=240, check=False)


def wait_for(done, what, patience=200):
    for _ in range(patience * 10):
        if done():
            return
        time.sleep(0.1)
    pytest.fail(f"waited in vain for {what}")


@pytest.fixture
def stage2(tmp_path, init, tiny_corpus):
    """A config file of a short run."""
    config = {
        "run": {"out": str(tmp_path / "run"), "steps": 3, "log_every": 1, "save_every": 0},
        "optim": {"learning_rate": 0.003, "warmup_steps": 1},
        "init": str(init),
        "trained": ["qformer", "backbone"],
        "corpora": [{"simkitchen": str(tiny_corpus)}],
        "augment": {"windows": 0.5, "jitter_ticks": 4},
        "groups_per_batch": 4,
        "validation": [{"simkitchen": str(tiny_corpus), "split": "test"}],
        "validation_pairs": 4,
        "validation_turns": 8,
        "window_s": 8.6,
    }
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump(config))
    return path


def test_finetuning_runs_on_one_process_and_on_two_and_both_agree(stage2, tmp_path):
    one = launched("finetune.py", "--config", stage2, f"run.out={tmp_path / 'one'}")
    assert one.returncode == 0, one.stderr
    assert "the model is in" in one.stdout and find_resumed(tmp_path / "one").world_size == 1
    two = launched("finetune.py", "--config", stage2, f"run.out={tmp_path / 'two'}", processes=2)
    assert two.returncode == 0, two.stderr
    assert find_resumed(tmp_path / "two").world_size == 2  # accelerate may start fewer than asked for
    rows = [read_metrics(tmp_path / name / "metrics.jsonl") for name in ("one", "two")]
    assert [row["step"] for row in rows[0]] == [row["step"] for row in rows[1]] == [1, 2, 3, 3]
    for first, second in zip(*rows, strict=True):
        assert first["split"] == second["split"]
        if first["split"] == "train":  # the same samples, the same mean over all targets, the same gradient
            assert second["loss"] == pytest.approx(first["loss"], rel=1e-3)
    assert {"pair", "ic_acc", "f1"} < set(rows[0][-1])
    LiveMamba.from_pretrained(tmp_path / "two" / "model")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["optim.learning_rat=1"], "did you mean 'learning_rate'"),
        (["corpora=[{simkitchen: nowhere}]"], "nowhere"),
        (["init=nowhere"], "nowhere"),
        (["--resume"], "no checkpoint to resume from"),
        (["trained=[vision]"], "trained"),
        (["trained=[backbone, special_tokens]"], "leave special_tokens out"),
        (["corpora=[{split: train}]"], "name one of them"),
        (["corpora=[{conversations: a.jsonl, split: test}]"], "has none"),
        (["corpora=[{conversations: nowhere.jsonl}]"], "nowhere.jsonl do not exist"),
        (["validation=[{conversations: a.jsonl}]"], "made on simulated corpora"),
        (["augment.windwos=1"], "did you mean 'windows'"),
    ],
)
def test_errors_are_one_line(stage2, arguments, message, tmp_path, capsys):
    resume = "--resume" in arguments
    overrides = [argument for argument in arguments if argument != "--resume"]
    chosen = argparse.Namespace(config=str(stage2), resume=resume, overrides=overrides)
    assert run_safely(lambda: main(chosen)) == 1
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1 and message in lines[0], lines
    assert not (tmp_path / "run").exists()


def answer(place):
    items = (Text(role="user", text=f"What comes after {place}?"), Decision(kind="say", text=f"{place + 1}."))
    return Conversation(items=items)


def test_a_file_of_conversations_without_frames_trains_on_two_processes(stage2, tmp_path):
    """No process sees a frame, and all take part in every gradient."""
    write_conversations(tmp_path / "texts.jsonl", [(answer(place),) for place in range(5)])
    changes = [f"corpora=[{{conversations: {tmp_path / 'texts.jsonl'}}}]", "validation=[]", "groups_per_batch=2"]
    done = launched("finetune.py", "--config", stage2, *changes, "run.steps=8", processes=2)
    assert done.returncode == 0, done.stderr
    assert find_resumed(tmp_path / "run").world_size == 2
    rows = read_metrics(tmp_path / "run" / "metrics.jsonl")
    assert len(rows) == 8 and {"loss", "loss_text", "say"} < set(rows[0]) and "silent" not in rows[0]


def test_what_is_missing_is_named_before_any_network_is_loaded(stage2, tmp_path, tiny_corpus, capsys):
    def error(*overrides):
        chosen = argparse.Namespace(config=str(stage2), resume=False, overrides=["init=nowhere", *overrides])
        assert run_safely(lambda: main(chosen)) == 1
        return capsys.readouterr().err

    assert "nowhere" in error()
    empty = tmp_path / "cache"
    empty.mkdir()
    said = error(f"corpora=[{{simkitchen: {tiny_corpus}, features: {empty}}}]")
    assert f"{empty}: features of" in said and "make them with train/cache_features.py" in said
    clip = read_step_clips(tiny_corpus, "train")[0]
    write_conversations(tmp_path / "clips.jsonl", [(clip.conversation(DialogueConfig()),)])
    said = error(f"corpora=[{{conversations: {tmp_path / 'clips.jsonl'}}}]")
    assert "features of 1 of 1 videos are missing" in said and "name its features" in said


def test_the_cache_script_goes_on_past_a_damaged_video(init, tmp_path, tiny_corpus):
    videos = sorted((tiny_corpus / "videos").glob("*.mp4"))[:2]
    (tmp_path / "videos").mkdir()
    for video in videos:
        (tmp_path / "videos" / video.name).symlink_to(video)
    (tmp_path / "videos" / "0_0.mp4").write_bytes(b"no video")
    out = ["--checkpoint", init, "--videos", tmp_path / "videos", "--out", tmp_path / "cache"]

    def made(*more):
        command = [sys.executable, ROOT / "train" / "cache_features.py", *out, *more]
        return subprocess.run(list(map(str, command)), env=ENVIRONMENT, capture_output=True, text=True, check=False)

    first = made()
    assert first.returncode == 1 and "not made: 1 (0_0)" in first.stderr and "Traceback" not in first.stderr
    assert "features of 2 of 3 videos" in first.stdout
    (tmp_path / "list").write_text(f"{videos[1].stem}\n")
    again = made("--list", tmp_path / "list")
    assert again.returncode == 0 and "features of 1 of 1 videos" in again.stdout
    (tmp_path / "list").write_text("9_9\n")
    absent = made("--list", tmp_path / "list")
    assert absent.returncode == 1 and "lacks 1 of 1 videos" in absent.stderr


@pytest.mark.parametrize("processes", [1, 2])
def test_ctrl_c_at_the_terminal_saves_a_checkpoint(stage2, tmp_path, processes):
    """The terminal tells every process at once, and the launcher its own a second time."""
    run = tmp_path / "run"
    changes = ["run.steps=100000", "validation=[]"]
    command = launching("finetune.py", "--config", stage2, *changes, processes=processes)
    with (tmp_path / "stderr").open("w") as said:
        launcher = subprocess.Popen(command, env=ENVIRONMENT, stderr=said, start_new_session=True)
        try:
            metrics = run / "metrics.jsonl"
            wait_for(lambda: metrics.exists() and metrics.read_text().count("\n") >= 2, "the first steps")
            os.killpg(launcher.pid, signal.SIGINT)
            assert launcher.wait(timeout=120) != 0
            wait_for(lambda: checkpoints(run), "a checkpoint", patience=30)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(launcher.pid, signal.SIGKILL)
    assert "the checkpoint is saved, --resume goes on" in (tmp_path / "stderr").read_text()
    stopped = find_resumed(run)
    assert stopped.world_size == processes
    if processes == 1:  # test_coaching has its resume
        return
    changes = [f"run.steps={stopped.step + 2}", "validation=[]"]
    resumed = launched("finetune.py", "--config", stage2, *changes, "--resume", processes=2)
    assert resumed.returncode == 0, resumed.stderr
    unbroken = launched("finetune.py", "--config", stage2, *changes, f"run.out={tmp_path / 'unbroken'}", processes=2)
    assert unbroken.returncode == 0, unbroken.stderr
    one, other = (read_safetensors(folder / "model" / "model.safetensors") for folder in (run, tmp_path / "unbroken"))
    assert all(torch.equal(one[name], other[name]) for name in one)
    one, other = (read_metrics(folder / "metrics.jsonl") for folder in (run, tmp_path / "unbroken"))
    assert one == other
