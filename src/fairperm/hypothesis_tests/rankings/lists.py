"""Ranked lists, read and checked: a row for each query, or the items in their lists."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass, replace

import numpy as np

from fairperm._utils.arrays import Codes, Places
from fairperm.data.arguments import Inputs
from fairperm.data.columns import are_names
from fairperm.data.lazy.backends import lazy_frame
from fairperm.data.lazy.counting import MAX_KINDS
from fairperm.data.lazy.lists import count_rows, fetch_items
from fairperm.data.reading import read_table
from fairperm.data.sample import Sample
from fairperm.errors import (
    InputError,
    InputTypeError,
    Note,
    UndefinedMetricError,
    argument,
    rename_arguments,
    shown,
)
from fairperm.metrics.rankings import (
    RankedLists,
    RankingMetric,
    check_lists,
    check_top,
    equate_values,
)

MAX_ITEMS = 2**31  # of a list
VALUE = "value"  # the column of a table of queries


@dataclass(frozen=True, slots=True)
class ReadLists:
    """Ranked lists as a metric needs them."""

    # a row for each query with its value, NaN where it is undefined; or for each item
    table: Sample
    items: RankedItems  # the items in their lists
    groups: tuple[Hashable, ...]  # the groups to compare

    @classmethod
    def of(
        cls,
        inputs: Inputs,
        query: object,
        metric: RankingMetric,
        *,
        is_rank: bool = False,
        groups: object = None,
    ) -> ReadLists:
        """Read the lists, and check that they fit the metric."""
        source = "rank" if is_rank else "score"
        if not is_rank:
            keep = (
                "Items cannot be dropped from lists that are ranked by score, as those below would "
                "move up: fill in what is missing."
            )
            inputs = replace(inputs, must_keep=keep)
        if inputs.names_columns and are_names(inputs.cluster):
            raise InputError("cluster", "one column", inputs.cluster, "Join the columns into one.")
        names = {"y_true": "relevance", "y_pred": source, "cluster": "query"}
        with rename_arguments(names):
            table = _read(inputs, query, metric, is_rank=is_rank)
        notes = (one.rename(names) if isinstance(one, Note) else one for one in table.notes)
        table = replace(table, notes=tuple(notes))
        every = table.choose_several(groups)
        if metric.of_all_groups:
            is_chosen = np.isin(table.group, [table.groups.index(one) for one in every])
            table = table.take(np.flatnonzero(is_chosen))
        has_cluster = inputs.cluster is not None
        items = RankedItems.of(table, metric, every, is_rank=is_rank, has_cluster=has_cluster)
        check_lists(metric, items.lists, source)
        check_top(metric, metric.k, int(items.lists.position.max()), is_rank=is_rank)
        return cls(table if metric.of_items else items.value_queries(metric), items, every)


@dataclass(frozen=True, slots=True)
class RankedItems:
    """The items of both groups in their lists, and what is the same for all items of a query."""

    table: Sample
    lists: RankedLists
    group: Codes
    stratum: Codes
    cluster: Codes
    has_cluster: bool
    cluster_names: tuple[Hashable, ...]

    @classmethod
    def of(
        cls,
        table: Sample,
        metric: RankingMetric,
        groups: tuple[Hashable, ...],
        *,
        is_rank: bool,
        has_cluster: bool,
    ) -> RankedItems:
        """Rank the items. All items of a list count for positions, whatever their groups."""
        others = [place for place, one in enumerate(table.groups) if one not in groups]
        group = np.where(np.isin(table.group, others), len(table.groups), table.group)
        relevance = table.columns.get("y_true", np.zeros(len(table.count)))
        contributions = np.column_stack([relevance, table.columns["y_pred"]])
        rows = replace(table, columns={}, contributions=contributions, group=group)
        rows = rows.separate_clusters().expand()
        query = cluster = np.asarray(rows.cluster)
        names = cluster_names = table.clusters
        if has_cluster:
            whose = [one[-1] for one in table.clusters]  # type: ignore[index]
            names = tuple(
                one[0] if len(one) == 2 else one[:-1]  # type: ignore[index, arg-type]
                for one in table.clusters
            )
            if len(set(names)) < len(names):
                split = Counter(names).most_common(1)[0][0]
                raise InputError(
                    f"{argument('cluster')} must be the same for all items of a query; got query "
                    f"{shown(split)} in several."
                )
            number = {one: i for i, one in enumerate(dict.fromkeys(whose))}
            cluster = np.array([number[one] for one in whose])[query]
            cluster_names = tuple(number)
        lists, order = RankedLists.sort(
            query, rows.contributions[:, 1], rows.contributions[:, 0], is_rank=is_rank
        )
        group, stratum = np.asarray(rows.group[order]), rows.stratum[order]
        if not metric.of_items:
            for name, values in (("sensitive_features", group), ("control_features", stratum)):
                _check_constant(name, values, lists, metric, (names, table.attribute))
        elif not _find_split(group, lists).size:
            raise refuse_constant(table, metric, "several groups")
        return cls(table, lists, group, stratum, cluster[order], has_cluster, cluster_names)

    def choose(self, pair: tuple[Hashable, Hashable]) -> RankedItems:
        """Return the items with the side of each as its group; see :func:`find_sides`."""
        return replace(self, group=find_sides(self.group, self.table.groups, pair))

    def value_queries(self, metric: RankingMetric) -> Sample:
        """Return a row for each query with its value, NaN where it is undefined."""
        first = self.lists.starts
        return Sample(
            columns={VALUE: equate_values(metric.value(self.lists, metric.k))},
            group=self.group[first],
            stratum=self.stratum[first],
            count=np.ones(len(first), np.int64),
            groups=self.table.groups,
            strata=self.table.strata,
            cluster=self.cluster[first] if self.has_cluster else None,
            clusters=self.cluster_names,
            n_dropped=self.table.n_dropped,
            notes=self.table.notes,
            attribute=self.table.attribute,
        )


def _read(inputs: Inputs, query: object, metric: RankingMetric, *, is_rank: bool) -> Sample:
    """Return the items: of a small lazy frame counted, of a large one fetched."""
    frame = None if inputs.data is None else lazy_frame(inputs.data)
    if frame is not None and count_rows(frame) > MAX_KINDS:
        if metric.reads_relevance and inputs.y_true is None:
            raise InputTypeError("relevance", f"given for {metric.name}", None)
        inputs = fetch_items(frame, inputs, query, metric, is_rank=is_rank)
    joined = _join_clusters(query, inputs.cluster, inputs.data)
    return read_table(replace(inputs, cluster=joined), metric)


def _join_clusters(query: object, cluster: object, data: object) -> object:
    """Return the queries, with the cluster of each if there are clusters of queries."""
    if cluster is None:
        return query
    names = [query] if isinstance(query, str) else query
    if data is not None and are_names(names) and isinstance(cluster, str):
        return [*names, cluster]
    return {"query": query, "cluster": cluster}


def find_sides(
    group: Codes, groups: tuple[Hashable, ...], pair: tuple[Hashable, Hashable]
) -> Codes:
    """Return the side of each row: 0, 1, or 2 for rows of groups that are on neither."""
    # if the second of the pair is no group, it is a name for all groups but the first
    first, second = pair
    has_rest = second not in groups
    sides = [0 if one == first else 1 if has_rest or one == second else 2 for one in groups]
    places = np.array([*sides, 2])  # the last is that of groups left out
    found: Codes = places[group]
    return found


def _check_constant(
    name: str,
    values: Codes,
    lists: RankedLists,
    metric: RankingMetric,
    called: tuple[tuple[Hashable, ...], str],
) -> None:
    """Raise InputError if a query has items with different values."""
    # ``called`` has the names of queries and of the attribute
    names, attribute = called
    split = _find_split(values, lists)
    if not split.size:
        return
    which = int(lists.query[lists.starts[split[0]]])
    query = f"query {shown(names[which])}" if which < len(names) else "a query"
    column = hint = ""
    if name == "sensitive_features":
        column = f" in {shown(attribute)}" if attribute else ""
        items = argument("metric", "exposure")
        hint = f" To compare kinds of items within lists, use {items}."
    raise InputError(
        f"{argument(name)} must be the same for all items of a query for {metric.name}, which "
        f"compares queries; got {query} with several{column}.{hint}"
    )


def _find_split(values: Codes, lists: RankedLists) -> Places:
    """Return the lists whose items have different values."""
    low, high = (one.reduceat(values, lists.starts) for one in (np.minimum, np.maximum))
    return np.flatnonzero(low != high)


def refuse_constant(table: Sample, metric: RankingMetric, groups: str) -> UndefinedMetricError:
    """Return the error for groups that do not differ within any query."""
    column = f" in {shown(table.attribute)}" if table.attribute else ""
    return UndefinedMetricError(
        f"{argument('sensitive_features')} must vary within a query for {metric.name}, which "
        f"compares items of one list; got no query with items of {groups}{column}."
    )
