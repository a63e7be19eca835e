"""What the model is told before it watches a step. No torch.

Four parts, as in the paper (D.3), in our words: the role, the recipe's steps, the instruction just given,
the request to watch. Templates are config, one for each domain.
"""

import re

from livemamba.config import DialogueConfig
from livemamba.errors import InputError
from livemamba.recipe import Plan, Recipe


def coaching_prompt(config: DialogueConfig, recipe: Recipe, plan: Plan, instruction: str) -> str:
    """The prompt for one step.

    Args:
        config: templates, and which steps they list.
        recipe: names the dish, its domain and the texts of all steps.
        plan: what is left to do, the instructed step first.
        instruction: the sentence that the coach has just said.

    Raises:
        InputError: if there is no template for the recipe's domain.
    """
    template = config.prompts.get(recipe.domain)
    if template is None:
        known = ", ".join(sorted(config.prompts))
        raise InputError(f"recipe {recipe.name!r} has domain {recipe.domain!r}; the model has prompts for {known}")
    listed = {"recipe": recipe.plan.steps, "remaining": plan.steps, "next": plan.steps[1:2]}[config.prompt_steps]
    steps = "\n".join(f"{number}. {recipe.text(step)}." for number, step in enumerate(listed, 1))
    parts = {"recipe": recipe.name, "steps": steps, "instruction": instruction}
    # One pass, and not str.format: recipes and templates may hold braces of their own.
    return re.sub(r"\{(recipe|steps|instruction)\}", lambda match: parts[match[1]], template)
