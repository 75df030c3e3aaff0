"""Intervals for the gap of two rates: Newcombe's squares and sums of Wilson limits, by hand."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from scipy.stats import norm

from fairperm import PermutationTestResult, permutation_test
from fairperm.data.arguments import Alternative, VarianceName
from fairperm.engines.estimates import Estimates
from fairperm.metrics import get_metric
from fairperm.metrics.definition import Metric
from tests.support.helpers import Pair, rate, rate_rows, rows

Rates = tuple[int, int, int, int]  # k of n against j of m
RATE = [one for one in get_metric("selection_rate").parts if isinstance(one, Metric)]


def limits(k: int, n: int, z: float) -> tuple[float, float]:
    """Return Wilson's limits: the roots p of (k/n − p)² = z² p(1 − p)/n."""
    middle, half = k + z**2 / 2, z * math.sqrt(k * (n - k) / n + z**2 / 4)
    return (middle - half) / (n + z**2), (middle + half) / (n + z**2)


def reaches(one: Rates, z: float) -> tuple[float, float]:
    """Return how far below and above the gap Newcombe's method 10 goes."""
    k, n, j, m = one
    (low, high), (other_low, other_high) = limits(k, n, z), limits(j, m, z)
    below = math.hypot(k / n - low, other_high - j / m)
    above = math.hypot(high - k / n, j / m - other_low)
    return below, above


def stratified(strata: Sequence[Rates], weights: Sequence[float], z: float) -> tuple[float, float]:
    """Return the interval of a weighted mean of gaps: squares add up with squared weights."""
    shares = [weight / sum(weights) for weight in weights]
    pairs = list(zip(strata, shares, strict=True))
    gap = sum(share * (k / n - j / m) for (k, n, j, m), share in pairs)
    below, above = (
        math.sqrt(sum((share * reaches(one, z)[side]) ** 2 for one, share in pairs))
        for side in (0, 1)
    )
    return gap - below, gap + above


def sato_variance(strata: Sequence[Rates], gap: float) -> float:
    """Return Sato, Greenland and Robins' variance, written out stratum by stratum."""
    whole = sum(n * m / (n + m) for _, n, _, m in strata)
    p = sum((n * n * j - m * m * k + n * m * (m - n) / 2) / (n + m) ** 2 for k, n, j, m in strata)
    q = sum((k * (m - j) + j * (n - k)) / (2 * (n + m)) for k, n, j, m in strata)
    return (gap * p + q) / whole**2


def quantile(result: PermutationTestResult, level: float = 0.95) -> float:
    """Return the smallest statistic with at least this probability at or below it.

    It is never below the normal quantile, which stands in where permutations hardly vary.
    """
    tail = (1 - level) / (2 if result.alternative == "two-sided" else 1)
    assert result.null_probabilities is not None
    side = {"two-sided": np.abs, "greater": np.positive, "less": np.negative}[result.alternative]
    values = [math.inf if math.isnan(one) else one for one in side(result.null_distribution)]
    reached = 0.0
    for one, probability in sorted(zip(values, result.null_probabilities, strict=True)):
        reached += probability
        if reached >= level - 1e-12:
            return max(float(one), float(norm.isf(tail)))
    raise AssertionError("probabilities add up to one")


# -- Newcombe (1998), Statistics in Medicine 17:873-890, table II, method 10 --------------------

PUBLISHED = {
    (56, 70, 48, 80): (0.0524, 0.3339),
    (9, 10, 3, 10): (0.1705, 0.8090),
    (6, 7, 2, 7): (0.0582, 0.8062),
    (5, 56, 0, 29): (-0.0381, 0.1926),
    (0, 10, 0, 20): (-0.1611, 0.2775),
    (0, 10, 0, 10): (-0.2775, 0.2775),
    (10, 10, 0, 20): (0.6791, 1.0000),
    (10, 10, 0, 10): (0.6075, 1.0000),
}
Z = 1.959964


def estimates(*strata: Rates) -> Estimates:
    """Return what an engine finds in these rates."""
    counts = np.array(strata, float).reshape(1, 1, -1, 2, 2)
    hits, size = counts[..., 0], counts[..., 1]
    return Estimates(hits / size, np.zeros((1, 1, len(strata), 2)), size)


@pytest.mark.parametrize(("one", "published"), PUBLISHED.items(), ids=str)
def test_reaches_are_the_published_ones(one: Rates, published: tuple[float, float]) -> None:
    k, n, j, m = one
    gap = k / n - j / m
    (below,), (above,) = estimates(one).rate_reaches(RATE, Z)
    assert (gap - below, gap + above) == pytest.approx(published, abs=5.1e-5)
    assert (below, above) == pytest.approx(reaches(one, Z), rel=1e-12)


STRATA: list[Rates] = [(3, 12, 9, 20), (14, 15, 6, 11), (0, 8, 2, 9)]


# -- The interval in a result -------------------------------------------------------------------

ONE: list[Rates] = [*PUBLISHED, (11, 30, 21, 34), (1, 40, 0, 25)]


@pytest.mark.parametrize("variance", ["score", "wald"])
@pytest.mark.parametrize("groups", [("a", "b"), ("b", "a")], ids=str)
@pytest.mark.parametrize("one", ONE, ids=str)
def test_interval_has_the_permutation_quantile(
    one: Rates, groups: tuple[str, str], variance: VarianceName
) -> None:
    result = permutation_test(
        **rate_rows(one),
        groups=groups,
        metric="selection_rate",
        scheme="denominator",
        variance=variance,
    )
    k, n, j, m = one
    in_order: Rates = one if groups == ("a", "b") else (j, m, k, n)
    q = quantile(result)
    expected = stratified([in_order], [1], q) if math.isfinite(q) else (-1, 1)
    clipped = max(expected[0], -1), min(expected[1], 1)
    if result.pvalue > 0.05:  # the test and the interval agree on a gap of 0
        clipped = min(clipped[0], 0), max(clipped[1], 0)
    assert result.confidence_interval == pytest.approx(clipped, rel=1e-9, abs=1e-12)
    assert result.confidence_interval[0] <= result.difference <= result.confidence_interval[1]


@pytest.mark.parametrize("groups", [("a", "b"), ("b", "a")], ids=str)
def test_interval_over_strata_is_satos(groups: tuple[str, str]) -> None:
    """Its ends are gaps from which the estimate is just the quantile away, by Sato's variance."""
    result = permutation_test(**rate_rows(*STRATA), groups=groups, metric="selection_rate")
    strata: list[Rates] = STRATA
    if groups == ("b", "a"):
        strata = [(j, m, k, n) for k, n, j, m in STRATA]
    for end in result.confidence_interval:
        away = (result.difference - end) / math.sqrt(sato_variance(strata, end))
        assert abs(away) == pytest.approx(quantile(result), rel=1e-9)


def test_interval_over_strata_with_weights_adds_up_the_reaches_of_strata() -> None:
    weights = {0: 0.2, 1: 3.0, 2: 1.0}
    result = permutation_test(
        **rate_rows(*STRATA), metric="selection_rate", stratum_weights=weights
    )
    variances = [
        k / n * (1 - k / n) / (n - 1) + j / m * (1 - j / m) / (m - 1) for k, n, j, m in STRATA
    ]
    shares = [weight / sum(weights.values()) for weight in weights.values()]
    error = math.sqrt(sum(s**2 * v for s, v in zip(shares, variances, strict=True)))
    assert result.standard_error == pytest.approx(error, rel=1e-12)
    expected = stratified(STRATA, shares, quantile(result))
    assert result.confidence_interval == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("level", [0.8, 0.95])
def test_one_sided_intervals(level: float) -> None:
    one: Rates = (11, 30, 21, 34)
    for alternative in ("greater", "less"):
        result = permutation_test(
            **rate_rows(one),
            metric="selection_rate",
            scheme="denominator",
            alternative=alternative,
            confidence_level=level,
        )
        low, high = stratified([one], [1], quantile(result, level))
        expected = (low, 1.0) if alternative == "greater" else (-1.0, high)
        assert result.confidence_interval == pytest.approx(expected, rel=1e-9)


def test_interval_of_a_joint_metric_is_of_its_larger_part() -> None:
    pair: Pair = ((30, 10, 6, 14), (20, 9, 12, 9))
    result = permutation_test(**rows(pair), metric="equalized_odds", n_resamples=10**6)
    q = quantile(result)
    ends = []
    for part in ("true_positive_rate", "false_positive_rate"):
        (k, n), (j, m) = (rate(part, counts) for counts in pair)
        ends.append(stratified([(k, n, j, m)], [1], q))
    nearest = [0.0 if low <= 0 <= high else min(abs(low), abs(high)) for low, high in ends]
    farthest = [max(abs(low), abs(high)) for low, high in ends]
    assert result.confidence_interval == pytest.approx((max(nearest), max(farthest)), rel=1e-9)


@pytest.mark.parametrize("one", [(0, 10, 0, 20), (10, 10, 10, 10), (10, 10, 0, 10)], ids=str)
def test_rates_of_zero_and_one_have_intervals_with_a_width(one: Rates) -> None:
    """Where all rows are alike only 0 can be drawn, and nothing is known of how far chance goes."""
    low, high = permutation_test(**rate_rows(one), metric="selection_rate").confidence_interval
    assert high - low > 0.1


@pytest.mark.parametrize("alternative", ["greater", "less"])
def test_one_sided_intervals_of_every_level_begin_at_the_gap_and_grow(
    alternative: Alternative,
) -> None:
    y_pred = np.repeat([1, 0, 1, 0], [12, 8, 8, 12])
    group = np.repeat(["a", "b"], 20)
    ends = []
    for level in (0.1, 0.3, 0.5, 0.7, 0.9):
        result = permutation_test(
            y_pred,
            y_pred,
            sensitive_features=group,
            metric="selection_rate",
            alternative=alternative,
            confidence_level=level,
        )
        ends.append(result.confidence_interval[alternative == "less"])
    reach = np.abs(np.array(ends) - 0.2)
    assert reach[:2] == pytest.approx(np.zeros(2), abs=1e-12)
    assert reach[1] <= reach[2] < reach[3] < reach[4]
