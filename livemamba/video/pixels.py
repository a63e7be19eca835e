"""Decoded pictures as a player shows them: upright, square pixels, RGB in full range.

Letters: H rows, W columns of the shown picture.
"""

import math
from fractions import Fraction

import av
import numpy as np
import numpy.typing as npt
from av.sidedata.sidedata import SideData
from av.video.reformatter import Interpolation, VideoReformatter

from livemamba.errors import InputError

# What a display matrix's numbers are multiplied by, and how far from a quarter turn one may be.
_MATRIX_ONE = 1 << 16
_MATRIX_TOLERANCE = 0.01

# A picture stretched further than this is a broken header, not a film format (widest in use: 8/3).
_MAX_STRETCH = 8


class UprightRgb:
    """Turns decoded frames into (H, W, 3) uint8 RGB.

    - Rotation and mirroring follow the display matrix (phones store clips lying down). A matrix that isn't
      made of quarter turns and mirrors is refused. Source: ISO/IEC 14496-12, 6.2.2.
    - Pixels that aren't square are stretched along their long side, so that nothing is shrunk away.
    - The frame's own colour matrix and range are followed; an alpha channel is left out.
    """

    def __init__(self, *, name: str, pixel_aspect: Fraction | None = None) -> None:
        """Prepare for one stream.

        Args:
            name: the source, for messages.
            pixel_aspect: width of a pixel over its height; None or 0 where unknown, then square.

        Raises:
            InputError: if the pixels are stretched more than eightfold.
        """
        aspect = pixel_aspect or Fraction(1)
        if not Fraction(1, _MAX_STRETCH) <= aspect <= _MAX_STRETCH:
            raise InputError(
                f"{name}: its header says pixels are {aspect} times as wide as high; at most {_MAX_STRETCH} is "
                "believed; convert the file again"
            )
        self._name = name
        self._aspect = aspect
        self._reformatter = VideoReformatter()

    def __call__(self, frame: av.VideoFrame) -> npt.NDArray[np.uint8]:
        """One picture.

        Raises:
            InputError: if the display matrix isn't made of quarter turns.
        """
        width = round(frame.width * max(self._aspect, Fraction(1)))
        height = round(frame.height / min(self._aspect, Fraction(1)))
        # One thread: a pool of swscale threads wouldn't survive a fork.
        rgb = self._reformatter.reformat(
            frame, width=width, height=height, format="rgb24", interpolation=Interpolation.BICUBIC, threads=1
        )
        return self._upright(np.asarray(rgb.to_ndarray(), dtype=np.uint8), frame)

    def _upright(self, pixels: npt.NDArray[np.uint8], frame: av.VideoFrame) -> npt.NDArray[np.uint8]:
        side_data = frame.side_data.get("DISPLAYMATRIX")
        if not isinstance(side_data, SideData):
            return pixels
        turn = np.frombuffer(bytes(side_data), dtype=np.int32).reshape(3, 3)[:2, :2] / _MATRIX_ONE
        scale = math.sqrt(abs(np.linalg.det(turn)))
        whole = np.rint(turn / scale) if scale else turn
        if not scale or np.abs(whole - turn / scale).max() > _MATRIX_TOLERANCE:
            raise InputError(
                f"{self._name}: it asks to be shown turned by {frame.rotation} degrees; only quarter turns are "
                "shown; convert it with its rotation applied"
            )
        # A stored pixel (x, y) is shown at (x, y) times this matrix: off the diagonal, columns become rows.
        if whole[0, 1]:
            pixels = pixels.transpose(1, 0, 2)
        across, down = whole.sum(axis=0)
        pixels = pixels[:, ::-1] if across < 0 else pixels
        pixels = pixels[::-1] if down < 0 else pixels
        return np.ascontiguousarray(pixels)
