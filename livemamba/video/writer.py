"""Annotated mp4s: the pictures of a source with the messages drawn on them at their times."""

import math
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from fractions import Fraction
from pathlib import Path
from types import TracebackType
from typing import Self

import av
import numpy as np
import numpy.typing as npt
from av.container import OutputContainer
from av.video.reformatter import ColorPrimaries, ColorRange, Colorspace, ColorTrc, Interpolation, VideoReformatter
from av.video.stream import VideoStream
from PIL import Image, ImageOps

from livemamba.errors import InputError, MissingError
from livemamba.ticks import TICKS_PER_SECOND, check_rgb, tick_to_s
from livemamba.timeline import Message, Timeline
from livemamba.video.file import VideoFile
from livemamba.video.overlay import caption_at, draw_caption
from livemamba.video.protocol import FrameSource

# Below this the letters would be too small to read; smaller pictures are enlarged.
_MIN_WIDTH = 640
_MIN_HEIGHT = 240
# The usual clock of video, fine enough for any camera's times.
_CLOCK_HZ = 90_000

Progress = Callable[[float, float | None], None]
"""Called with the seconds written and the seconds in all (None where unknown)."""


class AnnotatedWriter:
    """Writes pictures with messages on them to an mp4, one at a time, each at its own time.

    As a context manager it finishes the file, or removes it if an error (or Ctrl-C) comes out of the block.
    Until then the pictures lie in a file of another name beside it, so `out_path` is always whole.
    """

    def __init__(self, out_path: str | Path, *, messages: Iterable[Message] = (), rate: Fraction | None = None) -> None:
        """Name the file; nothing is written before the first pictures have been encoded.

        Args:
            out_path: an .mp4 in a folder that exists; replaced if it is there.
            messages: those known beforehand, in order of time; others come by `say`.
            rate: pictures a second, a hint to the encoder; their times are what `add` says.

        Raises:
            InputError: if the name doesn't end in .mp4 or names a folder, or its folder can't be written to.
            MissingError: if its folder doesn't exist.
        """
        self.out_path = Path(out_path)
        if self.out_path.suffix.lower() != ".mp4" or self.out_path.is_dir():
            raise InputError(f"{out_path}: an annotated video is an mp4 file; give a name that ends in .mp4")
        if not self.out_path.parent.is_dir():
            raise MissingError(f"{out_path}: its folder doesn't exist; create it first")
        if not os.access(self.out_path.parent, os.W_OK):
            raise InputError(f"{out_path}: its folder can't be written to; give another place")
        self._partial = self.out_path.with_name(f"{self.out_path.stem}.partial-{os.getpid()}.mp4")
        self._messages: list[Message] = []
        self._rate = rate or Fraction(TICKS_PER_SECOND)
        self._enlarger, self._to_yuv = VideoReformatter(), VideoReformatter()
        self._container: OutputContainer | None = None
        self._stream: VideoStream | None = None
        self._last_pts = -1
        for message in messages:
            self.say(message)

    def say(self, message: Message) -> None:
        """Draw a message on the pictures from its time on.

        Raises:
            InputError: if it is earlier than the message before it.
        """
        if self._messages and message.time_s < self._messages[-1].time_s:
            raise InputError(
                f"message at {message.time_s} s comes after one at {self._messages[-1].time_s} s; say them in order"
            )
        self._messages.append(message)

    def add(self, pixels: npt.NDArray[np.uint8], time_s: float) -> None:
        """Write a picture; it is shown until the next one.

        Pictures keep the size of the first one (enlarged to at least 640 x 240); others are fitted into it.

        Args:
            pixels: (height, width, 3) uint8 RGB.
            time_s: seconds, later than the picture before it.

        Raises:
            InputError: if the picture isn't RGB, its time isn't later, or the file can't be written.
        """
        check_rgb(pixels)
        pts = round(time_s * _CLOCK_HZ) if math.isfinite(time_s) else -1
        if pts <= self._last_pts:
            raise InputError(f"{self.out_path}: picture at {time_s} s isn't later than the one before it")
        with self._explained():
            stream = self._opened(pixels)
            caption = caption_at(self._messages, time_s)
            picture = draw_caption(self._fitted(pixels, stream.width, stream.height), caption)
            frame = self._to_yuv.reformat(
                av.VideoFrame.from_ndarray(picture, format="rgb24"),
                format="yuv420p",
                dst_colorspace=Colorspace.ITU709,
                dst_color_range=ColorRange.MPEG,
            )
            frame.pts, frame.time_base = pts, Fraction(1, _CLOCK_HZ)
            self._write(frame)
        self._last_pts = pts

    def finish(self) -> Path:
        """Close the file and give it its name.

        Raises:
            InputError: if no picture was added, or the file can't be written.
        """
        if self._container is None:
            raise InputError(f"{self.out_path}: no picture was written; the source gave none")
        with self._explained():
            self._write(None)
            self._container.close()
            self._container = self._stream = None
            self._partial.replace(self.out_path)
        return self.out_path

    def discard(self) -> None:
        """Close and remove what was written; what `out_path` held before stays."""
        if self._container is not None:
            with suppress(av.FFmpegError, OSError):  # a full disk shows again here
                self._container.close()
            self._container = self._stream = None
        self._partial.unlink(missing_ok=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self.finish()
        finally:
            self.discard()

    def _opened(self, pixels: npt.NDArray[np.uint8]) -> VideoStream:
        if self._stream is None:
            self._container = av.open(str(self._partial), mode="w", format="mp4", options={"movflags": "faststart"})
            stream = self._container.add_stream("libx264", rate=self._rate, options={"crf": "20", "preset": "veryfast"})
            stream.width, stream.height = _output_size(pixels.shape[1], pixels.shape[0])
            stream.pix_fmt = "yuv420p"
            context = stream.codec_context
            context.time_base = Fraction(1, _CLOCK_HZ)
            context.colorspace, context.color_range = Colorspace.ITU709, ColorRange.MPEG
            context.color_primaries, context.color_trc = ColorPrimaries.BT709, ColorTrc.BT709
            self._stream = stream
        return self._stream

    def _fitted(self, pixels: npt.NDArray[np.uint8], width: int, height: int) -> npt.NDArray[np.uint8]:
        if pixels.shape[:2] == (height, width):
            return pixels
        if _output_size(pixels.shape[1], pixels.shape[0]) != (width, height):
            return np.asarray(ImageOps.pad(Image.fromarray(pixels), (width, height)))
        frame = av.VideoFrame.from_ndarray(pixels, format="rgb24")
        larger = self._enlarger.reformat(frame, width=width, height=height, interpolation=Interpolation.BICUBIC)
        return np.asarray(larger.to_ndarray(), dtype=np.uint8)

    def _write(self, frame: av.VideoFrame | None) -> None:
        assert self._stream is not None and self._container is not None
        self._container.mux(self._stream.encode(frame))

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except (av.FFmpegError, OSError) as error:
            cause = error.strerror or type(error).__name__
            raise InputError(f"{self.out_path}: can't be written ({cause}); check space and permissions") from error


def _output_size(width: int, height: int) -> tuple[int, int]:
    """Enlarged until letters can be read, and even, as the pixel format needs it."""
    scale = max(1.0, _MIN_WIDTH / width, _MIN_HEIGHT / height)
    return 2 * round(width * scale / 2), 2 * round(height * scale / 2)


def write_annotated(
    source: str | Path | FrameSource, timeline: Timeline, out_path: str | Path, *, progress: Progress | None = None
) -> Path:
    """Draw a timeline onto its video.

    A file gets all its own frames at their own times (the whole file, whatever range of ticks was asked of
    it); any other source gets its frames on the tick grid.

    Args:
        source: a video file, or an open source.
        timeline: its messages, in seconds from the first shown frame.
        out_path: the mp4 to write.
        progress: called after each picture.

    Returns:
        `out_path`.

    Raises:
        MissingError: if the file, or the folder to write to, isn't there.
        InputError: if the source can't be read, is the file to write, or the output can't be written; nothing
            is left behind then.
    """
    source = VideoFile(source) if isinstance(source, str | Path) else source
    if isinstance(source, VideoFile) and Path(out_path).exists() and source.path.samefile(out_path):
        raise InputError(f"{out_path}: is the source itself; give another name for the annotated video")
    info = source.info
    if isinstance(source, VideoFile):
        pictures, rate = source.pictures(), info.average_rate
    else:
        pictures, rate = ((tick_to_s(frame.tick), frame.pixels) for frame in source), None
    with AnnotatedWriter(out_path, messages=timeline.messages, rate=rate) as writer:
        for time_s, pixels in pictures:
            writer.add(pixels, time_s)
            if progress is not None:
                progress(time_s, info.duration_s)
    return writer.out_path
