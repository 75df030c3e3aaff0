"""The result of a search for subgroups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, overload

from fairperm._utils.checks import choice
from fairperm._utils.formatting import (
    format_count,
    format_interval,
    format_level,
    format_metric,
    format_number,
    format_pvalue,
    state_pvalue,
)
from fairperm.data.columns import frame_of
from fairperm.hypothesis_tests.results.answers.words import join_values, unit_of
from fairperm.hypothesis_tests.results.gaps import PlainResult, json_ready
from fairperm.hypothesis_tests.results.text import (
    align_columns,
    state_rows,
    wrap_answer,
    wrap_notes,
    write_table_html,
)
from fairperm.subgroups.features import Band, describe

if TYPE_CHECKING:
    from os import PathLike

    from altair import LayerChart

__all__ = ["Subgroup", "Subgroups"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Subgroup:
    """One subgroup, compared with all other rows.

    Attributes
    ----------
    conditions : dict
        By feature, the value or the :class:`fairperm.Band` that its rows have; None for missing.
    value, rest : float
        The metric in the subgroup and in all other rows (with strata: over all strata together).
    gap : float
        The subgroup's value minus that of the rest; with strata, the mean of the strata's gaps.
    standard_error : float
        Standard error of the gap.
    confidence_interval : tuple of float
        Interval of the gap; those of all subgroups hold together.
    statistic : float
        The studentized gap.
    pvalue, adjusted_pvalue : float
        As if this were the only subgroup, and adjusted for the search.
    n : int
        Rows of the subgroup.
    counts : dict
        The rows among them that the metric rests on, by what they are.
    """

    conditions: Mapping[str, object]
    value: float
    rest: float
    gap: float
    standard_error: float
    confidence_interval: tuple[float, float]
    statistic: float
    pvalue: float
    adjusted_pvalue: float
    n: int
    counts: Mapping[str, float]

    @property
    def description(self) -> str:
        """The conditions in words."""
        return describe(self.conditions)

    def to_dict(self) -> dict[str, Any]:
        """Return the subgroup as JSON-ready values; a band is a mapping of its ends."""
        plain = {one.name: getattr(self, one.name) for one in fields(self)}
        plain["conditions"] = {
            name: {"low": one.low, "high": one.high} if isinstance(one, Band) else one
            for name, one in self.conditions.items()
        }
        ready: dict[str, Any] = json_ready({"description": self.description, **plain})
        return ready


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Subgroups(PlainResult, Sequence[Subgroup]):
    """The result of :func:`fairperm.find_subgroups`: a sequence of the subgroups found.

    Attributes
    ----------
    listed : tuple of Subgroup
        The few subgroups among those found that explain the others: each differs from the rest
        also among rows that are alike in the subgroups listed before it. There are at most 20; a
        note says if these do not explain all others.
    found : tuple of Subgroup
        All subgroups that differ from the rest, by adjusted p-value and size of the statistic.
    all : tuple of Subgroup
        Every subgroup of the search; its p-values are NaN if it could not be tested.
    metric : str
        The metric's full name.
    features : tuple of str
        Names of the features.
    counted : tuple of str
        What the metric rests on, as the subgroups' ``counts`` name it.
    value : float
        The metric in the whole sample.
    n : int
        Rows of the sample.
    max_depth, min_rows, bands : int
        What was searched.
    alternative, adjust, alpha : str, str, float
        How it was tested.
    confirm : float or None
        The share of rows in which subgroups that the others showed were tested.
    scheme, variance : str
        Among which rows outcomes were exchanged, and what studentized the gaps.
    n_resamples, n_strata, n_dropped : int
        Numbers of permutations, of strata, and of rows left out because of missing values.
    validity : str
        For which null hypothesis the p-values are valid, and in which sense.
    seed : int
        Passing it as ``rng`` gives the same result again.
    notes : tuple of str
        Remarks that the reader should know.
    """

    listed: tuple[Subgroup, ...]
    found: tuple[Subgroup, ...]
    all: tuple[Subgroup, ...]
    metric: str
    features: tuple[str, ...]
    counted: tuple[str, ...]
    value: float
    n: int
    max_depth: int
    min_rows: int
    bands: int
    alternative: str
    adjust: str
    alpha: float
    confirm: float | None
    scheme: str
    variance: str
    n_resamples: int
    n_strata: int
    n_dropped: int
    validity: str
    seed: int
    notes: tuple[str, ...]
    frame_library: str | None = field(repr=False)

    def __len__(self) -> int:
        return len(self.found)

    @overload
    def __getitem__(self, index: int) -> Subgroup: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Subgroup, ...]: ...
    def __getitem__(self, index: int | slice) -> Subgroup | tuple[Subgroup, ...]:
        return self.found[index]

    @property
    def answer(self) -> str:
        """How many subgroups differ by more than chance explains, and the clearest."""
        n = len(self.all)
        found = f"{len(self.found):,} of {format_count(n, 'subgroup')}"
        head = (
            f"{found} {'differs' if n == 1 else 'differ'} from all other rows in "
            f"{format_metric(self.metric)} by more than chance explains"
        )
        if not self.found:
            return f"{head}; real gaps are not ruled out."
        first, unit = self.found[0], unit_of(self.metric)
        gap = f"{unit.size(first.gap)} {'higher' if first.gap > 0 else 'lower'}"
        values = join_values(unit, (first.value, first.rest))
        stated = state_pvalue(first.adjusted_pvalue, "adjusted p")
        return f"{head}. The clearest: {first.description}, {gap} ({values}; {stated})."

    def to_frame(
        self, library: str | None = None, *, which: Literal["listed", "found", "all"] = "listed"
    ) -> Any:
        """Return a data frame with a row for each subgroup listed, found or tested.

        Parameters
        ----------
        library : {"pandas", "polars", "pyarrow"}, optional
            Library of the frame: by default that of the frame passed as `data`, or pandas.
        which : {"listed", "found", "all"}
            Which subgroups are its rows.

        Returns
        -------
        frame
            With the columns description, depth, n, one for each of the counts, value, rest, gap,
            standard_error, low, high, statistic, pvalue and adjusted_pvalue.
        """
        rows: tuple[Subgroup, ...] = getattr(self, choice("which", which, _KINDS))
        plain = ("value", "rest", "gap", "standard_error")
        last = ("statistic", "pvalue", "adjusted_pvalue")
        columns: dict[str, list[Any]] = {
            "description": [one.description for one in rows],
            "depth": [len(one.conditions) for one in rows],
            "n": [one.n for one in rows],
        }
        for name in self.counted:
            if name != "rows":
                columns[name] = [one.counts[name] for one in rows]
        columns |= {name: [getattr(one, name) for one in rows] for name in plain}
        columns["low"] = [one.confidence_interval[0] for one in rows]
        columns["high"] = [one.confidence_interval[1] for one in rows]
        columns |= {name: [getattr(one, name) for one in rows] for name in last}
        return frame_of(columns, library, self.frame_library)

    def plot(self, *, title: str | None = None, width: int = 700, mode: str = "auto") -> LayerChart:
        """Draw the listed subgroups as a tree with gaps: :func:`fairperm.plots.subgroups`."""
        from fairperm import plots

        return plots.subgroups(
            self._draw_rows(),
            metric=self.metric,
            confidence_level=1 - self.alpha,
            title=title,
            width=width,
            mode=mode,
        )

    def to_html(
        self,
        path: str | PathLike[str] | None = None,
        *,
        provenance: Mapping[str, object] | None = None,
    ) -> str:
        """Return a report that needs no other file and no network; with a `path`, write it too.

        Parameters
        ----------
        path : path-like, optional
            The file to write, atomically.
        provenance : mapping, optional
            What else is needed to repeat the search, by name: the command, the file, its hash.
        """
        from fairperm.plots.subgroup_chart import subgroups
        from fairperm.report.page import Finding, PageTable, findings_as_html

        text = "Each subgroup differs from all other rows"
        if len(self.found) > len(self.listed):
            text += ", and also among rows that are alike in the subgroups above it in the table"
        specify = partial(
            subgroups.specify,
            self._draw_rows(),
            metric=self.metric,
            confidence_level=1 - self.alpha,
        )
        heads, found = _list_heads(self), self.found[:_MAX_FOUND]
        name = f"{format_count(len(self.found), 'subgroup')} found"
        if len(found) < len(self.found):
            name += f"; the clearest {len(found):,} of them"
        tables = [
            PageTable("", heads, [_list_cells(self, one) for one in self.listed]),
            PageTable(name, heads, [_list_cells(self, one) for one in found], is_folded=True),
        ]
        about = {"features": ", ".join(self.features), "seed": self.seed}
        return findings_as_html(
            path,
            eyebrow="Subgroups that differ from all other rows",
            title=f"Subgroups: {format_metric(self.metric)}",
            summary=self.answer,
            findings=[Finding("Where they are", f"{text}. {_LIMIT}", specify)] * bool(self.listed),
            tables=tables * bool(self.listed),
            method=[f"P-values: {_state_test(self)}.", self.validity, *self.notes],
            provenance={**about, **(provenance or {})},
        )

    def _draw_rows(self) -> list[dict[str, Any]]:
        """Return the listed subgroups as rows of a chart."""
        return [
            {
                **{name: getattr(one, name) for name in _DRAWN},
                "conditions": [describe({name: value}) for name, value in one.conditions.items()],
                "low": one.confidence_interval[0],
                "high": one.confidence_interval[1],
            }
            for one in self.listed
        ]

    def __repr__(self) -> str:
        return as_text(self)

    def _repr_html_(self) -> str:
        rows = [_list_cells(self, one) for one in self.listed]
        notes = [f"P-values: {_state_test(self)}.", *self.notes]
        return write_table_html(self.answer, _list_heads(self), rows, notes)


_DRAWN = ("n", "value", "rest", "gap", "adjusted_pvalue")
_MAX_FOUND = 500  # on a page
_LIMIT = (
    "A search describes, it does not explain: any feature that goes with the true reason may "
    "describe a subgroup."
)
_KINDS: tuple[Literal["listed", "found", "all"], ...] = ("listed", "found", "all")
_METHODS = {"maxt": "step-down max-T", "holm": "Holm", "bh": "Benjamini–Hochberg"}
_METHODS["by"] = "Benjamini–Yekutieli"


def as_text(result: Subgroups, where: str = "to_frame(which='found') has all") -> str:
    """Return the result as a title, a table of the subgroups listed, and notes."""
    # ``where`` says where all subgroups that were found are
    overall = f"{format_number(result.value)} in all {format_count(result.n, 'row')}"
    lines = wrap_answer(result.answer)
    lines += [f"  {overall}; {_state_test(result)}", *_write_table(result)]
    unlisted = len(result.found) - len(result.listed)
    if unlisted:
        lines.append(f"  and {format_count(unlisted, 'other subgroup')} found: {where}")
    units, used = state_rows(result.n, result.n_dropped)
    lines.append(f"  {units}  {used}")
    return "\n".join([*lines, *wrap_notes(result.notes)])


def _write_table(result: Subgroups) -> list[str]:
    if not result.listed:
        return []
    lines = [_list_heads(result), *(_list_cells(result, one) for one in result.listed)]
    return align_columns(lines, range(1, len(lines[0])))


def _list_heads(result: Subgroups) -> list[str]:
    counted = [name for name in result.counted if name != "rows"]
    interval = f"{format_level(1 - result.alpha)} interval"
    return ["subgroup", "rows", *counted, "value", "rest", "gap", interval, "adjusted p"]


def _list_cells(result: Subgroups, one: Subgroup) -> list[str]:
    return [
        one.description,
        f"{one.n:,}",
        *(format_count(one.counts[name]) for name in result.counted if name != "rows"),
        format_number(one.value),
        format_number(one.rest),
        format_number(one.gap, signed=True),
        format_interval(one.confidence_interval, signed=True),
        format_pvalue(one.adjusted_pvalue),
    ]


def _state_test(result: Subgroups) -> str:
    test = f"{_METHODS[result.adjust]} at {format_level(result.alpha)}"
    if result.confirm is not None:
        share = format_level(result.confirm)
        return f"{test}, in {share} of the rows; the other rows were searched"
    return f"{test}, {result.n_resamples:,} permutations"
