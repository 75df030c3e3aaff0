"""Parts of every chart: its data, its title, the room for its plot and the numbers of its axes.

Names from data are data values only: no field, expression or scale is ever made of one.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, cast

import altair as alt
import numpy as np

from fairperm.plots.style import theme

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    Numbers = Sequence[float] | NDArray[Any]

PER_LETTER = 6.2  # pixels, in the mean of a wide font
GAP_LABEL = "datum.value == 0 ? '0' : format(datum.value, '+.6~g')"  # a Vega expression
_AXIS, _LEAST_ROOM = 62, 160  # pixels left of a plot, and the least width of a plot


def embed_rows(rows: Iterable[Mapping[str, Any]]) -> alt.InlineData:
    """Return rows as the data of a chart, however many; numbers that are not finite are null."""
    return alt.InlineData(values=[{key: _to_json(one) for key, one in row.items()} for row in rows])


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
    return max(width - _AXIS, _LEAST_ROOM)


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


def stack_layers(layers: Iterable[alt.Chart], **properties: Any) -> alt.LayerChart:
    """Return charts of one plot on top of each other."""
    return cast("alt.LayerChart", alt.layer(*layers, **properties))


def head_chart(mode: str, title: str, *lines: str) -> dict[str, Any]:
    """Return a chart's title with lines below it, the same for screen readers, and its theme."""
    subtitle = [line for line in lines if line]
    return {
        "title": alt.TitleParams(text=title, subtitle=subtitle),
        "description": ". ".join(line.rstrip(".") for line in [title, *subtitle]),
        "config": theme(mode),
    }
