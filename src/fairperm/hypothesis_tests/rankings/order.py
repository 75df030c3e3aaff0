"""The comparison of the order of lists with a random one, for all groups at once."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairperm._utils.arrays import Array
from fairperm._utils.formatting import format_count, state_pvalue
from fairperm.engines.rankings import DivergenceEngine
from fairperm.engines.resampling.blocks import Stop
from fairperm.engines.resampling.shared_labels import PermutationRequest
from fairperm.errors import InputError, Note, argument
from fairperm.hypothesis_tests.plan import Options
from fairperm.hypothesis_tests.rankings.lists import RankedItems
from fairperm.hypothesis_tests.results.rankings import ListDivergence
from fairperm.hypothesis_tests.run import Observed, PermutationTest, Tested
from fairperm.inference.null import Null, pvalue, tie_tolerance
from fairperm.inference.stopping import MIN_DRAWS
from fairperm.metrics.rankings import RankingMetric


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderTest(PermutationTest[Array]):
    """How far the order of lists is from a random one, before its permutations."""

    observed: Observed
    engine: DivergenceEngine
    sample: Mapping[str, Any]

    @classmethod
    def of(
        cls,
        items: RankedItems,
        metric: RankingMetric,
        groups: tuple[Hashable, ...],
        options: Options,
    ) -> OrderTest:
        """Compare the shares of all groups at the top of lists with those of whole lists."""
        lists, n_strata, n_groups = items.lists, len(items.table.strata), len(items.table.groups)
        part = lists.query.astype(np.int64) * n_strata + items.stratum  # of a list
        parts, n_different = np.unique(
            np.unique(part * n_groups + items.group) // n_groups, return_counts=True
        )
        mixed = np.unique(parts[n_different > 1] // n_strata)
        kept = np.isin(lists.query, mixed)
        if not kept.any():  # without strata, some list has items of several groups
            raise InputError(
                f"{argument('sensitive_features')} must vary within a stratum of a query for "
                f"{metric.name} with {argument('control_features')}; got one group in each."
            )
        of_items = lists.query[kept], items.stratum[kept], items.group[kept]
        engine = DivergenceEngine.of(*of_items, metric.value(lists, 0)[0, kept])
        # no divergence is larger than that of an item that is alone in its group
        span = np.log(lists.sizes.max(keepdims=True))
        observed = Observed(
            statistic=engine.observed,
            alternative="greater",
            ordering="greater",
            tolerance=tie_tolerance(engine.observed, span, np.ones(1)),
            estimate=engine.observed,
            level=options.confidence_level,
            min_draws=MIN_DRAWS,
        )
        notes = items.table.notes
        n_lost = len(lists.starts) - len(mixed)
        if n_lost:
            alone = format_count(n_lost, "query has", "queries have")
            where = " in each stratum" if n_strata > 1 else ""
            notes += (f"{alone} items of one group only{where}: left out.",)
        given = ", given the stratum" if n_strata > 1 else ""
        sizes = np.bincount(items.group[kept], minlength=n_groups).tolist()
        sample = {
            "metric": metric.name,
            "attribute": items.table.attribute,
            "groups": groups,
            "value": engine.observed,
            "counts": {one: sizes[items.table.groups.index(one)] for one in groups},
            "n_queries": engine.n_lists,
            "n_strata": n_strata,
            "n_dropped": items.table.n_dropped,
            "seed": options.seed,
            "validity": (
                "Exact if lists are independent of each other, and places in them do not depend on "
                f"the group{given}."
            ),
            "notes": notes,
        }
        return cls(observed=observed, engine=engine, sample=sample)

    def result(self, tested: Tested) -> ListDivergence:
        return tested.result(
            ListDivergence,
            **self.sample,
            expected=float(tested.reference.null.statistic.mean()),
            adjusted_pvalue=tested.pvalue.value,
        )

    def enumerated(self, most: int) -> tuple[Array, Array] | None:
        found = self.engine.enumerated(most)
        return None if found is None else (found, np.full(len(found), -np.log(len(found))))

    def request(self, stop: Stop[Array]) -> PermutationRequest[Array]:
        return PermutationRequest.of(self.engine.permuted, stop, self.engine.block_size)

    def statistics(self, blocks: Sequence[Array], first: int | None) -> Array:
        del first
        return np.concatenate(blocks)

    def notes(self, null: Null, blocks: Sequence[Array]) -> tuple[str, ...]:
        """Return a note on a value that is smaller than by chance."""
        del blocks
        seen = self.observed
        below = pvalue(null, seen.statistic, "less", seen.tolerance, seen.level).value
        if below > 1 - seen.level:
            return ()
        text = (
            f"The value is smaller than by chance ({state_pvalue(below)}), and only larger ones "
            "count: a large group comes first, which lowers it, or groups are mixed more evenly "
            f"than by chance. {argument('metric', 'exposure')} tests which group comes first."
        )
        return (Note(text),)
