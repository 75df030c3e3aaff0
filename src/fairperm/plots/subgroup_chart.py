"""A tree of subgroups, each with its gap."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fairperm._utils.formatting import (
    format_count,
    format_interval,
    format_level,
    format_metric,
    format_name,
    format_number,
    format_pvalue,
)
from fairperm.plots.parts import (
    GAP_LABEL,
    PER_LETTER,
    as_finite,
    as_layers,
    charted,
    draw_rows,
    head_chart,
    number,
    pixels,
    text,
    tooltip,
)

if TYPE_CHECKING:
    from fairperm.plots.parts import Spec

_STEP, _INDENT, _HALF = 30, 16, 8  # pixels: a line, a level of the tree, where a branch starts
_MIN_PLOT, _MIN_NAMES = 160, 120  # pixels
_TOOLTIP = {
    "name": "subgroup",
    "rows": "rows",
    "values": "value, rest",
    "interval": "gap",
    "p": "adjusted p",
}


@charted(as_layers)
def subgroups(
    rows: Sequence[Mapping[str, Any]],
    *,
    metric: str = "",
    confidence_level: float | None = None,
    title: str | None = None,
    width: int = 700,
    mode: str = "auto",
) -> Spec:
    """Draw subgroups as a tree: those with more conditions below those with fewer of the same.

    Parameters
    ----------
    rows : sequence of mappings
        For each subgroup its ``conditions`` (a list of texts), ``n``, ``value``, ``rest``, ``gap``,
        ``low``, ``high`` and ``adjusted_pvalue``.
    metric : str, optional
        The metric, for the title.
    confidence_level : float, optional
        The level of the intervals, for the title.
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
    >>> row = {"n": 90, "value": 0.5, "rest": 0.3, "gap": 0.2, "low": 0.1, "high": 0.3}
    >>> chart = fairperm.plots.subgroups(
    ...     [{**row, "conditions": ["sex = Female", "age at most 25"], "adjusted_pvalue": 0.002}],
    ...     metric="false_positive_rate",
    ... )
    """
    lines = [{**line, **_describe(line)} for line in _grow(rows)]
    longest = max((len(one["label"]) * PER_LETTER + one["indent"] for one in lines), default=0)
    left = int(min(max(longest + 12, _MIN_NAMES), max(width - _MIN_PLOT, _MIN_NAMES)))
    height = _STEP * max(1, len(lines))
    level = f"{format_level(confidence_level)} " if confidence_level else ""
    what = f" in {format_metric(metric)}" if metric else ""
    default = f"Subgroups{what}: gaps to the rest, with {level}intervals"
    count = f"{format_count(len(lines), 'subgroup')}" if lines else "No subgroup to show"
    head = head_chart(mode, title or default, count)
    drawn = [one for one in _draw(lines, left, height) if one["data"]["values"]]
    empty = draw_rows([{"at": 0.0}], "rule", {"x": number("at", axis=None)}, style="fp-zero")
    size = {"width": max(width - left, _MIN_PLOT), "height": height}
    return {"layer": drawn or [empty], **head, **size}


def _grow(rows: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield every subgroup after the one with the most of its conditions, if there is one."""
    names = [tuple(row["conditions"]) for row in rows]
    parents = [
        max(
            (j for j, other in enumerate(names) if set(other) < set(mine)),
            key=lambda j: len(names[j]),
            default=None,
        )
        for mine in names
    ]
    places: dict[int, int] = {}

    def visit(i: int, depth: int) -> Iterator[dict[str, Any]]:
        places[i] = len(places)
        above = parents[i]
        own = [one for one in names[i] if above is None or one not in names[above]]
        yield {
            **rows[i],
            "place": (places[i] + 0.5) * _STEP,
            "from_place": None if above is None else (places[above] + 0.8) * _STEP,
            "indent": depth * _INDENT,
            "label": ("" if above is None else "and ") + " and ".join(map(format_name, own)),
        }
        for j, parent in enumerate(parents):
            if parent == i:
                yield from visit(j, depth + 1)

    for i, parent in enumerate(parents):
        if parent is None:
            yield from visit(i, 0)


def _describe(row: Mapping[str, Any]) -> dict[str, Any]:
    gap, limits = format_number(row["gap"], signed=True), (row["low"], row["high"])
    return {
        "name": " and ".join(map(format_name, row["conditions"])),
        "rows": f"{row['n']:,}",
        "values": f"{format_number(row['value'])}, {format_number(row['rest'])}",
        "interval": f"{gap} ({format_interval(limits, signed=True)})",
        "p": format_pvalue(row["adjusted_pvalue"]),
    }


def _draw(lines: Sequence[Mapping[str, Any]], left: int, height: int) -> Iterator[Spec]:
    """Yield the layers, from the ground up."""
    y = number("place", scale={"domain": [height, 0], "nice": False}, axis=None)
    ends = [as_finite(one[end]) for one in lines for end in ("low", "high", "gap")]
    domain = [0.0, *(one for one in ends if one is not None)]
    axis = {"title": "Value minus that of the rest", "labelExpr": GAP_LABEL, "tickCount": 6}
    scale = {"domain": [min(domain), max(domain)], "nice": True}

    def x(field: str) -> Spec:
        return number(field, scale=scale, axis=axis)

    yield draw_rows([{"at": 0.0}] if lines else [], "rule", {"x": x("at")}, style="fp-zero")
    for line in lines:
        corner = pixels(-left + line["indent"] - _HALF)
        if line["from_place"] is not None:
            down = [{"place": line["from_place"], "to": line["place"]}]
            yield draw_rows(
                down, "rule", {"x": corner, "y": y, "y2": {"field": "to"}}, style="fp-ruler"
            )
            across = {"x": corner, "x2": pixels(-left + line["indent"] - 2), "y": y}
            yield draw_rows([{"place": line["place"]}], "rule", across, style="fp-ruler")
        name = {"x": pixels(-left + line["indent"]), "y": y, "text": text("label")}
        some = [{"place": line["place"], "label": line["label"]}]
        yield draw_rows(
            some, "text", name, style="fp-text", align="left", limit=left - line["indent"] - 6
        )
    interval = {"x": x("low"), "x2": {"field": "high"}, "y": y, "tooltip": tooltip(_TOOLTIP)}
    fields = ("place", "low", "high", "gap", *_TOOLTIP)
    plain = [{field: one[field] for field in fields} for one in lines]
    yield draw_rows(plain, "rule", interval, style="fp-disparity-line")
    mark: Spec = {"style": "fp-disparity-mark", "shape": "diamond", "size": 70, "filled": True}
    point = {"x": x("gap"), "y": y, "tooltip": tooltip(_TOOLTIP)}
    yield draw_rows(plain, "point", point, **mark, opacity=1)
