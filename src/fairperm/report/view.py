"""What the pages show of an audit, as plain texts in the order of the page."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fairperm.hypothesis_tests.results.audits import VERDICTS
from fairperm.report import names as words
from fairperm.report.names import Names

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from fairperm.hypothesis_tests.results.audits import (
        AuditData,
        AuditRow,
        GroupSummary,
        OmnibusRow,
    )
    from fairperm.hypothesis_tests.results.gaps import PermutationTestResult

WEIGHTIEST_FIRST = ("disparity", "inconclusive", "equivalent", "too small")


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One comparison in the table."""

    row: AuditRow
    first: str
    second: str
    values: tuple[str, str]
    counts: tuple[str, str]
    gap: str
    interval: str
    ratio: str
    ratio_interval: str
    pvalue: str
    adjusted_pvalue: str
    detectable: str

    @property
    def verdict(self) -> str:
        """Return the verdict, as in the audit."""
        return self.row.verdict

    @property
    def reason(self) -> str:
        """Return why, in the audit's own words."""
        return self.row.reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """All comparisons of one attribute in one metric."""

    attribute: str
    metric: str
    meaning: str
    needs_predictions: bool
    together: str
    together_reason: str
    lines: tuple[Line, ...]

    def of(self, verdict: str) -> list[Line]:
        """Return the comparisons with this verdict."""
        return [line for line in self.lines if line.verdict == verdict]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupLine:
    """One group in the table of the data."""

    name: str
    whole_name: str
    rows: str
    share: str
    positives: str
    base_rate: str
    is_small: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """All that the templates need of an audit."""

    audit: AuditData
    names: Names
    sections: tuple[Section, ...]
    groups: dict[str, list[GroupLine]]
    tally: dict[str, int]

    @classmethod
    def of(cls, audit: AuditData) -> View:
        """Return the view of an audit."""
        names = Names(_groups(audit))
        attributes = Names(
            [*(one.attribute for one in audit.groups), *(row.attribute for row in audit.rows)]
        )
        tally = Counter(row.verdict for row in audit.rows)
        return cls(
            audit=audit,
            names=names,
            sections=tuple(_sections(audit, names, attributes)),
            groups=_group_lines(audit.groups, names, attributes),
            tally={verdict: tally[verdict] for verdict in VERDICTS},
        )

    @property
    def lines(self) -> list[Line]:
        """Return all comparisons, in the order asked for."""
        return [line for section in self.sections for line in section.lines]

    @property
    def n_judged(self) -> int:
        """Return how many comparisons have a verdict on the gap."""
        return len(self.audit.rows) - self.tally["too small"]


def _groups(audit: AuditData) -> list[Hashable]:
    of_rows = [group for row in audit.rows for group in row.groups]
    return [*(one.group for one in audit.groups), *of_rows]


def _sections(audit: AuditData, names: Names, attributes: Names) -> list[Section]:
    together = {(one.attribute, one.metric): one for one in audit.omnibus}
    rows: dict[tuple[str, str], list[AuditRow]] = {}
    for row in audit.rows:
        rows.setdefault((row.attribute, row.metric), []).append(row)
    return [
        _section(
            attributes.of(attribute), metric, of_both, together.get((attribute, metric)), names
        )
        for (attribute, metric), of_both in rows.items()
    ]


def _section(
    attribute: str,
    metric: str,
    rows: Sequence[AuditRow],
    together: OmnibusRow | None,
    names: Names,
) -> Section:
    full = next((row.result.metric for row in rows if row.result is not None), metric)
    test = None if together is None else together.result
    return Section(
        attribute=attribute,
        metric=words.shortened(words.visible(words.words(metric))),
        meaning=words.meaning(full) or words.meaning(metric),
        needs_predictions=words.needs_predictions(full),
        together="" if test is None else words.pvalue(test.pvalue),
        together_reason="" if together is None else together.reason,
        lines=tuple(_line(row, names) for row in rows),
    )


def _line(row: AuditRow, names: Names) -> Line:
    first, second = row.groups
    values = row.values
    return Line(
        row=row,
        first=names.of(first),
        second=names.of(second),
        values=(words.number(values[0]), words.number(values[1])),
        counts=(_counts(row.result, first), _counts(row.result, second)),
        gap=words.number(row.difference, "+"),
        interval=words.interval(row.confidence_interval, "+"),
        ratio=words.number(row.ratio),
        ratio_interval=words.interval(row.ratio_interval),
        pvalue=words.pvalue(row.pvalue),
        adjusted_pvalue=words.pvalue(row.adjusted_pvalue),
        detectable=detectable(row.detectable_gap),
    )


def detectable(gap: float | None) -> str:
    """Return the smallest gap that would have been found."""
    if gap is None:
        return words.NONE
    text = words.number(gap)
    return "none" if text == "no limit" else text


def _counts(result: PermutationTestResult | None, group: Hashable) -> str:
    if result is None:
        return ""
    counts = result.counts[group]
    if "denominator" in counts:
        return f"{words.count(counts['numerator'])} of {words.count(counts['denominator'])}"
    return words.plural(int(counts["rows"]), "row")


def _group_lines(
    groups: Sequence[GroupSummary], names: Names, attributes: Names
) -> dict[str, list[GroupLine]]:
    totals: Counter[str] = Counter()
    for one in groups:
        totals[one.attribute] += one.rows
    found: dict[str, list[GroupLine]] = {}
    for one in groups:
        total, positives = totals[one.attribute], one.positives
        whole, short = words.visible(one.group), names.of(one.group)
        found.setdefault(attributes.of(one.attribute), []).append(
            GroupLine(
                name=short,
                whole_name="" if whole == short else whole,
                rows=words.count(one.rows),
                share=words.percent(one.rows / total) if total else words.NONE,
                positives=words.NONE if positives is None else words.count(positives),
                base_rate=(
                    words.NONE
                    if positives is None or not one.rows
                    else words.percent(positives / one.rows)
                ),
                is_small=one.is_small,
            )
        )
    return found
