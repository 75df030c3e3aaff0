"""From rows to what a test of matched sets exchanges: one side for each group of every set."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairperm._utils.arrays import Array, Booleans, Integers, Places
from fairperm._utils.formatting import format_count
from fairperm._utils.sorting import equate_close
from fairperm.data.sample import Sample
from fairperm.engines.matched_sets import Sides
from fairperm.errors import InputError, Shown, UndefinedMetricError, argument, listed
from fairperm.hypothesis_tests.comparison_checks import read_stratum_weights
from fairperm.metrics.definition import Metric

_ROUNDING = 1e-13  # relative rounding error of a mean, with room
_MIN_UNITS = 2  # sets, or clusters of them: one alone shows no variance
_SAME_SET = "Rows of one set have the same value in it."


@dataclass(frozen=True, slots=True, kw_only=True)
class SidesOfSets:
    """The sides of the sets that have all groups, and what was left out."""

    sides: Sides
    n_rows: Integers  # each group's number of rows
    n_sets: int  # the number of sets, which ``sides`` has fewer of if several are in one cluster
    is_clustered: bool  # whether whole clusters of sets are exchanged
    n_left_out: int  # the number of sets without rows of all groups
    n_strata_left_out: int  # the number of strata that have sets, but too few
    compared: Booleans  # which of the table's strata are compared
    weight: float | None  # the total weight of the sets; None if all weigh the same

    @property
    def n_strata(self) -> int:
        """The number of strata that are compared."""
        return len(self.sides.share)

    @property
    def counts(self) -> dict[str, float]:
        """The numbers of sets and, if there are any, of clusters, and the weight of the sets."""
        found: dict[str, float] = {"sets": self.n_sets}
        if self.is_clustered:
            found["clusters"] = len(self.sides.totals)
        if self.weight is not None:
            found["weight"] = self.weight
        return found

    def base_sizes(self, metric: Metric) -> Integers:
        """Return on how many sets or clusters each group's value rests: of a rate, on its base."""
        totals = self.sides.totals
        bases = [(totals @ base > 0).sum(axis=0) for base in metric.bases().values()]
        found = np.min(bases, axis=0) if bases else np.full(totals.shape[1], len(totals))
        return found.astype(np.int64)

    def notes(self) -> Iterator[str]:
        """Yield notes on what was left out."""
        k, n = self.sides.totals.shape[1], self.n_left_out
        if n:
            every, were = "both" if k == 2 else "all", "was" if n == 1 else "were"
            yield (
                f"{format_count(n, 'set')} without rows of {every} groups {were} left out; "
                f"{self.n_sets:,} remain."
            )
        if n := self.n_strata_left_out:
            strata, were = format_count(n, "stratum", "strata"), "was" if n == 1 else "were"
            yield (
                f"{strata} with fewer than two sets that the metric rests on {were} left out; "
                f"{self.n_strata:,} remain."
            )


def read_sides(
    table: Sample,
    metric: Metric,
    groups: tuple[Hashable, ...],
    stratum_weights: object = None,
    compared: Booleans | None = None,
) -> SidesOfSets:
    """Return the mean contributions of each group in every set that has all, in any order."""
    # the strata to compare are those of another metric, if given
    k = len(groups)
    place = np.full(len(table.groups), -1)
    place[[table.groups.index(group) for group in groups]] = np.arange(k)
    chosen = np.flatnonzero(place[table.group] >= 0)
    if table.matched is None:
        raise TypeError("the table was read without matched sets")
    names, which = np.unique(table.matched[chosen], return_inverse=True)
    which = which.ravel()
    at = k * which + place[table.group[chosen]]
    n: Array = np.bincount(at, table.count[chosen], k * len(names)).reshape(-1, k).astype(float)
    whole = np.asarray((n > 0).all(axis=1))
    if whole.sum() < _MIN_UNITS:
        rule = f"names of at least two sets with rows of {listed(groups)}"
        every = "both" if k == 2 else "all"
        got = Shown(f"{format_count(int(whole.sum()), 'set')} with {every}, of {len(names):,}")
        raise InputError("matched", rule, got, _SAME_SET)
    rows = np.flatnonzero(whole[which])
    n, which, chosen = n[whole], (np.cumsum(whole) - 1)[which[rows]], chosen[rows]
    means = _average(table, metric, chosen, k * which + place[table.group[chosen]], n)
    stratum = _value_of_sets("control_features", table.stratum[chosen], which)
    weight: Array = np.ones(len(means))
    if table.weight is not None:
        weight = _value_of_sets("sample_weight", table.weight[chosen], which)
    cluster: Places = np.arange(len(means))
    if table.cluster is not None:
        cluster = _value_of_sets("cluster", table.cluster[chosen], which)
        _check_strata_of_clusters(cluster, stratum)
    shares: Array = np.bincount(stratum, weight, len(table.strata)).astype(float)
    if stratum_weights is not None:
        shares = read_stratum_weights(table, stratum_weights) * (shares > 0)
    is_weighted = bool((weight != weight[0]).any())
    is_clustered = len(np.unique(cluster)) < len(cluster)
    scaled = means * weight[:, None, None] if is_weighted else means
    totals, of_units = _add_up(scaled, cluster, stratum) if is_clustered else (scaled, stratum)
    if compared is None:
        compared = _find_compared(metric, totals, of_units, shares)
    if np.bincount(of_units).max() < _MIN_UNITS:
        rule = "names of at least two sets of one stratum"
        raise InputError("matched", rule, Shown("none"), _SAME_SET)
    if not compared.any():
        rule = "defined in at least two sets of one stratum"
        hint = "Compare another metric, or within fewer strata."
        raise UndefinedMetricError("metric", rule, metric.name, hint)
    kept, of_sets = compared[of_units], compared[stratum]
    number = np.cumsum(compared) - 1
    return SidesOfSets(
        sides=Sides(
            totals[kept],
            number[of_units[kept]],
            shares[compared] / shares[compared].sum(),
            is_weighted or is_clustered,
        ),
        n_rows=n[of_sets].sum(axis=0).astype(np.int64),
        n_sets=int(of_sets.sum()),
        is_clustered=is_clustered,
        n_left_out=int((~whole).sum()),
        n_strata_left_out=int(((shares > 0) & ~compared).sum()),
        compared=compared,
        weight=float(weight[of_sets].sum()) if is_weighted else None,
    )


def _average(table: Sample, metric: Metric, chosen: Places, at: Places, n: Array) -> Array:
    """Return the mean contributions of these rows by set and group, whose number of rows is n."""
    count = table.count[chosen]
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        of_chosen = {name: one[chosen] for name, one in table.columns.items()}
        contributions = metric.checked_matrix(of_chosen)
    if not np.isfinite(contributions).all():
        got = Shown(f"infinite or undefined ones of {metric.name}")
        raise InputError("metric", "made of finite numbers", got, "Are values too large for it?")
    # sums of rows in the order of their values: the user's order of rows changes no digit
    order = np.lexsort([*contributions.T, at])
    means, scales = (
        np.stack(
            [np.bincount(at[order], (count * one)[order], n.size) for one in columns], axis=-1
        ).reshape(*n.shape, -1)
        / n[..., None]
        for columns in (contributions.T, np.abs(contributions.T))
    )
    for j in range(means.shape[-1]):  # repeated answers change the last digits of a mean
        means[..., j] = equate_close(means[..., j], _ROUNDING * scales[..., j])
    return means


def _value_of_sets(name: str, values: NDArray[Any], which: Places) -> NDArray[Any]:
    """Return what all rows of each set share. Raises InputError if those of one do not."""
    order = np.argsort(which, kind="stable")
    starts = np.flatnonzero(np.diff(which[order], prepend=-1))
    lowest, highest = (of.reduceat(values[order], starts) for of in (np.minimum, np.maximum))
    if n := int((lowest != highest).sum()):
        rule = f"alike in all rows of one set of {argument('matched')}"
        hint = {
            "control_features": "Make sets inside the strata, and clusters of these sets.",
            "cluster": "Whole sets move with their cluster.",
            "sample_weight": "A weight says how much its set counts.",
        }[name]
        got = Shown(f"several in {format_count(n, 'set')}")
        raise InputError(name, rule, got, hint)
    return np.asarray(lowest)


def _check_strata_of_clusters(cluster: Places, stratum: Places) -> None:
    """Raise InputError if the sets of one cluster are not in one stratum."""
    pairs = np.unique(np.stack([cluster, stratum]), axis=1)
    if n := int((np.bincount(pairs[0]) > 1).sum()):
        rule = f"in one stratum of {argument('control_features')} each"
        got = Shown(format_count(n, "cluster that is in several", "clusters that are in several"))
        raise InputError("cluster", rule, got, "Whole clusters of sets are exchanged.")


def _add_up(sides: Array, cluster: Places, stratum: Places) -> tuple[Array, Places]:
    """Return the sums of the sides of each cluster's sets, and its stratum."""
    order = np.lexsort([*sides.reshape(len(sides), -1).T[::-1], cluster])
    starts = np.flatnonzero(np.diff(cluster[order], prepend=-1))
    totals = np.add.reduceat(sides[order], starts)
    sizes = np.add.reduceat(np.abs(sides[order]), starts)
    for j in range(totals.shape[-1]):
        totals[..., j] = equate_close(totals[..., j], _ROUNDING * sizes[..., j])
    return totals, stratum[order[starts]]


def _find_compared(metric: Metric, totals: Array, stratum: Places, shares: Array) -> Booleans:
    """Return which strata count and have two units with rows of each base, in either group."""
    # no exchange changes which these are, so that a test without the others stays exact
    compared: Booleans = shares > 0
    if len(shares) == 1:
        return compared
    for coefficients in metric.bases().values():
        base = totals @ coefficients if coefficients.any() else np.ones(totals.shape[:2])
        in_base = (base > 0).any(axis=1)
        compared = compared & (np.bincount(stratum, in_base, len(shares)) >= _MIN_UNITS)
    return compared
