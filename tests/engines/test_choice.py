"""Counts and units: two engines, one answer; and every permutation of few rows, in plain NumPy."""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from fairperm import FairpermWarning, PermutationTestResult, permutation_test
from fairperm.data.arguments import VarianceName
from fairperm.engines import choice
from fairperm.metrics import get_metric
from studies.bootstrap import bootstrap_test
from tests.support.helpers import rows, variance_over_strata
from tests.support.number_data import AUCS, GIVEN_LABEL, NUMBER_METRICS, SCORES, arguments

Array = NDArray[np.float64]
Bools = NDArray[np.bool_]
Estimate = Callable[[bytes], tuple[float, float]]

TIE = 1e-9  # far above rounding, far below any true difference between so few rows
ALTERNATIVES = ("two-sided", "symmetric", "greater", "less")
ENGINES = {  # thresholds at which every sample goes one way
    "counts": {"_FEW_CELLS": 10**9, "MERGEABLE": 10**9},
    "units": {"_FEW_CELLS": -1, "MERGEABLE": -1, "COUNT_COST": 10**12},
}


def force(patch: pytest.MonkeyPatch, engine: str) -> None:
    for name, number in ENGINES[engine].items():
        patch.setattr(choice, name, number)


def run(engine: str, data: dict[str, Any], **options: Any) -> PermutationTestResult:
    """Run the permutation test by one of the engines."""
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore", FairpermWarning)  # of small groups and undefined draws
        force(patch, engine)
        return permutation_test(**data, rng=1, **options)


# -- One answer -----------------------------------------------------------------------------------


def repeating(metric: str, n: int = 240, seed: int = 1) -> dict[str, Any]:
    """Return numbers that repeat, in unequal groups and two strata."""
    rng = np.random.default_rng(seed)
    if metric in SCORES:
        data = arguments(metric, rng.integers(0, 2, n), rng.integers(1, 10, n) / 10)
    else:
        data = arguments(metric, rng.integers(1, 6, n), rng.integers(1, 6, n))
    groups = np.array(["a", "b"])[(rng.random(n) < 0.4).astype(int)]
    return {**data, "sensitive_features": groups, "control_features": rng.integers(0, 2, n)}


def pooled(data: dict[str, Any]) -> dict[str, Any]:
    return {name: column for name, column in data.items() if name != "control_features"}


RATES = ("selection_rate", "false_negative_rate", "accuracy")
TABLES = ("f1_score", "matthews_corrcoef", "balanced_accuracy")
CONFUSED = rows(((30, 10, 16, 34), (20, 19, 12, 29)), ((12, 10, 6, 14), (20, 9, 12, 9)))


def sample(metric: str) -> dict[str, Any]:
    return CONFUSED if metric in {*RATES, *TABLES} else repeating(metric)


def schemes(metric: str) -> tuple[str, ...]:
    by_label = metric in {*GIVEN_LABEL, "false_negative_rate", "balanced_accuracy"}
    return ("pooled", "within_label") if by_label else ("pooled",)


def variances(metric: str) -> tuple[str | None, ...]:
    return ("delong" if metric in AUCS else "delta"), None


AGREE = [
    (metric, scheme, variance)
    for metric in (*RATES, *TABLES, *NUMBER_METRICS)
    for scheme in schemes(metric)
    for variance in variances(metric)
]


@pytest.mark.parametrize("strata", [False, True], ids=["all rows", "strata"])
@pytest.mark.parametrize(("metric", "scheme", "variance"), AGREE)
def test_engines_agree(metric: str, scheme: str, variance: str | None, strata: bool) -> None:
    """Values and errors but for rounding; extreme draws as two samples of one binomial."""
    draws = 1999
    data = sample(metric) if strata else pooled(sample(metric))
    options = {"metric": metric, "scheme": scheme, "variance": variance, "n_resamples": draws}
    counts, units = (run(engine, data, **options) for engine in ENGINES)
    assert units.values == pytest.approx(dict(counts.values), rel=1e-12)
    assert units.difference == pytest.approx(counts.difference, abs=1e-12)
    if variance is None and not get_metric(metric).parts[0].smooth:
        # its error is bootstrapped: 1999 draws know it to 1.6 %, and 8 % are five of √2 of those
        assert units.standard_error == pytest.approx(counts.standard_error, rel=0.08)
    elif variance != "fast_bootstrap":
        assert units.standard_error == pytest.approx(counts.standard_error, rel=1e-11)
        assert units.statistic == pytest.approx(counts.statistic, rel=1e-10)
    assert units.counts == counts.counts
    assert not units.exact
    assert units.ordering == counts.ordering
    tails = 2 if counts.ordering == "two-sided" else 1
    shares = [one.pvalue / tails for one in (counts, units)]
    if counts.exact:
        extremes = round(shares[1] * (draws + 1)) - 1
        is_likely = stats.binomtest(extremes, draws, shares[0]).pvalue > 1e-4
        assert is_likely or units.pvalue == 1
        return
    table = [[p * (draws + 1) - 1, (1 - p) * (draws + 1)] for p in shares]
    assert stats.fisher_exact(np.round(table).astype(int)).pvalue > 1e-4
    nulls = [one.null_distribution for one in (counts, units)]
    null = stats.ks_2samp(*(one[~np.isnan(one)] for one in nulls))
    assert null.pvalue > 1e-4


@pytest.mark.parametrize("metric", ["roc_auc", "mean_squared_error"])
def test_bootstrap_errors_agree(metric: str) -> None:
    """Standard deviations of 1000 draws have a relative error of 2.2 %; five of √2 of those."""
    data, within = repeating(metric), 5 * math.sqrt(2) / math.sqrt(2 * 1000)
    for options in (
        {"variance": "bootstrap", "n_resamples": 3, "n_bootstrap": 1000},
        {"variance": "fast_bootstrap", "n_resamples": 1000},
    ):
        counts, units = (run(engine, data, metric=metric, **options) for engine in ENGINES)
        assert units.standard_error == pytest.approx(counts.standard_error, rel=within)


def test_rates_in_very_many_strata_are_studentized() -> None:
    """More distinct rows than are looked through for equal ones: by Mantel and Haenszel's sums."""
    strata, rng = 7000, np.random.default_rng(2)
    right = rng.random((strata, 2, 3)) < 0.6
    data: dict[str, Any] = {
        "y_true": np.ones(right.size, int),
        "y_pred": right.ravel().astype(int),
        "sensitive_features": np.tile(["a"] * 3 + ["b"] * 3, strata),
        "control_features": np.repeat(np.arange(strata), 6),
    }
    result = permutation_test(**data, metric="accuracy", n_resamples=199, rng=1)
    share = right.mean(axis=2)
    p = right.mean(axis=(1, 2))
    error = math.sqrt((p * (1 - p) * (2 / 3) * (6 / 5)).sum()) / strata
    assert result.difference == pytest.approx(np.diff(share[:, ::-1]).mean(), rel=1e-9)
    assert result.statistic == pytest.approx(result.difference / error, rel=1e-9)
    normal = 2 * stats.norm.sf(abs(result.statistic))
    assert stats.binomtest(round(result.pvalue * 200) - 1, 199, normal).pvalue > 1e-4


@pytest.mark.parametrize("positives", [2, 3])
@pytest.mark.parametrize("variance", ["bootstrap", "fast_bootstrap"])
def test_resamples_without_a_class_are_left_out(positives: int, variance: VarianceName) -> None:
    rng = np.random.default_rng(3)
    labels = np.repeat([1, 0, 1, 0], [positives, 30 - positives, 15, 15])
    data: dict[str, Any] = {
        "y_true": labels,
        "y_score": rng.random(60) + labels / 4,
        "sensitive_features": ["a"] * 30 + ["b"] * 30,
        "metric": "roc_auc",
        "rng": 1,
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FairpermWarning)
        result = permutation_test(**data, variance=variance, n_resamples=99, n_bootstrap=50)
    assert 0 < result.standard_error < 0.5
    assert bootstrap_test(**data, n_resamples=99).n_undefined > 0


# -- Every permutation of few rows ----------------------------------------------------------------


def delong(y: Array, score: Array) -> tuple[float, float]:
    """Return AUC and variance from all pairs: var(V10)/m + var(V01)/n; NaN for one of a class."""
    wins = np.sign(np.subtract.outer(score[y == 1], score[y == 0])) / 2 + 0.5
    if min(wins.shape) < 2:
        return (float(wins.mean()) if wins.size else math.nan), math.nan
    m, n = wins.shape
    variance = wins.mean(axis=1).var(ddof=1) / m + wins.mean(axis=0).var(ddof=1) / n
    return float(wins.mean()), float(variance)


def mean_squared_error(y: Array, prediction: Array) -> tuple[float, float]:
    return mean_and_variance((prediction - y) ** 2)


def mean_of_positives(y: Array, score: Array) -> tuple[float, float]:
    return mean_and_variance(score[y == 1])


def mean_and_variance(numbers: Array) -> tuple[float, float]:
    if not numbers.size:
        return math.nan, math.nan
    return float(numbers.mean()), float(numbers.var() / len(numbers))


ESTIMATES = {
    "roc_auc": delong,
    "mean_squared_error": mean_squared_error,
    "mean_score_positives": mean_of_positives,
}


def statistic(estimate: Estimate, stratum: NDArray[np.intp], in_a: Bools) -> float:
    """Return the gap over its error, strata weighted by Mantel and Haenszel's n·m/(n + m)."""
    weights, gaps, variances = [], [], []
    for s in range(stratum.max() + 1):
        first, second = ((stratum == s) & in_a, (stratum == s) & ~in_a)
        weights.append(first.sum() * second.sum() / (first | second).sum())
        (a, var_a), (b, var_b) = estimate(first.tobytes()), estimate(second.tobytes())
        gaps.append(a - b)
        variances.append(var_a + var_b)
    shares = np.array(weights) / sum(weights)
    gap, squared_error = shares @ gaps, variance_over_strata(shares, gaps, variances)
    if math.isnan(gap) or math.isnan(squared_error):
        return math.nan
    if squared_error < 1e-14:
        return 0.0 if abs(gap) < TIE else math.copysign(math.inf, gap)
    return float(gap / math.sqrt(squared_error))


def assignments(block: NDArray[np.intp], in_a: Bools) -> Iterator[Bools]:
    """Yield every assignment to group a that keeps its number in each block."""
    ways = []
    for one in np.unique(block):
        members = np.flatnonzero(block == one)
        ways.append(list(itertools.combinations(members, int(in_a[members].sum()))))
    for chosen in itertools.product(*ways):
        assigned = np.zeros(len(in_a), bool)
        assigned[list(itertools.chain(*chosen))] = True
        yield assigned


def few_rows(metric: str, ties: bool, strata: bool, seed: int) -> tuple[Any, ...]:
    """Return as few rows as can be: columns, strata, and who is in group a."""
    rng = np.random.default_rng([seed, ties, strata])
    n = int(rng.integers(10, 13))
    if strata:  # two rows of each class, group and stratum are the fewest that DeLong takes
        n = 16 if metric == "roc_auc" else 12
    stratum = np.arange(n) % 2 if strata else np.zeros(n, np.intp)
    in_a = np.zeros(n, bool)
    in_a[: n // 2 + (0 if strata else -1)] = True
    y = np.arange(n) // 2 % 2 if metric in SCORES else rng.integers(0, 5, n)
    x = rng.integers(0, 4, n) / 4 if ties else rng.random(n)
    return y.astype(float), x, stratum, in_a


SIDES: dict[str, list[Any]] = {
    "two-sided": [np.positive, np.negative],
    "symmetric": [np.abs],
    "greater": [np.positive],
    "less": [np.negative],
}
SMALL = [
    ("roc_auc", "pooled"),
    ("roc_auc", "within_label"),
    ("mean_score_positives", "within_label"),
    ("mean_squared_error", "pooled"),
]


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.validate)])
@pytest.mark.parametrize("strata", [False, True], ids=["all rows", "strata"])
@pytest.mark.parametrize("ties", [False, True], ids=["unlike", "ties"])
@pytest.mark.parametrize(("metric", "scheme"), SMALL)
def test_every_permutation_of_few_numbers(
    metric: str, scheme: str, ties: bool, strata: bool, seed: int
) -> None:
    y, x, stratum, in_a = few_rows(metric, ties, strata, seed)
    block = 2 * stratum + (y if scheme == "within_label" else 0)

    @cache
    def estimate(members: bytes) -> tuple[float, float]:
        chosen = np.frombuffer(members, bool)
        value, variance = ESTIMATES[metric](y[chosen], x[chosen])
        n = int((chosen & (y == 1)).sum() if metric == "mean_score_positives" else chosen.sum())
        if strata and metric != "roc_auc":  # DeLong's has no bias
            variance *= n / (n - 1) if n > 1 else math.nan
        return value, variance

    observed = statistic(estimate, stratum, in_a)
    null = np.array([statistic(estimate, stratum, one) for one in assignments(block, in_a)])
    data = {**arguments(metric, y, x), "sensitive_features": np.where(in_a, "a", "b")}
    data["control_features"] = stratum
    for alternative in ALTERNATIVES:
        tails, share = 2 if alternative == "two-sided" else 1, 1.0
        for sign in SIDES[alternative]:
            extreme = np.isnan(null) | (sign(null) >= sign(observed) - TIE)
            share = min(share, float(extreme.mean()))
        options = {"metric": metric, "scheme": scheme, "alternative": alternative}
        options["variance"] = "delong" if metric == "roc_auc" else "delta"
        exact = run("counts", data, **options, n_resamples=10**6)
        assert exact.exact
        assert exact.statistic == pytest.approx(observed, rel=1e-9)
        assert exact.pvalue == pytest.approx(min(1, tails * share), rel=1e-9)
        drawn = run("units", data, **options, n_resamples=1999)
        assert not drawn.exact
        assert drawn.statistic == pytest.approx(observed, rel=1e-9)
        extremes = round(drawn.pvalue / tails * 2000) - 1
        assert drawn.pvalue == 1 or stats.binomtest(extremes, 1999, share).pvalue > 1e-4
    assert (drawn.n_undefined > 0) <= bool(np.isnan(null).any())


# -- DeLong's error, published --------------------------------------------------------------------

# Hanley and McNeil (1982), Radiology 143:29-36, table I: ratings 1 to 5 of 58 normal and 51
# abnormal scans. They print an area of 0.893; Stata's manual of roctab, whose standard error is
# DeLong's, prints 0.8932 and 0.0307 for the same data, and an interval from 0.83295 to 0.95339.
NORMAL, ABNORMAL = (33, 6, 6, 11, 2), (3, 2, 2, 11, 33)
