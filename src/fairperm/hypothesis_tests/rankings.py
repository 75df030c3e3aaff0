"""The test of rankings: their quality for kinds of users, and the exposure of kinds of items."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from fairperm._utils import checks
from fairperm._utils.formatting import format_count, name_of_gap
from fairperm.data.arguments import Inputs
from fairperm.data.columns import library_of
from fairperm.data.lazy.backends import lazy_frame
from fairperm.data.lazy.counting import MOST_KINDS
from fairperm.data.lazy.lists import LazyLists, count_rows
from fairperm.data.reading import Table, read_table
from fairperm.engines.divergences import DivergenceEngine
from fairperm.engines.rankings import ListsEngine
from fairperm.engines.sample import Rows
from fairperm.errors import (
    InputError,
    InputTypeError,
    Shown,
    UndefinedMetricError,
    argument,
    listed,
    rename_arguments,
    shown,
    unknown_name,
    warn_of,
)
from fairperm.hypothesis_tests.gap_test import compare as compare_groups
from fairperm.hypothesis_tests.plan import Options, Plan
from fairperm.hypothesis_tests.results.gaps import PermutationTestResult
from fairperm.hypothesis_tests.results.omnibus import OmnibusTestResult
from fairperm.hypothesis_tests.results.rankings import (
    ListDivergence,
    RankingComparison,
    RankingTestResult,
)
from fairperm.inference.multiplicity import adjust_pvalues
from fairperm.inference.null import (
    Null,
    QuantileIntervals,
    agree,
    note_undefined,
    pvalue,
    tie_tolerance,
)
from fairperm.inference.stopping import LEAST, StoppingRule, count_least
from fairperm.metrics.definition import Kind, Variance
from fairperm.metrics.numbers import mean_metric
from fairperm.metrics.rankings import RankedLists, check_lists, check_top, get_ranking_metric

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator
    from collections.abc import Set as AbstractSet

    from numpy.typing import NDArray

    from fairperm.data.arguments import (
        Adjustment,
        Alternative,
        Column,
        Columns,
        Frame,
        Groups,
        Missing,
        Pairing,
        Resamples,
        Seed,
    )
    from fairperm.metrics.definition import Metric
    from fairperm.metrics.rankings import RankingMetric

    Array = NDArray[np.float64]
    Sides = tuple[AbstractSet[Hashable], AbstractSet[Hashable]]  # of a gap, and their groups

MOST_ITEMS = 2**31  # of a list
LISTS = "lists"  # the scheme in results of items
_FEW_LISTS = 10  # with fewer the studentized test may not hold its level
_VALUE = "value"  # the column of a table of queries
_ZERO = 1e-14  # a standard error below it, relative to the values, is a rounding error
_Result = TypeVar("_Result", PermutationTestResult, OmnibusTestResult)


def ranking_test(
    relevance: Column | None = None,
    *,
    score: Column | None = None,
    rank: Column | None = None,
    query: Column,
    sensitive_features: Columns,
    metric: str = "ndcg",
    k: int = 10,
    data: Frame | None = None,
    groups: Groups | None = None,
    compare: Pairing = "pairs",
    reference: Hashable = None,
    adjust: Adjustment = "holm",
    control_features: Columns | None = None,
    cluster: Column | None = None,
    missing: Missing = "error",
    ignore_index: bool = False,
    alternative: Alternative = "two-sided",
    n_resamples: Resamples = "auto",
    confidence_level: float = 0.95,
    rng: Seed = None,
    n_jobs: int | None = None,
    progress: bool | None = None,
) -> RankingTestResult:
    """Test whether rankings serve all kinds of users, or show all kinds of items, alike.

    Parameters
    ----------
    relevance : array-like or str, optional
        How relevant each item is to its query: 0 or 1, or for "ndcg" and "exposure_per_relevance"
        any number from 0 on. Not needed for the other metrics of items.
    score, rank : array-like or str
        One of them: scores, by which items are ranked from the highest; or positions in the list,
        from 1.
    query : array-like or str
        The query (search, session, user) whose list an item is in.
    sensitive_features : array-like or str
        The group of the query, for metrics of quality; the group of the item, for exposure.
    metric : str
        Quality of a query's list: "ndcg", "precision", "recall", "average_precision" (of the whole
        list), "reciprocal_rank" or "hit_rate". Exposure of items within lists: "exposure"
        (discounted by position), "exposure_per_relevance", "top_k_share" or "skew". Of all groups
        at once: "ndkl", how far their shares at the top of a list are from those of the list.
    k : int
        How many items from the top of a list count.
    data : frame or mapping, optional
        As in :func:`fairperm.permutation_test`.
    groups : sequence, optional
        Two groups or more; by default all, in sorted order. "ndkl" leaves out items of others.
    compare : {"pairs", "reference", "rest"}
        Whether to compare each pair of groups, each group with the reference, or each group with
        all others together.
    reference : optional
        The reference group, by default the one with most items.
    adjust : {"holm", "bh", "by"} or None
        How p-values are adjusted for the number of comparisons.
    control_features : array-like, str or list of str, optional
        Strata: of queries for metrics of quality, of items for exposure. Pass the relevance as a
        stratum to compare the exposure of equally relevant items.
    cluster : array-like or str, optional
        Queries that belong together, such as those of one user.
    missing, ignore_index, alternative, n_resamples, confidence_level, rng, n_jobs, progress
        As in :func:`fairperm.permutation_test`.

    Returns
    -------
    RankingTestResult

    Notes
    -----
    Items of one list are not independent, so they are not the units of the test. *Quality*: each
    query has one value, and the studentized gap of the groups' means over queries is compared with
    permutations of queries, or of whole clusters of them. *Exposure*: in each query with items of
    both groups, the gap is the mean over the items of the first group minus that of the second; the
    mean gap over queries is studentized by its standard error over queries (or clusters), and group
    labels are exchanged among the items of each query. (With strata of items, each stratum of a
    list is a list of its own, whose items keep their positions; those of one query belong together
    in the standard error.) The metric decides which; the data must fit.

    "exposure_per_relevance" divides a group's mean exposure over queries by its mean relevance over
    queries. "skew" is the logarithm of the number of a group's items in the top k of all queries
    over the number expected from its share of each list, both among the items of the two groups
    compared: for a single list of two groups it is skew@k of Geyik, Ambler and Kenthapadi (2019).
    Of more groups, one may have another value in each comparison. Lists in which a group has no
    relevant item, or none in the top k, count like all others. Permutations in which it has none in
    any list count as extreme; data like these raise an error. The delta method gives the influence
    of each query, of which both standard errors are made.

    "ndkl" (normalized discounted cumulative Kullback–Leibler divergence, also of Geyik, Ambler and
    Kenthapadi) is the mean over i of the divergence of the groups' shares among the first i items
    of a list from their shares of the whole list, weighted by 1/log2(1 + i), in nats; its value is
    the mean over queries. It has no direction: lists of which half put one group first and half the
    other are as far from their shares as if all put the same group first, while their mean exposure
    has no gap. It is above zero in random lists, too; ``expected`` is its mean over permutations of
    labels within each list (and stratum), and the p-value is the share of those with a value at
    least as large. `compare`, `reference`, `alternative` and `cluster` cannot be used with it.

    Items with equal scores share positions: they get the mean of what these positions give, as
    scikit-learn's ndcg_score does; "average_precision" is scikit-learn's too. "reciprocal_rank",
    "hit_rate" and "ndkl" need lists without ties. Queries without a relevant item have no ndcg,
    recall and average_precision: they are left out, and a note counts them.

    Examples
    --------
    >>> import fairperm
    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> query = np.repeat(np.arange(200), 8)  # 200 lists of 8 items
    >>> woman = rng.permuted(np.tile(np.arange(8) < 3, (200, 1)), axis=1).ravel()
    >>> score = rng.normal(size=1600) - 0.3 * woman  # women are placed lower
    >>> fairperm.ranking_test(
    ...     score=score, query=query, sensitive_features=np.where(woman, "women", "men"),
    ...     metric="exposure", rng=1,
    ... )
    RankingTestResult: exposure, men − women
      men         0.512  of 1,000 items in 200 queries
      women       0.465  of 600 items in 200 queries
      difference  +0.047  95 % interval +0.024 to +0.069
      p-value     0.0004  two-sided, 9,999 draws, 95 % interval < 0.0001 to 0.0011
      validity    Exact if the places in a list do not depend on the group; asymptotically
                  valid, with many queries, for a gap of zero.
    """
    options = Options.check(
        alternative=alternative,
        n_resamples=n_resamples,
        confidence_level=confidence_level,
        rng=rng,
        n_jobs=n_jobs,
        progress=progress,
    )
    compare = checks.choice("compare", compare, ("pairs", "reference", "rest"))
    adjust = checks.choice("adjust", adjust, ("holm", "bh", "by", None))
    chosen = get_ranking_metric(metric).at(checks.integer("k", k, 1, MOST_ITEMS))
    if chosen.of_all_groups:
        _check_all_groups(chosen, compare, reference, alternative, cluster)
    if reference is not None and compare != "reference":
        raise InputError(
            f"{argument('reference')} can only be used with {argument('compare', 'reference')}."
        )
    if (score is None) == (rank is None):
        given = "both" if score is not None else "neither"
        raise InputTypeError(f"Pass {argument('score')} or {argument('rank')}; got {given}.")
    if query is None:
        raise InputTypeError("query", "given", None)
    inputs = Inputs(
        y_true=relevance,
        y_pred=score if rank is None else rank,
        sensitive_features=sensitive_features,
        control_features=control_features,
        cluster=cluster,
        data=data,
        missing=missing,
        ignore_index=ignore_index,
        seed=options.seed,
    )
    read = ReadLists.of(inputs, query, chosen, is_rank=rank is not None, groups=groups)
    table, every = read.table, read.groups
    if chosen.of_all_groups and read.items is not None:
        only = _compare_all(read.items, chosen, every, options)
        return RankingTestResult(
            metric=only.metric,
            groups=every,
            comparisons=(only,),
            pvalue=only.pvalue,
            adjust=adjust,
            notes=only.notes,
            frame_library=library_of(data),
        )
    pairs = list(_list_pairs(read.rows, every, compare, reference))
    found: list[RankingComparison] = []
    notes: dict[str, None] = dict.fromkeys(table.notes)
    warned: dict[str, None] = {}
    for pair, sides in pairs:
        if chosen.of_items and read.items is not None:
            tested = compare_items(read.items.choose(sides), chosen, pair, options)
            one = _as_ranking(tested.result, chosen, "items")
            remarks = tested.remarks
        else:
            one, remarks = _compare_queries(table, chosen, (pair, sides), options)
        found.append(one)
        for note in one.notes:
            names_group = len(pairs) == 1 or note in table.notes or " of group " in note
            text = note if names_group else f"{name_of_gap(*one.names)}: {note}"
            notes[text] = None
            warned |= {} if note in remarks else {text: None}
    warn_of(warned)
    adjusted = adjust_pvalues(np.array([one.pvalue for one in found]), adjust).tolist()
    return RankingTestResult(
        metric=found[0].metric,
        groups=every,
        comparisons=tuple(
            replace(one, adjusted_pvalue=p) for one, p in zip(found, adjusted, strict=True)
        ),
        pvalue=min(adjusted),
        adjust=adjust,
        notes=tuple(notes),
        frame_library=library_of(data),
    )


def _check_all_groups(
    metric: RankingMetric, compare: str, reference: object, alternative: str, cluster: object
) -> None:
    """Raise InputError for options that a value of all groups together does not have."""
    name = argument("metric", metric.name)
    for option, is_used in (("compare", compare != "pairs"), ("reference", reference is not None)):
        if is_used:
            raise InputError(
                f"{argument(option)} cannot be used with {name}, which compares all groups at once."
            )
    if alternative != "two-sided":
        raise InputError(
            f"{argument('alternative')} cannot be used with {name}, which has no direction: its "
            "p-value counts larger values."
        )
    if cluster is not None:
        raise InputError(
            f"{argument('cluster')} cannot be used with {name}: its permutations take lists for "
            "independent, and it has no standard error that could allow for clusters."
        )


def _list_pairs(
    table: Table, groups: tuple[Hashable, ...], compare: str, reference: object
) -> Iterator[tuple[tuple[Hashable, Hashable], Sides]]:
    """Yield the names of two sides, and which groups belong to either."""
    if compare == "reference":
        sizes = table.sizes()
        chosen = max(groups, key=lambda group: sizes[group]) if reference is None else reference
        if chosen not in groups:
            raise unknown_name("reference", "one of the groups", reference, groups)
        yield from (((one, chosen), ({one}, {chosen})) for one in groups if one != chosen)
    elif compare == "pairs" or len(groups) == 2:
        yield from ((pair, ({pair[0]}, {pair[1]})) for pair in itertools.combinations(groups, 2))
    else:
        rest = "rest"
        while rest in groups:
            rest = f"the {rest}"
        for one in groups:
            yield (one, rest), ({one}, set(groups) - {one})


def _join_clusters(query: object, cluster: object, data: object) -> object:
    """Return the queries, with the cluster of each if there are clusters of queries."""
    if cluster is None:
        return query
    if data is not None and isinstance(query, str) and isinstance(cluster, str):
        return [query, cluster]
    return {"query": query, "cluster": cluster}


@dataclass(frozen=True, slots=True)
class ReadLists:
    """Ranked lists as a metric needs them.

    Attributes
    ----------
    table
        A row for each query with its value, NaN where it is undefined; or for each item.
    items
        The items in their lists; None if an engine computed the values of queries.
    groups
        The groups to compare.
    """

    table: Table
    items: RankedItems | None
    groups: tuple[Hashable, ...]

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
        with rename_arguments({"y_true": "relevance", "y_pred": source, "cluster": "query"}):
            table = _read(inputs, query, metric, is_rank=is_rank)
        every = table.choose_several(groups)
        if _VALUE in table.columns:
            return cls(table, None, every)
        if metric.of_all_groups:
            is_chosen = np.isin(table.group, [table.groups.index(one) for one in every])
            table = table.take(np.flatnonzero(is_chosen))
        has_cluster = inputs.cluster is not None
        items = RankedItems.of(table, metric, every, is_rank=is_rank, has_cluster=has_cluster)
        check_lists(metric, items.lists, source)
        check_top(metric, metric.k, int(items.lists.sizes.max()), is_rank=is_rank)
        return cls(table if metric.of_items else items.value_queries(metric), items, every)

    @property
    def rows(self) -> Table:
        """The table of items, if there are any."""
        return self.table if self.items is None else self.items.table


@dataclass(frozen=True, slots=True)
class RankedItems:
    """The items of both groups in their lists, and what is the same for all items of a query."""

    table: Table
    lists: RankedLists
    group: NDArray[np.integer[Any]]
    stratum: NDArray[np.integer[Any]]
    cluster: NDArray[np.integer[Any]]
    has_cluster: bool
    cluster_names: tuple[Hashable, ...]

    @classmethod
    def of(
        cls,
        table: Table,
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
        rows = Rows(
            columns={},
            contributions=np.column_stack([relevance, table.columns["y_pred"]]),
            group=group,
            stratum=table.stratum,
            block=np.zeros(len(table.count), np.uint8),
            count=table.count,
            n_strata=len(table.strata),
            cluster=table.cluster,
            alike=table.alike,
        )
        rows = rows.separate_clusters().expand()
        query = cluster = np.asarray(rows.cluster)
        names = cluster_names = table.clusters
        if has_cluster:
            whose = [one[-1] for one in table.clusters]  # type: ignore[index]
            names = tuple(one[0] for one in table.clusters)  # type: ignore[index]
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
            raise _does_not_vary(table, metric, "several groups")
        return cls(table, lists, group, stratum, cluster[order], has_cluster, cluster_names)

    def choose(self, sides: Sides) -> RankedItems:
        """Return the items with the side of each as its group: 0, 1, or 2 for other groups."""
        return replace(self, group=_find_sides(self.group, self.table.groups, sides))

    def value_queries(self, metric: RankingMetric) -> Table:
        """Return a row for each query with its value, NaN where it is undefined."""
        first = self.lists.starts
        return Table(
            columns={_VALUE: metric.value(self.lists, metric.k)},
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


def _read(inputs: Inputs, query: object, metric: RankingMetric, *, is_rank: bool) -> Table:
    """Return the items; of a large lazy frame, the values of its queries if they suffice."""
    frame = None if inputs.data is None else lazy_frame(inputs.data)
    n_items = 0 if frame is None else count_rows(frame)
    if frame is not None and n_items > MOST_KINDS:
        if metric.reads_relevance and inputs.y_true is None:
            raise InputTypeError("relevance", f"given for {metric.name}", None)
        lists = LazyLists.select(frame, inputs, query, is_rank=is_rank)
        if not metric.of_items:
            queries, values, n_dropped = lists.value_queries(metric, metric.k)
            reading = mean_metric(_VALUE, "value", lambda y_true: y_true, kind=Kind.REGRESSION)
            table = read_table(queries, reading)
            return replace(table, columns={_VALUE: values}, n_dropped=n_dropped)
        inputs = lists.collect(n_items, metric)
    joined = _join_clusters(query, inputs.cluster, inputs.data)
    return read_table(replace(inputs, cluster=joined), metric)


def _find_sides(
    group: NDArray[np.integer[Any]], groups: tuple[Hashable, ...], sides: Sides
) -> NDArray[np.integer[Any]]:
    """Return the side of each group's rows: 0, 1, or 2 for groups that are on neither."""
    places = np.full(len(groups) + 1, 2)
    for side, some in enumerate(sides):
        places[[groups.index(one) for one in some]] = side
    found: NDArray[np.integer[Any]] = places[group]
    return found


def _check_constant(
    name: str,
    values: NDArray[np.integer[Any]],
    lists: RankedLists,
    metric: RankingMetric,
    called: tuple[tuple[Hashable, ...], str],
) -> None:
    """Raise InputError if a query has items with different values.

    ``called`` has the names of queries and of the attribute.
    """
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


def _find_split(values: NDArray[np.integer[Any]], lists: RankedLists) -> NDArray[np.intp]:
    """Return the lists whose items have different values."""
    low, high = (one.reduceat(values, lists.starts) for one in (np.minimum, np.maximum))
    return np.flatnonzero(low != high)


def _does_not_vary(table: Table, metric: RankingMetric, groups: str) -> UndefinedMetricError:
    column = f" in {shown(table.attribute)}" if table.attribute else ""
    return UndefinedMetricError(
        f"{argument('sensitive_features')} must vary within a query for {metric.name}, which "
        f"compares items of one list; got no query with items of {groups}{column}."
    )


def keep_valued(queries: Table, metric: RankingMetric) -> Table:
    """Return the queries that have a value, as ``y_true``, with a note on the others."""
    values = queries.columns[_VALUE]
    known, notes = ~np.isnan(values), queries.notes
    if lost := int((~known).sum()):
        have = format_count(lost, "query has", "queries have")
        notes += (f"{have} no relevant item, and no {metric.name}: left out.",)
    return replace(queries, columns={"y_true": values}, notes=notes).take(np.flatnonzero(known))


def average_queries(metric: RankingMetric) -> Metric:
    """Return the mean over queries as a metric of rows."""
    return mean_metric(
        metric.full_name, metric.meaning, lambda y_true: y_true, kind=Kind.REGRESSION
    )


def name_queries(result: _Result, known: tuple[str, ...] = ()) -> _Result:
    """Return a result of rows that are queries, and are called so, but for ``known`` notes."""
    counts = {
        group: {
            "queries" if name == "rows" else name: n
            for name, n in one.items()
            if name in {"rows", "clusters"}
        }
        for group, one in result.counts.items()
    }
    notes = tuple(one if one in known else call_queries(one) for one in result.notes)
    return replace(result, counts=counts, notes=notes)


def call_queries(text: str) -> str:
    """Return a text about rows as one about queries."""
    return text.replace(" rows", " queries").replace(" row ", " query ")


def _compare_queries(
    every: Table,
    metric: RankingMetric,
    compared: tuple[tuple[Hashable, Hashable], Sides],
    options: Options,
) -> tuple[RankingComparison, tuple[str, ...]]:
    """Compare the mean quality of queries: the paper's test, with a query as a row.

    Returns the result, and those of its notes that are no warnings.
    """
    pair, sides = compared
    group = _find_sides(every.group, every.groups, sides)
    both = replace(every, group=group, groups=pair).take(np.flatnonzero(group < 2))
    queries = keep_valued(both, metric)
    check_valued(queries, pair)
    plan = Plan.for_table(average_queries(metric), queries, pair, options)
    result = name_queries(compare_groups(queries, plan, pair, options), queries.notes)
    return _as_ranking(result, metric, "queries"), queries.notes


def check_valued(queries: Table, pair: tuple[Hashable, Hashable]) -> None:
    """Raise UndefinedMetricError if a group has no query with a value."""
    for name, n in queries.sizes().items():
        if name in pair and not n:
            rule = f"above 0 for some item of group {shown(name)}"
            raise UndefinedMetricError("relevance", rule, "none")


def _as_ranking(
    result: PermutationTestResult, metric: RankingMetric, design: str
) -> RankingComparison:
    """Return the result as that of a test of rankings."""
    own = {"design", "k", "adjusted_pvalue"}
    names = RankingComparison.__dataclass_fields__.keys() - own
    return RankingComparison(
        **{name: getattr(result, name) for name in names},
        adjusted_pvalue=result.pvalue,
        design=design,
        k=metric.k if metric.uses_k else None,
    )


@dataclass(frozen=True, slots=True)
class ItemComparison:
    """A tested gap between items of the same lists, and its intervals.

    ``n_lists`` is the number of lists that it rests on; with clusters of queries, Kish's effective
    number of clusters. ``remarks`` are those of its notes that are no warnings.
    """

    result: PermutationTestResult
    intervals: QuantileIntervals
    n_lists: float
    remarks: tuple[str, ...]


def compare_items(
    items: RankedItems,
    metric: RankingMetric,
    pair: tuple[Hashable, Hashable],
    options: Options,
) -> ItemComparison:
    """Compare the items of both sides within each list; see :meth:`RankedItems.choose`."""
    value = metric.value(items.lists, metric.k)
    n_strata = len(items.table.strata)
    part = items.lists.query.astype(np.int64) * n_strata + items.stratum  # of a list
    counts = np.bincount(3 * part + items.group, minlength=3 * int(part.max()) + 3).reshape(-1, 3)
    is_shared = counts[:, :2].min(axis=1) > 0
    kept = is_shared[part] & (items.group < 2)
    if not kept.any():
        raise _does_not_vary(items.table, metric, listed(pair))
    query = np.unique(part[kept], return_inverse=True)[1].ravel()
    value, group = value[:, kept], items.group[kept].astype(np.int64)
    engine = ListsEngine.of(query, value, group, items.cluster[kept], metric.of_group)
    observed = engine.observed()
    values, error = observed[0][:, 0], float(observed[1][0])
    for side in np.flatnonzero(np.isnan(values)):
        items_of = f"some item of group {shown(pair[side])}"
        if metric.uses_k:
            rule = f"so large that {items_of} is in the top k"
            hint = f"{argument('metric', 'top_k_share')} needs none."
            raise UndefinedMetricError("k", rule, metric.k, hint)
        raise UndefinedMetricError("relevance", f"above 0 for {items_of}", "none")
    gap = float(values[0] - values[1])
    n_queries = len(np.unique(items.lists.query[kept]))
    # a value per relevance has its unit; shares and logarithms have errors of the size of 1
    span = np.abs(values).max(initial=0.0 if metric.reads_relevance else 1.0, keepdims=True)
    zero = _ZERO * float(span[0])
    if error <= zero and abs(gap) > zero:
        if int(engine.cluster.max()) == 0:
            name = "cluster" if items.has_cluster else "query"
            raise UndefinedMetricError(name, "two or more, for a standard error", 1)
        got = Shown(f"the same gap in all {n_queries:,} queries")
        raise UndefinedMetricError("query", "made of lists with different gaps", got)

    resampling, level = options.resampling, options.confidence_level
    studentize = partial(_studentize, zero=zero)
    statistic = float(studentize([observed])[0])
    unit = np.array([max(error, zero)])
    tolerance = tie_tolerance(statistic, span, unit)
    found = engine.enumerated(resampling.n_resamples)
    if found is None:
        least = max(resampling.least or 0, count_least(level))
        rule_of_draws = StoppingRule(statistic, options.alternative, tolerance, least)
        null = resampling.draw_null(engine.permuted, studentize, rule_of_draws, engine.block_size)
    else:
        draws = studentize([found])
        null = Null(draws, np.full(len(draws), -np.log(len(draws))))
    p = pvalue(null, statistic, options.alternative, tolerance, level)
    intervals = QuantileIntervals(
        null, np.array([gap]), unit, options.alternative, metric.largest_gap
    )
    own = counts[is_shared]
    remarks = items.table.notes
    n_lost = int((~is_shared & counts[:, :2].any(axis=1)).sum())
    if n_lost:
        alone = format_count(n_lost, "query has", "queries have")
        if n_strata > 1:
            alone = format_count(n_lost, "stratum of a list has", "strata of lists have")
        remarks += (f"{alone} items of one group only: they say nothing about the gap.",)
    places = "places and the relevance" if metric.reads_relevance else "places"
    given = ", given the stratum" if n_strata > 1 else ""
    result = PermutationTestResult(
        metric=metric.full_name,
        attribute=items.table.attribute,
        groups=pair,
        values=dict(zip(pair, values.tolist(), strict=True)),
        counts={
            one: {"items": int(own[:, side].sum()), "queries": n_queries}
            for side, one in enumerate(pair)
        },
        difference=gap,
        part=None,
        standard_error=error if error > zero else 0.0,
        standard_errors=dict(zip(pair, engine.observed_errors(), strict=True)),
        confidence_interval=agree(intervals.at(level), p.value, options.alternative, level, gap),
        confidence_level=level,
        statistic=statistic,
        scheme=LISTS,
        variance=Variance.DELTA.value,
        gap_variance=None,
        binning_errors=None,
        pvalue=p.value,
        pvalue_interval=p.interval,
        pvalue_interval_wilson=p.wilson_interval,
        alternative=options.alternative,
        ordering=options.alternative,
        n_resamples=len(null.statistic),
        stopped_early=null.stopped_early,
        n_undefined=int(null.undefined.sum()),
        n_strata=n_strata,
        n_dropped=items.table.n_dropped,
        seed=options.seed,
        validity=(
            f"Exact if the {places} in a list do not depend on the group{given}; asymptotically "
            f"valid, with many {'clusters' if items.has_cluster else 'queries'}, for a gap of zero."
        ),
        notes=(*remarks, *_note_few(engine), *note_undefined(null)),
        exact=found is not None,
        null_distribution=null.statistic,
        null_probabilities=None if null.log_probability is None else np.exp(null.log_probability),
    )
    sizes = np.bincount(engine.cluster).astype(np.float64)
    n_lists = float(sizes.sum() ** 2 / (sizes**2).sum()) if items.has_cluster else n_queries
    return ItemComparison(result, intervals, n_lists, remarks)


def _compare_all(
    items: RankedItems, metric: RankingMetric, groups: tuple[Hashable, ...], options: Options
) -> ListDivergence:
    """Compare the shares of all groups at the top of lists with those in permuted lists."""
    lists, n_strata, n_groups = items.lists, len(items.table.strata), len(items.table.groups)
    part = lists.query.astype(np.int64) * n_strata + items.stratum  # of a list
    parts, n_different = np.unique(
        np.unique(part * n_groups + items.group) // n_groups, return_counts=True
    )
    mixed = np.unique(parts[n_different > 1] // n_strata)
    kept = np.isin(lists.query, mixed)
    within = "a stratum of a query" if n_strata > 1 else "a query"
    if not kept.any():
        raise InputError(
            f"{argument('sensitive_features')} must vary within {within} for {metric.name}, which "
            "compares items of one list; got one group in each."
        )
    engine = DivergenceEngine.of(
        lists.query[kept], items.stratum[kept], items.group[kept], metric.value(lists, 0)[0, kept]
    )
    observed = engine.observed
    # no divergence is larger than that of an item that is alone in its group
    span = np.log(lists.sizes.max(keepdims=True))
    tolerance = tie_tolerance(observed, span, np.ones(1))
    resampling, level = options.resampling, options.confidence_level
    found = engine.enumerated(resampling.n_resamples)
    if found is None:
        rule = StoppingRule(observed, "greater", tolerance, LEAST)
        null = resampling.draw_null(engine.permuted, np.concatenate, rule, engine.block_size)
    else:
        null = Null(found, np.full(len(found), -np.log(len(found))))
    p = pvalue(null, observed, "greater", tolerance, level)
    notes = items.table.notes
    n_lost = len(lists.starts) - len(mixed)
    if n_lost:
        alone = format_count(n_lost, "query has", "queries have")
        where = " in each stratum" if n_strata > 1 else ""
        notes += (f"{alone} items of one group only{where}: left out.",)
    given = ", given the stratum" if n_strata > 1 else ""
    sizes = np.bincount(items.group[kept], minlength=n_groups).tolist()
    return ListDivergence(
        metric=metric.name,
        attribute=items.table.attribute,
        groups=groups,
        value=observed,
        expected=float(null.statistic.mean()),
        counts={one: sizes[items.table.groups.index(one)] for one in groups},
        n_queries=engine.n_lists,
        pvalue=p.value,
        adjusted_pvalue=p.value,
        pvalue_interval=p.interval,
        pvalue_interval_wilson=p.wilson_interval,
        confidence_level=level,
        n_resamples=len(null.statistic),
        stopped_early=null.stopped_early,
        exact=found is not None,
        n_strata=n_strata,
        n_dropped=items.table.n_dropped,
        seed=options.seed,
        validity=(
            "Exact if lists are independent of each other, and places in them do not depend on the "
            f"group{given}."
        ),
        notes=notes,
        null_distribution=null.statistic,
    )


def _studentize(blocks: list[tuple[Array, Array]], zero: float) -> Array:
    """Return gaps over their errors; without an error, infinite unless the gap is zero.

    A block has values and errors; what is at most ``zero`` is a rounding error.
    """
    values, error = (np.concatenate(one, axis=-1) for one in zip(*blocks, strict=True))
    gap = values[0] - values[1]
    with np.errstate(divide="ignore", invalid="ignore"):
        studentized = gap / np.where(error > zero, error, 0.0)
    return np.where(np.abs(gap) <= zero, 0.0, studentized)


def _note_few(engine: ListsEngine) -> list[str]:
    """Return a note if too few lists make the standard error."""
    n = int(engine.cluster.max()) + 1
    if n >= _FEW_LISTS:
        return []
    few = format_count(n, "independent list")
    return [f"Only {few}: with fewer than {_FEW_LISTS} the test may reject a gap of zero."]
