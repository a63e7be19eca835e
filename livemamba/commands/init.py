"""`livemamba init`: a checkpoint with random weights, or with parts from their original releases."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

from livemamba.config import LiveMambaConfig, load_config
from livemamba.errors import InputError, MissingError
from livemamba.files import check_replaceable

if TYPE_CHECKING:
    from livemamba.dialogue.tokens import Tokens


def add_parser(commands: Any) -> None:
    """Say what the command takes."""
    parser = commands.add_parser(
        "init",
        help="make a checkpoint, untrained or with parts from their original releases",
        description="Make a checkpoint folder from a model config: random weights, unless originals are named.",
    )
    parser.add_argument(
        "--config", required=True, metavar="FILE", help="a model config, such as configs/model/tiny.yaml"
    )
    parser.add_argument("--out", required=True, metavar="DIR", help="the checkpoint folder to make")
    tokenizer = parser.add_mutually_exclusive_group(required=True)
    tokenizer.add_argument("--tokenizer", metavar="PATH", help="a tokenizer.json, or a folder that holds one")
    tokenizer.add_argument(
        "--train-tokenizer", nargs="+", metavar="FILE", help="text files to train a small tokenizer of its own on"
    )
    tokenizer.add_argument(
        "--train-tokenizer-on", metavar="CORPUS", help="a simulated corpus, to train a small tokenizer on what is said"
    )
    parser.add_argument(
        "--vision", metavar="SOURCE", help="InternViT weights as timm saves them: a folder, a file or a hub id"
    )
    parser.add_argument(
        "--backbone", metavar="SOURCE", help="Mamba weights as transformers saves them: a folder or a hub id"
    )
    parser.add_argument(
        "--part",
        dest="parts",
        action="append",
        default=[],
        metavar="PART=CKPT",
        help="vision, qformer or backbone from a LiveMamba checkpoint with the same sizes; may be repeated",
    )
    parser.add_argument("--seed", type=int, default=0, help="of the random weights (default 0)")
    parser.add_argument(
        "--set", dest="overrides", action="append", default=[], metavar="KEY=VALUE", help="override a config value"
    )
    parser.add_argument("--half", action="store_true", help="store the weights as float16: half the size")
    parser.add_argument("--overwrite", action="store_true", help="replace a checkpoint that is there")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Make the checkpoint."""
    from livemamba.model.livemamba import CHECKPOINT_FILES, CONFIG_FILE, LiveMamba

    config = load_config(LiveMambaConfig, arguments.config, arguments.overrides)
    check_replaceable(arguments.out, replaces=CONFIG_FILE if arguments.overwrite else None, only=CHECKPOINT_FILES)
    if not 0 <= arguments.seed < 2**63:
        raise InputError(f"--seed is {arguments.seed}; give a whole number from 0 to 2^63 - 1")
    parts = [_part(text) for text in arguments.parts]
    tokens = _tokens(arguments, config)
    _check_memory(config, tokens)
    model = LiveMamba(config, tokens, seed=arguments.seed)
    if arguments.vision:
        model.load_vision(arguments.vision)
    if arguments.backbone:
        model.load_backbone(arguments.backbone)
    for part, source in parts:
        model.load_part(part, source)
    model.save_pretrained(arguments.out, overwrite=arguments.overwrite, half=arguments.half)
    print(f"{arguments.out}: {sum(weight.numel() for weight in model.parameters()) / 1e6:.1f} M parameters")
    for part, source in model.provenance.items():
        print(f"  {part:9} {source}")
    return 0


def _part(text: str) -> tuple[str, str]:
    from livemamba.model.livemamba import PARTS

    part, _, source = text.partition("=")
    if part not in PARTS or not source:
        raise InputError(f"--part {text!r} is not of the form PART=CKPT with a part of {', '.join(PARTS)}")
    return part, source


def _check_memory(config: LiveMambaConfig, tokens: "Tokens") -> None:
    import torch

    from livemamba.model.livemamba import LiveMamba

    with torch.device("meta"):  # shapes alone
        weights = LiveMamba(config, tokens).state_dict().values()
    needed_gb = sum(weight.numel() * weight.element_size() for weight in weights) / 1e9
    free_gb = psutil.virtual_memory().available / 1e9
    if needed_gb > free_gb:
        raise InputError(f"a model of these sizes needs {needed_gb:.1f} GB, {free_gb:.1f} GB are free; make it smaller")


def _tokens(arguments: argparse.Namespace, config: LiveMambaConfig) -> "Tokens":
    from livemamba.dialogue.tokens import Tokens, train_tokenizer

    if arguments.tokenizer:
        return Tokens.load(arguments.tokenizer, config.dialogue)
    size = min(config.dialogue.vision_id, config.dialogue.response_id, config.dialogue.next_id)
    corpus = arguments.train_tokenizer_on
    texts = _said(corpus, config) if corpus else _texts(arguments.train_tokenizer)
    return Tokens(train_tokenizer(texts, size), config.dialogue)


def _said(corpus: str, config: LiveMambaConfig) -> list[str]:
    """Every prompt and message of a corpus's training split, opposite instructions among them."""
    from livemamba.data.simkitchen import read_step_clips

    clips = read_step_clips(corpus, "train")
    asked = [clip.under(opposite) for clip in clips for opposite in clip.counterfactuals]
    conversations = [clip.conversation(config.dialogue) for clip in (*clips, *asked)]
    return [text for conversation in conversations for text in conversation.texts]


def _texts(files: list[str]) -> list[str]:
    texts = []
    for file in files:
        if not Path(file).is_file():
            raise MissingError(f"text file {file} does not exist; name files to train the tokenizer on")
        try:
            texts += Path(file).read_text(encoding="utf-8").splitlines()
        except UnicodeDecodeError:
            raise InputError(f"{file} is no text in UTF-8; name text files to train the tokenizer on") from None
    if not any(text.strip() for text in texts):
        raise InputError(f"{', '.join(files)}: no text to train a tokenizer on")
    return texts
