import http.server
import socket
import threading
import time
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import av
import pytest
from video_clips import read_number, write_clip

from livemamba.errors import InputError
from livemamba.video.live import LiveClock, LiveVideo, camera, network_stream


@contextmanager
def tcp_server(serve):
    """A server that answers one connection by `serve(connection, stop)`; gives its address."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        stop = threading.Event()

        def answer():
            connection, _ = listener.accept()
            with connection:
                serve(connection, stop)

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        yield f"tcp://127.0.0.1:{listener.getsockname()[1]}"
        stop.set()
        thread.join(5)


def at_its_pace(path: Path, connection: socket.socket, stop: threading.Event) -> None:
    """Send an mpegts as a camera would: each packet when its picture has been taken."""
    with av.open(str(path)) as container:
        places = [
            (packet.pos, float(packet.dts * packet.time_base)) for packet in container.demux(video=0) if packet.size
        ]
    content = path.read_bytes()
    began, first = time.monotonic(), places[0][1]
    for (position, sent_s), (end, _) in zip(places, [*places[1:], (len(content), 0)], strict=True):
        stop.wait(max(0.0, began + sent_s - first - time.monotonic()))
        connection.sendall(content[position if position != places[0][0] else 0 : end])


def stream_clip(tmp_path, seconds):
    options = {"g": "15", "bf": "0", "tune": "zerolatency"}
    return write_clip(tmp_path / "stream.ts", range(30 * seconds + 1), options=options)


def test_a_network_stream_gives_frames_on_their_own_ticks(tmp_path):
    clip = stream_clip(tmp_path, 3)
    with tcp_server(partial(at_its_pace, clip)) as address, network_stream(address, timeout_s=5) as source:
        info = source.info
        frames = list(source)
    assert (info.width, info.height, info.live, info.duration_s) == (32, 32, True, None)
    assert [read_number(frame.pixels) for frame in frames] == [15 * frame.tick for frame in frames]
    # While FFmpeg looks for the streams, nobody can take a tick; after that none is lost.
    ticks = [frame.tick for frame in frames]
    assert ticks[-1] == 6 and ticks == sorted(set(ticks))
    assert source.report.ticks_given + source.report.dropped_ticks == 7
    assert source.report.frames_decoded == 91 and source.report.clock_jumps == 0


def test_a_slow_consumer_gets_the_newest_tick_and_the_rest_is_counted(tmp_path):
    clip = stream_clip(tmp_path, 4)
    ticks, lags = [], []
    with tcp_server(partial(at_its_pace, clip)) as address, network_stream(address, timeout_s=5) as source:
        for frame in source:
            assert read_number(frame.pixels) == 15 * frame.tick
            ticks.append(frame.tick)
            lags.append(source.report.frames_decoded - 1 - read_number(frame.pixels))
            time.sleep(1.2)
    assert ticks == sorted(set(ticks)) and ticks[-1] == 8 and 2 <= len(ticks) <= 5
    assert max(lags) <= 25, "an old frame was given although a newer tick was there"
    assert source.report.dropped_ticks == 9 - len(ticks) > 0
    assert f"{source.report.dropped_ticks} ticks dropped (first: tick " in source.report.text()


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


@contextmanager
def web_server(folder):
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(QuietHandler, directory=str(folder))) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join(5)


def test_a_file_behind_a_web_address_is_played_at_its_pace(tmp_path):
    write_clip(tmp_path / "clip.mp4", range(46), container_options={"movflags": "faststart"})
    with web_server(tmp_path) as address, network_stream(f"{address}/clip.mp4", timeout_s=5) as source:
        began = time.monotonic()
        numbers = [read_number(frame.pixels) for frame in source]
    assert numbers == [0, 15, 30, 45] and source.report.dropped_ticks == 0
    assert 1.4 < time.monotonic() - began < 4


def test_a_missing_page_is_one_line(tmp_path):
    with web_server(tmp_path) as address, pytest.raises(InputError, match=r"nothing\.mp4: can't be opened \(.*404"):
        list(network_stream(f"{address}/nothing.mp4", timeout_s=5))


def silent(connection, stop):
    stop.wait(20)


@pytest.mark.parametrize("use", [list, lambda source: source.info])
def test_a_silent_server_ends_in_an_error_at_the_timeout(use):
    with tcp_server(silent) as address:
        source = network_stream(address, timeout_s=0.5)
        began = time.monotonic()
        with pytest.raises(InputError, match=r"tcp://.*no (frame|answer) for 0\.5 s"):
            use(source)
        assert time.monotonic() - began < 3
        source.close()


def test_a_stream_that_falls_silent_gives_what_it_had_and_then_an_error(tmp_path):
    content = stream_clip(tmp_path, 1).read_bytes()

    def half(connection, stop):
        connection.sendall(content)
        stop.wait(20)

    with tcp_server(half) as address, network_stream(address, timeout_s=1) as source:
        frames = iter(source)
        last = next(frames)
        with pytest.raises(InputError, match=r"no frame for 1 s|broke off after"):
            for frame in frames:
                last = frame
        assert last.tick >= 1


def test_close_is_quick_even_in_a_silent_socket():
    with tcp_server(silent) as address:
        source = network_stream(address, timeout_s=5)
        consumer = threading.Thread(target=lambda: list(source), daemon=True)
        consumer.start()
        time.sleep(0.2)
        began = time.monotonic()
        source.close()
        source.close()
        consumer.join(1)
        assert time.monotonic() - began < 1.5 and not consumer.is_alive()
        with pytest.raises(InputError, match="was closed; open it again"):
            list(source)


def test_nobody_listening_is_one_line():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(InputError, match=r"tcp://.*can't be opened \(Connection refused\)"):
        list(network_stream(f"tcp://127.0.0.1:{port}", timeout_s=2))


def test_a_device_is_read_in_a_thread_that_close_ends():
    source = LiveVideo("testsrc=size=64x48:rate=20,realtime", name="camera 9", format_name="lavfi", timeout_s=5)
    with source:
        assert (source.info.name, source.info.width, source.info.height) == ("camera 9", 64, 48)
        frames = iter(source)
        ticks = [next(frames).tick for _ in range(3)]
        assert ticks == [0, 1, 2]
    assert not [thread for thread in threading.enumerate() if thread.name == "reading camera 9"]
    assert list(frames) == []


def test_a_missing_camera_names_the_device():
    with pytest.raises(InputError, match=r"camera /dev/video77: can't be opened \(No such file"):
        list(camera(77, timeout_s=2))


def test_a_fault_of_the_reading_thread_reaches_the_consumer(monkeypatch):
    source = LiveVideo("testsrc=size=64x48:rate=20", format_name="lavfi", timeout_s=5)

    def fail(container):
        raise ZeroDivisionError

    monkeypatch.setattr(source, "_read_frames", fail)
    monkeypatch.setattr(threading, "excepthook", lambda details: None)
    with pytest.raises(RuntimeError, match="the reading thread failed"):
        list(source)


def test_the_timeout_must_be_positive():
    for timeout_s in (0, -1, float("nan")):
        with pytest.raises(InputError, match="timeout_s"):
            network_stream("tcp://127.0.0.1:1", timeout_s=timeout_s)


def run_clock(*frames):
    clock = LiveClock()
    return [round(clock.time_of(stamp, arrival), 6) for stamp, arrival in frames], clock.jumps


def test_capture_times_count_however_uneven_the_arrival():
    assert run_clock((50.0, 3.0), (50.1, 3.9), (50.2, 3.9), (50.3, 4.0)) == ([0, 0.1, 0.2, 0.3], 0)


@pytest.mark.parametrize("stamp", [None, 0.0, 50.1, 90_000.0])
def test_a_stamp_that_makes_no_sense_is_replaced_by_arrival_once(stamp):
    times, jumps = run_clock((50.0, 3.0), (50.1, 3.1), (stamp, 3.3), (None if stamp is None else stamp + 0.1, 3.4))
    assert times == [0, 0.1, 0.3, 0.4]
    assert jumps == (2 if stamp is None else 1)


def test_the_clock_never_stands_still():
    times, _ = run_clock((None, 3.0), (None, 3.0), (None, 3.0))
    assert times[0] < times[1] < times[2]
