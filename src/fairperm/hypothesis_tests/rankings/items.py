"""The comparison of two kinds of items within each list: labels are exchanged inside lists."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from fairperm._utils.formatting import format_count
from fairperm.engines.rankings.items import ListsEngine
from fairperm.errors import Shown, UndefinedMetricError, argument, listed, shown
from fairperm.hypothesis_tests.rankings.lists import RankedItems, refuse_constant
from fairperm.hypothesis_tests.results.gaps import PermutationTestResult
from fairperm.hypothesis_tests.small_groups import (
    ENOUGH,
    effective_number,
    note_zero_error,
    widening_factor,
)
from fairperm.inference.null import (
    Null,
    QuantileIntervals,
    agree,
    note_undefined,
    pvalue,
    tie_tolerance,
)
from fairperm.inference.stopping import StoppingRule, count_least
from fairperm.metrics.definition import Variance

if TYPE_CHECKING:
    from collections.abc import Hashable

    from numpy.typing import NDArray

    from fairperm.hypothesis_tests.plan import Options
    from fairperm.metrics.rankings import RankingMetric

    Array = NDArray[np.float64]

LISTS = "lists"  # the scheme in results of items
_ENOUGH = 10  # queries that show how a gap varies; of clusters, as many as in all tests
_ZERO = 1e-14  # a standard error below it, relative to the values, is a rounding error


@dataclass(frozen=True, slots=True)
class ItemComparison:
    """A tested gap between items of the same lists, and its intervals.

    ``n_lists`` is the number of lists that it rests on; with clusters of queries, Kish's effective
    number of clusters. ``remarks`` are those of its notes that are no warnings.
    """

    result: PermutationTestResult
    intervals: QuantileIntervals
    n_lists: float
    remarks: tuple[str, ...]


def compare_items(
    items: RankedItems,
    metric: RankingMetric,
    pair: tuple[Hashable, Hashable],
    options: Options,
) -> ItemComparison:
    """Compare the items of both sides within each list; see :meth:`RankedItems.choose`."""
    value = metric.value(items.lists, metric.k)
    n_strata = len(items.table.strata)
    part = items.lists.query.astype(np.int64) * n_strata + items.stratum  # of a list
    counts = np.bincount(3 * part + items.group, minlength=3 * int(part.max()) + 3).reshape(-1, 3)
    is_shared = counts[:, :2].min(axis=1) > 0
    kept = is_shared[part] & (items.group < 2)
    if not kept.any():
        raise refuse_constant(items.table, metric, listed(pair))
    query = np.unique(part[kept], return_inverse=True)[1].ravel()
    value, group = value[:, kept], items.group[kept].astype(np.int64)
    engine = ListsEngine.of(query, value, group, items.cluster[kept], metric.of_group)
    observed = engine.observed()
    values, error = observed[0][:, 0], float(observed[1][0])
    for side in np.flatnonzero(np.isnan(values)):
        items_of = f"some item of group {shown(pair[side])}"
        if metric.uses_k:
            rule = f"so large that {items_of} is in the top k"
            hint = f"{argument('metric', 'top_k_share')} needs none."
            raise UndefinedMetricError("k", rule, metric.k, hint)
        raise UndefinedMetricError("relevance", f"above 0 for {items_of}", "none")
    gap = float(values[0] - values[1])
    n_queries = len(np.unique(items.lists.query[kept]))
    # a value per relevance has its unit; shares and logarithms have errors of the size of 1
    span = np.abs(values).max(initial=0.0 if metric.reads_relevance else 1.0, keepdims=True)
    zero = _ZERO * float(span[0])
    gap = gap if abs(gap) > zero else 0.0
    if error <= zero and gap:
        if int(engine.cluster.max()) == 0:
            name = "cluster" if items.has_cluster else "query"
            raise UndefinedMetricError(name, "two or more, for a standard error", 1)
        got = Shown(f"the same gap in all {n_queries:,} queries")
        raise UndefinedMetricError("query", "made of lists with different gaps", got)
    influences, effective = engine.observed_influences(), 0.0
    if error > zero:
        effective = effective_number(influences, np.ones(len(influences)))
    # permutations spread a cluster's influence over its queries, so that only the observed error
    # rests on few clusters
    wider = float(np.sqrt(widening_factor(np.array([effective]))[0])) if items.has_cluster else 1.0
    error *= wider
    errors = [wider * one for one in engine.observed_errors()]

    resampling, level = options.resampling, options.confidence_level
    studentize = partial(_studentize, zero=zero)
    statistic = float(studentize([(observed[0], np.array([error]))])[0])
    unit = np.array([max(error, zero)])
    tolerance = tie_tolerance(statistic, span, unit)
    found = engine.enumerated(resampling.n_resamples)
    if found is None:
        least = max(resampling.least or 0, count_least(level))
        rule_of_draws = StoppingRule(statistic, options.alternative, tolerance, least)
        null = resampling.draw_null(engine.permuted, studentize, rule_of_draws, engine.block_size)
    else:
        draws = studentize([found])
        null = Null(draws, np.full(len(draws), -np.log(len(draws))))
    p = pvalue(null, statistic, options.alternative, tolerance, level)
    intervals = QuantileIntervals(
        null, np.array([gap]), unit, options.alternative, metric.largest_gap
    )
    own = counts[is_shared]
    remarks = items.table.notes
    n_lost = int((~is_shared & counts[:, :2].any(axis=1)).sum())
    if n_lost:
        alone = format_count(n_lost, "query has", "queries have")
        if n_strata > 1:
            alone = format_count(n_lost, "stratum of a list has", "strata of lists have")
        remarks += (f"{alone} items of only one of these groups: left out.",)
    places = "places and relevance" if metric.reads_relevance else "places"
    given = ", given the stratum" if n_strata > 1 else ""
    result = PermutationTestResult(
        metric=metric.full_name,
        attribute=items.table.attribute,
        groups=pair,
        values=dict(zip(pair, values.tolist(), strict=True)),
        counts={
            one: {"items": int(own[:, side].sum()), "queries": n_queries}
            for side, one in enumerate(pair)
        },
        difference=gap,
        part=None,
        standard_error=error if error > zero else 0.0,
        standard_errors=dict(zip(pair, errors, strict=True)),
        confidence_interval=agree(intervals.at(level), p.value, options.alternative, level, gap),
        confidence_level=level,
        statistic=statistic,
        scheme=LISTS,
        variance=Variance.DELTA.value,
        gap_variance=None,
        binning_errors=None,
        pvalue=p.value,
        pvalue_interval=p.interval,
        pvalue_interval_wilson=p.wilson_interval,
        alternative=options.alternative,
        ordering=options.alternative,
        n_resamples=len(null.statistic),
        stopped_early=null.stopped_early,
        n_undefined=int(null.undefined.sum()),
        n_strata=n_strata,
        n_dropped=items.table.n_dropped,
        seed=options.seed,
        validity=(
            f"Exact if lists are independent of each other, and {places} in them do not depend on "
            f"the group{given}; asymptotically valid, with many independent "
            f"{'clusters' if items.has_cluster else 'queries'}, for a gap of zero."
        ),
        notes=(*remarks, *_note_few(effective, metric, items), *note_undefined(null)),
        exact=found is not None,
        null_distribution=null.statistic,
        null_probabilities=None if null.log_probability is None else np.exp(null.log_probability),
    )
    sizes = np.bincount(engine.cluster).astype(np.float64)
    n_lists = float(sizes.sum() ** 2 / (sizes**2).sum()) if items.has_cluster else n_queries
    return ItemComparison(result, intervals, n_lists, remarks)


def _studentize(blocks: list[tuple[Array, Array]], zero: float) -> Array:
    """Return gaps over their errors; without an error, infinite unless the gap is zero.

    A block has values and errors; what is at most ``zero`` is a rounding error.
    """
    values, error = (np.concatenate(one, axis=-1) for one in zip(*blocks, strict=True))
    gap = values[0] - values[1]
    with np.errstate(divide="ignore", invalid="ignore"):
        studentized = gap / np.where(error > zero, error, 0.0)
    return np.where(np.abs(gap) <= zero, 0.0, studentized)


def _note_few(effective: float, metric: RankingMetric, items: RankedItems) -> list[str]:
    """Return a note if too few queries, or clusters of them, make the standard error."""
    enough, unit, units = _ENOUGH, "query", "queries"
    if items.has_cluster:
        enough, unit, units = ENOUGH, "cluster", "clusters"
    if effective >= enough:
        return []
    if effective == 0:
        return [note_zero_error(metric.full_name)]
    n = min(max(round(effective), 1), enough - 1)
    return [
        f"Only about {format_count(n, unit, units)} {'shows' if n == 1 else 'show'} how the gap in "
        f"{metric.full_name} varies: with fewer than {enough} its standard error is unreliable"
        f"{', even widened' if items.has_cluster else ''}, and the test may reject too often."
    ]
