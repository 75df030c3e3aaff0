"""Populations in which groups have the values asked for, and else are as they were observed.

Rows are re-weighted as little as possible: of all weights that give the metric its value and leave
every label its share, those nearest to the observed ones in Kullback–Leibler divergence are
exp(λ·influence) times them, the influence being that of a row on the metric in the population which
is sought. So influences and λ are found in turns, and each λ makes the value exact. Influences far
beyond the others of a label are bounded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from fairperm._metric import Metric
from fairperm._order import ranks
from fairperm._rank import Components

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from fairperm._rank import RankMetric
    from fairperm._sample import Table

    Array = NDArray[np.float64]
    Codes = NDArray[np.intp]
    Parts = Sequence[Metric | RankMetric]

_MIXED_IN = (0.0, 0.05, 0.5)  # of the other group's rows: none, unless there is no other way
_ROUNDS = 200
_SETTLED = 1e-11  # of all weight: a direction that moves no more than this is the right one
_NO_INFLUENCE = 1e-10  # of the largest: a difference this small is rounding
_STRONGEST = 3.0  # influence of a row, relative to their mean size among rows of its label
_FARTHEST = 2.0**30  # times the largest influence: the last rows then have all the weight
_EXACT = 1e-10  # of a value, relative to it or to what rows add to it
_STEP = 1e-6  # of totals of which the largest is near one, where there is no derivative


class UnreachableError(Exception):
    """No weights give a group its value."""


class Measure(Protocol):
    """One part of a metric as a function of the rows' chances."""

    def value(self, chance: Array) -> float:
        """Return the metric; NaN where it is undefined."""
        ...

    def size(self, count: Array) -> float:
        """Return how many rows it is made of."""
        ...

    def influence(self, chance: Array) -> Array:
        """Return by how much each row moves it, but for what rows of one label have in common."""
        ...


@dataclass(frozen=True, slots=True)
class OfTotals:
    """A function of totals of contributions, which weights have been multiplied into."""

    part: Metric
    contributions: Array

    def value(self, chance: Array) -> float:
        """Return the metric; NaN where it is undefined."""
        return float(self._of(chance @ self.contributions))

    def size(self, count: Array) -> float:
        """Return how many rows it is made of: those of a rate's denominator, or all."""
        return float(count @ self.contributions[:, 1] if self.part.is_rate else count.sum())

    def influence(self, chance: Array) -> Array:
        """Return by how much each row moves it."""
        totals = chance @ self.contributions
        if self.part.smooth:
            with np.errstate(divide="ignore", invalid="ignore"):
                gradient = self.part.gradient(totals)
        else:
            steps = _STEP * np.eye(len(totals))
            gradient = (self._of(totals + steps) - self._of(totals - steps)) / (2 * _STEP)
        influence: Array = self.contributions @ gradient
        return influence

    def _of(self, totals: Array) -> Array:
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.part.estimate(totals)


@dataclass(frozen=True, slots=True)
class OfRanks:
    """The AUC; ``place`` is a row's score as its rank among the distinct ones."""

    positive: NDArray[np.bool_]
    place: Codes
    weight: Array

    def value(self, chance: Array) -> float:
        """Return the AUC; NaN without positives or without negatives."""
        return float(self._components(chance).value())

    def size(self, count: Array) -> float:
        """Return how many rows it is made of."""
        return float(count.sum())

    def influence(self, chance: Array) -> Array:
        """Return by how much each row moves it."""
        parts = self._components(chance)
        auc = parts.value()
        of_positives = (parts.of_positives - auc) / parts.positives.sum()
        of_negatives = (parts.of_negatives - auc) / parts.negatives.sum()
        among = np.where(self.positive, of_positives[self.place], of_negatives[self.place])
        influence: Array = self.weight * among
        return influence

    def _components(self, chance: Array) -> Components:
        width = int(self.place.max()) + 1
        chances = self.weight * chance
        of_positives = np.bincount(self.place, np.where(self.positive, chances, 0.0), width)
        of_negatives = np.bincount(self.place, np.where(self.positive, 0.0, chances), width)
        return Components(of_positives.astype(np.float64), of_negatives.astype(np.float64))


def values(table: Table, parts: Parts, share: Array) -> list[float]:
    """Return each part of the metric in a population of these shares of the rows."""
    return [one.value(share) for one in _measures(parts, table.columns, table.weight)]


def holds_labels(table: Table, parts: Parts) -> bool:
    """Tell whether labels keep their shares: if there are labels, and more to it than they."""
    if any(set(part.columns) == {"y_true"} for part in parts) or "y_true" not in table.columns:
        return False
    regression = any(part.kind == "regression" for part in parts)
    return not regression or len(np.unique(table.columns["y_true"])) == 2


def with_gap(
    table: Table, parts: Parts, shares: tuple[Array, Array], gap: float
) -> tuple[Array, Array]:
    """Return chances by which the groups differ by this gap in every part and every stratum.

    The mean of both groups' values, weighted by the rows that they are made of, stays as it is:
    for a rate and for a mean it is the value of both groups together. Strata in which a group has
    no value stay as they are.
    """
    label = ranks(table.columns["y_true"]) if holds_labels(table, parts) else None
    chances = shares[0].copy(), shares[1].copy()
    sizes = np.bincount(table.group, table.count)
    for stratum in np.unique(table.stratum):
        rows = np.flatnonzero(table.stratum == stratum)
        in_stratum = [float(share[rows].sum()) for share in shares]
        if 0 in in_stratum:
            continue
        own = [share[rows] / whole for share, whole in zip(shares, in_stratum, strict=True)]
        columns = {name: column[rows] for name, column in table.columns.items()}
        measures = _measures(parts, columns, None if table.weight is None else table.weight[rows])
        counts = [n * share[rows] for n, share in zip(sizes, shares, strict=True)]
        targets = [_apart(measure, own, counts, gap) for measure in measures]
        if np.isnan(targets).any():
            continue
        kept = np.zeros(len(rows), np.intp) if label is None else label[rows]
        for side in (0, 1):
            sought = [target[side] for target in targets]
            found = _reweighted(own[side], own[1 - side], kept, measures, sought)
            chances[side][rows] = in_stratum[side] * found
    return chances


def _measures(
    parts: Parts, columns: Mapping[str, NDArray[Any]], weight: Array | None
) -> list[Measure]:
    found: list[Measure] = []
    for part in parts:
        matrix = part.matrix(columns)
        by = np.ones(len(matrix)) if weight is None else weight
        if isinstance(part, Metric):
            found.append(OfTotals(part, matrix * by[:, None]))
        else:
            found.append(OfRanks(matrix[:, 0] > 0, ranks(matrix[:, 1]), by))
    return found


def _apart(
    measure: Measure, own: Sequence[Array], counts: Sequence[Array], gap: float
) -> tuple[float, float]:
    """Return values with this gap between them, and the mean of the observed ones."""
    first, second = (measure.value(one) for one in own)
    size, other = (measure.size(one) for one in counts)
    part = size / (size + other)
    mean = part * first + (1 - part) * second
    return mean + (1 - part) * gap, mean - part * gap


def _reweighted(
    own: Array, other: Array, label: Codes, measures: Sequence[Measure], targets: Sequence[float]
) -> Array:
    """Return chances of a group's rows that give the measures their targets.

    Where no weights of its own rows do, as of a rate of zero, rows of the other group with the
    same label are among them.
    """
    for share in _MIXED_IN:
        mixed = _mixed(own, other, label, share)
        base = np.where(_matters(mixed, label, measures), mixed, own)
        found = _Base(base, label).tilted(measures, targets)
        if found is not None:
            return found
    raise UnreachableError("no weights of rows give a group its value")


def _mixed(own: Array, other: Array, label: Codes, share: float) -> Array:
    """Return rows of which this share is another group's, of each label as many as before."""
    mine, its = (_Base(own, label).sums(one) for one in (own, other))
    return np.where(its > 0, (1 - share) * own + share * other * _over(mine, its), own)


def _matters(chance: Array, label: Codes, measures: Sequence[Measure]) -> NDArray[np.bool_]:
    """Tell which rows are of a label in which it matters to a measure how often each is met."""
    base = _Base(chance, label)
    directions = [np.abs(base.direction(measure, chance)) for measure in measures]
    return base.sums(np.sum(directions, axis=0)) > 0


@dataclass(frozen=True, slots=True)
class _Base:
    """Chances of rows that are to be changed as little as possible, each label keeping its sum."""

    chance: Array
    label: Codes

    def tilted(self, measures: Sequence[Measure], targets: Sequence[float]) -> Array | None:
        """Return the nearest chances with which the measures have their targets."""
        exponents = np.zeros((len(measures), len(self.chance)))
        chance = self.chance
        for _ in range(_ROUNDS):
            before = chance
            for k, (measure, target) in enumerate(zip(measures, targets, strict=True)):
                if not exponents[k].any() and _is_at(measure, chance, target, _EXACT / 100):
                    continue
                exponents[k] = 0
                others = exponents.sum(axis=0)
                direction = self.direction(measure, chance)
                reach = self._reach(measure, target, others, direction)
                if reach is None:
                    return None
                exponents[k] = reach * direction
                chance = self._times_exp(others + exponents[k])
            if np.abs(chance - before).sum() <= _SETTLED:
                break
        hits = zip(measures, targets, strict=True)
        return chance if all(_is_at(one, chance, to, _EXACT) for one, to in hits) else None

    def _reach(
        self, measure: Measure, target: float, others: Array, direction: Array
    ) -> float | None:
        """Return how far in a direction a measure has its target; None if it never has."""
        from scipy.optimize import brentq

        def excess(reach: float) -> float:
            return measure.value(self._times_exp(others + reach * direction)) - target

        start = excess(0.0)
        reach = -1.0 if start > 0 else 1.0
        while direction.any() and abs(reach) <= _FARTHEST:
            if excess(reach) * start <= 0:
                return float(brentq(excess, 0.0, reach, xtol=1e-300, rtol=1e-15, maxiter=500))
            reach *= 2
        return None

    def _times_exp(self, exponent: Array) -> Array:
        """Return the chances times exp(exponent), each label's with the sum that they had."""
        there = self.chance > 0
        highest = np.full(self.label.max() + 1, -np.inf)
        np.maximum.at(highest, self.label[there], exponent[there])
        raised = np.zeros_like(self.chance)
        raised[there] = np.exp((exponent - highest[self.label])[there]) * self.chance[there]
        return raised * _over(self.sums(self.chance), self.sums(raised))

    def direction(self, measure: Measure, chance: Array) -> Array:
        """Return the rows' influences less their label's mean, the largest as one; or zeros.

        Few rows with errors far beyond all others would else bear the whole change, and a tail
        that makes a test's level what it is would be gone, or be all that there is.
        """
        there = self.chance > 0
        influence = np.where(there, measure.influence(chance), 0.0)
        mean = _over(self.sums(chance * influence), self.sums(chance))
        centred = np.where(there, influence - mean, 0.0)
        size = _over(self.sums(self.chance * np.abs(centred)), self.sums(self.chance))
        if not size.max() > _NO_INFLUENCE * np.abs(influence).max():  # or NaN: no derivative
            return np.zeros_like(centred)
        bounded = np.clip(centred, -_STRONGEST * size, _STRONGEST * size)
        direction: Array = bounded / np.abs(bounded).max()
        return direction

    def sums(self, values: Array) -> Array:
        """Return for each row the sum over all of its label."""
        return np.bincount(self.label, values).astype(np.float64)[self.label]


def _over(values: Array, by: Array) -> Array:
    """Return the ratio; zero where there is nothing."""
    return np.divide(values, by, out=np.zeros_like(values), where=by > 0)


def _is_at(measure: Measure, chance: Array, target: float, tolerance: float) -> bool:
    """Tell whether a measure has its target, but for rounding of what it is made of."""
    size = max(abs(target), float(chance @ np.abs(measure.influence(chance))))
    return abs(measure.value(chance) - target) <= tolerance * size
