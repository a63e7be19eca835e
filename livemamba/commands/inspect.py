"""`livemamba inspect`: one training sample, position by position, for a person to check."""

import argparse
from typing import Any

from livemamba.config import LiveMambaConfig, load_config
from livemamba.conversation import Conversation, coaching_step
from livemamba.dialogue.encode import encode
from livemamba.dialogue.inspect import position_table
from livemamba.dialogue.prompts import coaching_prompt
from livemamba.dialogue.tokens import Tokens
from livemamba.json_files import read_json
from livemamba.recipe import recipe_from_dict
from livemamba.timeline import Message


def add_parser(commands: Any) -> None:
    """Say what the command takes."""
    parser = commands.add_parser(
        "inspect",
        help="show how a sample becomes tokens, targets and decisions",
        description=(
            "Print a sample as the model is trained on it, one row for each position: what it reads, what has to "
            "follow, where it decides. Without --conversation: six frames with an utterance at 1.2 s."
        ),
    )
    parser.add_argument("--conversation", metavar="FILE", help="a conversation as JSON (see docs/formats.md)")
    parser.add_argument(
        "--config", required=True, metavar="FILE", help="a model config: token ids, frame size, prompts"
    )
    parser.add_argument("--tokenizer", required=True, metavar="PATH", help="a tokenizer.json, or a folder with one")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the table."""
    config = load_config(LiveMambaConfig, arguments.config)
    tokens = Tokens.load(arguments.tokenizer, config.dialogue)
    conversation = _read(arguments.conversation) if arguments.conversation else _example(config)
    num_queries = config.qformer.num_queries
    print(position_table(encode(conversation, tokens, num_queries=num_queries), tokens, num_queries=num_queries))
    return 0


def _read(path: str) -> Conversation:
    return Conversation.from_dict(read_json(path, what="conversation"), where=path)


def _example(config: LiveMambaConfig) -> Conversation:
    recipe = recipe_from_dict(
        {"name": "Fried egg", "steps": ["Pour the oil into the pan", "Crack an egg into the pan"]}, where="example"
    )
    prompt = coaching_prompt(config.dialogue, recipe, recipe.plan, recipe.instruction(recipe.plan.current))
    said = Message(time_s=1.2, kind="mistake", text="You spilled some oil.")
    return coaching_step(prompt=prompt, first_tick=0, end_tick=6, messages=[said], step_ends=True)
