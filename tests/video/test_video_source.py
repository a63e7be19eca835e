import platform

import pytest
from video_clips import write_clip

from livemamba.errors import InputError, MissingError
from livemamba.video.file import VideoFile
from livemamba.video.live import LiveVideo
from livemamba.video.source import open_source


def test_an_existing_file_is_a_file(tmp_path, monkeypatch):
    path = write_clip(tmp_path / "a.mp4", range(3))
    monkeypatch.chdir(tmp_path)
    for spec in (path, str(path), "a.mp4"):
        with open_source(spec) as source:
            assert isinstance(source, VideoFile) and len(list(source)) == 1


def test_options_reach_the_file(tmp_path):
    path = write_clip(tmp_path / "a.mp4", range(3), container_options={"movflags": "faststart"})
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(InputError, match="cut off"):
        list(open_source(path))
    assert list(open_source(path, allow_truncated=True))


@pytest.mark.parametrize(
    "address",
    ["rtsp://cam/1", "rtmp://host/live", "http://host/a.mp4", "HTTPS://host/a", "udp://@:1234", "tcp://10.0.0.1:5000"],
)
def test_addresses_are_streams_and_nothing_is_opened_yet(address):
    source = open_source(address, timeout_s=1)
    assert isinstance(source, LiveVideo) and source.report.name == address
    source.close()


@pytest.mark.parametrize("spec", ["camera:2", "/dev/video2"])
def test_cameras(monkeypatch, spec):
    monkeypatch.setattr(platform, "system", lambda: "Linux")
    assert open_source(spec).report.name == "camera /dev/video2"
    monkeypatch.setattr(platform, "system", lambda: "Windows")
    with pytest.raises(InputError, match=r"camera .*2: can't be opened by that on Windows"):
        open_source(spec)


@pytest.mark.parametrize("spec", ["nowhere/clip.mp4", "", "camera:", "camera:one", "ftp://host/a.mp4", "rtsp://"])
def test_anything_else_names_what_is_accepted(spec):
    with pytest.raises(MissingError, match=r"a video file, camera:0, /dev/video0, an address \(rtsp") as error:
        open_source(spec)
    assert "\n" not in str(error.value)


def test_a_folder_is_refused(tmp_path):
    with pytest.raises(InputError, match="is a folder; name one video file in it"):
        open_source(tmp_path)
