"""Notes and wider standard errors where few rows show how a group's value varies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from fairperm._utils.formatting import (
    drop_decimals,
    format_count,
    singular,
)
from fairperm._utils.pieces import split_rows
from fairperm.engines.leave_one_out import influences_through_bases, shrink
from fairperm.errors import UndefinedMetricError, shown
from fairperm.hypothesis_tests.base_rows import count_base_rows
from fairperm.metrics.definition import Scheme, Variance, by_part, is_of_totals

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fairperm._utils.arrays import Array, Booleans, Codes, Integers, Places
    from fairperm.data.sample import Sample
    from fairperm.engines.estimates import Estimates
    from fairperm.hypothesis_tests.comparison import Comparison
    from fairperm.hypothesis_tests.plan import Plan
    from fairperm.metrics.definition import Metric
    from fairperm.metrics.ranks import RankMetric

MIN_INFLUENTIAL_ROWS = 20
MIN_INFLUENTIAL_RANKS = 10  # for metrics of ranks, permuted by the scheme that is best for them
_ROUNDING = 1e-12  # of the sum of sizes: a smaller sum is a rounding error


@dataclass(frozen=True, slots=True)
class InfluentialRows:
    """The effective number of rows behind each group's variance, and what follows from a small one.

    Where errors of draws are linear and units uneven (ranks with weights or clusters, searches),
    the observed error is at least the jackknife's. That of ranks which rest on few rows also has
    what one more total miss of each label would add. Draws are left alone: p can only grow.
    """

    comparison: Comparison
    effective: Array  # by part and group
    enough: int  # the effective number from which on nothing is noted
    extra: Array  # by part and group, what is added to the variance

    @classmethod
    def count(
        cls,
        comparison: Comparison,
        plan: Plan,
        observed: Estimates,
        *,
        limit: bool = False,
        linear: bool = False,
    ) -> InfluentialRows:
        """Count them; in the normal ``limit``, and with weights or clusters, those of rates too.

        Rates and F1 of plain rows are not counted, as their default test is exact, nor is an AUC
        whose ``observed`` variance shows that there are enough. ``linear`` tells that errors of
        totals are not the jackknife's either.
        """
        is_uneven = plan.weighted or plan.clustered
        # an AUC whose permutations keep each group's positives, and an average precision
        is_fit = plan.metric.is_rank and plan.scheme == Scheme.best_for(plan.metric)
        is_plain = not (is_uneven or limit)
        enough = MIN_INFLUENTIAL_RANKS if is_fit and is_plain else MIN_INFLUENTIAL_ROWS
        effective = np.full((len(comparison.parts), len(comparison.groups)), np.inf)
        extra = np.zeros_like(effective)
        if _has_many_placements(comparison, plan, observed):
            return cls(comparison, effective, enough, extra)
        # in the metric's own unit, so that a function of it has the same digits
        spans = np.array([[part.span] for part in comparison.parts])
        unit = np.square(np.where(np.isfinite(spans), spans, 1.0))
        known = _round_off(observed.known_variance(comparison.weights) / unit)
        for i, part, number, variance in count_influential(comparison, rates=not is_plain):
            effective[i], few = number, number < enough
            if is_uneven and not plan.is_chosen and (linear or part.walk):
                # each rounded: their difference may be little but the rounding errors of both
                extra[i] = np.fmax(_round_off(variance / unit[i]) - known[i], 0.0)
            if is_of_totals(part):
                continue
            if limit and is_uneven and few.any() and not part.allows_for_one_row:
                rule = f"at least 1 where few rows or clusters show how {part.name} varies"
                raise UndefinedMetricError("n_resamples", rule, 0, "Draw permutations.")
            misses = _square_misses(part, comparison, few)
            extra[i, few] += misses / unit[i] / (1 + number[few]) ** 3
        if plan.is_chosen:
            extra[:] = 0.0
        # rounded: the order of rows changes last digits, and must not change an error
        return cls(comparison, _round_off(effective), enough, unit * _round_off(extra))

    def widen(self, estimates: Estimates, weights: Array | None) -> Estimates:
        """Return the observed estimates with variances that allow for few influential rows."""
        return estimates.widen(self.extra, weights) if self.extra.any() else estimates

    def notes(self) -> Iterator[str]:
        """Yield a note for every group that is too small for a reliable standard error."""
        rows = self.comparison.rows
        unit, units = singular(rows.units), str(rows.units)
        if rows.cluster is not None:
            unit, units = "cluster", "clusters"
        places = zip(*np.nonzero(self.effective < self.enough), strict=True)
        for part, side in places:
            n, few, show = self.effective[part, side], f"No {unit}", "shows"
            if n:  # 19.9 is fewer than 20
                at_most = min(max(round(n), 1), self.enough - 1)
                few = f"Only about {format_count(at_most, unit, units)}"
                show = "shows" if at_most == 1 else "show"
            is_wider = self.extra[part, side] > 0
            metric = self.comparison.parts[part]
            the = "the " if metric.compares_models else ""
            yield (
                f"{few} of group {shown(drop_decimals(self.comparison.groups[side]))} {show} how "
                f"{the}{metric.name} varies: with fewer than {self.enough} its standard "
                f"error is unreliable{', even widened' if is_wider else ''}, and the test may "
                "reject too often."
            )


def effective_number(influence: Array, count: Array) -> float:
    """Return (Σψ²)²/Σψ⁴ of influences ψ, each of which occurs so often; 0 if all are 0.

    It is their number if all are alike, and about that of the rarer outcome if there are two.
    """
    return float(_effective_numbers(influence, count, np.zeros(len(count), np.intp), 1)[0])


def labels(comparison: Comparison) -> Integers:
    """Return the numbers of rows of each label (axis 1) in each group, for a metric of ranks."""
    (part,), rows = comparison.parts, comparison.rows
    every = part.base_rows(rows.contributions).values()
    return np.stack([comparison.total(rows.count, one) for one in every], axis=1).astype(np.int64)


def _has_many_placements(comparison: Comparison, plan: Plan, observed: Estimates) -> bool:
    """Return whether the variance of an AUC of plain rows rests on enough of them for certain.

    (Σψ²)²/Σψ⁴ is at least Σψ² over the largest ψ². Σψ² is DeLong's variance times 1 − 1/n or more,
    n the fewest rows of a label, and no ψ is above 2/n, also of the change to another AUC. So the
    influences of millions of rows need not be computed.
    """
    if plan.weighted or plan.clustered or comparison.rows.n_strata > 1:
        return False
    if plan.variance != Variance.DELONG or not plan.metric.is_rank:
        return False
    n, variance = labels(comparison).min(), observed.variance.min() / comparison.parts[0].span ** 2
    return bool(variance * n * (n - 1) / 4 >= MIN_INFLUENTIAL_ROWS)


class PartInfluences(NamedTuple):
    """What the value of a part rests on in each group."""

    place: int
    part: Metric | RankMetric
    effective: Array  # number of rows or clusters
    variance: Array | float = 0.0  # the jackknife's, if rows have weights or clusters


def count_influential(comparison: Comparison, *, rates: bool) -> Iterator[PartInfluences]:
    """Yield what every part with influences rests on; rates only if ``rates``."""
    units = None
    for i, (part, place) in enumerate(by_part(comparison.parts)):
        is_smooth = part.has_totals and part.smooth and (rates or not part.has_denominator)
        if not (is_smooth or part.walk):
            continue
        units = units or comparison.units()
        u = units.contributions[:, place]
        with np.errstate(divide="ignore", invalid="ignore"):
            if is_of_totals(part) and not units.are_sums and units.n_strata == 1:
                yield PartInfluences(i, part, _weigh_rows(part, units, u))
            else:
                found = _weigh_units(part, units, u, comparison.weights)
                yield PartInfluences(i, part, *found)


def _weigh_rows(part: Metric, rows: Sample, u: Array) -> Array:
    """Return the effective number of plain rows by group; in pieces, as there may be millions."""
    n, pieces = rows.n_groups, split_rows(len(u))

    def add(piece: slice, values: Array | float) -> Array:
        return _add(rows.group[piece], np.asarray(rows.count[piece] * values, float), n)

    sizes, totals = np.zeros(n), np.zeros((n, u.shape[1]))
    for piece in pieces:
        sizes += add(piece, 1.0)
        totals += np.stack([add(piece, one) for one in u[piece].T], axis=-1)
    second = fourth = np.zeros(n)
    size = np.abs(part.gradient(totals) * totals).sum(axis=-1) / sizes  # then nothing overflows
    for piece in pieces:
        group = rows.group[piece].astype(np.intp)
        square = np.square(part.influences_at(totals, sizes, u[piece], group) / size[group])
        second = second + add(piece, square)
        fourth = fourth + add(piece, np.square(square, out=square))
    return np.nan_to_num(second**2 / fourth)


def _weigh_units(
    part: Metric | RankMetric, rows: Sample, u: Array, weights: Array | None
) -> tuple[Array, Array]:
    """Return the effective number of units, rows or clusters, and the variance, by group.

    An influence is that on the unit's stratum, times the stratum's share in the gap; of uneven
    units it is that of leaving them out. A stratum of which a group has one unit is a unit, and
    adds nothing to the variance here.
    """
    n_groups, n_cells = rows.n_groups, rows.n_groups * rows.n_strata
    cell, count = rows.stratum.astype(np.intp) * n_groups + rows.group, rows.count.astype(float)
    is_uneven = rows.are_sums or rows.weight is not None or rows.cluster is not None
    sizes, bases = _add(cell, count, n_cells), []
    if is_uneven or rows.n_strata > 1:
        bases = [*part.base_rows(u).values()]
    if is_of_totals(part):
        totals = np.stack([_add(cell, count * one, n_cells) for one in u.T], axis=-1)
        value, share = part.estimate(totals), None
        if is_uneven:
            through = influences_through_bases(part, totals, u, cell)
        else:
            through = [part.influences_at(totals, sizes, u, cell)]
        sizes = totals[:, 1] if part.sizes_groups else sizes
    else:
        value, influence, share = _analyze_cells(part, rows, u, cell, n_cells)
        through = [influence * (one != 0) for one in bases] if is_uneven else [influence]
        bases = [one * rows.weight_of_each() for one in bases]
        if rows.cluster is not None:
            _, first, unit = np.unique(rows.cluster, return_index=True, return_inverse=True)
            *through, share = (_sum_clusters(unit, count * one) for one in [*through, share])
            bases = [_sum_clusters(unit, count * one) for one in bases]
            cell, count = cell[first], np.ones(len(first))
    has_one = np.zeros(rows.n_strata, bool)
    for i, base in enumerate(bases):
        n = _add(cell, count * (base != 0), n_cells)
        has_one |= (n.reshape(-1, n_groups) == 1).any(axis=1)
        if is_uneven:
            of_whole = base / _add(cell, count * base, n_cells)[cell]
            through[i] = through[i] * shrink(n)[cell] / (1 - of_whole)
    influence, group, between = np.sum(through, axis=0), cell % n_groups, np.zeros((0, n_groups))
    if rows.n_strata > 1:
        in_gap, stratum = _share_strata(sizes.reshape(-1, n_groups), weights), cell // n_groups
        is_between, within = has_one & (in_gap > 0), np.where(has_one, 0.0, in_gap)[stratum]
        between = _deviations(value.reshape(-1, n_groups)[is_between], in_gap[is_between])
        influence = np.where(within > 0, within * influence, 0.0)
        share = None if share is None else in_gap[stratum] * share
    variance = _add(group, count * influence**2, n_groups)
    effective = np.full(n_groups, np.inf)
    if (
        share is not None and part.closed_variance != Variance.DELONG
    ):  # few rows of a label may have no influence
        effective = _effective_numbers(share, count, group, n_groups)
    if between.size:
        influence, count = np.append(influence, between), np.append(count, np.ones(between.size))
        group = np.append(group, np.tile(np.arange(n_groups), len(between)))
    return np.fmin(_effective_numbers(influence, count, group, n_groups), effective), variance


def _effective_numbers(influence: Array, count: Array, group: Places, n_groups: int) -> Array:
    """Return the effective number of each group."""
    with np.errstate(divide="ignore", invalid="ignore"):
        square = np.square(influence / np.fmax.reduce(np.abs(influence), initial=0.0))
        second, fourth = (_add(group, count * square**i, n_groups) for i in (1, 2))
        return np.nan_to_num(second**2 / fourth)


def _add(cell: Codes, values: Array, n_cells: int) -> Array:
    """Return the sums of values by cell."""
    return np.bincount(cell, values, n_cells).astype(np.float64, copy=False)


def _sum_clusters(unit: Places, values: Array) -> Array:
    """Return the sums of clusters, with zero in place of rounding errors."""
    total, size = (_add(unit, one, 0) for one in (values, np.abs(values)))
    return np.where(np.abs(total) <= _ROUNDING * size, 0.0, total)


def _analyze_cells(
    part: RankMetric, rows: Sample, u: Array, cell: Places, n_cells: int
) -> tuple[Array, Array, Array]:
    """Return the value of each cell, and each row's influence on it and share in it."""
    value, influence, share = np.full(n_cells, np.nan), np.zeros(len(cell)), np.zeros(len(cell))
    weight, order = rows.weight_of_each(), np.argsort(cell, kind="stable")
    for members in np.split(order, np.flatnonzero(np.diff(cell[order])) + 1):
        found = part.analyze((rows.count * weight)[members], u[members])
        value[cell[members[0]]] = found.value
        influence[members] = weight[members] * found.influence
        share[members] = weight[members] * found.share
    return value, influence, share


def _share_strata(sizes: Array, weights: Array | None) -> Array:
    """Return the strata's shares in the gap, given the groups' sizes there."""
    with np.errstate(divide="ignore", invalid="ignore"):
        share = 1 / (1 / sizes).sum(axis=1) if weights is None else weights
        return np.asarray(share / share.sum())


def _deviations(value: Array, share: Array) -> Array:
    """Return the influences of strata that are units, by stratum and group, from their values.

    What the groups of a stratum have in common cancels in the gap: a group's own part is how far it
    is from their mean, of which the mean has taken one in as many as there are groups.
    """
    own = value - value.mean(axis=1, keepdims=True)
    apart = own - share @ own / share.sum() if len(share) else own
    return np.asarray(share[:, None] * apart / np.sqrt(1 - 1 / value.shape[1]))


def _square_misses(part: RankMetric, comparison: Comparison, few: Booleans) -> Array:
    """Return the squared influence of one more row of each label that is ranked worst, added up.

    It is that of all strata of the groups that have ``few``, which is enough for an allowance.
    """
    rows, numbers = comparison.rows, np.stack([*count_base_rows(comparison).values()], axis=-1)
    weight, found = rows.count * rows.weight_of_each(), []
    for group in np.flatnonzero(few):
        mine = rows.group == group
        one_more = part.analyze(weight[mine], rows.contributions[mine]).misses
        squares = (one_more / np.maximum(numbers[group], 1)) ** 2
        found.append(np.nan_to_num(squares).sum())  # without a value there is no test
    return np.array(found)


def _round_off(values: Array) -> Array:
    """Return the values with ten digits each."""
    return np.array([float(f"{one:.10g}") for one in values.flat]).reshape(values.shape)
