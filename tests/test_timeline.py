import pytest

from livemamba.errors import InputError
from livemamba.recipe import Plan
from livemamba.timeline import Message, Timeline, UserEvent


def _message(time_s, kind="success", text="Well done."):
    return Message(time_s=time_s, kind=kind, text=text)


@pytest.mark.parametrize(
    ("values", "rule"),
    [
        ({"time_s": -1, "kind": "success", "text": "x"}, "seconds >= 0"),
        ({"time_s": float("nan"), "kind": "success", "text": "x"}, "seconds >= 0"),
        ({"time_s": 1, "kind": "praise", "text": "x"}, "not one of"),
        ({"time_s": 1, "kind": "success", "text": " "}, "needs a text"),
        ({"time_s": 1, "kind": "advance", "text": "x"}, "says nothing"),
        ({"time_s": 1, "kind": "mistake", "text": "x", "category": "order"}, "mistake category"),
        ({"time_s": 1, "kind": "mistake", "text": "x", "confidence": 1.2}, "between 0 and 1"),
    ],
)
def test_a_message_that_breaks_a_rule_is_refused(values, rule):
    with pytest.raises(InputError, match=rule):
        Message(**values)


def test_a_message_comes_back_from_its_plain_form():
    message = Message(
        time_s=1.25,
        kind="mistake",
        text="Too much.",
        aligned=True,
        category="measurement",
        actions=("3",),
        confidence=0.4,
    )
    assert Message.from_dict(message.to_dict()) == message
    assert _message(1).to_dict() == {"time_s": 1, "kind": "success", "text": "Well done."}
    with pytest.raises(InputError, match="colour"):
        Message.from_dict({"time_s": 1, "kind": "success", "text": "x", "colour": "red"})
    with pytest.raises(InputError, match="needs time_s and kind"):
        Message.from_dict({"text": "x"})


def test_a_timeline_keeps_time_and_plans_in_step():
    with pytest.raises(InputError, match="sort by time"):
        Timeline(video_id="v", messages=(_message(2), _message(1)))
    with pytest.raises(InputError, match="1 plans for 2 messages"):
        Timeline(video_id="v", messages=(_message(1), _message(1)), plans=(Plan(),))
    with pytest.raises(InputError, match="video id"):
        Timeline(video_id="")
    with pytest.raises(InputError, match="user event 1"):
        Timeline(video_id="v", user_events=(UserEvent(time_s=2, action="skip"), UserEvent(time_s=1, action="back")))
    with pytest.raises(InputError, match="user action"):
        UserEvent(time_s=2, action="jump")


def test_segments_run_from_an_instruction_to_the_next_or_the_finish():
    first, second = _message(1, "instruction", "A."), _message(5, "instruction", "B.")
    done, wrong = _message(5), _message(3, "mistake", "No.")
    finish = _message(9, "finish", "All done.")
    timeline = Timeline(video_id="v", messages=(_message(0), first, wrong, done, second, finish))
    segments = list(timeline.segments())
    assert [segment.instruction for segment in segments] == [first, second]
    assert segments[0].messages == (wrong, done)
    assert segments[0].end_s == 5
    assert segments[1].messages == (finish,)
    assert segments[1].end_s == 9
    assert next(Timeline(video_id="v", messages=(first,)).segments()).end_s is None
    assert timeline.of_kind("mistake", "finish") == (wrong, finish)
