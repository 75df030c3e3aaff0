"""Values of groups that are known only as probabilities: weights of rows, influences, contrasts.

Row i has the probability w_ig of group g, and contributes u_i to the metric. Both assumptions give
each group weights A with Σ_i A_ig = 1, means A'u of its contributions, and so a value:

- weighting: A = W/ΣW, the probabilities over their sum;
- least squares: A = W(W'W)⁻¹, so that A'u are the coefficients of u regressed on W.

With G = diag(ΣW) or W'W, both are A = WG⁻¹. A unit c that is left out moves the means by
(G − G_c)⁻¹ Σ_{i in c} w_i e_i', where e_i are residuals: u_i less the group's mean, or less the
regression's fit.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairperm._utils.arrays import Array, Codes
from fairperm.data.proxies import Assumption
from fairperm.metrics.definition import Metric


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows with their probabilities, the weights that these give them, and contributions.

    ``shares`` and ``weights`` have an axis of groups first and of rows last, with draws between
    them if there are several.
    """

    metric: Metric
    shares: Array  # W: each row's probability of each group
    inverse: Array  # G⁻¹, which the order of the rows does not change
    contributions: Array  # u
    is_regression: bool

    @classmethod
    def of(cls, metric: Metric, shares: Array, contributions: Array, assumption: str) -> Rows:
        """Weigh the rows as the assumption says."""
        is_regression = assumption == Assumption.OUTCOME_GIVEN_GROUP
        gram = shares @ shares.T if is_regression else np.diag(shares.sum(axis=1))
        inverse = np.asarray(np.linalg.inv(gram), np.float64)
        return cls(metric, shares, inverse, contributions, is_regression)

    @property
    def weights(self) -> Array:
        """Return A: each row's weight in each group's mean."""
        return np.tensordot(self.inverse, self.shares, axes=1)

    def estimate(self) -> tuple[Array, Array]:
        """Return each group's value, and the influence of every row on it."""
        weights = self.weights
        means = weights @ self.contributions
        return self.metric.estimate(means), weights * self._slopes(means)

    def _slopes(self, means: Array) -> Array:
        """Return the residual of each row along the gradient of each group's value."""
        gradient = self.metric.gradient(means)
        slopes = gradient @ self.contributions.T  # a value does not change along its own means
        if self.is_regression:
            for own, slope in zip(gradient, slopes, strict=True):
                for mean, share in zip(means, self.shares, strict=True):
                    slope -= (mean * own).sum(axis=-1)[..., None] * share
        return np.asarray(slopes)

    def leave_out(self, cluster: Codes | None) -> Array:
        """Return how far each row, or cluster, moves the values by being there."""
        weights = self.weights
        slopes = self._slopes(weights @ self.contributions)
        if cluster is None:
            leverage = (weights * self.shares).sum(axis=0) if self.is_regression else weights
            return np.asarray(weights * slopes / (1 - leverage))
        n_groups, size = len(weights), int(cluster.max()) + 1
        gram, pulls = np.zeros((2, size, n_groups, n_groups))
        for g, mine in enumerate(self.shares):
            for h, others in enumerate(self.shares):
                if self.is_regression or g == h:
                    product = mine * others if self.is_regression else mine
                    gram[:, g, h] = np.bincount(cluster, product, size)
                    pulls[:, g, h] = np.bincount(cluster, mine * slopes[h], size)
        moved = np.linalg.solve(gram.sum(axis=0) - gram, pulls)
        return np.diagonal(moved, axis1=1, axis2=2).T

    def effective_sizes(self, base: Array, cluster: Codes | None) -> Array:
        """Return how many rows of known groups would say as much, of those that count in a base."""
        counted = self.weights * base
        if cluster is not None:
            counted = np.stack([np.bincount(cluster, one) for one in counted])
        squares = (counted**2).sum(axis=1)
        return np.asarray(np.round(counted.sum(axis=1) ** 2 / squares, 6))
