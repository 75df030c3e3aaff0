"""Verdicts: the rule that gives them, and every sentence that explains them.

A gap is a disparity if its adjusted p-value is at most the level and the gap exceeds the margin,
and equivalent if it is shown to be smaller than the margin. Otherwise it is inconclusive.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from fairperm._utils.formatting import format_count, format_number, join_words, state_pvalue
from fairperm.auditing.max_t import max_t_pvalues
from fairperm.errors import Note, argument, shown
from fairperm.hypothesis_tests.margins.one_sided import margin_pvalues
from fairperm.inference.multiplicity import adjust_pvalues
from fairperm.planning.power import detectable_gap

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Sequence

    from fairperm.auditing.comparisons import ComparedPair, Settings
    from fairperm.hypothesis_tests.results.audits import AuditRow
    from fairperm.hypothesis_tests.results.gaps import PermutationTestResult

_POWER = 0.8
_MANY_GROUPS = 20  # more of them, all too small, may be numbers that were not cut into bands


def give_verdict(row: AuditRow, settings: Settings) -> AuditRow:
    """Return a row that has p-values with its verdict and the reason for it."""
    alpha, margin = settings.alpha, row.margin
    p, gap, margin_p = row.adjusted_pvalue, row.difference, row.equivalence_pvalue
    if p is None or gap is None:
        return row
    name = "p" if settings.adjust is None else "adjusted p"
    significant = f"larger than chance explains ({state_pvalue(p, name)})"
    if p <= alpha and margin is None:
        verdict, reason = "disparity", significant
    elif p <= alpha and margin is not None and abs(gap) > margin:
        verdict, reason = "disparity", f"{significant}, and larger than the margin of {margin:g}"
    elif margin_p is not None and margin_p <= alpha:
        verdict = "equivalent"
        reason = f"shown to be smaller than {margin:g} ({state_pvalue(margin_p, name)})"
    elif p <= alpha:
        verdict = "inconclusive"
        reason = f"not decided: {significant}, but not larger than the margin of {margin:g}"
    elif gap * {"greater": -1, "less": 1}.get(settings.alternative, 0) > 0:
        verdict = "inconclusive"
        reason = (
            "not decided: the gap is on the other side of the alternative "
            f"{shown(settings.alternative)}, where this test does not look "
            f"({state_pvalue(p, name)})"
        )
    else:
        verdict = "inconclusive"
        reason = (
            "not decided: chance could explain this gap, and a real one is not ruled out "
            f"({state_pvalue(p, name)})"
        )
    return replace(row, verdict=verdict, reason=f"{reason}.")


def find_small_groups(groups: tuple[Hashable, Hashable], sizes: tuple[int, int], least: int) -> str:
    """Return the reason why a pair of groups is too small, or "" if it is large enough."""
    small = [
        f"{shown(group)} has {format_count(size, 'row')}"
        for group, size in zip(groups, sizes, strict=True)
        if size < least
    ]
    return f"{join_words(small)}; the minimum is {least:,}." if small else ""


def format_detectable_gap(row: AuditRow) -> str:
    """Return from which size a sample like this one would detect a gap; "" if that is moot."""
    gap = row.detectable_gap
    if row.verdict in {"disparity", "equivalent"} or gap is None or math.isnan(gap):
        return ""
    return "none" if math.isinf(gap) else f"from {format_number(gap)}"


def explain_verdicts(rows: Sequence[AuditRow]) -> Iterator[str]:
    """Yield a sentence for each term of a table of verdicts that needs one."""
    margins = {row.margin for row in rows if row.verdict == "equivalent"}
    if margins:
        size = f"{margins.pop():g}" if len(margins) == 1 else "the margin"
        yield f"Equivalent: shown to be smaller than {size}, by a test of its own."
    if any(row.verdict == "inconclusive" for row in rows):
        yield "Inconclusive: not decided; a gap that matters is neither shown nor ruled out."
    detectable = [format_detectable_gap(row) for row in rows]
    if any(detectable):
        none = "; none: too few rows to detect any gap" if "none" in detectable else ""
        yield f"Detects gaps: those that such a sample would detect with 80 % power{none}."
    undefined = [row.reason for row in rows if row.result is None]
    if undefined:
        yield f"Undefined, in the first case: {undefined[0]}"


def write_notes(
    rows: Sequence[AuditRow], n_hypotheses: int, settings: Settings, known: Sequence[str]
) -> tuple[str, ...]:
    """Return notes on the whole audit; those of its tests count unless they are ``known``."""
    judged = [row for row in rows if row.adjusted_pvalue is not None and row.result is not None]
    drawn = [row for row in judged if settings.adjust == "maxt" or not _result_of(row).exact]
    is_doubled = settings.alternative == "two-sided" and (
        settings.adjust == "maxt" or any(_result_of(row).ordering == "two-sided" for row in drawn)
    )
    return (
        *_note_nothing_judged(rows, judged),
        *_note_few_resamples(len(drawn), n_hypotheses, settings, 2 if is_doubled else 1),
        *_note_notes(judged, known),
    )


def _note_nothing_judged(rows: Sequence[AuditRow], judged: Sequence[AuditRow]) -> Iterator[str]:
    if rows and not judged:
        groups = {group for row in rows for group in row.groups}
        many = len(groups) > _MANY_GROUPS
        bands = " Cut numbers into bands, or see correlation_test." if many else ""
        yield (
            "Nothing was judged: every comparison has a group that is too small, or in which the "
            f"metric is undefined. That is no evidence of anything.{bands}"
        )


def _note_few_resamples(
    n_drawn: int, n_hypotheses: int, settings: Settings, n_tails: int
) -> Iterator[str]:
    """Yield a note if a p-value from draws may be above the level however large the gap."""
    n_resamples, alpha = settings.resampling.n_resamples, settings.alpha
    factor: float = {
        None: 1.0,
        "maxt": 1.0,
        "by": n_hypotheses * sum(1 / rank for rank in range(1, n_hypotheses + 1)),
    }.get(settings.adjust, float(n_hypotheses))
    least = n_tails / (n_resamples + 1)
    most = factor * least
    if n_drawn == 0 or n_resamples == 0 or most <= alpha:
        return
    raised = ""
    if factor > 1:
        hypotheses = format_count(n_hypotheses, "hypothesis", "hypotheses")
        raised = f" (up to {min(most, 1.0):.3g} after adjustment for {hypotheses})"
    enough = argument("n_resamples", _count_resamples(n_tails * factor, alpha))
    yield Note(
        f"A p-value from {n_resamples:,} resamples is at least {least:.3g}"
        f"{raised}, and the level is {alpha:g}: {format_count(n_drawn, 'comparison')} may not be "
        f"called a disparity however large the gap. Use {enough} or more."
    )


def _count_resamples(factor: float, alpha: float) -> int:
    """Return the smallest n for which factor / (n + 1) is at most alpha."""
    n = max(1, math.ceil(factor / alpha) - 2)
    while factor / (n + 1) > alpha:
        n += 1
    return n


def _note_notes(judged: Sequence[AuditRow], known: Sequence[str]) -> Iterator[str]:
    """Yield how many comparisons have notes of their own, and the first of these notes."""
    noted = [row for row in judged if set(_result_of(row).notes) - set(known)]
    if noted:
        first = noted[0]
        note = _result_of(first).notes[0]
        yield Note(
            f"{format_count(len(noted), 'comparison has', 'comparisons have')} notes, in the rows' "
            f"result.notes. The first ({shown(first.attribute)}, {shown(first.metric)}): "
            f"{note.marked if isinstance(note, Note) else note}"
        )


def judge_pairs(pairs: Sequence[ComparedPair], settings: Settings) -> tuple[list[AuditRow], int]:
    """Return the rows with adjusted p-values and verdicts, and the number of hypotheses."""
    judged = [pair for pair in pairs if pair.is_judged]
    keys = [pair.hypothesis(settings.alternative) for pair in judged]
    n_hypotheses = len(set(keys))
    pvalues = iter(_adjust_pvalues(judged, keys, settings))
    equivalence = iter(_adjust_equivalence(judged, keys, settings))
    level = settings.alpha if settings.adjust is None else settings.alpha / max(n_hypotheses, 1)
    rows = []
    detectable: dict[tuple[object, ...], float] = {}  # the same for a metric and its complement
    for pair in pairs:
        row = pair.row
        if row.result is not None:
            key = pair.hypothesis(settings.alternative)
            if key not in detectable:
                detectable[key] = _detectable_gap(pair, row.result, level)
            row = replace(row, detectable_gap=detectable[key])
        if pair.is_judged:
            row = replace(row, adjusted_pvalue=next(pvalues), equivalence_pvalue=next(equivalence))
            row = give_verdict(row, settings)
        rows.append(row)
    return rows, n_hypotheses


def _detectable_gap(pair: ComparedPair, result: PermutationTestResult, level: float) -> float:
    if level >= _POWER:  # which the test reaches without a gap
        return 0.0
    # a mean over classes has no parts, and is at most 1
    most = max((part.span for part in pair.question.metric.parts), default=1.0)
    return detectable_gap(result, level, _POWER, most)


def _adjust_pvalues(
    judged: Sequence[ComparedPair], keys: Sequence[tuple[object, ...]], settings: Settings
) -> list[float]:
    raw = {key: _result_of(pair.row).pvalue for pair, key in zip(judged, keys, strict=True)}
    if settings.adjust == "maxt" and judged:
        joint = max_t_pvalues(dict(zip(keys, judged, strict=True)), settings)
        return [max(joint[key], raw[key]) for key in keys]
    values = adjust_pvalues(np.array(list(raw.values())), settings.adjust)
    by_key = dict(zip(raw, values.tolist(), strict=True))
    return [by_key[key] for key in keys]


def _adjust_equivalence(
    judged: Sequence[ComparedPair], keys: Sequence[tuple[object, ...]], settings: Settings
) -> list[float | None]:
    """Return the p-values of equivalence, adjusted in the same way (by Holm for max-T)."""
    raw: dict[tuple[object, ...], float] = {}
    with_margin = [(*key, pair.row.margin) for pair, key in zip(judged, keys, strict=True)]
    for pair, key in zip(judged, with_margin, strict=True):
        result, margin = _result_of(pair.row), pair.row.margin
        # several gaps have no one margin; without a standard error there is no test
        if margin is not None and not result.is_joint and result.variance is not None:
            raw[key] = max(test.pvalue for test in margin_pvalues(result, margin))
    method = "holm" if settings.adjust == "maxt" else settings.adjust
    values = adjust_pvalues(np.array(list(raw.values())), method)
    by_key = dict(zip(raw, values.tolist(), strict=True))
    return [by_key.get(key) for key in with_margin]


def _result_of(row: AuditRow) -> PermutationTestResult:
    if row.result is None:
        raise ValueError("a judged row has a result")
    return row.result
