"""The corpus on disk: CaptainCook4D's layout, the same bytes every time, whole or not at all."""

import csv
import hashlib
import json
import re

import av
import pytest

from livemamba.cli import main
from livemamba.recipe import load_recipe
from livemamba.simkitchen.corpus import CorpusSettings
from livemamba.simkitchen.layout import DETAILS_FILE
from livemamba.simkitchen.menu import all_dishes
from livemamba.simkitchen.writer import write_corpus

LISTED = "annotation_json/error_annotations.json"
COMPLETE = "annotation_json/complete_step_annotations.json"


def read(folder, name):
    return json.loads((folder / name).read_text(encoding="utf-8"))


def checksums(folder):
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpora") / "plain"
    played = write_corpus(folder, CorpusSettings(episodes=60, seed=11), video=False)
    return folder, played


def test_the_files_are_captaincook4ds(corpus, test_data):
    """Same names, same keys, same types, except for the video folder and our own file."""
    folder, _ = corpus
    real = test_data / "data" / "captaincook4d"
    for name in ("annotation_json", "metadata"):
        assert {path.name for path in (folder / name).iterdir()} == {path.name for path in (real / name).iterdir()}

    def shape(value, depth=0):
        if isinstance(value, dict):
            keys = {re.sub(r"^\d+(_\d+)?$", "#", key) for key in value}
            inner = {key: shape(one, depth + 1) for key, one in value.items()} if "#" not in keys else None
            return inner or {"#": shape(next(iter(value.values())), depth + 1)}
        if isinstance(value, list) and value:
            return [shape(value[0], depth + 1)]
        return type(value).__name__

    for name in (path.name for path in (real / "annotation_json").glob("*.json")):
        ours, theirs = read(folder, f"annotation_json/{name}"), read(real, f"annotation_json/{name}")
        if name != "error_annotations.json":
            assert shape(ours) == shape(theirs), name
    steps = [step for one in read(folder, LISTED) for step in one["step_annotations"]]
    real_steps = [step for one in read(real, LISTED) for step in one["step_annotations"]]
    assert {tuple(sorted(step)) for step in steps} <= {tuple(sorted(step)) for step in real_steps}
    assert {error["tag"] for step in steps for error in step.get("errors", ())} <= {
        error["tag"] for step in real_steps for error in step.get("errors", ())
    }
    assert read(folder, "annotation_json/error_category_idx.json") == read(
        real, "annotation_json/error_category_idx.json"
    )
    header = (real / "metadata/video_information.csv").read_text(encoding="utf-8").splitlines()[0]
    assert (folder / "metadata/video_information.csv").read_text(encoding="utf-8").splitlines()[0] == header


def test_what_was_played_comes_back_from_the_files(corpus):
    folder, played = corpus
    listed = {one["recording_id"]: one for one in read(folder, LISTED)}
    names = read(folder, COMPLETE)
    texts = read(folder, "annotation_json/step_idx_description.json")
    with (folder / "metadata/video_information.csv").open(encoding="utf-8") as file:
        durations = {row["recording_id"]: float(row["duration(sec)"]) for row in csv.DictReader(file)}
    for planned, episode in played:
        steps = listed[planned.id]["step_annotations"]
        assert names[planned.id]["activity_name"] == planned.plan.dish.name
        done = [step for step in steps if step["start_time"] >= 0]
        assert [(step["start_time"], step["end_time"]) for step in done] == [
            (step.start_s, step.end_s) for step in sorted(episode.steps, key=lambda one: one.start_s)
        ]
        assert len(steps) - len(done) == len(planned.plan.skipped)
        assert all(texts[str(step["step_id"])] == step["description"] for step in steps)
        assert (
            max(step["end_time"] for step in steps)
            < durations[planned.id]
            == pytest.approx(episode.duration_s, abs=0.01)
        )
        mistakes = [one.mistake_text for one in planned.plan.performances if one.mistake]
        tagged = [
            error["description"]
            for step in steps
            for error in step.get("errors", ())
            if error["tag"] not in ("Order Error", "Missing Step")
        ]
        assert sorted(mistakes) == sorted(tagged)


def test_details_hold_exact_mistake_times(corpus):
    folder, played = corpus
    recordings = read(folder, DETAILS_FILE)["recordings"]
    mistakes = [(step, step["mistake"]) for one in recordings.values() for step in one["steps"] if "mistake" in step]
    assert len(mistakes) == sum(bool(one.mistake) for planned, _ in played for one in planned.plan.performances) > 20
    for step, mistake in mistakes:
        assert step["start_s"] <= mistake["evidence_s"] <= mistake["seen_s"] <= step["end_s"]


def test_task_graphs_are_read_back_as_the_recipes(corpus):
    folder, _ = corpus
    for dish in all_dishes():
        recipe = load_recipe(folder / "task_graphs" / dish.graph_file)
        numbers = {step.id: str(number) for number, step in enumerate(dish.steps, 1)}
        assert [step.text for step in recipe.steps] == [step.text for step in dish.recipe.steps]
        for step in dish.steps:
            assert set(recipe[numbers[step.id]].after) == {numbers[before] for before in step.after}


def test_splits_list_every_recording_once(corpus):
    folder, played = corpus
    splits = read(folder, "data_splits/recordings_data_split_combined.json")
    listed = [key for keys in splits.values() for key in keys]
    assert sorted(listed) == sorted(planned.id for planned, _ in played)
    unseen = read(folder, "data_splits/recipes_data_split_combined.json")["test"]
    assert unseen == splits["test_unseen"] and unseen
    normal = {key for keys in read(folder, "data_splits/recordings_data_split_normal.json").values() for key in keys}
    listed_errors = {one["recording_id"]: one["is_error"] for one in read(folder, LISTED)}
    assert normal == {key for key, wrong in listed_errors.items() if not wrong}


def test_same_seed_same_bytes_whatever_the_number_of_workers(tmp_path):
    settings = CorpusSettings(episodes=2, seed=5, time_factor=6.0)
    write_corpus(tmp_path / "one", settings, size=32, fps=2)
    write_corpus(tmp_path / "two", settings, size=32, fps=2, workers=2)
    one, two = checksums(tmp_path / "one"), checksums(tmp_path / "two")
    assert one == two and sum(name.endswith(".mp4") for name in one) == 2
    write_corpus(tmp_path / "other", CorpusSettings(episodes=2, seed=6, time_factor=6.0), size=32, fps=2)
    other = checksums(tmp_path / "other")
    assert all(other[name] != one[name] for name in one if name.endswith(".mp4"))


def test_videos_last_as_long_as_their_annotations_say(tmp_path):
    write_corpus(tmp_path / "c", CorpusSettings(episodes=1, seed=2, time_factor=6.0), size=48, fps=4)
    ((key, details),) = read(tmp_path / "c", DETAILS_FILE)["recordings"].items()
    with av.open(str(tmp_path / "c" / "videos" / f"{key}.mp4")) as container:
        times = [frame.time for frame in container.decode(video=0)]
        assert (container.streams.video[0].width, container.streams.video[0].height) == (48, 48)
    assert times == [number / 4 for number in range(len(times))]
    assert len(times) / 4 == pytest.approx(details["duration_s"], abs=0.25)


@pytest.mark.parametrize(
    ("options", "about"),
    [
        (["--episodes", "0"], "0 episodes"),
        (["--episodes", "-3"], "-3 episodes"),
        (["--seed", "-1"], "seed -1"),
        (["--mistakes", "-0.5"], "--mistakes is -0.5"),
        (["--mistakes", "nan"], "--mistakes is nan"),
        (["--mistakes", "20"], "rate preparation"),
        (["--mistakes", "4"], "steps allow it"),
        (["--rate", "skip=-0.1"], "rate skip is -0.1"),
        (["--rate", "timing=-1"], "rate timing is -1"),
        (["--rate", "skip"], "NAME=SHARE"),
        (["--rate", "burn=0.1"], "burn"),
        (["--size", "113"], "picture size 113"),
        (["--fps", "7"], "frame rate 7"),
        (["--time-factor", "0"], "time factor 0"),
        (["--workers", "0"], "0 workers"),
    ],
)
def test_bad_options_are_one_line_and_leave_nothing(tmp_path, capsys, options, about):
    assert main(["simulate", "--out", str(tmp_path / "c"), "--no-video", *options]) != 0
    error = capsys.readouterr().err
    assert about in error and error.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_a_folder_that_is_there_is_kept(tmp_path, capsys):
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "mine.txt").write_text("kept", encoding="utf-8")
    for extra in ([], ["--overwrite"]):
        assert main(["simulate", "--out", str(tmp_path / "c"), "--no-video", "--episodes", "1", *extra]) != 0
        assert "exists" in capsys.readouterr().err
    assert [path.name for path in (tmp_path / "c").iterdir()] == ["mine.txt"]


def test_the_command_reports_what_it_wrote(tmp_path, capsys):
    command = ["simulate", "--out", str(tmp_path / "c"), "--no-video", "--episodes", "8"]
    assert main([*command, "--mistakes", "0"]) == 0
    said = capsys.readouterr().out
    assert "8 episodes" in said and "time-scale gate" in said
    assert not any(one["is_error"] for one in read(tmp_path / "c", LISTED))
    rates = ["--rate", "technique=0.3", "--rate", "normal=0"]
    assert main([*command, "--mistakes", "0", *rates, "--split", "train", "--overwrite"]) == 0
    assert "not measured" in capsys.readouterr().out
    tags = {
        error["tag"]
        for one in read(tmp_path / "c", LISTED)
        for step in one["step_annotations"]
        for error in step.get("errors", ())
    }
    assert tags == {"Technique Error"}


def test_a_broken_run_leaves_nothing(tmp_path):
    def stop(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_corpus(tmp_path / "c", CorpusSettings(episodes=2, time_factor=6.0), size=32, fps=2, progress=stop)
    assert not list(tmp_path.iterdir())
