"""Checks of a comparison: its strata, its clusters, its numbers and its values."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fairperm._utils import checks
from fairperm._utils.arrays import Array
from fairperm._utils.formatting import Units, drop_decimals, format_count
from fairperm.data.sample import Sample
from fairperm.errors import (
    InputError,
    InputTypeError,
    Note,
    Shown,
    UndefinedMetricError,
    argument,
    did_you_mean,
    listed,
    shown,
)
from fairperm.metrics.definition import AnyMetric, Scheme, Variance, by_part

if TYPE_CHECKING:
    from fairperm.hypothesis_tests.comparison import Comparison


REVERSED_SCORES = Note(
    "roc_auc is below 0.5 in every group: higher scores go with negative labels. Check the "
    f"direction of the scores, and {argument('pos_label')}."
)
REVERSED_MODELS = tuple(
    Note(
        f"roc_auc of the {age} model is below 0.5 in every group: its higher scores go with "
        f"negative labels. Check the direction of {argument(name)}, and {argument('pos_label')}."
    )
    for age, name in (("old", "y_score"), ("new", "y_score_new"))
)


def read_stratum_weights(table: Sample, given: object) -> Array:
    """Return the weight of every stratum. Raises InputError for bad ones."""
    if not isinstance(given, Mapping):
        raise InputTypeError("stratum_weights", "a mapping of strata to weights", given)
    strata = argument("control_features")
    for stratum in given:
        if stratum not in table.strata:
            rule = f"a mapping with strata of {strata} ({listed(table.strata)}) as keys"
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
    scaled: Array = np.ldexp(weights, -np.frexp(max(weights))[1])
    return scaled


def check_rows(
    rows: Sample, metric: AnyMetric, table: Sample, groups: tuple[Hashable, ...]
) -> None:
    """Raise InputError for contributions that are not finite, and for split clusters."""
    if not np.isfinite(rows.contributions).all():
        got = Shown(f"infinite or undefined ones of {metric.name}")
        hint = "Are values too large for it?"
        raise InputError("metric", "made of finite numbers", got, hint)
    if rows.cluster is not None:
        _check_clusters(rows, rows.cluster, table, groups)


def _check_clusters(
    rows: Sample, cluster: NDArray[np.integer[Any]], table: Sample, groups: tuple[Hashable, ...]
) -> None:
    """Raise InputError if the rows of a cluster are not all of one group and one stratum."""
    order = np.argsort(cluster, kind="stable")
    same = cluster[order][1:] == cluster[order][:-1]
    for name, value, names in (
        ("group", rows.group, groups),
        ("stratum", rows.stratum, table.strata),
    ):
        split = np.flatnonzero(same & (value[order][1:] != value[order][:-1]))
        if split.size:
            at = order[split[0]], order[split[0] + 1]
            which = table.clusters[cluster[at[0]]]
            found = listed(names[value[i]] for i in at)
            n = len(np.unique(cluster[order[split]]))
            more = f", and {format_count(n - 1, 'more cluster')} like it" if n > 1 else ""
            raise InputError(
                f"{argument('cluster')} must keep to one {name}: whole clusters are exchanged; got "
                f"cluster {shown(which)} with {rows.units} of {found}{more}. Use a finer cluster. "
                f"Tests of metrics and audits can make one per {name}: "
                f"{argument('split_clusters', True)}."
            )


def check_values(comparison: Comparison, values: Array) -> None:
    """Raise UndefinedMetricError if a part of the metric has no value in a group."""
    rows, units = comparison.rows, comparison.rows.units
    for (part, columns), by_group in zip(by_part(comparison.parts), values, strict=True):
        for place, (group, value) in enumerate(zip(comparison.groups, by_group, strict=True)):
            if np.isnan(value):
                if part.is_function:
                    got = Shown(f"NaN or infinity from {part.name} in group {shown(group)}")
                    hint = "Compare groups in which it is defined."
                    raise UndefinedMetricError("metric", "finite in every group", got, hint)
                lack = (
                    f"too few {units} of some kind that it needs, or {units} that are too similar"
                )
                found = part.find_lacking(rows.contributions[rows.group == place, columns])
                raise undefined_in(group, part.name, found or lack, units)


def undefined_in(
    group: Hashable, metric: str, lack: str, units: Units = "rows"
) -> UndefinedMetricError:
    """Return the error for a group in which a metric has no value."""
    got = Shown(f"{metric} of group {shown(group)}, which has {lack}")
    hint = f"Compare another metric, or groups with more {units}."
    return UndefinedMetricError("metric", "defined in every group", got, hint)


def note_reversed_scores(comparison: Comparison, values: Array) -> list[str]:
    """Return a note if the AUC is below 0.5 in every group."""
    of_chance = comparison.metric.value_of_chance
    return [REVERSED_SCORES] if of_chance is not None and (values < of_chance).all() else []


def find_compared_strata(
    table: Sample,
    metric: AnyMetric,
    scheme: Scheme,
    groups: tuple[Hashable, ...],
    weights: Array | None,
) -> NDArray[np.bool_]:
    """Return which strata of a table are compared: those with ``weights``, if these are given.

    Otherwise they are those in which some exchange of labels gives every group a value of some
    part. No exchange changes which these are, so a test without the others stays exact.
    """
    if weights is not None:
        counts = _count_units(table, groups, None)
        is_lacking = counts.any(axis=1) & ~counts.all(axis=1) & (weights != 0)
        return np.asarray((weights != 0) | is_lacking.any())  # such weights are refused
    is_fixed = scheme.fixes_denominator or scheme == Scheme.WITHIN_LABEL
    compared = np.zeros(len(table.strata), bool)
    for in_base in _list_bases(table, metric):
        in_groups = _count_units(table, groups, in_base)
        moving = in_groups if is_fixed else _count_units(table, groups, None)
        compared |= (moving > 0).all(axis=1) & (in_groups.sum(axis=1) >= len(groups))
    return compared


def find_shared_strata(table: Sample, groups: tuple[Hashable, ...]) -> NDArray[np.bool_]:
    """Return which strata of a table have rows of every one of these groups."""
    return np.asarray((_count_units(table, groups, None) > 0).all(axis=1))


def _list_bases(table: Sample, metric: AnyMetric) -> list[NDArray[np.bool_] | None]:
    """Return the rows of the denominator of each part of a metric; None for all rows."""
    found: list[NDArray[np.bool_] | None] = []
    start = 0
    for part in metric.parts:
        if not part.sizes_groups:
            return [None]
        if not table.contributions.size:
            found.append(part.matrix(table.columns)[:, 1] > 0)
        else:
            found.append(table.contributions[:, start + 1] > 0)
        start += len(part.contributions)
    return found or [None]


def _count_units(
    table: Sample, groups: tuple[Hashable, ...], in_base: NDArray[np.bool_] | None
) -> NDArray[np.int64]:
    """Return by stratum and group the numbers of rows, or of clusters with rows, of a base."""
    rows = np.flatnonzero(table.count if in_base is None else in_base & (table.count > 0))
    count = table.count[rows]
    if table.cluster is not None:
        _, first = np.unique(table.cluster[rows], return_index=True)
        rows = rows[first]
        count = np.ones(len(rows), np.int64) if table.alike is None else table.alike[rows]
    counts = np.zeros((len(table.strata), len(table.groups)), np.int64)
    np.add.at(counts, (table.stratum[rows], table.group[rows]), count)
    return counts[:, [table.groups.index(one) for one in groups]]


def note_reversed_models(change: AnyMetric, old: Array, new: Array) -> list[str]:
    """Return a note for each model whose AUC is below 0.5 in every group."""
    if change.closed_variance != Variance.DELONG:
        return []
    pairs = zip(REVERSED_MODELS, (old, new), strict=True)
    return [note for note, values in pairs if (values < 0.5).all()]


def check_strata(
    comparison: Comparison, values: Array, sizes: Array, weights: Array | None
) -> list[str]:
    """Return a note on strata in which some group has no value, which do not count.

    ``values`` and ``sizes`` are given by part, stratum and group.

    Raises UndefinedMetricError if a stratum that has weight, or every stratum, has no gap.
    """
    if comparison.n_strata == 1 and weights is None:
        return []
    whole, units = comparison.whole.rows, comparison.rows.units
    shared = find_shared_strata(whole, whole.groups)
    if not shared.any():
        raise UndefinedMetricError(
            f"{argument('control_features')} must have a stratum with {units} of every group; got "
            f"{len(shared):,} strata with {units} of only some. Use coarser strata."
        )
    for i, part in enumerate(comparison.parts):
        check_defined_in_strata(part.name, values[i], sizes[i], weights)
    return note_strata(comparison, weights)


def note_strata(comparison: Comparison, weights: Array | None) -> list[str]:
    """Return a note on strata in which some group has no rows, or none of a denominator.

    Users know of those that they give no weight.
    """
    if weights is not None:
        return []
    whole = comparison.whole
    units = whole.rows.units
    among: str = units
    rows, has_gap = whole.rows, find_shared_strata(whole.rows, whole.groups)
    counts = [
        _count_units(rows, whole.groups, rows.contributions[:, place.start + 1] > 0)
        for part, place in by_part(whole.parts)
        if part.sizes_groups
    ]
    if len(counts) == len(whole.parts):
        has_base: NDArray[np.bool_] = np.any([one.all(axis=1) for one in counts], axis=0)
        if len(counts) == 1 and not (has_base == has_gap).all():
            among = whole.parts[0].among
        has_gap = has_base
    if has_gap.all():
        return []
    lost = ~has_gap[rows.stratum]
    by_group = np.bincount(rows.group[lost], rows.count[lost], len(whole.groups)).astype(int)
    each = listed(
        Shown(f"{n:,} of group {shown(drop_decimals(group))}")
        for n, group in zip(by_group.tolist(), whole.groups, strict=True)
        if n
    )
    return [
        f"{(~has_gap).sum():,} of {len(has_gap):,} strata have no {among} of some group: they say "
        f"nothing about the gap, and their {units} ({each}) carry no weight."
    ]


def check_defined_in_strata(name: str, value: Array, size: Array, weights: Array | None) -> None:
    """Raise UndefinedMetricError if a stratum (axis 0) that counts has no gap."""
    defined: NDArray[np.bool_] = np.isnan(value).sum(axis=1) == 0
    where = f"in which {name} is defined in every group"
    if not defined.any():
        raise UndefinedMetricError(
            f"{argument('control_features')} must have a stratum {where}; got {len(defined):,} "
            "strata without one. Use coarser strata."
        )
    used = (size > 0).all(axis=1) if weights is None else weights != 0
    if not used.any() or not defined[used].all():
        name = "control_features" if weights is None else "stratum_weights"
        raise UndefinedMetricError(
            f"{argument(name)} must give weight to strata {where}, and to no other; got weight on "
            f"{used.sum():,} strata, {(used & ~defined).sum():,} of them without a gap. "
            f"Use coarser strata, or {argument('stratum_weights')} of 0."
        )
