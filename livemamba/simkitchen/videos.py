"""Episodes as mp4 files: h264, the same bytes every time. No torch."""

from collections.abc import Iterator
from pathlib import Path

import av
from av.video.reformatter import ColorPrimaries, ColorRange, Colorspace, ColorTrc, VideoReformatter

from livemamba.simkitchen.cooks import EpisodePlan
from livemamba.simkitchen.episodes import frames


def write_video(path: Path, plan: EpisodePlan, *, size: int, fps: int) -> int:
    """Render an episode into a file.

    Args:
        path: the mp4.
        plan: of the episode.
        size: width and height in pixels, even.
        fps: pictures a second.

    Returns:
        The number of pictures.

    Raises:
        InputError: if size or rate are out of range.
    """
    count = 0
    # One thread: how x264 shares the work among several changes the bytes.
    with av.open(str(path), mode="w", format="mp4", options={"movflags": "faststart"}) as container:
        stream = container.add_stream("libx264", rate=fps, options={"crf": "20", "preset": "veryfast", "threads": "1"})
        stream.width = stream.height = size
        stream.pix_fmt = "yuv420p"
        context = stream.codec_context
        context.colorspace, context.color_range = Colorspace.ITU709, ColorRange.MPEG
        context.color_primaries, context.color_trc = ColorPrimaries.BT709, ColorTrc.BT709
        for frame in _yuv(plan, size, fps):
            frame.pts = count
            container.mux(stream.encode(frame))
            count += 1
        container.mux(stream.encode(None))
    return count


def _yuv(plan: EpisodePlan, size: int, fps: int) -> Iterator[av.VideoFrame]:
    to_yuv = VideoReformatter()
    for _, pixels in frames(plan, size=size, fps=fps):
        frame = av.VideoFrame.from_ndarray(pixels, format="rgb24")
        yield to_yuv.reformat(
            frame, format="yuv420p", dst_colorspace=Colorspace.ITU709, dst_color_range=ColorRange.MPEG
        )
