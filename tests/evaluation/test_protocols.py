"""Streaming and turn-based runs: who is told what, when a session begins and ends."""

import pytest

from livemamba.coaching.events import Event
from livemamba.coaching.watchers import ChattyWatcher, ScriptedWatcher, SilentWatcher
from livemamba.errors import InputError
from livemamba.evaluation.protocols import evaluate_streaming, evaluate_turn_based, lesson_of, turns_of
from livemamba.evaluation.sanity import blank_frames
from livemamba.recipe import Plan, Recipe, RecipeStep
from livemamba.timeline import FINISH_TEXT, Message, Timeline


def message(time_s, kind, text="", **more):
    return Message(time_s=time_s, kind=kind, text=text or (FINISH_TEXT if kind == "finish" else f"{kind}."), **more)


RECIPE = Recipe(
    name="Salad",
    steps=tuple(RecipeStep(id=node, text=text) for node, text in (("1", "Chop"), ("2", "Stir"), ("3", "Eat"))),
)
PLAN = Plan((("1",), ("2", "3")))


def row(*, plans=True):
    """Chop from 2.2 s to 20.2 s, then Stir and Eat, to 40 and 50 s."""
    messages = (
        message(2.2, "instruction", "Now chop.", actions=("1",)),
        message(20.2, "success", "You chopped.", actions=("1",)),
        message(20.2, "instruction", "Now stir and eat.", actions=("2", "3")),
        message(40, "success", "You stirred.", actions=("2",)),
        message(50, "success", "You ate.", actions=("3",)),
        message(50, "finish"),
    )
    left = (PLAN, Plan((("2", "3"),)), Plan((("2", "3"),)), Plan((("3",),)), Plan(), Plan())
    return Timeline(
        video_id="1_7",
        activity="Salad",
        messages=messages,
        plans=left if plans else (),
        recipe=RECIPE if plans else None,
    )


class Told:
    """Notes what it is told and shown; the script is said."""

    def __init__(self, script=()):
        self.inner = ScriptedWatcher(script)
        self.starts, self.ticks = [], []

    def start(self, plan, instruction, tick):
        self.starts.append((plan, instruction, tick))
        self.inner.start(plan, instruction, tick)

    def see(self, frame):
        self.ticks.append(frame.tick)
        return self.inner.see(frame)


def advance(tick):
    return Event(kind="advance", tick=tick)


def success(tick, text="Done."):
    return Event(kind="success", tick=tick, text=text)


def said(timeline):
    return [(one.time_s, one.kind, one.text) for one in timeline.messages]


# --- what a system is told ---------------------------------------------------------------------------


def test_a_lesson_is_the_plan_at_the_first_instruction_and_no_outcome():
    lesson = lesson_of(row())
    assert (lesson.recipe, lesson.plan, lesson.turn) == (RECIPE, PLAN, None)
    assert lesson.sentences == {("1",): "Now chop.", ("2", "3"): "Now stir and eat."}
    assert lesson.start_tick == 5  # 2.2 s is seen at 2.5 s


def test_turns_have_the_plan_of_their_own_instruction():
    first, second = turns_of(row())
    assert (first.plan, first.start_tick, first.turn) == (PLAN, 5, 0)
    assert (second.plan, second.start_tick, second.turn) == (Plan((("2", "3"),)), 41, 1)
    assert second.sentences == {("2", "3"): "Now stir and eat."}


def test_a_row_of_texts_alone_is_a_chain_of_its_instructions():
    lesson = lesson_of(row(plans=False))
    assert [lesson.sentences[step] for step in lesson.plan.steps] == ["Now chop.", "Now stir and eat."]
    assert [turn.plan for turn in turns_of(row(plans=False))] == [lesson.plan, Plan(lesson.plan.steps[1:])]
    assert lesson.recipe.ancestors("2") == {"1"}


def test_rows_without_instruction_or_with_a_plan_that_ended_are_refused():
    with pytest.raises(InputError, match="1_7: the row has no instruction"):
        lesson_of(Timeline(video_id="1_7"))
    done = row()
    with pytest.raises(InputError, match=r"plan at 2\.2 s is empty"):
        lesson_of(done.with_messages(done.messages, plans=[Plan()] * len(done.messages)))


# --- streaming -----------------------------------------------------------------------------------------


def test_streaming_begins_at_the_first_action_and_goes_on_from_its_own_completion():
    watcher = Told([success(9), advance(9), success(30), advance(30)])
    timeline = evaluate_streaming(row(), lambda lesson: watcher, blank_frames(60))
    assert said(timeline) == [
        (2.5, "instruction", "Now chop."),
        (4.5, "success", "Done."),
        (4.5, "instruction", "Now stir and eat."),
        (15.0, "success", "Done."),
        (15.0, "finish", FINISH_TEXT),
    ]
    assert watcher.ticks == list(range(5, 31))
    assert [tick for *_, tick in watcher.starts] == [5, 9]


def test_streaming_knows_no_ground_truth_end():
    watcher = Told()
    timeline = evaluate_streaming(row(), lambda lesson: watcher, blank_frames(90))
    assert len(timeline.messages) == 1
    assert watcher.ticks[-1] == 180


def test_a_divergence_goes_to_the_replanner_unless_that_is_off():
    diverged = Event(
        kind="divergence", tick=10, text="You did not follow the instruction. You stirred and ate.", actions=("2", "3")
    )
    script = [diverged, advance(10)]
    kinds = [
        one.text for one in evaluate_streaming(row(), lambda _: ScriptedWatcher(script), blank_frames(20)).messages
    ]
    assert kinds == ["Now chop.", diverged.text, "Now chop."]
    without = evaluate_streaming(row(), lambda _: ScriptedWatcher(script), blank_frames(20), replanning=False)
    assert [one.text for one in without.messages] == ["Now chop.", diverged.text, "Now stir and eat."]


def test_frames_that_end_before_the_first_action_are_an_error():
    with pytest.raises(InputError, match="never began"):
        evaluate_streaming(row(), lambda lesson: SilentWatcher(), blank_frames(1))


# --- turn-based ------------------------------------------------------------------------------------------


def watch_turns(scripts, duration_s=90, **options):
    watchers = {}

    def make(lesson):
        watchers[lesson.turn] = Told(scripts.get(lesson.turn, ()))
        return watchers[lesson.turn]

    return evaluate_turn_based(row(), make, blank_frames(duration_s), **options), watchers


def test_every_ground_truth_instruction_is_given_at_its_own_time_with_a_new_watcher():
    turns, watchers = watch_turns({})
    assert [said(turn) for turn in turns] == [
        [(2.2, "instruction", "Now chop.")],
        [(20.2, "instruction", "Now stir and eat.")],
    ]
    assert [watcher.starts for watcher in watchers.values()] == [
        [(PLAN, "Now chop.", 5)],
        [(Plan((("2", "3"),)), "Now stir and eat.", 41)],
    ]


def test_a_turn_goes_on_past_the_ground_truth_end_by_half_a_window_and_no_further():
    _, watchers = watch_turns({})
    assert watchers[0].ticks == list(range(5, 71))  # 20.2 + 15 = 35.2 s
    assert watchers[1].ticks == list(range(41, 131))  # 50 + 15 s
    _, watchers = watch_turns({}, overrun_s=0)
    assert watchers[0].ticks[-1] == 40


def test_a_completion_seen_late_is_kept_though_the_next_turn_has_begun():
    turns, _ = watch_turns({0: [success(60), advance(60)], 1: [success(50)]})
    assert said(turns[0])[1:] == [(30.0, "success", "Done.")]
    assert said(turns[1])[1:] == [(25.0, "success", "Done.")]


def test_a_turn_ends_when_the_watcher_ends_the_step():
    turns, watchers = watch_turns({0: [success(9), advance(9), success(11)], 1: [advance(100)]})
    assert said(turns[0])[1:] == [(4.5, "success", "Done.")]
    assert watchers[0].ticks[-1] == 9
    assert len(turns[1].messages) == 1  # neither the next instruction nor the finish is the turn's


def test_a_divergence_is_said_and_nothing_is_planned_anew():
    diverged = Event(kind="divergence", tick=10, text="You did not follow the instruction. You ate.", actions=("3",))
    turns, watchers = watch_turns({0: [diverged, success(20), advance(20)]})
    assert [one.kind for one in turns[0].messages] == ["instruction", "divergence", "success"]
    assert watchers[0].ticks[-1] == 20


def test_an_open_last_turn_goes_on_to_the_end_of_the_frames():
    whole = row()
    open_row = whole.with_messages(whole.messages[:3], plans=whole.plans[:3])
    turns = evaluate_turn_based(open_row, lambda lesson: ChattyWatcher(every_s=30), blank_frames(100))
    assert [one.time_s for one in turns[1].messages[1:]] == [50.5, 80.5]


def test_frames_that_end_before_a_turn_begins_are_an_error():
    with pytest.raises(InputError, match=r"1_7: the frames end before the instruction at 20\.2 s"):
        watch_turns({}, duration_s=19)
