"""The plan logic: every rule by hand-made events."""

import pytest

from livemamba.coaching.coach import Coach
from livemamba.coaching.events import Event, Finished, StartStep, in_order
from livemamba.coaching.replanner import ReplanRequest, ReplanResult
from livemamba.errors import InputError
from livemamba.recipe import Plan, Recipe, RecipeStep
from livemamba.timeline import FINISH_TEXT, Message, UserEvent

DID_NOT = "You did not follow the instruction. You chopped the garlic."


def recipe() -> Recipe:
    texts = {"a": "Peel the onion", "b": "Chop the garlic", "c": "Boil the water", "d": "Stir the soup"}
    return Recipe(name="soup", steps=tuple(RecipeStep(id=node, text=text) for node, text in texts.items()))


def coach(*steps: str, **options) -> Coach:
    """A coach in its first step; each step a string of node letters."""
    made = Coach(recipe(), plan=Plan(tuple(tuple(step) for step in steps)), **options)
    made.start(0)
    return made


def success(tick: int, *actions: str) -> Event:
    return Event(kind="success", tick=tick, text="Well done.", actions=actions or None)


def mistake(tick: int, *actions: str) -> Event:
    return Event(kind="mistake", tick=tick, text="Too thick.", category="technique", actions=actions or None)


def advance(tick: int) -> Event:
    return Event(kind="advance", tick=tick)


def divergence(tick: int) -> Event:
    return Event(kind="divergence", tick=tick, text=DID_NOT)


def user(time_s: float, action: str) -> UserEvent:
    return UserEvent(time_s=time_s, action=action)


def plan(*steps: str) -> Plan:
    return Plan(tuple(tuple(step) for step in steps))


def log(made: Coach) -> list[tuple[float, str, str]]:
    return [(message.time_s, message.kind, message.text) for message in made.timeline("v").messages]


def kinds(outputs) -> list[str]:
    return [output.kind if isinstance(output, Message) else type(output).__name__ for output in outputs]


# --- the plain way -----------------------------------------------------------------------------------


def test_a_recipe_from_first_instruction_to_finish():
    made = Coach(recipe(), plan=plan("a", "b"))
    assert made.state == "ready" and made.instruction == ""
    first = made.start(4)
    assert first == (
        Message(time_s=2.0, kind="instruction", text="Now peel the onion.", actions=("a",)),
        StartStep(plan=plan("a", "b"), instruction="Now peel the onion.", tick=4),
    )
    assert kinds(made.on_event(success(10))) == ["success"]
    second = made.on_event(advance(10))
    assert second[1] == StartStep(plan=plan("b"), instruction="Now chop the garlic.", tick=10)
    assert made.done == ("a",) and made.plan == plan("b")
    last = made.on_event(advance(21))
    assert last == (Message(time_s=10.5, kind="finish", text=FINISH_TEXT), Finished(tick=21))
    assert made.state == "finished" and made.done == ("a", "b") and not made.plan
    assert log(made) == [
        (2.0, "instruction", "Now peel the onion."),
        (5.0, "success", "Well done."),
        (5.0, "instruction", "Now chop the garlic."),
        (10.5, "finish", FINISH_TEXT),
    ]


def test_default_plan_is_the_recipes_own():
    chain = Recipe(name="r", steps=(RecipeStep(id="2", text="Two", after=("1",)), RecipeStep(id="1", text="One")))
    assert Coach(chain).plan == Plan((("1",), ("2",)))


def test_each_plan_of_the_timeline_is_what_was_left_just_after_its_message():
    made = coach("ab", "c")
    made.on_events([success(3, "a"), mistake(5, "b"), advance(5)])
    made.on_event(advance(9))
    timeline = made.timeline("10_46")
    assert [message.kind for message in timeline.messages] == [
        "instruction",
        "success",
        "mistake",
        "instruction",
        "finish",
    ]
    assert timeline.plans == (plan("ab", "c"), plan("b", "c"), plan("c"), plan("c"), Plan())
    assert timeline.recipe == recipe() and timeline.activity == "soup" and timeline.video_id == "10_46"


def test_success_alone_does_not_end_a_step():
    made = coach("a", "b")
    for tick in (3, 4, 5):
        made.on_event(success(tick, "a"))
    assert made.step == ("a",) and made.state == "watching" and made.done == ("a",)
    made.on_event(advance(6))
    assert made.step == ("b",) and made.done == ("a",)


def test_compound_step_has_a_success_for_each_action_and_the_rest_is_done_at_the_advance():
    made = coach("abc", "d")
    made.on_event(success(2, "b"))
    assert (made.plan, made.done) == (plan("ac", "d"), ("b",))
    made.on_event(mistake(4, "a"))
    assert (made.plan, made.done) == (plan("c", "d"), ("b", "a"))
    made.on_event(advance(6))
    assert (made.plan, made.done) == (plan("d"), ("b", "a", "c"))


def test_a_success_of_another_steps_action_moves_nothing_and_is_counted():
    made = coach("a", "b")
    made.on_event(success(2, "b"))
    assert (made.plan, made.done) == (plan("a", "b"), ())
    assert made.counts == {"action of another step": 1}


def test_order_at_equal_times_is_feedback_success_instruction():
    made = coach("a", "b")
    made.on_events([advance(4), success(4), mistake(4)])
    assert [kind for _, kind, _ in log(made)] == ["instruction", "mistake", "success", "instruction"]
    assert in_order([success(5), mistake(4)]) == (mistake(4), success(5))


def test_messages_keep_what_the_watcher_knew():
    made = coach("a", "b")
    event = Event(kind="mistake", tick=3, text="Too thick.", category="technique", actions=("a",), confidence=0.7)
    (said,) = made.on_event(event)
    assert (said.category, said.actions, said.confidence, said.aligned) == ("technique", ("a",), 0.7, True)
    assert made.on_event(divergence(4))[0].aligned is False


def test_sentences_are_the_given_ones():
    by_step = {("a",): "Please peel.", ("b", "c"): "Both."}
    made = Coach(recipe(), plan=plan("a", "bc"), instruction_text=by_step)
    assert made.start(0)[0].text == "Please peel."
    assert made.on_event(advance(2))[0].text == "Both."
    by_call = Coach(recipe(), plan=plan("a"), instruction_text=lambda step: f"Do {step[0]}.")
    assert by_call.start(0)[0].text == "Do a." and by_call.instruction == "Do a."


def test_a_step_without_a_given_sentence_is_asked_for_in_the_recipes_words_and_counted():
    made = Coach(recipe(), plan=plan("a", "b"), instruction_text={("a",): "Please peel."})
    made.start(0)
    assert made.on_event(advance(2))[0].text == "Now chop the garlic."
    assert made.counts == {"instruction in the recipe's words": 1}


# --- what is ignored ---------------------------------------------------------------------------------


def test_events_out_of_place_are_ignored_and_counted_by_reason():
    made = Coach(recipe(), plan=plan("a", "b"))
    assert made.on_event(success(0)) == ()
    made.start(2)
    assert made.on_event(success(1)) == ()
    made.on_event(advance(5))
    assert made.on_event(advance(5)) == (), "the frame that ended a step says nothing about the next"
    made.on_event(advance(6))
    assert made.on_event(success(7)) == ()
    assert made.counts == {"event while ready": 1, "event of an earlier step": 2, "event while finished": 1}
    assert [kind for _, kind, _ in log(made)] == ["instruction", "instruction", "finish"]


def test_the_start_frame_itself_counts():
    made = Coach(recipe(), plan=plan("a"))
    made.start(7)
    assert kinds(made.on_event(success(7))) == ["success"]


def test_refusals_at_the_door():
    with pytest.raises(InputError, match="plan is empty"):
        Coach(recipe(), plan=Plan())
    with pytest.raises(InputError, match="no step 'x'"):
        Coach(recipe(), plan=plan("a", "x"))
    with pytest.raises(InputError, match="started before"):
        coach("a").start(1)


@pytest.mark.parametrize(
    "values",
    [
        {"kind": "done", "text": "Yes."},
        {"kind": "success"},
        {"kind": "advance", "text": "Next."},
        {"kind": "divergence", "text": "You chopped."},
        {"kind": "mistake", "text": DID_NOT},
        {"kind": "mistake", "text": "No.", "category": "order"},
        {"kind": "success", "text": "Yes.", "confidence": 2},
        {"kind": "success", "text": "Yes.", "tick": -1},
    ],
)
def test_events_that_break_a_rule_are_refused(values):
    with pytest.raises(InputError):
        Event(**{"tick": 1, **values})


# --- divergence --------------------------------------------------------------------------------------


def test_a_divergence_asks_for_a_plan_with_all_that_is_known():
    made = coach("a", "b", "c")
    made.on_event(advance(3))
    message, request = made.on_event(divergence(8))
    assert message.kind == "divergence" and message.time_s == 4.0
    assert request == ReplanRequest(
        id=1,
        plan=plan("b", "c"),
        done=("a",),
        step=("b",),
        instruction="Now chop the garlic.",
        feedback=DID_NOT,
        tick=8,
    )
    assert made.open_request == request and made.state == "watching"


def test_answer_before_the_advance_changes_the_plan_at_once_and_the_instruction_at_the_advance():
    made = coach("a", "b", "c")
    made.on_event(divergence(4))
    assert made.on_replan(1, ReplanResult(plan=plan("a", "c"), repeats=True, done_step=("b",)), 6) == ()
    assert (made.plan, made.done, made.state) == (plan("a", "c"), ("b",), "watching")
    message, start = made.on_event(advance(9))
    assert (message.text, message.time_s) == ("Now peel the onion.", 4.5)
    assert start == StartStep(plan=plan("a", "c"), instruction="Now peel the onion.", tick=9)
    assert made.done == ("b",), "the instructed step does not count as done"


def test_advance_before_the_answer_waits_and_judges_nothing():
    made = coach("a", "b", "c")
    assert kinds(made.on_events([divergence(4), advance(4)])) == ["divergence", "ReplanRequest"]
    assert made.state == "waiting"
    assert made.on_event(success(5)) == () and made.counts == {"event while waiting": 1}
    message, start = made.on_replan(1, ReplanResult(plan=plan("c"), repeats=False, done_step=("b",)), 16)
    assert (message.kind, message.text, message.time_s) == ("instruction", "Now boil the water.", 8.0)
    assert start.tick == 16 and made.state == "watching" and made.done == ("b",)


def test_an_answer_in_the_frame_of_the_advance_leaves_that_frame_to_the_step_before():
    made = coach("a", "b")
    made.on_events([divergence(4), advance(4)])
    made.on_replan(1, ReplanResult(plan=plan("a"), repeats=True), 4)
    assert made.on_event(advance(4)) == () and made.counts["event of an earlier step"] == 1
    assert kinds(made.on_event(advance(5))) == ["finish", "Finished"]


def test_an_empty_plan_is_the_end():
    made = coach("a", "b")
    made.on_events([divergence(4), advance(4)])
    answer = ReplanResult(plan=Plan(), repeats=False, done_step=("b",))
    assert kinds(made.on_replan(1, answer, 5)) == ["finish", "Finished"]
    assert made.state == "finished"


def test_without_replanning_a_divergence_is_only_said_and_advance_moves_on():
    made = coach("a", "b", replanning=False)
    assert kinds(made.on_event(divergence(3))) == ["divergence"]
    assert made.on_event(advance(3))[0].text == "Now chop the garlic."
    assert made.done == ("a",)


def test_a_success_after_the_divergence_mends_the_step():
    made = coach("a", "b", "c")
    made.on_event(divergence(4))
    made.on_replan(1, ReplanResult(plan=plan("a", "c"), repeats=True, done_step=("b",)), 5)
    made.on_event(success(8))
    made.on_event(advance(8))
    assert made.step == ("c",) and made.done == ("b", "a")


def test_a_success_in_the_divergences_own_frame_does_not_mend_it():
    made = coach("a", "b")
    made.on_events([divergence(4), success(4), advance(4)])
    made.on_replan_failed(1, "error", 4)
    assert made.step == ("a",) and made.done == ()


def test_what_was_done_while_the_answer_was_on_its_way_is_not_asked_for_again():
    made = coach("ab", "c", "d")
    made.on_event(divergence(4))
    made.on_event(success(6, "a"))
    made.on_replan(1, ReplanResult(plan=plan("ab", "d"), repeats=True, done_step=("c",)), 7)
    assert made.plan == plan("b", "d") and made.done == ("a", "c")


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        (ReplanResult(plan=plan("b", "x"), repeats=False), "steps of another recipe"),
        (ReplanResult(plan=plan("b"), repeats=False, done_step=("x",)), "steps of another recipe"),
        (ReplanResult(plan=plan("b", "a"), repeats=False), "steps already done"),
        (ReplanResult(plan=plan("b", "c"), repeats=False, done_step=("c",)), "steps already done"),
        (ReplanResult(plan=None, repeats=False), "not a plan"),  # type: ignore[arg-type]
    ],
)
def test_a_bad_plan_is_refused_whole(result, reason):
    made = coach("a", "b", "c")
    made.on_event(advance(2))
    made.on_event(divergence(4))
    made.on_event(advance(5))
    message, _ = made.on_replan(1, result, 6)
    assert message.text == "Now chop the garlic.", "the instruction is repeated"
    assert (made.plan, made.done) == (plan("b", "c"), ("a",))
    assert made.counts == {f"re-plan refused: {reason}": 1}


def test_a_done_step_may_come_back_after_the_user_went_back():
    made = coach("a", "b")
    made.on_event(advance(2))
    made.on_user(user(1.5, "back"))
    made.on_event(divergence(8))
    made.on_replan(1, ReplanResult(plan=plan("a"), repeats=True, done_step=("b",)), 9)
    assert made.plan == plan("a") and "refused" not in "".join(made.counts)


def test_failure_leaves_the_plan_and_repeats():
    made = coach("a", "b")
    made.on_event(divergence(4))
    assert made.on_replan_failed(1, "time limit", 5) == ()
    assert made.on_event(advance(6))[0].text == "Now peel the onion."
    assert made.plan == plan("a", "b") and made.counts == {"re-plan failed: time limit": 1}


def test_an_unknown_step_is_counted():
    made = coach("a", "b")
    made.on_event(divergence(4))
    made.on_replan(1, ReplanResult(plan=plan("a", "b"), repeats=True), 5)
    assert made.counts == {"re-plan: step not recognised": 1}


@pytest.mark.parametrize("action", ["skip", "done", "back"])
def test_answers_after_the_user_moved_on_are_late(action):
    made = coach("a", "b", "c")
    made.on_event(advance(1))
    made.on_events([divergence(4), advance(4)])
    made.on_user(user(3.0, action))
    before = made.plan, made.done, made.step, log(made)
    assert made.on_replan(1, ReplanResult(plan=plan("c"), repeats=False), 9) == ()
    assert made.on_replan_failed(1, "error", 9) == ()
    assert before == (made.plan, made.done, made.step, log(made))
    assert made.counts == {"late re-plan result": 1, "late re-plan failure": 1}


def test_a_second_divergence_replaces_the_question():
    made = coach("a", "b", "c")
    made.on_event(divergence(4))
    made.on_event(divergence(6))
    made.on_replan(1, ReplanResult(plan=plan("c"), repeats=False), 7)
    assert made.plan == plan("a", "b", "c") and made.open_request.id == 2
    made.on_replan(2, ReplanResult(plan=plan("a", "c"), repeats=True, done_step=("b",)), 7)
    assert made.plan == plan("a", "c")
    assert made.counts == {"question replaced by a newer one": 1, "late re-plan result": 1}


# --- the user ----------------------------------------------------------------------------------------


def test_skip_and_done_differ_only_in_what_counts_as_done():
    skipped, did = coach("a", "b"), coach("a", "b")
    assert skipped.on_user(user(2.2, "skip")) == did.on_user(user(2.2, "done"))
    assert skipped.on_event(success(5)) and skipped.step == ("b",)
    assert (skipped.done, did.done) == ((), ("a",))
    assert log(skipped)[1] == (2.2, "instruction", "Now chop the garlic.")


def test_skipping_the_last_step_finishes():
    assert kinds(coach("a").on_user(user(1, "skip"))) == ["finish", "Finished"]


@pytest.mark.parametrize("leave", ["skip", "done", "advance"])
def test_back_brings_the_last_step_in_front(leave):
    made = coach("ab", "c")
    made.on_event(advance(2)) if leave == "advance" else made.on_user(user(1, leave))
    message, start = made.on_user(user(3, "back"))
    assert message.text == "Now peel the onion and chop the garlic." and start.plan == plan("ab", "c")
    assert made.done == () and made.step == ("a", "b")
    assert made.on_user(user(4, "back")) == () and made.counts == {"back at the first step": 1}


def test_back_twice_goes_two_steps_back():
    made = coach("a", "b", "c")
    made.on_event(advance(2))
    made.on_user(user(2, "skip"))
    made.on_user(user(3, "back"))
    made.on_user(user(4, "back"))
    assert made.plan == plan("a", "b", "c") and made.done == ()


def test_back_reaches_a_step_that_the_replanner_dropped():
    made = coach("a", "b", "c")
    made.on_events([divergence(4), advance(4)])
    made.on_replan(1, ReplanResult(plan=plan("c"), repeats=False, done_step=("b",)), 4)
    made.on_user(user(5, "back"))
    assert made.plan == plan("a", "c") and made.done == ("b",)


def test_back_passes_over_a_step_that_was_only_asked_for_again():
    made = coach("a", "b", "c")
    made.on_event(advance(2))
    made.on_events([divergence(4), advance(4)])
    made.on_replan_failed(1, "error", 4)
    made.on_user(user(5, "back"))
    assert made.plan == plan("a", "b", "c")


def test_back_to_a_step_that_the_replanner_has_put_back_already():
    made = coach("a", "b", "c")
    made.on_user(user(1, "skip"))
    made.on_event(divergence(4))
    made.on_replan(1, ReplanResult(plan=plan("b", "a"), repeats=True, done_step=("c",)), 5)
    made.on_user(user(5, "back"))
    assert made.plan == plan("a", "b")


def test_back_works_after_the_finish_and_nothing_else_does():
    made = coach("a")
    made.on_event(advance(2))
    assert made.on_user(user(2, "skip")) == () and made.counts == {"user event while finished": 1}
    assert made.on_user(user(3, "back"))[0].text == "Now peel the onion."
    assert made.state == "watching"


def test_repeat_says_it_again_and_restarts_nothing():
    made = coach("a", "b")
    made.on_event(advance(3))
    assert made.on_user(user(4.3, "repeat")) == (
        Message(time_s=4.3, kind="instruction", text="Now chop the garlic.", actions=("b",)),
    )
    assert kinds(made.on_event(success(9))) == ["success"]


def test_nothing_is_judged_in_a_pause_and_resume_restarts_nothing():
    made = coach("a", "b")
    assert made.on_user(user(1, "pause")) == () and made.state == "paused"
    assert made.on_events([success(4), advance(4)]) == ()
    assert made.on_user(user(3, "resume")) == () and made.state == "watching"
    made.on_user(user(3, "resume"))
    assert made.counts == {"event while paused": 2, "resume without a pause": 1}
    assert made.on_event(advance(7))[0].text == "Now chop the garlic."


def test_an_answer_in_a_pause_waits_with_the_instruction_until_the_user_resumes():
    made = coach("a", "b", "c")
    made.on_events([divergence(4), advance(4)])
    made.on_user(user(3, "pause"))
    assert made.on_replan(1, ReplanResult(plan=plan("c"), repeats=False, done_step=("b",)), 8) == ()
    assert made.plan == plan("c") and made.state == "paused"
    message, start = made.on_user(user(10.1, "resume"))
    assert (message.text, message.time_s, start.tick) == ("Now boil the water.", 10.1, 21)


def test_skip_in_a_pause_moves_on_and_stays_paused():
    made = coach("a", "b")
    made.on_user(user(1, "pause"))
    assert made.on_user(user(2, "skip"))[0].text == "Now chop the garlic."
    assert made.state == "paused"


def test_a_frame_on_screen_when_the_user_skipped_is_not_held_against_the_new_step():
    made = coach("a", "b")
    made.on_user(user(5.2, "skip"))
    assert made.on_event(advance(10)) == () and made.step == ("b",)
    assert made.on_event(advance(11)) != ()


def test_user_events_before_the_start_are_logged_and_counted():
    made = Coach(recipe(), plan=plan("a"))
    assert made.on_user(user(0, "skip")) == ()
    assert made.plan == plan("a") and made.counts == {"user event while ready": 1}
    assert made.timeline("v").user_events == (user(0, "skip"),)


def test_time_never_goes_back_in_the_log():
    made = coach("a", "b", "c")
    made.on_user(user(5.2, "repeat"))
    made.on_event(success(10))
    made.on_user(user(3.0, "repeat"))
    assert [time_s for time_s, _, _ in log(made)] == [0.0, 5.2, 5.2, 5.2]
    assert [event.time_s for event in made.timeline("v").user_events] == [5.2, 5.2]


def test_looking_changes_nothing():
    made = coach("a", "b")
    made.on_event(divergence(3))
    before = made.to_dict()
    made.timeline("v"), made.outstanding(9), made.state, made.plan, made.counts.update(x=1), made.to_dict()
    assert made.to_dict() == before and "x" not in made.counts
