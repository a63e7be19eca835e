"""Stages 1 and 2: the dialogue is learnt on features of a frozen vision encoder (paper 4.2, 4.3, D.1 to D.3).

Stage 1 trains the Q-Former with its projection and the rows of the special tokens; stage 2 the backbone too.
Letters: B samples, L positions, N supervised positions, T frames, K kept tokens, W vision width, V vocabulary rows.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Annotated, Literal

import torch
import torch.nn.functional as F
from pydantic import Field
from pydantic.dataclasses import dataclass
from torch import Tensor, nn

from livemamba.config import Positive
from livemamba.data.cache import FeatureCache
from livemamba.data.collate import Batch, Target
from livemamba.data.simkitchen import read_step_clips
from livemamba.data.sources import AugmentConfig, ClipSource, Features
from livemamba.errors import InputError
from livemamba.model.livemamba import LiveMamba
from livemamba.training.config import STRICT, OptimConfig, RunConfig
from livemamba.training.features import StateFeatures, cache_key
from livemamba.training.loop import Sums

Trained = Literal["qformer", "special_tokens", "backbone"]


@dataclass(frozen=True, kw_only=True, config=STRICT)
class CorpusConfig:
    """A corpus to learn from.

    Attributes:
        simkitchen: folder of a simulated corpus.
        features: folder of its features (`train/cache_features.py`); null to see the world's state in their place.
        split: of its clips.
    """

    simkitchen: str
    features: str | None = None
    split: Literal["train", "validation", "test"] = "train"


@dataclass(frozen=True, kw_only=True, config=STRICT)
class LossConfig:
    """Weights in the cross-entropy, which is a weighted mean over all supervised positions.

    Attributes:
        response: of decisions to respond; silent ones, a hundred times as many, have 1. A weight w turns a true
            chance p into wp / (wp + 1 - p): thresholds are calibrated after it.
        kind: of the first token after `<response>`.
        text: of the rest of what is said.
    """

    response: Annotated[float, Field(gt=0)] = 1.0
    kind: Annotated[float, Field(gt=0)] = 1.0
    text: Annotated[float, Field(gt=0)] = 1.0


@dataclass(frozen=True, kw_only=True, config=STRICT)
class CoachingConfig:
    """A stage on step clips.

    Attributes:
        run: timetable.
        optim: optimiser.
        init: the checkpoint to start from.
        trained: the parts that learn.
        corpora: what they learn from.
        augment: what is made of each clip.
        loss: weights.
        groups_per_batch: over all processes; a group is a clip with its opposite.
        validation: corpora for the pair test and the benchmark's metrics while training.
        validation_pairs: so many pairs.
        validation_turns: so many steps as they were given.
        window_s: the scoring window: the benchmark's 30 s, or those divided by the kitchen's time factor.
    """

    run: RunConfig
    optim: OptimConfig
    init: str
    trained: tuple[Trained, ...] = Field(min_length=1)
    corpora: tuple[CorpusConfig, ...] = Field(min_length=1)
    augment: AugmentConfig = field(default_factory=AugmentConfig)
    loss: LossConfig = field(default_factory=LossConfig)
    groups_per_batch: Positive = 16
    validation: tuple[CorpusConfig, ...] = ()
    validation_pairs: Positive = 200
    validation_turns: Positive = 200
    window_s: Annotated[float, Field(gt=0)] = 30.0


class CoachingModule(nn.Module):
    """Batches in, losses and accuracies out.

    Args:
        live: the network.
        trained: the parts that learn.
        weights: of the loss.
    """

    def __init__(self, live: LiveMamba, trained: Sequence[Trained], weights: LossConfig) -> None:
        super().__init__()
        self.live = live
        live.requires_grad_(False)
        if "qformer" in trained:
            live.qformer.requires_grad_(True)
        if "backbone" in trained:
            live.backbone.requires_grad_(True)
        elif "special_tokens" in trained:
            self._train_special_rows(live)
        by_group = [weights.text] * len(Target)
        for target in (Target.SUCCESS, Target.MISTAKE, Target.DIVERGENCE, Target.ADVANCE, Target.SAY):
            by_group[target] = weights.response
        by_group[Target.SILENT], by_group[Target.KIND] = 1.0, weights.kind
        self.weights: Tensor
        self.register_buffer("weights", torch.tensor(by_group), persistent=False)

    def _train_special_rows(self, live: LiveMamba) -> None:
        """The embedding learns, but only in the rows of the special tokens."""
        table = live.backbone.backbone.embeddings.weight
        mask = torch.zeros(table.shape[0], 1)
        dialogue = live.config.dialogue
        mask[[dialogue.vision_id, dialogue.response_id, dialogue.next_id]] = 1.0
        table.requires_grad_(True)
        table.only_some_rows = True  # type: ignore[attr-defined]
        table.register_hook(lambda gradient: gradient * mask.to(gradient))  # type: ignore[no-untyped-call]

    def forward(self, batch: Batch) -> Sums:
        """See `losses`."""
        logits, targets, groups = self.predict(batch)
        return losses(logits, targets, groups, self.weights, self.live.tokens.config.vision_id)

    def predict(self, batch: Batch) -> tuple[Tensor, Tensor, Tensor]:
        """Logits (N, V), targets (N,) and groups (N,) of the supervised positions."""
        live = self.live
        frames = live.qformer(batch.tokens)
        embeds = live.embed(batch.ids, visual=batch.visual, frames=frames)
        hidden, _ = live.backbone(embeds, valid=batch.valid)
        supervised = batch.groups != Target.NONE
        return live.backbone.logits(hidden[supervised]), batch.targets[supervised], batch.groups[supervised]


def losses(logits: Tensor, targets: Tensor, groups: Tensor, weights: Tensor, vision_id: int) -> Sums:
    """The loss and what is right of each kind of target.

    Args:
        logits: (N, V).
        targets: (N,).
        groups: (N,), a `Target` each.
        weights: one for each `Target`.
        vision_id: of `<vision>`: a decision is right if it beats, or doesn't beat, the target's rival.

    Returns:
        "loss" with its weights' sum; "silent", "success", ... the shares of right decisions; "kind" and "text" the
        shares of right tokens.
    """
    loss = F.cross_entropy(logits.float(), targets, reduction="none")
    weight = weights[groups.long()]
    sums = {"loss": torch.stack([(loss * weight).sum(), weight.sum()])}
    chosen = logits.argmax(-1)
    right = chosen == targets
    # Between the two decisions alone: what else is likely there doesn't count when decoding either.
    vision = logits[:, vision_id]
    rival = logits.gather(1, targets[:, None])[:, 0]
    with torch.no_grad():
        for target in Target:
            if target == Target.NONE:
                continue
            at = groups == target
            good = right[at]
            if Target.SUCCESS <= target <= Target.SAY:
                good = rival[at] > vision[at]
            sums[target.name.lower()] = torch.stack([good.sum(), at.sum()]).float()
    return sums


class CoachingTask:
    """Step clips with their features.

    Args:
        live: the network.
        config: of the stage.
        validator: scores the network; None for no validation.
    """

    def __init__(
        self,
        live: LiveMamba,
        config: CoachingConfig,
        validator: Callable[[LiveMamba], Mapping[str, float]] | None = None,
    ) -> None:
        self.live, self.config = live, config
        clips = [
            (clip, features)
            for corpus in config.corpora
            for features in [features_of(corpus, live)]
            for clip in read_step_clips(corpus.simkitchen, corpus.split)
        ]
        self.source = ClipSource(
            clips,
            config=config.augment,
            dialogue=live.config.dialogue,
            tokens=live.tokens,
            num_queries=live.config.qformer.num_queries,
            groups_per_batch=config.groups_per_batch,
            seed=config.run.seed,
        )
        self.module = CoachingModule(live, config.trained, config.loss)
        self._validator = validator
        for part in ("qformer", "backbone"):
            if part in config.trained:
                live.provenance[part] = f"trained by {Path(config.run.out).name}"

    def batch(self, step: int, rank: int, world_size: int) -> Batch:
        """See `Task`."""
        return self.source.batch(step, rank, world_size)

    def validate(self, step: int) -> Mapping[str, float]:
        """See `Task`."""
        return self._validator(self.live) if self._validator else {}


def features_of(corpus: CorpusConfig, live: LiveMamba) -> Features:
    """Where a corpus's features are read from.

    Raises:
        InputError: if they are another model's, or states that don't fit.
    """
    if corpus.features is None:
        return StateFeatures(corpus.simkitchen, keep=live.config.pruning.keep, width=live.vision.width)
    if not Path(corpus.features).is_dir():
        raise InputError(f"features {corpus.features} do not exist; make them with train/cache_features.py")
    return FeatureCache(corpus.features, cache_key(live))
