"""Decoding against a language model whose every probability is written down."""

import math

import pytest
import torch

from livemamba.config import DecodingConfig, ThresholdConfig
from livemamba.conversation import DIVERGENCE_OPENINGS
from livemamba.dialogue.decode import Decoder, Reading, choose, respond_probability
from livemamba.errors import InputError

VOCAB = 610
NEVER_BUT_SUCCESS = ThresholdConfig(success=0.1, mistake=2, divergence=2, advance=2)


class WrittenModel:
    """Knows sequences of token ids by heart, each with a probability; its state is what it has read."""

    def __init__(self, tokens, sentences):
        self.sentences = [(tuple(ids), p) for ids, p in sentences]
        self.tokens = tokens
        self.reads = 0

    def _logits(self, past):
        weights = torch.full((VOCAB,), 1e-9)
        for ids, p in self.sentences:
            if ids[: len(past)] == past and len(ids) > len(past):
                weights[ids[len(past)]] += p
        return (weights / weights.sum()).log()

    def read(self, ids, state, *, valid=None):
        self.reads += 1
        rows, states = [], []
        for row, past in enumerate(state):
            logits = []
            for column, token_id in enumerate(ids[row].tolist()):
                if valid is None or valid[row, column]:
                    past = (*past, token_id)
                logits.append(self._logits(past))
            rows.append(torch.stack(logits))
            states.append(past)
        return torch.stack(rows), states

    def repeat_state(self, state, rows):
        return list(state) * rows

    def state_row(self, state, row):
        return [state[row]]


def _response(tokens, kind, text, end):
    opening, rest = tokens.response(kind, text)
    return [tokens.config.response_id, *opening, *rest, end]


@pytest.fixture
def model(small_tokens):
    """Speaks with probability 0.8: success .5, mistake .3 or either divergence .1 each; over .1 of the time."""
    ids = small_tokens.config
    sentences = [
        (_response(small_tokens, "success", "You poured the egg.", ids.next_id), 0.40),
        (_response(small_tokens, "mistake", "You added salt.", ids.end_of_text_id), 0.16),
        (_response(small_tokens, "divergence", DIVERGENCE_OPENINGS[0] + " You cut.", ids.next_id), 0.10),
        (_response(small_tokens, "divergence", DIVERGENCE_OPENINGS[1], ids.end_of_text_id), 0.06),
        ([ids.response_id, ids.next_id], 0.08),
        ([ids.vision_id], 0.20),
    ]
    return WrittenModel(small_tokens, sentences)


def _decoder(model, tokens, **thresholds):
    return Decoder(model, tokens, DecodingConfig(thresholds=ThresholdConfig(**thresholds)))


def _decide(decoder):
    state = [()]
    return decoder.decide(decoder.model._logits(()), state)


def test_probabilities_of_kinds_are_those_of_the_sentences(model, small_tokens):
    reading = _decoder(model, small_tokens).reading(model._logits(()), [()])
    assert reading.respond == pytest.approx(0.8, abs=1e-4)
    expected = {"success": 0.40, "mistake": 0.16, "divergence": 0.16, "advance": 0.08}
    for kind, joint in expected.items():
        assert reading.score(kind) == pytest.approx(joint, abs=1e-3)
    assert sum(reading.kinds.values()) == pytest.approx(1)


@pytest.mark.parametrize(
    ("thresholds", "kind", "text", "ends_step"),
    [
        ({"success": 0.39}, "success", "You poured the egg.", True),
        ({"success": 0.41, "mistake": 0.15}, "mistake", "You added salt.", False),
        ({"divergence": 0.15}, "divergence", DIVERGENCE_OPENINGS[0] + " You cut.", True),
        ({"advance": 0.05}, "advance", "", True),
        ({"success": 0.39, "advance": 0.04}, "advance", "", True),  # by the larger factor: 2 against 1.03
    ],
)
def test_each_kind_is_said_once_it_reaches_its_threshold(model, small_tokens, thresholds, kind, text, ends_step):
    said, state, logits = _decide(_decoder(model, small_tokens, **thresholds))
    assert (said.kind, said.text, said.ends_step, said.cut) == (kind, text, ends_step, False)
    # The state has read the whole response, its end included, and nothing else.
    end = small_tokens.config.next_id if ends_step else small_tokens.config.end_of_text_id
    whole = [small_tokens.config.response_id, end] if kind == "advance" else _response(small_tokens, kind, text, end)
    assert state == [tuple(whole)]
    assert torch.equal(logits, model._logits(tuple(whole)))


def test_below_every_threshold_it_is_silent_and_reads_nothing(model, small_tokens):
    never = dict.fromkeys(("success", "mistake", "divergence", "advance"), 2.0)
    assert _decide(_decoder(model, small_tokens, **never)) is None
    assert model.reads == 0


def test_at_threshold_zero_it_always_speaks(small_tokens):
    ids = small_tokens.config
    hello = _response(small_tokens, "success", "You cut.", ids.next_id)
    model = WrittenModel(small_tokens, [([ids.vision_id], 1.0), (hello, 1e-7)])
    said, _, _ = _decide(_decoder(model, small_tokens, success=0.0))
    assert said.kind == "success"


def test_a_mistake_never_turns_into_a_divergence(small_tokens):
    ids = small_tokens.config
    sentences = [
        (_response(small_tokens, "divergence", DIVERGENCE_OPENINGS[0], ids.end_of_text_id), 0.9),
        (_response(small_tokens, "mistake", "You did not follow the egg.", ids.end_of_text_id), 0.1),
    ]
    model = WrittenModel(small_tokens, sentences)
    said, _, _ = _decide(_decoder(model, small_tokens, mistake=0.05, divergence=2.0, success=2.0, advance=2.0))
    assert said.kind == "mistake"
    assert said.text == "You did not follow the egg."


def test_only_legal_tokens_are_written(small_tokens):
    """Spare rows, padding, special tokens and an empty message are never chosen, however likely."""
    ids = small_tokens.config
    opening = [ids.response_id, *small_tokens.openings["success"][0]]
    word = small_tokens.encode(" You")[0]
    sentences = [([*opening, bad], 0.2) for bad in (605, ids.padding_id, ids.vision_id, ids.response_id)]
    sentences += [([*opening, ids.end_of_text_id], 0.15), ([*opening, word, ids.end_of_text_id], 0.05)]
    said, _, _ = _decide(_decoder(WrittenModel(small_tokens, sentences), small_tokens, success=0.01))
    assert said.text == "You"


def test_a_response_without_end_is_cut_and_closed(small_tokens):
    ids = small_tokens.config
    word = small_tokens.encode(" You")[0]
    endless = [ids.response_id, *small_tokens.openings["success"][0], *[word] * 100]
    model = WrittenModel(small_tokens, [(endless, 1.0)])
    decoder = Decoder(model, small_tokens, DecodingConfig(max_response_tokens=5))
    said, state, _ = _decide(decoder)
    assert said.cut and not said.ends_step
    assert said.text == "You You You You You"
    assert state[0][-1] == ids.end_of_text_id


def test_an_answer_is_free_text_and_cannot_end_a_step(small_tokens):
    ids = small_tokens.config
    text = small_tokens.encode("The egg.")
    sentences = [([ids.response_id, *text, ids.next_id], 0.6), ([ids.response_id, *text, ids.end_of_text_id], 0.4)]
    said = Decoder(WrittenModel(small_tokens, sentences), small_tokens, DecodingConfig()).answer([()])
    assert (said.kind, said.text, said.ends_step, said.confidence) == ("say", "The egg.", False, None)


def test_free_text_is_what_no_other_opening_is(model, small_tokens):
    decoder = Decoder(model, small_tokens, DecodingConfig(), kinds=("success", "say"))
    reading = decoder.reading(model._logits(()), [()])
    assert reading.kinds["success"] == pytest.approx(0.5, abs=1e-3)
    assert reading.kinds["say"] == pytest.approx(0.5, abs=1e-3)


def test_choose_prefers_the_first_of_equals_and_knows_silence():
    reading = Reading(respond=1.0, kinds={"success": 0.5, "mistake": 0.5})
    assert choose(reading, ThresholdConfig()) == "success"
    assert choose(reading, ThresholdConfig(success=0.6, mistake=0.6)) is None


def test_a_decision_that_is_no_number_is_an_error(small_tokens):
    with pytest.raises(InputError, match="not a number"):
        respond_probability(torch.full((VOCAB,), math.nan), small_tokens)


def test_a_divergence_spelled_by_other_tokens_is_one(small_tokens):
    ids = small_tokens.config
    opening = small_tokens.openings["mistake"][0]
    letters = [token for letter in " " + DIVERGENCE_OPENINGS[0] for token in small_tokens.encode(letter)]
    spelled = [ids.response_id, *opening, *letters, ids.end_of_text_id]
    model = WrittenModel(small_tokens, [(spelled, 0.9), ([ids.vision_id], 0.1)])
    response, _, _ = _decide(_decoder(model, small_tokens, mistake=0.1))
    assert (response.kind, response.text) == ("divergence", DIVERGENCE_OPENINGS[0])


def test_a_cap_before_the_first_word_leaves_an_empty_text(small_tokens):
    ids = small_tokens.config
    blank = [ids.response_id, *small_tokens.openings["success"][0], *small_tokens.encode("\n"), ids.end_of_text_id]
    model = WrittenModel(small_tokens, [(blank, 0.9), ([ids.vision_id], 0.1)])
    decoder = Decoder(model, small_tokens, DecodingConfig(thresholds=NEVER_BUT_SUCCESS, max_response_tokens=1))
    response, _, _ = _decide(decoder)
    assert (response.text, response.cut) == ("", True)
