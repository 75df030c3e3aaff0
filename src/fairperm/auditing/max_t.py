"""Adjusted p-values from joint draws of all metrics of two groups.

Metrics of the same rows depend on one another, and joint draws know how. What two pairs of groups
have in common is not asked: their draws are independent. Of normal statistics, sets that are convex
and symmetric about zero, as all |S| ≤ c, are never less likely together than their product (Royen
2014), so that this errs to the safe side, for pairs of one attribute and of several.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from fairperm._utils import streams
from fairperm.hypothesis_tests.comparison import Comparison
from fairperm.hypothesis_tests.plan import Plan, Scheme
from fairperm.inference.multiplicity import step_down_max_t
from fairperm.metrics.definition import JointMetric, Metric
from fairperm.metrics.variances import Variance

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    from numpy.typing import NDArray

    from fairperm.data.table import Table
    from fairperm.engines.choice import GroupsEngine
    from fairperm.engines.estimates import Estimates, Gaps
    from fairperm.engines.resampling import blocks
    from fairperm.metrics.ranks import RankMetric

    Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Family:
    """Two groups of a table, and the parts of every metric in which they may differ."""

    table: Table
    groups: tuple[Hashable, Hashable]
    metrics: tuple[tuple[Metric | RankMetric, ...], ...]


def max_t(
    families: Sequence[Family], *, stratum_weights: object, resampling: blocks.Resampling
) -> Array:
    """Return the p-values of all families' metrics, one after the other, by step-down max-T.

    Labels are permuted over all rows of the two groups, once for all metrics; every gap is
    divided by its own error in every permutation.
    """
    found = [
        _drawn(family, stratum_weights, replace(resampling, seed=seed))
        for family, seed in zip(families, _seeds(resampling.seed, len(families)), strict=True)
    ]
    observed, permuted, rounding = zip(*found, strict=True)
    return step_down_max_t(
        np.concatenate(observed), np.concatenate(permuted, axis=1), np.concatenate(rounding)
    )


def _seeds(seed: int, n: int) -> list[int]:
    """Return a seed for each family: the user's own for the first."""
    others = np.random.SeedSequence(seed, spawn_key=(streams.MAX_T,)).generate_state(n, np.uint64)
    return [seed, *others.tolist()[1:]]


def _drawn(
    family: Family, stratum_weights: object, resampling: blocks.Resampling
) -> tuple[Array, Array, Array]:
    """Return one family's statistics in the sample, those of every draw, and their rounding."""
    table = family.table
    alone = table.weight is None and table.cluster is None
    parts = tuple(part for metric in family.metrics for part in metric)
    together = JointMetric(name="all metrics", meaning="", parts=parts)
    plan = Plan(together, Scheme.POOLED, Variance.SCORE if alone else Variance.DELTA)
    comparison = Comparison.of(table, plan, family.groups, stratum_weights)
    engine = comparison.engine(plan.variance, many=True)
    estimates = engine.observed(streams.stream(resampling.seed, streams.OBSERVED))
    statistics = _Statistics(
        starts=np.cumsum([0, *map(len, family.metrics)])[:-1],
        scored=_of_rates(parts) if alone else {},
        weights=engine.weights,
        scale=comparison.scale(estimates),
    )
    blocks = resampling.in_blocks(
        partial(_permuted, engine, statistics), streams.PERMUTATIONS, engine.block_size
    )
    observed = statistics.of(estimates)[0]
    return observed, np.concatenate(blocks), statistics.rounding(estimates)


def _of_rates(parts: Sequence[Metric | RankMetric]) -> dict[int, Metric]:
    """Return the parts, by their places, whose variance is that of one rate."""
    return {
        place: part
        for place, part in enumerate(parts)
        if isinstance(part, Metric) and part.has_denominator
    }


def _permuted(
    engine: GroupsEngine, statistics: _Statistics, n: int, rng: np.random.Generator
) -> Array:
    return statistics.of(engine.permuted(n, rng))


@dataclass(frozen=True, slots=True)
class _Statistics:
    """Absolute statistics of metrics, the parts of each of which start somewhere among all."""

    starts: NDArray[np.intp]
    scored: Mapping[int, Metric]
    weights: Array | None
    scale: Array

    def of(self, estimates: Estimates) -> Array:
        """Return the statistics by draw and metric: the largest of the parts."""
        ratios = np.abs(self._gaps(estimates).ratios(self.scale))
        largest: Array = np.maximum.reduceat(ratios, self.starts, axis=1)
        return largest

    def rounding(self, observed: Estimates) -> Array:
        """Return for each metric how many of its errors its values are in size."""
        error = self._gaps(observed).standard_error[0]
        with np.errstate(divide="ignore"):
            sizes = np.where(error > 0, self.scale / error, 0.0)
        largest: Array = np.maximum.reduceat(sizes, self.starts)
        return largest

    def _gaps(self, estimates: Estimates) -> Gaps:
        return estimates.pair(0, 1, self.scored).gaps(self.weights)
