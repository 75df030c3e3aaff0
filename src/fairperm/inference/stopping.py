"""When random draws stop: once the p-value is clear, as Besag and Clifford (1991) do.

Drawing stops at the 20th draw that is at least as extreme as the sample, and the draws before it
count. Intervals need quantiles, so a least number is drawn in any case. The p-value is then the
ordinary one of the draws that count; ``docs/method.md`` proves that it is valid.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fairperm.inference.null import list_tails

if TYPE_CHECKING:
    from fairperm._utils.arrays import Array

MIN_EXTREME_DRAWS = 20  # draws at least as extreme as the sample
MAX_DRAWS = 9_999  # draws of a test
MIN_DRAWS = 299  # draws of a test that is slow, or has no interval
_MIN_IF_FAST = 1_999  # draws of an interval
_MIN_DRAWS_BEYOND_END = 5  # draws beyond each end of an interval


def min_draws_for(confidence_level: float, *, slow: bool = False) -> int:
    """Return how many draws an interval at this level needs in any case."""
    beyond = math.ceil(2 * _MIN_DRAWS_BEYOND_END / (1 - confidence_level)) - 1
    return min(max(beyond, MIN_DRAWS if slow else _MIN_IF_FAST), MAX_DRAWS)


@dataclass(frozen=True, slots=True)
class StoppingRule:
    """The observed statistic, how draws are compared with it, and the least number of draws."""

    observed: float
    alternative: str
    tolerance: float
    min_draws: int

    def count(self, statistic: Array) -> int | None:
        """Return how many of these draws count; None if drawing must go on."""
        # A two-sided test counts each tail by itself, and goes on until both have enough
        if len(statistic) < self.min_draws:
            return None
        tails = list_tails(statistic, self.observed, self.alternative, self.tolerance)
        reached = np.min([np.cumsum(tail) for tail in tails], axis=0)
        if self.min_draws > 0 and reached[self.min_draws - 1] >= MIN_EXTREME_DRAWS:
            return self.min_draws
        last = int(np.searchsorted(reached, MIN_EXTREME_DRAWS))
        return last if last < len(reached) else None
