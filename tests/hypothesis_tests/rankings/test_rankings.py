"""The test of rankings: values, exact p-values, invariances, levels, refusals."""

from __future__ import annotations

import copy
import itertools
import json
import pickle
import warnings
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import average_precision_score, ndcg_score

import fairperm
from fairperm import FairpermWarning, ranking_test
from fairperm.engines.rankings import ListsEngine
from fairperm.inference.multiplicity import adjust_pvalues
from fairperm.inference.null import Null, pvalue
from fairperm.metrics.rankings import RankedLists, get_ranking_metric
from tests.support.refusals import Refusal, check_wording, each, table
from tests.support.simulations import at_least, at_most

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    Array = NDArray[Any]


def lists(seed: int, n: int = 30, *, decimals: int = 1) -> dict[str, Array]:
    """Return lists of 4 to 9 items of two kinds, of which the first is relevant."""
    rng = np.random.default_rng(seed)
    query = np.repeat(np.arange(n), rng.integers(4, 10, n))
    first = np.append(True, query[1:] != query[:-1])
    relevance = (first | (rng.random(len(query)) < 0.3)).astype(int)
    score = rng.normal(size=len(query)) + relevance
    return {"relevance": relevance, "score": score.round(decimals), "query": query}


def run(given: dict[str, Any], group: Any, **options: Any) -> fairperm.RankingComparison:
    """Return the only comparison of two groups."""
    options = {"n_resamples": 99, "rng": 1, **options}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FairpermWarning)  # of few lists
        (one,) = ranking_test(**given, sensitive_features=group, **options)
    assert isinstance(one, fairperm.RankingComparison)
    return one


# Values.


def means(given: dict[str, Array], group: Array, value: Callable[[Array, Array], float]) -> Any:
    found: dict[int, list[float]] = {0: [], 1: []}
    for one in np.unique(given["query"]):
        mine = given["query"] == one
        found[int(group[mine][0])].append(value(given["relevance"][mine], given["score"][mine]))
    return {name: pytest.approx(np.mean(values)) for name, values in found.items()}


@pytest.mark.parametrize("decimals", [1, 6], ids=["ties", "no ties"])
def test_ndcg_and_average_precision_are_those_of_scikit_learn(decimals: int) -> None:
    k = 4
    given = lists(1, decimals=decimals)
    group = given["query"] % 2
    assert run(given, group, k=k).values == means(
        given, group, lambda y, s: ndcg_score([y], [s], k=k)
    )
    assert run(given, group, metric="map", k=k).values == means(
        given, group, average_precision_score
    )
    graded = given | {"relevance": given["relevance"] * (given["query"] % 3 + 1)}
    assert run(graded, group, k=k).values == means(
        graded, group, lambda y, s: ndcg_score([y], [s], k=k)
    )


# Group a has two lists, relevant at 2 and 4 of five, and at 1 of three.
HAND: dict[str, Any] = {
    "relevance": [0, 1, 0, 1, 0, 1, 0, 0, 0, 1, 1, 0, 0, 0, 0, 1],
    "rank": [1, 2, 3, 4, 5, 1, 2, 3] * 2,
    "query": [*"pppppqqq", *"rrrrrsss"],
}


@pytest.mark.parametrize(
    ("metric", "k", "expected"),
    [
        ("precision", 3, (1 / 3 + 1 / 3) / 2),
        ("precision", 4, (2 / 4 + 1 / 3) / 2),  # the second list has three items only
        ("recall", 3, (1 / 2 + 1) / 2),
        ("mrr", 10, (1 / 2 + 1) / 2),
        ("mrr", 1, (0 + 1) / 2),
        ("hit_rate", 1, 1 / 2),
        ("hit_rate", 2, 1.0),
    ],
)
def test_values_by_hand(metric: str, k: int, expected: float) -> None:
    result = run(HAND, [*"aaaaaaaabbbbbbbb"], metric=metric, k=k)
    assert result.values["a"] == pytest.approx(expected)
    assert result.design == "queries"
    assert result.counts["a"] == {"queries": 2}


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        ("precision", 2 / 3),
        ("map", (1 / 1 + 2 / 3) / 2),
        ("ndcg", (1 + 1 / 2) / (1 + 1 / np.log2(3))),
    ],
)
def test_positions_without_an_item_are_not_relevant(metric: str, expected: float) -> None:
    """Of a list of three items, the first and the third are known, and relevant."""
    given = {"relevance": [1] * 4, "rank": [1, 3, 1, 3], "query": [*"ppqq"]}
    assert run(given, [*"aabb"], metric=metric, k=4).values["a"] == pytest.approx(expected)


def test_scores_and_ranks_are_one() -> None:
    given = lists(2, decimals=9)
    order = np.lexsort([-given["score"], given["query"]])
    rank = np.empty(len(order))
    starts = np.flatnonzero(np.append(True, np.diff(given["query"]) > 0))
    rank[order] = np.arange(len(order)) - starts[given["query"][order]] + 1
    by_rank = {"relevance": given["relevance"], "rank": rank, "query": given["query"]}
    for metric, group in (("ndcg", given["query"] % 2), ("exposure", np.arange(len(rank)) % 2)):
        first, second = (run(one, group, metric=metric, k=4) for one in (given, by_rank))
        assert first.to_dict() == second.to_dict()


# Exposure: exact on small data.


# Lists a b b b and a a b; relevant are the first and third item, and the second.
ITEMS_BY_HAND: dict[str, Any] = {
    "relevance": [1, 0, 1, 0, 0, 1, 0],
    "rank": [1, 2, 3, 4, 1, 2, 3],
    "query": [*"ppppqqq"],
}


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        # 3 and 1 items in the top 2, where 2/4 + 4/3 and 6/4 + 2/3 are expected
        ("skew@k", (np.log(3 / (11 / 6)), np.log(1 / (13 / 6)))),
        (
            "exposure_per_relevance",
            (
                (1 + (1 + 1 / np.log2(3)) / 2) / (1 + 1 / 2),
                ((1 / np.log2(3) + 1 / 2 + 1 / np.log2(5)) / 3 + 1 / 2) / (1 / 3 + 0),
            ),
        ),
    ],
)
def test_exposure_by_hand(metric: str, expected: tuple[float, float]) -> None:
    result = run(ITEMS_BY_HAND, [*"abbbaab"], metric=metric, k=2)
    assert [result.values[one] for one in "ab"] == pytest.approx(expected)
    assert result.difference == pytest.approx(expected[0] - expected[1])
    assert ("relevance" in result.validity) == (metric == "exposure_per_relevance")


def test_skew_is_that_among_the_items_of_two_groups() -> None:
    """An item of a third group at the top of either list takes no share of them."""
    given = {"rank": [*range(1, 6), *range(1, 5)], "query": [*"pppppqqqq"]}
    result = run(given, [*"cabbbcaab"], groups=("a", "b"), metric="skew", k=3)
    assert [result.values[one] for one in "ab"] == pytest.approx(np.log([18 / 11, 6 / 13]))
    assert "among the items of both groups" in get_ranking_metric("skew").meaning


def value_of(metric: str, data: dict[str, Array], mine: Array, weight: Array) -> complex:
    """Return the value of the chosen items, with a weight for each list."""
    n_lists = len(weight)

    def total(values: Array) -> Array:
        return np.bincount(data["query"], values, n_lists)

    n, size = total(mine), np.bincount(data["query"])
    exposure, top = 1 / np.log2(data["rank"] + 1), data["rank"] <= 2
    average = partial(np.dot, weight / weight.sum())
    if metric == "exposure":
        return complex(average(total(exposure * mine) / n))
    if metric == "top_k_share":
        return complex(average(total(top * mine) / n))
    if metric == "skew":
        seen = average(total(top * mine))
        return complex(np.log(seen / average(total(top) * n / size)) if seen else np.nan)
    relevance = average(total(data["relevance"] * mine) / n)
    return complex(average(total(exposure * mine) / n) / relevance if relevance else np.nan)


@pytest.mark.parametrize("metric", ["exposure", "exposure_per_relevance", "top_k_share", "skew"])
def test_exposure_is_exact_on_small_data(metric: str) -> None:
    """All permutations, studentized by slopes of the gap in the weights of lists."""
    sizes = [4, 3, 5]
    data = {
        "query": np.repeat([0, 1, 2], sizes),
        "rank": np.concatenate([np.arange(1, n + 1) for n in sizes]),
        "relevance": np.array([1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0]),
    }
    group = np.array(list("abababaabbba"))

    def studentized(first: Array) -> float:
        def gap(weight: Array) -> complex:
            one, two = (value_of(metric, data, side, weight) for side in (first, ~first))
            return one - two

        found, step = gap(np.ones(3)).real, 1e-30j
        slopes = np.array([gap(np.ones(3) + step * one).imag / 1e-30 for one in np.eye(3)])
        error = np.sqrt(3 / 2 * np.sum(slopes**2))
        if error < 1e-12:
            return 0.0 if abs(found) < 1e-12 else float(np.inf * np.sign(found))
        return float(found / error)

    own = [np.flatnonzero((group == "a") & (data["query"] == one)) for one in range(3)]
    ways = [
        itertools.combinations(np.flatnonzero(data["query"] == one), len(mine))
        for one, mine in enumerate(own)
    ]
    draws = np.array(
        [
            studentized(np.isin(np.arange(12), np.concatenate(chosen)))
            for chosen in itertools.product(*ways)
        ]
    )
    observed, lost = studentized(group == "a"), np.isnan(draws)
    tails = [np.mean(lost | (side * draws >= side * observed - 1e-9)) for side in (1, -1)]
    found = run(data, group, metric=metric, k=2, n_resamples=999)
    assert (found.exact, found.design) == (True, "items")
    assert (found.n_resamples, found.n_undefined) == (len(draws), lost.sum())
    assert lost.any() == (metric in {"exposure_per_relevance", "skew"})
    assert found.statistic == pytest.approx(observed)
    assert found.pvalue == pytest.approx(min(1, 2 * min(tails)))
    random = run(data, group, metric=metric, k=2, n_resamples=150)
    assert not random.exact
    assert random.pvalue == pytest.approx(found.pvalue, abs=0.2)


def test_exposure_of_equally_relevant_items() -> None:
    """Labels are exchanged among items of one list and relevance; lists are the units."""
    rng = np.random.default_rng(8)
    query, rank = np.repeat(np.arange(3), 6), np.tile(np.arange(1, 7), 3)
    relevance, group = np.tile([1, 1, 0, 0, 0, 1], 3), np.tile([0, 1, 0, 1, 1, 1], 3)
    for one in range(3):
        group[query == one] = rng.permutation(group[query == one])
    value, part = 1 / np.log2(rank + 1), 2 * query + relevance
    mixed = [one for one in range(6) if len(set(group[part == one])) == 2]

    def studentized(labels: Array) -> float:
        sides = [[value[(part == one) & (labels == g)].mean() for g in (0, 1)] for one in mixed]
        gaps = np.array([first - second for first, second in sides])
        of_list = np.array(mixed) // 2
        alone = [gaps[of_list != one].mean() for one in set(of_list.tolist())]
        n = len(alone)
        error = np.sqrt((n - 1) / n * np.square(alone - gaps.mean()).sum())
        return float(gaps.mean() / error)

    ways = []
    for one in mixed:
        places = np.flatnonzero(part == one)
        n_first = int((group[places] == 0).sum())
        ways.append([set(chosen) for chosen in itertools.combinations(places.tolist(), n_first)])
    draws = []
    for chosen in itertools.product(*ways):
        labels = np.where(np.isin(np.arange(18), list(set().union(*chosen))), 0, 1)
        draws.append(studentized(labels))
    observed = studentized(group)
    found = run(
        {"rank": rank, "query": query, "control_features": relevance}, group, metric="exposure",
        n_resamples=9999,
    )  # fmt: skip
    assert (found.exact, found.n_resamples) == (True, len(draws))
    assert found.statistic == pytest.approx(observed)
    every = np.array(draws)
    tails = [np.mean(every >= observed - 1e-9), np.mean(every <= observed + 1e-9)]
    assert found.pvalue == pytest.approx(min(1, 2 * min(tails)))
    assert "given the stratum" in found.validity


# Invariances and results.


@pytest.mark.parametrize("metric", ["exposure_per_relevance", "skew"])
def test_lists_of_equal_sums_and_groups_of_equal_size_have_an_order(metric: str) -> None:
    """Short lists are often alike but for the items that are relevant."""
    query = np.repeat(np.arange(30), 4)
    options: dict[str, Any] = {"metric": metric, "k": 2, "n_resamples": 99}
    for seed in range(12):
        rng = np.random.default_rng(seed)
        one_of_four = rng.permuted(np.tile([1, 0, 0, 0], (30, 1)), axis=1)
        group = (one_of_four ^ (np.arange(30) % 2)[:, None]).ravel()
        given = {
            "query": query,
            "score": rng.normal(size=120),
            "relevance": rng.integers(0, 2, 120),
        }
        whole = run(given, group, **options)
        renamed = run(given | {"query": rng.permutation(30)[query]}, group, **options)
        swapped = run(given, 1 - group, **options)
        assert renamed.pvalue == whole.pvalue
        assert (swapped.pvalue, swapped.statistic) == (whole.pvalue, -whole.statistic)


@pytest.mark.parametrize(("metric", "relevance"), [("ndcg", [0, 1 / 3, 2 / 3]), ("map", [0, 1])])
def test_the_order_of_tied_items_changes_no_digit(metric: str, relevance: list[float]) -> None:
    rng = np.random.default_rng(3)
    columns = np.repeat(np.arange(40), 12), rng.integers(0, 3, 480), rng.choice(relevance, 480)
    one, other = (
        get_ranking_metric(metric).value(RankedLists.sort(*given, is_rank=False)[0], 5)
        for given in (columns, [column[::-1] for column in columns])
    )
    assert np.array_equal(one, other, equal_nan=True)


@pytest.mark.parametrize("metric", ["ndcg", "exposure"])
def test_a_query_may_be_named_by_two_columns(metric: str) -> None:
    given = lists(3, 40)
    query = given["query"]
    group = query // 4 % 2 if metric == "ndcg" else np.arange(len(query)) % 2
    data = given | {"user": query // 2, "turn": query % 2, "group": group}
    names: dict[str, Any] = {"relevance": "relevance", "score": "score", "data": data}
    one, other = (
        run(names | {"query": by, "cluster": "user"}, "group", metric=metric, k=4)
        for by in ("query", ["user", "turn"])
    )
    assert one.to_dict() == other.to_dict()


def test_one_query_or_cluster_has_no_standard_error() -> None:
    given, group = lists(3, 40), np.arange(len(lists(3, 40)["query"])) % 2
    single = np.zeros_like(given["query"])
    for name in ("query", "cluster"):
        with pytest.raises(
            fairperm.UndefinedMetricError, match=f"{name} must be two or more, for a standard error"
        ):
            run(given | {name: single}, group, metric="exposure")


def test_notes_count_queries_and_no_rows() -> None:
    given = {"query": [0, 1, 2, 3], "score": [1.0] * 4, "relevance": [1] * 4}
    notes = run(given, np.array([0, 0, 1, 1]), metric="ndcg", k=1).notes
    assert any("No query of group 0 shows how ndcg@1" in note for note in notes)


@pytest.mark.parametrize("unit", [1e-14, 1e14])
def test_the_unit_of_relevance_changes_nothing(unit: float) -> None:
    given = lists(3, 40)
    group = np.arange(len(given["query"])) % 2
    one, other = (
        run(given | {"relevance": given["relevance"] * k}, group, metric="exposure_per_relevance")
        for k in (1, unit)
    )
    assert one.pvalue < 0.9
    assert other.pvalue == one.pvalue


def test_results_say_which_design_it_was() -> None:
    given = lists(6)
    result = run(given, np.arange(len(given["query"])) % 2, metric="exposure")
    assert json.loads(json.dumps(result.to_dict(), allow_nan=False))["design"] == "items"
    assert "items in 30 queries" in repr(result)
    assert "Exact if lists are independent of each other" in repr(result)
    low, high = result.confidence_interval
    assert low < result.difference < high
    assert (low <= 0 <= high) == (result.pvalue > 0.05)
    none = given | {"relevance": np.where(given["query"] < 5, 0, given["relevance"])}
    result = run(none, given["query"] % 2, k=4)
    assert "5 queries have no relevant item" in " ".join(result.notes)
    assert sum(one["queries"] for one in result.counts.values()) == 25


# Several groups.


@pytest.mark.parametrize("metric", ["ndcg", "exposure"])
def test_several_groups_are_compared_one_by_one_and_adjusted(metric: str) -> None:
    given: dict[str, Any] = {**lists(9, 60)}
    n = len(given["query"])
    places = given["query"] if metric == "ndcg" else np.random.default_rng(2).integers(0, 3, n)
    group = np.array(list("abc"))[places % 3]
    options: dict[str, Any] = {"metric": metric, "k": 4, "n_resamples": 99, "rng": 1}
    found = ranking_test(**given, sensitive_features=group, **options)
    pairs = list(itertools.combinations("abc", 2))
    assert [one.groups for one in found] == pairs
    for one, pair in zip(found, pairs, strict=True):
        alone = run(given, group, groups=pair, **options)
        theirs = {"adjusted_pvalue": one.adjusted_pvalue, "answer": one.answer}
        assert one.to_dict() == alone.to_dict() | theirs
    raw = [one.pvalue for one in found]
    assert [one.adjusted_pvalue for one in found] == adjust_pvalues(np.array(raw), "holm").tolist()
    assert found.pvalue == min(one.adjusted_pvalue for one in found)
    rest = ranking_test(**given, sensitive_features=group, compare="rest", **options)
    assert [one.groups for one in rest] == [(name, "all others") for name in "abc"]
    merged = np.where(group == "b", "b", "all others")
    alone = run(given, merged, groups=("b", "all others"), **options)
    unlike = {"adjusted_pvalue": 0, "answer": ""}
    assert rest.comparisons[1].to_dict() | unlike == alone.to_dict() | unlike
    against = ranking_test(
        **given, sensitive_features=group, compare="reference", reference="b", **options
    )
    assert [one.groups for one in against] == [("a", "b"), ("c", "b")]
    assert against.comparisons[0].to_dict() | unlike == found.comparisons[0].to_dict() | unlike
    gaps = [one.to_dict()["difference"] for one in found]
    assert found.largest is found.comparisons[np.argmax(np.abs(gaps))]
    frame = found.to_frame()
    assert frame["adjusted_pvalue"].tolist() == [one.adjusted_pvalue for one in found]
    assert "a − b" in repr(found)
    assert "adjusted by  holm; each interval is of its gap alone" in repr(found)
    assert " ".join(repr(found).split()).count("adjusted p =") == len(found) + 1
    assert len(json.loads(json.dumps(found.to_dict(), allow_nan=False))["comparisons"]) == 3


def test_notes_of_several_groups_name_the_groups() -> None:
    given: dict[str, Any] = {**lists(9, 60)}
    group = np.array(list("abc"))[given["query"] % 3]
    none: dict[str, Any] = given | {
        "relevance": np.where(given["query"] == 0, 0, given["relevance"])
    }
    found = ranking_test(**none, sensitive_features=group, k=4, n_resamples=99, rng=1)
    said = "1 query has no relevant item, and no ndcg: left out."
    few = [one for one in found.notes if one.startswith("Only about")]
    assert len(few) == 3
    assert "queries of group 'a'" in few[0]
    assert {*found.notes} - {*few} == {f"a − b: {said}", f"a − c: {said}"}


# NDKL: all groups at once.


def divergence(labels: Sequence[Any]) -> float:
    """Return the NDKL of one list, as Geyik, Ambler and Kenthapadi (2019) define it."""
    total = weights = 0.0
    for i in range(1, len(labels) + 1):
        weight = 1 / np.log2(i + 1)
        for one in set(labels[:i]):
            share, due = (part.count(one) / len(part) for part in (labels[:i], labels))
            total += weight * share * np.log(share / due)
        weights += weight
    return total / weights


def test_lists_without_items_of_both_compared_groups_are_counted() -> None:
    """Lists of b and c, or of a and c, have items of two groups, but not of a and b."""
    given: dict[str, Any] = {
        "score": np.arange(48) % 7,
        "query": np.arange(48) // 4,
        "metric": "exposure",
    }
    group = [*"abba" * 10, *"bcbc", *"acac"]
    assert run(given, group, groups=("a", "b")).notes[0] == (
        "2 queries have items of only one of these groups: left out."
    )


def run_ndkl(given: dict[str, Any], group: Any, **options: Any) -> fairperm.ListDivergence:
    options = {"metric": "ndkl", "n_resamples": 99, "rng": 1, **options}
    (one,) = ranking_test(**given, sensitive_features=group, **options)
    assert isinstance(one, fairperm.ListDivergence)
    return one


def test_ndkl_is_that_of_the_definition() -> None:
    given = lists(11, 25, decimals=9)
    group = np.random.default_rng(1).integers(0, 4, len(given["query"]))
    order = np.lexsort([-given["score"], given["query"]])
    ranked = [group[order][given["query"][order] == one].tolist() for one in range(25)]
    expected = np.mean([divergence(one) for one in ranked if len(set(one)) > 1])
    assert run_ndkl(given, group).value == pytest.approx(expected, rel=1e-12)
    some = [[one for one in labels if one < 2] for labels in ranked]  # keep their order
    expected = np.mean([divergence(one) for one in some if len(set(one)) > 1])
    found = run_ndkl(given, group, groups=(1, 0))
    assert found.value == pytest.approx(expected, rel=1e-12)
    assert found.groups == (1, 0)


@pytest.mark.parametrize(
    ("labels", "strata"),
    [
        (["ab", "aabb", "abbbb"], None),
        (["abc", "baa", "cacb"], None),
        (["abcab", "bac", "aab"], ["xyxyx", "xyy", "xxy"]),
        (["cbab", "baac"], ["xxyz", "yxxy"]),
    ],
)
def test_ndkl_is_exact_on_small_data(labels: list[str], strata: list[str] | None) -> None:
    """All permutations of the labels within each list and stratum, one by one."""
    sizes = [len(one) for one in labels]
    query, rank = (
        np.repeat(np.arange(len(sizes)), sizes),
        [i for n in sizes for i in range(1, n + 1)],
    )
    where = strata or ["x" * n for n in sizes]
    ways = []
    for own, stratum in zip(labels, where, strict=True):
        every = {*itertools.permutations(range(len(own)))}
        kept = [
            order for order in every if all(stratum[i] == stratum[j] for i, j in enumerate(order))
        ]
        ways.append(sorted({"".join(own[i] for i in order) for order in kept}))
    varying = [one for one, some in zip(labels, ways, strict=True) if len(some) > 1]
    ways = [some for some in ways if len(some) > 1]
    draws = np.array([np.mean([*map(divergence, one)]) for one in itertools.product(*ways)])
    observed = np.mean([*map(divergence, varying)])
    given: dict[str, Any] = {"rank": rank, "query": query}
    given |= {} if strata is None else {"control_features": [*"".join(strata)]}
    found = run_ndkl(given, [*"".join(labels)], n_resamples=9999)
    assert (found.exact, found.n_resamples) == (True, len(draws))
    assert np.sort(found.null_distribution) == pytest.approx(np.sort(draws), rel=1e-12)
    assert found.pvalue == pytest.approx(np.mean(draws >= observed - 1e-12))
    assert found.expected == pytest.approx(draws.mean())
    assert (found.n_queries, len(found.notes)) == (len(ways), len(varying) < len(labels))
    assert ("given the stratum" in found.validity) == (strata is not None)
    random = run_ndkl(given, [*"".join(labels)], n_resamples=len(draws) - 1)
    assert not random.exact
    assert random.pvalue == pytest.approx(found.pvalue, abs=0.3)


def test_names_may_have_k() -> None:
    given = lists(6)
    group = given["query"] % 2
    short, plain = run(given, group, metric="ndcg@3"), run(given, group, metric="ndcg", k=3)
    assert short.to_dict() == plain.to_dict()


def test_what_a_comparison_has_is_looked_for_there() -> None:
    given = lists(6, decimals=9)
    group = np.arange(len(given["query"])) % 2
    for metric, names in {"exposure": ("difference", "values"), "ndkl": ("expected",)}.items():
        found = ranking_test(
            score=given["score"],
            query=given["query"],
            sensitive_features=group,
            metric=metric,
            n_resamples=99,
            rng=1,
        )
        for name in names:
            hint = f"^'RankingTestResult' object has no .*: use result.largest.{name}$"
            with pytest.raises(AttributeError, match=hint):
                getattr(found, name)
        with pytest.raises(AttributeError, match=r"has no attribute 'colour'$"):
            found.colour  # type: ignore[attr-defined]  # noqa: B018
        assert copy.deepcopy(found).to_dict() == found.to_dict()
        assert pickle.loads(pickle.dumps(found)).to_dict() == found.to_dict()  # noqa: S301


def test_ndkl_below_chance_has_a_note() -> None:
    """A large group at the top is near its share, and only larger values count."""
    place = np.tile(np.arange(10), 60)
    given = {"rank": place + 1, "query": np.repeat(np.arange(60), 10)}
    found = run_ndkl(given, np.where(place == 6, "few", "many"), n_resamples=999)
    assert found.value < found.expected
    assert found.pvalue == 1
    assert found.notes[0].startswith("The value is smaller than by chance (p = 0.0010), and")
    assert run_ndkl(given, np.where(place == 0, "few", "many")).notes == ()


def test_results_of_ndkl() -> None:
    given = lists(6, decimals=9)
    data = {**given, "kind": np.arange(len(given["query"])) % 3}
    found = ranking_test(
        score="score", query="query", sensitive_features="kind", metric="ndkl", data=data, rng=1
    )
    (one,) = found
    assert isinstance(one, fairperm.ListDivergence)
    assert found.largest is one
    assert (
        (found.pvalue, found.groups) == (one.pvalue, (0, 1, 2)) == (one.adjusted_pvalue, one.groups)
    )
    assert one.expected == one.null_distribution.mean()
    plain = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert plain["comparisons"][0]["counts"] == [*one.counts.values()]
    (row,) = found.to_frame("pyarrow").to_pylist()
    assert (row["groups"], row["value"], row["queries"]) == ("0, 1, 2", one.value, 30)
    assert "\n  ndkl      0." in repr(found)
    assert "by chance" in repr(found)
    assert "\n  kind = 2  " in repr(found)


def test_tied_lists_have_no_gap_and_notes_name_the_arguments() -> None:
    """The gap was −1.7e−16, and the note named y_pred and y_true."""
    ones, query = np.ones(24), np.repeat(np.arange(4), 6)
    with pytest.warns(FairpermWarning, match="standard error of exposure_per_relevance is zero"):
        found = ranking_test(
            ones, score=ones, query=query, sensitive_features=list("abbaba" * 4),
            metric="exposure_per_relevance", rng=1,
        )  # fmt: skip
    assert isinstance(found.largest, fairperm.RankingComparison)
    assert (found.largest.difference, found.pvalue) == (0.0, 1.0)
    assert found.notes[0].startswith("score equals relevance in all 24 rows.")


# Levels.

DATA_SETS = 300


def rejections(draw: Callable[[np.random.Generator], dict[str, Any]], n: int = DATA_SETS) -> int:
    rng = np.random.default_rng(7)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FairpermWarning)
        pvalues = [ranking_test(**draw(rng), n_resamples=199, rng=seed).pvalue for seed in range(n)]
    return int(np.sum(np.array(pvalues) <= 0.05))


def unequal_queries(rng: np.random.Generator, n: int = 40) -> dict[str, Any]:
    """Return queries of 3 to 11 items, a quarter of one group, whose lists are longer."""
    group = np.arange(n) < n // 4
    sizes = rng.integers(3, 8, n) + 4 * group
    query = np.repeat(np.arange(n), sizes)
    easy = rng.normal(0, 1, n)[query]
    return {
        "rank": np.concatenate([rng.permutation(n) + 1 for n in sizes]),
        "query": query,
        "relevance": (rng.random(len(query)) < 1 / (1 + np.exp(-easy))).astype(int),
        "sensitive_features": group[query],
        "metric": "precision",
        "k": 3,
    }


@pytest.mark.validate
@pytest.mark.parametrize("n", [40, 500])
def test_level_of_quality(n: int) -> None:
    """Unequal numbers and lengths of lists: the precision of random lists is 1/2 in both groups."""
    assert rejections(partial(unequal_queries, n=n)) <= at_most(0.05, DATA_SETS)


@pytest.mark.validate
def test_items_are_no_units_of_quality() -> None:
    """Taken row by row, relevance in the top 3 rejects far too often."""
    rng, found = np.random.default_rng(7), 0
    for seed in range(DATA_SETS):
        data = unequal_queries(rng)
        top = data["rank"] <= 3
        found += (
            fairperm.permutation_test(
                data["relevance"][top],
                sensitive_features=data["sensitive_features"][top],
                metric="base_rate",
                rng=seed,
            ).pvalue
            <= 0.05
        )
    assert found > at_least(0.1, DATA_SETS)


def favoured(rng: np.random.Generator, n: int = 40, share: float | None = None) -> dict[str, Any]:
    """Return lists of 4 to 12 items.

    Without a share, half of the items of each list are of either group, and one group is placed
    higher, each as often as the other: the mean gap is zero. With a share of one group, places do
    not depend on the group.
    """
    sizes = 2 * rng.integers(2, 7, n)
    query = np.repeat(np.arange(n), sizes)
    group, favour = np.arange(len(query)) % 2 == 0, rng.normal(0, 1.5, n)[query]
    if share is not None:
        group, favour = rng.random(len(query)) < share, np.zeros(len(query))
    return {
        "score": rng.normal(size=len(query)) + favour * group,
        "query": query,
        "sensitive_features": group,
        "metric": "exposure",
    }


@pytest.mark.validate
@pytest.mark.parametrize("n", [40, 500])
@pytest.mark.parametrize("share", [None, 0.2], ids=["mean gap of zero", "unequal groups"])
def test_level_of_exposure(share: float | None, n: int) -> None:
    assert rejections(partial(favoured, n=n, share=share)) <= at_most(0.05, DATA_SETS)


def unequal_clusters(rng: np.random.Generator) -> dict[str, Any]:
    """Return lists of 15 users, of whom a few have most; users favour either kind of item."""
    user = np.repeat(np.arange(15), np.clip(3 * rng.pareto(1, 15), 1, 60).astype(int))
    query = np.repeat(np.arange(len(user)), 2 * rng.integers(2, 7, len(user)))
    group = np.arange(len(query)) % 2 == 0
    return {
        "score": rng.normal(size=len(query)) + rng.normal(size=15)[user[query]] * group,
        "query": query,
        "cluster": user[query],
        "sensitive_features": group,
        "metric": "exposure",
    }


@pytest.mark.validate
def test_level_of_exposure_in_unequal_clusters() -> None:
    assert rejections(unequal_clusters, 600) <= at_most(0.05, 600)


def test_errors_of_clusters_of_lists_are_the_jackknifes() -> None:
    """Wider where few of them carry the gap, which no exchange within lists shows."""
    data = unequal_clusters(np.random.default_rng(1))
    query, group = data["query"], data.pop("sensitive_features")
    order = np.lexsort([-data["score"], query])
    exposure = np.empty(len(query))
    exposure[order] = 1 / np.log2(np.arange(len(query)) - np.searchsorted(query, query) + 2)
    lists = [query == one for one in range(query.max() + 1)]
    gaps = np.array([exposure[one & ~group].mean() - exposure[one & group].mean() for one in lists])
    user = np.array([data["cluster"][one][0] for one in lists])
    sums = np.bincount(user, gaps - gaps.mean())
    effective = np.sum(sums**2) ** 2 / np.sum(sums**4)
    alone = np.array([gaps[user != one].mean() for one in range(len(sums))])
    variance = 14 / 15 * np.square(alone - gaps.mean()).sum()
    found = run(data, group)
    error = np.sqrt(variance * (1 + (3 / effective) ** 2 - (3 / 20) ** 2))
    assert found.standard_error == pytest.approx(error)
    assert found.statistic == pytest.approx(gaps.mean() / error)
    assert found.notes[0].startswith(f"Only about {effective:.0f} clusters show how the gap in")


@pytest.mark.validate
def test_items_are_no_units_of_exposure() -> None:
    """Exposure row by row, as if items were independent, rejects too often."""
    rng, found, n = np.random.default_rng(7), 0, 100
    for seed in range(n):
        data = favoured(rng)
        order = np.lexsort([-data["score"], data["query"]])
        sizes = np.bincount(data["query"])
        rank = np.empty(len(order))
        rank[order] = np.concatenate([np.arange(1, n + 1) for n in sizes])
        found += (
            fairperm.permutation_test(
                1 / np.log2(rank + 1),
                sensitive_features=data["sensitive_features"],
                control_features=data["query"],
                metric="mean_outcome",
                n_resamples=199,
                rng=seed,
            ).pvalue
            <= 0.05
        )
    assert found > at_least(0.1, n)


def returning_items(rng: np.random.Generator) -> dict[str, Any]:
    """Return 100 lists of 3 to 19 out of 40 items, whose quality does not depend on the group."""
    sizes = rng.integers(3, 20, 100)
    item = np.concatenate([rng.permutation(40)[:n] for n in sizes])
    score = rng.normal(size=40)[item] + rng.normal(size=len(item))
    query = np.repeat(np.arange(100), sizes)
    return {"score": score, "query": query, "sensitive_features": item < 10, "cluster": item}


@pytest.mark.validate
@pytest.mark.filterwarnings("ignore:Only about 9 queries show")
def test_items_are_the_units_if_they_return() -> None:
    """The how-to's test by item holds its level; lists that share items are not independent."""
    rng, by_item, within_lists = np.random.default_rng(7), 0, 0
    for seed in range(DATA_SETS):
        data = returning_items(rng)
        item = data.pop("cluster")
        of_query = pd.Series(data["score"]).groupby(data["query"])
        exposure = 1 / np.log2(1 + of_query.rank(ascending=False))
        exposure -= exposure.groupby(data["query"]).transform("mean")
        options: dict[str, Any] = {"n_resamples": 199, "rng": seed}
        by_item += (
            fairperm.permutation_test(
                exposure.to_numpy(),
                sensitive_features=data["sensitive_features"],
                cluster=item,
                metric="mean_outcome",
                **options,
            ).pvalue
            <= 0.05
        )
        within_lists += ranking_test(**data, metric="exposure", **options).pvalue <= 0.05
    assert by_item <= at_most(0.05, DATA_SETS)
    assert within_lists > at_least(0.3, DATA_SETS)


def unequal_spreads(rng: np.random.Generator) -> dict[str, Any]:
    """Return lists of 5 to 19 items, one or two of which have relevance 0 or 5, the others 1.

    The mean relevance of both kinds is 1, and their places are random: exposure per relevance is
    equal.
    """
    sizes = rng.integers(5, 20, 60)
    query = np.repeat(np.arange(60), sizes)
    place = np.arange(len(query)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    group = place < rng.integers(1, 3, 60)[query]
    relevance = np.where(group, 5.0 * (rng.random(len(query)) < 0.2), 1.0)
    score = rng.normal(size=len(query))
    return {"query": query, "score": score, "sensitive_features": group, "relevance": relevance}


@pytest.mark.validate
@pytest.mark.parametrize(
    ("metric", "draw"), [("exposure_per_relevance", unequal_spreads), ("skew", favoured)]
)
def test_level_of_ratios(metric: str, draw: Callable[[np.random.Generator], Any]) -> None:
    """Studentized gaps hold the level if ratios are equal; gaps that are not studentized do not."""
    rng, chosen, pvalues = np.random.default_rng(7), get_ranking_metric(metric), []
    for _ in range(DATA_SETS):
        data = draw(rng)
        query = data["query"]
        relevance = data.get("relevance", np.zeros(len(query)))
        ranked, order = RankedLists.sort(query, data["score"], relevance, is_rank=False)
        group = data["sensitive_features"][order].astype(int)
        value = chosen.value(ranked, 3)
        engine = ListsEngine.of(ranked.query, value, group, ranked.query, chosen.of_group)
        blocks = [engine.observed(), *(engine.permuted(64, rng) for _ in range(4))]
        values, errors = (np.concatenate(one, axis=-1) for one in zip(*blocks, strict=True))
        gaps = values[0] - values[1]
        pvalues.append(
            [
                pvalue(Null(one[1:]), one[0], "two-sided", 1e-9, 0.95).value
                for one in (gaps / errors, gaps)
            ]
        )
    studentized, plain = (np.array(pvalues) <= 0.05).sum(axis=0)
    assert studentized <= at_most(0.05, DATA_SETS)
    assert plain > at_least(0.1, DATA_SETS)


def unequal_shares(rng: np.random.Generator, n: int) -> dict[str, Any]:
    """Return random lists of 4 to 12 items; three groups share a third of them, two of these many.

    The other lists have items of one group only.
    """
    query = np.repeat(np.arange(n), rng.integers(4, 13, n))
    group = np.where(query % 3 == 0, rng.choice(3, len(query), p=[0.5, 0.4, 0.1]), 0)
    score = rng.normal(size=len(query))
    return {"score": score, "query": query, "sensitive_features": group, "metric": "ndkl"}


@pytest.mark.validate
@pytest.mark.parametrize("n", [40, 500])
def test_level_of_ndkl(n: int) -> None:
    """It is exact, and neither far below nor above its level."""
    found = rejections(partial(unequal_shares, n=n), 1000)
    assert at_least(0.045, 1000) <= found <= at_most(0.05, 1000)


@pytest.mark.validate
def test_labels_must_not_leave_their_lists() -> None:
    """With labels exchanged over all items, random lists are rejected nearly always."""
    rng, rejected, n = np.random.default_rng(7), 0, 30

    def value(query: Array, group: Array) -> float:
        own = [group[query == one].tolist() for one in range(40)]
        return float(np.mean([divergence(one) for one in own if len(set(one)) > 1]))

    for _ in range(n):
        data = unequal_shares(rng, 40)
        query, group = (data[name] for name in ("query", "sensitive_features"))  # in any order
        draws = [value(query, rng.permutation(group)) for _ in range(39)]
        rejected += sum(one >= value(query, group) for one in draws) < 2
    assert rejected > at_least(0.5, n)


@pytest.mark.validate
def test_ndkl_finds_lists_that_favour_one_group_or_the_other() -> None:
    """Their mean exposure has no gap."""
    rng, n, found = np.random.default_rng(7), 60, {"ndkl": 0, "exposure": 0}
    for seed in range(n):
        data = favoured(rng, 100)
        for metric in found:
            p = ranking_test(**data | {"metric": metric}, n_resamples=199, rng=seed).pvalue
            found[metric] += p <= 0.05
    assert found["ndkl"] >= at_least(0.95, n)
    assert found["exposure"] <= at_most(0.05, n)


# Refusals.

GOOD: dict[str, Any] = {
    "relevance": [1, 0, 0, 1] * 4,
    "score": [4.0, 3.0, 2.0, 1.0] * 4,
    "query": np.repeat(list("pqrs"), 4),
    "sensitive_features": np.repeat(list("aabb"), 4),
    "k": 2,
    "n_resamples": 9,
    "rng": 1,
}
ITEMS = {"metric": "exposure", "sensitive_features": list("ab" * 8)}
NDKL = ITEMS | {"metric": "ndkl"}
REFUSALS = table(
    ranking_test,
    GOOD,
    globals(),
    """
rank=[1, 2, 3, 4] * 4 → TypeError: Pass score or rank; got both.
score=None → TypeError: Pass score or rank; got neither.
query=None → TypeError: query must be given
relevance=None → TypeError: relevance must be given for ndcg
relevance=list('abcd' * 4) → TypeError: relevance must be made of real num
score=list('abcd' * 4) → TypeError: score must be made of real numbers
score=[np.inf] + [1.0] * 15 → score must be finite
**ITEMS, sensitive_features=[None, *'bab', *'ab' * 6], missing='drop' →
    sensitive_features has 1 missing value (row 0 of 16). Items cannot be dropped from lists
    that are ranked by score, as those below would move up: fill in what is missing.
    missing='group' makes a group
query=[None, *'ppp', *'qqqqrrrrssss'] → query has 1 missing value
query=['p'] → query must be as long as relevance
metric='ndgc' →
    metric must be one of 'ndcg', 'precision', 'recall', 'average_precision', 'reciprocal_rank',
    'hit_rate', 'exposure', 'exposure_per_relevance' and 3 more; got 'ndgc'. Did you mean
    'ndcg'?
metric=max → TypeError: metric must be the name of a metric of rankings
k=0 → k must be an integer from 1
k='10' → TypeError: k must be an integer
metric='ndcg@5' → k must be at most the longest list (4 items); got 5. Pass metric='ndcg@4'
**ITEMS, metric='top_k_share', k=4 →
    k must be below the last position (4) for top_k_share; got 4. All items are
data={'a': [1]}, cluster=['a', 'b'] → cluster must be one column; got ['a', 'b']. Join
relevance=[-1, 0, 0, 1] * 4 → relevance must be not negative
relevance=[1e+308, 0, 0, 1] * 4 → relevance must be at most 1e+100; got 1e+308.
**ITEMS, metric='exposure_per_relevance', relevance=[1e-300, 0, 0, 1e-300] * 4 →
    relevance must be at least 1e-100 for some item; got 1e-300.
relevance=[2, 0, 0, 1] * 4, metric='map' →
    relevance must be 0 or 1 for average_precision; got 2.0. Graded relevance needs
    metric='ndcg'.
score=[1.0] * 16, metric='mrr' →
    score must be made of different numbers within a query for reciprocal_rank; got equal sc
score=None, rank=[1, 1, 2, 3] * 4 →
    rank must be made of different positions within a query; got 1 twice.
score=None, rank=[0, 1, 2, 3] * 4 →
    rank must be made of positions 1, 2, 3, …; got 0. The first position is 1: add 1
sensitive_features=list('ab' * 8) →
    sensitive_features must be the same for all items of a query for ndcg, which compares
    queries; got query 'p' with several. To compare kinds of items within lists, use
    metric='exposure
metric='exposure' → UndefinedMetricError: sensitive_features must vary within a query for exposure
**ITEMS, control_features=[0, 1] * 8 →
    UndefinedMetricError: sensitive_features must vary within a query for exposure
control_features=[0, 1] * 8 → control_features must be the same for all items of a query
cluster=[0, 1] * 8 → cluster must be the same for all items of a query; got query 'p'
cluster=[0] * 16 → cluster must keep to one group
relevance=[0] * 8 + [1, 0, 0, 1] * 2 →
    UndefinedMetricError: relevance must be above 0 for some item of group 'a'
**ITEMS, metric='exposure_per_relevance', relevance=None →
    TypeError: relevance must be given for exposure_per_relevance
**ITEMS, metric='exposure_per_relevance', relevance=[-1, 0, 0, 1] * 4 →
    relevance must be not negative
**ITEMS, metric='exposure_per_relevance', relevance=[1, 0] * 8 →
    UndefinedMetricError: relevance must be above 0 for some item of group 'b'; got 'none'.
**ITEMS, metric='skew', k=1 →
    UndefinedMetricError: k must be so large that some item of group 'b' is in the top k; got 1.
    metric='top_k_share'
**ITEMS → UndefinedMetricError: query must be made of lists with different gaps
sensitive_features=['a'] * 16 → sensitive_features has 1 group
groups=('a', 'c') → groups must be made of groups
compare='all' → compare must be one of 'pairs', 'reference', 'rest'
reference='a' → reference can only be used with compare='reference'
compare='reference', reference='c' → reference must be one of the groups ('a', 'b'); got 'c'.
adjust='maxt' → adjust must be one of 'holm', 'bh', 'by', None
alternative='more' → alternative must be one of
**NDKL, compare='rest' →
    compare cannot be used with metric='ndkl', which compares all groups at once.
**NDKL, reference='a' →
    reference cannot be used with metric='ndkl', which compares all groups at once.
**NDKL, alternative='greater' →
    alternative cannot be used with metric='ndkl', which has no direction
**NDKL, cluster=np.repeat([0, 1], 8) →
    cluster cannot be used with metric='ndkl': its permutations take lists for independent
**NDKL, score=[1.0] * 16 →
    score must be made of different numbers within a query for ndkl; got equal scores. Pass rank
**NDKL, score=None, rank=[1, 1, 2, 3] * 4 → rank must be made of different positions within a query
metric='ndkl' →
    UndefinedMetricError: sensitive_features must vary within a query for ndkl, which compares
    items of one list; got no query with items
**NDKL, control_features=[0, 1] * 8 →
    sensitive_features must vary within a stratum of a query for ndkl
**NDKL, sensitive_features=['a'] * 16 → sensitive_features has 1 group
**NDKL, groups=('a', 'c') → groups must be made of groups
""",
)


@each(REFUSALS)
def test_refusal(refusal: Refusal) -> None:
    check_wording(refusal)


def test_strata_of_lists_with_one_group_only_are_counted() -> None:
    given = {"score": np.arange(12), "query": np.repeat([0, 1, 2], 4)}
    strata = {"control_features": np.tile([0, 0, 1, 1], 3)}
    result = run(given | strata, [*"abababaaaaab"], metric="exposure")
    assert result.notes[0].startswith("2 strata of lists have items of only one of these groups")
