"""Fixtures that every room's tests share."""

import os
from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer

from livemamba.config import DialogueConfig, LiveMambaConfig, MambaConfig, PruningConfig, QFormerConfig, VisionConfig
from livemamba.dialogue.tokens import Tokens, train_tokenizer
from livemamba.ticks import Frame


@pytest.fixture(scope="session")
def test_data() -> Path:
    """The folder with real annotations, clips and the GPT-NeoX tokenizer; skips where there is none."""
    folder = os.environ.get("LIVEMAMBA_TEST_DATA")
    if not folder:
        pytest.skip("LIVEMAMBA_TEST_DATA names no folder with real clips and annotations")
    path = Path(folder).resolve()
    if not path.is_dir():
        pytest.fail(f"LIVEMAMBA_TEST_DATA is {folder!r}, which is no folder")
    return path


CORPUS = [
    "Success: You poured the egg into the cup correctly.",
    "Feedback: You did not follow the instruction. You cut the onion instead.",
    "Feedback: You are not following the instruction. You seem to add too much salt.",
    "Now chop one scallion. You added two spoons of sugar instead of one.",
] * 3

SMALL_IDS = DialogueConfig(vision_id=600, response_id=601, next_id=602)


@pytest.fixture(scope="session")
def small_tokens() -> Tokens:
    """A tokenizer of some hundred entries, trained on a few sentences."""
    return Tokens(train_tokenizer(CORPUS, 500), SMALL_IDS)


@pytest.fixture(scope="session")
def neox_tokens(test_data) -> Tokens:
    """Mamba-130M's own tokenizer."""
    file = test_data / "tokenizer" / "gpt-neox-20b" / "tokenizer.json"
    return Tokens(Tokenizer.from_file(str(file)), DialogueConfig())


SMALL_CONFIG = LiveMambaConfig(
    vision=VisionConfig(image_size=56, width=24, depth=2, num_heads=2),
    pruning=PruningConfig(keep=12, dominant=9),
    qformer=QFormerConfig(
        num_queries=3, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=24
    ),
    backbone=MambaConfig(
        vocab_size=608, hidden_size=32, num_hidden_layers=3, intermediate_size=64, state_size=8, time_step_rank=4
    ),
    dialogue=SMALL_IDS,
)


@pytest.fixture
def small_model(small_tokens):
    """The whole network at its smallest, random weights, in evaluation mode; a new one for each test."""
    from livemamba.model.livemamba import LiveMamba  # not for tests that need no torch

    return LiveMamba(SMALL_CONFIG, small_tokens, seed=1).eval()


@pytest.fixture
def make_frames():
    """Frames of textured noise that differ from tick to tick; the same for the same seed."""

    def make(count: int, *, first_tick: int = 0, seed: int = 0, height: int = 40, width: int = 64) -> list[Frame]:
        random = np.random.default_rng(seed)
        return [
            Frame(tick=tick, time_s=tick / 2, pixels=random.integers(0, 256, (height, width, 3), dtype=np.uint8))
            for tick in range(first_tick, first_tick + count)
        ]

    return make


@pytest.fixture(scope="session")
def tiny_corpus(tmp_path_factory) -> Path:
    """A simulated corpus of varied recipes with videos of 32 pixels and the world's states."""
    from livemamba.simkitchen.corpus import CorpusSettings
    from livemamba.simkitchen.writer import write_corpus

    folder = tmp_path_factory.mktemp("corpora") / "tiny"
    write_corpus(folder, CorpusSettings(episodes=8, seed=3, varied=True), size=32, fps=2, with_states=True)
    return folder
