"""Bins of scores that hold about equally many rows, found by counting in the engine.

Bins of equal width would put most rows of skewed scores into a few bins. Rows are therefore counted
in bins of equal width on the scale of fourth roots, then again with narrower bins where most rows
were, until bins hide few pairs. Only counts, lowest and highest scores leave the engine. They are
exact, and roots are rounded alike everywhere: every engine finds the same bins.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from fairperm._utils.arrays import Array, Integers
from fairperm.data.lazy.backends import fetch, stage, to_floats
from fairperm.data.score_bins import ScoreRanges

_ROUNDS = 3  # of narrowing the bins, each of which reads all scores
_CUTS = 16  # shares of the rows; bins change their width between them
_ENOUGH = 2.5  # times the pairs that equally filled bins would hide
_ROOT, _PLACE, _COUNT, _LOWEST, _HIGHEST = "root", "place", "rows", "lowest", "highest"


@dataclass(frozen=True, slots=True)
class ScoreBins:
    """Bins of equal width, on the scale of fourth roots, between the ends of each piece."""

    low: Array
    high: Array
    number: Integers

    def add_places(self, rows: nw.LazyFrame[Any], name: str) -> nw.LazyFrame[Any]:
        """Return the rows with the number of each score's bin, in ascending order of the scores."""
        score = nw.col("y_score").cast(nw.Float64)
        root = score.abs().sqrt().sqrt()
        signed = nw.when(score < 0.0).then(0.0 - root).otherwise(root)
        place = self._place(score, 0, len(self.low) - 1)
        return rows.with_columns(signed.alias(_ROOT)).with_columns(place.alias(name))

    def _place(self, score: nw.Expr, first: int, last: int) -> nw.Expr:
        """Return the bins in the pieces ``first`` to ``last``, found by bisection."""
        if first < last:
            middle = (first + last + 1) // 2
            return (
                nw.when(score >= float(self.low[middle]))
                .then(self._place(score, middle, last))
                .otherwise(self._place(score, first, middle - 1))
            )
        low, high = _fourth_roots(self.low[first], self.high[first])
        number, before = int(self.number[first]), float(self.number[:first].sum())
        width = (high - low) / number
        if not width > 0:
            return nw.lit(0.0) * nw.col(_ROOT) + before
        return ((nw.col(_ROOT) - low) / width).floor().clip(0, number - 1) + before


def _fourth_roots(*scores: float) -> list[float]:
    """Return the roots of the scores' absolute values, with the signs of the scores."""
    roots: list[float] = np.copysign(np.sqrt(np.sqrt(np.abs(scores))), scores).tolist()
    return roots


@dataclass(frozen=True, slots=True)
class FilledBins(ScoreRanges):
    """The bins that hold rows, with their numbers and how many rows they hold."""

    place: Array
    count: Integers

    def score_of(self, place: Array) -> Array:
        """Return the score that stands for the bins of these numbers; NaN for none."""
        found = np.searchsorted(self.place, place).clip(max=len(self.place) - 1)
        return np.where(np.isnan(place), np.nan, self.middle[found])

    def hidden_share(self) -> float:
        """Return which share of all pairs of rows have different scores in one bin, at most."""
        return float(((self.count[self.are_mixed] / self.count.sum()) ** 2).sum())

    def narrow(self, n_bins: int) -> ScoreBins:
        """Return as many bins, of which pieces of the range get shares like those of the rows."""
        # A bin that holds much is a piece, and its lowest and highest score are pieces of their
        # own: often it is one score that many rows share
        n_cuts = max(1, min(_CUTS, n_bins // 8))
        total, last = self.count.sum(), len(self.count) - 1
        reached = np.searchsorted(np.cumsum(self.count) * n_cuts, total * np.arange(1, n_cuts))
        is_full = self.are_mixed & (self.count * n_cuts >= total)
        full = np.flatnonzero(is_full)
        starts = np.unique(np.concatenate([[0], reached, full, full + 1]))
        starts = starts[starts <= last]
        ends = np.append(starts[1:] - 1, last)
        mixed = np.add.reduceat(np.where(self.are_mixed, self.count, 0), starts)
        pieces = []
        for start, end, rows in zip(starts, ends, mixed, strict=True):
            low, high = self.low[start], self.high[end]
            if is_full[start]:
                inner = np.nextafter([low, high], [high, low])
                pieces += [(low, low, 0), (*inner, rows), (high, high, 0)]
            else:
                pieces.append((low, high, rows))
        lows, highs, shares = (np.array(column) for column in zip(*pieces, strict=True))
        spare = n_bins - len(pieces)
        return ScoreBins(lows, highs, 1 + spare * shares // shares.sum())


def find_bins(
    rows: nw.LazyFrame[Any], low: float, high: float, n_bins: int
) -> tuple[ScoreBins, FilledBins]:
    """Return bins for scores from ``low`` to ``high``, and what they hold."""
    bins = ScoreBins(np.array([low]), np.array([high]), np.array([n_bins]))
    found = [(bins, _fill(rows, bins))]
    for _ in range(_ROUNDS):
        filling = found[-1][1]
        if not filling.hidden_share() > _ENOUGH / n_bins:
            break
        bins = filling.narrow(n_bins)
        found.append((bins, _fill(rows, bins)))
    return min(found, key=lambda one: one[1].hidden_share())


def _fill(rows: nw.LazyFrame[Any], bins: ScoreBins) -> FilledBins:
    """Count the rows of each bin."""
    score = nw.col("y_score")
    known = bins.add_places(rows.filter(~score.is_null()).select(score), _PLACE)
    totals = [nw.len().alias(_COUNT), score.min().alias(_LOWEST), score.max().alias(_HIGHEST)]
    with stage("counting rows by bins of the score", rows):
        counted = fetch(known.group_by(_PLACE).agg(*totals))
    place, low, high = (to_floats(counted[name]) for name in (_PLACE, _LOWEST, _HIGHEST))
    order = np.argsort(place)
    count = counted[_COUNT].to_numpy().astype(np.int64)
    return FilledBins(low[order], high[order], place[order], count[order])
