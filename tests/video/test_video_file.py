import math
import pickle
import subprocess
import sys
from fractions import Fraction

import av
import numpy as np
import pytest
from video_clips import draw_number, read_number, write_clip

from livemamba.errors import InputError
from livemamba.video.file import VideoFile, check_video


def numbers(video):
    return [read_number(frame.pixels) for frame in video]


def raw(path):
    """Every picture as stored, decoded apart from the code under test."""
    with av.open(str(path)) as container:
        return [frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)]


REAL = {
    "flipping_a_pancake.mkv": (310, 21),
    "discard_first_keyframe.mp4": (25, 2),
    "testsrc2_mpeg4.mp4": (1, 1),
    "video_0.mov": (3, 1),
    "nasa_13013.mp4": (390, 26),
}


@pytest.mark.parametrize("name", REAL)
def test_real_clips_are_read_to_their_last_frame(test_data, name):
    video = VideoFile(test_data / "video" / name)
    frames = list(video)
    assert (video.report.frames_decoded, len(frames)) == REAL[name]
    assert [frame.tick for frame in frames] == list(range(len(frames)))
    assert all(0 <= frame.tick * 0.5 - frame.time_s < 0.5 for frame in frames)
    assert video.report.text().endswith(f"{REAL[name][0]} frames decoded, {REAL[name][1]} ticks given")


def test_length_is_counted_not_taken_from_the_header(test_data):
    frames = list(VideoFile(test_data / "video" / "flipping_a_pancake.mkv"))
    assert frames[-1].tick == 20 and frames[-1].time_s == pytest.approx(10.0)


@pytest.mark.parametrize(("turn", "quarters", "shape"), [(0, 0, (320, 568)), (90, 3, (568, 320)),
                                                          (180, 2, (320, 568)), (270, 1, (568, 320))])  # fmt: skip
def test_phone_clips_come_out_upright(test_data, turn, quarters, shape):
    path = test_data / "video" / f"video_{turn}.mov"
    video = VideoFile(path)
    (frame,) = video
    assert (frame.height, frame.width) == shape == (video.info.height, video.info.width)
    # The name says how far clockwise a player turns it; np.rot90 turns the other way. (The four clips show
    # different keys of a keyboard; that the letters stand upright was looked at.)
    expected = np.rot90(raw(path)[0], quarters).astype(int)
    assert np.abs(frame.pixels - expected).mean() < 2


def arrow():
    """A picture that none of the seven other turns and mirrorings leaves the same."""
    picture = np.zeros((32, 64, 3), np.uint8)
    picture[:16, :16] = 255
    picture[16:, :16] = 120
    picture[:16, 48:] = 60
    return picture


@pytest.mark.parametrize("degrees", [0, 90, 180, 270])
@pytest.mark.parametrize("mirrored", [False, True])
def test_every_turn_and_mirroring_is_undone(tmp_path, degrees, mirrored):
    # The matrix that FFmpeg writes says: turn counter-clockwise, then mirror. Stored is that undone, backwards.
    stored = np.ascontiguousarray(np.rot90(arrow()[:, ::-1] if mirrored else arrow(), -degrees // 90))
    clip = write_clip(
        tmp_path / "turned.mp4", [0], size=stored.shape[:2], pictures=[stored], turn=(degrees, mirrored, False)
    )
    (frame,) = VideoFile(clip)
    assert frame.pixels.shape == (32, 64, 3)
    assert np.abs(frame.pixels.astype(int) - arrow()).mean() < 6


def test_a_slanted_picture_is_refused(tmp_path):
    clip = write_clip(tmp_path / "slanted.mp4", [0], turn=(30, False, False))
    with pytest.raises(InputError, match=r"slanted\.mp4: .*quarter turns"):
        list(VideoFile(clip))


@pytest.mark.parametrize(("aspect", "shape"), [(Fraction(4, 3), (48, 64)), (Fraction(1, 2), (96, 48))])
def test_pixels_that_are_not_square_are_stretched(tmp_path, aspect, shape):
    video = VideoFile(write_clip(tmp_path / "wide.mp4", [0], size=(48, 48), pixel_aspect=aspect))
    (frame,) = video
    assert (frame.height, frame.width) == shape == (video.info.height, video.info.width)


def test_stretch_comes_before_the_turn(tmp_path):
    clip = write_clip(tmp_path / "a.mp4", [0], size=(48, 48), pixel_aspect=Fraction(2), turn=(90, False, False))
    assert next(iter(VideoFile(clip))).pixels.shape == (96, 48, 3)


BARS = [(255, 255, 255), (0, 0, 0), (200, 40, 40), (40, 160, 60)]


def bars(height, width):
    picture = np.zeros((height, width, 3), np.uint8)
    for place, colour in enumerate(BARS):
        picture[:, place * width // 4 : (place + 1) * width // 4] = colour
    return picture


@pytest.mark.parametrize(
    ("name", "codec", "pix_fmt", "size", "full"),
    [
        ("a.mp4", "libx264", "yuv420p", (48, 64), False),
        ("a.mp4", "libx264", "yuv420p", (48, 64), True),
        ("a.mp4", "libx264", "yuv444p", (241, 321), False),
        ("a.mp4", "libx264", "yuv422p10le", (48, 64), False),
        ("a.mp4", "libx264", "yuv420p", (50, 66), False),  # coded in 16 x 16 blocks, cropped when shown
        ("a.mkv", "ffv1", "bgra", (48, 64), False),
        ("a.mov", "png", "rgba", (33, 47), False),
        ("a.mkv", "libvpx-vp9", "yuv420p", (48, 64), False),
    ],
)
def test_pixel_formats_and_ranges_give_the_colours_drawn(tmp_path, name, codec, pix_fmt, size, full):
    clip = write_clip(
        tmp_path / name, [0], codec=codec, pix_fmt=pix_fmt, size=size, pictures=[bars(*size)], full_range=full
    )
    (frame,) = VideoFile(clip)
    assert frame.pixels.shape == (*size, 3)
    for place, colour in enumerate(BARS):
        middle = frame.pixels[size[0] // 2, (2 * place + 1) * size[1] // 8].astype(int)
        assert np.abs(middle - colour).max() <= 14, (place, middle)


def test_grey_and_palette_pictures(tmp_path):
    grey = write_clip(tmp_path / "grey.mkv", [0], codec="ffv1", pix_fmt="gray", pictures=[draw_number(0b1011)])
    assert numbers(VideoFile(grey)) == [0b1011]
    palette = write_clip(tmp_path / "a.gif", [0, 15, 30], codec="gif", pix_fmt="rgb8", time_base=Fraction(1, 30))
    assert numbers(VideoFile(palette)) == [0, 1, 2]


def test_b_frames_are_drained_and_in_order(tmp_path):
    clip = write_clip(tmp_path / "b.mp4", range(90), options={"bf": "2", "g": "12"})
    video = VideoFile(clip)
    assert numbers(video) == [0, 15, 30, 45, 60, 75]
    assert video.report.frames_decoded == 90
    assert [read_number(picture) for _, picture in video.pictures()] == list(range(90))


def test_one_frame_is_one_tick(tmp_path):
    assert numbers(VideoFile(write_clip(tmp_path / "one.mp4", [0]))) == [0]


@pytest.mark.parametrize("name", ["uneven.mp4", "uneven.mkv"])
def test_uneven_times_are_the_files_own(tmp_path, name):
    stamps = [round(1000 * i / 30) for i in range(30)] + [1000, 2000, 3000, 4000, 5000]
    clip = write_clip(tmp_path / name, stamps, time_base=Fraction(1, 1000))
    assert numbers(VideoFile(clip)) == [0, 15, 30, 30, 31, 31, 32, 32, 33, 33, 34]
    times = [time_s for time_s, _ in VideoFile(clip).pictures()]
    assert times == pytest.approx([stamp / 1000 for stamp in stamps], abs=1e-3)


@pytest.mark.parametrize("name", ["late.mp4", "late.mkv", "late.ts"])
def test_a_late_start_counts_from_the_first_shown_frame(tmp_path, name):
    clip = write_clip(tmp_path / name, range(40, 71))
    frames = list(VideoFile(clip))
    assert frames[0].time_s == 0 and read_number(frames[0].pixels) == 0
    assert [read_number(frame.pixels) for frame in frames] == [0, 15, 30]


def test_no_drift_over_ten_minutes_of_29_97(tmp_path):
    count = 17983
    clip = write_clip(tmp_path / "long.mp4", range(count), time_base=Fraction(1001, 30000), codec="mpeg4")
    frames = list(VideoFile(clip))
    assert [frame.tick for frame in frames] == list(range(1200))
    for frame in frames:
        # On the grid a time up to 50 microseconds after a tick counts as on it (livemamba.ticks).
        latest = math.floor((frame.tick / 2 + 5e-5) * 30000 / 1001)
        assert read_number(frame.pixels) == latest
        assert -5e-5 <= frame.tick / 2 - frame.time_s < 1001 / 30000


def test_frames_without_times_are_an_error_not_a_guess(tmp_path):
    clip = write_clip(tmp_path / "raw.h264", range(30))
    for read in (lambda: list(VideoFile(clip)), lambda: check_video(clip)):
        with pytest.raises(InputError, match=r"raw\.h264: h264 frames without a time; .*never guessed"):
            read()


class WithBackwardStamp(VideoFile):
    def _timed(self, decoder, stream):
        for place, (time_s, frame) in enumerate(super()._timed(decoder, stream)):
            yield time_s - (0.3 if place == 20 else 0), frame


def test_out_of_order_frames_are_counted_named_and_not_used(tmp_path):
    clip = write_clip(tmp_path / "back.mp4", range(31))
    video = WithBackwardStamp(clip)
    assert numbers(video) == [0, 15, 30]
    assert [read_number(picture) for _, picture in video.pictures()] == [n for n in range(31) if n != 20]
    assert video.report.out_of_order_frames == 1
    assert video.report.text().endswith("1 frames out of order (first: frame at 0.367 s after 0.633 s)")


@pytest.mark.parametrize("name", ["flipping_a_pancake.mkv", "nasa_13013.mp4"])
@pytest.mark.parametrize("start", [1, 7, 13, 20])
def test_a_range_is_the_same_as_that_part_of_the_whole(test_data, name, start):
    path = test_data / "video" / name
    whole = {frame.tick: frame for frame in VideoFile(path, end_tick=start + 3)}
    part = list(VideoFile(path, start_tick=start, end_tick=start + 3))
    assert [frame.tick for frame in part] == [tick for tick in whole if tick >= start]
    for frame in part:
        assert frame.time_s == pytest.approx(whole[frame.tick].time_s)
        assert np.array_equal(frame.pixels, whole[frame.tick].pixels)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("a.mp4", {"bf": "2", "g": "12"}),
        ("a.mkv", {"bf": "2", "g": "12", "x264-params": "open-gop=1"}),
        ("a.ts", {"bf": "2", "g": "30"}),
        ("a.mkv", {"g": "30", "x264-params": "intra-refresh=1"}),
    ],
)
def test_seeking_never_changes_the_frames(tmp_path, name, options):
    clip = write_clip(tmp_path / name, range(20, 170), options=options)
    whole = numbers(VideoFile(clip))
    assert whole == [0, 15, 30, 45, 60, 75, 90, 105, 120, 135]
    for start in range(1, 10):
        assert numbers(VideoFile(clip, start_tick=start)) == whole[start:], start


def test_a_range_reads_only_what_it_needs(tmp_path):
    clip = write_clip(tmp_path / "long.mp4", range(600), options={"g": "30", "bf": "0"})
    video = VideoFile(clip, start_tick=30, end_tick=31)
    assert numbers(video) == [450]
    assert video.report.frames_decoded < 40


def test_a_range_behind_the_end_is_an_error(tmp_path):
    clip = write_clip(tmp_path / "short.mp4", range(31))
    assert numbers(VideoFile(clip, start_tick=1, end_tick=50)) == [15, 30]
    with pytest.raises(InputError, match=r"short\.mp4: ends before tick 3"):
        list(VideoFile(clip, start_tick=3))
    for start, end in ((-1, None), (4, 4), (4, 2)):
        with pytest.raises(InputError, match="are no range"):
            VideoFile(clip, start_tick=start, end_tick=end)


def test_a_file_is_read_anew_by_each_pass_and_can_be_pickled(tmp_path):
    video = VideoFile(write_clip(tmp_path / "a.mp4", range(31)), start_tick=1)
    half = iter(video)
    next(half)
    with video:
        assert numbers(video) == numbers(video) == [15, 30]
    assert video.info.width == 32
    again = pickle.loads(pickle.dumps(video))
    assert numbers(again) == [15, 30] and again.info == video.info


def test_info_says_what_the_header_says(tmp_path):
    info = check_video(write_clip(tmp_path / "a.mp4", range(31), size=(32, 48)))
    assert (info.width, info.height, info.live, info.average_rate) == (48, 32, False, 30)
    assert info.duration_s == pytest.approx(31 / 30, abs=0.04)


def test_names_with_colons_and_odd_tags_are_files(tmp_path):
    clip = write_clip(tmp_path / "a.mp4", [0])
    odd = clip.rename(tmp_path / "http:12:30 ünd so.mp4")
    assert numbers(VideoFile(odd)) == [0]


def test_ffmpeg_says_nothing_on_the_terminal(tmp_path):
    clip = write_clip(tmp_path / "cut.mp4", range(90), container_options={"movflags": "faststart"})
    clip.write_bytes(clip.read_bytes()[:-900])
    code = (
        "import sys; from livemamba.video.file import VideoFile\n"
        "list(VideoFile(sys.argv[1], allow_truncated=True, max_damaged_share=1))"
    )
    done = subprocess.run([sys.executable, "-c", code, str(clip)], capture_output=True, text=True, check=True)
    assert done.stdout == done.stderr == ""
