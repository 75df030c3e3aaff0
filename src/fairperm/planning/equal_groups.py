"""Populations in which the groups have given values of a metric, and otherwise resemble the data.

Rows are reweighted as little as possible. Among all weights that give the metric its value and keep
the share of every label, the nearest to the observed ones in Kullback–Leibler divergence are
exp(λ·influence) times them, with the influences of rows on the metric in the new population. Hence
influences and λ are computed in turns, and each λ makes the value exact. Extreme influences among
the rows of a label are bounded. Clusters have the sum of their rows' influences; the share of each
label among all rows then has a λ of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from fairperm._utils.arrays import Array, Booleans, Integers, Places
from fairperm._utils.sorting import ranks
from fairperm.data.sample import Sample
from fairperm.metrics.definition import Kind, Metric
from fairperm.metrics.numbers import mean_metric
from fairperm.metrics.ranks import RankMetric
from fairperm.planning.populations import count_rows_per_unit, select_units

Parts = Sequence[Metric | RankMetric]

_MIXED_IN = (0.0, 0.05, 0.5)  # shares of the other group's rows, tried in this order
_PACES = ((1, 0.0), (20, 0.5))  # at once; or slowly, if directions turn too much for that
_ROUNDS = 200
_CONVERGED = 1e-11  # change of all chances in one round
_NO_INFLUENCE = 1e-10  # relative to the largest: smaller differences are rounding
_STRONGEST = 3.0  # influence of a row, relative to the mean size among rows of its label
_FARTHEST = 2.0**30  # largest λ: a few rows then have all the weight
_UNDEFINED = 1e9  # excess of an undefined value, relative to its size
_MISSED = 1e-6  # error of an unreachable value in one round, relative to its size
_EXACT = 1e-10  # error of a value, relative to its size
_SHARE = mean_metric("label_share", "share of rows that have a label", lambda y_true: y_true)


@dataclass(frozen=True, slots=True)
class Functional:
    """A metric, or one part of it, as a function of the chances of rows or clusters.

    The scale of the chances does not matter. Clusters are drawn whole: ``cluster`` is that of each
    row, and ``count`` the number of such rows in one cluster.
    """

    part: Metric | RankMetric
    contributions: Array
    weight: Array | None
    cluster: Places | None
    count: Integers

    @classmethod
    def of(
        cls, table: Sample, part: Metric | RankMetric, contributions: Array, weight: Array | None
    ) -> Functional:
        """Return a part with these contributions as a functional of the table's units."""
        cluster = None if table.cluster is None else ranks(table.cluster)
        return cls(part, contributions, weight, cluster, count_rows_per_unit(table))

    def value(self, chance: Array) -> float:
        """Return the metric; NaN where it is undefined."""
        return float(self.part.value_of(self._weigh(self._rows(chance)), self.contributions))

    def size(self, count: Array) -> float:
        """Return the number of rows in its denominator, or of all rows."""
        rows = self._rows(count)
        if self.part.has_denominator:
            return float(self._weigh(rows) @ self.contributions[:, 1])
        return float(rows.sum())

    def influence(self, chance: Array) -> Array:
        """Return the influence of each unit, that of a cluster being the sum over its rows."""
        # weighted by the chances, influences sum to zero
        rows = self._weigh(self._rows(chance))
        influence = self._weigh(self.part.influences(rows, self.contributions))
        if self.cluster is None:
            return influence
        return np.bincount(self.cluster, self.count * influence).astype(np.float64)

    def _rows(self, of_units: Array) -> Array:
        return of_units if self.cluster is None else of_units[self.cluster] * self.count

    def _weigh(self, rows: Array) -> Array:
        return rows if self.weight is None else self.weight * rows


def make_functionals(table: Sample, parts: Parts) -> list[Functional]:
    """Return each part of a metric as a functional of the table's units."""
    return [Functional.of(table, part, part.matrix(table.columns), table.weight) for part in parts]


def make_label_shares(table: Sample) -> list[Functional]:
    """Return the share of each label, except the last, as a functional of the table's units."""
    labels = table.columns["y_true"]
    every = (_SHARE.matrix({"y_true": labels == one}) for one in np.unique(labels)[:-1])
    return [Functional.of(table, _SHARE, one, None) for one in every]


class UnreachableError(Exception):
    """No weights give a group its value."""


def compute_values(table: Sample, parts: Parts, share: Array) -> list[float]:
    """Return the value of each part of a metric in a population with these shares of units."""
    return [one.value(share) for one in make_functionals(table, parts)]


def keeps_label_shares(table: Sample, parts: Parts) -> bool:
    """Whether labels keep their shares: not for metrics of labels alone, nor for regression."""
    if any(set(part.columns) == {"y_true"} for part in parts) or "y_true" not in table.columns:
        return False
    regression = any(part.kind == Kind.REGRESSION for part in parts)
    return not regression or len(np.unique(table.columns["y_true"])) == 2


def impose_gap(
    table: Sample, parts: Parts, shares: tuple[Array, Array], gap: float
) -> tuple[Array, Array]:
    """Return the chances of units with which the groups have this gap in every part and stratum.

    The mean of both groups' values, weighted by the rows that they depend on, does not change: for
    a rate or a mean it is the value of both groups together. Strata in which the metric is
    undefined in a group do not change either.
    """
    keeps_shares = keeps_label_shares(table, parts)
    chances = shares[0].copy(), shares[1].copy()
    drawn = select_units(table)
    sizes = np.bincount(drawn.group, drawn.count)
    for stratum in np.unique(table.stratum):
        inside = np.flatnonzero(drawn.stratum == stratum)
        in_stratum = [float(share[inside].sum()) for share in shares]
        if 0 in in_stratum:
            continue
        own = [share[inside] / whole for share, whole in zip(shares, in_stratum, strict=True)]
        rows = table.take(np.flatnonzero(table.stratum == stratum))
        sought = make_functionals(rows, parts)
        counts = [n * share[inside] for n, share in zip(sizes, shares, strict=True)]
        targets = [_choose_targets(functional, own, counts, gap) for functional in sought]
        if np.isnan(targets).any():
            continue
        # rows are reweighted within their label; with clusters, shares of labels are targets too
        by_row = keeps_shares and rows.cluster is None
        kept = ranks(rows.columns["y_true"]) if by_row else np.zeros(len(inside), np.intp)
        held = make_label_shares(rows) if keeps_shares and not by_row else []
        for side in (0, 1):
            to = [target[side] for target in targets] + [one.value(own[side]) for one in held]
            found = _reweight(own[side], own[1 - side], kept, [*sought, *held], to)
            chances[side][inside] = in_stratum[side] * found
    return chances


def _choose_targets(
    functional: Functional, own: Sequence[Array], counts: Sequence[Array], gap: float
) -> tuple[float, float]:
    """Return the values of both groups that have this gap and the observed mean."""
    first, second = (functional.value(one) for one in own)
    size, other = (functional.size(one) for one in counts)
    part = size / (size + other)
    mean = part * first + (1 - part) * second
    return mean + (1 - part) * gap, mean - part * gap


def _reweight(
    own: Array,
    other: Array,
    label: Places,
    functionals: Sequence[Functional],
    targets: Sequence[float],
) -> Array:
    """Return the chances of a group's units that give the functionals their targets."""
    # If no weights of its own units do (for a rate of zero, say), units of the other group with the
    # same label are mixed in. Raises UnreachableError if that does not help.
    for share in _MIXED_IN:
        mixed = _mix_groups(own, other, label, share)
        base = np.where(_find_relevant_rows(mixed, label, functionals), mixed, own)
        for pace in _PACES:
            found = _BaseDistribution(base, label).tilt(functionals, targets, pace)
            if found is not None:
                return found
    raise UnreachableError("no weights of units give a group its value")


def _mix_groups(own: Array, other: Array, label: Places, share: float) -> Array:
    """Return chances with this share of the other group, and the same sum for each label."""
    mine, its = (_BaseDistribution(own, label).sums(one) for one in (own, other))
    return np.where(its > 0, (1 - share) * own + share * other * _divide(mine, its), own)


def _find_relevant_rows(
    chance: Array, label: Places, functionals: Sequence[Functional]
) -> Booleans:
    """Return which units have a label within which some functional depends on their chances."""
    base = _BaseDistribution(chance, label)
    directions = [np.abs(base.direction(functional, chance)) for functional in functionals]
    return base.sums(np.sum(directions, axis=0)) > 0


@dataclass(frozen=True, slots=True)
class _BaseDistribution:
    """Chances of units to be changed as little as possible, with a fixed sum for each label."""

    chance: Array
    label: Places

    def tilt(
        self, functionals: Sequence[Functional], targets: Sequence[float], pace: tuple[int, float]
    ) -> Array | None:
        """Return the nearest chances with which the functionals have their targets, or None."""
        # the pace is the number of rounds in which the targets are approached, and the share of
        # each direction that is kept in the next round
        steps, kept = pace
        chance, reach, to = self.chance, np.zeros(len(functionals)), np.array(targets)
        hits = partial(_have_targets, functionals, targets)
        if hits(chance, _EXACT / 100):
            return chance
        start = np.array([functional.value(chance) for functional in functionals])
        directions = self._directions(functionals, chance)
        for step in range(1, _ROUNDS):
            goals = to if step >= steps else start + step / steps * (to - start)
            found = self._reach(functionals, goals, directions, reach)
            if found is None:
                return None
            before, chance, reach = chance, self._times_exp(found @ directions), found
            if step >= steps and np.abs(chance - before).sum() <= _CONVERGED:
                break
            directions = kept * directions + (1 - kept) * self._directions(functionals, chance)
        return chance if hits(chance, _EXACT) else None

    def _reach(
        self, functionals: Sequence[Functional], goals: Array, directions: Array, start: Array
    ) -> Array | None:
        """Return the λ of each direction at which the functionals have their goals, or None."""
        moving = np.flatnonzero(directions.any(axis=1))
        reach = np.zeros(len(functionals))
        sizes = np.array([_size(functionals[k], self.chance, goals[k]) for k in moving.tolist()])

        def excess(far: Array) -> Array:
            chance = self._times_exp(far @ directions[moving])
            off = np.array([functionals[k].value(chance) - goals[k] for k in moving.tolist()])
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
        """Return the chances times exp(exponent), scaled to keep the sum of each label."""
        there = self.chance > 0
        highest = np.full(self.label.max() + 1, -np.inf)
        np.maximum.at(highest, self.label[there], exponent[there])
        raised = np.zeros_like(self.chance)
        raised[there] = np.exp((exponent - highest[self.label])[there]) * self.chance[there]
        return raised * _divide(self.sums(self.chance), self.sums(raised))

    def _directions(self, functionals: Sequence[Functional], chance: Array) -> Array:
        return np.stack([self.direction(functional, chance) for functional in functionals])

    def direction(self, functional: Functional, chance: Array) -> Array:
        """Return the influences minus their label's mean, bounded, the largest scaled to one."""
        # without the bound, a few rows with extreme errors would bear the whole change, and the
        # tail that decides a test's level would vanish or be all that is left
        there = self.chance > 0
        influence = np.where(there, functional.influence(chance), 0.0)
        mean = _divide(self.sums(chance * influence), self.sums(chance))
        centred = np.where(there, influence - mean, 0.0)
        size = _divide(self.sums(self.chance * np.abs(centred)), self.sums(self.chance))
        if not size.max() > _NO_INFLUENCE * np.abs(influence).max():  # or NaN: no derivative
            return np.zeros_like(centred)
        bounded = np.clip(centred, -_STRONGEST * size, _STRONGEST * size)
        direction: Array = bounded / np.abs(bounded).max()
        return direction

    def sums(self, values: Array) -> Array:
        """Return for each unit the sum over all units of its label."""
        return np.bincount(self.label, values).astype(np.float64)[self.label]


def _divide(values: Array, by: Array) -> Array:
    """Return the ratio; zero where the divisor is zero."""
    return np.divide(values, by, out=np.zeros_like(values), where=by > 0)


def _root(excess: Callable[[float], float]) -> float | None:
    """Return the root of a monotone function on its side of zero; None if there is none."""
    from scipy.optimize import brentq

    start = excess(0.0)
    reach = -1.0 if start > 0 else 1.0
    while abs(reach) <= _FARTHEST:
        if excess(reach) * start <= 0:
            return float(brentq(excess, 0.0, reach, xtol=1e-300, rtol=1e-15, maxiter=500))
        reach *= 2
    return None


def _have_targets(
    functionals: Sequence[Functional], targets: Sequence[float], chance: Array, tolerance: float
) -> bool:
    both = zip(functionals, targets, strict=True)
    return all(_has_target(functional, chance, target, tolerance) for functional, target in both)


def _has_target(functional: Functional, chance: Array, target: float, tolerance: float) -> bool:
    """Whether a functional has its target up to rounding."""
    return abs(functional.value(chance) - target) <= tolerance * _size(functional, chance, target)


def _size(functional: Functional, chance: Array, target: float) -> float:
    """Return the size of a value, or of the influences on it if that is larger."""
    return max(abs(target), float(chance @ np.abs(functional.influence(chance))))
