"""The charts of the paper's Figures 2 and 3."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import altair as alt

from studies.charts import BLUE, GREEN, GREY, HEADER, RED, to_specification

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_WIDTH, _HEIGHT = 300, 190


def draw_gaps_by_threshold(table: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
    """Draw the gap and its critical values, for each data set and metric."""
    shown = [row for row in _list_rows(table) if row["gap"] is not None]
    for row in shown:
        for name in ("critical_gap", "simultaneous_gap"):
            row[f"minus_{name}"] = None if row[name] is None else -row[name]
    base = alt.Chart().encode(x=alt.X("threshold:Q", title="threshold τ"))
    bands = [
        base.mark_area(color=BLUE, opacity=opacity).encode(
            y=alt.Y(f"minus_{name}:Q", title="women minus men"), y2=f"{name}:Q"
        )
        for name, opacity in (("simultaneous_gap", 0.15), ("critical_gap", 0.3))
    ]
    gap = base.mark_line(color=RED, strokeWidth=1.8).encode(
        y="gap:Q", tooltip=["threshold:Q", "gap:Q", "critical_gap:Q", "pvalue:Q"]
    )
    zero = alt.Chart().mark_rule(color=GREY).encode(y=alt.datum(0.0))
    title = alt.TitleParams(
        "Gaps in FPR and recall over thresholds",
        subtitle=[
            "Line: women minus men in the test rows. Bands: within them a gap is not significant,",
            "at this threshold (dark) or at all of them together (light).",
        ],
    )
    return _draw_panels([*bands, zero, gap], shown, title)


def draw_gaps_by_size(table: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
    """Draw the smallest gaps against the number of rows, on logarithmic axes."""
    kinds = {
        "critical_gap": "critical gap (mean)",
        "smallest_detected_gap": "smallest detected gap",
        "detectable_gap": "true gap detected with power 0.8",
    }
    shown = [
        {"data": row["data"], "metric": row["metric"], "rows": row["rows"], "gap": row[name]}
        | {"kind": kind}
        for row in _list_rows(table)
        for name, kind in kinds.items()
        if row[name] is not None
    ]
    sizes = sorted({row["rows"] for row in shown})
    base = alt.Chart().encode(
        x=alt.X(
            "rows:Q",
            title="rows",
            scale=alt.Scale(type="log", domain=[sizes[0] * 0.95, sizes[-1] * 1.05], nice=False),
            axis=alt.Axis(values=[1000, 1500, 2000, 3000, 4000], format=","),
        ),
        y=alt.Y("gap:Q", title="gap", scale=alt.Scale(type="log", nice=False)),
        color=alt.Color(
            "kind:N",
            title=None,
            scale=alt.Scale(domain=[*kinds.values()], range=[BLUE, RED, GREEN]),
            legend=alt.Legend(orient="top"),
        ),
    )
    points = base.mark_point(filled=True, size=28).encode(
        tooltip=["kind:N", "rows:Q", alt.Tooltip("gap:Q", format=".4f")]
    )
    title = alt.TitleParams(
        "The smallest detected gaps between women and men",
        subtitle=["At the threshold 0.5 and level 0.05; both axes are logarithmic."],
    )
    return _draw_panels([base.mark_line(), points], shown, title)


def _draw_panels(
    layers: list[Any], rows: list[dict[str, Any]], title: alt.TitleParams
) -> dict[str, Any]:
    """Return the specification with a panel for each data set (across) and metric (down)."""
    metrics, names = (list(dict.fromkeys(row[one] for row in rows)) for one in ("metric", "data"))
    panel = alt.layer(*layers, data=alt.InlineData(values=rows))
    chart = panel.properties(width=_WIDTH, height=_HEIGHT).facet(
        row=alt.Row("metric:N", title=None, sort=metrics, header=HEADER),
        column=alt.Column("data:N", title=None, sort=names, header=HEADER),
    )
    return to_specification(chart.resolve_scale(y="independent").properties(title=title))


def _list_rows(table: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    return [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]
