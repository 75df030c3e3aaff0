"""The power of the studentized permutation test of the AUC, for normal scores.

The test rejects if L = T − q·σ̂ is positive, where T is the gap, σ̂ its standard error by DeLong and
q the critical value. With groups of unequal sizes, T and σ̂ depend on each other and both are
skewed; the normal limit, which takes σ̂ for a constant, is off by several percent of power. L is a
smooth function of the groups' distributions of scores. Its derivatives (von Mises) give its mean,
variance and third cumulant, and a gamma distribution with these moments P(L > 0). Permutations mix
the groups: q is the critical value of two groups that both have the scores of the mixture.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from fairperm.planning.searches import find_root

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairperm._utils.arrays import Array
    from fairperm.planning.designs import Level, Power

_WIDTH = 0.05  # of a cell of scores, in standard deviations
_INTEGRATION_LIMIT = 8.0  # deviations beyond which there are no scores
_NEARLY_ONE = 1 - 1e-9  # an AUC that counts as one
_LARGEST_STATISTIC = 40.0
_RAREST = 1e-16  # chance of a tail
_STEP = 0.1  # of the second difference along a direction
_NEGLIGIBLE_SKEWNESS = 1e-4


@dataclass(frozen=True)
class ScoreGroup:
    """The scores of a group: its positives are the first entry or row, its negatives the second.

    ``chances`` are of cells of scores, in ascending order; ``sizes`` are expected numbers of rows.
    """

    chances: Array
    sizes: Array

    def estimate(self, change: float | Array = 0.0) -> tuple[float, float]:
        """Return the AUC and the linear part of its variance if the chances change."""
        chances = self.chances + change
        placements = _rank(chances)
        auc = float(chances[0] @ placements[0])
        variances = (chances * (placements - auc) ** 2).sum(axis=1)
        return auc, float(variances @ self._inverse_sizes)

    @cached_property
    def influences(self) -> tuple[Array, Array]:
        """Return the influences of a row of each cell on the AUC and on the variance."""
        placements = _rank(self.chances)
        centred = placements - self.chances[0] @ placements[0]
        variances = (self.chances * centred**2).sum(axis=1, keepdims=True)
        inverse = self._inverse_sizes[:, None]
        of_own_label = inverse * (centred**2 - variances)
        of_other_label = 2 * inverse[::-1] * (_rank(self.chances * centred) - variances[::-1])
        return centred, of_own_label + of_other_label

    @cached_property
    def interaction(self) -> float:
        """Return the part of the variance that belongs to pairs of rows; DeLong counts it twice."""
        auc, _ = self.estimate()
        ties = float(self.chances[0] @ self.chances[1])
        of_rows = float((self.chances * self.influences[0] ** 2).sum())
        return (auc * (1 - auc) - ties / 4 - of_rows) / float(self.sizes.prod())

    @cached_property
    def _inverse_sizes(self) -> Array:
        """Return the mean of one over the number of rows of each label, which is random."""
        inverse: Array = (1 + self.sizes[::-1] / self.sizes.sum() / self.sizes) / self.sizes
        return inverse


def _rank(weights: Array) -> Array:
    """Return the weight of negatives below each cell, and of positives above it; of ties, half."""
    positives, negatives = weights
    below = np.cumsum(negatives) - negatives / 2
    return np.stack([below, positives.sum() - np.cumsum(positives) + positives / 2])


@dataclass(frozen=True)
class ScoreGap:
    """The gap between the AUCs of two groups."""

    groups: Sequence[ScoreGroup]

    def exceeds(self, statistic: float, side: int) -> float:
        """Return the chance that the studentized gap, times the side, exceeds a statistic."""
        from scipy.special import gammainc, gammaincc, ndtr

        mean, variance, third = self._cumulants(statistic, side)
        deviation = math.sqrt(variance)
        skewness = third / deviation**3
        if abs(skewness) < _NEGLIGIBLE_SKEWNESS:
            return float(ndtr(mean / deviation))
        shape = 4 / skewness**2
        bound = shape - math.copysign(math.sqrt(shape), skewness) * mean / deviation
        return float((gammaincc if skewness > 0 else gammainc)(shape, max(0.0, bound)))

    def critical_value(self, tail: float, sides: tuple[int, ...]) -> float:
        """Return the statistic that is exceeded on these sides with this chance, or infinity."""
        from scipy.special import ndtri

        normal = -float(ndtri(tail / len(sides)))

        def shortfall(statistic: float) -> float:  # on a scale on which it is nearly a line
            chance = sum(self.exceeds(statistic, side) for side in sides) / len(sides)
            return -normal - float(ndtri(np.clip(chance, _RAREST, 1 - _RAREST)))

        low, high = normal - 1, normal + 1
        while shortfall(high) < 0:
            low, high = high, high + 1
            if high > _LARGEST_STATISTIC:
                return math.inf
        while shortfall(low) >= 0:
            low, high = low - 1, low
        return find_root(shortfall, low, high, close=1e-8)

    def _cumulants(self, statistic: float, side: int) -> tuple[float, float, float]:
        """Return the first three cumulants of L = T − statistic·σ̂, with T times the side."""
        linear = sum(group.estimate()[1] for group in self.groups)
        interaction = sum(group.interaction for group in self.groups)
        expected = linear + 2 * interaction  # of DeLong's estimate
        slope = statistic * math.sqrt(expected) / (2 * linear)  # of statistic·σ̂ in the linear part

        variance, third, spread = linear + interaction, 0.0, 0.0
        directions = []
        for group, sign in zip(self.groups, (side, -side), strict=True):
            on_auc, on_variance = group.influences
            share = group.chances / group.sizes[:, None]
            influence = sign * on_auc - slope * on_variance
            variance += float((share * (influence**2 - on_auc**2)).sum())
            third += float((share / group.sizes[:, None] * influence**3).sum())
            spread += float((share * on_variance**2).sum()) / linear**2
            directions.append(share * influence)

        def value(step: float) -> float:
            first, second = (
                group.estimate(step * direction)
                for group, direction in zip(self.groups, directions, strict=True)
            )
            error = math.sqrt(max(0.0, first[1] + second[1]) * expected / linear)
            return side * (first[0] - second[0]) - statistic * error

        curvature = (value(_STEP) - 2 * value(0.0) + value(-_STEP)) / _STEP**2
        gap = value(0.0) + statistic * math.sqrt(expected)
        mean_error = math.sqrt(expected / (1 + spread / 4))
        return gap - statistic * mean_error, variance, third + 3 * curvature


def auc_power(sizes: Array, level: Level) -> Power:
    """Return the power for expected numbers of rows by group (rows) and label (columns)."""
    # the test exchanges rows of the same label
    from scipy.special import ndtr, ndtri

    def power(first: float, second: float) -> float:
        aucs = np.clip((first, second), 1 - _NEARLY_ONE, _NEARLY_ONE)
        means = np.stack([math.sqrt(2) * ndtri(aucs), np.zeros(2)], axis=1)
        edges = np.arange(
            means.min() - _INTEGRATION_LIMIT, means.max() + _INTEGRATION_LIMIT + _WIDTH, _WIDTH
        )
        chances = np.diff(ndtr(edges - means[..., None]))
        mixture = (sizes[..., None] * chances).sum(axis=0) / sizes.sum(axis=0)[:, None]
        pairs = zip(chances, sizes, strict=True)
        assumed = ScoreGap([ScoreGroup(*pair) for pair in pairs])
        null = ScoreGap([ScoreGroup(mixture, size) for size in sizes])
        regions = [(null.critical_value(tail, sides), sides) for tail, sides in level.tails]
        reached = [(statistic, sides) for statistic, sides in regions if statistic < math.inf]
        chances_of_sides = (assumed.exceeds(one, side) for one, sides in reached for side in sides)
        return min(1.0, math.fsum(chances_of_sides))

    return power
