"""What must hold of tests at a margin for every table, and of intervals of the ratio."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import norm

import fairperm
from fairperm.hypothesis_tests.margins.equivalence import equivalence_test
from fairperm.hypothesis_tests.margins.one_sided import Ratio, margin_pvalues, ratio_interval
from fairperm.hypothesis_tests.results.gaps import PermutationTestResult
from tests.support.helpers import rate_rows, rows
from tests.support.number_data import numbers_for
from tests.support.simulations import Procedure

Rates = tuple[int, int, int, int]  # k of m against j of n


@cache
def of_rates(k: int, m: int, j: int, n: int, scheme: str = "auto") -> PermutationTestResult:
    return Procedure("selection_rate", scheme=scheme)([[[m - k, k, 0, 0], [n - j, j, 0, 0]]])


COUNTS = st.tuples(st.integers(1, 60), st.integers(1, 60)).flatmap(
    lambda sizes: st.tuples(
        st.integers(0, sizes[0]), st.just(sizes[0]), st.integers(0, sizes[1]), st.just(sizes[1])
    )
)
MARGINS = st.floats(0.01, 0.9)


@given(one=COUNTS, low=MARGINS, high=MARGINS)
def test_swapping_the_groups_swaps_the_tests(one: Rates, low: float, high: float) -> None:
    k, m, j, n = one
    lower, upper = margin_pvalues(of_rates(k, m, j, n), (-low, high))
    other_lower, other_upper = margin_pvalues(of_rates(j, n, k, m), (-high, low))
    assert lower.pvalue == pytest.approx(other_upper.pvalue, rel=1e-9)
    assert upper.pvalue == pytest.approx(other_lower.pvalue, rel=1e-9)


@given(one=COUNTS, ratio=MARGINS)
def test_swapping_the_groups_swaps_the_tests_of_the_ratio(one: Rates, ratio: float) -> None:
    k, m, j, n = one
    assume(k + j > 0)
    scales = Ratio(of_rates(k, m, j, n)), Ratio(of_rates(j, n, k, m))
    lower, other_lower = (scale.test(ratio, "greater") for scale in scales)
    upper, other_upper = (scale.test(1 / ratio, "less") for scale in scales)
    assert lower.pvalue == pytest.approx(other_upper.pvalue, rel=1e-6)
    assert upper.pvalue == pytest.approx(other_lower.pvalue, rel=1e-6)


@given(one=COUNTS, low=MARGINS, high=MARGINS)
def test_counting_the_others_instead_mirrors_the_difference(
    one: Rates, low: float, high: float
) -> None:
    k, m, j, n = one
    lower, upper = margin_pvalues(of_rates(k, m, j, n), (-low, high))
    other_lower, other_upper = margin_pvalues(of_rates(m - k, m, n - j, n), (-high, low))
    assert lower.pvalue == pytest.approx(other_upper.pvalue, rel=1e-9)
    assert upper.pvalue == pytest.approx(other_lower.pvalue, rel=1e-9)


@given(one=COUNTS, margins=st.tuples(MARGINS, MARGINS).map(sorted))
def test_a_wider_margin_has_no_larger_pvalue(one: Rates, margins: list[float]) -> None:
    """A p-value is a bound, up to 0.05 % above the largest probability."""
    narrow, wide = (margin_pvalues(of_rates(*one), margin) for margin in margins)
    for narrower, wider in zip(narrow, wide, strict=True):
        assert wider.pvalue <= narrower.pvalue * 1.0005


@given(one=COUNTS, margin=MARGINS)
def test_pvalues_are_never_below_the_normal_ones(one: Rates, margin: float) -> None:
    lower, upper = margin_pvalues(of_rates(*one), margin)
    assert lower.pvalue > 0
    assert lower.pvalue >= norm.sf(lower.statistic) * (1 - 1e-9)
    assert upper.pvalue > 0
    assert upper.pvalue >= norm.cdf(upper.statistic) * (1 - 1e-9)


@pytest.mark.parametrize("scale", ["margin", "ratio"])
@given(one=COUNTS, bound=MARGINS)
def test_the_interval_lies_within_the_margin_just_when_the_test_says_so(
    scale: str, one: Rates, bound: float
) -> None:
    assume(scale == "margin" or one[0] + one[2] > 0)
    given_bound: dict[str, Any] = {scale: bound}
    result = equivalence_test(**rate_rows(one), metric="selection_rate", **given_bound)
    (low, high), (lowest, highest) = result.bounds, result.confidence_interval
    assert lowest <= result.estimate <= highest
    assert result.lower is not None
    assert result.upper is not None
    near = any(abs(p - 0.05) < 1e-9 for p in (result.lower.pvalue, result.upper.pvalue))
    assume(not near)
    assert (lowest > low) == (result.lower.pvalue <= 0.05)
    assert (highest < high) == (result.upper.pvalue <= 0.05)


@given(power=st.integers(-8, 8), margin=st.floats(0.1, 3.0))
def test_the_unit_of_the_metric_does_not_matter(power: int, margin: float) -> None:
    """Outcomes in other units: a margin of squared errors goes with the square."""
    data = numbers_for("mean_squared_error", 40, seed=1)
    unit = 2.0**power
    scaled = {**data, "y_true": unit * data["y_true"], "y_pred": unit * data["y_pred"]}
    options: dict[str, Any] = {"metric": "mean_squared_error", "rng": 1, "n_resamples": 99}
    result = fairperm.permutation_test(**data, **options)
    other = fairperm.permutation_test(**scaled, **options)
    mine, its = margin_pvalues(result, margin), margin_pvalues(other, unit**2 * margin)
    assert [test.pvalue for test in mine] == [test.pvalue for test in its]
    for bound, side in ((0.8, "greater"), (1 / 0.8, "less")):
        assert Ratio(result).test(bound, side).pvalue == Ratio(other).test(bound, side).pvalue
    assert ratio_interval(result) == ratio_interval(other)


# -- Intervals of the ratio ---------------------------------------------------------------------


def quantile(result: PermutationTestResult) -> float:
    """Return the 0.95 quantile of |S|, but at least the normal one."""
    assert result.null_probabilities is not None
    size = np.abs(result.null_distribution)
    order = np.argsort(size)
    reached = np.cumsum(result.null_probabilities[order])
    largest = float(size[order][np.searchsorted(reached, 0.95 - 1e-12)])
    return max(largest, float(norm.isf(0.025)))


@pytest.mark.parametrize("one", [(46, 100, 45, 100), (3, 40, 30, 410), (1, 7, 6, 9)], ids=str)
def test_interval_of_a_ratio_of_rates_is_that_of_katz(one: Rates) -> None:
    """Katz et al. (1978): Var log(p/q) = 1/k − 1/m + 1/j − 1/n."""
    k, m, j, n = one
    result = of_rates(*one, scheme="denominator")
    found = ratio_interval(result)
    assert found is not None
    ratio = k / m / (j / n)
    reach = quantile(result) * math.sqrt(1 / k - 1 / m + 1 / j - 1 / n)
    assert found[0] == pytest.approx(ratio)
    assert found[1] == pytest.approx((ratio * math.exp(-reach), ratio * math.exp(reach)))


def halved(one: Rates, z: float) -> tuple[float, float]:
    """Return the interval with ½ more of either kind in both groups."""
    k, m, j, n = one[0] + 0.5, one[1] + 1, one[2] + 0.5, one[3] + 1
    centre, reach = math.log(k * n / (m * j)), z * math.sqrt(1 / k - 1 / m + 1 / j - 1 / n)
    return math.exp(centre - reach), math.exp(centre + reach)


def test_the_interval_of_a_rate_of_zero_goes_to_its_ratio() -> None:
    none_of_first: Rates = (0, 30, 8, 40)
    result = of_rates(*none_of_first, scheme="denominator")
    high = halved(none_of_first, quantile(result))[1]
    assert math.isfinite(high)
    found = ratio_interval(result)
    assert found is not None
    assert (found[0], *found[1]) == pytest.approx((0, 0, 1))  # below 1: the test rejects
    assert found[1][1] < 1 < high
    found = ratio_interval(of_rates(8, 40, 0, 30, scheme="denominator"))
    assert found is not None
    assert (found[0], *found[1]) == pytest.approx((math.inf, 1, math.inf))
    assert 1 / high < 1 < found[1][0]


def test_the_interval_of_two_rates_of_one_has_a_width() -> None:
    all_of_both: Rates = (20, 20, 30, 30)
    found = ratio_interval(of_rates(*all_of_both, scheme="denominator"))
    assert found is not None
    assert (found[0], *found[1]) == pytest.approx((1, *halved(all_of_both, norm.isf(0.025))))


def test_two_rates_of_zero_have_no_ratio() -> None:
    assert ratio_interval(of_rates(0, 20, 0, 30)) is None


@given(one=COUNTS)
def test_swapping_the_groups_inverts_the_interval(one: Rates) -> None:
    k, m, j, n = one
    assume(k + j > 0)
    found, other = ratio_interval(of_rates(k, m, j, n)), ratio_interval(of_rates(j, n, k, m))
    assert found is not None
    assert other is not None
    (ratio, (low, high)), (inverse, (other_low, other_high)) = found, other
    assert low <= ratio <= high
    for mine, its in ((ratio, inverse), (low, other_high), (high, other_low)):
        assert mine == pytest.approx(1 / its if its else math.inf)


def test_one_sided_tests_have_one_sided_intervals() -> None:
    one: Rates = (46, 100, 45, 100)
    k, m, j, n = one
    sides = {}
    for alternative in ("greater", "less"):
        result = Procedure("selection_rate", alternative=alternative)(
            [[[m - k, k, 0, 0], [n - j, j, 0, 0]]]
        )
        found = ratio_interval(result)
        assert found is not None
        sides[alternative] = found[1]
    both = ratio_interval(of_rates(*one))
    assert both is not None
    assert sides["greater"][1] == math.inf
    assert sides["less"][0] == 0
    assert both[1][0] < sides["greater"][0] < sides["less"][1] < both[1][1]


def test_other_metrics_have_the_delta_methods_error() -> None:
    data = numbers_for("mean_squared_error", 90, seed=1)
    result = fairperm.permutation_test(
        **data, metric="mean_squared_error", variance="delta", rng=1, n_resamples=9999
    )
    found = ratio_interval(result)
    assert found is not None
    first, second = (result.values[group] for group in result.groups)
    errors = [result.standard_errors[group] for group in result.groups]
    below, above = np.sort(result.null_distribution)[[250 - 1, 9750 - 1]]
    error = math.hypot(errors[0] / first, errors[1] / second)
    ratio = first / second
    assert found[0] == pytest.approx(ratio)
    ends = ratio * math.exp(-above * error), ratio * math.exp(-below * error)
    assert found[1] == pytest.approx(ends)


NO_RATIO: dict[str, dict[str, Any]] = {
    "strata": {**rate_rows((5, 9, 3, 8), (4, 9, 3, 9)), "metric": "selection_rate"},
    "joint": {**rows(((9, 3, 4, 8), (7, 5, 3, 9))), "metric": "equalized_odds"},
    "un-studentized": {**rate_rows((5, 9, 3, 8)), "metric": "selection_rate", "variance": None},
    "negative": {**numbers_for("mean_error", 30, seed=1), "metric": "mean_error"},
}


@pytest.mark.parametrize("options", NO_RATIO.values(), ids=NO_RATIO)
def test_where_there_is_no_ratio_there_is_none(options: dict[str, Any]) -> None:
    if options["metric"] == "mean_error":
        options = {**options, "y_pred": options["y_true"] - 1 - np.arange(30) / 99}
    assert ratio_interval(fairperm.permutation_test(**options, rng=1, n_resamples=99)) is None
