"""The data arguments of the public functions: their types, and the checks of a threshold.

Labels come as ``y_true``. Predictions come as ``y_pred``, or are made from ``y_score`` by a
``threshold``; which of the three are needed depends on the metric.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from fairperm._utils.checks import number
from fairperm.errors import InputError, argument

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence

    from narwhals.typing import IntoFrame, IntoSeries
    from numpy.typing import ArrayLike

    from fairperm.metrics.definition import AnyMetric

Column: TypeAlias = "ArrayLike | IntoSeries | Sequence[Any] | str"
"""Values of a column, or its name in ``data``."""

Columns: TypeAlias = "Column | IntoFrame | Mapping[Any, Any] | Sequence[str]"
"""One column or several: a frame, a mapping of names to values, or names in ``data``."""

Frame: TypeAlias = "IntoFrame | Mapping[Any, Any]"
"""A data frame, eager or lazy, or a mapping of names to columns."""

MetricLike: TypeAlias = "str | Callable[..., Any] | AnyMetric"
"""A metric's name or alias, or a function ``metric(y_true, y_pred)``."""

Label: TypeAlias = "Hashable"
"""A value of a column of labels."""

Groups: TypeAlias = "Sequence[Hashable]"
"""Values of ``sensitive_features``."""

StratumWeights: TypeAlias = "Mapping[Any, float]"
"""A weight for every stratum."""

Missing: TypeAlias = Literal["error", "drop"]
SchemeName: TypeAlias = Literal["auto", "pooled", "within_label", "denominator"]
VarianceName: TypeAlias = (
    Literal["auto", "score", "wald", "delta", "delong", "bootstrap", "fast_bootstrap"] | None
)
Alternative: TypeAlias = Literal["two-sided", "greater", "less"]
Adjustment: TypeAlias = Literal["holm", "bh", "by", "maxt"] | None
Pairing: TypeAlias = Literal["pairs", "reference", "rest"]
BootstrapMethod: TypeAlias = Literal["BCa", "percentile", "basic"]
CorrelationMethod: TypeAlias = Literal["pearson", "spearman"]
Seed: TypeAlias = "int | np.random.Generator | None"

_ROUNDING = 1e-6  # probabilities in 32 bits may be this much above 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """The data arguments of a public test function, unchecked.

    ``seed`` chooses the rows of a sample. ``sums_suffice`` is True if nothing is permuted: then
    the means and variances of the rows' contributions are enough.
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


def parse_threshold(given: object) -> float:
    """Return the threshold, by default 0.5."""
    return 0.5 if given is None else number("threshold", given)


def round_threshold(given: object, precision: type[np.floating[Any]]) -> float:
    """Return the threshold in the precision of the scores: 0.7 in 32 bits is at least 0.7."""
    with np.errstate(over="ignore"):
        return float(precision(parse_threshold(given)))


def check_threshold(name: str, low: float, high: float, cut: float, given: object) -> None:
    """Raise InputError if scores are infinite, or if all of them are on one side of the threshold.

    The default of 0.5 is the middle of probabilities; percentages or log-odds need a choice.
    """
    if not np.isfinite([low, high]).all():
        hint = "Replace infinite scores by the largest finite score you mean."
        raise InputError(name, "finite", high if np.isinf(high) else low, hint)
    if given is None and not -_ROUNDING <= low <= high <= 1 + _ROUNDING:
        raise InputError(
            f"{argument('threshold')} must be given if {name} is not between 0 and 1; got scores "
            f"from {low:g} to {high:g}. The default of 0.5 is for probabilities."
        )
    if not low < cut <= high:
        outcome = "positive" if cut <= low else "negative"
        rule = f"above the lowest score ({low:g}) and not above the highest ({high:g})"
        raise InputError("threshold", rule, given, f"It would predict every row as {outcome}.")
