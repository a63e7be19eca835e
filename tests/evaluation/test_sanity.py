"""The sanity rows on rows made by hand, with their scores counted by hand."""

import dataclasses

import pytest

from livemamba.errors import InputError
from livemamba.evaluation.report import evaluate, table
from livemamba.evaluation.rules import ScoringRules
from livemamba.evaluation.sanity import (
    StepDurations,
    blank_frames,
    jittered,
    run_row,
    sanity_rows,
    step_durations,
    watched_s,
)
from livemamba.evaluation.text_scores import BertChoice
from livemamba.recipe import Plan, Recipe, RecipeStep
from livemamba.timeline import FINISH_TEXT, Message, Timeline

DURATIONS = StepDurations(by_text={"Stir.": 42.0, "Pour.": 25.0}, overall_s=30.0, num_steps=9)
ROWS = {row.name: row for row in sanity_rows(DURATIONS)}


def video(video_id="1_7", start_s=10.0):
    """Stir for 40 s, Pour with a mistake for 20 s, Eat for 100 s."""
    said = [
        (0, "instruction", "Stir."),
        (40, "success", "You stirred."),
        (40, "instruction", "Pour."),
        (55, "mistake", "You spilled it."),
        (60, "instruction", "Eat."),
        (160, "success", "You ate."),
        (160, "finish", FINISH_TEXT),
    ]
    messages = tuple(
        Message(time_s=start_s + time_s, kind=kind, text=text, category="technique" if kind == "mistake" else None)
        for time_s, kind, text in said
    )
    return Timeline(video_id=video_id, activity="Soup", messages=messages)


def counts(name, protocol, rows=None):
    rows = rows or [video()]
    result = evaluate(
        name,
        rows,
        run_row(ROWS[name], rows, protocol),
        protocol=protocol,
        rules=ScoringRules(),
        bert=BertChoice(wanted=False),
    )
    names = ("matched", "hits", "plain", "true_positives", "false_positives", "false_negatives", "true_negatives")
    return tuple(dataclasses.asdict(result.counts)[one] for one in names)


@pytest.mark.parametrize(
    ("name", "protocol", "expected"),
    [
        # (given, hits, plain, TP, FP, FN, TN)
        ("silent", "streaming", (1, 0, 2, 0, 0, 0, 1)),
        ("silent", "turn_based", (3, 0, 2, 0, 0, 1, 2)),
        # Watched from 10 to 200 s: 19 alerts, all under the first instruction.
        ("chatty", "streaming", (1, 0, 2, 0, 19, 0, 0)),
        # 5 alerts in 55 s (40 + 15), 3 in 35 s of which one finds the mistake, 11 in 115 s.
        ("chatty", "turn_based", (3, 0, 2, 1, 5 + 2 + 11, 0, 0)),
        # Stir ends at 52 (2 late), Pour at 77, Eat at 107 (63 early).
        ("timer", "streaming", (3, 1, 2, 0, 0, 1, 2)),
        ("timer", "turn_based", (3, 1, 2, 0, 0, 1, 2)),
        ("oracle", "streaming", (3, 2, 2, 1, 0, 0, 2)),
        ("oracle", "turn_based", (3, 2, 2, 1, 0, 0, 2)),
        ("oracle, rules", "streaming", (3, 2, 2, 1, 0, 0, 2)),
        ("oracle, rules", "turn_based", (3, 2, 2, 1, 0, 0, 2)),
        ("oracle +-15 s", "streaming", (3, 2, 2, 1, 0, 0, 2)),
        ("oracle +-15 s", "turn_based", (3, 2, 2, 1, 0, 0, 2)),
    ],
)
def test_rows(name, protocol, expected):
    assert counts(name, protocol) == expected


@pytest.mark.parametrize("protocol", ["streaming", "turn_based"])
def test_more_jitter_than_the_window_costs_hits(protocol):
    rows = [video(f"{place}_1") for place in range(60)]
    _, hits, plain, *_ = counts("oracle +-30 s", protocol, rows)
    assert 0.35 * plain < hits < 0.65 * plain  # half of the draws lie within the window; order moves some


def test_the_oracle_speaks_at_the_first_tick_that_shows_the_cause():
    row = video(start_s=10.3)
    [said] = run_row(ROWS["oracle"], [row], "streaming").values()
    assert [(one.kind, one.text) for one in said.messages] == [(one.kind, one.text) for one in row.messages]
    assert [one.time_s for one in said.messages] == [one.time_s + 0.2 for one in row.messages]


def test_jitter_is_seeded_keeps_order_and_company_and_its_bounds():
    row = video()
    same, again, other = (jittered(row, 30, seed=seed) for seed in (1, 1, 2))
    assert same == again != other
    assert jittered(row, 30, seed=1) != jittered(dataclasses.replace(row, video_id="2_2"), 30, seed=1)
    for seed in range(50):
        moved = jittered(row, 30, seed=seed)
        times = [one.time_s for one in moved.messages]
        assert [(one.kind, one.text) for one in moved.messages] == [(one.kind, one.text) for one in row.messages]
        assert times == sorted(times)
        assert times[0] == 10 and times[1] == times[2] and times[5] == times[6]
        assert all(
            abs(new - old.time_s) <= 30 and (2 * new).is_integer() for new, old in zip(times, row.messages, strict=True)
        )
    draws = [jittered(row, 30, seed=seed).messages[5].time_s - 170 for seed in range(400)]
    assert min(draws) < -25 and max(draws) > 25 and abs(sum(draws) / 400) < 3
    assert jittered(row, 0) == row


def test_the_oracle_of_a_turn_knows_that_turn_alone():
    row = video()
    said = run_row(ROWS["oracle"], [row], "turn_based")["1_7"]
    assert [[one.kind for one in turn.messages] for turn in said] == [
        ["instruction", "success"],
        ["instruction", "mistake"],
        ["instruction", "success"],
    ]


def test_the_oracle_replans_as_the_row_does_and_the_rules_as_they_do():
    """Soup: asked to chop, the cook stirs; the row drops the chopping, the rules would ask for it again."""
    recipe = Recipe(name="Soup", steps=tuple(RecipeStep(id=text, text=text) for text in ("Chop", "Stir", "Eat")))
    said = [
        (10, "instruction", "Chop.", ("Chop",), "Chop Stir Eat"),
        (40, "divergence", "You did not follow the instruction. You stirred.", ("Stir",), "Chop Eat"),
        (40, "instruction", "Eat.", ("Eat",), "Eat"),
        (90, "success", "You ate.", ("Eat",), ""),
        (90, "finish", FINISH_TEXT, None, ""),
    ]
    row = Timeline(
        video_id="1_1",
        activity="Soup",
        messages=tuple(Message(time_s=at, kind=kind, text=text, actions=about) for at, kind, text, about, _ in said),
        plans=tuple(Plan(tuple((node,) for node in left.split())) for *_, left in said),
        recipe=recipe,
    )
    for name, instructions in [
        ("oracle", ["Chop.", "Eat."]),
        ("oracle +-30 s", ["Chop.", "Eat."]),
        ("oracle, rules", ["Chop.", "Chop.", "Eat."]),
    ]:
        timeline = run_row(ROWS[name], [row], "streaming")["1_1"]
        assert [one.text for one in timeline.of_kind("instruction")] == instructions
    assert counts("oracle", "streaming", [row]) == (2, 1, 1, 1, 0, 0, 1)


def test_durations_are_medians_by_instruction_and_over_all():
    rows = [video("a"), video("b", start_s=0)]
    short = rows[0].with_messages(rows[0].messages[:3])  # the last instruction has no end
    durations = step_durations([*rows, short])
    assert durations.by_text == {"Stir.": 40, "Pour.": 20, "Eat.": 100}
    assert (durations.overall_s, durations.num_steps) == (40, 7)
    with pytest.raises(InputError, match="no step with a beginning and an end"):
        step_durations([])


def test_ticks_without_pictures():
    frames = list(blank_frames(3.2))
    assert [frame.tick for frame in frames] == list(range(8))
    assert [frame.time_s for frame in frames][-1] == 3.5
    assert frames[0].pixels.shape == (1, 1, 3)
    assert watched_s(video()) == 200


def test_the_table_has_a_line_for_each_row():
    rows = [video()]
    results = [
        evaluate(
            name,
            rows,
            run_row(ROWS[name], rows, "streaming"),
            protocol="streaming",
            rules=ScoringRules(),
            bert=BertChoice(wanted=False),
        )
        for name in ("silent", "oracle")
    ]
    lines = table(results).splitlines()
    assert len({len(line) for line in lines}) == 1
    assert lines[1].split()[:10] == ["silent", "streaming", "0.0", "0-0", "0.00", "0.00", "0.00", "0.00-0.00", "-", "-"]
    assert lines[2].split()[:10] == [
        "oracle",
        "streaming",
        "100.0",
        "100-100",
        "1.00",
        "1.00",
        "1.00",
        "1.00-1.00",
        "-",
        "1.000",
    ]
