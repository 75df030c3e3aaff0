"""The area under the ROC curve, the only metric that is made of ranks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from fairperm._utils.sorting import run_numbers, run_starts
from fairperm.metrics.definition import AnyMetric, Kind, Variance

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    Array = NDArray[np.float64]

_ROUNDING = 1e-12  # smaller differences between components and the AUC are rounding errors


@dataclass(frozen=True, slots=True, kw_only=True)
class RankMetric(AnyMetric):
    """P(score of a positive > score of a negative) + ½ P(tie), with DeLong's variance."""

    name: str
    meaning: str
    aliases: tuple[str, ...] = ()

    is_rank: ClassVar[bool] = True
    kind: ClassVar[Kind] = Kind.SCORE
    columns: ClassVar[tuple[str, ...]] = ("y_true", "y_score")
    contributions: ClassVar[tuple[str, ...]] = ("positives", "_score")
    given: ClassVar[str] = "label"
    complement: ClassVar[None] = None
    span: ClassVar[float] = 1.0
    among: ClassVar[str] = "rows"
    smooth: ClassVar[bool] = True

    @property
    def parts(self) -> tuple[RankMetric, ...]:
        """The metrics whose gaps are tested: this one."""
        return (self,)

    @property
    def closed_variance(self) -> Variance:
        """DeLong's variance."""
        return Variance.DELONG

    def checked_matrix(self, columns: Mapping[str, NDArray[Any]]) -> Array:
        """Return the matrix of what each row contributes."""
        return self.matrix(columns)

    def matrix(self, columns: Mapping[str, NDArray[Any]]) -> Array:
        """Return the label and the score of each row."""
        return np.column_stack([columns["y_true"], columns["y_score"]]).astype(np.float64)


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

    order: NDArray[np.intp]
    label: Array
    starts: NDArray[np.intp]

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


def without_one(counts: Array, cells: Array) -> Array:
    """Return the AUC of these counts without one row of each cell (label, score).

    The components of rows of one label do not depend on that label's other rows: their mean loses
    one term, and nothing else changes.
    """
    auc, component, n = _component_of_cells(counts, cells)
    with np.errstate(divide="ignore", invalid="ignore"):
        value: Array = (n * auc - component) / (n - 1)
    return value


def placements(counts: Array, cells: Array) -> tuple[float, Array, Array]:
    """Return the AUC, the component of each cell (label, score) minus it, and its label's count.

    The last two make the influence of one row: their ratio. A difference that is a rounding error
    is 0.
    """
    auc, component, n = _component_of_cells(counts, cells)
    difference = component - auc
    difference[np.abs(difference) <= _ROUNDING] = 0.0
    return float(auc), difference, n


def _component_of_cells(counts: Array, cells: Array) -> tuple[Array, Array, Array]:
    """Return the AUC of these counts, and the component and the label's count of each cell."""
    cell = SortedCells.of(cells)
    parts, positive = cell.components(counts), cells[:, 0] > 0
    tie = np.empty(len(cells), np.intp)
    tie[cell.order] = run_numbers(cell.starts, len(cells))
    component = np.where(positive, parts.of_positives[tie], parts.of_negatives[tie])
    return (
        parts.value(),
        component,
        np.where(positive, parts.positives.sum(), parts.negatives.sum()),
    )


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
