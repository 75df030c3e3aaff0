"""The distributions of a column in two groups, with the place where they differ most."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from fairperm._utils.formatting import (
    format_metric,
    format_name,
    format_number,
    format_percent,
    format_value,
    name_of_gap,
    state_pvalue,
)
from fairperm.errors import InputError
from fairperm.plots.parts import as_layers, draw_rows, fit_plot, head_chart, number, text, tooltip

if TYPE_CHECKING:
    from altair import LayerChart

    from fairperm.plots.parts import Numbers, Spec

_LONGEST = 24  # letters of a group's name


def distributions(
    values: Sequence[object],
    first: Numbers,
    second: Numbers,
    *,
    groups: tuple[object, object],
    cumulative: bool = False,
    at: object = None,
    distance: str = "",
    value: float | None = None,
    pvalue: float | None = None,
    adjusted: bool = False,
    title: str | None = None,
    width: int = 700,
    height: int = 220,
    mode: str = "auto",
) -> LayerChart:
    """Draw the distributions of two groups, with the place where they differ most.

    Parameters
    ----------
    values : sequence
        Categories, or ascending numbers.
    first, second : array-like
        The share of each category in the first and in the second group; or the cumulative share of
        rows up to each number.
    groups : pair
        Names of the groups.
    cumulative : bool
        Whether the shares are cumulative ones of numbers.
    at : object, optional
        One of the values, at which the groups differ most.
    distance, value, pvalue
        For the text, if given.
    adjusted : bool
        Whether the p-value is adjusted for several comparisons.
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
    >>> import fairperm
    >>> chart = fairperm.plots.distributions(
    ...     ["yes", "no"], [0.7, 0.3], [0.5, 0.5], groups=("a", "b"), at="yes"
    ... )
    """
    if not len(values) == len(first) == len(second):
        rule = f"as many as values ({len(values):,})"
        raise InputError("first and second", rule, (len(first), len(second)))
    names, shown = _name_apart(groups), _name_apart(values)
    rows: list[list[dict[str, Any]]] = [
        [
            {
                "value": one if cumulative else name,
                "share": float(share),
                "side": side,
                "group": names[side],
                "shown": name,
                "percent": format_percent(float(share)),
            }
            for one, name, share in zip(values, shown, shares, strict=True)
        ]
        for side, shares in enumerate((first, second))
    ]
    percent = {"format": "~%", "tickCount": 5}
    tips = tooltip({"shown": "value", "group": "group", "percent": "share"})
    if cumulative:
        layers = _draw_curves(rows, percent, tips, at)
        key = f"Solid: {names[0]}. Dashed: {names[1]}."
    else:
        layers = _draw_bars(rows, percent, tips)
        key = f"Left and blue: {names[0]}. Right and grey: {names[1]}."
    size = "" if value is None else f" {format_number(value)}"
    p = "" if pvalue is None else f" ({state_pvalue(pvalue, 'adjusted p' if adjusted else 'p')})"
    subject = f"{format_metric(distance)}{size}{p}" if distance else ""
    names_of_bars = {} if cumulative else dict(zip(values, shown, strict=True))
    where = names_of_bars.get(at, format_value(at))
    head = head_chart(
        mode,
        title or "Do the groups have the same distribution?",
        ", ".join(one for one in (subject, name_of_gap(*groups, _LONGEST, absolute=True)) if one),
        key if at is None else f"{key} They differ most at {where}.",
    )
    return as_layers({"layer": layers, **head, "width": fit_plot(width), "height": height})


def _name_apart(values: Sequence[object]) -> list[str]:
    """Return names that differ, also of values that are shortened to the same name."""
    names: dict[str, None] = {}
    for value in values:
        name = short = format_name(value, _LONGEST)
        copies = itertools.count(2)
        while name in names:
            name = f"{short} ({next(copies)})"
        names[name] = None
    return [*names]


def _draw_curves(
    rows: list[list[dict[str, Any]]], percent: Spec, tips: list[Spec], at: object
) -> list[Spec]:
    """Return cumulative shares as steps, the second dashed, and a line at the largest gap."""
    x = number("value", scale={"zero": False}, axis={"title": "Value", "grid": False})
    y = number("share", scale={"domain": [0, 1]}, axis={"title": "Share up to value", **percent})
    xy = {"x": x, "y": y}
    layers = []
    for mine, style, dash in zip(rows, ("fp-curve", "fp-line"), ([1, 0], [6, 3]), strict=True):
        layers.append(
            draw_rows(mine, "line", xy, style=style, interpolate="step-after", strokeDash=dash)
        )
        hover = {**xy, "tooltip": tips}
        layers.append(draw_rows(mine, "point", hover, style=style, opacity=0, size=120))
    ends = [one["share"] for mine in rows for one in mine if one["value"] == at]
    if at is not None and len(ends) == 2:
        gap = [{"value": at, "share": min(ends), "to": max(ends)}]
        look: Spec = {"style": "fp-outside", "strokeWidth": 4}
        layers.append(draw_rows(gap, "rule", {**xy, "y2": {"field": "to"}}, **look))
    return layers


def _draw_bars(rows: list[list[dict[str, Any]]], percent: Spec, tips: list[Spec]) -> list[Spec]:
    """Return shares of categories as bars side by side."""
    order = [one["value"] for one in rows[0]]
    x = text("value") | {"sort": order, "axis": {"title": "Value", "labelAngle": 0}}
    y = number("share", axis={"title": "Share of the group's rows", **percent})
    offset = {"field": "side", "type": "ordinal", "scale": {"domain": [0, 1]}}
    encoding = {"x": x, "xOffset": offset, "y": y, "tooltip": tips}
    return [
        draw_rows(mine, "bar", encoding, style=style)
        for mine, style in zip(rows, ("fp-curve", "fp-bar"), strict=True)
    ]
