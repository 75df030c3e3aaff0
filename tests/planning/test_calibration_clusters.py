"""Calibration with clusters: whole ones are weighted and drawn, and the level is the right one.

Values are computed by hand or by scikit-learn, the nearest weights by a general minimizer, levels
by a simulation that is written here. Bounds are 99.9 % quantiles of the binomial distribution.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray
from scipy.optimize import brentq, linprog, minimize
from scipy.stats import fisher_exact

from fairperm import calibrate, permutation_test
from fairperm.data.sample import Sample
from fairperm.hypothesis_tests.groups import compare
from fairperm.hypothesis_tests.plan import check_resampling
from fairperm.planning import equal_groups
from fairperm.planning.equal_groups import compute_values, impose_gap
from fairperm.planning.populations import Population, select_units
from fairperm.planning.repeated_tests import RepeatedTest
from tests.planning.test_equal_groups import clustered, of_rows, repeat_test
from tests.support.simulations import SURE, at_most

Array = NDArray[np.float64]

Columns = dict[str, Any]
LEVEL = 0.05


# The population: clusters are what is weighted, and the groups are equal.


@pytest.mark.validate
def test_no_other_weights_of_clusters_are_nearer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(equal_groups, "_STRONGEST", 1e12)
    made = repeat_test(clustered("positive_predictive_value"))
    own = made.shares()[0]
    found = impose_gap(made.table, made.plan.metric.parts, made.shares(), 0.0)[0]
    mine, table = own > 0, made.table
    chosen, label = table.columns["y_pred"], table.columns["y_true"]

    def whole(free: Array) -> Array:
        chance = np.zeros_like(own)
        chance[mine] = free
        return chance

    def precision(chance: Array) -> float:
        weight = of_rows(table, chance)
        return float(weight[chosen & label].sum() / weight[chosen].sum())

    def positives(chance: Array) -> float:
        weight = of_rows(table, chance)
        return float(weight[label].sum() / weight.sum())

    best = minimize(
        lambda free: np.sum(free * np.log(free / own[mine])),
        own[mine],
        method="SLSQP",
        bounds=[(1e-9, 1)] * mine.sum(),
        constraints=[
            {"type": "eq", "fun": lambda free: free.sum() - 1},
            {"type": "eq", "fun": lambda free: precision(whole(free)) - precision(found)},
            {"type": "eq", "fun": lambda free: positives(whole(free)) - positives(own)},
        ],
        options={"ftol": 1e-13, "maxiter": 500},
    )
    assert best.success
    assert best.fun > 1e-2
    assert found[mine] == pytest.approx(best.x, abs=1e-4)


def test_a_rate_becomes_that_of_both_groups_together() -> None:
    # 3 of 8 rows and 9 of 12 are selected: together 12 of 20; labels are all alike
    picked = [[1, 1], [0, 0, 0], [1, 0, 0], [1, 1, 1, 1], [1, 0], [1, 1, 0], [1, 1, 0]]
    given = {
        "y_true": [1] * 20,
        "y_pred": np.concatenate(picked),
        "sensitive_features": ["a"] * 8 + ["b"] * 12,
        "cluster": np.repeat(np.arange(7), [len(one) for one in picked]),
        "metric": "selection_rate",
    }
    made = repeat_test(given)
    found = impose_gap(made.table, made.plan.metric.parts, made.shares(), 0.0)
    assert sorted(select_units(made.table).count.tolist()) == [1] * 5 + [
        2
    ]  # two clusters are equal
    for chance in found:
        weight = of_rows(made.table, chance)
        assert weight @ made.table.columns["y_pred"] / weight.sum() == pytest.approx(12 / 20)


def is_borrowed(made: RepeatedTest) -> bool:
    """Tell whether one group has clusters of the other once they are made equal."""
    found = impose_gap(made.table, made.plan.metric.parts, made.shares(), 0.0)
    group = select_units(made.table).group
    return any(found[side][group != side].any() for side in (0, 1))


def small(seed: int) -> Columns:
    """Return labels and predictions that are much alike within clusters, of groups far apart."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 8, 40)
    cluster = np.repeat(np.arange(40), sizes)
    group = (cluster >= rng.integers(10, 30)).astype(int)
    own, other = rng.normal(size=(2, 40))[:, cluster]
    label = own + rng.normal(size=len(group)) + rng.normal() * group > 0
    score = rng.uniform(0, 2.5) * label + other + rng.normal(size=len(group))
    columns = {"y_true": label, "y_pred": score > 0.5, "sensitive_features": group}
    return {**columns, "cluster": cluster, "metric": "npv", "variance": None}


def has_weights(given: Columns) -> bool:
    """Tell whether clusters have weights of some size that give both groups the same npv.

    So they do if these linear equations can be solved: of the metric, of labels, and of the sum.
    """
    negative, passed = ~given["y_true"], ~given["y_pred"]
    target = (negative & passed).sum() / passed.sum()
    for side in (0, 1):
        mine = given["sensitive_features"] == side
        share = negative[mine].mean()
        rows = np.stack([passed * (negative - target), negative - share])[:, mine]
        which = np.unique(given["cluster"][mine], return_inverse=True)[1].ravel()
        sums = np.stack([np.bincount(which, row) for row in rows] + [np.ones(which.max() + 1)])
        least = 0.1 / sums.shape[1]
        if linprog(np.zeros(sums.shape[1]), A_eq=sums, b_eq=[0, 0, 1], bounds=(least, 1)).status:
            return False
    return True


def test_clusters_are_not_borrowed_where_those_of_a_group_suffice() -> None:
    suffice = [seed for seed in range(100, 160) if has_weights(small(seed))]
    assert len(suffice) > 30
    assert not [seed for seed in suffice if is_borrowed(repeat_test(small(seed)))]


@pytest.mark.parametrize("size", [1e-8, 1e8])
def test_numbers_of_any_size_are_made_equal_beside_shares_of_labels(size: float) -> None:
    rng = np.random.default_rng(1)
    given = {**clustered("accuracy"), "metric": "mean_squared_error"}
    number = given["y_true"] + rng.normal(size=240) * (1 + given["sensitive_features"])
    made = repeat_test({**given, "y_true": given["y_true"] * size, "y_pred": number * size})
    found = impose_gap(made.table, made.plan.metric.parts, made.shares(), 0.0)
    first, second = (compute_values(made.table, made.plan.metric.parts, one)[0] for one in found)
    assert first == pytest.approx(second, rel=1e-9)
    assert not is_borrowed(made)


def test_directions_that_turn_are_followed_slowly() -> None:
    weight = np.random.default_rng(4).uniform(0.5, 2, 240)
    assert not is_borrowed(repeat_test({**clustered("roc_auc"), "sample_weight": weight}))


# The samples: clusters that stay together, each drawn one by itself.


def contents(table: Sample) -> Iterator[tuple[Any, ...]]:
    """Yield of each cluster its group and its rows, as often as there are such clusters."""
    assert table.cluster is not None
    assert table.alike is not None
    for cluster in np.unique(table.cluster):
        rows = np.flatnonzero(table.cluster == cluster)
        (group,), (times,) = np.unique(table.group[rows]), np.unique(table.alike[rows])
        each = np.repeat(rows, table.count[rows] // times)
        columns = (one[each].tolist() for one in table.columns.values())
        yield from [(group, *sorted(zip(*columns, strict=True)))] * times


def test_equal_clusters_are_one_kind_and_nothing_else_is() -> None:
    given = clustered("accuracy")
    expected = Counter(
        (given["sensitive_features"][rows[0]], *sorted(zip(*pairs, strict=True)))
        for rows in (np.flatnonzero(given["cluster"] == one) for one in np.unique(given["cluster"]))
        for pairs in [(given[name][rows].tolist() for name in ("y_true", "y_pred"))]
    )
    table = repeat_test(given).table
    assert Counter(contents(table)) == expected
    assert len(select_units(table).count) == len(expected) < expected.total()


def drawn(metric: str) -> tuple[RepeatedTest, Sample]:
    """Return a sample of 50 and 70 clusters, in which both groups have every kind."""
    made = repeat_test({**clustered(metric), "variance": "auto"})
    half = np.add(*made.shares()) / 2
    sample = Population(made.table, (50, 70), (half, half)).sample(np.random.default_rng(3))
    return made, sample


def test_samples_have_whole_clusters_as_often_as_they_are_drawn() -> None:
    made, sample = drawn("accuracy")
    kinds = {one[1:] for one in contents(made.table)}
    found = list(contents(sample))
    assert {one[1:] for one in found} <= kinds
    assert Counter(one[0] for one in found) == {0: 50, 1: 70}
    assert {one[1:] for one in found if one[0]} & {one[1:] for one in found if not one[0]}


@pytest.mark.parametrize("metric", ["accuracy", "f1_score", "roc_auc", "mean_squared_error"])
def test_a_cluster_that_is_drawn_twice_is_two_clusters(metric: str) -> None:
    """The test of a sample is that of its rows written out, every copy with a name of its own."""
    made, sample = drawn(metric)
    written = list(contents(sample))
    sizes = [len(one) - 1 for one in written]
    values_of = zip(*(row for one in written for row in one[1:]), strict=True)
    columns: Columns = dict(zip(made.table.columns, map(np.array, values_of), strict=True))
    for n_resamples in (0, 99):
        resampling = check_resampling(n_resamples, 7, 1, False, fewest=0)
        options = replace(made.options, resampling=resampling)
        result = compare(sample, made.plan, sample.groups, options)
        expected = permutation_test(
            **columns,
            sensitive_features=np.repeat([one[0] for one in written], sizes),
            cluster=np.repeat(np.arange(len(written)), sizes),
            metric=metric,
            n_resamples=n_resamples,
            rng=7,
        )
        assert result.counts == expected.counts
        assert result.statistic == pytest.approx(expected.statistic, rel=1e-12)
        assert result.pvalue == pytest.approx(expected.pvalue, rel=1e-9)


# Levels, against a simulation that knows nothing of all this.


def people() -> Columns:
    """Return 40 people who are much alike over 4 rows, and 160 who are not; with a gap."""
    rng = np.random.default_rng(4)
    chance = np.r_[rng.beta(0.1, 0.1, 40), np.full(160, 0.6)]
    return {
        "y_true": np.ones(800, bool),
        "y_pred": rng.random(800) < np.repeat(chance, 4),
        "sensitive_features": np.repeat([0, 1], [160, 640]),
        "cluster": np.repeat(np.arange(200), 4),
        "metric": "selection_rate",
        "n_resamples": 39,
    }


def tilted(selected: Array, rate: float) -> Array:
    """Return weights of clusters with so many of their 4 rows selected that have this rate."""

    def weights(reach: float) -> Array:
        raised: Array = np.exp(reach * selected)
        raised /= raised.sum()
        return raised

    return weights(brentq(lambda at: weights(at) @ selected - 4 * rate, -9, 9))


def brute_force(n: int, **options: Any) -> int:
    """Count the rejections of n samples of people, whole clusters drawn of groups made equal."""
    given = {**people(), **options}
    rng = np.random.default_rng(11)
    groups = np.split(given["y_pred"].reshape(-1, 4), [40])
    chances = [tilted(one.sum(axis=1), given["y_pred"].mean()) for one in groups]
    rejected = 0
    for seed in range(n):
        picked = [rng.choice(len(p), len(p), p=p) for p in chances]
        sample = np.concatenate([one[k] for one, k in zip(groups, picked, strict=True)]).ravel()
        result = permutation_test(**{**given, "y_pred": sample}, rng=seed, progress=False)
        rejected += result.pvalue <= LEVEL
    return rejected


@pytest.mark.validate
def test_a_bad_level_is_found_and_a_good_one_too() -> None:
    n = 300
    assert brute_force(100, cluster=None) > at_most(LEVEL, 100)  # rows taken for people
    levels = {}
    for variance in ("delta", None):
        options: dict[str, Any] = {"variance": variance, "alternative": "symmetric"}
        found = calibrate(**people(), **options, n_simulations=n, rng=1)
        levels[variance] = round(found.level * n)
        assert same_rate(levels[variance], brute_force(n, **options), n)
    assert levels["delta"] <= at_most(LEVEL, n)
    assert levels[None] > at_most(LEVEL, n)
    assert not same_rate(levels["delta"], levels[None], n)


def same_rate(first: int, second: int, n: int) -> bool:
    """Tell whether two counts of n trials can be of one rate: Fisher's exact test."""
    table = [[first, second], [n - first, n - second]]
    return bool(fisher_exact(table).pvalue > 1 - SURE)


# What comes out.


def test_names_row_order_processes_and_engines_change_nothing() -> None:
    given = clustered("accuracy")
    shared: Columns = {"metric": "accuracy", "n_simulations": 30, "n_resamples": 39, "rng": 8}
    names = ("y_true", "y_pred", "sensitive_features", "cluster")
    columns = {name: given[name] for name in names}
    expected = calibrate(**columns, **shared).to_dict()
    order = np.random.default_rng(0).permutation(240)
    mixed = {name: one[order] for name, one in columns.items()}
    mixed["cluster"] = 7 * mixed["cluster"] % 1999  # other names, in another order
    assert calibrate(**mixed, **shared, n_jobs=2).to_dict() == expected
    by_name: Columns = {name: name for name in names}
    lazily = calibrate(**by_name, data=pl.LazyFrame(mixed), **shared)
    assert lazily.to_dict() == expected
    assert expected["level"] < expected["power"]


def test_strata_are_made_equal_one_by_one() -> None:
    given = clustered("accuracy")
    stratum = np.where(given["cluster"] % 3 == 0, "x", "y")
    found = calibrate(
        **{**given, "variance": "auto"},
        control_features=stratum,
        n_simulations=5,
        n_resamples=39,
        rng=1,
    )
    assert found.null.startswith("Clusters were reweighted until accuracy was the same in both")
    made = repeat_test({**given, "control_features": stratum})
    first, second = impose_gap(made.table, made.plan.metric.parts, made.shares(), 0.0)
    right = made.table.columns["y_true"] == made.table.columns["y_pred"]
    for inside in (made.table.stratum == 0, made.table.stratum == 1):
        weights = [of_rows(made.table, one)[inside] for one in (first, second)]
        rates = [one @ right[inside] / one.sum() for one in weights]
        assert rates[0] == pytest.approx(rates[1], abs=1e-9)


def test_the_result_counts_clusters() -> None:
    found = calibrate(**people(), n_simulations=2, rng=1)
    assert found.sizes == (160, 640)
    assert found.clusters == (40, 160)
    assert "\n  sample  40 clusters of 0 and 160 clusters of 1\n" in repr(found)
    assert found.null.startswith("Clusters were reweighted until selection_rate was 0.")


def test_clusters_are_borrowed_where_a_group_has_none_to_weigh() -> None:
    given = {
        "y_true": [1] * 20,
        "y_pred": [0] * 8 + [1, 0, 0] * 2 + [0, 0, 0, 1, 1, 0],
        "sensitive_features": ["a"] * 8 + ["b"] * 12,
        "cluster": np.r_[np.repeat(np.arange(4), 2), np.repeat(np.arange(4, 8), 3)],
        "metric": "selection_rate",
    }
    found = calibrate(**given, variance=None, n_simulations=2, rng=1)
    assert found.null.endswith(" Clusters of 'b' were mixed into 'a'.")
