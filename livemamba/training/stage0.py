"""Stage 0: vision encoder and Q-Former learn from single frames what state the simulated world is in.

The paper starts from a pretrained encoder; a model from scratch has none. The head that names the state is dropped
afterwards (spec/simkitchen.md, training the tiny model).
Letters: B frames, F fields of the state, Q embeddings of a frame, S side of the input, W backbone width.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from pydantic import Field
from pydantic.dataclasses import dataclass
from torch import Tensor, nn

from livemamba.config import Positive
from livemamba.errors import InputError
from livemamba.model.livemamba import LiveMamba
from livemamba.simkitchen import state
from livemamba.training.config import STRICT, OptimConfig, RunConfig
from livemamba.training.loop import Sums
from livemamba.training.state_frames import (
    FrameAugmentConfig,
    StateFrames,
    augmented_frame,
    frame_weights,
    read_state_frames,
)
from livemamba.video.preprocess import preprocess


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Stage0Config:
    """Stage 0.

    Attributes:
        run: timetable.
        optim: optimiser.
        init: the checkpoint to start from, untrained as a rule (`livemamba init`).
        corpora: simulated corpora with states whose train splits are learnt from.
        validation: corpora whose validation splits are scored.
        batch_size: frames a step, over all processes.
        changing: how much likelier a frame is drawn whose state differs from a neighbour's.
        validation_frames: so many are scored.
        every: of so many ticks of a training video one is taken: more kitchens fit on the disk.
        augment: how each training frame is varied.
        teacher: a checkpoint whose Q-Former reads states (`StateFeatures`), or null: a frame's embeddings are drawn to
            those that it makes of the frame's state, so that the backbone which was trained with it understands them.
        teacher_weight: of the squared distance, in units of the teacher's own variance, beside naming the state.
    """

    run: RunConfig
    optim: OptimConfig
    init: str
    corpora: tuple[str, ...] = Field(min_length=1)
    validation: tuple[str, ...]
    batch_size: Positive = 64
    changing: float = 3.0
    validation_frames: Positive = 2000
    every: Positive = 1
    augment: FrameAugmentConfig = field(default_factory=FrameAugmentConfig)
    teacher: str | None = None
    teacher_weight: Annotated[float, Field(ge=0)] = 3.0


def class_weights(states: Sequence[npt.NDArray[np.uint8]], num_classes: Sequence[int]) -> list[Tensor]:
    """For each field, the weight of each class: the inverse root of how often it comes, mean 1 over frames."""
    rows = np.concatenate(states)
    weights = []
    for place, count in enumerate(num_classes):
        seen = np.bincount(rows[:, place], minlength=count)[:count]
        inverse = 1.0 / np.sqrt(np.maximum(seen, 50.0))
        weights.append(torch.from_numpy(inverse / (inverse * seen / seen.sum()).sum()).float())
    return weights


# --- the network with its head -------------------------------------------------------------------------


class StateModule(nn.Module):
    """Frames in, the loss of naming the state out.

    Args:
        live: the network, of which vision and Q-Former are trained.
        num_classes: of each field.
        weights: of each field's classes.
        seed: of the heads' weights.
        teacher: a Q-Former that reads states; None for none.
        teacher_weight: see `Stage0Config`.
    """

    def __init__(
        self,
        live: LiveMamba,
        num_classes: Sequence[int],
        weights: Sequence[Tensor],
        *,
        seed: int = 0,
        teacher: LiveMamba | None = None,
        teacher_weight: float = 0.0,
    ) -> None:
        super().__init__()
        self.live = live
        live.requires_grad_(False)
        live.vision.unfreeze()
        live.qformer.requires_grad_(True)
        self.num_classes = list(num_classes)
        width = live.config.qformer.num_queries * live.config.backbone.hidden_size
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.head = _head(width, sum(num_classes))
            # The encoder's own head: through the Q-Former alone its gradient is weak for a long time.
            self.patch_head = _head(live.vision.num_patches * live.vision.width, sum(num_classes))
        # In a tuple: it isn't a part of what is trained and saved.
        self._teacher = () if teacher is None else (teacher.requires_grad_(False).eval(),)
        self.teacher_weight = teacher_weight
        self.weights: Tensor
        self.register_buffer("weights", torch.cat(list(weights)), persistent=False)

    def scores(self, pixels: Tensor) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...], Tensor]:
        """(B, classes) for each field, from the frame's embeddings and from the encoder's patches; the embeddings.

        Args:
            pixels: (B, 3, S, S).
        """
        seen = self.live.vision(pixels)
        patches = seen.features[:, -self.live.vision.num_patches :]
        embeddings = self.live.qformer(self.live.pruned(seen))
        scores = self.head(embeddings.flatten(1)), self.patch_head(patches.flatten(1))
        named, patched = (torch.split(one, self.num_classes, dim=1) for one in scores)
        return named, patched, embeddings

    def forward(self, batch: tuple[Tensor, Tensor]) -> Sums:
        """Loss and accuracy, mean over fields.

        Args:
            batch: pixels (B, 3, S, S) and states (B, F) int64.
        """
        pixels, states = batch
        count = torch.tensor(float(states.numel()), device=pixels.device)
        sums: Sums = {}
        named, patched, embeddings = self.scores(pixels)
        for name, scores in (("", named), ("patch_", patched)):
            loss, right = self._held_against(scores, states)
            sums |= {f"{name}loss": torch.stack([loss, count]), f"{name}accuracy": torch.stack([right, count])}
        total = sums["loss"][0] + sums["patch_loss"][0]
        for teacher in self._teacher:
            distance = self._distance(embeddings, states, teacher)
            sums["distance"] = torch.stack([distance * count, count])
            total = total + self.teacher_weight * sums["distance"][0]
        sums["loss"] = torch.stack([total, count])
        return sums

    def _distance(self, embeddings: Tensor, states: Tensor, teacher: LiveMamba) -> Tensor:
        """Mean squared distance to the teacher's embeddings of the states, 1 for one that says their mean always."""
        with torch.no_grad():
            read = state.tokens(states.cpu().numpy(), teacher.vision.width)
            tokens = F.pad(torch.from_numpy(read), (0, 0, 0, teacher.config.pruning.keep - read.shape[1]))
            wanted: Tensor = teacher.to(embeddings.device).qformer(tokens.to(embeddings.device))
        distance = F.mse_loss(embeddings, wanted) / wanted.var(dim=0, correction=0).mean().clamp_min(1e-6)
        return distance

    def _held_against(self, scores: Sequence[Tensor], states: Tensor) -> tuple[Tensor, Tensor]:
        weights = torch.split(self.weights, self.num_classes)
        loss, right = states.new_zeros((), dtype=torch.float32), states.new_zeros(())
        for place, given in enumerate(scores):
            loss = loss + F.cross_entropy(given, states[:, place], weight=weights[place], reduction="none").sum()
            right = right + (given.argmax(1) == states[:, place]).sum()
        return loss, right.float()


class Stage0Task:
    """Random frames and their states.

    Args:
        live: the network.
        config: of the stage.
        cache: where decoded frames are kept.
    """

    def __init__(self, live: LiveMamba, config: Stage0Config, cache: Path) -> None:
        self.live, self.config = live, config
        self._train = read_state_frames(config.corpora, "train", cache, every=config.every)
        self._validation = read_state_frames(config.validation, "validation", cache) if config.validation else None
        num_classes = [len(classes) for classes in self._train.fields.values()]
        self.module = StateModule(
            live,
            num_classes,
            class_weights(self._train.states, num_classes),
            seed=config.run.seed,
            teacher=self._teacher(live),
            teacher_weight=config.teacher_weight,
        )
        self._cumulated = np.cumsum(frame_weights(self._train.states, config.changing))
        self._ends = np.cumsum([len(rows) for rows in self._train.states])
        live.provenance["vision"] = live.provenance["qformer"] = "stage 0, trained on states of the simulated kitchen"

    def _teacher(self, live: LiveMamba) -> LiveMamba | None:
        if self.config.teacher is None:
            return None
        if list(self._train.fields) != list(state.FIELDS):
            raise InputError("the corpora's state fields are another version's; generate them anew for a teacher")
        teacher = LiveMamba.from_pretrained(self.config.teacher)
        sizes = [(one.config.qformer.num_queries, one.config.backbone.hidden_size) for one in (teacher, live)]
        if sizes[0] != sizes[1]:
            raise InputError(
                f"teacher {self.config.teacher}: its queries and their width are {sizes[0]}, the model's {sizes[1]}"
            )
        if teacher.config.pruning.keep < len(state.FIELDS):
            raise InputError(
                f"teacher {self.config.teacher} keeps too few tokens to have read {len(state.FIELDS)} fields"
            )
        return teacher

    def batch(self, step: int, rank: int, world_size: int) -> tuple[Tensor, Tensor]:
        """See `Task`."""
        random = np.random.default_rng((self.config.run.seed, step))
        drawn = np.searchsorted(self._cumulated, random.random(self.config.batch_size) * self._cumulated[-1])
        seeds = random.integers(2**62, size=len(drawn))
        return self._frames(self._train, self._ends, drawn[rank::world_size], seeds[rank::world_size])

    def _frames(
        self,
        frames: StateFrames,
        ends: npt.NDArray[np.int64],
        numbers: npt.NDArray[np.int64],
        seeds: npt.NDArray[np.int64] | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Frames by their numbers over all videos, with their states; varied where each has a seed."""
        videos = np.searchsorted(ends, numbers, side="right")
        ticks = numbers - ends[videos] + np.array([len(frames.states[video]) for video in videos])
        places = list(zip(videos, ticks, strict=True))
        vision = self.live.vision
        pictures = [np.asarray(frames.pixels[video][tick]) for video, tick in places]
        if seeds is not None:
            pictures = [
                augmented_frame(one, self.config.augment, np.random.default_rng(seed))
                for one, seed in zip(pictures, seeds, strict=True)
            ]
        pixels = preprocess(
            pictures,
            size=vision.image_size,
            mean=vision.mean,
            std=vision.std,
        )
        states = np.stack([frames.states[video][tick] for video, tick in places]).astype(np.int64)
        return pixels, torch.from_numpy(states)

    def validate(self, step: int) -> Mapping[str, float]:
        """Accuracies on frames of the validation split, evenly spaced: of all fields, and each field's over classes."""
        if self._validation is None:
            return {}
        ends = np.cumsum([len(rows) for rows in self._validation.states])
        count = min(self.config.validation_frames, int(ends[-1]))
        numbers = np.linspace(0, ends[-1] - 1, count).astype(np.int64)
        guesses, truths = [], []
        for part in _parts(numbers, 64):
            pixels, states = self._frames(self._validation, ends, part)
            guesses.append(torch.stack([scores.argmax(1) for scores in self.module.scores(pixels)[0]], dim=1))
            truths.append(states)
        guess, truth = torch.cat(guesses).numpy(), torch.cat(truths).numpy()
        fields = list(self._validation.fields)
        values = {"accuracy": float((guess == truth).mean())}
        return values | {f"balanced {name}": _balanced(guess[:, at], truth[:, at]) for at, name in enumerate(fields)}


def _head(width: int, num_classes: int) -> nn.Sequential:
    return nn.Sequential(nn.LayerNorm(width), nn.Linear(width, num_classes))


def _balanced(guess: npt.NDArray[Any], truth: npt.NDArray[Any]) -> float:
    """Accuracy, mean over the classes that occur."""
    return float(np.mean([(guess[truth == value] == value).mean() for value in np.unique(truth)]))


def _parts(numbers: npt.NDArray[np.int64], size: int) -> Iterator[npt.NDArray[np.int64]]:
    for start in range(0, len(numbers), size):
        yield numbers[start : start + size]
