"""Preprocessing against Pillow's bicubic resize; one frame gives the same bits everywhere."""

import numpy as np
import pytest
import torch
from PIL import Image

from livemamba.errors import InputError
from livemamba.video.preprocess import preprocess, preprocess_key

PLAIN = {"mean": (0.0, 0.0, 0.0), "std": (1.0, 1.0, 1.0)}
INTERNVIT = {"mean": (0.485, 0.456, 0.406), "std": (0.229, 0.224, 0.225)}


def photo(height: int, width: int, seed: int = 0) -> np.ndarray:
    """Smooth shades, hard edges and noise."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0:height, 0:width]
    shade = 127 + 100 * np.sin(x / 17 + seed) * np.cos(y / 23)
    picture = np.stack([shade, 255 - shade, (x * 255 / width)], axis=-1)
    picture[height // 4 : height // 2, width // 4 : width // 2] = (255, 0, 0)
    return np.clip(picture + rng.normal(0, 12, picture.shape), 0, 255).astype(np.uint8)


SIZES = [(480, 640), (1080, 607), (90, 60), (50, 300), (112, 112), (1, 1)]


@pytest.mark.parametrize(("height", "width"), SIZES)
def test_pixels_are_pillows_bicubic_in_float(height: int, width: int) -> None:
    frame = photo(height, width)
    channels = [Image.fromarray(frame[..., c].astype(np.float32)) for c in range(3)]
    resized = [np.array(channel.resize((112, 112), Image.Resampling.BICUBIC)) for channel in channels]
    expected = torch.from_numpy(np.stack(resized).clip(0, 255)) / 255
    (out,) = preprocess([frame], size=112, **PLAIN)
    torch.testing.assert_close(out, expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize(("height", "width"), SIZES)
def test_pixels_are_pillows_8_bit_picture_but_for_its_rounding(height: int, width: int) -> None:
    # Pillow rounds to whole levels and cuts overshoot after each of its two passes: two levels, and beside
    # the few hard corners that overshoot in both directions more.
    frame = photo(height, width)
    pillow = Image.fromarray(frame).resize((112, 112), Image.Resampling.BICUBIC)
    expected = torch.from_numpy(np.array(pillow)).permute(2, 0, 1) / 255
    (out,) = preprocess([frame], size=112, **PLAIN)
    off = (out - expected).abs() * 255
    assert off.mean() < 0.5
    assert (off > 2).float().mean() < 0.002


def test_normalised_by_channel_in_rgb_order() -> None:
    red = np.zeros((30, 40, 3), np.uint8)
    red[..., 0] = 255
    out = preprocess([red], size=28, **INTERNVIT)
    assert out.shape == (1, 3, 28, 28)
    assert out.dtype == torch.float32
    expected = torch.tensor([(1 - 0.485) / 0.229, -0.456 / 0.224, -0.406 / 0.225]).view(3, 1, 1).expand(3, 28, 28)
    torch.testing.assert_close(out[0], expected)


def test_overshoot_at_an_edge_is_cut() -> None:
    edge = np.zeros((8, 8, 3), np.uint8)
    edge[:, 4:] = 255
    raw = torch.from_numpy(edge).permute(2, 0, 1).float().unsqueeze(0) / 255
    uncut = torch.nn.functional.interpolate(raw, size=(56, 56), mode="bicubic", antialias=True)
    assert uncut.min() < -0.01, "the picture has no overshoot to cut"
    assert uncut.max() > 1.01, "the picture has no overshoot to cut"
    out = preprocess([edge], size=56, **PLAIN)
    assert out.min() == 0
    assert out.max() == 1


def test_fine_stripes_become_grey_not_moire() -> None:
    stripes = np.zeros((448, 448, 3), np.uint8)
    stripes[:, ::2] = 255
    out = preprocess([stripes], size=56, **PLAIN)[..., 2:-2]
    torch.testing.assert_close(out, torch.full_like(out, 0.5), atol=0.01, rtol=0)


def test_a_frame_of_the_right_size_is_left_alone() -> None:
    frame = photo(112, 112)
    (out,) = preprocess([frame], size=112, **PLAIN)
    torch.testing.assert_close(out, torch.from_numpy(frame).permute(2, 0, 1) / 255, atol=1e-6, rtol=0)


def test_batch_is_single_to_the_bit_also_with_mixed_sizes() -> None:
    frames = [photo(120, 160, 1), photo(120, 160, 2), photo(333, 77, 3), photo(20, 30, 4)]
    batch = preprocess(frames, size=56, **INTERNVIT)
    assert batch.shape == (4, 3, 56, 56)
    for frame, together in zip(frames, batch, strict=True):
        assert torch.equal(preprocess([frame], size=56, **INTERNVIT)[0], together)
    assert torch.equal(preprocess(frames, size=56, **INTERNVIT), batch)


def test_layout_in_memory_makes_no_difference() -> None:
    frame = photo(120, 160)
    expected = preprocess([frame], size=56, **INTERNVIT)
    read_only = frame.copy()
    read_only.setflags(write=False)
    bgr_turned_round = np.ascontiguousarray(frame[..., ::-1])[..., ::-1]
    columns_first = np.asfortranarray(frame)
    for same in (read_only, bgr_turned_round, columns_first):
        assert torch.equal(preprocess([same], size=56, **INTERNVIT), expected)
    assert np.array_equal(read_only, frame)


@pytest.mark.parametrize(
    "not_rgb",
    [
        np.zeros((8, 8), np.uint8),
        np.zeros((8, 8, 4), np.uint8),
        np.zeros((0, 8, 3), np.uint8),
        np.zeros((8, 8, 3), np.float32),
        torch.zeros(8, 8, 3),
    ],
)
def test_what_is_no_rgb_picture_is_refused(not_rgb) -> None:
    with pytest.raises(InputError, match="frame pixels"):
        preprocess([photo(8, 8), not_rgb], size=28, **PLAIN)


def test_no_frames_are_refused() -> None:
    with pytest.raises(InputError, match="no frames"):
        preprocess([], size=28, **PLAIN)


@pytest.mark.parametrize(
    "settings",
    [
        {"size": 0},
        {"mean": (0.5, 0.5)},
        {"mean": (0.5, 0.5, float("nan"))},
        {"std": (0.5, 0.5, 0.0)},
        {"std": (0.5, 0.5, 0.5, 0.5)},
    ],
)
def test_settings_that_make_no_sense_are_refused(settings: dict) -> None:
    settings = {"size": 28, **INTERNVIT, **settings}
    with pytest.raises(InputError, match="preprocessing"):
        preprocess([photo(8, 8)], **settings)
    with pytest.raises(InputError, match="preprocessing"):
        preprocess_key(**settings)


def test_the_key_is_this_text_and_holds_every_setting() -> None:
    # Written into feature caches: a change here makes every existing cache stale.
    key = preprocess_key(448, **INTERNVIT)
    assert key == "squash bicubic antialias v1 size=448 mean=0.485,0.456,0.406 std=0.229,0.224,0.225"
    assert preprocess_key(448, list(INTERNVIT["mean"]), np.array(INTERNVIT["std"])) == key
    others = [
        preprocess_key(112, **INTERNVIT),
        preprocess_key(448, INTERNVIT["mean"], (0.229, 0.224, 0.2250001)),
        preprocess_key(448, (0.456, 0.485, 0.406), INTERNVIT["std"]),
    ]
    assert len({key, *others}) == 4
