"""A corpus in a file: groups of conversations, one group a line (JSON Lines). No torch.

Whoever has data of another kind than this package's builders writes such a file and trains on it. A line is a
conversation as `Conversation.to_dict` gives it, or a list of those that always stay in one batch, such as a clip under
its right and under an opposite instruction.
"""

import json
from collections.abc import Iterable
from pathlib import Path

from livemamba.conversation import Conversation, Decision, Frames
from livemamba.errors import InputError, MissingError
from livemamba.files import whole_file
from livemamba.json_files import parse_json

Group = tuple[Conversation, ...]


def read_conversations(path: str | Path) -> tuple[Group, ...]:
    """The groups of a file, in order. Empty lines don't count.

    Raises:
        MissingError: if the file isn't there.
        InputError: naming the line: no JSON, no conversation, frames of no video, nothing to learn; or an empty file.
    """
    path = Path(path)
    if not path.is_file():
        raise MissingError(f"conversations {path} do not exist; name a file of JSON Lines")
    try:
        lines = path.read_text(encoding="utf-8").split("\n")  # not splitlines: texts may hold other line separators
    except UnicodeDecodeError:
        raise InputError(f"{path}: not a text file; conversations are JSON Lines in UTF-8") from None
    groups = tuple(_group(line, f"{path}: line {number}") for number, line in enumerate(lines, 1) if line.strip())
    if not groups:
        raise InputError(f"{path}: no conversation in it")
    return groups


def write_conversations(path: str | Path, groups: Iterable[Group]) -> None:
    """Write a file that `read_conversations` reads back unchanged; there whole, or not at all."""
    with whole_file(path) as partial, partial.open("w", encoding="utf-8") as file:
        for group in groups:
            written = [conversation.to_dict() for conversation in group]
            file.write(json.dumps(written[0] if len(written) == 1 else written, ensure_ascii=False) + "\n")


def _group(line: str, where: str) -> Group:
    try:
        data = parse_json(line)
    except ValueError as error:
        raise InputError(f"{where}: not JSON ({error})") from None
    if data == []:
        raise InputError(f"{where}: a group without a conversation; leave the line out")
    listed = data if isinstance(data, list) else [data]
    return tuple(
        _checked(one, f"{where}, conversation {place}" if len(listed) > 1 else where)
        for place, one in enumerate(listed, 1)
    )


def _checked(data: object, where: str) -> Conversation:
    try:
        conversation = Conversation.from_dict(data, where=where)
    except InputError as error:
        raise InputError(str(error) if str(error).startswith(where) else f"{where}: {error}") from None
    if conversation.num_frames and not conversation.video_id:
        raise InputError(f"{where}: frames of no video; give its video_id")
    if not any(isinstance(item, Frames | Decision) and item.loss for item in conversation.items):
        raise InputError(f"{where}: nothing to learn: no frames or decision with loss")
    return conversation
