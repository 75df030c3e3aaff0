"""Intervals of the default test of rates, by summing over all tables of two samples."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom

import fairperm
from fairperm.hypothesis_tests.margins.one_sided import ratio_interval

Array = NDArray[np.float64]

RATES = np.linspace(0.02, 0.98, 25)
ALTERNATIVES = ("two-sided", "greater", "less")


def run_test(m: int, n: int, a: int, b: int, **options: object) -> fairperm.PermutationTestResult:
    rows = np.repeat([1, 0, 1, 0], [a, m - a, b, n - b])
    groups = np.repeat(["a", "b"], [m, n])
    given = {"metric": "selection_rate", "rng": 0, **options}
    return fairperm.permutation_test(rows, rows, sensitive_features=groups, **given)  # type: ignore[arg-type]


@functools.cache
def run_tests(m: int, n: int, alternative: str) -> dict[str, Array]:
    """Return p-values and the ends of both intervals, for every table."""
    found = {name: np.full((m + 1, n + 1), np.nan) for name in ("p", "low", "high")}
    ratios = {name: np.full((m + 1, n + 1), np.nan) for name in ("ratio low", "ratio high")}
    for a in range(m + 1):
        for b in range(n + 1):
            result = run_test(m, n, a, b, alternative=alternative)
            found["p"][a, b] = result.pvalue
            found["low"][a, b], found["high"][a, b] = result.confidence_interval
            _, interval = ratio_interval(result) or (None, (0.0, np.inf))
            ratios["ratio low"][a, b], ratios["ratio high"][a, b] = interval
    return {**found, **ratios}


def coverages(low: Array, high: Array, true: Array) -> Array:
    """Return the probability of tables whose interval holds the true gap or ratio, by rates."""
    m, n = low.shape[0] - 1, low.shape[1] - 1
    first, second = (binom.pmf(np.arange(one + 1), one, RATES[:, None]) for one in (m, n))
    slack = 1e-9 * np.abs(true)
    found = np.empty_like(true)
    for i, j in np.ndindex(*true.shape):
        covers = (low <= true[i, j] + slack[i, j]) & (true[i, j] - slack[i, j] <= high)
        found[i, j] = first[i] @ covers @ second[j]
    return found


SIZES = [(20, 20), (10, 60)]
LONG = [pytest.param(*one, marks=pytest.mark.validate) for one in SIZES]


@pytest.mark.parametrize(("m", "n"), [(6, 4), *LONG])
@pytest.mark.parametrize("alternative", ALTERNATIVES)
def test_interval_excludes_zero_exactly_if_the_test_rejects(
    m: int, n: int, alternative: str
) -> None:
    found = run_tests(m, n, alternative)
    is_rejected = found["p"] <= 0.05
    excludes_zero = (found["low"] > 0) | (found["high"] < 0)
    excludes_one = (found["ratio low"] > 1) | (found["ratio high"] < 1)
    np.testing.assert_array_equal(excludes_zero, is_rejected)
    np.testing.assert_array_equal(excludes_one, is_rejected)
    assert is_rejected.any()


@pytest.mark.parametrize("alternative", ALTERNATIVES)
def test_pvalues_and_intervals_agree_at_low_levels(alternative: str) -> None:
    for a, b in np.ndindex(7, 5):
        for level in (0.05, 0.3, 0.5):
            result = run_test(6, 4, a, b, alternative=alternative, confidence_level=level)
            low, high = result.confidence_interval
            assert (not low <= 0 <= high) == (result.pvalue <= (1 - level) * (1 + 1e-12))


CASES = [
    *((4, 31, "two-sided"), (13, 13, "less")),
    *(
        pytest.param(m, n, alternative, marks=pytest.mark.validate)
        for m, n in [(4, 31), (6, 19), (10, 60), (13, 13), (20, 20)]
        for alternative in ("two-sided", "greater")
    ),
]


@pytest.mark.parametrize(("m", "n", "alternative"), CASES)
def test_intervals_cover_the_gap_and_the_ratio(m: int, n: int, alternative: str) -> None:
    """With the critical value of the test at zero, intervals of the gap covered 0.85 to 0.95."""
    found = run_tests(m, n, alternative)
    gap = coverages(found["low"], found["high"], RATES[:, None] - RATES)
    ratio = coverages(found["ratio low"], found["ratio high"], RATES[:, None] / RATES)
    # gaps that are not rejected beyond some that are may be missed if they are few: dev/levels.md
    assert gap.min() > 0.949
    assert ratio.min() > 0.945
    assert gap.mean() < 0.985


def test_swapping_the_groups_mirrors_the_interval() -> None:
    for m, n, a, b in [(6, 19, 2, 11), (13, 13, 4, 9), (20, 7, 20, 3), (3, 3, 2, 2)]:
        low, high = run_test(m, n, a, b).confidence_interval
        assert run_test(n, m, b, a).confidence_interval == (-high, -low)


def test_intervals_of_equal_groups_are_symmetric() -> None:
    """The searches for both ends stopped at −0.2384 and 0.2397 for 1 of 7 in both groups."""
    for n, k in [(7, 1), (7, 6), (5, 2), (8, 4)]:
        low, high = run_test(n, n, k, k, confidence_level=0.6).confidence_interval
        assert low == -high


def test_f1_and_jaccard_have_one_test() -> None:
    rng = np.random.default_rng(5)
    y_true, y_pred = rng.integers(0, 2, 90), rng.integers(0, 2, 90)
    groups = np.repeat(["a", "b"], [30, 60])
    one, other = (
        fairperm.permutation_test(y_true, y_pred, sensitive_features=groups, metric=metric)
        for metric in ("f1_score", "jaccard_score")
    )
    assert one.pvalue == other.pvalue
    assert one.scheme == other.scheme == "unconditional"
    # F1 = 2J/(1 + J): intervals are on scales of their own, and agree about zero
    assert one.confidence_interval != other.confidence_interval
