"""Levels where the gap is just the margin, power where there is none, coverage of ratios.

Each with its negative control: what people would do instead, which must fail. Bounds are
binomial at 99.9 % (see ``simulate``) and follow from the level claimed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

import fairperm
from fairperm.hypothesis_tests.margins.one_sided import (
    Difference,
    Ratio,
    exceedance_pvalue,
    margin_pvalues,
    ratio_interval,
)
from fairperm.hypothesis_tests.results.gaps import PermutationTestResult
from tests.support.simulations import Procedure, at_least, at_most

pytestmark = pytest.mark.validate

LEVEL = 0.05
DATA_SETS = 2000  # of rates, whose tables repeat
SAMPLES = 800  # of rows
N_RESAMPLES = 319  # five blocks of 64, less the sample itself: (b + 1)/320 reaches 0.05 exactly

Rates = tuple[int, float, int, float]  # rows and true rate of each group


def tables(rates: Rates, seed: int, n: int = DATA_SETS) -> Iterator[tuple[list[int], int]]:
    """Yield the tables (k of m against j of n) that come up, and how often."""
    m, p, n_second, q = rates
    rng = np.random.default_rng(seed)
    hits = np.column_stack([rng.binomial(m, p, n), rng.binomial(n_second, q, n)])
    for (k, j), times in zip(*np.unique(hits, axis=0, return_counts=True), strict=True):
        yield [int(k), m, int(j), n_second], int(times)


def compared(table: list[int]) -> PermutationTestResult:
    k, m, j, n = table
    return Procedure("selection_rate")([[[m - k, k, 0, 0], [n - j, j, 0, 0]]])


@cache
def compare_tables(rates: Rates) -> list[tuple[PermutationTestResult, int]]:
    return [(compared(table), times) for table, times in tables(rates, seed=1)]


def how_often(rates: Rates, *events: Callable[[PermutationTestResult], bool]) -> list[int]:
    """Count the data sets of these rates in which each of the events happens."""
    results = compare_tables(rates)
    return [sum(times for result, times in results if happens(result)) for happens in events]


def within(margin: float) -> Callable[[PermutationTestResult], bool]:
    return lambda result: all(test.pvalue <= LEVEL for test in margin_pvalues(result, margin))


def inside_of(gap: float) -> Callable[[PermutationTestResult], bool]:
    """Return whether a result claims a gap within this true one, as a function of the result.

    Only the test of the nearer bound can be wrong. The gap is called within the margin only if the
    other test rejects too: less often still.
    """

    def verdict(result: PermutationTestResult) -> bool:
        lower, upper = margin_pvalues(result, abs(gap))
        return (lower if gap < 0 else upper).pvalue <= LEVEL

    return verdict


def beyond(gap: float) -> Callable[[PermutationTestResult], bool]:
    """Return whether a result claims a gap beyond this true one, as a function of the result."""

    def verdict(result: PermutationTestResult) -> bool:
        return Difference(result).test(gap, "greater" if gap > 0 else "less").pvalue <= LEVEL

    return verdict


def shown_beyond(margin: float) -> Callable[[PermutationTestResult], bool]:
    return lambda result: exceedance_pvalue(result, margin) <= LEVEL


def significant_and_larger(margin: float) -> Callable[[PermutationTestResult], bool]:
    """Tell what people would do instead: a test of no gap, and a look at the gap."""
    return lambda result: result.pvalue <= LEVEL and abs(result.difference) > margin


def inside_of_ratio(ratio: float) -> Callable[[PermutationTestResult], bool]:
    """Tell the same of the true ratio; there is none between two rates of 0."""

    def verdict(result: PermutationTestResult) -> bool:
        if not any(result.values.values()):
            return False
        return Ratio(result).test(ratio, "greater" if ratio < 1 else "less").pvalue <= LEVEL

    return verdict


# -- Rates --------------------------------------------------------------------------------------

AT_THE_MARGIN: dict[str, Rates] = {
    "alike in size": (200, 0.3, 200, 0.4),
    "small group far from half": (50, 0.4, 450, 0.1),
    "small group near zero": (60, 0.05, 600, 0.2),
    "small second group": (500, 0.56, 60, 0.7),
    "rare": (400, 0.03, 400, 0.08),
    "four fifths": (150, 0.4, 150, 0.5),
    "five fourths": (300, 0.5, 80, 0.4),
}


@pytest.mark.parametrize("rates", AT_THE_MARGIN.values(), ids=AT_THE_MARGIN)
def test_rates_at_the_margin_are_rarely_called_within_it(rates: Rates) -> None:
    _, p, _, q = rates
    found = how_often(rates, inside_of(p - q), inside_of_ratio(p / q))
    assert max(found) <= at_most(LEVEL, DATA_SETS)


@pytest.mark.parametrize("rates", AT_THE_MARGIN.values(), ids=AT_THE_MARGIN)
def test_rates_at_the_margin_are_rarely_shown_to_exceed_it(rates: Rates) -> None:
    """On two sides half as often: the end of the margin on the other side is far away."""
    _, p, _, q = rates
    gap = p - q
    found = how_often(rates, beyond(gap), shown_beyond(abs(gap)), significant_and_larger(abs(gap)))
    assert found[0] <= at_most(LEVEL, DATA_SETS)
    assert found[1] <= at_most(LEVEL / 2, DATA_SETS)
    assert found[2] > at_most(LEVEL, DATA_SETS)


def test_both_ends_of_a_small_margin_share_the_level() -> None:
    """The margin is a tenth of a standard error: without the factor of 2, 0.09 would be found."""
    rates: Rates = (400, 0.3, 400, 0.303)
    (found,) = how_often(rates, shown_beyond(0.003))
    assert at_least(LEVEL / 2, DATA_SETS) < found <= at_most(LEVEL, DATA_SETS)


def error_of_equality(result: PermutationTestResult) -> float:
    """Return the score error as the test of no gap has it: both groups pooled."""
    (k, m), (j, n) = (
        (result.counts[group]["numerator"], result.counts[group]["denominator"])
        for group in result.groups
    )
    p = (k + j) / (m + n)
    return math.sqrt(p * (1 - p) * (1 / m + 1 / n))


def test_an_error_that_assumes_equality_does_not_hold_the_level() -> None:
    """The negative control: at a margin, the groups' rates are not one rate."""
    rates = AT_THE_MARGIN["small group far from half"]

    def naive(result: PermutationTestResult) -> bool:
        return bool(norm.sf((0.3 - result.difference) / error_of_equality(result)) <= LEVEL)

    (found,) = how_often(rates, naive)
    assert found > at_most(LEVEL, DATA_SETS)


def test_no_significant_gap_is_not_a_gap_within_the_margin() -> None:
    """In small groups, a test of no gap finds nothing, though the gap is just the margin."""
    rates: Rates = (40, 0.3, 40, 0.4)
    not_significant, called_within = how_often(
        rates, lambda result: result.pvalue > LEVEL, within(0.1)
    )
    assert not_significant >= at_least(0.7, DATA_SETS)
    assert called_within <= at_most(LEVEL, DATA_SETS)


def test_large_groups_without_a_gap_are_found_to_be_within() -> None:
    """The margin is 4.9 standard errors away on either side: power 0.998."""
    rates: Rates = (4000, 0.3, 4000, 0.3)
    error = math.sqrt(2 * 0.3 * 0.7 / 4000)
    power = 2 * norm.cdf(0.05 / error - norm.isf(LEVEL)) - 1
    assert power > 0.99
    (found,) = how_often(rates, within(0.05))
    assert found >= at_least(power - 0.01, DATA_SETS)


# -- Rows: AUC and squared errors ---------------------------------------------------------------


def samples(
    draw: Callable[[np.random.Generator], dict[str, Any]],
) -> list[PermutationTestResult]:
    rng = np.random.default_rng(2020)
    options: dict[str, Any] = {"n_resamples": N_RESAMPLES, "progress": False}
    return [fairperm.permutation_test(**draw(rng), **options, rng=seed) for seed in range(SAMPLES)]


def scores(rng: np.random.Generator) -> dict[str, Any]:
    """Return scores with AUCs of 0.75 and 0.85, in groups of unlike base rates."""
    label, score = [], []
    for n, base_rate, auc in ((300, 0.6, 0.75), (150, 0.25, 0.85)):
        positive = rng.random(n) < base_rate
        label.append(positive)
        score.append(rng.normal(size=n) + math.sqrt(2) * norm.ppf(auc) * positive)
    return {
        "y_true": np.concatenate(label),
        "y_score": np.concatenate(score),
        "sensitive_features": np.repeat([0, 1], [300, 150]),
        "metric": "roc_auc",
    }


def squared_errors(rng: np.random.Generator) -> dict[str, Any]:
    """Return errors with mean squares of 1 and 1.5, the larger in a small group."""
    sizes = (800, 200)
    error = rng.normal(size=sum(sizes)) * np.repeat([1, 1.5**0.5], sizes)
    return {
        "y_true": np.zeros(sum(sizes)),
        "y_pred": error,
        "sensitive_features": np.repeat([0, 1], sizes),
        "metric": "mean_squared_error",
    }


def absolute_errors(rng: np.random.Generator, scales: tuple[float, float]) -> dict[str, Any]:
    """Return normal errors of these standard deviations in a large and a small group."""
    sizes = (400, 100)
    return {
        "y_true": np.zeros(sum(sizes)),
        "y_pred": rng.normal(size=sum(sizes)) * np.repeat(scales, sizes),
        "sensitive_features": np.repeat([0, 1], sizes),
        "metric": "mean_absolute_error",
    }


def un_studentized(margin: float) -> Callable[[PermutationTestResult], bool]:
    """Compare distances from the margin with permuted gaps, all over one error.

    Their spread under permutation is what a pooled sample has: rows of both groups in each.
    """

    def verdict(result: PermutationTestResult) -> bool:
        m, n = (result.counts[group]["rows"] for group in result.groups)
        first, second = (result.standard_errors[group] ** 2 for group in result.groups)
        spread = math.sqrt(first * m / n + second * n / m)  # (m V_A + n V_B)/(m + n)·(1/m + 1/n)
        return bool(norm.sf((margin + result.difference) / spread) <= LEVEL)

    return verdict


def test_auc_at_the_margin_is_rarely_called_within_it() -> None:
    results = samples(scores)
    assert sum(map(inside_of(-0.1), results)) <= at_most(LEVEL, SAMPLES)
    assert sum(map(inside_of_ratio(0.75 / 0.85), results)) <= at_most(LEVEL, SAMPLES)
    assert sum(map(beyond(-0.1), results)) <= at_most(LEVEL, SAMPLES)
    assert sum(map(shown_beyond(0.1), results)) <= at_most(LEVEL / 2, SAMPLES)
    assert sum(map(significant_and_larger(0.1), results)) > at_most(LEVEL, SAMPLES)


@pytest.mark.parametrize("scales", [(1, 1.3), (1.3, 1)], ids=["small worse", "small better"])
def test_absolute_errors_at_the_margin_are_rarely_shown_to_exceed_it(
    scales: tuple[float, float],
) -> None:
    gap = (scales[0] - scales[1]) * math.sqrt(2 / math.pi)
    results = samples(partial(absolute_errors, scales=scales))
    assert sum(map(beyond(gap), results)) <= at_most(LEVEL, SAMPLES)
    assert sum(map(shown_beyond(abs(gap)), results)) <= at_most(LEVEL / 2, SAMPLES)
    assert sum(map(significant_and_larger(abs(gap)), results)) > at_most(LEVEL, SAMPLES)


def test_squared_errors_at_the_margin_are_rarely_called_within_it() -> None:
    """But they are, if nothing is studentized; and the ratio's interval covers the true one."""
    results = samples(squared_errors)
    assert sum(map(inside_of(-0.5), results)) <= at_most(LEVEL, SAMPLES)
    assert sum(map(inside_of_ratio(1 / 1.5), results)) <= at_most(LEVEL, SAMPLES)
    assert sum(map(un_studentized(0.5), results)) > at_most(LEVEL, SAMPLES)
    assert sum(map(covers(1 / 1.5), results)) >= at_least(0.95, SAMPLES)


# -- Coverage of intervals of the ratio ---------------------------------------------------------


def covers(ratio: float) -> Callable[[PermutationTestResult], bool]:
    def verdict(result: PermutationTestResult) -> bool:
        found = ratio_interval(result)
        return found is None or found[1][0] <= ratio <= found[1][1]  # nothing said, nothing wrong

    return verdict


@pytest.mark.parametrize(
    "rates",
    [(100, 0.4, 150, 0.5), (60, 0.05, 200, 0.1), (40, 0.02, 50, 0.05), (30, 0.97, 90, 0.9)],
    ids=str,
)
def test_intervals_of_ratios_of_rates_cover_them(rates: Rates) -> None:
    _, p, _, q = rates
    (found,) = how_often(rates, covers(p / q))
    assert found >= at_least(0.95, DATA_SETS)


def test_rates_of_zero_and_one_are_why_one_half_is_added() -> None:
    """The negative control: without, there is no width between two rates of 1."""
    rates: Rates = (30, 0.97, 90, 0.99)

    def plain(result: PermutationTestResult) -> bool:
        first, second = (result.values[group] for group in result.groups)
        errors = [result.standard_errors[group] for group in result.groups]
        reach = norm.isf(0.025) * math.hypot(errors[0] / first, errors[1] / second)
        return bool(abs(math.log(first / second) - math.log(0.97 / 0.99)) <= reach)

    without, ours = how_often(rates, plain, covers(0.97 / 0.99))
    assert without < at_least(0.95, DATA_SETS) <= ours
