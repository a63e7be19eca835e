"""The scores of Interactive Cooking: instruction completion, mistakes, feedback texts. Pure; no torch, no files.

Anchored on the ground truth's segments (an instruction and the messages up to the next one): each is held against
the predicted segment whose instruction matches. Source: paper 5.1 and 5.3, spec/interactive_cooking.md (Scoring).
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields

from livemamba.errors import InputError
from livemamba.evaluation.matching import InstructionMatch, match_instructions, match_mistakes
from livemamba.evaluation.rules import ScoringRules
from livemamba.texts import listed
from livemamba.timeline import Message, Segment, Timeline

Prediction = Timeline | Sequence[Timeline]
"""What a system said about one video: one timeline (streaming) or one for each turn (turn-based). Times rise within
each; turns may overlap, since a turn doesn't end where the ground truth's step does."""


@dataclass(frozen=True, kw_only=True)
class SegmentScore:
    """What became of one ground-truth segment.

    Attributes:
        instruction: the ground truth's.
        match: the predicted instruction that stands for it; None if it was never given.
        kind: plain (completed without a mistake: in IC-Acc and TN), mistake, or neutral (in neither).
        hit: plain, given, and its completion seen in time.
        found: (mistake, feedback) for each mistake that was detected.
        missed: mistakes under a given instruction that weren't.
        skipped: mistakes under an instruction that was not given.
        false_alarms: feedback that found nothing.
        true_negative: plain, given, no feedback.
    """

    instruction: Message
    match: InstructionMatch | None
    kind: str
    hit: bool = False
    found: tuple[tuple[Message, Message], ...] = ()
    missed: tuple[Message, ...] = ()
    skipped: tuple[Message, ...] = ()
    false_alarms: tuple[Message, ...] = ()
    true_negative: bool = False


@dataclass(frozen=True, kw_only=True)
class VideoScore:
    """One video's segments, and what was predicted beside them.

    Attributes:
        video_id: whose.
        segments: in order.
        dropped_segments: a last ground-truth instruction that nothing follows, as the official loader drops it.
        predicted_instructions: how many were given.
        unmatched_predictions: predicted instructions that stand for none of the ground truth's.
        unmatched_feedback: feedback under those; in no score.
        late_messages: predicted ones more than half a window after the last of the ground truth.
    """

    video_id: str
    segments: tuple[SegmentScore, ...]
    dropped_segments: int
    predicted_instructions: int
    unmatched_predictions: int
    unmatched_feedback: int
    late_messages: int


@dataclass(frozen=True, kw_only=True)
class Counts:
    """Sums over videos. TP, FP and FN count messages, TN counts segments.

    Attributes:
        videos: scored.
        segments: of the ground truth.
        matched: whose instruction was given.
        unmatched: whose instruction was not.
        plain: without a mistake: what IC-Acc is a share of.
        hits: of those.
        neutral: neither completed nor mistaken.
        mistakes: messages of the ground truth.
        true_positives: mistakes found.
        false_positives: feedback that found nothing.
        false_negatives: mistakes not found under a given instruction.
        skipped_mistakes: under an instruction that was not given.
        true_negatives: plain segments, instruction given, no feedback.
        confusable_matches: matches that another instruction of the same video would have passed for too.
        dropped_segments: see `VideoScore`.
        predicted_instructions: see `VideoScore`.
        unmatched_predictions: see `VideoScore`.
        unmatched_feedback: see `VideoScore`.
        late_messages: see `VideoScore`.
    """

    videos: int = 0
    segments: int = 0
    matched: int = 0
    unmatched: int = 0
    plain: int = 0
    hits: int = 0
    neutral: int = 0
    mistakes: int = 0
    true_positives: int = 0
    false_positives: int = 0
    false_negatives: int = 0
    skipped_mistakes: int = 0
    true_negatives: int = 0
    confusable_matches: int = 0
    dropped_segments: int = 0
    predicted_instructions: int = 0
    unmatched_predictions: int = 0
    unmatched_feedback: int = 0
    late_messages: int = 0


@dataclass(frozen=True, kw_only=True)
class MistakeScores:
    """Precision, recall and F1, 0 to 1; 0 where there is nothing to divide by."""

    precision: float
    recall: float
    f1: float


# --- one video ---------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class _Truth:
    segment: Segment
    mistakes: tuple[Message, ...]
    neutral: tuple[Message, ...]
    completed_s: float | None

    @property
    def kind(self) -> str:
        if self.mistakes:
            return "mistake"
        return "plain" if self.completed_s is not None else "neutral"


def score_video(truth: Timeline, predicted: Prediction, rules: ScoringRules) -> VideoScore:
    """Hold one video's predictions against its ground truth.

    Args:
        truth: an official row.
        predicted: what was said about the same video.
        rules: how.

    Raises:
        InputError: if the ground truth doesn't open with an instruction, or the video ids differ.
    """
    given = _predicted_segments(truth.video_id, predicted)
    segments = list(truth.segments())
    if not segments or truth.messages[0].kind != "instruction":
        raise InputError(f"{truth.video_id}: the ground truth does not open with an instruction; nothing to score")
    dangling = not segments[-1].messages and segments[-1].end_s is None
    kept = [_read_truth(segment, rules) for segment in (segments[:-1] if dangling else segments)]
    matches = match_instructions([one.segment.instruction for one in kept], [one.instruction for one in given], rules)
    scores = [
        _score_segment(one, match, None if match is None else given[match.predicted], rules)
        for one, match in zip(kept, matches, strict=True)
    ]
    used = {match.predicted for match in matches if match is not None}
    unmatched = [segment for place, segment in enumerate(given) if place not in used]
    last_s = truth.messages[-1].time_s + rules.window_s / 2
    said = [message for segment in given for message in (segment.instruction, *segment.messages)]
    return VideoScore(
        video_id=truth.video_id,
        segments=tuple(scores),
        dropped_segments=int(dangling),
        predicted_instructions=len(given),
        unmatched_predictions=len(unmatched),
        unmatched_feedback=sum(len(_feedback(segment)) for segment in unmatched),
        late_messages=sum(message.time_s > last_s for message in said),
    )


def _predicted_segments(video_id: str, predicted: Prediction) -> list[Segment]:
    timelines = [predicted] if isinstance(predicted, Timeline) else predicted
    for timeline in timelines:
        if timeline.video_id != video_id:
            raise InputError(f"predictions for {timeline.video_id} can't be held against the row of {video_id}")
    return [segment for timeline in timelines for segment in timeline.segments()]


def _read_truth(segment: Segment, rules: ScoringRules) -> _Truth:
    feedback = _feedback(segment)
    # The official type `feedback_action_unaligned_success`: another step was done, and nothing was wrong with it.
    unaligned = [message for message in feedback if message.kind == "divergence" and message.category is None]
    others = tuple(message for message in feedback if message not in unaligned)
    mistakes = feedback if rules.unaligned_success == "mistake" else others
    neutral = tuple(unaligned) if rules.unaligned_success == "neutral" else ()
    as_success = unaligned if rules.unaligned_success == "false_positive" else []
    completed_s = _completed_s(segment, rules, also=as_success)
    if completed_s is None:
        completed_s = segment.end_s
    if neutral and not any(message.kind == "success" for message in segment.messages):
        completed_s = None  # another step was done, this one wasn't
    return _Truth(segment=segment, mistakes=mistakes, neutral=neutral, completed_s=completed_s)


def _score_segment(
    truth: _Truth, match: InstructionMatch | None, given: Segment | None, rules: ScoringRules
) -> SegmentScore:
    if given is None:
        return SegmentScore(instruction=truth.segment.instruction, match=None, kind=truth.kind, skipped=truth.mistakes)
    feedback = _feedback(given)
    matched = match_mistakes(_times(truth.mistakes), _times(feedback), rules)
    extra = [feedback[place] for place in matched.extra]
    excused = match_mistakes(_times(truth.neutral), _times(extra), rules)
    alarms = tuple(extra[place] for place in excused.extra)
    found = dict(matched.pairs)
    plain = truth.kind == "plain"
    return SegmentScore(
        instruction=truth.segment.instruction,
        match=match,
        kind=truth.kind,
        hit=plain and _is_hit(truth, given, alarms, rules),
        found=tuple((truth.mistakes[i], feedback[j]) for i, j in matched.pairs),
        missed=tuple(mistake for place, mistake in enumerate(truth.mistakes) if place not in found),
        false_alarms=alarms,
        true_negative=plain and not alarms,
    )


def _is_hit(truth: _Truth, given: Segment, alarms: Sequence[Message], rules: ScoringRules) -> bool:
    if alarms and rules.feedback_in_hit == "forbidden":
        return False
    completed_s = _completed_s(given, rules)
    if completed_s is None or truth.completed_s is None:
        return False
    return rules.in_window(truth.completed_s, completed_s)


def _completed_s(segment: Segment, rules: ScoringRules, *, also: Sequence[Message] = ()) -> float | None:
    """When a segment says that its step was completed; None if it doesn't.

    Args:
        segment: predicted or of the ground truth.
        rules: what counts as completion.
        also: messages that count as successes.
    """
    if rules.completion == "last_message":
        return segment.messages[-1].time_s if segment.messages else None
    # The finish message acknowledges the last step.
    done = [message for message in segment.messages if message.kind in ("success", "finish") or message in also]
    if done:
        return done[-1].time_s
    return segment.end_s if _feedback(segment) else None


def _feedback(segment: Segment) -> tuple[Message, ...]:
    return tuple(message for message in segment.messages if message.kind in ("mistake", "divergence"))


def _times(messages: Iterable[Message]) -> list[float]:
    return [message.time_s for message in messages]


# --- all videos --------------------------------------------------------------------------------------


def score_videos(
    truth: Iterable[Timeline], predictions: Mapping[str, Prediction], rules: ScoringRules
) -> list[VideoScore]:
    """Every video's score, in the ground truth's order.

    Raises:
        InputError: if there is no video, a video lacks its prediction or a prediction its video, or as `score_video`.
    """
    rows = list(truth)
    if not rows:
        raise InputError("no ground-truth videos to score; an empty split has no score")
    ids = [row.video_id for row in rows]
    twice = [video_id for video_id, count in Counter(ids).items() if count > 1]
    if twice:
        raise InputError(f"the ground truth holds video {twice[0]} more than once")
    missing = [video_id for video_id in ids if video_id not in predictions]
    unknown = [video_id for video_id in predictions if video_id not in set(ids)]
    if missing or unknown:
        raise InputError(_disagreement(missing, unknown, len(ids)))
    return [score_video(row, predictions[row.video_id], rules) for row in rows]


def _disagreement(missing: Sequence[str], unknown: Sequence[str], num_rows: int) -> str:
    parts = []
    if unknown:
        parts.append(f"predictions for {len(unknown)} videos that the split does not have: {listed(unknown)}")
    if missing:
        parts.append(
            f"no predictions for {len(missing)} of the split's {num_rows} videos: {listed(missing)} "
            "(--missing_videos empty scores them as silent)"
        )
    return "; ".join(parts)


def count(videos: Iterable[VideoScore]) -> Counts:
    """The sums over all videos."""
    totals: Counter[str] = Counter()
    for video in videos:
        totals.update(
            videos=1,
            dropped_segments=video.dropped_segments,
            predicted_instructions=video.predicted_instructions,
            unmatched_predictions=video.unmatched_predictions,
            unmatched_feedback=video.unmatched_feedback,
            late_messages=video.late_messages,
        )
        for segment in video.segments:
            totals.update(_segment_counts(segment))
    return Counts(**{field.name: totals[field.name] for field in fields(Counts)})


def _segment_counts(segment: SegmentScore) -> dict[str, int]:
    given = segment.match is not None
    return {
        "segments": 1,
        "matched": int(given),
        "unmatched": int(not given),
        "plain": int(segment.kind == "plain"),
        "hits": int(segment.hit),
        "neutral": int(segment.kind == "neutral"),
        "mistakes": len(segment.found) + len(segment.missed) + len(segment.skipped),
        "true_positives": len(segment.found),
        "false_positives": len(segment.false_alarms),
        "false_negatives": len(segment.missed),
        "skipped_mistakes": len(segment.skipped),
        "true_negatives": int(segment.true_negative),
        "confusable_matches": int(segment.match is not None and bool(segment.match.confusable)),
    }


def ic_acc(counts: Counts) -> float | None:
    """Instruction completion accuracy, 0 to 100; None without a plain segment."""
    return 100 * counts.hits / counts.plain if counts.plain else None


def mistake_scores(counts: Counts, *, skipped_as_missed: bool = False) -> MistakeScores:
    """Precision, recall and F1 of the pooled counts.

    Args:
        counts: over all videos.
        skipped_as_missed: whether mistakes under instructions that were not given count as missed.
    """
    found = counts.true_positives
    missed = counts.false_negatives + (counts.skipped_mistakes if skipped_as_missed else 0)
    return MistakeScores(
        precision=_share(found, found + counts.false_positives),
        recall=_share(found, found + missed),
        f1=_share(2 * found, 2 * found + counts.false_positives + missed),
    )


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


def found_texts(videos: Iterable[VideoScore]) -> list[tuple[str, str]]:
    """The texts of every true positive: the ground truth's and the predicted one's."""
    return [
        (mistake.text, feedback.text)
        for video in videos
        for segment in video.segments
        for mistake, feedback in segment.found
    ]
