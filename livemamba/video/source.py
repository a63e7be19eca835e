"""One way in for everything that gives frames: files, cameras, network streams."""

import re
from pathlib import Path

from livemamba.errors import InputError, MissingError
from livemamba.video.file import VideoFile
from livemamba.video.live import camera, network_stream
from livemamba.video.protocol import FrameSource, SourceInfo, SourceReport
from livemamba.video.testcard import make_test_card

__all__ = ["FrameSource", "SourceInfo", "SourceReport", "open_source"]

_TEST_CARD = re.compile(r"testcard:([\d.]+)")
_CAMERA = re.compile(r"camera:(\d+)|(/dev/video\d+)")
_ADDRESS = re.compile(r"(rtsps?|rtmps?|https?|udp|tcp)://.+", re.IGNORECASE)

ACCEPTED = "a video file, camera:0, /dev/video0, an address (rtsp, rtmp, http, https, udp, tcp), or testcard:SECONDS"
"""What `open_source` takes, for help texts."""


def open_source(spec: str | Path, *, timeout_s: float = 10.0, allow_truncated: bool = False) -> FrameSource:
    """Open what a user names.

    Args:
        spec: a video file, `camera:N`, `/dev/videoN`, an rtsp, rtmp, http(s), udp or tcp address, or
            `testcard:SECONDS` for drawn frames.
        timeout_s: how long a camera or stream may say nothing, seconds.
        allow_truncated: take what a cut-off file still holds.

    Raises:
        MissingError: if it is none of these.
        InputError: if it is a folder or an empty file.
    """
    text = str(spec)
    if isinstance(spec, str) and (card := _TEST_CARD.fullmatch(text)):
        return make_test_card(_seconds(card[1]))
    if isinstance(spec, str) and (device := _CAMERA.fullmatch(text)):
        return camera(device[1] if device[1] is not None else device[2], timeout_s=timeout_s)
    if isinstance(spec, str) and _ADDRESS.fullmatch(text):
        return network_stream(text, timeout_s=timeout_s)
    if not text or not Path(spec).exists():
        raise MissingError(f"{text}: no such video file, camera or stream; give {ACCEPTED}")
    return VideoFile(spec, allow_truncated=allow_truncated)


def _seconds(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InputError(f"testcard:{text}: {text!r} is no number of seconds") from None
