"""Charts of what was found, by Altair, from plain numbers and names.

Results draw themselves with these: :meth:`fairperm.Audit.plot`,
:meth:`fairperm.PermutationTestResult.plot`, :meth:`fairperm.ThresholdSweepResult.plot`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import altair as alt
import numpy as np

from fairperm._chart_parts import (
    encoded,
    finite,
    layered,
    sentence,
    spoken,
    table,
    theme,
    tidy,
)
from fairperm._forest_chart import forest
from fairperm._null_chart import null_distribution
from fairperm._options import choice
from fairperm._sweep_chart import threshold_sweep
from fairperm.errors import InputError, problem

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fairperm._chart_parts import Numbers

__all__ = ["forest", "null_distribution", "power_curve", "theme", "threshold_sweep"]

_AXIS = 62  # pixels left of the plot


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
) -> alt.LayerChart:
    """Draw power over numbers of rows, or over gaps.

    Parameters
    ----------
    at : array-like
        Numbers of rows, of both groups together, or gaps.
    power : array-like or callable
        The power at each, or a function of one of them that returns it.
    over : {"rows", "gap"}
        What `at` is.
    target : float
        The power that is wanted.
    marked : float, optional
        Where it is reached, as :func:`fairperm.sample_size` or
        :func:`fairperm.minimum_detectable_gap` tell; by default read off the curve.
    subject : str, optional
        What it is the power of, in words.
    title : str, optional
        Instead of the usual one.
    width, height : int
        Of the whole chart, and of the plot, in pixels.
    mode : {"auto", "light", "dark"}
        The page's colours; see :func:`theme`.

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
    places = np.asarray(at, dtype=np.float64).ravel()
    places = np.unique(places) if callable(power) else places
    if callable(power):
        found = [power(int(one) if over == "rows" else float(one)) for one in places]
    else:
        found = list(np.asarray(power, dtype=np.float64).ravel())
    if len(found) != len(places):
        raise InputError(problem("power", f"as many as at ({len(places):,})", len(found)))
    rows = sorted(
        ({"at": float(a), "power": float(b)} for a, b in zip(places, found, strict=True)),
        key=lambda one: one["at"],
    )
    rows = [row for row in rows if finite(row["at"]) is not None]
    rows = [row for row in rows if finite(row["power"]) is not None]
    reached = _reached(rows, target) if marked is None else finite(marked)
    room = max(width - _AXIS, 160)
    ends = [one["at"] for one in rows] or [0.0, 1.0]
    low, high = min(ends), max([*ends, *([] if reached is None else [reached])])
    is_wide = over == "rows" and low > 0 and high > 100 * low
    kind: Any = "log" if is_wide else "linear"
    x_scale = alt.Scale(domain=[low, high if high > low else low + 1.0], nice=False, type=kind)
    digits = ("~s" if is_wide else ",d") if over == "rows" else ".4~g"
    name = "Rows of both groups together" if over == "rows" else "True gap between the groups"
    x_axis = alt.Axis(title=name, grid=False, tickCount=6, format=digits)
    y_axis = alt.Axis(title="Power: how likely the gap is found", format="~%", tickCount=5)
    y_scale = alt.Scale(domain=[0, 1], nice=False)

    def xy(data: Sequence[dict[str, Any]], field: str = "power") -> alt.Chart:
        x = alt.X("at:Q", scale=x_scale, axis=x_axis)
        return encoded(
            alt.Chart(table(data)), x=x, y=alt.Y(f"{field}:Q", scale=y_scale, axis=y_axis)
        )

    words_of = {"rows": "{:,.0f} rows", "gap": "a gap of {:.3g}"}[over]
    about = "about " if marked is None and over == "rows" else ""
    label = "" if reached is None else about + words_of.format(reached)
    point = (
        [] if reached is None else [{"at": reached, "power": target, "foot": 0.0, "label": label}]
    )
    align: Any = "right" if reached is not None and reached > (low + high) / 2 else "left"
    tips = [alt.Tooltip("at:Q", title=name), alt.Tooltip("power:Q", format=".1%", title="power")]
    goal = alt.Chart(table([{"power": target}]))
    layers = [
        encoded(goal.mark_rule(style="fp-target"), y=alt.Y("power:Q", scale=y_scale, axis=y_axis)),
        encoded(xy(point).mark_rule(style="fp-target"), y2="foot:Q"),
        xy(rows).mark_line(style="fp-curve"),
        encoded(xy(rows).mark_point(style="fp-curve", opacity=0, size=160), tooltip=tips),
        xy(point).mark_point(style="fp-outside", shape="diamond", filled=True, size=110, opacity=1),
        encoded(
            xy(point).mark_text(
                style="fp-head", align=align, dx=-12 if align == "right" else 12, dy=16
            ),
            text="label:N",
        ),
    ]
    wanted = f"{100 * target:.4g} %"
    result = f"{wanted} power is not reached here."
    if reached is not None:
        result = {
            "rows": f"{wanted} power from {label} on.",
            "gap": f"Gaps of at least {reached:.3g} are found with {wanted} power or more.",
        }[over]
    usual = {
        "rows": "How many rows does it take to find this gap?",
        "gap": "Which gaps could a sample like this have shown?",
    }[over]
    heading = sentence(title or usual, tidy(subject, 110) if subject else "", result)
    whole = {"title": heading, "description": spoken(heading), "config": theme(mode)}
    return layered(layers, **whole, width=room, height=height)


def _reached(rows: Sequence[dict[str, float]], target: float) -> float | None:
    """Return where the curve reaches the target for good; None if it does not."""
    below = [i for i, row in enumerate(rows) if row["power"] < target]
    if not rows or (below and below[-1] == len(rows) - 1):
        return None
    if not below:
        return rows[0]["at"]
    last, first = rows[below[-1]], rows[below[-1] + 1]
    share = (target - last["power"]) / (first["power"] - last["power"])
    return last["at"] + share * (first["at"] - last["at"])
