"""Metrics that are made of ranks of scores: the area under the ROC curve, and average precision."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np

from fairperm._utils.sorting import ranks, run_numbers, run_starts
from fairperm.metrics.definition import (
    AnyMetric,
    Kind,
    SingleMetric,
    Variance,
    WalkKind,
    name_change,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from fairperm._utils.arrays import Array, Places

    Number = TypeVar("Number", float, Array)

_ROUNDING = 1e-12  # smaller differences between components and the AUC are rounding errors


@dataclass(frozen=True, slots=True, kw_only=True)
class RankMetric(SingleMetric):
    """A metric of binary labels and the ranks of their scores."""

    name: str
    meaning: str
    aliases: tuple[str, ...] = ()

    is_rank: ClassVar[bool] = True
    allows_for_one_row: ClassVar[bool] = True
    kind: ClassVar[Kind] = Kind.SCORE
    columns: ClassVar[tuple[str, ...]] = ("y_true", "y_score")
    contributions: ClassVar[tuple[str, ...]] = ("positives", "_score")
    complement: ClassVar[None] = None
    span: ClassVar[float] = 1.0
    among: ClassVar[str] = "rows"

    def matrix(self, columns: Mapping[str, NDArray[Any]]) -> Array:
        return np.column_stack([columns["y_true"], columns["y_score"]]).astype(np.float64)

    def label_rows(self, contributions: Array) -> dict[str, Array]:
        """Return what each row adds to the numbers of rows of each label."""
        return {"negatives": 1 - contributions[:, 0], "positives": contributions[:, 0]}

    def base_rows(self, contributions: Array) -> dict[str, Array]:
        return self.label_rows(contributions)

    def find_lacking(self, contributions: Array) -> str:
        """Return the label that has no rows among these; "" if all have."""
        every = self.label_rows(contributions).items()
        return next((f"no {name}" for name, one in every if not one.any()), "")

    def value_of(self, counts: Array, contributions: Array) -> Array:
        """Return the value of so many rows of each kind; NaN where it is undefined."""
        return self.value_of_counts(contributions)(counts)

    def influences(self, counts: Array, contributions: Array) -> Array:
        """Return the influence of one row of each kind, given their counts."""
        return self.analyze(counts, contributions).influence

    @abstractmethod
    def analyze(self, counts: Array, cells: Array) -> RankInfluences:
        """Return what the value of counts of cells (label, score) rests on."""

    @abstractmethod
    def estimate(self, counts: Array, cells: Array) -> tuple[Array, Array]:
        """Return value and variance of counts (last axis) of cells (label, score)."""

    def value_of_counts(self, cells: Array) -> Callable[[Array], Array]:
        """Return the function from counts of these cells to the value."""
        return lambda counts: self.estimate(counts, cells)[0]

    def of_walk(self, value: Array, variance: Array) -> tuple[Array, Array]:
        """Return value and variance from those that the walk through sorted rows finds."""
        return value, variance


@dataclass(frozen=True, slots=True, kw_only=True)
class AreaUnderCurve(RankMetric):
    """P(score of a positive > score of a negative) + ½ P(tie), with DeLong's variance.

    Or ``slope`` times that, plus ``offset``.
    """

    slope: float = 1.0
    offset: float = 0.0

    given: ClassVar[str] = "label"
    walk: ClassVar[WalkKind] = WalkKind.AUC

    @property
    def span(self) -> float:  # type: ignore[override]
        """The largest value minus the smallest."""
        return self.slope

    @property
    def is_auc(self) -> bool:
        return (self.slope, self.offset) == (1.0, 0.0)

    @property
    def value_of_chance(self) -> float:
        return self.slope / 2 + self.offset

    @property
    def bins_bound_errors(self) -> bool:
        return True

    def of_auc(self, auc: Number) -> Number:
        """Return the value of an AUC."""
        return self.slope * auc + self.offset

    @property
    def closed_variance(self) -> Variance:
        return Variance.DELONG

    def estimate(self, counts: Array, cells: Array) -> tuple[Array, Array]:
        found = by_score(counts, cells)
        return self.of_walk(found.value(), found.variance())

    def value_of_counts(self, cells: Array) -> Callable[[Array], Array]:
        ordered = SortedCells.of(cells)
        return lambda counts: self.of_auc(ordered.components(counts).value())

    def analyze(self, counts: Array, cells: Array) -> RankInfluences:
        """Return what the value rests on: one more row has a component of 0 or 1 at worst."""
        auc, difference, n = placements(counts, cells)
        misses = np.full(2, self.slope * max(auc, 1 - auc))
        return RankInfluences(self.of_auc(auc), self.slope * difference / n, 1 / n, misses)

    def change(self, *, old: int = -1) -> AnyMetric:
        from fairperm.metrics.changes import RankChange  # which compares two AUCs

        if not self.is_auc:
            return RankMetric.change(self, old=old)
        return RankChange(single=self, old=old, **name_change(self))

    def of_walk(self, value: Array, variance: Array) -> tuple[Array, Array]:
        return self.of_auc(value), self.slope**2 * variance


@dataclass(frozen=True, slots=True, kw_only=True)
class AveragePrecision(RankMetric):
    """The mean over the positives of the precision among the rows that score as high or higher.

    That is scikit-learn's. With t positives and f negatives from a score on, of which p positives
    have this score, one more positive adds p·f/(t + f)² to the sum of precisions, and one more
    negative takes p·t/(t + f)² away.
    """

    given: ClassVar[None] = None  # it depends on the base rate: all rows are exchanged
    walk: ClassVar[WalkKind] = WalkKind.AVERAGE_PRECISION
    allows_for_one_row: ClassVar[bool] = False

    def estimate(self, counts: Array, cells: Array) -> tuple[Array, Array]:
        found = Precisions.by_score(counts, cells)
        return found.value(), found.variance()

    def analyze(self, counts: Array, cells: Array) -> RankInfluences:
        """Return what the value rests on: a mean over positives, whose precision varies."""
        # one more negative takes nothing away; the precision at the lowest score is the base rate
        found, n_positives = Precisions.by_score(counts, cells), counts @ cells[:, 0]
        value = found.value()
        misses = np.array([0.0, value - n_positives / counts.sum()])
        with np.errstate(invalid="ignore"):
            share = cells[:, 0] / n_positives
        return RankInfluences(value, found.influences(cells), share, misses)


@dataclass(frozen=True, slots=True)
class RankInfluences:
    """What a value of ranks rests on."""

    value: Any  # the metric
    influence: Array  # the influence of one row of each cell
    # The share of one row of each cell in the value. Few rows of a label may happen to be ranked
    # alike: they then have almost no influence, but the value rests on them nevertheless.
    share: Array
    # what one more row of each label takes away if it is ranked worst of all, times the number of
    # rows of the label, in the order of ``label_rows``
    misses: Array


@dataclass(frozen=True, slots=True)
class Components:
    """The structural components of DeLong, DeLong and Clarke-Pearson (1988).

    Counts of positives and negatives lie on the last axis, by ascending distinct score. A
    positive's component is the share of negatives below it, a negative's the share of positives
    above it, ties counted half.
    """

    positives: Array
    negatives: Array

    @property
    def of_positives(self) -> Array:
        """Return the component of a positive with each score."""
        return _share_before(self.negatives)

    @property
    def of_negatives(self) -> Array:
        """Return the component of a negative with each score."""
        return 1 - _share_before(self.positives)

    def value(self) -> Array:
        """Return the AUC; NaN without positives or without negatives."""
        with np.errstate(divide="ignore", invalid="ignore"):
            total = (self.positives * self.of_positives).sum(axis=-1)
            value: Array = total / self.positives.sum(axis=-1)
        return value

    def variance(self) -> Array:
        """Return DeLong's variance; NaN with fewer than two positives or negatives."""
        centre = self.value()[..., None]
        return _variance_of_mean(self.positives, self.of_positives - centre) + _variance_of_mean(
            self.negatives, self.of_negatives - centre
        )


@dataclass(frozen=True, slots=True)
class SortedCells:
    """Cells (label, score) by ascending score."""

    order: Places
    label: Array
    starts: Places

    @classmethod
    def of(cls, cells: Array) -> SortedCells:
        """Sort the cells."""
        order = np.argsort(cells[:, 1])
        label, score = cells[order].T
        return cls(order, label, run_starts(score))

    def components(self, counts: Array) -> Components:
        """Return the components of counts (last axis) of the cells."""
        counts = counts[..., self.order]
        return Components(
            np.add.reduceat(counts * self.label, self.starts, axis=-1),
            np.add.reduceat(counts * (1 - self.label), self.starts, axis=-1),
        )


def by_score(counts: Array, cells: Array) -> Components:
    """Return the components of counts (last axis) of cells (label, score)."""
    return SortedCells.of(cells).components(counts)


@dataclass(frozen=True, slots=True)
class Precisions:
    """Precisions among the rows that score as high or higher, by ascending distinct score.

    Counts of positives and negatives lie on the last axis. The influence of a row on the average
    precision has two parts: a positive has a precision of its own, and every row changes the
    precisions of the positives that score as high or lower. With t positives and f negatives from
    a score on, of which p positives have this score, one more positive adds p·f/(t + f)² to the
    sum of precisions, and one more negative takes p·t/(t + f)² away.
    """

    positives: Array
    negatives: Array

    @classmethod
    def by_score(cls, counts: Array, cells: Array) -> Precisions:
        """Return the precisions of counts (last axis) of cells (label, score)."""
        parts = by_score(counts, cells)
        return cls(parts.positives, parts.negatives)

    def value(self) -> Array:
        """Return the average precision; NaN without positives."""
        return 1 - self._mean_error()

    def variance(self) -> Array:
        """Return the sum of squared influences, times n/(n − 1)."""
        # NaN with fewer than two positives: nothing shows how their scores vary
        of_positives, of_negatives = self._influences()
        squares = (self.positives * of_positives**2).sum(axis=-1)
        squares += (self.negatives * of_negatives**2).sum(axis=-1)
        n = self.positives.sum(axis=-1) + self.negatives.sum(axis=-1)
        known = self.positives.sum(axis=-1) > 1
        return np.where(known, squares * n / np.maximum(n - 1, 1), np.nan)

    def influences(self, cells: Array) -> Array:
        """Return the influence of one row of each of the cells (label, score) it is made of."""
        of_positives, of_negatives = self._influences()
        place = ranks(cells[:, 1])
        influences: Array = np.where(cells[:, 0] > 0, of_positives[place], of_negatives[place])
        return influences

    def _influences(self) -> tuple[Array, Array]:
        """Return the influence of a positive and of a negative with each score."""
        true, false = _count_from(self.positives), _count_from(self.negatives)
        rows = np.maximum(true + false, self.positives)  # weights are rounded
        rows = np.where(rows > 0, rows, 1.0)
        gained = np.cumsum(self.positives * false / rows**2, axis=-1)
        lost = np.cumsum(self.positives * true / rows**2, axis=-1)
        total = self.positives.sum(axis=-1, keepdims=True)
        with np.errstate(divide="ignore", invalid="ignore"):
            of_positives = (gained - false / rows + self._mean_error()[..., None]) / total
            return of_positives, -lost / total

    def _mean_error(self) -> Array:
        """Return one minus the value: exactly 0 if every positive is above every negative."""
        true, false = _count_from(self.positives), _count_from(self.negatives)
        rows = np.maximum(true + false, self.positives)
        errors = self.positives * false / np.where(rows > 0, rows, 1.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            mean: Array = errors.sum(axis=-1) / self.positives.sum(axis=-1)
        return mean


def placements(counts: Array, cells: Array) -> tuple[float, Array, Array]:
    """Return the AUC, the component of each cell (label, score) minus it, and its label's count."""
    # The last two make the influence of one row: their ratio. A difference that is a rounding error
    # is 0.
    cell, positive = SortedCells.of(cells), cells[:, 0] > 0
    parts, tie = cell.components(counts), np.empty(len(cells), np.intp)
    tie[cell.order] = run_numbers(cell.starts, len(cells))
    auc, n = parts.value(), np.where(positive, parts.positives.sum(), parts.negatives.sum())
    component = np.where(positive, parts.of_positives[tie], parts.of_negatives[tie])
    return float(auc), drop_rounding(component - auc), n


def drop_rounding(difference: Array) -> Array:
    """Return differences of components, without those that are rounding errors."""
    return np.where(np.abs(difference) <= _ROUNDING, 0.0, difference)


def _count_from(counts: Array) -> Array:
    """Return for each score the counts at it and above."""
    total: Array = np.cumsum(counts[..., ::-1], axis=-1)[..., ::-1]
    return total


def _share_before(counts: Array) -> Array:
    """Return for each score the share of counts at lower scores, and half of those at it."""
    with np.errstate(divide="ignore", invalid="ignore"):
        before = np.cumsum(counts, axis=-1) - counts / 2
        share: Array = before / counts.sum(axis=-1, keepdims=True)
        return share


def _variance_of_mean(counts: Array, deviations: Array) -> Array:
    n = counts.sum(axis=-1)
    squares = (counts * deviations**2).sum(axis=-1)
    return np.where(n > 1, squares / np.maximum(n - 1, 1) / np.maximum(n, 1), np.nan)
