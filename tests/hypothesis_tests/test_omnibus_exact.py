"""The test of many groups against every arrangement of few rows, and where it is undefined."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from fairperm import FairpermWarning, omnibus_test
from fairperm.data.arguments import VarianceName
from tests.engines.test_choice import delong, mean_squared_error
from tests.support.omnibus_data import SURE, TIE, run

Array = NDArray[np.float64]


def arrangements(group: NDArray[np.int64], block: NDArray[np.int64]) -> Iterator[Any]:
    """Yield every assignment to groups that keeps their numbers in each block, and how often."""
    ways = []
    for one in np.unique(block):
        members = np.flatnonzero(block == one)
        ways.append([(members, labels) for labels in _distinct(tuple(sorted(group[members])))])
    for chosen in itertools.product(*ways):
        assigned = np.empty(len(group), np.int64)
        for members, labels in chosen:
            assigned[members] = labels
        yield assigned


@cache
def _distinct(labels: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Return the distinct orders of labels."""
    if not labels:
        return [()]
    found = []
    for first in sorted(set(labels)):
        left = list(labels)
        left.remove(first)
        found += [(first, *others) for others in _distinct(tuple(left))]
    return found


def statistic_of(
    estimate: Callable[[bytes], tuple[float, float]], matters: NDArray[np.bool_], assigned: Any
) -> float:
    """Return the sum of squared deviations over variances, which no group is without.

    A group that shows none is given that of all rows, for its number of rows that matter.
    """
    members = [assigned == g for g in range(assigned.max() + 1)]
    values, variances = np.array([estimate(one.tobytes()) for one in members]).T
    if np.isnan(values + variances).any():
        return math.nan
    sizes = np.array([matters[one].sum() for one in members])
    of_all = estimate(np.ones(len(assigned), bool).tobytes())[1]
    variances = np.where(variances < 1e-14, of_all * matters.sum() / sizes, variances)
    mean = (values / variances).sum() / (1 / variances).sum()
    return float(((values - mean) ** 2 / variances).sum())


def true_positive_rate(y: Array, x: Array) -> tuple[float, float]:
    m = (y == 1).sum()
    if m == 0:
        return math.nan, math.nan
    p = x[y == 1].mean()
    return float(p), float(p * (1 - p) / m)


SMALL: list[tuple[str, str, str, Any]] = [
    ("true_positive_rate", "pooled", "wald", true_positive_rate),
    ("true_positive_rate", "within_label", "wald", true_positive_rate),
    ("roc_auc", "pooled", "delong", delong),
    ("roc_auc", "within_label", "delong", delong),
    ("mean_squared_error", "pooled", "delta", mean_squared_error),
]


def few_rows(metric: str, ties: bool) -> tuple[Any, ...]:
    rng = np.random.default_rng([len(metric), ties])
    group = np.repeat([0, 1, 2], [2, 3, 4] if metric != "roc_auc" else [4, 4, 4])
    n = len(group)
    y = np.tile([1.0, 0.0], n)[:n]
    if metric == "true_positive_rate":
        y, x = (rng.random(n) < 0.7).astype(float), rng.integers(0, 2, n).astype(float)
        y[[0, 2, 5]] = 1
    elif ties:
        x = rng.integers(0, 4, n) / 4
    else:
        x = rng.random(n)
    return group, y, x


@pytest.mark.parametrize("ties", [False, True], ids=["unlike", "ties"])
@pytest.mark.parametrize(("metric", "scheme", "variance", "oracle"), SMALL)
def test_every_arrangement_of_few_rows(
    metric: str, scheme: str, variance: str, oracle: Any, ties: bool
) -> None:
    group, y, x = few_rows(metric, ties)
    block = y.astype(np.int64) if scheme == "within_label" else np.zeros(len(y), np.int64)

    @cache
    def estimate(members: bytes) -> tuple[float, float]:
        chosen = np.frombuffer(members, bool)
        found: tuple[float, float] = oracle(y[chosen], x[chosen])
        return found

    matters = y == 1 if metric == "true_positive_rate" else np.ones(len(y), bool)
    observed = statistic_of(estimate, matters, group)
    null = np.array([statistic_of(estimate, matters, one) for one in arrangements(group, block)])
    extreme = np.isnan(null) | (null >= observed - TIE)
    column = "y_score" if metric == "roc_auc" else "y_pred"
    data = {"y_true": y, column: x, "sensitive_features": group}
    n = 9999
    result = run(data, metric, scheme=scheme, variance=variance, n_resamples=n)
    assert result.statistic == pytest.approx(observed, rel=1e-9)
    extremes = round(result.pvalue * (n + 1)) - 1
    assert stats.binomtest(extremes, n, float(extreme.mean())).pvalue > SURE
    share = float(np.isnan(null).mean())
    assert stats.binomtest(result.n_undefined, n, share).pvalue > SURE


def test_un_studentized_and_score_statistics_of_few_rows() -> None:
    group = np.repeat([0, 1, 2], [2, 3, 4])
    x = np.array([1, 1, 0, 1, 0, 0, 0, 1, 0])
    every = list(arrangements(group, np.zeros(9, np.int64)))
    sizes = np.array([2, 3, 4])
    means = np.array([[x[one == g].mean() for g in range(3)] for one in every])
    plain = (sizes * (means - x.mean()) ** 2).sum(axis=1)
    observed = (sizes * ([x[group == g].mean() for g in range(3)] - x.mean()) ** 2).sum()
    data = {"y_true": np.ones(9), "y_pred": x, "sensitive_features": group}
    exact = float((plain >= observed - TIE).mean())
    for variance, scale in ((None, 1), ("score", x.mean() * (1 - x.mean()))):
        result = run(data, "selection_rate", variance=variance, n_resamples=9999)
        assert result.statistic == pytest.approx(observed / scale)
        extremes = round(result.pvalue * 10_000) - 1
        assert stats.binomtest(extremes, 9999, exact).pvalue > SURE


@pytest.mark.parametrize("offset", [0.0, 1e6, 1e9])
def test_ties_are_seen_through_the_rounding_of_large_values(offset: float) -> None:
    """Three pairs far apart: of 90 arrangements the 6 that keep them are extreme."""
    x = np.array([0.13, 0.32, 0.71, 0.92, 1.53, 1.74]) + offset
    data = {"y_true": x, "y_pred": x, "sensitive_features": list("aabbcc")}
    result = run(data, "mean_prediction", n_resamples=9999)
    extremes = round(result.pvalue * 10_000) - 1
    assert stats.binomtest(extremes, 9999, 6 / 90).pvalue > SURE


@pytest.mark.parametrize("variance", ["score", "wald", None])
def test_undefined_permutations_are_extreme_and_noted(variance: VarianceName) -> None:
    y = np.zeros(60, int)
    y[[0, 1, 20, 21, 40, 41, 42]] = 1
    rng = np.random.default_rng(0)
    data: dict[str, Any] = {
        "y_true": y,
        "y_pred": rng.integers(2, size=60),
        "sensitive_features": np.repeat([0, 1, 2], 20),
    }
    with pytest.warns(FairpermWarning, match="The metric is undefined in"):
        result = omnibus_test(
            **data,
            metric="true_positive_rate",
            scheme="pooled",
            variance=variance,
            n_resamples=999,
            rng=1,
        )
    null = result.null_distribution
    assert result.n_undefined == np.isnan(null).sum() > 10
    at_least = np.isnan(null) | (null >= result.statistic - TIE)
    assert result.pvalue == (at_least.sum() + 1) / 1000
    # a group has no positives: 40 of 60 rows have all seven, less where two groups have none
    some = 3 * math.comb(40, 7) - 3 * math.comb(20, 7)
    assert stats.binomtest(result.n_undefined, 999, some / math.comb(60, 7)).pvalue > SURE


def test_un_studentized_is_exact_though_clusters_differ_in_size() -> None:
    """Over all 90 ways to share out six clusters, p is at most u in no more than u of them.

    Their p-values are counted among all statistics; that of the first few is compared with ours.
    """
    sizes, hits = np.array([2, 1, 1, 15, 15, 2]), np.array([1, 1, 0, 11, 1, 1])
    y_pred = np.concatenate([np.arange(size) < hit for size, hit in zip(sizes, hits, strict=True)])
    ways = sorted(set(itertools.permutations("aabbcc")))

    def statistic(way: tuple[str, ...]) -> float:
        members = [np.array(way) == group for group in "abc"]
        rates = np.array([hits[one].sum() / sizes[one].sum() for one in members])
        return float(((rates - rates.mean()) ** 2).sum())  # as many clusters in each

    every = np.array([statistic(way) for way in ways])
    expected = (every >= every[:, None] - 1e-12).mean(axis=1)
    for way, p in list(zip(ways, expected, strict=True))[::9]:
        result = omnibus_test(
            y_pred,
            y_pred,
            sensitive_features=np.repeat(way, sizes),
            cluster=np.repeat(np.arange(6), sizes),
            metric="selection_rate",
            variance=None,
            n_resamples=999,
            rng=1,
        )
        low, high = stats.binom(999, p).ppf([SURE, 1 - SURE])
        assert low <= 1000 * result.pvalue - 1 <= high
