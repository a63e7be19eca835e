"""Where training samples come from: clips, augmented, or conversations as they are; with their frames' features.

A batch is a function of seed and step alone: no order and no generator is carried along, so a run resumes at the very
sample. What belongs together (a clip under its right and an opposite instruction) stays in one batch.
Letters: T frames, K kept tokens, W vision width.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import lru_cache
from itertools import groupby
from typing import Annotated, Literal, Protocol

import numpy as np
import numpy.typing as npt
import torch
from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass
from torch import Tensor

from livemamba.config import DialogueConfig, Positive
from livemamba.conversation import Conversation
from livemamba.data.augment.counterfactual import contrasted, contrasted_windows, opposite_fields
from livemamba.data.augment.temporal_jitter import jittered
from livemamba.data.collate import Batch, collate
from livemamba.data.step_clips import StepClip
from livemamba.dialogue.encode import Encoded, encode
from livemamba.dialogue.tokens import Tokens
from livemamba.errors import InputError
from livemamba.texts import listed

logger = logging.getLogger(__name__)

Share = Annotated[float, Field(ge=0, le=1)]
NO_FIELD = "none"
"""What clips without an opposite instruction are called where fields are drawn."""


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
        fields: field of an opposite instruction -> how often it is drawn, relative to the others; `NO_FIELD` for clips
            that have no opposite. Empty: clips as often as they come, each of a clip's fields as likely. Some fields
            are rare (a stove is turned on once in an episode) and are learnt late otherwise.
    """

    instructions: Literal["given", "contrasted"] = "contrasted"
    windows: Share = 0.0
    window_frames: Positive = 3
    window_late: Annotated[int, Field(ge=0)] = 4
    jitter_ticks: Annotated[int, Field(ge=0)] = 60
    most_frames: Positive = 360
    fields: Mapping[str, Annotated[float, Field(gt=0)]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.fields and self.instructions == "given":
            raise ValueError("fields: only instructions: contrasted draws among them; leave them out")


class Features(Protocol):
    """Features of videos by tick, such as `livemamba.data.cache.FeatureCache`."""

    def read(self, video_id: str, ticks: Sequence[int]) -> Tensor:
        """(len(ticks), K, W)."""

    def length(self, video_id: str) -> int:
        """Ticks of a video."""


Item = StepClip | tuple[Conversation, ...]
"""A step clip, of which augmentations make a group; or a group as a corpus gives it, which stays as it is."""


def augmented(
    clip: StepClip, config: AugmentConfig, random: np.random.Generator, opposite_field: str | None = None
) -> tuple[StepClip, ...]:
    """The group that a clip becomes; under an opposite instruction of a given field, or of any."""
    if config.instructions == "contrasted" and random.random() < config.windows:
        return contrasted_windows(
            clip, random, most_frames=config.window_frames, most_late=config.window_late, field=opposite_field
        )
    clip = jittered(clip, config.jitter_ticks, random)
    clip = clip.cut(max(clip.first_tick, clip.end_tick - config.most_frames), clip.end_tick)
    return (clip,) if config.instructions == "given" else contrasted(clip, random, opposite_field)


class ClipSource:
    """Batches of step clips and of conversations.

    Args:
        clips: clips or groups of conversations, with the features that they are read from; at least one.
        config: augmentations.
        dialogue: prompts.
        tokens: tokenizer.
        num_queries: embeddings of a frame.
        groups_per_batch: over all processes.
        seed: of order and augmentations.
        pool: so many batches are filled together, samples of like length in one batch: less padding.

    Raises:
        InputError: if there is no clip, or some have a field that has no chance to be drawn.
    """

    def __init__(
        self,
        clips: Sequence[tuple[Item, Features]],
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
        self._by_field = _by_field(clips, config.fields)
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
        samples: list[tuple[Encoded, list[int]]] = []
        read: list[Tensor] = []
        count = 0
        for group, features in groups:
            # The samples of a group show the same frames: each is read, and looked at, once.
            rows: dict[tuple[str, int], int] = {}
            for encoded in group:
                shown = [(encoded.video_id, int(tick)) for tick in encoded.ticks]
                samples.append((encoded, [count + rows.setdefault(frame, len(rows)) for frame in shown]))
            read.append(features.read(group[0].video_id, []))  # the shape, for a batch without any frame
            read += [features.read(video_id, ticks) for video_id, ticks in _by_video(rows)]
            count += len(rows)
        return collate(samples, torch.cat(read), self.tokens)

    def group(self, place: int) -> tuple[list[Encoded], Features]:
        """The group at a place of the endless order of all epochs."""
        number, drawn = self._drawn(place)
        item, features = self.clips[number]
        made = self._made(item, place, drawn)
        return [encode(one, self.tokens, num_queries=self.num_queries) for one in made], features

    def _drawn(self, place: int) -> tuple[int, str | None]:
        """Which clip stands at a place, and the field of its opposite instruction if that is drawn too."""
        if not self._by_field:
            epoch, within = divmod(place, len(self.clips))
            return int(self._order(epoch)[within]), None
        random = np.random.default_rng((self.seed, 3, place))
        chances = np.array([self.config.fields[name] for name in self._by_field])
        drawn = list(self._by_field)[int(random.choice(len(chances), p=chances / chances.sum()))]
        among = self._by_field[drawn]
        return among[int(random.integers(len(among)))], None if drawn == NO_FIELD else drawn

    def _made(self, item: Item, place: int, opposite_field: str | None) -> tuple[Conversation, ...]:
        if not isinstance(item, StepClip):
            return item
        random = np.random.default_rng((self.seed, 1, place))
        clips = augmented(item, self.config, random, opposite_field)
        return tuple(clip.conversation(self.dialogue) for clip in clips)

    def _make_order(self, epoch: int) -> npt.NDArray[np.int64]:
        return np.random.default_rng((self.seed, 0, epoch)).permutation(len(self.clips))

    def _make_pool(self, number: int) -> list[list[tuple[list[Encoded], Features]]]:
        size = self.pool * self.groups_per_batch
        groups = [self.group(place) for place in range(number * size, (number + 1) * size)]
        groups.sort(key=lambda group: max(len(encoded) for encoded in group[0]))
        batches = [groups[start : start + self.groups_per_batch] for start in range(0, size, self.groups_per_batch)]
        order = np.random.default_rng((self.seed, 2, number)).permutation(self.pool)
        return [batches[place] for place in order]


def _by_field(clips: Sequence[tuple[Item, Features]], fields: Mapping[str, float]) -> Mapping[str, Sequence[int]]:
    """For each field that is to be drawn, the places of the clips that have it."""
    places: dict[str, list[int]] = {name: [] for name in fields}
    for place, (item, _) in enumerate(clips) if fields else ():
        names = opposite_fields(item) if isinstance(item, StepClip) else ()
        for name in names or (NO_FIELD,):
            places.setdefault(name, []).append(place)
    if left_out := sorted(set(places) - set(fields)):
        raise InputError(f"augment.fields has no chance for {listed(left_out)}; the corpora have such clips: name all")
    if empty := [name for name, found in places.items() if not found]:
        logger.warning("augment.fields: no clip of %s in this corpus; the others share its chance", listed(empty))
    return {name: found for name, found in places.items() if found}


def _by_video(frames: Iterable[tuple[str, int]]) -> Iterator[tuple[str, list[int]]]:
    """Frames in a row, those of one video that follow each other together."""
    for video_id, run in groupby(frames, key=lambda frame: frame[0]):
        yield video_id, [tick for _, tick in run]
