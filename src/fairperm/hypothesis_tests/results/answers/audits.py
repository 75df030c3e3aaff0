"""The answers of audits, and of their rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairperm._utils.formatting import (
    Unit,
    format_count,
    format_metric,
    format_name,
    format_number,
    join_words,
    state_pvalue,
)
from fairperm.hypothesis_tests.results.answers.changes import answer_gap_change
from fairperm.hypothesis_tests.results.answers.gaps import describe_gap
from fairperm.hypothesis_tests.results.answers.words import (
    are,
    embed,
    exclude_chance,
    explain_by,
    furthest_apart,
    isolate,
    judge,
    say_open,
    sentence,
    state_p,
    unit_of,
    unit_of_gap,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from fairperm.hypothesis_tests.results.answers.words import Names
    from fairperm.hypothesis_tests.results.audits import AuditData, AuditRow


def answer_audit(audit: AuditData, name: Callable[[AuditRow], Names] | None = None) -> str:
    """Return how many gaps are real, the largest, what stays open, and what that rests on.

    ``name`` returns the names of a row's groups, if they are not to have their own.
    """
    found = _answer_gaps(audit, name or _name_row)
    return found if audit.assumption is None else f"{found} {audit.assumption.sentences}"


def _answer_gaps(audit: AuditData, name: Callable[[AuditRow], Names]) -> str:
    counts = {one: sum(row.verdict == one for row in audit.rows) for one in _VERDICTS}
    judged = [row for row in audit.rows if row.verdict != "too small"]
    if audit.compares_models:
        return f"{answer_changes(audit)} {_compare_models(audit, judged, name)}"
    if not judged:
        reason = audit.rows[0].reason if audit.rows else "there is no comparison"
        text = "No comparison could be judged"
        if len(audit.rows) == 1:
            return f"{text}: {reason.rstrip('.')}."
        return f"{text}: groups are too small, or metrics have no value in them."
    if len(audit.rows) == 1:
        return answer_row(audit.rows[0], name(audit.rows[0]))
    if len(judged) == 1:
        others = f" {format_count(counts['too small'], 'other')} could not be judged."
        return f"{answer_row(judged[0], name(judged[0]))}{others}"
    parts = [_count_found(audit, judged, name)]
    if n := counts["equivalent"]:
        parts.append(f"{n:,} {are(n)} within the margin.")
    if counts["inconclusive"]:
        parts.append(_count_undecided(row for row in judged if row.verdict == "inconclusive"))
    if n := counts["too small"]:
        parts.append(f"{n:,} could not be judged.")
    remarks = [] if counts["disparity"] else describe_joint_findings(audit).values()
    return " ".join([*parts, *remarks])


def _compare_models(
    audit: AuditData, judged: Sequence[AuditRow], name: Callable[[AuditRow], Names]
) -> str:
    """Return the verdicts on the gaps of the old and of the new model."""
    if len(audit.rows) == 1:
        (row,) = audit.rows
        new = _ALONE[row.change.verdict_new] if row.change is not None else ""
        return f"With the old model: {answer_row(row, name(row))} With the new model {new}."
    if not judged:
        return "No gap could be judged: groups are too small, or metrics have no value in them."
    n_new = sum(row.change is not None and row.change.verdict_new == "disparity" for row in judged)
    found = _count_found(audit, judged, name, " with the old model")
    of_new = f"{n_new:,} {are(n_new)}" if n_new else "none is"
    return f"{found} With the new model {of_new}. Gaps that are not shown are not ruled out."


_ALONE = {
    "disparity": "this gap is a disparity",
    "equivalent": "this gap is within the margin",
    "inconclusive": "this gap is undecided",
    "too small": "this gap is not judged",
}


def _name_row(row: AuditRow) -> Names:
    return row.names


def _count_found(
    audit: AuditData,
    judged: Sequence[AuditRow],
    name: Callable[[AuditRow], Names],
    when: str = "",
) -> str:
    """Return how many gaps are real, and the largest of them."""
    found = [row for row in judged if row.verdict == "disparity"]
    is_one = len(found) == 1
    results = (row.result for row in found if row.result is not None)
    claim = f"{are(len(found))} larger than {explain_by(*results)}"
    if {row.margin is not None for row in found or judged} == {True}:
        claim = (
            f"exceed{'s' if is_one else ''} the margin"
            if found
            else "is shown to exceed the margin"
        )
    of = format_count(len(judged), "judged gap")
    if not found:
        return f"None of {of} {claim}{when}."
    rank, row = _choose(found)
    stated = state_pvalue(_p_of_disparity(row), "p" if audit.adjust is None else "adjusted p")
    chosen = "" if is_one else f"; the {rank}"
    gap = embed(describe_row(row, name(row)))
    return f"{len(found):,} of {of} {claim}{when}{chosen}: {gap}, {stated}."


def _count_undecided(rows: Iterable[AuditRow]) -> str:
    """Return how many gaps are undecided, and what that leaves open."""
    rows = list(rows)
    n, n_margins = len(rows), sum(row.margin is not None for row in rows)
    gaps = {0: "real gaps", n: "gaps beyond the margin"}.get(n_margins, "gaps that matter")
    head = f"{n:,} {are(n)} undecided: {gaps} are not ruled out"
    if shown := sum(map(is_gap_shown, rows)):
        which = "all of them" if shown == n > 1 else f"{shown:,} of them"
        head += f", and chance does not explain {'this one' if n == 1 else which}"
    return f"{head}."


def is_gap_shown(row: AuditRow) -> bool:
    """Whether a gap is larger than chance explains, also one that may be within its margin."""
    interval = row.adjusted_interval
    return interval is not None and not interval[0] <= 0 <= interval[1]


_VERDICTS = ("disparity", "equivalent", "inconclusive", "too small")


def _choose(rows: Sequence[AuditRow]) -> tuple[str, AuditRow]:
    """Return "largest" and that row if gaps have one unit, "clearest" and that row if not."""
    are_shares = {row.result is not None and unit_of_gap(row.result).is_share for row in rows}
    if are_shares == {True} or len({row.metric for row in rows}) == 1:
        return "largest", max(rows, key=lambda row: abs(row.difference or 0.0))
    return "clearest", min(rows, key=lambda row: _p_of_disparity(row) or 0.0)


def _p_of_disparity(row: AuditRow) -> float | None:
    return row.adjusted_pvalue if row.margin is None else row.adjusted_exceedance_pvalue


def describe_joint_findings(audit: AuditData) -> dict[tuple[str, str], str]:
    """Return where all groups together differ, and no comparison of two shows it.

    The sentences are by attribute and metric.
    """
    found: dict[tuple[str, str], str] = {}
    shown = {
        (row.attribute, row.metric)
        for row in audit.rows
        if row.adjusted_pvalue is not None and row.adjusted_pvalue <= audit.alpha
    }
    for one in audit.omnibus:
        result = one.result
        if result is None or result.pvalue > audit.alpha or (one.attribute, one.metric) in shown:
            continue
        ends = furthest_apart(result)
        text = (
            f"All groups of {format_name(one.attribute)} together differ in "
            f"{format_metric(one.metric)} by more than chance explains "
            f"({state_pvalue(result.pvalue)}, not adjusted), but no comparison of two does"
        )
        if ends is not None:
            unit = unit_of(result.metric, result.counts.values())
            low, high = (f"{name} ({unit.value(value)})" for name, value in ends)
            text += f"; furthest apart are {high} and {low}"
        found[one.attribute, one.metric] = f"{text}."
    return found


def answer_changes(audit: AuditData) -> str:
    """Return how many gaps a new model narrows and widens."""
    changes = [row.change for row in audit.rows if row.change is not None]
    if len(changes) == 1:
        return answer_gap_change(changes[0])
    counts: dict[str, int] = {}
    for one in changes:
        counts[one.verdict] = counts.get(one.verdict, 0) + 1
    n = format_count(len(changes), "gap")
    first, *others = [
        f"{counts[one]:,}{{}} {verb}" for one, verb in _CHANGED.items() if one in counts
    ]
    parts = [first.format(f" of {n}"), *(one.format("") for one in others)]
    return f"From the old to the new model, {join_words(parts)}."


_CHANGED = {  # the verdicts on changes, as verbs
    "widened": "widened",
    "narrowed": "narrowed",
    "closed": "closed",
    "changed": "changed (whether they are smaller or larger is undecided)",
    "unchanged within margin": "changed by less than the margin",
    "inconclusive": "may or may not have changed",
    "too small": "could not be judged",
}


def answer_row(row: AuditRow, names: Names | None = None) -> str:
    """Return the gap of a row of an audit and its verdict; perhaps with other names of groups."""
    return sentence(f"{describe_row(row, names)}{judge_row(row)}")


def describe_row(row: AuditRow, names: Names | None = None) -> str:
    """Return the gap of a row of an audit."""
    first, second = map(isolate, names or row.names)
    result, metric = row.result, format_metric(row.metric)
    if result is None or row.difference is None:
        return f"{first} and {second} are not compared in {metric}"
    if row.is_distance:
        gap, chance = map(format_number, (row.difference, row.expected))
        return f"The {metric} between {first} and {second} is {gap} ({chance} expected by chance)"
    return describe_gap(result, (first, second))


def judge_row(row: AuditRow) -> str:
    """Return what an audit says of a gap, to follow it."""
    result, margin, p = row.result, row.margin, row.adjusted_pvalue
    if row.verdict == "too small" or result is None or p is None:
        return f"; not judged: {row.reason.rstrip('.')}"
    size = "" if margin is None else unit_of_gap(result).size(margin)
    if row.verdict == "disparity" and margin is None:
        return f"; {exclude_chance(result, 'it', state_p(row.pvalue, p, result))}"
    if row.verdict == "disparity":
        stated = state_p(row.exceedance_pvalue, row.adjusted_exceedance_pvalue, result)
        return f"; it exceeds the margin of {size} ({stated})"
    if row.verdict == "equivalent":
        stated = state_p(row.equivalence_pvalue, row.adjusted_equivalence_pvalue, result)
        return f"; it is within the margin of {size} ({stated})"
    stated, interval = state_p(row.pvalue, p, result), row.adjusted_interval
    if margin is not None and is_gap_shown(row):
        beyond = f"but whether it exceeds the margin of {size} is undecided"
        return f"; {exclude_chance(result, 'it', stated)}, {beyond}"
    open_end = "" if interval is None else say_open(result, interval)
    if margin is not None:
        open_end += f"{' and' if open_end else '; here'} the margin is {size}"
    return judge(result, "it", stated, is_shown=False, open_end=open_end)


def unit_of_row(row: AuditRow) -> Unit:
    """Return the unit of a row's values."""
    if row.result is None or row.is_distance:
        return Unit(is_share=False)
    return unit_of_gap(row.result)
