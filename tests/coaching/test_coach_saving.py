"""A coach that was saved and loaded goes on exactly as one that wasn't; and what holds in any session."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from livemamba.coaching.coach import Coach
from livemamba.coaching.events import Event, StartStep
from livemamba.coaching.replanner import RulesReplanner
from livemamba.errors import InputError
from livemamba.recipe import Plan, Recipe, RecipeStep
from livemamba.timeline import USER_ACTIONS, UserEvent

RECIPE = Recipe(
    name="soup",
    steps=(
        RecipeStep(id="a", text="Peel the onion"),
        RecipeStep(id="b", text="Chop the garlic"),
        RecipeStep(id="c", text="Boil the water", after=("a",)),
        RecipeStep(id="d", text="Stir the soup", after=("b", "c")),
        RecipeStep(id="e", text="Serve the soup", after=("d",)),
    ),
)
PLAN = Plan((("a", "b"), ("c",), ("d",), ("e",)))
RULES = RulesReplanner(RECIPE)

TEXTS = {
    "success": ["Good."],
    "mistake": ["Too thick."],
    "advance": [""],
    "divergence": [
        "You did not follow the instruction. You chopped the garlic.",
        "You did not follow the instruction. You stirred the soup.",
        "You are not following the instruction. You seem to boil the water.",
        "You did not follow the instruction. You sang.",
    ],
}


@st.composite
def watcher_events(draw):
    kind = draw(st.sampled_from(["success", "mistake", "advance", "advance", "divergence"]))
    actions = draw(st.none() | st.lists(st.sampled_from("abcde"), max_size=2, unique=True).map(tuple))
    known = {} if kind in ("advance", "divergence") else {"actions": actions}
    return {"kind": kind, "text": draw(st.sampled_from(TEXTS[kind])), **known}


ACTS = st.lists(
    st.one_of(
        st.tuples(st.just("event"), watcher_events()),
        st.tuples(st.just("user"), st.sampled_from(USER_ACTIONS)),
        st.tuples(st.just("answer"), st.integers(-2, 0)),
        st.tuples(st.just("fail"), st.integers(-2, 0)),
    ),
    max_size=25,
)


def act(coach: Coach, requests: list, tick: int, what: str, how) -> tuple:
    if what == "event":
        outputs = coach.on_event(Event(tick=tick, **how))
    elif what == "user":
        outputs = coach.on_user(UserEvent(time_s=tick / 2 + 0.1, action=how))
    elif len(requests) + how < 1:
        return ()
    elif what == "answer":
        request = requests[how - 1]
        outputs = coach.on_replan(request.id, RULES.replan(request), tick)
    else:
        outputs = coach.on_replan_failed(requests[how - 1].id, "error", tick)
    requests.extend(output for output in outputs if type(output).__name__ == "ReplanRequest")
    return outputs


@settings(max_examples=150, deadline=None)
@given(acts=ACTS, cut=st.integers(0, 25))
def test_saved_and_loaded_goes_on_exactly(acts, cut):
    whole, parted = Coach(RECIPE, plan=PLAN), Coach(RECIPE, plan=PLAN)
    whole.start(0), parted.start(0)
    asked_whole: list = []
    asked_parted: list = []
    for number, (what, how) in enumerate(acts):
        if number == cut:
            parted = Coach.from_dict(json.loads(json.dumps(parted.to_dict())), RECIPE)
        outputs = act(whole, asked_whole, number // 2, what, how)
        assert outputs == act(parted, asked_parted, number // 2, what, how)
    assert parted.to_dict() == whole.to_dict()
    assert parted.timeline("v") == whole.timeline("v")


@settings(max_examples=150, deadline=None)
@given(acts=ACTS)
def test_what_holds_in_any_session(acts):
    coach = Coach(RECIPE, plan=PLAN)
    coach.start(0)
    requests: list = []
    for number, (what, how) in enumerate(acts):
        outputs = act(coach, requests, number // 2, what, how)
        assert not set(coach.plan.node_ids) & set(coach.done)
        assert len(set(coach.done)) == len(coach.done)
        assert (coach.state == "finished") <= (not coach.plan)
        for output in outputs:
            if isinstance(output, StartStep):
                assert output.plan.current == coach.step and output.instruction == coach.instruction
    timeline = coach.timeline("v")  # refuses times that go back
    assert len(timeline.plans) == len(timeline.messages)
    instructed = [at for at, message in enumerate(timeline.messages) if message.kind == "instruction"]
    assert all(timeline.plans[at] for at in instructed), "an instruction stands in a plan that isn't empty"


def test_sentences_are_given_again_on_loading():
    coach = Coach(RECIPE, plan=PLAN, instruction_text=lambda step: "Do " + "".join(step))
    coach.start(0)
    loaded = Coach.from_dict(coach.to_dict(), RECIPE, instruction_text=lambda step: "Do " + "".join(step))
    assert loaded.on_event(Event(kind="advance", tick=3))[0].text == "Do c"


def test_the_ablation_survives_saving():
    coach = Coach(RECIPE, plan=PLAN, replanning=False)
    coach.start(0)
    loaded = Coach.from_dict(json.loads(json.dumps(coach.to_dict())), RECIPE)
    event = Event(kind="divergence", tick=3, text=TEXTS["divergence"][0])
    assert len(loaded.on_event(event)) == 1


def test_a_saved_coach_shares_nothing_with_the_living_one():
    coach = Coach(RECIPE, plan=PLAN)
    coach.start(0)
    saved = coach.to_dict()
    before = json.dumps(saved)
    coach.on_event(Event(kind="advance", tick=3))
    assert json.dumps(saved) == before


def test_what_a_loaded_coach_needs_done():
    coach = Coach(RECIPE, plan=PLAN)
    coach.start(0)
    coach.on_event(Event(kind="divergence", tick=3, text=TEXTS["divergence"][0]))
    start, request = Coach.from_dict(coach.to_dict(), RECIPE).outstanding(8)
    assert start == StartStep(plan=PLAN, instruction=coach.instruction, tick=8) and request.id == 1
    coach.on_event(Event(kind="advance", tick=4))
    assert coach.outstanding(8) == (request,)


def test_what_is_no_saved_coach_is_refused():
    saved = Coach(RECIPE, plan=PLAN).to_dict()
    other = Recipe(name="tea", steps=(RecipeStep(id="a", text="Boil"),))
    with pytest.raises(InputError, match="saved in recipe 'soup'"):
        Coach.from_dict(saved, other)
    with pytest.raises(InputError, match="no step 'e'"):
        Coach.from_dict(saved, Recipe(name="soup", steps=RECIPE.steps[:4]))
    for wrong in ({"plan": 3}, {"phase": "asleep"}, {"request": {"id": 1}}, {"extra": 1}):
        with pytest.raises(InputError):
            Coach.from_dict({**saved, **wrong}, RECIPE)
    with pytest.raises(InputError, match="done"):
        Coach.from_dict({name: value for name, value in saved.items() if name != "done"}, RECIPE)
