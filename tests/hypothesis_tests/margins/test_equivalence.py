"""Tests at a margin: by hand, against other implementations, and what must hold of all of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.stats import binom, hypergeom, norm

import fairperm
from fairperm import EquivalenceTestResult, equivalence_test, noninferiority
from fairperm.hypothesis_tests.margins.one_sided import Difference, Ratio, margin_pvalues
from fairperm.hypothesis_tests.margins.restricted_rates import (
    restricted_by_difference,
    restricted_by_ratio,
)
from fairperm.hypothesis_tests.results.gaps import PermutationTestResult
from fairperm.inference.errors_by_gap import GapVariance
from tests.support.helpers import rate_rows, rows
from tests.support.number_data import numbers_for
from tests.support.simulations import Procedure

Rates = tuple[int, int, int, int]  # k of m against j of n

SELECTION = Procedure("selection_rate")


@cache
def of_rates(k: int, m: int, j: int, n: int) -> PermutationTestResult:
    return SELECTION([[[m - k, k, 0, 0], [n - j, j, 0, 0]]])


# -- By hand ------------------------------------------------------------------------------------


def permuted_share(one: Rates, statistic: float) -> float:
    """Return the probability that permuted score statistics are at least this large."""
    k, m, j, n = one
    x = np.arange(max(0, k + j - n), min(m, k + j) + 1)
    p = (k + j) / (m + n)
    s = (x / m - (k + j - x) / n) / math.sqrt(p * (1 - p) * (1 / m + 1 / n))
    return float(hypergeom.pmf(x, m + n, k + j, m)[s >= statistic - 1e-12].sum())


def test_four_fifths_rule_by_hand() -> None:
    """46 of 100 against 45 of 100 selected.

    If the true ratio were 0.8, the second rate q would solve 160 q² − (80 + 46 + 100 + 36) q + 91
    = 0: q = (262 − √(262² − 4·160·91))/320 = (262 − 102)/320 = 0.5, and the first be 0.4. Then
    0.46 − 0.8·0.45 = 0.1 has the variance 0.4·0.6/100 + 0.64·0.5·0.5/100 = 0.004, and the
    statistic is 0.1/√0.004 = √2.5. Of permutations, 52 or more selected in the first group reach
    it: (52 − 39)/100 over √(0.455·0.545·2/100) is 1.846, while 51 make (51 − 40)/100: 1.562.
    """
    rows = rate_rows((46, 100, 45, 100))
    options: dict[str, Any] = {"metric": "selection_rate", "scheme": "denominator"}
    result = equivalence_test(**rows, ratio=0.8, **options)
    assert result.bounds == (0.8, 1.25)
    assert result.estimate == pytest.approx(46 / 45)
    assert result.lower is not None
    assert result.lower.statistic == pytest.approx(math.sqrt(2.5))
    at_least_52 = hypergeom.sf(51, 200, 91, 100)
    assert result.lower.pvalue == pytest.approx(max(at_least_52, norm.sf(math.sqrt(2.5))))
    assert result.pvalue == max(result.lower.pvalue, result.upper.pvalue if result.upper else 0)
    assert not result.holds_at(0.05)


def test_difference_by_hand() -> None:
    """424 of 1000 against 475 of 1000, margin 0.1.

    Rates of 0.4 and 0.5 solve the restricted likelihood's equation at −0.1:
    (424 − 400)/(0.4·0.6) + (475 − 500)/(0.5·0.5) = 100 − 100 = 0. So the variance is
    0.24/1000 + 0.25/1000 and the statistic (−0.051 + 0.1)/√0.00049 = 0.7·√10.
    """
    one = (424, 1000, 475, 1000)
    options: dict[str, Any] = {"metric": "selection_rate", "scheme": "denominator"}
    result = equivalence_test(**rate_rows(one), margin=0.1, **options)
    assert result.estimate == pytest.approx(-0.051)
    assert result.lower is not None
    z = 0.7 * math.sqrt(10)
    assert result.lower.statistic == pytest.approx(z)
    assert result.pvalue == pytest.approx(max(permuted_share(one, z), norm.sf(z)))
    assert result.holds_at(0.05)


def test_uniform_guidelines_example() -> None:
    """The EEOC's own: 48 of 80 against 12 of 40 hired, a ratio of one half."""
    hired = rate_rows((12, 40, 48, 80))
    result = equivalence_test(**hired, metric="selection_rate", ratio=0.8)
    assert result.ratio == pytest.approx(0.5)
    assert result.pvalue > 0.95  # evidence even of the contrary:
    assert result.confidence_interval[1] < 0.8
    assert not noninferiority(**hired, metric="selection_rate", ratio=0.8).holds_at()
    assert noninferiority(**hired, metric="selection_rate", ratio=0.8, groups=("b", "a")).holds_at()


# -- Against other implementations --------------------------------------------------------------

TABLES: list[Rates] = [
    (46, 100, 45, 100),
    (3, 40, 30, 410),
    (0, 30, 2, 25),
    (30, 30, 22, 25),
    (1, 7, 6, 9),
    (5000, 100_000, 510, 9000),
]
GAPS = (-0.6, -0.1, -0.01, 0.03, 0.25)
RATIOS = (0.3, 0.8, 0.99, 1.25, 3.0)


def log_likelihood(one: Rates, p: float, q: float) -> float:
    k, m, j, n = one
    return float(binom.logpmf(k, m, p) + binom.logpmf(j, n, q))


def likeliest(one: Rates, first_of: Callable[[float], float], most: tuple[float, float]) -> float:
    """Return the second rate that maximizes the likelihood, by search."""
    found = minimize_scalar(
        lambda q: -log_likelihood(one, first_of(q), q),
        bounds=most,
        method="bounded",
        options={"xatol": 1e-10},
    )
    return float(found.x)


@pytest.mark.parametrize("gap", GAPS)
@pytest.mark.parametrize("one", TABLES, ids=str)
def test_restricted_rates_by_difference_are_the_likeliest(one: Rates, gap: float) -> None:
    k, m, j, n = one
    p, q = restricted_by_difference((k, m), (j, n), gap)
    assert p - q == pytest.approx(gap, abs=1e-12)
    expected = likeliest(one, lambda q: q + gap, (max(0, -gap), min(1, 1 - gap)))
    assert q == pytest.approx(expected, abs=2e-6)


@pytest.mark.parametrize("ratio", RATIOS)
@pytest.mark.parametrize("one", TABLES, ids=str)
def test_restricted_rates_by_ratio_are_the_likeliest(one: Rates, ratio: float) -> None:
    k, m, j, n = one
    p, q = restricted_by_ratio((k, m), (j, n), ratio)
    assert p == pytest.approx(ratio * q, abs=1e-12)
    expected = likeliest(one, lambda q: ratio * q, (0, min(1, 1 / ratio)))
    assert q == pytest.approx(expected, abs=2e-6)


def test_statistic_and_interval_of_a_difference_are_the_published_ones() -> None:
    """56 of 70 against 48 of 80: R's cicalc has 1.348 at 0.1, and Mee's interval 0.0533 to 0.3377.

    statsmodels (up to 0.15) is no oracle for differences: its cubic has a wrong coefficient
    (statsmodels issue 10269), so that its restricted rates are not the likeliest.
    """
    result = of_rates(56, 70, 48, 80)
    _, upper = margin_pvalues(result, 0.1)
    assert upper.statistic == pytest.approx(1.348, abs=5e-4)
    gap, half_a_digit = Difference(result), 5e-5
    for end, z in ((0.0533, norm.isf(0.025)), (0.3377, -norm.isf(0.025))):
        assert (
            gap.statistic(end - half_a_digit, "greater")
            > z
            > gap.statistic(end + half_a_digit, "greater")
        )


@pytest.mark.parametrize("one", TABLES, ids=str)
def test_statistics_of_ratios_are_those_of_statsmodels(one: Rates) -> None:
    proportion = pytest.importorskip("statsmodels.stats.proportion")

    def score(ratio: float) -> float:
        statistic, _ = proportion.score_test_proportions_2indep(
            *one, value=ratio, compare="ratio", correction=False, return_results=False
        )
        return float(statistic)

    for ratio in (0.3, 0.8, 0.99):
        scale = Ratio(of_rates(*one))
        lower, upper = scale.test(ratio, "greater"), scale.test(1 / ratio, "less")
        assert lower.statistic == pytest.approx(score(ratio), rel=1e-6)
        assert upper.statistic == pytest.approx(score(1 / ratio), rel=1e-6)


def test_large_samples_agree_with_two_one_sided_tests_of_statsmodels() -> None:
    proportion = pytest.importorskip("statsmodels.stats.proportion")
    one = (4310, 10_000, 4250, 10_000)
    both = proportion.tost_proportions_2indep(
        *one, 0.96, 1 / 0.96, compare="ratio", method="score", correction=False
    )
    expected = both.results_larger.pvalue, both.results_smaller.pvalue
    scale = Ratio(of_rates(*one))
    tests = scale.test(0.96, "greater"), scale.test(1 / 0.96, "less")
    # permuted statistics are 0.03 apart, and statistics here about 2 from the bound
    assert [test.pvalue for test in tests] == pytest.approx(expected, abs=0.03 * norm.pdf(1.5))
    assert max(test.pvalue for test in tests) == pytest.approx(both.pvalue, abs=2e-3)


def test_the_error_at_the_margin_is_not_that_of_the_permutation_test() -> None:
    """Whether permutations are studentized by score or wald errors: the margin has its own."""
    data = rate_rows((46, 100, 45, 100))
    score, wald = (
        fairperm.permutation_test(**data, metric="selection_rate", variance=variance)
        for variance in ("score", "wald")
    )
    for one, other in zip(margin_pvalues(score, 0.1), margin_pvalues(wald, 0.1), strict=True):
        assert one.statistic == other.statistic
    assert (
        Ratio(score).statistic(0.8, "greater")
        == Ratio(wald).statistic(0.8, "greater")
        == pytest.approx(2.5**0.5)
    )


# -- Everything that is not a plain rate --------------------------------------------------------

OTHERS: dict[str, dict[str, Any]] = {
    "mean_squared_error": numbers_for("mean_squared_error", 90, seed=1),
    "roc_auc": numbers_for("roc_auc", 120, seed=2),
    "log_loss": numbers_for("log_loss", 90, seed=3),
    "balanced_accuracy": rows(((30, 12, 9, 40), (22, 9, 15, 31))),
}


@pytest.mark.parametrize("metric", OTHERS)
def test_other_metrics_have_their_own_error(metric: str) -> None:
    variance = "auto" if metric == "roc_auc" else "delta"
    result = fairperm.permutation_test(
        **OTHERS[metric],
        metric=metric,
        variance=variance,  # type: ignore[arg-type]
        rng=1,
        n_resamples=999,
    )
    null = result.null_distribution
    first, second = (result.values[group] for group in result.groups)
    errors = [result.standard_errors[group] for group in result.groups]
    margin = abs(result.difference) + 1.3 * result.standard_error
    lower, upper = margin_pvalues(result, margin)
    scale = Ratio(result)
    above, below = scale.test(0.7, "greater"), scale.test(1 / 0.7, "less")
    distances = (
        (lower, (result.difference + margin) / result.standard_error, 1),
        (upper, (result.difference - margin) / result.standard_error, -1),
        (above, (first - 0.7 * second) / math.hypot(errors[0], 0.7 * errors[1]), 1),
        (below, (first - second / 0.7) / math.hypot(errors[0], errors[1] / 0.7), -1),
    )
    for test, statistic, sign in distances:
        assert test.statistic == pytest.approx(statistic)
        is_extreme = sign * null >= sign * statistic - 1e-9
        share = (is_extreme.sum() + 1) / (len(null) + 1)
        if result.null_probabilities is not None:  # all permutations were counted
            share = result.null_probabilities[is_extreme].sum()
        assert test.pvalue == pytest.approx(max(share, norm.sf(sign * statistic)))


@pytest.mark.parametrize("bounds", [{"margin": 0.3}, {"ratio": 0.7}], ids=str)
@pytest.mark.parametrize("metric", OTHERS)
def test_interval_of_other_metrics_agrees_with_the_test(
    metric: str, bounds: dict[str, Any]
) -> None:
    """At the interval's own ends, p-values pass the level."""
    result = equivalence_test(**OTHERS[metric], metric=metric, rng=1, n_resamples=999, **bounds)
    scale = (Ratio if "ratio" in bounds else Difference)(result.permutation)
    low, high = result.confidence_interval
    width = high - low
    assert low < result.estimate < high
    for end, side, outwards in ((low, "greater", -1e-6 * width), (high, "less", 1e-6 * width)):
        assert scale.test(end + outwards, side).pvalue <= 0.05
        assert scale.test(end - outwards, side).pvalue > 0.05


def test_strata_have_the_error_at_the_margin() -> None:
    strata = [(3, 12, 9, 20), (14, 15, 6, 11), (0, 8, 2, 9)]
    result = equivalence_test(**rate_rows(*strata), metric="selection_rate", margin=0.3, rng=1)
    counted, sizes = np.array(strata, float)[:, [0, 2]], np.array(strata, float)[:, [1, 3]]
    error = GapVariance.of(counted, sizes).standard_error(-0.3)
    assert result.lower is not None
    assert result.lower.statistic == pytest.approx((result.estimate + 0.3) / error)
    low, high = result.confidence_interval
    assert low < result.estimate < high
    scale = Difference(result.permutation)
    assert scale.test(low - 1e-6, "greater").pvalue <= 0.05
    assert scale.test(low + 1e-6, "greater").pvalue > 0.05


def test_weights_and_clusters_have_the_gaps_own_error() -> None:
    data = rate_rows((30, 60, 20, 55))
    n = len(data["y_true"])
    extras: list[dict[str, Any]] = [
        {"sample_weight": 1 + np.arange(n) % 2},
        {"cluster": np.arange(n) // 2 * 2 + (np.array(data["sensitive_features"]) == "a")},
    ]
    for extra in extras:
        result = equivalence_test(
            **data, **extra, metric="selection_rate", margin=0.3, rng=1, n_resamples=199
        )
        assert result.lower is not None
        gap, error = result.permutation.difference, result.permutation.standard_error
        assert result.lower.statistic == pytest.approx((gap + 0.3) / error)


# -- Results ------------------------------------------------------------------------------------


def result_of(**options: Any) -> EquivalenceTestResult:
    return equivalence_test(**rate_rows((46, 100, 45, 100)), metric="selection_rate", **options)


@pytest.mark.parametrize("bounds", [{"margin": 0.15}, {"ratio": 0.8}], ids=str)
@pytest.mark.parametrize("higher_is_better", [True, False])
def test_noninferiority_is_one_half_of_equivalence(
    higher_is_better: bool, bounds: dict[str, Any]
) -> None:
    data = rate_rows((46, 100, 45, 100))
    whole = equivalence_test(**data, metric="selection_rate", **bounds)
    half = noninferiority(
        **data, metric="selection_rate", higher_is_better=higher_is_better, **bounds
    )
    kept, dropped = (half.lower, half.upper) if higher_is_better else (half.upper, half.lower)
    assert kept == (whole.lower if higher_is_better else whole.upper)
    assert dropped is None
    assert kept is not None
    assert half.pvalue == kept.pvalue
    assert half.confidence_interval == whole.confidence_interval
    none = math.inf if higher_is_better else 0.0 if "ratio" in bounds else -math.inf
    assert none in half.bounds


def test_a_pair_of_margins_is_taken_as_it_is() -> None:
    both, wide = result_of(margin=(-0.02, 0.3)), result_of(margin=0.3)
    assert both.bounds == (-0.02, 0.3)
    assert both.upper == wide.upper
    assert both.lower == result_of(margin=0.02).lower
    assert result_of(margin=[-0.02, 0.3]).bounds == (-0.02, 0.3)


def test_random_draws_give_an_interval_for_the_pvalue() -> None:
    data = numbers_for("mean_squared_error", 90, seed=1)
    result = equivalence_test(**data, metric="mean_squared_error", margin=1.0, rng=1)
    low, high = result.pvalue_interval
    assert 0 < low < result.pvalue < high
    assert f"1,999 draws (stopped early), 95 % interval {low:.4f} to {high:.4f}" in repr(result)
    assert 0 < result.pvalue_interval_wilson[0] < result.pvalue < result.pvalue_interval_wilson[1]


def test_result_states_whether_the_margin_is_met() -> None:
    assert "verdict     equivalence established at level 0.05\n" in repr(result_of(margin=0.3))
    assert "verdict     equivalence not established at level 0.05\n" in repr(result_of(margin=0.01))


def test_rows_that_do_not_vary_prove_nothing() -> None:
    """Perfect predictions: no error, and nothing known of how far chance goes."""
    data: dict[str, Any] = {
        "y_true": [1, 0] * 20,
        "y_pred": [1, 0] * 20,
        "sensitive_features": list("ab" * 10 + "ba" * 10),
    }
    with pytest.warns(
        fairperm.FairpermWarning, match="standard error of matthews_corrcoef is zero"
    ):
        result = equivalence_test(**data, metric="matthews_corrcoef", margin=0.1)
    assert result.pvalue == 1
    assert result.confidence_interval == (-2, 2)  # all that is possible
    assert result.ratio_interval == (0, math.inf)
    own, *others = result.notes
    assert own.endswith("the p-value is 1.")
    assert tuple(others) == result.permutation.notes


@pytest.mark.parametrize("test", [equivalence_test, noninferiority])
def test_notes_of_the_permutation_test_are_kept_and_said_once(test: Callable[..., Any]) -> None:
    rng = np.random.default_rng(2)
    label, group = np.arange(200) % 2, np.where(np.arange(200) < 24, "a", "b")
    score = np.where(group == "a", label, rng.random(200))
    data: dict[str, Any] = {"y_true": label, "y_score": score, "sensitive_features": group}
    with pytest.warns(fairperm.FairpermWarning, match="may reject too often") as caught:
        result = test(**data, metric="roc_auc", margin=0.1, n_resamples=99, rng=1)
    assert len(caught) == len(result.notes) == 1
    assert result.notes == result.permutation.notes
    assert result.to_dict()["notes"] == list(result.notes)
    assert repr(result).count("  note ") == 1


@pytest.mark.parametrize("metric", ["true_positive_rate", "f1_score"])
def test_the_unit_of_weights_does_not_matter(metric: str) -> None:
    data = rows(((30, 12, 9, 40), (22, 9, 15, 31)))
    weight = np.arange(len(data["y_true"])) % 3 + 1.0
    options: dict[str, Any] = {"metric": metric, "scheme": "denominator", "margin": 0.4, "rng": 1}
    results = [
        equivalence_test(**data, **options, sample_weight=unit * weight, n_resamples=199)
        for unit in (1.0, 2.0**-10)
    ]
    assert results[0].pvalue == results[1].pvalue < 0.1
    assert results[0].confidence_interval == pytest.approx(results[1].confidence_interval)


def test_few_rows_prove_no_more_than_their_labellings_can() -> None:
    """Six rows can be labelled in 20 ways: no p-value is below 1/20, however far the margin."""
    data: dict[str, Any] = {
        "y_true": [0.0] * 6,
        "y_pred": [1.0, 1.1, 1.2, 1.05, 1.15, 1.25],
        "sensitive_features": list("aaabbb"),
    }
    bounds: list[dict[str, Any]] = [{"margin": 1e6}, {"ratio": 1e-6}]
    for options in bounds:
        result = equivalence_test(**data, metric="mean_absolute_error", rng=1, **options)
        assert result.pvalue == pytest.approx(1 / 20)
    tight = equivalence_test(
        **data, metric="mean_absolute_error", rng=1, margin=1e6, confidence_level=0.96
    )
    assert tight.confidence_interval == (-math.inf, math.inf)


@pytest.mark.parametrize("n", [10, 1000])
def test_two_rates_of_zero_are_within_a_margin_if_the_groups_are_large(n: int) -> None:
    """If the first were 0.05 less, the likeliest rates are 0 and 0.05: z² = 0.05 n/0.95."""
    result = equivalence_test(**rate_rows((0, n, 0, n)), metric="selection_rate", margin=0.05)
    normal = norm.sf(math.sqrt(0.05 * n / 0.95))
    assert normal <= result.pvalue <= (1.2 * normal if n == 10 else 1e-6)
    assert result.holds_at() == (n == 1000)
    assert result.ratio is None
    assert result.ratio_interval is None
