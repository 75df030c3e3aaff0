"""The registry of metrics: one short definition each.

Names and aliases are those of Fairlearn and scikit-learn. The command line, the documentation
and the property tests all read this list, so a metric defined here is everywhere.
"""

from __future__ import annotations

import re
from contextlib import suppress

from fairperm.errors import InputError, InputTypeError, argument, did_you_mean
from fairperm.metrics.callables import CallableMetric
from fairperm.metrics.classes import MacroF1
from fairperm.metrics.confusion import _RATES, _TABLE_METRICS
from fairperm.metrics.definition import AnyMetric, JointMetric
from fairperm.metrics.distances import get_distance
from fairperm.metrics.inequality import INEQUALITY_METRICS
from fairperm.metrics.numbers import REGRESSION_METRICS, SCORE_METRICS, pinball_loss
from fairperm.metrics.one_versus_rest import ONE_VERSUS_REST
from fairperm.metrics.rankings import find_ranking

_BY_NAME: dict[str, AnyMetric] = {
    metric.name: metric
    for metric in (
        *(*_RATES, *_TABLE_METRICS, MacroF1()),
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
_INDICES = ("atkinson_index", "generalized_entropy_index")
_BY_ALIAS = {alias: metric for metric in _BY_NAME.values() for alias in metric.aliases}
_REFUSED = {"expected_calibration_error"}  # known, to say what to test instead
_QUANTILE = re.compile(r"pinball_loss\((0?\.\d+)\)")


def metric_names() -> tuple[str, ...]:
    """Return the name of every metric whose gaps are tested.

    Examples
    --------
    >>> import fairperm
    >>> fairperm.metric_names()[:3]
    ('selection_rate', 'base_rate', 'true_positive_rate')
    """
    return tuple(name for name in _BY_NAME if name not in _REFUSED)


def get_metric(metric: object) -> AnyMetric:
    """Return the metric that a user means by this name or alias, or by a function.

    Examples
    --------
    >>> from fairperm.metrics import get_metric
    >>> get_metric("recall").name
    'true_positive_rate'
    >>> get_metric("pinball_loss(0.9)").meaning
    'mean loss of predictions of the quantile 0.9'
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
    found = find_named(word) or _BY_ALIAS.get(word)
    if found is None:
        raise InputError("metric", "one that metric_names() lists", metric, _hint_at(metric))
    return found


def find_named(name: str) -> AnyMetric | None:
    """Return the metric of this very name: one of the list, or the pinball loss of a quantile."""
    quantile = _QUANTILE.fullmatch(name)
    return pinball_loss(float(quantile[1])) if quantile else _BY_NAME.get(name)


def _hint_at(name: str) -> str:
    """Return what an unknown name may mean: a distance, a metric of rankings, or another name."""
    for find, kind, others in (
        (get_distance, "a distance", "distances"),
        (find_ranking, "a metric of rankings", "rankings"),
    ):
        with suppress(InputError):
            find(name)
            return f"It is {kind}: pass {argument(others, name)} to {argument('audit()')}."
    base, bracket, _ = _word(name).replace("@", "(").partition("(")
    if bracket and base == "pinball_loss":
        return "A quantile between 0 and 1 is written as in 'pinball_loss(0.9)'."
    if bracket and base in _INDICES:
        made = f"fairperm.metrics.{base}(…)"
        return f"Names of indices have no parameters: in Python, pass {made} as the metric."
    return did_you_mean(_word(name), [*_BY_NAME, *_BY_ALIAS])


def hypothesis_of(metric: AnyMetric, *, directed: bool) -> frozenset[object]:
    """Return a key that is equal for equal null hypotheses.

    Without a direction, metrics of this list that are declared complements share one.
    """
    complement = _BY_NAME.get(metric.complement or "")
    if directed or complement is None or _BY_NAME.get(metric.name) is not metric:
        return frozenset({metric.identity})
    return frozenset({metric.identity, complement.identity})


def _word(name: str) -> str:
    return name.strip().lower().replace("-", "_").replace(" ", "_")
