"""The registry of metrics: one short definition each.

Names and aliases are those of Fairlearn and scikit-learn. The command line, the documentation
and the property tests all read this list, so a metric defined here is everywhere.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fairperm._callable import CallableMetric
from fairperm._class_metrics import MacroF1, label_rate, labels_of, precision_of, recall_of
from fairperm._inequality import INEQUALITY_METRICS, atkinson_index, generalized_entropy_index
from fairperm._metric import JointMetric, Metric, function_of, mean_function, rate, table_metric
from fairperm._number_metrics import REGRESSION_METRICS, SCORE_METRICS
from fairperm._options import choice
from fairperm._rank import RankMetric
from fairperm.errors import InputError, InputTypeError, did_you_mean, listed, problem

if TYPE_CHECKING:
    from fairperm._sample import Table

__all__ = [
    "atkinson_index",
    "generalized_entropy_index",
    "get_metric",
    "metric_names",
    "precision_of",
    "recall_of",
    "register_metric",
]

_COLUMNS_OF_KIND = {
    "regression": ("y_true", "y_pred"),
    "score": ("y_true", "y_score"),
    "probability": ("y_true", "y_score"),
    "binary": ("y_true", "y_pred"),
}

AnyMetric = Metric | JointMetric | RankMetric | CallableMetric | MacroF1


def f1_of_jaccard(jaccard: Any) -> Any:
    """Return the F1 score with which hits are such a share of hits and misses."""
    return 2 * jaccard / (1 + jaccard)


def jaccard_of_f1(f1: Any) -> Any:
    """Return which share of hits and misses are hits, with such an F1 score."""
    return f1 / (2 - f1)


F1_TOTALS = ("hits", "hits and misses")
_JACCARD = rate(
    "jaccard_score",
    "share of hits among all rows that are positive or predicted so",
    count="tp",
    among="fp fn tp",
    aliases=("threat_score", "critical_success_index", "jaccard"),
)
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
    label_rate(
        "accuracy",
        "share of rows predicted right",
        lambda y_true, y_pred: y_true == y_pred,
        aliases=("accuracy_score",),
        complement="error_rate",
    ),
    label_rate(
        "error_rate",
        "share of rows predicted wrong",
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

_BY_NAME: dict[str, AnyMetric] = {
    metric.name: metric
    for metric in (
        *(*_RATES, *_TABLE_METRICS, MacroF1()),
        *(*SCORE_METRICS, *REGRESSION_METRICS, *INEQUALITY_METRICS),
    )
}
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
    """Return the metric that a user means by this name or alias, or by a function.

    Examples
    --------
    >>> from fairperm.metrics import get_metric
    >>> get_metric("recall").name
    'true_positive_rate'
    >>> get_metric(lambda y_true, y_pred: (y_true == y_pred).mean()).name
    '<lambda>'
    """
    if isinstance(metric, (Metric, JointMetric, RankMetric, CallableMetric, MacroF1)):
        return metric
    if callable(metric) and not isinstance(metric, type):
        return CallableMetric.of(metric)
    if not isinstance(metric, str):
        hint = "Pass an object of it." if isinstance(metric, type) and callable(metric) else ""
        raise InputTypeError(problem("metric", "the name of a metric or a function", metric, hint))
    word = _word(metric)
    found = _BY_NAME.get(word) or _BY_ALIAS.get(word)
    if found is None:
        rule = f"one of {listed(_BY_NAME, most=len(_BY_NAME))}"
        hint = did_you_mean(word, [*_BY_NAME, *_BY_ALIAS])
        raise InputError(problem("metric", rule, metric, hint))
    return found


def settled(metric: AnyMetric, table: Table, groups: Sequence[Hashable]) -> AnyMetric:
    """Return the metric as the groups' data make it: some need to know which labels there are."""
    if not isinstance(metric, MacroF1):
        return metric
    rows = np.isin(table.group, [table.groups.index(group) for group in groups])
    return metric.for_labels(
        labels_of({name: column[rows] for name, column in table.columns.items()})
    )


def register_metric(
    name: str,
    *,
    contributions: Mapping[str, Callable[..., Any]],
    value: Callable[..., Any] = lambda mean: mean,
    kind: str = "regression",
    meaning: str = "",
    aliases: tuple[str, ...] = (),
) -> Metric:
    """Make a metric of your own known by its name, with all that the built-in ones have.

    Parameters
    ----------
    name : str
        What to call it.
    contributions : mapping of str to function
        A few numbers for each row: functions of whole columns, whose parameters name the columns
        they need: ``y_true`` and ``y_pred``, or ``y_true`` and ``y_score`` for kinds of scores.
    value : function
        The metric from the means of the contributions, in their order. It must be smooth and
        work for complex numbers (no ``abs``, no comparisons): the delta method finds its
        variance by a complex step.
    kind : {"regression", "score", "probability", "binary"}
        How columns are read: as numbers; as 0/1 labels with scores, or with scores from 0 to 1;
        as 0/1 labels and predictions.
    meaning : str
        What it measures, in plain words.
    aliases : tuple of str
        Other names.

    Examples
    --------
    >>> import fairperm
    >>> metric = fairperm.register_metric(
    ...     "quartic_error",
    ...     contributions={"e4": lambda y_true, y_pred: (y_pred - y_true) ** 4},
    ...     value=lambda e4: e4**0.25,
    ... )
    >>> result = fairperm.permutation_test(
    ...     [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [1.5, 2.5, 2.0, 4.5, 5.5, 7.0],
    ...     sensitive_features=list("aababb"), metric="quartic_error",
    ... )
    >>> round(result.difference, 3), round(result.pvalue, 3)
    (-0.411, 0.4)
    """
    choice("kind", kind, tuple(_COLUMNS_OF_KIND))
    names = [_word(one) for one in _checked_names(name, aliases)]
    for word in names:
        if word in _BY_NAME or word in _BY_ALIAS:
            raise InputError(problem("name", "a name that no metric has yet", word))
    _check_contributions(contributions, kind)
    _check_value(value, len(contributions))
    metric = mean_function(
        names[0], contributions, value, kind=kind, meaning=meaning or name, aliases=tuple(names[1:])
    )
    _BY_NAME[metric.name] = metric
    _BY_ALIAS.update(dict.fromkeys(metric.aliases, metric))
    return metric


def _word(name: str) -> str:
    return name.strip().lower().replace("-", "_").replace(" ", "_")


def _checked_names(name: object, aliases: object) -> list[str]:
    if not isinstance(name, str) or not name.strip():
        raise InputTypeError(problem("name", "a word", name))
    if isinstance(aliases, (list, tuple)) and all(isinstance(one, str) for one in aliases):
        return [name, *aliases]
    raise InputTypeError(problem("aliases", "a tuple of words", aliases))


def _check_contributions(contributions: object, kind: str) -> None:
    rule = "a mapping of names to functions of columns"
    if not isinstance(contributions, Mapping) or not contributions:
        raise InputTypeError(problem("contributions", rule, contributions))
    known = _COLUMNS_OF_KIND[kind]
    used: set[str] = set()
    for name, function in contributions.items():
        if not isinstance(name, str) or name == "rows":
            hint = "'rows' is the number of rows." if name == "rows" else ""
            raise InputError(problem("contributions", f"{rule}, named by other words", name, hint))
        if not callable(function):
            raise InputTypeError(problem("contributions", rule, function))
        used |= _columns_of(function, known)
    if not used:
        raise InputError(problem("contributions", f"functions of {listed(known)}", "no columns"))
    if kind == "probability" and "y_score" not in used:
        raise InputError(
            problem("contributions", "functions of y_score for this kind", sorted(used))
        )


def _columns_of(contribution: Callable[..., Any], known: Sequence[str]) -> set[str]:
    """Return the columns that a user's function wants; say so if there are none such."""
    rule = f"functions of {listed(known)}"
    try:
        parameters = inspect.signature(contribution).parameters
    except (TypeError, ValueError) as error:
        raise InputTypeError(problem("contributions", rule, contribution)) from error
    for name, one in parameters.items():
        if name not in known or one.kind is one.KEYWORD_ONLY:
            raise InputError(problem("contributions", rule, name, did_you_mean(name, known)))
    return set(parameters)


def _check_value(value: object, n_contributions: int) -> None:
    rule = f"a function of {n_contributions} means, one for each contribution"
    if not callable(value):
        raise InputTypeError(problem("value", rule, value))
    try:
        inspect.signature(value).bind(*range(n_contributions))
    except TypeError as error:
        raise InputTypeError(problem("value", rule, value)) from error
    except ValueError:
        return  # written in C: its parameters are not to be seen
