"""Messages drawn onto a picture: an instruction bar below, feedback in its kind's colour, a clock.

Letters: H rows, W columns.
"""

import math
import unicodedata
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw, ImageFont

from livemamba.timeline import Message, MessageKind

FEEDBACK_S = 4.0
"""How long feedback stays, unless other feedback takes its place."""

INSTRUCTION_SHARE = 0.15
BARS_SHARE = 0.25
"""Shares of the picture's height that the instruction, and both bars together, cover at most."""

Colour = tuple[int, int, int]

BAR_COLOURS: dict[str, tuple[Colour, Colour]] = {
    "instruction": ((16, 18, 24), (255, 255, 255)),
    "success": ((18, 110, 56), (255, 255, 255)),
    "mistake": ((176, 26, 38), (255, 255, 255)),
    "divergence": ((248, 176, 40), (20, 14, 0)),
    "finish": ((24, 84, 168), (255, 255, 255)),
}
"""Background and text colour of each kind."""

# Said in words too: not everybody tells red from green.
_LABELS = {"success": "Well done", "mistake": "Mistake", "divergence": "Not this step", "finish": "Finished"}

_OPACITY = 0.88
_SMALLEST_FONT = 13
_ELLIPSIS = "..."
# Measuring takes time by the letter, and no bar holds a longer word.
_LONGEST_WORD = 1000

# Pillow's built-in font holds ASCII only: what Unicode doesn't take apart into it is put like this.
_IN_ASCII = str.maketrans(
    {
        **dict.fromkeys("\u2018\u2019\u201a\u2032", "'"),
        **dict.fromkeys("\u201c\u201d\u201e\u2033\u00ab\u00bb", '"'),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2212", "-"),
        "\u00d7": "x",
        "\u00f7": "/",
        "\u2044": "/",
        "\u00b0": " deg",
        "\u00df": "ss",
        "\u00e6": "ae",
        "\u00c6": "Ae",
        "\u0153": "oe",
        "\u0152": "Oe",
        "\u00f8": "o",
        "\u00d8": "O",
        "\u0142": "l",
        "\u0141": "L",
        "\u0131": "i",
    }
)


@dataclass(frozen=True, kw_only=True)
class Caption:
    """What is to be read on a picture.

    Attributes:
        instruction: the one being carried out; empty where there is none.
        kind: of the feedback; None where there is none.
        feedback: its text.
        clock: minutes and seconds since the first shown frame.
    """

    instruction: str = ""
    kind: MessageKind | None = None
    feedback: str = ""
    clock: str = ""


def caption_at(messages: Sequence[Message], time_s: float) -> Caption:
    """What stands on the picture at a time.

    The latest instruction stays until the next one or the finish; feedback stays for four seconds or until
    other feedback; the finish stays to the end. An advance says nothing and clears nothing.

    Args:
        messages: in order of time.
        time_s: seconds from the first shown frame.
    """
    instruction = ""
    feedback: Message | None = None
    for message in messages:
        if message.time_s > time_s:
            break
        if message.kind == "instruction":
            instruction = message.text
        elif message.kind != "advance":
            feedback = message
            instruction = "" if message.kind == "finish" else instruction
    if feedback is not None and feedback.kind != "finish" and time_s >= feedback.time_s + FEEDBACK_S:
        feedback = None
    seconds = math.floor(time_s)
    return Caption(
        instruction=instruction,
        kind=feedback.kind if feedback else None,
        feedback=feedback.text if feedback else "",
        clock=f"{seconds // 60}:{seconds % 60:02d}",
    )


def draw_caption(pixels: npt.NDArray[np.uint8], caption: Caption) -> npt.NDArray[np.uint8]:
    """A copy of the picture with the caption on it.

    The bars lie at the lower edge, the feedback above the instruction; together they cover at most a quarter
    of the picture. Text is wrapped, then made smaller, then cut with an ellipsis, until it fits. Accents are
    left out and other scripts become question marks, since Pillow's built-in font has neither.

    Args:
        pixels: (H, W, 3) uint8 RGB.
        caption: what to draw.
    """
    canvas = pixels.copy()
    height, width = canvas.shape[:2]
    size = _font_size(height, width)
    room = round(height * BARS_SHARE)
    bottom = height
    if caption.instruction.strip():
        bar = _bar("instruction", caption.instruction, width, round(height * INSTRUCTION_SHARE), size)
        bottom -= len(bar)
        _lay(canvas, bar, bottom, 0)
    if caption.kind is not None:
        text = f"{_LABELS[caption.kind]}: {caption.feedback}"
        bar = _bar(caption.kind, text, width, room - (height - bottom), size)
        _lay(canvas, bar, bottom - len(bar), 0)
    if caption.clock:
        chip = _chip(caption.clock, max(_SMALLEST_FONT, round(size * 0.8)))
        if chip.shape[0] <= height // 8 and chip.shape[1] <= width // 4:
            _lay(canvas, chip, 0, width - chip.shape[1])
    return canvas


def _font_size(height: int, width: int) -> int:
    """For two lines of instruction in its bar, and some fifty letters a line."""
    return max(_SMALLEST_FONT, round(min(height * 0.052, width * 0.034)))


def _lay(canvas: npt.NDArray[np.uint8], panel: npt.NDArray[np.float32], top: int, left: int) -> None:
    """Blend an (h, w, 4) panel, alpha 0 to 1, onto the canvas in place."""
    height, width = panel.shape[:2]
    under = canvas[top : top + height, left : left + width]
    alpha = panel[..., 3:]
    under[:] = np.rint(panel[..., :3] * alpha + under * (1 - alpha)).astype(np.uint8)


@lru_cache(maxsize=64)
def _font(size: int) -> ImageFont.FreeTypeFont:
    font = ImageFont.load_default(size)
    assert isinstance(font, ImageFont.FreeTypeFont), "Pillow without FreeType has no scalable font"
    return font


def _line_height(size: int) -> int:
    ascent, descent = _font(size).getmetrics()
    return ascent + descent


@lru_cache(maxsize=16)
def _bar(kind: str, text: str, width: int, max_height: int, size: int) -> npt.NDArray[np.float32]:
    """A bar over the whole width, at most `max_height` high: (h, W, 4), alpha 0 to 1."""
    background, ink = BAR_COLOURS[kind]
    indent = size  # of the font before it is fitted, so that both bars begin at the same place
    size, lines = _fit(_in_ascii(text), width - 2 * indent, max_height, size)
    height = min(max_height, _block_height(len(lines), size))
    image = Image.new("RGB", (width, height), background)
    drawing = ImageDraw.Draw(image)
    top = (height - len(lines) * _line_height(size)) // 2
    for place, line in enumerate(lines):
        drawing.text((indent, top + place * _line_height(size)), line, fill=ink, font=_font(size))
    return _panel(image, background)


@lru_cache(maxsize=256)
def _chip(text: str, size: int) -> npt.NDArray[np.float32]:
    background, ink = BAR_COLOURS["instruction"]
    width = math.ceil(_font(size).getlength(text)) + size
    image = Image.new("RGB", (width, _line_height(size) + size // 3), background)
    ImageDraw.Draw(image).text((size // 2, size // 6), text, fill=ink, font=_font(size))
    return _panel(image, background)


def _panel(image: Image.Image, background: Colour) -> npt.NDArray[np.float32]:
    """The letters solid, the ground around them a little see-through."""
    colours = np.asarray(image, dtype=np.float32)
    solid = np.abs(colours - np.asarray(background, dtype=np.float32)).max(axis=2) > 0
    alpha = np.where(solid, 1.0, _OPACITY).astype(np.float32)
    return np.concatenate([colours, alpha[..., None]], axis=2)


def _in_ascii(text: str) -> str:
    apart = unicodedata.normalize("NFKD", text.translate(_IN_ASCII)).translate(_IN_ASCII)
    bare = "".join(letter for letter in apart if not unicodedata.combining(letter))
    return bare.encode("ascii", errors="replace").decode("ascii")


def _block_height(num_lines: int, size: int) -> int:
    return num_lines * _line_height(size) + 2 * (size // 3)


def _fit(text: str, width: int, height: int, size: int) -> tuple[int, list[str]]:
    """The largest font up to `size` at which the text fits, and its lines; cut at the smallest font."""
    words = [word if len(word) <= _LONGEST_WORD else word[:_LONGEST_WORD] + _ELLIPSIS for word in text.split()]
    for smaller in range(size, _SMALLEST_FONT - 1, -1):
        most_lines = (height - _block_height(0, smaller)) // _line_height(smaller)
        lines = _wrap(words, width, _font(smaller), most_lines)
        if len(lines) <= most_lines:
            return smaller, lines
    kept = lines[: max(1, most_lines)]
    kept[-1] = _shortened(kept[-1], width, _font(_SMALLEST_FONT))
    return _SMALLEST_FONT, kept


def _wrap(words: Sequence[str], width: int, font: ImageFont.FreeTypeFont, most_lines: int) -> list[str]:
    """Lines of whole words, longer words broken; stops once there are more lines than wanted."""
    lines: list[str] = []
    line, used = "", 0.0
    space = font.getlength(" ")
    for word in words:
        needed = font.getlength(word)
        if line and used + space + needed <= width:
            line, used = f"{line} {word}", used + space + needed
            continue
        lines += [line] if line else []
        if len(lines) > most_lines:
            return lines
        while needed > width and len(word) > 1 and len(lines) <= most_lines:
            head = _letters_that_fit(word, width, font)
            lines.append(word[:head])
            word = word[head:]
            needed = font.getlength(word)
        line, used = word, needed
    return [*lines, line] if line else lines


def _letters_that_fit(word: str, width: int, font: ImageFont.FreeTypeFont) -> int:
    """At least one, so that a word always gets shorter."""
    fitting = bisect_right(range(1, len(word)), float(width), key=lambda count: font.getlength(word[:count]))
    return max(1, fitting)


def _shortened(line: str, width: int, font: ImageFont.FreeTypeFont) -> str:
    while line and font.getlength(line + _ELLIPSIS) > width:
        line = line[:-1]
    return line.rstrip() + _ELLIPSIS
