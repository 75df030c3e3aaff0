"""Parts of every chart: colours, shapes and fonts, layers, title, room for the plot, and axes.

A chart is a Vega-Lite specification in plain dictionaries, which is also what a report holds:
Altair's objects take a hundred times longer to make, and only those who plot need them. Names from
data are data values only: no field, expression or scale is ever made of one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from fairperm._utils.checks import choice
from fairperm._utils.optional import optional

if TYPE_CHECKING:
    from altair import LayerChart, VConcatChart

    Numbers = Sequence[float] | NDArray[Any]
    Spec = dict[str, Any]

P = ParamSpec("P")
C = TypeVar("C", covariant=True)

MODES = ("auto", "light", "dark")
_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"

# Okabe and Ito's colours, darkened or lightened where they would be faint on the page. "auto" is
# for pages of unknown colour: every entry has a contrast of at least 3 on white and on #121212.
_COLOURS = {  # by mode, in the order of MODES
    "ink": ("#767676", "#1f2328", "#e6edf3"),
    "muted": ("#7b7b7b", "#59636e", "#9ea7b3"),
    "faint": ("#808080", "#6e7781", "#8b949e"),
    "grid": ("#8080804d", "#d1d9e0", "#3d444d"),
    "disparity": ("#d55e00", "#c04a00", "#f28c45"),
    "equivalent": ("#00916a", "#007a58", "#2dbf94"),
    "inconclusive": ("#2d84c0", "#0072b2", "#56b4e9"),
    "too small": ("#828282", "#69727c", "#8b949e"),
    "bar": ("#8c8c8c", "#87909a", "#6b737d"),
}
# Verdicts differ without colours too: each has a shape, and only the two findings are filled.
SHAPES = {
    "disparity": "diamond",
    "equivalent": "square",
    "inconclusive": "circle",
    "too small": "triangle-up",
}
FINDINGS = ("disparity", "equivalent")
PER_LETTER = 6.2  # pixels, in the mean of a wide font
POINTS_LABEL = "datum.value == 0 ? '0' : format(100 * datum.value, '+.6~g')"  # of rates
GAP_LABEL = "datum.value == 0 ? '0' : format(datum.value, '+.6~g')"  # a Vega expression
_AXIS, _MIN_ROOM = 62, 160  # pixels left of a plot, and the least width of a plot


def theme(mode: str = "auto") -> dict[str, Any]:
    """Return the Vega-Lite config with the colours for a page.

    It holds all colours of a chart: to show the chart on a page of another colour, replace
    ``config`` in its specification.

    Parameters
    ----------
    mode : {"auto", "light", "dark"}
        Colours for light or dark pages; "auto" is legible on both, with less contrast.

    Returns
    -------
    dict

    Examples
    --------
    >>> from fairperm import plots
    >>> chart = plots.power_curve([100, 200, 400], [0.3, 0.6, 0.9])
    >>> specification = chart.to_dict() | {"config": plots.theme("dark")}
    """
    place = MODES.index(choice("mode", mode, MODES))
    colour = {role: colours[place] for role, colours in _COLOURS.items()}
    ink, muted = colour["ink"], colour["muted"]
    axis = {
        "labelColor": muted,
        "titleColor": muted,
        "tickColor": colour["grid"],
        "domainColor": colour["grid"],
        "gridColor": colour["grid"],
        "gridOpacity": 0.6,
        "labelFontSize": 11,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "titlePadding": 8,
        "labelPadding": 4,
        "domain": False,
        "tickSize": 4,
    }
    legend = {
        "labelColor": ink,
        "titleColor": muted,
        "labelFontSize": 11.5,
        "labelLimit": 640,
        "symbolSize": 110,
        "padding": 0,
    }
    title = {
        "color": ink,
        "subtitleColor": muted,
        "fontSize": 15,
        "subtitleFontSize": 12,
        "fontWeight": 600,
        "anchor": "start",
        "offset": 12,
        "subtitlePadding": 5,
        "frame": "bounds",
    }
    return {
        "background": "transparent",
        "font": _FONT,
        "view": {"stroke": None},
        "mark": {"aria": False},  # a chart is read by its description, numbers in a table
        "axis": axis,
        "legend": legend,
        "title": title,
        "concat": {"spacing": 18},
        "style": _styles(colour),
    }


def _styles(colour: Mapping[str, str]) -> dict[str, Any]:
    ink, muted, blue = colour["ink"], colour["muted"], colour["inconclusive"]
    text = {"fontSize": 11.5, "baseline": "middle"}
    styles: dict[str, Any] = {
        "fp-head": {**text, "color": ink, "fontWeight": 600, "fontSize": 12.5},
        "fp-text": {**text, "color": ink},
        "fp-note": {**text, "color": muted},
        "fp-ruler": {"color": colour["grid"], "strokeWidth": 1},
        "fp-zero": {"color": colour["faint"], "strokeWidth": 1.2},
        "fp-target": {"color": colour["faint"], "strokeWidth": 1.2, "strokeDash": [5, 4]},
        "fp-line": {"color": ink, "strokeWidth": 2},
        "fp-point": {"color": ink},
        "fp-margin": {"color": colour["equivalent"], "fillOpacity": 0.18},
        "fp-bar": {"color": colour["bar"]},
        "fp-tail": {"color": colour["disparity"]},
        "fp-observed": {"color": ink, "strokeWidth": 2},
        "fp-mirror": {"color": ink, "strokeWidth": 1.2, "strokeDash": [4, 4]},
        "fp-curve": {"color": blue, "strokeWidth": 2.4},
        "fp-wide": {"color": blue, "fillOpacity": 0.18},
        "fp-narrow": {"color": blue, "fillOpacity": 0.28},
        "fp-outside": {"color": colour["disparity"]},
        "fp-missing": {"color": colour["too small"], "strokeWidth": 1.5},
    }
    for verdict in SHAPES:
        name, own = name_style(verdict), colour[verdict]
        styles[f"{name}-mark"] = {"color": own, "strokeWidth": 1.6}
        styles[f"{name}-line"] = {
            "color": own,
            "strokeWidth": 1.8 if verdict == "too small" else 2.6,
        }
        styles[f"{name}-thin"] = {"color": own, "strokeWidth": 1}
        styles[f"{name}-end"] = {"color": own, "thickness": 1, "size": 8}
        styles[f"{name}-word"] = {**text, "color": own, "fontWeight": 600}
    return styles


def name_style(verdict: str) -> str:
    """Return the beginning of the names of a verdict's styles."""
    return f"fp-{verdict.replace(' ', '-')}"


def draw_rows(
    rows: Iterable[Mapping[str, Any]], mark: str, encoding: Spec, *, where: str = "", **look: Any
) -> Spec:
    """Return a layer: one mark for each row for which `where` holds.

    `where` is a Vega expression. Numbers that are not finite are null.
    """
    values = [{key: _to_json(one) for key, one in row.items()} for row in rows]
    chosen = {"transform": [{"filter": where}]} if where else {}
    return {
        "data": {"values": values},
        "mark": {"type": mark, **look},
        "encoding": encoding,
        **chosen,
    }


def number(field: str, **options: Any) -> Spec:
    """Return the encoding of a field of numbers."""
    return {"field": field, "type": "quantitative", **options}


def text(field: str) -> Spec:
    """Return the encoding of a field of texts."""
    return {"field": field, "type": "nominal"}


def tooltip(titles: Mapping[str, str]) -> list[Spec]:
    """Return a tooltip with the texts of these fields, by their titles."""
    return [text(field) | {"title": title} for field, title in titles.items()]


def pixels(place: float) -> Spec:
    """Return the encoding of a place in pixels from the left or the top of the plot."""
    return {"value": place}


def _to_json(value: Any) -> Any:
    if isinstance(value, (bool, str, type(None))):
        return value
    number = as_finite(value)
    return int(number) if number is not None and isinstance(value, (int, np.integer)) else number


def as_finite(value: Any) -> float | None:
    """Return a finite number, or None."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def fit_plot(width: int) -> int:
    """Return the width of the plot in a chart of this width, in pixels."""
    return max(width - _AXIS, _MIN_ROOM)


def round_ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Return round numbers from low to high."""
    rough = (high - low) / most
    unit = 10.0 ** math.floor(math.log10(rough))
    step = next(unit * one for one in (1, 2, 5, 10) if unit * one >= rough * (1 - 1e-9))
    places = range(math.ceil(low / step), math.floor(high / step) + 1)
    return [float(f"{one * step:.12g}") for one in places]


def wrap_parts(parts: Iterable[str], letters: int) -> list[str]:
    """Return parts in lines of at most this many letters; a longer part has a line of its own."""
    lines: list[str] = []
    for part in parts:
        if lines and len(lines[-1]) + 1 + len(part) <= letters:
            lines[-1] += f" {part}"
        else:
            lines.append(part)
    return lines


def as_layers(spec: Spec) -> LayerChart:
    """Return the specification of layers as a chart of Altair; tests check it, not every call."""
    with optional("A chart"):
        import altair as alt
        from altair.utils.schemapi import debug_mode

        from fairperm.plots.notebook_charts import LayerPicture

    with debug_mode(False):
        layers = [
            alt.Chart(**one, data=alt.InlineData(**data), encoding=alt.FacetedEncoding(**encoding))
            for one in map(dict, spec["layer"])
            for data, encoding in [(one.pop("data"), one.pop("encoding"))]
        ]
        rest = {name: one for name, one in spec.items() if name != "layer"}
        return LayerPicture(layer=layers, **rest)


def as_panels(spec: Spec) -> VConcatChart:
    """Return the specification of panels, one below the other, as a chart of Altair."""
    with optional("A chart"):
        import altair as alt
        from altair.utils.schemapi import debug_mode

        from fairperm.plots.notebook_charts import PanelPicture

    rest = {name: one for name, one in spec.items() if name not in {"vconcat", "params"}}
    with debug_mode(False):
        chart = PanelPicture(vconcat=list(map(as_layers, spec["vconcat"])), **rest)
        return chart.add_params(*(alt.param(**one) for one in spec.get("params", ())))


class ChartFunction(Protocol[P, C]):
    """A function that draws a chart, for reports also as its specification alone."""

    specify: Callable[P, Spec]

    def __call__(self, *given: P.args, **options: P.kwargs) -> C:
        """Return the chart."""


def charted(as_chart: Callable[[Spec], C]) -> Callable[[Callable[P, Spec]], ChartFunction[P, C]]:
    """Make a function that returns a specification return it as a chart."""

    def decorate(specify: Callable[P, Spec]) -> ChartFunction[P, C]:
        @wraps(specify)
        def draw(*given: P.args, **options: P.kwargs) -> C:
            return as_chart(specify(*given, **options))

        function = cast("ChartFunction[P, C]", draw)
        function.specify = specify
        return function

    return decorate


def _end_sentence(line: str) -> str:
    return line if line.endswith((".", "?", "!")) else f"{line}."


def head_chart(mode: str, title: str, *lines: str) -> Spec:
    """Return a chart's title with lines below it, the same for screen readers, and its theme."""
    subtitle = [line for line in lines if line]
    return {
        "title": {"text": title, "subtitle": subtitle},
        "description": " ".join(map(_end_sentence, [title, *subtitle])),
        "config": theme(mode),
    }
