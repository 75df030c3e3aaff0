"""From the questions of an audit to its rows: every comparison tested by itself."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from fairperm._utils.progress import counted
from fairperm.auditing.questions import compared, comparisons, named_in_audit, reference_of
from fairperm.errors import InputError, UndefinedMetricError, shown
from fairperm.hypothesis_tests.gap_test import GapTest, null_distributions
from fairperm.hypothesis_tests.margins.one_sided import ratio_interval
from fairperm.hypothesis_tests.omnibus import OmnibusTest, against_permutations
from fairperm.hypothesis_tests.plan import Plan
from fairperm.hypothesis_tests.results.audits import AuditRow, OmnibusRow
from fairperm.metrics.callables import CallableMetric

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence

    from fairperm.auditing.questions import Question
    from fairperm.data.table import Table
    from fairperm.engines.resampling.blocks import Resampling
    from fairperm.hypothesis_tests.results.gaps import PermutationTestResult
    from fairperm.metrics.definition import AnyMetric

T = TypeVar("T")

_ROWS_AT_ONCE = 1 << 23  # of tests that are held in memory until their labels are drawn


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

    def quietly(self) -> Resampling:
        """Return how to draw for one of many tests, which shows no bar of its own."""
        return replace(self.resampling, progress=False)


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


@dataclass(frozen=True, slots=True)
class _Task:
    """A question about two groups, before it is answered."""

    question: Question
    pair: tuple[Hashable, Hashable]

    def row(self, settings: Settings) -> AuditRow:
        """Return what is known of the answer beforehand."""
        sizes = compared(self.question, self.pair).sizes()
        return AuditRow(
            attribute=self.question.attribute,
            metric=self.question.label,
            groups=self.pair,
            sizes=(sizes[self.pair[0]], sizes[self.pair[1]]),
            result=None,
            margin=settings.margins.get(self.question.label),
        )

    def test(self, settings: Settings) -> GapTest:
        """Return the test, all but its permutations."""
        table = compared(self.question, self.pair)
        with named_in_audit():
            return GapTest.of(
                table,
                plan_of(self.question, table, self.pair, settings),
                groups=self.pair,
                stratum_weights=settings.stratum_weights,
                alternative=settings.alternative,
                resampling=settings.quietly(),
                n_bootstrap=settings.n_bootstrap,
                confidence_level=settings.confidence_level,
            )


def plan_of(
    question: Question, table: Table, groups: tuple[Hashable, ...], settings: Settings
) -> Plan:
    """Return the best test of the metric, unless the user asked for another."""
    return Plan.choose(
        question.metric.for_table(table, groups),
        settings.scheme,
        settings.variance,
        weighted=table.weight is not None,
        clustered=table.cluster is not None,
    )


def tested(asked: Sequence[Question], settings: Settings) -> list[Found]:
    """Test every comparison by itself; those of the same groups share what labels they draw."""
    tasks = list(_tasks(asked, settings))  # what does not fit is said before any work
    return _together(
        [task.question for task in tasks],
        [(task.question.attribute, task.pair) for task in tasks],
        lambda places: _tested({place: tasks[place] for place in places}, settings),
        settings.resampling.progress,
    )


def _tasks(asked: Sequence[Question], settings: Settings) -> Iterator[_Task]:
    alone = settings.n_attributes == 1
    references: dict[str, Hashable] = {}  # the same for all metrics, though rows be missing in some
    for question in asked:
        reference = references.get(question.attribute)
        if settings.compare == "reference" and reference not in question.table.groups:
            given = settings.reference
            reference = reference_of(question.table, question.attribute, given, alone=alone)
            references[question.attribute] = reference
        for pair in comparisons(question, settings.compare, reference):
            plan = plan_of(question, compared(question, pair), pair, settings)
            _check(plan.metric, question.label, settings)
            yield _Task(question, pair)


def _together(
    asked: Sequence[Question],
    keys: Sequence[object],
    answered: Callable[[list[int]], Iterator[Mapping[int, T]]],
    progress: bool | None,
) -> list[T]:
    """Answer questions of the same key together, as many as fit into memory; two steps for each."""
    alike: dict[object, list[int]] = {}
    for place, key in enumerate(keys):
        alike.setdefault(key, []).append(place)
    batches = (batch for places in alike.values() for batch in _batches(places, asked))
    steps = (step for batch in batches for step in answered(batch))
    answers: dict[int, T] = {}
    for step in counted(steps, 2 * len(asked), progress):
        answers |= step
    return [answers[place] for place in range(len(asked))]


def _batches(places: Sequence[int], asked: Sequence[Question]) -> Iterator[list[int]]:
    batch: list[int] = []
    n_rows = 0
    for place in places:
        n_rows += len(asked[place].table.count)
        if batch and n_rows > _ROWS_AT_ONCE:
            yield batch
            batch, n_rows = [], len(asked[place].table.count)
        batch.append(place)
    yield batch


def _check(metric: AnyMetric, label: str, settings: Settings) -> None:
    """Refuse a direction for what has none, and a margin that no gap goes beyond."""
    if len(metric.parts) > 1 and settings.alternative != "two-sided":
        hint = "A joint test has no direction; audit its parts."
        rule = f"'two-sided' for {metric.name}"
        raise InputError("alternative", rule, settings.alternative, hint)
    margin, span = settings.margins.get(label, 0.0), max(part.span for part in metric.parts)
    if margin >= span:
        hint = "Rates are numbers from 0 to 1, not percentages." if span == 1 else ""
        raise InputError("margin", f"below {span:g} for {label}", margin, hint)


def _tested(tasks: Mapping[int, _Task], settings: Settings) -> Iterator[dict[int, Found]]:
    """Take two steps for each comparison: the gap, then what permutations say of it."""
    rows: dict[int, AuditRow] = {}
    tests: dict[int, GapTest] = {}
    for place, task in tasks.items():
        rows[place] = task.row(settings)
        try:
            tests[place] = task.test(settings)
        except UndefinedMetricError as error:
            rows[place] = replace(rows[place], verdict="too small", reason=str(error))
        yield {}
    with named_in_audit():
        nulls = null_distributions([*tests.values()], settings.quietly())
    for (place, test), null in zip(tests.items(), nulls, strict=True):
        rows[place] = _with_result(rows[place], test.result(null), settings)
    for place, row in rows.items():
        yield {place: Found(row, tasks[place].question)}


def _with_result(row: AuditRow, result: PermutationTestResult, settings: Settings) -> AuditRow:
    ratio, interval = ratio_interval(result) or (None, None)
    row = replace(row, result=result, ratio=ratio, ratio_interval=interval)
    few = settings.min_group_size
    small = [
        f"{shown(group)} has {size:,} rows"
        for group, size in zip(row.groups, row.sizes, strict=True)
        if size < few
    ]
    if not small:
        return row
    reason = f"{' and '.join(small)}, fewer than the {few:,} asked for."
    return replace(row, verdict="too small", reason=reason)


def omnibus(
    asked: Sequence[Question], found: Sequence[Found], settings: Settings
) -> list[OmnibusRow]:
    """Test for every question all groups at once that are large enough, if there are three."""
    return _together(
        asked,
        [question.attribute for question in asked],
        lambda places: _omnibus({place: asked[place] for place in places}, found, settings),
        settings.resampling.progress,
    )


def _omnibus(
    asked: Mapping[int, Question], found: Sequence[Found], settings: Settings
) -> Iterator[dict[int, OmnibusRow]]:
    """Take two steps for each question: the statistic, then what permutations say of it."""
    rows: dict[int, OmnibusRow] = {}
    tests: dict[int, OmnibusTest] = {}
    for place, question in asked.items():
        rows[place] = OmnibusRow(attribute=question.attribute, metric=question.label, result=None)
        try:
            tests[place] = _omnibus_test(question, judged_groups(question, found), settings)
        except InputError as error:  # what two groups can be asked, many may not
            rows[place] = replace(rows[place], reason=str(error))
        yield {}
    for places in _functions_apart(tests):
        try:
            results = against_permutations([tests[one] for one in places], settings.quietly())
        except InputError as error:  # of a function, which failed in a permutation
            rows |= {one: replace(rows[one], reason=str(error)) for one in places}
            continue
        for place, result in zip(places, results, strict=True):
            rows[place] = replace(rows[place], result=result)
    for place, row in rows.items():
        yield {place: row}


def _functions_apart(tests: Mapping[int, OmnibusTest]) -> list[list[int]]:
    functions = [
        place for place, test in tests.items() if isinstance(test.plan.metric, CallableMetric)
    ]
    others = [place for place in tests if place not in functions]
    return [others, *([place] for place in functions)]


def _omnibus_test(
    question: Question, groups: tuple[Hashable, ...], settings: Settings
) -> OmnibusTest:
    """Return the test of these groups, all but its permutations; say so if there is none."""
    if len(groups) < 3:
        raise InputError(f"{len(groups)} groups are large enough; it takes three.")
    if settings.resampling.n_resamples == 0:
        raise InputError("It takes permutations, and n_resamples is 0.")
    return OmnibusTest.of(
        question.table,
        plan_of(question, question.table, groups, settings),
        groups=groups,
        stratum_weights=settings.stratum_weights,
        resampling=settings.quietly(),
        confidence_level=settings.confidence_level,
    )


def judged_groups(question: Question, found: Sequence[Found]) -> tuple[Hashable, ...]:
    """Return the groups that some verdict of this question is about."""
    judged = {
        group
        for one in found
        if one.question is question and one.is_judged
        for group in one.row.groups
    }
    return tuple(group for group in question.table.groups if group in judged)
