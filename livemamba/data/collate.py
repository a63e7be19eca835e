"""Samples into a batch.

Letters: B samples, L positions of the longest, T frames of all samples in a row, M different ones among these, K kept
tokens of a frame, W width.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from enum import IntEnum

import numpy as np
import torch
from torch import Tensor

from livemamba.dialogue.encode import IGNORE, Encoded, Part
from livemamba.dialogue.tokens import Tokens
from livemamba.errors import InputError


class Target(IntEnum):
    """What a supervised position has to get right."""

    NONE = 0
    SILENT = 1
    SUCCESS = 2  # to respond, with a success
    MISTAKE = 3
    DIVERGENCE = 4
    ADVANCE = 5
    SAY = 6
    KIND = 7  # the first token after <response>: of which kind
    TEXT = 8  # the rest of the opening, the text, its end


@dataclass(frozen=True, kw_only=True, eq=False)
class Batch:
    """Samples side by side, padded at the right.

    Attributes:
        ids: (B, L) int64.
        targets: (B, L) int64, the token that has to follow, or `IGNORE`.
        groups: (B, L) int8, a `Target` each.
        visual: (B, L) bool, where the frames' embeddings go.
        valid: (B, L) bool, False at padding.
        frames: (T,) int64, which of the different frames each one is, sample by sample.
        tokens: (M, K, W) float, features of the different frames: a clip under two instructions is looked at once.
    """

    ids: Tensor
    targets: Tensor
    groups: Tensor
    visual: Tensor
    valid: Tensor
    frames: Tensor
    tokens: Tensor

    def to(self, device: torch.device | str) -> "Batch":
        """The batch on a device."""
        return Batch(**{field.name: getattr(self, field.name).to(device) for field in fields(self)})


def collate(samples: Sequence[tuple[Encoded, Sequence[int]]], features: Tensor, tokens: Tokens) -> Batch:
    """Samples and their frames' features as a batch.

    Args:
        samples: encoded conversations, each with the rows of its frames in `features`, in order.
        features: (M, K, W) of the different frames.
        tokens: the tokenizer with the special ids.

    Raises:
        InputError: if there is no sample, or the features of one aren't those of its frames: shifted by one, a run
            would train on nonsense.
    """
    if not samples:
        raise InputError("no samples to make a batch of")
    for encoded, rows in samples:
        if len(rows) != len(encoded.ticks):
            raise InputError(f"{encoded.video_id}: features of {len(rows)} frames for {len(encoded.ticks)}")
    length = max(len(encoded) for encoded, _ in samples)
    shape = (len(samples), length)
    ids = np.full(shape, tokens.config.padding_id, dtype=np.int64)
    targets = np.full(shape, IGNORE, dtype=np.int64)
    groups = np.zeros(shape, dtype=np.int8)
    visual, valid = np.zeros(shape, dtype=np.bool_), np.zeros(shape, dtype=np.bool_)
    for row, (encoded, _) in enumerate(samples):
        end = len(encoded)
        ids[row, :end], targets[row, :end], visual[row, :end] = encoded.ids, encoded.targets, encoded.visual
        groups[row, :end] = target_groups(encoded, tokens)
        valid[row, :end] = True
    arrays = {"ids": ids, "targets": targets, "groups": groups, "visual": visual, "valid": valid}
    return Batch(
        **{name: torch.from_numpy(array) for name, array in arrays.items()},
        frames=torch.tensor([place for _, rows in samples for place in rows], dtype=torch.int64),
        tokens=features.float(),
    )


def target_groups(encoded: Encoded, tokens: Tokens) -> "np.ndarray[tuple[int], np.dtype[np.int8]]":
    """(L,) what each position has to get right."""
    groups = np.zeros(len(encoded), dtype=np.int8)
    supervised = encoded.targets != IGNORE
    following = np.append(encoded.parts[1:], -1)
    groups[supervised] = Target.TEXT
    groups[supervised & (encoded.parts == Part.RESPONSE)] = Target.KIND
    groups[supervised & encoded.decisions & (encoded.targets == tokens.config.vision_id)] = Target.SILENT
    responding = supervised & encoded.decisions & (encoded.targets == tokens.config.response_id)
    for place in np.flatnonzero(responding & (following == Part.RESPONSE)):
        kind = encoded.kinds[encoded.items[place + 1]]
        assert kind is not None, "a response without a kind"
        groups[place] = Target[kind.upper()]
    return groups
