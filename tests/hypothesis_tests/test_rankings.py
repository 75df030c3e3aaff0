"""The test of rankings: values, exact p-values, invariances, levels, refusals."""

from __future__ import annotations

import itertools
import json
import warnings
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, ndcg_score

import fairperm
from fairperm import FairpermWarning, ranking_test
from fairperm.engines.rankings import ListsEngine
from fairperm.inference.multiplicity import adjust_pvalues
from fairperm.inference.null import Null, pvalue
from fairperm.metrics.rankings import RankedLists, get_ranking_metric
from tests.support.lazy_data import LAZY
from tests.support.simulations import at_least, at_most

if TYPE_CHECKING:
    from collections.abc import Callable

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
        sums = [(gaps - gaps.mean())[of_list == one].sum() for one in set(of_list.tolist())]
        error = np.sqrt(len(sums) / (len(sums) - 1) * np.sum(np.square(sums))) / len(gaps)
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


@pytest.mark.parametrize("metric", ["ndcg", "exposure", "exposure_per_relevance", "skew"])
@pytest.mark.parametrize("clustered", [False, True])
def test_order_names_and_threads_change_nothing(metric: str, clustered: bool) -> None:
    given = lists(3, 40)
    n = len(given["query"])
    rng = np.random.default_rng(4)
    group = given["query"] // 2 % 2 if metric == "ndcg" else rng.integers(0, 2, n)
    options: dict[str, Any] = {"metric": metric, "k": 4, "n_resamples": 199}
    cluster = {"cluster": given["query"] // 2} if clustered else {}
    whole = run(given | cluster, group, **options)
    order = rng.permutation(n)
    shuffled = {name: one[order] for name, one in (given | cluster).items()}
    assert run(shuffled, group[order], **options).pvalue == whole.pvalue
    renamed = given | cluster | {"query": 1000 - given["query"]}
    assert run(renamed, group, **options).pvalue == whole.pvalue
    swapped = run(given | cluster, 1 - group, **options)
    assert (swapped.pvalue, swapped.difference) == (whole.pvalue, -whole.difference)
    assert run(given | cluster, group, n_jobs=2, **options).pvalue == whole.pvalue


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


@pytest.mark.validate
@pytest.mark.parametrize("form", ["duckdb", "polars"])
@pytest.mark.parametrize("metric", ["ndcg", "exposure"])
def test_lazy_frames_give_the_same(form: str, metric: str) -> None:
    import pyarrow as pa

    given = lists(5)
    group = given["query"] % 2 if metric == "ndcg" else np.arange(len(given["query"])) % 2
    table = pa.table(given | {"group": group})
    names = {name: name for name in given}
    eager = run(names | {"data": table}, "group", metric=metric, k=4)
    lazy = run(names | {"data": LAZY[form](table)}, "group", metric=metric, k=4)
    assert lazy.to_dict() == eager.to_dict()


def test_results_say_which_design_it_was() -> None:
    given = lists(6)
    result = run(given, np.arange(len(given["query"])) % 2, metric="exposure")
    assert json.loads(json.dumps(result.to_dict(), allow_nan=False))["design"] == "items"
    assert "items in 30 queries" in repr(result)
    assert "do not depend on the group" in repr(result)
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
        theirs = alone.to_dict() | {"adjusted_pvalue": one.adjusted_pvalue}
        assert one.to_dict() == theirs
    raw = [one.pvalue for one in found]
    assert [one.adjusted_pvalue for one in found] == adjust_pvalues(np.array(raw), "holm").tolist()
    assert found.pvalue == min(one.adjusted_pvalue for one in found)
    rest = ranking_test(**given, sensitive_features=group, compare="rest", **options)
    assert [one.groups for one in rest] == [("a", "rest"), ("b", "rest"), ("c", "rest")]
    merged = np.where(group == "b", "b", "rest")
    alone = run(given, merged, **options)
    assert rest.comparisons[1].to_dict() | {"adjusted_pvalue": 0} == alone.to_dict() | {
        "adjusted_pvalue": 0
    }
    against = ranking_test(
        **given, sensitive_features=group, compare="reference", reference="b", **options
    )
    assert [one.groups for one in against] == [("a", "b"), ("c", "b")]
    assert against.comparisons[0].to_dict() | {"adjusted_pvalue": 0} == found.comparisons[
        0
    ].to_dict() | {"adjusted_pvalue": 0}
    assert found.largest.difference == max(
        (one.difference for one in found), key=lambda gap: abs(gap)
    )
    frame = found.to_frame()
    assert frame["adjusted_pvalue"].tolist() == [one.adjusted_pvalue for one in found]
    assert "a − b" in repr(found)
    assert "adjusted by  holm" in repr(found)
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


# Levels.

DATA_SETS = 300


def rejections(draw: Callable[[np.random.Generator], dict[str, Any]]) -> int:
    rng = np.random.default_rng(7)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FairpermWarning)
        pvalues = [
            ranking_test(**draw(rng), n_resamples=199, rng=seed).pvalue for seed in range(DATA_SETS)
        ]
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
    assert rejections(partial(unequal_queries, n=n)) <= at_most(0.06, DATA_SETS)


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
    assert rejections(partial(favoured, n=n, share=share)) <= at_most(0.06, DATA_SETS)


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
    assert studentized <= at_most(0.06, DATA_SETS)
    assert plain > at_least(0.1, DATA_SETS)


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
BAD: dict[str, tuple[dict[str, Any], str]] = {
    "score and rank": ({"rank": [1, 2, 3, 4] * 4}, "Pass score or rank; got both"),
    "no score": ({"score": None}, "Pass score or rank; got neither"),
    "no query": ({"query": None}, "query must be given"),
    "no relevance": ({"relevance": None}, "relevance must be given for ndcg"),
    "texts as relevance": ({"relevance": list("abcd" * 4)}, "relevance must be made of real num"),
    "texts as scores": ({"score": list("abcd" * 4)}, "score must be made of real numbers"),
    "infinite scores": ({"score": [np.inf] + [1.0] * 15}, "score must be finite"),
    "missing queries": ({"query": [None, *"ppp", *"qqqqrrrrssss"]}, "query has 1 missing value"),
    "lengths": ({"query": ["p"]}, "query must be as long as relevance"),
    "unknown metric": ({"metric": "ndgc"}, "metric must be one of .* Did you mean 'ndcg'"),
    "a metric of rows": ({"metric": max}, "metric must be the name of a metric of rankings"),
    "k of zero": ({"k": 0}, "k must be an integer from 1"),
    "k of text": ({"k": "10"}, "k must be an integer"),
    "k beyond the lists": (
        {"k": 5},
        r"k must be at most the longest list \(4 items\); got 5\. Pass k=4",
    ),
    "negative relevance": ({"relevance": [-1, 0, 0, 1] * 4}, "relevance must be not negative"),
    "graded relevance": (
        {"relevance": [2, 0, 0, 1] * 4, "metric": "map"},
        "relevance must be 0 or 1 for average_precision; got 2.0.*metric='ndcg'",
    ),
    "tied scores": (
        {"score": [1.0] * 16, "metric": "mrr"},
        "score must be made of different numbers within a query for reciprocal_rank",
    ),
    "tied ranks": (
        {"score": None, "rank": [1, 1, 2, 3] * 4},
        "rank must be made of different positions within a query",
    ),
    "ranks from zero": (
        {"score": None, "rank": [0, 1, 2, 3] * 4},
        "rank must be made of positions 1, 2, 3",
    ),
    "group varies": (
        {"sensitive_features": list("ab" * 8)},
        "sensitive_features must be the same for all items of a query for ndcg.*'p'.*exposure",
    ),
    "group does not vary": (
        {"metric": "exposure"},
        "sensitive_features must vary within a query for exposure",
    ),
    "strata of one group": (
        ITEMS | {"control_features": [0, 1] * 8},
        "sensitive_features must vary within a query for exposure",
    ),
    "strata vary": (
        {"control_features": [0, 1] * 8},
        "control_features must be the same for all items of a query",
    ),
    "clusters split queries": (
        {"cluster": [0, 1] * 8},
        "cluster must be the same for all items of a query; got query 'p'",
    ),
    "clusters of both groups": ({"cluster": [0] * 16}, "cluster must keep to one group"),
    "no relevant item": (
        {"relevance": [0] * 8 + [1, 0, 0, 1] * 2},
        "relevance must be above 0 for some item of group 'a'",
    ),
    "no relevance for a ratio": (
        ITEMS | {"metric": "exposure_per_relevance", "relevance": None},
        "relevance must be given for exposure_per_relevance",
    ),
    "negative relevance of a ratio": (
        ITEMS | {"metric": "exposure_per_relevance", "relevance": [-1, 0, 0, 1] * 4},
        "relevance must be not negative",
    ),
    "no relevant item of a kind": (
        ITEMS | {"metric": "exposure_per_relevance", "relevance": [1, 0] * 8},
        "relevance must be above 0 for some item of group 'b'; got 'none'",
    ),
    "no item of a kind in the top": (
        ITEMS | {"metric": "skew", "k": 1},
        "k must be so large that some item of group 'b' is in the top k; got 1.*'top_k_share'",
    ),
    "the same gap everywhere": (ITEMS, "query must be made of lists with different gaps"),
    "one group": ({"sensitive_features": ["a"] * 16}, "has 1 group"),
    "unknown group": ({"groups": ("a", "c")}, "groups must be made of groups"),
    "compare": ({"compare": "all"}, "compare must be one of 'pairs', 'reference', 'rest'"),
    "reference": ({"reference": "a"}, "reference can only be used with compare='reference'"),
    "unknown reference": (
        {"compare": "reference", "reference": "c"},
        r"reference must be one of the groups \('a', 'b'\); got 'c'",
    ),
    "adjust": ({"adjust": "maxt"}, "adjust must be one of 'holm', 'bh', 'by', None"),
    "alternative": ({"alternative": "more"}, "alternative must be one of"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_arguments_are_named(name: str) -> None:
    given, match = BAD[name]
    with pytest.raises((fairperm.InputError, fairperm.InputTypeError), match=match):
        ranking_test(**(GOOD | given))
