import pytest

from livemamba.config import DialogueConfig
from livemamba.dialogue.prompts import coaching_prompt
from livemamba.errors import InputError
from livemamba.recipe import Plan, recipe_from_dict

RECIPE = recipe_from_dict(
    {"name": "Eggs {fried}", "steps": ["Crack an egg", "Heat {instruction} the pan", "Fry the egg"]}, where="test"
)


def test_the_prompt_has_its_four_parts():
    prompt = coaching_prompt(DialogueConfig(), RECIPE, RECIPE.plan, "Now crack an egg.")
    assert prompt.startswith("You are a cooking assistant.")
    assert "Eggs {fried}" in prompt
    assert "1. Crack an egg.\n2. Heat {instruction} the pan.\n3. Fry the egg." in prompt
    assert "just given is: Now crack an egg." in prompt
    assert prompt.count("Now crack an egg.") == 1
    assert "Watch the video" in prompt


def test_it_can_list_what_remains_only():
    remaining = Plan((("3",),))
    prompt = coaching_prompt(DialogueConfig(prompt_steps="remaining"), RECIPE, remaining, "Now fry the egg.")
    assert "1. Fry the egg." in prompt and "Crack" not in prompt


def test_an_unknown_domain_names_those_there_are():
    recipe = recipe_from_dict({"name": "x", "domain": "surgery", "steps": ["cut"]}, where="test")
    with pytest.raises(InputError, match=r"domain 'surgery'.*cooking, general"):
        coaching_prompt(DialogueConfig(), recipe, recipe.plan, "Cut.")
