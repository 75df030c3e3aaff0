"""Notes and errors on groups that are too small for a reliable standard error."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeGuard

import numpy as np

from fairperm._utils.formatting import format_count
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
_ROUNDING = 1e-12  # relative to the metric's size: smaller influences are rounding errors


def notes(comparison: Comparison, plan: Plan, *, limit: bool = False) -> Iterator[str]:
    """Yield a note for every group that is too small for a reliable standard error.

    Rates and F1 of plain rows have none: their default test is exact. With weights or clusters,
    and in the normal ``limit``, it is not.
    """
    if plan.metric.is_rank:
        yield from _few_of_a_label(comparison)
    else:
        rates = limit or plan.weighted or plan.clustered
        yield from _few_rows_matter(comparison, rates=rates)


def missing_error(comparison: Comparison, plan: Plan) -> UndefinedMetricError:
    """Return the error for groups without a studentized gap."""
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
    """Return the note on a standard error of zero."""
    return (
        f"The standard error of {metric} is zero in this sample, which therefore does not show how "
        "far chance goes: the confidence interval is meaningless."
    )


def labels(comparison: Comparison) -> NDArray[np.int64]:
    """Return the numbers of negatives and positives in each group."""
    rows, n_groups = comparison.rows, len(comparison.groups)
    kind = 2 * rows.group.astype(np.intp) + (rows.contributions[:, 0] > 0)
    counts = np.bincount(kind, rows.count, 2 * n_groups)
    return counts.astype(np.int64).reshape(n_groups, 2)


def effective_rows(comparison: Comparison, *, rates: bool = False) -> dict[str, Array]:
    """Return the effective number of rows behind each group's delta-method variance, by part.

    It is (Σψ²)²/Σψ⁴ of the rows' influences ψ: the number of rows if all have the same influence,
    and about the number of the rarer outcome if there are two. Without variance it is 0. Rates are
    included only with ``rates``.
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
        moved /= moved.max(initial=0.0)  # then nothing overflows
        squares = np.square(moved, out=moved)
        effective = (count @ squares) ** 2 / (count @ np.square(squares))
    return float(effective) if np.isfinite(effective) else 0.0


def _few_of_a_label(comparison: Comparison) -> Iterator[str]:
    for group, counts in zip(comparison.groups, labels(comparison).tolist(), strict=True):
        for label, n in zip(("positives", "negatives"), reversed(counts), strict=True):
            if n < ENOUGH:
                yield (
                    f"Group {shown(group)} has {n} {label}: with fewer than {ENOUGH} "
                    "the test of the AUC may reject too often."
                )


def _few_rows_matter(comparison: Comparison, *, rates: bool) -> Iterator[str]:
    unit = "row" if comparison.rows.cluster is None else "cluster"
    for metric, rows in effective_rows(comparison, rates=rates).items():
        for group, n in zip(comparison.groups, rows.tolist(), strict=True):
            if n < ENOUGH:
                few = f"No {unit}"
                if n:  # 19.9 is fewer than 20
                    few = f"Only about {format_count(min(max(round(n), 1), ENOUGH - 1), unit)}"
                yield (
                    f"{few} of group {shown(group)} can change {metric}: with fewer than {ENOUGH} "
                    "its standard error is unreliable, and the test may reject too often."
                )
