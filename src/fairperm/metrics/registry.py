"""The registry of metrics: one short definition each.

Names and aliases are those of Fairlearn and scikit-learn. The command line, the documentation
and the property tests all read this list, so a metric defined here is everywhere.
"""

from __future__ import annotations

import re
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from fairperm.errors import InputError, InputTypeError, argument, did_you_mean
from fairperm.metrics.callables import CallableMetric
from fairperm.metrics.classes import ClassMetric, MacroMetric, PerClass
from fairperm.metrics.confusion import _RATES, _TABLE_METRICS
from fairperm.metrics.definition import AnyMetric, JointMetric, Kind, Metric, is_of_totals
from fairperm.metrics.distances import get_distance
from fairperm.metrics.inequality import INEQUALITY_METRICS
from fairperm.metrics.numbers import REGRESSION_METRICS, SCORE_METRICS, pinball_loss
from fairperm.metrics.one_versus_rest import ONE_VERSUS_REST, ClassCurve
from fairperm.metrics.rankings import find_ranking
from fairperm.metrics.ranks import AreaUnderCurve
from fairperm.metrics.scorers import find_scorer, negate

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

_BINARY = {metric.name: metric for metric in (*_RATES, *_TABLE_METRICS)}
_MACRO_METRICS = tuple(
    MacroMetric.of(_BINARY[name], word, f"mean over the classes of the {meaning}")
    for name, word, meaning in (
        ("true_positive_rate", "recall", "share of their rows predicted as such"),
        ("positive_predictive_value", "precision", "share of rows predicted as such that are"),
        ("f1_score", "f1", "harmonic mean of precision and recall"),
    )
)
_BY_NAME: dict[str, AnyMetric] = {
    metric.name: metric
    for metric in (
        *(*_RATES, *_TABLE_METRICS, *_MACRO_METRICS),
        *(*SCORE_METRICS, *ONE_VERSUS_REST, *REGRESSION_METRICS, *INEQUALITY_METRICS),
    )
}
_BY_NAME["equalized_odds"] = JointMetric(
    name="equalized_odds",
    meaning="larger absolute gap of the true positive rate and the false positive rate",
    parts=tuple(
        rate for rate in _RATES if rate.name in {"true_positive_rate", "false_positive_rate"}
    ),
    aliases=("equalised_odds", "equalized_odds_difference"),
    given="label",
)
_NEGATED = {  # as scikit-learn calls its scorers of errors
    f"neg_{name}": negate(metric)
    for name in (
        *("brier_score", "log_loss", "mean_absolute_error", "mean_absolute_percentage_error"),
        *("mean_gamma_deviance", "mean_poisson_deviance", "mean_squared_error"),
        "root_mean_squared_error",
    )
    if isinstance(metric := _BY_NAME[name], Metric)
}
_LOWER_IS_BETTER = {
    *("false_positive_rate", "false_negative_rate", "false_discovery_rate"),
    *("false_omission_rate", "error_rate", "brier_score", "log_loss", "mean_score_negatives"),
    *("mean_absolute_error", "mean_squared_error", "root_mean_squared_error"),
    *("mean_absolute_percentage_error", "pinball_loss"),
    *("mean_poisson_deviance", "mean_gamma_deviance"),
}
_HIGHER_IS_BETTER = {
    *("true_positive_rate", "true_negative_rate", "positive_predictive_value"),
    *("negative_predictive_value", "accuracy", "jaccard_score", "f1_score", "balanced_accuracy"),
    *("matthews_corrcoef", "recall", "precision", "f1", "recall_macro", "precision_macro"),
    *("f1_macro", "roc_auc", "gini", "roc_auc_ovr", "roc_auc_ovr_weighted", "average_precision"),
    *("r2_score", "mean_score_positives", *_NEGATED),
}
_INDICES = ("atkinson_index", "generalized_entropy_index")
_BY_ALIAS = {alias: metric for metric in _BY_NAME.values() for alias in metric.aliases}
_CALIBRATION_ERROR = {"expected_calibration_error", "ece"}
_QUANTILE = re.compile(r"pinball_loss\((0?\.\d+)\)")
_OF_CLASS = re.compile(r"([^\[]+)\[(.*)\]", re.DOTALL)
_PER_CLASS = "_per_class"


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
    >>> get_metric("recall[cat]").meaning
    "share of positives predicted positive, where only class 'cat' is positive"
    >>> get_metric("pinball_loss(0.9)").meaning
    'mean loss of predictions of the quantile 0.9'
    >>> get_metric("neg_mean_squared_error").meaning  # names of scikit-learn's scorers
    'mean squared difference of prediction and outcome, with a minus sign'
    >>> get_metric(lambda y_true, y_pred: (y_true == y_pred).mean()).name
    '<lambda>'
    """
    if isinstance(metric, AnyMetric):
        return metric
    if callable(metric) and not isinstance(metric, type):
        return CallableMetric.of(metric)
    if not isinstance(metric, str):
        hint = "Pass an object of it." if isinstance(metric, type) and callable(metric) else ""
        raise InputTypeError("metric", "the name of a metric or a function", metric, hint)
    word = _word(metric)
    found = find_named(metric.strip()) or find_named(word) or _BY_ALIAS.get(word)
    found = found or find_scorer(word)
    if found is None:
        raise InputError("metric", "one that metric_names() lists", metric, _hint_at(metric))
    return found


def find_named(name: str) -> AnyMetric | None:
    """Return the metric of this very name: of the list, of a class, or of a quantile."""
    if quantile := _QUANTILE.fullmatch(name):
        return pinball_loss(float(quantile[1]))
    if of_class := _OF_CLASS.fullmatch(name):
        make = _find_maker(_word(of_class[1]))
        return make and make(of_class[2])
    if name.endswith(_PER_CLASS):
        make = _find_maker(name.removesuffix(_PER_CLASS))
        return make and PerClass(name=name, kind=make("").kind, make=make)
    return _BY_NAME.get(name) or _NEGATED.get(name)


def _find_maker(word: str) -> Callable[[Hashable], AnyMetric] | None:
    """Return what makes the metric of a class of a binary metric; None if it is another."""
    single = _BY_NAME.get(word) or _BY_ALIAS.get(word)
    if isinstance(single, AreaUnderCurve):
        return partial(ClassCurve.of, single, word)
    if single and is_of_totals(single) and single.kind in {Kind.BINARY, Kind.LABELS}:
        return partial(ClassMetric.of, single, word)
    return None


def _hint_at(name: str) -> str:
    """Return what an unknown name may mean: a distance, a metric of rankings, or another name."""
    for find, kind, others in (
        (get_distance, "a distance", "distances"),
        (find_ranking, "a metric of rankings", "rankings"),
    ):
        with suppress(InputError):
            find(name)
            return f"It is {kind}: pass {argument(others, name)} to {argument('audit()')}."
    if _word(name) in _CALIBRATION_ERROR:
        return (
            "Its bias depends on a group's size and base rate: calibrated groups may differ in it. "
            "Test 'calibration_in_the_large' or 'brier_score' instead."
        )
    if "[" in name or name.endswith(_PER_CLASS):
        return "One class is compared with the rest by a metric of binary labels: 'recall[cat]'."
    base, bracket, _ = _word(name).replace("@", "(").partition("(")
    if bracket and base == "pinball_loss":
        return "A quantile between 0 and 1 is written as in 'pinball_loss(0.9)'."
    if bracket and base in _INDICES:
        made = f"fairperm.metrics.{base}(…)"
        return f"Names of indices have no parameters: in Python, pass {made} as the metric."
    return did_you_mean(_word(name), [*_BY_NAME, *_BY_ALIAS])


def hypothesis_of(metric: AnyMetric, *, directed: bool) -> frozenset[object]:
    """Return a key that is equal for equal null hypotheses."""
    # without a direction, metrics of this list that are declared complements share one
    opposite = metric.complement or f"neg_{metric.name}"
    complement, known = find_named(opposite), find_named(metric.name)
    if directed or complement is None or known is None or known.identity != metric.identity:
        return frozenset({metric.identity})
    return frozenset({metric.identity, complement.identity})


def is_lower_better(metric: AnyMetric) -> bool | None:
    """Return whether a lower value is better for a group; None if neither is.

    Examples
    --------
    >>> [is_lower_better(get_metric(name)) for name in ("fpr", "recall", "selection_rate")]
    [True, False, None]
    """
    known = find_named(metric.name)
    if known is None or known.identity != metric.identity:
        return None  # a metric of the user's own, perhaps of such a name
    name = re.split(r"[\[(]", metric.name)[0]
    return name in _LOWER_IS_BETTER if name in _LOWER_IS_BETTER | _HIGHER_IS_BETTER else None


def _word(name: str) -> str:
    return name.strip().lower().replace("-", "_").replace(" ", "_")
