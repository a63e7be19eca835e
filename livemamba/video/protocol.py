"""What every source of frames offers, and what it says about itself."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from types import TracebackType
from typing import Protocol, Self

from livemamba.ticks import Frame

_NAMED = 5


@dataclass(frozen=True, kw_only=True)
class SourceInfo:
    """What is known of a source before it is read.

    Attributes:
        name: path, address or what the frames were called.
        width: columns of the picture as shown, after rotation and with square pixels.
        height: rows of the same.
        duration_s: what the header says, seconds; None where it says nothing or the source is live. For
            progress bars only: headers are often wrong.
        average_rate: frames a second by the header; None where unknown. Never used for times.
        live: whether frames come when they happen, so that late ones are dropped.
    """

    name: str
    width: int
    height: int
    duration_s: float | None
    average_rate: Fraction | None
    live: bool


@dataclass(kw_only=True)
class SourceReport:
    """What came out of a source so far in the present (or last) pass over it.

    Attributes:
        name: path, address or what the frames were called.
        frames_decoded: pictures that came out of the decoder.
        ticks_given: frames handed out on the tick grid.
        damaged_packets: packets that the decoder refused, or that the container or decoder marked damaged.
        out_of_order_frames: frames not later than the one before them, not used.
        dropped_ticks: ticks of a live source that were replaced by newer ones before anyone took them.
        clock_jumps: frames of a live source whose timestamp made no sense, so that arrival counted.
        missing_bytes: bytes that a cut-off file's own header promises beyond its end.
        short_by_s: seconds between the last frame and the end of the stream by the header, where that is more
            than a second; damage in the middle of some containers shows only so.
        broke_off: why the source couldn't be read on, if that is how it ended; else empty.
        notes: the first few of what was counted, by time.
    """

    name: str
    frames_decoded: int = 0
    ticks_given: int = 0
    damaged_packets: int = 0
    out_of_order_frames: int = 0
    dropped_ticks: int = 0
    clock_jumps: int = 0
    missing_bytes: int = 0
    short_by_s: float = 0.0
    broke_off: str = ""
    notes: list[str] = field(default_factory=list)

    def note(self, text: str) -> None:
        """Name one thing that was counted; the first five are kept."""
        if len(self.notes) < _NAMED:
            self.notes.append(text)

    def text(self) -> str:
        """One line: what was read, and what went wrong, if anything did."""
        counts = {
            "damaged packets": self.damaged_packets,
            "frames out of order": self.out_of_order_frames,
            "ticks dropped": self.dropped_ticks,
            "jumps of the clock": self.clock_jumps,
            "bytes missing at the end": self.missing_bytes,
        }
        parts = [f"{self.frames_decoded} frames decoded", f"{self.ticks_given} ticks given"]
        parts += [f"{count} {what}" for what, count in counts.items() if count]
        parts += [f"ends {self.short_by_s:.1f} s before its header says"] if self.short_by_s else []
        parts += [f"broke off ({self.broke_off})"] if self.broke_off else []
        named = f" (first: {'; '.join(self.notes)})" if self.notes else ""
        return f"{self.name}: {', '.join(parts)}{named}"


class FrameSource(Protocol):
    """An iterable of frames on the tick grid, in order; also a context manager."""

    @property
    def info(self) -> SourceInfo:
        """What is known before reading. May open the source."""

    @property
    def report(self) -> SourceReport:
        """What the present (or last) pass has met so far."""

    def __iter__(self) -> Iterator[Frame]: ...

    def close(self) -> None:
        """Let go of devices, threads and files; safe to call twice."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
