"""Verdicts: adjusted p-values, margins, and what can be said of each gap."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from fairperm.auditing.max_t import Family, max_t
from fairperm.errors import InputError, shown
from fairperm.hypothesis_tests.margins.one_sided import margin_pvalues
from fairperm.inference.multiplicity import adjusted
from fairperm.metrics.callables import CallableMetric
from fairperm.metrics.ranks import RankMetric
from fairperm.planning.power import detectable_gap

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fairperm.auditing.comparisons import Found, Settings
    from fairperm.auditing.questions import Question
    from fairperm.hypothesis_tests.results.audits import AuditRow
    from fairperm.hypothesis_tests.results.gaps import PermutationTestResult

_POWER = 0.8
_SMALLEST_P = 1e-4  # below this, only that it is below


def with_verdicts(found: Sequence[Found], settings: Settings) -> tuple[list[AuditRow], int]:
    """Return the rows with adjusted p-values and verdicts, and the number of hypotheses."""
    judged = [one for one in found if one.is_judged]
    keys = [one.hypothesis(settings.alternative) for one in judged]
    n_hypotheses = len(set(keys))
    pvalues = _adjusted_pvalues(judged, keys, settings)
    equivalence = _adjusted_equivalence(judged, keys, settings)
    level = settings.alpha if settings.adjust is None else settings.alpha / max(n_hypotheses, 1)
    rows = []
    detectable: dict[tuple[object, ...], float] = {}  # the same for a metric and its complement
    at = 0
    for one in found:
        row = one.row
        if row.result is not None:
            key = one.hypothesis(settings.alternative)
            if key not in detectable:
                # a level above the power needs no gap to be reached
                known = level < _POWER
                parts = one.question.metric.parts  # none of a mean over classes, which is at most 1
                most = max((part.span for part in parts), default=1.0)
                detectable[key] = detectable_gap(row.result, level, _POWER, most) if known else 0.0
            row = replace(row, detectable_gap=detectable[key])
        if one.is_judged:
            row = replace(row, adjusted_pvalue=pvalues[at], equivalence_pvalue=equivalence[at])
            row = _judged(row, settings)
            at += 1
        rows.append(row)
    return rows, n_hypotheses


def notes_of(
    rows: Sequence[AuditRow], n_hypotheses: int, settings: Settings, but: Sequence[str]
) -> tuple[str, ...]:
    """Return what must be known of the whole audit to read it rightly; not what is known anyway."""
    judged = [row for row in rows if row.adjusted_pvalue is not None and row.result is not None]
    drawn = [row for row in judged if settings.adjust == "maxt" or not _result_of(row).exact]
    return (
        *_nothing_judged(rows, judged),
        *_too_few_resamples(len(drawn), n_hypotheses, settings),
        *_own_notes(judged, but),
    )


def _nothing_judged(rows: Sequence[AuditRow], judged: Sequence[AuditRow]) -> Iterator[str]:
    """Yield a note if no comparison has a verdict that says anything of the gap."""
    if rows and not judged:
        few = {group for row in rows for group in row.groups}
        bands = " Numbers can be cut into bands, or see correlation_test." if len(few) > 20 else ""
        yield (
            "Nothing was judged: every comparison has a group that is too small, or in which the "
            f"metric has no value. That is no evidence of anything.{bands}"
        )


def _too_few_resamples(n_drawn: int, n_hypotheses: int, settings: Settings) -> Iterator[str]:
    """Yield a note if a p-value from draws may be above the level however large the gap."""
    n_resamples, alpha = settings.resampling.n_resamples, settings.alpha
    factor: float = {
        None: 1.0,
        "maxt": 1.0,
        "by": n_hypotheses * sum(1 / rank for rank in range(1, n_hypotheses + 1)),
    }.get(settings.adjust, float(n_hypotheses))
    most = factor / (n_resamples + 1)
    if n_drawn == 0 or n_resamples == 0 or most <= alpha:
        return
    raised = ""
    if factor > 1:
        some = "1 hypothesis" if n_hypotheses == 1 else f"{n_hypotheses:,} hypotheses"
        raised = f" (up to {min(most, 1.0):.3g} after adjustment for {some})"
    yield (
        f"A p-value from {n_resamples:,} resamples is at least {1 / (n_resamples + 1):.3g}"
        f"{raised}, and the level is {alpha:g}: {n_drawn:,} of the comparisons may not be called "
        f"a disparity however large their gaps. Use n_resamples={_resamples_for(factor, alpha)} "
        "or more."
    )


def _resamples_for(factor: float, alpha: float) -> int:
    """Return how many resamples it takes for factor / (n + 1) to be at most alpha."""
    n = max(1, math.ceil(factor / alpha) - 2)
    while factor / (n + 1) > alpha:
        n += 1
    return n


def _own_notes(judged: Sequence[AuditRow], but: Sequence[str]) -> Iterator[str]:
    """Yield that comparisons have notes of their own, and the first of them."""
    noted = [row for row in judged if set(_result_of(row).notes) - set(but)]
    if noted:
        own = (
            "comparison has notes of its own"
            if len(noted) == 1
            else "comparisons have notes of their own"
        )
        first = noted[0]
        yield (
            f"{len(noted):,} {own}, in the rows' result.notes. The first "
            f"({shown(first.attribute)}, {shown(first.metric)}): {_result_of(first).notes[0]}"
        )


def _adjusted_pvalues(
    judged: Sequence[Found], keys: Sequence[tuple[object, ...]], settings: Settings
) -> list[float]:
    raw = {key: _result_of(one.row).pvalue for one, key in zip(judged, keys, strict=True)}
    if settings.adjust == "maxt" and judged:
        by_draws = _max_t(judged, keys, settings)
        return [max(by_draws[key], raw[key]) for key in keys]
    values = adjusted(np.array(list(raw.values())), settings.adjust)
    by_key = dict(zip(raw, values.tolist(), strict=True))
    return [by_key[key] for key in keys]


def _adjusted_equivalence(
    judged: Sequence[Found], keys: Sequence[tuple[object, ...]], settings: Settings
) -> list[float | None]:
    """Return the p-values of the margins, adjusted as the others are (Holm for joint draws)."""
    raw: dict[tuple[object, ...], float] = {}
    with_margin = [(*key, one.row.margin) for one, key in zip(judged, keys, strict=True)]
    for one, key in zip(judged, with_margin, strict=True):
        if one.row.margin is not None and one.row.result is not None:
            if one.row.result.is_joint or one.row.result.variance is None:
                continue  # several gaps have no one margin; without an error there is no test
            tests = margin_pvalues(one.row.result, one.row.margin)
            raw[key] = max(test.pvalue for test in tests)
    method = "holm" if settings.adjust == "maxt" else settings.adjust
    values = adjusted(np.array(list(raw.values())), method)
    by_key = dict(zip(raw, values.tolist(), strict=True))
    return [by_key.get(key) for key in with_margin]


def _result_of(row: AuditRow) -> PermutationTestResult:
    if row.result is None:
        raise ValueError("a judged row has a result")
    return row.result


def _judged(row: AuditRow, settings: Settings) -> AuditRow:
    """Return the row with its verdict."""
    alpha, margin = settings.alpha, row.margin
    p = row.adjusted_pvalue
    gap = row.difference
    if p is None or gap is None:
        return row
    which = "p" if settings.adjust is None else "adjusted p"
    rejected = f"{which} {_told(p, alpha)} is at most {alpha:g}"
    if p <= alpha and (margin is None or abs(gap) > margin):
        beyond = "" if margin is None else f", and the gap is beyond the margin of {margin:g}"
        return replace(row, verdict="disparity", reason=f"{rejected}{beyond}.")
    if margin is not None and row.equivalence_pvalue is not None:
        beyond_p = _told(row.equivalence_pvalue, alpha)
        within = f"{which} {beyond_p} of a gap beyond the margin of {margin:g}"
        if row.equivalence_pvalue <= alpha:
            return replace(row, verdict="equivalent", reason=f"{within} is at most {alpha:g}.")
    if p <= alpha:
        reason = f"{rejected}, but the gap is not beyond the margin of {margin:g}."
    else:
        reason = (
            f"{which} {_told(p, alpha)} is above {alpha:g}: chance alone could make such a gap. "
            "That is no evidence that there is none."
        )
    return replace(row, verdict="inconclusive", reason=reason)


def _told(p: float, alpha: float) -> str:
    """Return a p-value with no more digits than anyone reads, and on its side of the level."""
    least = min(_SMALLEST_P, alpha)
    return f"< {least:g}" if p < least else f"{p:.4g}"


def _max_t(
    judged: Sequence[Found], keys: Sequence[tuple[object, ...]], settings: Settings
) -> dict[tuple[object, ...], float]:
    """Return the p-values by joint draws for each pair of groups, all of them compared."""
    distinct = dict(zip(keys, judged, strict=True))
    families: dict[object, list[tuple[object, ...]]] = {}
    for key, one in distinct.items():
        families.setdefault((one.row.attribute, one.row.groups), []).append(key)
    values = max_t(
        [_family([distinct[key] for key in mine], settings) for mine in families.values()],
        stratum_weights=settings.stratum_weights,
        resampling=settings.resampling,
    )
    ordered = [key for mine in families.values() for key in mine]
    return dict(zip(ordered, values.tolist(), strict=True))


def _family(found: Sequence[Found], settings: Settings) -> Family:
    row, table = found[0].row, found[0].question.reading
    if settings.compare == "rest" and len(table.groups) > 2:
        table = table.against_rest(*row.groups)
    return Family(table, row.groups, tuple(one.question.metric.parts for one in found))


def check_max_t(asked: Sequence[Question], settings: Settings) -> None:
    """Refuse joint draws where there are none."""
    hint = "Use adjust='holm'."
    if settings.resampling.n_resamples == 0:
        raise InputError("adjust", "another for n_resamples=0", "maxt", hint)
    if settings.alternative != "two-sided":
        rule = f"another for alternative={settings.alternative!r}"
        raise InputError("adjust", rule, "maxt", hint)
    if settings.variance is None:
        raise InputError("adjust", "another for variance=None", "maxt", hint)
    for question in asked:
        metric = question.metric
        closed = not isinstance(metric, CallableMetric) and all(p.smooth for p in metric.parts)
        if not closed or not metric.parts:
            rule = f"another for {metric.name}, which has no closed form of its variance"
            raise InputError("adjust", rule, "maxt", hint)
        ranked = isinstance(metric, RankMetric)
        if ranked and (question.table.weight is not None or question.table.cluster is not None):
            rule = f"another for {metric.name} with weights or clusters"
            raise InputError("adjust", rule, "maxt", hint)
        if question.reading is not asked[0].reading and question.attribute == asked[0].attribute:
            rule = f"another for {asked[0].label} and {question.label}, which are read differently"
            raise InputError("adjust", rule, "maxt", hint)
