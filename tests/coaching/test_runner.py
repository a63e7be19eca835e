"""Whole sessions over tiny frames: the runner, its re-planner's bad days, and the short form."""

import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from livemamba.coaching.coach import Coach
from livemamba.coaching.events import Event
from livemamba.coaching.replanner import ReplanResult, RulesReplanner
from livemamba.coaching.runner import Runner, coach_video
from livemamba.coaching.watchers import ChattyWatcher, ScriptedWatcher, SilentWatcher, TimerWatcher, events_of
from livemamba.errors import InputError
from livemamba.recipe import Plan, Recipe, RecipeStep
from livemamba.ticks import Frame
from livemamba.timeline import FINISH_TEXT, UserEvent

RECIPE = Recipe(
    name="soup",
    steps=(
        RecipeStep(id="a", text="Peel the onion"),
        RecipeStep(id="b", text="Chop the garlic"),
        RecipeStep(id="c", text="Boil the water", after=("a",)),
    ),
)
ABC = Plan((("a",), ("b",), ("c",)))
CHOPPED = "You did not follow the instruction. You chopped the garlic."
BOILED = "You did not follow the instruction. You boiled the water."


def frames(first: int, end: int, stride: int = 1):
    return (frame(tick) for tick in range(first, end, stride))


def frame(tick: int) -> Frame:
    return Frame(tick=tick, time_s=tick / 2, pixels=np.zeros((2, 2, 3), np.uint8))


def script(*events: str) -> ScriptedWatcher:
    """Events as "tick kind" with kinds s(uccess), m(istake), a(dvance), or a divergence's text."""
    made = []
    for event in events:
        tick, kind = event.split(" ", 1)
        named = {"s": ("success", "Good."), "m": ("mistake", "Too thick."), "a": ("advance", "")}
        name, text = named.get(kind, ("divergence", kind))
        made.append(Event(kind=name, tick=int(tick), text=text))
    return ScriptedWatcher(made)


def log(coach: Coach) -> list[str]:
    return [f"{message.time_s} {message.text}" for message in coach.timeline("v").messages]


def session(watcher, **options) -> tuple[Coach, Runner]:
    coach = Coach(RECIPE, plan=ABC)
    return coach, Runner(coach, watcher, **options)


class Slow:
    """A re-planner that answers only once it is let go."""

    def __init__(self, result: ReplanResult) -> None:
        self.result = result
        self.go = threading.Event()
        self.answered = threading.Event()

    def replan(self, request):
        assert self.go.wait(20)
        self.answered.set()
        return self.result


class Rude:
    """A re-planner that raises, or answers with what is no result."""

    def __init__(self, answer: object) -> None:
        self.answer = answer

    def replan(self, request):
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def settle(runner: Runner, slow: Slow) -> None:
    """Let the answer arrive in the runner's letterbox."""
    slow.go.set()
    assert slow.answered.wait(20)
    until = time.monotonic() + 20
    while runner._replies.empty():
        assert time.monotonic() < until
        time.sleep(0.001)


# --- whole sessions ----------------------------------------------------------------------------------


def test_a_session_with_everything_in_it():
    heard = []
    watcher = script("3 s", "3 a", f"8 {BOILED}", "8 a", "12 m", "14 a")
    coach, runner = session(watcher, sinks=[heard.append], wait_for_replanner=True)
    report = runner.run(frames(0, 100))
    assert log(coach) == [
        "0.0 Now peel the onion.",
        "1.5 Good.",
        "1.5 Now chop the garlic.",
        f"4.0 {BOILED}",
        "4.0 Now chop the garlic.",
        "6.0 Too thick.",
        f"7.0 {FINISH_TEXT}",
    ]
    assert coach.done == ("a", "c", "b")
    assert tuple(heard) == coach.timeline("v").messages
    assert report.finished and (report.frames_seen, report.frames_judged) == (15, 15)
    assert (report.first_tick, report.last_tick) == (0, 14), "the source is left once all is done"
    assert report.messages == {"instruction": 3, "success": 1, "divergence": 1, "mistake": 1, "finish": 1}
    assert (report.replans_asked, report.replans_answered, report.replans_failed) == (1, 1, 0)
    assert 0 < report.mean_frame_s <= report.worst_frame_s <= report.wall_s


def test_timer_leads_through_the_recipe():
    timeline = coach_video(TimerWatcher(RECIPE, default_s=5), RECIPE, frames(0, 100), plan=ABC, video_id="10_46")
    assert [message.time_s for message in timeline.of_kind("instruction", "finish")] == [0, 5, 10, 15]
    assert timeline.video_id == "10_46" and timeline.plans[-1] == Plan()


def test_timer_does_not_depend_on_which_frames_were_dropped_while_nothing_was_due():
    every = coach_video(TimerWatcher(RECIPE, default_s=5), RECIPE, frames(0, 100), plan=ABC)
    fifth = coach_video(TimerWatcher(RECIPE, default_s=5), RECIPE, frames(0, 100, 5), plan=ABC)
    assert every.messages == fifth.messages


def test_a_log_replayed_is_the_same_log():
    watcher = script("3 s", "3 a", f"8 {BOILED}", "8 a", "12 m", "14 a")
    first = coach_video(watcher, RECIPE, frames(2, 100), plan=ABC)
    again = coach_video(ScriptedWatcher(events_of(first)), RECIPE, frames(2, 100), plan=ABC)
    assert again == first


def test_silent_stays_at_the_first_instruction_and_chatty_does_not_finish():
    assert len(coach_video(SilentWatcher(), RECIPE, frames(0, 100)).messages) == 1
    timeline = coach_video(ChattyWatcher(), RECIPE, frames(0, 101))
    assert [message.time_s for message in timeline.of_kind("mistake")] == [10, 20, 30, 40, 50]


def test_streaming_begins_at_the_start_tick():
    watcher = script("1 s", "6 a")
    coach, runner = session(watcher)
    report = runner.run(frames(0, 9), start_tick=5)
    assert log(coach) == ["2.5 Now peel the onion.", "2.5 Good.", "3.0 Now chop the garlic."]
    assert (report.frames_seen, report.frames_judged, report.first_tick) == (9, 4, 5)


def test_a_start_tick_whose_frame_was_dropped_still_is_the_start():
    coach, runner = session(SilentWatcher())
    assert runner.run(frames(0, 12, 4), start_tick=6).first_tick == 8
    assert log(coach) == ["3.0 Now peel the onion."]


def test_a_source_in_which_nothing_can_begin_is_an_error():
    for source, start in ((frames(0, 0), None), (frames(0, 5), 5)):
        with pytest.raises(InputError, match="never began"):
            session(SilentWatcher())[1].run(source, start_tick=start)


def test_someone_says_stop():
    _, runner = session(SilentWatcher())
    calls = iter([False, False, False, True])
    assert runner.run(frames(0, 100), should_stop=lambda: next(calls)).frames_seen == 3
    _, runner = session(SilentWatcher())
    assert runner.run(frames(0, 100), should_stop=lambda: True).frames_seen == 0


def test_going_on_after_the_finish_when_asked_to():
    _, runner = session(script("1 a", "2 a", "3 a"))
    report = runner.run(frames(0, 10), stop_when_finished=False)
    assert report.finished and (report.frames_seen, report.frames_judged) == (10, 4)


def test_two_runs_in_one_process_share_nothing():
    alone = coach_video(script("3 a", f"8 {BOILED}", "8 a"), RECIPE, frames(0, 12), plan=ABC)
    pair = [session(script("3 a", f"8 {BOILED}", "8 a"), wait_for_replanner=True) for _ in range(2)]
    for _, runner in pair:
        runner.begin(0)
    for tick in range(12):
        for _, runner in pair:
            runner.step(frame(tick))
    assert all(coach.timeline("video") == alone for coach, _ in pair)


def test_no_torch_is_loaded():
    code = "import sys, livemamba.coaching.runner; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


# --- frame by frame ----------------------------------------------------------------------------------


def test_misuse_is_refused():
    _, runner = session(SilentWatcher())
    with pytest.raises(InputError, match="hasn't begun"):
        runner.step(frame(0))
    runner.begin(0)
    with pytest.raises(InputError, match="begun already"):
        runner.begin(1)
    runner.step(frame(4))
    with pytest.raises(InputError, match="tick 4 comes after tick 4"):
        runner.step(frame(4))
    with pytest.raises(InputError, match="replan_limit_s"):
        session(SilentWatcher(), replan_limit_s=-1)


def test_frames_of_a_pause_are_not_shown():
    shown = []

    class Watcher(SilentWatcher):
        def see(self, frame):
            shown.append(frame.tick)
            return ()

    coach, runner = session(Watcher())
    runner.begin(0)
    for tick in range(12):
        if tick == 3:
            runner.user(UserEvent(time_s=1.2, action="pause"))
        if tick == 9:
            runner.user(UserEvent(time_s=4.2, action="resume"))
        runner.step(frame(tick))
    assert shown == [0, 1, 2, 9, 10, 11]
    assert runner.report().frames_seen == 12 and runner.report().frames_judged == 6
    assert len(coach.timeline("v").user_events) == 2


def test_a_users_skip_starts_the_watcher_on_the_next_step():
    coach, runner = session(TimerWatcher(RECIPE, default_s=5))
    runner.begin(0)
    runner.step(frame(1))
    runner.user(UserEvent(time_s=0.9, action="skip"))
    for tick in range(2, 13):
        runner.step(frame(tick))
    assert log(coach)[:2] == ["0.0 Now peel the onion.", "0.9 Now chop the garlic."]
    assert coach.step == ("c",) and coach.done == ("b",)


def test_a_sink_may_act_and_order_is_kept():
    started, coach = [], Coach(RECIPE, plan=ABC)

    class Watcher(SilentWatcher):
        def start(self, plan, instruction, tick):
            started.append(instruction)

    def impatient(message):
        if message.text == "Now peel the onion.":
            runner.user(UserEvent(time_s=message.time_s, action="skip"))

    heard = []
    runner = Runner(coach, Watcher(), sinks=[impatient, lambda message: heard.append(message.text)])
    runner.begin(0)
    assert heard == ["Now peel the onion.", "Now chop the garlic."], "all sinks hear all in the same order"
    assert started == ["Now peel the onion.", "Now chop the garlic."], "the watcher ends up on the current step"


def test_what_a_watcher_raises_is_not_hidden():
    class Broken(SilentWatcher):
        def see(self, frame):
            raise RuntimeError("lost the state")

    with pytest.raises(RuntimeError, match="lost the state"):
        session(Broken())[1].run(frames(0, 3))


def test_an_engine_may_judge_elsewhere_and_late():
    coach, runner = session(SilentWatcher())
    runner.begin(0)
    assert runner.admit(frame(10))
    runner.user(UserEvent(time_s=5.1, action="skip"))
    runner.deliver([Event(kind="advance", tick=10)])
    assert coach.step == ("b",) and coach.counts == {"event of an earlier step": 1}
    assert runner.admit(frame(11))
    runner.deliver([Event(kind="advance", tick=11)])
    assert coach.step == ("c",)


# --- the re-planner's bad days -----------------------------------------------------------------------

DROP_A = ReplanResult(plan=Plan((("c",),)), repeats=False, done_step=("b",))


def test_live_frames_never_wait_and_the_answer_is_taken_when_it_comes():
    slow = Slow(DROP_A)
    coach, runner = session(script(f"3 {CHOPPED}", "3 a", "12 a"), replanner=slow)
    runner.begin(0)
    for tick in range(10):
        runner.step(frame(tick))
    assert coach.state == "waiting" and runner.report().frames_judged == 4
    settle(runner, slow)
    for tick in range(10, 13):
        runner.step(frame(tick))
    assert log(coach)[1:] == [f"1.5 {CHOPPED}", "5.0 Now boil the water.", f"6.0 {FINISH_TEXT}"]
    assert runner.report().replans_answered == 1


@pytest.mark.parametrize("waits", [True, False])
@pytest.mark.parametrize("answer", [RuntimeError("no such model"), None, {"plan": []}])
def test_when_it_fails_the_rules_answer(waits, answer, caplog):
    coach, runner = session(script(f"3 {CHOPPED}", "3 a"), replanner=Rude(answer), wait_for_replanner=waits)
    runner.begin(0)
    for tick in range(4):
        runner.step(frame(tick))
    until = time.monotonic() + 20
    while coach.state == "waiting" and time.monotonic() < until:
        tick += 1
        runner.step(frame(tick))
        time.sleep(0.001)
    assert coach.plan == Plan((("a",), ("c",))) and coach.done == ("b",)
    report = runner.report()
    assert (report.replans_asked, report.replans_answered, report.replans_failed) == (1, 0, 1)
    assert "re-plan" in caplog.text


@pytest.mark.parametrize("waits", [True, False])
def test_when_it_never_answers_the_rules_do_after_the_limit(waits):
    slow = Slow(DROP_A)
    watcher = script(f"3 {CHOPPED}", "3 a")
    coach, runner = session(watcher, replanner=slow, wait_for_replanner=waits, replan_limit_s=0.05)
    runner.begin(0)
    for tick in range(4):
        runner.step(frame(tick))
    time.sleep(0.06)
    runner.step(frame(4))
    assert coach.plan == Plan((("a",), ("c",))) and coach.state == "watching"
    before = log(coach)
    settle(runner, slow)
    runner.step(frame(5))
    assert log(coach) == before and coach.plan == Plan((("a",), ("c",)))
    report = runner.report()
    assert (report.replans_answered, report.replans_failed, report.replans_late) == (0, 1, 1)
    assert report.counts == {"late re-plan result": 1}


def test_a_foreign_plan_changes_nothing():
    foreign = ReplanResult(plan=Plan((("x",),)), repeats=False)
    coach, runner = session(script(f"3 {CHOPPED}", "3 a"), replanner=Rude(foreign), wait_for_replanner=True)
    runner.run(frames(0, 6))
    assert coach.plan == ABC and log(coach)[-1] == "1.5 Now peel the onion."
    assert runner.report().counts == {"re-plan refused: steps of another recipe": 1}


def test_an_answer_after_the_user_skipped_is_late():
    slow = Slow(DROP_A)
    coach, runner = session(script(f"3 {CHOPPED}", "3 a"), replanner=slow)
    runner.begin(0)
    for tick in range(5):
        runner.step(frame(tick))
    runner.user(UserEvent(time_s=2.2, action="skip"))
    settle(runner, slow)
    runner.step(frame(5))
    assert coach.plan == Plan((("b",), ("c",)))
    assert runner.report().replans_late == 1 and runner.report().replans_failed == 0


@pytest.mark.parametrize("waits", [True, False])
def test_one_question_at_a_time_however_often_the_watcher_diverges(waits):
    running, most, asked = [], [], []

    class Counting(RulesReplanner):
        def replan(self, request):
            running.append(request.id)
            most.append(len(running))
            asked.append(request.id)
            time.sleep(0.02)
            running.remove(request.id)
            return super().replan(request)

    watcher = script(*(f"{tick} {CHOPPED}" for tick in range(1, 40)), "40 a")
    coach, runner = session(watcher, replanner=Counting(RECIPE), wait_for_replanner=waits)
    runner.begin(0)
    for tick in range(41):
        runner.step(frame(tick))
    until = time.monotonic() + 20
    while coach.state == "waiting" and time.monotonic() < until:
        tick += 1
        runner.step(frame(tick))
        time.sleep(0.001)
    assert max(most) == 1 and asked[-1] == 39
    assert len(asked) == 39 if waits else len(asked) < 39
    assert coach.plan == Plan((("a",), ("c",))) and coach.done == ("b",)


def test_waiting_for_the_answer_makes_a_run_repeatable():
    class Unsteady(RulesReplanner):
        def replan(self, request):
            time.sleep(0.02)
            return super().replan(request)

    quick, slow = (
        coach_video(script(f"3 {CHOPPED}", "5 a", "9 a"), RECIPE, frames(0, 30), plan=ABC, replanner=replanner)
        for replanner in (RulesReplanner(RECIPE), Unsteady(RECIPE))
    )
    assert quick == slow


def test_no_limit_waits_as_long_as_it_takes():
    slow = Slow(DROP_A)
    coach, runner = session(script(f"3 {CHOPPED}"), replanner=slow, wait_for_replanner=True, replan_limit_s=None)
    threading.Timer(0.1, slow.go.set).start()
    runner.run(frames(0, 5))
    assert coach.plan == Plan((("c",),))


def test_a_loaded_session_asks_its_open_question_again():
    slow = Slow(DROP_A)
    coach, runner = session(script(f"3 {CHOPPED}", "3 a"), replanner=slow)
    runner.run(frames(0, 5))
    loaded = Coach.from_dict(coach.to_dict(), RECIPE)
    again = Runner(loaded, SilentWatcher(), wait_for_replanner=True)
    again.run(frames(8, 10))
    assert log(loaded)[-1] == "4.0 Now peel the onion." and loaded.plan == Plan((("a",), ("c",)))
    slow.go.set()


def test_a_long_session_does_not_slow_down():
    """Cost per frame does not depend on how long the stream has run (spec/pitfalls.md, P1)."""
    _, runner = session(ChattyWatcher(every_s=0.5))
    runner.begin(0)
    spent = []
    for tick in range(6000):
        since = time.perf_counter()
        runner.step(frame(tick))
        spent.append(time.perf_counter() - since)
    assert np.median(spent[-1000:]) < 2 * np.median(spent[500:1500])
