"""Scorers of scikit-learn by their names: higher is better, so that errors have a minus sign."""

from __future__ import annotations

import inspect
from dataclasses import replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

from fairperm.errors import InputError, MissingPartError
from fairperm.metrics.callables import CallableMetric

if TYPE_CHECKING:
    from fairperm.metrics.definition import Metric

# those that no metric here is named like: scikit-learn's own functions compute them
SCORERS = """
adjusted_mutual_info_score adjusted_rand_score completeness_score d2_absolute_error_score
d2_brier_score d2_log_loss_score explained_variance f1_micro f1_samples f1_weighted
fowlkes_mallows_score homogeneity_score jaccard_macro jaccard_micro jaccard_samples
jaccard_weighted mutual_info_score neg_max_error neg_mean_squared_log_error
neg_median_absolute_error neg_negative_likelihood_ratio neg_root_mean_squared_log_error
normalized_mutual_info_score positive_likelihood_ratio precision_micro precision_samples
precision_weighted rand_score recall_micro recall_samples recall_weighted roc_auc_ovo
roc_auc_ovo_weighted top_k_accuracy v_measure_score
""".split()  # noqa: SIM905


def negate(metric: Metric) -> Metric:
    """Return the scorer of an error: minus its value. Their gaps are one hypothesis."""
    return replace(
        metric,
        name=f"neg_{metric.name}",
        meaning=f"{metric.meaning}, with a minus sign",
        value=lambda *totals: -metric.value(*totals),
        aliases=(),
        complement=metric.name,
    )


@lru_cache
def find_scorer(name: str) -> CallableMetric | None:
    """Return the scorer of this name as a function of labels and the output; None if unknown."""
    if name not in SCORERS:
        return None
    scorer = _get_scorer(name)
    reads_labels = getattr(scorer, "_response_method", "predict") == "predict"
    return CallableMetric(
        name=name,
        function=partial(_score, name),
        columns=("y_true", "y_pred" if reads_labels else "y_score"),
        meaning="value of scikit-learn's scorer of this name",
        takes_weight="sample_weight" in inspect.signature(scorer._score_func).parameters,
    )


def _score(name: str, y_true: Any, output: Any, **options: Any) -> float:
    scorer = _get_scorer(name)
    value = scorer._score_func(y_true, output, **scorer._kwargs, **options)
    return float(scorer._sign * value)


def _get_scorer(name: str) -> Any:
    try:
        from sklearn.metrics import get_scorer
    except ModuleNotFoundError as error:
        raise MissingPartError(
            f"{name} needs scikit-learn, which is not installed: pip install scikit-learn"
        ) from error
    try:
        return get_scorer(name)
    except ValueError as error:
        rule = "a scorer of the scikit-learn that is installed"
        raise InputError("metric", rule, name, "Newer versions have more.") from error
