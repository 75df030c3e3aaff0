"""Clusters of rows of a lazy frame: equal clusters are counted where they are.

A cluster is known by its group, its stratum and how many rows of each kind it has. One group-by
makes these numbers, a second counts the clusters that have the same: only that leaves the engine.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw
import numpy as np

from fairperm.data.lazy import counting as lazy
from fairperm.data.lazy.backends import fetched, stage, without_nan
from fairperm.data.lazy.counting import COUNT
from fairperm.data.sources import Counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from fairperm.data.arguments import Inputs
    from fairperm.data.lazy.counting import Reading

    Counts = NDArray[np.int64]

MOST_CELLS = 64  # kinds of row, each of which is a column of the second query
_CLUSTER = "cluster 0"
_ALIKE, _PARTS = "clusters", "parts"


def counted_clusters(reading: Reading, bins: int | None = None) -> Inputs | None:
    """Return the arguments with counted clusters as their data; None if they cannot be counted.

    They cannot if kinds of rows or of clusters are too many, rows have weights, or a cluster has
    rows in several groups or strata.
    """
    names = [name for name in reading.keys if name.startswith("cluster ")]
    if names != [_CLUSTER] or "sample_weight 0" in reading.keys:
        return None
    reading = _without_nan(reading)
    outer = [one for one in reading.keys if one.startswith(("sensitive_", "control_"))]
    inner = [one for one in reading.keys if one not in {*outer, _CLUSTER}]
    cells = _cells(reading, inner, outer)
    if cells is None or len(cells.known) > MOST_CELLS:
        return None
    clusters = cells.per_cluster(reading.rows, outer)
    with stage("looking for clusters in several groups", reading.rows):
        parts = clusters.group_by(_CLUSTER).agg(nw.len().alias(_PARTS))
        if len(fetched(parts.filter(nw.col(_PARTS) > 1).head(1))):
            return None
    with stage("counting equal clusters", reading.rows):
        counted = clusters.group_by(*outer, *cells.names).agg(nw.len().alias(_ALIKE))
        found = fetched(counted.head(lazy.MOST_KINDS + 1))
    if len(found) > lazy.MOST_KINDS:
        return None
    counts, values, alike = _one_of_each(cells, found, outer)
    if counts.sum() != cells.n_rows:
        return None  # a value that came from the engine is not equal to itself there
    return reading.with_data(values, Counted(None, counts, bins, alike))


def _without_nan(reading: Reading) -> Reading:
    """Return the same with numbers that are none as missing, in whatever column they are."""
    schema = reading.rows.collect_schema()
    changed = {name: without_nan(nw.col(name)) for name in reading.keys if schema[name].is_float()}
    return replace(reading, rows=reading.rows.with_columns(**changed)) if changed else reading


@dataclass(frozen=True, slots=True)
class _Cells:
    """The kinds of row that a cluster may have, and the rows that lack something."""

    inner: Sequence[str]
    known: Sequence[tuple[Any, ...]]
    unknown: nw.DataFrame[Any]
    n_rows: int

    @property
    def names(self) -> list[str]:
        """Return the columns with a cluster's number of rows of each kind."""
        return [f"cell {i}" for i in range(len(self.known))]

    def per_cluster(self, rows: nw.LazyFrame[Any], outer: Sequence[str]) -> nw.LazyFrame[Any]:
        """Return each cluster of a group and stratum with its numbers of rows, none missing."""
        for name in (*self.inner, *outer, _CLUSTER):
            rows = rows.filter(~nw.col(name).is_null())
        is_one = {name: self._is(cell) for name, cell in zip(self.names, self.known, strict=True)}
        marked = rows.with_columns(**is_one)
        totals = [nw.col(name).sum() for name in self.names]
        return marked.group_by(_CLUSTER, *outer).agg(*totals)

    def _is(self, cell: tuple[Any, ...]) -> nw.Expr:
        """Return 1 for the rows of this kind, and 0 for others."""
        same = [nw.col(name) == value for name, value in zip(self.inner, cell, strict=True)]
        return nw.all_horizontal(*same, ignore_nulls=False).cast(nw.Int64)


def _cells(reading: Reading, inner: Sequence[str], outer: Sequence[str]) -> _Cells | None:
    """Return the kinds of row, and those rows that lack a value; None if they are too many."""
    unknown = nw.col(_CLUSTER).is_null()
    unnamed = replace(reading, rows=reading.rows.with_columns(unknown.alias(_CLUSTER)))
    if (reading.keeps_scores or not reading.has_labels) and unnamed.begin_with_many():
        return None
    found = unnamed.grouped("counting equal rows")
    if len(found) > lazy.MOST_KINDS:
        return None
    reading.check_cut(found)
    lacks = np.array(found[_CLUSTER].to_list(), bool)
    for name in (*inner, *outer):
        lacks |= np.array(found[name].is_null().to_list(), bool)
    values = zip(*(found[name].to_list() for name in inner), strict=True)
    known = dict.fromkeys(cell for cell, lack in zip(values, lacks, strict=True) if not lack)
    n_rows = int(found[COUNT].to_numpy().sum())
    return _Cells(inner, list(known), found.filter(lacks.tolist()), n_rows)


def _one_of_each(
    cells: _Cells, found: nw.DataFrame[Any], outer: Sequence[str]
) -> tuple[Counts, dict[str, list[Any]], Counts]:
    """Return one cluster of each kind row by row, and then the rows that lack a value.

    That is the number of all rows that each stands for, its values, and the number of clusters.
    """
    lacking = cells.unknown.to_dict(as_series=False)
    counts = np.zeros((len(cells.names), len(found)), np.int64)
    for i, name in enumerate(cells.names):
        counts[i] = found[name].to_numpy()
    which, kind = np.nonzero(counts)
    alike = found[_ALIKE].to_numpy().astype(np.int64)[kind]
    columns = zip(*cells.known, strict=True) if cells.known else [()] * len(cells.inner)
    values: dict[str, list[Any]] = {
        name: [column[i] for i in which.tolist()]
        for name, column in zip(cells.inner, columns, strict=True)
    }
    for name in outer:
        of_kind = found[name].to_list()
        values[name] = [of_kind[i] for i in kind.tolist()]
    values[_CLUSTER] = kind.tolist()
    lacking[_CLUSTER] = [None if unknown else -1 for unknown in lacking[_CLUSTER]]
    count = np.append(counts[which, kind] * alike, np.array(lacking[COUNT], np.int64))
    return (
        count,
        {name: [*one, *lacking[name]] for name, one in values.items()},
        np.append(alike, np.ones(len(cells.unknown), np.int64)),
    )
