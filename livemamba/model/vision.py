"""The vision encoder: InternViT through timm, with what token pruning needs beside its features.

Shapes: B frames, S side of the picture in pixels, N tokens (CLS first, then patches row by row),
W token width, H attention heads, D width of a head.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Self

import timm
import torch
from timm.layers import HybridEmbed
from timm.models.vision_transformer import Attention, VisionTransformer
from timm.models.vision_transformer_hybrid import ConvStem
from torch import Tensor, nn

from livemamba.config import VisionConfig
from livemamba.errors import InputError


@dataclass(frozen=True, kw_only=True, eq=False)
class VisionTokens:
    """One encoded batch of frames.

    Attributes:
        features: (B, N, W), the last block's output.
        cls_attention: (B, N) float32, how much the CLS token attends to each token in the second-last
            block, mean over heads; a row sums to 1. Without gradient.
        keys: (B, N, W), that block's attention keys, heads side by side. Without gradient.
    """

    features: Tensor
    cls_attention: Tensor
    keys: Tensor


class VisionEncoder(nn.Module):
    """InternViT, frozen by default (paper 4.1; spec/model.md).

    Weights: `vit` is timm's own module under timm's own parameter names, built without a classifier, so
    a file that timm saved loads into it strictly by name: `load_strictly(encoder.vit, tensors, ...)`. The
    InternViT releases have no classifier (timm gives them num_classes=0) and no final norm. A file saved
    from a model with a classifier also holds `head.*`; these names are unexpected here and a strict load
    refuses them by name, so whoever wants such a backbone takes them out beforehand. Position embeddings
    of another image size differ in shape and are refused too, not resampled.

    Args:
        config: architecture, image size and, for small models, width, depth and heads.

    Attributes:
        vit: timm's vision transformer.
        frozen: parameters take no gradient and the module stays in evaluation mode.
        image_size: S.
        patch_size: side of a patch in pixels.
        grid_side: patches along each side of the picture.
        num_patches: grid_side squared.
        num_tokens: N, patches and CLS (and registers, where an architecture has them).
        width: W.

    Raises:
        InputError: for an architecture without a tag, unknown to timm, not a plain vision transformer or
            without CLS token; an image size that is no multiple of the patch size; a width that the heads
            do not divide.
    """

    def __init__(self, config: VisionConfig) -> None:
        super().__init__()
        own = _architecture(config.architecture)
        _check_geometry(config, own)
        patch_size = config.patch_size or own.patch_size
        overrides = {
            "embed_dim": config.width,
            "depth": config.depth,
            "num_heads": config.num_heads,
            "patch_size": config.patch_size,
            "embed_layer": _convolutional_embedding() if config.stem == "convolutional" else None,
        }
        self.vit: Any = timm.create_model(
            config.architecture,
            pretrained=False,
            num_classes=0,
            img_size=config.image_size,
            **{name: value for name, value in overrides.items() if value is not None},
        )
        self.frozen = config.frozen
        self.image_size = config.image_size
        self.patch_size = patch_size
        self.grid_side = config.image_size // patch_size
        self.num_patches = self.grid_side**2
        self.num_tokens = self.num_patches + int(self.vit.num_prefix_tokens)
        self.width = int(self.vit.embed_dim)
        if self.frozen:
            self.requires_grad_(False)
            self.eval()

    @property
    def mean(self) -> tuple[float, ...]:
        """Per-channel mean that the weights were trained with, for pixels in 0..1 (timm's pretrained_cfg)."""
        return tuple(float(value) for value in self.vit.pretrained_cfg["mean"])

    @property
    def std(self) -> tuple[float, ...]:
        """Per-channel standard deviation that goes with `mean`."""
        return tuple(float(value) for value in self.vit.pretrained_cfg["std"])

    def unfreeze(self) -> None:
        """Let it be trained, whatever the config says (stage 0 of a model from scratch)."""
        self.frozen = False
        self.requires_grad_(True)

    def train(self, mode: bool = True) -> Self:
        """As `nn.Module.train`, but a frozen encoder stays in evaluation mode."""
        return super().train(mode and not self.frozen)

    def forward(self, pixels: Tensor) -> VisionTokens:
        """Encode frames.

        Args:
            pixels: (B, 3, S, S), normalised by `mean` and `std` (livemamba.video.preprocess does it); floats,
                which are converted to the weights' precision.

        Raises:
            InputError: if the pixels have another shape or are no floats. timm would quietly resample its position
                embeddings to another size.
        """
        expected = (3, self.image_size, self.image_size)
        if pixels.ndim != 4 or tuple(pixels.shape[1:]) != expected:
            raise InputError(f"pixels have shape {tuple(pixels.shape)}; the encoder takes (frames, *{expected})")
        if not pixels.is_floating_point():
            raise InputError(f"pixels are {pixels.dtype}; the encoder takes floats, normalised by its mean and std")
        vit = self.vit
        pixels = pixels.to(vit.cls_token.dtype)
        x = vit.norm_pre(vit.patch_drop(vit._pos_embed(vit.patch_embed(pixels))))
        for block in vit.blocks[:-2]:
            x = block(x)
        cls_attention, keys = _cls_row_and_keys(vit.blocks[-2], x)
        for block in vit.blocks[-2:]:
            x = block(x)
        return VisionTokens(features=vit.norm(x), cls_attention=cls_attention, keys=keys)


@torch.no_grad()
def _cls_row_and_keys(block: Any, x: Tensor) -> tuple[Tensor, Tensor]:
    """The CLS row of a block's attention (B, N), mean over heads, and its keys (B, N, H * D).

    Fused attention never yields its weights, and pruning needs one row of N only: so that row is made
    here, in N * D, beside whatever kernel the block itself runs. The qkv layer is called as a module
    (0.6% of a frame): reading its weight would go past an adapter or a quantised layer in its place.

    Args:
        block: a timm block with plain attention.
        x: (B, N, W), the block's input.
    """
    attn = block.attn
    qkv = attn.qkv(block.norm1(x)).unflatten(-1, (3, attn.num_heads, attn.head_dim))  # (B, N, 3, H, D)
    query = attn.q_norm(qkv[:, :1, 0])  # (B, 1, H, D)
    keys = attn.k_norm(qkv[:, :, 1])  # (B, N, H, D)
    # A product and a sum in float32, not a matmul: autocast would round the scores to bfloat16 and make ties.
    logits = (query.float() * attn.scale * keys.float()).sum(-1)  # (B, N, H)
    return logits.softmax(dim=1).mean(-1), keys.flatten(2)


def _convolutional_embedding() -> Callable[..., HybridEmbed]:
    """What timm builds in place of linear patches: convolutions of stride 2 until a patch is a pixel.

    Early convolutions help transformers see better (Xiao et al. 2021); timm's own stem, batch norms included.
    """

    def make(
        *, img_size: int, patch_size: int, in_chans: int, embed_dim: int, output_fmt: str | None = None, **_: Any
    ) -> HybridEmbed:
        halvings = patch_size.bit_length() - 1
        channels = tuple(max(32, embed_dim >> place) for place in reversed(range(1, halvings)))
        stem = ConvStem(in_chans, halvings, channels=(*channels, embed_dim), stride=(2,) * halvings, act_layer=nn.ReLU)
        stem.num_features = embed_dim  # what HybridEmbed asks its backbone for
        grid = img_size // patch_size
        return HybridEmbed(stem, img_size, 1, feature_size=grid, embed_dim=embed_dim, proj=False, output_fmt=output_fmt)

    return make


@dataclass(frozen=True, kw_only=True)
class _Architecture:
    width: int
    num_heads: int
    patch_size: int


@cache
def _architecture(name: str) -> _Architecture:
    """An architecture's own dimensions, read from timm's model without making its weights."""
    _check_name(name)
    with torch.device("meta"):
        vit = timm.create_model(name, pretrained=False, num_classes=0)
    if type(vit) is not VisionTransformer or not all(isinstance(_attention(block), Attention) for block in vit.blocks):
        raise InputError(
            f"vision.architecture {name!r} is no plain vision transformer, whose attention token pruning "
            "can read; take an InternViT"
        )
    if not vit.has_class_token:
        raise InputError(
            f"vision.architecture {name!r} has no CLS token; token pruning keeps what the CLS token "
            "attends to, so take an architecture with one, such as an InternViT"
        )
    return _Architecture(
        width=vit.embed_dim, num_heads=vit.blocks[0].attn.num_heads, patch_size=vit.patch_embed.patch_size[0]
    )


def _attention(block: nn.Module) -> Any:
    return getattr(block, "attn", None)


def _check_name(name: str) -> None:
    architecture, _, tag = name.partition(".")
    if not timm.is_model(architecture):
        raise InputError(f"vision.architecture {name!r} is unknown to timm {timm.__version__}; see timm.list_models()")
    known = ", ".join(timm.list_pretrained(f"{architecture}.*")) or "none with weights"
    if not tag:
        raise InputError(f"vision.architecture {name!r} has no tag, and timm would pick a release; timm knows: {known}")
    try:
        timm.get_pretrained_cfg(name)
    except RuntimeError:
        raise InputError(f"vision.architecture {name!r} has a tag that timm does not know; it knows: {known}") from None


def _check_geometry(config: VisionConfig, own: _Architecture) -> None:
    patch_size = config.patch_size or own.patch_size
    if config.image_size % patch_size:
        raise InputError(f"vision.image_size {config.image_size} is no multiple of the patch size, {patch_size}")
    if config.stem == "convolutional" and patch_size & (patch_size - 1):
        raise InputError(
            f"vision.patch_size is {patch_size}; a convolutional stem halves the picture again and again, so give a "
            "power of 2, such as 16"
        )
    width, num_heads = config.width or own.width, config.num_heads or own.num_heads
    if width % num_heads:
        raise InputError(f"vision.width {width} is no multiple of vision.num_heads, {num_heads}; change one of them")
