"""From the questions of an audit to its rows: every comparison tested by itself."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from fairperm._audit_data import AuditRow, OmnibusRow
from fairperm._callable import CallableMetric
from fairperm._gap_test import compare as compare_two
from fairperm._margins import ratio_interval
from fairperm._plan import Plan
from fairperm._progress import counted
from fairperm._questions import comparisons, named_in_audit, reference_of
from fairperm.errors import InputError, UndefinedMetricError, problem, shown
from fairperm.metrics import settled
from fairperm.omnibus import compare_all

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Mapping, Sequence

    from fairperm._draws import Resampling
    from fairperm._questions import Question
    from fairperm._sample import Table
    from fairperm.metrics import AnyMetric


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
        """Return what is tested: a metric and its complement are one, but for their direction.

        A metric asked for under two names is one too.
        """
        row, metric = self.row, self.question.metric
        what: object = metric.name
        if isinstance(metric, CallableMetric):
            what = id(metric.function), metric.columns
        elif metric.complement is not None and alternative == "two-sided":
            what = min(metric.name, metric.complement)
        return row.attribute, row.groups, what


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
    n_tasks = sum(1 for _ in _tasks(asked, settings))  # what does not fit is said before any work
    steps = (_tested(*task, settings) for task in _tasks(asked, settings))
    return list(counted(steps, n_tasks, settings.resampling.progress))


def _tasks(
    asked: Sequence[Question], settings: Settings
) -> Iterator[tuple[Question, Table, tuple[Hashable, Hashable]]]:
    alone = settings.n_attributes == 1
    references: dict[str, Hashable] = {}  # the same for all metrics, though rows be missing in some
    for question in asked:
        reference = references.get(question.attribute)
        if settings.compare == "reference" and reference not in question.table.groups:
            given = settings.reference
            reference = reference_of(question.table, question.attribute, given, alone=alone)
            references[question.attribute] = reference
        for one, pair in comparisons(question, settings.compare, reference):
            _check(plan_of(question, one, pair, settings).metric, question.label, settings)
            yield question, one, pair


def _check(metric: AnyMetric, label: str, settings: Settings) -> None:
    """Refuse a direction for what has none, and a margin that no gap goes beyond."""
    if len(metric.parts) > 1 and settings.alternative != "two-sided":
        hint = "A joint test has no direction; audit its parts."
        rule = f"'two-sided' for {metric.name}"
        raise InputError(problem("alternative", rule, settings.alternative, hint))
    margin, span = settings.margins.get(label, 0.0), max(part.span for part in metric.parts)
    if margin >= span:
        hint = "Rates are numbers from 0 to 1, not percentages." if span == 1 else ""
        raise InputError(problem("margin", f"below {span:g} for {label}", margin, hint))


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
        with named_in_audit():
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
    steps = (_omnibus(one, found, settings) for one in asked)
    return list(counted(steps, len(asked), settings.resampling.progress))


def _omnibus(question: Question, found: Sequence[Found], settings: Settings) -> OmnibusRow:
    row = OmnibusRow(attribute=question.attribute, metric=question.label, result=None)
    groups = judged_groups(question, found)
    if len(groups) < 3:
        return replace(row, reason=f"{len(groups)} groups are large enough; it takes three.")
    if settings.resampling.n_resamples == 0:
        return replace(row, reason="It takes permutations, and n_resamples is 0.")
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
