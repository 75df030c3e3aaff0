"""The engine of scores in very many bins: the sample from all of them, draws from fewer.

What a group's value is depends on every bin. What a permutation does to the studentized gap hardly
does: scores of a coarse bin differ so little that taking them for one another changes the gap by
random amounts, of which the standard deviation is known.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairperm._utils.arrays import Array, Places
from fairperm._utils.sorting import ranks
from fairperm.data.sample import Sample
from fairperm.engines.counts import CellsEngine
from fairperm.engines.estimates import Estimates
from fairperm.engines.sample import Cells
from fairperm.metrics.definition import Metric, Variance, by_part, is_of_totals
from fairperm.metrics.ranks import Components, RankMetric

Parts = tuple[Metric | RankMetric, ...]

COARSE_BINS = 1 << 10
_DEVIATIONS = 6.0  # no permutation in a billion is further off
# standard errors: if draws could be further off, they are made from all bins
_MAX_ERROR_IN_SE = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class BinnedEngine(CellsEngine):
    """Estimates of the sample from fine bins of its scores, and of permutations from coarse ones.

    ``draw_error`` bounds how far the studentized gap of a permutation is from that in fine bins: by
    six standard deviations of the difference.
    """

    fine: CellsEngine
    draw_error: float

    @classmethod
    def of(
        cls, parts: Parts, rows: Sample, variance: Variance | None, n_bootstrap: int, *, many: bool
    ) -> BinnedEngine | None:
        """Return the engine; None if there are few bins, or if coarse ones would hide too much."""
        if rows.weight is not None or rows.cluster is not None or "y_score" not in rows.columns:
            return None
        found = _coarsen(parts, rows)
        if found is None or not found[1] <= _MAX_ERROR_IN_SE:
            return None
        merged, error = found
        fine, coarse = (Cells.from_rows(one, None, many=many) for one in (rows, merged))
        engine = CellsEngine(parts, fine, variance, n_bootstrap)
        return cls(parts, coarse, variance, n_bootstrap, fine=engine, draw_error=error)

    def with_variance(self, variance: Variance | None) -> BinnedEngine:
        return replace(self, variance=variance, fine=self.fine.with_variance(variance))

    def observed(self, seed: int = 0) -> Estimates:
        return self.fine.observed(seed)

    def pooled(self) -> Estimates:
        return self.fine.pooled()

    def bootstrapped(self, n: int, rng: np.random.Generator) -> Estimates:
        return self.fine.bootstrapped(n, rng)

    def enumerated(self, n_resamples: int, *, by_sum: bool) -> None:
        """Return None: bins have too many permutations to enumerate."""
        del n_resamples, by_sum


def _coarsen(parts: Parts, rows: Sample) -> tuple[Sample, float] | None:
    """Return the rows with coarse bins, and the error of draws from them; None if bins are few."""
    scores, place = np.unique(rows.columns["y_score"], return_inverse=True)
    place = place.ravel()
    if len(scores) <= COARSE_BINS:
        return None
    count = rows.count.astype(np.float64)
    in_bin = np.bincount(place, count)
    middle = (np.cumsum(in_bin) - in_bin / 2) / in_bin.sum()
    coarse = np.floor(middle * COARSE_BINS).astype(np.intp)
    others = [ranks(one) for name, one in rows.columns.items() if name != "y_score"]
    # each fine kind is counted before anything is summed: the order of rows changes no digit
    fine, example = _number([place, rows.block.astype(np.intp), *others])
    size = np.bincount(fine, count).astype(np.float64)
    values, bin_ = rows.contributions[example], coarse[place[example]]
    for part, columns in by_part(parts):
        if part.is_rank:
            values[:, columns.stop - 1] = bin_
    merged, _ = _number([bin_, rows.block[example].astype(np.intp), *(o[example] for o in others)])
    sums = [np.bincount(merged, size * one) for one in values.T]
    mean = np.stack(sums, axis=-1) / np.bincount(merged, size)[:, None]
    errors = []
    for part, columns in by_part(parts):
        if is_of_totals(part):
            errors.append(_lost_influence(part, values[:, columns], mean[merged][:, columns], size))
        else:
            errors.append(_lost_order(values[:, columns], size))
    kind = merged[fine]
    row, first = _number([rows.stratum.astype(np.intp), rows.group.astype(np.intp), kind])
    coarse_rows = replace(
        rows.take(first),
        columns={f"contribution {j}": one for j, one in enumerate(mean[kind[first]].T)},
        contributions=mean[kind[first]],
        count=np.bincount(row, count).astype(np.int64),
    )
    return coarse_rows, _DEVIATIONS * max(errors)


def _number(columns: list[NDArray[Any]]) -> tuple[Places, Places]:
    """Return the number of each row's combination of codes, and the first row of each."""
    key = np.ravel_multi_index(tuple(columns), [int(one.max()) + 1 for one in columns])
    _, first, number = np.unique(key, return_index=True, return_inverse=True)
    return number.ravel(), first


def _lost_influence(part: Metric, fine: Array, coarse: Array, count: Array) -> float:
    """Return the standard deviation that coarse bins take from the rows' influences, as a share."""
    gradient = part.gradient(count @ fine)
    of_row, lost = fine @ gradient, (fine - coarse) @ gradient
    whole = float(count @ of_row**2)
    return float(np.sqrt(count @ lost**2 / whole)) if whole > 0 else 0.0


def _lost_order(cells: Array, count: Array) -> float:
    """Return the same for the AUC, at most."""
    # A positive's component changes by at most half the share of negatives in its coarse bin, and a
    # negative's by at most half the share of positives
    label, place = cells[:, 0], cells[:, 1].astype(np.intp)
    positives: Array = np.bincount(place, count * label).astype(np.float64)
    negatives: Array = np.bincount(place, count * (1 - label)).astype(np.float64)
    n_positives, n_negatives = positives.sum(), negatives.sum()
    if not n_positives or not n_negatives:
        return 0.0
    variance = Components(positives, negatives).variance()
    lost = positives @ (negatives / n_negatives / 2) ** 2 / n_positives**2
    lost += negatives @ (positives / n_positives / 2) ** 2 / n_negatives**2
    return float(np.sqrt(lost / variance)) if variance > 0 else np.inf
