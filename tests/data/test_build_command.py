import json

import pytest

from livemamba.cli import main
from livemamba.data.captaincook4d import SPLITS_FILE
from livemamba.data.official_rows import load_rows
from livemamba.errors import MissingError

FILES = sorted(
    f"{plan_set}/{split}.jsonl"
    for plan_set in ("advanced_planning", "main")
    for split in ("test", "train", "validation")
)


def build(folder, out, *options):
    return main(["build", "interactive-cooking", "--captaincook4d", str(folder), "--out", str(out), *options])


@pytest.fixture
def real_folder(test_data):
    return test_data / "data" / "captaincook4d"


def test_two_runs_give_the_same_bytes_and_every_count_beside_the_papers(real_folder, tmp_path, capsys):
    assert build(real_folder, tmp_path / "one") == 0
    table = capsys.readouterr().out
    assert build(real_folder, tmp_path / "two") == 0
    files = [path.relative_to(tmp_path / "one") for path in sorted((tmp_path / "one").rglob("*.*"))]
    assert [str(file) for file in files] == sorted([*FILES, "report.json"])
    for file in files:
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()
    assert "followed mistakes         726     686      277     257      481     445   differs [1]" in table
    assert len(load_rows(tmp_path / "one", "main", "test")) == 109

    report = json.loads((tmp_path / "one" / "report.json").read_text())
    assert report["mistake_time"] == "end"
    assert report["counts"]["main"]["test"]["instructions"] == 1489
    skipped = report["notes"]["main"]["not performed: no times, and no tag Missing Step"]
    assert skipped["count"] == len(skipped["places"]) == 6
    assert str(tmp_path) not in json.dumps(report) and str(real_folder) not in json.dumps(report)


def test_what_is_missing_is_one_line_and_nothing_is_written(tmp_path, capsys):
    (tmp_path / "data").mkdir()
    assert build(tmp_path / "data", tmp_path / "out") == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and error.startswith("livemamba: error:")
    for name in ("error_annotations", "complete_step_annotations", "recordings_data_split", "video_information"):
        assert name in error
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


def test_an_out_folder_is_not_overwritten_unasked(tmp_path, capsys):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.txt").write_text("mine")
    assert build(tmp_path / "nowhere", tmp_path / "out", "--overwrite") == 1
    assert "holds no report.json" in capsys.readouterr().err
    assert (tmp_path / "out" / "thesis.txt").read_text() == "mine"


def test_any_corpus_of_the_same_layout_builds(annotations_folder, tmp_path, capsys):
    out = tmp_path / "out"
    assert build(annotations_folder(), out, "--mistake-time", "middle") == 0
    assert "other recordings than the paper's" in capsys.readouterr().out
    [timeline] = load_rows(out, "main", "train")
    assert [(message.time_s, message.kind) for message in timeline.messages] == [
        (1.0, "instruction"),
        (4.0, "success"),
        (4.0, "instruction"),
        (6.5, "mistake"),
        (9.0, "instruction"),
        (20.0, "success"),
        (20.0, "finish"),
    ]
    assert timeline.messages[3].text == "You whisked it with your hand."
    # The test video follows every instruction, so the Advanced test split is empty.
    assert load_rows(out, "advanced_planning", "test") == []
    assert build(annotations_folder(), out) == 1 and "exists" in capsys.readouterr().err
    assert build(annotations_folder(), out, "--overwrite") == 0
    assert json.loads((out / "report.json").read_text())["mistake_time"] == "end"


def exact(steps):
    return {"simkitchen.json": {"recordings": {key: {"steps": steps} for key in ("1_1", "1_2", "1_3")}}}


WHISKED = {"step_id": 1, "start_s": 4.0, "end_s": 9.0, "mistake": {"seen_s": 6.25}}


def test_exact_times_come_from_the_file_that_a_simulated_corpus_has(annotations_folder, tmp_path, capsys):
    out = tmp_path / "out"
    assert build(annotations_folder(**exact([WHISKED])), out, "--mistake-time", "exact") == 0
    assert "when it can be seen" in capsys.readouterr().out
    [timeline] = load_rows(out, "main", "train")
    said = [(message.time_s, message.kind) for message in timeline.messages]
    assert said[2:5] == [(4.0, "instruction"), (6.25, "mistake"), (9.0, "instruction")]
    assert json.loads((out / "report.json").read_text())["mistake_time"] == "exact"


def test_steps_of_equal_times_keep_their_own_moment(annotations_folder, tmp_path):
    together = [
        {"step_id": 2, "start_s": 4.0, "end_s": 9.0, "mistake": {"seen_s": 5.0}},
        WHISKED,
        {"step_id": 3, "start_s": 4.0, "end_s": 9.0, "mistake": {"seen_s": 8.0}},
    ]
    assert build(annotations_folder(**exact(together)), tmp_path / "out", "--mistake-time", "exact") == 0
    [timeline] = load_rows(tmp_path / "out", "main", "train")
    assert [message.time_s for message in timeline.of_kind("mistake")] == [6.25]


@pytest.mark.parametrize(
    ("steps", "what"),
    [
        (None, "1_1 step 2: the corpus doesn't say when its mistake can be seen"),
        ([], "1_1 step 2: the corpus doesn't say when its mistake can be seen"),
        ([{**WHISKED, "mistake": {"seen_s": None}}], "no exact times in it"),
        ([{**WHISKED, "mistake": {"seen_s": "soon"}}], "no exact times in it"),
        ([{**WHISKED, "mistake": {"seen_s": float("nan")}}], "no finite number"),
        ([{"mistake": {"seen_s": 1.0}}], "no exact times in it"),
    ],
)
def test_a_corpus_without_exact_times_is_refused(annotations_folder, tmp_path, capsys, steps, what):
    folder = annotations_folder(**({} if steps is None else exact(steps)))
    assert build(folder, tmp_path / "out", "--mistake-time", "exact") == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and what in error
    assert not (tmp_path / "out").exists()


def test_unseen_recipes_are_a_split_where_the_corpus_has_one(annotations_folder, tmp_path, capsys):
    splits = {"train": ["1_1"], "val": [], "test": ["1_2"], "test_unseen": ["1_3"]}
    assert build(annotations_folder(**{SPLITS_FILE: splits}), tmp_path / "out") == 0
    assert "recording in no split" not in capsys.readouterr().out
    assert [row.video_id for row in load_rows(tmp_path / "out", "main", "test_unseen")] == ["1_3"]
    # As in test: only videos in which something does not follow its instruction.
    assert load_rows(tmp_path / "out", "advanced_planning", "test_unseen") == []
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert report["counts"]["main"]["test_unseen"]["videos"] == 1
    assert set(report["beside_the_paper"][0]["ours"]) == {"train", "validation", "test"}
    assert build(annotations_folder(**{SPLITS_FILE: {**splits, "test_unseen": "1_3"}}), tmp_path / "other") == 1
    assert "no list 'test_unseen'" in capsys.readouterr().err


def test_the_real_corpus_has_no_such_split(annotations_folder, tmp_path, capsys):
    assert build(annotations_folder(), tmp_path / "out") == 0
    assert not (tmp_path / "out" / "main" / "test_unseen.jsonl").exists()
    with pytest.raises(MissingError, match="test_unseen"):
        load_rows(tmp_path / "out", "main", "test_unseen")


def test_a_build_that_breaks_off_leaves_nothing(annotations_folder, tmp_path, monkeypatch, capsys):
    folder = annotations_folder()

    def full_disk(*arguments, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("livemamba.data.benchmark_counts.counts_by_split", full_disk)
    assert build(folder, tmp_path / "out") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["annotations"]
