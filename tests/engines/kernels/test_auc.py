"""AUC and DeLong's variance by lane, against their definitions computed pair by pair."""

import numpy as np
import pytest
from numpy.typing import NDArray

from fairperm.engines.kernels.auc import AucLayout, auc_by_lane
from fairperm.engines.kernels.subsets import random_subsets, same_in_all_lanes
from tests.support.kernel_runs import seeded

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


def of_one_stratum(scores: Floats, positive: Bools) -> AucLayout:
    return AucLayout.build(scores, positive, np.zeros(scores.size, np.uint8), 1)


def permuted(layout: AucLayout, in_a: Bools, seed: int) -> NDArray[np.uint64]:
    block = np.repeat(np.arange(layout.sizes.size), layout.sizes)
    wanted = np.bincount(block[in_a[layout.order]], minlength=layout.sizes.size)
    return random_subsets(layout.sizes, wanted, seeded(seed))


def test_perfect_separation_has_no_variance_at_all() -> None:
    rng = np.random.default_rng(3)
    positive = rng.random(100_000) < 0.3
    layout = of_one_stratum(positive + rng.random(positive.size) / 2, positive)
    value, variance = auc_by_lane(
        permuted(layout, rng.random(positive.size) < 0.4, 3), layout, layout.centres(0.4)
    )
    assert (value == 1).all()
    assert (variance == 0).all()


@pytest.mark.parametrize("separation", [1, 5.3])
def test_large_samples_agree_with_whole_number_arithmetic(separation: float) -> None:
    # The oracle is the same sums in Python's unlimited integers. The second score is nearly
    # perfect (AUC 0.9999): without centres its variance is off by 1.5e-11 of itself.
    rng = np.random.default_rng(5)
    n = 500_000
    positive = rng.random(n) < 0.5
    scores = rng.normal(size=n) + separation * positive
    layout = of_one_stratum(scores, positive)
    in_a = rng.random(n) < 0.5
    value, variance = auc_by_lane(
        same_in_all_lanes(in_a[layout.order]), layout, layout.centres(float(in_a.mean()))
    )
    for g, group in enumerate((in_a, ~in_a)):
        label = positive[group][np.argsort(scores[group])]
        wins = [int(w) for w in np.cumsum(~label)[label]]
        below = [int(v) for v in np.cumsum(label)[~label]]
        m, k = len(wins), len(below)
        expected = 0.0
        for numbers, others in ((wins, k), (below, m)):
            count = len(numbers)
            deviations = count * sum(w * w for w in numbers) - sum(numbers) ** 2
            expected += deviations / (count**2 * (count - 1) * others**2)
        assert value[7, 0, g] == pytest.approx(sum(wins) / (m * k), rel=1e-15, abs=0)
        assert variance[7, 0, g] == pytest.approx(expected, rel=1e-12, abs=0)


def test_one_positive_has_an_auc_but_no_variance() -> None:
    scores = np.array([0.1, 0.2, 0.3, 0.4])
    positive = np.array([False, True, False, False])
    layout = of_one_stratum(scores, positive)
    value, variance = auc_by_lane(
        same_in_all_lanes(np.ones(4, np.bool_)), layout, layout.centres(1.0)
    )
    assert value[0, 0, 0] == pytest.approx(1 / 3)
    assert np.isnan(variance[0, 0, 0])
    assert np.isnan(value[0, 0, 1])
    assert np.isnan(variance[0, 0, 1])
