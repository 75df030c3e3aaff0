"""Search on one part of the rows, and test what it lists on the other.

The tests of the second part are those of :func:`fairperm.permutation_test`, which are exact for
rates, with p-values adjusted by Holm's method for the few subgroups that the search lists.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from fairperm._utils import streams
from fairperm._utils.sorting import order_by
from fairperm.engines.resampling.draws import random_subset
from fairperm.errors import UndefinedMetricError
from fairperm.hypothesis_tests.groups import compare
from fairperm.hypothesis_tests.plan import Plan
from fairperm.inference.multiplicity import adjust_pvalues
from fairperm.inference.null import agree
from fairperm.inference.stopping import MAX_DRAWS
from fairperm.subgroups.features import describe
from fairperm.subgroups.result import Subgroup

if TYPE_CHECKING:
    from fairperm._utils.arrays import Integers
    from fairperm.data.sample import Sample
    from fairperm.hypothesis_tests.plan import Options
    from fairperm.hypothesis_tests.results.gaps import PermutationTestResult
    from fairperm.subgroups.candidates import Candidates
    from fairperm.subgroups.sample import SearchedRows


def split_table(table: Sample, share: float, seed: int) -> tuple[Sample, Sample]:
    """Return a table of randomly chosen rows, or clusters, and one of this share of them."""
    rng = streams.stream(seed, streams.SAMPLE)
    weight = [] if table.weight is None else [table.weight]
    order = order_by([table.group, table.stratum, *table.columns.values(), *weight, table.count])
    table = table.take(order)  # the user's order of rows must not matter
    if table.cluster is None:
        size = round(share * int(table.count.sum()))
        chosen = random_subset(table.count, size, 1, rng)[0]
    else:
        n = len(table.clusters)
        is_chosen = np.zeros(n, bool)
        is_chosen[rng.permutation(n)[: round(share * n)]] = True
        chosen = np.where(is_chosen[table.cluster], table.count, 0)
    return _keep_rows(table, table.count - chosen), _keep_rows(table, chosen)


def _keep_rows(table: Sample, count: Integers) -> Sample:
    return replace(table, count=count).take(np.flatnonzero(count))


def confirm_subgroups(
    sample: SearchedRows, candidates: Candidates, options: Options, alpha: float
) -> tuple[tuple[Subgroup, ...], tuple[str, ...]]:
    """Return the candidates that have enough rows in this sample, and the notes of their tests."""
    # Draws stop early, as those of a single test do by default: Holm's method needs more of them
    # than a search. The intervals hold together by Bonferroni's inequality.
    n_resamples = max(MAX_DRAWS, options.resampling.n_resamples)
    resampling = replace(options.resampling, n_resamples=n_resamples, min_draws=0)
    inside = candidates.members.toarray() > 0
    counts = candidates.members @ sample.sizes
    enough = (counts >= 2).all(axis=1) & (sample.sizes.sum(axis=0) - counts >= 2).all(axis=1)
    places = np.flatnonzero(enough)
    level = 1 - alpha / max(1, len(places))
    tested: list[tuple[int, PermutationTestResult]] = []
    for place in places.tolist():
        group = np.where(inside[place][sample.table.group], 0, 1)
        name = describe(candidates.describe(place))
        table = replace(sample.table, group=group, groups=(name, f"not ({name})"))
        chosen = replace(options, resampling=resampling, confidence_level=level)
        plan = Plan.for_table(sample.plan.metric, table, table.groups, chosen)
        try:
            tested.append((place, compare(table, plan, table.groups, chosen)))
        except UndefinedMetricError:
            continue
    adjusted = adjust_pvalues(np.array([one.pvalue for _, one in tested]), "holm")
    pairs = zip(tested, adjusted.tolist(), strict=True)
    subgroups = tuple(
        Subgroup(
            conditions=candidates.describe(place),
            value=one.values[one.groups[0]],
            rest=one.values[one.groups[1]],
            gap=one.difference,
            standard_error=one.standard_error,
            confidence_interval=agree(
                one.confidence_interval, p, options.alternative, 1 - alpha, one.difference
            ),
            statistic=one.statistic,
            pvalue=one.pvalue,
            adjusted_pvalue=p,
            n=int(one.counts[one.groups[0]]["rows"]),
            counts=dict(zip(sample.base_names, map(int, counts[place]), strict=True)),
        )
        for (place, one), p in pairs
    )
    notes = (note for _, one in tested for note in one.notes if note not in sample.table.notes)
    return subgroups, tuple(dict.fromkeys(notes))
