"""A session's log as a file: `messages.jsonl`, one message or user event a line. No torch."""

import json
from pathlib import Path
from typing import Any

from livemamba.errors import InputError, MissingError
from livemamba.files import whole_file
from livemamba.json_files import parse_json
from livemamba.timeline import Message, Timeline, UserEvent


def write_log(path: str | Path, timeline: Timeline) -> None:
    """Write a timeline, whole or not at all.

    Each line is a JSON object with `type` "message" or "user_event" and the fields of that type; a message
    also has `plan`, what was left to do just after it, where that is known. Lines are in order of time.
    """
    plans = timeline.plans or (None,) * len(timeline.messages)
    rows: list[dict[str, Any]] = []
    for message, plan in zip(timeline.messages, plans, strict=True):
        left = {} if plan is None else {"plan": [list(step) for step in plan.steps]}
        rows.append({"type": "message", **message.to_dict(), **left})
    rows += [{"type": "user_event", **vars(event)} for event in timeline.user_events]
    rows.sort(key=lambda row: float(row["time_s"]))  # stable: equal times keep their order
    with whole_file(path) as partial:
        lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        partial.write_text("".join(lines), encoding="utf-8")


def read_log(path: str | Path, *, video_id: str) -> Timeline:
    """The messages and user events of a log; plans are left out, as they need the recipe's graph.

    Raises:
        MissingError: if there is no such file.
        InputError: if a line is no message or user event, with its number.
    """
    path = Path(path)
    if not path.is_file():
        raise MissingError(f"log {path} does not exist; give a messages.jsonl that `livemamba coach` wrote")
    messages: list[Message] = []
    events: list[UserEvent] = []
    for number, line in enumerate(_lines(path), 1):
        try:
            row = parse_json(line)
            kind = row.pop("type")
            row.pop("plan", None)
            if kind == "message":
                messages.append(Message.from_dict(row))
            elif kind == "user_event":
                events.append(UserEvent(**row))
            else:
                raise InputError(f"type {kind!r} is neither message nor user_event")
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise InputError(f"{path}: line {number}: not a line of a log ({error})") from None
    return Timeline(video_id=video_id, messages=tuple(messages), user_events=tuple(events))


def _lines(path: Path) -> list[str]:
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise InputError(f"{path}: not a text file; a log is JSON lines in UTF-8") from None
    return text.removesuffix("\n").split("\n") if text else []  # splitlines would split texts, at U+2028 and others
