"""What a network would say at every tick of many clips, had it been silent until then: many clips at a time.

Fast enough for validation while training and for the calibration of thresholds. It stands in for a real run: what the
network itself says is not read back, so a run through `Stream` decides (`eval/`).
Letters: B clips, T ticks, Q embeddings of a frame, W width, V vocabulary rows.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from livemamba.coaching.events import Event
from livemamba.config import ThresholdConfig
from livemamba.conversation import ResponseKind
from livemamba.data.sources import Features
from livemamba.data.step_clips import StepClip
from livemamba.dialogue.prompts import coaching_prompt
from livemamba.model.livemamba import LiveMamba

KINDS: tuple[ResponseKind, ...] = ("success", "mistake", "advance")
"""Those whose first token after `<response>` differs; a divergence starts like a mistake."""

CLIPS_AT_ONCE = 64


@dataclass(frozen=True, kw_only=True)
class Trace:
    """A clip's scores.

    Attributes:
        clip: which.
        scores: (T, 3) P(respond) x P(kind | respond) for each of `KINDS` at each tick from the clip's first.
    """

    clip: StepClip
    scores: npt.NDArray[np.float64]


def traces(live: LiveMamba, clips: Sequence[tuple[StepClip, Features, int]]) -> Iterator[Trace]:
    """A trace of each clip, in order.

    Args:
        live: in evaluation mode.
        clips: each with the features of its video and the tick after the last one to look at.
    """
    for start in range(0, len(clips), CLIPS_AT_ONCE):
        yield from _traces(live, clips[start : start + CLIPS_AT_ONCE])


@torch.inference_mode()
def _traces(live: LiveMamba, clips: Sequence[tuple[StepClip, Features, int]]) -> Iterable[Trace]:
    with live.device:  # where the tensors made on the way belong
        return _traced(live, clips)


def _traced(live: LiveMamba, clips: Sequence[tuple[StepClip, Features, int]]) -> list[Trace]:
    frames = [_embedded(live, clip, features, end) for clip, features, end in clips]
    lengths = [len(one) for one in frames]
    state = _prompted(live, [clip for clip, _, _ in clips])
    ids = live.config.dialogue
    firsts = torch.tensor([live.tokens.openings[kind][0][0] for kind in KINDS])
    asks = live.backbone.embed(torch.full((len(clips), 1), ids.vision_id))
    answers = live.backbone.embed(torch.full((len(clips), 1), ids.response_id))
    scores = np.zeros((len(clips), max(lengths), len(KINDS)))
    for tick in range(max(lengths)):
        seen = torch.stack([one[min(tick, len(one) - 1)] for one in frames])
        hidden, state = live.backbone(torch.cat([asks, seen], dim=1), state=state)
        decision = live.backbone.logits(hidden[:, -1:])[:, 0, [ids.response_id, ids.vision_id]]
        respond = torch.softmax(decision.double(), dim=1)[:, 0]
        hidden, _ = live.backbone(answers, state=state)
        kinds = torch.softmax(live.backbone.logits(hidden)[:, 0, firsts].double(), dim=1)
        scores[:, tick] = (respond[:, None] * kinds).cpu().numpy()
    return [Trace(clip=clip, scores=scores[row, : lengths[row]]) for row, (clip, _, _) in enumerate(clips)]


def _embedded(live: LiveMamba, clip: StepClip, features: Features, end: int) -> Tensor:
    """(T, Q, W)."""
    tokens = features.read(clip.video_id, range(clip.first_tick, max(end, clip.first_tick + 1))).float().to(live.device)
    embedded: Tensor = live.qformer(tokens)
    return embedded


def _prompted(live: LiveMamba, clips: Sequence[StepClip]) -> object:
    """The states after the prompts."""
    dialogue = live.config.dialogue
    prompts = [
        live.tokens.encode(coaching_prompt(dialogue, clip.recipe, clip.plan, clip.instruction)) for clip in clips
    ]
    ids = torch.full((len(prompts), max(map(len, prompts))), dialogue.padding_id)
    for row, prompt in enumerate(prompts):
        ids[row, : len(prompt)] = torch.tensor(prompt)
    lengths = torch.tensor([len(prompt) for prompt in prompts])
    valid = torch.arange(ids.shape[1])[None, :] < lengths[:, None]
    _, state = live.backbone(live.backbone.embed(ids), valid=valid)
    return state


def events_at(trace: Trace, thresholds: ThresholdConfig) -> list[Event]:
    """What would be said at some thresholds: each kind once, feedback until the step's end, which is the last.

    Of several kinds over their thresholds at one tick the one that exceeds its own by the largest factor is said, as
    when decoding.
    """
    limits = np.array([max(float(getattr(thresholds, kind)), 1e-9) for kind in KINDS])
    events: list[Event] = []
    complained = False
    for place, row in enumerate(trace.scores):
        factors = row / limits
        if complained:
            factors[KINDS.index("mistake")] = 0.0
        best = int(factors.argmax())
        if factors[best] < 1:
            continue
        tick, kind = trace.clip.first_tick + place, KINDS[best]
        confidence = float(row[best])
        if kind == "mistake":
            complained = True
            events.append(Event(kind="mistake", tick=tick, text="mistake", confidence=confidence))
            continue
        if kind == "success":
            events.append(Event(kind="success", tick=tick, text="success", confidence=confidence))
        events.append(Event(kind="advance", tick=tick, confidence=confidence))
        break
    return events
