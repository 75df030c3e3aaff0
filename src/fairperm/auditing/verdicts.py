"""Verdicts: the rule that gives them, and every sentence that explains them.

Without a margin, a gap is a disparity if its adjusted p-value is at most the level. With a margin,
it is a disparity if it is shown to exceed the margin, and equivalent if it is shown to be within
it. Otherwise it is inconclusive.
"""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from fairperm._utils.formatting import (
    abbreviate_metric,
    format_count,
    format_number,
    join_words,
    name_group,
    state_pvalue,
)
from fairperm.errors import Note, argument, shown
from fairperm.hypothesis_tests.comparison_checks import REVERSED_MODELS, REVERSED_SCORES
from fairperm.hypothesis_tests.margins.one_sided import (
    exceedance_pvalue,
    margin_pvalues,
    ratio_pvalues,
)
from fairperm.hypothesis_tests.results.answers.words import explain_by, unit_of_gap
from fairperm.hypothesis_tests.results.audits import PLACES_OF_NOTES, keeps_ratio
from fairperm.inference.multiplicity import adjust_pvalues, interval_level
from fairperm.inference.null import agree, agree_at_margin
from fairperm.inference.stopping import MAX_DRAWS
from fairperm.metrics.registry import get_metric
from fairperm.planning.power import detectable_gap

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from fairperm.auditing.comparisons import ComparedPair, Pair, Settings
    from fairperm.engines.resampling.blocks import Resampling
    from fairperm.hypothesis_tests.results.audits import AuditRow
    from fairperm.hypothesis_tests.results.gaps import PermutationTestResult

_POWER = 0.8
MAX_DRAWS_OF_AUDITS = 99_999  # draws, however many hypotheses there are


def give_verdict(row: AuditRow, settings: Settings) -> AuditRow:
    """Return a row that has p-values with its verdict and the reason for it."""
    alpha, margin, p = settings.alpha, row.margin, row.adjusted_pvalue
    beyond, within = row.adjusted_exceedance_pvalue, row.adjusted_equivalence_pvalue
    if p is None or row.result is None:
        return row
    name = "p" if settings.adjust is None else "adjusted p"
    size = unit_of_gap(row.result).size(margin)
    if margin is None and p <= alpha:
        explained = explain_by(row.result)
        verdict, reason = "disparity", f"larger than {explained} ({state_pvalue(p, name)})"
    elif beyond is not None and beyond <= alpha:
        verdict = "disparity"
        reason = f"shown to exceed the margin of {size} ({state_pvalue(beyond, name)})"
    elif within is not None and within <= alpha:
        verdict = "equivalent"
        reason = f"shown to be smaller than {size} ({state_pvalue(within, name)})"
    else:
        verdict = "inconclusive"
        stated = state_pvalue(p, name)
        reason = f"not decided: {_explain_indecision(row, row.result, stated, settings)}"
    return replace(row, verdict=verdict, reason=f"{reason}.")


def _explain_indecision(
    row: AuditRow, result: PermutationTestResult, stated: str, settings: Settings
) -> str:
    """Return what the tests leave open; ``stated`` is the p-value of no gap."""
    margin, p = row.margin, row.adjusted_pvalue
    size = unit_of_gap(result).size(margin)
    if margin is not None and p is not None and p <= settings.alpha:
        settled = "is not settled" if has_margin_test(result) else "cannot be tested"
        if result.is_joint:
            settled += " for several gaps at once; audit them one by one"
        elif result.variance is None:
            settled += " without a standard error"
        return f"there is a gap ({stated}); whether it exceeds the margin of {size} {settled}"
    if result.difference * {"greater": -1, "less": 1}.get(settings.alternative, 0) > 0:
        return (
            f"the gap is on the other side of the alternative {shown(settings.alternative)}, "
            f"where this test does not look ({stated})"
        )
    if margin is None:
        if result.pvalue <= settings.alpha:  # the interval of the gap alone may exclude 0
            alone = state_pvalue(result.pvalue, "by itself p")
            return (
                "adjusted for the number of comparisons, chance could explain this gap "
                f"({stated}; {alone}), and a real one is not ruled out"
            )
        return f"chance could explain this gap, and a real one is not ruled out ({stated})"
    return f"no gap is shown ({stated}), and one beyond the margin of {size} is not ruled out"


class HasBaseSizes(Protocol):
    """A test that knows what each group's value rests on."""

    def base_sizes(self) -> Mapping[str, Sequence[float]]:
        """Return the numbers of both groups, by what they are numbers of."""


def flag_small_groups(row: AuditRow, test: HasBaseSizes, settings: Settings) -> AuditRow:
    """Return the row with the verdict "too small" and the number that counts, if it is too small.

    Of several numbers, such as positives and negatives, the smallest counts.
    """
    numbers: Mapping[str, Sequence[float]] = {row.units: row.sizes}
    if settings.group_size_by == "metric":
        numbers = test.base_sizes()
    return _flag_few(row, numbers, settings.min_group_size)


def _flag_few(row: AuditRow, numbers: Mapping[str, Sequence[float]], least: int) -> AuditRow:
    """Return the row with the verdict "too small" if a group falls below the minimum."""
    names = [
        shown(group) if (name := name_group(row.attribute, group)) == group else name
        for group in row.groups
    ]
    reason = explain_few(names, numbers, least)
    return replace(row, verdict="too small", reason=reason) if reason else row


def explain_few(names: Sequence[str], numbers: Mapping[str, Sequence[float]], least: int) -> str:
    """Return which of these groups fall below the minimum; "" if none does."""
    small = []
    for place, name in enumerate(names):
        whole = min(numbers, key=lambda one: numbers[one][place])
        if (n := numbers[whole][place]) < least:
            one = re.sub(r"(ie)?s\b", lambda end: "y" if end[1] else "", whole, count=1)
            small.append((name, format_count(math.floor(n), one, whole)))
    if not small:
        return ""
    lacking = [f"{name} has only {few}" for name, few in small]
    if any("both groups" in few for _, few in small):  # one number for both
        lacking = [f"only {small[0][1]}"]
    return f"{join_words(lacking)}; the minimum is {least:,}."


def format_detectable_gap(row: AuditRow) -> str:
    """Return from which size a sample like this one would detect a gap; "" if that is moot."""
    gap = row.detectable_gap
    if row.verdict in {"disparity", "equivalent"} or gap is None or math.isnan(gap):
        return ""
    return "none" if math.isinf(gap) else f"from {format_number(gap)}"


def explain_verdicts(
    rows: Sequence[AuditRow], columns: Collection[str], *, are_adjusted: bool
) -> Iterator[str]:
    """Yield a sentence for each term of a table with these columns that needs one."""
    if margins := {row.margin for row in rows if row.margin is not None}:
        size = f"the margin of {margins.pop():g}" if len(margins) == 1 else "the margin"
        yield f"With a margin, disparity: shown to exceed {size}; equivalent: to be within it."
        kind = "adjusted " if are_adjusted else ""
        if "p within" in columns:
            yield f"P beyond and p within are the {kind}p-values of these two tests."
        elif "p beyond" in columns:
            yield f"P beyond is the {kind}p-value of the first of these two tests."
    bounds = {row.ratio_bound for row in rows if row.ratio_bound is not None}
    if bounds and "ratio" in columns:
        ends = "the bound and its inverse"
        if len(bounds) == 1:
            bound = bounds.pop()
            ends = f"{bound:g} and {1 / bound:.4g}"
        yield (
            "Ratio: the estimate beside its bound, then what is shown. Met: shown to lie between "
            f"{ends}; not met: shown to lie outside."
        )
    if any(row.is_distance for row in rows):
        yield (
            "The gap of a distance is the distance itself. By chance: its mean if the groups have "
            "equal distributions."
        )
    for metric in dict.fromkeys(row.metric for row in rows if row.part is not None):
        parts = ", ".join(abbreviate_metric(part.name) for part in get_metric(metric).parts)
        yield f"Values of {metric}: {parts}; its gap is the largest absolute one."
    if any(row.verdict == "inconclusive" for row in rows):
        yield "Inconclusive: not decided; a gap that matters is neither shown nor ruled out."
    detectable = [format_detectable_gap(row) for row in rows]
    if any(detectable) and "detects gaps" in columns:
        none = "; none: too few to detect any gap" if "none" in detectable else ""
        yield f"Detects gaps: those that such a sample would detect with 80 % power{none}."
    few = [row.reason for row in rows if row.verdict == "too small" and row.result is not None]
    if few:
        yield f"Too small, in the first case: {few[0]}"
    undefined = [row.reason for row in rows if row.result is None]
    if undefined:
        yield f"Undefined, in the first case: {undefined[0]}"


def explain_changes(rows: Sequence[AuditRow]) -> Iterator[str]:
    """Yield a sentence for each verdict on changes that needs one."""
    yield "Narrowed or widened: the absolute gap fell or rose significantly (p of size)."
    if margins := {row.margin for row in rows if row.margin is not None}:
        size = f"the margin of {margins.pop():g}" if len(margins) == 1 else "the margin"
        yield (
            f"Closed: shown to be smaller, and now within {size}. Unchanged within margin: shown "
            "to change by less."
        )
    verdicts = {row.change.verdict for row in rows if row.change is not None}
    if "changed" in verdicts:
        yield "Changed: by more than chance explains; which gap is smaller in size is undecided."
    if "inconclusive" in verdicts:
        yield ("Inconclusive: not decided; a change is neither shown nor ruled out.")
    undefined = [row.change.reason for row in rows if row.change and row.change.result is None]
    if undefined:
        yield f"Undefined, in the first case: {undefined[0]}"


def write_notes(
    rows: Sequence[AuditRow], n_hypotheses: int, settings: Settings, known: Sequence[str]
) -> tuple[str, ...]:
    """Return notes on the whole audit; those of its tests count unless they are ``known``."""
    judged = [row for row in rows if row.adjusted_pvalue is not None and row.result is not None]
    drawn = [row for row in judged if not _result_of(row).exact]
    tails = [count_tails(row, settings.alternative) for row in drawn if row.verdict != "disparity"]
    changed = [row for row in judged if row.change is not None and row.change.size_pvalue]
    claim = "called a disparity however large the gap"
    factor = largest_factor(n_hypotheses, settings.adjust)
    if len(changed) > len(drawn):  # sums of gaps are rarely enumerated
        is_one_sided = settings.alternative in {"greater", "less"}
        is_doubled = settings.alternative == "two-sided" or (settings.margins and not is_one_sided)
        tails = [2 if is_doubled else 1] * len(changed)
        claim = "called narrowed or widened however large the change"
    known = (*known, REVERSED_SCORES, *REVERSED_MODELS)
    of_results, of_changes = PLACES_OF_NOTES
    results = [(row, _result_of(row)) for row in judged]
    changes = [
        (row, row.change.result)
        for row in judged
        if row.change is not None and row.change.result and row.change.adjusted_pvalue is not None
    ]
    return (
        *_note_nothing_judged(rows, judged),
        *_note_few_resamples(tails, n_hypotheses, factor, settings, claim),
        *_summarize_notes(results, known, ("comparison has", "comparisons have"), of_results),
        *_summarize_notes(changes, known, ("change has", "changes have"), of_changes),
    )


def note_reversed_scores(rows: Sequence[AuditRow]) -> tuple[str, ...]:
    """Return a note if the AUC, or that of a model, is below 0.5 in every group of an attribute."""
    by_question: dict[tuple[str, str], list[set[str]]] = {}
    for row in rows:
        result = row.result if row.change is None else row.change.result
        if result is not None:
            by_question.setdefault((row.attribute, row.metric), []).append(set(result.notes))
    shared: set[str] = set().union(*(set.intersection(*one) for one in by_question.values()))
    return tuple(note for note in (REVERSED_SCORES, *REVERSED_MODELS) if note in shared)


def _note_nothing_judged(rows: Sequence[AuditRow], judged: Sequence[AuditRow]) -> Iterator[str]:
    if rows and not judged:
        yield (
            "Nothing was judged: every comparison has a group that is too small, or in which the "
            "metric is undefined. That is no evidence of anything."
        )


def count_tails(row: AuditRow, alternative: str) -> int:
    """Return 2 if the row's p-value is twice the smaller of two tails, else 1."""
    if row.margin is not None and alternative not in {"greater", "less"}:
        return 2  # the smaller p-value of both ends of the margin
    is_doubled = _result_of(row).ordering == "two-sided"
    return 2 if alternative == "two-sided" and is_doubled else 1


def _note_few_resamples(
    tails: Sequence[int], n_hypotheses: int, factor: float, settings: Settings, claim: str
) -> Iterator[str]:
    """Yield a note if p-values from draws, of so many tails, may be above the level for any gap."""
    n_resamples, alpha = settings.resampling.n_resamples, settings.alpha
    n_tails = max(tails, default=0)
    least = n_tails / (n_resamples + 1)
    most = factor * least
    if n_resamples == 0 or most <= alpha:
        return
    n_drawn = sum(factor * n / (n_resamples + 1) > alpha for n in tails)
    raised = ""
    if factor > 1:
        hypotheses = format_count(n_hypotheses, "hypothesis", "hypotheses")
        raised = f" (up to {min(most, 1.0):.3g} after adjustment for {hypotheses})"
    enough = argument("n_resamples", count_resamples(n_tails * factor, alpha))
    yield Note(
        f"A p-value from {n_resamples:,} resamples is at least {least:.3g}"
        f"{raised}, and the level is {alpha:g}: {format_count(n_drawn, 'comparison')} might not be "
        f"{claim}. Use {enough} or more."
    )


def largest_factor(n_hypotheses: int, adjust: str | None) -> float:
    """Return by how much adjustment can multiply a p-value."""
    factors: dict[str | None, float] = {
        None: 1.0,
        "by": n_hypotheses * sum(1 / rank for rank in range(1, n_hypotheses + 1)),
    }
    return factors.get(adjust, float(n_hypotheses))


def draw_enough(pairs: Sequence[Pair], settings: Settings) -> Settings:
    """Return settings whose draws can reach the level after adjustment, if they stop early.

    Intervals at the adjusted level and tests at margins need so many draws in any case, but no more
    than a single test has at most.
    """
    if not settings.resampling.stops_early:
        return settings
    families: dict[str, set[object]] = {}
    for pair in pairs:
        family = pair.question.attribute if settings.family == "attribute" else "all"
        families.setdefault(family, set()).add(pair.hypothesis(settings.alternative))
    n_hypotheses = max(map(len, families.values()), default=0)
    factor = largest_factor(n_hypotheses, settings.adjust)
    n_tails = 1 if settings.alternative in {"greater", "less"} else 2
    resampling = draw_for(settings.resampling, n_tails * factor, settings.alpha)
    return replace(settings, resampling=resampling)


def draw_for(resampling: Resampling, factor: float, alpha: float) -> Resampling:
    """Return how to draw so that p-values that are multiplied by a factor can reach the level."""
    enough = count_resamples(factor, alpha)
    most = min(max(MAX_DRAWS, enough), MAX_DRAWS_OF_AUDITS)
    return replace(resampling, n_resamples=most, min_draws=min(enough, MAX_DRAWS))


def count_resamples(factor: float, alpha: float) -> int:
    """Return the smallest n for which factor / (n + 1) is at most alpha."""
    n = max(1, math.ceil(factor / alpha) - 2)
    while factor / (n + 1) > alpha:
        n += 1
    return n


def _summarize_notes(
    tested: Sequence[tuple[AuditRow, PermutationTestResult]],
    known: Sequence[str],
    have: tuple[str, str],
    place: str,
) -> Iterator[str]:
    """Yield how many tests have notes of their own, and the first of these notes."""
    noted = [(row, result) for row, result in tested if set(result.notes) - set(known)]
    if noted:
        first, result = noted[0]
        note = next(note for note in result.notes if note not in known)
        yield Note(
            f"{format_count(len(noted), *have)} notes, in {argument(place)}. "
            f"The first ({shown(first.attribute)}, {shown(first.metric)}): "
            f"{note.marked if isinstance(note, Note) else note}"
        )


def judge_pairs(
    pairs: Sequence[ComparedPair], settings: Settings
) -> tuple[list[AuditRow], dict[str, int]]:
    """Return the rows with verdicts, and the number of hypotheses of each family.

    A family is one attribute, or all of them.
    """
    families: dict[str, list[ComparedPair]] = {}
    for pair in pairs:
        name = pair.row.attribute if settings.family == "attribute" else "all"
        families.setdefault(name, []).append(pair)
    judged = {name: _judge_family(some, settings) for name, some in families.items()}
    rows = [row for some, _ in judged.values() for row in some]
    return rows, {name: n for name, (_, n) in judged.items()}


def _judge_family(pairs: Sequence[ComparedPair], settings: Settings) -> tuple[list[AuditRow], int]:
    """Return the rows with adjusted p-values and verdicts, and the number of hypotheses."""
    judged = [pair for pair in pairs if pair.is_judged]
    keys = [pair.hypothesis(settings.alternative) for pair in judged]
    n_hypotheses = len(set(keys))
    raw = largest_by_key(keys, [_result_of(pair.row).pvalue for pair in judged])
    adjusted = adjust_by_key(raw, settings.adjust)
    pvalues = (adjusted[key] for key in keys)
    of_margins = iter(_test_margins(judged, keys, settings))
    of_ratios = iter(_test_ratios(judged, settings))
    level = settings.alpha if settings.adjust is None else settings.alpha / max(n_hypotheses, 1)
    confidence = interval_level(np.array([*raw.values()]), settings.adjust, settings.alpha)
    rows = []
    detectable: dict[tuple[object, ...], float] = {}  # the same for a metric and its complement
    for pair in pairs:
        row = pair.row
        if row.result is not None and not row.is_distance:
            key = pair.hypothesis(settings.alternative)
            if key not in detectable:
                detectable[key] = _detectable_gap(pair, row.result, level)
            row = replace(row, detectable_gap=detectable[key])
        if pair.is_judged:
            fields: dict[str, Any] = {"adjusted_pvalue": next(pvalues)}
            fields |= {**next(of_margins), **next(of_ratios)}
            row = give_verdict(replace(row, **fields), settings)
            if not row.is_distance:
                interval = _adjust_interval(pair, row, confidence, settings)
                row = replace(row, adjusted_interval=interval)
        rows.append(row)
    return rows, n_hypotheses


def _adjust_interval(
    pair: ComparedPair, row: AuditRow, confidence: float, settings: Settings
) -> tuple[float, float]:
    """Return the interval that shows the verdict: without 0, beyond the margin or within it."""
    if pair.tested is None or row.adjusted_pvalue is None:
        raise ValueError("a judged row has a test and an adjusted p-value")
    result, alpha = _result_of(row), settings.alpha
    interval = agree(
        pair.tested.interval(confidence),
        row.adjusted_pvalue,
        result.alternative,
        1 - alpha,
        result.difference,
    )
    if row.margin is None or row.adjusted_exceedance_pvalue is None:
        return interval
    return agree_at_margin(
        interval,
        row.margin,
        result.difference,
        is_beyond=row.verdict == "disparity",
        is_within=row.verdict == "equivalent",
    )


def _detectable_gap(pair: ComparedPair, result: PermutationTestResult, level: float) -> float:
    if level >= _POWER:  # which the test reaches without a gap
        return 0.0
    # a mean over classes has no parts, and is at most 1
    most = max((part.span for part in pair.question.metric.parts), default=1.0)
    return detectable_gap(result, level, _POWER, most)


def _test_margins(
    judged: Sequence[ComparedPair], keys: Sequence[tuple[object, ...]], settings: Settings
) -> list[dict[str, float]]:
    """Return the fields of each row that tests at a margin give it, adjusted.

    All disparities that may be claimed are one family: next to rows with a margin, the p-value of
    a row without one is adjusted together with theirs.
    """
    if not settings.margins:
        return [{} for _ in judged]
    disparity: dict[tuple[object, ...], float] = {}
    equivalence: dict[tuple[object, ...], float] = {}
    with_margin = [(*key, pair.row.margin) for pair, key in zip(judged, keys, strict=True)]
    for pair, key in zip(judged, with_margin, strict=True):
        result, margin = _result_of(pair.row), pair.row.margin
        if margin is None:
            disparity[key] = max(disparity.get(key, 0.0), result.pvalue)
        elif has_margin_test(result):
            disparity[key] = max(disparity.get(key, 0.0), exceedance_pvalue(result, margin))
            tests = margin_pvalues(result, margin)
            equivalence[key] = max(equivalence.get(key, 0.0), *(test.pvalue for test in tests))
    adjusted_disparity = adjust_by_key(disparity, settings.adjust)
    adjusted_equivalence = adjust_by_key(equivalence, settings.adjust)
    return [
        {
            "exceedance_pvalue": disparity[key],
            "adjusted_exceedance_pvalue": adjusted_disparity[key],
            "equivalence_pvalue": equivalence[key],
            "adjusted_equivalence_pvalue": adjusted_equivalence[key],
        }
        if key in equivalence
        else {"adjusted_pvalue": adjusted_disparity[key]}
        if key in disparity
        else {}
        for key in with_margin
    ]


def _test_ratios(judged: Sequence[ComparedPair], settings: Settings) -> list[dict[str, Any]]:
    """Return the fields of each row that tests at the bound of a ratio give it.

    The p-values of a ratio beyond its bound are one family, and those of one within it another.
    A metric and its complement have different ratios.
    """
    beyond: dict[tuple[object, ...], float] = {}
    within: dict[tuple[object, ...], float] = {}
    keys = [(*pair.hypothesis("greater"), pair.row.ratio_bound) for pair in judged]
    for pair, key in zip(judged, keys, strict=True):
        if pair.row.ratio_bound is not None and pair.row.ratio is not None:
            found = ratio_pvalues(_result_of(pair.row), pair.row.ratio_bound)
            beyond[key], within[key] = found
    beyond = adjust_by_key(beyond, settings.adjust)
    within = adjust_by_key(within, settings.adjust)
    estimates = [_judge_estimate(pair.row, settings.alternative) for pair in judged]
    return [
        {
            "adjusted_ratio_exceedance_pvalue": beyond[key],
            "adjusted_ratio_equivalence_pvalue": within[key],
            "ratio_estimate_verdict": estimate,
            "ratio_verdict": "not met"
            if beyond[key] <= settings.alpha
            else "met"
            if within[key] <= settings.alpha
            else "undecided",
        }
        if key in beyond
        else {}
        for key, estimate in zip(keys, estimates, strict=True)
    ]


def _judge_estimate(row: AuditRow, alternative: str) -> str | None:
    """Return whether the ratio itself keeps to its bound."""
    if row.ratio is None or row.ratio_bound is None:
        return None
    return "met" if keeps_ratio(row.ratio, row.ratio_bound, alternative) else "not met"


def has_margin_test(result: PermutationTestResult) -> bool:
    """Whether it is a single gap over a standard error: several have no one margin."""
    return not result.is_joint and result.variance is not None


def largest_by_key(
    keys: Sequence[tuple[object, ...]], pvalues: Sequence[float]
) -> dict[tuple[object, ...], float]:
    """Return the largest p-value of each hypothesis.

    With weights or clusters, a metric and its complement have different random permutations: no
    row may be judged by a smaller p-value than its own, nor by the order of the metrics.
    """
    largest: dict[tuple[object, ...], float] = {}
    for key, pvalue in zip(keys, pvalues, strict=True):
        largest[key] = max(largest.get(key, 0.0), pvalue)
    return largest


def adjust_by_key(
    raw: dict[tuple[object, ...], float], method: str | None
) -> dict[tuple[object, ...], float]:
    """Return p-values by hypothesis, adjusted for their number."""
    values = adjust_pvalues(np.array(list(raw.values())), method)
    return dict(zip(raw, values.tolist(), strict=True))


def _result_of(row: AuditRow) -> PermutationTestResult:
    if row.result is None:
        raise ValueError("a judged row has a result")
    return row.result
