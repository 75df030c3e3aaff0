"""What all charts share: colours for light and dark pages, names from data, finite numbers.

Names are data values only: no field, expression or scale is ever made of one.
"""

from __future__ import annotations

import math
import unicodedata
from typing import TYPE_CHECKING, Any, cast

import altair as alt
import numpy as np

from fairperm.plots.style import theme

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    Numbers = Sequence[float] | NDArray[Any]

LONGEST_TOLD = 200
PER_LETTER = 6.2  # pixels, in the mean of a wide font
GAP_LABEL = "datum.value == 0 ? '0' : format(datum.value, '+.6~g')"  # of an axis, in Vega's words
_AXIS, _LEAST_ROOM = 62, 160  # pixels left of a plot, and those that it has at the least


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
