"""Mistakes: nothing gives them away before their evidence, and then they can be seen."""

import numpy as np
import pytest
from kitchen_helpers import largest_change, one_of_each_kind, picture, short_plan, world_at

from livemamba.simkitchen.acts import instruction_text
from livemamba.simkitchen.cooks import plan_episode
from livemamba.simkitchen.episodes import frames, play
from livemamba.simkitchen.menu import all_dishes
from livemamba.simkitchen.rates import Rates, odds
from livemamba.timeline import MISTAKE_CATEGORIES

EVERY_MISTAKE = [
    pytest.param(dish, node, mistake, id=f"{kind}-{mistake.category}-{mistake.texts[0]}")
    for kind, (dish, node) in one_of_each_kind().items()
    for mistake in dish.mistakes(node)
]


def test_every_category_is_possible():
    found = {mistake.category for dish in all_dishes() for step in dish.steps for mistake in dish.mistakes(step.id)}
    assert found == set(MISTAKE_CATEGORIES)


@pytest.mark.parametrize(("dish", "node", "mistake"), EVERY_MISTAKE)
def test_evidence_lies_within_the_step_and_is_at_least_eight_pixels_wide(dish, node, mistake):
    right = short_plan(dish, node)
    wrong = right.with_mistake(node, mistake)
    step = play(wrong).steps[-1]
    assert step.start_s <= step.evidence_s <= step.seen_s <= step.end_s
    pictures = []
    for plan in (right, wrong):
        world = world_at(plan, step.seen_s)
        world.beat = 0
        # The same hands in the same place, as how they move is no evidence; what they hold is.
        world.right.at, world.left.at = (0.5, 0.72), world.spot("rest_left")
        pictures.append(picture(world))
    assert largest_change(*pictures) >= 0.5


def twins(category):
    """A whole episode with a mistake of a category, and its twin without."""
    dishes = all_dishes()
    chances = odds(Rates(mistakes={category: 0.04}, normal=0.0), dishes)
    for number in range(200):
        plan = plan_episode(dishes[number % len(dishes)], number, (9, number), chances, 6.0)
        wrong = [one.node for one in plan.performances if one.mistake and not one.during]
        if wrong and plan.performances[1].node in wrong:
            return plan, plan.without_mistake(plan.performances[1].node), plan.performances[1].node
    raise AssertionError(f"no episode with a {category} mistake")


@pytest.mark.parametrize("category", MISTAKE_CATEGORIES)
def test_twins_are_alike_to_the_pixel_until_the_evidence(category):
    wrong, right, node = twins(category)
    step = next(one for one in play(wrong).steps if one.performance.node == node)
    before, later = 0, 0
    for (time_s, one), (_, other) in zip(frames(wrong, size=48, fps=10), frames(right, size=48, fps=10), strict=False):
        if time_s < step.evidence_s:
            assert np.array_equal(one, other), f"they differ at {time_s} s, the evidence is at {step.evidence_s} s"
            before += 1
        elif time_s > step.seen_s + 1:
            break
        else:
            later += not np.array_equal(one, other)
    assert before > 5 and later > 0


@pytest.mark.parametrize(("dish", "node", "mistake"), EVERY_MISTAKE)
def test_twins_differ_soon_after_the_evidence_begins(dish, node, mistake):
    """The evidence time is no earlier than it must be: a second later the twins differ, or it has been seen."""
    right = short_plan(dish, node)
    wrong = right.with_mistake(node, mistake)
    step = play(wrong).steps[-1]
    moment = step.evidence_s + 1.0
    worlds = [world_at(plan, moment) for plan in (right, wrong)]
    assert not np.array_equal(*[picture(world) for world in worlds])
    worlds = [world_at(plan, step.evidence_s - 0.1) for plan in (right, wrong)]
    assert np.array_equal(*[picture(world) for world in worlds])


@pytest.mark.parametrize(("dish", "node", "mistake"), EVERY_MISTAKE)
def test_words_name_the_mistake(dish, node, mistake):
    asked = dish[node].act
    assert all(text[0].isupper() or text[0].isdigit() for text in mistake.texts) and len(set(mistake.texts)) > 1
    if mistake.flaw:
        assert mistake.done == asked
    else:
        assert instruction_text(mistake.done) != instruction_text(asked)
        changed = {name for name in vars(asked) if getattr(asked, name) != getattr(mistake.done, name)}
        assert len(changed) == 1
        words = str(getattr(mistake.done, changed.pop()))
        assert words in mistake.texts[0].lower()
