"""The gap between two groups over periods."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any

from fairperm._utils.checks import choice
from fairperm._utils.formatting import (
    format_gap,
    format_interval,
    format_level,
    format_metric,
    format_name,
    name_of_gap,
    state_pvalue,
)
from fairperm.errors import InputError
from fairperm.plots.parts import (
    GAP_LABEL,
    PER_LETTER,
    as_finite,
    as_layers,
    charted,
    draw_rows,
    fit_plot,
    head_chart,
    number,
    pixels,
    text,
    tooltip,
)

if TYPE_CHECKING:
    from fairperm.plots.parts import Numbers, Spec

_TIPS = {"name": "period", "shown": "gap", "interval": "interval", "change": "change"}
_AXIS_PADDING = 1.1  # times the farthest end of an interval
_LONGEST = 24  # letters of a period's name
_NAME_BELOW, _BETWEEN_NAMES = 14, 16  # pixels


@charted(as_layers)
def gap_over_time(
    periods: Sequence[Hashable],
    gap: Numbers,
    lower: Numbers,
    upper: Numbers,
    *,
    pvalues: Numbers | None = None,
    against: str = "previous",
    metric: str = "",
    groups: tuple[object, object] | None = None,
    absolute: bool = False,
    margin: float = 0.0,
    at_all_times: bool = False,
    confidence_level: float = 0.95,
    alpha: float = 0.05,
    title: str | None = None,
    width: int = 700,
    height: int = 220,
    mode: str = "auto",
) -> Spec:
    """Draw the gap in each period with its interval.

    Parameters
    ----------
    periods : sequence
        Names of the periods, in their order.
    gap, lower, upper : array-like
        The gap in each period, and the ends of its interval.
    pvalues : array-like, optional
        The p-value of each period's change, NaN for the first. Those of at most `alpha` are marked.
    against : {"previous", "first"}
        Which period a change is from.
    metric : str, optional
        Name of the metric.
    groups : pair, optional
        The two groups: gaps are the first minus the second.
    absolute : bool
        Whether gaps have no sign, as those of a joint metric.
    margin : float
        The largest gap that does not matter, drawn as two more lines.
    at_all_times : bool
        Whether the intervals are those of a :class:`fairperm.Monitor`, drawn as a band.
    confidence_level : float
        Level of the intervals.
    alpha : float
        The level of `pvalues`.
    title : str, optional
        Title in place of the default one.
    width, height : int
        Width of the whole chart and height of the plot, in pixels.
    mode : {"auto", "light", "dark"}
        Colours of the page; see :func:`theme`.

    Returns
    -------
    altair.LayerChart

    Examples
    --------
    >>> from fairperm import plots
    >>> chart = plots.gap_over_time([2023, 2024], [0.05, 0.01], [0.02, -0.02], [0.08, 0.04])
    """
    choice("against", against, ("previous", "first"))
    p = [None] * len(periods) if pvalues is None else list(pvalues)
    columns = (list(gap), list(lower), list(upper), p)
    if any(len(one) != len(periods) for one in columns):
        rule = "as many as periods"
        raise InputError("gap, lower, upper, pvalues", rule, tuple(map(len, columns)))
    rows = [
        _describe(place, name, *numbers, against=against, alpha=alpha)
        for place, (name, *numbers) in enumerate(zip(periods, *columns, strict=True))
    ]
    room = fit_plot(width)
    zeros = [{"gap": one} for one in dict.fromkeys((0.0, margin, -margin))]
    ends = [abs(row[key]) for row in rows for key in ("gap", "low", "high") if row[key] is not None]
    reach = _AXIS_PADDING * max(ends, default=0.0) or 1.0
    x_axis = {"title": None, "grid": False, "labels": False, "values": [row["at"] for row in rows]}
    x = number("at", scale={"domain": [-0.5, len(rows) - 0.5], "nice": False}, axis=x_axis)
    y_axis = {"title": "Gap", "tickCount": 5, "labelExpr": GAP_LABEL}
    low = 0.0 if absolute else -reach
    y = {"scale": {"domain": [low, reach], "nice": False}, "axis": y_axis}
    point = {"x": x, "y": number("gap", **y), "tooltip": tooltip(_TIPS)}
    span = {"x": x, "y": number("low", **y), "y2": {"field": "high"}}
    below = {"x": x, "y": pixels(height + _NAME_BELOW), "text": text("name")}
    look: Spec = {"size": 12 if at_all_times else 90, "filled": True, "opacity": 1}
    layers = [
        draw_rows(zeros, "rule", {"y": number("gap", **y)}, style="fp-zero"),
        draw_rows(rows, "line", {"x": x, "y": number("gap", **y)}, style="fp-target"),
        draw_rows(rows, "area", span, style="fp-wide")
        if at_all_times
        else draw_rows(rows, "rule", span, style="fp-line"),
        draw_rows(
            [row for row in rows if not row["moved"]], "point", point, style="fp-point", **look
        ),
        draw_rows(
            [row for row in rows if row["moved"]],
            "point",
            point,
            style="fp-outside",
            shape="diamond",
            **{**look, "size": 170},
        ),
        draw_rows(_choose_names(rows, room), "text", below, style="fp-text", align="center"),
    ]
    of = f" in {format_metric(metric)}" if metric else ""
    between = name_of_gap(*groups, 40, absolute=absolute) if groups else ""
    level = format_level(confidence_level)
    which = "band at all times" if at_all_times else "intervals of each period by itself"
    marked = f"Diamonds: the gap changed from the {against} period (p at most {alpha:g})."
    head = head_chart(
        mode,
        title or f"The gap{of} over time",
        f"{between}{', ' if between else ''}{level} {which}.",
        marked if any(row["moved"] for row in rows) else "",
    )
    return {"layer": layers, **head, "width": room, "height": height}


def _describe(
    place: int,
    name: Hashable,
    gap: Any,
    low: Any,
    high: Any,
    p: Any,
    *,
    against: str,
    alpha: float,
) -> dict[str, Any]:
    """Return the marks and texts of one period."""
    gap, low, high, p = map(as_finite, (gap, low, high, p))
    interval = "" if low is None or high is None else format_interval((low, high))
    change = "" if p is None else f"from the {against} period, {state_pvalue(p)}"
    return {
        "at": place,
        "name": format_name(name, _LONGEST),
        "gap": gap,
        "low": low,
        "high": high,
        "shown": "" if gap is None else format_gap(gap),
        "interval": interval,
        "change": change,
        "moved": p is not None and p <= alpha,
    }


def _choose_names(rows: list[dict[str, Any]], room: int) -> list[dict[str, Any]]:
    """Return the periods whose names have room below the plot: all, or every so many."""
    widest = PER_LETTER * max((len(row["name"]) for row in rows), default=0) + _BETWEEN_NAMES
    return rows[:: max(1, math.ceil(widest * len(rows) / room))]
