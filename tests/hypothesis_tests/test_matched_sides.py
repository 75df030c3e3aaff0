"""Matched sets in clusters, in strata and with weights, against closed forms and enumeration."""

from __future__ import annotations

import itertools
import re
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import stats

from fairperm import FairpermError, equivalence_test, omnibus_test, permutation_test
from tests.support.simulations import between

pytestmark = pytest.mark.filterwarnings(
    "ignore:.* shows? how the gap", "ignore:.* left out; ", "ignore:.*is zero in this"
)


def sets(first: Any, second: Any, **more: Any) -> Any:
    """Return the arguments of a test of pairs; other columns are by set."""
    n = len(first)
    columns = ("cluster", "control_features", "sample_weight")
    by_set = {name: np.tile(more.pop(name), 2) for name in columns if name in more}
    return {
        "y_pred": np.concatenate([first, second]),
        "sensitive_features": ["a"] * n + ["b"] * n,
        "matched": np.tile(np.arange(n), 2),
        "metric": "mean_prediction",
        "rng": 1,
        **by_set,
        **more,
    }


def rows(n: int = 60, seed: int = 1) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    level = rng.normal(0, 2, n)
    return level + rng.normal(0.4, 1, n), level + rng.normal(0, 1, n)


def test_clusters_of_sets_move_whole() -> None:
    """Equal clusters are paired t-tests of their means, and their signs are enumerated."""
    first, second = rows()
    result = permutation_test(**sets(first, second, cluster=np.arange(60) // 5))
    means = (first - second).reshape(12, 5).mean(axis=1)
    flips = np.array([*itertools.product([1, -1], repeat=12)])
    null = stats.ttest_1samp(flips * means, 0, axis=1).statistic
    observed = stats.ttest_1samp(means, 0).statistic
    assert result.statistic == pytest.approx(observed)
    tails = [np.mean(sign * null >= sign * observed - 1e-9) for sign in (1, -1)]
    permuted, normal = 2 * min(tails), 2 * stats.norm.sf(abs(observed))
    assert result.exact
    assert result.pvalue == pytest.approx(max(permuted, normal))
    assert result.counts["a"] == {"rows": 60, "sets": 60, "clusters": 12}
    assert "in all sets of a cluster at once" in result.validity
    assert ", by clusters)" in repr(result)


def jackknife(value: Any, units: Any) -> float:
    """Return the jackknife's standard error of a value of some of the sets."""
    names = np.unique(units)
    without = np.array([value(units != one) for one in names])
    n = len(names)
    return float(np.sqrt((n - 1) / n * ((without - without.mean()) ** 2).sum()))


@pytest.mark.parametrize("has_weights", [True, False])
@pytest.mark.parametrize("test", [permutation_test, omnibus_test])
def test_unequal_sets_have_the_error_of_the_jackknife(test: Any, has_weights: bool) -> None:
    first, second = rows()
    rng = np.random.default_rng(3)
    weight = rng.integers(1, 6, 60) if has_weights else np.ones(60)
    cluster = rng.integers(0, 15, 60)
    options = {"sample_weight": weight} if has_weights else {"cluster": cluster}
    result = test(**sets(first, second, **options, n_resamples=99))
    moved = first - second

    def gap(kept: Any) -> float:
        return float(np.average(moved[kept], weights=weight[kept]))

    units = np.arange(60) if has_weights else cluster
    expected = gap(units >= 0) / jackknife(gap, units)
    found = result.statistic if test is permutation_test else np.sqrt(result.statistic)
    # leave-one-out estimates are centred at the value, the jackknife at their mean
    assert found == pytest.approx(abs(expected), rel=0.01)
    assert ("weighted" in repr(result)) == has_weights


def test_a_set_of_weight_two_counts_as_a_cluster_of_two_copies() -> None:
    first, second = (one.round() for one in rows(20))
    weight = np.arange(20) % 2 + 1
    weighted = permutation_test(**sets(first, second, sample_weight=weight))
    copies = np.repeat(np.arange(20), weight)
    copied = permutation_test(**sets(first[copies], second[copies], cluster=copies))
    assert copied.pvalue == weighted.pvalue
    assert copied.confidence_interval == pytest.approx(weighted.confidence_interval)


def test_equal_weights_and_clusters_of_one_set_say_nothing() -> None:
    first, second = rows()
    plain = permutation_test(**sets(first, second))
    for more in ({"sample_weight": np.full(60, 7.0)}, {"cluster": np.arange(60)}):
        same = permutation_test(**sets(first, second, **more))
        assert (same.pvalue, same.variance) == (plain.pvalue, "hall")


def test_strata_are_weighted_by_their_sets_or_by_the_user() -> None:
    first, second = rows()
    stratum = np.repeat([0, 1, 2], [30, 20, 10])
    moved = [(first - second)[stratum == one] for one in range(3)]
    for weights, share in (
        (None, np.array([3, 2, 1]) / 6),
        ({0: 1, 1: 0, 2: 3}, np.array([1, 0, 3]) / 4),
    ):
        given = sets(first, second, control_features=stratum, stratum_weights=weights)
        result = permutation_test(**given, variance="delta", n_resamples=199)
        error = np.sqrt(share**2 @ [one.var(ddof=1) / len(one) for one in moved])
        gap = share @ [one.mean() for one in moved]
        assert result.difference == pytest.approx(gap)
        assert result.statistic == pytest.approx(gap / error)
        assert result.values["a"] - result.values["b"] == pytest.approx(gap)
        assert result.n_strata == (share > 0).sum()
        both = omnibus_test(**given, n_resamples=199)
        assert both.statistic == pytest.approx((gap / error) ** 2)
        assert "not standardized" not in repr(result) + repr(both)


def test_strata_are_enumerated_together() -> None:
    first, second = rows(8)
    stratum = np.arange(8) % 2
    given = sets(first, second, control_features=stratum, variance="delta")
    result = permutation_test(**given)
    moved = first - second

    def statistic(signs: Any) -> float:
        parts = [(np.array(signs) * moved)[stratum == one] for one in range(2)]
        error = np.sqrt(sum(one.var(ddof=1) / 4 / 4 for one in parts))
        return float(np.mean([one.mean() for one in parts]) / error)

    null = np.array([statistic(signs) for signs in itertools.product([1, -1], repeat=8)])
    observed = statistic(np.ones(8))
    tails = [np.mean(sign * null >= sign * observed - 1e-9) for sign in (1, -1)]
    assert result.exact
    assert result.statistic == pytest.approx(observed)
    assert result.pvalue == pytest.approx(min(1, 2 * min(tails)))


def test_strata_of_one_set_are_left_out() -> None:
    first, second = rows(21)
    stratum = np.append(np.arange(20) % 2, 7)
    result = permutation_test(**sets(first, second, control_features=stratum))
    assert result.counts["a"]["sets"] == 20
    assert result.notes[0] == (
        "1 stratum with fewer than two sets that the metric rests on was left out; 2 remain."
    )


def test_lazy_frames_do_not_count_clusters_of_sets_as_clusters_of_a_group() -> None:
    first, second = rows()
    given = sets(first > 0, second > 0, cluster=np.arange(60) // 5, metric="selection_rate")
    here = permutation_test(**given)
    names = {name: name for name in ("y_pred", "sensitive_features", "matched", "cluster")}
    frame = pl.DataFrame({name: given[name] for name in names}).lazy()
    there = permutation_test(**{**given, **names}, data=frame)
    assert there.pvalue == here.pvalue


def test_margins_are_those_of_clusters() -> None:
    first, second = rows()
    result = equivalence_test(**sets(first, second, cluster=np.arange(60) // 5), margin=1.5)
    means = (first - second).reshape(12, 5).mean(axis=1)
    assert result.upper is not None
    error = stats.sem(means)
    assert result.upper.statistic == pytest.approx((means.mean() - 1.5) / error)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"cluster": [1, 2, 2, 2]}, "cluster must be alike in all rows of one set of matched; got"),
        ({"control_features": list("xxyy")}, "control_features must be alike in all rows of one"),
        ({"sample_weight": [1, 2, 1, 1]}, "sample_weight must be alike in all rows of one set of"),
        (
            {"cluster": [1, 1, 1, 1], "control_features": [1, 2, 1, 2]},
            "cluster must be in one stratum of control_features each; got 1 cluster that is in",
        ),
        ({"cluster": [1, 2, 1, 2], "split_clusters": True}, "split_clusters cannot be used with"),
        ({"stratum_weights": {1: 2}}, "stratum_weights needs control_features."),
        (
            {"control_features": [1, 1, 1, 1], "stratum_weights": {2: 2}},
            "stratum_weights must be a mapping with strata of control_features (1) as keys",
        ),
        ({"control_features": [1, 2, 1, 2]}, "matched must be names of at least two sets of one"),
        ({"sample_weight": [1, 0, 1, 0]}, "sample_weight must be"),
        (
            {"sample_weight": [1, 2, 1, 2], "variance": "hall"},
            "variance must be 'auto', 'delta' or None with cluster or sample_weight; got 'hall'",
        ),
        ({"cluster": [1, None, 1, 2]}, "cluster has 1 missing value"),
        ({"cluster": [1, 2]}, "cluster must be as long as"),
    ],
)
def test_what_does_not_fit_the_sets_is_refused(given: dict[str, Any], says: str) -> None:
    good: dict[str, Any] = {
        "y_pred": [1, 0, 0, 1],
        "sensitive_features": list("aabb"),
        "matched": [1, 2, 1, 2],
        "metric": "selection_rate",
    }
    with pytest.raises(FairpermError, match=f"^{re.escape(says)}"):
        permutation_test(**{**good, **given})


def draw_templates(
    n_templates: int, size: int, rng: np.random.Generator, *, is_rate: bool
) -> tuple[Any, Any, Any]:
    """Return answers to prompts of templates, each with its own liking of names; none on average.

    Templates have 1 to ``size`` prompts. The groups' answers have unequal spreads.
    """
    sizes = rng.integers(1, size + 1, n_templates)
    template = np.repeat(np.arange(n_templates), sizes)
    n = len(template)
    liking = rng.normal(0, 2 if is_rate else 1, n_templates)[template]
    level = rng.normal(0, 1, n)
    first = level + liking / 2 + rng.normal(0, 1.5, n)
    second = level - liking / 2 + rng.normal(0, 1.0, n)
    if is_rate:  # the larger spread does not move a rate whose threshold is at the middle
        return first > 0, second > 0, template
    return first, second, template


@pytest.mark.validate
@pytest.mark.parametrize(("n_templates", "is_rate"), [(20, False), (60, False), (40, True)])
def test_templates_hold_the_level_where_single_prompts_do_not(
    n_templates: int, is_rate: bool
) -> None:
    rng = np.random.default_rng(n_templates)
    times, whole, apart, power = 600, 0, 0, 0
    metric = "selection_rate" if is_rate else "mean_prediction"
    for seed in range(times):
        first, second, template = draw_templates(n_templates, 8, rng, is_rate=is_rate)
        options: dict[str, Any] = {"metric": metric, "rng": seed, "n_resamples": 199}
        whole += permutation_test(**sets(first, second, cluster=template, **options)).pvalue <= 0.05
        apart += permutation_test(**sets(first, second, **options)).pvalue <= 0.05
        if not is_rate:
            moved = sets(first + 1.5, second, cluster=template, **options)
            power += permutation_test(**moved).pvalue <= 0.05
    low, high = between(0.025, 0.07, times)
    assert low <= whole <= high < apart
    assert is_rate or power > 0.8 * times
