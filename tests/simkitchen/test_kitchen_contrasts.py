"""States, opposite instructions, varied recipes."""

import numpy as np
import pytest

from livemamba.errors import InputError
from livemamba.simkitchen import state
from livemamba.simkitchen.acts import instruction_text
from livemamba.simkitchen.corpus import CorpusSettings, plan_corpus
from livemamba.simkitchen.episodes import frames, play, states
from livemamba.simkitchen.menu import all_dishes, seen_dishes
from livemamba.simkitchen.mistakes import mistakes_for
from livemamba.simkitchen.scripts import make_script
from livemamba.simkitchen.variety import FIRST_VARIANT, varied
from livemamba.simkitchen.world import make_world
from tests.simkitchen.kitchen_helpers import one_of_each_kind, short_plan, world_at

KINDS = one_of_each_kind()


@pytest.mark.parametrize("kind", ["add", "pour", "cut", "heat", "place", "cover", "stir", "wash", "serve", "wait"])
def test_what_is_done_is_a_mistake_with_each_opposite(kind):
    dish, node = KINDS[kind]
    record = play(short_plan(dish, node)).steps[-1]
    done = dish[node].act
    assert record.contrasts
    for contrast in record.contrasts:
        assert contrast.asked != done and contrast.mistake.done == done
        options = mistakes_for(contrast.asked, dish.kitchen(5).goods)
        assert contrast.mistake in options
        assert record.start_s <= contrast.evidence_s <= contrast.seen_s <= record.end_s
        assert getattr(contrast.asked, contrast.field) != getattr(done, contrast.field)


def test_an_opposite_parts_from_what_is_done_where_the_mistake_would_show():
    """Asking for B and seeing A parts at the moment at which the twin with the mistake A parts from doing B."""
    dish, node = KINDS["add"]
    world = make_world(dish.kitchen(5), dirty=dish.washed)
    done = make_script(world, dish[node].act, name=node, duration_s=6.0)
    for contrast in done.contrasts:
        wrong = make_script(world, contrast.asked, name=node, duration_s=6.0, mistake=contrast.mistake)
        assert wrong.evidence_index == contrast.index


def test_a_mistake_of_manner_has_no_opposite():
    dish, node = KINDS["add"]
    spill = next(mistake for mistake in dish.mistakes(node) if mistake.flaw)
    plan = short_plan(dish, node).with_mistake(node, spill)
    assert play(plan).steps[-1].contrasts == ()
    other = next(mistake for mistake in dish.mistakes(node) if not mistake.flaw)
    record = play(short_plan(dish, node).with_mistake(node, other)).steps[-1]
    assert dish[node].act in {contrast.asked for contrast in record.contrasts}


def test_states_name_what_happens():
    dish, node = KINDS["add"]
    act = dish[node].act
    plan = short_plan(dish, node)
    end = state.describe(world_at(plan, play(plan).steps[-1].end_s))
    assert end[f"{act.to}: last"] == act.what
    assert end[f"{act.to}: last form"] == act.tool
    assert end[f"{act.to}: heaps of it"] == str(act.count)
    assert end["holding"] == "nothing" and end["stove"] == "off"


def test_every_state_of_every_recipe_has_its_class_and_a_row_for_each_frame():
    for dish in all_dishes():
        plan = short_plan(dish, dish.steps[-1].id, step_s=3.0)
        rows = states(plan)
        assert rows.shape[1] == len(state.FIELDS) and len(rows) == sum(1 for _ in frames(plan, size=32, fps=2))
        limits = [len(classes) for classes in state.FIELDS.values()]
        assert (rows < np.array(limits)).all()


def test_state_tokens_say_field_and_class():
    numbers = np.zeros((2, len(state.FIELDS)), dtype=np.int64)
    numbers[1, 3] = 2
    tokens = state.tokens(numbers, 96)
    assert tokens.shape == (2, len(state.FIELDS), 96)
    assert np.flatnonzero(tokens[1, 3]).tolist() == [3, len(state.FIELDS) + 2]
    assert (tokens**2).mean() == pytest.approx(1.0)
    with pytest.raises(InputError, match="need"):
        state.tokens(numbers, 60)


def test_a_variant_keeps_the_graph_and_changes_the_acts():
    dish = seen_dishes()[0]
    one, again, other = (varied(dish, number, np.random.default_rng(number)) for number in (4, 4, 5))
    assert one == again and one != other
    assert [step.after for step in one.steps] == [step.after for step in dish.steps]
    assert [step.act.kind for step in one.steps] == [step.act.kind for step in dish.steps]
    assert one.activity_id == FIRST_VARIANT + 4 and one.graph_file != other.graph_file != dish.graph_file
    texts = [instruction_text(step.act) for step in one.steps]
    assert texts != [instruction_text(step.act) for step in dish.steps]


def test_in_a_varied_corpus_an_instruction_tells_nothing_and_training_kitchens_differ():
    planned = plan_corpus(CorpusSettings(episodes=60, varied=True))
    assert len({one.plan.dish.name for one in planned}) == 60
    train = [one.plan.kitchen_number for one in planned if one.split == "train"]
    assert len(set(train)) == len(train) and min(train) >= 1000
    others = {one.plan.kitchen_number for one in planned if one.split != "train"}
    assert max(others) < 1000
    counts = [step.act.count for one in planned for step in one.plan.dish.steps if step.act.kind == "add"]
    assert {1, 2, 3, 4} == set(counts)
    assert plan_corpus(CorpusSettings(episodes=60, varied=True))[7] == planned[7]
