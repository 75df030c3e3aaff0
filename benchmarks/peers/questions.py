"""Three questions, and each row as one number: all that a two-sample tool needs to know of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

METRICS = {"TPR": "true_positive_rate", "AUC": "roc_auc", "MSE": "mean_squared_error"}
SEED = 2020
_PIECE = 10**5  # rows made at once, so that making the data leaves no peak of memory of its own


@dataclass(frozen=True)
class Question:
    """Is the gap in a metric between groups 0 and 1 real? ``y_pred`` are scores for the AUC."""

    metric: str
    y_true: Any
    y_pred: Any
    group: Any


def question(metric: str, n: int, seed: int = SEED) -> Question:
    """Return n rows in which both groups have the same metric, but not the same base rate."""
    rng = np.random.default_rng(seed)
    labels = np.float64 if metric == "MSE" else np.int64
    y_true, group = np.empty(n, labels), np.empty(n, np.int64)
    y_pred = np.empty(n, np.int64 if metric == "TPR" else np.float64)
    for start in range(0, n, _PIECE):
        rows = slice(start, min(start + _PIECE, n))
        size = rows.stop - start
        group[rows] = rng.random(size) < 0.3
        if metric == "MSE":
            y_true[rows] = rng.normal(size=size)
            y_pred[rows] = y_true[rows] + rng.normal(size=size)
            continue
        y_true[rows] = rng.random(size) < np.where(group[rows] == 1, 0.4, 0.5)
        score = 0.9 * y_true[rows] + rng.normal(size=size)
        y_pred[rows] = score >= 0.5 if metric == "TPR" else score
    return Question(metric, y_true, y_pred, group)


def numbers(asked: Question) -> Any:
    """Return one number for each row.

    TPR: 0 of a negative, 1 of a positive that is missed, 2 of one that is found. AUC: the rank of
    the score, negative of a negative (scores are continuous; there are no ties). MSE: the squared
    error.
    """
    if asked.metric == "TPR":
        return (asked.y_true * (1 + asked.y_pred)).astype(np.uint8)
    if asked.metric == "MSE":
        return (asked.y_pred - asked.y_true) ** 2
    ranks = np.empty(len(asked.y_true), np.int64)
    ranks[np.argsort(asked.y_pred)] = np.arange(1, len(ranks) + 1)
    return np.where(asked.y_true == 1, ranks, -ranks)


def _rate(rows: Any) -> float:
    return float(np.count_nonzero(rows == 2) / np.count_nonzero(rows))


def _sorted_auc(rows: Any) -> float:
    """Return the share of pairs in order, of rows that are in the order of their scores."""
    positive = rows > 0
    n_positive = np.count_nonzero(positive)
    below = np.cumsum(~positive)
    return float(below[positive].sum() / n_positive / (len(rows) - n_positive))


def _auc(rows: Any) -> float:
    return _sorted_auc(rows[np.argsort(np.abs(rows))])


def _mean(rows: Any) -> float:
    return float(np.mean(rows))


VALUES: dict[str, Callable[[Any], float]] = {"TPR": _rate, "AUC": _auc, "MSE": _mean}
SORTED_VALUES = VALUES | {"AUC": _sorted_auc}
