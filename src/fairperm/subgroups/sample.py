"""The sample of a search: rows whose group is their cell of features, and what they count."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairperm._utils.arrays import Array, Integers, Places
from fairperm._utils.sorting import order_by
from fairperm.data.arguments import Inputs
from fairperm.data.indexes import check_indexes
from fairperm.data.reading import open_source, read_table
from fairperm.data.sample import Sample
from fairperm.errors import InputError, argument, listed
from fairperm.hypothesis_tests.comparison_checks import check_rows
from fairperm.hypothesis_tests.plan import Plan
from fairperm.metrics.definition import AnyMetric, Metric, Scheme, Variance
from fairperm.metrics.ranks import RankMetric
from fairperm.metrics.registry import get_metric
from fairperm.subgroups.features import Feature, check_names, describe, read_features


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchedRows:
    """What a search needs of the data."""

    # the features, and the level of every cell in each of them
    features: Sequence[Feature]
    levels: Places
    table: Sample  # the rows, each cell a group
    # the metric for these data, how outcomes are exchanged, and what studentizes the gaps
    metric: Metric | RankMetric
    plan: Plan
    variance: Variance
    units: Sample  # what outcomes are exchanged between: rows that the metric rests on, or clusters
    n_rows: Integers  # rows of each cell
    sizes: Array  # by cell, the numbers that must reach ``min_rows``: see :meth:`Metric.bases`

    @property
    def value(self) -> float:
        """The metric of all rows."""
        counts = self.units.count * self.units.weight_of_each()
        return float(self.metric.value_of(counts, self.units.contributions))

    @property
    def base_names(self) -> tuple[str, ...]:
        """What ``sizes`` count, in words."""
        names = tuple(self.metric.base_rows(self.units.contributions[:1]))
        if self.table.cluster is None:
            return names
        if self.metric.is_rank:
            return tuple(f"clusters with {one}" for one in names)
        return ("clusters",)


def read_sample(inputs: Inputs, features: object, metric: object, bands: int) -> SearchedRows:
    """Read the features and the columns that the metric needs. Raises InputError for bad ones."""
    chosen = get_metric(metric).for_arguments(inputs)
    given = {"y_true": inputs.y_true, "y_pred": inputs.y_pred, "y_score": inputs.y_score}
    check_indexes({**given, "features": features}, inputs.data, inputs.ignore_index)
    named_in = inputs.data if inputs.names_columns else None
    check_names(named_in, features)
    inputs, source = open_source(inputs, chosen)
    found = read_features(source, named_in, features, bands)
    columns = [feature.column for feature in found]
    table = read_table(replace(inputs, sensitive_features=columns), chosen, source)
    levels = np.array(table.groups, np.intp).reshape(len(table.groups), len(found))
    return make_sample(found, levels, table, chosen)


def make_sample(
    features: Sequence[Feature], levels: Places, table: Sample, metric: AnyMetric
) -> SearchedRows:
    """Return the sample of a table whose groups are cells of features."""
    table = _leave_out_strata(table, metric)
    chosen = metric.for_table(table, table.groups)
    weighted, clustered = table.weight is not None, table.cluster is not None
    plan = Plan.choose(
        chosen,
        "auto",
        "auto",
        weighted=weighted,
        clustered=clustered,
        stratified=len(table.strata) > 1,
    )
    if plan.scheme == Scheme.UNCONDITIONAL:
        plan = plan.with_permutations()
    variance = _check(plan)
    (part,) = chosen.parts
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        contributions = part.checked_matrix(table.columns)
    rows = replace(
        table,
        contributions=contributions,
        group=table.group.astype(np.int32),
        block=plan.scheme.block(chosen, table.columns),
    )
    names = tuple(_describe_cell(features, cell) for cell in levels) if clustered else table.groups
    check_rows(rows, chosen, table, names)
    n_rows = np.bincount(rows.group, rows.count, len(levels)).astype(np.int64)
    units = rows
    if weighted or clustered:
        units = rows.separate_clusters() if chosen.is_rank else rows.sum_units()
    sizes = _count_bases(part, units if clustered else rows, clustered=clustered)
    if plan.scheme == Scheme.DENOMINATOR:
        units = units.take(np.flatnonzero(units.block))
    keys = [units.stratum, units.group, *units.contributions.T, units.weight_of_each()]
    if units.cluster is not None:
        keys.append(units.cluster)
    units = units.take(order_by(keys))  # the user's order of rows must not matter
    return SearchedRows(
        features=features,
        levels=levels,
        table=table,
        metric=part,
        plan=plan,
        variance=variance,
        units=number_strata(units, units.stratum),
        n_rows=n_rows,
        sizes=sizes,
    )


def _leave_out_strata(table: Sample, metric: AnyMetric) -> Sample:
    """Return the table without strata in which no subgroup can be compared with the rest."""
    # all their rows, or those of a denominator that exchanges do not change, have equal features
    if len(table.strata) == 1:
        return table
    has_base = metric.has_denominator and table.weight is None and table.cluster is None
    rows = np.arange(len(table.group))
    if has_base:
        rows = np.flatnonzero(metric.parts[0].matrix(table.columns)[:, 1])
    pairs = np.unique(np.stack([table.stratum[rows], table.group[rows]]).astype(np.intp), axis=1)
    is_compared = np.bincount(pairs[0], minlength=len(table.strata)) > 1
    present = np.unique(table.stratum)
    lost = present[~is_compared[present]]
    if not lost.size or lost.size == present.size:
        return table
    left_out = np.isin(table.stratum, lost)
    among = metric.parts[0].among if has_base else "rows"
    note = (
        f"{lost.size:,} of {present.size:,} strata have {among} of at most one combination of "
        f"features: they say nothing about subgroups, and their {table.count[left_out].sum():,} "
        "rows are left out."
    )
    return replace(table.take(np.flatnonzero(~left_out)), notes=(*table.notes, note))


def number_strata(rows: Sample, stratum: NDArray[Any]) -> Sample:
    """Return the rows in these strata, numbered without gaps."""
    present, index = np.unique(stratum, return_inverse=True)
    return replace(rows, stratum=index.ravel(), strata=tuple(present.tolist()))


def _check(plan: Plan) -> Variance:
    """Return the variance. Raises InputError for a metric whose gaps it cannot studentize."""
    metric = plan.metric
    if metric.is_joint:
        rule, parts = "a single metric", listed(part.name for part in metric.parts)
        raise InputError("metric", rule, metric.name, f"Search with one of its parts: {parts}.")
    if metric.is_rank and not metric.is_auc:
        rule = "one whose subgroups can be searched"
        hint = metric.one_class_hint or f"Use {argument('metric', 'roc_auc')}."
        raise InputError("metric", rule, metric.name, hint)
    if plan.variance is None or not plan.has_closed_form:
        rule = "one whose standard error has a closed form"
        hint = "Define it with register_metric, as a function of means."
        raise InputError("metric", rule, metric.name, hint)
    return plan.variance


def _count_bases(part: Metric | RankMetric, rows: Sample, *, clustered: bool) -> Array:
    """Return by cell the numbers of rows that the metric's value rests on, or of clusters."""
    n = rows.n_groups
    if clustered and not part.is_rank:
        return np.bincount(rows.group, rows.count, n)[:, None].astype(np.float64)
    if rows.cluster is not None:  # one row of each label stands for its cluster
        pairs = np.stack([rows.cluster, rows.contributions[:, 0] > 0])
        rows = rows.take(np.unique(pairs, axis=1, return_index=True)[1])
        rows = replace(rows, count=np.ones(len(rows.count), np.int64))
    every = part.base_rows(rows.contributions).values()
    return np.stack([np.bincount(rows.group, rows.count * one, n) for one in every], axis=1)


def _describe_cell(features: Sequence[Feature], cell: Places) -> str:
    pairs = zip(features, cell, strict=True)
    return describe({feature.name: feature.levels[level] for feature, level in pairs})
