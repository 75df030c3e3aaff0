"""The text of results: a title, lines of names and numbers, and notes."""

from __future__ import annotations

import shutil
import sys
import textwrap
from typing import TYPE_CHECKING, Any

from fairperm._utils.formatting import (
    count_units,
    format_count,
    format_level,
    format_name,
    format_number,
    format_pvalue,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from fairperm.hypothesis_tests.results.audits import AuditData

_LINE = 88  # characters


def write_result(
    title: str, lines: Sequence[tuple[str, str]], n_dropped: int = 0, notes: Iterable[str] = ()
) -> str:
    """Return the title, a line for each name and its text, the rows left out, and the notes."""
    width = max(len(name) for name, _ in lines)
    dropped = [("left out", f"{format_count(n_dropped, 'row')} with missing values")]
    rows = [*lines, *(dropped if n_dropped else [])]
    wrapped = [line for name, text in rows for line in _wrap(name, text, width)]
    return "\n".join([title, *wrapped, *wrap_notes(notes, width)])


def wrap_notes(notes: Iterable[str], width: int = 0) -> list[str]:
    """Return the lines of the notes, below names of this width."""
    return [line for note in notes for line in _wrap("note", note, width)]


def _wrap(name: str, text: str, width: int) -> list[str]:
    start, indent = f"  {name:<{width}}  ", " " * (width + 4)
    line = _LINE
    if sys.stdout.isatty():
        line = min(line, shutil.get_terminal_size().columns)
    longest = max(line, len(indent) + line // 2)  # names of groups may be long
    if len(start) + len(text) <= longest:
        return [start + text]
    return textwrap.wrap(
        text,
        longest,
        initial_indent=start,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def state_counts(counts: Mapping[str, float]) -> str:
    """Return the rows that a group's value is made of, and its clusters if it has any.

    Examples
    --------
    >>> state_counts({"rows": 90, "clusters": 30, "numerator": 3, "denominator": 40})
    '3 of 40 rows, 30 clusters in the group'
    >>> state_counts({"items": 90, "queries": 30})
    '90 items in 30 queries'
    """
    if "sets" in counts:
        return f"{format_count(counts['rows'], 'row')}, {format_count(counts['sets'], 'set')}"
    units = "rows" if "rows" in counts else "queries"
    rows, clusters = count_units(counts[units], units), counts.get("clusters")
    if "items" in counts:
        rows = f"{format_count(counts['items'], 'item')} in {rows}"
    if "denominator" in counts:
        rows = " of ".join(format_count(counts[name]) for name in ("numerator", "denominator"))
        rows += " rows" if "weight" in counts or clusters is not None else ""
    if clusters is None:
        return rows
    is_part = counts.get("denominator", counts[units]) != counts[units]
    return f"{rows}, {format_count(clusters, 'cluster')}{' in the group' if is_part else ''}"


def state_value(value: Any, counts: Mapping[str, float]) -> str:
    """Return a group's value, or those of a joint metric, with the rows that it is made of."""
    parts = value.items() if isinstance(value, dict) else [("", value)]
    text = ", ".join(f"{name} {format_number(one)}".lstrip() for name, one in parts)
    weighted = " weighted" if "weight" in counts else ""
    of = "" if "denominator" in counts else "of "
    return f"{text}{weighted}  {of}{state_counts(counts)}"


def state_draws(
    n_resamples: int, level: float, interval: tuple[float, float], *, stopped_early: bool = False
) -> str:
    """Return the number of draws, and the interval of the p-value of infinitely many."""
    low, high = map(format_pvalue, interval)
    draws = f"{n_resamples:,} draws{' (stopped early)' if stopped_early else ''}"
    return f"{draws}, {format_level(level)} interval {low} to {high}"


def state_dropped(audit: AuditData) -> str:
    """Return how many rows were read, dropped and used, of each attribute if they differ."""
    counts = audit.row_counts
    rows = {(one.read, one.dropped, one.used, one.by_metric) for one in counts}
    first = counts[0]
    item = "row" if first.units == "rows" else "item"
    whole = "" if first.read is None else f"Of {count_units(first.read, f'{item}s')}, "
    if len(rows) == 1:
        up_to, at_least = ("up to ", "at least ") if first.by_metric else ("", "")
        used = format_count(first.used) if whole else count_units(first.used, first.units)
        what = "" if whole else f" {item}s"
        text = f"{whole}{up_to}{format_count(first.dropped)}{what} with missing values "
        text += f"{'was' if first.dropped == 1 else 'were'} dropped and {at_least}{used} used."
        return text[:1].upper() + text[1:]
    parts = (
        f"{format_name(one.attribute)} {'up to ' if one.by_metric else ''}{one.dropped:,} "
        f"({'at least ' if one.by_metric else ''}{one.used:,} used)"
        for one in counts
    )
    text = f"{whole}those with missing values were dropped by attribute: {', '.join(parts)}."
    return text[:1].upper() + text[1:]


def state_hypotheses(audit: AuditData) -> str:
    """Return how many hypotheses there are, and of each attribute if it is a family of its own."""
    count = format_count(audit.n_hypotheses, "hypothesis", "hypotheses")
    if not audit.families:
        return count
    numbers = ", ".join(f"{format_name(name)} {n:,}" for name, n in audit.families.items())
    return f"{count}, those of each attribute by themselves ({numbers})"


def state_threshold(audit: AuditData) -> Iterator[str]:
    """Yield which scores are predicted positive, if scores make the predictions."""
    cut, new = audit.settings.get("threshold"), audit.settings.get("threshold_new")
    if cut is not None:
        of_new = f" (new model: {new:.10g})" if new not in {None, cut} else ""
        yield f"Scores of at least {cut:.10g}{of_new} are predicted positive."


def state_min_group_size(audit: AuditData) -> str:
    """Return which groups are not judged."""
    least = f"fewer than {audit.min_group_size:,}"
    if audit.group_size_by == "rows":
        return f"Groups of {least} {audit.units} are not judged."
    units = f"of its {audit.units}"
    if audit.units == "items":
        both = "clusters of queries" if audit.is_clustered else "queries"
        units = f"{'effective ' if audit.is_clustered else ''}{both} with items of both groups"
    elif audit.is_matched:
        units = "matched sets"
    elif audit.is_clustered:
        units = "effective clusters of the group"
    elif audit.is_weighted:
        units = "effective rows of the group"
    return f"A group is not judged in a metric that rests on {least} {units}."
