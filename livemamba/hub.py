"""What a name stands for: a folder here, or one fetched from the Hugging Face hub. No torch."""

import contextlib
import re
from pathlib import Path

import huggingface_hub
from huggingface_hub.errors import HfHubHTTPError, HFValidationError

from livemamba.errors import InputError, MissingError

_FETCHED = ["*.safetensors", "*.json", "tokenizer.model", "vocab.txt", "merges.txt"]
_HUB_ID = re.compile(r"[\w.-]+/[\w.-]+", re.ASCII)

# What the HTTP library behind huggingface_hub raises while a file comes in; which library differs by release.
_HTTP_ERROR: type[BaseException] = HfHubHTTPError.__mro__[1]


def resolve_folder(name_or_path: str | Path, *, revision: str | None = None) -> Path:
    """The folder that a name stands for; only a hub id that is no local folder makes a connection.

    Args:
        name_or_path: a folder, or the hub's "organisation/name", of which safetensors, JSON and tokenizer files
            are fetched. What looks like a path (starts with . / or ~, ends in a slash, has several) is never
            taken for a hub id.
        revision: branch, tag or commit on the hub.

    Raises:
        MissingError: if there is no such folder and the hub, if asked, does not give one.
        InputError: if it is a file, or a local folder for which a revision is asked.
    """
    name, path = str(name_or_path), Path(name_or_path)
    with contextlib.suppress(RuntimeError):  # "~name" of no user: then it is a folder that does not exist
        path = path.expanduser()
    if name and path.is_dir():
        if revision:
            raise InputError(f"{name} is a folder here, and revision {revision} is a thing of the hub; leave it out")
        return path
    if path.is_file():
        raise InputError(f"{name} is a file; give the folder that holds the model")
    if isinstance(name_or_path, Path) or name.startswith((".", "/", "~")) or not _HUB_ID.fullmatch(name):
        raise MissingError(f"folder {name!r} does not exist; give a folder, or organisation/name for the hub")
    try:
        return Path(huggingface_hub.snapshot_download(name, revision=revision, allow_patterns=_FETCHED))
    except (OSError, _HTTP_ERROR, HFValidationError) as error:
        at = f" at revision {revision}" if revision else ""
        raise MissingError(
            f"no folder {name} here, and the hub gives no {name}{at}: {first_line(error)}; check the name, or "
            "download it and give the folder"
        ) from None


def first_line(error: BaseException) -> str:
    """What an error of somebody else's says, without its later lines and last stop."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines[0] if lines else type(error).__name__).rstrip(".")
