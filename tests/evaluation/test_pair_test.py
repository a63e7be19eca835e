from dataclasses import replace

import pytest

from livemamba.coaching.events import Event
from livemamba.coaching.watchers import ChattyWatcher, ScriptedWatcher, SilentWatcher, TimerWatcher
from livemamba.data.simkitchen import read_step_clips
from livemamba.errors import InputError
from livemamba.evaluation.pair_test import (
    PairResult,
    PairRules,
    bootstrap_share,
    hear_pairs,
    judge_pairs,
    last_tick,
    pair_scores,
    pair_table,
    pairs_of,
    right_verdict,
    run_pairs,
    watched,
    wrong_verdict,
)
from livemamba.evaluation.sanity import blank_frames
from livemamba.ticks import tick_to_s

RULES = PairRules(window_s=8.6)
ANY_TIME = PairRules(window_s=8.6, timed=False)
LENIENT = PairRules(window_s=8.6, early_feedback="allowed", later_success="allowed")


@pytest.fixture(scope="module")
def pairs(tiny_corpus):
    return pairs_of(read_step_clips(tiny_corpus, "train"))


def at(kind, tick):
    texts = {"advance": "", "divergence": "You did not follow the instruction. You cut it."}
    return Event(kind=kind, tick=tick, text=texts.get(kind, "You did it."))


def said(clip):
    return [Event(kind=m.kind, tick=int(-(-m.time_s * 2 // 1)), text=m.text) for m in clip.messages]


def shown(make_watcher):
    def watch(clip, last):
        frames = [frame for frame in blank_frames(tick_to_s(last)) if frame.tick >= clip.first_tick]
        return watched(make_watcher(clip), clip, frames)

    return watch


def scores(pairs, make_watcher, rules=RULES):
    return pair_scores(run_pairs(pairs, shown(make_watcher), rules))


def oracle(clip):
    return ScriptedWatcher([*said(clip), at("advance", clip.end_tick - 1)])


def always(kind):
    return lambda clip: ScriptedWatcher([at(kind, clip.end_tick - 1), at("advance", clip.end_tick - 1)])


def test_an_oracle_gets_everything_and_the_deaf_get_nothing(pairs):
    assert scores(pairs, oracle)["both"] == 1.0
    deaf = {
        "silent": lambda clip: SilentWatcher(),
        "chatty": lambda clip: ChattyWatcher(every_s=2.0),
        "timer": lambda clip: TimerWatcher(clip.recipe, default_s=10.0),
        "success": always("success"),
        "mistake": always("mistake"),
    }
    for name, make in deaf.items():
        for rules in (RULES, ANY_TIME, LENIENT, replace(LENIENT, timed=False)):
            assert scores(pairs, make, rules)["both"] == 0.0, name
    assert scores(pairs, always("success"))["right"] == 1.0
    assert scores(pairs, always("mistake"))["wrong"] == 1.0


def test_verdicts_by_hand(pairs):
    pair = next(pair for pair in pairs if pair.right.end_tick - pair.right.first_tick > 20)
    end, half = pair.right.end_tick - 1, RULES.half_ticks
    assert half == 8
    assert right_verdict([at("success", end - half)], pair.right, RULES)
    assert not right_verdict([at("success", end - half - 1)], pair.right, RULES)
    assert right_verdict([at("success", end - half - 1)], pair.right, ANY_TIME)
    assert not right_verdict([at("mistake", end - 3), at("success", end)], pair.right, RULES)
    assert not right_verdict([at("advance", end)], pair.right, RULES)
    seen = int(-(-pair.wrong.messages[0].time_s * 2 // 1))
    assert wrong_verdict([at("mistake", seen)], pair.wrong, RULES)
    assert not wrong_verdict([at("mistake", seen - half - 1)], pair.wrong, RULES)
    assert wrong_verdict([at("mistake", seen - half - 1)], pair.wrong, ANY_TIME)
    assert not wrong_verdict([at("success", seen), at("mistake", seen + 1)], pair.wrong, RULES)
    assert not wrong_verdict([], pair.wrong, RULES)
    assert last_tick(pair.right, RULES) == end + half
    assert wrong_verdict([at("mistake", end + half)], pair.wrong, RULES)
    assert not wrong_verdict([at("mistake", end + half + 1)], pair.wrong, RULES)
    assert wrong_verdict([at("divergence", end)], pair.wrong, RULES)
    taken_back = [at("mistake", seen), at("success", end)]
    assert not wrong_verdict(taken_back, pair.wrong, RULES)
    assert not wrong_verdict(taken_back, pair.wrong, ANY_TIME)
    assert wrong_verdict(taken_back, pair.wrong, LENIENT)
    guessed = [at("mistake", seen - half - 1), at("mistake", seen)]
    assert not wrong_verdict(guessed, pair.wrong, RULES)
    assert wrong_verdict(guessed, pair.wrong, LENIENT)
    assert not wrong_verdict(guessed[:1], pair.wrong, LENIENT)
    assert not right_verdict(guessed, pair.right, LENIENT)


def test_what_was_heard_once_is_judged_by_several_rules(pairs):
    early = hear_pairs(
        pairs, shown(lambda clip: ScriptedWatcher([replace(e, tick=clip.first_tick) for e in said(clip)])), RULES
    )
    late = [one for one in early if one.pair.right.end_tick - one.pair.right.first_tick > 20]
    assert all(result.right for result in judge_pairs(late, ANY_TIME))
    assert not any(result.right for result in judge_pairs(late, RULES))


@pytest.mark.parametrize(
    ("values", "what"),
    [({"window_s": 0.0}, "whole width"), ({"window_s": 8.0, "later_success": "maybe"}, "forbidden, allowed")],
)
def test_rules_that_make_no_sense_are_refused(values, what):
    with pytest.raises(InputError, match=what):
        PairRules(**values)
    with pytest.raises(InputError, match="no score"):
        pair_scores([])


def test_a_verdict_counts_only_with_its_partner(pairs):
    results = [PairResult(pair=pair, right=True, wrong=number % 2 == 0) for number, pair in enumerate(pairs[:6])]
    found = pair_scores(results)
    assert (found["right"], found["wrong"], found["both"]) == (1.0, 0.5, 0.5)
    assert sum(part["pairs"] for part in found["by_field"].values()) == 6
    assert sum(part["pairs"] for part in found["by_category"].values()) == 6
    low, high = found["both_95"]
    assert 0 <= low <= 0.5 <= high <= 1
    for name, part in found["by_field"].items():
        own = [result for result in results if result.pair.opposite.field == name]
        assert part["both"] == sum(result.both for result in own) / len(own)
        assert part["videos"] == len({result.pair.right.video_id for result in own})
        assert part["both_95"][0] <= part["both"] <= part["both_95"][1]
    table = pair_table(found, found).splitlines()
    assert table[1].split()[:5] == ["all", "6", str(found["videos"]), "0.50", f"{low:.2f}-{high:.2f}"]
    assert len(table) == 2 + len(found["by_category"]) + len(found["by_field"])


def test_the_interval_is_over_videos():
    same = [("a", True)] * 50 + [("b", False)] * 50
    assert bootstrap_share(same, 0, 500) == [0.0, 1.0]
    many = [(str(number), number % 2 == 0) for number in range(100)]
    low, high = bootstrap_share(many, 0, 2000)
    assert 0.38 < low < 0.45 and 0.55 < high < 0.62


def test_pairs_are_drawn_by_seed(tiny_corpus):
    clips = read_step_clips(tiny_corpus, "train")
    assert pairs_of(clips, most=5, seed=1) == pairs_of(clips, most=5, seed=1)
    assert len(pairs_of(clips, most=5, seed=1)) == 5
    assert pairs_of(clips, most=5, seed=1) != pairs_of(clips, most=5, seed=2)
    with pytest.raises(InputError, match="no clip has an opposite"):
        pairs_of([clip for clip in clips if not clip.counterfactuals])


def test_unseen_recipes_have_pairs_of_their_own(tiny_corpus, pairs):
    unseen = pairs_of(read_step_clips(tiny_corpus, "test_unseen"))
    assert scores(unseen, oracle)["both"] == 1.0
    assert not {pair.right.video_id for pair in unseen} & {pair.right.video_id for pair in pairs}
