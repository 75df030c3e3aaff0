"""Whether groups have enough of what a metric counts for its standard error to be relied on."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeGuard

import numpy as np

from fairperm.errors import Shown, UndefinedMetricError, shown
from fairperm.metrics.definition import by_part

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from fairperm.hypothesis_tests.comparison import Comparison
    from fairperm.hypothesis_tests.plan import Plan
    from fairperm.metrics.definition import Metric
    from fairperm.metrics.ranks import RankMetric

    Array = NDArray[np.float64]

ENOUGH = 20
_ROUNDING = 1e-12  # of the metric's size: what less a row moves it by is rounding


def notes(comparison: Comparison, plan: Plan, *, limit: bool = False) -> Iterator[str]:
    """Yield a note for every group that is too small for the metric's error to be judged well.

    Rates of plain rows have none, and nor has F1: their default test is exact. With weights or
    clusters, and in the normal ``limit``, it is not.
    """
    if plan.metric.is_rank:
        yield from _few_of_a_label(comparison)
    else:
        rates = limit or plan.weighted or plan.clustered
        yield from _few_rows_matter(comparison, rates=rates)


def missing_error(comparison: Comparison, plan: Plan) -> UndefinedMetricError:
    """Return the error of groups with which no studentized gap can be made."""
    name = plan.metric.name
    if plan.is_chosen:
        rule = f"one whose standard error of {name} is defined, and not zero"
        closed = plan.has_closed_form
        hint = "The groups are too small for it." if closed else "Use 'auto', or larger groups."
        return UndefinedMetricError("variance", rule, plan.variance, hint)
    sizes = [counts["rows"] for counts in comparison.totals().values()]
    least, few = int(np.argmin(sizes)), ""
    if plan.metric.is_rank:
        of_label = labels(comparison)
        least = int(of_label.min(axis=1).argmin())
        few = f", {of_label[least, 1]:,} of them positive"
    group = f"group {shown(comparison.groups[least])} of {sizes[least]:,} rows{few}"
    rule = "one whose standard error is defined, and not zero"
    hint = "The groups are too small for it, or do not vary in it."
    return UndefinedMetricError("metric", rule, Shown(f"{name} with {group}"), hint)


def note_zero_error(metric: str) -> str:
    """Return the note of a gap that is said to have no error."""
    return (
        f"The standard error of {metric} is zero in this sample, which then says nothing of how "
        "far chance goes: the confidence interval says nothing either."
    )


def labels(comparison: Comparison) -> NDArray[np.int64]:
    """Return the numbers of negatives and positives that an AUC has, by group and label."""
    rows, n_groups = comparison.rows, len(comparison.groups)
    kind = 2 * rows.group + (rows.contributions[:, 0] > 0)
    counts = np.bincount(kind, rows.count, 2 * n_groups)
    return counts.astype(np.int64).reshape(n_groups, 2)


def effective_rows(comparison: Comparison, *, rates: bool = False) -> dict[str, Array]:
    """Return on how many rows of each group a variance by the delta method rests, by part.

    It is (Σψ²)²/Σψ⁴ of the rows' influences ψ: the number of rows if all of them matter alike,
    and about that of the rarer outcome if there are two. No variance rests on none. Rates are left
    out unless they are asked for.
    """
    parts = comparison.parts
    if not any(_by_delta(part, rates=rates) for part in parts):
        return {}
    units, result = comparison.units(), {}
    members = [np.flatnonzero(units.group == group) for group in range(len(comparison.groups))]
    for part, place in by_part(parts):
        if _by_delta(part, rates=rates):
            u = units.contributions[:, place]
            result[part.name] = np.array(
                [_effective(part, u.take(i, axis=0), units.count[i].astype(float)) for i in members]
            )
    return result


def _by_delta(part: Metric | RankMetric, *, rates: bool) -> TypeGuard[Metric]:
    return part.has_totals and part.smooth and (rates or not part.has_denominator)


def _effective(part: Metric, u: Array, count: Array) -> float:
    total = count @ u
    with np.errstate(divide="ignore", invalid="ignore"):
        gradient = part.gradient(total)
        influence = u @ gradient
        size = part.span if np.isfinite(part.span) else np.abs(gradient * total).sum()
        moved = np.abs(influence, out=influence)
        moved[moved * count.sum() <= _ROUNDING * size] = 0.0
        moved /= moved.max(initial=0.0)  # so that nothing overflows
        squares = np.square(moved, out=moved)
        effective = (count @ squares) ** 2 / (count @ np.square(squares))
    return float(effective) if np.isfinite(effective) else 0.0


def _few_of_a_label(comparison: Comparison) -> Iterator[str]:
    for group, counts in zip(comparison.groups, labels(comparison).tolist(), strict=True):
        for label, n in zip(("positives", "negatives"), reversed(counts), strict=True):
            if n < ENOUGH:
                yield (
                    f"Group {shown(group)} has {n} {label}: with fewer than {ENOUGH} "
                    "the test of the AUC may reject more often than it should."
                )


def _few_rows_matter(comparison: Comparison, *, rates: bool) -> Iterator[str]:
    unit = "rows" if comparison.rows.cluster is None else "clusters"
    for metric, rows in effective_rows(comparison, rates=rates).items():
        for group, n in zip(comparison.groups, rows.tolist(), strict=True):
            if n < ENOUGH:
                few = f"about {min(round(n), ENOUGH - 1)}" if n else "none"  # 19.9 is fewer
                only = " only" if n else ""
                yield (
                    f"The {metric} of group {shown(group)} varies with {few} of its {unit}{only}: "
                    f"with fewer than {ENOUGH} its standard error is uncertain, and the test may "
                    "reject more often than it should."
                )
