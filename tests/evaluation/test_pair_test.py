import pytest

from livemamba.coaching.events import Event
from livemamba.coaching.watchers import ChattyWatcher, ScriptedWatcher, SilentWatcher, TimerWatcher
from livemamba.data.simkitchen import read_step_clips
from livemamba.errors import InputError
from livemamba.evaluation.pair_test import (
    PairResult,
    PairRules,
    bootstrap_share,
    last_tick,
    pair_scores,
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


@pytest.fixture(scope="module")
def pairs(tiny_corpus):
    return pairs_of(read_step_clips(tiny_corpus, "train"))


def at(kind, tick):
    return Event(kind=kind, tick=tick, text="" if kind == "advance" else "You did it.")


def shown(make_watcher):
    def watch(clip, last):
        frames = [frame for frame in blank_frames(tick_to_s(last)) if frame.tick >= clip.first_tick]
        return watched(make_watcher(clip), clip, frames)

    return watch


def scores(pairs, make_watcher, rules=RULES):
    return pair_scores(run_pairs(pairs, shown(make_watcher), rules))


def oracle(clip):
    said = [Event(kind=m.kind, tick=int(-(-m.time_s * 2 // 1)), text=m.text) for m in clip.messages]
    return ScriptedWatcher([*said, at("advance", clip.end_tick - 1)])


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
        for rules in (RULES, ANY_TIME):
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


def test_a_verdict_counts_only_with_its_partner(pairs):
    results = [PairResult(pair=pair, right=True, wrong=number % 2 == 0) for number, pair in enumerate(pairs[:6])]
    found = pair_scores(results)
    assert (found["right"], found["wrong"], found["both"]) == (1.0, 0.5, 0.5)
    assert sum(part["pairs"] for part in found["by_field"].values()) == 6
    assert sum(part["pairs"] for part in found["by_category"].values()) == 6
    low, high = found["both_95"]
    assert 0 <= low <= 0.5 <= high <= 1


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
