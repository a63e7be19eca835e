"""How long steps take: the shape of the real set's, in a kitchen that runs faster by one factor. No torch.

Source: step durations in CaptainCook4D's annotations (5,413 performed steps): median 35 s, mean 53 s. Of the
variance of their logarithm 0.65 lies between kinds of steps and 0.30 within one (0.94 in all). Here most of it lies
within: with the real share, on six recipes, a timer that sees nothing would pass the time-scale gate's limit
turn-based (51 against 45). The distribution over all steps keeps its shape.
"""

import math
from statistics import NormalDist

import numpy as np

from livemamba.errors import InputError

TIME_FACTOR = 3.5

# Real durations in seconds at these shares of the steps, from the annotations.
_SHARES = (0.0, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1.0)
_SECONDS = (1.5, 3.0, 6.2, 9.8, 18.6, 35.0, 67.0, 118.1, 162.0, 290.3, 600.0)
_WITHIN = 0.87  # sd of the noise within one step; between steps the rest, together 1

# Gaps between one step's end and the next one's start, before the first and after the last: real medians and the
# spread of their logarithm, in seconds.
_GAP = (4.4, 0.9)
_LEAD_IN = (7.1, 0.9)
_TAIL = (8.0, 0.8)
PAUSE_SHARE = 0.2
"""Share of the steps in which the hands pause for a moment."""


def check_time_factor(factor: float) -> None:
    """Refuse factors that leave no time for movements, or make the kitchen slower than life.

    Raises:
        InputError: if it is out of range.
    """
    if not 1.0 <= factor <= 6.0:
        raise InputError(f"time factor {factor:g}; give 1 (as slow as real kitchens) to 6")


def step_duration_s(typical: float, factor: float, random: np.random.Generator) -> float:
    """A duration in seconds.

    Args:
        typical: of the step, in standard deviations of the logarithm over all steps.
        factor: by which the kitchen is faster than a real one.
        random: one draw is taken.
    """
    share = NormalDist().cdf(typical + _WITHIN * float(random.normal()))
    return float(np.exp(np.interp(share, _SHARES, np.log(_SECONDS)))) / factor


def gap_s(factor: float, random: np.random.Generator) -> float:
    """Idle seconds between two steps."""
    return _lognormal(_GAP, factor, random, most=20.0)


def lead_in_s(factor: float, random: np.random.Generator) -> float:
    """Idle seconds before the first step."""
    return _lognormal(_LEAD_IN, factor, random, most=20.0)


def tail_s(factor: float, random: np.random.Generator) -> float:
    """Idle seconds after the last step."""
    return max(1.0, _lognormal(_TAIL, factor, random, most=20.0))


def pause(random: np.random.Generator) -> tuple[float, float] | None:
    """An idle moment within a step: where (a share of its phases) and how many seconds; mostly none."""
    happens, where, seconds = random.random(), float(random.random()), float(random.uniform(0.8, 2.5))
    return (where, seconds) if happens < PAUSE_SHARE else None


def _lognormal(shape: tuple[float, float], factor: float, random: np.random.Generator, *, most: float) -> float:
    median, spread = shape
    return min(most, max(0.3, median / factor * math.exp(spread * float(random.normal()))))
