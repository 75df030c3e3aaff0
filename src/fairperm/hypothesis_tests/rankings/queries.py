"""The comparison of queries by the quality of their lists: a query is a row."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from typing import TypeVar

import numpy as np

from fairperm._utils.formatting import format_count
from fairperm.data.sample import Sample
from fairperm.errors import UndefinedMetricError, shown
from fairperm.hypothesis_tests.groups import compare as compare_groups
from fairperm.hypothesis_tests.plan import Options, Plan
from fairperm.hypothesis_tests.rankings.lists import VALUE, find_sides
from fairperm.hypothesis_tests.results.gaps import PermutationTestResult
from fairperm.hypothesis_tests.results.omnibus import OmnibusTestResult
from fairperm.metrics.definition import Kind, Metric
from fairperm.metrics.numbers import mean_metric
from fairperm.metrics.rankings import RankingMetric

_Result = TypeVar("_Result", PermutationTestResult, OmnibusTestResult)


def compare_queries(
    every: Sample,
    metric: RankingMetric,
    pair: tuple[Hashable, Hashable],
    options: Options,
) -> tuple[PermutationTestResult, tuple[str, ...]]:
    """Compare the mean quality of queries: the paper's test, with a query as a row.

    Returns the result, and those of its notes that are no warnings.
    """
    group = find_sides(every.group, every.groups, pair)
    both = replace(every, group=group, groups=pair).take(np.flatnonzero(group < 2))
    queries = keep_valued(both, metric)
    check_valued(queries, pair)
    plan = Plan.for_table(average_queries(metric), queries, pair, options)
    result = compare_groups(queries, plan, pair, options)
    return name_queries(result), queries.notes


def keep_valued(queries: Sample, metric: RankingMetric) -> Sample:
    """Return the queries that have a value, as ``y_true``, with a note on the others."""
    values = queries.columns[VALUE]
    known, notes = ~np.isnan(values), queries.notes
    if lost := int((~known).sum()):
        have = format_count(lost, "query has", "queries have")
        notes += (f"{have} no relevant item, and no {metric.name}: left out.",)
    queries = replace(queries, columns={"y_true": values}, notes=notes, units="queries")
    return queries.take(np.flatnonzero(known))


def check_valued(queries: Sample, pair: tuple[Hashable, Hashable]) -> None:
    """Raise UndefinedMetricError if a group has no query with a value."""
    for name, n in queries.sizes().items():
        if name in pair and not n:
            rule = f"above 0 for some item of group {shown(name)}"
            raise UndefinedMetricError("relevance", rule, "none")


def average_queries(metric: RankingMetric) -> Metric:
    """Return the mean over queries as a metric of rows."""
    return mean_metric(
        metric.full_name, metric.meaning, lambda y_true: y_true, kind=Kind.REGRESSION
    )


def name_queries(result: _Result) -> _Result:
    """Return a result whose counts of rows are called those of queries."""
    counts = {
        group: {
            "queries" if name == "rows" else name: n
            for name, n in one.items()
            if name in {"rows", "clusters"}
        }
        for group, one in result.counts.items()
    }
    return replace(result, counts=counts)
