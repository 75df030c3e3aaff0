"""Data sets of two groups with equal AUC (or equal means), in which few rows make the variance.

Each design is a function of a random generator that returns the arguments of a test. All designs
were fixed before their levels were measured.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.stats import norm

Design = Callable[[np.random.Generator], dict[str, Any]]

Pair = tuple[float, float]


def rare_misses(rng: np.random.Generator) -> dict[str, Any]:
    """Return rows of which one in a hundred of the first group's 200 positives is missed."""
    label = np.r_[np.arange(2000) < 200, np.arange(2000) < 1000].astype(int)
    score = rng.normal(size=4000) + 3.29 * label
    score[:200] = np.where(rng.random(200) < 0.01, -50, 50)
    return {
        "y_true": label,
        "y_score": score,
        "sensitive_features": np.arange(4000) // 2000,
        "metric": "roc_auc",
    }


def rarer_misses(rng: np.random.Generator) -> dict[str, Any]:
    """Return the same with 30 positives of 100 rows, against 300 of 1,000."""
    label = np.r_[np.arange(100) < 30, np.arange(1000) < 300].astype(int)
    score = rng.normal(size=1100) + 3.29 * label
    score[:30] = np.where(rng.random(30) < 0.01, -50, 50)
    return {
        "y_true": label,
        "y_score": score,
        "sensitive_features": np.repeat([0, 1], [100, 1000]),
        "metric": "roc_auc",
    }


def few_positives(rng: np.random.Generator) -> dict[str, Any]:
    """Return 24 against 1,100 positives, AUC 0.993, for the normal limit."""
    label = np.repeat([1, 0, 1, 0], [24, 1000, 1100, 1000])
    return {
        "y_true": label,
        "y_score": rng.normal(size=3124) + 3.47 * label,
        "sensitive_features": np.repeat([0, 1], [1024, 2100]),
        "metric": "roc_auc",
        "n_resamples": 0,
    }


def uneven_weights(rng: np.random.Generator) -> dict[str, Any]:
    """Return about 30 positives with log-normal weights, against 300 of weight 1."""
    label, group = (rng.random(1100) < 0.3).astype(int), np.repeat([0, 1], [100, 1000])
    return {
        "y_true": label,
        "y_score": rng.normal(size=1100) + label,
        "sensitive_features": group,
        "sample_weight": np.where(group == 0, np.exp(1.5 * rng.normal(size=1100)), 1.0),
        "metric": "roc_auc",
    }


def one_heavy_weight(rng: np.random.Generator) -> dict[str, Any]:
    """Return 60 rows of which one has a weight of 1,000, against 600, for the normal limit."""
    weight = np.ones(660)
    weight[rng.integers(60)] = 1000
    rows = binormal((60, 600), (0.5, 0.5))(rng)
    return {**rows, "sample_weight": weight, "n_resamples": 0}


def heavy_weight_in_a_stratum(rng: np.random.Generator) -> dict[str, Any]:
    """Return three strata of 40 and 200 rows; a row in the first one has a weight of 100."""
    strata = [binormal((40, 200), (0.5, 0.3))(rng) for _ in range(3)]
    columns = {
        name: np.concatenate([one[name] for one in strata])
        for name in ("y_true", "y_score", "sensitive_features")
    }
    weight = np.ones(720)
    weight[rng.integers(40)] = 100
    stratum = np.repeat(np.arange(3), 240)
    return {**columns, "control_features": stratum, "sample_weight": weight, "metric": "roc_auc"}


def few_clusters(rng: np.random.Generator) -> dict[str, Any]:
    """Return 6 against 60 clusters of 30 rows, AUC 0.76, that differ more in the first group."""
    cluster = np.repeat(np.arange(66), 30)
    group = (cluster >= 6).astype(int)
    label = (rng.random(len(cluster)) < 0.4).astype(int)
    spread = np.where(group == 0, 1.5, 0.5)
    apart = norm.ppf(0.76) * np.sqrt(2 * (1 + spread**2))
    score = rng.normal(size=len(cluster)) + apart * label + spread * rng.normal(size=66)[cluster]
    return {
        "y_true": label,
        "y_score": score,
        "sensitive_features": group,
        "cluster": cluster,
        "metric": "roc_auc",
    }


def tied_scores(rng: np.random.Generator) -> dict[str, Any]:
    """Return scores of 0, ½ and 1 in 60 and 600 rows: AUC 0.85, with misses in one group only."""
    group, label = np.repeat([0, 1], [60, 600]), (rng.random(660) < 0.5).astype(int)
    above, tied, u = np.where(group == 0, 0.7, 0.8), np.where(group == 0, 0.3, 0.1), rng.random(660)
    positive = np.where(u < above, 1.0, np.where(u < above + tied, 0.5, 0.0))
    return {
        "y_true": label,
        "y_score": np.where(label == 1, positive, 0.5),
        "sensitive_features": group,
        "metric": "roc_auc",
    }


def binormal(
    n: tuple[int, int], base_rates: Pair, auc: Pair = (0.85, 0.85), spread: Pair = (1.0, 1.0)
) -> Design:
    """Return normal scores; ``spread`` is the standard deviation of the positives' scores."""

    def design(rng: np.random.Generator) -> dict[str, Any]:
        group = np.repeat([0, 1], n)
        label = (rng.random(sum(n)) < np.array(base_rates)[group]).astype(int)
        deviation = np.array(spread)
        apart = norm.ppf(auc) * np.sqrt(1 + deviation**2)
        score = rng.normal(size=sum(n)) * np.where(label == 1, deviation[group], 1.0)
        return {
            "y_true": label,
            "y_score": score + apart[group] * label,
            "sensitive_features": group,
            "metric": "roc_auc",
        }

    return design


def uneven_clusters(rng: np.random.Generator) -> dict[str, Any]:
    """Return errors in 8 against 80 clusters of uneven size, more alike in the first group's."""
    group = np.repeat([0, 1], [8, 80])
    rows = 1 + rng.poisson(10 * np.exp(rng.normal(size=88)))
    cluster = np.repeat(np.arange(88), rows)
    error = (np.where(group == 0, 1.0, 0.2) * rng.normal(size=88))[cluster]
    error += rng.normal(size=len(cluster))
    return {
        "y_true": error,
        "y_pred": np.zeros_like(error),
        "sensitive_features": group[cluster],
        "cluster": cluster,
        "metric": "mean_error",
    }


def weighted_errors(rng: np.random.Generator) -> dict[str, Any]:
    """Return errors of 30 rows with log-normal weights, against 300 of weight 1."""
    group, error = np.repeat([0, 1], [30, 300]), rng.normal(size=330)
    return {
        "y_true": error,
        "y_pred": np.zeros_like(error),
        "sensitive_features": group,
        "sample_weight": np.where(group == 0, np.exp(rng.normal(size=330)), 1.0),
        "metric": "mean_error",
    }


def single_clusters(rng: np.random.Generator) -> dict[str, Any]:
    """Return errors in 10 strata of 1 and 3 clusters, of which the single ones vary most."""
    group, stratum = np.tile([0, 1, 1, 1], 10), np.repeat(np.arange(10), 4)
    cluster = np.repeat(np.arange(40), 1 + rng.poisson(5, 40))
    error = (np.where(group == 0, 2.0, 0.5) * rng.normal(size=40))[cluster]
    error += 0.5 * rng.normal(size=len(cluster))
    return {
        "y_true": error,
        "y_pred": np.zeros_like(error),
        "sensitive_features": group[cluster],
        "cluster": cluster,
        "control_features": stratum[cluster],
        "metric": "mean_error",
    }
