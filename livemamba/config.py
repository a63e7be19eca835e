"""Typed configuration: one dataclass per part, a sentence per field, strict reading and writing. No torch.

YAML holds values only. An unknown key is an error that names the nearest known one; a value of the wrong
type or out of range is an error that names the field, the value and the rule. The defaults are the
paper's model (spec/model.md); `configs/model/` has it and the small one for CPUs written out.
"""

import difflib
import json
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import yaml
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from livemamba.errors import InputError
from livemamba.yaml_files import read_yaml

_STRICT = ConfigDict(extra="forbid", strict=True)

# What no model comes near: a slip of the keyboard is refused before it fills the memory.
Positive = Annotated[int, Field(gt=0, le=2**24)]
NumLayers = Annotated[int, Field(gt=0, le=1000)]
Probability = Annotated[float, Field(ge=0, le=1)]
TokenId = Annotated[int, Field(ge=0)]


SPECIAL_TOKEN_FIELDS = ("vision_id", "response_id", "next_id", "end_of_text_id", "padding_id")

DEFAULT_PROMPTS: dict[str, str] = {
    "cooking": (
        "You are a cooking assistant. You help a person to cook {recipe}, step by step:\n{steps}\n"
        "The instruction you have just given is: {instruction}\n"
        "Watch the video and tell the person of success or of mistakes.\n"
    ),
    "general": (
        "You are an assistant. You help a person with this task, step by step: {recipe}.\n{steps}\n"
        "The instruction you have just given is: {instruction}\n"
        "Watch the video and tell the person of success or of mistakes.\n"
    ),
}


@dataclass(frozen=True, kw_only=True, config=_STRICT)
class VisionConfig:
    """The vision encoder, InternViT through timm (paper 4.1).

    Attributes:
        architecture: timm name, always with its tag: the bare name means another release.
        image_size: side of the square input in pixels; a multiple of the patch size.
        width: token width; None for the architecture's own.
        depth: number of blocks, at least 2 (pruning reads the second-last); None for the architecture's own.
        num_heads: attention heads; None for the architecture's own.
        patch_size: side of a patch in pixels; None for the architecture's own.
        stem: how patches become tokens. "linear", as InternViT has it; "convolutional", small convolutions that halve
            the picture until a patch is a pixel: learns faster from scratch, for small models without pretraining.
        frozen: no gradient and evaluation mode, in both training stages.
    """

    architecture: str = "vit_intern300m_patch14_448.ogvl_2pt5"
    image_size: Annotated[int, Field(gt=0, le=2**14)] = 448
    width: Positive | None = None
    depth: Annotated[int, Field(ge=2, le=1000)] | None = None
    num_heads: Positive | None = None
    patch_size: Positive | None = None
    stem: Literal["linear", "convolutional"] = "linear"
    frozen: bool = True


@dataclass(frozen=True, kw_only=True, config=_STRICT)
class PruningConfig:
    """Token pruning by the VisionZip mechanism (paper D.3; the split is ours).

    Attributes:
        keep: tokens left for each frame; if the encoder makes no more than that, all stay.
        dominant: of those, the ones that the CLS token attends to most, CLS among them; the rest are
            contextual tokens, merged from all others.
    """

    keep: Positive = 256
    dominant: Positive = 216

    def __post_init__(self) -> None:
        if self.dominant > self.keep:
            raise ValueError(f"dominant is {self.dominant}, more than keep, {self.keep}; lower it")


@dataclass(frozen=True, kw_only=True, config=_STRICT)
class QFormerConfig:
    """The Q-Former: learned queries that attend to a frame's kept tokens in every layer (paper 4.1).

    Attributes:
        num_queries: visual embeddings a frame becomes.
        hidden_size: width of the queries; a multiple of num_attention_heads.
        num_hidden_layers: layers, each with self- and cross-attention.
        num_attention_heads: heads of both attentions.
        intermediate_size: width of the feed-forward part.
        hidden_dropout_prob: dropout after attention and feed-forward. Set on purpose: transformers
            would take 0.1.
        attention_probs_dropout_prob: dropout on attention weights; the same.
    """

    num_queries: Positive = 32
    hidden_size: Positive = 768
    num_hidden_layers: NumLayers = 4
    num_attention_heads: Positive = 12
    intermediate_size: Positive = 3072
    hidden_dropout_prob: Probability = 0.0
    attention_probs_dropout_prob: Probability = 0.0

    def __post_init__(self) -> None:
        if self.hidden_size % self.num_attention_heads:
            raise ValueError(f"hidden_size {self.hidden_size} is no multiple of {self.num_attention_heads} heads")


@dataclass(frozen=True, kw_only=True, config=_STRICT)
class MambaConfig:
    """The language backbone, Mamba-1; field names are those of transformers' MambaConfig.

    Attributes:
        vocab_size: rows of the embedding table, spare rows included.
        hidden_size: width of the residual stream.
        num_hidden_layers: blocks.
        intermediate_size: inner width of a block.
        state_size: recurrent states for each inner channel.
        conv_kernel: taps of the causal convolution.
        time_step_rank: rank of the step size's projection.
        layer_norm_epsilon: of every RMS norm.
    """

    vocab_size: Positive = 50280
    hidden_size: Positive = 768
    num_hidden_layers: NumLayers = 24
    intermediate_size: Positive = 1536
    state_size: Positive = 16
    conv_kernel: Annotated[int, Field(ge=2)] = 4
    time_step_rank: Positive = 48
    layer_norm_epsilon: Annotated[float, Field(gt=0)] = 1e-5


@dataclass(frozen=True, kw_only=True, config=_STRICT)
class DialogueConfig:
    """Token ids of the protocol and the prompts (paper 4.1, D.3; spec/model.md).

    The defaults are Mamba-130M's: the GPT-NeoX tokenizer fills 50277 of 50280 rows, the three special
    tokens take the spare ones, so no table is ever resized. Padding never shares an id with end-of-text:
    if it did, the end of a response would be masked out of the loss.

    Attributes:
        vision_id: `<vision>`, "give me the next frame".
        response_id: `<response>`, "I speak now".
        next_id: `<next>`, "this step is over".
        end_of_text_id: closes a response while the step goes on.
        padding_id: fills batches.
        prompts: templates by domain, with {recipe}, {steps} and {instruction}; a recipe's `domain` picks one.
        prompt_steps: the steps that a prompt lists: the whole recipe's, those that remain, or the one after the
            instructed step alone (short, for small models).
    """

    vision_id: TokenId = 50277
    response_id: TokenId = 50278
    next_id: TokenId = 50279
    end_of_text_id: TokenId = 0
    padding_id: TokenId = 1
    prompts: dict[str, str] = Field(default_factory=lambda: dict(DEFAULT_PROMPTS))
    prompt_steps: Annotated[str, Field(pattern="^(recipe|remaining|next)$")] = "recipe"

    def __post_init__(self) -> None:
        named = {name: getattr(self, name) for name in SPECIAL_TOKEN_FIELDS}
        if len(set(named.values())) < len(named):
            raise ValueError(f"special token ids {named} are not all different")
        for domain, template in self.prompts.items():
            missing = [part for part in ("{steps}", "{instruction}") if part not in template]
            if missing:
                raise ValueError(f"prompt for {domain!r} lacks {' and '.join(missing)}")


@dataclass(frozen=True, kw_only=True, config=_STRICT)
class ThresholdConfig:
    """How sure the model must be to speak, for each kind: on P(respond) x P(kind | respond).

    Calibrated on validation and saved with the weights; 0.5 is the uncalibrated start (ours).
    0 speaks always, a value above 1 never.
    """

    success: Annotated[float, Field(ge=0)] = 0.5
    mistake: Annotated[float, Field(ge=0)] = 0.5
    divergence: Annotated[float, Field(ge=0)] = 0.5
    advance: Annotated[float, Field(ge=0)] = 0.5
    say: Annotated[float, Field(ge=0)] = 0.5


@dataclass(frozen=True, kw_only=True, config=_STRICT)
class DecodingConfig:
    """Speaking: thresholds and caps (ours; spec/model.md).

    Attributes:
        thresholds: for each kind.
        max_response_tokens: a response longer than that is ended and marked as cut.
        max_responses_per_frame: after so many the next frame is taken.
    """

    thresholds: ThresholdConfig = Field(default_factory=ThresholdConfig)
    max_response_tokens: Positive = 64
    max_responses_per_frame: Positive = 2


@dataclass(frozen=True, kw_only=True, config=_STRICT)
class LiveMambaConfig:
    """The whole network with its protocol: what `config.json` in a checkpoint holds.

    Attributes:
        vision: the encoder.
        pruning: which of its tokens stay.
        qformer: how those become a frame's embeddings.
        backbone: the language model.
        dialogue: token ids and prompts.
        decoding: thresholds and caps.
    """

    vision: VisionConfig = Field(default_factory=VisionConfig)
    pruning: PruningConfig = Field(default_factory=PruningConfig)
    qformer: QFormerConfig = Field(default_factory=QFormerConfig)
    backbone: MambaConfig = Field(default_factory=MambaConfig)
    dialogue: DialogueConfig = Field(default_factory=DialogueConfig)
    decoding: DecodingConfig = Field(default_factory=DecodingConfig)

    def __post_init__(self) -> None:
        for name in SPECIAL_TOKEN_FIELDS:
            token_id = getattr(self.dialogue, name)
            if token_id >= self.backbone.vocab_size:
                raise ValueError(
                    f"dialogue.{name} is {token_id}, but the backbone has {self.backbone.vocab_size} rows; "
                    "choose a smaller id or more rows"
                )


C = TypeVar("C")


def config_from_dict(config_type: type[C], data: Any, *, where: str) -> C:
    """A config from plain values, strictly.

    Args:
        config_type: one of the dataclasses here (or another built like them).
        data: a mapping of plain values; missing fields take their defaults.
        where: named in errors: the file it came from.

    Raises:
        InputError: naming the field, the value, the rule; for an unknown key also the nearest known one.
    """
    if not isinstance(data, dict):
        raise InputError(f"{where}: expected a mapping of settings, got {type(data).__name__}")
    try:
        return TypeAdapter(config_type).validate_json(json.dumps(data))
    except ValidationError as error:
        first = error.errors()[0]
        raise InputError(f"{where}: {_explained(config_type, first)}") from None
    except (TypeError, ValueError) as error:  # a date, a set, a list in itself: YAML knows more than JSON
        raise InputError(f"{where}: {error}; settings are numbers, texts, lists and mappings") from None


def _explained(config_type: type[Any], error: Any) -> str:
    place = [str(part) for part in error["loc"]]
    name = ".".join(place)
    if error["type"] == "unexpected_keyword_argument":
        known = _known_fields(config_type, place[:-1])
        near = difflib.get_close_matches(place[-1], known, n=1, cutoff=0.0)
        return (
            f"unknown key {name!r}" + (f"; did you mean {near[0]!r}? " if near else "; ") + f"known: {', '.join(known)}"
        )
    message = error["msg"].removeprefix("Value error, ")
    return f"{name or 'config'}: {message}" + (f", got {error['input']!r}" if name else "")


def _known_fields(config_type: Any, place: Sequence[str]) -> list[str]:
    for part in place:
        config_type = next(field.type for field in fields(config_type) if field.name == part)
    return [field.name for field in fields(config_type)]


def config_to_dict(config: Any) -> dict[str, Any]:
    """Plain values, ready for JSON or YAML; `config_from_dict` reads them back unchanged."""
    values: dict[str, Any] = TypeAdapter(type(config)).dump_python(config, mode="json")
    return values


def load_config(config_type: type[C], path: str | Path, overrides: Sequence[str] = ()) -> C:
    """A config from a YAML file, with dotted overrides put on top.

    Args:
        config_type: one of the dataclasses here.
        path: the YAML file.
        overrides: such as "decoding.thresholds.mistake=0.3"; values are read as YAML.

    Raises:
        MissingError, InputError: as `read_yaml` and `config_from_dict`.
    """
    data = read_yaml(path, what="config")
    for override in overrides:
        data = with_override(data, override)
    return config_from_dict(config_type, data, where=str(path))


def with_override(data: Any, override: str) -> Any:
    """Plain settings with one value replaced; see `load_config` for the form of an override.

    Raises:
        InputError: if the override has another form or goes through something that is no mapping.
    """
    name, equals, value = override.partition("=")
    if not equals or not name:
        raise InputError(f"override {override!r} is not of the form section.key=value")
    if not isinstance(data, dict):
        raise InputError(f"override {override!r}: there is no section to put it in")
    key, dot, rest = name.partition(".")
    if dot:
        return {**data, key: with_override(data.get(key, {}), f"{rest}={value}")}
    try:
        return {**data, key: yaml.safe_load(value)}
    except yaml.YAMLError:
        raise InputError(f"override {override!r}: the value is not YAML; quote it") from None
