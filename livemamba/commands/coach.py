"""`livemamba coach`: coach over a video file, camera or stream, and write down what happened."""

import argparse
import copy
import json
import os
import re
import signal
import sys
import warnings
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager, nullcontext, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import psutil
import yaml
from tqdm import tqdm

import livemamba
from livemamba.coaching.coach import Coach
from livemamba.coaching.log import read_log, write_log
from livemamba.coaching.runner import Runner, RunReport
from livemamba.coaching.watchers import ScriptedWatcher, StepWatcher, events_of, make_watcher
from livemamba.errors import InputError
from livemamba.evaluation.predictions import write_predictions
from livemamba.files import check_replaceable, whole_folder
from livemamba.recipe import Recipe, load_recipe
from livemamba.texts import on_one_line
from livemamba.ticks import TICKS_PER_SECOND, Frame, tick_at_or_after, tick_to_s
from livemamba.timeline import Message, Timeline
from livemamba.video.protocol import FrameSource, SourceReport
from livemamba.video.source import ACCEPTED, open_source
from livemamba.video.writer import AnnotatedWriter, write_annotated

if TYPE_CHECKING:
    import torch

MESSAGES_FILE = "messages.jsonl"
PREDICTIONS_FILE = "predictions.json"
VIDEO_FILE = "annotated.mp4"
REPORT_FILE = "run.json"
FILES = (MESSAGES_FILE, PREDICTIONS_FILE, VIDEO_FILE, REPORT_FILE)
STOPPED = 130

_SIMPLE_WATCHERS = ("silent", "timer", "chatty", "scripted")


def add_parser(commands: Any) -> None:
    """Say what the command takes."""
    parser = commands.add_parser(
        "coach",
        help="coach a person through a recipe, over a file, a camera or a stream",
        description=(
            "Watch a source at 2 frames a second and coach through the recipe. Messages are printed as they come; "
            f"OUT gets {MESSAGES_FILE}, {PREDICTIONS_FILE} (official format), {VIDEO_FILE} and {REPORT_FILE}. "
            "Ctrl-C stops and keeps what there is."
        ),
    )
    who = parser.add_mutually_exclusive_group(required=True)
    who.add_argument("--checkpoint", metavar="C", help="a LiveMamba checkpoint: a folder, or a hub id")
    who.add_argument("--watcher", choices=_SIMPLE_WATCHERS, help="a judge without a model")
    parser.add_argument("--recipe", required=True, metavar="FILE", help="a recipe (.yaml) or task graph (.json)")
    parser.add_argument("--source", required=True, metavar="V", help=ACCEPTED)
    parser.add_argument("--out", required=True, metavar="DIR", help="the folder to make")
    parser.add_argument("--overwrite", action="store_true", help="replace a run that is there")
    parser.add_argument("--start", type=float, default=0.0, metavar="S", help="seconds at which coaching begins")
    parser.add_argument("--device", default="cpu", help="where the model runs, such as cuda (default cpu)")
    parser.add_argument("--script", metavar="FILE", help=f"for --watcher scripted: the {MESSAGES_FILE} to replay")
    parser.add_argument("--no-replanner", action="store_true", help="keep the plan when the person diverges from it")
    parser.add_argument("--allow-truncated", action="store_true", help="take what a cut-off file still holds")
    parser.add_argument(
        "--set",
        dest="options",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="an option of the watcher (timer: default_s=20) or of the model's decoding (thresholds.mistake=0.3)",
    )
    parser.set_defaults(run=run)


@dataclass(kw_only=True)
class MemoryMeter:
    """The process's memory in MiB, read after each frame: after the third, which has warmed up, and the last."""

    process: psutil.Process = field(default_factory=psutil.Process)
    readings: int = 0
    early_mib: float = 0.0
    last_mib: float = 0.0
    most_mib: float = 0.0

    def read(self) -> None:
        """Take a reading."""
        self.last_mib = self.process.memory_info().rss / 2**20
        self.most_mib = max(self.most_mib, self.last_mib)
        self.readings += 1
        if self.readings <= 3:
            self.early_mib = self.last_mib

    def to_dict(self) -> dict[str, float]:
        """For the report."""
        return {name: round(getattr(self, name), 1) for name in ("early_mib", "last_mib", "most_mib")}


def run(arguments: argparse.Namespace) -> int:
    """Coach, then write everything."""
    out = Path(arguments.out)
    replaces = REPORT_FILE if arguments.overwrite else None
    check_replaceable(out, replaces=replaces, only=FILES)
    if _lies_in(arguments.source, out):
        raise InputError(f"--source {arguments.source} lies in --out, which is replaced; choose another folder")
    recipe = load_recipe(arguments.recipe)
    start_tick = _start_tick(arguments.start)
    with open_source(arguments.source, allow_truncated=arguments.allow_truncated) as source:
        live = source.info.live  # opens it: what can't be read fails before a model is loaded
        watcher, about = _watcher(arguments, recipe)
        coach = Coach(recipe, replanning=not arguments.no_replanner)
        video_id = re.sub(r"[^\w.-]+", "_", Path(arguments.source).stem or arguments.source)
        with whole_folder(out, replaces=replaces, only=FILES) as partial:
            recorder = AnnotatedWriter(partial / VIDEO_FILE) if live else None
            with recorder or nullcontext():
                report, memory, stopped = _coach(source, coach, watcher, start_tick, recorder)
            read = copy.deepcopy(source.report)  # of this pass: drawing the messages reads the source again
            timeline = coach.timeline(video_id)
            _write_messages(partial, timeline)
            if not (live or stopped):  # a live source was recorded as it went; a stopped run should end now
                stopped = not _draw_messages(partial, timeline, source)
            settings = {**about, "recipe": str(arguments.recipe), "source": str(arguments.source)}
            _write_report(partial, settings, read, report, memory, stopped=stopped)
    _print_summary(report, read, out, stopped=stopped)
    return STOPPED if stopped else 0


def _lies_in(source: str, out: Path) -> bool:
    return Path(source).exists() and Path(os.path.realpath(source)).is_relative_to(os.path.realpath(out))


def _start_tick(start_s: float) -> int | None:
    if start_s < 0:
        raise InputError(f"--start is {start_s}; give seconds >= 0 from the first shown frame")
    return tick_at_or_after(start_s) or None


def _watcher(arguments: argparse.Namespace, recipe: Recipe) -> tuple[StepWatcher, dict[str, Any]]:
    """Who judges, and what the report says of it."""
    if arguments.checkpoint:
        if arguments.script:
            raise InputError("--script is for --watcher scripted; a checkpoint watches by itself")
        return _model_watcher(arguments, recipe)
    if arguments.watcher == "scripted":
        if not arguments.script or arguments.options:
            raise InputError("--watcher scripted needs --script and takes no --set")
        script = events_of(read_log(arguments.script, video_id="script"))
        return ScriptedWatcher(script), {"watcher": "scripted", "script": str(arguments.script)}
    if arguments.script:
        raise InputError(f"--script is for --watcher scripted, not {arguments.watcher}")
    options = dict(_option(text) for text in arguments.options)
    return make_watcher(arguments.watcher, recipe, **options), {"watcher": arguments.watcher, "options": options}


def _option(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise InputError(f"--set {text!r} is not of the form key=value")
    try:
        return name, yaml.safe_load(value)
    except yaml.YAMLError:
        raise InputError(f"--set {text!r}: the value is not YAML; quote it") from None


def _model_watcher(arguments: argparse.Namespace, recipe: Recipe) -> tuple[StepWatcher, dict[str, Any]]:
    from livemamba.coaching.model_watcher import LiveMambaWatcher
    from livemamba.config import DecodingConfig, config_from_dict, config_to_dict, with_override
    from livemamba.model.livemamba import LiveMamba, RandomWeightsWarning
    from livemamba.model.stream import Stream

    device = _device(arguments.device)
    print(f"loading {arguments.checkpoint}", file=sys.stderr)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", RandomWeightsWarning)
        model = LiveMamba.from_pretrained(arguments.checkpoint, device=device)
    for warning in caught:
        if issubclass(warning.category, RandomWeightsWarning):
            print(f"WARNING: {warning.message}", file=sys.stderr)
        else:
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
    settings: Any = config_to_dict(model.config.decoding)
    for option in arguments.options:
        settings = with_override(settings, option)
    decoding = config_from_dict(DecodingConfig, settings, where="--set")
    stream = Stream(model, decoding=decoding)
    watcher = LiveMambaWatcher(stream, recipe)
    about = {
        "checkpoint": str(arguments.checkpoint),
        "provenance": model.provenance,
        "device": str(model.device),
        "decoding": settings,
        "state_bytes": stream.state.num_bytes,
    }
    return watcher, about


def _device(name: str) -> "torch.device":
    import torch

    try:
        device = torch.device(name)
        torch.empty(1, device=device)  # whether it is there
    except (RuntimeError, AssertionError) as error:  # torch has no kinds for this
        raise InputError(f"--device {name} can't be used ({str(error).splitlines()[0][:120]}); try cpu") from None
    if device.type == "meta":
        raise InputError("--device meta holds no values; try cpu")
    return device


# --- the session ---------------------------------------------------------------------------------------


def _coach(
    source: FrameSource, coach: Coach, watcher: StepWatcher, start_tick: int | None, recorder: AnnotatedWriter | None
) -> tuple[RunReport, MemoryMeter, bool]:
    """Run the session with a progress line; also whether it was stopped by Ctrl-C."""
    info, memory = source.info, MemoryMeter()
    total = None if info.duration_s is None else int(info.duration_s * TICKS_PER_SECOND) + 1
    with tqdm(total=total, unit="tick", desc="watching", disable=None, leave=False, dynamic_ncols=True) as bar:
        sinks: list[Callable[[Message], None]] = [lambda message: tqdm.write(_line(message), file=sys.stdout)]
        if recorder is not None:
            sinks.append(recorder.say)
        runner = Runner(coach, watcher, sinks=sinks, wait_for_replanner=not info.live)
        # Closed here: left to Python, what follows the last frame of a failed session would come at any time.
        with _stop_on_interrupt() as stopped, closing(_followed(source, bar, memory, recorder)) as frames:
            report = runner.run(frames, start_tick=start_tick, should_stop=lambda: bool(stopped))
    return report, memory, bool(stopped)


def _followed(
    source: FrameSource, bar: "tqdm[Any]", memory: MemoryMeter, recorder: AnnotatedWriter | None
) -> Generator[Frame, None, None]:
    """The source's frames; what comes after each has been judged is done here."""
    for frame in source:
        try:
            yield frame
        finally:  # also for the frame at which the session ends
            if recorder is not None:
                recorder.add(frame.pixels, tick_to_s(frame.tick))
            memory.read()
            bar.update(frame.tick + 1 - bar.n)


@contextmanager
def _stop_on_interrupt() -> Iterator[list[int]]:
    """Ctrl-C or a polite kill fills the list: the session ends after the frame at hand; a second one breaks off."""
    stopped: list[int] = []

    def on_interrupt(number: int, frame: FrameType | None) -> None:
        if stopped:
            raise KeyboardInterrupt
        stopped.append(number)
        with suppress(OSError, ValueError):  # not print: it fails if it interrupts another print
            os.write(sys.stderr.fileno(), b"\nstopping after this frame (Ctrl-C again to break off)\n")

    before = {number: signal.signal(number, on_interrupt) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stopped
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


_COLOURS = {"instruction": "1", "success": "32", "mistake": "31", "divergence": "33", "finish": "1;32"}


def _line(message: Message) -> str:
    minutes, seconds = divmod(message.time_s, 60)
    kind = f"{message.kind:<11}"
    if sys.stdout.isatty():
        kind = f"\x1b[{_COLOURS.get(message.kind, '0')}m{kind}\x1b[0m"
    return f"{int(minutes):3d}:{seconds:04.1f}  {kind}  {on_one_line(message.text)}"


# --- what stays ----------------------------------------------------------------------------------------


def _write_messages(partial: Path, timeline: Timeline) -> None:
    write_log(partial / MESSAGES_FILE, timeline)
    if timeline.messages:
        write_predictions(partial / PREDICTIONS_FILE, [timeline])


def _draw_messages(partial: Path, timeline: Timeline, source: FrameSource) -> bool:
    """Write the annotated video; False if Ctrl-C stopped it, which costs the video and nothing else."""
    with tqdm(unit="s", desc=VIDEO_FILE, disable=None, leave=False, dynamic_ncols=True) as bar:

        def show(done_s: float, total_s: float | None) -> None:
            bar.total = None if total_s is None else round(total_s, 1)
            bar.update(round(done_s, 1) - bar.n)

        try:
            write_annotated(source, timeline, partial / VIDEO_FILE, progress=show)
        except KeyboardInterrupt:
            print(f"stopped while writing {VIDEO_FILE}: the run is kept without it", file=sys.stderr)
            return False
    return True


def _write_report(
    partial: Path,
    settings: dict[str, Any],
    read: SourceReport,
    report: RunReport,
    memory: MemoryMeter,
    *,
    stopped: bool,
) -> None:
    content = {
        "livemamba_version": livemamba.__version__,
        **settings,
        "stopped": stopped,
        "run": asdict(report),
        "memory": memory.to_dict(),
        "read": asdict(read),
    }
    (partial / REPORT_FILE).write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def _print_summary(report: RunReport, read: SourceReport, out: Path, *, stopped: bool) -> None:
    said = ", ".join(f"{count} {kind}" for kind, count in sorted(report.messages.items())) or "no messages"
    print(
        f"{report.frames_judged} ticks judged, {report.mean_frame_s:.3f} s each (worst {report.worst_frame_s:.3f} s); "
        f"{said}; recipe {'finished' if report.finished else 'not finished'}"
    )
    if report.counts:
        print("ignored or refused: " + ", ".join(f"{count} x {what}" for what, count in report.counts.items()))
    print(read.text(), file=sys.stderr)
    print(f"{'stopped; ' if stopped else ''}written to {out}")
