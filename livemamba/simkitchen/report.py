"""What a corpus holds, in words and numbers, beside what was asked for. No torch."""

import statistics
from collections import Counter
from collections.abc import Sequence

from livemamba.simkitchen.corpus import SPLITS, CorpusSettings, Planned
from livemamba.simkitchen.episodes import Episode


def corpus_report(played: Sequence[tuple[Planned, Episode]], settings: CorpusSettings) -> str:
    """Sizes, times and rates of a corpus."""
    steps = [step for _, episode in played for step in episode.steps]
    num_skipped = sum(len(planned.plan.skipped) for planned, _ in played)
    seconds = [step.end_s - step.start_s for step in steps]
    sizes = Counter(planned.split for planned, _ in played)
    found: Counter[str] = Counter(step.performance.mistake.category for step in steps if step.performance.mistake)
    early = sum(bool(step.performance.order_text) for step in steps)
    lines = [
        "SimKitchen: simulated; nothing shown on it is a result on people.",
        f"{len(played)} episodes ({', '.join(f'{sizes[split]} {split}' for split in SPLITS)}), "
        f"{sum(episode.duration_s for _, episode in played) / 3600:.2f} h",
        f"{len(steps)} steps done, median {statistics.median(seconds):.1f} s, mean {statistics.mean(seconds):.1f} s "
        f"(real: 35 and 53 s, here {settings.time_factor:g} times faster)",
    ]
    for category, rate in settings.rates.mistakes.items():
        lines.append(f"  {category:<12} {found[category]:4d}  {found[category] / len(steps):6.1%}  (asked {rate:.1%})")
    every = len(steps) + num_skipped
    lines.append(f"  {'left out':<12} {num_skipped:4d}  {num_skipped / every:6.1%}  (asked {settings.rates.skip:.1%})")
    lines.append(f"  {'too early':<12} {early:4d}  {early / len(steps):6.1%}  (asked {settings.rates.order:.1%})")
    return "\n".join(lines)
