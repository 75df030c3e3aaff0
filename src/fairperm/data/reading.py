"""What the user passed, as a table of distinct rows with counts.

Values are looked at after counting, when a handful of distinct rows is left: whether labels
are binary, which values are missing and which groups there are costs nothing per row.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fairperm._utils.checks import choice
from fairperm.data.arguments import Inputs, check_cut, check_given, cut_of
from fairperm.data.columns import Column, Index, as_column, count_rows, indices_of
from fairperm.data.labels import (
    as_they_came,
    binary_columns,
    check_spelling,
    many_classes,
    sort_key,
)
from fairperm.data.lazy.choice import counted
from fairperm.data.sources import Made, Source, as_floats
from fairperm.data.table import Table
from fairperm.errors import InputError
from fairperm.metrics.kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from fairperm.metrics.definition import AnyMetric

_ROWS_NAMED = 5
_MOST_REPEATED = 1 << 24  # counted rows that are made rows again


def read_table(inputs: Inputs, metric: AnyMetric, source: Source | None = None) -> Table:
    """Count the distinct rows of what the metric needs, with their groups and strata.

    A ``source`` that has been read from before need not read a column again.
    """
    policy = choice("missing", inputs.missing, ("error", "drop"))
    check_given(inputs, metric)
    if source is None:
        inputs = counted(inputs, metric)
        source = Source(inputs.data)
    measured = _measured(source, inputs, metric)
    group = source.features("sensitive_features", inputs.sensitive_features)
    stratum = source.features("control_features", inputs.control_features)
    weight = source.weights(inputs.sample_weight)
    cluster = source.features("cluster", inputs.cluster)
    columns = [*measured.values(), *group, *stratum, *weight, *cluster]
    _check_lengths(columns)

    alike = None
    if source.count is None:
        rows, counts = count_rows(columns)
    elif source.sums is not None:
        rows, counts = indices_of(columns), source.count
    else:
        rows, counts, alike = _as_read(columns, source.count, source.alike)
    known = _known_rows(columns, rows, len(counts))
    if policy == "error" and not known.all():
        raise InputError(_where_missing(columns, rows, counts, named=source.count is None))
    if not known.any():
        hint = f"missing='drop' dropped all {counts.sum():,} rows." if counts.size else ""
        raise InputError(f"{columns[0].name} must have at least one row; got none. {hint}".rstrip())

    dropped = 0
    if not known.all():
        dropped = int(counts[~known].sum())
        counts = counts[known]
        alike = None if alike is None else alike[known]
        rows = [np.flatnonzero(known) if isinstance(one, slice) else one[known] for one in rows]
    index = iter(rows)
    read = _understood(measured, index, metric.kind, inputs.pos_label)
    groups, group_of = _named(group, index, len(counts))
    strata, stratum_of = _named(stratum, index, len(counts))
    weights = [np.asarray(one.values, np.float64)[next(index)] for one in weight]
    clusters, cluster_of = _named(cluster, index, len(counts))
    return Table(
        columns=read,
        group=group_of,
        stratum=stratum_of,
        count=counts,
        groups=groups,
        strata=strata,
        weight=weights[0] if weights else None,
        cluster=cluster_of if cluster else None,
        clusters=clusters,
        alike=alike,
        n_dropped=dropped,
        score_bins=source.score_bins,
        contributions=None if source.sums is None else source.sums.of(read.get("y_true"), known),
        notes=source.notes,
    )


def _measured(source: Source, inputs: Inputs, metric: AnyMetric) -> dict[str, Column]:
    """Return the columns that the metric is made from, as they came."""
    if metric.kind.makes_predictions:
        label = source.column("y_true", inputs.y_true)
        return {"y_true": label, **_prediction(source, inputs)}
    if metric.kind == Kind.SEVERAL:
        return _for_several(source, inputs, metric)
    given = {"y_true": inputs.y_true, "y_pred": inputs.y_pred, "y_score": inputs.y_score}
    columns = {name: source.read(metric.kind, name, given[name]) for name in metric.columns}
    if metric.kind == Kind.PROBABILITY:
        _check_probability(columns["y_score"])
    return columns


def _for_several(source: Source, inputs: Inputs, metrics: AnyMetric) -> dict[str, Column]:
    """Return labels, predictions and scores for metrics of which some may need each.

    Predictions are those given, or made from the scores if none are.
    """
    columns = {"y_true": source.column("y_true", inputs.y_true)}
    if "y_pred" in metrics.columns:
        one = inputs if inputs.y_pred is None else replace(inputs, y_score=None)
        columns |= _prediction(source, one)
    if "y_score" in metrics.columns:
        columns["y_score"] = source.numbers("y_score", inputs.y_score)
        if any(one.kind == Kind.PROBABILITY for one in metrics.parts):
            _check_probability(columns["y_score"])
    return columns


def _check_probability(column: Column) -> None:
    values = np.asarray(column.values, np.float64)
    outside = values[(values < 0) | (values > 1)]
    if outside.size:
        hint = "Scale the scores to probabilities first."
        raise InputError(column.name, "from 0 to 1 for this metric", outside[0].item(), hint)


def _understood(
    measured: Mapping[str, Column],
    index: Iterator[Index],
    kind: Kind,
    pos_label: object,
) -> dict[str, NDArray[Any]]:
    """Return the rows' labels as truth values and their numbers as floats.

    A metric of any kind gets its values as they came.
    """
    named = {name: (column, next(index)) for name, column in measured.items()}
    if kind == Kind.CLASSES:
        check_spelling(named)
    if kind.keeps_values or (kind == Kind.LABELS and pos_label is None and many_classes(named)):
        return {name: as_they_came(column)[where] for name, (column, where) in named.items()}
    labels = {name: one for name, one in named.items() if name not in kind.number_columns}
    if pos_label is not None and not labels:
        raise InputError("pos_label", "left out: this metric has no labels", pos_label)
    result: dict[str, NDArray[Any]] = dict(binary_columns(labels, pos_label))
    for name, (column, where) in named.items():
        if name not in labels:
            result[name] = np.asarray(column.values, np.float64)[where]
    return result


def _prediction(source: Source, inputs: Inputs) -> dict[str, Column]:
    if isinstance(inputs.y_pred, Made):
        return {"y_pred": as_column(*source.find("y_score", inputs.y_pred))}
    if inputs.y_pred is not None:
        return {"y_pred": source.column("y_pred", inputs.y_pred)}
    if inputs.y_score is not None:
        name, given = source.find("y_score", inputs.y_score)
        return {"y_pred": _above(name, as_floats(name, given), inputs.threshold)}
    return {}


def _above(name: str, scores: NDArray[np.floating[Any]], threshold: object) -> Column:
    """Return the predictions ``score >= threshold``, missing where the score is."""
    cut = cut_of(threshold, scores.dtype.type)
    codes = (scores >= cut).view(np.uint8)
    unknown = np.isnan(scores)
    if unknown.all():
        return Column(name, codes | np.uint8(2), 0, (False, True, None, None))
    check_cut(name, float(np.nanmin(scores)), float(np.nanmax(scores)), cut, threshold)
    return Column(name, codes | unknown.view(np.uint8) << 1, 0, (False, True, None, None))


def _as_read(
    columns: Sequence[Column], counts: NDArray[np.int64], alike: NDArray[np.int64] | None
) -> tuple[list[Index], NDArray[np.int64], NDArray[np.int64] | None]:
    """Return counted rows as they would be had they been read: one by one if they hardly repeat.

    So the same engine draws the same numbers, whoever counted. Very many rows are left counted:
    they need not fit into memory. Of clusters that were counted, the rows of each one are.
    """
    rows = indices_of(columns)
    each = counts if alike is None else counts // alike
    if not any(one.is_unique for one in columns) or each.sum() > _MOST_REPEATED:
        return rows, counts, alike
    again = np.repeat(np.arange(len(counts)), each)
    repeated: list[Index] = [again if isinstance(one, slice) else one[again] for one in rows]
    if alike is None:
        return repeated, np.broadcast_to(np.int64(1), len(again)), None
    return repeated, alike[again], alike[again]


def _check_lengths(columns: Sequence[Column]) -> None:
    first = columns[0]
    for column in columns[1:]:
        if len(column) != len(first):
            rule = f"as long as {first.name} ({len(first):,} rows)"
            raise InputError(column.name, rule, len(column), "Pass columns of one length.")


def _known_rows(columns: Sequence[Column], rows: Sequence[Index], n_rows: int) -> NDArray[np.bool_]:
    known = np.ones(n_rows, bool)
    for column, values in zip(columns, rows, strict=True):
        known &= ~column.missing()[values]
    return known


def _where_missing(
    columns: Sequence[Column], rows: Sequence[Index], counts: NDArray[np.int64], *, named: bool
) -> str:
    parts = []
    for column, values in zip(columns, rows, strict=True):
        missing = column.missing()
        if total := int(counts[missing[values]].sum()):
            first = column.rows_with(missing, _ROWS_NAMED)
            more = ", …" if total > len(first) else ""
            which = f" (rows {', '.join(map(str, first))}{more})" if named else ""
            parts.append(f"{column.name}: {total:,}{which}")
    hint = "Pass missing='drop' to leave these rows out; the result will say how many."
    found = "; ".join(dict.fromkeys(parts))  # scores and the predictions made of them are one
    return f"every column must be without missing values; got missing values in {found}. {hint}"


def _named(
    columns: Sequence[Column], index: Iterator[Index], n_rows: int
) -> tuple[tuple[Hashable, ...], NDArray[np.integer[Any]]]:
    """Return the sorted names of the groups (or strata) and each row's index among them."""
    rows = [one for _, one in zip(columns, index, strict=False)]
    if not rows:
        return ("all",), np.zeros(n_rows, np.uint8)
    shape = [len(column.values) for column in columns]
    distinct, inverse = _present(rows, shape)
    names: list[Hashable] = []
    for row in zip(*np.unravel_index(distinct, shape), strict=True):
        values = tuple(column.values[i] for column, i in zip(columns, row, strict=True))
        names.append(values if len(values) > 1 else values[0])
    order = sorted(range(len(names)), key=lambda i: sort_key(names[i]))
    narrow: type[np.integer[Any]] = np.uint8 if len(names) <= 256 else np.intp
    rank = np.argsort(order).astype(narrow)
    return tuple(names[i] for i in order), rank[inverse]


def _present(
    rows: Sequence[Any], shape: Sequence[int]
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the combinations that occur, as flat indices, and each row's place among them."""
    keys = rows[0] if len(rows) == 1 else np.ravel_multi_index(tuple(rows), shape)
    if math.prod(shape) > len(keys) + 2**16:
        distinct, inverse = np.unique(keys, return_inverse=True)
        return distinct, inverse.ravel()
    occurs = np.bincount(keys, minlength=math.prod(shape)) > 0
    return np.flatnonzero(occurs), (np.cumsum(occurs) - 1)[keys]
