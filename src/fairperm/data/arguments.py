"""The data arguments of the public functions, and their types.

Labels come as ``y_true``. Predictions come as ``y_pred``, or are made from ``y_score`` by a
``threshold``; which of the three are needed depends on the metric.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Literal, Required, TypeAlias, TypedDict

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence
    from typing import Self

    import numpy as np
    from narwhals.typing import IntoFrame, IntoSeries
    from numpy.typing import ArrayLike

    from fairperm.metrics.definition import AnyMetric

DEFAULT_METRICS = ("selection_rate", "false_positive_rate", "false_negative_rate")
"""Metrics of an audit that names none; the first needs no labels."""

CLASS_METRICS = ("accuracy", "recall_macro", "precision_macro", "recall_per_class")
"""The same if there are more than two classes."""

NUMBER_METRICS = ("mean_error", "mean_absolute_error", "root_mean_squared_error")
"""The same if labels are numbers, such as amounts, and not classes."""

DECISION_METRICS = ("mean_prediction",)
"""The same if there are no labels, and predictions are numbers, such as ratings."""

CLASS_SCORE_METRICS = ("roc_auc_ovr", "roc_auc_per_class")
"""The same if there are scores of each class, but no predictions."""

Column: TypeAlias = "ArrayLike | IntoSeries | Sequence[Any] | str"
"""Values of a column, or its name in ``data``."""

Columns: TypeAlias = "Column | IntoFrame | Mapping[Any, Any] | Sequence[str | tuple[str, ...]]"
"""One column or several: a frame, a mapping of names to values, or names in ``data``."""

Frame: TypeAlias = "IntoFrame | Mapping[Any, Any]"
"""A data frame, eager or lazy, or a mapping of names to columns."""

MetricLike: TypeAlias = "str | Callable[..., Any] | AnyMetric"
"""A metric's name or alias, or a function ``metric(y_true, y_pred)``."""

Label: TypeAlias = "Hashable"  # A value of a column of labels

ProxyAssumption: TypeAlias = Literal["outcome_given_group", "group_given_proxy"]
Groups: TypeAlias = "Sequence[Hashable]"  # values of ``sensitive_features``

StratumWeights: TypeAlias = "Mapping[Any, float]"  # A weight for every stratum

Missing: TypeAlias = Literal["error", "drop", "group"]
SchemeName: TypeAlias = Literal["auto", "pooled", "within_label", "denominator", "unconditional"]
VarianceName: TypeAlias = (
    Literal["auto", "score", "wald", "hall", "delta", "delong", "bootstrap", "fast_bootstrap"]
    | None
)
Alternative: TypeAlias = Literal["two-sided", "symmetric", "greater", "less"]
Adjustment: TypeAlias = Literal["holm", "bh", "by"] | None
Family: TypeAlias = Literal["audit", "attribute"]
Pairing: TypeAlias = Literal["pairs", "reference", "rest"]
GroupSize: TypeAlias = Literal["metric", "rows"]
CorrelationMethod: TypeAlias = Literal["pearson", "spearman"]
CorrelationVariance: TypeAlias = Literal["auto", "hall", "delta"] | None
Resamples: TypeAlias = int | Literal["auto"]
Seed: TypeAlias = "int | np.random.Generator | None"


class DrawArguments(TypedDict, total=False):
    """How permutations are drawn."""

    rng: Seed
    n_jobs: int | None
    progress: bool | None


class FrameArguments(DrawArguments, total=False):
    """Rows in strata, with missing values."""

    data: Frame | None
    control_features: Columns | None
    missing: Missing
    ignore_index: bool


class GroupArguments(FrameArguments, total=False):
    """Groups to compare."""

    sensitive_features: Columns | None
    groups: Groups | None


class TestArguments(GroupArguments, total=False):
    """A test with an interval."""

    n_resamples: Resamples
    confidence_level: float


class ModelArguments(TestArguments, total=False):
    """A metric of a model."""

    y_score: Columns | None
    metric: Required[MetricLike]
    threshold: float | None
    pos_label: Label
    stratum_weights: StratumWeights | None
    cluster: Columns | None
    split_clusters: bool
    sample_weight: Column | None
    count: Column | None
    scheme: SchemeName


class ChangeArguments(ModelArguments, total=False):
    """A change of a gap."""

    variance: VarianceName
    alternative: Alternative
    n_bootstrap: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """The data arguments of a public test function, unchecked.

    ``values`` is the column of a test of distributions. ``sums_suffice`` is True if nothing is
    permuted: then the means and variances of the rows' contributions are enough. ``must_keep`` says
    why no row may be dropped, if so.
    """

    y_true: object = None
    y_pred: object = None
    y_score: object = None
    sensitive_features: object = None
    control_features: object = None
    cluster: object = None
    split_clusters: object = False
    sample_weight: object = None
    data: object = None
    threshold: object = None
    pos_label: object = None
    missing: object = "error"
    ignore_index: object = False
    matched: object = None
    names: object = None
    group_probabilities: object = None
    proxy_assumption: object = "outcome_given_group"
    proxy: object = None
    score_bins: object = None
    values: object = None
    sums_suffice: bool = False
    must_keep: str = ""

    @classmethod
    def of(cls, given: Mapping[str, Any], **others: Any) -> Self:
        """Choose the data arguments out of all that a function was given."""
        names = {one.name for one in fields(cls)}
        found = cls(**{name: given[name] for name in given.keys() & names}, **others)
        if given.get("count") is None:
            return found
        # the help of commands needs this module, and should not wait for NumPy
        from fairperm.data.copies import count_copies

        return count_copies(found, given["count"])

    @property
    def names_columns(self) -> bool:
        """Whether texts name columns of ``data``, which may also be counts alone."""
        from fairperm.data.columns import Source

        rows = self.data
        return (rows.columns if isinstance(rows, Source) else rows) is not None

    @property
    def new_model(self) -> Inputs | None:
        """The data arguments of a second model, if there is one."""
        return None

    def find(self, column: str) -> object:
        """Return what was given for a column of a metric, which may be one of several scores."""
        if "[" in column:
            return self.split_scores("")[0][column]
        return getattr(self, column)

    def split_scores(self, metric: str) -> tuple[dict[str, object], tuple[Hashable, ...] | None]:
        """Return several columns of scores by their names, and the classes they are named by."""
        # Without names they are in the order of the labels. Raises InputTypeError for one column.
        # the help of commands needs this module, and should not wait for NumPy
        from fairperm.data.columns import split_scores

        return split_scores(self.y_score, metric, in_data=self.names_columns)


@dataclass(frozen=True, slots=True, kw_only=True)
class PeriodInputs(Inputs):
    """The same with the period of each row."""

    period: object


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelPair(Inputs):
    """The same with the predictions or scores of a second model for the same rows."""

    y_pred_new: object = None
    y_score_new: object = None
    threshold_new: object = None

    @property
    def new_model(self) -> Inputs:
        """The data arguments of the second model, whose scores share the threshold."""
        threshold = self.threshold_new
        if threshold is None and self.y_pred_new is None:
            threshold = self.threshold
        return replace(self, y_pred=self.y_pred_new, y_score=self.y_score_new, threshold=threshold)
