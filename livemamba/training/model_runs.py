"""A network as the benchmark's watcher: with frames from videos or from a cache, listening or deaf.

Letters: Q embeddings of a frame, W width.
"""

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path

import torch
from torch import Tensor

from livemamba.coaching.events import Event
from livemamba.coaching.model_watcher import LiveMambaWatcher
from livemamba.coaching.watchers import StepWatcher
from livemamba.data.sources import Features
from livemamba.data.step_clips import StepClip
from livemamba.errors import MissingError
from livemamba.evaluation.pair_test import WatchClip, watched
from livemamba.evaluation.protocols import Lesson, MakeWatcher
from livemamba.evaluation.sanity import blank_frames
from livemamba.model.livemamba import LiveMamba
from livemamba.model.stream import Stream
from livemamba.recipe import Plan, Recipe
from livemamba.ticks import Frame, tick_to_s
from livemamba.video.source import open_source

Encode = Callable[[Frame], Tensor]

CHUNK_TICKS = 64
"""So many frames of a cache are embedded together."""
KEPT_CHUNKS = 16
"""And so many of these are kept: the next turn, or the other half of a pair, often begins in one of them."""


class Frames:
    """Where a network's frames come from.

    Args:
        live: the network.
        videos: folder of `<video id>.mp4`; or
        features: a cache; then frames carry no picture.
    """

    def __init__(self, live: LiveMamba, *, videos: str | Path | None = None, features: Features | None = None) -> None:
        assert (videos is None) != (features is None), "frames come from videos or from a cache"
        self._chunk = lru_cache(maxsize=KEPT_CHUNKS)(self._embed_chunk)
        self._live, self._features = live, features
        self._videos = None if videos is None else Path(videos)

    def of(self, video_id: str) -> Iterator[Frame]:
        """The frames of a video from its start.

        Raises:
            MissingError: if there is no such video.
        """
        if self._features is not None:
            yield from blank_frames(tick_to_s(self._features.length(video_id) - 1))
            return
        assert self._videos is not None
        path = self._videos / f"{video_id}.mp4"
        if not path.is_file():
            raise MissingError(f"{path} does not exist; --videos names the folder that holds <video id>.mp4")
        with open_source(path) as source:
            yield from source

    def encode(self, video_id: str) -> Encode | None:
        """How a stream gets the embeddings of a video's frames (1, Q, W); None: from their pixels."""
        if self._features is None:
            return None

        def from_cache(frame: Frame) -> Tensor:
            chunk, place = divmod(frame.tick, CHUNK_TICKS)
            return self._chunk(video_id, chunk)[place : place + 1]

        return from_cache

    def _embed_chunk(self, video_id: str, chunk: int) -> Tensor:
        """The embeddings of some frames that follow each other (T, Q, W): many at once are much cheaper."""
        assert self._features is not None
        first = chunk * CHUNK_TICKS
        ticks = range(first, min(first + CHUNK_TICKS, self._features.length(video_id)))
        with torch.inference_mode():
            embedded: Tensor = self._live.qformer(self._features.read(video_id, ticks).float().to(self._live.device))
        return embedded

    def stream(self, video_id: str) -> Stream:
        """A new stream for a video."""
        return Stream(self._live, encode=self.encode(video_id))


class DeafWatcher:
    """A watcher that is told of another step than the coach asks for: what is left when nobody listens.

    Args:
        watcher: that is told.
        recipe: whose steps are drawn from.
        seed: of the draws.
    """

    def __init__(self, watcher: LiveMambaWatcher, recipe: Recipe, seed: str) -> None:
        self._watcher, self._recipe = watcher, recipe
        self._random = random.Random(seed)

    def start(self, plan: Plan, instruction: str, tick: int) -> None:
        """Watch for another step of the recipe, whatever was asked for."""
        asked = {self._recipe[node].text for node in plan.current}  # a recipe may have the same step twice
        others = [step.id for step in self._recipe.steps if step.text not in asked]
        node = self._random.choice(others) if others else plan.current[0]
        told = Plan(((node,), *(step for step in plan.steps[1:] if node not in step)))
        self._watcher.start(told, self._recipe.instruction((node,)), tick)

    def see(self, frame: Frame) -> Sequence[Event]:
        """What the network says."""
        return self._watcher.see(frame)


def benchmark_watcher(frames: Frames, *, deaf: bool = False, seed: int = 0) -> MakeWatcher:
    """A new watcher for each session of the benchmark.

    Args:
        frames: where they come from, and the network.
        deaf: the instruction-blind row.
        seed: of what it is told instead.
    """

    def make(lesson: Lesson) -> StepWatcher:
        watcher = LiveMambaWatcher(frames.stream(lesson.video_id), lesson.recipe)
        if not deaf:
            return watcher
        return DeafWatcher(watcher, lesson.recipe, f"{seed}/{lesson.video_id}/{lesson.turn}")

    return make


def clip_watcher(frames: Frames, *, deaf: bool = False, seed: int = 0) -> WatchClip:
    """What a network says about the clips of the pair test; see `benchmark_watcher`."""

    def watch(clip: StepClip, last: int) -> Sequence[Event]:
        watcher: StepWatcher = LiveMambaWatcher(frames.stream(clip.video_id), clip.recipe)
        if deaf:
            assert isinstance(watcher, LiveMambaWatcher)
            watcher = DeafWatcher(watcher, clip.recipe, f"{seed}/{clip.video_id}/{clip.first_tick}")
        return watched(watcher, clip, _between(frames.of(clip.video_id), clip.first_tick, last))

    return watch


def _between(frames: Iterable[Frame], first: int, last: int) -> Iterator[Frame]:
    for frame in frames:
        if frame.tick > last:
            return
        if frame.tick >= first:
            yield frame
