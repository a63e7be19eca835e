"""A video file, read with PyAV from its own timestamps."""

from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from itertools import chain
from pathlib import Path
from types import TracebackType
from typing import Self

import av
from av.container import InputContainer
from av.video.stream import VideoStream

from livemamba.errors import InputError, MissingError
from livemamba.ticks import Frame, tick_to_s
from livemamba.video.cutoff import lacks_mp4_index, missing_bytes
from livemamba.video.decoding import Decoder, promised_end_s, video_stream
from livemamba.video.pixels import UprightRgb
from livemamba.video.protocol import SourceInfo, SourceReport
from livemamba.video.sampling import Pixels, TickSampler

MAX_DAMAGED_SHARE = 0.1
"""Above this share of damaged packets a file is refused."""

# Headers promise a frame or so more than there is (spec/pitfalls.md V2).
_HEADER_MAY_ERR_S = 1.0

Timed = tuple[float, av.VideoFrame]
"""A shown frame and its time on the file's own clock, seconds."""


class VideoFile:
    """The frames of a video file on the tick grid.

    The file is opened anew by each pass over it and closed at the pass's end; between passes there is only a
    path, so the object can be pickled and used after a fork. Frames are shown the way a player shows them
    (`UprightRgb`); times are the file's own, counted from the first shown frame.

    Raises (while iterating):
        InputError: if the file can't be opened, holds no video, has frames without a time, is damaged beyond
            the allowed share, or (after what there is has been given) ends before its own header says.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        start_tick: int = 0,
        end_tick: int | None = None,
        allow_truncated: bool = False,
        max_damaged_share: float = MAX_DAMAGED_SHARE,
    ) -> None:
        """Name the file and the part of it that is wanted.

        Args:
            path: the file.
            start_tick: first tick to give, counted from the first shown frame.
            end_tick: tick to stop before; None, or one behind the end, gives all up to the end.
            allow_truncated: take what a cut-off file still holds; `report.missing_bytes` tells.
            max_damaged_share: packets that may be damaged, as a share of those read (one always may).

        Raises:
            MissingError: if there is no such file.
            InputError: if it is a folder or empty, or the range of ticks is.
        """
        self.path = Path(path)
        _check_there(self.path)
        if start_tick < 0 or (end_tick is not None and end_tick <= start_tick):
            raise InputError(f"{path}: ticks {start_tick} to {end_tick} are no range; give 0 <= start_tick < end_tick")
        self.start_tick = start_tick
        self.end_tick = end_tick
        self.allow_truncated = allow_truncated
        self.max_damaged_share = max_damaged_share
        self._info: SourceInfo | None = None
        self._report = SourceReport(name=str(self.path))

    @property
    def info(self) -> SourceInfo:
        """Size as shown and what the header says; decodes one frame at the first call."""
        if self._info is None:
            with self._open() as container:
                self._info = self._probe(container)
        return self._info

    @property
    def report(self) -> SourceReport:
        """What the latest pass met."""
        return self._report

    def __iter__(self) -> Iterator[Frame]:
        report = self._report = SourceReport(name=str(self.path))
        with self._open() as container:
            stream = video_stream(container, str(self.path))
            upright = UprightRgb(name=str(self.path), pixel_aspect=stream.sample_aspect_ratio)
            decoder = self._decoder(container, stream, report)
            sampler = TickSampler(first_tick=self.start_tick, end_tick=self.end_tick)
            for time_s, frame in self._from_start_tick(decoder, stream, sampler):
                for given in sampler.push(time_s, partial(upright, frame)):
                    report.ticks_given += 1
                    yield given
                if sampler.done:
                    return
            if not report.ticks_given:
                raise InputError(f"{self.path}: ends before tick {self.start_tick}; start earlier")

    def pictures(self) -> Iterator[tuple[float, Pixels]]:
        """Every shown frame (not only those on the grid): seconds from the first, (height, width, 3) RGB."""
        report = self._report = SourceReport(name=str(self.path))
        with self._open() as container:
            stream = video_stream(container, str(self.path))
            upright = UprightRgb(name=str(self.path), pixel_aspect=stream.sample_aspect_ratio)
            decoder = self._decoder(container, stream, report)
            first_s: float | None = None
            for time_s, frame in self._to_the_end(self._timed(decoder, stream), stream, report):
                first_s = time_s if first_s is None else first_s
                yield time_s - first_s, upright(frame)

    def close(self) -> None:
        """Nothing is held between passes; here because every source has it."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _open(self) -> InputContainer:
        _check_there(self.path)
        try:
            # "file:" keeps a name with a colon from being taken for an address.
            return av.open(f"file:{self.path}", mode="r", metadata_errors="replace")
        except av.FFmpegError as error:
            cause = error.strerror or type(error).__name__
            if lacks_mp4_index(self.path):
                cause = "its index is missing: the file was cut off or never closed"
            raise InputError(f"{self.path}: can't be opened as a video ({cause}); copy or convert it again") from error

    def _decoder(self, container: InputContainer, stream: VideoStream, report: SourceReport) -> Decoder:
        return Decoder(container, stream, report, max_damaged_share=self.max_damaged_share)

    def _probe(self, container: InputContainer) -> SourceInfo:
        name = str(self.path)
        stream = video_stream(container, name)
        decoder = Decoder(container, stream, SourceReport(name=name), max_damaged_share=1)
        _, frame = next(self._timed(decoder, stream))
        pixels = UprightRgb(name=name, pixel_aspect=stream.sample_aspect_ratio)(frame)
        duration = stream.duration * stream.time_base if stream.duration and stream.time_base else None
        if duration is None and container.duration:
            duration = Fraction(container.duration, av.time_base)
        return SourceInfo(
            name=name,
            width=pixels.shape[1],
            height=pixels.shape[0],
            duration_s=None if duration is None else float(duration),
            average_rate=stream.average_rate or None,
            live=False,
        )

    def _timed(self, decoder: Decoder, stream: VideoStream) -> Iterator[Timed]:
        for frame in decoder.frames():
            if frame.pts is None or not frame.time_base:
                raise InputError(
                    f"{self.path}: {stream.codec_context.name} frames without a time; times are never guessed from "
                    "a rate; put it into a container with timestamps (mp4, mkv)"
                )
            yield float(frame.pts * frame.time_base), frame

    def _to_the_end(self, frames: Iterator[Timed], stream: VideoStream, report: SourceReport) -> Iterator[Timed]:
        """The frames that are in order; when they end, a look at whether that was all of them."""
        latest_s: float | None = None
        for time_s, frame in frames:
            if latest_s is not None and time_s <= latest_s:
                report.out_of_order_frames += 1
                report.note(f"frame at {time_s:.3f} s after {latest_s:.3f} s")
                continue
            latest_s = time_s
            yield time_s, frame
        promised_s = promised_end_s(stream)
        if promised_s is not None and latest_s is not None and promised_s - latest_s > _HEADER_MAY_ERR_S:
            report.short_by_s = promised_s - latest_s
        self._check_end(report)

    def _from_start_tick(self, decoder: Decoder, stream: VideoStream, sampler: TickSampler) -> Iterator[Timed]:
        """Frames from the start, or from a key frame at or before the first wanted tick."""
        frames = self._timed(decoder, stream)
        first = next(frames)
        if self.start_tick:
            sampler.first_time_s = first[0]
            with self._open() as container:
                sought = self._sought(container, decoder.report, first[0] + tick_to_s(self.start_tick))
                if sought is not None:
                    yield from self._to_the_end(sought, stream, decoder.report)
                    return
        yield from self._to_the_end(chain((first,), frames), stream, decoder.report)

    def _sought(self, container: InputContainer, report: SourceReport, wanted_s: float) -> Iterator[Timed] | None:
        """Frames from a key frame at or before a time on the file's own clock.

        None where the container can't seek like that, judged by the first picture that comes out: then
        everything is decoded from the start, so that the frames never depend on how well a file seeks.
        """
        stream = video_stream(container, str(self.path))
        if not stream.time_base:
            return None
        try:
            container.seek(int(wanted_s / stream.time_base), stream=stream)
        except av.FFmpegError:
            return None
        frames = self._timed(self._decoder(container, stream, report), stream)
        first = next(frames, None)
        if first is None or not first[1].key_frame or first[0] > wanted_s:
            return None
        return chain((first,), frames)

    def _check_end(self, report: SourceReport) -> None:
        """After everything that is there has been given: was that all?"""
        report.missing_bytes = missing_bytes(self.path)
        if not self.allow_truncated and (report.missing_bytes or report.broke_off):
            cause = report.broke_off or f"{report.missing_bytes} bytes that its header promises are missing"
            raise InputError(
                f"{self.path}: is cut off after {report.frames_decoded} frames ({cause}); copy it again, or pass "
                "allow_truncated to take what is there"
            )


def _check_there(path: Path) -> None:
    if path.is_dir():
        raise InputError(f"{path}: is a folder; name one video file in it")
    if not path.exists():
        raise MissingError(f"{path}: no such video file; check the path")
    if path.is_file() and not path.stat().st_size:
        raise InputError(f"{path}: is empty (0 bytes); copy it again")


def check_video(path: str | Path, *, allow_truncated: bool = False) -> SourceInfo:
    """Look at a file at the door: opens it, decodes its first frame, and tells whether it is cut off.

    Damage in the middle shows only when the file is read.

    Raises:
        MissingError: if there is no such file.
        InputError: if it can't be opened, holds no video or no frame, or (unless allowed) is cut off.
    """
    video = VideoFile(path, allow_truncated=allow_truncated)
    info = video.info
    missing = 0 if allow_truncated else missing_bytes(video.path)
    if missing:
        raise InputError(
            f"{path}: is cut off, {missing} bytes that its header promises are missing; copy it again, or allow "
            "cut-off files to take what is there"
        )
    return info
