"""Other tests of two means, in plain NumPy: many data sets of one design at once.

They share no code with the package. Data sets of a chunk share their permutations and bootstrap
samples, which are drawn anew for every chunk.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy import stats

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from studies.calibration.designs import Units

    Array = NDArray[np.float64]

S, ABSOLUTE = "S", "|S|"
WELCH, HALL = "Welch", "Hall's t"
BASIC, STUDENTIZED = "basic bootstrap", "studentized bootstrap"
PEERS = (S, ABSOLUTE, WELCH, HALL, BASIC, STUDENTIZED)


def run_peers(data_sets: Sequence[Units], n_resamples: int, rng: np.random.Generator) -> Array:
    """Return the p-values of the peers (axis 1) in data sets (axis 0) of one design.

    They compare weighted means; a cluster weighs as many rows as it has. Gaps of strata are
    averaged by Mantel and Haenszel's weights.
    """
    group, stratum = data_sets[0].group, data_sets[0].stratum
    x = np.stack([one.total for one in data_sets], axis=1)
    w = np.stack([one.weight for one in data_sets], axis=1)
    # what variances and third moments of weighted means are made of
    terms = np.stack([w, x, w**2, w * x, x**2, w**3, w**2 * x, w * x**2, x**3])
    observed, permuted, resampled = [], [], []
    for s in np.unique(stratum):
        mine, first = terms[:, stratum == s], group[stratum == s] == 0
        sides = mine[:, first], mine[:, ~first]
        sizes = first.sum(), (~first).sum()
        observed.append(_Gaps.of([one.sum(axis=1)[:, None] for one in sides], sizes))
        labels = rng.permuted(np.broadcast_to(first, (n_resamples, len(first))), axis=1)
        drawn = labels.astype(float) @ mine
        permuted.append(_Gaps.of([drawn, mine.sum(axis=1)[:, None] - drawn], sizes))
        again = [_resample(n, n_resamples, rng) for n in sizes]
        pairs = zip(again, sides, strict=True)
        resampled.append(_Gaps.of([times @ side for times, side in pairs], sizes))
    sample, draws, bootstrap = (_Gaps.join(one) for one in (observed, permuted, resampled))
    gap, s, k = sample.gap, sample.studentized(), sample.skewness()
    welch = replace(sample, variance=sample.unbiased).studentized()
    centred = replace(bootstrap, gap=bootstrap.gap - gap)
    found = {
        S: _two_tails(draws.studentized(), s),
        ABSOLUTE: _share(np.abs(draws.studentized()) >= np.abs(s) - _TIE),
        WELCH: 2 * stats.t.sf(np.abs(welch), sample.unbiased**2 / sample.squares)[0],
        HALL: 2 * stats.norm.sf(np.abs(s + k * s**2 / 3 + k**2 * s**3 / 27 + k / 6))[0],
        BASIC: _two_tails(centred.gap, gap),
        STUDENTIZED: _two_tails(centred.studentized(), s),
    }
    return np.stack([np.minimum(found[name], 1.0) for name in PEERS], axis=1)


_TIE = 1e-9


@dataclass(frozen=True, slots=True)
class _Gaps:
    """Gaps with their variance, third cumulant, and Welch's variance and squares."""

    gap: Array
    variance: Array
    third: Array
    unbiased: Array
    squares: Array

    @classmethod
    def of(cls, terms: Sequence[Array], sizes: tuple[int, int]) -> _Gaps:
        """Return those of two sides, from sums of the terms of their units."""
        parts = []
        with np.errstate(divide="ignore", invalid="ignore"):
            for (w, x, ww, wx, xx, www, wwx, wxx, xxx), n in zip(terms, sizes, strict=True):
                m = x / w
                variance = np.maximum(xx - 2 * m * wx + m**2 * ww, 0.0) / w**2
                third = (xxx - 3 * m * wxx + 3 * m**2 * wwx - m**3 * www) / w**3
                unbiased = variance * n / (n - 1)
                parts.append((m, variance, third, unbiased, unbiased**2 / (n - 1)))
        (m, v, k, u, q), (m_2, v_2, k_2, u_2, q_2) = parts
        return cls(m - m_2, v + v_2, k - k_2, u + u_2, q + q_2)

    @classmethod
    def join(cls, strata: Sequence[_Gaps]) -> _Gaps:
        """Return the mean over strata of equal sizes."""
        n = len(strata)
        sums = [
            np.sum([getattr(one, name) for one in strata], axis=0) / n**power
            for name, power in (
                ("gap", 1),
                ("variance", 2),
                ("third", 3),
                ("unbiased", 2),
                ("squares", 4),
            )
        ]
        return cls(*sums)

    def studentized(self) -> Array:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.nan_to_num(self.gap / np.sqrt(self.variance))

    def skewness(self) -> Array:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.nan_to_num(self.third / self.variance**1.5)


def _resample(n: int, n_resamples: int, rng: np.random.Generator) -> Array:
    """Return how often each of the units is in each bootstrap sample."""
    drawn = rng.integers(n, size=(n_resamples, n)) + n * np.arange(n_resamples)[:, None]
    return (
        np.bincount(drawn.ravel(), minlength=n * n_resamples).reshape(n_resamples, n).astype(float)
    )


def _share(is_extreme: NDArray[np.bool_]) -> Array:
    return np.asarray((1 + is_extreme.sum(axis=0)) / (1 + len(is_extreme)))


def _two_tails(draws: Array, statistic: Array) -> Array:
    """Return twice the smaller of the two one-sided p-values."""
    above, below = _share(draws >= statistic - _TIE), _share(draws <= statistic + _TIE)
    return 2 * np.minimum(above, below)
