import pytest
from tokenizers import Tokenizer

from livemamba.config import DialogueConfig
from livemamba.dialogue.tokens import Tokens, train_tokenizer

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
