"""What chance does in the correlation tests: shuffles are uniform, draws agree with the
enumeration and with scipy, and the level is held where x and y are uncorrelated but dependent.

The level is measured in the settings of the paper's Table 1: y = N(0, 1)/x², with x uniform or
exponential, so that both correlations are zero by symmetry while the spread of y depends on x.
Bounds are binomial at 99.9 %.
"""

from __future__ import annotations

import math
from collections import Counter
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats
from scipy.stats import binom, rankdata

from fairperm.data.arguments import Alternative, CorrelationMethod, CorrelationVariance
from fairperm.engines.kernels import shuffles
from fairperm.hypothesis_tests.correlation import correlation_test
from studies.simulate import Correlation

Array = NDArray[np.float64]

pytestmark = pytest.mark.validate

LEVEL = 0.05
DATA_SETS = 1000
DRAWS = 199  # (b + 1)/200 reaches 0.05 exactly
AT_MOST = int(binom.ppf(0.999, DATA_SETS, LEVEL))


# The shuffles.


def test_random_words_are_those_of_the_reference_implementation() -> None:
    # of xoshiro256plusplus.c (Blackman and Vigna), from the state 1, 2, 3, 4
    state = tuple(np.uint64(word) for word in (1, 2, 3, 4))
    words = []
    for _ in range(5):
        word, *rest = shuffles._next(*state)
        state = tuple(np.uint64(one) for one in rest)
        words.append(int(word))
    expected = [41943041, 58720359, 3588806011781223, 3591011842654386, 9228616714210784205]
    assert words == expected


@pytest.mark.parametrize("n", [4, 5])
@pytest.mark.parametrize("fresh", [True, False], ids=["from the same order", "one after another"])
def test_every_order_is_equally_likely(n: int, fresh: bool) -> None:
    state = np.random.default_rng(6).integers(2**64, size=4, dtype=np.uint64)
    order = np.arange(n, dtype=np.uint32)
    seen: Counter[tuple[int, ...]] = Counter()
    for _ in range(400 * math.factorial(n)):
        if fresh:
            order = np.arange(n, dtype=np.uint32)
        shuffles.shuffle(order, state)
        seen[tuple(order.tolist())] += 1
    assert len(seen) == math.factorial(n)
    assert stats.chisquare(list(seen.values())).pvalue > 1e-4


def test_every_place_is_equally_likely_among_many_rows() -> None:
    n, times = 1000, 4000
    state = np.random.default_rng(8).integers(2**64, size=4, dtype=np.uint64)
    order = np.arange(n, dtype=np.uint32)
    counts = np.zeros((10, 10))
    for _ in range(times):
        shuffles.shuffle(order, state)
        np.add.at(counts, (np.arange(n) // 100, order // 100), 1)
    # rows and columns have given totals, and drawing without replacement varies less
    spread = ((counts - times * 10) ** 2).sum() / (times * 10) * (n - 1) / n
    assert 1e-4 < stats.chi2.sf(spread, 81) < 1 - 1e-4


# The draws.

every_method = pytest.mark.parametrize("method", ["pearson", "spearman"])


def some_data(n: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(5)
    x = rng.exponential(size=n)
    return x, rng.normal(size=n) * x + 0.1 * x


@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
def test_un_studentized_pvalue_is_that_of_scipy(alternative: Alternative) -> None:
    x, y = some_data(40)
    permutations = stats.PermutationMethod(9999, random_state=np.random.default_rng(2))
    theirs = stats.pearsonr(x, y, alternative=alternative, method=permutations).pvalue
    given: Any = {"alternative": alternative, "n_resamples": 9999, "rng": 3}
    ours = correlation_test(x, y, variance=None, **given).pvalue
    assert abs(ours - theirs) < 4 * math.sqrt(2 * theirs * (1 - theirs) / 9999)


@pytest.mark.parametrize(
    ("method", "variance"),
    [("pearson", "delta"), ("pearson", None), ("spearman", "auto"), ("spearman", None)],
)
def test_random_permutations_agree_with_all_of_them(
    method: CorrelationMethod, variance: CorrelationVariance
) -> None:
    x, y = some_data(8)
    every = correlation_test(x, y, method=method, variance=variance, n_resamples=40320)
    some = correlation_test(
        x, y, method=method, variance=variance, rng=4, n_resamples=40319, confidence_level=0.999
    )
    assert every.exact
    assert not some.exact
    low, high = some.pvalue_interval
    assert low <= every.pvalue <= high
    b = round(some.pvalue * 40320) - 1
    assert some.pvalue == (b + 1) / 40320
    assert some.pvalue_interval_wilson[0] < b / 40319 < some.pvalue_interval_wilson[1]


def test_more_draws_continue_the_same_stream() -> None:
    x, y = some_data(50)
    fewer, more = (correlation_test(x, y, n_resamples=n, rng=1) for n in (1500, 3000))
    np.testing.assert_array_equal(fewer.null_distribution, more.null_distribution[:1500])


# The level.


@cache
def rejections(
    attribute: str, method: CorrelationMethod, variance: CorrelationVariance, n: int
) -> int:
    """Return how many of the data sets the test rejects."""
    population = Correlation(n, attribute)
    assert population.truth() == 0
    rng = np.random.default_rng(17)
    rejected = 0
    for seed in range(DATA_SETS):
        data = population.draw(rng)
        result = correlation_test(
            "x",
            "error",
            data=data,
            method=method,
            variance=variance,
            n_resamples=DRAWS,
            rng=seed,
        )
        rejected += result.pvalue <= LEVEL
    return rejected


@pytest.mark.parametrize("attribute", ["uniform", "exponential"])
def test_pearson_holds_its_level(attribute: str) -> None:
    assert rejections(attribute, "pearson", "auto", 2000) <= AT_MOST


def test_un_studentized_pearson_does_not() -> None:
    # about 0.55 in the design's long runs
    low, high = binom.ppf([0.0005, 0.9995], DATA_SETS, 0.55)
    assert low <= rejections("uniform", "pearson", None, 2000) <= high


@pytest.mark.parametrize("attribute", ["uniform", "exponential"])
def test_studentized_spearman_holds_its_level(attribute: str) -> None:
    assert rejections(attribute, "spearman", "auto", 500) <= AT_MOST


def test_un_studentized_spearman_does_not() -> None:
    assert rejections("uniform", "spearman", None, 500) > AT_MOST


def test_ranks_need_more_than_pearsons_error() -> None:
    # y = x² + noise: ranks are uncorrelated by symmetry, but each depends on all other rows
    rng = np.random.default_rng(17)
    n = 500
    rejected: dict[CorrelationMethod, int] = {"spearman": 0, "pearson": 0}
    for seed in range(DATA_SETS):
        x = rng.normal(size=n)
        ranks = rankdata(x), rankdata(x**2 + 0.1 * rng.normal(size=n))
        for method in rejected:
            result = correlation_test(*ranks, method=method, n_resamples=DRAWS, rng=seed)
            rejected[method] += result.pvalue <= LEVEL
    assert rejected["spearman"] <= AT_MOST < rejected["pearson"]


def rare_attribute(rng: np.random.Generator) -> tuple[Array, Array]:
    """Return 30 of 1,200 rows whose errors vary 20 times as much."""
    x = (np.arange(1200) < 30).astype(float)
    return x, rng.normal(size=len(x)) * np.where(x == 1, 20, 1)


def square(rng: np.random.Generator) -> tuple[Array, Array]:
    """Return 30 rows of which one side is the square of the other."""
    x = rng.normal(size=30)
    return x, x**2


@pytest.mark.parametrize("draw", [rare_attribute, square])
def test_dependence_needs_its_skewness_removed(draw: Any) -> None:
    """Without the correlation's own part in Σw³, which would reject 0.08 and 0.12."""
    rng = np.random.default_rng(19)
    rejected: dict[CorrelationVariance, int] = {"hall": 0, "delta": 0}
    for seed in range(DATA_SETS):
        pairs = draw(rng)
        for variance in rejected:
            p = correlation_test(*pairs, variance=variance, n_resamples=DRAWS, rng=seed).pvalue
            rejected[variance] += p <= LEVEL
    assert rejected["hall"] <= AT_MOST < rejected["delta"]
