import json

import pytest

from livemamba.data.official_rows import (
    load_rows,
    read_rows,
    recipe_from_plan,
    row_from_timeline,
    timeline_from_row,
    write_rows,
)
from livemamba.errors import InputError, MissingError
from livemamba.recipe import Plan, recipe_from_dict
from livemamba.timeline import Message, Timeline

# As the official files have it: the plan before each message; an action's text where there is feedback.
ROW = {
    "video_id": "1_1",
    "activity_name": "Fried Egg",
    "output_texts": [
        "Now crack an egg and heat the pan.",
        "You cracked an egg correctly.",
        "You used high heat.",
        "Now fry the egg.",
        "You fried the egg correctly.",
        "You have finished all the steps.",
    ],
    "output_timestamps": [1.0, 4.5, 9.0, 9.0, 20.25, 20.25],
    "output_types": [
        "instruction",
        "feedback_action_aligned_success",
        "feedback_action_aligned_mistake_temperature_error",
        "instruction",
        "feedback_action_aligned_success",
        "feedback_finish_all",
    ],
    "output_actions": [None, "Crack an egg", "Heat the pan", None, "Fry the egg", None],
    "remaining_plan": [
        [["Crack an egg", "Heat the pan"], ["Fry the egg"]],
        [["Crack an egg", "Heat the pan"], ["Fry the egg"]],
        [["Heat the pan"], ["Fry the egg"]],
        [["Fry the egg"]],
        [["Fry the egg"]],
        [],
    ],
}


def test_a_row_becomes_a_timeline():
    timeline = timeline_from_row(ROW)
    assert [message.kind for message in timeline.messages] == [
        "instruction",
        "success",
        "mistake",
        "instruction",
        "success",
        "finish",
    ]
    assert timeline.messages[2] == Message(
        time_s=9.0, kind="mistake", text="You used high heat.", aligned=True, category="temperature", actions=("2",)
    )
    # What is left just after each message.
    assert [plan.steps for plan in timeline.plans] == [
        (("1", "2"), ("3",)),
        (("2",), ("3",)),
        (("3",),),
        (("3",),),
        (),
        (),
    ]
    assert timeline.recipe.ancestors("3") == {"1", "2"}
    assert timeline.messages[3].actions == ("3",)


def test_a_row_comes_back_unchanged():
    assert row_from_timeline(timeline_from_row(ROW), with_graph=False) == ROW


def test_steps_may_be_bare_texts():
    bare = {**ROW, "remaining_plan": [["Crack an egg", "Fry the egg"]] * 5 + [[]], "output_actions": None}
    assert timeline_from_row(bare).plans[0] == Plan((("1",), ("2",)))


@pytest.mark.parametrize("follows", ["aligned", "unaligned"])
@pytest.mark.parametrize("what", ["success", "mistake_technique_error", "mistake_measurement_error"])
def test_every_type_survives(follows, what):
    kind = f"feedback_action_{follows}_{what}"
    row = {
        **{key: value[:2] if isinstance(value, list) else value for key, value in ROW.items()},
        "output_types": ["instruction", kind],
    }
    timeline = timeline_from_row(row)
    assert timeline.messages[1].aligned == (follows == "aligned")
    assert (timeline.messages[1].kind == "divergence") == (follows == "unaligned")
    assert row_from_timeline(timeline, with_graph=False) == row


STIRRED = recipe_from_dict(
    {
        "name": "Soup",
        "steps": [
            {"id": "7", "text": "Stir it", "after": []},
            {"id": "2", "text": "Salt it", "after": ["7"]},
            {"id": "5", "text": "Stir it", "after": ["2"]},
        ],
    },
    where="test",
)


def test_repeats_are_told_apart_by_a_suffix_and_ids_stay():
    first = Message(time_s=0, kind="instruction", text="Now stir it.", actions=("7",))
    other = Message(time_s=3, kind="divergence", text="You did not follow.", aligned=False, actions=("5",))
    plans = (Plan((("7",), ("2",), ("5",))), Plan((("7",), ("2",))))
    timeline = Timeline(video_id="1_1", activity="Soup", messages=(first, other), plans=plans, recipe=STIRRED)
    row = row_from_timeline(timeline, with_graph=True)
    assert row["remaining_plan"][0] == [["Stir it"], ["Salt it"], ["Stir it"]]
    assert row["remaining_plan_w_suffix"][0] == [["Stir it_1"], ["Salt it"], ["Stir it_2"]]
    assert row["output_actions"] == [None, "Stir it_2"]
    assert row["recipe_graph"] == {
        "nodes_int_to_str": {"7": "Stir it_1", "2": "Salt it", "5": "Stir it_2"},
        "nodes_str_to_int": {"Stir it_1": 7, "Salt it": 2, "Stir it_2": 5},
        "edges": [[7, 2], [2, 5]],
        "recipe_text": "Stir it\nSalt it\nStir it",
        "action_description_cnt": {"Stir it": 2, "Salt it": 1},
    }
    read = timeline_from_row(json.loads(json.dumps(row)))
    assert read.recipe == STIRRED and read.messages == timeline.messages
    assert read.plans[0] == plans[0]


def test_without_a_graph_repeats_are_told_apart_by_what_was_done():
    recipe = recipe_from_plan("Soup", [["Stir it"], ["Stir it"]])
    done_second_first = Message(time_s=2, kind="success", text="You stirred it.", aligned=True, actions=("2",))
    first = Message(time_s=0, kind="instruction", text="Now stir it.", actions=("1",))
    again = Message(time_s=2, kind="instruction", text="Now stir it.", actions=("1",))
    plans = (Plan((("1",), ("2",))), Plan((("1",),)), Plan((("1",),)))
    timeline = Timeline(
        video_id="1_1", activity="Soup", messages=(first, done_second_first, again), plans=plans, recipe=recipe
    )
    assert timeline_from_row(row_from_timeline(timeline, with_graph=False)) == timeline


def test_a_silent_advance_has_no_place_in_a_row():
    messages = (
        Message(time_s=0, kind="instruction", text="Now stir it."),
        Message(time_s=1, kind="advance"),
        Message(time_s=1, kind="finish", text="You have finished all the steps."),
    )
    row = row_from_timeline(Timeline(video_id="1_1", messages=messages), with_graph=False)
    assert row["output_types"] == ["instruction", "feedback_finish_all"] and row["remaining_plan"] == []
    assert timeline_from_row(row).plans == ()


def test_what_cannot_be_written_says_why():
    mistake = Timeline(video_id="1_1", messages=(Message(time_s=0, kind="mistake", text="No."),))
    with pytest.raises(InputError, match="mistake at 0 s has no category"):
        row_from_timeline(mistake, with_graph=False)
    with pytest.raises(InputError, match="has no recipe"):
        row_from_timeline(Timeline(video_id="1_1"), with_graph=True)
    named = recipe_from_dict({"name": "x", "steps": [{"id": "mix", "text": "Mix"}]}, where="test")
    with pytest.raises(InputError, match="whole numbers as ids"):
        row_from_timeline(Timeline(video_id="1_1", recipe=named), with_graph=True)


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"output_types": ["instruction"] * 5}, "differ in length"),
        ({"output_types": ["feedback"] * 6}, "none of the official ones"),
        ({"output_types": ["feedback_action_aligned_mistake_salt_error"] * 6}, "none of the official ones"),
        ({"output_timestamps": [5.0, 4.5, 9.0, 9.0, 20.25, 20.25]}, "sort by time"),
        ({"remaining_plan": [[["Crack an egg"]], [["Fry the egg"]], [], [], [], []]}, "'Fry the egg' 1 times"),
        ({"remaining_plan": [[[3]]] * 6}, "neither a text nor a list"),
    ],
)
def test_a_broken_row_is_refused_with_its_line(tmp_path, change, rule):
    file = tmp_path / "rows.jsonl"
    file.write_text(json.dumps({**ROW, "video_id": "1_0"}) + "\n" + json.dumps({**ROW, **change}) + "\n")
    with pytest.raises(InputError, match=rule) as caught:
        read_rows(file)
    assert "line 2" in str(caught.value)


def test_files_that_are_no_rows(tmp_path):
    with pytest.raises(MissingError, match="livemamba build interactive-cooking"):
        load_rows(tmp_path, "main", "test")
    with pytest.raises(InputError, match="split 'val' is not one of"):
        load_rows(tmp_path, "main", "val")
    with pytest.raises(InputError, match="plan set 'advanced'"):
        load_rows(tmp_path, "advanced", "test")
    file = tmp_path / "rows.jsonl"
    file.write_text(json.dumps({"video_id": "1_1"}) + "\n")
    with pytest.raises(InputError, match=r"line 1.*lacks activity_name"):
        read_rows(file)
    file.write_text("\n".join([json.dumps(ROW)] * 2))
    with pytest.raises(InputError, match="1_1 stands in more than one row"):
        read_rows(file)


@pytest.mark.parametrize("plan_set", ["main", "advanced_planning"])
def test_all_built_rows_are_read_back_unchanged(real_benchmark, tmp_path, plan_set):
    with_graph = plan_set == "advanced_planning"
    for split, videos in real_benchmark.videos[plan_set].items():
        built = [video.timeline for video in videos]
        file = tmp_path / plan_set / f"{split}.jsonl"
        write_rows(file, built, with_graph=with_graph)
        read = load_rows(tmp_path, plan_set, split)
        assert read == built
        write_rows(tmp_path / "again.jsonl", read, with_graph=with_graph)
        assert (tmp_path / "again.jsonl").read_bytes() == file.read_bytes()
