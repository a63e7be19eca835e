"""The real annotations, read and built once; and small ones, written by hand."""

import json

import pytest

from livemamba.data.captaincook4d import read_annotations
from livemamba.data.interactive_cooking import build_benchmark


@pytest.fixture(scope="session")
def real_annotations(test_data):
    return read_annotations(test_data / "data" / "captaincook4d")


@pytest.fixture(scope="session")
def real_benchmark(real_annotations):
    return build_benchmark(real_annotations)


EGG = {
    "steps": {"0": "START", "1": "Crack-Crack an egg", "2": "Whisk-Whisk the egg", "3": "Fry-Fry the egg", "4": "END"},
    "edges": [[0, 1], [1, 2], [2, 3], [3, 4]],
}


def step(description, start, end, *tags, step_id=1):
    """A step as the files hold it; tags as (name, text)."""
    data = {"description": description, "step_id": step_id, "start_time": start, "end_time": end}
    if tags:
        data["errors"] = [{"tag": name, "description": text} for name, text in tags]
    return data


EGG_STEPS = [
    step("Crack-Crack an egg", 1.0, 4.0),
    step("Whisk-Whisk the egg", 4.0, 9.0, ("Technique Error", "Whisk with hand")),
    step("Fry-Fry the egg", 10.0, 20.0),
]


@pytest.fixture
def annotations_folder(tmp_path):
    """A folder of CaptainCook4D's layout: three videos of one recipe, one for each split."""

    def make(**changes):
        files = {
            "annotation_json/error_annotations.json": [
                {"recording_id": f"1_{number}", "activity_id": 1, "is_error": True, "step_annotations": EGG_STEPS}
                for number in (1, 2, 3)
            ],
            "annotation_json/complete_step_annotations.json": {
                f"1_{number}": {"recording_id": f"1_{number}", "activity_name": "Fried Egg"} for number in (1, 2, 3)
            },
            "annotation_json/step_idx_description.json": {"1": "Crack-Crack an egg"},
            "data_splits/recordings_data_split_combined.json": {"train": ["1_1"], "val": ["1_2"], "test": ["1_3"]},
            "metadata/video_information.csv": "recording_id,duration(sec)\n1_1,30\n1_2,30\n1_3,30\n",
            "task_graphs/friedegg.json": EGG,
        }
        folder = tmp_path / "annotations"
        for name, content in {**files, **changes}.items():
            if content is None:
                continue
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content if isinstance(content, str) else json.dumps(content))
        return folder

    return make
