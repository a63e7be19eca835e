"""A simulated corpus as step clips, with the exact times and opposite instructions that only it knows. No torch.

Reads what `livemamba simulate` writes (docs/simkitchen.md): CaptainCook4D's files, through the same builder as the real
ones, and `simkitchen.json` beside them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from livemamba.data.captaincook4d import read_annotations
from livemamba.data.interactive_cooking import build_benchmark
from livemamba.data.step_clips import Counterfactual, StepClip, clips_of
from livemamba.errors import InputError
from livemamba.json_files import read_json
from livemamba.timeline import Message

DETAILS_FILE = "simkitchen.json"


def read_step_clips(folder: str | Path, split: str) -> tuple[StepClip, ...]:
    """Every step of a split.

    Args:
        folder: a corpus.
        split: train, validation or test.

    Raises:
        MissingError: if files are missing.
        InputError: if they aren't a simulated corpus, or the split is empty.
    """
    details = read_json(Path(folder) / DETAILS_FILE, what="details of a simulated corpus")
    videos = build_benchmark(read_annotations(folder)).videos["main"].get(split, ())
    if not videos:
        raise InputError(f"{folder}: split {split!r} has no video; generate more episodes")
    recordings = details["recordings"]
    return tuple(
        _with_details(clip, recordings[clip.video_id]["steps"]) for video in videos for clip in clips_of(video.timeline)
    )


def _with_details(clip: StepClip, steps: Sequence[Mapping[str, Any]]) -> StepClip:
    messages = tuple(_with_exact_time(message, clip, steps) for message in clip.messages)
    clip = replace(clip, messages=tuple(sorted(messages, key=lambda message: message.time_s)))
    own = [step for step in steps if step["end_s"] == _end_s(clip, steps)]
    if len(clip.plan.current) != 1 or len(own) != 1:
        return clip
    step = own[0]
    mistake = step.get("mistake")
    done = step["asked"] if mistake is None else mistake["done"] if mistake["kind"] == "other" else None
    return replace(clip, done=done, counterfactuals=tuple(map(_counterfactual, step["contrasts"])))


def _end_s(clip: StepClip, steps: Sequence[Mapping[str, Any]]) -> float | None:
    """When the clip's step ended: that of the corpus's steps which ends by its last frame, and not before that."""
    ends = [step["end_s"] for step in steps if 0 <= clip.end_s - step["end_s"] < 0.5]
    return max(ends, default=None)


def _with_exact_time(message: Message, clip: StepClip, steps: Sequence[Mapping[str, Any]]) -> Message:
    """A mistake when it can be seen, in place of at its action's end, where the builder puts it."""
    if message.kind != "mistake":
        return message
    seen = [step["mistake"]["seen_s"] for step in steps if step.get("mistake") and step["end_s"] == message.time_s]
    if len(seen) != 1:
        raise InputError(
            f"{clip.video_id}: {len(seen)} steps with a mistake end at {message.time_s} s, needed is one; "
            f"annotations and {DETAILS_FILE} are not of one corpus"
        )
    return replace(message, time_s=seen[0])


def _counterfactual(contrast: Mapping[str, Any]) -> Counterfactual:
    return Counterfactual(
        asked=contrast["asked"],
        field=contrast["field"],
        category=contrast["category"],
        notes=tuple(contrast["texts"]),
        time_s=contrast["seen_s"],
    )
