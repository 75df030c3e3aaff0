"""Strata with one row or few rows of a group: levels, coverage and power, and refusals.

Designs and metrics were fixed before their levels were known. The negative control divides by
variances that are zero in strata of one row, as the tests once did.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest

from fairperm import UndefinedMetricError, equivalence_test, permutation_test
from tests.support.simulations import at_least, at_most

Design = Callable[[np.random.Generator], tuple[np.ndarray, np.ndarray]]
Labelled = Callable[[np.random.Generator], tuple[np.ndarray, ...]]

pytestmark = pytest.mark.filterwarnings("ignore::fairperm.FairpermWarning")


def equal(a: int, b: int, strata: int) -> Design:
    """Return strata that all have so many rows of each group."""
    return lambda _: (np.full(strata, a), np.full(strata, b))


DESIGNS: dict[str, Design] = {
    "100 pairs": equal(1, 1, 100),
    "100 of 1 and 3": equal(1, 3, 100),
    "100 of 3 and 1": equal(3, 1, 100),
    "60 of 2 and 2": equal(2, 2, 60),
    "60 Poisson": lambda rng: (rng.poisson(1.5, 60), rng.poisson(6, 60)),
    "one large, 40 of 1 and 2": lambda _: (np.r_[np.ones(40, int), 60], np.r_[[2] * 40, 80]),
}


def rows(design: Design, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return the stratum of each row, and whether it is of the first group."""
    first, second = design(rng)
    stratum = np.repeat(np.arange(len(first)), first + second)
    in_first = np.concatenate([np.arange(a + b) < a for a, b in zip(first, second, strict=True)])
    return stratum, in_first


def errors(design: Design, seed: int, gap: float = 0.0) -> dict[str, Any]:
    """Return errors of mean zero, of which the first group's spread thrice as far."""
    rng = np.random.default_rng([7, seed])
    stratum, in_first = rows(design, rng)
    error = rng.normal(size=len(stratum)) * np.where(in_first, 3, 1) + gap * in_first
    error += rng.normal(size=stratum.max() + 1)[stratum]
    return {
        "y_true": np.zeros(len(error)),
        "y_pred": error,
        "sensitive_features": np.where(in_first, "a", "b"),
        "control_features": stratum,
    }


def outcomes(design: Design, seed: int, rates: tuple[float, float]) -> dict[str, Any]:
    """Return predictions that are positive at these rates, a little more often in some strata."""
    rng = np.random.default_rng([8, seed])
    stratum, in_first = rows(design, rng)
    shift = rng.uniform(-0.2, 0.2, stratum.max() + 1)[stratum]
    y = (rng.random(len(stratum)) < np.where(in_first, *rates) + shift).astype(int)
    return {
        "y_true": y,
        "y_pred": y,
        "sensitive_features": np.where(in_first, "a", "b"),
        "control_features": stratum,
    }


def scores(design: Labelled, seed: int, shifts: tuple[float, float]) -> dict[str, Any]:
    """Return scores of which positives are so much higher, with thrice the spread in one group."""
    rng = np.random.default_rng([9, seed])
    sizes = np.stack(design(rng), axis=1)  # positives and negatives of "a", then of "b"
    n = sizes.sum(axis=1)
    stratum = np.repeat(np.arange(len(n)), n)
    kind = np.concatenate([np.repeat(np.arange(4), each) for each in sizes])
    in_first, label = kind < 2, (kind % 2 == 0).astype(int)
    score = rng.normal(size=len(kind)) + label * np.where(in_first, *shifts)
    score = score * np.where(in_first, 3, 1) + rng.normal(size=len(n))[stratum]
    return {
        "y_true": label,
        "y_score": score,
        "sensitive_features": np.where(in_first, "a", "b"),
        "control_features": stratum,
    }


def hits(design: Design, seed: int, rates: tuple[float, float]) -> dict[str, Any]:
    """Return predictions of which hits are such shares of hits and misses; other rows are right."""
    rng = np.random.default_rng([10, seed])
    stratum, in_first = rows(design, rng)
    n = len(stratum)
    counts, is_hit = rng.random(n) < 0.7, rng.random(n) < np.where(in_first, *rates)
    is_missed = rng.random(n) < np.where(in_first, 0.7, 0.3)
    return {
        "y_true": (counts & (is_hit | is_missed)).astype(int),
        "y_pred": (counts & (is_hit | ~is_missed)).astype(int),
        "sensitive_features": np.where(in_first, "a", "b"),
        "control_features": stratum,
    }


def constant(*sizes: int, strata: int) -> Labelled:
    """Return strata that all have so many positives and negatives of each group."""
    return lambda _: tuple(np.full(strata, size) for size in sizes)


LABELLED: dict[str, Labelled] = {
    "60 of 1+1 and 1+1": constant(1, 1, 1, 1, strata=60),
    "60 of 1+2 and 2+4": constant(1, 2, 2, 4, strata=60),
    "60 of 3+3 and 1+1": constant(3, 3, 1, 1, strata=60),
    "40 of 2+2 and 2+2": constant(2, 2, 2, 2, strata=40),
    "60 Poisson": lambda rng: tuple(1 + rng.poisson(mean, 60) for mean in (0.5, 1, 2, 4)),
    "one large, 30 tiny": lambda _: tuple(
        np.append(np.full(30, tiny), large) for tiny, large in ((1, 30), (2, 40), (2, 40), (2, 60))
    ),
    "30, and 10 without a group": lambda _: tuple(
        np.append(np.full(30, size), np.full(10, other))
        for size, other in ((1, 0), (2, 0), (2, 2), (3, 3))
    ),
}


def weighted(seed: int, gap: float = 0.0) -> dict[str, Any]:
    """Return 40 strata of 2 and 5 rows, of which those of the first group weigh very unequally."""
    data = errors(equal(2, 5, 40), seed, gap)
    rng = np.random.default_rng([11, seed])
    in_first = data["sensitive_features"] == "a"
    weight = np.exp(rng.normal(size=len(in_first)) * np.where(in_first, 0.8, 0.3))
    return {**data, "sample_weight": weight}


def in_clusters(seed: int, gap: float = 0.0) -> dict[str, Any]:
    """Return 40 strata of 2 and 3 clusters, of 1 to 7 rows that have much in common."""
    rng = np.random.default_rng([12, seed])
    data = errors(equal(2, 3, 40), seed, gap)
    cluster = np.repeat(np.arange(200), rng.integers(1, 8, 200))
    own = rng.normal(size=len(cluster)) * np.where(data["sensitive_features"] == "a", 3, 1)[cluster]
    kept = {name: column[cluster] for name, column in data.items()}
    return {**kept, "y_pred": kept["y_pred"] + own, "cluster": cluster}


# -- Quick ---------------------------------------------------------------------------------------


def test_variances_of_strata_and_between_strata_add_up() -> None:
    """By hand: two strata with variances of their own, and three in which a group has one row."""
    first, second = [3, 2, 1, 1, 2], [4, 2, 1, 3, 1]
    rng = np.random.default_rng(1)
    stratum, in_first = rows(lambda _: (np.array(first), np.array(second)), rng)
    y_pred = rng.normal(size=len(stratum))
    result = permutation_test(
        np.zeros(len(stratum)),
        y_pred,
        sensitive_features=np.where(in_first, "a", "b"),
        control_features=stratum,
        metric="mean_error",
        n_resamples=9,
        rng=0,
    )
    weights = np.array([a * b / (a + b) for a, b in zip(first, second, strict=True)])
    share = weights / weights.sum()
    parts = [
        (y_pred[(stratum == s) & in_first], y_pred[(stratum == s) & ~in_first]) for s in range(5)
    ]
    gaps = np.array([a.mean() - b.mean() for a, b in parts])
    own = sum(
        share[s] ** 2 * (parts[s][0].var(ddof=1) / first[s] + parts[s][1].var(ddof=1) / second[s])
        for s in (0, 1)
    )
    among = share[2:] / share[2:].sum()
    between = (share[2:] ** 2 * (gaps[2:] - among @ gaps[2:]) ** 2 / (1 - among)).sum()
    assert result.difference == pytest.approx(share @ gaps, rel=1e-12)
    assert result.standard_error == pytest.approx(np.sqrt(own + between), rel=1e-9)


def test_one_stratum_of_single_rows_has_no_error_and_is_refused() -> None:
    data = errors(lambda _: (np.array([1, 20]), np.array([2, 20])), seed=1)
    with pytest.raises(UndefinedMetricError, match=r"standard error.*use coarser strata\.$"):
        permutation_test(**data, metric="mean_error", n_resamples=99, rng=1)


@pytest.mark.parametrize("metric", ["f1_macro", "balanced_accuracy", "equalized_odds"])
def test_metrics_that_no_pair_has_are_refused_without_other_warnings(metric: str) -> None:
    y = np.tile([0, 1, 1, 0], 10)
    with pytest.raises(UndefinedMetricError, match=r"^control_features must"):
        permutation_test(
            y,
            np.repeat([0, 1], 20),
            sensitive_features=np.tile(["a", "b"], 20),
            control_features=np.repeat(np.arange(20), 2),
            sample_weight=np.arange(1, 41),
            metric=metric,
            n_resamples=19,
        )


def test_no_pvalue_comes_from_an_error_of_zero() -> None:
    """Two equal rows of each group in every stratum: the groups differ, and nothing varies."""
    group = np.tile(["a", "a", "b", "b"], 10)
    with pytest.raises(UndefinedMetricError, match="standard error"):
        permutation_test(
            np.zeros(40),
            (group == "a").astype(float),
            sensitive_features=group,
            control_features=np.repeat(np.arange(10), 4),
            metric="mean_error",
            n_resamples=99,
            rng=1,
        )


def test_statistics_of_weighted_clusters_are_those_of_all_relabellings() -> None:
    """By hand, from the rows: two strata with 2 and 3 clusters of weighted rows."""
    rng = np.random.default_rng(3)
    cluster = np.repeat(np.arange(10), rng.integers(1, 4, 10))
    stratum = cluster // 5
    error, weight = rng.normal(size=(2, len(cluster)))
    weight = np.exp(weight)

    def statistic(chosen: tuple[int, ...]) -> float:
        gap = variance = 0.0
        for s in range(2):
            for sign, mine in ((1, np.isin(cluster, chosen)), (-1, ~np.isin(cluster, chosen))):
                mine = mine & (stratum == s)
                w, size = weight[mine], np.bincount(cluster[mine], weight[mine])
                size = size[size > 0]
                mean = w @ error[mine] / w.sum()
                total = np.bincount(cluster[mine], w * error[mine])
                total = total[np.unique(cluster[mine])]
                fall = mean - (total.sum() - total) / (size.sum() - size)  # without each cluster
                gap += sign * mean / 2
                variance += (len(size) - 1) / len(size) * fall @ fall / 4
        return float(gap / variance**0.5)

    result = permutation_test(
        np.zeros(len(cluster)),
        error,
        sensitive_features=np.where(cluster % 5 < 2, "a", "b"),
        control_features=stratum,
        cluster=cluster,
        sample_weight=weight,
        metric="mean_error",
        rng=1,
    )
    pairs = itertools.product(
        itertools.combinations(range(5), 2), itertools.combinations(range(5, 10), 2)
    )
    expected = [statistic((*first, *second)) for first, second in pairs]
    assert result.exact
    np.testing.assert_allclose(np.sort(result.null_distribution), np.sort(expected), rtol=1e-9)


def test_a_bias_of_small_strata_is_noted() -> None:
    """One row against three: F1 of one row is at most its rate of hits, which is below F1."""
    data = hits(DESIGNS["100 of 1 and 3"], 1, (0.6, 0.6))
    found = permutation_test(**data, metric="f1_score", n_resamples=199, rng=1)
    assert any("biases the gap in f1_score by about -0.0" in note for note in found.notes)
    for metric in ("jaccard_score", "accuracy"):
        found = permutation_test(**data, metric=metric, n_resamples=199, rng=1)
        assert not any("biases" in note for note in found.notes)


@pytest.mark.parametrize("rate", [0, 1])
@pytest.mark.parametrize("sizes", [(1, 3), (3, 1), (2, 2)], ids=str)
def test_rates_that_are_all_alike_have_intervals_with_a_width(
    rate: int, sizes: tuple[int, int]
) -> None:
    """Nothing varies in the sample, but that does not make the gap known."""
    group = np.tile(np.repeat(["a", "b"], sizes), 20)
    y = np.full(len(group), rate)
    result = permutation_test(
        y,
        y,
        sensitive_features=group,
        control_features=np.repeat(np.arange(20), sum(sizes)),
        metric="selection_rate",
        rng=1,
    )
    low, high = result.confidence_interval
    assert result.pvalue == 1
    assert low < -0.04 < 0.04 < high


def test_more_strata_than_an_array_has_axes_are_enumerated() -> None:
    y = (np.random.default_rng(0).random(140) < 0.05).astype(int)
    result = permutation_test(
        y,
        y,
        sensitive_features=np.tile(["a", "b"], 70),
        control_features=np.repeat(np.arange(70), 2),
        metric="selection_rate",
        rng=0,
    )
    discordant = int((y[::2] != y[1::2]).sum())
    assert result.exact
    assert len(result.null_distribution) == 2**discordant


# -- Simulations ---------------------------------------------------------------------------------

DATA_SETS = 300


@pytest.mark.validate
@pytest.mark.parametrize("design", DESIGNS.values(), ids=DESIGNS)
def test_level_and_coverage_of_a_mean(design: Design) -> None:
    rejected, covered = [], []
    for seed in range(DATA_SETS):
        result = permutation_test(
            **errors(design, seed), metric="mean_error", n_resamples=199, rng=seed
        )
        low, high = result.confidence_interval
        rejected.append(result.pvalue <= 0.05)
        covered.append(low <= 0 <= high)
    assert sum(rejected) <= at_most(0.05, DATA_SETS)
    assert sum(covered) >= at_least(0.95, DATA_SETS)


@pytest.mark.validate
@pytest.mark.parametrize("rate", [0.3, 0.5])
@pytest.mark.parametrize("design", DESIGNS.values(), ids=DESIGNS)
def test_level_and_coverage_of_a_rate_and_no_contradiction(design: Design, rate: float) -> None:
    rejected, covered = [], []
    for seed in range(DATA_SETS):
        result = permutation_test(
            **outcomes(design, seed, (rate, rate)),
            metric="selection_rate",
            n_resamples=199,
            rng=seed,
        )
        low, high = result.confidence_interval
        rejected.append(result.pvalue <= 0.05)
        covered.append(low <= 0 <= high)
        assert (result.pvalue <= 0.05) == (not low <= 0 <= high)
    assert sum(rejected) <= at_most(0.05, DATA_SETS)
    assert sum(covered) >= at_least(0.95, DATA_SETS)


@pytest.mark.validate
@pytest.mark.parametrize("design", DESIGNS.values(), ids=DESIGNS)
def test_level_at_the_margin_and_coverage_of_a_gap(design: Design) -> None:
    rejected, covered = [], []
    for seed in range(DATA_SETS):
        result = equivalence_test(
            **outcomes(design, seed, (0.6, 0.5)),
            metric="selection_rate",
            margin=0.1,
            n_resamples=199,
            rng=seed,
        )
        low, high = result.permutation.confidence_interval
        rejected.append(result.pvalue <= 0.05)
        covered.append(low <= 0.1 <= high)
    assert sum(rejected) <= at_most(0.05, DATA_SETS)
    assert sum(covered) >= at_least(0.95, DATA_SETS)


def shares(
    data: Callable[[int], dict[str, Any]], n: int, metric: str, gap: float, **options: Any
) -> tuple[int, int]:
    """Return how many of n data sets are rejected, and in how many the interval has the gap."""
    rejected, covered = 0, 0
    for seed in range(n):
        result = permutation_test(**data(seed), metric=metric, n_resamples=199, rng=seed, **options)
        low, high = result.confidence_interval
        rejected += result.pvalue <= 0.05
        covered += low <= gap <= high
    return rejected, covered


@pytest.mark.validate
@pytest.mark.parametrize("design", LABELLED.values(), ids=LABELLED)
def test_level_coverage_and_power_of_an_auc(design: Labelled) -> None:
    """Shifts of 1.47 are AUCs of 0.85, those of 2.2 and 1 are 0.94 and 0.76."""
    n, gap = 150, NormalDist().cdf(2.2 / 2**0.5) - NormalDist().cdf(1 / 2**0.5)
    rejected, covered = shares(lambda seed: scores(design, seed, (1.47, 1.47)), n, "roc_auc", 0)
    assert rejected <= at_most(0.05, n)
    assert covered >= at_least(0.95, n)
    rejected, covered = shares(lambda seed: scores(design, seed, (2.2, 1.0)), n, "roc_auc", gap)
    assert rejected >= at_least(0.7, n)
    assert covered >= at_least(0.95, n)


@pytest.mark.validate
@pytest.mark.parametrize("design", DESIGNS.values(), ids=DESIGNS)
def test_level_coverage_and_power_of_f1(design: Design) -> None:
    """Rates of hits of 0.4 and 0.7 are F1 scores of 0.57 and 0.82; each group is the better one.

    Where there is a gap, F1 scores of single rows overstate it, as the documentation says.
    """
    n = 150
    rejected, covered = shares(lambda seed: hits(design, seed, (0.6, 0.6)), n, "f1_score", 0)
    assert rejected <= at_most(0.05, n)
    assert covered >= at_least(0.95, n)
    for rates in ((0.7, 0.4), (0.4, 0.7)):
        rejected, _ = shares(partial(hits, design, rates=rates), n, "f1_score", 0)
        assert rejected >= at_least(0.7, n)


@pytest.mark.validate
@pytest.mark.parametrize("data", [weighted, in_clusters])
def test_level_and_coverage_with_weights_and_clusters(data: Callable[..., Any]) -> None:
    rejected, covered = shares(data, DATA_SETS, "mean_error", 0)
    assert rejected <= at_most(0.05, DATA_SETS)
    assert covered >= at_least(0.95, DATA_SETS)
    rejected, _ = shares(partial(data, gap=2.0), 50, "mean_error", 2.0)
    assert rejected >= at_least(0.8, 50)


@pytest.mark.validate
@pytest.mark.parametrize("rates", [(0.2, 0.5, 0.7, 0.1), (0.02, 0.05, 0.03, 0.1)], ids=str)
def test_coverage_of_rates_with_given_weights_of_strata(rates: tuple[float, ...]) -> None:
    """T ± q·SE covered 0.88 to 0.92: strata without an event had no variance."""

    def data(seed: int) -> dict[str, Any]:
        rng = np.random.default_rng([13, seed])
        first, second = np.array([40, 5, 20, 8]), np.array([10, 60, 20, 8])
        stratum, in_first = rows(lambda _: (first, second), rng)
        y = (rng.random(len(stratum)) < np.array(rates)[stratum]).astype(int)
        group = np.where(in_first, "a", "b")
        return {"y_true": y, "y_pred": y, "sensitive_features": group, "control_features": stratum}

    weights = {0: 0.1, 1: 0.5, 2: 0.2, 3: 0.2}
    rejected, covered = shares(data, DATA_SETS, "selection_rate", 0, stratum_weights=weights)
    assert rejected <= at_most(0.05, DATA_SETS)
    assert covered >= at_least(0.95, DATA_SETS)


@pytest.mark.validate
def test_level_at_the_margin_with_given_weights_of_strata() -> None:
    """It was 0.15: strata without an event had no variance at the margin."""
    sizes: Design = lambda _: (np.array([40, 15, 20, 18]), np.array([20, 60, 20, 18]))  # noqa: E731
    rejected = 0
    for seed in range(DATA_SETS):
        rng = np.random.default_rng([14, seed])
        stratum, in_first = rows(sizes, rng)
        rate = np.array([0.95, 0.97, 0.96, 0.95])[stratum] - 0.1 * in_first
        y = (rng.random(len(stratum)) < rate).astype(int)
        result = equivalence_test(
            y,
            y,
            sensitive_features=np.where(in_first, "a", "b"),
            control_features=stratum,
            stratum_weights={0: 0.1, 1: 0.5, 2: 0.2, 3: 0.2},
            metric="selection_rate",
            margin=(-0.1, 0.9),
            n_resamples=199,
            rng=seed,
        )
        rejected += result.pvalue <= 0.05
    assert rejected <= at_most(0.05, DATA_SETS)


def test_rounding_is_no_bias_of_small_strata() -> None:
    """The gap of rates 1 and 0 has no standard error: rounded permuted gaps were called a bias."""
    in_first = np.repeat([True, False, True, False], [4, 3, 3, 2])
    result = permutation_test(
        np.ones(12, int),
        in_first.astype(int),
        sensitive_features=np.where(in_first, "a", "b"),
        control_features=np.repeat([0, 1], [7, 5]),
        metric="accuracy",
    )
    assert result.standard_error == 0
    assert result.notes == ()


@pytest.mark.validate
def test_variances_of_single_rows_reject_far_too_often() -> None:
    """The control: within-stratum variances alone, in strata of one and three rows."""
    rejected = []
    for seed in range(DATA_SETS):
        data = errors(DESIGNS["100 of 1 and 3"], seed)
        in_first = data["sensitive_features"] == "a"
        single = data["y_pred"][in_first]
        others = data["y_pred"][~in_first].reshape(100, 3)
        error = np.sqrt((others.var(axis=1) / 3).sum()) / 100
        rejected.append(abs((single - others.mean(axis=1)).mean() / error) > 1.96)
    assert sum(rejected) > 0.2 * DATA_SETS


@pytest.mark.filterwarnings("ignore::fairperm.FairpermWarning")
def test_a_heavy_row_gets_no_reassurance() -> None:
    """With one row of weight 1,000 the test rejects far too often, and p does not allow for it."""
    n_noted = 0
    for seed in range(5):
        rng = np.random.default_rng(seed)
        result = permutation_test(
            rng.normal(size=660),
            sensitive_features=np.repeat(["a", "b"], [60, 600]),
            control_features=rng.integers(3, size=660),
            sample_weight=np.append(1000.0, np.ones(659)),
            metric="mean_outcome",
            n_resamples=199,
            rng=seed,
        )
        assert not any("allow for it" in note for note in result.notes)
        n_noted += any(
            "Permuted gaps in mean_outcome are centred at" in one for one in result.notes
        )
    assert n_noted >= 3
