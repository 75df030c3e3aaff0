"""From the questions of an audit to its rows: tests, adjusted p-values, verdicts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fairperm._audit_data import AuditRow, OmnibusRow
from fairperm._callable import CallableMetric
from fairperm._gap_test import compare as compare_two
from fairperm._margins import margin_pvalues, ratio_interval
from fairperm._max_t import Hypothesis, max_t
from fairperm._multiplicity import adjusted
from fairperm._plan import Plan
from fairperm._progress import counted
from fairperm._questions import comparisons, reference_of
from fairperm._rank import RankMetric
from fairperm.errors import InputError, UndefinedMetricError, problem, shown
from fairperm.metrics import settled
from fairperm.omnibus import compare_all
from fairperm.planning import detectable_gap

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Mapping, Sequence

    from fairperm._draws import Resampling
    from fairperm._questions import Question
    from fairperm._sample import Table
    from fairperm.results import PermutationTestResult

_POWER = 0.8


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The options of an audit, checked."""

    compare: str
    reference: object
    adjust: str | None
    alpha: float
    margins: Mapping[str, float]
    min_group_size: int
    scheme: object
    variance: object
    alternative: str
    stratum_weights: object
    n_bootstrap: int
    confidence_level: float
    resampling: Resampling
    n_attributes: int


@dataclass(frozen=True, slots=True)
class Found:
    """One comparison, tested by itself: the row as far as it is known, and its question."""

    row: AuditRow
    question: Question

    @property
    def is_judged(self) -> bool:
        """Tell whether the groups are large enough for a verdict."""
        return self.row.verdict == ""

    def hypothesis(self, alternative: str) -> tuple[object, ...]:
        """Return what is tested: a metric and its complement are one, but for their direction."""
        row, metric = self.row, self.question.metric
        name = row.metric
        if metric.complement is not None and alternative == "two-sided":
            name = min(metric.name, metric.complement)
        return row.attribute, row.groups, name


def plan_of(
    question: Question, table: Table, groups: tuple[Hashable, ...], settings: Settings
) -> Plan:
    """Return the best test of the metric, unless the user asked for another."""
    return Plan.choose(
        settled(question.metric, table, groups),
        settings.scheme,
        settings.variance,
        weighted=table.weight is not None,
        clustered=table.cluster is not None,
    )


def tested(asked: Sequence[Question], settings: Settings) -> list[Found]:
    """Test every comparison by itself."""
    tasks = list(_tasks(asked, settings))
    steps = counted((_tested(*task, settings) for task in tasks), len(tasks), _shown(settings))
    return list(steps)


def _tasks(
    asked: Sequence[Question], settings: Settings
) -> Iterator[tuple[Question, Table, tuple[Hashable, Hashable]]]:
    alone = settings.n_attributes == 1
    for question in asked:
        table = question.table
        reference = None
        if settings.compare == "reference":
            reference = reference_of(table, question.attribute, settings.reference, alone=alone)
        for one, pair in comparisons(table, settings.compare, reference):
            plan_of(question, one, pair, settings)  # what does not fit is said before any work
            yield question, one, pair


def _shown(settings: Settings) -> bool | None:
    return settings.resampling.progress


def _tested(
    question: Question, table: Table, pair: tuple[Hashable, Hashable], settings: Settings
) -> Found:
    sizes = table.sizes()
    row = AuditRow(
        attribute=question.attribute,
        metric=question.label,
        groups=pair,
        sizes=(sizes[pair[0]], sizes[pair[1]]),
        result=None,
        margin=settings.margins.get(question.label),
    )
    try:
        result = compare_two(
            table,
            plan_of(question, table, pair, settings),
            groups=pair,
            stratum_weights=settings.stratum_weights,
            alternative=settings.alternative,
            resampling=replace(settings.resampling, progress=False),
            n_bootstrap=settings.n_bootstrap,
            confidence_level=settings.confidence_level,
        )
    except UndefinedMetricError as error:
        return Found(replace(row, verdict="too small", reason=str(error)), question)
    ratio, interval = ratio_interval(result) or (None, None)
    row = replace(row, result=result, ratio=ratio, ratio_interval=interval)
    small = [group for group in pair if sizes[group] < settings.min_group_size]
    if small:
        named = " and ".join(f"{shown(group)} has {sizes[group]:,} rows" for group in small)
        reason = f"{named}, fewer than the {settings.min_group_size:,} asked for."
        row = replace(row, verdict="too small", reason=reason)
    return Found(row, question)


def omnibus(
    asked: Sequence[Question], found: Sequence[Found], settings: Settings
) -> list[OmnibusRow]:
    """Test for every question all groups at once that are large enough, if there are three."""
    return list(
        counted((_omnibus(one, found, settings) for one in asked), len(asked), _shown(settings))
    )


def _omnibus(question: Question, found: Sequence[Found], settings: Settings) -> OmnibusRow:
    row = OmnibusRow(attribute=question.attribute, metric=question.label, result=None)
    groups = judged_groups(question, found)
    if len(groups) < 3:
        return replace(row, reason=f"{len(groups)} groups are large enough; it takes three.")
    try:
        result = compare_all(
            question.table,
            plan_of(question, question.table, groups, settings),
            groups=groups,
            stratum_weights=settings.stratum_weights,
            resampling=replace(settings.resampling, progress=False),
            confidence_level=settings.confidence_level,
        )
    except InputError as error:  # what two groups can be asked, many may not
        return replace(row, reason=str(error))
    return replace(row, result=result)


def judged_groups(question: Question, found: Sequence[Found]) -> tuple[Hashable, ...]:
    """Return the groups that some verdict of this question is about."""
    judged = {
        group
        for one in found
        if one.question is question and one.is_judged
        for group in one.row.groups
    }
    return tuple(group for group in question.table.groups if group in judged)


def with_verdicts(found: Sequence[Found], settings: Settings) -> tuple[list[AuditRow], int]:
    """Return the rows with adjusted p-values and verdicts, and the number of hypotheses."""
    judged = [one for one in found if one.is_judged]
    keys = [one.hypothesis(settings.alternative) for one in judged]
    n_hypotheses = len(set(keys))
    pvalues = _adjusted_pvalues(judged, keys, settings)
    equivalence = _adjusted_equivalence(judged, keys, settings)
    level = settings.alpha if settings.adjust is None else settings.alpha / max(n_hypotheses, 1)
    rows = []
    at = 0
    for one in found:
        row = one.row
        if row.result is not None:
            row = replace(row, detectable_gap=detectable_gap(row.result, level, _POWER))
        if one.is_judged:
            row = replace(
                row, adjusted_pvalue=pvalues[at], equivalence_pvalue=equivalence[keys[at]]
            )
            row = _judged(row, settings)
            at += 1
        rows.append(row)
    return rows, n_hypotheses


def _adjusted_pvalues(
    judged: Sequence[Found], keys: Sequence[tuple[object, ...]], settings: Settings
) -> list[float]:
    raw = {key: _result(one).pvalue for one, key in zip(judged, keys, strict=True)}
    if settings.adjust == "maxt":
        by_draws = _max_t(judged, keys, settings)
        return [max(by_draws[key], raw[key]) for key in keys]
    values = adjusted(np.array(list(raw.values())), settings.adjust)
    by_key = dict(zip(raw, values.tolist(), strict=True))
    return [by_key[key] for key in keys]


def _adjusted_equivalence(
    judged: Sequence[Found], keys: Sequence[tuple[object, ...]], settings: Settings
) -> dict[tuple[object, ...], float | None]:
    """Return the p-values of the margins, adjusted as the others are (Holm for joint draws)."""
    raw: dict[tuple[object, ...], float] = {}
    for one, key in zip(judged, keys, strict=True):
        if one.row.margin is not None and one.row.result is not None:
            if len(one.question.metric.parts) > 1 or one.row.result.variance is None:
                continue  # several gaps have no one margin; without an error there is no test
            tests = margin_pvalues(one.row.result, one.row.margin)
            raw[key] = max(test.pvalue for test in tests)
    method = "holm" if settings.adjust == "maxt" else settings.adjust
    values = adjusted(np.array(list(raw.values())), method)
    by_key = dict(zip(raw, values.tolist(), strict=True))
    return {key: by_key.get(key) for key in keys}


def _result(one: Found) -> PermutationTestResult:
    if one.row.result is None:
        raise ValueError("a judged row has a result")
    return one.row.result


def _judged(row: AuditRow, settings: Settings) -> AuditRow:
    """Return the row with its verdict."""
    alpha, margin = settings.alpha, row.margin
    p = row.adjusted_pvalue
    gap = row.difference
    if p is None or gap is None:
        return row
    which = "p" if settings.adjust is None else "adjusted p"
    rejected = f"{which} {p:.4g} is at most {alpha:g}"
    if p <= alpha and (margin is None or abs(gap) > margin):
        beyond = "" if margin is None else f", and the gap is beyond the margin of {margin:g}"
        return replace(row, verdict="disparity", reason=f"{rejected}{beyond}.")
    if margin is not None and row.equivalence_pvalue is not None:
        within = f"{which} {row.equivalence_pvalue:.4g} of a gap beyond the margin of {margin:g}"
        if row.equivalence_pvalue <= alpha:
            return replace(row, verdict="equivalent", reason=f"{within} is at most {alpha:g}.")
    if p <= alpha:
        reason = f"{rejected}, but the gap is not beyond the margin of {margin:g}."
    else:
        reason = (
            f"{which} {p:.4g} is above {alpha:g}: chance alone could make such a gap. "
            "That is no evidence that there is none."
        )
    return replace(row, verdict="inconclusive", reason=reason)


def _max_t(
    judged: Sequence[Found], keys: Sequence[tuple[object, ...]], settings: Settings
) -> dict[tuple[object, ...], float]:
    """Return the p-values by joint draws for each attribute, times the number of attributes."""
    by_attribute: dict[str, list[tuple[Found, tuple[object, ...]]]] = {}
    for one, key in zip(judged, keys, strict=True):
        by_attribute.setdefault(one.row.attribute, []).append((one, key))
    result: dict[tuple[object, ...], float] = {}
    for pairs in by_attribute.values():
        distinct = {key: one for one, key in pairs}
        values = _max_t_of_attribute(list(distinct.values()), settings)
        for key, value in zip(distinct, values, strict=True):
            result[key] = min(1.0, value * len(by_attribute))
    return result


def _max_t_of_attribute(found: Sequence[Found], settings: Settings) -> list[float]:
    table = found[0].question.reading
    places: dict[str, tuple[int, ...]] = {}
    parts: list[Any] = []
    for one in found:
        if one.row.metric not in places:
            own = one.question.metric.parts
            places[one.row.metric] = tuple(range(len(parts), len(parts) + len(own)))
            parts.extend(own)
    of_rest = settings.compare == "rest" and len(table.groups) > 2
    groups = table.groups if of_rest else _groups_of(found, table)
    hypotheses = [
        Hypothesis(
            places[one.row.metric], one.row.groups[0], None if of_rest else one.row.groups[1]
        )
        for one in found
    ]
    values: list[float] = max_t(
        table,
        parts,
        hypotheses,
        groups,
        stratum_weights=settings.stratum_weights,
        resampling=settings.resampling,
    ).tolist()
    return values


def _groups_of(found: Sequence[Found], table: Table) -> tuple[Hashable, ...]:
    judged = {group for one in found for group in one.row.groups}
    return tuple(group for group in table.groups if group in judged)


def check_max_t(asked: Sequence[Question], settings: Settings) -> None:
    """Refuse joint draws where there are none."""
    hint = "Use adjust='holm'."
    if settings.alternative != "two-sided":
        rule = f"another for alternative={settings.alternative!r}"
        raise InputError(problem("adjust", rule, "maxt", hint))
    if settings.variance is None:
        raise InputError(problem("adjust", "another for variance=None", "maxt", hint))
    for question in asked:
        metric = question.metric
        closed = not isinstance(metric, CallableMetric) and all(p.smooth for p in metric.parts)
        if not closed or not metric.parts:
            rule = f"another for {metric.name}, which has no closed form of its variance"
            raise InputError(problem("adjust", rule, "maxt", hint))
        ranked = isinstance(metric, RankMetric)
        if ranked and (question.table.weight is not None or question.table.cluster is not None):
            rule = f"another for {metric.name} with weights or clusters"
            raise InputError(problem("adjust", rule, "maxt", hint))
        if question.reading is not asked[0].reading and question.attribute == asked[0].attribute:
            rule = f"another for {asked[0].label} and {question.label}, which are read differently"
            raise InputError(problem("adjust", rule, "maxt", hint))
