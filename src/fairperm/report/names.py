"""Numbers and names as a reader wants them."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any

from fairperm.errors import listed, shown
from fairperm.metrics.registry import get_metric, metric_names

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fairperm.hypothesis_tests.results.audits import GroupSummary

NONE = "–"
MINUS = "−"
_LONGEST = 60  # characters of a name; the whole of a longer one is listed once
_LARGE, _SMALL = 1e4, 5e-4  # what three decimals cannot show
_SMALLEST_P = 1e-4
_REORDERING = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"


def number(value: Any, sign: str = "", beside: float = 0.0) -> str:
    """Return a number with three decimals, or as many as it needs; the parts of a joint metric.

    It needs no more than three where a large one stands `beside` it.
    """
    if value is None:
        return NONE
    if isinstance(value, Mapping):
        return ", ".join(f"{words(str(name))} {number(one, sign)}" for name, one in value.items())
    if math.isnan(value):
        return NONE
    if math.isinf(value):
        return "no limit"
    size = abs(value)
    form = ".3g" if size >= _LARGE or (size > 0 and max(size, beside) < _SMALL) else ".3f"
    return f"{value:{sign}z{form}}".replace("-", MINUS)  # zero has no minus


def interval(limits: tuple[float, float] | None, sign: str = "") -> str:
    """Return the limits of an interval, in words."""
    if limits is None:
        return NONE
    low, high = limits
    return f"{number(low, sign, abs(high))} to {number(high, sign, abs(low))}"


def count(value: float) -> str:
    """Return a count; weighted ones have decimals."""
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.1f}"


def percent(value: float) -> str:
    """Return a share as a percentage."""
    return f"{100 * value:z.1f}".replace("-", MINUS) + " %"


def pvalue(value: float | None) -> str:
    """Return a p-value, never as zero."""
    if value is None or math.isnan(value):
        return NONE
    return "< 0.0001" if value < _SMALLEST_P else f"{value:.4f}"


def p_is(told: str) -> str:
    """Return what stands after "p": "= 0.0123" or "< 0.0001"."""
    return told if told.startswith("<") else f"= {told}"


def plural(n: int, one: str) -> str:
    """Return "1 row" or "2 rows"."""
    return f"{n:,} {one if n == 1 else one + 's'}"


def joined(texts: Iterable[str]) -> str:
    """Return "a, b and c"."""
    *rest, last = list(texts) or [""]
    return f"{', '.join(rest)} and {last}" if rest else last


def words(metric: str) -> str:
    """Return a metric of the registry as words, and a user's own by its name."""
    return _ACRONYMS.get(metric, metric.replace("_", " ")) if metric in metric_names() else metric


_ACRONYMS = {"roc_auc": "ROC AUC", "f1_score": "F1 score", "r2_score": "R² score"}


def meaning(metric: str) -> str:
    """Return what a metric of the registry measures; "" for a user's own."""
    return str(get_metric(metric).meaning) if metric in metric_names() else ""


def needs_predictions(metric: str) -> bool:
    """Tell whether a metric of the registry is of what was predicted positive, or not."""
    one = get_metric(metric) if metric in metric_names() else None
    return one is not None and one.kind in {"binary", "labels"} and "y_pred" in one.columns


def visible(name: object) -> str:
    """Return a name as text, with what cannot be seen (control characters) made visible."""
    if isinstance(name, tuple):
        return " × ".join(visible(one) for one in name)
    text = "".join(chr(0x2400 + ord(one)) if ord(one) < 32 else one for one in str(name))
    if not text.strip():
        return shown(name)
    return "".join(f"\\u{ord(one):04x}" if _is_unseen(one) else one for one in text)


def _is_unseen(one: str) -> bool:
    """Tell whether a character is not seen and changes how others are: breaks or reorders them."""
    return unicodedata.category(one) in {"Cc", "Cs", "Zl", "Zp"} or one in _REORDERING


def shortened(text: str, longest: int = _LONGEST) -> str:
    """Return the beginning and the end of a long text."""
    tail = longest // 4
    return text if len(text) <= longest else f"{text[: longest - tail - 1]}…{text[-tail:]}"


def look_alikes(groups: Iterable[GroupSummary]) -> list[str]:
    """Return which groups of an attribute have names that differ in capitals and spaces only."""
    alike: dict[tuple[str, str], list[str]] = {}
    for one in groups:
        if isinstance(one.group, str):
            key = one.attribute, " ".join(one.group.casefold().split())
            alike.setdefault(key, []).append(one.group)
    return [
        f"Groups of {shown(attribute)} have names that differ only in capitals or spaces, and are "
        f"taken for different groups: {listed(same)}."
        for (attribute, _), same in alike.items()
        if len(same) > 1
    ]


class Names:
    """Short names of groups by which no two are confused."""

    def __init__(self, groups: Sequence[Hashable]) -> None:
        self._short: dict[tuple[type, Hashable], str] = {}
        taken: set[str] = set()
        for group in dict.fromkeys((type(one), one) for one in groups):
            text = unique = shortened(visible(group[1]))
            n = 2
            while unique in taken:
                unique, n = f"{text} ({n})", n + 1
            taken.add(unique)
            self._short[group] = unique

    def of(self, group: Hashable) -> str:
        """Return the short name of a group."""
        key = (type(group), group)
        return self._short[key] if key in self._short else shortened(visible(group))
