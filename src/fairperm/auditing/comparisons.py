"""The tests of an audit: each pair of groups by itself, and all groups of an attribute at once."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar, cast

from fairperm._utils.checks import DIRECTIONS
from fairperm._utils.progress import show_progress
from fairperm.auditing.picked import is_picked, put_picked_last
from fairperm.auditing.questions import Question, check_two_groups, choose_reference
from fairperm.auditing.verdicts import flag_small_groups
from fairperm.data.arguments import Pairing
from fairperm.engines.resampling.blocks import Resampling
from fairperm.errors import InputError, UndefinedMetricError, argument
from fairperm.hypothesis_tests.distances import DistanceTest, expected_distance
from fairperm.hypothesis_tests.groups import GapTest, make_test
from fairperm.hypothesis_tests.margins.one_sided import ratio_interval
from fairperm.hypothesis_tests.matched import ManyMatchedTest, MatchedTest, choose_matched
from fairperm.hypothesis_tests.omnibus import OmnibusTest
from fairperm.hypothesis_tests.pairs import list_pairs
from fairperm.hypothesis_tests.plan import Options, Plan
from fairperm.hypothesis_tests.proxies.gap import ProxyTest, choose_proxied
from fairperm.hypothesis_tests.rankings.items import ItemsTest
from fairperm.hypothesis_tests.rankings.rankings import check_valued, name_queries
from fairperm.hypothesis_tests.rates import RateTest
from fairperm.hypothesis_tests.results.audits import AuditRow, OmnibusRow
from fairperm.hypothesis_tests.results.gaps import PermutationTestResult
from fairperm.hypothesis_tests.run import Tested, run
from fairperm.metrics.definition import AnyMetric
from fairperm.metrics.distances import Distance
from fairperm.metrics.rankings import RankingMetric
from fairperm.metrics.registry import hypothesis_of

PairTest = RateTest | GapTest | MatchedTest | ProxyTest | ItemsTest

T = TypeVar("T")

_ROWS_AT_ONCE = 1 << 23  # of the tests that are held in memory until their labels are drawn


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings(Options):
    """The options of an audit, checked."""

    compare: Pairing
    reference: object
    adjust: str | None
    family: str
    alpha: float
    margins: Mapping[str, float]
    ratios: Mapping[str, float]
    min_group_size: int
    group_size_by: str
    n_attributes: int


@dataclass(frozen=True, slots=True)
class Pair:
    """A question about two groups, not tested yet."""

    question: Question
    groups: tuple[Hashable, Hashable]

    def hypothesis(self, alternative: str) -> tuple[object, ...]:
        """Return a key of the hypothesis, equal for names of one metric and for complements.

        In a one-sided test a metric and its complement are two hypotheses.
        """
        identity = hypothesis_of(self.question.metric, directed=alternative in DIRECTIONS)
        return self.question.attribute, self.groups, identity

    def make_row(self, settings: Settings) -> AuditRow:
        """Return the row of the audit, without results."""
        sizes = self.question.table_of(self.groups).sizes()
        return AuditRow(
            attribute=self.question.attribute,
            metric=self.question.label,
            groups=self.groups,
            sizes=(sizes[self.groups[0]], sizes[self.groups[1]]),
            units=self.question.units,
            result=None,
            margin=settings.margins.get(self.question.label),
            ratio_bound=settings.ratios.get(self.question.label),
        )

    def make_test(self, settings: Settings) -> PairTest:
        """Return the test, before its permutations."""
        question, options = self.question, settings.quiet()
        if question.items is not None:
            items = question.items.choose(self.groups)
            metric = cast("RankingMetric", question.metric)
            return ItemsTest.of(items, metric, self.groups, options)
        table = question.table_of(self.groups)
        if table.matched is not None:
            return MatchedTest.of(table, question.metric, self.groups, options)
        if table.probabilities is not None:
            return ProxyTest.of(table, question.metric, self.groups, options)
        if question.units == "queries":
            check_valued(table, self.groups)
        plan = Plan.for_table(question.metric, table, self.groups, settings)
        return make_test(table, plan, self.groups, options)


@dataclass(frozen=True, slots=True)
class ComparedPair:
    """A question with the tested row of two groups, whose verdict is "too small" or still open.

    ``remarks`` are those notes of the test that are no warnings.
    """

    row: AuditRow
    question: Question
    tested: Tested | None = None
    remarks: tuple[str, ...] = ()

    @property
    def is_judged(self) -> bool:
        """Whether the groups are large enough for a verdict."""
        return self.row.verdict == ""

    def hypothesis(self, alternative: str) -> tuple[object, ...]:
        """Return a key of the hypothesis; see :meth:`Pair.hypothesis`."""
        return Pair(self.question, self.row.groups).hypothesis(alternative)


def compare_pairs(pairs: Sequence[Pair], settings: Settings) -> list[ComparedPair]:
    """Test every pair of groups by itself; the metrics of a pair share their permutations."""
    keys = [(pair.question.attribute, pair.groups) for pair in pairs]
    shown, hidden = settings.resampling, settings.quiet().resampling
    # the bar counts comparisons, or the draws of the only one: all there is to wait for
    outer, draws = (hidden, shown) if len(set(keys)) == 1 else (shown, hidden)
    return run_in_batches(
        [pair.question for pair in pairs],
        keys,
        lambda places: _compare_batch({place: pairs[place] for place in places}, settings, draws),
        outer.progress,
    )


def make_pairs(questions: Sequence[Question], settings: Settings) -> list[Pair]:
    """Return every pair of groups to test. Raises InputError for options that do not fit one."""
    pairs = []
    references: dict[str, Hashable] = {}  # one for all metrics, also if they drop different rows
    picks = is_picked(settings.reference)
    for question in questions:
        reference = references.get(question.attribute)
        if settings.compare == "reference" and not (picks or reference in question.table.groups):
            given, only = settings.reference, settings.n_attributes == 1
            reference = choose_reference(question.table, question.attribute, given, only=only)
            references[question.attribute] = reference
        check_two_groups(question)
        every, attribute, compare = question.table.groups, question.attribute, settings.compare
        if picks:
            every, compare = (*put_picked_last(question, settings),), "pairs"
        for groups in list_pairs(question.table, every, compare, reference, attribute):
            metric = question.metric
            table = question.table_of(groups)
            if table.matched is not None:
                metric = choose_matched(table, metric, groups)
            elif table.probabilities is not None:
                metric = choose_proxied(table, metric, groups)
            elif not (metric.is_distance or metric.is_ranking):
                metric = Plan.for_table(metric, table, groups, settings).metric
            _check_options(metric, question.label, settings)
            if question.label in settings.ratios:
                _check_ratio(metric, question.label, settings, table.count_strata(groups))
            pairs.append(Pair(question, groups))
    return pairs


def run_in_batches(
    questions: Sequence[Question],
    keys: Sequence[object],
    run: Callable[[list[int]], Iterator[Mapping[int, T]]],
    progress: bool | None,
) -> list[T]:
    """Run questions with equal keys together, as many as fit in memory, in two steps each."""
    places_by_key: dict[object, list[int]] = {}
    for place, key in enumerate(keys):
        places_by_key.setdefault(key, []).append(place)
    batches = (batch for places in places_by_key.values() for batch in _split(places, questions))
    steps = (step for batch in batches for step in run(batch))
    answers: dict[int, T] = {}
    for step in show_progress(steps, 2 * len(questions), progress):
        answers |= step
    return [answers[place] for place in range(len(questions))]


def _split(places: Sequence[int], questions: Sequence[Question]) -> Iterator[list[int]]:
    """Yield batches of questions whose rows fit in memory."""
    batch: list[int] = []
    n_rows = 0
    for place in places:
        n_rows += len(questions[place].table.count)
        if batch and n_rows > _ROWS_AT_ONCE:
            yield batch
            batch, n_rows = [], len(questions[place].table.count)
        batch.append(place)
    yield batch


def _check_options(metric: AnyMetric, label: str, settings: Settings) -> None:
    """Raise InputError for a direction of a joint test, or a bound that cannot be tested."""
    if (metric.is_joint or metric.is_distance) and settings.alternative in DIRECTIONS:
        hint = "A joint test has no direction; audit its parts."
        rule = f"'two-sided' for {metric.name}"
        hint = "A distance has no direction." if metric.is_distance else hint
        raise InputError("alternative", rule, settings.alternative, hint)
    if metric.is_distance:
        return
    margin, span = settings.margins.get(label, 0.0), max(part.span for part in metric.parts)
    if margin >= span:
        hint = "Rates are numbers from 0 to 1, not percentages." if span == 1 else ""
        raise InputError("margin", f"below {span:g} for {label}", margin, hint)


def _check_ratio(metric: AnyMetric, label: str, settings: Settings, n_strata: int) -> None:
    """Raise InputError for a ratio that no data could have."""
    ratio, instead = settings.ratios[label], f"Pass {argument('margin')}, a difference, instead."
    if n_strata > 1:
        rule = f"left out with {argument('control_features')}, whose gap is a mean of differences"
        raise InputError("ratio", rule, ratio, instead)
    if settings.variance is None:
        rule = f"left out with {argument('variance', None)}, whose test is not valid at a bound"
        raise InputError("ratio", rule, ratio)
    rule = f"left out for {label}"
    if metric.is_joint:
        raise InputError("ratio", rule, ratio, "It has several ratios; audit its parts.")
    if not metric.has_ratio:
        hint = f"It is a logarithm; use {argument('margin')}, or audit top_k_share."
        raise InputError("ratio", rule, ratio, hint)


def _compare_batch(
    pairs: Mapping[int, Pair], settings: Settings, resampling: Resampling
) -> Iterator[dict[int, ComparedPair]]:
    """Take two steps for each pair: compute its gap, then its null distribution."""
    rows: dict[int, AuditRow] = {}
    tests: dict[int, PairTest] = {}
    compared: dict[int, ComparedPair] = {}
    for place, pair in pairs.items():
        rows[place], question = pair.make_row(settings), pair.question
        try:
            with question.name_arguments():
                if question.metric.is_distance:
                    rows[place] = _measure_distance(pair, rows[place], settings)
                else:
                    tests[place] = pair.make_test(settings)
        except UndefinedMetricError as error:
            reason = str(error)
            rows[place] = replace(rows[place], verdict="too small", reason=reason)
        compared[place] = ComparedPair(rows[place], question)
        yield {}
    found = run([*tests.values()], resampling)
    for (place, test), tested in zip(tests.items(), found, strict=True):
        question, row = pairs[place].question, flag_small_groups(rows[place], test, settings)
        result = test.result(tested)
        if row.units == "queries" and question.items is None:
            result = name_queries(result)
        row = _add_result(row, result)
        compared[place] = ComparedPair(row, question, tested, test.remarks)
    for place, one in compared.items():
        yield {place: one}


def _measure_distance(pair: Pair, row: AuditRow, settings: Settings) -> AuditRow:
    """Return the row with the distance between the groups' distributions."""
    distance = cast("Distance", pair.question.metric)
    table, options = pair.question.table_of(pair.groups), settings.quiet()
    test = DistanceTest.of(table, distance, pair.groups, options)
    row = flag_small_groups(row, test, settings)
    tested = test.run(options.resampling)
    result = test.as_gap(tested, table, distance, options)
    return replace(row, result=result, expected=expected_distance(tested))


def _add_result(row: AuditRow, result: PermutationTestResult) -> AuditRow:
    ratio, interval = ratio_interval(result) or (None, None)
    return replace(row, result=result, ratio=ratio, ratio_interval=interval)


def compare_all_groups(
    questions: Sequence[Question], pairs: Sequence[ComparedPair], settings: Settings
) -> list[OmnibusRow]:
    """Test for every question all groups at once that are large enough, if there are three.

    Distances and items in lists are compared pair by pair only.
    """
    questions = [one for one in questions if not (one.metric.is_distance or one.metric.is_ranking)]
    return run_in_batches(
        questions,
        [question.attribute for question in questions],
        lambda places: _compare_groups_of_batch(
            {place: questions[place] for place in places}, pairs, settings
        ),
        settings.resampling.progress,
    )


def _compare_groups_of_batch(
    questions: Mapping[int, Question], pairs: Sequence[ComparedPair], settings: Settings
) -> Iterator[dict[int, OmnibusRow]]:
    """Take two steps for each question: compute its statistic, then its null distribution."""
    rows: dict[int, OmnibusRow] = {}
    tests: dict[int, OmnibusTest | ManyMatchedTest] = {}
    for place, question in questions.items():
        rows[place] = OmnibusRow(attribute=question.attribute, metric=question.label, result=None)
        groups = _judged_groups(question, pairs)
        try:
            _check_omnibus(question, groups, settings)
            tests[place] = _make_omnibus_test(question, groups, settings)
        except InputError as error:  # not every test of two groups has one of many
            rows[place] = replace(rows[place], reason=str(error))
        yield {}
    for places in _separate_functions(tests, questions):
        try:
            found = run([tests[one] for one in places], settings.quiet().resampling)
        except InputError as error:  # a function failed in a permutation
            rows |= {one: replace(rows[one], reason=str(error)) for one in places}
            continue
        for place, tested in zip(places, found, strict=True):
            question, result = questions[place], tests[place].result(tested)
            if question.units == "queries":
                result = name_queries(result)
            rows[place] = replace(rows[place], result=result)
    for place, row in rows.items():
        yield {place: row}


def _separate_functions(
    tests: Mapping[int, object], questions: Mapping[int, Question]
) -> list[list[int]]:
    """Return the places of all other tests together, and of each function by itself."""
    functions = [place for place in tests if questions[place].metric.is_function]
    others = [place for place in tests if place not in functions]
    return [*([others] if others else []), *([place] for place in functions)]


def _check_omnibus(question: Question, groups: tuple[Hashable, ...], settings: Settings) -> None:
    """Raise InputError if these groups have no test of all at once."""
    if question.table.probabilities is not None:
        name = argument("group_probabilities")
        raise InputError(f"A test of all groups at once needs groups that are known, not {name}.")
    if len(groups) < 3:
        number = ("No group has", "One group has", "Two groups have")[len(groups)]
        found = f"{number} a comparison with a verdict"
        if len(question.table.groups) < 3:
            found = "There are two groups"
        raise InputError(f"{found}; a test of all groups at once needs three.")
    if settings.is_limit:
        no_draws = argument("n_resamples", 0)
        raise InputError(f"A test of all groups at once needs permutations; got {no_draws}.")


def _make_omnibus_test(
    question: Question, groups: tuple[Hashable, ...], settings: Settings
) -> OmnibusTest | ManyMatchedTest:
    """Return the test of these groups, before its permutations."""
    table, metric, options = question.table, question.metric, settings.quiet()
    if table.matched is not None:
        return ManyMatchedTest.of(table, metric, groups, options)
    return OmnibusTest.of(table, Plan.for_table(metric, table, groups, settings), groups, options)


def _judged_groups(question: Question, pairs: Sequence[ComparedPair]) -> tuple[Hashable, ...]:
    """Return the groups of the question that are in a pair with a verdict."""
    judged = {
        group
        for pair in pairs
        if pair.question is question and pair.is_judged
        for group in pair.row.groups
    }
    return tuple(group for group in question.table.groups if group in judged)
