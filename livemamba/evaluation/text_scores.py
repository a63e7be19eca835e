"""How alike two sentences are: ROUGE-L and BERTScore, made safe against empty and foreign texts.

A text without a letter or digit is empty and scores 0; equal texts score 1; nothing is ever NaN. Source: paper 5.1,
spec/pitfalls.md (E1). Both packages come with the extra `livemamba[eval]` and are imported when first needed.
"""

import importlib.util
import json
import unicodedata
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from livemamba.errors import InputError, MissingError

Pair = tuple[str, str]
"""A ground-truth text and a predicted one."""

DEFAULT_BERT = "roberta-large"
_DEFAULT_BERT_ON_HUB = "FacebookAI/roberta-large"
_DEFAULT_BERT_LAYERS = 17  # where bert_score found the best agreement with people


@lru_cache(maxsize=1 << 18)
def rouge_l(truth: str, predicted: str) -> float:
    """ROUGE-L F of two texts, 0 to 1, as the `rouge_score` package counts it, without stemming.

    Equal texts score 1 even where the package, which reads a to z and digits only, finds no word in them.

    Raises:
        MissingError: if the package isn't installed.
    """
    if is_empty(truth) or is_empty(predicted):
        return 0.0
    if truth.strip() == predicted.strip():
        return 1.0
    return float(_rouge().score(truth, predicted)["rougeL"].fmeasure)


@cache
def _rouge() -> Any:
    _check_installed("rouge_score")
    from rouge_score.rouge_scorer import RougeScorer

    return RougeScorer(["rougeL"], use_stemmer=False)


def _check_installed(package: str) -> None:
    if importlib.util.find_spec(package) is None:
        raise MissingError(f"the package {package} is not installed; pip install 'livemamba[eval]'")


def is_empty(text: str) -> bool:
    """Whether a text has neither letter nor digit."""
    return not any(character.isalnum() for character in text)


def is_foreign(text: str) -> bool:
    """Whether a text has letters of a script other than Latin, which ROUGE-L does not read."""
    return any(
        character.isalpha() and not unicodedata.name(character, "").startswith(("LATIN", "FEMININE", "MASCULINE"))
        for character in text
    )


@dataclass(frozen=True, kw_only=True)
class BertScorer:
    """BERTScore F with one model.

    Attributes:
        name: of the model or its folder.
        folder: with config, tokenizer and safetensors.
        layers: the layer whose outputs are compared.
        rescaled: whether bert_score's baseline for this model is taken off; only the default model has one.
    """

    name: str
    folder: Path
    layers: int
    rescaled: bool

    def scores(self, pairs: Sequence[Pair]) -> list[float]:
        """A value for each pair: 0 for an empty text, else F; raw values lie in 0 to 1, rescaled ones may be below 0.

        Raises:
            InputError: if the folder holds no model that bert_score can use.
        """
        full = [place for place, pair in enumerate(pairs) if not any(map(is_empty, pair))]
        values = [0.0] * len(pairs)
        if full:
            found = self._run([pairs[place] for place in full])
            for place, value in zip(full, found, strict=True):
                values[place] = value
        return values

    def _run(self, pairs: Sequence[Pair]) -> list[float]:
        baseline = {"lang": "en", "rescale_with_baseline": True, "baseline_path": _baseline()} if self.rescaled else {}
        with warnings.catch_warnings():
            # It compares models by deprecated calls of its own dependencies.
            warnings.simplefilter("ignore")
            import bert_score

            try:
                scorer = bert_score.BERTScorer(model_type=str(self.folder), num_layers=self.layers, **baseline)
            except (OSError, ValueError, AssertionError, KeyError) as error:
                raise InputError(
                    f"BERTScore model {self.name}, layer {self.layers}: {error}; give a transformers encoder's folder"
                ) from None
            _, _, f = scorer.score([predicted for _, predicted in pairs], [truth for truth, _ in pairs])
        values = [float(value) for value in f]
        assert all(value == value for value in values), "BERTScore gave NaN"
        return values


def _baseline() -> str:
    import bert_score

    return str(Path(bert_score.__file__).parent / "rescale_baseline" / "en" / f"{DEFAULT_BERT}.tsv")


def make_bert_scorer(model: str | None = None, layers: int | None = None) -> BertScorer:
    """A scorer with a local model, or with the default one, which the hub is asked for.

    Args:
        model: a folder; None for roberta-large with baseline rescaling, which the published values imply.
        layers: which layer's outputs are compared; needed for a folder.

    Raises:
        MissingError: if the package or the model can't be had.
        InputError: if a folder comes without a layer or the layer without a folder.
    """
    _check_installed("bert_score")
    if model is None:
        if layers is not None:
            raise InputError(f"--bert_layers {layers} is for a --bert_model of your own; {DEFAULT_BERT} has its own")
        from livemamba.hub import resolve_folder

        return BertScorer(
            name=DEFAULT_BERT, folder=resolve_folder(_DEFAULT_BERT_ON_HUB), layers=_DEFAULT_BERT_LAYERS, rescaled=True
        )
    folder = Path(model)
    _check_folder(folder, layers)
    assert layers is not None
    return BertScorer(name=str(model), folder=folder.resolve(), layers=layers, rescaled=False)


def _check_folder(folder: Path, layers: int | None) -> None:
    if not (folder / "config.json").is_file():
        raise MissingError(f"BERTScore model {folder} is no folder with a config.json; give a transformers encoder's")
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        deepest = int(config["num_hidden_layers"])
    except (ValueError, KeyError, TypeError):
        raise InputError(f"{folder}/config.json names no num_hidden_layers; give a transformers encoder") from None
    if layers is None or not 1 <= layers <= deepest:
        raise InputError(f"--bert_layers is {layers}; {folder} needs a layer from 1 to {deepest}")
    if "t5" in str(folder.resolve()) and "t5" not in str(config.get("model_type")):
        raise InputError(f"bert_score takes {folder.resolve()} for a T5 because of its name; move it elsewhere")


@dataclass(frozen=True, kw_only=True)
class TextScores:
    """The mean text scores of some pairs.

    Attributes:
        num_pairs: over how many.
        rouge_l: mean ROUGE-L F; None without pairs.
        bert_score: mean BERTScore F; None where it was not computed.
        bert: which model, which layer, raw or rescaled; or why it was not computed.
        notes: what a reader of the values must know.
    """

    num_pairs: int
    rouge_l: float | None
    bert_score: float | None
    bert: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class BertChoice:
    """Which BERTScore was asked for.

    Attributes:
        wanted: whether any.
        model: a folder; None for the default model.
        layers: the layer, for a folder.
    """

    wanted: bool = True
    model: str | None = None
    layers: int | None = None


def text_scores(pairs: Sequence[Pair], bert: BertChoice) -> TextScores:
    """Mean scores of ground-truth and predicted texts.

    The default BERTScore model is optional: where it can't be had, the value is None and `bert` says why.

    Raises:
        InputError: if a model of the user's own can't be used.
        MissingError: if it isn't there, or rouge_score isn't installed.
    """
    notes = []
    if empty := sum(is_empty(predicted) for _, predicted in pairs):
        notes.append(f"{empty} of {len(pairs)} true positives have no text; they score 0")
    if foreign := sum(is_foreign(truth + predicted) for truth, predicted in pairs):
        notes.append(f"{foreign} of {len(pairs)} true positives have letters that ROUGE-L does not read (not Latin)")
    rouge = [rouge_l(*pair) for pair in pairs]
    mean_bert, about = _bert_mean(pairs, bert)
    return TextScores(num_pairs=len(pairs), rouge_l=_mean(rouge), bert_score=mean_bert, bert=about, notes=tuple(notes))


def _bert_mean(pairs: Sequence[Pair], bert: BertChoice) -> tuple[float | None, str]:
    if not bert.wanted:
        return None, "not computed: not asked for"
    if bert.model is not None:
        scorer = make_bert_scorer(bert.model, bert.layers)
    elif not pairs:
        return None, "not computed: no true positives"
    else:
        try:
            scorer = make_bert_scorer(layers=bert.layers)
        except MissingError as error:
            return None, f"not computed: {error}"
    kind = "rescaled with baseline" if scorer.rescaled else "raw"
    if not pairs:
        return None, "not computed: no true positives"
    return _mean(scorer.scores(pairs)), f"{scorer.name}, layer {scorer.layers}, {kind}"


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
