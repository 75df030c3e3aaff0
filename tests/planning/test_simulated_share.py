"""Intervals of simulated shares, whose true value varies between the user's samples."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest

from fairperm.planning.calibration import SimulatedShare
from tests.support.simulations import at_least, at_most


def draw_shares(mean: float, spread: float, data_sets: int) -> list[SimulatedShare]:
    """Return shares of samples in which the true share has a beta distribution."""
    rng = np.random.default_rng(3)
    size = mean * (1 - mean) / spread**2 - 1
    shares = []
    for _ in range(data_sets):
        own, *resampled = rng.beta(mean * size, (1 - mean) * size, 26)
        counts = [(int(rng.binomial(40, one)), 40) for one in resampled]
        shares.append(SimulatedShare(int(rng.binomial(1000, own)), 1000, counts))
    return shares


@pytest.mark.parametrize(("mean", "spread"), [(0.05, 0.02), (0.12, 0.04), (0.5, 0.1)])
def test_total_intervals_cover_the_mean_of_samples_and_others_do_not(
    mean: float, spread: float
) -> None:
    shares = draw_shares(mean, spread, 400)

    def covered(ends: list[tuple[float, float]]) -> int:
        return sum(low <= mean <= high for low, high in ends)

    assert covered([one.total_interval(0.95) for one in shares]) >= at_least(0.95, 400)
    assert covered([one.interval(0.95) for one in shares]) < at_most(0.8, 400)


def test_the_variance_between_samples_is_rarely_understated() -> None:
    shares = draw_shares(0.12, 0.04, 400)
    over = sum(one.variance_between() >= 0.04**2 for one in shares)
    assert at_least(0.85, 400) <= over <= at_most(0.95, 400)


def test_without_variance_between_samples_the_intervals_are_equal() -> None:
    share = SimulatedShare(30, 600, [(2, 40)] * 25)
    expected = binomtest(30, 600).proportion_ci(0.95, method="exact")
    assert share.variance_between() == 0
    assert share.total_interval(0.95) == share.interval(0.95)
    assert share.interval(0.95) == pytest.approx((expected.low, expected.high))


def test_one_sample_says_nothing_of_others() -> None:
    share = SimulatedShare(1, 2, [(1, 1), (0, 0)])
    assert share.total_interval(0.95) == (0.0, 1.0)
    assert share.variance_between() == float("inf")
