"""Rows out of confusion counts, and the definitions of the metrics written out by hand.

Nothing here calls fairperm, but for the container that its tables come in.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fairperm.data.sample import Sample

Counts = tuple[int, int, int, int]  # tn, fp, fn, tp
Pair = tuple[Counts, Counts]  # the confusion counts of the first and of the second group

CELLS = ("tn", "fp", "fn", "tp")
CELL_COLUMNS = {  # of one row in each cell
    "y_true": np.array([False, False, True, True]),
    "y_pred": np.array([False, True, False, True]),
}
RATES = {  # the cells a rate counts, and those it counts them among
    "selection_rate": ("tp fp", "tp fp fn tn"),
    "base_rate": ("tp fn", "tp fp fn tn"),
    "true_positive_rate": ("tp", "tp fn"),
    "false_negative_rate": ("fn", "tp fn"),
    "true_negative_rate": ("tn", "tn fp"),
    "false_positive_rate": ("fp", "tn fp"),
    "positive_predictive_value": ("tp", "tp fp"),
    "false_discovery_rate": ("fp", "tp fp"),
    "negative_predictive_value": ("tn", "tn fn"),
    "false_omission_rate": ("fn", "tn fn"),
    "accuracy": ("tp tn", "tp fp fn tn"),
    "error_rate": ("fp fn", "tp fp fn tn"),
    "jaccard_score": ("tp", "tp fp fn"),
}
OF_RATES = {"f1_score": "jaccard_score"}  # a one-to-one function of which rate


def _f1(_: float, fp: float, fn: float, tp: float) -> float:
    return 2 * tp / (2 * tp + fp + fn)


def _balanced_accuracy(tn: float, fp: float, fn: float, tp: float) -> float:
    return (tp / (tp + fn) + tn / (tn + fp)) / 2


def _mcc(tn: float, fp: float, fn: float, tp: float) -> float:
    return (tp * tn - fp * fn) / math.sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn))


OTHERS: dict[str, Callable[[float, float, float, float], float]] = {
    "f1_score": _f1,
    "balanced_accuracy": _balanced_accuracy,
    "matthews_corrcoef": _mcc,
}
JOINT = {"equalized_odds": ("true_positive_rate", "false_positive_rate")}
GIVEN_LABEL = {
    "true_positive_rate",
    "false_negative_rate",
    "true_negative_rate",
    "false_positive_rate",
    "balanced_accuracy",
    "equalized_odds",
}


def rate(metric: str, counts: Counts) -> tuple[int, int]:
    """Return what the rate counts, or that which the metric is a function of; among how many."""
    cells = RATES[OF_RATES.get(metric, metric)]
    k, m = (sum(counts[CELLS.index(cell)] for cell in some.split()) for some in cells)
    return k, m


def value(metric: str, counts: Counts) -> float:
    """Return the metric; NaN where it divides by zero."""
    try:
        if metric in OTHERS:
            return OTHERS[metric](*counts)
        k, m = rate(metric, counts)
        return k / m
    except ZeroDivisionError:
        return math.nan


def _slope(function: Callable[..., float], counts: Counts, cell: int) -> float:
    """Return the derivative of a function of a table by one of its counts, by five points."""
    table = np.array(counts, np.longdouble)
    step = table[cell] / 1000

    def at(steps: int) -> float:
        return function(*(n + steps * step * (i == cell) for i, n in enumerate(table)))

    return float(8 * (at(1) - at(-1)) - (at(2) - at(-2))) / float(12 * step)


def delta_variance(metric: str, counts: Counts) -> float:
    """Return the delta-method variance of a metric, by a formula derived by hand if it has one."""
    tn, fp, fn, tp = counts
    if metric in RATES:
        k, m = rate(metric, counts)
        return k * (m - k) / m**3
    if metric == "balanced_accuracy":  # two independent rates
        return (tp * fn / (tp + fn) ** 3 + tn * fp / (tn + fp) ** 3) / 4
    if metric == "f1_score":  # d/dtp = 2(fp + fn)/D², d/dfp = d/dfn = −2tp/D², D = 2tp + fp + fn
        return (tp * (2 * (fp + fn)) ** 2 + (fp + fn) * (2 * tp) ** 2) / (2 * tp + fp + fn) ** 4
    if metric != "matthews_corrcoef":
        cells = [(cell, n) for cell, n in enumerate(counts) if n]
        return sum(n * _slope(OTHERS[metric], counts, cell) ** 2 for cell, n in cells)
    # the correlation of a 2 by 2 table: Bishop, Fienberg and Holland, Discrete Multivariate
    # Analysis (1975), chapter 11; test_metrics.py differentiates to confirm it
    n, phi = sum(counts), value(metric, counts)
    label, guess = (tp + fn) * (tn + fp), (tp + fp) * (tn + fn)
    label_skew, guess_skew = (tp + fn - tn - fp), (tp + fp - tn - fn)
    return (
        1
        - phi**2
        + phi * (1 + phi**2 / 2) * label_skew * guess_skew / math.sqrt(label * guess)
        - 3 / 4 * phi**2 * (label_skew**2 / label + guess_skew**2 / guess)
    ) / n


def rows(*strata: Pair) -> dict[str, Any]:
    """Return the data arguments of a test, with groups 'a' and 'b', one row for each count."""
    columns: dict[str, list[Any]] = {"y_true": [], "y_pred": [], "sensitive_features": []}
    stratum_of: list[int] = []
    for s, pair in enumerate(strata):
        for group, counts in zip("ab", pair, strict=True):
            for cell, n in enumerate(counts):
                columns["y_true"] += [cell // 2] * n
                columns["y_pred"] += [cell % 2] * n
                columns["sensitive_features"] += [group] * n
                stratum_of += [s] * n
    return columns if len(strata) == 1 else {**columns, "control_features": stratum_of}


def table(*strata: Pair) -> Sample:
    """Return the same without making rows, for counts of any size."""
    stratum, group, cell = np.indices((len(strata), 2, 4)).reshape(3, -1)
    return Sample(
        columns={"y_true": cell >= 2, "y_pred": cell % 2 == 1},
        group=group,
        stratum=stratum,
        count=np.array(strata, np.int64).ravel(),
        groups=("a", "b"),
        strata=tuple(range(len(strata))),
    )


def rate_rows(*strata: Sequence[int]) -> dict[str, Any]:
    """Return rows with a selection rate of k_a of n_a against k_b of n_b in each stratum."""
    return rows(
        *(((n_a - k_a, k_a, 0, 0), (n_b - k_b, k_b, 0, 0)) for k_a, n_a, k_b, n_b in strata)
    )


def variance_over_strata(
    weights: Sequence[float], gaps: Sequence[float], variances: Sequence[float]
) -> float:
    """Return the variance of the weighted gap; strata without one have that between them."""
    known = sum(w**2 * v for w, v in zip(weights, variances, strict=True) if not math.isnan(v))
    others = [(w, gap) for w, gap, v in zip(weights, gaps, variances, strict=True) if math.isnan(v)]
    if len(others) == 1:
        return math.nan
    whole = sum(w for w, _ in others)
    mean = sum(w * gap for w, gap in others) / whole if others else 0.0
    return known + sum(w**2 * (gap - mean) ** 2 / (1 - w / whole) for w, gap in others)
