"""The result of an audit of selection: frozen, and without computing."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Self

from fairperm._utils.files import write_whole
from fairperm._utils.formatting import (
    format_count,
    format_interval,
    format_level,
    format_name,
    format_number,
    format_percent,
    format_pvalue,
)
from fairperm.data.proxies import Assumption
from fairperm.errors import InputTypeError
from fairperm.hypothesis_tests.results.answers.selection import answer_impact
from fairperm.hypothesis_tests.results.gaps import ResultWithFrame, json_ready
from fairperm.hypothesis_tests.results.text import (
    align_columns,
    wrap_answer,
    wrap_notes,
    write_table_html,
)

if TYPE_CHECKING:
    from fairperm.selection.impact import Applicants, Impact

__all__ = ["Details", "SelectionAudit", "SelectionRow", "UnknownCount"]

_IN_FRAME = (
    *("attribute", "group", "applicants", "selected", "rate", "impact_ratio", "interval_low"),
    *("interval_high", "evidence", "pvalue", "standard_deviations", "shortfall", "flips"),
    *("applicants_to_decide", "standardized_difference", "standardized_rate"),
    "homogeneity_pvalue",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectionRow:
    """A group of an attribute: who was selected, compared with the group selected most.

    Attributes
    ----------
    attribute, group
        The attribute, or several joined by "×", and the group's name, or a tuple of them.
    applicants, selected : int
        How many applied, and how many of them were selected.
    rate : float
        The selection rate.
    rate_interval : tuple of float
        Of the rate by itself (of the standardized one, with strata).
    impact_ratio : float or None
        The rate over the highest of all groups; None for a group too small to be compared.
    interval : tuple of float or None
        Of the impact ratio: the intervals of all groups hold at once.
    evidence : str or None
        Where the whole interval lies: "below" the bound or "at least" the bound; or "undecided".
    pvalue : float or None
        Of equality with the best group, exact and adjusted for all pairs.
    standard_deviations : float or None
        The difference from the highest rate in pooled standard errors.
    shortfall : float or None
        Selections that the group lacks to the highest rate.
    flips : bool or None
        Whether one selection more, or one fewer, moves the ratio across the bound.
    applicants_to_decide : float or None
        About how many applicants in all would decide, if shares and rates stay as they are; None
        for a ratio that is decided.
    standardized_difference : float or None
        Of scores: the group's mean minus that of the group selected most, in standard deviations of
        all scores.
    standardized_rate : float or None
        With strata, the mean of the group's rates in them, weighted by all applicants; the ratio
        is of these.
    homogeneity_pvalue : float or None
        With strata, of one odds ratio to the group selected most in all of them.
    """

    attribute: str
    group: Hashable
    applicants: int
    selected: int
    rate: float
    rate_interval: tuple[float, float]
    impact_ratio: float | None = None
    interval: tuple[float, float] | None = None
    evidence: str | None = None
    pvalue: float | None = None
    standard_deviations: float | None = None
    shortfall: float | None = None
    flips: bool | None = None
    applicants_to_decide: float | None = None
    standardized_difference: float | None = None
    standardized_rate: float | None = None
    homogeneity_pvalue: float | None = None

    @classmethod
    def of(
        cls,
        attribute: str,
        name: Hashable,
        group: Applicants,
        impact: Impact | None,
        applicants_to_decide: float | None,
        rate_interval: tuple[float, float],
    ) -> SelectionRow:
        """Return the row of a group; without an impact it is too small."""
        counts: dict[str, Any] = {
            "attribute": attribute,
            "group": name,
            "applicants": group.applicants,
            "selected": group.selected,
            "rate": group.rate,
            "rate_interval": rate_interval,
        }
        if impact is None:
            return cls(**counts)
        return cls(
            **counts,
            impact_ratio=impact.ratio,
            interval=impact.interval,
            evidence=impact.evidence.value,
            pvalue=impact.pvalue,
            standard_deviations=impact.standard_deviations,
            shortfall=impact.shortfall,
            flips=impact.flips,
            applicants_to_decide=applicants_to_decide,
        )

    @property
    def name(self) -> str:
        """The group's name as text."""
        parts = self.group if isinstance(self.group, tuple) else (self.group,)
        return " × ".join(map(str, parts))

    @property
    def compared_rate(self) -> float:
        """The rate that ratios are of: standardized, with strata."""
        return self.rate if self.standardized_rate is None else self.standardized_rate

    def cells(self, *, in_strata: bool) -> tuple[str, ...]:
        """Return the row as texts, under the heads of its audit."""
        counts = [f"{self.applicants:,}", f"{self.selected:,}", format_percent(self.rate)]
        if in_strata:
            rate = self.standardized_rate
            counts.append("–" if rate is None else format_percent(rate))
        names = format_name(self.attribute), format_name(self.group)
        if self.impact_ratio is None:
            return (*names, *counts, *["–"] * 4, "too small")
        return (
            *names,
            *counts,
            format_number(self.impact_ratio),
            format_interval(self.interval),
            format_pvalue(self.pvalue),
            f"{self.shortfall:,.1f}",
            str(self.evidence),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Details:
    """What a reader of the tables asks of the data.

    ``source : str or None``: Where the data are from.

    ``start``, ``end : str or None``: The first and the last day that they cover.

    ``why_excluded : str or None``: Why groups with few applicants are left out of the ratios.
    """

    source: str | None = None
    start: str | None = None
    end: str | None = None
    why_excluded: str | None = None

    @classmethod
    def check(cls, **given: object) -> Self:
        """Return the details. Raises InputTypeError for any that is no text."""
        for name, one in given.items():
            if one is not None and not isinstance(one, str):
                raise InputTypeError(name, "text", one)
        return cls(**{name: str(one) for name, one in given.items() if one is not None})


@dataclass(frozen=True, slots=True)
class UnknownCount:
    """How many applicants have no known group in an attribute."""

    attribute: str
    applicants: int


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class SelectionAudit(ResultWithFrame):
    """The result of :func:`fairperm.selection_audit`: a sequence of its rows.

    Attributes
    ----------
    rows : tuple of SelectionRow
        Every group of every attribute.
    unknown : tuple of UnknownCount
        For each attribute, how many applicants have no known group.
    applicants, selected : int
        Of all groups together, known or not.
    threshold : float or None
        Scores above it count as selected; None without scores.
    minimum_share, four_fifths, confidence_level : float
        The options.
    n_strata : int
        The number of strata.
    proxy_assumption : str or None
        What the rates rest on where groups are known only as probabilities.
    details : Details
        Source, dates and reasons, as they were given.
    notes : tuple of str
        Remarks that matter for reading the result.
    """

    rows: tuple[SelectionRow, ...]
    unknown: tuple[UnknownCount, ...]
    applicants: int
    selected: int
    threshold: float | None
    minimum_share: float
    four_fifths: float
    confidence_level: float
    n_strata: int = 1
    proxy_assumption: str | None = None
    details: Details = field(default_factory=Details)
    notes: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[SelectionRow]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def is_stratified(self) -> bool:
        """Whether applicants are compared within strata."""
        return self.n_strata > 1

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes, in the order of the rows."""
        return tuple(dict.fromkeys(row.attribute for row in self.rows))

    def compared(self, attribute: str) -> tuple[SelectionRow, ...]:
        """Return the groups of an attribute that are large enough to be compared."""
        rows = (row for row in self.rows if row.attribute == attribute)
        return tuple(row for row in rows if row.impact_ratio is not None)

    def lowest(self, attribute: str) -> SelectionRow:
        """Return the compared group with the lowest impact ratio."""
        return min(self.compared(attribute), key=lambda row: (row.impact_ratio, row.interval))

    @property
    def answer(self) -> str:
        """What the audit found, in a sentence for each attribute with groups to compare."""
        return " ".join(self.answers)

    @property
    def answers(self) -> tuple[str, ...]:
        """The answer of each attribute with groups to compare, and what they rest on."""
        found = [self._answer(one) for one in self.attributes if self.compared(one)]
        if self.proxy_assumption is not None:
            found.append(Assumption(self.proxy_assumption).sentences)
        return tuple(found)

    def _answer(self, attribute: str) -> str:
        rows, low = self.compared(attribute), self.lowest(attribute)
        best = max(rows, key=lambda row: (row.impact_ratio, row.applicants))
        evidence = Counter(str(row.evidence) for row in rows)
        return answer_impact(
            attribute,
            (low.group, best.group),
            (low.compared_rate, best.compared_rate),
            low.interval or (0.0, 1.0),
            evidence,
            self.four_fifths,
            low.applicants_to_decide,
        )

    def columns(self) -> dict[str, list[Any]]:
        """Return a column of an entry for each row, by name: the fields of a row.

        interval_low and interval_high are the ends of the interval, and the names of combined
        groups are joined by "×".
        """
        columns: dict[str, list[Any]] = {name: [] for name in _IN_FRAME}
        for row in self.rows:
            low, high = row.interval or (None, None)
            ends = {"group": row.name, "interval_low": low, "interval_high": high}
            for name, column in columns.items():
                column.append(ends[name] if name in ends else getattr(row, name))
        return columns

    def to_dict(self) -> dict[str, Any]:
        """Return the audit as JSON-ready values, the answer first."""
        plain = ResultWithFrame.to_dict(self)
        plain["rows"] = [json_ready(asdict(row)) for row in self.rows]
        plain["unknown"] = [asdict(one) for one in self.unknown]
        plain["details"] = asdict(self.details)
        return plain

    def to_excel(self, path: str | os.PathLike[str]) -> None:
        """Write an Excel workbook: a sheet of facts and notes, and one for each table.

        The tables have a row for each group, with its names in columns of their own. Needs
        openpyxl: ``pip install 'fairperm[excel]'``.
        """
        from fairperm.selection.tables import as_workbook

        write_whole(path, as_workbook(self))

    def to_html(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        title: str | None = None,
        author: str | None = None,
        note: str | None = None,
        provenance: Mapping[str, object] | None = None,
    ) -> str:
        """Return a page to print, with every table and one picture; with a `path`, write it too.

        It is one file, which loads nothing from the network. `provenance` says what else is needed
        to make it again, by name: the command, the file, its hash.
        """
        from fairperm.selection.page import as_html

        return as_html(self, path, title=title, author=author, note=note, provenance=provenance)

    def __repr__(self) -> str:
        lines = wrap_answer(self.answer)
        for attribute in self.attributes:
            rows = [row for row in self.rows if row.attribute == attribute]
            texts = (row.cells(in_strata=self.is_stratified)[1:] for row in rows)
            cells = [(format_name(attribute), *self.heads[2:]), *texts]
            lines += align_columns(cells, range(1, len(cells[0]) - 1))
        return "\n".join([*lines, *wrap_notes(self.footnotes)])

    def _repr_html_(self) -> str:
        rows = [row.cells(in_strata=self.is_stratified) for row in self.rows]
        return write_table_html(self.answer, self.heads, rows, self.footnotes)

    @property
    def heads(self) -> tuple[str, ...]:
        """The heads of the cells of the rows."""
        interval = f"{format_level(self.confidence_level)} interval"
        return (
            *("attribute", "group", "applicants", "selected"),
            *("rate", *(("standardized",) if self.is_stratified else ()), "impact ratio", interval),
            *("adjusted p", "shortfall", f"beside {self.four_fifths:g}"),
        )

    @property
    def footnotes(self) -> tuple[str, ...]:
        """What to know when reading the table, and the notes."""
        level = format_level(self.confidence_level)
        strata = (
            f"Rates are standardized: means over {self.n_strata:,} strata, weighted by all their "
            "applicants. p is exact, of equal rates in every stratum.",
        )
        return (
            *(strata if self.is_stratified else ()),
            f"The {level} intervals hold for all groups of an attribute at once, whichever of them "
            "is truly selected most. p is of equality with the group selected most.",
            f"{format_count(self.applicants, 'applicant')}, {self.selected:,} of them selected"
            f"{'' if any(one.applicants for one in self.unknown) else '; all have a known group'}.",
            *self.notes,
        )
