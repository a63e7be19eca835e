"""The two scripts as a user runs them."""

import json
import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from livemamba.commands.build import REPORT_FILE
from livemamba.data.captaincook4d import read_annotations
from livemamba.data.interactive_cooking import build_benchmark
from livemamba.data.official_rows import rows_file, write_rows
from livemamba.evaluation.interactive_cooking import count, score_videos
from livemamba.evaluation.predictions import read_predictions, write_predictions
from livemamba.evaluation.report import BUILD_REPORT
from livemamba.evaluation.rules import ScoringRules
from livemamba.recipe import Plan
from livemamba.timeline import FINISH_TEXT, Message, Timeline

ROOT = Path(__file__).parents[2]


def video(video_id):
    said = [
        (10, "instruction", "Stir."),
        (50, "success", "You stirred."),
        (50, "instruction", "Pour the water."),
        (65, "mistake", "You spilled it."),
        (70, "finish", FINISH_TEXT),
    ]
    messages = tuple(
        Message(time_s=time_s, kind=kind, text=text, category="technique" if kind == "mistake" else None)
        for time_s, kind, text in said
    )
    whole = Plan((("Stir",), ("Pour the water",)))
    left = (whole, whole.without(["Stir"]), whole.without(["Stir"]), Plan(), Plan())
    return Timeline(video_id=video_id, activity="Soup", messages=messages, plans=left)


@pytest.fixture
def data(tmp_path):
    folder = tmp_path / "rows"
    for split in ("train", "test"):
        write_rows(rows_file(folder, "main", split), [video("1_1"), video("1_2")], with_graph=False)
    return folder


def entry(video_id, *said):
    texts, times = zip(*said, strict=True)
    return {"video_id": video_id, "pred_texts": texts, "pred_timestamps": times}


GOOD = [
    entry(
        "1_1",
        ("Instruction: Stir.", 10),
        ("Success: You stirred.", 48),
        ("Instruction: Pour the water.", 48),
        ("Feedback: You spilled water.", 60),
    ),
    entry("1_2", ("Instruction: Stir.", 10), ("Feedback: No.", 12), ("Success: You stirred.", 48)),
]


@pytest.fixture
def score(data, tmp_path, monkeypatch, capsys):
    """Run the scorer; the exit status, the result if there is one, stdout and stderr."""

    def score(predictions, *options, split="test"):
        file, out = tmp_path / "p.json", tmp_path / "out" / "result.json"
        file.write_text(predictions if isinstance(predictions, str) else json.dumps(predictions))
        command = [
            "--data",
            data,
            "--plan_set",
            "main",
            "--split",
            split,
            "--predictions_file_path",
            file,
            "--out",
            out,
        ]
        monkeypatch.setattr(sys, "argv", ["interactive_cooking.py", *map(str, command), *options])
        with pytest.raises(SystemExit) as caught:
            runpy.run_path(str(ROOT / "eval" / "interactive_cooking.py"), run_name="__main__")
        said = capsys.readouterr()
        assert list(out.parent.glob("*")) in ([], [out])  # nothing half-written
        return caught.value.code, json.loads(out.read_text()) if out.exists() else None, said.out, said.err

    return score


def test_a_result_holds_scores_counts_and_the_rules_that_made_them(score):
    status, result, out, _ = score(GOOD, "--no_bert", "--unaligned_success", "neutral", "--window_s", "20")
    assert status == 0
    assert (result["plan_set"], result["split"], result["protocol"]) == ("main", "test", "streaming")
    assert result["rules"]["unaligned_success"] == "neutral"
    assert result["rules"]["window_s"] == 20
    assert result["rules"]["repeats"] == "monotone"
    assert result["scores"] == {
        "ic_acc": 50.0,
        "mistake_precision": 0.5,
        "mistake_recall": 1.0,
        "mistake_f1": pytest.approx(2 / 3),
        "bert_score": None,
        "rouge_l": pytest.approx(2 / 3),
    }
    assert result["text"]["num_pairs"] == 1
    assert result["text"]["bert"] == "not computed: not asked for"
    expected = {"videos": 2, "segments": 4, "matched": 3, "unmatched": 1, "plain": 2, "hits": 1, "true_positives": 1}
    assert expected.items() <= result["counts"].items()
    assert result["counts"]["skipped_mistakes"] == 1
    assert result["scores_with_unmatched"]["fn"]["recall"] == 0.5
    assert [row["video_id"] for row in result["per_video"]] == ["1_1", "1_2"]
    assert "50.0" in out and "not asked for" in out


def test_a_result_says_whose_labels_it_was_scored_on(score, data):
    assert BUILD_REPORT == REPORT_FILE
    assert score(GOOD, "--no_bert")[1]["labels"]["built_from"].startswith("unknown")
    (data / "report.json").write_text('{"built_from": "CaptainCook4D annotations", "mistake_time": "end", "x": 1}')
    labels = score(GOOD, "--no_bert")[1]["labels"]
    assert labels == {"built_from": "CaptainCook4D annotations", "mistake_time": "end"}
    (data / "report.json").write_text("[]")
    status, _, _, error = score(GOOD, "--no_bert")
    assert status == 1 and "is no report of a build" in error


def test_two_systems_are_compared_on_the_same_videos(score, tmp_path):
    other = tmp_path / "silent.json"
    other.write_text(json.dumps([entry(name, ("Instruction: Stir.", 10)) for name in ("1_1", "1_2")]))
    status, result, out, _ = score(GOOD, "--no_bert", "--compare_with", str(other))
    assert status == 0 and result["system"] == "p"
    assert [row["system"] for row in result["compared_with"]] == ["silent"]
    [difference] = result["differences"]
    assert difference["less"] == "silent"
    assert (difference["ic_acc"], difference["mistake_f1"]) == (50.0, pytest.approx(2 / 3))
    assert difference["intervals_95"]["ic_acc"] == [0.0, 100.0]  # one video has the hit, one has none
    assert "p, less (95% intervals" in out and "(+0.0 to +100.0)" in out
    assert "differences" not in score(GOOD, "--no_bert")[1]
    other.write_text(json.dumps([entry("1_1", ("Instruction: Stir.", 10))]))
    status, _, _, error = score(GOOD, "--no_bert", "--compare_with", str(other))
    assert status == 1 and "no predictions for 1 of the split's 2 videos: 1_2" in error


def test_missing_videos_are_refused_or_silent_by_choice(score):
    status, result, _, error = score(GOOD[:1], "--no_bert")
    assert (status, result) == (1, None)
    assert "no predictions for 1 of the split's 2 videos: 1_2" in error and "--missing_videos empty" in error
    status, result, out, _ = score(GOOD[:1], "--no_bert", "--missing_videos", "empty")
    assert status == 0
    assert result["missing_videos"] == ["1_2"]
    assert (result["counts"]["videos"], result["counts"]["unmatched"]) == (2, 2)
    assert "1 without predictions" in out


@pytest.mark.parametrize(
    ("predictions", "options", "what"),
    [
        ("{", (), "not JSON"),
        ([*GOOD, entry("9_9", ("Instruction: Stir.", 10))], (), "videos that the split does not have: 9_9"),
        ([GOOD[0], entry("1_2", ("Instruction: A.", 10), ("Success: B.", 9))], (), "video 1_2: element 1 at 9.0 s"),
        (GOOD, ("--window_s", "-1"), "window_s is -1.0"),
        (GOOD, ("--bert_model", "/nowhere", "--bert_layers", "2"), "/nowhere"),
        (GOOD, ("--bert_layers", "2"), "bert_layers 2"),
    ],
)
def test_bad_input_is_one_line_and_status_1(score, predictions, options, what):
    status, result, out, error = score(predictions, *options)
    assert (status, result, out) == (1, None, "")
    assert error.startswith("livemamba: error: ") and error.count("\n") == 1
    assert what in error


def test_a_split_that_is_not_there_or_empty_is_an_error(score, data):
    status, _, _, error = score(GOOD, "--no_bert", split="validation")
    assert status == 1 and "validation" in error
    rows_file(data, "main", "validation").write_text("")
    status, _, _, error = score([], "--no_bert", split="validation")
    assert status == 1 and error.count("\n") == 1


def test_turns_may_overlap_when_the_protocol_says_so(score):
    turns = [
        entry(
            name,
            ("Instruction: Stir.", 10),
            ("Success: You stirred.", 60),
            ("Instruction: Pour the water.", 50),
            ("Feedback: No.", 70),
        )
        for name in ("1_1", "1_2")
    ]
    assert score(turns, "--no_bert")[0] == 1
    status, result, *_ = score(turns, "--no_bert", "--protocol", "turn_based")
    assert status == 0
    assert (result["protocol"], result["scores"]["ic_acc"], result["scores"]["mistake_f1"]) == ("turn_based", 100, 1)


def test_the_real_annotations_replayed_are_perfect(test_data, tmp_path):
    """Main and Advanced Planning as built here, not the official release: see the counts of `livemamba build`."""
    built = build_benchmark(read_annotations(test_data / "data" / "captaincook4d"))
    for plan_set, segments, dropped, mistakes in (("main", 1489, 0, 481), ("advanced_planning", 473, 10, 374)):
        rows = [one.timeline for one in built.videos[plan_set]["test"]]
        write_predictions(tmp_path / "replay.json", rows)
        counts = count(score_videos(rows, read_predictions(tmp_path / "replay.json").videos, ScoringRules()))
        assert (counts.segments, counts.dropped_segments, counts.mistakes) == (segments, dropped, mistakes)
        assert counts.matched == segments
        assert counts.hits == counts.plain == counts.true_negatives
        assert counts.true_positives == mistakes
        assert counts.false_positives == counts.false_negatives == 0


def test_the_sanity_table(data, tmp_path):
    out = tmp_path / "rows.json"
    command = [
        sys.executable,
        "eval/sanity_rows.py",
        "--data",
        data,
        "--plan_set",
        "main",
        "--split",
        "test",
        "--out",
        out,
        "--predictions_dir",
        tmp_path / "said",
    ]
    run = subprocess.run(
        list(map(str, command)),
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    result = json.loads(out.read_text())
    scores = {(row["system"], row["protocol"]): row["scores"] for row in result["rows"]}
    assert len(scores) == 14
    for protocol in ("streaming", "turn_based"):
        assert scores["oracle", protocol]["ic_acc"] == 100 and scores["oracle", protocol]["mistake_f1"] == 1
        assert scores["silent", protocol]["ic_acc"] == 0 and scores["silent", protocol]["mistake_f1"] == 0
        assert scores["timer", protocol]["ic_acc"] == 100  # train is test here
        assert scores["chatty", protocol]["ic_acc"] == 0
    assert set(result["systems"]) == {system for system, _ in scores}
    assert "oracle +-30 s" in run.stdout and "main/test, 2 videos" in run.stdout
    # What was said is there in the official format, and scores the same when it is read back.
    said = read_predictions(tmp_path / "said" / "streaming" / "oracle.json", protocol="streaming")
    truth = [video("1_1"), video("1_2")]
    assert count(score_videos(truth, said.videos, ScoringRules())).hits == 2
    assert len(list((tmp_path / "said" / "turn_based").iterdir())) == 7
