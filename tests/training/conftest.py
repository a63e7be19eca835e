import warnings

import pytest

from livemamba.config import DialogueConfig, LiveMambaConfig, MambaConfig, PruningConfig, QFormerConfig, VisionConfig
from livemamba.data.simkitchen import read_step_clips
from livemamba.dialogue.tokens import Tokens, train_tokenizer

IDS = DialogueConfig(
    vision_id=600,
    response_id=601,
    next_id=602,
    prompt_steps="next",
    prompts={"cooking": "{recipe}. Then {steps} {instruction}\n"},
)
CONFIG = LiveMambaConfig(
    vision=VisionConfig(image_size=32, patch_size=8, stem="convolutional", width=96, depth=2, num_heads=4),
    pruning=PruningConfig(keep=47, dominant=9),
    qformer=QFormerConfig(
        num_queries=2, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=24
    ),
    backbone=MambaConfig(
        vocab_size=608, hidden_size=24, num_hidden_layers=2, intermediate_size=48, state_size=4, time_step_rank=4
    ),
    dialogue=IDS,
)


@pytest.fixture(scope="session")
def kitchen_tokens(tiny_corpus) -> Tokens:
    """A tokenizer for what is said in the tiny corpus."""
    clips = read_step_clips(tiny_corpus, "train")
    texts = [text for clip in clips for text in clip.conversation(IDS).texts]
    return Tokens(train_tokenizer(texts, 600), IDS)


@pytest.fixture
def make_live(kitchen_tokens):
    """The network at its smallest, for the tiny corpus; equal for equal seeds."""
    from livemamba.model.livemamba import LiveMamba

    return lambda seed=1: LiveMamba(CONFIG, kitchen_tokens, seed=seed).eval()


@pytest.fixture
def live(make_live):
    return make_live()


@pytest.fixture
def init(tmp_path, live):
    """A checkpoint to start from."""
    return live.save_pretrained(tmp_path / "init")


@pytest.fixture(autouse=True)
def _random_weights_are_fine():
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*RANDOM WEIGHTS.*")
        yield
