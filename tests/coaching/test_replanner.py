"""The re-planner: the table row by row, the words, and what no plan may ever do."""

import json
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from livemamba.coaching.replanner import (
    ReplanRequest,
    RulesReplanner,
    apply_answers,
    stems,
    still_sensible,
)
from livemamba.errors import InputError
from livemamba.recipe import Plan, Recipe, RecipeStep, load_recipe

# a -> b -> d, c -> d -> e
RECIPE = Recipe(
    name="soup",
    steps=(
        RecipeStep(id="a", text="Peel 1 onion"),
        RecipeStep(id="b", text="Slice the onion into rings", after=("a",)),
        RecipeStep(id="c", text="Boil 2 cups of water"),
        RecipeStep(id="d", text="Add the onion rings to the boiling water", after=("b", "c")),
        RecipeStep(id="e", text="Season with 1/4 teaspoon salt", after=("d",)),
    ),
)


def plan(nodes: str) -> Plan:
    return Plan(tuple((node,) for node in nodes))


# --- the table ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("left", "done", "instructed", "done_step", "sensible", "expected", "repeats"),
    [
        # in the plan: it leaves, the instruction is repeated
        ("abcde", "", "a", "c", True, "abde", True),
        # in the plan, no sense any more: instructed, done step and all its ancestors leave
        ("abcde", "", "a", "d", False, "e", False),
        ("bcde", "a", "b", "d", False, "e", False),
        # the instructed step needn't be an ancestor of it
        ("acbde", "", "a", "c", False, "bde", False),
        # in the plan, no usable answer: the graph decides
        ("abcde", "", "a", "c", None, "abde", True),
        ("abcde", "", "a", "b", None, "cde", False),
        # already done before: plan unchanged / the instructed step leaves / the graph decides
        ("bde", "ac", "b", "c", True, "bde", True),
        ("bde", "ac", "b", "c", False, "de", False),
        ("bde", "ac", "b", "c", None, "bde", True),
        ("cbe", "ad", "c", "a", None, "be", False),
        # unknown: plan unchanged / the instructed step leaves / plan unchanged
        ("bde", "ac", "b", "", True, "bde", True),
        ("bde", "ac", "b", "", False, "de", False),
        ("bde", "acd", "b", "", None, "bde", True),
        # not in this recipe: as unknown
        ("bde", "ac", "b", "x", None, "bde", True),
        ("bde", "ac", "b", "x", False, "de", False),
        # the instructed step is no answer to what was done instead of it
        ("bde", "ac", "b", "b", True, "bde", True),
        # dropped earlier, neither done nor planned: like one done before
        ("bde", "a", "b", "c", True, "bde", True),
    ],
)
def test_table(left, done, instructed, done_step, sensible, expected, repeats):
    result = apply_answers(plan(left), tuple(done), (instructed,), tuple(done_step), sensible, RECIPE)
    assert result.plan == plan(expected)
    assert result.repeats is repeats
    assert result.done_step == tuple(node for node in done_step if node in RECIPE and node != instructed)
    assert result.reason


def test_compound_steps_lose_only_what_was_done():
    left = Plan((("a",), ("b", "c"), ("d",)))
    result = apply_answers(left, (), ("a",), ("c",), True, RECIPE)
    assert result.plan == Plan((("a",), ("b",), ("d",)))


def test_sense_ends_when_something_that_depends_on_it_has_been_done():
    assert still_sensible(("a",), ("c",), RECIPE)
    assert not still_sensible(("a",), ("c", "d"), RECIPE), "d depends on a through b"
    assert still_sensible(("e",), ("a", "b", "c", "d"), RECIPE)
    assert still_sensible(("a", "c"), ("b",), RECIPE), "c still makes sense"
    assert not still_sensible(("a", "c"), ("b", "d"), RECIPE)


def test_table_on_a_real_graph(test_data):
    ramen = load_recipe(test_data / "data/captaincook4d/task_graphs/ramen.json")
    whole = ramen.plan
    # asked to peel the onion (6), the user slices it (5), for which it has to be peeled
    result = apply_answers(whole, (), ("6",), ("5",), None, ramen)
    assert set(whole.node_ids) - set(result.plan.node_ids) == {"6", "5"} and not result.repeats
    # asked to peel the onion, the user peels the garlic (14): the onion is asked for again
    result = apply_answers(whole, (), ("6",), ("14",), None, ramen)
    assert set(whole.node_ids) - set(result.plan.node_ids) == {"14"} and result.repeats
    # asked to peel the onion, the user puts all vegetables in the bowl (13): chopping and slicing are moot too
    result = apply_answers(whole, (), ("6",), ("13",), None, ramen)
    assert set(whole.node_ids) - set(result.plan.node_ids) == {"6", "5", "14", "10", "13"}


@st.composite
def cases(draw):
    nodes = "abcdefgh"
    steps = []
    for place, node in enumerate(nodes):
        after = draw(st.lists(st.sampled_from(nodes[:place]), max_size=2, unique=True)) if place else []
        steps.append(RecipeStep(id=node, text=f"Do {node}", after=tuple(after)))
    order = draw(st.permutations(nodes))
    num_done = draw(st.integers(0, 6))
    left = draw(st.lists(st.sampled_from(order[num_done:]), min_size=1, unique=True))
    size = draw(st.integers(1, 3))
    grouped = Plan(tuple(tuple(left[at : at + size]) for at in range(0, len(left), size)))
    done_step = tuple(draw(st.lists(st.sampled_from([*nodes, "x"]), max_size=2, unique=True)))
    sensible = draw(st.sampled_from([True, False, None]))
    return Recipe(name="r", steps=tuple(steps)), grouped, tuple(order[:num_done]), done_step, sensible


@settings(max_examples=300, deadline=None)
@given(cases())
def test_a_new_plan_is_the_old_one_without_something(case):
    recipe, old, done, done_step, sensible = case
    result = apply_answers(old, done, old.current, done_step, sensible, recipe)
    new = result.plan.node_ids
    assert not set(new) & {*done, *result.done_step}
    assert list(new) == [node for node in old.node_ids if node in new], "a subset, in the old order"
    assert not set(result.done_step) & set(old.current)
    assert result.repeats == any(node in new for node in old.current)
    if sensible is True:
        assert result.repeats and set(old.node_ids) - set(new) <= set(done_step)


# --- words -------------------------------------------------------------------------------------------


def request(feedback: str, *, instructed: str = "a", left: str = "abcde", done: str = "", **known) -> ReplanRequest:
    return ReplanRequest(
        id=1,
        plan=plan(left),
        done=tuple(done),
        step=(instructed,),
        instruction=RECIPE.instruction((instructed,)),
        feedback=feedback,
        tick=3,
        **known,
    )


def recognised(feedback: str, instructed: str = "a", left: str = "abcde") -> str:
    return "".join(RulesReplanner(RECIPE).recognise(feedback, (instructed,), plan(left)))


@pytest.mark.parametrize(
    ("feedback", "instructed", "expected"),
    [
        ("You did not follow the instruction. You boiled two cups of water.", "a", "c"),
        ("You did not follow the instruction. You sliced the onion into rings instead of peeling it.", "a", "b"),
        ("You did not follow the instruction. Instead of peeling the onion, you seasoned with salt.", "a", "e"),
        ("You are not following the instruction. You seem to be slicing an onion into rings.", "c", "b"),
        (
            "You did not follow the instruction. You were asked to boil 2 cups of water but you peeled 1 onion.",
            "c",
            "a",
        ),
        ("You did not follow the instruction. You should slice the onion into rings. You peeled it.", "b", ""),
        # the instruction alone is no step done instead
        ("You did not follow the instruction. You have not yet boiled 2 cups of water.", "c", ""),
        ("You did not follow the instruction. You sang a song.", "a", ""),
        ("You did not follow the instruction.", "a", ""),
        # "onion" alone fits three steps
        ("You did not follow the instruction. You held the onion.", "c", ""),
    ],
)
def test_recognition(feedback, instructed, expected):
    assert recognised(feedback, instructed) == expected


def test_amounts_tell_steps_apart_and_their_lack_leaves_them_unknown():
    texts = ("Add 1/4 teaspoon salt", "Add 1/8 teaspoon salt", "Stir")
    recipe = Recipe(name="r", steps=tuple(RecipeStep(id=str(at), text=text) for at, text in enumerate(texts)))
    rules = RulesReplanner(recipe)
    said = "You did not follow the instruction. You added {} salt."
    assert rules.recognise(said.format("1/8 teaspoon"), ("2",), recipe.plan) == ("1",)
    assert rules.recognise(said.format("a teaspoon of"), ("2",), recipe.plan) == ()


def test_of_repeated_steps_the_next_one_due_is_meant():
    texts = ("Stir the soup", "Taste it", "Stir the soup")
    recipe = Recipe(name="r", steps=tuple(RecipeStep(id=str(at), text=text) for at, text in enumerate(texts)))
    rules = RulesReplanner(recipe)
    said = "You did not follow the instruction. You stirred the soup."
    assert rules.recognise(said, ("1",), plan("012")) == ("0",)
    assert rules.recognise(said, ("1",), plan("12")) == ("2",)
    assert rules.recognise(said, ("1",), plan("1")) == ("0",), "done before"


def test_words_are_cut_to_stems():
    assert stems("You chopped, are chopping and chop") == ["chop", "chop", "chop"]
    assert stems("add added adding") == ["ad", "ad", "ad"]
    assert stems("slice slices sliced slicing noodles noodle") == ["slic"] * 4 + ["noodl"] * 2
    assert stems("dried dries took taken glass") == ["dry", "dry", "tak", "tak", "glas"]
    assert stems("1/4 teaspoon, 2.5 cups") == ["1/4", "teaspoon", "2.5", "cup"]


def test_rules_follow_the_table():
    rules = RulesReplanner(RECIPE)
    boiled = "You did not follow the instruction. You boiled 2 cups of water."
    sliced = "You did not follow the instruction. You sliced the onion into rings."
    assert rules.replan(request(boiled)).plan == plan("abde")
    assert rules.replan(request(sliced)).plan == plan("cde")
    unknown = rules.replan(request("You did not follow the instruction. You sang."))
    assert (unknown.plan, unknown.repeats, unknown.done_step) == (plan("abcde"), True, ())


def test_known_actions_need_no_words():
    result = RulesReplanner(RECIPE).replan(request("You did not follow the instruction. Oh.", actions=("c",)))
    assert result.done_step == ("c",) and result.plan == plan("abde")


def test_real_steps_are_recognised_in_their_own_words_and_never_taken_for_another(test_data):
    recipes = [load_recipe(path) for path in sorted((test_data / "data/captaincook4d/task_graphs").glob("*.json"))]
    assert len(recipes) == 24
    right = wrong = total = 0
    for recipe in recipes:
        rules = RulesReplanner(recipe)
        for before, step in zip(recipe.steps, recipe.steps[1:], strict=False):
            if before.text == step.text:
                continue
            total += 1
            feedback = f"You did not follow the instruction. You seem to {step.text} instead of what you were told."
            found = rules.recognise(feedback, (before.id,), recipe.plan)
            right += bool(found) and recipe[found[0]].text == step.text
            wrong += bool(found) and recipe[found[0]].text != step.text
    assert right / total > 0.95 and wrong / total < 0.01, (right, wrong, total)


def test_the_answer_does_not_depend_on_the_order_of_sets():
    code = (
        "from livemamba.coaching.replanner import RulesReplanner\n"
        "from livemamba.recipe import Recipe, RecipeStep\n"
        "texts = [f'Mix {a} {b} with salt' for a in ('flour', 'sugar', 'milk') for b in ('eggs', 'oil', 'rice')]\n"
        "recipe = Recipe(name='r', steps=tuple(RecipeStep(id=t, text=t) for t in texts))\n"
        "rules = RulesReplanner(recipe)\n"
        "said = frozenset(['flour', 'oil', 'mix', 'salt', 'sugar', 'pan', 'egg'])\n"
        "print([rules._score(words, said).hex() for words in rules._words.values()])\n"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(outputs) == 1 and outputs.pop().strip()


def test_requests_survive_saving():
    for known in ({}, {"actions": ("c",)}):
        asked = request("You did not follow the instruction. Oh.", done="d", left="abce", **known)
        assert ReplanRequest.from_dict(json.loads(json.dumps(asked.to_dict()))) == asked


def test_refusals():
    with pytest.raises(InputError, match="margin 2"):
        RulesReplanner(RECIPE, margin=2)
    with pytest.raises(InputError, match="least -1"):
        RulesReplanner(RECIPE, least=-1)
