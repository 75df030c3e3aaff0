"""The data arguments of the public functions, and what a threshold makes of scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fairperm._utils.checks import number
from fairperm.errors import InputError, InputTypeError
from fairperm.metrics.kinds import Kind

if TYPE_CHECKING:
    from fairperm.metrics.definition import AnyMetric


_ROUNDING = 1e-6  # of probabilities in 32 bits: they may be a little above 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """The data arguments of a public test function, as they came.

    ``seed`` chooses the rows of a sample. ``sums_suffice`` tells that nothing is permuted: the
    means and variances of what rows contribute are all that is needed of them.
    """

    y_true: object
    y_pred: object = None
    y_score: object = None
    sensitive_features: object
    control_features: object = None
    cluster: object = None
    sample_weight: object = None
    data: object = None
    threshold: object = None
    pos_label: object = None
    missing: object = "error"
    score_bins: object = None
    sample_rows: object = None
    seed: int = 0
    sums_suffice: bool = False


def threshold_of(given: object) -> float:
    """Return the threshold: one half, unless another is given."""
    return 0.5 if given is None else number("threshold", given)


def cut_of(given: object, kind: type[np.floating[Any]]) -> float:
    """Return the threshold in the scores' own precision: 0.7 in 32 bits is at least 0.7."""
    with np.errstate(over="ignore"):
        return float(kind(threshold_of(given)))


def check_cut(name: str, low: float, high: float, cut: float, threshold: object) -> None:
    """Refuse scores that are not finite, and a threshold that parts none of them.

    One half is the middle of probabilities. Of percentages or log-odds it is nobody's choice.
    """
    if not np.isfinite([low, high]).all():
        hint = "Replace them by the largest finite score you mean."
        raise InputError(name, "finite", high if np.isinf(high) else low, hint)
    if threshold is None and not -_ROUNDING <= low <= high <= 1 + _ROUNDING:
        raise InputError(
            f"threshold must be given where {name} is not from 0 to 1; got scores from {low:g} to "
            f"{high:g}. The default of 0.5 is for probabilities."
        )
    if not low < cut <= high:
        side = "positive" if cut <= low else "negative"
        rule = f"above the lowest score ({low:g}) and not above the highest ({high:g})"
        hint = f"As it stands, every row is predicted {side}."
        raise InputError("threshold", rule, threshold, hint)


def check_given(inputs: Inputs, metric: AnyMetric) -> None:
    """Refuse a metric whose columns are not there, or there in two ways."""
    if not metric.kind.needs_labels:
        _check_columns(inputs, metric)
    else:
        if inputs.y_true is None:
            raise InputTypeError("y_true", "given", None)
        _check_prediction(inputs, metric)
        if metric.kind == Kind.SEVERAL and "y_score" in metric.columns and inputs.y_score is None:
            (needing, *_) = [one.name for one in metric.parts if "y_score" in one.columns]
            hint = "Pass it as y_score." if inputs.y_pred is not None else ""
            raise InputTypeError("y_score", f"given for {needing}", None, hint)
    if inputs.sensitive_features is None:
        raise InputTypeError("sensitive_features", "given", None)


def _check_columns(inputs: Inputs, metric: AnyMetric) -> None:
    given = {"y_true": inputs.y_true, "y_pred": inputs.y_pred, "y_score": inputs.y_score}
    for name in metric.columns:
        if given[name] is None:
            other = {"y_score": "y_pred", "y_pred": "y_score"}.get(name, name)
            hint = f"Pass it as {name}, not as {other}." if given[other] is not None else ""
            if name == "y_true" and metric.name == "selection_rate":
                hint = "Of predictions alone: pass them as y_true, and take base_rate."
            raise InputTypeError(name, f"given for {metric.name}", None, hint)


def _check_prediction(inputs: Inputs, metric: AnyMetric) -> None:
    threshold_of(inputs.threshold)
    if inputs.y_pred is not None and inputs.threshold is not None:
        rule = "left out when y_pred is given"
        hint = "It makes predictions from y_score; those given are as they are."
        raise InputError("threshold", rule, inputs.threshold, hint)
    if inputs.y_pred is not None and inputs.y_score is not None and metric.kind != Kind.SEVERAL:
        hint = "Predictions are made from y_score with threshold; drop one of the two."
        raise InputError("y_pred", "left out when y_score is given", "both", hint)
    if inputs.y_pred is None and inputs.y_score is None and "y_pred" in metric.columns:
        hint = "Or pass y_score with threshold."
        raise InputTypeError("y_pred", "given for this metric", None, hint)
