"""PyAV containers to decoded frames: which stream, damage counted, drained to the end."""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import av
from av.container import InputContainer
from av.stream import Disposition
from av.video.stream import VideoStream

from livemamba.errors import InputError
from livemamba.video.protocol import SourceReport

if TYPE_CHECKING:  # a generic class to type checkers only
    _Packet = av.Packet[VideoStream]

_CLOCK = re.compile(r"(\d+):(\d+):(\d+(?:\.\d+)?)")

# From this many packets on a source that is damaged throughout is given up at once, not at its end.
_PACKETS_TO_JUDGE = 100


def video_stream(container: InputContainer, name: str) -> VideoStream:
    """The container's main video stream, set up to decode in the calling thread alone.

    A song's cover art doesn't count: it is stored as a video stream of one picture.

    Raises:
        InputError: if there is none, or none that this build of FFmpeg decodes.
    """
    streams = [stream for stream in container.streams.video if Disposition.attached_pic not in stream.disposition]
    if not streams:
        kinds = sorted({stream.type for stream in container.streams})
        raise InputError(f"{name}: has no video stream (it holds {', '.join(kinds) or 'nothing'}); give a video file")
    best = container.streams.best("video")
    stream = next((stream for stream in streams if stream is best), streams[0])
    if stream.codec_context is None:
        raise InputError(f"{name}: its video codec is unknown to this build of FFmpeg; convert it to H.264")
    # Worker processes do the parallel work; decoder threads would only compete with them.
    stream.codec_context.thread_count = 1
    return stream


def promised_end_s(stream: VideoStream) -> float | None:
    """When the stream ends by its header, on the file's own clock; None where the header doesn't say."""
    if stream.duration and stream.time_base:
        return float(((stream.start_time or 0) + stream.duration) * stream.time_base)
    # Matroska keeps it in a tag, written as hours:minutes:seconds.
    tag = _CLOCK.fullmatch(stream.metadata.get("DURATION", ""))
    return int(tag[1]) * 3600 + int(tag[2]) * 60 + float(tag[3]) if tag else None


class Decoder:
    """Decodes one stream and counts what went wrong on the way."""

    def __init__(
        self, container: InputContainer, stream: VideoStream, report: SourceReport, *, max_damaged_share: float
    ) -> None:
        self._container = container
        self._stream = stream
        self.report = report
        self._limit = max_damaged_share
        self._packets = 0

    def frames(self) -> Iterator[av.VideoFrame]:
        """Every shown frame in presentation order, the decoder drained at the end.

        A packet that can't be decoded is counted and passed over. When the container itself can't be read on,
        the frames end and `report.broke_off` says why: the caller knows whether that is an error.

        Raises:
            InputError: if more packets than the allowed share are damaged, or no frame came out at all.
        """
        packets = self._container.demux(self._stream)
        last_is_whole = True
        while (packet := self._next(packets)) is not None:
            if packet.size:
                self._packets += 1
                last_is_whole = not packet.is_corrupt
            yield from self._decode(packet)
        if self.report.broke_off:
            yield from self._drain()
        elif not last_is_whole:
            self.report.broke_off = "its last packet is incomplete"
        self._judge()
        if not self.report.frames_decoded:
            cause = self.report.broke_off or f"none of its {self._packets} packets can be decoded"
            raise InputError(f"{self.report.name}: has no frame to show ({cause}); check that it plays elsewhere")

    def _next(self, packets: "Iterator[_Packet]") -> "_Packet | None":
        try:
            return next(packets, None)
        except av.FFmpegError as error:
            self.report.broke_off = error.strerror or type(error).__name__
            return None

    def _drain(self) -> list[av.VideoFrame]:
        """What the decoder still holds; a container that ends well does this with its last, empty packet."""
        try:
            frames = self._stream.decode(None)
        except av.FFmpegError:
            return []  # the break itself is already named
        self.report.frames_decoded += len(frames)
        return frames

    def _decode(self, packet: "_Packet") -> list[av.VideoFrame]:
        try:
            frames = packet.decode()
        except av.FFmpegError as error:
            self._count_damage(packet, error.strerror or type(error).__name__)
            return []
        if packet.is_corrupt or any(frame.is_corrupt for frame in frames):
            self._count_damage(packet, "marked damaged")
        self.report.frames_decoded += len(frames)
        return frames

    def _count_damage(self, packet: "_Packet", cause: str) -> None:
        time_s = None if packet.pts is None else float(packet.pts * packet.time_base)
        self.report.damaged_packets += 1
        self.report.note(f"packet {self._packets}{'' if time_s is None else f' at {time_s:.3f} s'}: {cause}")
        if self._packets >= _PACKETS_TO_JUDGE:
            self._judge()

    def _judge(self) -> None:
        damaged = self.report.damaged_packets
        # One is always let through: in a clip of a few packets it says nothing of the whole.
        if damaged > max(1, self._limit * self._packets):
            raise InputError(
                f"{self.report.name}: {damaged} of {self._packets} packets are damaged, more than the allowed "
                f"{self._limit:.0%} (first: {self.report.notes[0]}); check that it plays elsewhere"
            )
