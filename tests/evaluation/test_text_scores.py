import json
import math
from pathlib import Path

import pytest

from livemamba.errors import InputError, MissingError
from livemamba.evaluation import text_scores as module
from livemamba.evaluation.text_scores import BertChoice, is_foreign, make_bert_scorer, rouge_l, text_scores

NO_BERT = BertChoice(wanted=False)


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    """A small BERT with random weights and a tokenizer of single characters, saved as transformers saves them."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    folder = tmp_path_factory.mktemp("encoder")
    letters = [chr(code) for code in range(33, 127)]
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *letters, *(f"##{letter}" for letter in letters)]
    vocabulary = {word: place for place, word in enumerate(words)}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        model_max_length=128,
    ).save_pretrained(folder)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        config = BertConfig(
            vocab_size=len(words),
            hidden_size=32,
            num_hidden_layers=6,
            num_attention_heads=4,
            intermediate_size=64,
            max_position_embeddings=128,
            initializer_range=0.3,
        )
        BertModel(config).save_pretrained(folder)
    return folder


def _by_hand(folder, layer, truth, predicted):
    """BERTScore F from its definition: each token's best cosine on the other side, averaged.

    As in the package, [CLS] and [SEP] can be a best match but are not averaged over.
    """
    import torch
    from transformers import AutoModel, AutoTokenizer

    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()
    sides = []
    for text in (predicted, truth):
        with torch.no_grad():
            hidden = model(**tokenizer(text, return_tensors="pt"), output_hidden_states=True).hidden_states[layer]
        sides.append(torch.nn.functional.normalize(hidden[0], dim=-1))
    cosines = sides[0] @ sides[1].T
    precision = float(cosines.max(1).values[1:-1].mean())
    recall = float(cosines.max(0).values[1:-1].mean())
    return 2 * precision * recall / (precision + recall)


@pytest.mark.parametrize(
    ("truth", "predicted", "expected"),
    [
        # Longest common subsequence by hand: P = lcs / predicted words, R = lcs / true words, F = 2PR / (P + R).
        ("You added too much salt.", "You added too much sugar.", 4 / 5),
        ("You added salt", "Salt you added", 2 / 3),
        ("Chop 1 scallion", "Now chop 1 scallion.", 6 / 7),
        ("Stir", "Pour", 0),
        ("Stir", "", 0),
        ("", "Stir", 0),
        ("", "", 0),
        ("Stir", "...", 0),
        ("Stir.", "stir", 1),
        ("  Stir.", "Stir.", 1),
        ("Sauté the onions", "Sauté the onions", 1),
        ("洋葱", "洋葱", 1),
    ],
)
def test_rouge_l(truth, predicted, expected):
    assert rouge_l(truth, predicted) == pytest.approx(expected)


def test_rouge_l_does_not_depend_on_the_side():
    assert rouge_l("Pour the water slowly", "Pour water") == rouge_l("Pour water", "Pour the water slowly")


@pytest.mark.parametrize(
    ("text", "foreign"),
    [("Sauté ½ ñ ß", False), ("切洋葱", True), ("Нарежьте", True), ("20 % at 5 °C", False), ("", False)],
)
def test_scripts_that_rouge_does_not_read_are_known(text, foreign):
    assert is_foreign(text) == foreign


def test_means_come_with_what_a_reader_must_know():
    scores = text_scores([("Stir", "Stir"), ("Stir", "…"), ("Нарежьте лук", "Нарежьте")], NO_BERT)
    assert scores.rouge_l == pytest.approx(1 / 3)
    assert scores.num_pairs == 3
    assert scores.bert_score is None and scores.bert == "not computed: not asked for"
    assert [note.split(" true")[0] for note in scores.notes] == ["1 of 3", "1 of 3"]
    assert "no text" in scores.notes[0] and "not Latin" in scores.notes[1]


def test_no_pairs_give_no_value_instead_of_nan():
    scores = text_scores([], BertChoice())
    assert (scores.rouge_l, scores.bert_score, scores.bert) == (None, None, "not computed: no true positives")


def test_a_default_model_that_cannot_be_had_is_named_and_not_silent(monkeypatch):
    def offline(name):
        raise MissingError(f"no folder {name} here, and the hub gives no {name}: offline")

    monkeypatch.setattr("livemamba.hub.resolve_folder", offline)
    scores = text_scores([("Stir", "Stir")], BertChoice())
    assert scores.rouge_l == 1
    assert scores.bert_score is None
    assert scores.bert.startswith("not computed: no folder FacebookAI/roberta-large here")


def test_bert_score_with_a_local_folder(encoder):
    scorer = make_bert_scorer(str(encoder), 6)
    pairs = [
        ("You chopped the onion.", "You chopped the onion."),
        ("You chopped the onion.", "The onion was cut by you."),
        ("You chopped the onion.", "The train to Paris is late."),
        ("You chopped the onion.", ""),
        ("You chopped the onion.", "…"),
    ]
    same, near, far, empty, blank = scorer.scores(pairs)
    assert same == pytest.approx(1, abs=1e-5)
    for value, pair in ((near, pairs[1]), (far, pairs[2])):
        assert value == pytest.approx(_by_hand(encoder, 6, *pair), abs=1e-4)
        assert 0 < value < 1
    assert empty == blank == 0
    assert scorer.scores(pairs[1:2])[0] == pytest.approx(near, abs=1e-5)  # a pair alone
    assert scorer.scores([("", "")]) == [0]
    assert all(math.isfinite(value) for value in scorer.scores([("切洋葱", "煮水"), ("é", "à")]))


def test_raw_values_are_called_raw(encoder):
    scores = text_scores([("Stir it.", "Stir it.")], BertChoice(model=str(encoder), layers=4))
    assert scores.bert_score == pytest.approx(1, abs=1e-5)
    assert scores.bert == f"{encoder}, layer 4, raw"


def test_the_layer_makes_a_difference(encoder):
    pair = [("You chopped the onion.", "You cut the onion.")]
    first, last = (make_bert_scorer(str(encoder), layer).scores(pair)[0] for layer in (1, 6))
    assert abs(first - last) > 1e-3


def test_the_default_model_is_rescaled_by_the_packages_own_baseline(encoder, monkeypatch):
    monkeypatch.setattr("livemamba.hub.resolve_folder", lambda name: encoder)
    monkeypatch.setattr(module, "_DEFAULT_BERT_LAYERS", 6)
    pair = [("You chopped the onion.", "The train to Paris is late.")]
    raw = make_bert_scorer(str(encoder), 6).scores(pair)[0]
    # The baseline's row of layer 6, column F.
    import bert_score

    table = Path(bert_score.__file__).parent / "rescale_baseline" / "en" / "roberta-large.tsv"
    baseline = float(table.read_text().splitlines()[7].split(",")[3])
    scores = text_scores(pair, BertChoice())
    assert scores.bert_score == pytest.approx((raw - baseline) / (1 - baseline), abs=1e-5)
    assert scores.bert == "roberta-large, layer 6, rescaled with baseline"


@pytest.mark.parametrize(
    ("config", "layers", "what"),
    [(None, 2, "no folder with a config.json"), ("{}", 2, "num_hidden_layers"), ("nonsense", 2, "num_hidden_layers")]
    + [('{"num_hidden_layers": 3}', layers, "from 1 to 3") for layers in (None, 0, 4)],
)
def test_a_folder_that_will_not_do_is_refused_in_one_line(tmp_path, config, layers, what):
    if config is not None:
        (tmp_path / "config.json").write_text(config)
    with pytest.raises((InputError, MissingError), match=what) as caught:
        text_scores([("Stir", "Stir")], BertChoice(model=str(tmp_path), layers=layers))
    assert "\n" not in str(caught.value)


def test_a_folder_without_weights_is_refused(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "bert", "num_hidden_layers": 2}))
    with pytest.raises(InputError, match="layer 2"):
        text_scores([("Stir", "Stir")], BertChoice(model=str(tmp_path), layers=2))


def test_a_layer_without_a_folder_is_refused():
    with pytest.raises(InputError, match="bert_layers 5"):
        text_scores([("Stir", "Stir")], BertChoice(layers=5))
