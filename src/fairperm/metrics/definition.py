"""Metrics: a few contributions of each row, and a function of their totals.

A metric knows its value, its derivative and which variances fit it. It knows nothing of
permutations, or of where the totals came from. Totals have the contributions on their last axis,
and axes of the caller, such as draws and groups, before it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum, StrEnum, auto
from functools import lru_cache
from types import FunctionType
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar

import numpy as np

from fairperm._utils.sorting import ranks
from fairperm.errors import InputError, Shown, argument, shown

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from typing_extensions import TypeIs

    from fairperm._utils.arrays import Array, Codes, Places
    from fairperm.metrics.ranks import RankMetric

    Columns = Mapping[str, NDArray[Any]]

Function = Callable[..., Any]
Part = TypeVar("Part", bound="Metric | RankMetric")

CELLS = ("tn", "fp", "fn", "tp")  # of a confusion table: a row's cell is 2·y_true + y_pred
ONE_ROW_OF_EACH = {  # of the cells, in their order
    "y_true": np.array([False, False, True, True]),
    "y_pred": np.array([False, True, False, True]),
}

NEW = "_new"  # ends the names of the columns of a second model

_DENOMINATORS: dict[str, tuple[str | None, str]] = {
    "tn fp fn tp": (None, "rows"),
    "fn tp": ("label", "positives"),
    "tn fp": ("label", "negatives"),
    "fp tp": ("prediction", "predicted positives"),
    "tn fn": ("prediction", "predicted negatives"),
    "fp fn tp": ("either", "rows that are positive or predicted positive"),
}
_MAX_CONTRIBUTIONS_TO_CUBES = 8  # 120 products of three
_NO_DERIVATIVE = 1e40
_STEP = 1e-100  # of the complex-step derivative: nothing is subtracted, so it can be tiny
_ROUNDING = 1e-12  # relative to the value's size: smaller influences are rounding errors


class Kind(StrEnum):
    """How the columns of a metric are read."""

    BINARY = "binary"
    """Labels and predictions, both 0 or 1; a threshold makes predictions of scores."""
    LABELS = "labels"
    """The same if there are two labels; otherwise labels and predictions are kept unchanged."""
    CLASSES = "classes"  # labels and predictions of any number of classes, kept unchanged
    SCORE = "score"  # binary labels and scores
    PROBABILITY = "probability"  # binary labels and scores from 0 to 1
    REGRESSION = "regression"  # numbers
    ANY = "any"  # values of any type, kept unchanged
    NUMBERS = "numbers"  # A column of numbers, and labels of any type
    CLASS_SCORES = "class_scores"
    """Labels of any number of classes, kept unchanged, and a column of scores for each."""
    SEVERAL = "several"  # several metrics at once: binary labels, with predictions, scores or both

    def __init__(self, value: str) -> None:
        # a threshold makes predictions of the scores, and nothing else uses these
        self.makes_predictions = value in {"binary", "labels"}
        # labels are read even by a metric of predictions or scores alone
        self.needs_labels = value in {"binary", "labels", "several"}
        # columns are read unchanged, not as numbers or truth values
        self.keeps_values = value in {"any", "classes", "numbers", "class_scores"}
        # rows have few distinct values: labels and predictions, but no numbers
        self.is_categorical = value in {"binary", "labels", "classes"}
        # columns that are read as numbers; all others are labels
        self.number_columns: tuple[str, ...] = ()
        if value == "regression":
            self.number_columns = ("y_true", "y_pred", "y_score", "y_pred_new", "y_score_new")
        elif value in {"score", "probability", "several", "class_scores"}:
            self.number_columns = ("y_score", "y_score_new")
        elif value == "numbers":
            self.number_columns = ("values",)

    def reads_numbers(self, column: str) -> bool:
        """Whether a column is read as numbers; ``y_score['cat']`` is one of several."""
        return column.partition("[")[0] in self.number_columns

    def __repr__(self) -> str:
        return repr(self.value)  # as users pass it, and as messages show it


class Variance(StrEnum):
    """How the variance of a value is estimated, in the sample and in every draw."""

    SCORE = "score"  # p(1 − p)/m with the rate p of all groups, which is one rate under the null
    WALD = "wald"  # p(1 − p)/m with each group's own rate p
    DELTA = "delta"  # sum of the rows' squared influences
    HALL = "hall"  # the same, and the statistic is without the skewness that the influences show
    DELONG = "delong"  # DeLong's variance of an AUC
    BOOTSTRAP = "bootstrap"
    """Variance of the values in bootstrap samples of each group, in every draw."""
    FAST_BOOTSTRAP = "fast_bootstrap"
    """The same in the observed sample only; permuted gaps are divided by their own deviation."""

    def __init__(self, value: str) -> None:
        self.is_closed_form = "bootstrap" not in value  # a formula, without bootstrap samples
        self.is_binomial = value in {"score", "wald"}  # of a rate, which needs counts only

    def __repr__(self) -> str:
        return repr(self.value)  # as users pass it, and as messages show it


class Scheme(StrEnum):
    """Among which rows group labels are exchanged, if they are."""

    POOLED = "pooled"  # all rows
    WITHIN_LABEL = "within_label"  # rows of equal label
    DENOMINATOR = "denominator"  # rows in the denominator of a rate
    UNCONDITIONAL = "unconditional"
    """None: given their denominators, two rates are two binomial samples."""

    @classmethod
    def best_for(cls, metric: AnyMetric) -> Scheme:
        """Return the scheme whose permutations hold the level of the metric's test best.

        Given the label, the rates of a joint metric are Bernoulli trials as a single rate is. And
        groups that keep their few positives hold the level of an AUC, of balanced accuracy and of
        mean scores of a class where pooled ones do not.
        """
        if metric.has_denominator:
            return cls.DENOMINATOR
        if metric.is_joint or metric.given == "label":
            return cls.WITHIN_LABEL
        return cls.POOLED

    @property
    def fixes_denominator(self) -> bool:
        """Whether a rate's denominator is given, as a number of Bernoulli trials."""
        return self in {Scheme.DENOMINATOR, Scheme.UNCONDITIONAL}

    def check(self, metric: AnyMetric, *, clustered: bool) -> None:
        """Raise InputError if the scheme does not test the metric."""
        has_rates = all(part.has_denominator for part in metric.parts)
        if clustered and self != Scheme.POOLED:
            hint = "Whole clusters are exchanged, whatever the labels of their rows."
            raise InputError("scheme", f"'pooled' with {argument('cluster')}", self, hint)
        if self.fixes_denominator and not metric.has_denominator:
            better = Scheme.WITHIN_LABEL if has_rates else Scheme.POOLED
            hint = f"Use {argument('scheme', better)}."
            rule = f"'pooled' or 'within_label' for {metric.name}, which has no single denominator"
            raise InputError("scheme", rule, self, hint)
        if self == Scheme.WITHIN_LABEL and metric.given != "label":
            others = "'denominator' or 'pooled'" if has_rates else "'pooled'"
            hint = "Different base rates alone would make the groups differ in it."
            raise InputError("scheme", f"{others} for {metric.name}", self, hint)

    def block(self, metric: AnyMetric, columns: Mapping[str, NDArray[Any]]) -> Codes:
        """Return the block of each row, within which its label may be exchanged."""
        if self == Scheme.WITHIN_LABEL:
            label = metric.exchanged_label(columns)
            is_binary = label.dtype == np.bool_
            return label.view(np.uint8) if is_binary else ranks(label)
        if self.fixes_denominator:
            return metric.parts[0].matrix(columns)[:, 1].astype(np.uint8)
        return np.zeros(len(next(iter(columns.values()))), np.uint8)

    def __repr__(self) -> str:
        return repr(self.value)  # as users pass it, and as messages show it


class WalkKind(Enum):
    """What walking through rows in the order of their scores finds."""

    AUC = auto()
    AUC_CHANGE = auto()
    AVERAGE_PRECISION = auto()
    ONE_VERSUS_REST = auto()


class GroupedColumns(Protocol):
    """Columns whose rows belong to groups."""

    @property
    def columns(self) -> Mapping[str, NDArray[Any]]:
        """The columns, with all rows."""

    def columns_of(self, groups: Sequence[Hashable]) -> Mapping[str, NDArray[Any]]:
        """Return the columns, with the rows of these groups only."""


class AnyMetric:
    """What every metric knows: how its columns are read, and how its gap can be studentized.

    Its parts are itself (of a function, too), or the metrics of a joint one.
    """

    __slots__ = ()

    if TYPE_CHECKING:  # fields or constants of each class

        @property
        def name(self) -> str:
            """Full name."""

        @property
        def meaning(self) -> str:
            """What it measures, as the end of "the …"."""

        @property
        def aliases(self) -> tuple[str, ...]:
            """Other names."""

        @property
        def kind(self) -> Kind:
            """How its columns are read."""

        @property
        def columns(self) -> tuple[str, ...]:
            """Names of the columns that it is made from."""

        @property
        def parts(self) -> tuple[Metric | RankMetric, ...]:
            """The metrics whose gaps are tested."""

        @property
        def given(self) -> str | None:
            """What its distribution is conditional on: "label", "prediction" or "either"."""

        @property
        def complement(self) -> str | None:
            """Name of the metric that is one minus this one."""

    is_function: ClassVar[bool] = False
    """Whether it is a user's function, which is called for every sample."""
    is_rank: ClassVar[bool] = False  # whether it is made of ranks of scores
    has_totals: ClassVar[bool] = False  # whether it is a function of totals of contributions
    walk: ClassVar[WalkKind | None] = None
    """What is found by walking through sorted rows; None for a metric of totals, or a function."""
    has_counts: ClassVar[bool] = True  # whether a sample may be given as counts of equal rows
    is_distance: ClassVar[bool] = False
    """Whether it compares the distributions of two groups, and has no value in either."""
    is_ranking: ClassVar[bool] = False  # whether it is made of ranked lists of items
    is_per_class: ClassVar[bool] = False
    """Whether it stands for one metric of each class of the data."""
    allows_for_one_row: ClassVar[bool] = False
    """Whether its standard errors allow for a group whose value one row makes."""

    @property
    def one_class_hint(self) -> str:
        """A hint at the AUC of one class, where a mean over all of them has no test."""
        return ""

    @property
    def listed_name(self) -> str:
        """Name in the list of metrics, without its parameter or class."""
        return self.name.partition("(")[0]

    @property
    def has_ratio(self) -> bool:
        """Whether values can be divided by each other: logarithms cannot."""
        return True

    @property
    def is_auc(self) -> bool:
        """Whether it is the AUC itself, not a function of it."""
        return False

    @property
    def value_of_chance(self) -> float | None:
        """The value of scores that say nothing about the labels, for a function of an AUC."""
        return None

    @property
    def bins_bound_errors(self) -> bool:
        """Whether bins of scores bound how far they move the value."""
        return False

    @property
    def has_two_denominators(self) -> bool:
        """Whether it is the change of a rate whose denominator depends on the model."""
        return False

    @property
    def classes(self) -> tuple[Hashable, ...]:
        """The classes whose rows it needs, if these are more than positives and negatives."""
        return ()

    @property
    def is_rate(self) -> bool:
        """Whether it is a simple rate: rows of one kind among rows of another."""
        return False

    @property
    def has_denominator(self) -> bool:
        """Whether equal values are equal rates of Bernoulli trials."""
        return False

    @property
    def sizes_groups(self) -> bool:
        """Whether the second total is the number of rows that the value is a share of."""
        return self.has_denominator

    @property
    def shows_skewness(self) -> bool:
        """Whether third moments of its contributions show the skewness of its gap."""
        return False

    @property
    def is_joint(self) -> bool:
        """Whether it consists of several metrics."""
        return len(self.parts) > 1

    @property
    def compares_models(self) -> bool:
        """Whether it is the change between two models, and reads the columns of both."""
        return any(name.endswith(NEW) for name in self.columns)

    @property
    def uses_threshold(self) -> bool:
        """Whether it is made of predictions, which a threshold can make of scores."""
        return self.kind.makes_predictions and "y_pred" in self.columns

    @property
    def closed_variance(self) -> Variance | None:
        """The closed form that assumes no null hypothesis and pools no groups, if there is one."""
        return Variance.DELTA if all(part.smooth for part in self.parts) else None

    def fitting_variances(self, *, plain_rows: bool) -> tuple[Variance | None, ...]:
        """Return the variances that fit, the best one first."""
        # binomial variances and skewness need ``plain_rows``, without weights and clusters
        closed = self.closed_variance
        if closed is None:
            return Variance.FAST_BOOTSTRAP, Variance.BOOTSTRAP, None
        best: tuple[Variance, ...] = ()
        if plain_rows and all(part.is_rate for part in self.parts):
            best = Variance.SCORE, Variance.WALD
        elif plain_rows and self.has_denominator:
            best = (Variance.SCORE,)
        elif plain_rows and self.shows_skewness:
            best = (Variance.HALL,)
        return *best, closed, Variance.BOOTSTRAP, Variance.FAST_BOOTSTRAP, None

    @property
    def identity(self) -> object:
        """A key that equal metrics share; names leave out functions and round parameters."""
        return id(self)

    def change(self, *, old: int = -1) -> AnyMetric:
        """Return the change from the old model to the new one; with ``old`` 1, their sum."""
        # the sum decides whether a gap fell or rose: for an old gap g and a new gap h, h² − g² is
        # the change h − g times the sum h + g
        del old
        auc = f"Use {argument('metric', 'roc_auc')}, or a function of labels and scores."
        rule = "one whose change has a standard error"
        raise InputError("metric", rule, self.name, self.one_class_hint or auc)

    def base_rows(self, contributions: Array) -> dict[str, Array]:
        """Return what each row adds to the numbers of rows that the value rests on, by name."""
        return {"rows": np.ones(len(contributions))}

    def exchanged_label(self, columns: Columns) -> NDArray[Any]:
        """Return the label of each row, within which groups are exchanged if they are so at all."""
        return columns["y_true"]

    def find_lacking(self, contributions: Array) -> str:
        """Return which rows that the metric needs are not among these; "" if that is not known."""
        del contributions
        return f"no {self.parts[0].among}" if self.sizes_groups else ""

    def of_class(self, label: Hashable) -> AnyMetric:
        """Return the metric of one class, of a metric that is per class."""
        raise NotImplementedError(label)

    def for_arguments(self, inputs: Any) -> AnyMetric:
        """Return the metric that reads the columns given among the arguments of a test."""
        del inputs
        return self

    def for_table(self, table: GroupedColumns, groups: Sequence[Hashable]) -> AnyMetric:
        """Return the metric for the labels that occur in these groups of a table."""
        del table, groups
        return self


class SingleMetric(AnyMetric):
    """A metric that is its only part."""

    __slots__ = ()

    smooth: ClassVar[bool] = True
    """Whether the value has a derivative; if not, its variance is found by the bootstrap."""

    @property
    def parts(self) -> tuple[Any, ...]:
        return (self,)

    def matrix(self, columns: Columns) -> Array:
        """Return what each row (axis 0) contributes (axis 1)."""
        raise NotImplementedError

    def checked_matrix(self, columns: Columns) -> Array:
        """Return what each row contributes. Raise InputError for mistakes of a user's metric."""
        return self.matrix(columns)


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric(SingleMetric):
    """A function ``value`` of the totals of a few contributions.

    ``name``, ``aliases``: What users may call it.
    """

    name: str
    meaning: str  # what it measures, in plain words, as the end of "the …"
    # name of each contribution, and what a row adds to its total, as a function of the columns that
    # its parameters name (``y_true``, ``y_pred``, ``y_score``)
    contributions: Mapping[str, Function]
    # The metric from the totals of the contributions, in their order. Doubling all totals must not
    # change it: it describes a distribution, not a sample's size. It must also work for complex
    # numbers, by which its derivative is taken: no ``abs`` and no comparisons.
    value: Function
    kind: Kind = Kind.BINARY  # how columns are read
    aliases: tuple[str, ...] = ()
    complement: str | None = None  # the metric that is one minus this one: the same hypothesis
    # "label" or "prediction" if the metric depends only on the distribution given that; "either" if
    # given that one of them is positive
    given: str | None = None
    span: float = 1.0  # the largest value minus the smallest; infinite without bounds
    among: str = "rows"  # what the denominator of a rate counts, in plain words
    # For a one-to-one function of a rate: the rate, from the value. The totals are then the rate's
    # numerator and denominator.
    rate: Function | None = None
    # whether, given the label, each contribution rises or falls with the score all the way: the
    # scores of a bin then have contributions between those of its ends
    is_monotone: bool = False
    # whether a user defined it: its contributions and derivative are then checked
    own: bool = False

    has_totals: ClassVar[bool] = True

    @property
    def is_rate(self) -> bool:
        return tuple(self.contributions) == ("numerator", "denominator")

    @property
    def has_denominator(self) -> bool:
        return self.is_rate or self.rate is not None

    @property
    def shows_skewness(self) -> bool:
        # Rates have exact tests. Of many contributions there are too many products of three.
        are_few = len(self.contributions) <= _MAX_CONTRIBUTIONS_TO_CUBES
        return not self.has_denominator and are_few

    @property
    def columns(self) -> tuple[str, ...]:
        named = (columns_of(one) for one in self.contributions.values())
        return tuple(dict.fromkeys(name for names in named for name in names))

    def matrix(self, columns: Columns) -> Array:
        rows = []
        for one in self.contributions.values():
            wanted = {name: columns[name] for name in columns_of(one)}
            if self.own:
                wanted = {name: column.astype(np.float64) for name, column in wanted.items()}
            rows.append(np.asarray(one(**wanted), np.float64))
        return np.stack(np.broadcast_arrays(*rows), axis=-1)

    def checked_matrix(self, columns: Columns) -> Array:
        """Return what each row contributes. Raise InputError for mistakes of a user's metric."""
        if not self.own:
            return self.matrix(columns)
        n_rows = len(next(iter(columns.values())))
        try:
            matrix = self.matrix(columns)
            is_whole = matrix.shape == (n_rows, len(self.contributions))
            totals = np.tile(matrix.sum(axis=0), (2, 1))  # as draws come: several at once
            is_smooth = is_whole and self.has_derivative(totals)
        except Exception as error:
            got = Shown(f"{shown(error)} from {self.name}")
            raise InputError("metric", "one that can be computed", got) from error
        if not is_whole:
            raise InputError(
                f"contributions must be one number for each of {n_rows:,} rows; got an array of "
                f"shape {matrix.shape[:-1]} from {self.name}."
            )
        if not is_smooth:
            raise InputError(
                f"value must be smooth and work for complex numbers; got {self.name}, whose "
                "derivative the complex step does not find. Leave out abs(), comparisons, rounding."
            )
        return matrix

    def estimate(self, totals: Array) -> Array:
        """Return the metric's value; NaN where it is undefined."""
        return np.asarray(self._of(totals))

    def gradient(self, totals: Array) -> Array:
        """Return the derivative of the value by each total."""
        # Along a row's contributions it is the row's influence on the value. As the value does not
        # change with the sample's size, influences add up to zero.
        gradient = np.empty_like(totals)
        for j in range(totals.shape[-1]):
            shifted = totals.astype(complex)
            shifted[..., j] += 1j * _STEP
            gradient[..., j] = self._of(shifted).imag / _STEP
        # a step so small blows up where there is no derivative, as of a root at zero
        return np.where(np.abs(gradient) < _NO_DERIVATIVE, gradient, np.nan)

    def value_of(self, counts: Array, contributions: Array) -> Array:
        """Return the value of so many rows of each kind; NaN where it is undefined."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.estimate(counts @ contributions)

    def influences(self, counts: Array, contributions: Array) -> Array:
        """Return the influence of one row of each kind, given their counts (last axis)."""
        totals, n = counts @ contributions, counts.sum(axis=-1)
        return self.influences_at(totals, n, contributions)

    def influences_at(
        self, totals: Array, n: Array, contributions: Array, cell: Places | None = None
    ) -> Array:
        """Return the influence of rows on the value of the totals of ``n`` rows; see ``gradient``.

        Each row (last axis) has one on the value of all totals, or with ``cell`` on those of its
        cell alone. Rounding errors are 0.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            gradient = self.gradient(totals)
            size = self.span if np.isfinite(self.span) else np.abs(gradient * totals).sum(axis=-1)
            least = np.asarray(_ROUNDING * size / n)
            if cell is None:
                found, least = gradient @ contributions.T, least[..., None]
            else:  # column by column: there may be millions of rows
                found, least = np.zeros(len(cell)), least[cell]
                for column, slope in zip(contributions.T, gradient.T, strict=True):
                    found += column * slope[cell]
            found[np.abs(found) <= least] = 0.0
        return found

    @property
    def bins_bound_errors(self) -> bool:
        return self.is_monotone

    def base_rows(self, contributions: Array) -> dict[str, Array]:
        rows = np.ones(len(contributions))  # for all rows, if no contribution counts them
        found = self.bases().items()
        return {name: contributions @ one if one.any() else rows for name, one in found}

    def change(self, *, old: int = -1) -> Metric:
        from fairperm.metrics.changes import Change  # which is a metric of totals, too

        return Change.between_models(self, old)

    def bases(self) -> dict[str, Array]:
        """Return by which coefficients contributions add up to numbers of rows, by their names."""
        # the value rests on these rows: those of a rate's denominator, positives and negatives
        # apart for a metric given the label, and else all rows, as for a metric of the user
        names = tuple(self.contributions)
        if self.has_denominator:
            return {self.among: np.array([0.0, 1.0])}
        if names == CELLS and self.given == "label":
            return {"negatives": np.array([1.0, 1, 0, 0]), "positives": np.array([0.0, 0, 1, 1])}
        if names == CELLS:
            return {"rows": np.ones(4)}
        counted = [] if self.own else [one for one in names if one in {"positives", "negatives"}]
        return {
            one: np.array([float(name == one) for name in names]) for one in counted or ["rows"]
        }

    def base_of_contributions(self) -> Places:
        """Return the place of each contribution's base among the bases."""
        # the value is unchanged by a common factor of the contributions that belong to one base
        if tuple(self.contributions) == CELLS and self.given == "label":
            return np.array([0, 0, 1, 1])
        return np.zeros(len(self.contributions), np.intp)

    def rate_of(self, value: Array) -> Array:
        """Return the rate that has this value."""
        return value if self.rate is None else np.asarray(self.rate(value))

    def of_rate(self, rate: Array) -> Array:
        """Return the value that a rate has."""
        return rate if self.rate is None else self.estimate(_as_totals(rate))

    def slope(self, rate: Array) -> Array:
        """Return the derivative of the value by the rate."""
        return np.ones(()) if self.rate is None else self.gradient(_as_totals(rate))[..., 0]

    def has_derivative(self, totals: Array) -> bool:
        """Whether the complex step finds the derivative that small real steps find."""
        value, gradient = self.estimate(totals), self.gradient(totals)
        if value.shape != totals.shape[:-1]:
            return False
        for j in range(totals.shape[-1]):
            step = 1e-6 * (np.abs(totals[..., j]) + 1e-6 * np.abs(totals).max())
            up, down = totals.copy(), totals.copy()
            up[..., j] += step
            down[..., j] -= step
            change = (self.estimate(up) - self.estimate(down)) / 2
            error = np.abs(change - gradient[..., j] * step)
            if (error > 1e-2 * np.abs(change) + 1e-9 * np.abs(value)).any():
                return False
        return True

    def _of(self, totals: NDArray[Any]) -> Any:
        return self.value(*(totals[..., j] for j in range(totals.shape[-1])))


@dataclass(frozen=True, slots=True, kw_only=True)
class JointMetric(AnyMetric):
    """Several metrics: rates with one null hypothesis, or any that are read together."""

    name: str
    meaning: str
    parts: tuple[Metric | RankMetric, ...]
    aliases: tuple[str, ...] = ()
    given: str | None = None
    kind: Kind = Kind.BINARY

    complement: ClassVar[None] = None

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for part in self.parts for name in part.columns))

    def change(self, *, old: int = -1) -> JointMetric:
        parts: Any = tuple(part.change(old=old) for part in self.parts)
        return replace(self, parts=parts, **name_change(self))


def name_change(metric: AnyMetric) -> dict[str, Any]:
    """Return the name and the meaning of the change of a metric."""
    return {"name": f"change in {metric.name}", "meaning": f"change in the {metric.meaning}"}


def is_of_totals(metric: AnyMetric) -> TypeIs[Metric]:
    """Whether it is a function of totals, for readers of types: as ``has_totals`` says."""
    return metric.has_totals


def metrics_of_totals(parts: Iterable[AnyMetric]) -> tuple[Metric, ...]:
    """Return the parts that are functions of totals."""
    return tuple(part for part in parts if is_of_totals(part))


def by_part(parts: tuple[Part, ...]) -> Iterator[tuple[Part, slice]]:
    """Yield each part of a metric with the place of its contributions among those of all."""
    start = 0
    for part in parts:
        stop = start + len(part.contributions)
        yield part, slice(start, stop)
        start = stop


def rate(
    name: str,
    meaning: str,
    *,
    count: str,
    among: str = "tn fp fn tp",
    aliases: tuple[str, ...] = (),
    complement: str | None = None,
) -> Metric:
    """Define a simple rate: the rows of the cells ``count`` as a share of those ``among``."""
    given, denominator = _DENOMINATORS[among]
    return Metric(
        name=name,
        meaning=meaning,
        contributions={"numerator": _in_cells(count), "denominator": _in_cells(among)},
        value=lambda numerator, denominator: numerator / denominator,
        aliases=aliases,
        complement=complement,
        given=given,
        among=denominator,
    )


def function_of(
    one: Metric,
    name: str,
    meaning: str,
    value: Function,
    rate: Function,
    *,
    called: tuple[str, str],
    aliases: tuple[str, ...] = (),
) -> Metric:
    """Define a one-to-one function of a rate, its inverse, and what the rate's totals are."""
    return replace(
        one,
        name=name,
        meaning=meaning,
        contributions=dict(zip(called, one.contributions.values(), strict=True)),
        value=lambda numerator, denominator: value(numerator / denominator),
        aliases=aliases,
        rate=rate,
    )


def table_metric(
    name: str,
    meaning: str,
    value: Function,
    *,
    aliases: tuple[str, ...] = (),
    given: str | None = None,
    span: float = 1.0,
) -> Metric:
    """Define a metric as a function of a confusion table ``tn, fp, fn, tp``."""
    return Metric(
        name=name,
        meaning=meaning,
        contributions={cell: _in_cells(cell) for cell in CELLS},
        value=value,
        aliases=aliases,
        given=given,
        span=span,
    )


def mean_function(
    name: str,
    contributions: Mapping[str, Function],
    value: Function,
    *,
    kind: str = Kind.REGRESSION,
    **options: Any,
) -> Metric:
    """Define a metric as a function of the means of contributions."""
    return Metric(
        name=name,
        contributions={**contributions, "rows": lambda: 1.0},
        value=lambda *totals: value(*(total / totals[-1] for total in totals[:-1])),
        span=float("inf"),
        own=True,
        kind=Kind(kind),
        **options,
    )


def _in_cells(cells: str) -> Function:
    """Return a function that is 1 for rows in these cells, of only the columns that it needs."""
    tn, fp, fn, tp = (float(cell in cells.split()) for cell in CELLS)
    if tn == fp == fn == tp:
        return lambda: tn
    if (tn, fp) == (fn, tp):
        return lambda y_pred: np.where(y_pred, tp, tn)
    if (tn, fn) == (fp, tp):
        return lambda y_true: np.where(y_true, tp, tn)
    return lambda y_true, y_pred: np.where(
        y_true, np.where(y_pred, tp, fn), np.where(y_pred, fp, tn)
    )


def _as_totals(rate: Array) -> Array:
    return np.stack([rate, np.ones_like(rate)], axis=-1)


def columns_of(contribution: Function) -> tuple[str, ...]:
    """Return the names of the columns that a contribution reads."""
    if isinstance(contribution, FunctionType):
        return _remembered(contribution)
    return _parameters(contribution)  # of an object that can be called, but may have no hash


def _parameters(contribution: Function) -> tuple[str, ...]:
    parameters = inspect.signature(contribution).parameters.values()
    return tuple(one.name for one in parameters if one.kind is not one.KEYWORD_ONLY)


_remembered = lru_cache(1024)(_parameters)  # simulations ask for the same, thousands of times
