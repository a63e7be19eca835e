"""Where training samples come from: clips, augmented, encoded, with their frames' features.

A batch is a function of seed and step alone: no order and no generator is carried along, so a run resumes at the very
sample. What belongs together (a clip under its right and an opposite instruction) stays in one batch.
Letters: T frames, K kept tokens, W vision width.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Annotated, Literal, Protocol

import numpy as np
import numpy.typing as npt
from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass
from torch import Tensor

from livemamba.config import DialogueConfig, Positive
from livemamba.data.augment.counterfactual import contrasted, contrasted_windows
from livemamba.data.augment.temporal_jitter import jittered
from livemamba.data.collate import Batch, collate
from livemamba.data.step_clips import StepClip
from livemamba.dialogue.encode import Encoded, encode
from livemamba.dialogue.tokens import Tokens
from livemamba.errors import InputError

Share = Annotated[float, Field(ge=0, le=1)]


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid", strict=True))
class AugmentConfig:
    """What is made of each clip.

    Attributes:
        instructions: "given", as the corpus has them; "contrasted", each clip under its right and an opposite one.
        windows: share of the groups that are short windows around the moment at which right and wrong part.
        window_frames: most frames of a window.
        window_late: most ticks after that moment at which it ends.
        jitter_ticks: K of the temporal jitter; +-30 s in real time.
        most_frames: longer clips keep their end; 3 minutes in the paper (D.2). The few long waits would otherwise take
            most of the time.
    """

    instructions: Literal["given", "contrasted"] = "contrasted"
    windows: Share = 0.0
    window_frames: Positive = 3
    window_late: Annotated[int, Field(ge=0)] = 4
    jitter_ticks: Annotated[int, Field(ge=0)] = 60
    most_frames: Positive = 360


class Features(Protocol):
    """Features of videos by tick, such as `livemamba.data.cache.FeatureCache`."""

    def read(self, video_id: str, ticks: Sequence[int]) -> Tensor:
        """(len(ticks), K, W)."""

    def length(self, video_id: str) -> int:
        """Ticks of a video."""


def augmented(clip: StepClip, config: AugmentConfig, random: np.random.Generator) -> tuple[StepClip, ...]:
    """The group that a clip becomes."""
    if config.instructions == "contrasted" and random.random() < config.windows:
        return contrasted_windows(clip, random, most_frames=config.window_frames, most_late=config.window_late)
    clip = jittered(clip, config.jitter_ticks, random)
    clip = clip.cut(max(clip.first_tick, clip.end_tick - config.most_frames), clip.end_tick)
    return (clip,) if config.instructions == "given" else contrasted(clip, random)


class ClipSource:
    """Batches of step clips.

    Args:
        clips: with the features that they are read from; at least one.
        config: augmentations.
        dialogue: prompts.
        tokens: tokenizer.
        num_queries: embeddings of a frame.
        groups_per_batch: over all processes.
        seed: of order and augmentations.
        pool: so many batches are filled together, samples of like length in one batch: less padding.

    Raises:
        InputError: if there is no clip.
    """

    def __init__(
        self,
        clips: Sequence[tuple[StepClip, Features]],
        *,
        config: AugmentConfig,
        dialogue: DialogueConfig,
        tokens: Tokens,
        num_queries: int,
        groups_per_batch: int,
        seed: int,
        pool: int = 8,
    ) -> None:
        if not clips:
            raise InputError("no clips to train on; name a corpus with episodes in its training split")
        self.clips, self.config, self.dialogue = clips, config, dialogue
        self.tokens, self.num_queries = tokens, num_queries
        self.groups_per_batch, self.seed, self.pool = groups_per_batch, seed, pool
        self._pool = lru_cache(maxsize=1)(self._make_pool)
        self._order = lru_cache(maxsize=2)(self._make_order)

    def batch(self, step: int, rank: int, world_size: int) -> Batch:
        """The part of a step's batch that one process takes: whole groups.

        Raises:
            InputError: if there are more processes than groups.
        """
        if world_size > self.groups_per_batch:
            raise InputError(f"{self.groups_per_batch} groups a batch for {world_size} processes; raise it")
        groups = self._pool(step // self.pool)[step % self.pool][rank::world_size]
        samples = [
            (encoded, features.read(encoded.video_id, [int(tick) for tick in encoded.ticks]))
            for group, features in groups
            for encoded in group
        ]
        return collate(samples, self.tokens)

    def group(self, place: int) -> tuple[list[Encoded], Features]:
        """The group at a place of the endless order of all epochs."""
        epoch, within = divmod(place, len(self.clips))
        clip, features = self.clips[int(self._order(epoch)[within])]
        random = np.random.default_rng((self.seed, 1, place))
        made = augmented(clip, self.config, random)
        return [
            encode(one.conversation(self.dialogue), self.tokens, num_queries=self.num_queries) for one in made
        ], features

    def _make_order(self, epoch: int) -> npt.NDArray[np.int64]:
        return np.random.default_rng((self.seed, 0, epoch)).permutation(len(self.clips))

    def _make_pool(self, number: int) -> list[list[tuple[list[Encoded], Features]]]:
        size = self.pool * self.groups_per_batch
        groups = [self.group(place) for place in range(number * size, (number + 1) * size)]
        groups.sort(key=lambda group: max(len(encoded) for encoded in group[0]))
        batches = [groups[start : start + self.groups_per_batch] for start in range(0, size, self.groups_per_batch)]
        order = np.random.default_rng((self.seed, 2, number)).permutation(self.pool)
        return [batches[place] for place in order]
