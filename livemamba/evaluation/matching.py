"""Which predicted instruction and which predicted feedback belong to which of the ground truth. No torch.

Source: spec/interactive_cooking.md (Scoring): texts decide for instructions, times for mistakes.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from livemamba.evaluation.rules import ScoringRules
from livemamba.evaluation.text_scores import rouge_l
from livemamba.timeline import Message

# 0.8 is reached exactly by "Now pour water." against "Pour water", up to the last bit of a float.
_EPSILON = 1e-9


@dataclass(frozen=True, kw_only=True)
class InstructionMatch:
    """A ground-truth instruction and the predicted one that stands for it.

    Attributes:
        predicted: place of the predicted instruction.
        similarity: ROUGE-L F of the two texts.
        confusable: other ground-truth instructions of the video, by text, that the predicted one would pass for.
    """

    predicted: int
    similarity: float
    confusable: tuple[str, ...] = ()


def match_instructions(
    truth: Sequence[Message], predicted: Sequence[Message], rules: ScoringRules
) -> list[InstructionMatch | None]:
    """For each ground-truth instruction of a video the predicted one that matches it, or None.

    Args:
        truth: instructions in order.
        predicted: instructions in order.
        rules: gate and repeats.
    """
    similarity = [[_passing(one.text, other.text, rules.gate) for other in predicted] for one in truth]
    if rules.repeats == "monotone":
        places = _monotone(truth, predicted, similarity)
    else:
        places = [_best(one, predicted, row, rules) for one, row in zip(truth, similarity, strict=True)]
    matches: list[InstructionMatch | None] = []
    for index, place in enumerate(places):
        if place is None:
            matches.append(None)
            continue
        rivals = {one.text for one, row in zip(truth, similarity, strict=True) if row[place]} - {truth[index].text}
        matches.append(
            InstructionMatch(predicted=place, similarity=similarity[index][place], confusable=tuple(sorted(rivals)))
        )
    return matches


def _passing(truth: str, predicted: str, gate: float) -> float:
    """The similarity of two texts; 0 below the gate."""
    similarity = rouge_l(truth, predicted)
    return similarity if similarity >= gate - _EPSILON else 0.0


def _best(one: Message, predicted: Sequence[Message], row: Sequence[float], rules: ScoringRules) -> int | None:
    passing = [place for place, similarity in enumerate(row) if similarity]
    if not passing:
        return None
    if rules.repeats == "first":
        return passing[0]
    return min(passing, key=lambda place: (abs(predicted[place].time_s - one.time_s), -row[place], place))


def _monotone(
    truth: Sequence[Message], predicted: Sequence[Message], similarity: Sequence[Sequence[float]]
) -> list[int | None]:
    """The order-preserving pairing with the greatest sum of similarities, then the least distance in time."""
    width = len(predicted)
    # Millionths, since sums of floats would break ties by rounding.
    scores = [[(0, 0.0)] * (width + 1) for _ in range(len(truth) + 1)]
    for i, one in enumerate(truth):
        for j, other in enumerate(predicted):
            best = max(scores[i][j + 1], scores[i + 1][j])
            if similarity[i][j]:
                best = max(best, _with_pair(scores[i][j], similarity[i][j], one, other))
            scores[i + 1][j + 1] = best
    places: list[int | None] = [None] * len(truth)
    i, j = len(truth), width
    while i and j:
        if scores[i][j] == scores[i - 1][j]:
            i -= 1
        elif scores[i][j] == scores[i][j - 1]:
            j -= 1
        else:
            i, j = i - 1, j - 1
            places[i] = j
    return places


def _with_pair(score: tuple[int, float], similarity: float, one: Message, other: Message) -> tuple[int, float]:
    return score[0] + round(1e6 * similarity), score[1] - abs(one.time_s - other.time_s)


@dataclass(frozen=True, kw_only=True)
class MistakeMatch:
    """Mistakes of one segment against the feedback of the predicted one.

    Attributes:
        pairs: (place of the mistake, place of the feedback) for each mistake that was found.
        extra: places of feedback that found nothing.
    """

    pairs: tuple[tuple[int, int], ...]
    extra: tuple[int, ...]


def match_mistakes(mistakes: Sequence[float], feedback: Sequence[float], rules: ScoringRules) -> MistakeMatch:
    """Which feedback finds which mistake.

    Args:
        mistakes: times, seconds.
        feedback: times, seconds.
        rules: window and mistake_matching.
    """
    near = sorted(
        (abs(mistake_s - feedback_s), abs(i - j), i, j)
        for i, mistake_s in enumerate(mistakes)
        for j, feedback_s in enumerate(feedback)
        if rules.in_window(mistake_s, feedback_s)
    )
    pairs: dict[int, int] = {}
    used: set[int] = set()
    for *_, i, j in near:
        if i not in pairs and (rules.mistake_matching == "greedy" or j not in used):
            pairs[i] = j
            used.add(j)
    if rules.mistake_matching == "greedy":
        used = {j for *_, j in near}
    extra = tuple(j for j in range(len(feedback)) if j not in used)
    return MistakeMatch(pairs=tuple(sorted(pairs.items())), extra=extra)
