"""Counts of equal clusters in a lazy frame.

Clusters are equal if they have the same group, the same stratum and the same number of rows of each
kind. One group-by makes these numbers, a second counts the clusters that agree in them; only the
second result is fetched.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from fairperm._utils.arrays import Integers
from fairperm.data.arguments import Inputs
from fairperm.data.columns import Source
from fairperm.data.lazy import counting
from fairperm.data.lazy.backends import fetch, nan_to_null, stage
from fairperm.data.lazy.counting import COUNT, SCORES, LazyRows

MAX_CELLS = 64  # kinds of rows, each of which is a column of the second query
_CLUSTER = "cluster 0"
_ALIKE, _PARTS = "clusters", "parts"


def count_clusters(lazy: LazyRows) -> Inputs | None:
    """Return the inputs with counted clusters as their data; None if they cannot be counted."""
    # they cannot if there are too many kinds of rows or of clusters, if rows have weights or are in
    # matched sets, or if a cluster has rows in several groups or strata
    names = [name for name in lazy.keys if name.startswith("cluster ")]
    have_more = any(one.startswith(("sample_weight ", "matched ")) for one in lazy.keys)
    if names != [_CLUSTER] or have_more:
        return None
    lazy = _replace_nan(lazy)
    outer = [one for one in lazy.keys if one.startswith(("sensitive_", "control_", "period "))]
    inner = [one for one in lazy.keys if one not in {*outer, _CLUSTER}]
    cells = _find_cells(lazy, inner, outer)
    if cells is None or len(cells.known) > MAX_CELLS:
        return None
    clusters = cells.count_per_cluster(lazy.rows, outer)
    with stage("looking for clusters in several groups", lazy.rows):
        parts = clusters.group_by(_CLUSTER).agg(nw.len().alias(_PARTS))
        if len(fetch(parts.filter(nw.col(_PARTS) > 1).head(1))):
            return None
    with stage("counting equal clusters", lazy.rows):
        equal = clusters.group_by(*outer, *cells.names).agg(nw.len().alias(_ALIKE))
        kinds = fetch(equal.head(counting.MAX_KINDS + 1))
    if len(kinds) > counting.MAX_KINDS:
        return None
    count, alike, values = _list_rows(cells, kinds, outer)
    if count.sum() != cells.n_rows:
        return None  # a value that was fetched does not equal itself in the engine
    counted = Source(count=count, alike=alike)
    return lazy.replace_data(values, counted, replaced=(*SCORES, _CLUSTER))


def _replace_nan(lazy: LazyRows) -> LazyRows:
    """Return the rows with NaN as a missing value in every column."""
    schema = lazy.rows.collect_schema()
    changed = {name: nan_to_null(nw.col(name)) for name in lazy.keys if schema[name].is_float()}
    return replace(lazy, rows=lazy.rows.with_columns(**changed)) if changed else lazy


@dataclass(frozen=True, slots=True)
class _Cells:
    """The kinds of rows in clusters, and the rows with a missing value."""

    inner: Sequence[str]
    known: Sequence[tuple[Any, ...]]
    incomplete: nw.DataFrame[Any]
    n_rows: int

    @property
    def names(self) -> list[str]:
        """The columns with a cluster's number of rows of each kind."""
        return [f"cell {i}" for i in range(len(self.known))]

    def count_per_cluster(self, rows: nw.LazyFrame[Any], outer: Sequence[str]) -> nw.LazyFrame[Any]:
        """Return each cluster of a group and stratum with its number of rows of each kind."""
        for name in (*self.inner, *outer, _CLUSTER):
            rows = rows.filter(~nw.col(name).is_null())
        is_kind = {
            name: self._is_kind(cell) for name, cell in zip(self.names, self.known, strict=True)
        }
        totals = [nw.col(name).sum() for name in self.names]
        return rows.with_columns(**is_kind).group_by(_CLUSTER, *outer).agg(*totals)

    def _is_kind(self, cell: tuple[Any, ...]) -> nw.Expr:
        """Return 1 for the rows of this kind, and 0 for the rest."""
        same = [nw.col(name) == value for name, value in zip(self.inner, cell, strict=True)]
        return nw.all_horizontal(*same, ignore_nulls=False).cast(nw.Int64)


def _find_cells(lazy: LazyRows, inner: Sequence[str], outer: Sequence[str]) -> _Cells | None:
    """Return the kinds of rows, and the incomplete rows; None if they are too many, or none."""
    has_no_cluster = nw.col(_CLUSTER).is_null()
    unnamed = replace(lazy, rows=lazy.rows.with_columns(has_no_cluster.alias(_CLUSTER)))
    if (lazy.keeps_scores or not lazy.has_labels) and unnamed.starts_with_many():
        return None
    counted = unnamed.count("counting equal rows")
    if len(counted) > counting.MAX_KINDS:
        return None
    lazy.check_predictions(counted)
    is_incomplete = np.array(counted[_CLUSTER].to_list(), bool)
    for name in (*inner, *outer):
        is_incomplete |= np.array(counted[name].is_null().to_list(), bool)
    cells = zip(*(counted[name].to_list() for name in inner), strict=True)
    known = dict.fromkeys(
        cell for cell, lacks in zip(cells, is_incomplete, strict=True) if not lacks
    )
    if not known:  # no complete row: nothing to count, and an error to come
        return None
    n_rows = int(counted[COUNT].to_numpy().sum())
    return _Cells(inner, list(known), counted.filter(is_incomplete.tolist()), n_rows)


def _list_rows(
    cells: _Cells, kinds: nw.DataFrame[Any], outer: Sequence[str]
) -> tuple[Integers, Integers, dict[str, list[Any]]]:
    """Return the rows of one cluster of each kind, and then the incomplete rows."""
    # first the number of rows that each stands for, then the number of clusters, then the values
    incomplete = cells.incomplete.to_dict(as_series=False)
    counts = np.zeros((len(cells.names), len(kinds)), np.int64)
    for i, name in enumerate(cells.names):
        counts[i] = kinds[name].to_numpy()
    which, kind = np.nonzero(counts)
    alike = kinds[_ALIKE].to_numpy().astype(np.int64)[kind]
    columns = zip(*cells.known, strict=True) if cells.known else [()] * len(cells.inner)
    values: dict[str, list[Any]] = {
        name: [column[i] for i in which.tolist()]
        for name, column in zip(cells.inner, columns, strict=True)
    }
    for name in outer:
        per_kind = kinds[name].to_list()
        values[name] = [per_kind[i] for i in kind.tolist()]
    values[_CLUSTER] = kind.tolist()
    incomplete[_CLUSTER] = [None if unnamed else -1 for unnamed in incomplete[_CLUSTER]]
    return (
        np.append(counts[which, kind] * alike, np.array(incomplete[COUNT], np.int64)),
        np.append(alike, np.ones(len(cells.incomplete), np.int64)),
        {name: [*one, *incomplete[name]] for name, one in values.items()},
    )
