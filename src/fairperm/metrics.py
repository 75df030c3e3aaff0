"""The registry of metrics: one short definition each.

Names and aliases are those of Fairlearn and scikit-learn. The command line, the documentation
and the property tests all read this list, so a metric defined here is everywhere.
"""

from __future__ import annotations

import numpy as np

from fairperm._metric import AnyMetric, JointMetric, Metric, rate, table_metric
from fairperm.errors import InputError, InputTypeError, did_you_mean, listed, problem

__all__ = ["get_metric", "metric_names"]

_RATES = (
    rate(
        "selection_rate",
        "share of rows predicted positive",
        count="fp tp",
        aliases=("positive_prediction_rate", "demographic_parity", "statistical_parity"),
    ),
    rate(
        "base_rate",
        "share of rows that are positive",
        count="fn tp",
        aliases=("prevalence",),
    ),
    rate(
        "true_positive_rate",
        "share of positives predicted positive",
        count="tp",
        among="fn tp",
        aliases=("tpr", "recall", "recall_score", "sensitivity", "hit_rate", "equal_opportunity"),
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
    rate(
        "accuracy",
        "share of rows predicted right",
        count="tn tp",
        aliases=("accuracy_score",),
        complement="error_rate",
    ),
    rate(
        "error_rate",
        "share of rows predicted wrong",
        count="fp fn",
        aliases=("zero_one_loss", "misclassification_rate"),
        complement="accuracy",
    ),
)

_TABLE_METRICS = (
    table_metric(
        "f1_score",
        "harmonic mean of precision and recall",
        lambda _, fp, fn, tp: 2 * tp / (2 * tp + fp + fn),
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
        "jaccard_score",
        "share of hits among all rows that are or are predicted positive",
        lambda _, fp, fn, tp: tp / (tp + fp + fn),
        aliases=("threat_score", "critical_success_index", "jaccard"),
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

_BY_NAME: dict[str, AnyMetric] = {metric.name: metric for metric in (*_RATES, *_TABLE_METRICS)}
_BY_NAME["equalized_odds"] = JointMetric(
    name="equalized_odds",
    meaning="larger gap of the true positive rate and the false positive rate",
    parts=tuple(
        rate for rate in _RATES if rate.name in {"true_positive_rate", "false_positive_rate"}
    ),
    aliases=("equalised_odds", "equalized_odds_difference"),
    given="label",
)
_BY_ALIAS = {alias: metric for metric in _BY_NAME.values() for alias in metric.aliases}


def metric_names() -> tuple[str, ...]:
    """Return the name of every metric.

    Examples
    --------
    >>> import fairperm
    >>> fairperm.metric_names()[:3]
    ('selection_rate', 'base_rate', 'true_positive_rate')
    """
    return tuple(_BY_NAME)


def get_metric(metric: object) -> AnyMetric:
    """Return the metric that a user means by this name or alias.

    Examples
    --------
    >>> from fairperm.metrics import get_metric
    >>> get_metric("recall").name
    'true_positive_rate'
    """
    if isinstance(metric, (Metric, JointMetric)):
        return metric
    if callable(metric):
        hint = "Metrics of your own making are not supported yet."
        raise InputTypeError(problem("metric", "the name of a metric", metric, hint))
    if not isinstance(metric, str):
        raise InputTypeError(problem("metric", "the name of a metric", metric))
    word = metric.strip().lower().replace("-", "_").replace(" ", "_")
    found = _BY_NAME.get(word) or _BY_ALIAS.get(word)
    if found is None:
        rule = f"one of {listed(_BY_NAME, most=len(_BY_NAME))}"
        hint = did_you_mean(word, [*_BY_NAME, *_BY_ALIAS])
        raise InputError(problem("metric", rule, metric, hint))
    return found
