"""The Q-Former: its size, cross-attention in every layer, dropout set on purpose."""

import pytest
import torch

from livemamba.config import QFormerConfig
from livemamba.model.qformer import QFormer

SMALL = {"num_queries": 5, "hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 64}


def small(**changes) -> QFormer:
    torch.manual_seed(0)
    return QFormer(QFormerConfig(**{**SMALL, **changes}), encoder_width=24, output_width=16)


def linear(inputs: int, outputs: int) -> int:
    return inputs * outputs + outputs


def test_full_size_has_the_stated_parameters() -> None:
    with torch.device("meta"):
        qformer = QFormer(QFormerConfig(), encoder_width=1024, output_width=768)
    norm = 2 * 768
    own = 4 * linear(768, 768) + norm
    cross = 2 * linear(768, 768) + 2 * linear(1024, 768) + norm
    feed_forward = linear(768, 3072) + linear(3072, 768) + norm
    layers = sum(parameter.numel() for parameter in qformer.layers.parameters())
    assert layers == 4 * (own + cross + feed_forward) + norm
    assert round(layers / 1e6, 1) == 39.4
    whole = sum(parameter.numel() for parameter in qformer.parameters())
    assert whole == layers + 32 * 768 + linear(768, 768) + 2 * 1024  # queries, projection, the norm before


def test_output_is_one_embedding_a_query_in_the_backbones_width() -> None:
    out = small()(torch.randn(2, 11, 24))
    assert out.shape == (2, 5, 16)
    assert out.dtype == torch.float32


def test_no_frame_gives_no_embedding_and_a_gradient_of_zero_everywhere() -> None:
    """Processes that share gradients all need one for every weight, also from a batch of texts."""
    qformer = small()
    out = qformer(torch.zeros(0, 11, 24))
    assert out.shape == (0, 5, 16)
    out.sum().backward()
    assert all(weight.grad is not None and not weight.grad.any() for weight in qformer.parameters())


def test_every_layer_reads_the_tokens() -> None:
    qformer, tokens = small(), torch.randn(1, 11, 24)
    with torch.no_grad():
        before = qformer(tokens)
        for layer in qformer.layers.encoder.layer:
            value = layer.crossattention.attention.value.weight
            saved = value.clone()
            value.zero_()
            assert (qformer(tokens) - before).abs().max() > 1e-5
            value.copy_(saved)
        assert torch.equal(qformer(tokens), before)
    assert len(qformer.layers.encoder.layer) == 3


def test_tokens_are_a_set_and_all_of_them_count() -> None:
    qformer, tokens = small(), torch.randn(1, 11, 24, requires_grad=True)
    out = qformer(tokens)
    torch.testing.assert_close(qformer(tokens.flip(1)), out, atol=1e-6, rtol=1e-5)
    out.square().sum().backward()
    assert (tokens.grad.abs().amax(-1) > 0).all()


def test_queries_start_apart_and_learn_apart() -> None:
    qformer = small()
    out = qformer(torch.randn(1, 11, 24))
    assert torch.pdist(out[0].detach()).min() > 1e-2
    out.square().sum().backward()
    assert torch.pdist(qformer.queries.grad).min() > 0


def test_weights_start_at_the_stated_spread() -> None:
    qformer = QFormer(QFormerConfig(num_hidden_layers=1), encoder_width=64, output_width=768)
    spread = 768**-0.5
    assert qformer.queries.std().item() == pytest.approx(spread, rel=0.05)
    assert qformer.projection.weight.std().item() == pytest.approx(spread, rel=0.05)
    assert not qformer.projection.bias.any()
    assert qformer(torch.randn(1, 9, 64)).std().item() == pytest.approx(1.0, rel=0.2)


def test_a_narrow_one_sees_the_frame_from_the_start() -> None:
    qformer = QFormer(
        QFormerConfig(hidden_size=64, num_attention_heads=4, intermediate_size=128), encoder_width=24, output_width=64
    )
    out = qformer(torch.randn(16, 11, 24))
    assert out.std(0).mean() > 0.2 * out.std()  # between frames, against all in all
    shifted = qformer(10 * torch.randn(16, 11, 24) + 5)  # InternViT's tokens come without a norm
    assert shifted.std(0).mean() > 0.2 * shifted.std()


def test_a_frame_alone_is_the_frame_in_a_batch() -> None:
    qformer, tokens = small(), torch.randn(4, 11, 24)
    batch = qformer(tokens)
    for i in range(4):
        torch.testing.assert_close(qformer(tokens[i : i + 1])[0], batch[i], atol=1e-6, rtol=1e-5)


def test_dropout_is_off_unless_asked_for() -> None:
    tokens = torch.randn(2, 11, 24)
    qformer = small().train()
    assert torch.equal(qformer(tokens), qformer(tokens))
    for field in ("hidden_dropout_prob", "attention_probs_dropout_prob"):
        dropping = small(**{field: 0.5}).train()
        assert not torch.equal(dropping(tokens), dropping(tokens)), field
        dropping.eval()
        assert torch.equal(dropping(tokens), dropping(tokens)), field
