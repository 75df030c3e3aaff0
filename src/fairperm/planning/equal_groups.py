"""Populations in which groups have the values asked for, and else are as they were observed.

Rows are re-weighted as little as possible: of all weights that give the metric its value and leave
every label its share, those nearest to the observed ones in Kullback–Leibler divergence are
exp(λ·influence) times them, the influence being that of a row on the metric in the population which
is sought. So influences and λ are found in turns, and each λ makes the value exact. Influences far
beyond the others of a label are bounded. It is the same with clusters, each of which has the
influence of all its rows; labels keep their shares of rows by a λ of their own.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from fairperm._utils.sorting import ranks
from fairperm.metrics.kinds import Kind
from fairperm.planning.influence import measures, shares_of_labels
from fairperm.planning.populations import units

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from fairperm.data.table import Table
    from fairperm.planning.influence import Measure, Parts

    Array = NDArray[np.float64]
    Codes = NDArray[np.intp]

_MIXED_IN = (0.0, 0.05, 0.5)  # of the other group's rows: none, unless there is no other way
_PACES = ((1, 0.0), (20, 0.5))  # at once; or slowly, where directions turn too much for that
_ROUNDS = 200
_SETTLED = 1e-11  # of all weight: a direction that moves no more than this is the right one
_NO_INFLUENCE = 1e-10  # of the largest: a difference this small is rounding
_STRONGEST = 3.0  # influence of a row, relative to their mean size among rows of its label
_FARTHEST = 2.0**30  # times the largest influence: the last rows then have all the weight
_UNDEFINED = 1e9  # times a value's size: its excess where it has none, which is too far
_MISSED = 1e-6  # times its size: a value so far off in one round is out of reach
_EXACT = 1e-10  # of a value, relative to it or to what rows add to it


class UnreachableError(Exception):
    """No weights give a group its value."""


def values(table: Table, parts: Parts, share: Array) -> list[float]:
    """Return each part of the metric in a population of these shares of the rows."""
    return [one.value(share) for one in measures(table, parts)]


def holds_labels(table: Table, parts: Parts) -> bool:
    """Tell whether labels keep their shares: if there are labels, and more to it than they."""
    if any(set(part.columns) == {"y_true"} for part in parts) or "y_true" not in table.columns:
        return False
    regression = any(part.kind == Kind.REGRESSION for part in parts)
    return not regression or len(np.unique(table.columns["y_true"])) == 2


def with_gap(
    table: Table, parts: Parts, shares: tuple[Array, Array], gap: float
) -> tuple[Array, Array]:
    """Return chances by which the groups differ by this gap in every part and every stratum.

    The mean of both groups' values, weighted by the rows that they are made of, stays as it is:
    for a rate and for a mean it is the value of both groups together. Strata in which a group has
    no value stay as they are.
    """
    holds = holds_labels(table, parts)
    chances = shares[0].copy(), shares[1].copy()
    drawn = units(table)
    sizes = np.bincount(drawn.group, drawn.count)
    for stratum in np.unique(table.stratum):
        inside = np.flatnonzero(drawn.stratum == stratum)
        in_stratum = [float(share[inside].sum()) for share in shares]
        if 0 in in_stratum:
            continue
        own = [share[inside] / whole for share, whole in zip(shares, in_stratum, strict=True)]
        rows = table.take(np.flatnonzero(table.stratum == stratum))
        sought = measures(rows, parts)
        counts = [n * share[inside] for n, share in zip(sizes, shares, strict=True)]
        targets = [_apart(measure, own, counts, gap) for measure in sought]
        if np.isnan(targets).any():
            continue
        # a row has one label; those of a cluster's rows have shares that are held as a metric is
        by_row = holds and rows.cluster is None
        kept = ranks(rows.columns["y_true"]) if by_row else np.zeros(len(inside), np.intp)
        held = shares_of_labels(rows) if holds and not by_row else []
        for side in (0, 1):
            to = [target[side] for target in targets] + [one.value(own[side]) for one in held]
            found = _reweighted(own[side], own[1 - side], kept, [*sought, *held], to)
            chances[side][inside] = in_stratum[side] * found
    return chances


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
        for pace in _PACES:
            found = _Base(base, label).tilted(measures, targets, pace)
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

    def tilted(
        self, measures: Sequence[Measure], targets: Sequence[float], pace: tuple[int, float]
    ) -> Array | None:
        """Return the nearest chances with which the measures have their targets.

        The pace is in how many rounds the targets are approached, and how much of each direction
        goes into the next.
        """
        steps, kept = pace
        chance, reach, to = self.chance, np.zeros(len(measures)), np.array(targets)
        hits = partial(_all_at, measures, targets)
        if hits(chance, _EXACT / 100):
            return chance
        start = np.array([measure.value(chance) for measure in measures])
        directions = self._directions(measures, chance)
        for step in range(1, _ROUNDS):
            goals = to if step >= steps else start + step / steps * (to - start)
            found = self._reach(measures, goals, directions, reach)
            if found is None:
                return None
            before, chance, reach = chance, self._times_exp(found @ directions), found
            if step >= steps and np.abs(chance - before).sum() <= _SETTLED:
                break
            directions = kept * directions + (1 - kept) * self._directions(measures, chance)
        return chance if hits(chance, _EXACT) else None

    def _reach(
        self, measures: Sequence[Measure], goals: Array, directions: Array, start: Array
    ) -> Array | None:
        """Return how far in each direction the measures have their goals; None if none is found."""
        moving = np.flatnonzero(directions.any(axis=1))
        reach = np.zeros(len(measures))
        sizes = np.array([_size(measures[k], self.chance, goals[k]) for k in moving.tolist()])

        def excess(far: Array) -> Array:
            chance = self._times_exp(far @ directions[moving])
            off = np.array([measures[k].value(chance) - goals[k] for k in moving.tolist()])
            return np.where(np.isnan(off), _UNDEFINED, off / sizes)

        if len(moving) == 1:
            far = _root(lambda one: float(excess(np.array([one]))[0]))
            reach[moving] = np.nan if far is None else far
        elif len(moving) > 1:
            from scipy.optimize import root

            found = root(excess, start[moving], options={"xtol": 1e-14})
            reach[moving] = found.x if np.abs(found.fun).max() < _MISSED else np.nan
        return None if np.isnan(reach).any() else reach

    def _times_exp(self, exponent: Array) -> Array:
        """Return the chances times exp(exponent), each label's with the sum that they had."""
        there = self.chance > 0
        highest = np.full(self.label.max() + 1, -np.inf)
        np.maximum.at(highest, self.label[there], exponent[there])
        raised = np.zeros_like(self.chance)
        raised[there] = np.exp((exponent - highest[self.label])[there]) * self.chance[there]
        return raised * _over(self.sums(self.chance), self.sums(raised))

    def _directions(self, measures: Sequence[Measure], chance: Array) -> Array:
        return np.stack([self.direction(measure, chance) for measure in measures])

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


def _root(excess: Callable[[float], float]) -> float | None:
    """Return where this is zero, in the direction in which it must go; None if it never is."""
    from scipy.optimize import brentq

    start = excess(0.0)
    reach = -1.0 if start > 0 else 1.0
    while abs(reach) <= _FARTHEST:
        if excess(reach) * start <= 0:
            return float(brentq(excess, 0.0, reach, xtol=1e-300, rtol=1e-15, maxiter=500))
        reach *= 2
    return None


def _all_at(
    measures: Sequence[Measure], targets: Sequence[float], chance: Array, tolerance: float
) -> bool:
    both = zip(measures, targets, strict=True)
    return all(_is_at(measure, chance, target, tolerance) for measure, target in both)


def _is_at(measure: Measure, chance: Array, target: float, tolerance: float) -> bool:
    """Tell whether a measure has its target, but for rounding of what it is made of."""
    return abs(measure.value(chance) - target) <= tolerance * _size(measure, chance, target)


def _size(measure: Measure, chance: Array, target: float) -> float:
    """Return how large a value is, or what rows add to it."""
    return max(abs(target), float(chance @ np.abs(measure.influence(chance))))
