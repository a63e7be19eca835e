"""Counts of the built sets beside those that the paper publishes (Tables 2, 6 and 7). No torch."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.resources import files
from typing import Any, Literal

import yaml

from livemamba.data.interactive_cooking import Benchmark
from livemamba.data.official_rows import PLAN_SETS, SPLITS
from livemamba.data.playing import BuiltVideo
from livemamba.timeline import MISTAKE_CATEGORIES

Mark = Literal["exact", "stand-in", "differs"]

_RAW_TAGS = "error tags as annotated; the paper cleaned them by hand"
_REPLANS = "a step is kept once, then removed; the paper decided by hand"
_OTHER_DATA = "other recordings than the paper's"

_TITLES = {"main": "Main set", "advanced_planning": "Advanced Planning set"}
_HEADINGS = {"hours": "Table 2", "preparation errors": "Table 6", "videos with re-plans": "Table 7"}
_STAND_INS = frozenset({"instructions", "mean instructions", "mean re-plans"})


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """One quantity of one set, in every split.

    Attributes:
        plan_set: "main" or "advanced_planning".
        quantity: what is counted, in the words of the published tables.
        ours: by split, rounded as the paper rounds.
        paper: by split.
        mark: exact; or stand-in, where a rule takes the place of what was decided by hand; or differs.
        reasons: why it isn't exact; empty where it is.
    """

    plan_set: str
    quantity: str
    ours: tuple[float, ...]
    paper: tuple[float, ...]
    mark: Mark
    reasons: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        by_split = {name: dict(zip(SPLITS, getattr(self, name), strict=True)) for name in ("ours", "paper")}
        return {**asdict(self), **by_split, "reasons": list(self.reasons)}


def count(videos: Sequence[BuiltVideo]) -> dict[str, float]:
    """Every published quantity of one split, unrounded; means are 0 where there is nothing to average."""
    messages = [message for video in videos for message in video.timeline.messages]
    kinds = Counter((message.kind, message.category is not None) for message in messages)
    categories = Counter(str(message.category) for message in messages)
    replanned = [video for video in videos if video.replans]
    share = 1 / max(len(replanned), 1)
    return {
        "hours": sum(video.duration_s for video in videos) / 3600,
        "videos": len(videos),
        "instructions": kinds["instruction", False],
        "followed success": kinds["success", False],
        "followed mistakes": kinds["mistake", True],
        "divergent success": kinds["divergence", False],
        "divergent mistakes": kinds["divergence", True],
        **{f"{category} errors": categories[category] for category in MISTAKE_CATEGORIES},
        "videos with re-plans": len(replanned),
        "mean minutes": sum(video.duration_s for video in replanned) / 60 * share,
        "mean instructions": sum(len(video.timeline.of_kind("instruction")) for video in replanned) * share,
        "mean re-plans": sum(video.replans for video in replanned) * share,
    }


def compare(benchmark: Benchmark) -> list[Comparison]:
    """Every quantity that the paper publishes, with ours beside it."""
    published = yaml.safe_load(
        files(__package__).joinpath("interactive_cooking_paper.yaml").read_text(encoding="utf-8")
    )
    comparisons = []
    for plan_set in PLAN_SETS:
        counts = [count(benchmark.videos[plan_set][split]) for split in SPLITS]
        same_videos = [round(split["videos"]) for split in counts] == published[plan_set]["videos"]
        for quantity, paper in published[plan_set].items():
            ours = tuple(_rounded(split[quantity], like=paper[0]) for split in counts)
            mark, reasons = _judged(plan_set, quantity, exact=list(ours) == paper, same_videos=same_videos)
            comparisons.append(
                Comparison(
                    plan_set=plan_set, quantity=quantity, ours=ours, paper=tuple(paper), mark=mark, reasons=reasons
                )
            )
    return comparisons


def _rounded(value: float, *, like: float) -> float:
    return round(value, 1) if isinstance(like, float) else round(value)


def _judged(plan_set: str, quantity: str, *, exact: bool, same_videos: bool) -> tuple[Mark, tuple[str, ...]]:
    if exact:
        return "exact", ()
    if not same_videos:
        return "differs", (_OTHER_DATA,)
    if plan_set == "main" or quantity.endswith("errors"):
        return "differs", (_RAW_TAGS,)
    if quantity in _STAND_INS:
        return "stand-in", (_REPLANS,)
    return "differs", (_RAW_TAGS, _REPLANS)


def comparison_table(comparisons: Sequence[Comparison]) -> str:
    """The comparisons as a table for the terminal: for each split our count, then the paper's."""
    lines: list[str] = []
    reasons: dict[str, str] = {}
    for plan_set, title in _TITLES.items():
        heading = "".join(f"{split:>17}" for split in SPLITS)
        lines += ["", f"{title:<22}{heading}", f"{'':<22}" + f"{'ours':>9}{'paper':>8}" * len(SPLITS)]
        for row in comparisons:
            if row.plan_set == plan_set:
                if row.quantity in _HEADINGS:
                    lines.append(_HEADINGS[row.quantity])
                lines.append(_line(row, reasons))
    notes = [f"  {mark} {reason}" for reason, mark in reasons.items()]
    return "\n".join([*lines[1:], "", *notes]).rstrip()


def _line(row: Comparison, reasons: dict[str, str]) -> str:
    numbers = "".join(f"{ours:>9}{paper:>8}" for ours, paper in zip(row.ours, row.paper, strict=True))
    marks = [reasons.setdefault(reason, f"[{len(reasons) + 1}]") for reason in row.reasons]
    return f"  {row.quantity:<20}{numbers}   {' '.join([row.mark, *marks])}"


def counts_by_split(videos: Mapping[str, Sequence[BuiltVideo]]) -> dict[str, dict[str, float]]:
    """The counts of one set's splits, for the report; hours and means rounded to four places."""
    return {
        split: {name: round(value, 4) if isinstance(value, float) else value for name, value in count(own).items()}
        for split, own in videos.items()
    }
