"""What the power of an exact test is made of, against SciPy's functions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import gammaln
from scipy.stats import binom

from fairperm.planning.designs import Level, _binomial, _log_choose, rate_power
from fairperm.planning.searches import smallest_gap


@pytest.mark.parametrize("n", [0, 1, 7, 3200])
def test_ways_to_choose(n: int) -> None:
    k = np.arange(n + 1)
    expected = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
    np.testing.assert_allclose(_log_choose(n), expected, rtol=1e-12, atol=1e-10)


@pytest.mark.parametrize("rate", [0.0, 1e-9, 0.3, 1 - 1e-9, 1.0])
@pytest.mark.parametrize("n", [1, 40, 1500])
def test_chances_of_counts(n: int, rate: float) -> None:
    count, chance = _binomial(n, rate)
    np.testing.assert_allclose(chance, binom.pmf(count, n, rate), rtol=1e-9, atol=1e-15)
    assert chance.sum() == pytest.approx(1)


@pytest.mark.parametrize("sizes", [(12, 30), (200, 150), (9000, 700)], ids=str)
@pytest.mark.parametrize("value", [0.03, 0.5, 0.6])
@pytest.mark.parametrize("alternative", ["two-sided", "greater"])
def test_smallest_gap_is_where_brents_method_finds_it(
    sizes: tuple[int, int], value: float, alternative: str
) -> None:
    level = Level(0.05, alternative)
    power = rate_power(sizes, level, exact=True, most_cells=50_000)
    ends = [side for side in (0.0, 1.0) if side > value or alternative == "two-sided"]
    reached = [end for end in ends if power(end, value) >= 0.8]
    assert reached  # else there is no gap to be found
    found = [brentq(lambda first: power(first, value) - 0.8, value, end) for end in reached]
    lost = [end for end in ends if end not in reached]
    expected = max(abs(first - value) for first in found + lost)
    smallest = smallest_gap(lambda one: power(one, value), value, level.sides, 0.8, (0.0, 1.0))
    assert smallest == pytest.approx(expected, abs=1e-9)
