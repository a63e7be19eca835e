"""The official predictions file of Interactive Cooking (spec/interactive_cooking.md). No torch.

A JSON list of {"video_id", "pred_texts", "pred_timestamps"}; each text starts with "Instruction: ",
"Feedback: " or "Success: ", the first is an instruction, times are seconds on the video's clock.
"""

import itertools
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from livemamba.conversation import DIVERGENCE_OPENINGS
from livemamba.errors import InputError, MissingError
from livemamba.evaluation.interactive_cooking import Prediction
from livemamba.evaluation.rules import Protocol
from livemamba.files import whole_file
from livemamba.json_files import read_json
from livemamba.timeline import FINISH_TEXT, Message, MessageKind, Timeline

PREFIXES: dict[MessageKind, str] = {
    "instruction": "Instruction: ",
    "success": "Success: ",
    "mistake": "Feedback: ",
    "divergence": "Feedback: ",
    "finish": "Success: ",
}
"""What each kind of message is called there. An advance is silent and has no place in the file; the finish
message acknowledges the last step, so it counts as a success."""

RUN_FILE = "run.json"
"""Beside predictions that are written as they come: what makes them."""

NO_TEXT = "…"
"""Stands for the sentence of a message that has only its prefix: it has no letter, so text scores give it 0."""


# --- writing -----------------------------------------------------------------------------------------


def prediction_entry(prediction: Prediction) -> dict[str, Any]:
    """One video's messages as the official file holds them; turns one after the other.

    Raises:
        InputError: if there are no messages, the first one of the video or of a turn isn't an instruction, which the
            format demands, or turns are of several videos.
    """
    timelines = [prediction] if isinstance(prediction, Timeline) else list(prediction)
    ids = {timeline.video_id for timeline in timelines}
    if len(ids) != 1:
        raise InputError(f"a prediction is of one video, not of {len(ids)}: {', '.join(sorted(ids))}")
    said = [message for timeline in timelines for message in _official(timeline)]
    return {
        "video_id": ids.pop(),
        "pred_texts": [PREFIXES[message.kind] + message.text for message in said],
        "pred_timestamps": [message.time_s for message in said],
    }


def _official(timeline: Timeline) -> list[Message]:
    said = [message for message in timeline.messages if message.kind in PREFIXES]
    if not said or said[0].kind != "instruction":
        first = said[0].kind if said else "nothing"
        raise InputError(
            f"{timeline.video_id}: the first message is {first}; the official format opens with an instruction"
        )
    return said


def write_predictions(path: str | Path, predictions: Iterable[Prediction]) -> None:
    """Write the official file for some videos, whole or not at all.

    Args:
        path: of the file.
        predictions: for each video its timeline, or its turns.

    Raises:
        InputError: as `prediction_entry`, or if a video comes twice.
    """
    entries = [prediction_entry(prediction) for prediction in predictions]
    _check_once(entry["video_id"] for entry in entries)
    with whole_file(path) as partial:
        partial.write_text(json.dumps(entries, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _check_once(ids: Iterable[str]) -> None:
    twice = sorted(video_id for video_id, count in Counter(ids).items() if count > 1)
    if twice:
        raise InputError(f"predictions hold {twice[0]} more than once; give one timeline for each video")


def claim_run(folder: str | Path, settings: Mapping[str, Any]) -> None:
    """Make a folder that of one run, whose predictions another run of the same settings goes on with.

    Args:
        folder: made if it isn't there.
        settings: all that predictions depend on, JSON-ready.

    Raises:
        InputError: if the folder holds predictions of other settings, or some of which nobody knows what made them.
    """
    folder = Path(folder)
    path = folder / RUN_FILE
    if path.is_file():
        found = read_json(path, what="settings of a run")
        found = found if isinstance(found, dict) else {}
        names = dict.fromkeys([*settings, *found])
        different = [name for name in names if found.get(name) != settings.get(name)]
        if different:
            raise InputError(
                f"{folder} holds predictions of another run ({', '.join(different)} differ); name another folder"
            )
        return
    there = [name for name in ("streaming.json", "turn_based.json") if (folder / name).exists()]
    if there:
        raise InputError(f"{folder} holds {there[0]} and no {RUN_FILE} that says what made it; name another folder")
    with whole_file(path) as partial:
        partial.write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")


# --- reading -----------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class ReadPredictions:
    """What a predictions file holds.

    Attributes:
        videos: by id; one timeline each (streaming) or one for each instruction (turn-based).
        without_text: messages that have only their prefix.
        ignored_keys: keys of entries that the format doesn't know, with how often they came.
    """

    videos: dict[str, Prediction]
    without_text: int = 0
    ignored_keys: dict[str, int] = field(default_factory=dict)


def read_predictions(path: str | Path, *, protocol: Protocol = "streaming") -> ReadPredictions:
    """Read an official predictions file; what breaks its rules is refused with the video and the place.

    Times rise, equal ones allowed: over the whole video when streaming; within each turn, and from instruction to
    instruction, when turn-based, since a turn may go on after the next one's instruction. A message that is there
    twice is two messages.

    Raises:
        MissingError: if there is no such file.
        InputError: if it isn't JSON or breaks the format.
    """
    path = Path(path)
    entries = _load(path)
    if not isinstance(entries, list):
        raise InputError(f"{path}: expected a list with an object for each video, got a {_kind(entries)}")
    videos: dict[str, Prediction] = {}
    ignored: Counter[str] = Counter()
    without_text = 0
    for place, entry in enumerate(entries):
        video_id = _video_id(entry, f"{path}: entry {place}")
        if video_id in videos:
            raise InputError(f"{path}: entry {place}: video {video_id} is there already; give one entry for each video")
        messages = _messages(entry, f"{path}: video {video_id}")
        videos[video_id] = _timelines(video_id, messages, protocol, f"{path}: video {video_id}")
        without_text += sum(message.text == NO_TEXT for message in messages)
        ignored.update(key for key in entry if key not in _KEYS)
    return ReadPredictions(videos=videos, without_text=without_text, ignored_keys=dict(ignored))


_KEYS = ("video_id", "pred_texts", "pred_timestamps")
_MOST_S = 1e7  # four months: no video, but a time stamp in another unit
_KINDS: dict[str, MessageKind] = {"Instruction": "instruction", "Success": "success", "Feedback": "mistake"}


def _load(path: Path) -> Any:
    if not path.is_file():
        raise MissingError(f"predictions file {path} does not exist; give a JSON list in the official format")
    try:
        return json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=_no_key_twice)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: not JSON ({error})") from None


def _no_key_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    twice = [key for key, count in Counter(key for key, _ in pairs).items() if count > 1]
    if twice:
        raise ValueError(f"an object has the key {twice[0]!r} more than once")
    return dict(pairs)


def _kind(value: Any) -> str:
    return {"dict": "JSON object", "str": "text", "NoneType": "null", "bool": "truth value"}.get(
        type(value).__name__, type(value).__name__
    )


def _video_id(entry: Any, where: str) -> str:
    if not isinstance(entry, dict):
        raise InputError(f"{where}: expected an object, got a {_kind(entry)}")
    missing = [key for key in _KEYS if key not in entry]
    if missing:
        raise InputError(f"{where}: lacks {', '.join(missing)}; an entry has {', '.join(_KEYS)}")
    video_id = entry["video_id"]
    if not isinstance(video_id, str) or not video_id:
        raise InputError(f"{where}: video_id is {video_id!r}; give the row's id, a text")
    return video_id


def _messages(entry: dict[str, Any], where: str) -> list[Message]:
    texts, times = entry["pred_texts"], entry["pred_timestamps"]
    for name, values in (("pred_texts", texts), ("pred_timestamps", times)):
        if not isinstance(values, list):
            raise InputError(f"{where}: {name} is a {_kind(values)}; give a list")
    if len(texts) != len(times):
        raise InputError(f"{where}: {len(texts)} pred_texts but {len(times)} pred_timestamps; give one time each")
    if not texts:
        raise InputError(f"{where}: no messages; the format opens with an instruction (leave out a silent video)")
    pairs = zip(texts, times, strict=True)
    return [_message(text, time_s, f"{where}: element {place}", place) for place, (text, time_s) in enumerate(pairs)]


def _message(text: Any, time_s: Any, where: str, place: int) -> Message:
    prefix, colon, sentence = text.partition(":") if isinstance(text, str) else ("", "", "")
    if prefix not in _KINDS or not colon or (sentence and not sentence.startswith(" ")):
        raise InputError(f"{where}: text {text!r} does not start with 'Instruction: ', 'Feedback: ' or 'Success: '")
    if place == 0 and prefix != "Instruction":
        raise InputError(f"{where}: the first message is {text!r}; the format opens with an Instruction")
    if isinstance(time_s, bool) or not isinstance(time_s, int | float) or not 0 <= time_s < _MOST_S:
        raise InputError(f"{where}: time {time_s!r} is not a number of seconds from 0 to {_MOST_S:.0f}")
    sentence = sentence.strip()
    kind = _KINDS[prefix]
    if kind == "mistake" and sentence.startswith(DIVERGENCE_OPENINGS):
        kind = "divergence"
    elif kind == "success" and sentence == FINISH_TEXT:
        kind = "finish"
    return Message(time_s=float(time_s), kind=kind, text=sentence or NO_TEXT)


def _timelines(video_id: str, messages: Sequence[Message], protocol: Protocol, where: str) -> Prediction:
    for earlier, later in _neighbours(messages, protocol):
        if messages[later].time_s < messages[earlier].time_s:
            raise InputError(
                f"{where}: element {later} at {messages[later].time_s} s comes after element {earlier} at "
                f"{messages[earlier].time_s} s; sort by time"
                + (" within each turn, turns by their instruction" if protocol == "turn_based" else "")
            )
    if protocol == "streaming":
        return Timeline(video_id=video_id, messages=tuple(messages))
    starts = _turn_starts(messages)
    return tuple(
        Timeline(video_id=video_id, messages=tuple(messages[start:end]))
        for start, end in zip(starts, [*starts[1:], len(messages)], strict=True)
    )


def _turn_starts(messages: Sequence[Message]) -> list[int]:
    return [place for place, message in enumerate(messages) if message.kind == "instruction"]


def _neighbours(messages: Sequence[Message], protocol: Protocol) -> list[tuple[int, int]]:
    """Pairs of places whose times must not fall."""
    pairs = [(place - 1, place) for place in range(1, len(messages))]
    if protocol == "streaming":
        return pairs
    starts = _turn_starts(messages)
    return [pair for pair in pairs if pair[1] not in starts] + [*itertools.pairwise(starts)]
