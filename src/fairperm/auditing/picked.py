"""The best or the worst group as the reference, and how far all groups are apart.

The data pick these groups. Every two groups are tested, and all pairs are adjusted for, so that
what is said holds whichever group it is.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fairperm.auditing.questions import Question
from fairperm.errors import InputError, Note, argument, shown
from fairperm.hypothesis_tests.base_rows import base_sizes
from fairperm.hypothesis_tests.comparison import Comparison
from fairperm.hypothesis_tests.margins.one_sided import ratio_interval
from fairperm.hypothesis_tests.plan import Plan
from fairperm.hypothesis_tests.results.audits import AuditRow, OmnibusRow, Spread
from fairperm.inference.null import agree
from fairperm.metrics.registry import is_lower_better

if TYPE_CHECKING:
    from fairperm.auditing.comparisons import ComparedPair, Settings

    Interval = tuple[float, float]

BEST, WORST = "best", "worst"
PICKED_NOTE = Note(
    f"The {argument('reference')} is picked by the data, for each metric: p-values and adjusted "
    "intervals allow for all pairs of groups."
)


def is_picked(reference: object) -> bool:
    """Whether the data are to pick the reference."""
    return isinstance(reference, str) and reference in {BEST, WORST}


def put_picked_last(question: Question, settings: Settings) -> list[Hashable]:
    """Return the groups of the question, of which the last is the best, or the worst."""
    # Groups too small for a verdict are picked only if all are. Raises InputError if a group has
    # that very name, or if the groups have no values to compare.
    word, table, metric = str(settings.reference), question.table, question.metric
    if word in table.groups:
        name = question.attribute
        raise InputError(
            f"{argument('reference', word)} is unclear: {shown(name)} has a group {shown(word)}. "
            f"Rename that group, or pass {shown({name: word})} (in a terminal {name}={word}) if "
            "it is the reference."
        )
    if metric.is_distance or metric.is_ranking or table.matched is not None:
        others = "distances, rankings and matched sets"
        raise InputError(f"{argument('reference', word)} cannot be used with {others}.")
    groups = table.groups
    plan = Plan.for_table(metric, table, groups, settings).with_permutations()
    if len(plan.metric.parts) != 1:
        raise InputError(
            f"{argument('reference', word)} cannot be used with {metric.name}, which has several "
            "gaps. Audit its parts."
        )
    comparison = Comparison.of(table, plan, groups, None).unstratified()
    found = comparison.engine(None, many=True).observed(settings.seed).value[0, 0, 0]
    values = dict(zip(groups, found.tolist(), strict=True))
    sizes = table.sizes()
    bases = {group: float(n) for group, n in sizes.items()}
    if settings.group_size_by == "metric":
        smallest = np.min([*base_sizes(comparison).values()], axis=0)
        bases = dict(zip(groups, smallest.tolist(), strict=True))
    sign = -1 if (word == BEST) == bool(is_lower_better(metric)) else 1

    def rank(group: Hashable) -> tuple[bool, bool, float, int]:
        value = values[group]
        is_defined = value == value
        large = bases[group] >= settings.min_group_size
        return is_defined, large, sign * value if is_defined else 0.0, sizes[group]

    picked = max(groups, key=rank)
    return [*(group for group in groups if group != picked), picked]


def keep_picked(
    rows: Sequence[AuditRow], pairs: Sequence[ComparedPair]
) -> tuple[list[AuditRow], list[ComparedPair]]:
    """Return the comparisons with the reference of each attribute and metric: the last group."""
    picked = {(row.attribute, row.metric): row.groups[1] for row in rows}
    both = zip(rows, pairs, strict=True)
    kept = [one for one in both if one[0].groups[1] == picked[one[0].attribute, one[0].metric]]
    return [row for row, _ in kept], [pair for _, pair in kept]


def add_spreads(
    omnibus: Sequence[OmnibusRow], pairs: Sequence[ComparedPair], settings: Settings
) -> Iterator[OmnibusRow]:
    """Yield the rows with the largest gap and the smallest ratio of all groups."""
    # only where every two of the groups that are judged were compared, in both directions
    judged: dict[tuple[str, str], list[ComparedPair]] = {}
    for pair in pairs:
        if pair.is_judged and pair.tested is not None:
            judged.setdefault((pair.row.attribute, pair.row.metric), []).append(pair)
    for row in omnibus:
        yield replace(row, spread=_spread(judged.get((row.attribute, row.metric), []), settings))


def _spread(pairs: Sequence[ComparedPair], settings: Settings) -> Spread | None:
    """Return how far the groups are apart; None unless every two have a gap with an interval.

    The largest gap is at least each gap's lower limit: any of K may fail, in either direction, so
    that they share half of the error. It is at most the largest of their upper limits, which only
    fails where that of the truly largest gap does. The same holds for ratios.
    """
    results = [pair.row.result for pair in pairs if pair.row.result is not None]
    groups = {group: result.values[group] for result in results for group in result.groups}
    k = len(groups)
    is_two_sided = settings.alternative in {"two-sided", "symmetric"}
    if k < 2 or 2 * len(results) < k * (k - 1) or not is_two_sided:
        return None
    if any(one.is_joint or one.variance is None for one in results):
        return None
    alpha = 1 - settings.confidence_level
    levels = 1 - alpha, 1 - alpha / (2 * len(results))
    far, near = ([_gap_interval(pair, level) for pair in pairs] for level in levels)
    widest = max(results, key=lambda one: abs(one.difference))
    highest, lowest = widest.groups if widest.difference >= 0 else widest.groups[::-1]
    ratio = ratio_range = None
    wide, narrow = ([_ratio_interval(one, level) for one in results] for level in levels)
    if all(one is not None for one in wide):
        ratio = min(min(r, 1 / r) if r else 0.0 for r, _ in filter(None, wide))
        low = min(_smaller(*ends) for _, ends in filter(None, wide))
        high = min(min(ends[1], _inverse(ends[0])) for _, ends in filter(None, narrow))
        ratio_range = min(low, ratio), max(min(high, 1.0), ratio)
    return Spread(
        groups=(highest, lowest),
        difference=abs(widest.difference),
        interval=(
            max(0.0, *(max(low, -high) for low, high in near)),
            max(max(high, -low) for low, high in far),
        ),
        ratio=ratio,
        ratio_interval=ratio_range,
    )


def _gap_interval(pair: ComparedPair, level: float) -> Interval:
    result: Any = pair.row.result
    assert pair.tested is not None  # noqa: S101
    interval, p = pair.tested.interval(level), result.pvalue
    return agree(interval, p, result.alternative, level, result.difference)


def _ratio_interval(result: Any, level: float) -> tuple[float, Interval] | None:
    return ratio_interval(replace(result, confidence_level=level))


def _smaller(low: float, high: float) -> float:
    return min(low, _inverse(high))


def _inverse(ratio: float) -> float:
    return 1 / ratio if ratio else np.inf
