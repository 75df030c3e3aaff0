"""The variance of a Mantel–Haenszel difference of rates: R's metafor, and all samples of pairs."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.stats import binom

from fairperm.inference.errors_by_gap import GapVariance

# R> library(metafor)  # 3.8-1
# R> rma.mh(measure="RD", ai=tpos, bi=tneg, ci=cpos, di=cneg, data=dat.bcg)[c("beta", "se")]
BCG = np.array(
    [
        *([4, 119, 11, 128], [6, 300, 29, 274], [3, 228, 11, 209], [62, 13536, 248, 12619]),
        *([33, 5036, 47, 5761], [180, 1361, 372, 1079], [8, 2537, 10, 619]),
        *([505, 87886, 499, 87892], [29, 7470, 45, 7232], [17, 1699, 65, 1600]),
        *([186, 50448, 141, 27197], [5, 2493, 3, 2338], [27, 16886, 29, 17825]),
    ],
    float,
)
BETA, SE = -0.003288181832613000, 0.000286656748527374


def test_variance_is_that_of_metafor() -> None:
    counted, sizes = BCG[:, [0, 2]], np.stack([BCG[:, :2].sum(axis=1), BCG[:, 2:].sum(axis=1)], 1)
    assert GapVariance.of(counted, sizes).standard_error(BETA) == pytest.approx(SE, rel=1e-12)


@pytest.mark.parametrize("sizes", [(1, 1), (1, 3), (2, 2)], ids=str)
@pytest.mark.parametrize("rates", [(0.5, 0.5), (0.2, 0.2), (0.7, 0.4)], ids=str)
def test_variance_is_unbiased_in_strata_of_any_size(
    sizes: tuple[int, int], rates: tuple[float, float]
) -> None:
    """Over all samples of two strata, at the true gap, it is the variance of the weighted gap."""
    gap, mean, square, expected = rates[0] - rates[1], 0.0, 0.0, 0.0
    outcomes = list(itertools.product(range(sizes[0] + 1), range(sizes[1] + 1)))
    for pair in itertools.product(outcomes, repeat=2):
        chance = np.prod([binom.pmf(one, sizes, rates).prod() for one in pair])
        counted, n = np.array(pair, float), np.array([sizes, sizes], float)
        found = (counted / n) @ [1, -1]
        mean += chance * found.mean()
        square += chance * found.mean() ** 2
        variance = GapVariance.of(counted, n)
        expected += chance * (variance.slope * gap + variance.at_zero)
    assert expected == pytest.approx(square - mean**2, rel=1e-9)


def test_ends_of_the_interval_are_a_quantile_away() -> None:
    variance = GapVariance.of(np.array([[3.0, 9], [14, 6]]), np.array([[12.0, 20], [15, 11]]))
    for end in variance.interval(0.1, 1.7):
        assert abs(0.1 - end) == pytest.approx(1.7 * variance.standard_error(end), rel=1e-9)


@pytest.mark.parametrize("quantile", [0.8416, 1.2816, 1.645, 1.96])
def test_interval_contains_the_gap_also_where_it_has_no_error(quantile: float) -> None:
    """All of one group are counted and none of the other: rounding must not leave the gap out."""
    for m, n in itertools.product(range(1, 12), repeat=2):
        low, high = GapVariance.of(np.array([[m, 0.0]]), np.array([[m, n]])).interval(1.0, quantile)
        assert low <= high == 1
