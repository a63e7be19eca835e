import random
from pathlib import Path

import av
import pytest
from video_clips import noise, read_number, write_clip

from livemamba.errors import InputError, MissingError
from livemamba.video.cutoff import missing_bytes
from livemamba.video.file import VideoFile, check_video

B_FRAMES = {"bf": "2", "g": "12"}
WRITERS = {
    "front.mp4": ("libx264", {"movflags": "faststart"}),
    "pieces.mp4": ("libx264", {"movflags": "frag_keyframe+empty_moov"}),
    "a.mkv": ("libx264", {}),
    "a.webm": ("libvpx-vp9", {}),
    "a.ts": ("libx264", {}),
    "a.avi": ("mpeg4", {}),
    "a.flv": ("flv", {}),
}


def one_line(error):
    text = str(error.value)
    assert "\n" not in text
    return text


def noisy(path: Path, *, codec="libx264", container_options=None) -> Path:
    options = {"deadline": "realtime", "cpu-used": "8"} if "vp9" in codec else B_FRAMES if codec == "libx264" else {}
    return write_clip(
        path, range(90), codec=codec, options=options, container_options=container_options,
        size=(64, 96), pictures=noise(90),
    )  # fmt: skip


def cut(path: Path, share: float = 0.6) -> Path:
    content = path.read_bytes()
    short = path.with_name(f"cut_{path.name}")
    short.write_bytes(content[: int(len(content) * share)])
    return short


@pytest.mark.parametrize("name", WRITERS)
def test_a_cut_file_gives_what_is_there_and_then_an_error(tmp_path, name):
    codec, container_options = WRITERS[name]
    whole = noisy(tmp_path / name, codec=codec, container_options=container_options)
    assert len(list(VideoFile(whole))) == 6
    clip = cut(whole)
    video, given = VideoFile(clip), []
    with pytest.raises(InputError) as error:
        for frame in video:
            given.append(frame.tick)
    assert given == list(range(len(given))) and 3 <= len(given) <= 5
    assert f"cut_{name}: is cut off after" in one_line(error)

    allowed = VideoFile(clip, allow_truncated=True)
    assert [frame.tick for frame in allowed] == given
    assert allowed.report.missing_bytes or allowed.report.broke_off
    assert "missing at the end" in allowed.report.text() or "broke off" in allowed.report.text()


@pytest.mark.parametrize("name", sorted(set(WRITERS) - {"a.flv"}))
def test_the_door_sees_a_cut_but_not_a_whole_file(tmp_path, name):
    codec, container_options = WRITERS[name]
    whole = noisy(tmp_path / name, codec=codec, container_options=container_options)
    check_video(whole)
    assert missing_bytes(whole) == 0
    with pytest.raises(InputError, match="is cut off"):
        check_video(cut(whole))
    check_video(cut(whole), allow_truncated=True)


def test_what_is_missing_is_counted_to_the_byte(tmp_path):
    whole = noisy(tmp_path / "a.mkv")
    for lost in (1, 100, 5000):
        short = tmp_path / "short.mkv"
        short.write_bytes(whole.read_bytes()[:-lost])
        assert missing_bytes(short) == lost


def test_real_clips_miss_nothing(test_data):
    for path in sorted((test_data / "video").glob("*.m*")) + sorted((test_data / "video").glob("*.webm")):
        assert missing_bytes(path) == 0, path.name


def test_a_range_before_the_cut_is_no_error(tmp_path):
    clip = cut(noisy(tmp_path / "front.mp4", container_options={"movflags": "faststart"}))
    assert [frame.tick for frame in VideoFile(clip, end_tick=3)] == [0, 1, 2]


def test_an_mp4_cut_before_its_index_names_the_cause(tmp_path):
    clip = cut(noisy(tmp_path / "back.mp4"))
    for read in (list, lambda video: video.info):
        with pytest.raises(InputError) as error:
            read(VideoFile(clip, allow_truncated=True))
        assert "cut_back.mp4: can't be opened" in one_line(error) and "its index is missing" in one_line(error)


def write_tone(path: Path) -> Path:
    with av.open(str(path), "w") as container:
        stream = container.add_stream("aac", rate=48000)
        frame = av.AudioFrame(format="fltp", layout="stereo", samples=1024)
        for plane in frame.planes:
            plane.update(bytes(plane.buffer_size))
        frame.sample_rate, frame.pts = 48000, 0
        container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return path


def test_files_with_nothing_to_read_say_so_in_one_line(tmp_path):
    (tmp_path / "empty.mp4").touch()
    (tmp_path / "text.mp4").write_text("This is no video.\n" * 50)
    (tmp_path / "noise.mkv").write_bytes(random.Random(0).randbytes(5000))
    (tmp_path / "folder.mp4").mkdir()
    write_tone(tmp_path / "sound.mp4")
    cases = {
        "empty.mp4": (InputError, "is empty"),
        "text.mp4": (InputError, "can't be opened as a video"),
        "noise.mkv": (InputError, "can't be opened as a video"),
        "folder.mp4": (InputError, "is a folder"),
        "sound.mp4": (InputError, r"has no video stream \(it holds audio\)"),
        "nowhere.mp4": (MissingError, "no such video file"),
    }
    for name, (kind, rule) in cases.items():
        for read in (check_video, lambda path: list(VideoFile(path))):
            with pytest.raises(kind, match=rule) as error:
                read(tmp_path / name)
            assert name in one_line(error)


def test_a_file_that_goes_away_is_missed_at_the_next_pass(tmp_path):
    clip = write_clip(tmp_path / "a.mp4", range(5))
    video = VideoFile(clip)
    list(video)
    clip.unlink()
    with pytest.raises(MissingError):
        list(video)


def packet_places(path: Path) -> list[tuple[int, int]]:
    """Where each packet lies in the file: (position, size)."""
    with av.open(str(path)) as container:
        return [(packet.pos, packet.size) for packet in container.demux(video=0) if packet.size]


def scratch(path: Path, packets: range) -> Path:
    """Overwrite some packets with 0xff, which is no H.264."""
    places = packet_places(path)
    content = bytearray(path.read_bytes())
    for place in packets:
        position, size = places[place]
        content[position : position + size] = b"\xff" * size
    path.write_bytes(content)
    return path


def test_damage_in_the_middle_is_counted_and_named_and_decoding_goes_on(tmp_path):
    clip = write_clip(tmp_path / "a.mp4", range(90), options={"g": "10", "bf": "0"})
    video = VideoFile(scratch(clip, range(42, 46)))
    numbers = [read_number(frame.pixels) for frame in video]
    assert len(numbers) == 6
    assert [numbers[tick] for tick in (0, 1, 2, 4, 5)] == [0, 15, 30, 60, 75]
    assert video.report.damaged_packets == 4
    assert "4 damaged packets (first: packet 43 at 1.400 s: Invalid data" in video.report.text()


def test_too_much_damage_is_an_error(tmp_path):
    clip = scratch(write_clip(tmp_path / "a.mp4", range(90), options={"g": "10", "bf": "0"}), range(41, 55))
    with pytest.raises(InputError) as error:
        list(VideoFile(clip))
    assert "a.mp4: 14 of 90 packets are damaged, more than the allowed 10%" in one_line(error)
    assert len(list(VideoFile(clip, max_damaged_share=0.2))) == 6


def test_a_long_file_that_is_damaged_throughout_is_given_up_early(tmp_path):
    clip = scratch(write_clip(tmp_path / "a.mp4", range(900), options={"g": "10", "bf": "0"}), range(20, 900))
    with pytest.raises(InputError, match="80 of 100 packets"):
        list(VideoFile(clip))


def test_no_frame_at_all_is_an_error(tmp_path):
    clip = scratch(write_clip(tmp_path / "a.mp4", range(5)), range(5))
    for read in (check_video, lambda path: list(VideoFile(path, max_damaged_share=1))):
        with pytest.raises(InputError, match="has no frame to show") as error:
            read(clip)
        one_line(error)


def test_a_film_that_ends_long_before_its_header_says_is_told(tmp_path):
    """A scratch in WebM costs all up to the next cluster, without any error from the demuxer."""
    clip = noisy(tmp_path / "a.webm", codec="libvpx-vp9")
    content = bytearray(clip.read_bytes())
    middle = len(content) // 2
    content[middle : middle + len(content) // 10] = random.Random(0).randbytes(len(content) // 10)
    clip.write_bytes(content)
    video = VideoFile(clip, max_damaged_share=1)
    list(video)
    assert video.report.short_by_s > 1
    assert f"ends {video.report.short_by_s:.1f} s before its header says" in video.report.text()
