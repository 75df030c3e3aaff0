"""The distributions of a column in two groups, with the place where they differ most."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairperm._utils.formatting import (
    format_metric,
    format_name,
    format_number,
    format_percent,
    name_of_gap,
    state_pvalue,
)
from fairperm.errors import InputError
from fairperm.plots.parts import as_layers, draw_rows, fit_plot, head_chart, number, text, tooltip

if TYPE_CHECKING:
    from collections.abc import Sequence

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
    names = [format_name(group, _LONGEST) for group in groups]
    rows: list[dict[str, Any]] = [
        {
            "value": one if cumulative else format_name(one, _LONGEST),
            "share": float(share),
            "group": name,
            "shown": format_name(one, _LONGEST),
            "percent": format_percent(float(share)),
        }
        for name, shares in zip(names, (first, second), strict=True)
        for one, share in zip(values, shares, strict=True)
    ]
    percent = {"format": "~%", "tickCount": 5}
    tips = tooltip({"shown": "value", "group": "group", "percent": "share"})
    if cumulative:
        layers = _draw_curves(rows, names, percent, tips, at)
    else:
        layers = _draw_bars(rows, names, percent, tips, at)
    size = "" if value is None else f" {format_number(value)}"
    p = "" if pvalue is None else f" ({state_pvalue(pvalue)})"
    subject = f"{format_metric(distance)}{size}{p}" if distance else ""
    where = "" if at is None else f"They differ most at {format_name(at, _LONGEST)}."
    head = head_chart(
        mode,
        title or "Do the groups have the same distribution?",
        ", ".join(one for one in (subject, name_of_gap(*groups, _LONGEST, absolute=True)) if one),
        where,
    )
    return as_layers({"layer": layers, **head, "width": fit_plot(width), "height": height})


def _draw_curves(
    rows: list[dict[str, Any]], names: list[str], percent: Spec, tips: list[Spec], at: object
) -> list[Spec]:
    """Return cumulative shares as steps, each with its name, and a line between them."""
    x = number("value", scale={"zero": False}, axis={"title": "Value", "grid": False})
    y = number("share", scale={"domain": [0, 1]}, axis={"title": "Share up to value", **percent})
    xy = {"x": x, "y": y}
    layers, ends = [], []
    for side, (name, style) in enumerate(zip(names, ("fp-curve", "fp-line"), strict=True)):
        mine = rows[side * len(rows) // 2 : (side + 1) * len(rows) // 2]
        look: Spec = {"style": style, "interpolate": "step-after"}
        if side:
            look["strokeDash"] = [6, 3]
        layers.append(draw_rows(mine, "line", xy, **look))
        hover = {**xy, "tooltip": tips}
        layers.append(draw_rows(mine, "point", hover, style=style, opacity=0, size=120))
        middle = next((one for one in mine if one["share"] >= 0.5), mine[-1])
        place = [{"value": middle["value"], "share": 0.5 + 0.06 * (1 - 2 * side), "label": name}]
        word = {**xy, "text": text("label")}
        layers.append(draw_rows(place, "text", word, style="fp-head", align="left", dx=8))
        ends += [one["share"] for one in mine if one["value"] == at]
    if at is not None and len(ends) == 2:
        gap = [{"value": at, "share": min(ends), "to": max(ends)}]
        layers.append(draw_rows(gap, "rule", {**xy, "y2": {"field": "to"}}, style="fp-observed"))
    return layers


def _draw_bars(
    rows: list[dict[str, Any]], names: list[str], percent: Spec, tips: list[Spec], at: object
) -> list[Spec]:
    """Return shares of categories as bars side by side, the category that differs most marked."""
    order = list(dict.fromkeys(one["value"] for one in rows))
    x = text("value") | {"sort": order, "axis": {"title": "Value", "labelAngle": 0}}
    y = number("share", axis={"title": "Share of the group's rows", **percent})
    layers = []
    for name, style in zip(names, ("fp-curve", "fp-bar"), strict=True):
        offset = text("group") | {"scale": {"domain": names}}
        encoding = {"x": x, "xOffset": offset, "y": y, "tooltip": tips}
        mine = [one for one in rows if one["group"] == name]
        layers.append(draw_rows(mine, "bar", encoding, style=style))
    if at is not None:
        chosen = format_name(at, _LONGEST)
        marked = [one | {"label": one["group"]} for one in rows if one["value"] == chosen]
        word = {"x": x, "xOffset": offset, "y": y, "text": text("label")}
        layers.append(draw_rows(marked, "text", word, style="fp-head", baseline="bottom", dy=-3))
    return layers
