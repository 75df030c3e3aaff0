"""From draws to p-values and intervals, against scipy and by hand."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from fairperm import InputError, permutation_test
from fairperm.data.arguments import SchemeName, VarianceName
from fairperm.engines.resampling import enumeration
from fairperm.inference.multiplicity import adjust_pvalues
from fairperm.inference.null import (
    Null,
    agree,
    clopper_pearson,
    find_extreme,
    pvalue,
    snap_pvalue,
    tie_tolerance,
    wilson,
)
from studies.bootstrap import bootstrap_test
from tests.support.helpers import Pair, rate_rows, rows

INF, NAN = math.inf, math.nan


@pytest.fixture
def drawing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw permutations at random even where enumerating them is faster."""
    monkeypatch.setattr(enumeration, "POINTS_PER_DRAW", 0)
    monkeypatch.setattr(enumeration, "_STEPS_PER_DRAW", 0)


# -- p-values ---------------------------------------------------------------------------------

PAIR: Pair = ((6, 4, 3, 9), (9, 3, 5, 4))
STRATA: list[Pair] = [((3, 2, 1, 4), (4, 1, 3, 3)), ((2, 2, 2, 3), (1, 3, 2, 2))]
CASES = [
    *[("fnr", s, v) for s in ("pooled", "within_label", "denominator") for v in ("score", "wald")],
    *[("fnr", s, v) for s in ("pooled", "within_label", "denominator") for v in ("delta", None)],
    *[("ppv", s, v) for s in ("pooled", "denominator") for v in ("score", "wald", None)],
    *[("f1", s, v) for s in ("pooled", "denominator") for v in ("score", "delta", None)],
    *[("balanced_accuracy", s, "delta") for s in ("pooled", "within_label")],
    *[("equalized_odds", s, v) for s in ("pooled", "within_label") for v in ("score", "wald")],
]


@pytest.mark.parametrize("strata", [[PAIR], STRATA], ids=["all rows", "strata"])
@pytest.mark.parametrize(("metric", "scheme", "variance"), CASES)
def test_random_draws_agree_with_all_of_them(
    metric: str,
    scheme: SchemeName,
    variance: VarianceName,
    strata: list[Pair],
    request: pytest.FixtureRequest,
) -> None:
    """Of B draws, Binomial(B, exact p-value) many are extreme."""
    data = rows(*strata)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The metric is undefined")
        exact = permutation_test(
            **data, metric=metric, scheme=scheme, variance=variance, n_resamples=10**6
        )
        request.getfixturevalue("drawing")
        drawn = permutation_test(
            **data, metric=metric, scheme=scheme, variance=variance, n_resamples=4999, rng=1
        )
    assert exact.exact
    assert not drawn.exact
    assert exact.statistic == drawn.statistic
    tails = 2 if exact.ordering == "two-sided" else 1
    extremes = round(drawn.pvalue / tails * 5000) - 1
    assert stats.binomtest(extremes, 4999, exact.pvalue / tails).pvalue > 1e-4
    assert (drawn.n_undefined > 0) <= (exact.n_undefined > 0)


def test_fast_bootstrap_divides_by_two_errors() -> None:
    """T*/sd(T*) ≤ T/SE, with sd of the hypergeometric and SE of the binomial distribution."""
    k_a, n_a, k_b, n_b = 3, 12, 40, 80
    gap = k_a / n_a - k_b / n_b
    error = math.sqrt(k_a * (n_a - k_a) / n_a**3 + k_b * (n_b - k_b) / n_b**3)
    permuted = stats.hypergeom(n_a + n_b, k_a + k_b, n_a)
    k = np.arange(n_a + 1)
    gaps = k / n_a - (k_a + k_b - k) / n_b
    most = gap / error * permuted.std() * (1 / n_a + 1 / n_b)
    few, many = (permuted.pmf(k)[gaps <= c * most].sum() for c in (1.04, 0.96))
    assert few == many  # no gap lies where Monte Carlo errors could matter

    data = rate_rows((k_a, n_a, k_b, n_b))
    given = {**data, "metric": "selection_rate", "variance": "fast_bootstrap", "rng": 1}
    result = permutation_test(**given, n_resamples=9999)
    assert result.statistic == pytest.approx(gap / error, rel=5 / math.sqrt(2 * 9999))
    assert result.null_distribution.std(ddof=1) == pytest.approx(1)
    assert stats.binomtest(round(result.pvalue / 2 * 10_000) - 1, 9999, few).pvalue > 1e-4


def test_nested_bootstrap_recomputes_the_error_in_every_permutation() -> None:
    """With many bootstrap samples it is wald's: p(1 − p)/m is the variance of a binomial share."""
    data, n_bootstrap = rate_rows((11, 30, 21, 34)), 2000
    result = permutation_test(
        **data,
        metric="selection_rate",
        variance="bootstrap",
        n_resamples=300,
        n_bootstrap=n_bootstrap,
        rng=1,
    )
    wald = permutation_test(**data, metric="selection_rate", variance="wald")
    noise = 5 / math.sqrt(2 * n_bootstrap)
    assert result.statistic == pytest.approx(wald.statistic, rel=noise)
    away = np.abs(np.subtract.outer(result.null_distribution, wald.null_distribution))
    assert (away.min(axis=1) <= noise * np.abs(result.null_distribution) + 1e-9).all()


@pytest.mark.parametrize(
    ("alternative", "observed", "extreme", "factor"),
    [
        ("symmetric", 2.0, 2, 1),
        ("greater", 2.0, 1, 1),
        ("less", 2.0, 4, 1),
        ("two-sided", 2.0, 1, 2),
        ("two-sided", -2.0, 1, 2),
        ("two-sided", 0.5, 2, 2),
        ("two-sided", 0.1, 2, 2),
    ],
)
def test_the_observed_permutation_counts_as_a_draw(
    alternative: str, observed: float, extreme: int, factor: int
) -> None:
    """Two-sided is twice the smaller tail, with twice its intervals."""
    null = Null(np.array([0.1, -3.0, 2.0, 0.5]))
    p = pvalue(null, observed, alternative, 0.0, 0.95)
    assert p.value == min(1.0, factor * (extreme + 1) / 5)
    intervals = clopper_pearson(extreme, 4, 0.95), wilson(extreme, 4, 0.95)
    doubled = [tuple(min(1.0, factor * end) for end in ends) for ends in intervals]
    assert [p.interval, p.wilson_interval] == doubled


def test_undefined_draws_are_in_both_tails() -> None:
    null = Null(np.array([NAN, 1.0, -1.0, 0.5]))
    assert pvalue(null, 3.0, "two-sided", 0.0, 0.95).value == 2 * 2 / 5
    assert pvalue(null, -3.0, "two-sided", 0.0, 0.95).value == 2 * 2 / 5


def test_ties_near_zero_have_an_absolute_floor() -> None:
    """0.1 + 0.2 − 0.3 is 5.6e-17: rounding of numbers near 0.3, however small the gap."""
    observed, tied = 0.0 + 5.6e-17, 0.0
    tolerance = tie_tolerance(observed, np.ones(1), np.ones(1))
    assert 1e-15 < tolerance < 1e-10
    assert find_extreme(np.array([tied]), observed, "symmetric", tolerance).all()


def test_the_floor_follows_the_standard_error() -> None:
    """Over an error of 0.001 the same rounding of the gap is a thousand times larger."""
    wide, narrow = (tie_tolerance(0.0, np.ones(1), np.array([e])) for e in (1.0, 0.001))
    assert narrow == pytest.approx(1000 * wide)


@pytest.mark.parametrize("n", [7, 11, 13, 49])
def test_equal_gaps_in_other_floats_are_ties(n: int) -> None:
    """1/n against 0 has the gap of 0 against 1/n, and any permutation of one row is as extreme."""
    rows = rate_rows((1, n, 0, n))
    result = permutation_test(**rows, metric="selection_rate", scheme="denominator")
    assert result.pvalue == 1.0


# -- Intervals for the p-value ------------------------------------------------------------------


@pytest.mark.parametrize("level", [0.9, 0.95, 0.999])
@pytest.mark.parametrize(("b", "n"), [(0, 1), (1, 1), (0, 99), (3, 99), (99, 99), (499, 9999)])
def test_intervals_are_scipys(b: int, n: int, level: float) -> None:
    test = stats.binomtest(b, n)
    for ours, method in [(clopper_pearson, "exact"), (wilson, "wilson")]:
        scipys = test.proportion_ci(level, method)
        assert ours(b, n, level) == pytest.approx((scipys.low, scipys.high), rel=1e-9, abs=1e-15)


@pytest.mark.validate
def test_intervals_cover_the_exact_pvalue(drawing: None) -> None:
    """Clopper–Pearson's at least, Wilson's as often as its formula says for this p-value."""
    seeds, draws = 1000, 199
    data = rate_rows((4, 12, 7, 11))
    tests = [
        permutation_test(
            **data, metric="selection_rate", scheme="denominator", n_resamples=draws, rng=seed
        )
        for seed in range(seeds)
    ]
    k = np.arange(max(0, 11 - 11), 12)
    pmf = stats.hypergeom(23, 11, 12).pmf(k)
    gap = np.abs(k / 12 - (11 - k) / 11)
    p = pmf[gap >= abs(4 / 12 - 7 / 11) - 1e-12].sum()
    covered = sum(low <= p <= high for low, high in (test.pvalue_interval for test in tests))
    assert covered >= stats.binom(seeds, 0.95).ppf(0.001)

    intervals = [stats.binomtest(b, draws).proportion_ci(0.95, "wilson") for b in range(draws + 1)]
    covers = [one.low <= p <= one.high for one in intervals]
    coverage = stats.binom(draws, p).pmf(np.arange(draws + 1))[covers].sum()
    assert 0.93 < coverage < 0.97
    covered = sum(low <= p <= high for low, high in (test.pvalue_interval_wilson for test in tests))
    low, high = stats.binom(seeds, coverage).interval(0.999)
    assert low <= covered <= high


def test_exact_pvalues_have_no_interval() -> None:
    result = permutation_test(**rate_rows((4, 12, 7, 11)), metric="selection_rate")
    assert result.pvalue_interval == (result.pvalue, result.pvalue)
    assert result.pvalue_interval_wilson == (result.pvalue, result.pvalue)


# -- Quantiles and intervals for the gap ----------------------------------------------------------


@pytest.mark.parametrize(
    ("level", "expected"),
    [(0.2, 1.0), (0.21, 2.0), (0.5, 3.0), (0.6, 3.0), (0.8, 4.0), (0.81, INF), (0.95, INF)],
)
def test_quantile_of_random_draws(level: float, expected: float) -> None:
    """Of B draws, the ⌈level·(B + 1)⌉-th smallest; the (B + 1)-th is unknown."""
    values = np.array([3.0, 1.0, 4.0, 2.0])
    assert Null(values).quantile(values, level) == expected


def times(*error: float) -> Callable[[float], tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """Return the reaches of gap ± quantile·error."""
    return lambda quantile: (quantile * np.array(error), quantile * np.array(error))


@pytest.mark.parametrize(
    ("interval", "p", "alternative", "estimate", "expected"),
    [
        ((0.01, 0.2), 0.06, "two-sided", 0.1, (0.0, 0.2)),
        ((-0.2, -0.01), 0.06, "two-sided", -0.1, (-0.2, 0.0)),
        ((-0.01, 0.2), 0.05, "two-sided", 0.1, (5e-324, 0.2)),
        ((-0.2, 0.01), 0.05, "symmetric", -0.1, (-0.2, -5e-324)),
        ((-0.01, 1.0), 0.05, "greater", 0.1, (5e-324, 1.0)),
        ((-1.0, 0.01), 0.05, "less", -0.1, (-1.0, -5e-324)),
        ((0.01, 0.2), 0.05, "two-sided", 0.1, (0.01, 0.2)),
    ],
)
def test_interval_agrees_with_the_test(
    interval: tuple[float, float],
    p: float,
    alternative: str,
    estimate: float,
    expected: tuple[float, float],
) -> None:
    assert agree(interval, p, alternative, 0.95, estimate) == expected


def test_ratio_agrees_with_the_test() -> None:
    """1 − 0.9 is below 0.1 in floats, and a p-value of 0.1 still rejects at level 0.1."""
    assert agree((0.99, 2.0), 0.1, "two-sided", 0.9, 1.5, equal=1.0) == (1 + 2**-52, 2.0)
    assert agree((1.01, 2.0), 0.11, "two-sided", 0.9, 1.5, equal=1.0) == (1.0, 2.0)


# -- What has no p-value ----------------------------------------------------------------------

UNDEFINED = {
    "no stratum has positives of both groups": (
        "false_negative_rate",
        [((3, 2, 2, 3), (4, 4, 0, 0)), ((3, 3, 0, 0), (3, 2, 2, 2))],
        None,
    ),
    "a stratum of given weight has no positives": (
        "false_negative_rate",
        [((3, 2, 2, 3), (4, 4, 1, 1)), ((3, 3, 0, 0), (3, 2, 2, 2))],
        {0: 1.0, 1: 1.0},
    ),
    "a stratum has no positives, where none are left out": (
        "balanced_accuracy",
        [((3, 2, 2, 3), (4, 4, 1, 1)), ((3, 2, 0, 0), (3, 2, 2, 2))],
        None,
    ),
}


@pytest.mark.parametrize("test", [permutation_test, bootstrap_test])
@pytest.mark.parametrize("case", UNDEFINED.values(), ids=UNDEFINED)
def test_an_undefined_gap_has_no_pvalue(
    test: Callable[..., object], case: tuple[str, list[Pair], dict[int, float] | None]
) -> None:
    metric, strata, weights = case
    with pytest.raises(InputError, match="defined"):
        test(**rows(*strata), metric=metric, stratum_weights=weights)


def test_a_pvalue_that_is_the_level_but_for_rounding_is_rejected() -> None:
    """Of probabilities whose sum is 0.05, floats may make 0.05000000000000001."""
    rounded = [0.01 + 0.04000000000000001, math.nextafter(0.05, 1), 0.1 + 0.2 - 0.25]
    assert all(one > 0.05 for one in rounded)
    for one in rounded:
        null = Null(np.array([3.0, 0.0]), np.log([one, 1 - one]))
        p = pvalue(null, 3.0, "greater", 0.0, 0.95).value
        assert p == 0.05
        low, _ = agree((-0.1, 1.0), p, "greater", 0.95, 0.5)
        assert low > 0
        assert adjust_pvalues(np.array([one]), "holm")[0] == 0.05
    assert snap_pvalue(0.0500001) == 0.0500001
    assert snap_pvalue(1 / 3) == 1 / 3
