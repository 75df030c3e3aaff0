"""The test of rankings: their quality for kinds of users, and the places of kinds of items."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from typing import TypeVar, Unpack

import numpy as np

from fairperm._utils import checks
from fairperm._utils.formatting import format_count, name_of_gap
from fairperm._utils.signatures import complete, shares
from fairperm.data.arguments import (
    Adjustment,
    Alternative,
    Column,
    Columns,
    Inputs,
    Pairing,
    TestArguments,
)
from fairperm.data.columns import library_of
from fairperm.data.sample import Sample
from fairperm.errors import (
    InputError,
    InputTypeError,
    UndefinedMetricError,
    argument,
    shown,
    warn_of,
)
from fairperm.hypothesis_tests.groups import compare as compare_groups
from fairperm.hypothesis_tests.pairs import check_pairing, find_reference, list_pairs
from fairperm.hypothesis_tests.permutation import permutation_test
from fairperm.hypothesis_tests.plan import Options, Plan
from fairperm.hypothesis_tests.rankings.items import ItemsTest
from fairperm.hypothesis_tests.rankings.lists import MAX_ITEMS, VALUE, ReadLists, find_sides
from fairperm.hypothesis_tests.rankings.order import OrderTest
from fairperm.hypothesis_tests.results.gaps import PermutationTestResult
from fairperm.hypothesis_tests.results.omnibus import OmnibusTestResult
from fairperm.hypothesis_tests.results.rankings import RankingComparison, RankingTestResult
from fairperm.hypothesis_tests.run import run
from fairperm.inference.multiplicity import adjust_pvalues
from fairperm.metrics.definition import Kind, Metric
from fairperm.metrics.numbers import mean_metric
from fairperm.metrics.rankings import RankingMetric, find_ranking

_Result = TypeVar("_Result", PermutationTestResult, OmnibusTestResult)


class RankingArguments(TestArguments, total=False):
    """Arguments of :func:`fairperm.permutation_test` that a test of rankings has, too."""

    cluster: Columns | None
    alternative: Alternative


@shares(permutation_test, RankingArguments)
def ranking_test(
    relevance: Column | None = None,
    *,
    score: Column | None = None,
    rank: Column | None = None,
    query: Column,
    metric: str = "ndcg",
    k: int = 10,
    compare: Pairing = "pairs",
    reference: Hashable = None,
    adjust: Adjustment = "holm",
    **given: Unpack[RankingArguments],
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
        How many items from the top of a list count; "ndcg@5" is "ndcg" with k=5. Not for
        "average_precision", "exposure", "exposure_per_relevance" and "ndkl", which count whole
        lists.
    groups : sequence, optional
        Two groups or more; by default all, in sorted order. "ndkl" leaves out items of others.
    compare : {"pairs", "reference", "rest"}
        Whether to compare each pair of groups, each group with the reference, or each group with
        all others together.
    reference : optional
        The reference group, by default the one with most queries, or most items if items are
        compared.
    adjust : {"holm", "bh", "by"} or None
        How p-values are adjusted for the number of comparisons.
    control_features : array-like, str or list of str, optional
        Strata: of queries for metrics of quality, of items for exposure. Pass the relevance as a
        stratum to compare the exposure of equally relevant items.
    cluster : array-like or str, optional
        Queries that belong together, such as those of one user.
    missing : {"error", "drop", "group"}
        As in :func:`fairperm.permutation_test`. Items that are ranked by `score` cannot be dropped,
        as those below would move up.
    n_resamples : int or "auto"
        As in :func:`fairperm.permutation_test`; at least 1.
    **given
        All others are those of :func:`fairperm.permutation_test`.

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
    least as large. Lists that put a large group first have a smaller value than random ones, unless
    they do so nearly always: "exposure" finds them, "ndkl" does not, and has a note.
    `compare`, `reference`, `alternative` and `cluster` cannot be used with it.

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
    men's exposure is 0.047 higher than women's (0.512 v 0.465); chance does not explain it
    (p = 0.0004).
      men         0.512  of 1,000 items in 200 queries
      women       0.465  of 600 items in 200 queries
      difference  +0.047  95 % interval +0.024 to +0.069
      p-value     0.0004  two-sided, 9,999 draws, 95 % interval < 0.0001 to 0.0011
      validity    Exact if lists are independent of each other, and places in them do not
                  depend on the group; asymptotically valid, with many independent queries,
                  for a gap of zero.
      items       1,600 used, 0 left out for missing values
    """
    given = complete(ranking_test, given)
    options, cluster = Options.check(given), given["cluster"]
    adjust = checks.choice("adjust", adjust, ("holm", "bh", "by", None))
    chosen = find_ranking(metric, checks.integer("k", k, 1, MAX_ITEMS))
    if chosen.of_all_groups:
        _check_all_groups(chosen, compare, reference, options.alternative, cluster)
    compare = check_pairing(compare, reference)
    if (score is None) == (rank is None):
        both = "both" if score is not None else "neither"
        raise InputTypeError(f"Pass {argument('score')} or {argument('rank')}; got {both}.")
    if query is None:
        raise InputTypeError("query", "given", None)
    inputs = Inputs.of(given, y_true=relevance, y_pred=score if rank is None else rank)
    read = ReadLists.of(inputs, query, chosen, is_rank=rank is not None, groups=given["groups"])
    table, every = read.table, read.groups
    if chosen.of_all_groups:
        order = OrderTest.of(read.items, chosen, every, options)
        (tested,) = run([order], options.resampling)
        only = order.result(tested)
        return RankingTestResult(
            metric=only.metric,
            groups=every,
            comparisons=(only,),
            pvalue=only.pvalue,
            adjust=adjust,
            notes=only.notes,
            frame_library=library_of(inputs.data),
        )
    if compare == "reference":
        reference = find_reference(table, every, reference)
    pairs = list(list_pairs(table, every, compare, reference, table.attribute))
    found: list[RankingComparison] = []
    notes: dict[str, None] = dict.fromkeys(table.notes)
    warned: dict[str, None] = {}
    for pair in pairs:
        if chosen.of_items:
            test = ItemsTest.of(read.items.choose(pair), chosen, pair, options)
            (tested,) = run([test], options.resampling)
            result, remarks = test.result(tested), test.remarks
        else:
            result, remarks = compare_queries(table, chosen, pair, options)
        one = _as_ranking(result, chosen)
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
        frame_library=library_of(inputs.data),
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


def _as_ranking(result: PermutationTestResult, metric: RankingMetric) -> RankingComparison:
    """Return the result as that of a test of rankings."""
    own = {"design", "k", "adjusted_pvalue"}
    names = RankingComparison.__dataclass_fields__.keys() - own
    return RankingComparison(
        **{name: getattr(result, name) for name in names},
        adjusted_pvalue=result.pvalue,
        design="items" if metric.of_items else "queries",
        k=metric.k if metric.uses_k else None,
    )


def compare_queries(
    every: Sample,
    metric: RankingMetric,
    pair: tuple[Hashable, Hashable],
    options: Options,
) -> tuple[PermutationTestResult, tuple[str, ...]]:
    """Compare the mean quality of queries: the paper's test, with a query as a row.

    Returns the result, and those of its notes that are no warnings.
    """
    group = find_sides(every.group, every.groups, pair)
    both = replace(every, group=group, groups=pair).take(np.flatnonzero(group < 2))
    queries = keep_valued(both, metric)
    check_valued(queries, pair)
    plan = Plan.for_table(average_queries(metric), queries, pair, options)
    result = compare_groups(queries, plan, pair, options)
    return name_queries(result), queries.notes


def keep_valued(queries: Sample, metric: RankingMetric) -> Sample:
    """Return the queries that have a value, as ``y_true``, with a note on the others."""
    values = queries.columns[VALUE]
    known, notes = ~np.isnan(values), queries.notes
    if lost := int((~known).sum()):
        have = format_count(lost, "query has", "queries have")
        notes += (f"{have} no relevant item, and no {metric.name}: left out.",)
    queries = replace(queries, columns={"y_true": values}, notes=notes, units="queries")
    return queries.take(np.flatnonzero(known))


def check_valued(queries: Sample, pair: tuple[Hashable, Hashable]) -> None:
    """Raise UndefinedMetricError if a group has no query with a value."""
    for name, n in queries.sizes().items():
        if name in pair and not n:
            rule = f"above 0 for some item of group {shown(name)}"
            raise UndefinedMetricError("relevance", rule, "none")


def average_queries(metric: RankingMetric) -> Metric:
    """Return the mean over queries as a metric of rows."""
    return mean_metric(
        metric.full_name, metric.meaning, lambda y_true: y_true, kind=Kind.REGRESSION
    )


def name_queries(result: _Result) -> _Result:
    """Return a result whose counts of rows are called those of queries."""
    counts = {
        group: {
            "queries" if name == "rows" else name: n
            for name, n in one.items()
            if name in {"rows", "clusters"}
        }
        for group, one in result.counts.items()
    }
    return replace(result, counts=counts)
