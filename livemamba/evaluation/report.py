"""An Interactive Cooking result as a file and as a table. No torch."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import livemamba
from livemamba.errors import InputError
from livemamba.evaluation.interactive_cooking import (
    Counts,
    Prediction,
    VideoScore,
    count,
    found_texts,
    ic_acc,
    mistake_scores,
    score_videos,
)
from livemamba.evaluation.intervals import difference_intervals, score_intervals
from livemamba.evaluation.rules import Protocol, ScoringRules
from livemamba.evaluation.text_scores import BertChoice, TextScores, text_scores
from livemamba.files import whole_file
from livemamba.timeline import Timeline

BUILD_REPORT = "report.json"
"""What `livemamba build` writes beside the rows."""


@dataclass(frozen=True, kw_only=True)
class Result:
    """A system's scores on one split.

    Attributes:
        system: its name.
        protocol: streaming or turn_based.
        rules: by which it was scored.
        counts: over all videos.
        text: over the true positives.
        videos: in the ground truth's order.
    """

    system: str
    protocol: Protocol
    rules: ScoringRules
    counts: Counts
    text: TextScores
    videos: tuple[VideoScore, ...]

    def to_dict(self, *, per_video: bool = True) -> dict[str, Any]:
        """JSON-ready: scores with their counts, rules, the matches that could be mistaken, a row for each video."""
        rows = {"per_video": [_video_row(video) for video in self.videos]} if per_video else {}
        return {
            "system": self.system,
            "protocol": self.protocol,
            "rules": self.rules.to_dict(),
            "scores": self.scores(),
            "intervals_95": {name: list(interval) for name, interval in self.intervals().items()},
            "scores_with_unmatched": {
                name: asdict(mistake_scores(self.counts, skipped_as_missed=missed))
                for name, missed in (("skip", False), ("fn", True))
            },
            "counts": asdict(self.counts),
            "text": asdict(self.text),
            "confusable": _confusable(self.videos),
            **rows,
        }

    def intervals(self) -> dict[str, tuple[float, float]]:
        """95% intervals of IC-Acc and of the mistakes' F1, over videos."""
        return score_intervals(self.videos, skipped_as_missed=self._skipped_as_missed)

    def less(self, other: "Result") -> dict[str, Any]:
        """By how much this system's scores exceed another's on the same videos, JSON-ready.

        Returns:
            `system` and `protocol` of the other; for `ic_acc` and `mistake_f1` the difference (None where a score
            is), and its paired 95% interval over videos.

        Raises:
            InputError: if the two were scored by other rules, or on other videos.
        """
        if self.rules != other.rules:
            raise InputError(f"{self.system} and {other.system} were scored by other rules; score both alike")
        intervals = difference_intervals(self.videos, other.videos, skipped_as_missed=self._skipped_as_missed)
        mine, theirs = self.scores(), other.scores()
        return {
            "less": other.system,
            "protocol": other.protocol,
            **{name: _difference(mine[name], theirs[name]) for name in intervals},
            "intervals_95": {name: list(interval) for name, interval in intervals.items()},
        }

    @property
    def _skipped_as_missed(self) -> bool:
        return self.rules.unmatched == "fn"

    def scores(self) -> dict[str, float | None]:
        """The benchmark's six columns: IC-Acc 0 to 100, the others 0 to 1 (rescaled BERTScore may be below)."""
        mistakes = mistake_scores(self.counts, skipped_as_missed=self._skipped_as_missed)
        return {
            "ic_acc": ic_acc(self.counts),
            "mistake_precision": mistakes.precision,
            "mistake_recall": mistakes.recall,
            "mistake_f1": mistakes.f1,
            "bert_score": self.text.bert_score,
            "rouge_l": self.text.rouge_l,
        }


def evaluate(
    system: str,
    truth: Iterable[Timeline],
    predictions: Mapping[str, Prediction],
    *,
    protocol: Protocol,
    rules: ScoringRules,
    bert: BertChoice,
) -> Result:
    """Score one system on one split.

    Raises:
        InputError: as `score_videos` and `text_scores`.
        MissingError: as `text_scores`.
    """
    videos = score_videos(truth, predictions, rules)
    return Result(
        system=system,
        protocol=protocol,
        rules=rules,
        counts=count(videos),
        text=text_scores(found_texts(videos), bert),
        videos=tuple(videos),
    )


def _video_row(video: VideoScore) -> dict[str, Any]:
    counts = asdict(count([video]))
    del counts["videos"]
    return {"video_id": video.video_id, **{name: value for name, value in counts.items() if value}}


def _confusable(videos: Iterable[VideoScore]) -> list[dict[str, Any]]:
    return [
        {
            "video_id": video.video_id,
            "time_s": segment.instruction.time_s,
            "instruction": segment.instruction.text,
            "passes_for": list(segment.match.confusable),
        }
        for video in videos
        for segment in video.segments
        if segment.match is not None and segment.match.confusable
    ]


def _difference(mine: float | None, theirs: float | None) -> float | None:
    return None if mine is None or theirs is None else mine - theirs


def write_result(path: str | Path, content: Mapping[str, Any]) -> None:
    """Write a result as JSON with the package's version, whole or not at all."""
    with whole_file(path) as partial:
        text = json.dumps({"livemamba_version": livemamba.__version__, **content}, indent=2, ensure_ascii=False)
        partial.write_text(text + "\n", encoding="utf-8")


def labels_of(folder: str | Path) -> dict[str, Any]:
    """Where a folder's rows come from, for the result: official and rebuilt labels never share a table.

    Returns:
        `built_from` and `mistake_time` of a build's report; else that there is none.
    """
    report = Path(folder) / BUILD_REPORT
    try:
        content = json.loads(report.read_text(encoding="utf-8"))
        return {"built_from": content["built_from"], "mistake_time": content["mistake_time"]}
    except FileNotFoundError:
        return {"built_from": f"unknown: the folder has no {BUILD_REPORT}"}
    except (ValueError, KeyError, TypeError):
        raise InputError(f"{report} is no report of a build; build the folder again, or take the file away") from None


_COLUMNS = (
    *("IC-Acc", "95%", "P", "R", "F1", "95%", "BERT", "R-L"),
    *("TP", "FP", "FN", "TN", "skip", "hits/plain", "given/segs"),
)


def table(results: Sequence[Result]) -> str:
    """The results as a text table, a line each; `-` where nothing could be computed."""
    rows = [("system", "protocol", *_COLUMNS), *(_cells(result) for result in results)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) if place < 2 else cell.rjust(width) for place, (cell, width) in enumerate(line))
        for line in ([*zip(row, widths, strict=True)] for row in rows)
    )


def differences_table(system: str, differences: Sequence[Mapping[str, Any]]) -> str:
    """What a system's scores exceed others' by, a line each.

    Args:
        system: whose.
        differences: of `Result.less`.
    """
    lines = [f"{system}, less (95% intervals, paired by video; apart where 0 lies outside)"]
    for one in differences:
        ic = "{:+.1f} to {:+.1f}".format(*one["intervals_95"]["ic_acc"])
        f1 = "{:+.2f} to {:+.2f}".format(*one["intervals_95"]["mistake_f1"])
        lines.append(
            f"  {one['less']:<16}{one['protocol']:<12}IC-Acc {_shown(one['ic_acc'], 1):>6} ({ic})   "
            f"F1 {_shown(one['mistake_f1'], 2):>5} ({f1})"
        )
    return "\n".join(lines)


def _cells(result: Result) -> tuple[str, ...]:
    scores, counts, intervals = result.scores(), result.counts, result.intervals()
    return (
        result.system,
        result.protocol,
        _shown(scores["ic_acc"], 1),
        "-" if scores["ic_acc"] is None else "{:.0f}-{:.0f}".format(*intervals["ic_acc"]),
        *(_shown(scores[f"mistake_{name}"], 2) for name in ("precision", "recall", "f1")),
        "{:.2f}-{:.2f}".format(*intervals["mistake_f1"]),
        _shown(scores["bert_score"], 3),
        _shown(scores["rouge_l"], 3),
        str(counts.true_positives),
        str(counts.false_positives),
        str(counts.false_negatives),
        str(counts.true_negatives),
        str(counts.skipped_mistakes),
        f"{counts.hits}/{counts.plain}",
        f"{counts.matched}/{counts.segments}",
    )


def _shown(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:.{digits}f}"
