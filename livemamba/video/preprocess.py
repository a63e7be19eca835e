"""The one preprocessing function: file, camera, browser and feature cache all go through it.

Shapes: B frames, h and w a frame's own height and width, S side of the square.
"""

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor

from livemamba.errors import InputError
from livemamba.ticks import check_rgb

# Part of the cache key: raise it whenever the pixels that come out change.
_VERSION = 1


def preprocess(
    frames: Sequence[npt.NDArray[np.uint8]], *, size: int, mean: Sequence[float], std: Sequence[float]
) -> Tensor:
    """Frames as the vision encoder takes them (geometry: spec/model.md).

    Each frame is squashed to the square, bicubic with antialiasing, cut to 0..1 and normalised. Frames are
    worked on one at a time, so that a frame gives the same bits alone and in any batch, and frames of
    different sizes can share a call.

    Args:
        frames: (h, w, 3) uint8 RGB each, at least one.
        size: S.
        mean: per channel, for pixels in 0..1; the encoder's own.
        std: the same.

    Returns:
        (B, 3, S, S) float32.

    Raises:
        InputError: if there is no frame, one is not RGB, or size, mean or std make no sense.
    """
    _check_settings(size, mean, std)
    if not len(frames):
        raise InputError("no frames to preprocess; give at least one")
    squares = torch.stack([_square(frame, size) for frame in frames])
    return (squares - _per_channel(mean)) / _per_channel(std)


def preprocess_key(size: int, mean: Sequence[float], std: Sequence[float]) -> str:
    """Text that is equal exactly if `preprocess` does the same; a feature cache records it.

    Raises:
        InputError: if size, mean or std make no sense.
    """
    _check_settings(size, mean, std)
    means, stds = (",".join(repr(float(value)) for value in values) for values in (mean, std))
    return f"squash bicubic antialias v{_VERSION} size={size} mean={means} std={stds}"


def _square(frame: npt.NDArray[np.uint8], size: int) -> Tensor:
    """(3, S, S) float32 in 0..1."""
    check_rgb(frame)
    # astype makes a fresh array: flipped views and read-only frames, which torch refuses, are fine.
    pixels = torch.from_numpy(frame.astype(np.float32, order="C")).permute(2, 0, 1) / 255
    square = F.interpolate(pixels.unsqueeze(0), size=(size, size), mode="bicubic", antialias=True)
    return square.squeeze(0).clamp(0, 1)  # bicubic overshoots at edges


def _per_channel(values: Sequence[float]) -> Tensor:
    return torch.tensor([float(value) for value in values]).view(3, 1, 1)


def _check_settings(size: int, mean: Sequence[float], std: Sequence[float]) -> None:
    if size < 1:
        raise InputError(f"preprocessing size is {size}; it is a side in pixels, at least 1")
    if len(mean) != 3 or len(std) != 3 or not all(math.isfinite(value) for value in (*mean, *std)) or min(std) <= 0:
        raise InputError(
            f"preprocessing mean {tuple(mean)} and std {tuple(std)}: each is three finite numbers (R, G, B), "
            "std above 0; take them from the encoder"
        )
