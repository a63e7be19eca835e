"""The official predictions file of Interactive Cooking (spec/interactive_cooking.md). No torch.

A JSON list of {"video_id", "pred_texts", "pred_timestamps"}; each text starts with "Instruction: ",
"Feedback: " or "Success: ", the first is an instruction, times are seconds on the video's clock.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from livemamba.errors import InputError
from livemamba.files import whole_file
from livemamba.timeline import MessageKind, Timeline

PREFIXES: dict[MessageKind, str] = {
    "instruction": "Instruction: ",
    "success": "Success: ",
    "mistake": "Feedback: ",
    "divergence": "Feedback: ",
    "finish": "Success: ",
}
"""What each kind of message is called there. An advance is silent and has no place in the file; the finish
message acknowledges the last step, so it counts as a success."""


def prediction_entry(timeline: Timeline) -> dict[str, Any]:
    """One video's messages as the official file holds them.

    Raises:
        InputError: if the first message isn't an instruction, which the format demands.
    """
    said = [message for message in timeline.messages if message.kind in PREFIXES]
    if not said or said[0].kind != "instruction":
        first = said[0].kind if said else "nothing"
        raise InputError(
            f"{timeline.video_id}: the first message is {first}; the official format opens with an instruction"
        )
    return {
        "video_id": timeline.video_id,
        "pred_texts": [PREFIXES[message.kind] + message.text for message in said],
        "pred_timestamps": [message.time_s for message in said],
    }


def write_predictions(path: str | Path, timelines: Iterable[Timeline]) -> None:
    """Write the official file for some videos, whole or not at all.

    Raises:
        InputError: as `prediction_entry`, or if a video comes twice.
    """
    entries = [prediction_entry(timeline) for timeline in timelines]
    ids = [entry["video_id"] for entry in entries]
    twice = sorted({video_id for video_id in ids if ids.count(video_id) > 1})
    if twice:
        raise InputError(f"predictions hold {twice[0]} more than once; give one timeline for each video")
    with whole_file(path) as partial:
        partial.write_text(json.dumps(entries, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
