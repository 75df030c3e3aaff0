"""Adjusted p-values from joint draws of all metrics of two groups.

Metrics of the same rows are dependent, and joint draws preserve that dependence. Pairs of groups
are drawn independently of each other, also where they share rows. That is conservative: the tails
of jointly normal statistics are alike, and the events |S| ≤ c, convex and symmetric about zero, are
together at least as likely as the product of their probabilities (Royen 2014).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from fairperm._utils import streams
from fairperm._utils.checks import DIRECTIONS
from fairperm.errors import InputError, argument
from fairperm.hypothesis_tests.comparison import Comparison
from fairperm.hypothesis_tests.plan import Plan
from fairperm.hypothesis_tests.small_groups import InfluentialRows
from fairperm.inference.multiplicity import two_tailed_max_t
from fairperm.metrics.definition import JointMetric, Metric, Scheme, Variance
from fairperm.metrics.distances import Distance
from fairperm.metrics.registry import metric_names

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from fairperm.auditing.comparisons import ComparedPair, Settings
    from fairperm.auditing.questions import Question
    from fairperm.data.reading import Table
    from fairperm.engines.choice import GroupsEngine
    from fairperm.engines.estimates import Estimates, Gaps
    from fairperm.engines.resampling import blocks
    from fairperm.metrics.ranks import RankMetric

    Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Family:
    """Two groups of a table, and the parts of every metric that is tested."""

    table: Table
    groups: tuple[Hashable, Hashable]
    metrics: tuple[tuple[Metric | RankMetric, ...], ...]


def max_t_pvalues(
    pairs: Mapping[tuple[object, ...], ComparedPair], settings: Settings
) -> dict[tuple[object, ...], float]:
    """Return the adjusted p-values of pairs by their hypotheses."""
    families: dict[object, dict[tuple[object, ...], ComparedPair]] = {}
    for key, pair in pairs.items():
        families.setdefault((pair.row.attribute, pair.row.groups), {})[key] = pair
    values = max_t(
        [_make_family([*members.values()]) for members in families.values()],
        stratum_weights=settings.stratum_weights,
        resampling=settings.resampling,
        alternative=settings.alternative,
    )
    keys = [key for members in families.values() for key in members]
    return dict(zip(keys, values.tolist(), strict=True))


def _make_family(pairs: Sequence[ComparedPair]) -> Family:
    groups, table = pairs[0].row.groups, pairs[0].question.reading
    table = table.against_rest(*groups)
    metrics = [pair.question.metric.for_table(table, groups) for pair in pairs]
    return Family(table, groups, tuple(metric.parts for metric in metrics))


def check_max_t(questions: Sequence[Question], settings: Settings) -> None:
    """Raise InputError if max-T has no joint draws for these questions and options."""
    obstacle = next(_find_obstacles(questions, settings), None)
    if obstacle is not None:
        hint = f"Use {argument('adjust', 'holm')}."
        raise InputError(f"{argument('adjust', 'maxt')} cannot be used with {obstacle}. {hint}")


def _find_obstacles(questions: Sequence[Question], settings: Settings) -> Iterator[str]:
    if settings.is_limit:
        yield argument("n_resamples", 0)
    if settings.alternative in DIRECTIONS:
        yield argument("alternative", settings.alternative)
    if settings.variance is None:
        yield argument("variance", None)
    if any(isinstance(question.metric, Distance) for question in questions):
        yield argument("distances")
    if any(question.units != "rows" for question in questions):
        yield argument("rankings")
    first = questions[0]
    if first.table.matched is not None:
        yield argument("matched")
    for question in questions:
        metric, table = question.metric, question.table
        has_closed_form = not metric.is_function and all(part.smooth for part in metric.parts)
        if not has_closed_form or not metric.parts:
            yield f"{metric.name}, which has no closed form of its variance"
        is_plain = table.weight is None and table.cluster is None
        if metric.is_rank and not is_plain:
            yield f"{metric.name} of weighted or clustered rows"
        if question.reading is not first.reading and question.attribute == first.attribute:
            yield f"{first.label} and {question.label}, which are read differently"


def max_t(
    families: Sequence[Family],
    *,
    stratum_weights: object,
    resampling: blocks.Resampling,
    alternative: str = "two-sided",
) -> Array:
    """Return the p-values of all families' metrics, one after the other, by step-down max-T.

    Labels are permuted over all rows of the two groups, once for all metrics; every gap is
    studentized in every permutation.
    """
    found = [
        _draw_statistics(family, stratum_weights, replace(resampling, seed=seed), alternative)
        for family, seed in zip(families, _seeds(resampling.seed, len(families)), strict=True)
    ]
    observed, permuted, rounding = zip(*found, strict=True)
    return two_tailed_max_t(
        np.concatenate(observed, axis=1),
        np.concatenate(permuted, axis=2),
        np.concatenate(rounding),
    )


def _seeds(seed: int, n: int) -> list[int]:
    """Return a seed for each family: the user's own for the first."""
    others = np.random.SeedSequence(seed, spawn_key=(streams.MAX_T,)).generate_state(n, np.uint64)
    return [seed, *others.tolist()[1:]]


def _draw_statistics(
    family: Family, stratum_weights: object, resampling: blocks.Resampling, alternative: str
) -> tuple[Array, Array, Array]:
    """Return a family's observed statistics, those of every draw, and their rounding.

    The tails are the first axis.
    """
    table = family.table
    is_plain = table.weight is None and table.cluster is None
    parts = tuple(part for metric in family.metrics for part in metric)
    joint = JointMetric(name="all metrics", meaning="", parts=parts)
    plan = Plan(
        joint,
        Scheme.POOLED,
        Variance.SCORE if is_plain else Variance.DELTA,
        weighted=table.weight is not None,
        clustered=table.cluster is not None,
    )
    comparison = Comparison.of(table, plan, family.groups, stratum_weights)
    engine = comparison.engine(plan.variance, many=True)
    estimates = engine.observed(resampling.seed)
    influential = InfluentialRows.count(comparison, plan, estimates)
    estimates = influential.widen(estimates, engine.weights)
    statistics = _Statistics(
        starts=np.cumsum([0, *map(len, family.metrics)])[:-1],
        scored=_find_rates(parts) if is_plain else {},
        weights=engine.weights,
        scale=comparison.scale(estimates),
        signs=np.array([_find_sign(part) for part in parts]),
        tails=(np.abs,) if alternative == "symmetric" else (np.positive, np.negative),
    )
    blocks = resampling.run_blocks(
        partial(_permute, engine, statistics), streams.PERMUTATIONS, engine.block_size
    )
    observed = statistics.of(estimates)[:, 0]
    return observed, np.concatenate(blocks, axis=1), statistics.rounding(estimates)


def _find_sign(part: Metric | RankMetric) -> float:
    """Return 1, or −1 for a share of errors, so that its gap has the direction of its complement.

    The list of metrics has shares of correct predictions before those of errors.
    """
    names = metric_names()
    if part.complement not in names or part.name not in names:
        return 1.0
    return -1.0 if names.index(part.complement) < names.index(part.name) else 1.0


def _find_rates(parts: Sequence[Metric | RankMetric]) -> dict[int, Metric]:
    """Return the rates among the parts, by their places."""
    return {
        place: part
        for place, part in enumerate(parts)
        if isinstance(part, Metric) and part.has_denominator
    }


def _permute(
    engine: GroupsEngine, statistics: _Statistics, n: int, rng: np.random.Generator
) -> Array:
    return statistics.of(engine.permuted(n, rng))


@dataclass(frozen=True, slots=True)
class _Statistics:
    """Statistics of metrics in each tail; ``starts`` is the place of each metric's first part."""

    starts: NDArray[np.intp]
    scored: Mapping[int, Metric]
    weights: Array | None
    scale: Array
    signs: Array
    tails: tuple[np.ufunc, ...]

    def of(self, estimates: Estimates) -> Array:
        """Return the statistics by tail, draw and metric: the largest of the parts."""
        ratios = self.signs * self._gaps(estimates).ratios(self.scale)
        return np.stack(
            [np.maximum.reduceat(side(ratios), self.starts, axis=1) for side in self.tails]
        )

    def rounding(self, observed: Estimates) -> Array:
        """Return the size of each metric's values in standard errors."""
        error = self._gaps(observed).standard_error[0]
        with np.errstate(divide="ignore"):
            sizes = np.where(error > 0, self.scale / error, 0.0)
        largest: Array = np.maximum.reduceat(sizes, self.starts)
        return largest

    def _gaps(self, estimates: Estimates) -> Gaps:
        return estimates.pair(0, 1, self.scored).gaps(self.weights)
