"""Whether a metric has been given what it is made from: asked before anything is read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairperm._inputs import threshold_of
from fairperm.errors import InputError, InputTypeError, problem

if TYPE_CHECKING:
    from fairperm._inputs import Inputs
    from fairperm.metrics import AnyMetric

OF_LABELS = frozenset({"binary", "labels", "several"})


def check_given(inputs: Inputs, metric: AnyMetric) -> None:
    """Refuse a metric whose columns are not there, or there in two ways."""
    if metric.kind not in OF_LABELS:
        _check_columns(inputs, metric)
    else:
        if inputs.y_true is None:
            raise InputTypeError(problem("y_true", "given", None))
        _check_prediction(inputs, metric)
        if metric.kind == "several" and "y_score" in metric.columns and inputs.y_score is None:
            (needing, *_) = [one.name for one in metric.parts if "y_score" in one.columns]
            hint = "Pass it as y_score." if inputs.y_pred is not None else ""
            raise InputTypeError(problem("y_score", f"given for {needing}", None, hint))
    if inputs.sensitive_features is None:
        raise InputTypeError(problem("sensitive_features", "given", None))


def _check_columns(inputs: Inputs, metric: AnyMetric) -> None:
    given = {"y_true": inputs.y_true, "y_pred": inputs.y_pred, "y_score": inputs.y_score}
    for name in metric.columns:
        if given[name] is None:
            other = {"y_score": "y_pred", "y_pred": "y_score"}.get(name, name)
            hint = f"Pass it as {name}, not as {other}." if given[other] is not None else ""
            if name == "y_true" and metric.name == "selection_rate":
                hint = "Of predictions alone: pass them as y_true, and take base_rate."
            raise InputTypeError(problem(name, f"given for {metric.name}", None, hint))


def _check_prediction(inputs: Inputs, metric: AnyMetric) -> None:
    threshold_of(inputs.threshold)
    if inputs.y_pred is not None and inputs.threshold is not None:
        rule = "left out when y_pred is given"
        hint = "It makes predictions from y_score; those given are as they are."
        raise InputError(problem("threshold", rule, inputs.threshold, hint))
    if inputs.y_pred is not None and inputs.y_score is not None and metric.kind != "several":
        hint = "Predictions are made from y_score with threshold; drop one of the two."
        raise InputError(problem("y_pred", "left out when y_score is given", "both", hint))
    if inputs.y_pred is None and inputs.y_score is None and "y_pred" in metric.columns:
        hint = "Or pass y_score with threshold."
        raise InputTypeError(problem("y_pred", "given for this metric", None, hint))
