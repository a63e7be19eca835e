"""The pair test: does a coach listen to what was asked? No torch.

The same clip is shown under its right instruction and under an opposite one (another count, spoon, heat, object), and
counts only if both verdicts are right. Who has learnt when a step ends, and reports a mistake whenever one is possible,
scores well elsewhere and 0 here (spec/simkitchen.md, the pair test). It works on any corpus with counterfactuals.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

import numpy as np

from livemamba.coaching.events import Event
from livemamba.coaching.watchers import StepWatcher
from livemamba.data.augment.counterfactual import drawn_opposite
from livemamba.data.step_clips import Counterfactual, StepClip
from livemamba.errors import InputError
from livemamba.ticks import Frame, tick_at_or_after, tick_at_or_before

FEEDBACK = ("mistake", "divergence")


@dataclass(frozen=True, kw_only=True)
class Pair:
    """One clip, twice.

    Attributes:
        right: under the instruction that it follows.
        wrong: under an opposite one.
        opposite: that one.
    """

    right: StepClip
    wrong: StepClip
    opposite: Counterfactual


Allowed = Literal["forbidden", "allowed"]


@dataclass(frozen=True, kw_only=True)
class PairRules:
    """What makes a verdict right. With any of these settings, who says the same under both instructions gets 0.

    Attributes:
        window_s: whole width of the window around the step's end and around the moment at which a mistake shows;
            the benchmark's, 30 s, divided by the simulated kitchen's time factor.
        timed: whether a success must come within the window around the end, and feedback not before the window of
            the moment at which it shows and not after that of the end. Without, only what is said counts.
        early_feedback: under the opposite instruction, timed: whether feedback before its window, a guess, spoils
            the verdict (forbidden) or is passed over until some comes within it.
        later_success: under the opposite instruction: whether a success after the feedback takes it back (forbidden)
            or only one before it does.

    Raises:
        InputError: if a value is out of range or no choice of its rule.
    """

    window_s: float
    timed: bool = True
    early_feedback: Allowed = "forbidden"
    later_success: Allowed = "forbidden"

    def __post_init__(self) -> None:
        if not math.isfinite(self.window_s) or self.window_s <= 0:
            raise InputError(f"window_s is {self.window_s!r}; give the window's whole width, seconds > 0")
        for name in ("early_feedback", "later_success"):
            if getattr(self, name) not in get_args(Allowed):
                raise InputError(f"{name} is {getattr(self, name)!r}; choose one of {', '.join(get_args(Allowed))}")

    @property
    def half_ticks(self) -> int:
        """Whole ticks within half the window."""
        return tick_at_or_before(self.window_s / 2)

    def to_dict(self) -> dict[str, Any]:
        """For the result file."""
        return asdict(self)


@dataclass(frozen=True, kw_only=True)
class Heard:
    """What a system said about a pair.

    Attributes:
        pair: which.
        right: under the right instruction.
        wrong: under the opposite one.
    """

    pair: Pair
    right: tuple[Event, ...]
    wrong: tuple[Event, ...]


@dataclass(frozen=True, kw_only=True)
class PairResult:
    """What became of a pair.

    Attributes:
        pair: which.
        right: whether the verdict under the right instruction was right.
        wrong: whether the one under the opposite was.
    """

    pair: Pair
    right: bool
    wrong: bool

    @property
    def both(self) -> bool:
        """Whether the pair counts."""
        return self.right and self.wrong


def pairs_of(clips: Sequence[StepClip], *, most: int | None = None, seed: int = 0) -> list[Pair]:
    """A pair of each clip that has an opposite, drawn by seed.

    Args:
        clips: of a split.
        most: so many at most, drawn by seed too; None for all.
        seed: of the draws.

    Raises:
        InputError: if no clip has an opposite.
    """
    random = np.random.default_rng(seed)
    order = random.permutation(len(clips)) if most is not None else np.arange(len(clips))
    pairs: list[Pair] = []
    for place in order:
        clip = clips[int(place)]
        opposite = drawn_opposite(clip, random)
        if opposite is not None and (most is None or len(pairs) < most):
            pairs.append(Pair(right=clip.right(), wrong=clip.under(opposite), opposite=opposite))
    if not pairs:
        raise InputError("no clip has an opposite instruction; the pair test needs a corpus with counterfactuals")
    return pairs


def last_tick(clip: StepClip, rules: PairRules) -> int:
    """The last tick at which anything said could still count."""
    return clip.end_tick - 1 + rules.half_ticks


def right_verdict(events: Iterable[Event], clip: StepClip, rules: PairRules) -> bool:
    """Under the right instruction: a success about when the step ends, and no feedback before it."""
    end = clip.end_tick - 1
    for event in sorted(events, key=lambda event: event.tick):
        if event.kind in FEEDBACK:
            return False
        if event.kind == "success":
            return not rules.timed or abs(event.tick - end) <= rules.half_ticks
    return False


def wrong_verdict(events: Iterable[Event], clip: StepClip, rules: PairRules) -> bool:
    """Under an opposite instruction: feedback once it shows, half a window after the end at the latest; no success."""
    seen = tick_at_or_after(clip.messages[0].time_s)
    found = False
    for event in sorted(events, key=lambda event: event.tick):
        if event.kind == "success":
            return found and rules.later_success == "allowed"
        if event.kind not in FEEDBACK or found:
            continue
        if rules.timed and event.tick < seen - rules.half_ticks:
            if rules.early_feedback == "forbidden":
                return False
            continue
        found = not rules.timed or event.tick <= last_tick(clip, rules)
    return found


WatchClip = Callable[[StepClip, int], Sequence[Event]]
"""What a system says about a clip: the clip, the last tick it is shown."""


def hear_pairs(pairs: Iterable[Pair], watch: WatchClip, rules: PairRules) -> list[Heard]:
    """Each pair through a system.

    Args:
        pairs: which.
        watch: shows a clip from its first tick to the last, or until the system ends the step.
        rules: how long a clip is shown.
    """
    return [
        Heard(
            pair=pair,
            right=tuple(watch(pair.right, last_tick(pair.right, rules))),
            wrong=tuple(watch(pair.wrong, last_tick(pair.wrong, rules))),
        )
        for pair in pairs
    ]


def judge_pairs(heard: Iterable[Heard], rules: PairRules) -> list[PairResult]:
    """The verdicts; what was heard once can be judged by several rules."""
    return [
        PairResult(
            pair=one.pair,
            right=right_verdict(one.right, one.pair.right, rules),
            wrong=wrong_verdict(one.wrong, one.pair.wrong, rules),
        )
        for one in heard
    ]


def run_pairs(pairs: Iterable[Pair], watch: WatchClip, rules: PairRules) -> list[PairResult]:
    """Each pair through a system and judged; see `hear_pairs`."""
    return judge_pairs(hear_pairs(pairs, watch, rules), rules)


def watched(watcher: StepWatcher, clip: StepClip, frames: Iterable[Frame]) -> list[Event]:
    """What a watcher says about a clip.

    Args:
        watcher: a new one, or one whose steps are independent.
        clip: gives instruction and plan.
        frames: from the clip's first tick on.
    """
    watcher.start(clip.plan, clip.instruction, clip.first_tick)
    events: list[Event] = []
    for frame in frames:
        said = watcher.see(frame)
        events += said
        if any(event.kind == "advance" for event in said):
            break
    return events


# --- the score ---------------------------------------------------------------------------------------


def pair_scores(results: Sequence[PairResult], *, seed: int = 0, resamples: int = 2000) -> dict[str, Any]:
    """Shares of pairs in which both verdicts are right: overall, by mistake category, by field; JSON-ready.

    Args:
        results: at least one.
        seed: of the bootstrap over videos.
        resamples: of it.

    Raises:
        InputError: if there is none.
    """
    if not results:
        raise InputError("no pair was judged; an empty pair test has no score")

    def by(name: Callable[[PairResult], str]) -> Mapping[str, Mapping[str, Any]]:
        groups: dict[str, list[PairResult]] = {}
        for result in results:
            groups.setdefault(name(result), []).append(result)
        return {key: _scored(groups[key], seed, resamples) for key in sorted(groups)}

    return {
        **_scored(results, seed, resamples),
        "by_category": by(lambda result: result.pair.opposite.category),
        "by_field": by(lambda result: result.pair.opposite.field),
    }


def _scored(results: Sequence[PairResult], seed: int, resamples: int) -> dict[str, Any]:
    return {
        "pairs": len(results),
        "videos": len({result.pair.right.video_id for result in results}),
        "both": _share(result.both for result in results),
        "both_95": bootstrap_share([(result.pair.right.video_id, result.both) for result in results], seed, resamples),
        "right": _share(result.right for result in results),
        "wrong": _share(result.wrong for result in results),
    }


def pair_table(scores: Mapping[str, Any], any_time: Mapping[str, Any]) -> str:
    """The scores as a text table, a line each for all pairs, the categories and the fields.

    Args:
        scores: of `pair_scores`.
        any_time: the same by what is said alone.
    """
    cells: list[tuple[str, ...]] = [("", "pairs", "videos", "both", "95%", "right", "wrong", "any time")]
    cells.append(_cells("all", scores, any_time))
    for group in ("by_category", "by_field"):
        cells += [_cells(name, scores[group][name], any_time[group][name]) for name in scores[group]]
    widths = [max(len(row[column]) for row in cells) for column in range(len(cells[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) if not place else cell.rjust(width) for place, (cell, width) in enumerate(line))
        for line in ([*zip(row, widths, strict=True)] for row in cells)
    )


def _cells(name: str, scores: Mapping[str, Any], any_time: Mapping[str, Any]) -> tuple[str, ...]:
    shares = (scores["right"], scores["wrong"], any_time["both"])
    return (
        name,
        *(str(scores[key]) for key in ("pairs", "videos")),
        f"{scores['both']:.2f}",
        "{:.2f}-{:.2f}".format(*scores["both_95"]),
        *(f"{share:.2f}" for share in shares),
    )


def _share(values: Iterable[bool]) -> float:
    return float(np.mean(list(values)))


def bootstrap_share(values: Sequence[tuple[str, bool]], seed: int, resamples: int) -> list[float]:
    """95% interval of a share, resampled over videos: clips of one video are not independent.

    Args:
        values: (video id, whether it counts).
        seed: of the draws.
        resamples: how many.
    """
    videos = sorted({video for video, _ in values})
    place = {video: number for number, video in enumerate(videos)}
    good, count = np.zeros(len(videos)), np.zeros(len(videos))
    for video, value in values:
        good[place[video]] += value
        count[place[video]] += 1
    drawn = np.random.default_rng(seed).integers(len(videos), size=(resamples, len(videos)))
    shares = good[drawn].sum(1) / np.maximum(count[drawn].sum(1), 1)
    return [float(value) for value in np.percentile(shares, [2.5, 97.5])]
