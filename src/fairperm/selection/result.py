"""The result of an audit of selection: frozen, and without computing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fairperm._utils.formatting import format_interval, format_number, format_percent, format_pvalue
from fairperm.data.columns import frame_of
from fairperm.errors import shown
from fairperm.hypothesis_tests.results.gaps import PlainResult, json_ready
from fairperm.selection.impact import Evidence

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

    from fairperm.selection.impact import Group, Impact

__all__ = ["SelectionAudit", "SelectionRow", "UnknownCount"]

_IN_FRAME = (
    *("attribute", "group", "applicants", "selected", "rate", "impact_ratio", "interval_low"),
    *("interval_high", "evidence", "pvalue", "standard_deviations", "shortfall", "flips"),
    "applicants_to_decide",
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
    """

    attribute: str
    group: Hashable
    applicants: int
    selected: int
    rate: float
    impact_ratio: float | None = None
    interval: tuple[float, float] | None = None
    evidence: str | None = None
    pvalue: float | None = None
    standard_deviations: float | None = None
    shortfall: float | None = None
    flips: bool | None = None
    applicants_to_decide: float | None = None

    @classmethod
    def of(
        cls,
        attribute: str,
        name: Hashable,
        group: Group,
        impact: Impact | None,
        applicants_to_decide: float | None,
    ) -> SelectionRow:
        """Return the row of a group; without an impact it is too small."""
        counts: dict[str, Any] = {
            "attribute": attribute,
            "group": name,
            "applicants": group.applicants,
            "selected": group.selected,
            "rate": group.rate,
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
    def is_best(self) -> bool:
        """Whether no compared group is selected more often."""
        return self.impact_ratio == 1.0

    @property
    def name(self) -> str:
        """The group's name as text."""
        parts = self.group if isinstance(self.group, tuple) else (self.group,)
        return " × ".join(map(str, parts))


@dataclass(frozen=True, slots=True)
class UnknownCount:
    """How many applicants have no known group in an attribute."""

    attribute: str
    applicants: int


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class SelectionAudit(PlainResult):
    """The result of :func:`fairperm.selection_audit`.

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
    notes: tuple[str, ...] = ()
    library: str | None = None

    def __iter__(self) -> Iterator[SelectionRow]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes, in the order of the rows."""
        return tuple(dict.fromkeys(row.attribute for row in self.rows))

    def of_attribute(self, attribute: str) -> tuple[SelectionRow, ...]:
        """Return the rows of an attribute."""
        return tuple(row for row in self.rows if row.attribute == attribute)

    def lowest(self, attribute: str) -> SelectionRow:
        """Return the compared group with the lowest impact ratio."""
        rows = [row for row in self.of_attribute(attribute) if row.impact_ratio is not None]
        return min(rows, key=lambda row: (row.impact_ratio, -row.applicants))

    @property
    def answer(self) -> str:
        """What the audit found, in a sentence for each attribute."""
        return " ".join(map(self._answer, self.attributes))

    def _answer(self, attribute: str) -> str:
        row, bound = self.lowest(attribute), f"{self.four_fifths:g}"
        best = next(one for one in self.of_attribute(attribute) if one.is_best)
        if row.is_best:
            return f"All groups of {attribute} are selected equally often ({_percent(row)})."
        found = (
            f"{shown(row.name)} is selected {format_number(row.impact_ratio)} times as often as "
            f"{shown(best.name)} ({_percent(row)} v {_percent(best)})"
        )
        whole = f"its interval, {format_interval(row.interval)},"
        if row.evidence == Evidence.BELOW:
            return f"{found}; {whole} lies below {bound}."
        if row.evidence == Evidence.AT_LEAST:
            return f"{found}; {whole} is at least {bound}."
        return f"{found}; {whole} does not decide whether that is below {bound}."

    def columns(self) -> dict[str, list[Any]]:
        """Return a column of values for each field of the rows."""
        table: dict[str, list[Any]] = {name: [] for name in _IN_FRAME}
        for row in self.rows:
            low, high = row.interval or (None, None)
            ends = {"group": row.name, "interval_low": low, "interval_high": high}
            for name, column in table.items():
                column.append(ends[name] if name in ends else getattr(row, name))
        return table

    def to_frame(self, library: str | None = None) -> Any:
        """Return the rows as a data frame: pandas, Polars or pyarrow."""
        return frame_of(self.columns(), library, self.library)

    def to_dict(self) -> dict[str, Any]:
        """Return the audit as JSON-ready values, the answer first."""
        plain = PlainResult.to_dict(self)
        del plain["library"]
        return {"answer": self.answer, **json_ready(plain)}

    def __repr__(self) -> str:
        lines = [self.answer]
        for attribute in self.attributes:
            lines += ["", *_table(attribute, self.of_attribute(attribute))]
        return "\n".join(lines)


def _percent(row: SelectionRow) -> str:
    return format_percent(row.rate)


def _table(attribute: str, rows: tuple[SelectionRow, ...]) -> Iterator[str]:
    cells = [
        (attribute, "applicants", "selected", "rate", "impact ratio", "interval", "p", "evidence")
    ]
    for row in rows:
        small = row.impact_ratio is None
        cells.append(
            (
                row.name,
                f"{row.applicants:,}",
                f"{row.selected:,}",
                _percent(row),
                "–" if small else format_number(row.impact_ratio),
                "–" if small else format_interval(row.interval),
                "–" if small else format_pvalue(row.pvalue),
                row.evidence or "too small",
            )
        )
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for line in cells:
        yield "  ".join(
            cell.ljust(width) for cell, width in zip(line, widths, strict=True)
        ).rstrip()
