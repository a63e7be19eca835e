"""Cooks: recipes kept or broken as asked, mistakes as often as asked, nothing correlated that shouldn't be."""

from collections import Counter
from dataclasses import replace

import pytest

from livemamba.errors import InputError
from livemamba.simkitchen.cooks import plan_episode
from livemamba.simkitchen.corpus import SPLITS, CorpusSettings, plan_corpus, split_sizes
from livemamba.simkitchen.episodes import play
from livemamba.simkitchen.menu import all_dishes, load_dish, seen_dishes
from livemamba.simkitchen.rates import NO_MISTAKES, Rates, odds, real_mistake_rates

MANY = 1000


@pytest.fixture(scope="module")
def plans():
    dishes = seen_dishes()
    chances = odds(Rates(), dishes)
    return [plan_episode(dishes[number % len(dishes)], 1, (3, number), chances, 3.5) for number in range(MANY)]


def test_a_follower_respects_the_graph():
    dishes = all_dishes()
    chances = odds(replace(NO_MISTAKES, alternative=0.2), dishes)
    orders = set()
    for number in range(90):
        dish = dishes[number % len(dishes)]
        plan = plan_episode(dish, 1, (number,), chances, 3.5)
        ended: dict[str, float] = {}
        for step in play(plan).steps:
            for before in dish[step.performance.node].after:
                assert ended[before] <= step.start_s
            ended[step.performance.node] = step.end_s
        assert set(ended) == {step.id for step in dish.steps}
        assert not plan.skipped and not any(one.mistake or one.order_text for one in plan.performances)
        orders.add((dish.name, tuple(ended)))
    assert len(orders) > 2 * len(dishes), "the alternatives in order are taken"


def test_mistakes_come_as_often_as_in_table_6(plans):
    steps = sum(len(plan.performances) for plan in plans)
    found = Counter(one.mistake.category for plan in plans for one in plan.performances if one.mistake)
    for category, rate in real_mistake_rates().items():
        sigma = (rate / steps) ** 0.5 * 2  # mistakes come in clusters: wider than if they were independent
        assert found[category] / steps == pytest.approx(rate, abs=3.5 * sigma), category


def test_omissions_order_errors_and_normal_episodes_come_as_often_as_asked(plans):
    steps = sum(len(plan.performances) for plan in plans)
    skipped = sum(len(plan.skipped) for plan in plans)
    early = sum(bool(one.order_text) for plan in plans for one in plan.performances)
    assert skipped / (steps + skipped) == pytest.approx(Rates().skip, rel=0.12)
    assert early / steps == pytest.approx(Rates().order, rel=0.25)
    normal = sum(
        not plan.skipped and not any(one.mistake or one.order_text for one in plan.performances) for plan in plans
    )
    assert normal / MANY == pytest.approx(0.42 + 0.58 * 0.05, abs=0.06)


def test_what_must_be_done_before_is_done_before_even_by_those_who_err(plans):
    for plan in plans:
        done = []
        for one in plan.performances:
            assert set(plan.dish[one.node].needs) <= set(done)
            assert set(plan.dish[one.node].needs).isdisjoint(plan.skipped)
            broken = not set(plan.dish[one.node].after) <= {*done, *plan.skipped}
            assert broken == bool(one.order_text)
            done.append(one.node)


def test_some_steps_are_done_together_and_end_within():
    dishes = seen_dishes()
    chances = odds(Rates(), dishes)
    together = 0
    for number in range(250):
        plan = plan_episode(dishes[number % len(dishes)], 1, (4, number), chances, 3.5)
        if not any(one.during for one in plan.performances):
            continue
        steps = {step.performance.node: step for step in play(plan).steps}
        for step in steps.values():
            if step.performance.during:
                outer = steps[step.performance.during]
                assert outer.start_s < step.start_s and step.end_s <= outer.end_s
                together += 1
    assert together > 10


def test_steps_last_as_in_real_kitchens_but_faster():
    dishes = seen_dishes()
    chances = odds(Rates(), dishes)
    seconds = sorted(
        step.end_s - step.start_s
        for number in range(200)
        for step in play(plan_episode(dishes[number % len(dishes)], 1, (5, number), chances, 3.5)).steps
    )
    # Real: median 35, mean 53, 90% under 118 s (spec/simkitchen.md and the annotations).
    assert seconds[len(seconds) // 2] * 3.5 == pytest.approx(35, rel=0.15)
    assert sum(seconds) / len(seconds) * 3.5 == pytest.approx(53, rel=0.15)
    assert seconds[int(0.9 * len(seconds))] * 3.5 == pytest.approx(118, rel=0.2)


def test_order_and_pace_do_not_depend_on_mistakes():
    dish = seen_dishes()[0]
    with_them, without = odds(Rates(normal=0.0), all_dishes()), odds(replace(NO_MISTAKES, normal=0.0), all_dishes())
    without = replace(without, skip=with_them.skip, early=with_them.early)
    wrong = 0
    for number in range(60):
        one = plan_episode(dish, 1, (number,), with_them, 3.5)
        other = plan_episode(dish, 1, (number,), without, 3.5)
        wrong += any(step.mistake for step in one.performances)
        cleaned = [replace(step, mistake=None, mistake_text="") for step in one.performances]
        assert cleaned == list(other.performances) and one.skipped == other.skipped
    assert wrong > 20


@pytest.mark.parametrize(
    ("rates", "about"),
    [
        ({"skip": -0.1}, "rate skip is -0.1"),
        ({"order": float("nan")}, "rate order"),
        ({"mistakes": {"timing": 1.5}}, "rate timing"),
        ({"mistakes": {"clumsy": 0.1}}, "clumsy"),
        ({"normal": 1.0}, "rate normal"),
    ],
)
def test_rates_out_of_range_are_refused(rates, about):
    with pytest.raises(InputError, match=about):
        Rates(**rates)


def test_rates_that_the_recipes_cannot_give_are_refused():
    with pytest.raises(InputError, match=r"temperature is .* allow it"):
        odds(Rates(mistakes={"temperature": 0.5}), seen_dishes())
    with pytest.raises(InputError, match="lower them"):
        odds(Rates(mistakes={"technique": 0.4, "preparation": 0.4, "measurement": 0.3}), seen_dishes())


def test_splits_share_no_kitchen_and_no_seed():
    for seed in (0, 7):
        planned = plan_corpus(CorpusSettings(episodes=160, seed=seed))
        kitchens = {split: {one.plan.kitchen_number for one in planned if one.split == split} for split in SPLITS}
        keys = [one.plan.key for one in planned]
        assert len(set(keys)) == len(keys) and len({one.id for one in planned}) == len(planned)
        for split, other in ((a, b) for a in SPLITS for b in SPLITS if a < b):
            assert kitchens[split] and not kitchens[split] & kitchens[other]
        dishes = {split: {one.plan.dish.name for one in planned if one.split == split} for split in SPLITS}
        assert not dishes["test_unseen"] & (dishes["train"] | dishes["val"] | dishes["test"])


@pytest.mark.parametrize("episodes", [1, 2, 3, 7, 40, 384])
def test_split_sizes_sum_up(episodes):
    sizes = split_sizes(CorpusSettings(episodes=episodes))
    assert sum(sizes.values()) == episodes and sizes["train"] >= max(sizes.values()) * 0.99


@pytest.mark.parametrize(
    ("text", "about"),
    [
        ("name: X\nactivity_id: 9\nsteps:\n  - {id: a, act: {kind: fly}}", "fly"),
        ("name: X\nsteps: []", "activity_id"),
        (
            "name: X\nactivity_id: 9\nsteps:\n  - {id: a, act: {kind: wash, what: tomato}}\n"
            "  - {id: b, act: {kind: cut, what: tomato, count: 4}, needs: [a]}",
            "needs a",
        ),
        (
            "name: X\nactivity_id: 9\nsteps:\n  - {id: a, act: {kind: wash, what: tomato}}\n"
            "  - {id: b, act: {kind: wash, what: onion}, during: a}",
            "during a",
        ),
    ],
)
def test_recipes_that_cannot_be_cooked_are_refused(tmp_path, text, about):
    file = tmp_path / "dish.yaml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=about):
        load_dish(file)


def test_recipes_hold_alternatives_repeats_and_something_to_do_together():
    dishes = all_dishes()
    assert len(dishes) >= 4 and all(5 <= len(dish.steps) <= 10 for dish in dishes)
    assert any(len({step.step_id for step in dish.steps}) < len(dish.steps) for dish in dishes)
    assert any(step.during for dish in dishes for step in dish.steps)
