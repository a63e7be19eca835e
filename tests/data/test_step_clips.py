from dataclasses import replace

import numpy as np
import pytest

from livemamba.config import DialogueConfig
from livemamba.conversation import Decision, Frames
from livemamba.data.augment.counterfactual import contrasted, contrasted_windows, drawn_opposite
from livemamba.data.augment.temporal_jitter import jittered
from livemamba.data.simkitchen import read_rows, read_step_clips
from livemamba.data.step_clips import clips_of
from livemamba.errors import InputError
from livemamba.ticks import tick_at_or_after


@pytest.fixture(scope="module")
def clips(tiny_corpus):
    return read_step_clips(tiny_corpus, "train")


@pytest.fixture(scope="module")
def pairable(clips):
    return [clip for clip in clips if clip.counterfactuals]


def decisions(clip):
    return [item for item in clip.conversation(DialogueConfig()).items if isinstance(item, Decision)]


def test_every_step_becomes_a_clip(tiny_corpus, clips):
    rows = read_rows(tiny_corpus, "train")
    assert len(clips) == sum(len([one for one in row.segments() if one.end_s is not None]) for row in rows)
    assert {clip.video_id for clip in clips} == {row.video_id for row in rows}
    assert any(clip.messages[0].kind == "mistake" for clip in clips)


def test_mistakes_stand_where_they_can_be_seen_and_successes_at_the_end(clips):
    mistakes = [(clip, message) for clip in clips for message in clip.messages if message.kind == "mistake"]
    assert mistakes and all(message.time_s <= clip.end_s for clip, message in mistakes)
    assert any(clip.end_s - message.time_s > 2 for clip, message in mistakes)
    for clip in clips:
        if clip.is_right:
            (success,) = clip.messages
            assert tick_at_or_after(success.time_s) == clip.end_tick - 1


def test_right_and_opposite_share_frames_and_differ_in_what_is_asked_alone(pairable):
    for clip in pairable:
        right = clip.right()
        assert right.is_right and [message.kind for message in right.messages] == ["success"]
        for opposite in clip.counterfactuals:
            wrong = clip.under(opposite)
            assert (wrong.first_tick, wrong.end_tick) == (right.first_tick, right.end_tick)
            assert not wrong.is_right
            node = clip.plan.current
            assert wrong.recipe.text(node) == opposite.asked != right.recipe.text(node)
            changed = [a for a, b in zip(wrong.recipe.steps, right.recipe.steps, strict=True) if a != b]
            assert [step.id for step in changed] == list(node)
            assert opposite.asked.lower() in wrong.instruction.lower()
            assert [message.kind for message in wrong.messages] == ["mistake"]
            assert decisions(wrong)[-1].kind == "advance" or decisions(wrong)[-1].kind == "mistake"


def test_an_opposite_of_an_opposite_is_the_clip_itself(pairable):
    # What was done is a mistake with each opposite: the mistake's text names what was done or asked.
    for clip in pairable:
        assert clip.done not in {opposite.asked for opposite in clip.counterfactuals}
        fields = {opposite.field for opposite in clip.counterfactuals}
        assert fields <= {"count", "tool", "level", "what", "to", "minutes", "share"}


def test_the_sample_is_silent_until_the_cause_is_shown(pairable):
    clip = next(clip for clip in pairable if tick_at_or_after(clip.counterfactuals[0].time_s) > clip.first_tick + 2)
    opposite = clip.counterfactuals[0]
    items = clip.under(opposite).conversation(DialogueConfig()).items
    assert isinstance(items[1], Frames)
    assert items[1].end_tick - 1 == tick_at_or_after(opposite.time_s)
    assert isinstance(items[2], Decision) and items[2].kind == "mistake"


def test_a_cut_clip_says_only_what_it_shows(pairable):
    right = pairable[0].right()
    before = right.cut(right.first_tick, right.end_tick - 1)
    assert before.messages == () and not before.ends
    assert decisions(before) == [Decision(choice="vision")]
    with pytest.raises(InputError, match="ends at tick"):
        right.cut(right.first_tick, right.end_tick + 1)
    with pytest.raises(InputError, match="has no frame"):
        right.cut(right.end_tick, right.end_tick)


def test_steps_of_several_actions_have_no_opposite(clips):
    several = [clip for clip in clips if len(clip.plan.current) > 1]
    for clip in several:
        assert clip.counterfactuals == () and clip.done is None
        with pytest.raises(InputError):
            clip.right()


def test_rows_without_plans_are_refused(tiny_corpus):
    row = replace(read_rows(tiny_corpus, "train")[0], plans=())
    with pytest.raises(InputError, match="no plans"):
        list(clips_of(row))


def test_jitter_moves_the_start_alone_and_keeps_one_frame(pairable):
    clip = pairable[0]
    starts = [jittered(clip, 12, np.random.default_rng(seed)).first_tick for seed in range(80)]
    assert min(starts) == max(0, clip.first_tick - 12) and max(starts) == min(clip.end_tick - 1, clip.first_tick + 12)
    assert jittered(clip, 500, np.random.default_rng(0)).first_tick in (0, clip.end_tick - 1)
    assert jittered(clip, 0, np.random.default_rng(0)) == clip
    late = clip.right().cut(clip.end_tick - 1, clip.end_tick)
    assert [decision.kind for decision in decisions(late)] == ["success"]


def test_contrasts_are_drawn_by_seed_and_fields_are_equally_likely(pairable):
    clip = max(pairable, key=lambda clip: len({opposite.field for opposite in clip.counterfactuals}))
    drawn = [drawn_opposite(clip, np.random.default_rng(seed)).field for seed in range(300)]
    counts = {field: drawn.count(field) for field in set(drawn)}
    assert min(counts.values()) > 0.6 * max(counts.values())
    again = [contrasted(clip, np.random.default_rng(5)) for _ in range(2)]
    assert again[0] == again[1] and len(again[0]) == 2


def test_windows_end_where_right_and_wrong_have_just_parted(pairable):
    for seed, clip in enumerate(pairable):
        right, wrong = contrasted_windows(clip, np.random.default_rng(seed), most_frames=3, most_late=2)
        assert (right.first_tick, right.end_tick) == (wrong.first_tick, wrong.end_tick)
        assert 1 <= right.end_tick - right.first_tick <= 3
        assert [message.kind for message in wrong.messages] == ["mistake"]
        assert right.messages == () or right.ends
