"""Texts from outside and for people: what no file takes, what a terminal obeys, lists in errors. No torch."""

from collections.abc import Iterable

from livemamba.errors import InputError


def check_text(text: str, *, what: str) -> None:
    r"""Refuse half a character: escapes such as "\ud83c" can stand for one, and no file or tokenizer takes it.

    Raises:
        InputError: naming `what`.
    """
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        half = text[error.start]
        raise InputError(f"{what} holds {half!r}, half a character (a lone surrogate); write the whole one") from None


def on_one_line(text: str) -> str:
    """For a terminal: line breaks and control characters, which could move its cursor or colour it, as spaces."""
    return "".join(letter if letter.isprintable() else " " for letter in text)


def listed(names: Iterable[str], most: int = 8) -> str:
    """Names for an error of one line: the first few, and how many more there are."""
    names = list(names)
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
