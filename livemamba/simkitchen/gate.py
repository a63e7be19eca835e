"""The time-scale gate: blind systems must score as badly on the simulated corpus as its time scale promises. No torch.

In a kitchen that runs faster, an unscaled window would let a timer that sees nothing find the ends of most steps
(spec/simkitchen.md, Time). So the window shrinks by the same factor, and what remains is measured before training.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from livemamba.data.captaincook4d import read_annotations
from livemamba.data.interactive_cooking import build_benchmark
from livemamba.errors import InputError
from livemamba.evaluation.interactive_cooking import count, ic_acc, mistake_scores, score_videos
from livemamba.evaluation.rules import PROTOCOLS, Protocol, ScoringRules
from livemamba.evaluation.sanity import SanityRow, run_row, sanity_rows, step_durations
from livemamba.timeline import Timeline

MOST_TIMER_IC_ACC = 45.0
MOST_CHATTY_F1 = 0.15
REAL_WINDOW_S = 30.0


@dataclass(frozen=True, kw_only=True)
class BlindScore:
    """A blind system's scores.

    Attributes:
        system: timer or chatty.
        protocol: streaming or turn_based.
        window_s: whole width.
        ic_acc: 0 to 100.
        f1: of mistakes, 0 to 1.
        num_segments: of the ground truth.
    """

    system: str
    protocol: Protocol
    window_s: float
    ic_acc: float
    f1: float
    num_segments: int


@dataclass(frozen=True, kw_only=True)
class Gate:
    """The blind systems' scores on the test split, and whether they are low enough.

    Attributes:
        scores: of each system, protocol and window.
        window_s: the scaled window, which is the one that counts.
    """

    scores: tuple[BlindScore, ...]
    window_s: float

    @property
    def passed(self) -> bool:
        """Whether timer and chatty stay under their limits in both protocols, with the scaled window."""
        counted = [one for one in self.scores if one.window_s == self.window_s]
        timer = [one.ic_acc <= MOST_TIMER_IC_ACC for one in counted if one.system == "timer"]
        chatty = [one.f1 <= MOST_CHATTY_F1 for one in counted if one.system == "chatty"]
        assert timer and chatty, "the gate ran without its systems"
        return all(timer + chatty)

    def text(self) -> str:
        """For the generator's report."""
        verdict = "passed" if self.passed else "FAILED"
        lines = [
            f"time-scale gate, test split, +-{self.window_s / 2:.1f} s: {verdict} "
            f"(timer IC-Acc <= {MOST_TIMER_IC_ACC:g}, chatty F1 <= {MOST_CHATTY_F1:g})",
            f"  {'system':<8}{'protocol':<12}{'window':>9}{'IC-Acc':>8}{'F1':>6}{'steps':>7}",
        ]
        for one in self.scores:
            window = f"+-{one.window_s / 2:.1f} s"
            lines.append(
                f"  {one.system:<8}{one.protocol:<12}{window:>9}{one.ic_acc:8.1f}{one.f1:6.2f}{one.num_segments:7d}"
            )
        return "\n".join(lines)


def time_scale_gate(folder: str | Path, time_factor: float) -> Gate:
    """Build the benchmark from a corpus and run the blind systems over its test split.

    Args:
        folder: as `livemamba simulate` writes it; videos aren't needed.
        time_factor: by which its kitchen is faster.

    Raises:
        MissingError: if files are missing.
        InputError: if train or test has no video, so that there is nothing to measure.
    """
    main = build_benchmark(read_annotations(folder), mistake_time="exact").videos["main"]
    train, test = ([video.timeline for video in main[split]] for split in ("train", "test"))
    if not train or not test:
        raise InputError(f"{folder}: the time-scale gate needs videos in train and test; generate more episodes")
    rows = {row.name: row for row in sanity_rows(step_durations(train))}
    window_s = REAL_WINDOW_S / time_factor
    scores = [
        score
        for name in ("timer", "chatty")
        for protocol in PROTOCOLS
        for score in _scores(rows[name], test, protocol, dict.fromkeys((window_s, REAL_WINDOW_S)))
    ]
    return Gate(scores=tuple(scores), window_s=window_s)


def _scores(
    row: SanityRow, truth: Sequence[Timeline], protocol: Protocol, windows_s: Iterable[float]
) -> list[BlindScore]:
    predictions = run_row(row, truth, protocol)
    scores = []
    for window_s in windows_s:
        counts = count(score_videos(truth, predictions, ScoringRules(window_s=window_s)))
        scores.append(
            BlindScore(
                system=row.name,
                protocol=protocol,
                window_s=window_s,
                ic_acc=ic_acc(counts) or 0.0,
                f1=mistake_scores(counts).f1,
                num_segments=counts.segments,
            )
        )
    return scores
