import os
from fractions import Fraction

import av
import numpy as np
import pytest
from video_clips import draw_number, write_clip

from livemamba.errors import InputError, MissingError
from livemamba.timeline import Message, Timeline
from livemamba.video.file import VideoFile
from livemamba.video.memory import FramesInMemory
from livemamba.video.overlay import BAR_COLOURS
from livemamba.video.writer import AnnotatedWriter, write_annotated


def say(time_s, kind, text):
    return Message(time_s=time_s, kind=kind, text=text)


TIMELINE = Timeline(
    video_id="clip",
    messages=(
        say(0.0, "instruction", "Flip the pancake."),
        say(1.0, "mistake", "Too early."),
        say(2.0, "success", "You flipped it."),
        say(3.0, "finish", "You have finished all the steps."),
    ),
)


def read(path):
    """Times and pictures of a file, decoded apart from the code under test."""
    with av.open(str(path)) as container:
        return [(frame.time, frame.to_ndarray(format="rgb24")) for frame in container.decode(video=0)]


def plain(count, height=360, width=640, value=128):
    return [np.full((height, width, 3), value, np.uint8) for _ in range(count)]


def test_a_file_keeps_its_own_frames_and_times(tmp_path):
    stamps = [0, 33, 67, 100, 900, 1000, 2500, 2533]
    clip = write_clip(tmp_path / "clip.mp4", [s + 500 for s in stamps], time_base=Fraction(1, 1000), size=(48, 64))
    out = write_annotated(clip, TIMELINE, tmp_path / "out.mp4")
    written = read(out)
    assert [time_s for time_s, _ in written] == pytest.approx([s / 1000 for s in stamps], abs=1e-3)
    for number, (_, picture) in enumerate(written):
        assert picture.shape == (480, 640, 3)
        wanted = draw_number(number, 480, 640)[60:340].astype(int)  # between clock and bars
        assert np.abs(picture[60:340] - wanted).mean() < 12
    assert sorted(path.name for path in tmp_path.iterdir()) == ["clip.mp4", "out.mp4"]


def nearest_kind(pixel):
    return min(BAR_COLOURS, key=lambda kind: np.abs(np.subtract(BAR_COLOURS[kind][0], pixel.astype(int))).sum())


def test_messages_are_on_the_pictures_at_their_times(tmp_path):
    write_annotated(FramesInMemory(plain(8, value=0), rate=2), TIMELINE, tmp_path / "out.mp4")
    written = read(tmp_path / "out.mp4")
    assert [time_s for time_s, _ in written] == [tick / 2 for tick in range(8)]
    # Over black, with the bars' opacity taken out: the instruction lowest, feedback above it; the finish stands alone.
    lowest = [nearest_kind(picture[-4, -4] / 0.88) for _, picture in written]
    above = [nearest_kind(picture[-45, -4] / 0.88) for _, picture in written]
    assert lowest == ["instruction"] * 6 + ["finish"] * 2
    assert above[2:6] == ["mistake"] * 2 + ["success"] * 2


def test_the_last_picture_of_a_2_fps_video_lasts_half_a_second(tmp_path):
    write_annotated(FramesInMemory(plain(5), rate=2), TIMELINE, tmp_path / "out.mp4")
    with av.open(str(tmp_path / "out.mp4")) as container:
        assert container.duration / av.time_base == pytest.approx(2.5, abs=0.01)


def test_ticks_that_share_a_source_frame_are_all_written(tmp_path):
    source = FramesInMemory(plain(2), times_s=[0.0, 3.0])
    write_annotated(source, TIMELINE, tmp_path / "out.mp4")
    assert len(read(tmp_path / "out.mp4")) == 7


@pytest.mark.parametrize("colour", [(200, 30, 60), (20, 140, 90), (240, 240, 240), (12, 12, 12)])
def test_colours_survive(tmp_path, colour):
    picture = np.broadcast_to(np.array(colour, np.uint8), (720, 1280, 3)).copy()
    with AnnotatedWriter(tmp_path / "out.mp4") as writer:
        writer.add(picture, 0.0)
    (frame,) = VideoFile(tmp_path / "out.mp4")
    assert np.abs(frame.pixels[360, 640].astype(int) - colour).max() <= 4
    with av.open(str(tmp_path / "out.mp4")) as container:
        stream = container.streams.video[0]
        assert (stream.codec_context.name, stream.pix_fmt, stream.colorspace) == ("h264", "yuv420p", 1)


@pytest.mark.parametrize(
    ("given", "written"),
    [((360, 640), (360, 640)), ((241, 321), (480, 640)), ((721, 1281), (720, 1280)), ((568, 320), (1136, 640)),
     ((1, 1), (640, 640)), ((20, 800), (240, 9600))],
)  # fmt: skip
def test_sizes_are_even_and_large_enough_to_read(tmp_path, given, written):
    with AnnotatedWriter(tmp_path / "out.mp4", messages=TIMELINE.messages) as writer:
        writer.add(np.zeros((*given, 3), np.uint8), 0.0)
    assert read(tmp_path / "out.mp4")[0][1].shape[:2] == written


def test_a_picture_of_another_size_is_fitted_in(tmp_path):
    with AnnotatedWriter(tmp_path / "out.mp4") as writer:
        writer.add(plain(1, 360, 640)[0], 0.0)
        writer.add(plain(1, 640, 360, value=200)[0], 0.5)
    _, second = read(tmp_path / "out.mp4")[1]
    assert second.shape == (360, 640, 3)
    assert abs(int(second[180, 320].mean()) - 200) < 6 and second[180, 20].mean() < 10


def test_live_use_says_messages_as_they_come(tmp_path):
    with AnnotatedWriter(tmp_path / "out.mp4") as writer:
        writer.add(plain(1, value=0)[0], 0.0)
        writer.say(say(0.5, "instruction", "Flip the pancake."))
        writer.add(plain(1, value=0)[0], 0.5)
        with pytest.raises(InputError, match="say them in order"):
            writer.say(say(0.2, "success", "Late."))
    (_, before), (_, after) = read(tmp_path / "out.mp4")
    assert before[-10].max() < 10 and after[-30:].max() > 150


def test_times_must_rise(tmp_path):
    with AnnotatedWriter(tmp_path / "out.mp4") as writer:
        writer.add(plain(1)[0], 1.0)
        for time_s in (1.0, 0.5, float("nan")):
            with pytest.raises(InputError, match="isn't later"):
                writer.add(plain(1)[0], time_s)
        with pytest.raises(InputError, match="RGB"):
            writer.add(np.zeros((4, 4), np.uint8), 2.0)
    assert len(read(tmp_path / "out.mp4")) == 1


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_an_error_leaves_nothing_behind_and_keeps_what_was_there(tmp_path, error):
    out = tmp_path / "out.mp4"
    out.write_bytes(b"an older video")

    def stop(done_s, total_s):
        if done_s >= 40:
            assert len(list(tmp_path.iterdir())) == 2, "written beside the target until whole"
            raise error

    with pytest.raises(error):
        write_annotated(FramesInMemory(plain(100, 240, 640), rate=2), TIMELINE, out, progress=stop)
    assert [path.name for path in tmp_path.iterdir()] == ["out.mp4"] and out.read_bytes() == b"an older video"
    write_annotated(FramesInMemory(plain(8), rate=2), TIMELINE, out)
    assert len(read(out)) == 8


def test_a_source_that_breaks_off_leaves_nothing_behind(tmp_path):
    clip = write_clip(tmp_path / "clip.mp4", range(60), container_options={"movflags": "faststart"})
    clip.write_bytes(clip.read_bytes()[:-300])
    with pytest.raises(InputError, match="cut off"):
        write_annotated(clip, TIMELINE, tmp_path / "out.mp4")
    assert [path.name for path in tmp_path.iterdir()] == ["clip.mp4"]
    write_annotated(VideoFile(clip, allow_truncated=True), TIMELINE, tmp_path / "out.mp4")


def test_no_picture_is_an_error(tmp_path):
    with pytest.raises(InputError, match="no picture was written"), AnnotatedWriter(tmp_path / "out.mp4"):
        pass
    assert not list(tmp_path.iterdir())


def test_bad_targets_are_refused_before_anything_is_written(tmp_path):
    clip = write_clip(tmp_path / "clip.mp4", [0])
    (tmp_path / "folder.mp4").mkdir()
    for name, kind, rule in [
        ("out.avi", InputError, "ends in .mp4"),
        ("folder.mp4", InputError, "ends in .mp4"),
        ("none/out.mp4", MissingError, "its folder doesn't exist"),
        ("clip.mp4", InputError, "is the source itself"),
    ]:
        with pytest.raises(kind, match=rule):
            write_annotated(clip, TIMELINE, tmp_path / name)
    assert len(read(clip)) == 1


def test_what_cannot_be_written_is_one_line(tmp_path, monkeypatch):
    writer = AnnotatedWriter(tmp_path / "out.mp4")
    tmp_path.joinpath(writer._partial.name).mkdir()
    writer.add(plain(1)[0], 0.0)
    with pytest.raises(InputError, match=r"out\.mp4: can't be written \("):
        writer.finish()
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(InputError, match=r"out\.mp4: its folder can't be written to"):
        AnnotatedWriter(tmp_path / "out.mp4")


def test_progress_tells_seconds_done_and_in_all(tmp_path):
    told = []
    clip = write_clip(tmp_path / "clip.mp4", range(31))
    write_annotated(str(clip), TIMELINE, tmp_path / "out.mp4", progress=lambda *told_now: told.append(told_now))
    assert [done for done, _ in told] == pytest.approx([n / 30 for n in range(31)])
    assert {total for _, total in told} == {VideoFile(clip).info.duration_s}
