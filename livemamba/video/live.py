"""Cameras and network streams: frames come when they happen, and late ones are dropped.

A thread reads and decodes; the consumer takes the newest tick. So a slow consumer never makes the stream
wait (or a camera's buffer run over): the ticks that it missed are dropped and counted, and the frame that it
gets carries its own tick, not the next number.
"""

import platform
import threading
import time
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from types import TracebackType
from typing import Self

import av
from av.container import InputContainer

from livemamba.errors import InputError
from livemamba.ticks import Frame
from livemamba.video.decoding import Decoder, video_stream
from livemamba.video.pixels import UprightRgb
from livemamba.video.protocol import SourceInfo, SourceReport
from livemamba.video.sampling import TickSampler

# A timestamp that runs further ahead of the wall clock than any sender's buffer isn't a capture time.
_MAX_LEAD_S = 10.0
# Arrivals closer together than the wall clock can tell still have an order.
_SMALLEST_STEP_S = 1e-6
# What close() waits for the thread; one that sits in a silent socket ends by itself at the timeout.
_JOIN_S = 0.5


class LiveClock:
    """Seconds since the first frame, by capture time where that makes sense, else by arrival.

    It goes by steps: from one frame to the next by the difference of their timestamps, if that is positive
    and no more than 10 s longer than what passed between their arrivals; otherwise by the latter. So a
    camera that restarts its timestamps, or has none, moves no tick that was given before.
    """

    def __init__(self) -> None:
        self.jumps = 0
        self._time_s: float | None = None
        self._stamp_s: float | None = None
        self._arrival_s = 0.0

    def time_of(self, stamp_s: float | None, arrival_s: float) -> float:
        """The time of the next frame.

        Args:
            stamp_s: its timestamp in seconds, if it has one.
            arrival_s: when it came, on a clock that never goes back.
        """
        if self._time_s is None:
            self._time_s = 0.0
        else:
            waited_s = arrival_s - self._arrival_s
            step_s = 0.0 if stamp_s is None or self._stamp_s is None else stamp_s - self._stamp_s
            if not 0 < step_s <= waited_s + _MAX_LEAD_S:
                self.jumps += 1
                step_s = max(waited_s, _SMALLEST_STEP_S)
            self._time_s += step_s
        self._stamp_s, self._arrival_s = stamp_s, arrival_s
        return self._time_s


class LiveVideo:
    """A camera or network stream on the tick grid; make one with `camera` or `network_stream`.

    The thread starts with the first use (`info` or iteration) and ends with `close`, with the stream, or with
    the timeout; no call blocks longer than the timeout. Times count from the first frame that came.

    Raises (while iterating, and from `info`):
        InputError: if it can't be opened, says nothing for `timeout_s`, breaks off, or was closed.
    """

    def __init__(
        self,
        target: str,
        *,
        name: str = "",
        format_name: str | None = None,
        options: dict[str, str] | None = None,
        timeout_s: float = 10.0,
        paced: bool = False,
    ) -> None:
        """Name the source; nothing is opened yet.

        Args:
            target: what FFmpeg opens.
            name: what the user calls it; by default the target.
            format_name: FFmpeg's input format, needed for devices.
            options: FFmpeg's options for that format or protocol.
            timeout_s: how long it may say nothing, seconds.
            paced: whether to hold frames back until their time, for streams that come faster than they play.

        Raises:
            InputError: if the timeout isn't positive.
        """
        if not timeout_s > 0:
            raise InputError(f"{target}: timeout_s is {timeout_s}; give seconds above 0")
        self._target = target
        self._name = name or target
        self._format_name = format_name
        self._options = options or {}
        self._timeout_s = timeout_s
        self._paced = paced
        self._report = SourceReport(name=self._name)
        self._changed = threading.Condition()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        # Below: written by the thread, read by the consumer, always under `_changed`.
        self._info: SourceInfo | None = None
        self._newest: Frame | None = None
        self._ended = False
        self._error: Exception | None = None

    @property
    def info(self) -> SourceInfo:
        """Size and rate; waits for the first frame."""
        self._start()
        with self._changed:
            self._wait(lambda: self._info is not None)
            if self._info is None:
                raise self._error or InputError(f"{self._name}: ended before its first frame; check that it plays")
            return self._info

    @property
    def report(self) -> SourceReport:
        """What has come so far."""
        return self._report

    def __iter__(self) -> Iterator[Frame]:
        self._start()
        while (frame := self._take()) is not None:
            yield frame

    def close(self) -> None:
        """Stop reading. Returns within half a second, whatever the device or network does."""
        self._stop.set()
        with self._changed:
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(_JOIN_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _start(self) -> None:
        if self._stop.is_set():
            raise InputError(f"{self._name}: was closed; open it again")
        if self._thread is None:
            # A daemon: a device that hangs must not keep the program from ending.
            self._thread = threading.Thread(target=self._read, name=f"reading {self._name}", daemon=True)
            self._thread.start()

    def _wait(self, there: Callable[[], bool]) -> None:
        """Wait, under `_changed`, for something, the end, or the timeout (an error)."""
        if not self._changed.wait_for(lambda: there() or self._ended or self._stop.is_set(), self._timeout_s):
            raise InputError(
                f"{self._name}: no frame for {self._timeout_s:g} s; check that it is on and reachable, or raise the "
                "timeout"
            )

    def _take(self) -> Frame | None:
        with self._changed:
            self._wait(lambda: self._newest is not None)
            if self._stop.is_set():
                return None
            frame, self._newest = self._newest, None
            if frame is None and self._error is not None:
                raise self._error
            if frame is not None:
                self._report.ticks_given += 1
            return frame

    def _read(self) -> None:
        """The thread: read to the end, and always leave word of how it ended."""
        error: Exception | None = RuntimeError(f"{self._name}: the reading thread failed; its traceback is printed")
        try:
            limits = (self._timeout_s, self._timeout_s)
            with av.open(
                self._target,
                mode="r",
                format=self._format_name,
                options=self._options,
                timeout=limits,
                metadata_errors="replace",
            ) as container:
                self._read_frames(container)
            error = None
        except av.FFmpegError as cause:
            error = InputError(f"{self._name}: can't be opened ({self._reason(cause)}); check the address and device")
        except InputError as cause:
            error = cause
        finally:
            with self._changed:
                self._ended, self._error = True, error
                self._changed.notify_all()

    def _read_frames(self, container: InputContainer) -> None:
        stream = video_stream(container, self._name)
        upright = UprightRgb(name=self._name, pixel_aspect=stream.sample_aspect_ratio)
        # Joining a stream between two key frames damages all up to the next: counted, never a reason to stop.
        decoder = Decoder(container, stream, self._report, max_damaged_share=1)
        clock, sampler = LiveClock(), TickSampler()
        began_s = time.monotonic()
        for frame in decoder.frames():
            now_s = time.monotonic()
            began_s = now_s if self._info is None else began_s
            stamp_s = None if frame.pts is None or not frame.time_base else float(frame.pts * frame.time_base)
            time_s = clock.time_of(stamp_s, now_s)
            self._report.clock_jumps = clock.jumps
            if self._stop.wait(max(0.0, began_s + time_s - now_s) if self._paced else 0):
                return
            for given in sampler.push(time_s, partial(upright, frame)):
                self._offer(given, stream.average_rate)
        if self._report.broke_off and not self._stop.is_set():
            raise InputError(
                f"{self._name}: broke off after {self._report.frames_decoded} frames ({self._report.broke_off}); "
                "check the connection and open it again"
            )

    def _offer(self, frame: Frame, rate: Fraction | None) -> None:
        with self._changed:
            if self._info is None:
                self._info = SourceInfo(
                    name=self._name,
                    width=frame.width,
                    height=frame.height,
                    duration_s=None,
                    average_rate=rate or None,
                    live=True,
                )
            if self._newest is not None:
                self._report.dropped_ticks += 1
                self._report.note(f"tick {self._newest.tick} dropped")
            self._newest = frame
            self._changed.notify_all()

    def _reason(self, error: av.FFmpegError) -> str:
        if isinstance(error, av.ExitError):
            return f"no answer for {self._timeout_s:g} s"
        return error.strerror or type(error).__name__


def network_stream(address: str, *, timeout_s: float = 10.0) -> LiveVideo:
    """An rtsp, rtmp, http(s), udp or tcp address.

    What comes over http is given at the pace of its own clock, as a player does: a file behind a web address
    arrives faster than it plays.
    """
    scheme = address.split("://", 1)[0].lower()
    # RTSP over UDP loses packets on ordinary wireless networks, and with them whole pictures.
    options = {"rtsp_transport": "tcp"} if scheme.startswith("rtsp") else {}
    return LiveVideo(address, options=options, timeout_s=timeout_s, paced=scheme.startswith("http"))


def camera(device: str | int, *, timeout_s: float = 10.0) -> LiveVideo:
    """A camera by number (0 is the first) or, on Linux, by device path.

    Raises:
        InputError: on systems other than Linux and macOS, whose cameras FFmpeg finds by name only.
    """
    text = str(device)
    system = platform.system()
    if system == "Linux":
        path = f"/dev/video{text}" if text.isdigit() else text
        return LiveVideo(path, name=f"camera {path}", format_name="v4l2", timeout_s=timeout_s)
    if system == "Darwin" and text.isdigit():
        # AVFoundation refuses to open without a rate that the camera has; 30 is the one that all have.
        options = {"framerate": "30"}
        return LiveVideo(text, name=f"camera {text}", format_name="avfoundation", options=options, timeout_s=timeout_s)
    raise InputError(f"camera {text}: can't be opened by that on {system}; stream it to an rtsp or udp address instead")
