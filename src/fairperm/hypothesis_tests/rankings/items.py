"""The comparison of two kinds of items within each list: labels are exchanged inside lists."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fairperm._utils.arrays import Array
from fairperm._utils.formatting import format_count
from fairperm.engines.rankings import ListsEngine
from fairperm.engines.resampling.shared_labels import PermutationRequest
from fairperm.errors import Shown, UndefinedMetricError, argument, listed, shown
from fairperm.hypothesis_tests.cautions import note_zero_error
from fairperm.hypothesis_tests.rankings.lists import RankedItems, refuse_constant
from fairperm.hypothesis_tests.reaches import ErrorReach
from fairperm.hypothesis_tests.results.gaps import PermutationTestResult
from fairperm.hypothesis_tests.run import Observed, PermutationTest
from fairperm.hypothesis_tests.small_groups import MIN_INFLUENTIAL_ROWS, effective_number
from fairperm.inference.null import tie_tolerance
from fairperm.inference.stopping import min_draws_for
from fairperm.metrics.definition import Variance

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    from fairperm.engines.resampling.blocks import Stop
    from fairperm.hypothesis_tests.plan import Options
    from fairperm.hypothesis_tests.run import Tested
    from fairperm.metrics.rankings import RankingMetric

LISTS = "lists"  # the scheme in results of items
# queries that show how a gap varies; of clusters, as many as in all tests
_MIN_INFLUENTIAL_QUERIES = 10
_ZERO = 1e-14  # a standard error below it, relative to the values, is a rounding error


Block = tuple[Array, Array]  # values by group and draw, and the errors of their gaps


def _widen(effective: float) -> float:
    """Return what multiplies an error that rests on so many clusters.

    The form is that of a variance known from few; the constant was chosen by the levels in
    test_rankings.py. Flipping the signs of whole clusters could replace it.
    """
    few = max(min(effective, MIN_INFLUENTIAL_ROWS), 1.0)
    return float(np.sqrt(1 + (3 / few) ** 2 - (3 / MIN_INFLUENTIAL_ROWS) ** 2))


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemsTest(PermutationTest[Block]):
    """The gap between items of the same lists, before its permutations.

    ``n_lists`` is the number of lists that it rests on; with clusters of queries, Kish's effective
    number of clusters.
    """

    observed: Observed
    engine: ListsEngine
    zero: float
    n_lists: float
    unit: str
    left_out: tuple[str, ...]
    sample: Mapping[str, Any]

    @classmethod
    def of(
        cls,
        items: RankedItems,
        metric: RankingMetric,
        pair: tuple[Hashable, Hashable],
        options: Options,
    ) -> ItemsTest:
        """Studentize the gap of both sides within each list; see :meth:`RankedItems.choose`."""
        value = metric.value(items.lists, metric.k)
        n_strata = len(items.table.strata)
        part = items.lists.query.astype(np.int64) * n_strata + items.stratum  # of a list
        place = 3 * part + items.group
        counts = np.bincount(place, minlength=3 * int(part.max()) + 3).reshape(-1, 3)
        is_shared = counts[:, :2].min(axis=1) > 0
        kept = is_shared[part] & (items.group < 2)
        if not kept.any():
            raise refuse_constant(items.table, metric, listed(pair))
        query = np.unique(part[kept], return_inverse=True)[1].ravel()
        value, group = value[:, kept], items.group[kept].astype(np.int64)
        engine = ListsEngine.of(query, value, group, items.cluster[kept], metric.of_group)
        observed = engine.observed()
        values, error = observed[0][:, 0], float(observed[1][0])
        _check_values(values, metric, pair)
        gap = float(values[0] - values[1])
        n_queries = len(np.unique(items.lists.query[kept]))
        # a value per relevance has its unit; shares and logarithms have errors of the size of 1
        span = np.abs(values).max(initial=0.0 if metric.reads_relevance else 1.0, keepdims=True)
        zero = _ZERO * float(span[0])
        gap = gap if abs(gap) > zero else 0.0
        if error <= zero and gap:
            raise _missing_error(engine, items, n_queries)
        influences, effective = engine.observed_influences(), 0.0
        if error > zero:
            effective = effective_number(influences, np.ones(len(influences)))
        # draws spread a cluster over its queries: none shows how few clusters carry the gap
        wider = _widen(effective) if items.has_cluster else 1.0
        error *= wider
        errors = [wider * one for one in engine.observed_errors()]
        statistic = float(_studentize([(observed[0], np.array([error]))], zero)[0])
        unit = np.array([max(error, zero)])
        seen = Observed(
            statistic=statistic,
            alternative=options.alternative,
            ordering=options.alternative,
            tolerance=tie_tolerance(statistic, span, unit),
            estimate=gap,
            level=options.confidence_level,
            min_draws=min_draws_for(options.confidence_level),
            reach=ErrorReach(np.array([gap]), unit, metric.largest_gap),
            has_normal_floor=items.has_cluster,
        )
        remarks = items.table.notes
        n_lost = int((~is_shared & counts[:, :2].any(axis=1)).sum())
        if n_lost:
            alone = format_count(n_lost, "query has", "queries have")
            if n_strata > 1:
                alone = format_count(n_lost, "stratum of a list has", "strata of lists have")
            remarks += (f"{alone} items of only one of these groups: left out.",)
        own = counts[is_shared]
        sample = {
            "metric": metric.full_name,
            "attribute": items.table.attribute,
            "groups": pair,
            "values": dict(zip(pair, values.tolist(), strict=True)),
            "counts": {
                one: {"items": int(own[:, side].sum()), "queries": n_queries}
                for side, one in enumerate(pair)
            },
            "difference": gap,
            "part": None,
            "standard_error": error if error > zero else 0.0,
            "standard_errors": dict(zip(pair, errors, strict=True)),
            "scheme": LISTS,
            "variance": Variance.DELTA.value,
            "binning_errors": None,
            "n_strata": n_strata,
            "n_dropped": items.table.n_dropped,
            "seed": options.seed,
            "validity": _validity(items, metric),
            "notes": (*remarks, *_note_few(effective, metric, items)),
        }
        sizes = np.bincount(engine.cluster).astype(np.float64)
        n_lists = float(sizes.sum() ** 2 / (sizes**2).sum()) if items.has_cluster else n_queries
        return cls(
            observed=seen,
            engine=engine,
            zero=zero,
            n_lists=n_lists,
            unit="effective clusters" if items.has_cluster else "queries",
            left_out=remarks,
            sample=sample,
        )

    def result(self, tested: Tested) -> PermutationTestResult:
        return tested.result(PermutationTestResult, **self.sample)

    @property
    def remarks(self) -> tuple[str, ...]:
        return self.left_out

    def base_sizes(self) -> dict[str, tuple[float, float]]:
        return {f"{self.unit} with items of both groups": (self.n_lists, self.n_lists)}

    def enumerated(self, most: int) -> tuple[Block, Array] | None:
        found = self.engine.enumerated(most)
        if found is None:
            return None
        n = found[1].shape[-1]
        return found, np.full(n, -np.log(n))

    def request(self, stop: Stop[Block]) -> PermutationRequest[Block]:
        return PermutationRequest.of(self.engine.permuted, stop, self.engine.block_size)

    def statistics(self, blocks: Sequence[Block], first: int | None) -> Array:
        del first
        return _studentize(blocks, self.zero)

    def smallest(self) -> float:
        """Return the probability of one labelling: each list has two or more."""
        return float(0.5 ** self.sample["counts"][self.sample["groups"][0]]["queries"])


def _check_values(values: Array, metric: RankingMetric, pair: tuple[Hashable, Hashable]) -> None:
    """Raise UndefinedMetricError for a group without a value."""
    for side in np.flatnonzero(np.isnan(values)):
        items_of = f"some item of group {shown(pair[side])}"
        if metric.uses_k:
            rule = f"so large that {items_of} is in the top k"
            hint = f"{argument('metric', 'top_k_share')} needs none."
            raise UndefinedMetricError("k", rule, metric.k, hint)
        raise UndefinedMetricError("relevance", f"above 0 for {items_of}", "none")


def _missing_error(engine: ListsEngine, items: RankedItems, n_queries: int) -> UndefinedMetricError:
    """Return the error for a gap without a standard error."""
    if int(engine.cluster.max()) == 0:
        name = "cluster" if items.has_cluster else "query"
        return UndefinedMetricError(name, "two or more, for a standard error", 1)
    got = Shown(f"the same gap in all {n_queries:,} queries")
    return UndefinedMetricError("query", "made of lists with different gaps", got)


def _validity(items: RankedItems, metric: RankingMetric) -> str:
    """Return for which null the p-value is valid."""
    places = "places and relevance" if metric.reads_relevance else "places"
    given = ", given the stratum" if len(items.table.strata) > 1 else ""
    return (
        f"Exact if lists are independent of each other, and {places} in them do not depend on "
        f"the group{given}; asymptotically valid, with many independent "
        f"{'clusters' if items.has_cluster else 'queries'}, for a gap of zero."
    )


def _studentize(blocks: Sequence[Block], zero: float) -> Array:
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
    enough, unit, units = _MIN_INFLUENTIAL_QUERIES, "query", "queries"
    if items.has_cluster:
        enough, unit, units = MIN_INFLUENTIAL_ROWS, "cluster", "clusters"
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
