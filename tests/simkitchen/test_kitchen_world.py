"""The world: deterministic, the same however often it is looked at, and changed visibly by every act."""

import copy
from dataclasses import fields

import numpy as np
import pytest
from kitchen_helpers import largest_change, one_of_each_kind, picture, short_plan, world_at

from livemamba.errors import InputError
from livemamba.simkitchen.acts import ACT_KINDS, Act, description, instruction_text
from livemamba.simkitchen.effects import split
from livemamba.simkitchen.episodes import Session, frames, play
from livemamba.simkitchen.renderer import Renderer
from livemamba.simkitchen.world import BEATS_PER_S, WHOLE

KINDS = one_of_each_kind()


def state(world):
    """Everything but the running scripts, whose identity differs from run to run."""
    kept = [field.name for field in fields(world) if field.name not in ("running", "log", "begun")]
    events = [(beat, script.name, what) for beat, script, what in (*world.log, *world.begun)]
    return {name: getattr(world, name) for name in kept}, events


def test_recipes_use_every_kind_of_act():
    assert set(KINDS) == set(ACT_KINDS)


@pytest.mark.parametrize("kind", ["add", "heat", "serve"])
def test_state_does_not_depend_on_how_often_it_is_looked_at(kind):
    plan = short_plan(*KINDS[kind])
    end = round(play(plan).duration_s * BEATS_PER_S)
    for moment in (end // 3, end // 2, 5 * end // 6):
        worlds = []
        for step in (25, 60, 300, end):  # 24 and 10 pictures a second, ticks, all at once
            session = Session(plan)
            for beat in [*range(0, moment, step), moment]:
                session.advance_to(beat)
            worlds.append(state(session.world))
        assert all(world == worlds[0] for world in worlds[1:])


@pytest.mark.parametrize("kind", ACT_KINDS)
def test_every_act_changes_state_and_picture(kind):
    dish, node = KINDS[kind]
    plan = short_plan(dish, node)
    step = play(plan).steps[-1]
    before, within = world_at(plan, step.start_s), world_at(plan, step.start_s + 0.4 * (step.end_s - step.start_s))
    after = world_at(plan, step.end_s + 1.0)
    for world in (before, within, after):  # what the hands do is no proof
        world.beat = 0
        for hand, home in ((world.right, "rest_right"), (world.left, "rest_left")):
            hand.at = world.spot(home)
    seen = within if kind == "wait" else after  # a wait leaves nothing behind: the timer shows it as it goes on
    what = ("vessels", "items", "jugs", "minutes")
    assert any(getattr(before, name) != getattr(seen, name) for name in what)
    assert largest_change(picture(before), picture(seen)) >= 0.6


def test_progress_shows_before_the_act_is_over():
    dish, node = KINDS["add"]
    plan = short_plan(dish, node)
    step = play(plan).steps[-1]
    counts = [
        len(world_at(plan, step.start_s + share * (step.end_s - step.start_s)).vessels["bowl"].portions)
        for share in (0.0, 0.45, 0.8, 1.0)
    ]
    assert counts == sorted(counts) and counts[0] == 0 and counts[-1] == dish[node].act.count and len(set(counts)) > 2


@pytest.mark.parametrize("kind", ACT_KINDS)
def test_pictures_are_a_function_of_the_state_alone(kind):
    dish, node = KINDS[kind]
    flaws = {mistake.flaw: mistake for mistake in dish.mistakes(node)}
    plan = short_plan(dish, node).with_mistake(node, list(flaws.values())[-1])
    session = Session(plan)
    film = Renderer(session.world.kitchen, 112)  # has drawn all that came before, against one that has not
    step = play(plan).steps[-1]
    for beat in range(round(step.start_s * BEATS_PER_S), round((step.end_s + 1) * BEATS_PER_S), 250):
        session.advance_to(beat)
        assert np.array_equal(film.draw(session.world), picture(session.world))


def test_drawing_does_not_change_the_world():
    world = world_at(short_plan(*KINDS["stir"]), 4.0)
    before = copy.deepcopy(state(world))
    picture(world)
    assert state(world) == before


@pytest.mark.parametrize("size", [112, 224, 448])
def test_sizes_show_the_same_scene(size):
    world = world_at(short_plan(*KINDS["heat"]), 5.0)
    large = Renderer(world.kitchen, size).draw(world)
    small = picture(world)
    assert large.shape == (size, size, 3) and large.dtype == np.uint8
    factor = size // 112
    averaged = large.reshape(112, factor, 112, factor, 3).mean(axis=(1, 3))
    assert np.abs(averaged - small).mean() < 6


def test_kitchens_look_different():
    dish, node = KINDS["add"]
    one, other = (picture(world_at(short_plan(dish, node, kitchen=number), 0.2)) for number in (1, 2))
    assert (np.abs(one.astype(int) - other).max(axis=2) > 24).mean() > 0.5


def test_frames_cover_the_episode_at_any_rate():
    plan = short_plan(*KINDS["cover"])
    duration_s = play(plan).duration_s
    for fps in (2, 10, 25):
        times = [time_s for time_s, _ in frames(plan, size=32, fps=fps)]
        assert times == [number / fps for number in range(len(times))]
        assert len(times) / fps == pytest.approx(duration_s, abs=1 / fps)


@pytest.mark.parametrize("fps", [0, 7, 61, -10])
def test_rates_off_the_grid_are_refused(fps):
    with pytest.raises(InputError, match="frame rate"):
        next(frames(short_plan(*KINDS["add"]), size=32, fps=fps))


@pytest.mark.parametrize("size", [0, 31, 111, 2048])
def test_sizes_out_of_range_are_refused(size):
    with pytest.raises(InputError, match="picture size"):
        next(frames(short_plan(*KINDS["add"]), size=size, fps=10))


def test_cuts_tile_the_whole():
    pieces = WHOLE
    for index in (0, 0, 2, 0, 2, 4, 6):
        pieces = split(pieces, index, 0.5)
        assert sum((x1 - x0) * (y1 - y0) for x0, y0, x1, y1 in pieces) == pytest.approx(1)
    assert len(pieces) == 8
    assert {round((x1 - x0) * (y1 - y0), 6) for x0, y0, x1, y1 in pieces} == {0.125}


def test_texts_are_in_captaincook4ds_style():
    act = Act(kind="add", what="sugar", to="bowl", count=2, tool="tablespoon")
    assert description(act) == "Add-Add 2 tablespoons of sugar to the bowl"
    one = Act(kind="heat", to="pan", level="high", minutes=1)
    assert instruction_text(one) == "Heat the pan on high for 1 minute"


@pytest.mark.parametrize(
    ("values", "about"),
    [
        ({"kind": "add", "what": "sugar", "to": "bowl", "count": 2}, "tool"),
        ({"kind": "add", "what": "sugar", "to": "bowl", "count": 9, "tool": "teaspoon"}, "count 9"),
        ({"kind": "add", "what": "milk", "to": "bowl", "count": 1, "tool": "teaspoon"}, "what 'milk'"),
        ({"kind": "cut", "what": "tomato", "count": 3}, "count 3"),
        ({"kind": "heat", "to": "pan", "level": "off", "minutes": 2}, "level 'off'"),
        ({"kind": "wait", "to": "bowl", "minutes": 2, "level": "low"}, "level is 'low'"),
        ({"kind": "fry"}, "fry"),
    ],
)
def test_acts_that_make_no_sense_are_refused(values, about):
    with pytest.raises(InputError, match=about):
        Act(**values)
