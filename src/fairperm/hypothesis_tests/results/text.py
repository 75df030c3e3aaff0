"""The text of results: a title, lines of names and numbers, and notes."""

from __future__ import annotations

import re
import shutil
import sys
from html import escape
from typing import TYPE_CHECKING, Any

from fairperm._utils.formatting import (
    count_units,
    format_count,
    format_level,
    format_name,
    format_number,
    format_pvalue,
    wrap_text,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from fairperm._utils.formatting import Units
    from fairperm.hypothesis_tests.results.audits import AuditData, RowCounts

_LINE = 88  # characters
_SMALL_GROUP = re.compile(r"(.+? has only [\d,]+ [a-z ]+?)(?: and (?=.+ has only )|$)")
_MAX_SMALL = 4  # groups named


class ShownResult:
    """A result that shows itself: its answer, then names and numbers, then notes."""

    __slots__ = ()

    @property
    def answer(self) -> str:
        """The result in a sentence."""
        raise NotImplementedError

    def _lines(self) -> list[tuple[str, str]]:
        """Return the names and texts below the answer."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return write_result(self.answer, self._lines(), getattr(self, "notes", ()))

    def _repr_html_(self) -> str:
        return write_html(self.answer, self._lines(), getattr(self, "notes", ()))


def write_result(answer: str, lines: Sequence[tuple[str, str]], notes: Iterable[str] = ()) -> str:
    """Return the answer, a line for each name and its text, and the notes."""
    width = max(len(name) for name, _ in lines)
    wrapped = [line for name, text in lines for line in _wrap(name, text, width)]
    return "\n".join([*wrap_answer(answer), *wrapped, *wrap_notes(notes, width)])


def wrap_answer(answer: str) -> list[str]:
    """Return the lines of an answer."""
    return wrap_text(answer, _line())


_TABLE = "border-collapse:collapse;margin:.4em 0;text-align:left"
_HEAD = "text-align:left;vertical-align:top;font-weight:600;padding:.15em 1em .15em 0"
_CELL = "text-align:left;vertical-align:top;padding:.15em 0;max-width:46em"


def write_html(answer: str, lines: Sequence[tuple[str, str]], notes: Iterable[str] = ()) -> str:
    """Return the same for a notebook, without scripts and in its own colours."""
    rows = "".join(
        f'<tr style="background:none"><th scope="row" style="{_HEAD}">{escape(name)}</th>'
        f'<td style="{_CELL}">{escape(text.replace("  ", " · "))}</td></tr>'
        for name, text in (*lines, *(("note", note) for note in notes))
    )
    table = f'<table style="{_TABLE}"><tbody>{rows}</tbody></table>'
    return f'<div style="max-width:60em"><p><strong>{escape(answer)}</strong></p>{table}</div>'


def write_table_html(
    answer: str, heads: Sequence[str], rows: Sequence[Sequence[str]], notes: Iterable[str] = ()
) -> str:
    """Return a result with a table for a notebook: the first cell of each row is its name."""
    head = "".join(f'<th scope="col" style="{_HEAD}">{escape(one)}</th>' for one in heads)
    lines = (
        f'<th scope="row" style="{_HEAD}">{escape(first)}</th>'
        + "".join(f'<td style="{_CELL};padding-right:1em">{escape(one)}</td>' for one in others)
        for first, *others in rows
    )
    body = "".join(f'<tr style="background:none">{line}</tr>' for line in lines)
    table = f'<table style="{_TABLE}"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
    told = "".join(f"<p>{escape(note)}</p>" for note in notes)
    return f"<div><p><strong>{escape(answer)}</strong></p>{table if rows else ''}{told}</div>"


def write_table(answer: str, rows: Sequence[Sequence[str]], notes: Iterable[str] = ()) -> str:
    """Return the answer, a line for each row with its cells below one another, and the notes."""
    return "\n".join([*wrap_answer(answer), *align_columns(rows), *notes])


def align_columns(rows: Sequence[Sequence[str]], right: Collection[int] = ()) -> list[str]:
    """Return a line for each row, cells below one another, those of ``right`` to the right.

    In a terminal that is too narrow for that each row has several lines.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        f"{'    ' if band else '  '}{_join_cells(row, widths, places, right)}"
        for row in rows
        for band, places in enumerate(_fit_columns(widths))
    ]


def _join_cells(
    row: Sequence[str], widths: Sequence[int], places: Iterable[int], right: Collection[int]
) -> str:
    aligned = (row[i].rjust(widths[i]) if i in right else row[i].ljust(widths[i]) for i in places)
    return "  ".join(aligned).rstrip()


def _fit_columns(widths: Sequence[int]) -> list[list[int]]:
    """Return the columns of each line of a row, as many as a terminal has room for."""
    room = shutil.get_terminal_size().columns if sys.stdout.isatty() else sys.maxsize
    bands: list[list[int]] = [[]]
    used = 0
    for i, width in enumerate(widths):
        if bands[-1] and used + 2 + width > room:
            bands.append([])
            used = 2
        bands[-1].append(i)
        used += 2 + width
    return bands


def state_rows(n_used: float, n_dropped: int, units: str = "rows") -> tuple[str, str]:
    """Return how many rows were used and left out, as a line of a result.

    Examples
    --------
    >>> state_rows(1998, 2)
    ('rows', '1,998 used, 2 left out for missing values')
    """
    return units, f"{format_count(n_used)} used, {n_dropped:,} left out for missing values"


def wrap_notes(notes: Iterable[str], width: int = 0) -> list[str]:
    """Return the lines of the notes, below names of this width."""
    return [line for note in notes for line in _wrap("note", note, width)]


def _wrap(name: str, text: str, width: int) -> list[str]:
    start, indent = f"  {name:<{width}}  ", " " * (width + 4)
    line = _line()
    longest = max(line, len(indent) + line // 2)  # names of groups may be long
    if len(start) + len(text) <= longest:
        return [start + text]
    return wrap_text(text, longest, start, indent)


def count_rows(counts: Iterable[Mapping[str, float]], n_dropped: int) -> tuple[str, str]:
    """Return how many rows, or items of rankings, the groups of these counts have together."""
    counts = list(counts)
    units = next(one for one in ("rows", "items", "queries") if one in counts[0])
    return state_rows(sum(one[units] for one in counts), n_dropped, units)


def _line() -> int:
    """Return the width of lines: that of a terminal if it is narrow."""
    return min(_LINE, shutil.get_terminal_size().columns) if sys.stdout.isatty() else _LINE


def state_counts(counts: Mapping[str, float]) -> str:
    """Return the rows that a group's value is made of, and its clusters if it has any.

    Examples
    --------
    >>> state_counts({"rows": 90, "clusters": 30, "numerator": 3, "denominator": 40})
    '3 of 40 rows, 30 clusters in the group'
    >>> state_counts({"items": 90, "queries": 30})
    '90 items in 30 queries'
    >>> state_counts({"rows": 90, "sets": 30, "clusters": 6})
    '90 rows, 30 sets, 6 clusters'
    """
    if "sets" in counts:
        words = {"rows": "row", "sets": "set", "clusters": "cluster"}
        return ", ".join(format_count(counts[one], words[one]) for one in words if one in counts)
    units: Units = "rows" if "rows" in counts else "queries"
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


def state_small(reasons: Iterable[str]) -> str:
    """Return how many comparisons are too small, and which groups lack rows, each once.

    Examples
    --------
    >>> few = "'c' has only 3 rows"
    >>> state_small([f"'a' has only 9 rows and {few}; the minimum is 50.", f"{few}; the minimum …"])
    "2 too small: 'a' has only 9 rows, 'c' has only 3 rows"
    """
    reasons = [*reasons]
    lacking: dict[str, None] = {}
    for one in reasons:
        text = one.partition("; the minimum")[0].rstrip(".")
        lacking |= dict.fromkeys(_SMALL_GROUP.findall(text) or [text])
    rest = f" and {len(lacking) - _MAX_SMALL} more" if len(lacking) > _MAX_SMALL else ""
    return f"{len(reasons)} too small: {', '.join([*lacking][:_MAX_SMALL])}{rest}"


def state_used_rows(audit: AuditData) -> str:
    """Return how many rows were used and left out, of each attribute if they differ."""
    counts = audit.row_counts
    rows = {(one.read, one.dropped, one.used, one.by_metric) for one in counts}
    if len(rows) == 1:
        return f"{_state_used(counts[0])} left out for missing values."
    parts = (f"{format_name(one.attribute)}: {_state_used(one)} left out" for one in counts)
    text = "; ".join(parts)
    return f"{text[:1].upper()}{text[1:]}, all for missing values."


def _state_used(one: RowCounts) -> str:
    at_least, up_to = ("at least ", "up to ") if one.by_metric else ("", "")
    whole = "" if one.read is None else f"{one.read:,}"
    used = f"{one.used:,} of {whole}" if whole else format_count(one.used)
    noun = "items" if one.units != "rows" and whole else one.units
    text = f"{at_least}{used} {noun} used, {up_to}{one.dropped:,}"
    items = " items" if one.units == "queries" and not whole else ""
    return f"{text[:1].upper()}{text[1:]}{items}"


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
    """Return which groups get no verdict."""
    least = f"fewer than {audit.min_group_size:,}"
    if audit.group_size_by == "rows":
        return f"Groups with {least} {audit.units} get no verdict."
    units = f"relevant {audit.units}"
    if audit.units == "items":
        both = "clusters of queries" if audit.is_clustered else "queries"
        units = f"{'effective ' if audit.is_clustered else ''}{both} with items of both groups"
    elif audit.is_matched:
        units = "clusters of matched sets" if audit.is_clustered else "matched sets"
    elif audit.has_names:
        units = "names"
    elif audit.is_clustered:
        units = "effective relevant clusters"
    elif audit.is_weighted or audit.assumption is not None:
        units = "effective relevant rows"
    return f"Groups with {least} {units} get no verdict."
