"""Seconds by rows, one line for each tool and one panel for each metric."""

from __future__ import annotations

from typing import Any

import altair as alt

from fairperm import plots

# Okabe and Ito's colours, the yellow darkened; every tool has a shape of its own as well
_LOOKS = {
    "fairperm": ("#000000", "circle"),
    "fairperm, not studentized": ("#8a8a8a", "cross"),
    "NumPy loop": ("#0072b2", "square"),
    "scikit-learn loop": ("#d55e00", "triangle-up"),
    "scipy": ("#009e73", "diamond"),
    "mlxtend": ("#cc79a7", "triangle-down"),
    "permute": ("#a08a00", "triangle-right"),
    "Fairlearn": ("#56b4e9", "triangle-left"),
    "LiFT's method": ("#e69f00", "circle"),
}
_TIMES = {
    0.001: "1 ms",
    0.01: "10 ms",
    0.1: "0.1 s",
    1: "1 s",
    10: "10 s",
    100: "100 s",
    1_000: "17 min",
    10_000: "2.8 h",
    100_000: "28 h",
    1_000_000: "12 d",
}


def chart(rows: list[dict[str, Any]]) -> Any:
    """Return the picture; what is extrapolated is hollow."""
    names = [name for name in _LOOKS if name in {one["tool"] for one in rows}]
    seconds = [one["seconds"] for one in rows]
    span = [min(seconds) / 1.5, max(seconds) * 1.5]
    metrics = list(dict.fromkeys(one["metric"] for one in rows))
    panels = [
        _panel([one for one in rows if one["metric"] == metric], names, span, metric, not i)
        for i, metric in enumerate(metrics)
    ]
    return (
        alt.hconcat(*panels, spacing=22)
        .configure(**{**plots.theme("light"), "background": "white"})
        .properties(
            padding=12,
            title=alt.TitleParams(
                "Time of 999 permutations",
                subtitle="by rows, both axes logarithmic; hollow points are extrapolated",
            ),
        )
    )


def _panel(
    rows: list[dict[str, Any]], names: list[str], span: list[float], title: str, is_first: bool
) -> Any:
    labels = " : ".join(f"datum.value == {at:g} ? '{told}'" for at, told in _TIMES.items())
    legend = alt.Legend(title=None, orient="bottom", columns=5, symbolSize=70, columnPadding=24)
    looks = [_LOOKS[name] for name in names]
    across = alt.X(
        "rows:Q",
        title="rows",
        scale=alt.Scale(type="log"),
        axis=alt.Axis(
            values=sorted({one["rows"] for one in rows}),
            format="~s",
            grid=False,
        ),
    )
    up = alt.Y(
        "seconds:Q",
        title=None,
        scale=alt.Scale(type="log", domain=span, nice=False),
        axis=alt.Axis(values=list(_TIMES), labelExpr=f"{labels} : ''", labels=is_first),
    )
    head = alt.TitleParams(title, fontSize=12.5)
    base = alt.Chart(alt.InlineData(values=rows), title=head, width=215, height=330)
    colour = alt.Color(
        "tool:N",
        sort=names,
        scale=alt.Scale(domain=names, range=[one[0] for one in looks]),
        legend=legend,
    )
    shape = alt.Shape(
        "tool:N",
        sort=names,
        scale=alt.Scale(domain=names, range=[one[1] for one in looks]),
        legend=legend,
    )
    lines = base.mark_line(strokeWidth=1.8).encode(across, up, color=colour)
    points = base.mark_point(size=45, strokeWidth=1.4, opacity=1).encode(
        across,
        up,
        color=colour,
        shape=shape,
        fill=alt.condition("datum.found == 'measured'", colour, alt.value("white")),
    )
    return alt.layer(lines, points)
