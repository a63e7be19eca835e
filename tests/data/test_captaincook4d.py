import json
from collections import Counter

import pytest

from livemamba.data.captaincook4d import (
    MISSING_TAG,
    NAMES_FILE,
    SPLITS_FILE,
    STEPS_FILE,
    TEXTS_FILE,
    VIDEOS_FILE,
    graph_file,
    read_annotations,
)
from livemamba.errors import InputError, MissingError


def test_a_small_folder_is_read_whole(annotations_folder):
    read = read_annotations(annotations_folder())
    assert list(read.recordings) == ["1_1", "1_2", "1_3"]
    assert read.splits == {"train": ("1_1",), "validation": ("1_2",), "test": ("1_3",)}
    recording = read.recordings["1_1"]
    assert (recording.activity, recording.duration_s) == ("Fried Egg", 30.0)
    whisk = recording.actions[1]
    assert (whisk.place, whisk.start_s, whisk.end_s) == (2, 4.0, 9.0)
    assert [(tag.name, tag.text) for tag in whisk.tags] == [("Technique Error", "Whisk with hand")]
    graph = read.graphs["Fried Egg"]
    assert graph.descriptions == {"1": "Crack-Crack an egg", "2": "Whisk-Whisk the egg", "3": "Fry-Fry the egg"}
    assert graph.recipe.ancestors("3") == {"1", "2"}


def test_all_that_is_missing_is_listed_at_once(annotations_folder, tmp_path):
    folder = annotations_folder(**{STEPS_FILE: None, VIDEOS_FILE: None, TEXTS_FILE: None})
    with pytest.raises(MissingError) as caught:
        read_annotations(folder)
    message = str(caught.value)
    assert all(name in message for name in (STEPS_FILE, VIDEOS_FILE, TEXTS_FILE)) and NAMES_FILE not in message
    assert "\n" not in message
    with pytest.raises(MissingError, match="no folder"):
        read_annotations(tmp_path / "nowhere")


def test_a_missing_graph_is_named_by_its_file(annotations_folder):
    with pytest.raises(MissingError, match=r"task_graphs/friedegg\.json"):
        read_annotations(annotations_folder(**{"task_graphs/friedegg.json": None}))


def _steps(**changes):
    step = {"description": "Cut-Cut it", "step_id": 1, "start_time": 0.0, "end_time": 1.0, **changes}
    return [{"recording_id": "1_1", "step_annotations": [{k: v for k, v in step.items() if v is not None}]}]


@pytest.mark.parametrize(
    ("file", "content", "rule"),
    [
        (STEPS_FILE, "{", "not JSON"),
        (STEPS_FILE, {}, "a dict where a list belongs"),
        (STEPS_FILE, [{"recording_id": "1_1"}], "entry 1 needs"),
        (STEPS_FILE, _steps(start_time=None), "1_1 step 1: not a step"),
        (STEPS_FILE, _steps(description=" "), "description is empty"),
        (STEPS_FILE, _steps(errors=[{"tag": "Typo", "description": "x"}]), "'Typo' is not one of"),
        (STEPS_FILE, _steps(errors=[{"tag": "Timing Error", "description": ""}]), "Timing Error has no description"),
        (STEPS_FILE, _steps() + _steps(), "1_1 stands twice"),
        (STEPS_FILE, [{"recording_id": "9_9", "step_annotations": []}], "9_9 .* is not in"),
        (NAMES_FILE, {"1_1": {}}, "1_1 has no activity_name"),
        (SPLITS_FILE, {"train": [], "test": []}, "no list 'val'"),
        (SPLITS_FILE, {"train": ["7_7"], "val": [], "test": []}, "unknown recordings 7_7"),
        (SPLITS_FILE, {"train": ["1_1"], "val": ["1_1"], "test": []}, "1_1 more than once"),
        (VIDEOS_FILE, "recording_id,length\n1_1,3\n", r"lacks the column duration\(sec\)"),
        (VIDEOS_FILE, "recording_id,duration(sec)\n1_1,nan\n", "line 2: duration 'nan'"),
        (TEXTS_FILE, {"x": "Cut-Cut it"}, "not step id -> description"),
        ("task_graphs/friedegg.json", {"steps": []}, "'steps' and 'edges'"),
        ("task_graphs/friedegg.json", {"steps": {"1": "Cut-Cut it"}, "edges": [[1, 5]]}, "names node '5'"),
    ],
)
def test_what_breaks_the_layout_is_refused_with_its_place(annotations_folder, file, content, rule):
    with pytest.raises(InputError, match=rule) as caught:
        read_annotations(annotations_folder(**{file: content}))
    assert "\n" not in str(caught.value)


# --- the real files: each hazard that the specification lists -------------------------------------------


@pytest.fixture(scope="module")
def actions(real_annotations):
    return [(recording, action) for recording in real_annotations.recordings.values() for action in recording.actions]


def test_skipped_steps(actions):
    skipped = [action for _, action in actions if action.start_s == action.end_s == -1]
    assert len(actions) == 5700 and len(skipped) == 287
    assert sum(not action.has_tag(MISSING_TAG) for action in skipped) == 6


def test_tags(actions):
    assert sum(not action.tags for _, action in actions) == 3736
    several = [action.mistakes for _, action in actions if len(action.mistakes) > 1]
    assert len(several) == 189 and {len(mistakes) for mistakes in several} == {2, 3, 4}
    tags = [Counter(tag.name for tag in action.tags) for _, action in actions]
    assert sum(max(names.values(), default=0) > 1 for names in tags) == 22


def test_modified_descriptions_say_skipped_on_performed_steps(test_data, actions):
    assert sum(action.has_modified_text and not action.tags for _, action in actions) == 15
    file = test_data / "data" / "captaincook4d" / "annotation_json" / "error_annotations.json"
    steps = [step for recording in json.loads(file.read_text()) for step in recording["step_annotations"]]
    lies = [s for s in steps if s.get("modified_description") == "Skipped this step" and s["start_time"] >= 0]
    assert lies  # why it is not read


def test_nine_steps_end_after_their_video(actions):
    past = [action.end_s - recording.duration_s for recording, action in actions if action.end_s > recording.duration_s]
    assert len(past) == 9 and max(past) < 0.011


def test_texts_and_step_ids_disagree_in_seven_steps(real_annotations, actions):
    wrong = [a for _, a in actions if real_annotations.step_texts[a.step_id] != a.description]
    assert len(wrong) == 7


def test_graph_files_are_found_by_the_activity_s_own_spelling(real_annotations):
    assert len(real_annotations.graphs) == 24
    assert graph_file("Sauted Mushrooms") == "task_graphs/sautedmushrooms.json"
    repeated = [
        name
        for name, graph in real_annotations.graphs.items()
        if len(set(graph.descriptions.values())) < len(graph.descriptions)
    ]
    assert len(repeated) == 3
    texts = [text for graph in real_annotations.graphs.values() for text in graph.descriptions.values()]
    assert "START" not in texts and "END" not in texts


def test_which_split_file_is_the_benchmark_s_one(test_data, real_annotations):
    sizes = {split: len(keys) for split, keys in real_annotations.splits.items()}
    assert sizes == {"train": 213, "validation": 62, "test": 109}
    others = [
        tuple(len(json.loads(file.read_text())[key]) for key in ("train", "val", "test"))
        for file in (test_data / "data" / "captaincook4d" / "data_splits").glob("*.json")
        if file.name not in SPLITS_FILE
    ]
    assert len(others) == 7 and (213, 62, 109) not in others
