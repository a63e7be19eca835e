"""What is shipped in checkpoints/ loads, is as small as promised, and says where it comes from."""

import re
import warnings
from pathlib import Path

import pytest
import torch

from livemamba.config import LiveMambaConfig, load_config
from livemamba.model.livemamba import LiveMamba
from livemamba.training.metrics import read_metrics

ROOT = Path(__file__).parent.parent
SHIPPED = sorted(path.parent for path in (ROOT / "checkpoints").glob("*/config.json"))
MOST_BYTES = 24 * 1024**2


def test_something_is_shipped():
    assert SHIPPED


@pytest.mark.parametrize("folder", SHIPPED, ids=lambda folder: folder.name)
def test_a_checkpoint_loads_and_every_part_of_it_was_trained(folder):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        live = LiveMamba.from_pretrained(folder)
    assert live.random_parts == ()
    config = load_config(LiveMambaConfig, ROOT / "configs" / "model" / "simkitchen_tiny.yaml")
    assert live.config.backbone == config.backbone and live.config.vision == config.vision
    size = live.config.vision.image_size
    with torch.inference_mode():
        frames = live.encode_frames(torch.randn(2, 3, size, size, generator=torch.Generator().manual_seed(0)))
    assert torch.isfinite(frames).all() and (frames[0] - frames[1]).abs().max() > 1e-3
    assert sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) <= MOST_BYTES


@pytest.mark.parametrize("folder", SHIPPED, ids=lambda folder: folder.name)
def test_its_readme_and_its_record_are_there(folder):
    readme = (folder / "README.md").read_text(encoding="utf-8")
    for link in re.findall(r"\]\(([^)#]+)\)", readme):
        assert (folder / link).exists(), link
    records = sorted((folder / "record").glob("*.jsonl"))
    assert records and all(read_metrics(record)[-1]["step"] > 0 for record in records)
