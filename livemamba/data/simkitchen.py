"""A simulated corpus as step clips, with the exact times and opposite instructions that only it knows. No torch.

Reads what `livemamba simulate` writes (docs/simkitchen.md): CaptainCook4D's files, through the same builder as the real
ones, and `simkitchen.json` beside them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from livemamba.data.captaincook4d import EXACT_FILE, read_annotations
from livemamba.data.interactive_cooking import build_benchmark
from livemamba.data.step_clips import Counterfactual, StepClip, clips_of
from livemamba.errors import InputError
from livemamba.json_files import read_json
from livemamba.timeline import Timeline


def read_rows(folder: str | Path, split: str) -> tuple[Timeline, ...]:
    """The Main set of a split, with mistakes at the moments at which they can be seen.

    Args:
        folder: a corpus.
        split: train, validation, test or test_unseen.

    Raises:
        MissingError: if files are missing.
        InputError: if they aren't a simulated corpus, or the split is empty.
    """
    videos = build_benchmark(read_annotations(folder), mistake_time="exact").videos["main"].get(split, ())
    if not videos:
        raise InputError(f"{folder}: split {split!r} has no video; generate more episodes")
    return tuple(video.timeline for video in videos)


def read_step_clips(folder: str | Path, split: str) -> tuple[StepClip, ...]:
    """Every step of a split.

    Args:
        folder: a corpus.
        split: train, validation, test or test_unseen.

    Raises:
        MissingError, InputError: as `read_rows`.
    """
    recordings = read_json(Path(folder) / EXACT_FILE, what="details of a simulated corpus")["recordings"]
    return tuple(
        _with_details(clip, recordings[row.video_id]["steps"])
        for row in read_rows(folder, split)
        for clip in clips_of(row)
    )


def _with_details(clip: StepClip, steps: Sequence[Mapping[str, Any]]) -> StepClip:
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


def _counterfactual(contrast: Mapping[str, Any]) -> Counterfactual:
    return Counterfactual(
        asked=contrast["asked"],
        field=contrast["field"],
        category=contrast["category"],
        notes=tuple(contrast["texts"]),
        time_s=contrast["seen_s"],
    )
