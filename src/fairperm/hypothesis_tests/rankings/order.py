"""The comparison of the order of lists with a random one, for all groups at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fairperm._utils.formatting import format_count, state_pvalue
from fairperm.engines.rankings.order import DivergenceEngine
from fairperm.errors import InputError, Note, argument
from fairperm.hypothesis_tests.results.rankings import ListDivergence
from fairperm.inference.null import Null, pvalue, tie_tolerance
from fairperm.inference.stopping import LEAST, StoppingRule

if TYPE_CHECKING:
    from collections.abc import Hashable

    from fairperm.hypothesis_tests.plan import Options
    from fairperm.hypothesis_tests.rankings.lists import RankedItems
    from fairperm.metrics.rankings import RankingMetric


def compare_order(
    items: RankedItems, metric: RankingMetric, groups: tuple[Hashable, ...], options: Options
) -> ListDivergence:
    """Compare the shares of all groups at the top of lists with those in permuted lists."""
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
    engine = DivergenceEngine.of(
        lists.query[kept], items.stratum[kept], items.group[kept], metric.value(lists, 0)[0, kept]
    )
    observed = engine.observed
    # no divergence is larger than that of an item that is alone in its group
    span = np.log(lists.sizes.max(keepdims=True))
    tolerance = tie_tolerance(observed, span, np.ones(1))
    resampling, level = options.resampling, options.confidence_level
    found = engine.enumerated(resampling.n_resamples)
    if found is None:
        rule = StoppingRule(observed, "greater", tolerance, LEAST)
        null = resampling.draw_null(engine.permuted, np.concatenate, rule, engine.block_size)
    else:
        null = Null(found, np.full(len(found), -np.log(len(found))))
    p = pvalue(null, observed, "greater", tolerance, level)
    notes = items.table.notes
    n_lost = len(lists.starts) - len(mixed)
    if n_lost:
        alone = format_count(n_lost, "query has", "queries have")
        where = " in each stratum" if n_strata > 1 else ""
        notes += (f"{alone} items of one group only{where}: left out.",)
    below = pvalue(null, observed, "less", tolerance, level).value
    if below <= 1 - level:
        text = (
            f"The value is smaller than by chance ({state_pvalue(below)}), and only larger ones "
            "count: a large group comes first, which lowers it, or groups are mixed more evenly "
            f"than by chance. {argument('metric', 'exposure')} tests which group comes first."
        )
        notes += (Note(text),)
    given = ", given the stratum" if n_strata > 1 else ""
    sizes = np.bincount(items.group[kept], minlength=n_groups).tolist()
    return ListDivergence(
        metric=metric.name,
        attribute=items.table.attribute,
        groups=groups,
        value=observed,
        expected=float(null.statistic.mean()),
        counts={one: sizes[items.table.groups.index(one)] for one in groups},
        n_queries=engine.n_lists,
        pvalue=p.value,
        adjusted_pvalue=p.value,
        pvalue_interval=p.interval,
        pvalue_interval_wilson=p.wilson_interval,
        confidence_level=level,
        n_resamples=len(null.statistic),
        stopped_early=null.stopped_early,
        exact=found is not None,
        n_strata=n_strata,
        n_dropped=items.table.n_dropped,
        seed=options.seed,
        validity=(
            "Exact if lists are independent of each other, and places in them do not depend on the "
            f"group{given}."
        ),
        notes=notes,
        null_distribution=null.statistic,
    )
