"""Single frames with the world's state at each: what stage 0 learns from.

Letters: T ticks of a video, F fields of the state, h and w a frame's height and width.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass as plain_dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import numpy.typing as npt
from pydantic import Field
from pydantic.dataclasses import dataclass
from tqdm import tqdm

from livemamba.data.captaincook4d import read_annotations
from livemamba.errors import InputError, MissingError
from livemamba.files import whole_file
from livemamba.json_files import read_json
from livemamba.training.config import STRICT
from livemamba.video.source import open_source


@dataclass(frozen=True, kw_only=True, config=STRICT)
class FrameAugmentConfig:
    """How a frame is varied, so that the encoder doesn't learn the training kitchens by heart.

    Attributes:
        mirrored: chance that left and right are exchanged; a kitchen stands either way.
        shift: most pixels by which the picture moves, its edge repeated.
        light: most by which each colour's brightness changes, as a share of it.
    """

    mirrored: Annotated[float, Field(ge=0, le=1)] = 0.0
    shift: Annotated[int, Field(ge=0)] = 0
    light: Annotated[float, Field(ge=0, lt=1)] = 0.0


def augmented_frame(
    pixels: npt.NDArray[np.uint8], config: FrameAugmentConfig, random: np.random.Generator
) -> npt.NDArray[np.uint8]:
    """A frame, (h, w, 3), varied; its state stays what it is."""
    if random.random() < config.mirrored:
        pixels = pixels[:, ::-1]
    if config.shift:
        down, right = random.integers(-config.shift, config.shift + 1, size=2)
        rows, columns = (
            np.clip(np.arange(n) - by, 0, n - 1) for n, by in zip(pixels.shape, (down, right), strict=False)
        )
        pixels = pixels[rows[:, None], columns]
    if config.light:
        gains = (1.0 + config.light * random.uniform(-1, 1, size=3)).astype(np.float32)
        pixels = np.clip(np.rint(pixels * gains), 0, 255).astype(np.uint8)
    return np.ascontiguousarray(pixels)


@plain_dataclass(frozen=True, kw_only=True)
class StateFrames:
    """Frames of a split, decoded once and kept on disk, with the world's state at each.

    Attributes:
        pixels: for each video (T, h, w, 3) uint8, not in memory.
        states: for each (T, F) class numbers.
        fields: name -> classes.
    """

    pixels: Sequence[npt.NDArray[np.uint8]]
    states: Sequence[npt.NDArray[np.uint8]]
    fields: Mapping[str, Sequence[str]]


def read_state_frames(corpora: Sequence[str], split: str, cache: Path, *, every: int = 1) -> StateFrames:
    """The frames of a split of some corpora.

    Args:
        corpora: folders, written by `livemamba simulate --states`.
        split: train or validation.
        cache: where decoded frames are kept; made if it isn't there.
        every: of so many ticks one is taken; neighbours look much alike.

    Raises:
        MissingError: if videos or states are missing.
        InputError: if the corpora differ in their fields, or a video and its states in length.
    """
    pixels: list[npt.NDArray[np.uint8]] = []
    states: list[npt.NDArray[np.uint8]] = []
    fields: Mapping[str, Sequence[str]] | None = None
    for corpus in corpora:
        details = read_json(Path(corpus) / "simkitchen.json", what="details of a simulated corpus")
        if fields not in (None, details.get("state_fields")):
            raise InputError(f"{corpus}: other state fields than {corpora[0]}'s; generate both with one version")
        fields = details["state_fields"]
        videos = read_annotations(corpus).splits[split]
        folder = cache / (Path(corpus).name if every == 1 else f"{Path(corpus).name}.every{every}")
        for video in tqdm(videos, desc=f"frames of {Path(corpus).name}", disable=None, leave=False):
            rows = _states(Path(corpus), video)
            frames, length = _decoded(Path(corpus) / "videos" / f"{video}.mp4", folder / f"{video}.npy", every)
            if abs(length - len(rows)) > 1:
                raise InputError(f"{corpus}: video {video} has {length} ticks, its states {len(rows)}")
            rows = rows[::every]
            count = min(len(frames), len(rows))
            pixels.append(frames[:count])
            states.append(rows[:count])
    if not pixels or fields is None:
        raise InputError(f"{', '.join(corpora)}: no video in split {split}; generate more episodes")
    return StateFrames(pixels=pixels, states=states, fields=fields)


def _states(corpus: Path, video: str) -> npt.NDArray[np.uint8]:
    path = corpus / "states" / f"{video}.npy"
    if not path.is_file():
        raise MissingError(f"{path} does not exist; generate the corpus with `livemamba simulate --states`")
    rows: npt.NDArray[np.uint8] = np.load(path)
    return rows


def _decoded(video: Path, kept: Path, every: int) -> tuple[npt.NDArray[np.uint8], int]:
    """One of `every` frames, decoded once, and the number of all ticks."""
    lengths = kept.with_suffix(".ticks")
    if not (kept.is_file() and lengths.is_file()):
        kept.parent.mkdir(parents=True, exist_ok=True)
        ticks, frames = 0, []
        with open_source(video) as source:
            for ticks, frame in enumerate(source, 1):
                if (ticks - 1) % every == 0:
                    frames.append(frame.pixels)
        with whole_file(kept) as partial, partial.open("wb") as file:
            np.save(file, np.stack(frames))
        with whole_file(lengths) as partial:
            partial.write_text(str(ticks))
    loaded: npt.NDArray[np.uint8] = np.load(kept, mmap_mode="r")
    return loaded, int(lengths.read_text())


def frame_weights(states: Sequence[npt.NDArray[np.uint8]], changing: float) -> npt.NDArray[np.float64]:
    """How likely each frame is drawn, all videos in a row: more often where the state changes."""
    weights = []
    for rows in states:
        changed = (rows[1:] != rows[:-1]).any(1)
        near = np.concatenate([changed, [False]]) | np.concatenate([[False], changed])
        weights.append(np.where(near, changing, 1.0))
    joined = np.concatenate(weights)
    return np.asarray(joined / joined.sum(), dtype=np.float64)
