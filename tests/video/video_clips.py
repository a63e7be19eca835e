"""Clips made on the spot, with the frame's number drawn into the picture so that it can be read back."""

from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path

import av
import numpy as np

_BITS = 4  # rows and columns of blocks: numbers up to 65535


def draw_number(number: int, height: int = 32, width: int = 32) -> np.ndarray:
    """(height, width, 3): the number's 16 bits as white blocks on black, highest first, row by row."""
    bits = [(number >> place) & 1 for place in reversed(range(_BITS * _BITS))]
    rows = np.arange(height) * _BITS // height
    columns = np.arange(width) * _BITS // width
    grey = np.array(bits, dtype=np.uint8).reshape(_BITS, _BITS)[rows][:, columns] * 255
    return np.repeat(grey[..., None], 3, axis=2)


def read_number(pixels: np.ndarray) -> int:
    """The number in a picture made by `draw_number`, at any size."""
    height, width = pixels.shape[:2]
    number = 0
    for row in range(_BITS):
        for column in range(_BITS):
            y, x = (2 * row + 1) * height // (2 * _BITS), (2 * column + 1) * width // (2 * _BITS)
            number = number << 1 | int(pixels[y, x].mean() > 127)
    return number


def write_clip(
    path: Path,
    stamps: Iterable[int],
    *,
    time_base: Fraction = Fraction(1, 30),
    codec: str = "libx264",
    size: tuple[int, int] = (32, 32),
    pix_fmt: str = "yuv420p",
    options: dict[str, str] | None = None,
    container_options: dict[str, str] | None = None,
    pictures: Iterable[np.ndarray] | None = None,
    turn: tuple[float, bool, bool] | None = None,
    pixel_aspect: Fraction | None = None,
    full_range: bool = False,
) -> Path:
    """Frames 0, 1, 2, ... (or given pictures) at those stamps; size is (height, width)."""
    stamps = list(stamps)
    images = pictures if pictures is not None else (draw_number(n, *size) for n in range(len(stamps)))
    with av.open(str(path), "w", options=container_options or {}) as container:
        stream = container.add_stream(codec, rate=30, options=options or {})
        stream.height, stream.width = size
        stream.pix_fmt = pix_fmt
        stream.codec_context.time_base = time_base
        if pixel_aspect is not None:
            stream.codec_context.sample_aspect_ratio = pixel_aspect
        if full_range:
            stream.codec_context.color_range = 2
        if turn is not None:
            stream.set_display_rotation(turn[0], hflip=turn[1], vflip=turn[2])
        for stamp, image in zip(stamps, images, strict=True):
            frame = av.VideoFrame.from_ndarray(image, format="rgb24")
            if full_range:
                frame = frame.reformat(format=pix_fmt, dst_color_range=2)
            frame.pts, frame.time_base = stamp, time_base
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return path


def noise(count: int, height: int = 64, width: int = 96) -> list[np.ndarray]:
    """Pictures that don't compress, so that a cut or a scratch hits picture data."""
    rng = np.random.default_rng(0)
    return [rng.integers(0, 256, (height, width, 3), dtype=np.uint8) for _ in range(count)]
