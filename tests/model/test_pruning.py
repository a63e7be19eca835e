"""Token pruning against a slow, obvious version of the same rules."""

import pytest
import torch
from torch import Tensor

from livemamba.errors import InputError
from livemamba.model.pruning import prune_tokens


def cosine(a: list[float], b: list[float]) -> float:
    dot, square_a, square_b = 0.0, 0.0, 0.0
    for x, y in zip(a, b, strict=True):
        dot, square_a, square_b = dot + x * y, square_a + x * x, square_b + y * y
    return dot / (square_a**0.5 * square_b**0.5)


def prune_one_slowly(features: Tensor, scores: Tensor, keys: Tensor, keep: int, dominant: int) -> dict[int, Tensor]:
    """Token index -> token, for one frame, token by token as spec/model.md puts it."""
    num_tokens = features.shape[0]
    by_score = sorted(range(1, num_tokens), key=lambda i: (-scores[i].item(), i))
    kept = [0, *by_score[: dominant - 1]]
    rest = sorted(set(range(num_tokens)) - set(kept))
    num_targets = keep - dominant
    stride = len(rest) // num_targets
    targets = [rest[j * stride] for j in range(num_targets)]
    members = {target: [target] for target in targets}
    key_lists = keys.double().tolist()
    for i in rest:
        if i in members:
            continue
        best, best_similarity = -1, -2.0
        for target in targets:
            similarity = cosine(key_lists[i], key_lists[target])
            if similarity > best_similarity:  # a tie leaves the lower index in place
                best, best_similarity = target, similarity
        members[best].append(i)
    tokens = {i: features[i] for i in kept}
    tokens.update({target: features[group].double().mean(0).float() for target, group in members.items()})
    return tokens


def assert_like_the_oracle(features: Tensor, scores: Tensor, keys: Tensor, *, keep: int, dominant: int) -> None:
    pruned = prune_tokens(features, scores, keys, keep=keep, dominant=dominant)
    assert pruned.tokens.shape == (features.shape[0], keep, features.shape[2])
    for b in range(features.shape[0]):
        expected = prune_one_slowly(features[b], scores[b], keys[b], keep, dominant)
        assert pruned.indices[b].tolist() == sorted(expected)
        torch.testing.assert_close(pruned.tokens[b], torch.stack([expected[i] for i in sorted(expected)]))


def random_tokens(batch: int, num_tokens: int, *, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    features = torch.randn(batch, num_tokens, 16, generator=generator)
    scores = torch.rand(batch, num_tokens, generator=generator).softmax(-1)
    return features, scores, torch.randn(batch, num_tokens, 12, generator=generator)


def textured_tokens(batch: int, side: int) -> tuple[Tensor, Tensor, Tensor]:
    """Neighbouring tokens resemble each other, as in a picture, and so do their scores and keys."""
    generator = torch.Generator().manual_seed(1)
    coarse = torch.randn(batch, 29, 5, 5, generator=generator)
    field = torch.nn.functional.interpolate(coarse, size=(side, side), mode="bicubic", align_corners=True)
    field = field.flatten(2).transpose(1, 2) + 0.01 * torch.randn(batch, side * side, 29, generator=generator)
    field = torch.cat([torch.randn(batch, 1, 29, generator=generator), field], dim=1)
    return field[..., :16], field[..., 16].softmax(-1), field[..., 17:]


@pytest.mark.parametrize("make", [lambda: random_tokens(2, 1025), lambda: textured_tokens(2, 32)])
def test_full_size_1025_to_256_is_the_oracles(make) -> None:
    features, scores, keys = make()
    assert_like_the_oracle(features, scores, keys, keep=256, dominant=216)
    indices = prune_tokens(features, scores, keys, keep=256, dominant=216).indices
    assert indices.shape == (2, 256)
    assert (indices.diff(dim=1) > 0).all()
    assert (indices[:, 0] == 0).all()


@pytest.mark.parametrize(
    ("num_tokens", "keep", "dominant"), [(65, 48, 40), (65, 64, 1), (65, 2, 1), (10, 9, 8), (50, 30, 10)]
)
def test_other_sizes_are_the_oracles(num_tokens: int, keep: int, dominant: int) -> None:
    for seed in range(3):
        assert_like_the_oracle(*random_tokens(2, num_tokens, seed=seed), keep=keep, dominant=dominant)


def test_cls_is_kept_however_low_its_score() -> None:
    features, scores, keys = random_tokens(1, 65)
    scores[:, 0] = 0
    pruned = prune_tokens(features, scores, keys, keep=12, dominant=8)
    assert pruned.indices[0, 0] == 0
    assert torch.equal(pruned.tokens[0, 0], features[0, 0])


def test_ties_go_to_the_lower_index() -> None:
    features, scores, keys = random_tokens(2, 1025)
    scores[:], keys[:] = 1 / 1025, keys[:1, :1].clone()
    pruned = prune_tokens(features, scores, keys, keep=256, dominant=216)
    rest = range(216, 1025)
    targets = list(rest[::20])[:40]
    assert pruned.indices[0].tolist() == [*range(216), *targets]
    # all keys are equal: whoever is no target joins the first one
    joined = [216, *(i for i in rest if i not in targets)]
    torch.testing.assert_close(pruned.tokens[:, 216], features[:, joined].mean(1), atol=1e-6, rtol=1e-5)
    assert torch.equal(pruned.tokens[:, 217:], features[:, targets[1:]])


def test_twin_targets_tie_exactly_whatever_stands_around_them() -> None:
    # Keys of targets 10 and 30 point the same way; worked out in float32, rounding would tell them apart.
    for seed in range(20):
        features, scores, keys = random_tokens(3, 1025, seed=seed)
        keys = keys.bfloat16().float()  # short numbers: three times one is exact
        rest = prune_tokens(features, scores, keys, keep=216, dominant=216).indices
        others = [sorted(set(range(1025)) - set(row)) for row in rest.tolist()]
        for b, row in enumerate(others):
            keys[b, row[30 * 20]] = keys[b, row[10 * 20]] * 3
        pruned = prune_tokens(features, scores, keys, keep=256, dominant=216)
        for b, row in enumerate(others):
            place = pruned.indices[b].tolist().index(row[30 * 20])
            assert torch.equal(pruned.tokens[b, place], features[b, row[30 * 20]]), "the higher twin was joined"


def test_only_the_direction_of_a_key_counts() -> None:
    features, scores, keys = random_tokens(1, 65)
    lengths = torch.rand(1, 65, 1) * 100 + 0.01
    plain = prune_tokens(features, scores, keys, keep=12, dominant=8)
    scaled = prune_tokens(features, scores, keys * lengths, keep=12, dominant=8)
    torch.testing.assert_close(plain.tokens, scaled.tokens)


def test_a_frame_alone_is_the_frame_in_a_batch() -> None:
    features, scores, keys = random_tokens(4, 1025)
    batch = prune_tokens(features, scores, keys, keep=256, dominant=216)
    for i in range(4):
        single = prune_tokens(*(t[i : i + 1] for t in (features, scores, keys)), keep=256, dominant=216)
        assert torch.equal(single.indices[0], batch.indices[i])
        assert torch.equal(single.tokens[0], batch.tokens[i])


def test_autocast_changes_nothing() -> None:
    features, scores, keys = random_tokens(2, 1025)
    plain = prune_tokens(features, scores, keys, keep=256, dominant=216)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        autocast = prune_tokens(features, scores, keys, keep=256, dominant=216)
    assert torch.equal(plain.indices, autocast.indices)
    assert torch.equal(plain.tokens, autocast.tokens)


@pytest.mark.parametrize("keep", [65, 66, 1000])
def test_all_are_kept_when_asked(keep: int) -> None:
    features, scores, keys = random_tokens(2, 65)
    pruned = prune_tokens(features, scores, keys, keep=keep, dominant=40)
    assert torch.equal(pruned.tokens, features)
    assert pruned.indices.tolist() == [list(range(65))] * 2


def test_without_contextual_tokens_the_rest_is_dropped() -> None:
    features, scores, keys = random_tokens(1, 65)
    pruned = prune_tokens(features, scores, keys, keep=20, dominant=20)
    best = sorted([0, *(1 + scores[0, 1:].topk(19).indices).tolist()])
    assert pruned.indices[0].tolist() == best
    assert torch.equal(pruned.tokens[0], features[0, best])


def test_gradients_reach_each_feature_by_its_share() -> None:
    features, scores, keys = random_tokens(1, 65)
    features.requires_grad_()
    keys.requires_grad_()
    pruned = prune_tokens(features, scores, keys, keep=48, dominant=40)
    pruned.tokens.sum().backward()
    # each kept token is a mean, so its group's gradients sum to one in every channel
    torch.testing.assert_close(features.grad.sum(1), torch.full((1, 16), 48.0))
    assert (features.grad > 0).all()
    assert keys.grad is None


def test_half_precision_features_are_averaged_exactly() -> None:
    features, scores, keys = random_tokens(1, 1025)
    half = (features + 3).bfloat16()  # 809 summands near 3: summed in bfloat16 they would go astray
    pruned = prune_tokens(half, scores, keys, keep=41, dominant=40)
    exact = prune_tokens(half.double(), scores, keys, keep=41, dominant=40)
    assert pruned.tokens.dtype == torch.bfloat16
    assert torch.equal(pruned.tokens, exact.tokens.bfloat16())


@pytest.mark.parametrize(("keep", "dominant"), [(10, 0), (10, 11), (0, 0)])
def test_bounds_are_refused(keep: int, dominant: int) -> None:
    with pytest.raises(InputError, match="1 <= dominant <= keep"):
        prune_tokens(*random_tokens(1, 65), keep=keep, dominant=dominant)


def test_scores_of_another_picture_are_refused() -> None:
    features, scores, keys = random_tokens(2, 65)
    with pytest.raises(InputError, match="disagree"):
        prune_tokens(features, scores[:1], keys, keep=10, dominant=5)
    with pytest.raises(InputError, match="disagree"):
        prune_tokens(features, scores, keys[:, 1:], keep=10, dominant=5)
