"""Features of videos, made once and kept: what a frozen vision encoder and pruning leave of each frame.

    CACHE/
      cache.json              of which encoder and preprocessing
      <video>.safetensors     tokens (T, K, W) float16, one row for each tick from 0

Letters: T ticks, K kept tokens, W vision width.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors
import torch
from safetensors.torch import save_file
from torch import Tensor

from livemamba.errors import InputError, MissingError
from livemamba.files import whole_file
from livemamba.json_files import read_json

_KEY_FILE = "cache.json"
_TOKENS = "tokens"


@dataclass(frozen=True, kw_only=True)
class CacheKey:
    """What features depend on: equal keys, equal features.

    Attributes:
        encoder: the vision encoder's fingerprint, its weights included.
        preprocessing: see `livemamba.video.preprocess.preprocess_key`.
        keep: K.
        dominant: how many of them.
        width: W.
    """

    encoder: str
    preprocessing: str
    keep: int
    dominant: int
    width: int

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return dict(vars(self))


class FeatureCache:
    """A folder of features.

    Args:
        folder: made if it isn't there.
        key: of what will be read and written.

    Raises:
        InputError: if the folder holds features of another key.
    """

    def __init__(self, folder: str | Path, key: CacheKey) -> None:
        self.folder, self.key = Path(folder), key
        path = self.folder / _KEY_FILE
        if path.exists():
            found = read_json(path, what="key of a feature cache")
            if found != key.to_dict():
                different = [name for name, value in key.to_dict().items() if dict(found).get(name) != value]
                raise InputError(
                    f"{self.folder} holds features of another model ({', '.join(different)} differ); "
                    "cache them anew in another folder"
                )
            return
        if self.folder.exists() and any(self.folder.iterdir()):
            raise InputError(f"{self.folder} is no feature cache: {_KEY_FILE} is missing; name another folder")
        self.folder.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as partial:
            partial.write_text(json.dumps(key.to_dict(), indent=2) + "\n", encoding="utf-8")

    def __contains__(self, video_id: object) -> bool:
        return self._path(str(video_id)).is_file()

    def write(self, video_id: str, tokens: Tensor) -> None:
        """Keep a video's features.

        Args:
            video_id: whose.
            tokens: (T, K, W).

        Raises:
            InputError: if they have another shape, or a value that float16 can't hold.
        """
        wanted = (self.key.keep, self.key.width)
        if tokens.dim() != 3 or tuple(tokens.shape[1:]) != wanted or not len(tokens):
            raise InputError(f"{video_id}: features are {tuple(tokens.shape)}; needed: (T, {wanted[0]}, {wanted[1]})")
        half = tokens.to(torch.float16)
        if not torch.isfinite(half).all():
            raise InputError(f"{video_id}: features don't fit into float16; the encoder's weights are broken")
        with whole_file(self._path(video_id)) as partial:
            save_file({_TOKENS: half.contiguous()}, partial)

    def length(self, video_id: str) -> int:
        """T of a video.

        Raises:
            MissingError: if it isn't there.
        """
        with self._open(video_id) as file:
            return int(file.get_slice(_TOKENS).get_shape()[0])

    def read(self, video_id: str, ticks: Sequence[int] | Tensor) -> Tensor:
        """Features of some ticks: (len(ticks), K, W) float16. Of no tick there are none, whatever the video.

        Raises:
            MissingError: if the video isn't there.
            InputError: if it has no such tick.
        """
        ticks = [int(tick) for tick in ticks]
        if not ticks:
            return torch.zeros(0, self.key.keep, self.key.width, dtype=torch.float16)
        with self._open(video_id) as file:
            rows = file.get_slice(_TOKENS)
            length = int(rows.get_shape()[0])
            if min(ticks) < 0 or max(ticks) >= length:
                raise InputError(f"{video_id}: ticks {min(ticks)} to {max(ticks)} of {length}")
            first = min(ticks)
            stretch: Tensor = rows[first : max(ticks) + 1]
        return stretch[torch.tensor(ticks) - first]

    def _path(self, video_id: str) -> Path:
        return self.folder / f"{video_id}.safetensors"

    def _open(self, video_id: str) -> Any:
        path = self._path(video_id)
        if not path.is_file():
            raise MissingError(f"{path} does not exist; cache the features of {video_id} first")
        return safetensors.safe_open(path, framework="pt")


class NoFeatures:
    """In place of features, for conversations without frames.

    Args:
        keep: K.
        width: W.
    """

    def __init__(self, *, keep: int, width: int) -> None:
        self._shape = (0, keep, width)

    def read(self, video_id: str, ticks: Sequence[int]) -> Tensor:
        """Nothing (0, K, W).

        Raises:
            InputError: if frames are wanted.
        """
        if len(ticks):
            raise InputError(f"{video_id}: frames are wanted where no features were named")
        return torch.zeros(self._shape)

    def length(self, video_id: str) -> int:
        """No tick."""
        return 0


def lacking(folder: str | Path, needed: Mapping[str, int]) -> list[str]:
    """What a cache lacks, without a model: for checks before long work.

    Args:
        folder: of the cache.
        needed: video id -> how many ticks of it.

    Returns:
        A word on each video that is missing or too short.
    """
    words = []
    for video_id, ticks in needed.items():
        path = Path(folder) / f"{video_id}.safetensors"
        if not path.is_file():
            words.append(video_id)
            continue
        with safetensors.safe_open(path, framework="pt") as file:
            length = int(file.get_slice(_TOKENS).get_shape()[0])
        if length < ticks:
            words.append(f"{video_id} ({length} of {ticks} ticks)")
    return words
