"""The command as people run it: in a process of its own, its one-line errors and what it leaves behind."""

import json
import os
import signal
import subprocess
import sys
import time

import av
import numpy as np
import pytest

from livemamba.cli import main
from livemamba.coaching.log import read_log, write_log
from livemamba.timeline import Message, Timeline

RECIPE = "name: Egg\nsteps: [Heat the pan, Crack an egg, Fry the egg]\n"


@pytest.fixture
def recipe(tmp_path):
    path = tmp_path / "egg.yaml"
    path.write_text(RECIPE)
    return path


@pytest.fixture
def run(tmp_path, capsys):
    """Run a command line in this process; returns status, standard output and error."""

    def run(*arguments):
        status = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return run


def _files(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_timer_coaches_a_real_clip(run, recipe, tmp_path, test_data):
    clip = test_data / "video" / "flipping_a_pancake.mkv"
    out = tmp_path / "out"
    status, printed, _ = run(
        "coach", "--watcher", "timer", "--set", "default_s=3", "--recipe", recipe, "--source", clip, "--out", out
    )
    assert status == 0
    said = [line.split(None, 2) for line in printed.splitlines()[:7]]
    assert [(time, kind) for time, kind, _ in said] == [
        ("0:00.0", "instruction"),
        ("0:03.0", "success"),
        ("0:03.0", "instruction"),
        ("0:06.0", "success"),
        ("0:06.0", "instruction"),
        ("0:09.0", "success"),
        ("0:09.0", "finish"),
    ]
    assert _files(out) == ["annotated.mp4", "messages.jsonl", "predictions.json", "run.json"]
    (entry,) = json.loads((out / "predictions.json").read_text())
    assert entry["video_id"] == "flipping_a_pancake"
    assert entry["pred_texts"][0] == "Instruction: Now heat the pan."
    assert entry["pred_timestamps"] == [0.0, 3.0, 3.0, 6.0, 6.0, 9.0, 9.0]
    assert [message.text for message in read_log(out / "messages.jsonl", video_id="v").messages] == [
        text.partition(": ")[2] for text in entry["pred_texts"]
    ]
    report = json.loads((out / "run.json").read_text())
    assert (report["run"]["frames_judged"], report["run"]["finished"], report["stopped"]) == (19, True, False)
    with av.open(str(out / "annotated.mp4")) as video:
        frames = sum(1 for _ in video.decode(video=0))
    assert frames == 310  # every frame of the source, not only the ticks


def test_a_log_can_be_replayed(run, recipe, tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    common = ("--recipe", recipe, "--source", "testcard:8")
    assert run("coach", "--watcher", "timer", "--set", "default_s=2", *common, "--out", first)[0] == 0
    script = first / "messages.jsonl"
    assert run("coach", "--watcher", "scripted", "--script", script, *common, "--out", second)[0] == 0
    assert (second / "messages.jsonl").read_text() == script.read_text()


def test_a_model_with_random_weights_says_so_loudly(run, recipe, tmp_path, small_model):
    checkpoint = small_model.save_pretrained(tmp_path / "checkpoint")
    out = tmp_path / "out"
    status, printed, errors = run(
        "coach", "--checkpoint", checkpoint, "--recipe", recipe, "--source", "testcard:3", "--out", out,
        "--set", "thresholds.advance=0", "--set", "thresholds.success=2",
    )  # fmt: skip
    assert status == 0
    assert "WARNING" in errors and "RANDOM WEIGHTS in vision, qformer, backbone" in errors
    # At threshold 0 every frame ends a step: three instructions, then the finish.
    assert [line.split()[1] for line in printed.splitlines()[:4]] == ["instruction"] * 3 + ["finish"]
    report = json.loads((out / "run.json").read_text())
    assert report["provenance"]["vision"] == "random, seed 1"
    assert report["decoding"]["thresholds"]["advance"] == 0
    assert report["state_bytes"] > 0


def test_the_start_is_where_coaching_begins(run, recipe, tmp_path):
    out = tmp_path / "out"
    status, _, _ = run(
        "coach", "--watcher", "timer", "--set", "default_s=1", "--recipe", recipe, "--source", "testcard:8",
        "--start", "2.5", "--out", out,
    )  # fmt: skip
    assert status == 0
    messages = read_log(out / "messages.jsonl", video_id="v").messages
    assert [message.time_s for message in messages][:3] == [2.5, 3.5, 3.5]


# --- what a user can get wrong ---------------------------------------------------------------------------


def _clip(path, seconds=2, *, movflags="faststart"):
    """A drawn mp4 of 64x64."""
    with av.open(str(path), "w", options={"movflags": movflags}) as out:
        stream = out.add_stream("libx264", rate=10)
        stream.width = stream.height = 64
        random = np.random.default_rng(0)
        for _ in range(seconds * 10):
            pixels = random.integers(0, 256, (64, 64, 3), dtype=np.uint8)
            for packet in stream.encode(av.VideoFrame.from_ndarray(pixels, format="rgb24")):
                out.mux(packet)
        for packet in stream.encode():
            out.mux(packet)
    return path


def _audio_only(path):
    with av.open(str(path), "w") as out:
        stream = out.add_stream("aac", rate=16000)
        frame = av.AudioFrame.from_ndarray(np.zeros((1, 16000), np.float32), format="fltp", layout="mono")
        frame.sample_rate = 16000
        for packet in (*stream.encode(frame), *stream.encode()):
            out.mux(packet)
    return path


def _cut(path, share):
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * share)])
    return path


def _source(name, tmp_path):
    if name == "missing":
        return tmp_path / "missing.mp4"
    if name == "folder":
        return tmp_path
    if name == "mistyped":
        return tmp_path / "vidoes" / "a.mp4"
    if name == "audio":
        return _audio_only(tmp_path / "audio.mp4")
    if name == "cut":
        return _cut(_clip(tmp_path / "cut.mp4"), 0.6)
    if name == "index-cut-away":
        return _cut(_clip(tmp_path / "behind.mp4", movflags="-faststart"), 0.6)
    path = tmp_path / f"{name}.mp4"
    path.write_bytes({"empty": b"", "text": b"this is no video\n" * 50}[name])
    return path


@pytest.mark.parametrize(
    "name", ["missing", "folder", "mistyped", "audio", "cut", "index-cut-away", "empty", "text"]
)  # fmt: skip
def test_a_source_that_cannot_be_watched_is_one_line_and_leaves_nothing(run, recipe, tmp_path, name):
    source = _source(name, tmp_path)
    before = _files(tmp_path)
    status, _, errors = run(
        "coach", "--watcher", "silent", "--recipe", recipe, "--source", source, "--out", tmp_path / "out"
    )
    assert status == 1
    lines = [line for line in errors.splitlines() if line]
    assert len(lines) == 1 and lines[0].startswith("livemamba: error: ")
    assert source.name in lines[0]
    assert _files(tmp_path) == before


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("name: x\nsteps: []\n", "no steps"),
        ("name: x\nsteps: [{text: a, id: a, after: b}, {text: b, id: b, after: a}]\n", "circle"),
        ("name: x\nsteps: [{text: a, after: z}]\n", "'z', which is no step"),
        ("name: x\nstepps: [a]\n", "unknown key 'stepps'"),
        ("", "is empty"),
        (None, "does not exist"),
    ],
)
def test_a_recipe_that_is_none_is_one_line(run, tmp_path, text, rule):
    recipe = tmp_path / "recipe.yaml"
    if text is not None:
        recipe.write_text(text)
    status, _, errors = run(
        "coach", "--watcher", "silent", "--recipe", recipe, "--source", "testcard:2", "--out", tmp_path / "out"
    )
    assert status == 1
    assert rule in errors and "recipe.yaml" in errors and len(errors.splitlines()) == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        (("--watcher", "timer", "--set", "default=3"), "no option 'default'"),
        (("--watcher", "timer", "--set", "default_s=-3"), "not a finite number"),
        (("--watcher", "timer", "--set", "nonsense"), "not of the form"),
        (("--watcher", "timer", "--set", "default_s=abc"), "'abc' of the default"),
        (("--watcher", "timer", "--set", "default_s=null"), "None of the default"),
        (("--watcher", "timer", "--set", "durations_s=5"), "give a mapping"),
        (("--watcher", "chatty", "--set", "text=5"), "a text is needed"),
        (("--watcher", "chatty", "--set", "text=You did not follow the instruction."), "starts with one of"),
        (("--checkpoint", "x/y", "--device", "banana"), "--device banana"),
        (("--watcher", "silent", "--start", "-1"), "--start"),
        (("--watcher", "silent", "--start", "99"), "never began"),
        (("--watcher", "scripted"), "needs --script"),
        (("--watcher", "silent", "--script", "x"), "--script is for"),
        (("--checkpoint", "chekpoints/tiny"), "chekpoints/tiny"),
        (("--checkpoint", "/nowhere/at/all"), "does not exist"),
    ],
)
def test_a_wrong_option_is_one_line_and_leaves_nothing(run, recipe, tmp_path, arguments, rule, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    status, _, errors = run(
        "coach", *arguments, "--recipe", recipe, "--source", "testcard:2", "--out", tmp_path / "out"
    )
    assert status == 1
    assert rule in errors.splitlines()[-1]
    assert _files(tmp_path) == ["egg.yaml"]


def test_a_timer_needs_no_torch(tmp_path, recipe):
    code = (
        "import sys; from livemamba.cli import main\n"
        f"status = main(['coach', '--watcher', 'timer', '--recipe', {str(recipe)!r}, '--source', 'testcard:2', "
        f"'--out', {str(tmp_path / 'out')!r}])\n"
        "assert status == 0 and 'torch' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_it_never_overwrites_unasked(run, recipe, tmp_path):
    common = ("coach", "--watcher", "silent", "--recipe", recipe, "--source", "testcard:1", "--out", tmp_path / "out")
    assert run(*common)[0] == 0
    status, _, errors = run(*common)
    assert status == 1 and "out exists" in errors
    assert run(*common, "--overwrite")[0] == 0
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "thesis.txt").write_text("x")
    status, _, errors = run(*common[:-1], tmp_path / "notes", "--overwrite")
    assert status == 1 and "holds no run.json" in errors
    assert _files(tmp_path / "notes") == ["thesis.txt"]


SLOW_WATCHER = """
import sys, time
import livemamba.coaching.watchers as watchers
from livemamba.cli import main
class Slow(watchers.SilentWatcher):
    def see(self, frame):
        print("frame", frame.tick, flush=True)
        time.sleep({pause})
        return ()
watchers._WATCHERS["silent"] = Slow
sys.exit(main(sys.argv[1:]))
"""


def _start(recipe, out, pause):
    command = [sys.executable, "-c", SLOW_WATCHER.format(pause=pause), "coach", "--watcher", "silent"]
    command += ["--recipe", str(recipe), "--source", "testcard:50", "--out", str(out)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ})
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("frame 1"):
            return process
    pytest.fail(process.stderr.read())


def test_ctrl_c_stops_after_the_frame_and_keeps_what_there_is(recipe, tmp_path):
    process = _start(recipe, tmp_path / "out", 0.2)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in errors
    report = json.loads((tmp_path / "out" / "run.json").read_text())
    assert report["stopped"] is True and 2 <= report["run"]["frames_judged"] < 100
    assert _files(tmp_path / "out") == ["messages.jsonl", "predictions.json", "run.json"]


def test_a_second_ctrl_c_breaks_off_and_leaves_nothing(recipe, tmp_path):
    process = _start(recipe, tmp_path / "out", 20)
    process.send_signal(signal.SIGINT)
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=15)
    assert process.returncode == 130
    assert "Traceback" not in errors
    assert _files(tmp_path) == ["egg.yaml"]


def test_a_live_source_is_recorded_as_it_goes(recipe, tmp_path, monkeypatch, run):
    """A camera's frames can't be read again: what is drawn is what was watched, one picture a tick."""
    from livemamba.commands import coach
    from livemamba.video.testcard import make_test_card

    def live(*_, **__):
        source = make_test_card(4)
        info = type(source).info.fget(source)
        monkeypatch.setattr(type(source), "info", property(lambda self: _with_live(info)))
        return source

    monkeypatch.setattr(coach, "open_source", live)
    status, _, _ = run(
        "coach", "--watcher", "timer", "--set", "default_s=1", "--recipe", recipe, "--source", "camera:0",
        "--out", tmp_path / "out",
    )  # fmt: skip
    assert status == 0
    with av.open(str(tmp_path / "out" / "annotated.mp4")) as video:
        times = [float(frame.time) for frame in video.decode(video=0)]
    assert times == pytest.approx([0, 0.5, 1, 1.5, 2, 2.5, 3])


def _with_live(info):
    from dataclasses import replace

    return replace(info, live=True)


def test_any_line_break_in_a_message_survives_the_log(tmp_path):
    text = "one\u2028two\u0085three\u000bfour"
    timeline = Timeline(video_id="v", messages=(Message(time_s=0.0, kind="instruction", text=text),))
    write_log(tmp_path / "log.jsonl", timeline)
    assert read_log(tmp_path / "log.jsonl", video_id="v").messages == timeline.messages


def test_no_message_can_command_the_terminal(run, tmp_path):
    recipe = tmp_path / "r.yaml"
    recipe.write_text('steps: ["Cut\\e[31m the\\nbread \\U0001F35E"]')
    status, printed, _ = run(
        "coach", "--watcher", "silent", "--recipe", recipe, "--source", "testcard:1", "--out", tmp_path / "o"
    )
    assert status == 0
    assert "\x1b" not in printed
    assert "Now cut [31m the bread \U0001f35e." in printed.splitlines()[0]


def test_a_run_with_other_files_in_it_is_not_replaced(run, recipe, tmp_path):
    out = tmp_path / "out"
    arguments = ["coach", "--watcher", "silent", "--recipe", recipe, "--source", "testcard:1", "--out", out]
    assert run(*arguments)[0] == 0
    (out / "notes.txt").write_text("mine")
    assert "notes.txt, which would be lost" in run(*arguments, "--overwrite")[2]
    (out / "notes.txt").unlink()
    video = out / "annotated.mp4"
    status, _, said = run(*arguments, "--source", video, "--overwrite")
    assert (status, "lies in --out" in said, video.exists()) == (1, True, True)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stop_while_the_video_is_written_keeps_the_messages(run, recipe, tmp_path, monkeypatch, number):
    def interrupted(*arguments, **options):
        os.kill(os.getpid(), number)
        time.sleep(5)

    monkeypatch.setattr("livemamba.commands.coach.write_annotated", interrupted)
    out = tmp_path / "out"
    status, _, said = run("coach", "--watcher", "silent", "--recipe", recipe, "--source", "testcard:1", "--out", out)
    assert status == 130
    assert "the run is kept without it" in said
    assert _files(out) == ["messages.jsonl", "predictions.json", "run.json"]
    assert json.loads((out / "run.json").read_text())["stopped"] is True


def test_a_polite_kill_stops_after_the_frame_too(recipe, tmp_path):
    process = _start(recipe, tmp_path / "out", 0.2)
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in errors
    assert _files(tmp_path / "out") == ["messages.jsonl", "predictions.json", "run.json"]
