"""The scheme that a test has by default."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fairperm
from fairperm import permutation_test
from fairperm.metrics import get_metric

GIVEN_LABEL = {
    "balanced_accuracy",
    "roc_auc",
    "gini",
    "mean_score_positives",
    "mean_score_negatives",
    "equalized_odds",
}
KINDS = {"binary", "labels", "score", "probability"}
METRICS = [one for one in fairperm.metric_names() if get_metric(one).kind in KINDS]


def _rows() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    return {"y_true": rng.random(80) < 0.5, "sensitive_features": np.repeat(["a", "b"], 40)}


@pytest.mark.parametrize("metric", METRICS)
def test_metrics_given_the_label_exchange_within_labels(metric: str) -> None:
    rng, rows = np.random.default_rng(1), _rows()
    name = "y_pred" if get_metric(metric).kind in {"binary", "labels"} else "y_score"
    column: Any = rng.random(80) < 0.5 if name == "y_pred" else rng.random(80)
    result = permutation_test(**rows, **{name: column}, metric=metric, n_resamples=19, rng=1)
    is_rate = get_metric(metric).has_denominator
    expected = "within_label" if metric in GIVEN_LABEL else "pooled"
    assert result.scheme == ("unconditional" if is_rate else expected)
    is_given_label = "equal distributions of predictions given the label" in result.validity
    assert is_given_label == (metric in GIVEN_LABEL - {"equalized_odds"})  # which is exact


@pytest.mark.parametrize("metric", METRICS)
def test_weights_keep_what_is_exchanged(metric: str) -> None:
    """All rows were: 6 positives against 500 gave a weighted true positive rate a level of 0.35."""
    rng, rows = np.random.default_rng(1), _rows()
    name = "y_pred" if get_metric(metric).kind in {"binary", "labels"} else "y_score"
    column: Any = rng.random(80) < 0.5 if name == "y_pred" else rng.random(80)
    weight = rng.uniform(1, 2, 80)
    result = permutation_test(
        **rows, **{name: column}, sample_weight=weight, metric=metric, n_resamples=19, rng=1
    )
    is_rate = get_metric(metric).has_denominator
    expected = "within_label" if metric in GIVEN_LABEL else "pooled"
    assert result.scheme == ("denominator" if is_rate else expected)
    assert "Asymptotically valid" in result.validity


@pytest.mark.parametrize("metric", ["balanced_accuracy", "roc_auc"])
def test_whole_clusters_are_exchanged_whatever_their_labels(metric: str) -> None:
    rows = _rows()
    name = "y_pred" if metric == "balanced_accuracy" else "y_score"
    column: Any = np.random.default_rng(1).random(80).round()
    result = permutation_test(
        **rows, **{name: column}, cluster=np.arange(80) // 2, metric=metric, n_resamples=19, rng=1
    )
    assert result.scheme == "pooled"
