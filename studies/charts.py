"""Charts that several studies share, as Vega-Lite specifications."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import altair as alt

from fairperm.plots.parts import theme
from studies.study import LEVEL

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from studies.study import Row

BLUE, RED, GREEN, GREY = "#2d84c0", "#d55e00", "#00916a", "#808080"  # legible on white and black
_WIDTH = 520
HEADER = alt.Header(labelColor="#767676", labelFontSize=12)


def draw_agreement(
    rows: Sequence[Row], *, title: str, axis: str, expected: str = "paper", level: float | None
) -> dict[str, Any]:
    """Draw both values of every row with their intervals, and a line at the level if given."""
    values = [
        {"quantity": row.quantity, "of": of, "value": value, "low": low, "high": high}
        for row in rows
        for of, value, interval in (
            (expected, row.paper, row.paper_interval),
            ("ours", row.ours, row.interval),
        )
        if value is not None
        for low, high in [interval or (value, value)]
    ]
    names = [expected, "ours"]
    base = alt.Chart(alt.InlineData(values=values)).encode(
        y=alt.Y("quantity:N", sort=None, title=None, axis=alt.Axis(labelLimit=420)),
        yOffset=alt.YOffset("of:N", sort=names),
        color=alt.Color("of:N", title=None, scale=alt.Scale(domain=names, range=[GREY, BLUE])),
    )
    lines = base.mark_rule(strokeWidth=2).encode(x=alt.X("low:Q", title=axis), x2="high:Q")
    points = base.mark_point(filled=True, size=60, opacity=1).encode(
        x="value:Q",
        shape=alt.Shape(
            "of:N", title=None, scale=alt.Scale(domain=names, range=["square", "circle"])
        ),
        tooltip=["quantity:N", "of:N", *(f"{name}:Q" for name in ("value", "low", "high"))],
    )
    layers = [lines, points]
    if level is not None:
        data = alt.InlineData(values=[{"level": level}])
        rule = alt.Chart(data).mark_rule(strokeDash=[5, 4], stroke=GREY)
        layers.insert(0, rule.encode(x="level:Q"))
    chart = alt.layer(*layers).properties(title=title, width=_WIDTH, height=alt.Step(14))
    return to_specification(chart)


def draw_histograms(
    counts: Mapping[str, Sequence[int]], *, title: str, edges: Sequence[float]
) -> dict[str, Any]:
    """Draw histograms of p-values by test; if p-values are uniform, all bars reach the line."""
    values = [
        {
            "test": test,
            "low": edges[i],
            "high": edges[i + 1],
            "share": count / max(1, sum(of_test)),
            "rejected": edges[i + 1] <= LEVEL,
        }
        for test, of_test in counts.items()
        for i, count in enumerate(of_test)
    ]
    bars = (
        alt.Chart()
        .mark_bar(binSpacing=0.5)
        .encode(
            x=alt.X("low:Q", bin="binned", title="p-value", axis=alt.Axis(tickCount=5)),
            x2="high:Q",
            y=alt.Y("share:Q", title="share of data sets"),
            color=alt.Color(
                "rejected:N",
                legend=None,
                scale=alt.Scale(domain=[False, True], range=[BLUE, RED]),
            ),
            tooltip=["test:N", "low:Q", "high:Q", "share:Q"],
        )
    )
    uniform = (
        alt.Chart()
        .mark_rule(strokeDash=[5, 4], stroke=GREY)
        .encode(y=alt.datum(edges[1] - edges[0]))
    )
    chart = (
        alt.layer(bars, uniform, data=alt.InlineData(values=values))
        .properties(width=190, height=110)
        .facet(alt.Facet("test:N", title=None, sort=list(counts), header=HEADER), columns=4)
        .properties(title=title)
    )
    return to_specification(chart)


def to_specification(chart: Any) -> dict[str, Any]:
    """Return the specification of a chart, in fairperm's colours."""
    return {**chart.configure().to_dict(), "config": theme()}
