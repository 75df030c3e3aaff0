"""What bins of scores hide: bounds on the errors that they make in the values of groups."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairperm._utils.arrays import Array, Booleans, Places
from fairperm.errors import Note
from fairperm.metrics.definition import AnyMetric, Metric, is_of_totals
from fairperm.metrics.ranks import RankMetric

BINNED = Note(
    "So many scores are distinct that they were put into bins. Intervals and p-values allow for "
    "what bins may hide."
)


@dataclass(frozen=True, slots=True)
class ScoreRanges:
    """The lowest and the highest score of each bin, by ascending score.

    A row of a bin has one score for all: ``middle``. The lowest and the highest of all scores
    remain, so that scores outside their limits are still found.
    """

    low: Array
    high: Array

    @property
    def middle(self) -> Array:
        """The score that stands for a bin."""
        middle: Array = np.clip(self.low / 2 + self.high / 2, self.low, self.high)
        middle[:1], middle[-1:] = self.low[:1], self.high[-1:]
        return middle

    @property
    def are_mixed(self) -> Booleans:
        """Whether a bin holds different scores."""
        return np.asarray(self.low < self.high)

    def find(self, score: Array) -> Places:
        """Return the number of the bin that each of these scores stands for."""
        return np.searchsorted(self.middle, score)

    def bound_errors(
        self,
        part: Metric | RankMetric,
        columns: Mapping[str, NDArray[Any]],
        count: Array,
        group: Places,
        n_groups: int,
    ) -> Array:
        """Return how far bins may have moved each group's value, at most; NaN without a value.

        For the AUC, a positive and a negative in one bin count one half, where different scores
        would have counted 0 or 1. The contributions to other metrics lie between those of the
        bin's lowest and highest score.
        """
        place = self.find(columns["y_score"])
        with np.errstate(divide="ignore", invalid="ignore"):
            if not is_of_totals(part):
                bound = self._bound_auc_errors(columns["y_true"], place, count, group, n_groups)
                return part.span * bound
            middle, low, high = (
                part.matrix({**columns, "y_score": score})
                for score in (columns["y_score"], self.low[place], self.high[place])
            )
            reach = np.maximum(np.abs(low - middle), np.abs(high - middle))
            # in the order of their values: that of the user's rows changes no digit
            order = np.lexsort([*middle.T, count, group, place])
            total, moved = (
                _sum(count[order], one[order], group[order], n_groups) for one in (middle, reach)
            )
            value = part.estimate(total)
            ends = [np.abs(part.estimate(total + sign * moved) - value) for sign in (1, -1)]
            return np.maximum(*ends)

    def find_shares(
        self,
        part: Metric | RankMetric,
        columns: Mapping[str, NDArray[Any]],
        count: Array,
        group: Places,
        n_groups: int,
    ) -> Array:
        """Return each group's bound as a share of the standard error of its value."""
        bound = self.bound_errors(part, columns, count, group, n_groups)
        matrix = part.matrix(columns)
        with np.errstate(divide="ignore", invalid="ignore"):
            if is_of_totals(part):
                n = np.bincount(group, count, n_groups).astype(np.float64)
                totals = _sum(count, matrix, group, n_groups)
                influence = part.influences_at(totals, n, matrix, group)
                variance = np.bincount(group, count * influence**2, n_groups)
            else:
                variance = np.array(
                    [part.estimate(count * (group == one), matrix)[1] for one in range(n_groups)]
                )
            share: Array = np.where(bound > 0, bound / np.sqrt(variance), 0.0)
        return share

    def _bound_auc_errors(
        self, label: NDArray[Any], place: Places, count: Array, group: Places, n_groups: int
    ) -> Array:
        shape = (n_groups, 2, len(self.low))
        key = np.ravel_multi_index((group, (label > 0).astype(np.intp), place), shape)
        counts = np.bincount(key, count, int(np.prod(shape))).reshape(shape)
        hidden = counts.prod(axis=1)[:, self.are_mixed].sum(axis=-1)
        error: Array = hidden / (2 * counts.sum(axis=-1).prod(axis=-1))
        return error


def takes_bins(metric: AnyMetric) -> bool:
    """Whether bins of scores serve: every part that uses scores is monotone in them, or an AUC."""
    scored = [part for part in metric.parts if "y_score" in part.columns]
    fit = all(part.bins_bound_errors for part in scored)
    return bool(scored) and not metric.compares_models and fit


def _sum(count: Array, contributions: Array, group: Places, n_groups: int) -> Array:
    columns = contributions.T
    return np.stack([np.bincount(group, count * one, n_groups) for one in columns], axis=-1)
