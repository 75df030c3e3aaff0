"""What a new model does to every gap of an audit: the tests, and the rule that gives verdicts.

Gaps g (old) and h (new) have |h| < |g| exactly if the change h − g and the sum h + g have different
signs. A gap is therefore shown to be smaller, or larger, if both are shown to differ from 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from fairperm._utils.checks import DIRECTIONS
from fairperm._utils.formatting import format_count, state_pvalue
from fairperm.auditing.comparisons import Pair, compare_pairs, run_in_batches
from fairperm.auditing.verdicts import (
    adjust_by_key,
    flag_small_groups,
    has_margin_test,
    judge_pairs,
    largest_by_key,
)
from fairperm.errors import InputError, UndefinedMetricError, argument
from fairperm.hypothesis_tests.changes.models import make_change_test, make_sum_test
from fairperm.hypothesis_tests.margins.one_sided import margin_pvalues
from fairperm.hypothesis_tests.results.answers.words import unit_of_gap
from fairperm.hypothesis_tests.results.changes import GapChange
from fairperm.hypothesis_tests.run import run
from fairperm.inference.multiplicity import interval_level
from fairperm.inference.null import agree, agree_at_margin

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from fairperm.auditing.comparisons import ComparedPair, PairTest, Settings
    from fairperm.data.arguments import Inputs
    from fairperm.hypothesis_tests.changes.matched_models import MatchedChangeTest
    from fairperm.hypothesis_tests.changes.models import ChangeTest
    from fairperm.hypothesis_tests.results.audits import AuditRow
    from fairperm.hypothesis_tests.results.changes import ModelComparisonResult
    from fairperm.hypothesis_tests.results.gaps import PermutationTestResult
    from fairperm.hypothesis_tests.run import Tested

    Key = tuple[object, ...]


def check_models(inputs: Inputs, settings: Settings) -> None:
    """Raise InputError for arguments that have no meaning in an audit of two models."""
    if inputs.new_model is None:
        return
    new = argument("y_score_new" if inputs.new_model.y_pred is None else "y_pred_new")
    if settings.alternative in DIRECTIONS:
        rule = f"'two-sided' or 'symmetric' with {new}"
        hint = "A change in one direction makes a gap smaller or larger, as its sign has it."
        raise InputError("alternative", rule, settings.alternative, hint)
    if inputs.score_bins is not None:
        raise InputError(f"{argument('score_bins')} cannot be used with {new}.")


def add_changes(
    rows: Sequence[AuditRow], pairs: Sequence[ComparedPair], settings: Settings
) -> list[AuditRow]:
    """Return the rows, each with what the new model does to its gap, and its own verdict."""
    tested = run_in_batches(
        [pair.question.of_both_models() for pair in pairs],
        [(row.attribute, row.groups) for row in rows],
        lambda places: _test_batch({one: (rows[one], pairs[one]) for one in places}, settings),
        settings.resampling.progress,
    )
    families: dict[str, list[int]] = {}
    for place, row in enumerate(rows):
        if tested[place].is_judged:
            name = row.attribute if settings.family == "attribute" else "all"
            families.setdefault(name, []).append(place)
    changes = [one.change for one in tested]
    for places in families.values():
        keys = [pairs[place].hypothesis(settings.alternative) for place in places]
        judged = _judge_family([tested[place] for place in places], keys, settings)
        for place, change in zip(places, judged, strict=True):
            changes[place] = change
    return [
        replace(row, change=replace(change, verdict_new=new.verdict, adjusted_pvalue_new=p))
        for row, change, new in zip(rows, changes, _judge_new_model(pairs, settings), strict=True)
        for p in [new.adjusted_pvalue]
    ]


def _judge_new_model(pairs: Sequence[ComparedPair], settings: Settings) -> list[AuditRow]:
    """Return the rows of an audit of the new model alone."""
    questions = {id(pair.question): pair.question for pair in pairs}
    of_new = {key: question.of_new_model() for key, question in questions.items()}
    asked = [Pair(of_new[id(pair.question)], pair.row.groups) for pair in pairs]
    return judge_pairs(compare_pairs(asked, settings), settings)[0]


def note_weights(rows: Sequence[AuditRow], pairs: Sequence[ComparedPair]) -> tuple[str, ...]:
    """Return a note if changes weigh the strata otherwise than the gaps of one model."""
    n = 0
    for row, pair in zip(rows, pairs, strict=True):
        result, change = row.result, None if row.change is None else row.change.result
        if result is None or change is None or not pair.question.metric.has_denominator:
            continue
        n += change.n_strata > 1 and not math.isclose(
            result.difference, change.gap_old, abs_tol=1e-9
        )
    if n == 0:
        return ()
    return (
        f"The change of {format_count(n, 'gap')} starts from another old gap than the comparison "
        "shows: a gap of one model weighs strata by the metric's denominator, and a change weighs "
        "them by rows, because the two models' denominators differ.",
    )


@dataclass(frozen=True, slots=True)
class _TestedChange:
    """The change of a row's gap, whose verdict is "too small" or still open."""

    row: AuditRow
    change: GapChange
    tested: Tested | None = None

    @property
    def is_judged(self) -> bool:
        return self.change.verdict == ""

    @property
    def result(self) -> ModelComparisonResult:
        if self.change.result is None:
            raise ValueError("a judged change has a result")
        return self.change.result

    @property
    def is_smaller(self) -> bool:
        """Whether the new gap is smaller in size than the old one, in the sample."""
        return not self.result.is_joint and abs(self.result.gap_new) < abs(self.result.gap_old)


@dataclass(frozen=True, slots=True)
class _RowTests:
    """The tests of a row before their permutations: of the change, the sum and the new gap.

    Several gaps at once have no sum. Only a margin needs the test of the new gap.
    """

    row: AuditRow
    change: ChangeTest | MatchedChangeTest
    others: tuple[PairTest, ...]

    @classmethod
    def of(cls, row: AuditRow, pair: ComparedPair, settings: Settings) -> _RowTests:
        """Studentize the observed gaps. Raises UndefinedMetricError without standard errors."""
        question, groups, options = pair.question, row.groups, settings.quiet()
        both = question.of_both_models().table_of(groups)
        change = make_change_test(both, question.metric, groups, options)
        others: list[PairTest] = []
        if not change.is_joint:
            others.append(make_sum_test(both, question.metric, groups, options))
            if row.margin is not None and change.has_error:
                of_new = question.of_new_model()
                if settings.stratum_weights is None:
                    weights = change.weigh_strata(of_new.table_of(groups))
                    settings = replace(settings, stratum_weights=weights)
                others.append(Pair(of_new, groups).make_test(settings))
        return cls(row, change, tuple(others))

    @property
    def tests(self) -> list[PairTest]:
        return [self.change.gap_test, *self.others]

    def compare(self, found: Iterator[Tested], settings: Settings) -> _TestedChange:
        """Compare the gaps with their permutations."""
        of_change = next(found)
        result = self.change.result(of_change)
        others = [test.result(next(found)) for test in self.others]
        small = self.row
        if small.verdict != "too small":
            small = flag_small_groups(self.row, self.change.gap_test, settings)
        is_small = small.verdict == "too small"
        change = GapChange(
            result=result,
            size_pvalue=max(result.pvalue, others[0].pvalue) if others else None,
            verdict="too small" if is_small else "",
            reason=small.reason if is_small else "",
        )
        tested = _TestedChange(self.row, change, of_change)
        if len(others) < 2 or is_small:
            return tested
        within = _equivalence_pvalue(others[1], self.row.margin)
        closing = max(change.size_pvalue or 0.0, within) if tested.is_smaller else 1.0
        equivalence = _equivalence_pvalue(result, self.row.margin)
        change = replace(change, closing_pvalue=closing, equivalence_pvalue=equivalence)
        return replace(tested, change=change)


def _equivalence_pvalue(result: PermutationTestResult, margin: float | None) -> float:
    """Return the p-value of a gap, or a change of it, at the margin or beyond."""
    if margin is None or not has_margin_test(result):
        return 1.0
    return max(test.pvalue for test in margin_pvalues(result, margin))


def _test_batch(
    compared: Mapping[int, tuple[AuditRow, ComparedPair]], settings: Settings
) -> Iterator[dict[int, _TestedChange]]:
    """Take two steps for each row: compute its gaps, then their null distributions."""
    tests: dict[int, _RowTests] = {}
    undefined: dict[int, _TestedChange] = {}
    for place, (row, pair) in compared.items():
        try:
            tests[place] = _RowTests.of(row, pair, settings)
        except UndefinedMetricError as error:
            change = GapChange(result=None, verdict="too small", reason=str(error))
            undefined[place] = _TestedChange(row, change)
        yield {}
    every = [test for one in tests.values() for test in one.tests]
    found = iter(run(every, settings.quiet().resampling))
    for place in compared:
        if place in tests:
            yield {place: tests[place].compare(found, settings)}
        else:
            yield {place: undefined[place]}


def _judge_family(
    tested: Sequence[_TestedChange], keys: Sequence[Key], settings: Settings
) -> list[GapChange]:
    """Return the changes with adjusted p-values and verdicts.

    Gaps called narrowed are a family of claims of their own, and so are those called widened,
    unchanged and closed. Every family has all hypotheses: no claim has a smaller p-value than one
    that it implies.
    """

    def adjust(pvalues: Sequence[float | None], keys: Sequence[Key] = keys) -> list[float]:
        raw = largest_by_key(keys, [1.0 if p is None else p for p in pvalues])
        adjusted = adjust_by_key(raw, settings.adjust)
        return [adjusted[key] for key in keys]

    sizes = [one.change.size_pvalue for one in tested]
    smaller = [one.is_smaller for one in tested]
    with_margin = [(*key, one.row.margin) for key, one in zip(keys, tested, strict=True)]
    of_change = adjust([one.result.pvalue for one in tested])
    narrowed = adjust([p if less else None for p, less in zip(sizes, smaller, strict=True)])
    widened = adjust([None if less else p for p, less in zip(sizes, smaller, strict=True)])
    unchanged = adjust([one.change.equivalence_pvalue for one in tested], with_margin)
    closed = adjust([one.change.closing_pvalue for one in tested], with_margin)
    closed = [max(both) for both in zip(closed, narrowed, strict=True)]  # it has more hypotheses
    raw = largest_by_key(keys, [one.result.pvalue for one in tested])
    level = interval_level(np.array([*raw.values()]), settings.adjust, settings.alpha)
    found = []
    for place, one in enumerate(tested):
        change, has_size = one.change, one.change.size_pvalue is not None
        change = replace(
            change,
            adjusted_pvalue=of_change[place],
            adjusted_size_pvalue=(narrowed if smaller[place] else widened)[place]
            if has_size
            else None,
            adjusted_equivalence_pvalue=None
            if change.equivalence_pvalue is None
            else unchanged[place],
            adjusted_closing_pvalue=None if change.closing_pvalue is None else closed[place],
        )
        interval = _adjust_interval(one, change, level, settings.alpha)
        verdict, reason = _give_verdict(one, change, settings)
        reason += f"{_explain_silence(one)}."
        found.append(replace(change, adjusted_interval=interval, verdict=verdict, reason=reason))
    return found


def _adjust_interval(
    tested: _TestedChange, change: GapChange, level: float, alpha: float
) -> tuple[float, float] | None:
    """Return the interval that excludes 0, or lies within the margin, exactly if tests show it.

    A standard error of zero makes no interval.
    """
    if change.confidence_interval is None:
        return None
    if tested.tested is None or change.adjusted_pvalue is None:
        raise ValueError("a judged change has a test and an adjusted p-value")
    result, margin = tested.result, tested.row.margin
    low, high = agree(
        tested.tested.interval(level),
        change.adjusted_pvalue,
        result.alternative,
        1 - alpha,
        result.difference,
    )
    within = change.adjusted_equivalence_pvalue
    if margin is None or within is None:
        return low, high
    is_within = within <= alpha
    if is_within or (-margin < low and high < margin):
        return agree_at_margin(
            (low, high), margin, result.difference, is_beyond=False, is_within=is_within
        )
    return low, high


def _give_verdict(tested: _TestedChange, change: GapChange, settings: Settings) -> tuple[str, str]:
    """Return the verdict on a change that has p-values, and the reason for it."""
    row, alpha = tested.row, settings.alpha
    size = unit_of_gap(tested.result).size(row.margin)
    name = "p" if settings.adjust is None else "adjusted p"

    def is_shown(p: float | None) -> bool:
        return p is not None and p <= alpha

    if is_shown(change.adjusted_closing_pvalue) and row.verdict != "equivalent":
        stated = state_pvalue(change.adjusted_closing_pvalue, name)
        return "closed", f"shown to be smaller, and now smaller than {size} ({stated})"
    if is_shown(change.adjusted_equivalence_pvalue):
        stated = state_pvalue(change.adjusted_equivalence_pvalue, name)
        return "unchanged within margin", f"shown to change by less than {size} ({stated})"
    if is_shown(change.adjusted_size_pvalue):
        stated = state_pvalue(change.adjusted_size_pvalue, name)
        if tested.is_smaller:
            return "narrowed", f"shown to be smaller with the new model ({stated})"
        return "widened", f"shown to be larger with the new model ({stated})"
    if is_shown(change.adjusted_pvalue):
        return "changed", _explain_size(tested, change, name)
    return "inconclusive", f"not decided: {_explain_indecision(tested, change, settings, name)}"


def _explain_size(tested: _TestedChange, change: GapChange, name: str) -> str:
    """Return why a change that is shown makes the gap neither smaller nor larger."""
    stated = state_pvalue(change.adjusted_pvalue, name)
    if tested.result.is_joint:
        return (
            f"the gap changed ({stated}), but which of several gaps are smaller is not tested; "
            "audit them one by one"
        )
    size = state_pvalue(change.adjusted_size_pvalue, name)
    return (
        f"the gap changed by more than chance explains ({stated}); whether it is smaller or larger "
        f"in size is undecided ({size})"
    )


def _explain_silence(tested: _TestedChange) -> str:
    """Return why nothing is said on the margin, if too few rows of a group changed."""
    margin, variance = tested.row.margin, tested.result.gap_variance
    if margin is None or variance is None or not variance.reason:
        return ""
    size = unit_of_gap(tested.result).size(margin)
    return f"; whether it changed by less than {size} is not tested: {variance.reason}"


def _explain_indecision(
    tested: _TestedChange, change: GapChange, settings: Settings, name: str
) -> str:
    """Return what the tests leave open."""
    stated = state_pvalue(change.adjusted_pvalue, name)
    if tested.result.standard_error == 0:
        return (
            "the standard error of the change is zero in this sample, which therefore does not "
            "show how far chance goes"
        )
    if tested.result.pvalue <= settings.alpha:
        alone = state_pvalue(tested.result.pvalue, "by itself p")
        return (
            "adjusted for the number of comparisons, chance could explain this change "
            f"({stated}; {alone}), and a real one is not ruled out"
        )
    return f"chance could explain this change, and a real one is not ruled out ({stated})"
