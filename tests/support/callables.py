"""Metrics as people write them, and data to try them on."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
from scipy import stats

from fairperm import permutation_test
from fairperm.data.arguments import Inputs
from fairperm.data.reading import read_table
from fairperm.hypothesis_tests.comparison import Comparison
from fairperm.hypothesis_tests.plan import Plan
from fairperm.metrics import get_metric
from fairperm.metrics.definition import Scheme

# Metrics as people write them.


def accuracy(y_true: Any, y_pred: Any, *, sample_weight: Any = None) -> Any:
    return np.average(y_true == y_pred, weights=sample_weight)


def plain_accuracy(y_true: Any, y_pred: Any) -> Any:
    return np.mean(y_true == y_pred)


def fbeta(y_true: Any, y_pred: Any, *, beta: float, sample_weight: Any = None) -> float:
    weight = np.ones(len(y_true)) if sample_weight is None else sample_weight
    tp = weight[(y_true == 1) & (y_pred == 1)].sum()
    wrong = weight[(y_true == 0) & (y_pred == 1)].sum(), weight[(y_true == 1) & (y_pred == 0)].sum()
    total = (1 + beta**2) * tp + wrong[0] + beta**2 * wrong[1]
    return float((1 + beta**2) * tp / total) if total else math.nan


f1 = functools.partial(fbeta, beta=1)


def selection_rate(
    y_true: Any, y_pred: Any, *, pos_label: Any = 1, sample_weight: Any = None
) -> Any:
    """As Fairlearn writes it."""
    del y_true
    weight = np.ones(len(y_pred)) if sample_weight is None else np.asarray(sample_weight)
    return np.dot(np.asarray(y_pred) == pos_label, weight) / weight.sum()


def mean_absolute_error(y_true: Any, y_pred: Any, sample_weight: Any = None) -> Any:
    return np.average(np.abs(y_true - y_pred), weights=sample_weight)


def auc(y_true: Any, y_score: Any) -> float:
    ranks = stats.rankdata(y_score)
    positives, negatives = (y_true == 1).sum(), (y_true == 0).sum()
    if not positives or not negatives:
        return math.nan
    total = ranks[y_true == 1].sum() - positives * (positives + 1) / 2
    return float(total / positives / negatives)


class Accuracy:
    def __call__(self, y_true: Any, y_pred: Any) -> float:
        return float(plain_accuracy(y_true, y_pred))


def share_right_of_half(y_true: Any, y_pred: Any, sample_weight: Any = None) -> float:
    """Take weights and ignore them: a mistake that must not spoil a test."""
    return float(plain_accuracy(y_true, y_pred))


# Data.


def labels(n: int = 300, seed: int = 1) -> dict[str, Any]:
    """Return groups with different base rates and somewhat different accuracy."""
    rng = np.random.default_rng(seed)
    group = np.where(rng.random(n) < 0.4, "a", "b")
    y_true = (rng.random(n) < np.where(group == "a", 0.7, 0.4)).astype(int)
    right = rng.random(n) < np.where(group == "a", 0.75, 0.82)
    y_pred = np.where(right, y_true, 1 - y_true)
    return {"y_true": y_true, "y_pred": y_pred, "sensitive_features": group}


def scores(n: int = 150, seed: int = 2) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    group = np.where(rng.random(n) < 0.4, "a", "b")
    y_true = rng.integers(0, 2, n)
    y_score = rng.normal(y_true * np.where(group == "a", 0.8, 1.2))
    return {"y_true": y_true, "y_score": y_score, "sensitive_features": group}


def numbers(n: int = 150, seed: int = 3) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    group = np.where(rng.random(n) < 0.4, "a", "b")
    y_true = rng.normal(size=n)
    return {
        "y_true": y_true,
        "y_pred": y_true + rng.normal(size=n) * np.where(group == "a", 1.2, 1),
        "sensitive_features": group,
    }


def run(data: dict[str, Any], metric: Any, **options: Any) -> Any:
    return permutation_test(**data, **{"metric": metric, "n_resamples": 199, "rng": 1, **options})


def agree(ours: Any, theirs: Any, slack: float = 0.0) -> bool:
    """Tell whether two Monte Carlo p-values can be of one probability: within four deviations.

    ``slack`` is how far the statistics may be apart for the error of their own bootstraps.
    """
    p = (ours.pvalue + theirs.pvalue) / 2
    error = 4 * math.sqrt(p * (1 - p) * (1 / ours.n_resamples + 1 / theirs.n_resamples))
    if not slack:
        return bool(abs(ours.pvalue - theirs.pvalue) <= error + 1e-9)
    draws, observed = np.abs(theirs.null_distribution), abs(theirs.statistic)
    low, high = (np.mean(draws >= observed * (1 + by) - 1e-9) for by in (slack, -slack))
    return bool(low - error <= ours.pvalue <= high + error)


FAST = 0.1  # more than the error of two deviations, each of 2,000 draws, in two runs


def shuffled(data: dict[str, Any]) -> dict[str, Any]:
    order = np.random.default_rng(9).permutation(len(data["y_true"]))
    return {name: column[order] for name, column in data.items()}


def engine_of(data: dict[str, Any], function: Any) -> Any:
    metric: Any = get_metric(function)
    table = read_table(Inputs(**data), metric)
    return Comparison.of(
        table, Plan(metric, Scheme.POOLED, None), table.choose_groups(None), None
    ).engine(None)
