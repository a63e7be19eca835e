"""The vision encoder against timm itself; what it refuses; that it stays frozen."""

from pathlib import Path

import pytest
import timm
import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode

from livemamba.config import QFormerConfig, VisionConfig
from livemamba.errors import InputError
from livemamba.model.pruning import Pruned, prune_tokens
from livemamba.model.qformer import QFormer
from livemamba.model.vision import VisionEncoder

INTERNVIT = "vit_intern300m_patch14_448.ogvl_2pt5"
TINY = VisionConfig(image_size=112, width=48, depth=3, num_heads=3)


def lively(encoder: VisionEncoder) -> VisionEncoder:
    """Random weights whose attention is far from uniform and whose layer scales all differ."""
    generator = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for name, parameter in encoder.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            if "gamma" in name:
                parameter.copy_(0.5 + 0.3 * noise)
            elif "norm" in name and "weight" in name:
                parameter.copy_(1 + 0.3 * noise)
            else:
                parameter.copy_(0.2 * noise if "qkv" in name else 0.1 * noise)
    return encoder


@pytest.fixture
def encoder() -> VisionEncoder:
    return lively(VisionEncoder(TINY))


def textured(batch: int, side: int = 112) -> Tensor:
    """Stripes of several directions and wavelengths with noise on top, normalised range."""
    generator = torch.Generator().manual_seed(3)
    y, x = torch.meshgrid(torch.linspace(0, 1, side), torch.linspace(0, 1, side), indexing="ij")
    waves = torch.randn(batch, 3, 6, 3, generator=generator) * 20
    phase = waves[..., 0, None, None] * x + waves[..., 1, None, None] * y + waves[..., 2, None, None]
    return phase.sin().mean(2) * 2 + 0.3 * torch.randn(batch, 3, side, side, generator=generator)


def set_fused(encoder: VisionEncoder, fused: bool) -> None:
    for block in encoder.vit.blocks:
        block.attn.fused_attn = fused


def attention_made_by_timm(encoder: VisionEncoder, pixels: Tensor) -> Tensor:
    """(B, H, N, N) of the second-last block, taken out of timm's own unfused attention."""
    set_fused(encoder, False)
    seen: list[Tensor] = []
    hook = encoder.vit.blocks[-2].attn.attn_drop.register_forward_hook(lambda _, args, out: seen.append(args[0]))
    with torch.no_grad():
        encoder.vit.forward_features(pixels)
    hook.remove()
    (attention,) = seen
    return attention


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("depth", [2, 3])
def test_features_are_timms_own(depth: int, fused: bool) -> None:
    encoder = lively(VisionEncoder(VisionConfig(image_size=112, width=48, depth=depth, num_heads=3)))
    set_fused(encoder, fused)
    pixels = textured(2)
    torch.testing.assert_close(encoder(pixels).features, encoder.vit.forward_features(pixels), atol=1e-5, rtol=1e-5)


def with_plain_attention(attn: nn.Module) -> None:
    pass


def with_normed_queries_and_keys(attn: nn.Module) -> None:
    for name in ("q_norm", "k_norm"):
        norm = nn.LayerNorm(16)
        nn.init.normal_(norm.weight, mean=2.0)
        nn.init.normal_(norm.bias)
        setattr(attn, name, norm)


def with_an_adapter(attn: nn.Module) -> None:
    attn.qkv = nn.Sequential(attn.qkv, nn.Linear(144, 144))


def with_another_scale(attn: nn.Module) -> None:
    attn.scale = 0.7


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize(
    "change", [with_plain_attention, with_normed_queries_and_keys, with_an_adapter, with_another_scale]
)
def test_cls_row_is_that_of_the_full_attention(encoder: VisionEncoder, change, fused: bool) -> None:
    torch.manual_seed(0)
    change(encoder.vit.blocks[-2].attn)
    pixels = textured(2)
    expected = attention_made_by_timm(encoder, pixels).mean(1)[:, 0]
    # fused attention has the scale of its kernel, 1 / sqrt(16): another one is seen with plain kernels only
    set_fused(encoder, fused and change is not with_another_scale)
    row = encoder(pixels).cls_attention
    assert row.shape == (2, 65)
    assert expected.max() > 2 * expected.mean(), "the attention is too even to tell rows apart"
    torch.testing.assert_close(row, expected, atol=1e-6, rtol=1e-5)


def test_keys_are_those_of_the_second_last_block(encoder: VisionEncoder) -> None:
    seen: list[Tensor] = []
    attn = encoder.vit.blocks[-2].attn
    attn.k_norm.register_forward_hook(lambda _, args, out: seen.append(out))
    pixels = textured(2)
    encoder.vit.forward_features(pixels)
    keys = seen[0].transpose(1, 2).reshape(2, 65, 48)  # from (B, H, N, D)
    torch.testing.assert_close(encoder(pixels).keys, keys)


class Shapes(TorchDispatchMode):
    """Remembers the shape of every tensor that an operation returns."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[int, ...]] = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        for tensor in result if isinstance(result, (tuple, list)) else [result]:
            if isinstance(tensor, Tensor):
                self.seen.append(tuple(tensor.shape))
        return result


def test_no_map_of_all_tokens_by_all_tokens_is_made(encoder: VisionEncoder) -> None:
    def maps(fused: bool) -> int:
        set_fused(encoder, fused)
        with Shapes() as shapes, torch.no_grad():
            encoder(textured(1))
        return sum(shape.count(65) >= 2 for shape in shapes.seen)

    assert maps(fused=False) > 0, "the probe sees nothing"
    assert maps(fused=True) == 0


def test_scores_stay_in_float32_under_autocast(encoder: VisionEncoder) -> None:
    pixels = textured(2)
    exact = encoder(pixels).cls_attention
    with torch.autocast("cpu", dtype=torch.bfloat16):
        row = encoder(pixels).cls_attention
    assert row.dtype == torch.float32
    assert all(frame.unique().numel() == 65 for frame in row), "rounded to bfloat16, scores tie"
    torch.testing.assert_close(row, exact, atol=0.02, rtol=0.2)


MARGIN = 1e-4  # kernels differ by about 1e-7 in these scores and similarities; on near ties no claim is made


def choices(encoder: VisionEncoder, pixels: Tensor) -> Pruned:
    """65 tokens pruned to 16 dominant and 8 contextual, after a check that no choice hangs on rounding."""
    with torch.no_grad():
        encoded = encoder(pixels)
    ranked = encoded.cls_attention[:, 1:].sort(dim=1, descending=True).values
    assert (ranked[:, 14] - ranked[:, 15]).min() > MARGIN, "scores at the edge are too close"
    pruned = prune_tokens(encoded.features, encoded.cls_attention, encoded.keys, keep=24, dominant=16)
    for keys, scores in zip(encoded.keys, encoded.cls_attention, strict=True):
        dominant = {0, *(1 + scores[1:].topk(15).indices).tolist()}
        rest = [i for i in range(65) if i not in dominant]
        targets = rest[::6][:8]
        unit = functional.normalize(keys, dim=-1)
        best = (unit[[i for i in rest if i not in targets]] @ unit[targets].T).topk(2).values
        assert (best[:, 0] - best[:, 1]).min() > MARGIN, "two targets are too alike"
    return pruned


def test_fused_attention_on_and_off_keep_the_same_tokens(encoder: VisionEncoder) -> None:
    pixels = textured(4)
    set_fused(encoder, True)
    fused = choices(encoder, pixels)
    set_fused(encoder, False)
    plain = choices(encoder, pixels)
    assert torch.equal(fused.indices, plain.indices)
    torch.testing.assert_close(fused.tokens, plain.tokens, atol=1e-4, rtol=1e-4)


def test_a_frame_keeps_the_same_tokens_alone_and_in_a_batch(encoder: VisionEncoder) -> None:
    pixels = textured(4)
    batch = choices(encoder, pixels)
    for i in range(4):
        single = choices(encoder, pixels[i : i + 1])
        assert torch.equal(single.indices[0], batch.indices[i])
        torch.testing.assert_close(single.tokens[0], batch.tokens[i], atol=1e-4, rtol=1e-4)


def test_a_plain_grey_picture_gives_the_same_tokens_twice(encoder: VisionEncoder) -> None:
    grey = torch.full((1, 3, 112, 112), 0.1)
    first, second = encoder(grey), encoder(grey)
    pruned = [prune_tokens(e.features, e.cls_attention, e.keys, keep=48, dominant=40) for e in (first, second)]
    assert torch.equal(pruned[0].indices, pruned[1].indices)
    assert torch.equal(pruned[0].tokens, pruned[1].tokens)


def test_frozen_part_is_unchanged_and_in_evaluation_mode_after_a_training_step(encoder: VisionEncoder) -> None:
    qformer = QFormer(
        QFormerConfig(num_queries=4, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64),
        encoder_width=encoder.width,
        output_width=16,
    )
    model = nn.ModuleDict({"encoder": encoder, "qformer": qformer}).train()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    qformer(encoder(textured(2)).features).square().mean().backward()
    optimizer.step()
    changed = {name for name, tensor in model.state_dict().items() if not torch.equal(tensor, before[name])}
    assert any(name.startswith("qformer.") for name in changed)
    assert not [name for name in changed if name.startswith("encoder.")]
    assert qformer.training
    assert not any(module.training for module in encoder.modules())


def test_an_encoder_that_is_not_frozen_trains() -> None:
    config = VisionConfig(image_size=112, width=48, depth=3, num_heads=3, frozen=False)
    encoder = VisionEncoder(config)
    assert encoder.train().vit.training
    encoder(textured(1)).features.square().mean().backward()
    assert all(parameter.grad is not None for parameter in encoder.parameters())


def test_full_size_is_the_papers_internvit() -> None:
    with torch.device("meta"):
        encoder = VisionEncoder(VisionConfig())
        encoded = encoder(torch.empty(1, 3, 448, 448))
    assert encoded.features.shape == encoded.keys.shape == (1, 1025, 1024)
    assert encoded.cls_attention.shape == (1, 1025)
    assert (encoder.num_tokens, encoder.num_patches, encoder.grid_side) == (1025, 1024, 32)
    assert (encoder.patch_size, encoder.image_size, encoder.width) == (14, 448, 1024)
    assert len(encoder.vit.blocks) == 24
    assert encoder.vit.blocks[0].attn.num_heads == 16
    assert round(sum(parameter.numel() for parameter in encoder.parameters()) / 1e6) == 304


def test_mean_and_std_are_the_models_own(encoder: VisionEncoder) -> None:
    assert encoder.mean == (0.485, 0.456, 0.406)
    assert encoder.std == (0.229, 0.224, 0.225)
    other = VisionEncoder(
        VisionConfig(architecture="vit_tiny_patch16_224.augreg_in21k", image_size=32, width=24, depth=2, num_heads=2)
    )
    assert other.mean == other.std == (0.5, 0.5, 0.5)
    encoder.vit.pretrained_cfg["mean"] = (0.1, 0.2, 0.3)
    assert encoder.mean == (0.1, 0.2, 0.3)


def saved_by_timm(folder: Path, **settings: int) -> tuple[nn.Module, dict[str, Tensor]]:
    model = timm.create_model(INTERNVIT, pretrained=False, img_size=112, embed_dim=48, depth=3, num_heads=3, **settings)
    timm.models.save_for_hf(model, str(folder), safe_serialization=True)
    return model.eval(), load_file(folder / "model.safetensors")


def test_weights_saved_by_timm_load_strictly(encoder: VisionEncoder, tmp_path: Path) -> None:
    model, tensors = saved_by_timm(tmp_path)
    encoder.vit.load_state_dict(tensors, strict=True)
    pixels = textured(1)
    torch.testing.assert_close(encoder(pixels).features, model.forward_features(pixels), atol=1e-5, rtol=1e-5)


def test_a_classifier_in_the_file_is_refused_by_name(encoder: VisionEncoder, tmp_path: Path) -> None:
    _, tensors = saved_by_timm(tmp_path, num_classes=5)
    with pytest.raises(RuntimeError, match=r'Unexpected.*"head.bias", "head.weight"'):
        encoder.vit.load_state_dict(tensors, strict=True)
    backbone = {name: tensor for name, tensor in tensors.items() if not name.startswith("head.")}
    encoder.vit.load_state_dict(backbone, strict=True)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"architecture": "vit_intern300m_patch14_448"}, "no tag.*ogvl_2pt5"),
        ({"architecture": "vit_intern300m_patch14_448."}, "no tag.*ogvl_2pt5"),
        ({"architecture": "vit_intern300m_patch14_448.v9"}, "tag that timm does not know.*ogvl_2pt5"),
        ({"architecture": "vit_intern900m.ogvl"}, "unknown to timm"),
        ({"architecture": f"hf-hub:timm/{INTERNVIT}"}, "unknown to timm"),
        ({"architecture": "vit_base_patch16_siglip_224.webli"}, "no CLS token"),
        ({"architecture": "resnet18.a1_in1k"}, "no plain vision transformer"),
        ({"architecture": "eva02_tiny_patch14_224.mim_in22k"}, "no plain vision transformer"),
        ({"image_size": 450}, "image_size 450 is no multiple of the patch size, 14"),
        ({"width": 50, "num_heads": 3}, "width 50 is no multiple of vision.num_heads, 3"),
        ({"width": 50}, "width 50 is no multiple of vision.num_heads, 16"),
        ({"num_heads": 7}, "width 1024 is no multiple of vision.num_heads, 7"),
    ],
)
def test_what_cannot_work_is_refused_in_one_line(settings: dict, message: str) -> None:
    with pytest.raises(InputError, match=message) as error:
        VisionEncoder(VisionConfig(**settings))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("shape", [(1, 3, 126, 126), (3, 112, 112), (1, 1, 112, 112)])
def test_pixels_of_another_shape_are_refused(encoder: VisionEncoder, shape: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match="pixels have shape"):
        encoder(torch.zeros(shape))


def test_a_convolutional_stem_gives_one_token_a_patch() -> None:
    config = VisionConfig(image_size=64, patch_size=16, stem="convolutional", width=96, depth=2, num_heads=4)
    encoder = VisionEncoder(config)
    assert (encoder.num_patches, encoder.num_tokens, encoder.patch_size) == (16, 17, 16)
    seen = encoder(torch.randn(2, 3, 64, 64))
    assert seen.features.shape == (2, 17, 96) and seen.keys.shape == (2, 17, 96)
    alone = encoder(torch.zeros(1, 3, 64, 64))
    batch = encoder(torch.cat([torch.zeros(1, 3, 64, 64), torch.randn(3, 3, 64, 64)]))
    torch.testing.assert_close(batch.features[:1], alone.features, rtol=1e-4, atol=1e-5)


def test_a_convolutional_stem_wants_a_power_of_two() -> None:
    with pytest.raises(InputError, match="give a power of 2"):
        VisionEncoder(VisionConfig(image_size=56, stem="convolutional", width=96, depth=2, num_heads=4))
    with pytest.raises(InputError, match="no multiple of the patch size, 16"):
        VisionEncoder(VisionConfig(image_size=56, patch_size=16, width=96, depth=2, num_heads=4))


def test_an_unfrozen_encoder_learns_and_a_frozen_one_does_not() -> None:
    encoder = VisionEncoder(VisionConfig(image_size=56, width=24, depth=2, num_heads=2))
    assert not encoder.train().training
    encoder.unfreeze()
    assert encoder.train().training and all(parameter.requires_grad for parameter in encoder.parameters())
