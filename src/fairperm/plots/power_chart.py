"""Power over the number of rows or over the gap."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fairperm._utils.checks import choice
from fairperm._utils.formatting import format_level, format_name
from fairperm.errors import InputError
from fairperm.plots.parts import (
    as_finite,
    as_layers,
    draw_rows,
    fit_plot,
    head_chart,
    number,
    text,
)

if TYPE_CHECKING:
    from altair import LayerChart

    from fairperm.plots.parts import Numbers, Spec


def power_curve(
    at: Numbers,
    power: Numbers | Callable[[Any], float],
    *,
    over: str = "rows",
    target: float = 0.8,
    marked: float | None = None,
    subject: str = "",
    title: str | None = None,
    width: int = 700,
    height: int = 220,
    mode: str = "auto",
) -> LayerChart:
    """Draw power over numbers of rows, or over gaps.

    Parameters
    ----------
    at : array-like
        Total numbers of rows in both groups, or gaps.
    power : array-like or callable
        The power at each of them, or a function that returns it.
    over : {"rows", "gap"}
        Whether `at` holds numbers of rows or gaps.
    target : float
        The power to reach.
    marked : float, optional
        Where the target is reached, as :func:`fairperm.sample_size` or
        :func:`fairperm.minimum_detectable_gap` return it; by default read off the curve.
    subject : str, optional
        The test whose power is drawn, in words.
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
    >>> chart = fairperm.plots.power_curve(
    ...     range(100, 2001, 100),
    ...     lambda n: fairperm.power("fnr", values=(0.1, 0.2), n=n, base_rates=0.5),
    ... )
    """
    choice("over", over, ("rows", "gap"))
    rows = _compute_curve(at, power, over)
    reached = _find_target(rows, target) if marked is None else as_finite(marked)
    ends = [one["at"] for one in rows] or [0.0, 1.0]
    low, high = min(ends), max([*ends, *([] if reached is None else [reached])])
    is_wide = over == "rows" and low > 0 and high > 100 * low
    digits = ("~s" if is_wide else ",d") if over == "rows" else ".4~g"
    name = "Rows in both groups together" if over == "rows" else "True gap between the groups"
    x_scale = {
        "domain": [low, high if high > low else low + 1.0],
        "nice": False,
        "type": "log" if is_wide else "linear",
    }
    x_axis = {"title": name, "grid": False, "tickCount": 6, "format": digits}
    y_axis = {"title": "Power: probability of detecting the gap", "format": "~%", "tickCount": 5}
    y = number("power", scale={"domain": [0, 1], "nice": False}, axis=y_axis)
    xy = {"x": number("at", scale=x_scale, axis=x_axis), "y": y}
    label, point = "", []
    if reached is not None:
        about = "about " if marked is None else ""
        is_rows = over == "rows"
        label = f"{about}{reached:,.0f} rows" if is_rows else f"a gap of {reached:.3g}"
        point = [{"at": reached, "power": target, "foot": 0.0, "label": label}]
    align = "right" if reached is not None and reached > (low + high) / 2 else "left"
    tips = [number("at", title=name), number("power", format=".1%", title="power")]
    mark: Spec = {"style": "fp-outside", "shape": "diamond", "filled": True, "size": 110}
    word: Spec = {"align": align, "dx": -12 if align == "right" else 12, "dy": 16}
    layers = [
        draw_rows([{"power": target}], "rule", {"y": y}, style="fp-target"),
        draw_rows(point, "rule", {**xy, "y2": {"field": "foot"}}, style="fp-target"),
        draw_rows(rows, "line", xy, style="fp-curve"),
        draw_rows(rows, "point", {**xy, "tooltip": tips}, style="fp-curve", opacity=0, size=160),
        draw_rows(point, "point", xy, **mark, opacity=1),
        draw_rows(point, "text", {**xy, "text": text("label")}, style="fp-head", **word),
    ]
    default = {
        "rows": "How many rows does it take to detect this gap?",
        "gap": "Which gaps would a sample like this detect?",
    }[over]
    about = format_name(subject, 110) if subject else ""
    head = head_chart(mode, title or default, about, _describe_target(over, reached, label, target))
    return as_layers({"layer": layers, **head, "width": fit_plot(width), "height": height})


def _compute_curve(
    at: Numbers, power: Numbers | Callable[[Any], float], over: str
) -> list[dict[str, float]]:
    """Return the power at each place, in order, without values that are not finite."""
    places = np.asarray(at, dtype=np.float64).ravel()
    if callable(power):
        places = np.unique(places)
        powers = [power(int(one) if over == "rows" else float(one)) for one in places]
    else:
        powers = list(np.asarray(power, dtype=np.float64).ravel())
    if len(powers) != len(places):
        raise InputError("power", f"as many as at ({len(places):,})", len(powers))
    rows = [{"at": float(a), "power": float(b)} for a, b in zip(places, powers, strict=True)]
    kept = [row for row in rows if None not in map(as_finite, row.values())]
    return sorted(kept, key=lambda one: one["at"])


def _describe_target(over: str, reached: float | None, label: str, target: float) -> str:
    level = format_level(target)
    if reached is None:
        return f"{level} power is not reached here."
    if over == "rows":
        return f"{level} power from {label} on."
    return f"Gaps of at least {reached:.3g} are detected with {level} power or more."


def _find_target(rows: Sequence[dict[str, float]], target: float) -> float | None:
    """Return where the curve reaches the target for good; None if it does not."""
    below = [i for i, row in enumerate(rows) if row["power"] < target]
    if not rows or (below and below[-1] == len(rows) - 1):
        return None
    if not below:
        return rows[0]["at"]
    last, first = rows[below[-1]], rows[below[-1] + 1]
    share = (target - last["power"]) / (first["power"] - last["power"])
    return last["at"] + share * (first["at"] - last["at"])
