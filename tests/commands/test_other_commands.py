import json

import pytest

from livemamba.cli import main
from livemamba.model.livemamba import LiveMamba, RandomWeightsWarning

SETTINGS = (
    "vision: {image_size: 56, width: 24, depth: 2, num_heads: 2}\n"
    "pruning: {keep: 12, dominant: 9}\n"
    "qformer: {num_queries: 3, hidden_size: 16, num_hidden_layers: 2, num_attention_heads: 2, intermediate_size: 24}\n"
    "backbone: {vocab_size: 400, hidden_size: 32, num_hidden_layers: 2, intermediate_size: 64, state_size: 8,"
    " time_step_rank: 4}\n"
    "dialogue: {vision_id: 397, response_id: 398, next_id: 399}\n"
)


@pytest.fixture
def files(tmp_path):
    (tmp_path / "small.yaml").write_text(SETTINGS)
    (tmp_path / "text.txt").write_text("Heat the pan. Crack an egg into the pan. Success: You fried the egg.\n")
    return tmp_path


def _init(files, *more, config="small.yaml", out="checkpoint"):
    arguments = ["init", "--config", str(files / config), "--out", str(files / out)]
    return main([*arguments, *more] if more else [*arguments, "--train-tokenizer", str(files / "text.txt")])


def test_init_makes_a_checkpoint_that_loads(files, capsys):
    assert _init(files) == 0
    assert "random, seed 0" in capsys.readouterr().out
    with pytest.warns(RandomWeightsWarning, match="RANDOM WEIGHTS"):
        model = LiveMamba.from_pretrained(files / "checkpoint")
    assert model.tokens.size <= 397
    assert model.tokens.decode(model.tokens.encode("Crack an egg.")) == "Crack an egg."


@pytest.mark.parametrize(
    ("more", "rule"),
    [
        (("--train-tokenizer", "{}/none.txt"), "does not exist"),
        (("--train-tokenizer", "{}/empty.txt"), "no text to train"),
        (("--train-tokenizer", "{}/binary.txt"), "no text in UTF-8"),
        (("--tokenizer", "{}/nowhere"), "does not exist"),
        (("--tokenizer", "{}/text.txt"), "not a tokenizer file"),
        (("--train-tokenizer", "{}/text.txt", "--set", "vision.depht=3"), "did you mean 'depth'"),
        (("--train-tokenizer", "{}/text.txt", "--set", "vision.image_size=57"), "57"),
        (("--train-tokenizer", "{}/text.txt", "--set", "vision=&a [*a]"), "list"),
        (("--train-tokenizer", "{}/text.txt", "--set", "backbone.vocab_size=10" + "0" * 30), "less than or equal"),
        (("--train-tokenizer", "{}/text.txt", "--set", "backbone.num_hidden_layers=100000000"), "less than or equal"),
        (
            ("--train-tokenizer", "{}/text.txt", "--set", "backbone.hidden_size=16000000"),
            "GB are free; make it smaller",
        ),
        (("--train-tokenizer", "{}/text.txt", "--seed", "9" * 30), "--seed"),
        (("--train-tokenizer", "{}/text.txt", "--set", "vision.architecture=vit_nothing.x"), "vit_nothing"),
        (("--train-tokenizer", "{}/text.txt", "--vision", "{}/none"), "does not exist"),
        (("--train-tokenizer", "{}/text.txt", "--backbone", "{}/none"), "does not exist"),
    ],
)
def test_init_refuses_in_one_line_and_leaves_nothing(files, capsys, more, rule):
    (files / "empty.txt").write_text("\n")
    (files / "binary.txt").write_bytes(b"\xff\xfe\x80")
    before = sorted(files.iterdir())
    assert _init(files, *(text.format(files) for text in more)) == 1
    errors = capsys.readouterr().err.splitlines()
    assert len(errors) == 1 and rule in errors[0]
    assert sorted(files.iterdir()) == before


def test_init_does_not_replace_unasked(files, capsys):
    assert _init(files) == 0
    assert _init(files) == 1
    assert "exists" in capsys.readouterr().err
    assert _init(files, "--train-tokenizer", str(files / "text.txt"), "--overwrite", "--seed", "3") == 0


def test_inspect_prints_the_example_of_the_pitfall(files, capsys):
    """D3: six frames, an utterance at 1.2 s: the first "speak" at the 1.5 s tick, the end learnt, prompts not."""
    assert _init(files) == 0
    capsys.readouterr()
    arguments = ["inspect", "--config", str(files / "small.yaml"), "--tokenizer", str(files / "checkpoint")]
    assert main(arguments) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "6 frames; decisions: 2 respond, 6 silent" in lines[-1]
    decisions = [line.split() for line in lines if line.endswith("decision")]
    # End of prompt, six frames, end-of-text.
    assert [row[-2] for row in decisions] == ["<vision>"] * 4 + ["<response>"] + ["<vision>"] * 2 + ["<response>"]
    first_speak = next(place for place, line in enumerate(lines) if line.split()[-2:] == ["<response>", "decision"])
    assert [line for line in lines[:first_speak] if " s  " in line][-1].split()[1] == "1.5"


def test_inspect_reads_a_conversation(files, capsys):
    assert _init(files) == 0
    items = [
        {"type": "text", "role": "prompt", "text": "Watch."},
        {"type": "frames", "first_tick": 0, "count": 2},
        {"type": "decision", "kind": "success", "text": "You fried it.", "ends_step": True},
    ]
    (files / "c.json").write_text(json.dumps({"items": items}))
    arguments = ["inspect", "--config", str(files / "small.yaml"), "--tokenizer", str(files / "checkpoint")]
    capsys.readouterr()
    assert main([*arguments, "--conversation", str(files / "c.json")]) == 0
    assert "2 frames; decisions: 1 respond, 2 silent" in capsys.readouterr().out
    for text, rule in [
        ("{", "not JSON"),
        ('{"items": [{"type": "sound"}]}', "item 0"),
        ('{"items": []}', "at least one"),
    ]:
        (files / "c.json").write_text(text)
        assert main([*arguments, "--conversation", str(files / "c.json")]) == 1
        assert rule in capsys.readouterr().err
    assert main([*arguments, "--conversation", str(files / "none.json")]) == 1


def test_a_version_and_a_help_are_there(capsys):
    for arguments in (["--version"], ["coach", "--help"], ["init", "--help"], ["inspect", "--help"]):
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        assert ended.value.code == 0
    assert "livemamba 0." in capsys.readouterr().out
