"""The registry of metrics: one short definition each.

Names and aliases are those of Fairlearn and scikit-learn. The command line, the documentation
and the property tests all read this list, so a metric defined here is everywhere.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fairperm.metrics.classes import label_rate
from fairperm.metrics.definition import function_of, rate, table_metric


def f1_of_jaccard(jaccard: Any) -> Any:
    """Return the F1 score with which hits are such a share of hits and misses."""
    return 2 * jaccard / (1 + jaccard)


def jaccard_of_f1(f1: Any) -> Any:
    """Return which share of hits and misses are hits, with such an F1 score."""
    return f1 / (2 - f1)


F1_TOTALS = ("hits", "hits and misses")
_JACCARD = rate(
    "jaccard_score",
    "share of true positives among all rows that are positive or predicted positive",
    count="tp",
    among="fp fn tp",
    aliases=("threat_score", "critical_success_index", "jaccard"),
)
_RATES = (
    rate(
        "selection_rate",
        "share of rows predicted positive",
        count="fp tp",
        aliases=(
            *("positive_prediction_rate", "statistical_parity"),
            *("demographic_parity", "demographic_parity_difference"),
        ),
    ),
    rate("base_rate", "share of rows that are positive", count="fn tp", aliases=("prevalence",)),
    rate(
        "true_positive_rate",
        "share of positives predicted positive",
        count="tp",
        among="fn tp",
        aliases=(
            *("tpr", "recall", "recall_score", "sensitivity", "hit_rate"),
            *("equal_opportunity", "equal_opportunity_difference"),
        ),
        complement="false_negative_rate",
    ),
    rate(
        "false_negative_rate",
        "share of positives predicted negative",
        count="fn",
        among="fn tp",
        aliases=("fnr", "miss_rate"),
        complement="true_positive_rate",
    ),
    rate(
        "true_negative_rate",
        "share of negatives predicted negative",
        count="tn",
        among="tn fp",
        aliases=("tnr", "specificity", "selectivity"),
        complement="false_positive_rate",
    ),
    rate(
        "false_positive_rate",
        "share of negatives predicted positive",
        count="fp",
        among="tn fp",
        aliases=("fpr", "fall_out"),
        complement="true_negative_rate",
    ),
    rate(
        "positive_predictive_value",
        "share of predicted positives that are positive",
        count="tp",
        among="fp tp",
        aliases=("ppv", "precision", "precision_score", "predictive_parity"),
        complement="false_discovery_rate",
    ),
    rate(
        "false_discovery_rate",
        "share of predicted positives that are negative",
        count="fp",
        among="fp tp",
        aliases=("fdr",),
        complement="positive_predictive_value",
    ),
    rate(
        "negative_predictive_value",
        "share of predicted negatives that are negative",
        count="tn",
        among="tn fn",
        aliases=("npv",),
        complement="false_omission_rate",
    ),
    rate(
        "false_omission_rate",
        "share of predicted negatives that are positive",
        count="fn",
        among="tn fn",
        aliases=("for",),
        complement="negative_predictive_value",
    ),
    label_rate(
        "accuracy",
        "share of rows predicted correctly",
        lambda y_true, y_pred: y_true == y_pred,
        aliases=("accuracy_score",),
        complement="error_rate",
    ),
    label_rate(
        "error_rate",
        "share of rows predicted incorrectly",
        lambda y_true, y_pred: y_true != y_pred,
        aliases=("zero_one_loss", "misclassification_rate"),
        complement="accuracy",
    ),
    _JACCARD,
)

_TABLE_METRICS = (
    function_of(
        _JACCARD,
        "f1_score",
        "harmonic mean of precision and recall",
        f1_of_jaccard,
        jaccard_of_f1,
        called=F1_TOTALS,
        aliases=("f1", "dice"),
    ),
    table_metric(
        "balanced_accuracy",
        "mean of the true positive rate and the true negative rate",
        lambda tn, fp, fn, tp: (tp / (tp + fn) + tn / (tn + fp)) / 2,
        aliases=("balanced_accuracy_score",),
        given="label",
    ),
    table_metric(
        "matthews_corrcoef",
        "correlation of label and prediction",
        lambda tn, fp, fn, tp: (
            (tp * tn - fp * fn) / np.sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn))
        ),
        aliases=("mcc", "phi_coefficient"),
        span=2.0,
    ),
)
