"""LiFT's permutation test, transcribed to NumPy.

LiFT (github.com/linkedin/LiFT, PermutationTestUtils and StatsUtils) takes a sample of at most
500,000 rows to the driver. The observed gap is divided by its standard deviation over bootstrap
samples of both groups together; labels are shuffled over both groups, and those gaps divided by
their own standard deviation; the p-value is the share of them that is strictly larger.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable


def lift(
    rows: Any, group: Any, values: Callable[[Any], Any], trials: int, rng: np.random.Generator
) -> tuple[Any, Any]:
    """Return LiFT's p-value and studentized gap for every metric that ``values`` finds in rows."""

    def gap(first: Any, second: Any) -> Any:
        return values(first) - values(second)

    n, n_first = len(rows), int((group == 0).sum())
    observed = gap(rows[group == 0], rows[group == 1])
    resampled = []
    for _ in range(trials):
        drawn = rng.integers(n, size=n, dtype=np.int32)
        side, sample = group[drawn], rows[drawn]
        resampled.append(gap(sample[side == 0], sample[side == 1]))
    statistic = observed / np.std(resampled, axis=0, ddof=1)
    shuffled = []
    for _ in range(trials):
        order = rng.permutation(rows)
        shuffled.append(gap(order[:n_first], order[n_first:]))
    studentized = np.array(shuffled) / np.std(shuffled, axis=0, ddof=1)
    return (np.abs(studentized) > np.abs(statistic)).mean(axis=0), statistic
