"""Nothing half-written: files and folders appear whole under their name, or not at all. No torch."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from livemamba.errors import InputError


@contextmanager
def whole_folder(folder: str | Path, *, replaces: str | None = None) -> Iterator[Path]:
    """A folder under a temporary name beside its place; it moves there when the block ends well.

    Args:
        folder: where it shall stand.
        replaces: a file's name: a folder that is there already and holds such a file is of the same kind and
            is replaced, kept until the new one stands. None: nothing is replaced.

    Raises:
        InputError: at once, if something is there that may not be replaced.
    """
    folder = Path(folder)
    check_replaceable(folder, replaces=replaces)
    partial = folder.with_name(f".{folder.name}.partial-{os.getpid()}")
    partial.mkdir(parents=True)
    try:
        yield partial
        old = folder.with_name(f".{folder.name}.old-{os.getpid()}")
        if folder.exists():
            folder.rename(old)
        partial.rename(folder)
        shutil.rmtree(old, ignore_errors=True)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def check_replaceable(folder: str | Path, *, replaces: str | None) -> None:
    """Refuse a place that `whole_folder` would not fill; for checks before long work.

    Raises:
        InputError: naming what is there.
    """
    folder = Path(folder)
    if not folder.exists():
        return
    if not folder.is_dir():
        raise InputError(f"{folder} is a file; choose another name for the folder")
    if replaces is None:
        raise InputError(f"{folder} exists; choose another folder, or allow it to be overwritten")
    if any(folder.iterdir()) and not (folder / replaces).is_file():
        raise InputError(f"{folder} exists and holds no {replaces}, so it is not replaced; choose another folder")


@contextmanager
def whole_file(path: str | Path) -> Iterator[Path]:
    """A file under a temporary name (same ending) beside its place; it moves there when the block ends well."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.stem}.partial-{os.getpid()}{path.suffix}")
    try:
        yield partial
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
