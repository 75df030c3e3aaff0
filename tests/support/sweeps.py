"""Scored rows, and their studentized gaps by definition."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairperm.hypothesis_tests.results.sweeps import MetricSweep
from fairperm.hypothesis_tests.sweep.threshold_sweep import threshold_sweep
from tests.support import helpers
from tests.support.helpers import Counts

METRICS = [
    *(name for name in helpers.RATES if name != "base_rate"),
    *helpers.OTHERS,
]


def scored(
    n: int = 200, seed: int = 0, *, decimals: int | None = None, strata: int = 1
) -> dict[str, Any]:
    """Return the data arguments of a sweep: groups of different base rates and curves."""
    rng = np.random.default_rng(seed)
    group = np.where(rng.random(n) < 0.4, "a", "b")
    y_true = (rng.random(n) < np.where(group == "a", 0.6, 0.4)).astype(np.int64)
    noise = rng.normal(0, np.where(group == "a", 1.0, 1.4))
    y_score = 1 / (1 + np.exp(-(1.5 * y_true - 0.75 + noise)))
    if decimals is not None:
        y_score = y_score.round(decimals)
    columns = {"y_true": y_true, "y_score": y_score, "sensitive_features": group}
    return columns if strata == 1 else {**columns, "control_features": rng.integers(0, strata, n)}


def sweep(data: dict[str, Any], metric: str = "true_positive_rate", **options: Any) -> MetricSweep:
    """Return the one curve of a sweep of one metric."""
    (curve,) = threshold_sweep(**data, metric=metric, **{"rng": 1, **options}).curves.values()
    return curve


def confusion(
    y_true: NDArray[Any], y_score: NDArray[Any], chosen: NDArray[np.bool_], threshold: float
) -> Counts:
    """Return the confusion counts of the chosen rows, one by one."""
    counts = [0, 0, 0, 0]
    for label, score in zip(y_true[chosen].tolist(), y_score[chosen].tolist(), strict=True):
        counts[2 * int(label) + int(score >= threshold)] += 1
    return tuple(counts)  # type: ignore[return-value]


def statistic(metric: str, first: Counts, second: Counts, variance: str | None) -> float:
    """Return the studentized gap by the formulas; NaN where it is undefined."""
    gap = helpers.value(metric, first) - helpers.value(metric, second)
    if math.isnan(gap) or variance is None:
        return gap
    if variance == "score":
        (k_a, m_a), (k_b, m_b) = helpers.rate(metric, first), helpers.rate(metric, second)
        p = (k_a + k_b) / (m_a + m_b)
        square = p * (1 - p) * (1 / m_a + 1 / m_b)
    else:
        square = sum(helpers.delta_variance(metric, one) for one in (first, second))
    if square < 1e-20:
        return 0.0 if abs(gap) < 1e-12 else math.copysign(math.inf, gap)
    return gap / math.sqrt(square)


def every_assignment(
    y_true: NDArray[Any], in_first: NDArray[np.bool_], *, within_label: bool
) -> Iterator[NDArray[np.bool_]]:
    """Yield every way to give the first group's label to as many rows as it has (of a label)."""
    blocks = [np.flatnonzero(y_true == label) for label in (0, 1)]
    if not within_label:
        blocks = [np.arange(len(y_true))]
    choices = [itertools.combinations(rows.tolist(), int(in_first[rows].sum())) for rows in blocks]
    for parts in itertools.product(*choices):
        chosen = np.zeros(len(y_true), bool)
        chosen[[row for part in parts for row in part]] = True
        yield chosen


def statistics(
    data: dict[str, Any],
    metric: str,
    variance: str | None,
    in_first: NDArray[np.bool_],
    thresholds: Sequence[float],
) -> list[float]:
    """Return the studentized gap at every threshold, for any assignment of rows to groups."""
    y_true, y_score = np.asarray(data["y_true"]), np.asarray(data["y_score"])
    return [
        statistic(
            metric,
            confusion(y_true, y_score, in_first, threshold),
            confusion(y_true, y_score, ~in_first, threshold),
            variance,
        )
        for threshold in thresholds
    ]
