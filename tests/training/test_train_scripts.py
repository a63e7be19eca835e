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
import yaml

from livemamba.cli import run_safely
from livemamba.model.livemamba import LiveMamba
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
    assert "the model is in" in one.stdout
    two = launched("finetune.py", "--config", stage2, f"run.out={tmp_path / 'two'}", processes=2)
    assert two.returncode == 0, two.stderr
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
    step = find_resumed(run).step
    goes_on = launched("finetune.py", "--config", stage2, f"run.steps={step + 1}", "validation=[]", "--resume")
    assert goes_on.returncode == 0, goes_on.stderr
    assert read_metrics(run / "metrics.jsonl")[-1]["step"] == step + 1
