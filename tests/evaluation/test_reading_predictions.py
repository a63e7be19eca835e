import json

import pytest

from livemamba.errors import InputError, MissingError
from livemamba.evaluation.predictions import NO_TEXT, read_predictions, write_predictions
from livemamba.timeline import FINISH_TEXT, Message, Timeline

GOOD = {
    "video_id": "10_46",
    "pred_texts": ["Instruction: Stir.", "Feedback: Too fast.", "Success: You stirred."],
    "pred_timestamps": [1, 2.5, 2.5],
}


@pytest.fixture
def write(tmp_path):
    def write(content):
        path = tmp_path / "predictions.json"
        path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
        return path

    return write


def entry(**changes):
    return {**GOOD, **changes}


def test_prefixes_become_kinds(write):
    texts = [
        "Instruction: Stir.",
        "Success: Well done: you stirred.",
        "Feedback: You did not follow the instruction. You ate.",
        "Feedback: Wrong.",
        f"Success: {FINISH_TEXT}",
    ]
    read = read_predictions(write([entry(pred_texts=texts, pred_timestamps=[0, 1, 2, 3, 4])]))
    messages = read.videos["10_46"].messages
    assert [message.kind for message in messages] == ["instruction", "success", "divergence", "mistake", "finish"]
    assert messages[1].text == "Well done: you stirred."
    assert [message.time_s for message in messages] == [0, 1, 2, 3, 4]


def test_what_was_written_is_read_back(tmp_path):
    said = [
        (0.5, "instruction", "Röste: gut."),
        (3.0, "mistake", "No."),
        (3.0, "success", "Yes."),
        (9.25, "finish", "End."),
    ]
    timeline = Timeline(
        video_id="1_7", messages=tuple(Message(time_s=time_s, kind=kind, text=text) for time_s, kind, text in said)
    )
    write_predictions(tmp_path / "p.json", [timeline])
    [read] = read_predictions(tmp_path / "p.json").videos.values()
    assert [(message.time_s, message.text) for message in read.messages] == [(time_s, text) for time_s, _, text in said]


def test_turns_are_written_one_after_the_other_and_read_as_turns(tmp_path):
    turns = [
        Timeline(
            video_id="1_7",
            messages=(
                Message(time_s=start, kind="instruction", text=f"Step {start}."),
                Message(time_s=start + 25, kind="success", text="Done."),
            ),
        )
        for start in (10, 20)
    ]
    write_predictions(tmp_path / "p.json", [turns])
    with pytest.raises(InputError, match=r"element 2 at 20\.0 s comes after element 1 at 35\.0 s"):
        read_predictions(tmp_path / "p.json")
    [read] = read_predictions(tmp_path / "p.json", protocol="turn_based").videos.values()
    assert [[message.time_s for message in turn.messages] for turn in read] == [[10, 35], [20, 45]]


@pytest.mark.parametrize(
    ("times", "good"),
    [([10, 30, 20, 40], True), ([10, 30, 5, 40], False), ([10, 5, 20, 40], False), ([10, 30, 20, 15], False)],
)
def test_turns_rise_within_themselves_and_from_instruction_to_instruction(write, times, good):
    texts = ["Instruction: A.", "Success: a.", "Instruction: B.", "Success: b."]
    path = write([entry(pred_texts=texts, pred_timestamps=times)])
    if good:
        assert len(read_predictions(path, protocol="turn_based").videos["10_46"]) == 2
    else:
        with pytest.raises(InputError, match="video 10_46: element"):
            read_predictions(path, protocol="turn_based")


def test_turns_must_be_of_one_video():
    instruction = Message(time_s=0, kind="instruction", text="Stir.")
    turns = [Timeline(video_id=video_id, messages=(instruction,)) for video_id in ("a", "b")]
    with pytest.raises(InputError, match="one video, not of 2: a, b"):
        write_predictions("unused.json", [turns])


def test_a_message_without_a_sentence_is_kept_and_counted(write):
    texts = ["Instruction: Stir.", "Feedback: ", "Feedback:"]
    read = read_predictions(write([entry(pred_texts=texts)]))
    assert read.without_text == 2
    assert [message.text for message in read.videos["10_46"].messages[1:]] == [NO_TEXT, NO_TEXT]


def test_keys_that_the_format_does_not_know_are_named(write):
    assert read_predictions(write([entry(note="x")])).ignored_keys == {"note": 1}


@pytest.mark.parametrize("repeated", [2, 3])
def test_the_same_message_twice_is_two_messages(write, repeated):
    read = read_predictions(
        write(
            [entry(pred_texts=["Instruction: A."] + ["Feedback: B."] * repeated, pred_timestamps=[0] * (repeated + 1))]
        )
    )
    assert len(read.videos["10_46"].messages) == repeated + 1


@pytest.mark.parametrize(
    ("content", "what"),
    [
        ("not json", "not JSON"),
        ("", "not JSON"),
        ('[{"video_id": "a", "video_id": "b"}]', "'video_id' more than once"),
        ({"video_id": "a"}, "expected a list"),
        (None, "expected a list"),
        (["a"], "entry 0: expected an object"),
        ([{"video_id": "a", "pred_texts": []}], "entry 0: lacks pred_timestamps"),
        ([GOOD, {"texts": []}], "entry 1: lacks video_id, pred_texts, pred_timestamps"),
        ([entry(video_id=7)], "entry 0: video_id is 7"),
        ([entry(video_id="")], "entry 0: video_id is ''"),
        ([GOOD, GOOD], "entry 1: video 10_46 is there already"),
        ([entry(pred_texts="Instruction: A.")], "video 10_46: pred_texts is a text"),
        ([entry(pred_timestamps=None)], "video 10_46: pred_timestamps is a null"),
        ([entry(pred_timestamps=[0, 1])], "video 10_46: 3 pred_texts but 2 pred_timestamps"),
        ([entry(pred_texts=[], pred_timestamps=[])], "video 10_46: no messages"),
        ([entry(pred_timestamps=[0, 2, 1])], "video 10_46: element 2 at 1.0 s comes after element 1 at 2.0 s"),
        ([entry(pred_timestamps=[-1, 2, 3])], "video 10_46: element 0: time -1"),
        ([entry(pred_timestamps=[0, float("nan"), 3])], "video 10_46: element 1: time nan"),
        ([entry(pred_timestamps=[0, 1, float("inf")])], "video 10_46: element 2: time inf"),
        ([entry(pred_timestamps=[0, 1, 10**400])], "video 10_46: element 2: time 1000"),
        ([entry(pred_timestamps=[0, 1, "00:06:22"])], "video 10_46: element 2: time '00:06:22'"),
        ([entry(pred_timestamps=[0, True, 2])], "video 10_46: element 1: time True"),
        ([entry(pred_timestamps=[0, None, 2])], "video 10_46: element 1: time None"),
        ([entry(pred_texts=["Instruction: A.", "Mistake: B.", "Success: C."])], "element 1: text 'Mistake: B.'"),
        ([entry(pred_texts=["Instruction: A.", "feedback: B.", "Success: C."])], "element 1: text 'feedback: B.'"),
        ([entry(pred_texts=["Instruction: A.", "Feedback B.", "Success: C."])], "element 1: text 'Feedback B.'"),
        ([entry(pred_texts=["Instruction: A.", "Feedback:B.", "Success: C."])], "element 1: text 'Feedback:B.'"),
        ([entry(pred_texts=["Instruction: A.", 5, "Success: C."])], "element 1: text 5"),
        (
            [entry(pred_texts=["Success: A.", "Feedback: B.", "Success: C."])],
            "element 0: the first message is 'Success",
        ),
    ],
)
def test_what_breaks_the_format_is_refused_with_its_place(write, content, what):
    path = write(content if isinstance(content, str) else json.dumps(content))
    with pytest.raises(InputError) as caught:
        read_predictions(path)
    assert what in str(caught.value)
    assert str(path) in str(caught.value)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(MissingError, match=r"nowhere\.json does not exist"):
        read_predictions(tmp_path / "nowhere.json")
