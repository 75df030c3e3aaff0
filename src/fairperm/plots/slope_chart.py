"""Values of groups before and after: a line for each group."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fairperm._utils.formatting import Unit, format_metric, format_name
from fairperm.plots.parts import (
    PER_LETTER,
    as_finite,
    as_layers,
    draw_rows,
    head_chart,
    number,
    pixels,
    text,
    tooltip,
)

if TYPE_CHECKING:
    from altair import LayerChart

    from fairperm.plots.parts import Spec

_LEFT, _MIN_PLOT, _MAX_NAMES = 58, 90, 0.5  # pixels, pixels, and share of the width
_VALUE_LETTERS = 11  # before a name: signs of percent are wide
_HEIGHT, _STEP, _HEAD, _GAP = 150, 16, 18, 8  # pixels
_TOOLTIP = {"name": "group", "change": "old → new"}


def slope(
    values: Mapping[Any, tuple[float, float]],
    *,
    metric: str = "",
    title: str | None = None,
    width: int = 400,
    mode: str = "auto",
) -> LayerChart:
    """Draw the value of each group with an old and with a new model.

    Parameters
    ----------
    values : mapping
        The old and the new value of each group.
    metric : str, optional
        The metric, for the title.
    title : str, optional
        Title in place of the default one.
    width : int
        Width of the whole chart, in pixels.
    mode : {"auto", "light", "dark"}
        Colours of the page; see :func:`theme`.

    Returns
    -------
    altair.LayerChart

    Examples
    --------
    >>> import fairperm
    >>> chart = fairperm.plots.slope(
    ...     {"women": (0.15, 0.09), "men": (0.10, 0.08)}, metric="false_positive_rate"
    ... )
    """
    return as_layers(specify_slope(values, metric=metric, title=title, width=width, mode=mode))


def specify_slope(
    values: Mapping[Any, tuple[float, float]],
    *,
    metric: str = "",
    title: str | None = None,
    subtitle: str = "",
    limits: tuple[float, float] | None = None,
    unit: Unit | None = None,
    width: int = 400,
    mode: str = "auto",
) -> Spec:
    """Return the specification of :func:`slope`.

    ``limits`` are the ends of an axis that several charts share, and ``unit`` that of the values.
    """
    lines: list[dict[str, Any]] = [
        {"name": format_name(group), "old": float(old), "new": float(new)}
        for group, (old, new) in values.items()
        if as_finite(old) is not None and as_finite(new) is not None
    ]
    height = max(_HEIGHT, _STEP * len(lines)) + _HEAD
    longest = max((len(one["name"]) for one in lines), default=0)
    right = int(min(PER_LETTER * (longest + _VALUE_LETTERS) + _GAP, max(_MAX_NAMES * width, 0)))
    plot = max(width - _LEFT - right, _MIN_PLOT)
    what = format_metric(metric or "values")
    head = head_chart(mode, title or f"{what[:1].upper()}{what[1:]}: old and new model", subtitle)
    drawn = list(
        _draw(_place(lines, height, limits, unit or Unit(is_share=False)), plot, height, right)
    )
    return {"layer": drawn, **head, "width": plot, "height": height}


def _place(
    lines: Sequence[dict[str, Any]],
    height: int,
    limits: tuple[float, float] | None,
    unit: Unit,
) -> list[dict[str, Any]]:
    """Return the lines with the places of their ends and labels, in pixels from the top."""
    every = limits or [one[side] for one in lines for side in ("old", "new")]
    low, high = min(every, default=0.0), max(every, default=1.0)
    room = height - _HEAD - _STEP
    placed = [
        one
        | {
            f"{side}_place": _HEAD + _STEP / 2 + room * (high - one[side]) / (high - low or 1.0)
            for side in ("old", "new")
        }
        | {
            "change": f"{unit.value(one['old'])} → {unit.value(one['new'])}",
            "old_label": unit.value(one["old"]),
            "new_label": f"{unit.value(one['new'])}  {one['name']}",
        }
        for one in lines
    ]
    for side in ("old", "new"):
        places = _spread([one[f"{side}_place"] for one in placed], height)
        for one, at in zip(placed, places, strict=True):
            one[f"{side}_text"] = at
    return placed


def _spread(places: Sequence[float], height: int) -> list[float]:
    """Return places of labels, near these, that do not overlap."""
    order = sorted(range(len(places)), key=lambda i: places[i])
    found = [*places]
    last = _HEAD - _STEP / 2
    for i in order:
        last = found[i] = max(found[i], last + _STEP)
    last = height + _STEP / 2
    for i in reversed(order):
        last = found[i] = min(found[i], last - _STEP)
    return found


def _draw(lines: Sequence[Mapping[str, Any]], plot: int, height: int, right: int) -> Iterator[Spec]:
    """Yield the layers, from the ground up."""
    scale = {"domain": [height, 0], "nice": False}

    def y(field: str) -> Spec:
        return number(field, scale=scale, axis=None)

    ends = ("old", 0), ("new", plot)
    for side, x in ends:
        rule = {"x": pixels(x), "y": y("top"), "y2": {"field": "bottom"}}
        yield draw_rows([{"top": _HEAD, "bottom": height}], "rule", rule, style="fp-ruler")
        name = [{"top": _HEAD / 2, "name": f"{side} model"}]
        align = "right" if side == "old" else "left"
        shift = _GAP / 2 if side == "old" else -_GAP / 2
        place = {"x": pixels(x + shift), "y": y("top"), "text": text("name")}
        yield draw_rows(name, "text", place, style="fp-note", align=align)
    if not lines:
        return
    slopes = {
        "x": pixels(0),
        "x2": pixels(plot),
        "y": y("old_place"),
        "y2": {"field": "new_place"},
        "tooltip": tooltip(_TOOLTIP),
    }
    yield draw_rows(lines, "rule", slopes, style="fp-line")
    for side, x in ends:
        point = {"x": pixels(x), "y": y(f"{side}_place"), "tooltip": tooltip(_TOOLTIP)}
        yield draw_rows(lines, "point", point, style="fp-point", filled=True, size=50, opacity=1)
        is_old = side == "old"
        place = pixels(x - _GAP if is_old else x + _GAP)
        label = {"x": place, "y": y(f"{side}_text"), "text": text(f"{side}_label")}
        look: Spec = {
            "align": "right" if is_old else "left",
            "limit": _LEFT if is_old else right - _GAP,
        }
        yield draw_rows(lines, "text", label, style="fp-text", **look)
