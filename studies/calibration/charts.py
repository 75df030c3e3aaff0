"""The calibration study's charts: a heat map of levels for each metric, and the powers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import altair as alt

from studies.calibration.rivals import DEFAULT
from studies.charts import BLUE, GREEN, GREY, RED, to_specification
from studies.study import LEVEL

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_LOW, _MIDDLE = "#9ec9e8", "#f7f7f7"
_CELL_WIDTH, _CELL_HEIGHT = 74, 20
_FULL_COLOUR = 0.15  # all levels above have the same colour


def draw_levels(
    metric: str, shares: Mapping[str, Mapping[str, float]], tests: Sequence[str]
) -> dict[str, Any]:
    """Draw the level of each test (across) in each setting (down)."""
    values = [
        {"setting": setting, "test": test, "level": round(share, 4)}
        for setting, of_tests in shares.items()
        for test, share in of_tests.items()
    ]
    base = alt.Chart(alt.InlineData(values=values)).encode(
        x=alt.X(
            "test:N",
            sort=list(tests),
            title=None,
            axis=alt.Axis(orient="top", labelAngle=-30, labelLimit=160, domain=False, ticks=False),
        ),
        y=alt.Y(
            "setting:N",
            sort=list(shares),
            title=None,
            axis=alt.Axis(labelLimit=360, domain=False, ticks=False),
        ),
        tooltip=["setting:N", "test:N", alt.Tooltip("level:Q", format=".3f")],
    )
    cells = base.mark_rect(stroke="#ffffff").encode(
        color=alt.Color(
            "level:Q",
            legend=None,
            scale=alt.Scale(
                domain=[0, LEVEL, _FULL_COLOUR], range=[_LOW, _MIDDLE, RED], clamp=True
            ),
        )
    )
    # black is legible on all colours of cells
    text = base.mark_text(color="#000000", fontSize=11).encode(
        text=alt.Text("level:Q", format=".3f")
    )
    title = alt.TitleParams(
        f"{metric}: rejections where there is no gap", subtitle=["white: the nominal level 0.05"]
    )
    chart = alt.layer(cells, text).properties(
        title=title, width=alt.Step(_CELL_WIDTH), height=alt.Step(_CELL_HEIGHT)
    )
    return to_specification(chart)


def draw_powers(table: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
    """Draw the power of the default and of the best valid rivals, in each setting."""
    shown = {
        DEFAULT: DEFAULT,
        "power of that valid here": "best other, valid in this setting",
        "power of that valid everywhere": "best other, valid in all settings",
    }
    values = [
        {"setting": setting, "of": shown[name], "power": power}
        for name in shown
        for setting, power in zip(table["setting"], table[name], strict=True)
        if power is not None
    ]
    order = list(shown.values())
    legend = alt.Legend(orient="top")
    colours = alt.Scale(domain=order, range=[BLUE, GREY, GREEN])
    shapes = alt.Scale(domain=order, range=["circle", "diamond", "triangle-up"])
    chart = (
        alt.Chart(alt.InlineData(values=values))
        .mark_point(filled=True, size=55, opacity=0.9)
        .encode(
            x=alt.X("power:Q", title="share of data sets in which the gap is detected"),
            y=alt.Y(
                "setting:N",
                sort=list(table["setting"]),
                title=None,
                axis=alt.Axis(labelLimit=460, grid=True),
            ),
            color=alt.Color("of:N", title=None, sort=order, scale=colours, legend=legend),
            shape=alt.Shape("of:N", title=None, sort=order, scale=shapes, legend=legend),
            tooltip=["setting:N", "of:N", alt.Tooltip("power:Q", format=".3f")],
        )
        .properties(title="Power where there is a gap", width=360, height=alt.Step(16))
    )
    return to_specification(chart)


def draw_designs(levels: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Draw the levels of two tests in every design, one below the other, by kind."""
    tests = list(dict.fromkeys(one["test"] for one in levels))
    base = alt.Chart(alt.InlineData(values=[{**one, "nominal": LEVEL} for one in levels]))
    points = base.mark_point(filled=True, size=45, opacity=0.9).encode(
        x=alt.X("level:Q", title="rejections where there is no gap"),
        y=alt.Y("design:N", sort=None, title=None, axis=alt.Axis(labelLimit=420, grid=True)),
        color=alt.Color(
            "test:N",
            title=None,
            scale=alt.Scale(domain=tests, range=[BLUE, GREY]),
            legend=alt.Legend(orient="top"),
        ),
        shape=alt.Shape(
            "test:N", title=None, scale=alt.Scale(domain=tests, range=["circle", "diamond"])
        ),
        tooltip=["kind:N", "design:N", "test:N", alt.Tooltip("level:Q", format=".3f")],
    )
    rule = base.mark_rule(color=RED, strokeDash=[4, 3]).encode(x="nominal:Q")
    chart = (
        alt.layer(rule, points)
        .properties(width=300, height=alt.Step(13))
        .facet(row=alt.Row("kind:N", title=None, sort=None))
        .resolve_scale(y="independent")
        .properties(title="Level by design")
    )
    return to_specification(chart)


def draw_power_pairs(powers: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Draw the power of the default against that of S where S holds its level, by direction."""
    base = alt.Chart(alt.InlineData(values=list(powers)))
    scale = alt.Scale(domain=[0, 1])
    points = base.mark_point(filled=True, size=45, opacity=0.8).encode(
        x=alt.X("S:Q", scale=scale, title="power of S"),
        y=alt.Y("default:Q", scale=scale, title=f"power of {DEFAULT}"),
        color=alt.Color("direction:N", title=None, scale=alt.Scale(range=[BLUE, GREEN]), sort=None),
        shape=alt.Shape("direction:N", title=None, sort=None),
        tooltip=["design:N", "direction:N", "S:Q", "default:Q"],
    )
    ends = alt.InlineData(values=[{"S": 0, "default": 0}, {"S": 1, "default": 1}])
    line = alt.Chart(ends).mark_line(color=GREY, strokeDash=[4, 3]).encode(x="S:Q", y="default:Q")
    return to_specification(
        alt.layer(line, points).properties(
            title="Power where S holds its level", width=320, height=320
        )
    )
