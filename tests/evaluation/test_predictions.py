import json

import pytest

from livemamba.errors import InputError
from livemamba.evaluation.predictions import claim_run, prediction_entry, write_predictions
from livemamba.timeline import Message, Timeline


def _timeline(*kinds, video_id="1_7"):
    texts = {"advance": ""}
    messages = [
        Message(time_s=place / 2, kind=kind, text=texts.get(kind, f"{kind}.")) for place, kind in enumerate(kinds)
    ]
    return Timeline(video_id=video_id, messages=tuple(messages))


def test_every_kind_has_its_official_prefix_and_advance_none():
    entry = prediction_entry(_timeline("instruction", "success", "mistake", "divergence", "advance", "finish"))
    assert entry == {
        "video_id": "1_7",
        "pred_texts": [
            "Instruction: instruction.",
            "Success: success.",
            "Feedback: mistake.",
            "Feedback: divergence.",
            "Success: finish.",
        ],
        "pred_timestamps": [0.0, 0.5, 1.0, 1.5, 2.5],
    }


def test_the_file_is_a_list_and_comes_whole(tmp_path):
    path = tmp_path / "deep" / "predictions.json"
    write_predictions(path, [_timeline("instruction"), _timeline("instruction", "success", video_id="2_é")])
    assert [entry["video_id"] for entry in json.loads(path.read_text())] == ["1_7", "2_é"]
    with pytest.raises(InputError, match="1_7 more than once"):
        write_predictions(path, [_timeline("instruction"), _timeline("instruction")])
    with pytest.raises(InputError, match="first message is success"):
        write_predictions(path, [_timeline("success", "instruction")])
    with pytest.raises(InputError, match="first message is nothing"):
        write_predictions(path, [_timeline()])
    assert len(json.loads(path.read_text())) == 2
    assert [file.name for file in path.parent.iterdir()] == ["predictions.json"]


def test_a_folder_of_predictions_belongs_to_one_run(tmp_path):
    settings = {"model": "abc", "decoding": {"mistake": 0.5}}
    claim_run(tmp_path / "out", settings)
    (tmp_path / "out" / "streaming.json").write_text("[]")
    claim_run(tmp_path / "out", settings)
    for other in ({**settings, "model": "x"}, {"decoding": settings["decoding"]}, {**settings, "model": "x", "new": 1}):
        with pytest.raises(InputError, match="predictions of another run \\(model"):
            claim_run(tmp_path / "out", other)
    (tmp_path / "out" / "run.json").unlink()
    with pytest.raises(InputError, match=r"streaming\.json and no run\.json"):
        claim_run(tmp_path / "out", settings)
