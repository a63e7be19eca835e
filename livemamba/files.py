"""Nothing half-written: files and folders appear whole under their name, or not at all. No torch."""

import os
import shutil
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex

from livemamba.errors import InputError


@contextmanager
def whole_folder(
    folder: str | Path, *, replaces: str | None = None, only: Collection[str] | None = None
) -> Iterator[Path]:
    """A folder under a temporary name beside its place; it moves there when the block ends well.

    Args:
        folder: where it shall stand. Folders above it that are missing are made, and removed again if it fails.
        replaces: a file's name: a folder that is there already and holds such a file is of the same kind and
            is replaced, kept until the new one stands. None: nothing is replaced.
        only: the names that a folder of this kind holds; one that holds anything else is not replaced, since
            that would be lost. None: whatever it holds.

    Raises:
        InputError: at once, if something is there that may not be replaced.
    """
    check_replaceable(folder, replaces=replaces, only=only)
    folder = Path(os.path.realpath(folder))  # so that "." has a name, and a link's target is replaced, not the link
    partial = _hidden(folder, "partial")
    with _parents_of(partial):
        partial.mkdir()
        try:
            yield partial
            _put_in_place(partial, folder)
        finally:
            shutil.rmtree(partial, ignore_errors=True)


def _put_in_place(new: Path, folder: Path) -> None:
    if not folder.exists():
        new.rename(folder)
        return
    old = _hidden(folder, "old")
    folder.rename(old)
    try:
        new.rename(folder)
    except BaseException:
        old.rename(folder)
        raise
    shutil.rmtree(old, ignore_errors=True)


def _hidden(path: Path, why: str, ending: str = "") -> Path:
    """A name beside a path. Not by process id alone: in containers every process may be number 1."""
    return path.with_name(f".{path.name[:40]}.{why}-{os.getpid()}-{token_hex(4)}{ending}")


@contextmanager
def _parents_of(path: Path) -> Iterator[None]:
    """Makes the folders above a path; those that weren't there and are empty go again if the block fails."""
    made = [parent for parent in path.parents if not parent.exists()]
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except BaseException:
        for parent in made:
            with suppress(OSError):  # somebody else has put something there
                parent.rmdir()
        raise


def check_replaceable(folder: str | Path, *, replaces: str | None, only: Collection[str] | None = None) -> None:
    """Refuse a place that `whole_folder` would not fill; for checks before long work.

    Raises:
        InputError: naming what is there.
    """
    folder = Path(folder)
    if not folder.exists():
        if folder.is_symlink():
            raise InputError(f"{folder} is a link that leads nowhere; remove it, or choose another name")
        _check_parents(folder)
        return
    if not folder.is_dir():
        raise InputError(f"{folder} is a file; choose another name for the folder")
    if replaces is None:
        raise InputError(f"{folder} exists; choose another folder, or allow it to be overwritten")
    there = {entry.name for entry in folder.iterdir()}
    if there and not (folder / replaces).is_file():
        raise InputError(f"{folder} exists and holds no {replaces}, so it is not replaced; choose another folder")
    if only is not None and (foreign := sorted(there - set(only))):
        raise InputError(f"{folder} also holds {foreign[0]}, which would be lost; move it, or choose another folder")


def _check_parents(folder: Path) -> None:
    above = next(parent for parent in Path(os.path.realpath(folder)).parents if parent.exists())
    if not above.is_dir():
        raise InputError(f"{folder}: {above} is a file, not a folder; choose another place")
    if not os.access(above, os.W_OK | os.X_OK):
        raise InputError(f"{folder}: {above} can't be written to; choose another place")


@contextmanager
def whole_file(path: str | Path) -> Iterator[Path]:
    """A file under a temporary name (same ending) beside its place; it moves there when the block ends well."""
    path = Path(path)
    partial = _hidden(path, "partial", path.suffix)
    with _parents_of(partial):
        try:
            yield partial
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)
