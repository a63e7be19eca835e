"""Reading JSON that came from outside: whatever is wrong with it is one line. No torch."""

import json
from pathlib import Path
from typing import Any

from livemamba.errors import InputError, MissingError


def read_json(path: str | Path, *, what: str) -> Any:
    """What a JSON file holds.

    Args:
        path: the file.
        what: what it is to the user ("conversation", "task graph"), for errors.

    Raises:
        MissingError: if it isn't there or is a folder.
        InputError: if it can't be read as JSON.
    """
    path = Path(path)
    if not path.is_file():
        state = "is a folder" if path.is_dir() else "does not exist"
        raise MissingError(f"{what} {path} {state}; give the path of a JSON file")
    try:
        return parse_json(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InputError(f"{path}: not JSON ({error}); a {what} is JSON in UTF-8") from None


def parse_json(text: str) -> Any:
    """What a JSON text says.

    Raises:
        ValueError: if it isn't JSON, or is nested so deeply that it can't be read.
    """
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None
