"""The watchers that need no model."""

import numpy as np
import pytest

from livemamba.coaching.events import Event
from livemamba.coaching.watchers import (
    ChattyWatcher,
    ScriptedWatcher,
    SilentWatcher,
    TimerWatcher,
    done_text,
    events_of,
    make_watcher,
)
from livemamba.errors import InputError
from livemamba.recipe import Plan, Recipe, RecipeStep
from livemamba.ticks import Frame
from livemamba.timeline import Message, Timeline

RECIPE = Recipe(
    name="soup",
    steps=(
        RecipeStep(id="a", text="Add the noodles to the bowl."),
        RecipeStep(id="b", text="Chop the garlic"),
        RecipeStep(id="c", text="TV off"),
    ),
)
PLAN = Plan((("a",), ("b",)))


def frame(tick: int) -> Frame:
    return Frame(tick=tick, time_s=tick / 2, pixels=np.zeros((2, 2, 3), np.uint8))


def seen(watcher, ticks) -> dict[int, list[str]]:
    """The kinds said at each tick at which anything was said."""
    said = {tick: list(watcher.see(frame(tick))) for tick in ticks}
    assert all(event.tick == tick for tick, events in said.items() for event in events)
    return {tick: [event.kind for event in events] for tick, events in said.items() if events}


def test_silent():
    watcher = SilentWatcher()
    watcher.start(PLAN, "Now.", 0)
    assert seen(watcher, range(500)) == {}


@pytest.mark.parametrize(
    ("durations_s", "due"),
    [
        ({}, 3 + 14),
        ({"a": 5.0}, 13),
        ({"Add the noodles to the bowl": 5.2}, 14),
        ({"a": 5.0, "Add the noodles to the bowl": 9.0}, 21),
        ({"Another recipe's step": 5.0}, 17),
        ({"a": 0.0}, 4),
    ],
)
def test_timer_is_due_when_the_steps_time_is_over(durations_s, due):
    watcher = TimerWatcher(RECIPE, durations_s=durations_s, default_s=7.0)
    watcher.start(PLAN, "Now.", 3)
    assert seen(watcher, range(4, 60)) == {due: ["success", "advance"]}


def test_timer_fires_at_the_first_frame_after_its_time_when_frames_are_dropped():
    watcher = TimerWatcher(RECIPE, default_s=7.0)
    watcher.start(PLAN, "Now.", 0)
    assert seen(watcher, [1, 13, 19, 20]) == {19: ["success", "advance"]}


def test_timer_starts_anew_with_each_step():
    watcher = TimerWatcher(RECIPE, durations_s={"a": 2, "b": 4})
    watcher.start(PLAN, "Now.", 0)
    watcher.start(PLAN.without("a"), "Now.", 3)
    assert seen(watcher, range(4, 30)) == {11: ["success", "advance"]}


def test_timer_of_a_compound_step_takes_as_long_as_its_longest_action_and_says_each():
    watcher = TimerWatcher(RECIPE, durations_s={"a": 2, "b": 4}, default_s=99)
    watcher.start(Plan((("a", "b"),)), "Now.", 0)
    assert list(watcher.see(frame(7))) == []
    first, second, last = watcher.see(frame(8))
    assert (first.text, first.actions) == ("You have done this: add the noodles to the bowl.", ("a",))
    assert (second.text, second.actions) == ("You have done this: chop the garlic.", ("b",))
    assert last.kind == "advance"
    whole = TimerWatcher(RECIPE, durations_s={"a": 2, RECIPE.text(("a", "b")): 3})
    whole.start(Plan((("a", "b"),)), "Now.", 0)
    assert list(seen(whole, range(20))) == [6]


def test_success_text_keeps_capitals_that_belong():
    assert done_text(RECIPE, ("c",)) == "You have done this: TV off."


def test_chatty_alerts_at_intervals_and_catches_up_with_one():
    watcher = ChattyWatcher(every_s=10, text="Careful!")
    watcher.start(PLAN, "Now.", 5)
    assert seen(watcher, range(6, 70)) == {25: ["mistake"], 45: ["mistake"], 65: ["mistake"]}
    watcher.start(PLAN, "Now.", 100)
    assert seen(watcher, [110, 165, 166, 180]) == {165: ["mistake"], 180: ["mistake"]}


def test_chatty_can_move_on():
    watcher = ChattyWatcher(every_s=10, advance_s=15)
    watcher.start(PLAN, "Now.", 0)
    assert seen(watcher, range(1, 31)) == {20: ["mistake"], 30: ["advance"]}


def test_script_by_tick_says_all_at_the_first_frame_at_or_after():
    script = [
        Event(kind="advance", tick=9),
        Event(kind="success", tick=4, text="Good."),
        Event(kind="mistake", tick=9, text="Next step's."),
    ]
    watcher = ScriptedWatcher(script)
    watcher.start(PLAN, "Whatever.", 0)
    assert seen(watcher, [1, 3, 6, 10, 11, 12]) == {6: ["success"], 10: ["advance"], 11: ["mistake"]}


def test_script_by_instruction_counts_from_the_steps_start_each_time():
    watcher = ScriptedWatcher({"Do a.": [Event(kind="success", tick=2, text="Good."), Event(kind="advance", tick=3)]})
    watcher.start(PLAN, "Do a.", 10)
    assert seen(watcher, range(11, 20)) == {12: ["success"], 13: ["advance"]}
    watcher.start(PLAN, "Do b.", 20)
    assert seen(watcher, range(21, 40)) == {}
    watcher.start(PLAN, "Do a.", 40)
    assert seen(watcher, range(41, 50)) == {42: ["success"], 43: ["advance"]}


def test_a_timeline_as_a_script():
    timeline = Timeline(
        video_id="v",
        messages=(
            Message(time_s=1.0, kind="instruction", text="Do a."),
            Message(time_s=3.2, kind="mistake", text="No.", category="timing", actions=("a",)),
            Message(time_s=4.0, kind="instruction", text="Do b."),
            Message(time_s=6.0, kind="success", text="Yes."),
            Message(time_s=6.0, kind="finish", text="All done."),
        ),
    )
    assert events_of(timeline) == (
        Event(kind="mistake", tick=7, text="No.", category="timing", actions=("a",)),
        Event(kind="advance", tick=8),
        Event(kind="success", tick=12, text="Yes."),
        Event(kind="advance", tick=12),
    )


def test_watchers_by_name():
    assert isinstance(make_watcher("silent", RECIPE), SilentWatcher)
    timer = make_watcher("timer", RECIPE, default_s=2)
    timer.start(PLAN, "Now.", 0)
    assert seen(timer, range(9)) == {4: ["success", "advance"]}
    assert isinstance(make_watcher("chatty", RECIPE, every_s=3), ChattyWatcher)
    assert isinstance(make_watcher("scripted", RECIPE, script=[]), ScriptedWatcher)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("livemamba", {}, "not one of silent, timer, chatty, scripted"),
        ("timer", {"default": 3}, "no option 'default'; it has durations_s, default_s"),
        ("silent", {"loud": True}, "no option 'loud'; it has none"),
        ("timer", {"recipe_text": 1}, "no option"),
        ("scripted", {}, "needs the option 'script'"),
        ("timer", {"default_s": -1}, "-1 of the default is not"),
        ("timer", {"durations_s": {"a": float("nan")}}, "nan of a is not"),
        ("chatty", {"every_s": 0}, "at least one tick"),
        ("chatty", {"advance_s": float("inf")}, "inf of advance_s"),
    ],
)
def test_refusals(name, options, message):
    with pytest.raises(InputError, match=message):
        make_watcher(name, RECIPE, **options)
