"""Groups of a table, side by side: what every test starts from and every result reports."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

from fairperm._utils import checks
from fairperm._utils.streams import OBSERVED, stream
from fairperm.engines.choice import choose_engine
from fairperm.engines.sample import Rows
from fairperm.errors import (
    InputError,
    InputTypeError,
    Shown,
    UndefinedMetricError,
    did_you_mean,
    listed,
    shown,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairperm.data.table import Table
    from fairperm.engines.choice import GroupsEngine, PairEngine
    from fairperm.engines.estimates import Estimates
    from fairperm.hypothesis_tests.plan import Plan
    from fairperm.metrics.definition import AnyMetric, Metric
    from fairperm.metrics.ranks import RankMetric
    from fairperm.metrics.variances import Variance

    Array = NDArray[np.float64]


_LITTLE = 0.1  # of the standard error
_NONE = 255  # place of groups that take no part


@dataclass(frozen=True, slots=True)
class Comparison:
    """The rows of two groups or more, what they contribute to a metric, the strata's weights."""

    metric: AnyMetric
    groups: tuple[Hashable, ...]
    rows: Rows
    weights: Array | None
    score_bins: int | None = None

    @classmethod
    def of(
        cls, table: Table, plan: Plan, groups: tuple[Hashable, ...], stratum_weights: object
    ) -> Comparison:
        """Pick the rows of these groups of the table."""
        place = np.full(len(table.groups), _NONE, np.uint8)
        place[[table.groups.index(one) for one in groups]] = np.arange(len(groups))
        side = place[table.group]
        wanted = side != _NONE
        chosen: NDArray[np.intp] | slice = slice(None) if wanted.all() else np.flatnonzero(wanted)
        columns = {name: column[chosen] for name, column in table.columns.items()}
        present, stratum = _present(table.stratum[chosen], len(table.strata))
        weights = _weights(table, stratum_weights)
        if table.contributions is None:
            contributions = _contributions(plan.metric.parts, columns)
        else:
            contributions = table.contributions[chosen]
        rows = Rows(
            columns=columns,
            contributions=contributions,
            side=side[chosen],
            stratum=stratum,
            block=plan.block(columns),
            count=table.count[chosen],
            n_strata=len(present),
            n_groups=len(groups),
            weight=None if table.weight is None else table.weight[chosen],
            cluster=None if table.cluster is None else table.cluster[chosen],
            alike=None if table.alike is None else table.alike[chosen],
        )
        if not np.isfinite(rows.contributions).all():
            got = Shown(f"{plan.metric.name} with others")
            hint = "Are numbers too large for it, or undefined?"
            raise InputError("metric", "made of finite numbers", got, hint)
        if rows.cluster is not None:
            _check_clusters(rows, rows.cluster, table, groups)
        weights = None if weights is None else weights[present]
        return cls(plan.metric, groups, rows, weights, table.score_bins)

    @property
    def parts(self) -> tuple[Metric | RankMetric, ...]:
        """Return the metrics whose gaps are compared: one, or those of a joint metric."""
        return self.metric.parts

    @overload
    def engine(self, variance: Variance | None, n_bootstrap: int = 0) -> PairEngine: ...
    @overload
    def engine(self, variance: Variance | None, *, many: Literal[True]) -> GroupsEngine: ...
    def engine(
        self, variance: Variance | None, n_bootstrap: int = 0, *, many: bool = False
    ) -> PairEngine | GroupsEngine:
        """Return the engine of two groups, or of ``many``."""
        names = tuple(f"group {shown(group)}" for group in self.groups)
        units, weights = self.units(), self.weights
        if many:
            return choose_engine(self.parts, units, weights, names, variance, many=True)
        return choose_engine(self.parts, units, weights, names, variance, n_bootstrap)

    def unstratified(self) -> Comparison:
        """Return the same groups with all strata as one."""
        rows = replace(self.rows, stratum=np.zeros_like(self.rows.stratum), n_strata=1)
        return replace(self, rows=rows, weights=None)

    def units(self) -> Rows:
        """Return the rows, weights and clusters summed up unless the metric has no totals."""
        has_totals = all(part.has_totals for part in self.parts)
        return self.rows.summed() if has_totals else self.rows.apart()

    def together(self, estimates: Estimates, variance: Variance | None) -> Estimates:
        """Return the estimates of all strata as one, in the user's order of the groups."""
        if self.rows.n_strata == 1:
            return estimates
        engine = self.unstratified().engine(variance)
        return engine.observed(stream(0, OBSERVED))

    def values(self, together: Estimates) -> dict[Hashable, Any]:
        """Return the metric in each group; say so if it is undefined."""
        values = together.value[:, 0, 0]
        for part, both in zip(self.parts, values, strict=True):
            for group, value in zip(self.groups, both, strict=True):
                if np.isnan(value):
                    got = Shown(f"{part.name} of group {shown(group)}, which has {_lack(part)}")
                    hint = "Compare another metric, or groups with more rows."
                    raise UndefinedMetricError("metric", "defined in every group", got, hint)
        return self.by_group(values)

    def by_group(self, values: Array) -> dict[Hashable, Any]:
        """Return values by part and group as a number for each group, or one for each part."""
        if len(values) == 1:
            return {group: float(one) for group, one in zip(self.groups, values[0], strict=True)}
        return {
            group: {
                part.name: float(both[side]) for part, both in zip(self.parts, values, strict=True)
            }
            for side, group in enumerate(self.groups)
        }

    def scale(self, observed: Estimates) -> Array:
        """Return the size of each part's values, which rounding errors are relative to."""
        spans = np.array([part.span for part in self.parts])
        sizes = np.nanmax(np.abs(observed.value), axis=(1, 2, 3))
        return np.where(np.isfinite(spans), spans, sizes)

    def totals(self) -> dict[Hashable, dict[str, float]]:
        """Return each group's number of rows, and the totals that the values are made of."""
        rows = self.rows
        weight = rows.count if rows.weight is None else rows.count * rows.weight
        n_rows = np.bincount(rows.side, rows.count, len(self.groups))
        names = [(part.name, name) for part in self.parts for name in part.contributions]
        shown_columns = {
            (part, name): _sums(rows.side, weight * column, len(self.groups))
            for (part, name), column in zip(names, rows.contributions.T, strict=False)
            if not name.startswith("_")
        }
        result: dict[Hashable, dict[str, float]] = {}
        for side, group in enumerate(self.groups):
            result[group] = {"rows": int(n_rows[side])}
            if rows.cluster is not None:
                result[group]["clusters"] = _n_clusters(rows, rows.cluster, side)
            for (part, name), totals in shown_columns.items():
                if name != "rows":
                    prefix = f"{part} " if len(self.parts) > 1 else ""
                    result[group][prefix + name] = _whole(totals[side])
                elif rows.weight is not None:
                    result[group]["weight"] = _whole(totals[side])
        return result

    def binning_errors(self) -> Array | None:
        """Return how far off each group's AUC can be, as scores were put into bins.

        Of two rows of unlike label in one bin the AUC counts one half where the scores would have
        counted 0 or 1. With strata, the largest of theirs and of all together.
        """
        if self.score_bins is None or not self.parts[0].is_rank:
            return None
        rows = self.rows
        label, place = rows.contributions.T
        bins, bin_of = np.unique(place, return_inverse=True)
        shape = (2, len(self.groups), rows.n_strata, len(bins))
        counts = np.zeros(shape)
        at = (label > 0).astype(np.intp), rows.side, rows.stratum, bin_of.ravel()
        np.add.at(counts, at, rows.count if rows.weight is None else rows.count * rows.weight)
        counts = np.concatenate([counts, counts.sum(axis=2, keepdims=True)], axis=2)
        with np.errstate(invalid="ignore"):
            pairs = counts[0].sum(axis=-1) * counts[1].sum(axis=-1)
            error: Array = (counts[0] * counts[1]).sum(axis=-1) / (2 * pairs)
        largest: Array = np.nanmax(error, axis=1)
        return largest

    def binned(self, bounds: Array | None, error: Array) -> list[str]:
        """Return a note if bins of scores may have moved the gap by more than a little.

        ``bounds`` are the binning errors, ``error`` is the gap's standard error; or of many groups,
        each value's, which then are compared.
        """
        if bounds is None:
            return []
        is_gap = error.size == 1
        moved = np.array([bounds.sum()]) if is_gap else bounds
        if not (moved > _LITTLE * error).any():
            return []
        worst = int(np.argmax(moved - _LITTLE * error))
        what = "the gap" if is_gap else f"the AUC of group {shown(self.groups[worst])}"
        return [
            f"Scores were put into bins, which can have moved {what} by up to {moved[worst]:.2g}; "
            f"its standard error is {error[worst]:.2g}. More score_bins make it less."
        ]

    def check_strata(self, observed: Estimates, weights: Array | None) -> list[str]:
        """Say so if a stratum that has weight, or every stratum, has no gap.

        Strata that say nothing of the gap are a note.
        """
        if self.rows.n_strata == 1 and weights is None:
            return []
        present = np.zeros((self.rows.n_strata, len(self.groups)), bool)
        present[self.rows.stratum, self.rows.side] = True
        shared = np.asarray(present.all(axis=1))
        if not shared.any():
            raise UndefinedMetricError(
                "control_features must have a stratum with rows of every group; got "
                f"{len(shared):,} strata with rows of only some. Use coarser strata."
            )
        for i, part in enumerate(self.parts):
            _check_defined_in_strata(part.name, observed.value[i, 0], observed.size[i, 0], weights)
        if weights is not None or shared.all():
            return []
        return [
            f"{(~shared).sum():,} of {len(shared):,} strata have no rows of some group and "
            "say nothing of the gap; their rows carry no weight."
        ]


def _sums(side: NDArray[np.uint8], values: Array, n_groups: int) -> Array:
    """Return each group's sum, rounded once: the order of rows changes no digit."""
    if (values == np.floor(values)).all():
        return np.bincount(side, values, n_groups).astype(np.float64)
    return np.array([math.fsum(values[side == group]) for group in range(n_groups)])


def _n_clusters(rows: Rows, cluster: NDArray[np.integer[Any]], side: int) -> int:
    """Return how many clusters a group has."""
    mine = np.flatnonzero(rows.side == side)
    _, first = np.unique(cluster[mine], return_index=True)
    return len(first) if rows.alike is None else int(rows.alike[mine[first]].sum())


def _lack(part: Metric | RankMetric) -> str:
    """Say what a group lacks in which this part of the metric is undefined."""
    if part.has_denominator:
        return f"no {part.among}"
    return "too few rows of some kind that it needs, or rows too much alike"


def _contributions(
    parts: Sequence[Metric | RankMetric], columns: Mapping[str, NDArray[Any]]
) -> Array:
    """Return what each row contributes to the parts."""
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        matrices = [part.checked_matrix(columns) for part in parts]
    return matrices[0] if len(matrices) == 1 else np.hstack(matrices)


def _present(
    stratum: NDArray[np.integer[Any]], n_strata: int
) -> tuple[NDArray[np.intp], NDArray[np.integer[Any]]]:
    """Return the strata that have rows, and each row's place among them."""
    if n_strata == 1:
        return np.zeros(1, np.intp), stratum
    present, inverse = np.unique(stratum, return_inverse=True)
    return present.astype(np.intp), inverse.ravel()


def _check_clusters(
    rows: Rows, cluster: NDArray[np.integer[Any]], table: Table, groups: tuple[Hashable, ...]
) -> None:
    """Say so if a cluster's rows are not all of one group and of one stratum."""
    order = np.argsort(cluster, kind="stable")
    same = cluster[order][1:] == cluster[order][:-1]
    for name, value, names in (
        ("group", rows.side, groups),
        ("stratum", rows.stratum, table.strata),
    ):
        split = np.flatnonzero(same & (value[order][1:] != value[order][:-1]))
        if split.size:
            at = order[split[0]], order[split[0] + 1]
            which = table.clusters[cluster[at[0]]]
            found = listed(names[value[i]] for i in at)
            raise InputError(
                f"cluster must keep to one {name}: whole clusters are exchanged; got cluster "
                f"{shown(which)} with rows of {found}. Use a finer cluster, such as one per "
                f"{name} and member."
            )


def _check_defined_in_strata(name: str, value: Array, size: Array, weights: Array | None) -> None:
    defined: NDArray[np.bool_] = np.isnan(value).sum(axis=1) == 0
    where = f"in which {name} is defined in every group"
    if not defined.any():
        raise UndefinedMetricError(
            f"control_features must have a stratum {where}; got {len(defined):,} strata "
            "and none such. Use coarser strata."
        )
    used = (size > 0).all(axis=1) if weights is None else weights > 0
    if not used.any() or not defined[used].all():
        argument = "control_features" if weights is None else "stratum_weights"
        raise UndefinedMetricError(
            f"{argument} must give weight to strata {where}, and to no others; got "
            f"{(used & ~defined).sum():,} others among {used.sum():,} strata with weight. "
            "Use coarser strata, or stratum_weights of 0."
        )


def _whole(total: float) -> float:
    """Return counts as integers and other totals as they are."""
    return int(total) if float(total).is_integer() else float(total)


def _weights(table: Table, given: object) -> NDArray[np.float64] | None:
    if given is None:
        return None
    if not isinstance(given, Mapping):
        rule = "a mapping of strata to weights"
        raise InputTypeError("stratum_weights", rule, given)
    for stratum in given:
        if stratum not in table.strata:
            rule = f"a mapping with strata of control_features ({listed(table.strata)}) as keys"
            hint = did_you_mean(stratum, table.strata)
            raise InputError("stratum_weights", rule, stratum, hint)
    missing = [stratum for stratum in table.strata if stratum not in given]
    if missing:
        rule = f"a mapping with a weight for every stratum, and {listed(missing)} has none"
        hint = "Give strata that should not count a weight of 0."
        raise InputError("stratum_weights", rule, given, hint)
    number = "a mapping of strata to finite numbers"
    weights = [checks.number("stratum_weights", given[one], number) for one in table.strata]
    if min(weights) < 0 or max(weights) <= 0:
        rule = "made of weights that are not negative, and not all zero"
        raise InputError("stratum_weights", rule, given)
    # a power of two rounds nothing, and then no sum of weights overflows or vanishes
    scaled: NDArray[np.float64] = np.ldexp(weights, -np.frexp(max(weights))[1])
    return scaled
