"""Types of the arguments that the public functions share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence

    import numpy as np
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
