"""Each rule of the spec against a case counted by hand."""

import dataclasses

import pytest

from livemamba.errors import InputError
from livemamba.evaluation.interactive_cooking import count, ic_acc, mistake_scores, score_video, score_videos
from livemamba.evaluation.rules import ScoringRules
from livemamba.timeline import Message, Timeline

RULES = ScoringRules()
KINDS = {"I": "instruction", "S": "success", "M": "mistake", "D": "divergence", "U": "divergence", "E": "finish"}
ASIDE = "You did not follow the instruction. You peeled the onion."


def line(*said, video_id="1_7"):
    """A timeline from (time, letter, text); U is an unaligned success, D an unaligned mistake."""
    messages = []
    for time_s, letter, *text in said:
        default = {"D": "You are not following the instruction. Wrong.", "U": ASIDE}.get(letter, f"{KINDS[letter]}.")
        category = {"M": "technique", "D": "timing"}.get(letter)
        messages.append(
            Message(time_s=time_s, kind=KINDS[letter], text=text[0] if text else default, category=category)
        )
    return Timeline(video_id=video_id, messages=tuple(messages))


def counts_of(truth, predicted, **rules):
    counts = count([score_video(truth, predicted, ScoringRules(**rules))])
    return dataclasses.asdict(counts)


def of(counts, *names):
    return tuple(counts[name] for name in names)


CONFUSION = ("true_positives", "false_positives", "false_negatives", "true_negatives")
ONE = line((10, "I", "Chop the scallion."), (50, "S"), (50, "I", "Boil the water."), (90, "S"), (90, "E"))


# --- window --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("time_s", "hit"), [(35.0, True), (34.9, False), (65.0, True), (65.1, False)])
def test_completion_counts_up_to_both_edges_of_the_window(time_s, hit):
    counts = counts_of(ONE, line((10, "I", "Chop the scallion."), (time_s, "S")))
    assert of(counts, "plain", "hits") == (2, int(hit))


def test_a_window_edge_that_floats_miss_by_a_hair_still_counts():
    truth = line((0, "I", "Stir."), (1.1, "S"), (1.1, "E"))
    assert 16.1 - 1.1 > 15  # what floats make of it
    assert counts_of(truth, line((0, "I", "Stir."), (16.1, "S")))["hits"] == 1


@pytest.mark.parametrize(
    ("time_s", "expected"), [(25, (1, 0, 0, 0)), (24, (0, 1, 1, 0)), (55, (1, 0, 0, 0)), (56, (0, 1, 1, 0))]
)
def test_mistakes_have_the_same_window(time_s, expected):
    truth = line((10, "I", "Stir."), (40, "M"), (60, "E"))
    assert of(counts_of(truth, line((10, "I", "Stir."), (time_s, "M"))), *CONFUSION) == expected


def test_the_window_is_a_parameter():
    assert counts_of(ONE, line((10, "I", "Chop the scallion."), (56, "S")), window_s=10.0)["hits"] == 0
    assert counts_of(ONE, line((10, "I", "Chop the scallion."), (55, "S")), window_s=10.0)["hits"] == 1


def test_the_category_of_a_mistake_is_not_checked():
    truth = line((0, "I", "Stir."), (40, "D"), (60, "E"))
    assert of(counts_of(truth, line((0, "I", "Stir."), (40, "M"))), *CONFUSION) == (1, 0, 0, 0)


# --- the instruction gate --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("truth", "given", "matched"),
    [
        ("Chop 1 scallion", "Now chop 1 scallion.", 1),  # 2 * 3/4 / (1 + 3/4) = .857
        ("Pour water", "Now pour water.", 1),  # exactly .8
        ("Pour the water", "Now pour in some water.", 0),  # 2 of 3 and 5 words: .5
        ("Pour water", "", 0),
    ],
)
def test_an_instruction_matches_from_a_rouge_l_of_point_eight_on(truth, given, matched):
    row = line((0, "I", truth), (40, "S"), (40, "E"))
    counts = counts_of(row, line((0, "I", given or "…"), (40, "S")))
    assert of(counts, "matched", "unmatched", "hits") == (matched, 1 - matched, matched)


def test_the_gate_is_an_option():
    row = line((0, "I", "Pour the water"), (40, "S"), (40, "E"))
    assert counts_of(row, line((0, "I", "Now pour in some water."), (40, "S")), gate=0.5)["hits"] == 1


def test_a_match_that_another_step_would_pass_for_too_is_reported():
    truth = line(
        (0, "I", "Add 1/8 teaspoon of salt"), (40, "S"), (40, "I", "Add 1/16 teaspoon of salt"), (80, "S"), (80, "E")
    )
    [video] = score_videos([truth], {"1_7": truth}, RULES)
    assert [segment.match.predicted for segment in video.segments] == [0, 1]
    assert video.segments[0].match.confusable == ("Add 1/16 teaspoon of salt",)
    assert count([video]).confusable_matches == 2


# --- hits --------------------------------------------------------------------------------------------------


def test_feedback_inside_the_predicted_segment_spoils_the_hit_and_is_a_false_alarm():
    predicted = line((10, "I", "Chop the scallion."), (20, "M"), (50, "S"), (50, "I", "Boil the water."), (90, "S"))
    counts = counts_of(ONE, predicted)
    assert of(counts, "hits", *CONFUSION) == (1, 0, 1, 0, 1)
    assert counts_of(ONE, predicted, feedback_in_hit="allowed")["hits"] == 2


def test_feedback_after_the_next_instruction_belongs_to_the_next_segment():
    predicted = line((10, "I", "Chop the scallion."), (45, "S"), (45, "I", "Boil the water."), (46, "M"), (90, "S"))
    counts = counts_of(ONE, predicted)
    assert of(counts, "hits", "false_positives", "true_negatives") == (1, 1, 1)


def test_segments_with_a_mistake_are_not_in_ic_acc():
    truth = line((0, "I", "Stir."), (30, "M"), (40, "I", "Pour."), (80, "S"), (80, "E"))
    predicted = line((0, "I", "Stir."), (40, "S"), (40, "I", "Pour."), (80, "S"))
    [video] = score_videos([truth], {"1_7": predicted}, RULES)
    counts = count([video])
    assert (counts.plain, counts.hits, ic_acc(counts)) == (1, 1, 100.0)
    assert of(dataclasses.asdict(counts), *CONFUSION) == (0, 0, 1, 1)


def test_a_step_of_several_actions_is_completed_at_its_last_success():
    truth = line((0, "I", "Stir and pour."), (20, "S"), (60, "S"), (60, "E"))
    assert counts_of(truth, line((0, "I", "Stir and pour."), (20, "S")))["hits"] == 0
    assert counts_of(truth, line((0, "I", "Stir and pour."), (20, "S"), (58, "S")))["hits"] == 1
    assert counts_of(truth, line((0, "I", "Stir and pour."), (58, "S")))["hits"] == 1


def test_a_step_with_a_mistake_is_completed_at_the_next_instruction():
    # The only place where that shows: hits with feedback are allowed, the predicted segment has no success.
    predicted = line((10, "I", "Chop the scallion."), (20, "M"), (60, "I", "Boil the water."), (90, "S"))
    assert counts_of(ONE, predicted, feedback_in_hit="allowed")["hits"] == 2
    late = line((10, "I", "Chop the scallion."), (20, "M"), (70, "I", "Boil the water."), (90, "S"))
    assert counts_of(ONE, late, feedback_in_hit="allowed")["hits"] == 1


def test_moving_on_in_silence_is_no_completion():
    predicted = line((10, "I", "Chop the scallion."), (50, "I", "Boil the water."), (90, "S"))
    assert counts_of(ONE, predicted)["hits"] == 1


def test_completion_can_be_the_last_message():
    predicted = line((10, "I", "Chop the scallion."), (50, "S"), (75, "S", "And once more."))
    assert counts_of(ONE, predicted)["hits"] == 0
    truth = line((10, "I", "Chop the scallion."), (20, "S"), (52, "S"), (60, "E"))
    ends_in_feedback = line((10, "I", "Chop the scallion."), (20, "S"), (70, "M"))
    assert counts_of(truth, ends_in_feedback, feedback_in_hit="allowed")["hits"] == 0
    both = {"feedback_in_hit": "allowed", "completion": "last_message"}
    assert counts_of(truth, ends_in_feedback, **both)["hits"] == 1


def test_the_finish_message_acknowledges_the_last_step():
    predicted = line((10, "I", "Chop the scallion."), (50, "S"), (50, "I", "Boil the water."), (91, "E"))
    assert counts_of(ONE, predicted)["hits"] == 2


# --- mistakes ----------------------------------------------------------------------------------------------


def test_mistakes_under_an_instruction_that_was_not_given_are_skipped_or_missed():
    truth = line((0, "I", "Stir."), (30, "M"), (40, "I", "Pour the water."), (60, "M"), (70, "M"), (80, "E"))
    predicted = line((0, "I", "Stir."), (30, "M"), (35, "I", "Eat."), (60, "M"))
    [video] = score_videos([truth], {"1_7": predicted}, RULES)
    counts = count([video])
    assert (counts.true_positives, counts.false_positives, counts.false_negatives) == (1, 0, 0)
    assert (counts.skipped_mistakes, counts.unmatched_feedback, counts.mistakes) == (2, 1, 3)
    assert mistake_scores(counts).recall == 1
    assert mistake_scores(counts, skipped_as_missed=True).recall == pytest.approx(1 / 3)
    assert mistake_scores(counts, skipped_as_missed=True).precision == 1
    assert mistake_scores(counts, skipped_as_missed=True).f1 == pytest.approx(0.5)


def test_tp_fp_fn_count_messages_and_tn_counts_segments():
    truth = line((0, "I", "Stir."), (20, "M"), (22, "M"), (40, "I", "Pour."), (80, "S"), (80, "E"))
    predicted = line((0, "I", "Stir."), (20, "M"), (30, "M"), (31, "M"), (40, "I", "Pour."), (80, "S"))
    assert of(counts_of(truth, predicted), *CONFUSION) == (2, 1, 0, 1)
    noisy = line((0, "I", "Stir."), (40, "I", "Pour."), (50, "M"), (60, "M"), (80, "S"))
    assert of(counts_of(truth, noisy), *CONFUSION) == (0, 2, 2, 0)


def test_the_nearest_pairs_come_first_and_each_feedback_finds_one_mistake():
    truth = line((0, "I", "Stir."), (20, "M", "Early."), (30, "M", "Late."), (60, "E"))
    one = line((0, "I", "Stir."), (29, "M", "Seen."))
    [segment] = score_video(truth, one, RULES).segments
    assert [(mistake.text, feedback.text) for mistake, feedback in segment.found] == [("Late.", "Seen.")]
    assert [message.text for message in segment.missed] == ["Early."]
    assert of(counts_of(truth, one, mistake_matching="greedy"), *CONFUSION) == (2, 0, 0, 0)
    # 26 is nearer to 30 (4) than 36 is (6), so 36 finds nothing: 20 is 16 away from it.
    two = line((0, "I", "Stir."), (26, "M", "First."), (36, "M", "Second."))
    [segment] = score_video(truth, two, RULES).segments
    assert [(mistake.text, feedback.text) for mistake, feedback in segment.found] == [("Late.", "First.")]
    assert len(segment.false_alarms) == len(segment.missed) == 1
    assert of(counts_of(truth, two, mistake_matching="greedy"), *CONFUSION) == (2, 0, 0, 0)


def test_counts_are_pooled_over_videos_before_the_shares_are_taken():
    first = line((0, "I", "Stir."), (20, "M"), (40, "E"), video_id="a")
    many = [(20 + 30 * n, "M") for n in range(3)]
    second = line((0, "I", "Stir."), *many, (99, "I", "Pour."), (120, "S"), (120, "E"), video_id="b")
    said = {
        "a": line((0, "I", "Stir."), (20, "M"), video_id="a"),
        "b": line((0, "I", "Stir."), (39, "M"), (99, "I", "Pour."), (120, "S"), video_id="b"),
    }
    counts = count(score_videos([first, second], said, RULES))
    assert (counts.videos, counts.segments, counts.mistakes) == (2, 3, 4)
    scores = mistake_scores(counts)
    assert (scores.precision, scores.recall) == (1.0, 0.5)  # the mean over videos would be (1 + 1/3) / 2
    assert scores.f1 == pytest.approx(2 / 3)
    assert ic_acc(counts) == 100


def test_nothing_to_divide_by_is_no_nan():
    truth = line((0, "I", "Stir."), (30, "M"), (40, "E"))
    counts = count([score_video(truth, line((0, "I", "Stir.")), RULES)])
    assert ic_acc(counts) is None
    scores = mistake_scores(counts)
    assert (scores.precision, scores.recall, scores.f1) == (0, 0, 0)


# --- repeated instructions --------------------------------------------------------------------------------

TWICE = line((0, "I", "Stir."), (40, "U"), (40, "I", "Pour."), (80, "S"), (80, "I", "Stir."), (120, "S"), (120, "E"))


def matched(truth, predicted, **rules):
    segments = score_video(truth, predicted, ScoringRules(**rules)).segments
    return [None if segment.match is None else segment.match.predicted for segment in segments]


def test_repeated_texts_are_matched_in_order():
    assert matched(TWICE, TWICE) == [0, 1, 2]
    late = line((0, "I", "Stir."), (100, "I", "Pour."), (110, "I", "Stir."), (120, "S"))
    assert matched(TWICE, late) == [0, 1, 2]
    assert matched(TWICE, late, repeats="first") == [0, 1, 0]


def test_a_single_one_stands_for_the_nearest_in_time():
    assert matched(TWICE, line((75, "I", "Stir."))) == [None, None, 0]
    assert matched(TWICE, line((35, "I", "Stir."))) == [0, None, None]
    assert matched(TWICE, line((35, "I", "Stir.")), repeats="nearest") == [0, None, 0]


def test_order_wins_over_the_number_of_texts_that_are_there():
    # Pour before Stir: the row's first Stir can't have been given, its last one can.
    assert matched(TWICE, line((0, "I", "Pour."), (50, "I", "Stir."))) == [None, 0, 1]
    assert matched(TWICE, line((0, "I", "Pour."), (50, "I", "Stir.")), repeats="nearest") == [1, 0, 1]


# --- another step done instead ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "alarm_s", "expected"),
    [
        # (plain, hits, neutral, TP, FP, FN, TN); the segments of Pour and the last Stir are always hits.
        ("mistake", 40, (2, 2, 0, 1, 0, 0, 2)),
        ("mistake", None, (2, 2, 0, 0, 0, 1, 2)),
        ("neutral", 40, (2, 2, 1, 0, 0, 0, 2)),
        ("neutral", None, (2, 2, 1, 0, 0, 0, 2)),
        ("neutral", 10, (2, 2, 1, 0, 1, 0, 2)),
        ("false_positive", 40, (3, 2, 0, 0, 1, 0, 2)),
        ("false_positive", None, (3, 2, 0, 0, 0, 0, 3)),
    ],
)
def test_an_unaligned_success_is_a_mistake_or_neutral_or_a_completion(rule, alarm_s, expected):
    alarm = [] if alarm_s is None else [(alarm_s, "U")]
    predicted = line(
        (0, "I", "Stir."), *alarm, (40, "I", "Pour."), (80, "S"), (80, "I", "Stir."), (120, "S"), (120, "E")
    )
    counts = counts_of(TWICE, predicted, unaligned_success=rule)
    assert of(counts, "plain", "hits", "neutral", *CONFUSION) == expected


def test_an_unaligned_success_as_a_completion_can_be_hit():
    predicted = line((0, "I", "Stir."), (42, "S"))
    assert counts_of(TWICE, predicted, unaligned_success="false_positive")["hits"] == 1


def test_an_unaligned_mistake_is_a_mistake_under_every_rule():
    truth = line((0, "I", "Stir."), (30, "D"), (40, "E"))
    for rule in ("mistake", "neutral", "false_positive"):
        assert counts_of(truth, truth, unaligned_success=rule)["true_positives"] == 1


# --- the whole ------------------------------------------------------------------------------------------------


def test_a_last_instruction_that_nothing_follows_is_dropped():
    truth = line((0, "I", "Stir."), (40, "S"), (40, "I", "Serve."))
    assert of(counts_of(truth, truth), "segments", "dropped_segments", "unmatched_predictions") == (1, 1, 1)


def test_the_ground_truth_against_itself_is_perfect():
    truth = line(
        (0, "I", "Stir."), (30, "M"), (40, "I", "Pour."), (70, "S"), (80, "S"), (80, "I", "Eat."), (90, "D"), (99, "E")
    )
    counts = count([score_video(truth, truth, RULES)])
    assert ic_acc(counts) == 100
    assert mistake_scores(counts).f1 == 1


def test_silence_scores_nothing():
    counts = counts_of(ONE, Timeline(video_id="1_7"))
    assert of(counts, "segments", "unmatched", "hits", *CONFUSION) == (2, 2, 0, 0, 0, 0, 0)


def test_turns_may_overlap():
    turns = [line((10, "I", "Chop the scallion."), (60, "S")), line((50, "I", "Boil the water."), (90, "S"))]
    assert counts_of(ONE, turns)["hits"] == 2


def test_messages_long_after_the_row_are_counted():
    predicted = line((10, "I", "Chop the scallion."), (50_000, "S"))
    assert counts_of(ONE, predicted)["late_messages"] == 1


# --- refusals ---------------------------------------------------------------------------------------------------


def test_videos_must_agree():
    with pytest.raises(InputError, match="empty split"):
        score_videos([], {}, RULES)
    with pytest.raises(
        InputError, match=r"1 videos that the split does not have: 9_9; no predictions for 1 of .* 1 v.*1_7"
    ):
        score_videos([ONE], {"9_9": ONE}, RULES)
    with pytest.raises(InputError, match="1_7 more than once"):
        score_videos([ONE, ONE], {"1_7": ONE}, RULES)
    with pytest.raises(InputError, match="predictions for 2_2 can't be held against the row of 1_7"):
        score_video(ONE, line((0, "I"), video_id="2_2"), RULES)


def test_a_ground_truth_without_an_instruction_is_an_error():
    with pytest.raises(InputError, match="does not open with an instruction"):
        score_video(line((0, "S"), (1, "I")), ONE, RULES)
    with pytest.raises(InputError, match="does not open with an instruction"):
        score_video(Timeline(video_id="1_7"), ONE, RULES)


@pytest.mark.parametrize(
    "wrong", [{"window_s": 0}, {"window_s": float("nan")}, {"gate": 1.5}, {"gate": 0}, {"repeats": "best"}]
)
def test_rules_out_of_range_are_refused(wrong):
    with pytest.raises(InputError, match=next(iter(wrong))):
        ScoringRules(**wrong)


def test_two_mistakes_seen_at_one_tick_keep_their_order():
    # Both are said at 40.5; the second mistake is nearer to either, but the texts belong in order.
    truth = line((0, "I", "Stir."), (40.2, "M", "A."), (40.4, "M", "B."), (60, "E"))
    predicted = line((0, "I", "Stir."), (40.5, "M", "A."), (40.5, "M", "B."))
    [segment] = score_video(truth, predicted, RULES).segments
    assert [(mistake.text, feedback.text) for mistake, feedback in segment.found] == [("A.", "A."), ("B.", "B.")]
