"""Against LiFT's permutation test, transcribed: the same studentization gives the same p-value.

``benchmarks/peers/lift.py`` has the algorithm. An undefined rate is 0 in LiFT.
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from benchmarks.peers.lift import lift

import fairperm

ROWS = 500_000
TRIALS = 300
# LiFT's names, ours, and the cells of a confusion table (tn, fp, fn, tp) above and below the line
RATES = {
    "FNR": ("false_negative_rate", [2], [2, 3]),
    "FPR": ("false_positive_rate", [1], [0, 1]),
    "TNR": ("true_negative_rate", [0], [0, 1]),
    "PRECISION": ("positive_predictive_value", [3], [1, 3]),
    "RECALL": ("true_positive_rate", [3], [2, 3]),
}


def rates(cells: Any) -> Any:
    """Return LiFT's rates from the cells of the confusion table that rows are in."""
    counts = np.bincount(cells, minlength=4)
    found = []
    for _, above, below in RATES.values():
        total = counts[below].sum()
        found.append(counts[above].sum() / total if total else 0.0)
    return np.array(found)


def auc(rows: Any) -> Any:
    """Return the area under the ROC curve of rows (label, score), by ranks."""
    label, score = rows.T
    order = np.argsort(score)
    below = np.cumsum(label[order] == 0)
    n_positive = int(label.sum())
    return np.array([below[label[order] == 1].sum() / n_positive / (len(label) - n_positive)])


def monte_carlo_error(p: float, statistic: float, theirs: int, ours: int) -> float:
    """Return the standard error of a difference of such p-values.

    Both count draws, and both divide by two deviations that they estimate from as many draws.
    """
    counting = p * (1 - p) * (1 / theirs + 1 / ours)
    slope = 2 * NormalDist().pdf(statistic) * abs(statistic)
    return math.sqrt(counting + slope**2 * 2 * (1 / (2 * theirs) + 1 / (2 * ours)))


@pytest.mark.validate
def test_rates_of_500_000_rows() -> None:
    rng = np.random.default_rng(500_000)
    group = (rng.random(ROWS) < 0.6).astype(np.uint8)
    label = rng.random(ROWS) < np.where(group == 0, 0.4, 0.5)
    error = np.where(group == 0, 0.3, 0.3016)
    predicted = label ^ (rng.random(ROWS) < error)
    cells = (2 * label + predicted).astype(np.uint8)
    theirs, statistics = lift(cells, group, rates, TRIALS, rng)
    close = 0
    for (metric, *_), p, statistic in zip(RATES.values(), theirs, statistics, strict=True):
        ours = fairperm.permutation_test(
            label, predicted, sensitive_features=group, metric=metric, scheme="pooled",
            variance="fast_bootstrap", n_resamples=4_999, rng=1,
        )  # fmt: skip
        off = monte_carlo_error(ours.pvalue, ours.statistic, TRIALS, 4_999)
        assert abs(ours.pvalue - p) < 4 * off + 1 / TRIALS, metric
        assert statistic == pytest.approx(ours.statistic, rel=4 / math.sqrt(2 * TRIALS))
        close += 0.02 < ours.pvalue < 0.98
    assert close >= 3  # of p-values that could differ at all


@pytest.mark.validate
def test_auc() -> None:
    rng = np.random.default_rng(5)
    n = 8_000
    group = (rng.random(n) < 0.6).astype(np.uint8)
    label = rng.random(n) < np.where(group == 0, 0.3, 0.5)
    score = 1.2 * label + rng.normal(size=n) * np.where(group == 0, 1.0, 1.06)
    (p,), (statistic,) = lift(np.column_stack([label, score]), group, auc, TRIALS, rng)
    ours = fairperm.permutation_test(
        label, y_score=score, sensitive_features=group, metric="roc_auc", scheme="pooled",
        variance="fast_bootstrap", n_resamples=1_999, rng=1,
    )  # fmt: skip
    off = monte_carlo_error(ours.pvalue, ours.statistic, TRIALS, 1_999)
    assert abs(ours.pvalue - p) < 4 * off + 1 / TRIALS
    assert statistic == pytest.approx(ours.statistic, rel=5 / math.sqrt(2 * TRIALS))
