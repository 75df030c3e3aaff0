"""The contents of a page as plain texts, in its order, with names that no two groups share."""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fairperm._utils.formatting import (
    NONE,
    Unit,
    abbreviate_metric,
    format_count,
    format_interval,
    format_level,
    format_metric,
    format_name,
    format_percent,
    format_pvalue,
    name_group,
    name_of_gap,
    shorten,
    state_pvalue,
)
from fairperm.errors import listed, shown
from fairperm.hypothesis_tests.results.answers.audits import answer_audit, unit_of_row
from fairperm.hypothesis_tests.results.audits import VERDICTS
from fairperm.hypothesis_tests.results.text import state_counts, state_small
from fairperm.metrics.distances import get_distance
from fairperm.metrics.rankings import find_ranking
from fairperm.metrics.registry import find_named
from fairperm.report.plain_words import RANKING_READINGS, READINGS

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

    from fairperm.hypothesis_tests.results.audits import (
        AuditData,
        AuditRow,
        GroupSummary,
        OmnibusRow,
    )
    from fairperm.hypothesis_tests.results.gaps import PermutationTestResult

WEIGHTIEST_FIRST = ("disparity", "inconclusive", "equivalent", "too small")


class ShortNames:
    """Short names of the groups of attributes, no two of them equal.

    A group that is a number has a name for each attribute, other groups have one for all. Names
    given for an attribute and a value come in their place.
    """

    def __init__(
        self,
        groups: Iterable[tuple[str, Hashable]],
        given: Mapping[tuple[str, str], str] | None = None,
    ) -> None:
        self._given = given or {}
        self._short: dict[tuple[str, type, Hashable], str] = {}
        taken: set[str] = set()
        for attribute, group in groups:
            key = text, _, _ = self._find_key(attribute, group)
            if key in self._short:
                continue
            unique, n = text, 2
            while unique in taken:
                unique, n = f"{text} ({n})", n + 1
            taken.add(unique)
            self._short[key] = unique

    def __getitem__(self, name: tuple[str, Hashable]) -> str:
        key = self._find_key(*name)
        return self._short.get(key, key[0])

    def is_given(self, attribute: str, group: Hashable) -> bool:
        """Whether a name was given for a group."""
        return (attribute, str(group)) in self._given

    def _find_key(self, attribute: str, group: Hashable) -> tuple[str, type, Hashable]:
        return self._name(attribute, group), type(group), group

    def _name(self, attribute: str, group: Hashable) -> str:
        if self.is_given(attribute, group):
            return format_name(self._given[attribute, str(group)])
        attributes = attribute.split(" × ")
        if not self._given or not isinstance(group, tuple) or len(group) != len(attributes):
            return name_group(attribute, group)
        return shorten(" × ".join(map(self._name, attributes, group)))


def find_look_alikes(groups: Iterable[Any]) -> list[str]:
    """Return a note on the groups of an attribute whose names differ only in case or spaces.

    Each has an ``attribute`` and a ``group``.
    """
    alike: dict[tuple[str, str], list[str]] = {}
    for one in groups:
        if isinstance(one.group, str):
            key = one.attribute, " ".join(one.group.casefold().split())
            alike.setdefault(key, []).append(one.group)
    return [
        f"Groups of {shown(attribute)} have names that differ only in case or spaces; they are "
        f"treated as different groups: {listed(same)}."
        for (attribute, _), same in alike.items()
        if len(same) > 1
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonView:
    """One comparison in the table.

    ``interval`` is the gap's own, ``judged_interval`` the one that the verdict rests on.
    """

    row: AuditRow
    first: str
    second: str
    values: tuple[str, str]
    value_intervals: tuple[str, str]
    counts: tuple[str, str]
    gap: str
    interval: str
    judged_interval: str
    interval_name: str
    ratio: str
    ratio_interval: str
    pvalue: str
    adjusted_pvalue: str
    exceedance_pvalue: str
    equivalence_pvalue: str
    detectable: str

    @property
    def gap_name(self) -> str:
        """Which gap it is: "a − b"."""
        return name_of_gap(self.first, self.second, absolute=not self.row.has_direction)

    @property
    def verdict(self) -> str:
        """The audit's verdict."""
        return self.row.verdict

    @property
    def needs_reason(self) -> bool:
        """Whether the reason says more than the p-values beside it do."""
        return self.verdict == "too small" or self.row.margin is not None

    @property
    def reason(self) -> str:
        """The reason of the verdict, in the audit's words."""
        return self.row.reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """All comparisons of one attribute in one metric; ``name`` is its registered name, if any."""

    attribute: str
    metric: str
    name: str
    meaning: str
    reading: str
    needs_predictions: bool
    omnibus: str
    lacks_omnibus: bool
    comparisons: tuple[ComparisonView, ...]

    @property
    def small(self) -> str:
        """How many comparisons are too small, and why; "" if none is."""
        small = self.with_verdict("too small")
        return state_small(one.reason for one in small) if small else ""

    def with_verdict(self, verdict: str) -> list[ComparisonView]:
        """Return the comparisons with this verdict."""
        return [one for one in self.comparisons if one.verdict == verdict]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupView:
    """One group in the table of the data, with its value there if a name was given for it."""

    name: str
    whole_name: str
    value: str
    rows: str
    share: str
    positives: str
    base_rate: str
    clusters: str
    is_small: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditView:
    """An audit as the templates show it."""

    audit: AuditData
    names: ShortNames
    sections: tuple[Section, ...]
    groups: dict[str, list[GroupView]]
    tally: dict[str, int]

    @classmethod
    def of(cls, audit: AuditData, given: Mapping[tuple[str, str], str] | None = None) -> AuditView:
        """Return the view of an audit, with the names given for groups."""
        parts: Sequence[GroupSummary | AuditRow] = [*audit.groups, *audit.rows]
        attributes = ShortNames(("", one.attribute) for one in parts)
        row_groups = [(row.attribute, group) for row in audit.rows for group in row.groups]
        groups = [(one.attribute, one.group) for one in audit.groups]
        names = ShortNames([*groups, *row_groups], given)
        tally = Counter(row.verdict for row in audit.rows)
        return cls(
            audit=audit,
            names=names,
            sections=tuple(_view_sections(audit, names, attributes)),
            groups=_view_groups(audit.groups, names, attributes),
            tally={verdict: tally[verdict] for verdict in VERDICTS},
        )

    @property
    def answer(self) -> str:
        """The whole audit in a sentence or two, with the names of this page."""
        names = {id(one.row): (one.first, one.second) for one in self.comparisons}
        return answer_audit(self.audit, lambda row: names[id(row)])

    @property
    def p_name(self) -> str:
        """What the p-values of verdicts are called."""
        return "p" if self.audit.adjust is None else "adjusted p"

    @property
    def comparisons(self) -> list[ComparisonView]:
        """All comparisons, in the order of the audit."""
        return [one for section in self.sections for one in section.comparisons]

    @property
    def has_ratios(self) -> bool:
        """Whether a ratio has a bound."""
        return any(row.ratio_bound is not None for row in self.audit.rows)

    @property
    def has_value_intervals(self) -> bool:
        """Whether groups' values have intervals of their own."""
        return any(any(one.value_intervals) for one in self.comparisons)

    @property
    def has_rates(self) -> bool:
        """Whether gaps are in percentage points."""
        return any(unit_of_row(row).is_share for row in self.audit.rows)

    @property
    def has_distances(self) -> bool:
        """Whether a comparison is of distributions."""
        return any(row.is_distance for row in self.audit.rows)

    @property
    def has_mean_gaps(self) -> bool:
        """Whether gaps are means over strata; parts of lists in strata are lists of their own."""
        return self.audit.is_stratified and self.audit.units != "items"

    @property
    def has_margins(self) -> bool:
        """Whether a comparison has a margin."""
        return any(row.margin is not None for row in self.audit.rows)

    def name_groups(self, groups: tuple[Hashable, Hashable]) -> tuple[str, str]:
        """Return the names of two groups of one attribute, which is sought among the audit's."""
        found: dict[str, set[Hashable]] = {}
        for one in self.audit.groups:
            found.setdefault(one.attribute, set()).add(one.group)
        attributes = [name for name, known in found.items() if known.issuperset(groups)]
        attribute = attributes[0] if len(attributes) == 1 else ""
        return self.names[attribute, groups[0]], self.names[attribute, groups[1]]

    @property
    def n_rows(self) -> int:
        """Number of rows that were read; of queries, those that are used."""
        return max(one.used if one.read is None else one.read for one in self.audit.row_counts)

    @property
    def n_clusters(self) -> int | None:
        """Number of clusters, if all attributes have the same number."""
        numbers: Counter[str] = Counter()
        for one in self.audit.groups:
            numbers[one.attribute] += one.clusters or 0
        return next(iter(numbers.values())) if len({*numbers.values()}) == 1 else None

    @property
    def units(self) -> str:
        """What a sample has many or few of."""
        if self.audit.is_matched:
            return "clusters" if self.audit.is_clustered else "sets"
        if self.audit.is_clustered:
            return "clusters"
        return "rows" if self.audit.units == "rows" else "queries"

    @property
    def exchanged(self) -> str:
        """What exchanges its group labels in a permutation."""
        if self.audit.units == "items":
            return f"the items of each {'stratum of a ' if self.audit.is_stratified else ''}list"
        if self.audit.is_matched:
            return f"the rows of each {'cluster of sets' if self.audit.is_clustered else 'set'}"
        return f"the {self.units} of each stratum" if self.audit.is_stratified else self.units

    @property
    def n_judged(self) -> int:
        """Number of comparisons with a verdict on the gap."""
        return len(self.audit.rows) - self.tally["too small"]


def _view_sections(audit: AuditData, names: ShortNames, attributes: ShortNames) -> list[Section]:
    omnibus = {(one.attribute, one.metric): one for one in audit.omnibus}
    sections: dict[tuple[str, str], list[AuditRow]] = {}
    for row in audit.rows:
        sections.setdefault((row.attribute, row.metric), []).append(row)
    return [
        _view_section(attributes["", of], metric, rows, omnibus.get((of, metric)), names, audit)
        for (of, metric), rows in sections.items()
    ]


def _view_section(
    attribute: str,
    metric: str,
    rows: Sequence[AuditRow],
    omnibus: OmnibusRow | None,
    names: ShortNames,
    audit: AuditData,
) -> Section:
    if rows[0].units != "rows":
        return _view_rankings(attribute, rows, omnibus, names, audit)
    full = next((row.result.metric for row in rows if row.result is not None), metric)
    definition = find_named(full) or find_named(metric)
    registered = "" if definition is None else definition.name
    meaning = "" if definition is None else str(definition.meaning)
    if any(row.is_distance for row in rows):
        given = " given the label" if metric != full else ""
        meaning = get_distance(full).meaning + given
    if audit.is_weighted and meaning.startswith("share of "):
        meaning = f"weighted {meaning}"
    return Section(
        attribute=attribute,
        metric=format_name(format_metric(metric)),
        name=registered,
        meaning=meaning,
        reading="" if definition is None else READINGS.get(definition.listed_name, ""),
        needs_predictions=definition is not None and definition.uses_threshold,
        **_view_comparisons(rows, omnibus, names, audit),
    )


def _view_rankings(
    attribute: str,
    rows: Sequence[AuditRow],
    omnibus: OmnibusRow | None,
    names: ShortNames,
    audit: AuditData,
) -> Section:
    """Return the comparisons in a metric of rankings, which may have the name of another metric."""
    metric = find_ranking(rows[0].metric)
    meaning, reading = (
        text.replace("top k", f"top {metric.k}")
        for text in (metric.meaning, RANKING_READINGS[metric.name])
    )
    return Section(
        attribute=attribute,
        metric=format_name(format_metric(rows[0].metric)),
        name="",
        meaning=meaning if metric.of_items else f"{meaning}; the mean over queries",
        reading=reading,
        needs_predictions=False,
        **_view_comparisons(rows, omnibus, names, audit),
    )


def _view_comparisons(
    rows: Sequence[AuditRow], omnibus: OmnibusRow | None, names: ShortNames, audit: AuditData
) -> dict[str, Any]:
    """Return the fields of a section that say what was found."""
    test = None if omnibus is None else omnibus.result
    spread = None if omnibus is None else omnibus.spread
    spreads = [] if spread is None else [spread.describe(unit_of_row(rows[0]))]
    return {
        "omnibus": "" if test is None else "; ".join([state_pvalue(test.pvalue), *spreads]),
        "lacks_omnibus": omnibus is not None and test is None,
        "comparisons": tuple(_view_comparison(row, names, audit) for row in rows),
    }


def _view_comparison(row: AuditRow, names: ShortNames, audit: AuditData) -> ComparisonView:
    first, second = row.groups
    unit = unit_of_row(row)
    return ComparisonView(
        row=row,
        first=names[row.attribute, first],
        second=names[row.attribute, second],
        values=(_format_value(row.values[0], unit), _format_value(row.values[1], unit)),
        value_intervals=(_format_own_ends(row, first, unit), _format_own_ends(row, second, unit)),
        counts=(_describe_counts(row.result, first), _describe_counts(row.result, second)),
        gap=_format_gap(row, unit),
        interval=_format_ends(row, row.confidence_interval, unit),
        judged_interval=_format_ends(row, row.adjusted_interval, unit),
        interval_name=_name_interval(row, audit),
        ratio=row.ratio_text,
        ratio_interval=format_interval(row.ratio_interval),
        pvalue=format_pvalue(row.pvalue),
        adjusted_pvalue=format_pvalue(row.adjusted_pvalue),
        exceedance_pvalue=format_pvalue(row.adjusted_exceedance_pvalue),
        equivalence_pvalue=format_pvalue(row.adjusted_equivalence_pvalue),
        detectable=_format_detectable(row.detectable_gap, unit),
    )


def _format_value(value: Any, unit: Unit) -> str:
    """Return a group's value, or the values of the parts of a joint metric."""
    if isinstance(value, Mapping):
        parts = (f"{abbreviate_metric(name)} {unit.value(one)}" for name, one in value.items())
        return ", ".join(parts)
    return NONE if value is None else unit.value(value)


def _format_own_ends(row: AuditRow, group: Hashable, unit: Unit) -> str:
    """Return the interval of a group's value by itself; "" without one."""
    ends = None if row.result is None or row.is_distance else row.result.value_intervals[group]
    if ends is None:
        return ""
    low, high = map(unit.value, ends)
    return f"{low.removesuffix(' %')} to {high}"


def _format_gap(row: AuditRow, unit: Unit) -> str:
    """Return the gap, in points for rates; that of a joint metric with the part that it is of."""
    if row.difference is None or not unit.is_share:
        return row.gap_text
    if row.part is not None:
        return f"{unit.size(row.difference)} ({abbreviate_metric(row.part)})"
    return unit.signed(row.difference)


def _format_ends(row: AuditRow, ends: tuple[float, float] | None, unit: Unit) -> str:
    """Return an interval of the gap; of a distance, how large it is by chance."""
    if row.is_distance:
        return row.interval_text
    return unit.interval(ends, signed=row.part is None).removesuffix(" points")


def _name_interval(row: AuditRow, audit: AuditData) -> str:
    """Return what the interval that the verdict rests on is called."""
    if audit.adjust is not None and row.adjusted_interval is not None:
        return "adjusted interval"
    level = 1 - audit.alpha if row.result is None else row.result.confidence_level
    return f"{format_level(level)} interval"


def _format_detectable(gap: float | None, unit: Unit) -> str:
    """Return the smallest detectable gap; "none" if the sample would detect no gap."""
    if gap is None or math.isnan(gap):
        return NONE
    return "none" if math.isinf(gap) else unit.size(gap)


def _describe_counts(result: PermutationTestResult | None, group: Hashable) -> str:
    if result is None:
        return ""
    counts = result.counts[group]
    return ("weighted, " if "weight" in counts else "") + state_counts(counts)


def _view_groups(
    groups: Sequence[GroupSummary], names: ShortNames, attributes: ShortNames
) -> dict[str, list[GroupView]]:
    totals: Counter[str] = Counter()
    for one in groups:
        totals[one.attribute] += one.rows
    views: dict[str, list[GroupView]] = {}
    for one in groups:
        whole = name_group(one.attribute, one.group, sys.maxsize)
        short = names[one.attribute, one.group]
        is_given = names.is_given(one.attribute, one.group)
        views.setdefault(attributes["", one.attribute], []).append(
            GroupView(
                name=short,
                whole_name="" if whole == short or is_given else whole,
                value=format_name(one.group) if is_given else "",
                rows=format_count(one.rows),
                share=_format_share(one.rows, totals[one.attribute]),
                positives=format_count(one.positives) if one.positives is not None else NONE,
                base_rate=_format_share(one.positives, one.rows),
                clusters=NONE if one.clusters is None else format_count(one.clusters),
                is_small=one.is_small,
            )
        )
    return views


def _format_share(part: float | None, whole: float) -> str:
    return format_percent(part / whole) if part is not None and whole else NONE
