"""Exact tests of rates against brute force, SciPy and published powers."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import binom

from fairperm.data.arguments import Alternative
from fairperm.inference.unconditional import TwoBinomials
from fairperm.planning.designs import Level, rate_power
from fairperm.planning.rate_tests import UnconditionalTest, plausible_counts
from fairperm.planning.searches import smallest_gap
from tests.support.simulations import Procedure, between

ALTERNATIVES = ("two-sided", "greater", "less")


@pytest.mark.parametrize("rate", [0.0, 1e-9, 0.3, 1 - 1e-9, 1.0])
@pytest.mark.parametrize("n", [1, 40, 1500])
def test_chances_of_counts(n: int, rate: float) -> None:
    count, chance = plausible_counts(n, rate, 1e-12)
    np.testing.assert_allclose(chance, binom.pmf(count, n, rate), rtol=1e-6, atol=1e-13)
    assert chance.sum() == pytest.approx(1)


def reject_all(sizes: tuple[int, int], alternative: str) -> np.ndarray:
    """Return the p-value of every table."""
    tables = (
        (TwoBinomials(*sizes, a + b), a)
        for a, b in itertools.product(*(range(m + 1) for m in sizes))
    )
    pvalues = [one.probability(one.statistic(a), alternative) for one, a in tables]
    return np.reshape(pvalues, (sizes[0] + 1, sizes[1] + 1))


@pytest.mark.parametrize("alternative", ALTERNATIVES)
@pytest.mark.parametrize(
    "sizes",
    [
        (8, 5),
        (1, 9),
        (10, 12),
        pytest.param((40, 40), marks=pytest.mark.validate),
        pytest.param((15, 70), marks=pytest.mark.validate),
    ],
)
def test_the_unconditional_test_rejects_tables_whose_p_value_is_small(
    sizes: tuple[int, int], alternative: str
) -> None:
    pvalues = reject_all(sizes, alternative)
    x, y = np.arange(sizes[0] + 1)[:, None], np.arange(sizes[1] + 1)
    for alpha in (0.01, 0.05, 0.2):
        found = UnconditionalTest(sizes, Level(alpha, alternative)).rejects(x, y)
        is_clear = np.abs(pvalues / alpha - 1) > 0.005  # quantiles are those of a grid of rates
        np.testing.assert_array_equal(found[is_clear], (pvalues <= alpha)[is_clear])
        assert (~is_clear).sum() <= max(4, 0.01 * is_clear.size)


@pytest.mark.parametrize(
    ("sizes", "rates", "expected"),
    [
        ((30, 30), (0.1, 0.2), 0.168),
        ((100, 100), (0.1, 0.2), 0.502),
        ((160, 40), (0.2, 0.1), 0.293),
        ((160, 40), (0.1, 0.2), 0.422),
        ((20, 200), (0.1, 0.2), 0.126),
        ((20, 200), (0.2, 0.1), 0.307),
        ((60, 300), (0.3, 0.45), 0.577),
    ],
)
def test_the_power_of_the_unconditional_test_is_known(
    sizes: tuple[int, int], rates: tuple[float, float], expected: float
) -> None:
    """From an enumeration with p-values on a grid of rates that shares no code with the test."""
    assert UnconditionalTest(sizes, Level(0.05)).power(*rates) == pytest.approx(expected, abs=6e-4)


@pytest.mark.validate
@pytest.mark.parametrize(
    ("sizes", "rates"),
    [
        ((2000, 2000), (0.1, 0.13)),
        ((4000, 900), (0.5, 0.55)),
        ((500, 20_000), (0.05, 0.03)),
        ((500, 20_000), (0.03, 0.05)),
    ],
)
def test_power_with_many_rows_is_that_of_simulated_tests(
    sizes: tuple[int, int], rates: tuple[float, float]
) -> None:
    chance = rate_power(sizes, Level(0.05))(*rates)
    rng, n = np.random.default_rng(12), 400
    hits = [rng.binomial(size, rate, n) for size, rate in zip(sizes, rates, strict=True)]
    test = Procedure("selection_rate")
    rejected = 0
    for seed, (a, b) in enumerate(zip(*hits, strict=True)):
        table = [[(sizes[0] - a, a, 0, 0), (sizes[1] - b, b, 0, 0)]]
        rejected += test(table, seed).pvalue <= 0.05
    low, high = between(chance, chance, n)
    assert low <= rejected <= high


@pytest.mark.parametrize("alternative", ALTERNATIVES)
def test_power_swaps_with_the_groups_and_with_the_outcomes(
    alternative: Alternative,
) -> None:
    other = {"greater": "less", "less": "greater"}.get(alternative, alternative)
    found = UnconditionalTest((300, 70), Level(0.01, alternative)).power(0.3, 0.15)
    swapped = UnconditionalTest((70, 300), Level(0.01, other)).power(0.15, 0.3)
    assert swapped == pytest.approx(found, abs=1e-4)
    turned = UnconditionalTest((300, 70), Level(0.01, other)).power(0.7, 0.85)
    assert turned == pytest.approx(found, abs=1e-4)


@pytest.mark.parametrize("sizes", [(12, 30), (200, 150), (9000, 700)], ids=str)
@pytest.mark.parametrize("value", [0.03, 0.5, 0.6])
@pytest.mark.parametrize("alternative", ["two-sided", "greater"])
def test_smallest_gap_is_where_brents_method_finds_it(
    sizes: tuple[int, int], value: float, alternative: str
) -> None:
    level = Level(0.05, alternative)
    power = rate_power(sizes, level, most_tables=50_000)
    ends = [side for side in (0.0, 1.0) if side > value or alternative == "two-sided"]
    reached = [end for end in ends if power(end, value) >= 0.8]
    assert reached  # else there is no gap to be found
    found = [brentq(lambda first: power(first, value) - 0.8, value, end) for end in reached]
    lost = [end for end in ends if end not in reached]
    expected = max(abs(first - value) for first in found + lost)
    smallest = smallest_gap(lambda one: power(one, value), value, level.sides, 0.8, (0.0, 1.0))
    assert smallest == pytest.approx(expected, abs=1e-9)
