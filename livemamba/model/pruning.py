"""Token pruning: a frame's tokens down to the few that carry it, by the VisionZip mechanism.

Dominant tokens are those that the CLS token attends to most. The rest are merged into contextual tokens
by the similarity of their attention keys. Sources: paper D.3 (1025 to 256); spec/model.md for the split.

Shapes: B frames, N tokens (CLS first), W token width, D key width, K kept tokens, R the rest (not
dominant), C contextual tokens.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from livemamba.errors import InputError


@dataclass(frozen=True, kw_only=True, eq=False)
class Pruned:
    """Kept tokens in image order, CLS first.

    Attributes:
        tokens: (B, K, W).
        indices: (B, K) int64, each token's place among the N, ascending; a contextual token stands at
            the place of its target.
    """

    tokens: Tensor
    indices: Tensor


def prune_tokens(features: Tensor, scores: Tensor, keys: Tensor, *, keep: int, dominant: int) -> Pruned:
    """Keep `dominant` tokens as they are and merge all others into `keep - dominant`.

    CLS is dominant by rule; then those with the highest scores. Among the rest, in index order, every
    (R // C)th token is a target, C of them from the first; each other token joins the target whose key
    has the highest cosine similarity with its own, and a target becomes the mean of itself and those that
    joined it. Ties go to the lower index, in scores and in similarities. With no contextual tokens
    (keep = dominant) the rest is dropped; with keep >= N everything stays as it is.

    Gradients flow to `features`; which tokens are kept and merged is a constant.

    Args:
        features: (B, N, W).
        scores: (B, N), attention of the CLS token to each token.
        keys: (B, N, D), attention keys.
        keep: K, at least 1.
        dominant: of those, at least 1 (CLS) and at most `keep`.

    Raises:
        InputError: if keep and dominant break these bounds, or scores and keys do not fit the features.
    """
    _check(features, scores, keys, keep=keep, dominant=dominant)
    batch, num_tokens, _ = features.shape
    if keep >= num_tokens:
        return Pruned(tokens=features, indices=torch.arange(num_tokens, device=features.device).expand(batch, -1))
    kept, rest = _split(scores, dominant)
    kept_tokens = _take(features, kept)
    if keep == dominant:
        return Pruned(tokens=kept_tokens, indices=kept)
    positions = _target_positions(rest.shape[1], keep - dominant, features.device)
    groups = _groups(_take(keys.detach(), rest), positions)
    merged = _group_means(_take(features, rest), groups, positions.numel())
    indices, order = torch.cat([kept, rest[:, positions]], dim=1).sort(dim=1)
    return Pruned(tokens=_take(torch.cat([kept_tokens, merged], dim=1), order), indices=indices)


def _check(features: Tensor, scores: Tensor, keys: Tensor, *, keep: int, dominant: int) -> None:
    if not 1 <= dominant <= keep:
        raise InputError(f"pruning: dominant is {dominant} and keep {keep}; 1 <= dominant <= keep must hold")
    if scores.shape != features.shape[:2] or keys.shape[:2] != features.shape[:2]:
        raise InputError(
            f"pruning: features {tuple(features.shape)}, scores {tuple(scores.shape)} and keys {tuple(keys.shape)} "
            "disagree on (frames, tokens); take all three from one pass of the encoder"
        )


def _split(scores: Tensor, dominant: int) -> tuple[Tensor, Tensor]:
    """Indices of the dominant tokens (B, dominant) and of the rest (B, R), each ascending."""
    ranked = scores.detach().clone()
    ranked[:, 0] = torch.inf
    order = ranked.argsort(dim=1, descending=True, stable=True)  # topk is not stable: ties would fall anywhere
    return order[:, :dominant].sort(dim=1).values, order[:, dominant:].sort(dim=1).values


def _target_positions(num_rest: int, num_contextual: int, device: torch.device) -> Tensor:
    """Places of the targets (C,) among the rest, at uniform stride."""
    return torch.arange(num_contextual, device=device) * (num_rest // num_contextual)


def _groups(keys: Tensor, positions: Tensor) -> Tensor:
    """The target that each of the rest belongs to (B, R), from 0 to C - 1; a target belongs to itself.

    Args:
        keys: (B, R, D) of the rest.
        positions: (C,) of the targets.
    """
    # In float32 keys of one direction would tie only up to rounding, which depends on their length, on the
    # kernel and on the batch. Worked out in double and rounded to float32, equal is equal; autocast keeps off.
    # A token's own length scales all its similarities alike, so only the targets are brought to length 1.
    keys = keys.to(_exact(keys.device))
    similarity = (keys @ F.normalize(keys[:, positions], dim=-1).mT).float()  # (B, R, C)
    groups = similarity.argmax(dim=-1)  # the first of equal ones
    groups[:, positions] = torch.arange(positions.numel(), device=keys.device)
    return groups


def _group_means(features: Tensor, groups: Tensor, num_groups: int) -> Tensor:
    """Mean feature of each group (B, C, W). A matmul: scatter_add is not deterministic on CUDA.

    Args:
        features: (B, R, W) of the rest.
        groups: (B, R), from 0 to C - 1.
        num_groups: C.
    """
    member = F.one_hot(groups, num_groups).to(_exact(features.device))  # (B, R, C)
    sums = member.mT @ features.to(member.dtype)
    return (sums / member.sum(dim=1).unsqueeze(-1)).to(features.dtype)


def _exact(device: torch.device) -> torch.dtype:
    return torch.float32 if device.type == "mps" else torch.float64  # Apple's GPUs have no double


def _take(tokens: Tensor, indices: Tensor) -> Tensor:
    """Tokens (B, M, W) at indices (B, M) of (B, N, W); whole rows, many times faster than a gather."""
    return tokens[torch.arange(tokens.shape[0], device=tokens.device).unsqueeze(-1), indices]
