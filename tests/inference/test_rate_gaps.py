"""The test of two rates with a given gap, against sums over all tables."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom

from fairperm.hypothesis_tests.margins import restricted_rates
from fairperm.hypothesis_tests.margins.restricted_rates import Rates, restricted_by_difference
from fairperm.inference import rate_gaps
from fairperm.inference.unconditional import SHARE, plausible_counts, rate_interval

Array = NDArray[np.float64]

LEVEL = 0.95


def statistics(m: int, n: int, gap: float) -> Array:
    """Return Miettinen and Nurminen's statistic of every table."""
    found = np.zeros((m + 1, n + 1))
    for a, b in np.ndindex(m + 1, n + 1):
        p, q = restricted_by_difference((a, m), (b, n), gap)
        excess, error = a / m - b / n - gap, math.sqrt(p * (1 - p) / m + q * (1 - q) / n)
        if abs(excess) > 1e-12:
            found[a, b] = excess / error if error > 1e-12 else math.copysign(math.inf, excess)
    return found


def rejects(m: int, n: int, a: int, b: int, gap: float, side: str, slack: float) -> bool:
    """Whether the probability of all tables as extreme is at most α, times a little more."""
    z = statistics(m, n, gap)
    extreme = {"two-sided": np.abs(z), "greater": z, "less": -z}[side]
    region = (extreme >= extreme[a, b] - 1e-7).astype(float)
    second = np.linspace(max(0.0, -gap), min(1.0, 1 - gap), 501)
    low, high = rate_interval(a + b, m + n, SHARE * (1 - LEVEL))
    mean = second + gap * m / (m + n)
    second = second[(low <= mean) & (mean <= high)]
    chances = (
        binom.pmf(np.arange(m + 1), m, second[:, None] + gap),
        binom.pmf(np.arange(n + 1), n, second[:, None]),
    )
    largest = np.einsum("ga,ab,gb->g", chances[0], region, chances[1]).max(initial=0.0)
    return bool(largest <= (1 - LEVEL) * (1 - SHARE) * slack)


@pytest.mark.parametrize("side", ["two-sided", "greater", "less"])
@pytest.mark.parametrize(
    ("m", "n", "a", "b"), [(5, 8, 1, 6), (9, 4, 9, 1), (7, 7, 0, 0), (3, 12, 2, 11)]
)
def test_gaps_beyond_the_ends_are_rejected_and_those_at_the_ends_are_not(
    m: int, n: int, a: int, b: int, side: str
) -> None:
    found = Rates((a, m), (b, n)).invert(side, LEVEL)
    assert found is not None
    low, high = found
    beyond = [*(np.linspace(-0.999, low, 8) if low > -1 else [])]
    beyond += [*(np.linspace(high, 0.999, 8) if high < 1 else [])]
    assert all(rejects(m, n, a, b, gap, side, slack=1.01) for gap in beyond)
    # the ends are at most 0.01 standard errors too far out, and tables nearly tied count as tied
    step = 0.03 * math.hypot(0.5 / math.sqrt(m), 0.5 / math.sqrt(n))
    if low > -1:
        assert not rejects(m, n, a, b, low + step, side, slack=1.0)
    if high < 1:
        assert not rejects(m, n, a, b, high - step, side, slack=1.0)


def compare_methods(
    rates: Rates, side: str, limit: str, monkeypatch: pytest.MonkeyPatch
) -> tuple[Array, Array]:
    """Return the ends of the interval with a limit as it is and without it, in standard errors."""
    found = []
    for most in (getattr(rate_gaps, limit), 10_000):
        monkeypatch.setattr(rate_gaps, limit, most)
        restricted_rates._difference_interval.cache_clear()
        inverted = rates.invert(side, LEVEL)
        if inverted is None:
            inverted = rates.interval(rates.binomials.critical(side, LEVEL))
        found.append(np.array(inverted) / math.hypot(*rates.errors(rates.values())))
    monkeypatch.undo()
    restricted_rates._difference_interval.cache_clear()
    return found[0], found[1]


@pytest.mark.parametrize("side", ["two-sided", "greater", "less"])
@pytest.mark.parametrize(
    ("m", "n", "a", "b"), [(70, 70, 21, 28), (70, 90, 35, 61), (120, 75, 30, 40), (80, 400, 30, 99)]
)
def test_intervals_do_not_jump_where_critical_values_at_zero_begin(
    m: int, n: int, a: int, b: int, side: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By 0.1 standard errors at most: the coverage at 0.95 changes by about 0.01."""
    rates = Rates((a, m), (b, n))
    assert rates.invert(side, LEVEL) is None
    found, summed = compare_methods(rates, side, "_MAX_FEWER_COUNTS", monkeypatch)
    np.testing.assert_allclose(found, summed, atol=0.1)


@pytest.mark.parametrize("side", ["two-sided", "greater", "less"])
def test_a_large_group_does_not_jump_where_its_tails_become_normal(
    side: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for rates in (Rates((3, 12), (600, 1800)), Rates((900, 3000), (4, 15))):
        numbers = [len(plausible_counts(n, k / n, k / n, -3.0)) for k, n in rates.counts]
        assert max(numbers) > rate_gaps._MAX_SUMMED_COUNTS
        found, summed = compare_methods(rates, side, "_MAX_SUMMED_COUNTS", monkeypatch)
        np.testing.assert_allclose(found, summed, atol=0.02)


@pytest.mark.parametrize("side", ["two-sided", "greater", "less"])
def test_a_large_group_whose_rate_may_be_0_or_1_has_exact_tails(
    side: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There a normal tail has no spread: its statistic was infinite."""
    for rates in (Rates((0, 40), (4990, 5000)), Rates((1, 5), (2, 2429))):
        found, summed = compare_methods(rates, side, "_MAX_SUMMED_COUNTS", monkeypatch)
        np.testing.assert_allclose(found, summed, atol=0.02)
    for rates in (Rates((0, 1555), (87_274, 87_274)), Rates((1, 1), (0, 2429))):
        low, high = rates.invert(side, 0.8) or (-1.0, 1.0)
        assert low <= rates.values()[0] - rates.values()[1] <= high
        low, high = rates.invert_ratio(side, 0.8) or (0.0, math.inf)
        assert low <= high
