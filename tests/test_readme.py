"""What README and docs/training.md quote is run as it stands there, and every file that they name is there."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import av
import pytest

ROOT = Path(__file__).parent.parent
TRAINING = (ROOT / "docs" / "training.md").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")
FULL_SIZE = "livemamba_130m"


def _blocks(language, text=README):
    return re.findall(rf"^```{language}\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    """A folder in which a reader's commands find what the repository holds, and nothing is written into it."""
    folder = tmp_path_factory.mktemp("clone")
    for name in ("README.md", "configs", "eval", "train"):
        (folder / name).symlink_to(ROOT / name)
    (folder / "bin").mkdir()
    for name, runs in (
        ("livemamba", "-m livemamba"),
        ("python", ""),
        ("accelerate", "-m accelerate.commands.accelerate_cli"),
    ):
        command = folder / "bin" / name
        command.write_text(f'#!/bin/sh\nexec "{sys.executable}" {runs} "$@"\n')
        command.chmod(0o755)
    return folder


def _run(clone, script, *, interpreter=("bash", "-euo", "pipefail", "-c")):
    path = f"{clone / 'bin'}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT), "HF_HUB_OFFLINE": "1"}
    if data := os.environ.get("LIVEMAMBA_TEST_DATA"):
        environment["LIVEMAMBA_TEST_DATA"] = str(Path(data).resolve())
    done = subprocess.run([*interpreter, script], cwd=clone, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, f"{script}\n{done.stdout}\n{done.stderr}"
    return done


def test_its_commands_run_as_they_stand_there(clone):
    small = [block for block in _blocks("bash") if "LIVEMAMBA_TEST_DATA" not in block]
    assert len(small) == 4
    printed = "".join(_run(clone, block).stdout for block in small)
    gate = [
        line.split() for line in printed.splitlines() if "+-4.3 s" in line and line.split()[0] in ("timer", "chatty")
    ]
    quoted = re.search(
        r"IC-Acc of ([\d.]+) streaming and ([\d.]+) turn-based .*?F1 of (\S+) and (\S+) ", README, re.DOTALL
    )
    assert [row[4] for row in gate if row[0] == "timer"] == list(quoted.groups()[:2])
    assert [float(row[5]) for row in gate if row[0] == "chatty"] == [float(value) for value in quoted.groups()[2:]]
    runs = clone / "runs"
    assert json.loads((runs / "timer" / "run.json").read_text())["run"]["finished"]
    assert sorted(path.name for path in (runs / "timer").iterdir()) == [
        "annotated.mp4",
        "messages.jsonl",
        "predictions.json",
        "run.json",
    ]
    assert json.loads((runs / "kitchen_timer" / "run.json").read_text())["run"]["finished"]
    (python,) = _blocks("python")
    assert len([line for line in python.splitlines() if line.strip()]) <= 10
    said = _run(clone, python, interpreter=(sys.executable, "-c"))
    assert "instruction" in said.stdout
    assert "RANDOM WEIGHTS" in said.stderr


def test_the_benchmark_is_built_and_its_table_is_what_the_commands_print(clone, test_data):
    (block,) = [block for block in _blocks("bash") if "interactive-cooking" in block]
    _run(clone, block)
    result = json.loads((clone / "runs" / "sanity_main.json").read_text())
    scores = {(row["system"], row["protocol"]): row["scores"] for row in result["rows"]}
    table = [
        line.split("|")[1:-1] for line in README.splitlines() if re.match(r"\| (silent|chatty|timer|oracle)", line)
    ]
    systems = ("silent", "chatty", "timer", "oracle", "oracle +-15 s", "oracle +-30 s")
    assert len(table) == len(systems)
    for system, cells in zip(systems, table, strict=True):
        quoted = [float(cell.strip(" *")) for cell in cells[1:]]
        for protocol, four in (("streaming", quoted[:4]), ("turn_based", quoted[4:])):
            found = scores[system, protocol]
            assert four[0] == pytest.approx(found["ic_acc"], abs=0.051), (system, protocol)
            for cell, name in zip(four[1:], ("precision", "recall", "f1"), strict=True):
                assert cell == pytest.approx(found[f"mistake_{name}"], abs=0.0051), (system, protocol, name)
    timer = json.loads((clone / "runs" / "timer_scores.json").read_text())
    assert timer["scores"]["ic_acc"] == scores["timer", "streaming"]["ic_acc"]


@pytest.mark.slow
def test_the_full_size_watches_a_real_clip(clone, test_data):
    """473 M parameters, 21 ticks, flat memory, the state of one session below 3 MB, the video written."""
    (block,) = [block for block in _blocks("bash") if FULL_SIZE in block]
    done = _run(clone, block)
    assert "RANDOM WEIGHTS in vision, qformer, backbone" in done.stderr
    report = json.loads((clone / "runs" / "full_size" / "run.json").read_text())
    assert report["run"]["frames_judged"] == 21
    assert report["run"]["last_tick"] == 20
    assert report["state_bytes"] <= 3e6
    # The weights take 1.9 GB; what a frame needs is given back before the next.
    assert report["memory"]["last_mib"] - report["memory"]["early_mib"] < 150
    with av.open(str(clone / "runs" / "full_size" / "annotated.mp4")) as video:
        assert sum(1 for _ in video.decode(video=0)) == 310
    (entry,) = json.loads((clone / "runs" / "full_size" / "predictions.json").read_text())
    assert entry["pred_texts"][0].startswith("Instruction: Now ")


def test_every_file_it_names_is_there():
    links = [link for link in re.findall(r"\]\(([^)]+)\)", README) if "://" not in link]
    assert len(links) > 15
    for link in links:
        assert (ROOT / link).exists(), link


def test_make_knows_the_targets_it_names():
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"^make (\w+)", README, flags=re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target
    # The demo in the Makefile and the commands in the README are the same ones.
    for shared in ("configs/recipes/pancake.yaml", "testcard:18", "--episodes 1 --split test --seed 7 --size 224"):
        assert shared in makefile and shared in README


def test_only_the_package_is_installed():
    """Pitfall: train/, eval/, tests/ and configs/ must not become global packages."""
    from setuptools import find_packages

    found = {name.partition(".")[0] for name in find_packages(str(ROOT), include=["livemamba", "livemamba.*"])}
    assert found == {"livemamba"}
    folders = {path.parent for path in (ROOT / "livemamba").rglob("*.py") if "__pycache__" not in path.parts}
    assert all((folder / "__init__.py").exists() for folder in folders)


def test_importing_it_loads_no_torch_and_needs_no_network():
    code = (
        "import sys, socket\n"
        "def refuse(*a, **k): raise AssertionError('a connection was tried')\n"
        "socket.socket.connect = refuse\n"
        "import livemamba, livemamba.timeline, livemamba.recipe, livemamba.conversation, livemamba.config\n"
        "import livemamba.dialogue.encode, livemamba.coaching.runner, livemamba.cli\n"
        "assert 'torch' not in sys.modules\n"
        "from livemamba import LiveMamba, Stream, coach_video, load_recipe, open_source\n"
        "assert not {'mamba_ssm', 'causal_conv1d', 'decord', 'wandb', 'deepspeed'} & set(sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr


SMALLER = (
    (r"--episodes \d+ (--seed \d+ --split)", r"--episodes 4 \1"),
    (r"--episodes 384", "--episodes 8"),
    (r"--size 112", "--size 32"),
    (r"(train/stage0.py .*)", r"\1 run.steps=2 run.log_every=1 batch_size=4 validation_frames=8"),
    (
        r"(train/(?:pretrain|finetune).py .*)",
        r"\1 run.steps=2 groups_per_batch=2 validation_pairs=4 validation_turns=4",
    ),
    (r"(eval/calibrate_thresholds.py .*)", r"\1 --pairs 4 --turns 4"),
    (r"(eval/pair_test.py .*)", r"\1 --pairs 2"),
    (r"(eval/run_interactive_cooking.py .*)", r"\1 --protocol turn_based --set max_response_tokens=2"),
)
"""What turns the hours of docs/training.md into a minute; everything else stays as it stands there."""


def test_the_training_is_run_from_nothing_to_its_scores(clone):
    blocks = _blocks("bash", TRAINING)
    assert len(blocks) == 6
    for block in blocks:
        for pattern, smaller in SMALLER:
            block = re.sub(pattern, smaller, block)
        _run(clone, block)
    runs = clone / "runs" / "simkitchen"
    assert json.loads((runs / "pairs.json").read_text())["scores"]["pairs"] == 2
    for name in ("test", "test_blind"):
        result = json.loads((runs / name / "result.json").read_text())
        assert result["labels"]["mistake_time"] == "exact" and result["instruction_blind"] == (name == "test_blind")
    systems = {row["system"] for row in json.loads((runs / "test" / "result.json").read_text())["rows"]}
    assert {"LiveMamba", "silent", "chatty", "timer", "oracle"} <= systems


@pytest.mark.parametrize("text", [README, TRAINING], ids=["README", "training"])
def test_every_file_it_links_to_is_there(text):
    for link in re.findall(r"\]\(([^)#]+)\)", text):
        if "://" not in link:
            base = ROOT if text is README else ROOT / "docs"
            assert (base / link).exists(), link
