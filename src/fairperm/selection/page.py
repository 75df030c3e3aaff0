"""An audit of selection as a page of two or three printed sides, with one picture."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from fairperm._utils.formatting import (
    format_interval,
    format_level,
    format_name,
    format_number,
    format_percent,
    format_pvalue,
)
from fairperm.plots.parts import (
    PER_LETTER,
    draw_rows,
    head_chart,
    number,
    pixels,
    text,
    tooltip,
)
from fairperm.report.page import Finding, PageTable, findings_as_html
from fairperm.selection.tables import list_facts, make_tables

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

    from fairperm.plots.parts import Spec
    from fairperm.selection.result import SelectionAudit, SelectionRow

_STEP, _GAP = 22, 14  # pixels from row to row, and between attributes
_MAX_GROUPS_DRAWN = 60  # groups
_MIN_NAMES, _MAX_NAMES, _MIN_PLOT = 60, 300, 160  # pixels
_TIPS = {"name": "group", "rate": "rate", "interval": "interval", "applicants": "applicants"}
_SD = (
    "SD: how many pooled standard errors a rate is from the highest. Shortfall: how many more "
    "would be selected at the highest rate."
)
_LIMITS = (
    "An impact ratio is no finding of discrimination, and one of at least the bound is no proof of "
    "its absence: rates say nothing about who was qualified. No number here says that a rule is "
    "kept."
)


def as_html(
    found: SelectionAudit,
    path: str | os.PathLike[str] | None,
    *,
    title: str | None,
    author: str | None,
    note: str | None,
    provenance: Mapping[str, object] | None,
) -> str:
    """Return the page, and write it to `path` if there is one."""
    picture = Finding(
        "Selection rates",
        "The dashed line is at "
        f"{found.four_fifths:g} of the highest rate of each attribute. Bars are "
        f"{format_level(found.confidence_level)} intervals of each rate by itself; whether a ratio "
        "is below the line is read off the intervals of the ratios, in the tables.",
        partial(specify_rates, found) if _drawn_rows(found) else None,
    )
    facts = dict(list_facts(found))
    facts |= {name: one for name, one in (("Author", author), ("Remark", note)) if one}
    return findings_as_html(
        path,
        eyebrow="Audit of selection rates",
        title=title or "Who was selected",
        summary="\n".join(found.answers),
        facts=facts,
        findings=[picture],
        tables=[
            PageTable(
                one.title,
                _heads(one.heads),
                [_as_texts(row) for row in one.rows],
                verdicts=one.heads[-4],
            )
            for one in make_tables(found)
        ],
        method=[_SD, *found.footnotes, _LIMITS],
        provenance={
            "bound": found.four_fifths,
            "minimum share": found.minimum_share,
            "confidence level": found.confidence_level,
            **(provenance or {}),
        },
        short=True,
    )


def _heads(heads: Sequence[str]) -> list[str]:
    """Return the heads of the page, on which both ends of an interval are one cell."""
    n = len(heads) - 6
    interval = heads[n].removesuffix(" low") + " interval"
    return [*heads[:n], interval, *heads[n + 2 : -1], "SD"]


def _as_texts(row: Sequence[Any]) -> list[str]:
    *first, ratio, low, high, evidence, p, shortfall, deviations = row
    begin = [_as_text(one) for one in first]
    if ratio is None:
        return [*begin, "–", "–", evidence, "–", "–", "–"]
    others = [format_pvalue(p), f"{shortfall:,.1f}", f"{deviations:.2f}"]
    return [*begin, format_number(ratio), format_interval((low, high)), evidence, *others]


def _as_text(cell: object) -> str:
    """Return a name, a count or a rate as text."""
    if isinstance(cell, float):
        return format_percent(cell)
    return f"{cell:,}" if isinstance(cell, int) else "–" if cell is None else format_name(cell)


def _drawn_rows(found: SelectionAudit) -> list[SelectionRow]:
    return [row for row in found.rows if row.impact_ratio is not None][:_MAX_GROUPS_DRAWN]


def specify_rates(found: SelectionAudit, *, width: int = 700, mode: str = "auto") -> Spec:
    """Return a chart of rates with intervals, and a line at the bound times the highest rate."""
    rows, lines, place = [], [], 0.0
    drawn = _drawn_rows(found)
    for attribute in dict.fromkeys(row.attribute for row in drawn):
        place += _GAP
        mine = [row for row in drawn if row.attribute == attribute]
        best = max(row.compared_rate for row in found.compared(attribute))
        lines.append(
            {
                "at": found.four_fifths * best,
                "from": place,
                "to": place + _STEP * len(mine),
            }
        )
        for row in mine:
            rows.append(_describe(row, place + _STEP / 2))
            place += _STEP
    left = max((PER_LETTER * len(row["name"]) + 12 for row in rows), default=0)
    left = int(min(max(left, _MIN_NAMES), _MAX_NAMES, max(width - _MIN_PLOT, _MIN_NAMES)))
    y = number("place", scale={"domain": [place + _GAP, 0], "nice": False}, axis=None)
    axis = {"title": "Rate", "format": "%", "tickCount": 6}
    scale = {"domain": [0.0, max([0.01, *(row["high"] for row in rows)])], "nice": True}

    def x(field: str) -> Spec:
        return number(field, scale=scale, axis=axis)

    name = {"x": pixels(-left), "y": y, "text": text("name")}
    line = {"x": x("at"), "y": {**y, "field": "from"}, "y2": {"field": "to"}}
    layers = [
        draw_rows(lines, "rule", line, style="fp-target"),
        draw_rows(rows, "text", name, style="fp-text", align="left", limit=left - 6),
        draw_rows(rows, "rule", {"x": x("low"), "x2": {"field": "high"}, "y": y}, style="fp-line"),
        draw_rows(
            rows,
            "point",
            {"x": x("value"), "y": y, "tooltip": tooltip(_TIPS)},
            style="fp-point",
            size=80,
            filled=True,
            opacity=1,
        ),
    ]
    head = head_chart(mode, "Selection rates of groups", "")
    size = {"width": max(width - left, _MIN_PLOT), "height": place + _GAP}
    return {"layer": layers, **head, **size}


def _describe(row: SelectionRow, place: float) -> dict[str, Any]:
    """Return the marks and texts of a group."""
    low, high = row.rate_interval
    return {
        "name": format_name(row.name, 40),
        "place": place,
        "value": row.compared_rate,
        "low": low,
        "high": high,
        "rate": format_percent(row.compared_rate),
        "interval": f"{format_percent(low)} to {format_percent(high)}",
        "applicants": f"{row.applicants:,}",
    }
