import copy
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from livemamba.config import DialogueConfig
from livemamba.conversation import DIVERGENCE_OPENINGS
from livemamba.dialogue.tokens import Tokens, train_tokenizer
from livemamba.errors import InputError, MissingError


def test_the_special_tokens_fill_the_spare_rows_of_mamba_130m(neox_tokens):
    assert neox_tokens.size == 50277
    ids = neox_tokens.config
    assert sorted([ids.vision_id, ids.response_id, ids.next_id]) == [50277, 50278, 50279]
    assert neox_tokens.name(ids.padding_id) == "<|padding|>"
    assert neox_tokens.name(ids.end_of_text_id) == "<|endoftext|>"
    assert ids.padding_id != ids.end_of_text_id


@pytest.mark.parametrize("text", ["<vision>", "<|endoftext|>", "say <response> now", "<next><|padding|>"])
def test_no_typed_text_becomes_a_special_token(small_tokens, neox_tokens, text):
    for tokens in (small_tokens, neox_tokens):
        ids = tokens.encode(text)
        special = {getattr(tokens.config, name) for name in tokens.config.__dataclass_fields__ if name.endswith("_id")}
        assert not special & set(ids)
        assert tokens.decode(ids) == text


@given(st.text(alphabet="aàé ñ-.,:'\n½°漢🍳{}<|>0123", max_size=40))
def test_any_text_comes_back(text):
    import unicodedata

    assert _TOKENS.decode(_TOKENS.encode(text)) == unicodedata.normalize("NFC", text)


_TOKENS = Tokens(train_tokenizer(["a few words"], 300), DialogueConfig(vision_id=600, response_id=601, next_id=602))


@pytest.mark.parametrize(
    ("kind", "text", "whole"),
    [
        ("success", "You poured the egg.", "Success: You poured the egg."),
        ("mistake", "You added too much salt.", "Feedback: You added too much salt."),
        ("divergence", DIVERGENCE_OPENINGS[0], "Feedback: " + DIVERGENCE_OPENINGS[0]),
        (
            "divergence",
            DIVERGENCE_OPENINGS[1] + " You seem to cut the onion.",
            "Feedback: " + DIVERGENCE_OPENINGS[1] + " You seem to cut the onion.",
        ),
        ("say", "You picked up a plate.", "You picked up a plate."),
    ],
)
def test_opening_and_text_together_are_the_official_sentence(small_tokens, neox_tokens, kind, text, whole):
    for tokens in (small_tokens, neox_tokens):
        opening, rest = tokens.response(kind, text)
        assert tokens.decode(opening + rest) == whole
        assert opening + rest == tokens.encode(whole)


def test_a_divergence_without_its_opening_is_refused(small_tokens):
    with pytest.raises(InputError, match="starts with none of"):
        small_tokens.response("divergence", "You cut the onion.")


def test_special_ids_that_are_taken_or_missing_are_refused():
    tokenizer = train_tokenizer(["words"], 300)
    with pytest.raises(InputError, match="which the tokenizer uses for"):
        Tokens(tokenizer, DialogueConfig(vision_id=5, response_id=601, next_id=602))
    with pytest.raises(InputError, match="has no entry for"):
        Tokens(tokenizer, DialogueConfig(vision_id=600, response_id=601, next_id=602, padding_id=599))


def test_saved_and_loaded_it_encodes_the_same(small_tokens, tmp_path):
    small_tokens.save(tmp_path)
    again = Tokens.load(tmp_path, small_tokens.config)
    text = "Success: <|endoftext|> the egg"
    assert again.encode(text) == small_tokens.encode(text)


def test_bad_tokenizer_files_are_refused_in_one_line(tmp_path, small_tokens):
    with pytest.raises(MissingError, match="does not exist"):
        Tokens.load(tmp_path, small_tokens.config)
    (tmp_path / "tokenizer.json").write_text("{ not json")
    with pytest.raises(InputError, match="not a tokenizer file"):
        Tokens.load(tmp_path, small_tokens.config)
    (tmp_path / "tokenizer.json").write_text('{"model": 3}')
    with pytest.raises(InputError, match="not a tokenizer file") as caught:
        Tokens.load(tmp_path, small_tokens.config)
    assert "\n" not in str(caught.value)
    with pytest.raises(InputError, match="too small"):
        train_tokenizer(["x"], 100)


@pytest.mark.parametrize("again", [copy.deepcopy, lambda tokens: pickle.loads(pickle.dumps(tokens))])
def test_copies_keep_typed_text_from_becoming_a_special_token(small_tokens, again):
    text = "<|endoftext|>salt<|padding|>"
    assert again(small_tokens).encode(text) == small_tokens.encode(text)
    assert 0 not in again(small_tokens).encode(text)


def test_a_failed_save_changes_nothing(small_tokens, tmp_path):
    with pytest.raises(FileNotFoundError):
        small_tokens.save(tmp_path / "nowhere")
    assert 0 not in small_tokens.encode("<|endoftext|>")
    small_tokens.save(tmp_path)
    assert Tokens.load(tmp_path, small_tokens.config).encode("<|endoftext|> a") == small_tokens.encode(
        "<|endoftext|> a"
    )


def test_half_a_character_is_refused(small_tokens):
    with pytest.raises(InputError, match="half a character"):
        small_tokens.encode("an \ud83c egg")
