"""Stages 1 and 2: the dialogue is learnt on features of a frozen vision encoder (paper 4.2, 4.3, D.1 to D.3).

Stage 1 trains the Q-Former with its projection and the rows of the special tokens; stage 2 the backbone too.
Letters: B samples, L positions, N supervised positions, T frames, K kept tokens, W vision width, V vocabulary rows.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Literal

import torch
import torch.nn.functional as F
from pydantic import Field
from pydantic.dataclasses import dataclass
from torch import Tensor, nn

from livemamba.config import Positive
from livemamba.data.cache import FeatureCache, NoFeatures, lacking
from livemamba.data.collate import Batch, Target
from livemamba.data.conversation_file import read_conversations
from livemamba.data.simkitchen import read_step_clips
from livemamba.data.sources import AugmentConfig, ClipSource, Features, Item
from livemamba.data.step_clips import StepClip
from livemamba.errors import InputError, MissingError
from livemamba.model.livemamba import LiveMamba
from livemamba.texts import listed
from livemamba.training.config import STRICT, OptimConfig, RunConfig
from livemamba.training.features import StateFeatures, cache_key, lacking_states
from livemamba.training.loop import Sums

Trained = Literal["qformer", "special_tokens", "backbone"]


@dataclass(frozen=True, kw_only=True, config=STRICT)
class CorpusConfig:
    """A corpus to learn from: one of two kinds.

    Attributes:
        simkitchen: folder of a simulated corpus.
        conversations: file of conversations (`livemamba.data.conversation_file`), taken as they are: no augmentations.
        features: folder of its features (`train/cache_features.py`). Null: of a simulated corpus the world's state is
            seen in their place; conversations have no frames then.
        split: of a simulated corpus's clips; conversations are taken whole.
    """

    simkitchen: str | None = None
    conversations: str | None = None
    features: str | None = None
    split: Literal["train", "validation", "test"] = "train"

    def __post_init__(self) -> None:
        if (self.simkitchen is None) == (self.conversations is None):
            raise ValueError("a corpus is either simkitchen or conversations; name one of them")
        if self.conversations is not None and self.split != "train":
            raise ValueError("split chooses among a simulated corpus's clips; a file of conversations has none")


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

    def __post_init__(self) -> None:
        if {"backbone", "special_tokens"} <= set(self.trained):
            raise ValueError("trained: the backbone holds the special tokens' rows already; leave special_tokens out")
        if any(corpus.simkitchen is None for corpus in self.validation):
            raise ValueError("validation: its scores are made on simulated corpora")
        if len({corpus.split for corpus in self.validation}) > 1:
            raise ValueError("validation: all corpora must give the same split")


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
        frames = live.qformer(batch.tokens)[batch.frames]
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
        "loss" with its weights' sum; "loss_decision" and "loss_text", the unweighted mean over decisions and over
        tokens of what is said; "silent", "success", ... the shares of right decisions; "kind" and "text" the
        shares of right tokens.
    """
    loss = F.cross_entropy(logits.float(), targets, reduction="none")
    weight = weights[groups.long()]
    sums = {"loss": torch.stack([(loss * weight).sum(), weight.sum()])}
    spoken = groups >= Target.KIND
    for name, at in (("loss_decision", ~spoken), ("loss_text", spoken)):
        sums[name] = torch.stack([loss.detach()[at].sum(), at.sum()])
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
            for clip in read_items(corpus)
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


@lru_cache(maxsize=8)
def read_items(corpus: CorpusConfig) -> tuple[Item, ...]:
    """What a corpus holds.

    Raises:
        MissingError, InputError: if it can't be read.
    """
    if corpus.conversations is not None:
        return read_conversations(corpus.conversations)
    assert corpus.simkitchen is not None
    return read_step_clips(corpus.simkitchen, corpus.split)


def check_corpora(config: CoachingConfig) -> None:
    """Read all corpora, and see that the features of every frame are there: before any network is loaded.

    Raises:
        MissingError: naming what is missing and what makes it.
        InputError: if a corpus can't be read.
    """
    for corpus in (*config.corpora, *config.validation):
        needed: dict[str, int] = {}
        for item in read_items(corpus):
            for video_id, ticks in _shown(item):
                needed[video_id] = max(needed.get(video_id, 0), ticks)
        if corpus.features is not None:
            what, words = corpus.features, lacking(corpus.features, needed)
            remedy = "make them with train/cache_features.py"
        elif corpus.simkitchen is not None:
            what, words = f"{corpus.simkitchen}/states", lacking_states(corpus.simkitchen, needed)
            remedy = "generate the corpus with `livemamba simulate --states`, or name its features"
        else:
            what, words = f"{corpus.conversations}", list(needed)
            remedy = "it shows frames, so name its features"
        if words:
            raise MissingError(
                f"{what}: features of {len(words)} of {len(needed)} videos are missing: {listed(words)}; {remedy}"
            )


def _shown(item: Item) -> list[tuple[str, int]]:
    """Videos of an item, each with the tick after the last one shown."""
    if isinstance(item, StepClip):
        return [(item.video_id, item.end_tick)]
    return [(one.video_id, one.ticks[-1] + 1) for one in item if one.num_frames]


def features_of(corpus: CorpusConfig, live: LiveMamba) -> Features:
    """Where a corpus's features are read from.

    Raises:
        InputError: if they are another model's, or states that don't fit.
    """
    if corpus.features is None and corpus.simkitchen is not None:
        return StateFeatures(corpus.simkitchen, keep=live.config.pruning.keep, width=live.vision.width)
    if corpus.features is None:
        return NoFeatures(keep=min(live.config.pruning.keep, live.vision.num_tokens), width=live.vision.width)
    if not Path(corpus.features).is_dir():
        raise InputError(f"features {corpus.features} do not exist; make them with train/cache_features.py")
    return FeatureCache(corpus.features, cache_key(live))
