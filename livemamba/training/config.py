"""What a training run follows from: values that every stage has. No torch.

Stages add their own (`stage0`, `coaching_task`). Files: `configs/train/`.
"""

from typing import Annotated

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from livemamba.config import Positive

STRICT = ConfigDict(extra="forbid", strict=True)

Share = Annotated[float, Field(ge=0, le=1)]
PositiveFloat = Annotated[float, Field(gt=0)]
Count = Annotated[int, Field(ge=0)]


@dataclass(frozen=True, kw_only=True, config=STRICT)
class RunConfig:
    """The timetable of a run, and where it writes.

    Attributes:
        out: the run's folder (`checkpoint` describes it).
        steps: optimiser steps in all.
        seed: of the order of samples, the augmentations and what is drawn in a step.
        log_every: steps between rows of metrics.
        validate_every: steps between validations; 0 for none but the last.
        save_every: steps between checkpoints; 0 for none but the last.
        keep_checkpoints: the newest so many stay.
        wandb: project to log to as well; null for the local file alone.
    """

    out: str
    steps: Positive
    seed: Count = 0
    log_every: Positive = 50
    validate_every: Count = 0
    save_every: Count = 500
    keep_checkpoints: Positive = 2
    wandb: str | None = None


@dataclass(frozen=True, kw_only=True, config=STRICT)
class OptimConfig:
    """AdamW and its learning rate: warm-up, constant, then a linear decay to 0 over the last steps.

    Attributes:
        learning_rate: at its highest.
        warmup_steps: of linear rise.
        decay_steps: of linear fall, the last ones of the run.
        weight_decay: on matrices; vectors and scalars have none.
        beta1: of the first moment.
        beta2: of the second.
        clip: largest norm of the gradient.
    """

    learning_rate: PositiveFloat
    warmup_steps: Count = 100
    decay_steps: Count = 0
    weight_decay: Annotated[float, Field(ge=0)] = 0.01
    beta1: Share = 0.9
    beta2: Share = 0.98
    clip: PositiveFloat = 1.0

    def rate_at(self, step: int, steps: int) -> float:
        """The learning rate of a step, counted from 0, in a run of so many."""
        rise = (step + 1) / (self.warmup_steps + 1)
        fall = (steps - step) / (self.decay_steps + 1)
        return self.learning_rate * min(1.0, rise, fall)
