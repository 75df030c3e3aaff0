"""Scores and outcomes that hardly repeat, and the metrics of numbers written out by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Value = Callable[[Array, Array], float]


def auc(y: Array, score: Array) -> float:
    """Compare every positive with every negative; ties count one half."""
    wins = np.sign(np.subtract.outer(score[y == 1], score[y == 0])) / 2 + 0.5
    return float(wins.mean()) if wins.size else np.nan


def _average_precision(y: Array, score: Array) -> float:
    """Average over the positives the share of positives among rows that score as high."""
    return float(np.mean([y[score >= one].mean() for one in score[y == 1]]))


def _log_loss(y: Array, score: Array) -> float:
    return float(-(y * np.log(score) + (1 - y) * np.log(1 - score)).mean())


SCORES: dict[str, Value] = {  # of labels 0 and 1, and scores
    "roc_auc": auc,
    "gini": lambda y, s: 2 * auc(y, s) - 1,
    "average_precision": _average_precision,
    "brier_score": lambda y, s: float(np.mean((s - y) ** 2)),
    "log_loss": _log_loss,
    "mean_score": lambda _, s: float(s.mean()),
    "mean_score_positives": lambda y, s: float(s[y == 1].mean()),
    "mean_score_negatives": lambda y, s: float(s[y == 0].mean()),
    "calibration_in_the_large": lambda y, s: float(s.mean() - y.mean()),
}
REGRESSIONS: dict[str, Value] = {  # of outcomes and predictions
    "mean_error": lambda y, p: float(np.mean(p - y)),
    "mean_absolute_error": lambda y, p: float(np.mean(np.abs(p - y))),
    "mean_squared_error": lambda y, p: float(np.mean((p - y) ** 2)),
    "root_mean_squared_error": lambda y, p: float(np.sqrt(np.mean((p - y) ** 2))),
    "r2_score": lambda y, p: float(1 - np.sum((p - y) ** 2) / np.sum((y - y.mean()) ** 2)),
    "mean_absolute_percentage_error": lambda y, p: float(np.mean(np.abs((p - y) / y))),
    "pinball_loss": lambda y, p: float(np.mean(np.where(y > p, y - p, p - y)) / 2),
    "mean_poisson_deviance": lambda y, p: float(2 * np.mean(y * np.log(y / p) - y + p)),
    "mean_gamma_deviance": lambda y, p: float(2 * np.mean(np.log(p / y) + y / p - 1)),
    "mean_prediction": lambda _, p: float(p.mean()),
    "mean_outcome": lambda y, _: float(y.mean()),
}
NUMBER_METRICS = (*SCORES, *REGRESSIONS)
AUCS = ("roc_auc", "gini")  # with DeLong's variance
GIVEN_LABEL = ("roc_auc", "gini", "mean_score_positives", "mean_score_negatives")


def value(metric: str, y: Array, x: Array) -> float:
    """Return the metric of labels and scores, or of outcomes and predictions."""
    return {**SCORES, **REGRESSIONS}[metric](y, x)


def columns_for(metric: str, n: int, seed: int) -> tuple[Array, Array]:
    """Return labels and scores, or outcomes and predictions, that are all unlike."""
    rng = np.random.default_rng(seed)
    if metric in SCORES:
        y = (np.arange(n) % 5 < 2).astype(float)
        rng.shuffle(y)
        return y, 1 / (1 + np.exp(-(y - 0.4 + rng.normal(size=n))))
    y = rng.gamma(4.0, size=n) + 1
    x = 0.7 * y + 1 + rng.normal(size=n)
    return y, np.abs(x) if metric.endswith("deviance") else x


def arguments(metric: str, y: NDArray[Any], x: NDArray[Any]) -> dict[str, Any]:
    """Return the columns under the names that the metric takes them by."""
    return {"y_true": y, ("y_score" if metric in SCORES else "y_pred"): x}


def numbers_for(metric: str, n: int, seed: int) -> dict[str, Any]:
    """Return the data arguments of a test, with groups 'a' and 'b' by turns."""
    groups = np.array(["a", "b"])[np.arange(n) % 2]
    return {**arguments(metric, *columns_for(metric, n, seed)), "sensitive_features": groups}
