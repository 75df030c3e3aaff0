"""What all charts share: colours for light and dark pages, names from data, finite numbers.

Names are data values only: no field, expression or scale is ever made of one.
"""

from __future__ import annotations

import math
import unicodedata
from typing import TYPE_CHECKING, Any, cast

import altair as alt
import numpy as np

from fairperm._options import choice

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    Numbers = Sequence[float] | NDArray[Any]

MODES = ("auto", "light", "dark")
LONGEST_TOLD = 200
PER_LETTER = 6.2  # pixels, in the mean of a wide font
GAP_LABEL = "datum.value == 0 ? '0' : format(datum.value, '+.6~g')"  # of an axis, in Vega's words
_AXIS, _LEAST_ROOM = 62, 160  # pixels left of a plot, and those that it has at the least
_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"

# Okabe and Ito's colours, darkened or lightened where they would be faint on the page. "auto" is
# for pages of unknown colour: every entry has a contrast of at least 3 on white and on #121212.
_COLOURS: dict[str, dict[str, str]] = {
    "auto": {
        "ink": "#767676",
        "muted": "#7b7b7b",
        "faint": "#808080",
        "grid": "#8080804d",
        "disparity": "#d55e00",
        "equivalent": "#00916a",
        "inconclusive": "#2d84c0",
        "too small": "#828282",
        "bar": "#8c8c8c",
    },
    "light": {
        "ink": "#1f2328",
        "muted": "#59636e",
        "faint": "#6e7781",
        "grid": "#d1d9e0",
        "disparity": "#c04a00",
        "equivalent": "#007a58",
        "inconclusive": "#0072b2",
        "too small": "#69727c",
        "bar": "#87909a",
    },
    "dark": {
        "ink": "#e6edf3",
        "muted": "#9ea7b3",
        "faint": "#8b949e",
        "grid": "#3d444d",
        "disparity": "#f28c45",
        "equivalent": "#2dbf94",
        "inconclusive": "#56b4e9",
        "too small": "#8b949e",
        "bar": "#6b737d",
    },
}
# A verdict has a shape of its own, and only the two that are findings are filled: they can be told
# apart without colours.
SHAPES = {
    "disparity": "diamond",
    "equivalent": "square",
    "inconclusive": "circle",
    "too small": "triangle-up",
}
FINDINGS = ("disparity", "equivalent")


def theme(mode: str = "auto") -> dict[str, Any]:
    """Return the Vega-Lite config of a page's colours.

    Every chart is drawn with one, and all its colours are in it: to show a chart on a page of
    another colour, replace ``config`` in its specification.

    Parameters
    ----------
    mode : {"auto", "light", "dark"}
        For light or dark pages; "auto" is legible on both, if less crisp.

    Returns
    -------
    dict

    Examples
    --------
    >>> from fairperm import plots
    >>> chart = plots.power_curve([100, 200, 400], [0.3, 0.6, 0.9])
    >>> specification = chart.to_dict() | {"config": plots.theme("dark")}
    """
    colour = _COLOURS[choice("mode", mode, MODES)]
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
        name, own = style_of(verdict), colour[verdict]
        styles[f"{name}-mark"] = {"color": own, "strokeWidth": 1.6}
        styles[f"{name}-line"] = {"color": own, "strokeWidth": 1.8}
        styles[f"{name}-word"] = {**text, "color": own, "fontWeight": 600}
    return styles


def style_of(verdict: str) -> str:
    """Return how a verdict's styles begin."""
    return f"fp-{verdict.replace(' ', '-')}"


def table(rows: Iterable[Mapping[str, Any]]) -> alt.InlineData:
    """Return rows as a chart's data, whatever their number; what is not finite is left open."""
    return alt.InlineData(values=[{key: plain(one) for key, one in row.items()} for row in rows])


def plain(value: Any) -> Any:
    """Return a value as JSON has it; None for numbers that are missing or infinite."""
    if isinstance(value, (bool, str, type(None))):
        return value
    number = finite(value)
    return int(number) if number is not None and isinstance(value, (int, np.integer)) else number


def finite(value: Any) -> float | None:
    """Return a finite number, or None."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def tidy(name: object, longest: int = LONGEST_TOLD) -> str:
    """Return a name from data on one line of readable length, without marks that reorder text."""
    text = str(name)[: 4 * longest + 4]
    kept = (_shown(one) for one in text)
    text = " ".join("".join(kept).split()) or "(blank)"
    room, length = longest, 0
    for one in text:
        room -= 2 if unicodedata.east_asian_width(one) in "WF" else 1
        if room < 0:
            break
        length += 1
    return text if length == len(text) else f"{text[: max(length - 1, 1)].rstrip()}…"


def _shown(one: str) -> str:
    """Return a character, a space for one that breaks lines, or nothing for an invisible one."""
    kind = unicodedata.category(one)
    if kind in {"Cc", "Zl", "Zp"}:
        return " "
    if kind == "Cs":  # half a pair, which no file can hold
        return "\ufffd"
    return "" if kind == "Cf" and one != "\u200d" else one


def isolated(text: str) -> str:
    """Return text that keeps its own direction of writing to itself."""
    return f"\u2068{text}\u2069" if any(map(_is_rightward, text)) else text


def _is_rightward(one: str) -> bool:
    return unicodedata.bidirectional(one) in {"R", "AL", "AN"}


def less(groups: tuple[object, object], longest: int = 24) -> str:
    """Return the two groups of a difference, in words."""
    first, second = (isolated(tidy(group, longest)) for group in groups)
    return f"{first} less {second}"


def words(name: object) -> str:
    """Return a metric's name as words if it is made of nothing else."""
    text = str(name)
    is_plain = text.isascii() and text.replace("_", "").isalnum()
    return text.replace("_", " ").strip() or "(blank)" if is_plain else text


def told(value: Any, sign: str = "", small: int = 3) -> str:
    """Return a number as text; a dash if there is none."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return "–"
    if math.isnan(number):
        return "–"
    if math.isinf(number):
        return "−∞" if number < 0 else "∞"
    size = abs(number)
    is_plain = size == 0 or 1e-3 <= size < 1e4
    text = f"{number:{sign}z.3f}" if is_plain else f"{number:{sign}.{small}g}"
    return text.replace("-", "−")


def told_p(value: Any) -> str:
    """Return a p-value as text."""
    number = finite(value)
    if number is None:
        return "–"
    return "< 0.0001" if number < 1e-4 else f"{number:.4f}"


def room_of(width: int) -> int:
    """Return the pixels that are left to a plot beside its axis."""
    return max(width - _AXIS, _LEAST_ROOM)


def ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Return round numbers from low to high."""
    rough = (high - low) / most
    unit = 10.0 ** math.floor(math.log10(rough))
    step = next(unit * one for one in (1, 2, 5, 10) if unit * one >= rough * (1 - 1e-9))
    places = range(math.ceil(low / step), math.floor(high / step) + 1)
    return [float(f"{one * step:.12g}") for one in places]


def packed(parts: Iterable[str], letters: int) -> list[str]:
    """Return parts in lines of this many letters; one that is longer has a line of its own."""
    lines: list[str] = []
    for part in parts:
        if lines and len(lines[-1]) + 1 + len(part) <= letters:
            lines[-1] += f" {part}"
        else:
            lines.append(part)
    return lines


def layered(layers: Iterable[alt.Chart], **properties: Any) -> alt.LayerChart:
    """Return charts of one plot on top of each other."""
    return cast("alt.LayerChart", alt.layer(*layers, **properties))


def sentence(title: str, *more: str) -> alt.TitleParams:
    """Return a title, with lines below it."""
    return alt.TitleParams(text=title, subtitle=[line for line in more if line])


def spoken(title: alt.TitleParams) -> str:
    """Return what a screen reader says of a chart: its title and the lines below."""
    first, more = title["text"], title["subtitle"]
    return ". ".join(line.rstrip(".") for line in [first, *more])


def headed(title: alt.TitleParams, mode: str) -> dict[str, Any]:
    """Return what a whole chart has: its title, also for screen readers, and its colours."""
    return {"title": title, "description": spoken(title), "config": theme(mode)}
