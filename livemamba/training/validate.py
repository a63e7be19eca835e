"""Scores while training: the pair test and the benchmark's own metrics, on cached features. Quick, by traces.

The real runs, through `Stream`, are those of `eval/`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np

from livemamba.config import ThresholdConfig
from livemamba.data.simkitchen import read_rows, read_step_clips
from livemamba.data.sources import Features
from livemamba.data.step_clips import StepClip
from livemamba.evaluation.interactive_cooking import Prediction, count, ic_acc, mistake_scores, score_videos
from livemamba.evaluation.pair_test import (
    Pair,
    PairResult,
    PairRules,
    last_tick,
    pairs_of,
    right_verdict,
    run_pairs,
    wrong_verdict,
)
from livemamba.evaluation.protocols import evaluate_streaming, evaluate_turn_based
from livemamba.evaluation.rules import ScoringRules
from livemamba.model.livemamba import LiveMamba
from livemamba.ticks import tick_to_s
from livemamba.timeline import Message, Timeline
from livemamba.training.model_runs import Frames, benchmark_watcher, clip_watcher
from livemamba.training.traces import Trace, events_at, traces

Objective = Literal["all", "benchmark"]
OBJECTIVES: tuple[Objective, ...] = get_args(Objective)

GRID = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.65, 0.8)
"""Thresholds that are tried."""


@dataclass(frozen=True, kw_only=True)
class Scored:
    """Scores at one setting of the thresholds.

    Attributes:
        success, mistake: the thresholds.
        pair: share of pairs with both verdicts right.
        right, wrong: shares of single verdicts.
        ic_acc: 0 to 100, turn-based.
        f1: of mistakes, turn-based.
    """

    success: float
    mistake: float
    pair: float
    right: float
    wrong: float
    ic_acc: float
    f1: float

    def objective(self, name: "Objective" = "all") -> float:
        """What the thresholds are chosen by.

        Args:
            name: "all": pair test, IC-Acc and F1, each as a share, alike; "benchmark": the last two.
        """
        benchmark = self.ic_acc / 100 + self.f1
        return benchmark + self.pair if name == "all" else benchmark

    def to_dict(self) -> dict[str, float]:
        """For metrics."""
        return dict(vars(self))


def with_thresholds(success: float, mistake: float) -> ThresholdConfig:
    """Thresholds for the kinds: divergences are feedback as mistakes are, a silent end is an end as a success is."""
    return ThresholdConfig(success=success, mistake=mistake, divergence=mistake, advance=success)


class Validator:
    """Pairs and turns of a split, with features, scored again and again.

    Args:
        corpora: folder and features of each.
        split: of them.
        window_s: the scoring window.
        most_pairs: so many pairs, drawn by seed 0.
        most_turns: so many of the steps as they were given; whole videos, at least one.
    """

    def __init__(
        self,
        corpora: Sequence[tuple[str, Features]],
        *,
        split: str,
        window_s: float,
        most_pairs: int,
        most_turns: int,
    ) -> None:
        self.rules = PairRules(window_s=window_s)
        # A trace never hears its own complaint, so at the step's end it would still say a success; the network itself,
        # which has read what it said, doesn't (`eval/calibrate_thresholds.py --verify` shows both).
        self.trace_rules = replace(self.rules, later_success="allowed")
        self.scoring = ScoringRules(window_s=window_s)
        self._pairs: list[tuple[Pair, Features]] = []
        self._turns: list[tuple[StepClip, Features]] = []
        self._rows: list[Timeline] = []
        self._features: dict[str, Features] = {}
        for folder, features in corpora:
            clips = read_step_clips(folder, split)
            pairs = pairs_of(clips, most=most_pairs // len(corpora), seed=0)
            self._pairs += [(pair, features) for pair in pairs]
            for row in read_rows(folder, split):
                own = [clip for clip in clips if clip.video_id == row.video_id]
                if not self._rows or len(self._turns) + len(own) <= most_turns:
                    self._rows.append(row)
                    self._features[row.video_id] = features
                    self._turns += [(clip, features) for clip in own]

    def __call__(self, live: LiveMamba) -> Mapping[str, float]:
        """The best setting's scores."""
        return max(self.grid(live), key=Scored.objective).to_dict()

    def grid(self, live: LiveMamba) -> list[Scored]:
        """Scores at every setting of the thresholds.

        Args:
            live: in evaluation mode.
        """
        both = [clip for pair, _ in self._pairs for clip in (pair.right, pair.wrong)]
        features = [features for _, features in self._pairs for _ in range(2)]
        paired = self._traced(live, list(zip(both, features, strict=True)))
        turns = self._traced(live, self._turns)
        return [self._scored(paired, turns, success, mistake) for success in GRID for mistake in GRID]

    def through_streams(self, live: LiveMamba) -> Mapping[str, float]:
        """The same pairs and videos in a real run, at the thresholds that the network has; slow.

        Args:
            live: in evaluation mode.

        Returns:
            pair, right, wrong; ic_acc and f1 turn-based, as `Scored` has them; streaming_ic_acc, streaming_f1.
        """
        results = [
            result
            for pair, features in self._pairs
            for result in run_pairs([pair], clip_watcher(Frames(live, features=features)), self.rules)
        ]
        turns: dict[str, Prediction] = {}
        streamed: dict[str, Prediction] = {}
        for row in self._rows:
            frames = Frames(live, features=self._features[row.video_id])
            make = benchmark_watcher(frames)
            turns[row.video_id] = evaluate_turn_based(row, make, frames.of(row.video_id))
            streamed[row.video_id] = evaluate_streaming(row, make, frames.of(row.video_id))
        by_turn, by_video = (count(score_videos(self._rows, said, self.scoring)) for said in (turns, streamed))
        return {
            **_pair_shares(results),
            "ic_acc": ic_acc(by_turn) or 0.0,
            "f1": mistake_scores(by_turn).f1,
            "streaming_ic_acc": ic_acc(by_video) or 0.0,
            "streaming_f1": mistake_scores(by_video).f1,
        }

    def _traced(self, live: LiveMamba, clips: Sequence[tuple[StepClip, Features]]) -> list[Trace]:
        return list(
            traces(
                live,
                [
                    (clip, features, min(last_tick(clip, self.rules) + 1, features.length(clip.video_id)))
                    for clip, features in clips
                ],
            )
        )

    def _scored(self, paired: Sequence[Trace], turns: Sequence[Trace], success: float, mistake: float) -> Scored:
        thresholds = with_thresholds(success, mistake)
        said = [events_at(trace, thresholds) for trace in paired]
        results = [
            PairResult(
                pair=pair,
                right=right_verdict(said[2 * place], pair.right, self.trace_rules),
                wrong=wrong_verdict(said[2 * place + 1], pair.wrong, self.trace_rules),
            )
            for place, (pair, _) in enumerate(self._pairs)
        ]
        counts = count(score_videos(self._rows, self._predictions(turns, thresholds), self.scoring))
        return Scored(
            success=success,
            mistake=mistake,
            **_pair_shares(results),
            ic_acc=ic_acc(counts) or 0.0,
            f1=mistake_scores(counts).f1,
        )

    def _predictions(
        self, turns: Sequence[Trace], thresholds: ThresholdConfig
    ) -> Mapping[str, Sequence[Timeline] | Timeline]:
        predictions: dict[str, list[Timeline]] = {row.video_id: [] for row in self._rows}
        for trace in turns:
            clip = trace.clip
            asked = Message(time_s=tick_to_s(clip.first_tick), kind="instruction", text=clip.instruction)
            said = [
                event.message(tick_to_s(event.tick))
                for event in events_at(trace, thresholds)
                if event.kind != "advance"
            ]
            row = Timeline(video_id=clip.video_id, messages=(asked, *said))
            predictions[clip.video_id].append(row)
        return {video: tuple(rows) for video, rows in predictions.items()}


def _pair_shares(results: Sequence[PairResult]) -> dict[str, float]:
    names = {"pair": "both", "right": "right", "wrong": "wrong"}
    return {key: float(np.mean([getattr(result, name) for result in results])) for key, name in names.items()}


def calibrated(live: LiveMamba, validator: Validator, objective: Objective = "all") -> tuple[LiveMamba, Scored]:
    """The network with the thresholds that score best on validation, and those scores.

    They are scores of traces (`livemamba.training.traces`): what the network itself says is not read back, each kind
    is said once, a divergence counts as a mistake, and a success after feedback is passed over (a trace can't tell).
    `Validator.through_streams` shows what that hides.

    Args:
        live: in evaluation mode.
        validator: of the validation split.
        objective: see `Scored.objective`.
    """
    best = max(validator.grid(live), key=lambda scored: scored.objective(objective))
    decoding = replace(live.config.decoding, thresholds=with_thresholds(best.success, best.mistake))
    return live.with_decoding(decoding), best
