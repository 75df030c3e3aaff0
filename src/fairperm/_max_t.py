"""Adjusted p-values from joint draws: all metrics and all groups of an attribute at once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from fairperm import _draws as draws
from fairperm._comparison import Comparison
from fairperm._many_groups import many_groups
from fairperm._metric import JointMetric
from fairperm._multiplicity import step_down_max_t
from fairperm._plan import Plan

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from numpy.typing import NDArray

    from fairperm._estimates import Estimates
    from fairperm._many_groups import ManyGroups
    from fairperm._metric import Metric
    from fairperm._rank import RankMetric
    from fairperm._sample import Table

    Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """That the parts of a metric, by their places among all parts, are equal in two groups.

    ``second`` is None for all groups but the first.
    """

    parts: tuple[int, ...]
    first: Hashable
    second: Hashable | None


def max_t(
    table: Table,
    parts: Sequence[Metric | RankMetric],
    hypotheses: Sequence[Hypothesis],
    groups: tuple[Hashable, ...],
    *,
    stratum_weights: object,
    resampling: draws.Resampling,
) -> Array:
    """Return the hypotheses' p-values by step-down max-T.

    The labels of all groups are permuted over all rows, once for all hypotheses; every gap is
    divided by its own error in every permutation.
    """
    alone = table.weight is None and table.cluster is None
    together = JointMetric(name="all metrics", meaning="", parts=tuple(parts))
    plan = Plan(together, "pooled", "score" if alone else "delta")
    comparison = Comparison.of(table, plan, groups, stratum_weights)
    rest = any(one.second is None for one in hypotheses)
    engine = many_groups(comparison, plan.variance, rest=rest)
    estimates = engine.observed(draws.stream(resampling.seed, draws.OBSERVED))
    statistics = partial(
        _statistics,
        engine,
        [_places(one, groups) for one in hypotheses],
        [one.parts for one in hypotheses],
        tuple(alone and part.is_rate for part in parts),
        comparison.scale(estimates),
    )
    blocks = resampling.in_blocks(
        partial(_permuted, engine, statistics), draws.PERMUTATIONS, engine.block_size
    )
    return step_down_max_t(statistics(estimates)[0], np.concatenate(blocks))


def _places(hypothesis: Hypothesis, groups: tuple[Hashable, ...]) -> tuple[int, int]:
    """Return where the two groups stand among the estimates; the rest stand after all groups."""
    first = groups.index(hypothesis.first)
    if hypothesis.second is None:
        return first, len(groups) + first
    return first, groups.index(hypothesis.second)


def _permuted(
    engine: ManyGroups,
    statistics: partial[Array],
    n: int,
    rng: np.random.Generator,
) -> Array:
    return statistics(engine.permuted(n, rng))


def _statistics(
    engine: ManyGroups,
    places: Sequence[tuple[int, int]],
    parts: Sequence[tuple[int, ...]],
    scored: tuple[bool, ...],
    scale: Array,
    estimates: Estimates,
) -> Array:
    """Return the absolute statistics by draw and hypothesis."""
    found = {}
    for pair in dict.fromkeys(places):
        gaps = estimates.pair(*pair, scored=scored).gaps(engine.weights)
        found[pair] = np.abs(gaps.ratios(scale))
    columns = [
        found[pair][:, list(mine)].max(axis=1) for pair, mine in zip(places, parts, strict=True)
    ]
    return np.stack(columns, axis=1)
