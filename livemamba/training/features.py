"""Features of whole videos: by a frozen vision encoder, for the cache; or the simulated world's state in their place.

Letters: T frames, K kept tokens, W vision width.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor

from livemamba.data.cache import CacheKey, FeatureCache
from livemamba.errors import InputError, UserError
from livemamba.model.livemamba import LiveMamba
from livemamba.simkitchen import state
from livemamba.ticks import Frame
from livemamba.video.preprocess import preprocess, preprocess_key
from livemamba.video.source import open_source

FRAMES_AT_ONCE = 32


def cache_key(live: LiveMamba) -> CacheKey:
    """What a network's features depend on: its vision part, whole, and nothing behind it."""
    digest = hashlib.sha256()
    for name, weight in sorted(live.vision.state_dict().items()):
        digest.update(name.encode() + weight.detach().cpu().contiguous().numpy().tobytes())
    vision = live.vision
    return CacheKey(
        encoder=digest.hexdigest()[:16],
        preprocessing=preprocess_key(vision.image_size, vision.mean, vision.std),
        keep=min(live.config.pruning.keep, vision.num_tokens),
        dominant=live.config.pruning.dominant,
        width=vision.width,
    )


@torch.inference_mode()
def video_features(live: LiveMamba, video: str | Path) -> Tensor:
    """Features of a video at every tick from 0: (T, K, W) on the CPU.

    Raises:
        InputError: if it has no frame, or doesn't start at tick 0.
    """
    with open_source(video) as source:
        parts = [live.vision_tokens(pixels).cpu() for pixels in _pixels(live, source)]
    if not parts:
        raise InputError(f"{video}: no frame to make features of")
    return torch.cat(parts)


def _pixels(live: LiveMamba, frames: Iterable[Frame]) -> Iterator[Tensor]:
    vision = live.vision
    tick = 0
    ahead = iter(frames)
    while some := list(islice(ahead, FRAMES_AT_ONCE)):
        for frame in some:
            if frame.tick != tick:
                raise InputError(f"frame of tick {frame.tick} where {tick} is due; features need every tick from 0")
            tick += 1
        pixels = preprocess([frame.pixels for frame in some], size=vision.image_size, mean=vision.mean, std=vision.std)
        yield pixels.to(live.device)


def cache_videos(
    live: LiveMamba, videos: Iterable[Path], cache: FeatureCache
) -> Iterator[tuple[str, UserError | None]]:
    """Make what is missing; yields each video's id when its features are there, or why they can't be made.

    Args:
        live: in evaluation mode.
        videos: files; a file's name without its ending is the video's id.
        cache: made with `cache_key(live)`.
    """
    for video in videos:
        failure = None
        if video.stem not in cache:
            try:
                tokens = video_features(live, video)
            except UserError as error:
                failure = error
            else:
                cache.write(video.stem, tokens)
        yield video.stem, failure


def lacking_states(folder: str | Path, needed: Mapping[str, int]) -> list[str]:
    """As `livemamba.data.cache.lacking`, for the states of a simulated corpus."""
    words = []
    for video_id, ticks in needed.items():
        path = Path(folder) / "states" / f"{video_id}.npy"
        if not path.is_file():
            words.append(video_id)
        elif (length := len(np.load(path, mmap_mode="r"))) < ticks:
            words.append(f"{video_id} ({length} of {ticks} ticks)")
    return words


class StateFeatures:
    """The simulated world's state in place of features: for trainings that see the ground truth.

    Args:
        folder: of a corpus with states.
        keep: K; the fields must fit, what is left is zeros.
        width: W.
    """

    def __init__(self, folder: str | Path, *, keep: int, width: int) -> None:
        self.folder, self.keep, self.width = Path(folder) / "states", keep, width
        if len(state.FIELDS) > keep:
            raise InputError(f"{len(state.FIELDS)} fields of the state for {keep} tokens a frame; raise pruning.keep")

    def read(self, video_id: str, ticks: Sequence[int]) -> Tensor:
        """(len(ticks), K, W) float32.

        Raises:
            InputError: if the video has no states, or not so many.
        """
        if not len(ticks):
            return torch.zeros(0, self.keep, self.width)
        rows = self._rows(video_id)
        if max(ticks) >= len(rows):
            raise InputError(f"{video_id}: tick {max(ticks)} of {len(rows)}")
        tokens = torch.from_numpy(state.tokens(np.asarray(rows[list(ticks)], dtype=np.int64), self.width))
        return F.pad(tokens, (0, 0, 0, self.keep - tokens.shape[1]))

    def length(self, video_id: str) -> int:
        """Ticks of a video."""
        return len(self._rows(video_id))

    def _rows(self, video_id: str) -> npt.NDArray[np.uint8]:
        path = self.folder / f"{video_id}.npy"
        if not path.is_file():
            raise InputError(f"{path} does not exist; generate the corpus with `livemamba simulate --states`")
        rows: npt.NDArray[np.uint8] = np.load(path, mmap_mode="r")
        return rows
