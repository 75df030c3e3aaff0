"""Notes and errors on groups that are too small for a reliable standard error."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeGuard

import numpy as np

from fairperm._utils.formatting import format_count
from fairperm.errors import Note, Shown, UndefinedMetricError, argument, shown
from fairperm.metrics.definition import Scheme, by_part
from fairperm.metrics.ranks import placements

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from fairperm.hypothesis_tests.comparison import Comparison
    from fairperm.hypothesis_tests.plan import Plan
    from fairperm.metrics.definition import Metric
    from fairperm.metrics.ranks import RankMetric

    Array = NDArray[np.float64]

ENOUGH = 20
ENOUGH_WITHIN_LABEL = 10  # for an AUC whose permutations keep each group's positives
_FAR_APART = 2.0  # standard deviations between mean outcomes
_ROUNDING = 1e-12  # relative to the metric's size: smaller influences are rounding errors


def notes(comparison: Comparison, plan: Plan, *, limit: bool = False) -> Iterator[str]:
    """Yield a note for every group that is too small for a reliable standard error.

    Rates and F1 of plain rows have none: their default test is exact. With weights or clusters,
    and in the normal ``limit``, it is not.
    """
    asymptotic = limit or plan.weighted or plan.clustered
    within_label = plan.scheme == Scheme.WITHIN_LABEL and not asymptotic
    enough = ENOUGH_WITHIN_LABEL if plan.metric.is_rank and within_label else ENOUGH
    unit = "row" if comparison.rows.cluster is None else "cluster"
    for metric, rows in effective_rows(comparison, rates=asymptotic).items():
        for group, n in zip(comparison.groups, rows.tolist(), strict=True):
            if n < enough:
                few = f"No {unit}"
                if n:  # 19.9 is fewer than 20
                    few = f"Only about {format_count(min(max(round(n), 1), enough - 1), unit)}"
                yield (
                    f"{few} of group {shown(group)} can change {metric}: with fewer than {enough} "
                    "its standard error is unreliable, and the test may reject too often."
                )


def note_outcomes_apart(comparison: Comparison, alternative: str) -> list[str]:
    """Return a note if outcomes of the groups are too far apart for a one-sided test of R².

    Permuted groups mix the outcomes of both, and their R² is then skewed in another way.
    """
    if comparison.metric.name != "r2_score" or alternative == "two-sided":
        return []
    rows = comparison.units()
    _, outcomes, squares, n = (
        np.bincount(rows.group, rows.count * column, len(comparison.groups))
        for column in rows.contributions.T
    )
    means = outcomes / n
    apart = np.ptp(means) / np.sqrt(max(squares / n - means**2))
    if not apart > _FAR_APART:
        return []
    return [
        Note(
            f"The groups' mean outcomes are {apart:.1f} standard deviations apart: a one-sided "
            "test of r2_score may then reject too often. "
            f"Use {argument('alternative', 'two-sided')}."
        )
    ]


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
    """Return the effective number of rows behind each group's closed-form variance, by part.

    It is (Σψ²)²/Σψ⁴ of the influences ψ of rows, or of clusters: their number if all have the same
    influence, and about the number of the rarer outcome if there are two. Without variance it is 0.
    Rates are included only with ``rates``.
    """
    parts = comparison.parts
    if comparison.metric.is_rank:
        return {comparison.metric.name: _effective_placements(comparison)}
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
    return effective_number(moved, count)


def _effective_placements(comparison: Comparison) -> Array:
    """Return the effective number of rows or clusters behind the AUC of each group.

    A row's influence is its weight times its structural component minus the AUC, over the weight of
    its label. Those of a cluster's rows are added up, and strata count by their shares.
    """
    rows, n_groups = comparison.units(), len(comparison.groups)
    weight = np.ones(len(rows.count)) if rows.weight is None else rows.weight
    place = rows.stratum.astype(np.intp) * n_groups + rows.group
    sizes = np.bincount(place, rows.count, rows.n_strata * n_groups).reshape(-1, n_groups)
    with np.errstate(divide="ignore"):
        share = 1 / (1 / sizes).sum(axis=1) if comparison.weights is None else comparison.weights
    order = np.argsort(place, kind="stable")
    influences: list[list[Array]] = [[] for _ in range(n_groups)]
    counts: list[list[Array]] = [[] for _ in range(n_groups)]
    for members in np.split(order, np.flatnonzero(np.diff(place[order])) + 1):
        stratum, group = divmod(int(place[members[0]]), n_groups)
        if share[stratum] == 0:
            continue
        count = rows.count[members].astype(float)
        difference, total = placements(count * weight[members], rows.contributions[members])
        largest = share[stratum] * weight[members] / total
        influence = largest * difference
        if rows.cluster is not None:
            cluster = np.unique(rows.cluster[members], return_inverse=True)[1].ravel()
            influence = np.bincount(cluster, count * influence)
            influence[np.abs(influence) <= _ROUNDING * np.bincount(cluster, count * largest)] = 0.0
            count = np.ones(len(influence))
        influences[group].append(influence)
        counts[group].append(count)
    return np.array(
        [
            effective_number(np.abs(np.concatenate(influence)), np.concatenate(count))
            for influence, count in zip(influences, counts, strict=True)
        ]
    )


def effective_number(moved: Array, count: Array) -> float:
    """Return (Σψ²)²/Σψ⁴ of the sizes of influences; 0 if all are 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        moved /= moved.max(initial=0.0)  # then nothing overflows
        squares = np.square(moved, out=moved)
        effective = (count @ squares) ** 2 / (count @ np.square(squares))
    return float(effective) if np.isfinite(effective) else 0.0
