"""What the variances of gaps and of permuted gaps come to in large samples, in closed form.

A gap T of two groups with n_A and n_B rows, N together, has N·Var T → σ². Permuting all labels
makes both groups alike: each is then a sample of the mixture of both, so the permuted gaps have
N·Var T → τ², as if each group were drawn from the mixture. Where σ² and τ² differ, the permuted
gaps do not stand for the sampled ones.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairperm.simulate import Correlation, Rates, Regression, Scores

    Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of N·Var T over samples and over permutations of one sample."""

    sampling: float
    permutation: float

    def level(self, nominal: float) -> float:
        """Return how often the un-studentized test rejects in large samples."""
        z = NormalDist().inv_cdf(1 - nominal / 2)
        return 2 * NormalDist().cdf(-z * math.sqrt(self.permutation / self.sampling))


def of_false_negative_rate(population: Rates) -> Limits:
    """Return the limits for the false negative rate: p(1 − p) over numbers of positives."""
    n, base_rate = np.array(population.n), np.array(population.base_rate)
    rate = 1 - population.true_positive_rate[0]
    of_one = n.sum() * rate * (1 - rate)
    together = (n @ base_rate) / n.sum()
    return Limits(
        float(of_one * (1 / (n * base_rate)).sum()), float(of_one * (1 / (n * together)).sum())
    )


def of_mean_squared_error(population: Regression) -> Limits:
    """Return the limits for the mean squared error: (kurtosis − 1)·m² over numbers of rows."""
    n = np.array(population.n)
    of_square = (np.array(population.kurtosis) - 1) * population.mean_squared_error[0] ** 2
    together = (n @ of_square) / n.sum()
    return Limits(float(n.sum() * (of_square / n).sum()), float(n.sum() * (together / n).sum()))


def of_auc(population: Scores, *, within_label: bool) -> Limits:
    """Return the limits for the AUC: DeLong's two components, over positives and negatives.

    With h = Φ⁻¹(AUC), the same in both groups, the components are Φ₂(h, h; ρ) − AUC²: two
    negatives below one positive have ρ = s²/(1 + s²), two positives of spreads s and t above
    one negative have ρ = 1/√((1 + s²)(1 + t²)).
    """
    n, base_rate = np.array(population.n), np.array(population.base_rate)
    positives, negatives = n * base_rate, n * (1 - base_rate)
    spread = 1 + np.array(population.spread) ** 2
    auc = population.auc[0]
    of_positives = _both(auc, 1 - 1 / spread) - auc**2
    of_negatives = _both(auc, 1 / np.sqrt(np.outer(spread, spread))) - auc**2
    sampling = (of_positives / positives).sum() + (np.diag(of_negatives) / negatives).sum()
    share = positives / positives.sum()  # of each group among the positives of both
    if not within_label:
        positives, negatives = (n * one.sum() / n.sum() for one in (positives, negatives))
    permutation = (share @ of_positives / positives).sum()
    permutation += (share @ of_negatives @ share / negatives).sum()
    return Limits(float(n.sum() * sampling), float(n.sum() * permutation))


def _both(auc: float, correlation: Array) -> Array:
    """Return the probability that two normal variables are both below Φ⁻¹(AUC)."""
    from scipy.special import owens_t

    slope = np.sqrt((1 - correlation) / (1 + correlation))
    both: Array = auc - 2 * owens_t(NormalDist().inv_cdf(auc), slope)
    return both


def of_correlation(population: Correlation) -> Limits:
    """Return the limits for √n·r: E[(x − μ)²·error²] / (Var x · Var error), and one."""
    power, mean = -2 * population.power, population.moment(1)
    product = (
        population.moment(power + 2)
        - 2 * mean * population.moment(power + 1)
        + mean**2 * population.moment(power)
    )
    variances = (population.moment(2) - mean**2) * population.moment(power)
    return Limits(product / variances, 1.0)
