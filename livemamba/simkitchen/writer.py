"""A corpus on disk: the whole folder or nothing. No torch."""

import multiprocessing
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

import numpy as np

from livemamba.errors import InputError
from livemamba.files import whole_folder
from livemamba.simkitchen.corpus import CorpusSettings, Planned, plan_corpus
from livemamba.simkitchen.episodes import Episode, check_rate, play, states
from livemamba.simkitchen.layout import DETAILS_FILE, STATES_FOLDER, VIDEOS_FOLDER, write_layout
from livemamba.simkitchen.renderer import check_size
from livemamba.simkitchen.videos import write_video

Progress = Callable[[int, int], None]
"""Called with the episodes that are done and how many there are."""


def write_corpus(
    out: str | Path,
    settings: CorpusSettings,
    *,
    size: int = 224,
    fps: int = 10,
    video: bool = True,
    with_states: bool = False,
    workers: int = 1,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> tuple[tuple[Planned, Episode], ...]:
    """Generate a corpus in CaptainCook4D's layout.

    Args:
        out: folder to make.
        settings: what the corpus follows from.
        size: width and height of the pictures.
        fps: pictures a second.
        video: whether to render; without, only the annotations are written.
        with_states: whether to write `states/<recording>.npy`, the world's state at every tick.
        workers: processes that render; the files are the same for any number.
        overwrite: replace a corpus that is there.
        progress: told after each episode.

    Returns:
        The episodes, played.

    Raises:
        InputError: if an option is out of range, or the folder is there.
    """
    check_rate(fps)
    check_size(size)
    if workers < 1:
        raise InputError(f"{workers} workers; give at least 1")
    with whole_folder(out, replaces=DETAILS_FILE if overwrite else None) as folder:
        played = tuple((planned, play(planned.plan)) for planned in plan_corpus(settings))
        write_layout(folder, played, settings, size=size, fps=fps)
        if with_states:
            (folder / STATES_FOLDER).mkdir()
            for planned, _ in played:
                np.save(folder / STATES_FOLDER / f"{planned.id}.npy", states(planned.plan))
        if video:
            (folder / VIDEOS_FOLDER).mkdir()
            for done in _rendered(folder / VIDEOS_FOLDER, played, size, fps, workers):
                if progress is not None:
                    progress(done, len(played))
    return played


def _leave_interrupts_to_parent() -> None:
    """Ctrl-C reaches every process of a terminal; one of them tidies up."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _rendered(
    folder: Path, played: tuple[tuple[Planned, Episode], ...], size: int, fps: int, workers: int
) -> Iterator[int]:
    jobs = [(folder / f"{planned.id}.mp4", planned.plan) for planned, _ in played]
    if workers == 1:
        for done, (path, plan) in enumerate(jobs, 1):
            write_video(path, plan, size=size, fps=fps)
            yield done
        return
    # Spawned, not forked: the parent may hold threads (a progress bar, decoders).
    pool = ProcessPoolExecutor(
        workers, mp_context=multiprocessing.get_context("spawn"), initializer=_leave_interrupts_to_parent
    )
    try:
        running = [pool.submit(write_video, path, plan, size=size, fps=fps) for path, plan in jobs]
        for done, future in enumerate(as_completed(running), 1):
            future.result()
            yield done
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
