"""The forest plot: a line for each comparison, with its gap, interval and verdict."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fairperm._utils.formatting import (
    MINUS,
    NONE,
    Unit,
    abbreviate_metric,
    count_units,
    format_count,
    format_level,
    format_metric,
    format_name,
    format_pvalue,
    isolate_direction,
    name_group,
    shorten,
)
from fairperm.plots.parts import (
    FINDINGS,
    GAP_LABEL,
    PER_LETTER,
    POINTS_LABEL,
    SHAPES,
    as_finite,
    as_panels,
    charted,
    draw_rows,
    head_chart,
    name_style,
    number,
    pixels,
    round_ticks,
    text,
    tooltip,
)

if TYPE_CHECKING:
    from fairperm.plots.parts import Spec

    Row = Mapping[str, Any]
    Item = dict[str, Any]

_STEP, _DENSE_STEP, _SECOND_LINE, _MANY = 22, 18, 13, 40
_NARROW, _SPACE = 120, 14  # the least room for names, and that between plot and columns
_MIN_PLOT, _MIN_SHARE = 96, 0.28  # in pixels, and of the whole width
_ONE_LINE = 0.36  # of the width for two names on one line
_COLUMNS = {"gap_label": 48, "adjusted_p": 72, "verdict": 98}
_HEADS = {"gap_label": "gap", "adjusted_p": "adjusted p", "verdict": "verdict"}
_ROOM_FOR = {"gap_label": 440, "adjusted_p": 560, "verdict": 0}  # width of the whole chart
_REACH = 5.5  # of a hollow mark, in pixels
_PER_NARROW_LETTER = 5.2  # pixels, in a narrow font: the browser cuts what is too long for it
_PER_TICK, _PER_DIGIT = 32, 6.6  # pixels that a number on the axis takes at the least
_BESIDE_ZERO = 24  # pixels from a number to the zero, which is narrow
_ROUND = (1, 1.5, 2, 2.5, 3, 4, 5, 6, 8)
_LONGEST_NAME, _LONGEST_REASON = 200, 400  # letters in a tooltip
_ADJUSTED = "Thick: interval of each gap alone. Thin: adjusted, as verdicts are."
_TOOLTIP = {
    "attribute": "attribute",
    "metric": "metric",
    "first": "first group",
    "second": "second group",
    "first_value": "first group's value",
    "second_value": "second group's value",
    "gap_interval": "gap (interval)",
    "p": "p",
    "adjusted_p": "adjusted p",
    "adjusted_interval": "adjusted interval",
    "margin": "margin",
    "detectable": "detectable gap (80 % power)",
    "verdict": "verdict",
    "reason": "reason",
}


@charted(as_panels)
def forest(
    rows: Sequence[Row],
    *,
    confidence_level: float | None = None,
    title: str | None = None,
    width: int = 700,
    mode: str = "auto",
) -> Spec:
    """Draw every gap with its interval and verdict, a line for each comparison.

    Parameters
    ----------
    rows : sequence of mapping
        Comparisons with the columns of :meth:`fairperm.Audit.to_frame`. A comparison without a
        gap has a line too, marked "no value".
    confidence_level : float, optional
        Confidence level of the intervals, for the title.
    title : str, optional
        Title in place of the default one.
    width : int
        Width of the whole chart, in pixels.
    mode : {"auto", "light", "dark"}
        Colours of the page; see :func:`theme`.

    Returns
    -------
    altair.VConcatChart
        Rates share an axis; every other metric has its own. Intervals that extend beyond the
        axis end in an arrow. Thin lines with end marks are the adjusted intervals, which show the
        verdicts. Margins are shaded.

    Examples
    --------
    >>> import fairperm
    >>> compas = fairperm.datasets.load_compas()
    >>> audit = fairperm.audit(
    ...     "two_year_recid", y_score="decile_score", threshold=5, data=compas,
    ...     sensitive_features="sex", metrics=["false_positive_rate", "recall"], rng=1,
    ... )
    >>> chart = fairperm.plots.forest([row.cells() for row in audit])
    """
    columns = {key: room for key, room in _COLUMNS.items() if width >= _ROOM_FOR[key]}
    free = width - sum(columns.values()) - _SPACE
    most = max(_NARROW, int(free - max(_MIN_SHARE * width, _MIN_PLOT)))
    left = min(max(_measure_names(rows, width), _NARROW), most)
    room = max(free - left, _MIN_PLOT)
    layout = _Layout(left, room, columns, _STEP if len(rows) <= _MANY else _DENSE_STEP)
    has_margin = any(as_finite(row.get("margin")) is not None for row in rows)
    level = f"{format_level(confidence_level)} " if confidence_level else ""
    head = head_chart(
        mode,
        title
        or (f"Gaps between groups, with {level}intervals" if rows else "No comparisons to show"),
        _count_verdicts(rows),
        _ADJUSTED if any(as_finite(row.get("adjusted_low")) is not None for row in rows) else "",
        "Shaded: gaps within the margin, too small to matter in practice." if has_margin else "",
    )
    panels = [panel.specify(is_first=i == 0) for i, panel in enumerate(_panels(rows, layout))]
    return {"vconcat": panels, **head, "spacing": 22}


def _measure_names(rows: Sequence[Row], width: int) -> int:
    """Return the pixels for names: both on one line if they are short, else one below the other."""
    names = [_name_groups(row) for row in rows]
    both = max((len(f"{first} {MINUS} {second}") for first, second in names), default=0)
    each = max((len(f"{MINUS} {name}") for pair in names for name in pair), default=0)
    pixels = [int(letters * PER_LETTER + 14) for letters in (both, each)]
    return pixels[0] if pixels[0] <= _ONE_LINE * width else pixels[1]


def _count_verdicts(rows: Sequence[Row]) -> str:
    counts = {verdict: sum(row["verdict"] == verdict for row in rows) for verdict in SHAPES}
    verdicts = ", ".join(f"{n} {name}" for name, n in counts.items() if n)
    return f"{format_count(len(rows), 'comparison')}: {verdicts}" if verdicts else ""


@dataclass(frozen=True)
class _Layout:
    """Pixels for names, plot, columns and the height of a line."""

    left: int
    width: int
    columns: Mapping[str, int]
    step: int

    @property
    def right(self) -> int:
        """Right end of the last column, in pixels from the plot's left."""
        return self.width + _SPACE + sum(self.columns.values())

    @property
    def letters(self) -> int:
        """Number of letters of two names that fit into a line in any font."""
        return int((self.left - 6) / PER_LETTER) - len(f" {MINUS} ")

    @property
    def most_letters(self) -> int:
        """Number of letters that fit into a line in a narrow font."""
        return int((self.left - 6) / _PER_NARROW_LETTER)


def _panels(rows: Sequence[Row], layout: _Layout) -> Iterator[_Panel]:
    """Yield the comparisons that share an axis: all rates, and each other metric."""
    with_gap = [row for row in rows if as_finite(row["difference"]) is not None]
    not_rates = {row["metric"] for row in with_gap if row.get("first_denominator") is None}
    by_axis: dict[tuple[Any] | None, list[Row]] = {}
    for row in rows:
        key = (row["metric"],) if row["metric"] in not_rates else None
        by_axis.setdefault(key, []).append(row)
    for key, panel_rows in (by_axis or {None: []}).items():
        yield _Panel(panel_rows, layout, is_rate=key is None)


@dataclass(frozen=True)
class _Panel:
    """The comparisons on one axis."""

    rows: Sequence[Row]
    layout: _Layout
    is_rate: bool

    def specify(self, *, is_first: bool) -> Spec:
        """Return the panel's layers, from the ground up."""
        heads, lines, labels, margins, zeros = self._place_rows()
        height = max((one["bottom"] for one in lines), default=self.layout.step)
        is_long = len(lines) > _MANY
        low, high = self._domain()
        left, width = self.layout.left, self.layout.width
        right = self.layout.right
        y_options = {"scale": {"domain": [height, 0], "nice": False}, "axis": None}
        y = number("place", **y_options)
        rows = {"y": number("top", **y_options), "y2": {"field": "bottom"}}
        across = {"x": pixels(-left), "x2": pixels(right)}

        def x(field: str, axis: Spec | None = None) -> Spec:
            scale = {"domain": [low, high], "nice": False, "zero": False}
            return number(field, scale=scale, axis=axis)

        def write(
            items: Sequence[Row],
            field: str,
            style: str,
            edge: float,
            align: str,
            limit: int = left - 6,
        ) -> Spec:
            encoding = {"x": pixels(edge), "y": y, "text": text(field)}
            some = _only(items, "place", field)
            return draw_rows(some, "text", encoding, style=style, align=align, limit=limit)

        ticks = _space_ticks(low, high, width) if lines else []
        repeated = [{"at": one, "label": _format_tick(one)} for one in ticks if is_long]
        layers = [
            draw_rows(
                margins,
                "rect",
                {"x": x("from"), "x2": {"field": "to"}, **rows},
                style="fp-margin",
            ),
            draw_rows(
                zeros,
                "rule",
                {"x": x("at", self._axis(ticks) if lines else None), **rows},
                style="fp-zero",
            ),
            draw_rows(
                repeated,
                "text",
                {"x": x("at"), "y": pixels(-9), "text": text("label")},
                style="fp-note",
            ),
            draw_rows(_only(heads, "top"), "rule", {**across, "y": rows["y"]}, style="fp-ruler"),
            write(heads, "label", "fp-head", -left, "left", right + left),
            write(labels, "label", "fp-text", -left, "left"),
        ]
        for verdict in SHAPES:
            layers += self._marks([one for one in lines if one["style"] == verdict], verdict, x, y)
        layers += self._columns(lines, write, has_heads=is_first and bool(lines))
        layers.append(  # on top: the whole line shows the tooltip
            draw_rows(
                _only(lines, "top", "bottom", *_TOOLTIP),
                "rect",
                {**across, **rows, "tooltip": tooltip(_TOOLTIP)},
                opacity=0,
            )
        )
        own = {"axis": {"x": "independent"}}
        drawn = [one for one in layers if one["data"]["values"]] or layers[:1]
        return {"layer": drawn, "width": width, "height": height, "resolve": own}

    def _marks(self, lines: Sequence[Row], verdict: str, x: Any, y: Spec) -> list[Spec]:
        """Return the intervals, marks and arrows of a verdict, and the words for missing gaps."""
        name, (low, high) = name_style(verdict), self._domain()
        reach = _REACH * (high - low) / self.layout.width
        is_filled = verdict in FINDINGS
        segments, arrows, thin, marks = [], [], [], []
        for one in lines:
            if one["gap"] is None:
                continue
            inner = [one["gap"] - reach, one["gap"] + reach]
            ends = [(one["from"], inner[0]), (inner[1], one["to"])]
            if is_filled or not one["is_inside"]:
                ends = [(one["from"], one["to"])]
            segments += [{**one, "from": a, "to": b} for a, b in ends if a < b]
            arrows += [{**one, "at": one[end]} for end in one["open"]]
            if one["adjusted"]:
                first, last = one["adjusted"]
                outside = [(first, min(one["from"], last)), (max(one["to"], first), last)]
                thin += [{**one, "from": a, "to": b} for a, b in outside if a < b]
                marks += [{**one, "at": end} for end in (first, last) if low < end < high]
        left = [one for one in arrows if one["at"] == one["from"]]
        right = [one for one in arrows if one["at"] == one["to"]]
        inside = [one for one in lines if one["is_inside"]]
        without = [{**one, "at": 0.0, "none": "no value"} for one in lines if one["gap"] is None]
        shape, size = SHAPES[verdict], 46 if verdict == "too small" else 70
        arrow: Spec = {"style": f"{name}-mark", "size": 34, "filled": True}
        point: Spec = {"style": f"{name}-mark", "shape": shape, "size": size, "filled": is_filled}
        word: Spec = {"style": "fp-note", "fontStyle": "italic", "align": "left", "dx": 8}
        here = {"x": x("at"), "y": y}
        span = {"x": x("from"), "x2": {"field": "to"}, "y": y}
        return [
            draw_rows(_only(thin, "place", "from", "to"), "rule", span, style=f"{name}-thin"),
            draw_rows(
                _only(marks, "place", "at"), "tick", here, style=f"{name}-end", orient="vertical"
            ),
            draw_rows(
                _only(segments, "place", "from", "to"),
                "rule",
                span,
                style=f"{name}-line",
            ),
            draw_rows(_only(left, "place", "at"), "point", here, shape="triangle-left", **arrow),
            draw_rows(_only(right, "place", "at"), "point", here, shape="triangle-right", **arrow),
            draw_rows(
                _only(inside, "place", "gap"), "point", {"x": x("gap"), "y": y}, **point, opacity=1
            ),
            draw_rows(
                _only(without, "place", "at", "none"),
                "text",
                {**here, "text": text("none")},
                **word,
            ),
        ]

    def _columns(
        self, lines: Sequence[Row], write: Callable[..., Spec], *, has_heads: bool
    ) -> Iterator[Spec]:
        """Yield the columns on the right of the plot."""
        edge = self.layout.width + _SPACE
        for field, room in self.layout.columns.items():
            edge += room
            is_word = field == "verdict"
            begin = edge - room + _SPACE if is_word else edge
            align = "left" if is_word else "right"
            if has_heads:
                above = pixels(-24 if len(lines) > _MANY else -9)
                encoding = {"x": pixels(begin), "y": above, "text": text("label")}
                head = [{"label": _HEADS[field]}]
                yield draw_rows(head, "text", encoding, style="fp-note", align=align)
            if not is_word:
                yield write(lines, field, "fp-text", begin, align)
                continue
            for verdict in SHAPES:
                some = [one for one in lines if one["style"] == verdict]
                yield write(some, field, f"{name_style(verdict)}-word", begin, align)

    def _place_rows(self) -> tuple[list[Item], list[Item], list[Item], list[Item], list[Item]]:
        """Return headings, lines, their labels, margins and zeros, in pixels from the top."""
        blocks: dict[tuple[Any, Any], list[Row]] = {}
        for row in self.rows:
            blocks.setdefault((row["attribute"], row["metric"]), []).append(row)
        low, high = self._domain()
        unit = Unit(is_share=self.is_rate)
        heads: list[Item] = []
        lines: list[Item] = []
        labels: list[Item] = []
        margins: list[Item] = []
        zeros: list[Item] = []
        at = 0.0
        for (attribute, metric), rows in blocks.items():
            names = format_name(attribute, 30), format_name(format_metric(metric), 50)
            label = " · ".join(map(isolate_direction, names))
            heads.append({"place": at + _STEP / 2, "top": at, "label": label})
            at += _STEP
            begin, most = at, self.layout.most_letters
            is_double = any(sum(map(len, _name_groups(row))) > self.layout.letters for row in rows)
            step = self.layout.step + is_double * _SECOND_LINE
            for row in rows:
                span = {"place": at + step / 2, "top": at, "bottom": at + step}
                lines.append(span | _describe_row(row, low, high, unit))
                sign = MINUS if row.get("part") is None else "and"
                first, second = (
                    isolate_direction(shorten(name, letters))
                    for name, letters in zip(
                        _name_groups(row), (most, most - len(f"{sign} ")), strict=True
                    )
                )
                texts = [first, f"{sign} {second}"]
                texts = texts if is_double else [" ".join(texts)]
                shifts = [-_SECOND_LINE / 2, _SECOND_LINE / 2] if is_double else [0]
                labels += [
                    {"place": at + step / 2 + shift, "label": text}
                    for text, shift in zip(texts, shifts, strict=True)
                ]
                at += step
            zeros.append({"at": 0.0, "top": begin, "bottom": at})
            margin = as_finite(rows[0].get("margin"))
            if margin is not None:
                reach = {"from": max(-margin, low), "to": min(margin, high)}
                margins.append({"top": begin, "bottom": at, **reach})
        return heads, lines, labels, margins, zeros

    def _domain(self) -> tuple[float, float]:
        """Return the ends of the axis: the judged gaps, with some room for the rest."""
        judged = [row for row in self.rows if row["verdict"] != "too small"]
        every = [one for row in self.rows for one in _extent(row)]
        main = [one for row in judged for one in _extent(row)] or every
        low, high = min([0.0, *main]), max([0.0, *main])
        room = 0.5 * (high - low)
        low, high = max(min([low, *every]), low - room), min(max([high, *every]), high + room)
        edge = 0.05 * (high - low) or 1.0
        return low - edge, high + edge

    def _axis(self, values: Sequence[float]) -> Spec:
        """Return the axis with these numbers, of rates in percentage points."""
        is_joint = any(row.get("part") is not None for row in self.rows)
        points = " in points" if self.is_rate else ""
        gap = (
            f"Largest absolute gap{points}"
            if is_joint
            else f"Gap{points}: first group minus second"
        )
        return {
            "title": gap,
            "values": list(values),
            "labelExpr": POINTS_LABEL if self.is_rate else GAP_LABEL,
            "labelOverlap": False,  # they have room, and the numbers at the ends are needed
            "labelFlush": False,
            "grid": True,
        }


def _only(rows: Sequence[Row], *keys: str) -> list[Item]:
    """Return these columns of the rows."""
    return [{key: row[key] for key in keys} for row in rows]


def _space_ticks(low: float, high: float, width: int) -> list[float]:
    """Return round numbers for the axis: six or so, fewer where they would touch."""
    per_pixel = (high - low) / width
    for most in (6, 5, 4, 3):
        ticks = round_ticks(low, high, most)
        longest = max(len(_format_tick(one)) for one in ticks)
        room = max(_PER_TICK, _PER_DIGIT * longest + 4) * per_pixel
        if len(ticks) > 2 and ticks[1] - ticks[0] >= room:
            return ticks
    ends = -_round_down(-low), _round_down(high)
    return sorted([0.0, *(one for one in ends if abs(one) >= _BESIDE_ZERO * per_pixel)])


def _round_down(end: float) -> float:
    """Return the largest round number up to the end of an axis; 0 if the end is not positive."""
    if end <= 0:
        return 0.0
    unit = 10.0 ** math.floor(math.log10(end))
    return float(f"{max(unit * one for one in _ROUND if unit * one <= end * (1 + 1e-9)):.12g}")


def _format_tick(value: float) -> str:
    return f"{value:+.6g}".replace("-", MINUS) if value else "0"


def _extent(row: Row) -> Iterator[float]:
    """Yield the ends of a gap's interval and margin, without limits that are (nearly) infinite."""
    gap = as_finite(row["difference"])
    margin = as_finite(row.get("margin")) or 0.0
    yield from (-margin, margin)
    if gap is None:
        return
    names = ("difference_low", "difference_high", "adjusted_low", "adjusted_high")
    ends = [as_finite(row.get(name)) for name in names]
    reaches = [abs(gap - one) for one in ends if one is not None]
    yield gap
    for end in ends:
        if end is not None and abs(end - gap) <= 8 * min(reaches) + abs(gap):
            yield end


def _describe_row(row: Row, low: float, high: float, unit: Unit) -> Item:
    """Return the marks and texts of a comparison, on an axis from low to high."""
    first, second = _name_groups(row)
    gap, verdict = as_finite(row["difference"]), str(row["verdict"])
    limits = row["difference_low"], row["difference_high"]
    ends = _clip(limits, low, high)
    beyond = [
        name
        for name, end, drawn in zip(("from", "to"), limits, ends, strict=True)
        if gap is not None and as_finite(end) != drawn
    ]
    adjusted = row.get("adjusted_low"), row.get("adjusted_high")
    part = row.get("part")
    gap_text = unit.signed if part is None else unit.size
    gap_label = NONE if gap is None else gap_text(gap).removesuffix(" points")
    if part is not None:
        gap_label += f" ({abbreviate_metric(part)})"
    interval = unit.interval(limits, signed=part is None)
    return {
        "attribute": format_name(row["attribute"], _LONGEST_NAME),
        "metric": format_name(row["metric"], _LONGEST_NAME),
        "first": first,
        "second": second,
        "gap": gap,
        "from": ends[0],
        "to": ends[1],
        "is_inside": gap is not None and low <= gap <= high,
        "open": beyond,
        "verdict": format_name(verdict, 40),
        "style": verdict if verdict in SHAPES else "too small",
        "reason": format_name(row["reason"], _LONGEST_REASON) if row["reason"] else "",
        "gap_label": gap_label,
        "gap_interval": "no value" if gap is None else f"{gap_label} ({interval})",
        "p": format_pvalue(row["pvalue"]),
        "adjusted_p": format_pvalue(row["adjusted_pvalue"]),
        "adjusted_interval": unit.interval(adjusted, signed=part is None),
        "adjusted": [] if adjusted[0] is None else _clip(adjusted, low, high),
        "margin": unit.size(row.get("margin")),
        "detectable": unit.size(row.get("detectable_gap")),
        "first_value": _describe_value(row, "first", unit),
        "second_value": _describe_value(row, "second", unit),
    }


def _clip(limits: Sequence[Any], low: float, high: float) -> list[float]:
    """Return the ends of an interval on an axis from low to high."""
    return [
        far if as_finite(end) is None else min(max(float(end), low), high)
        for end, far in zip(limits, (low, high), strict=True)
    ]


def _describe_value(row: Row, place: str, unit: Unit) -> str:
    """Return a group's value with its numerator, denominator and number of rows or other units."""
    text = unit.value(row[f"{place}_value"])
    numerator, denominator, rows = (
        as_finite(row.get(f"{place}_{name}")) for name in ("numerator", "denominator", "rows")
    )
    if row.get(f"{place}_weight") is not None:
        text += " weighted"
    if numerator is not None and denominator is not None:
        text += f", {format_count(numerator)} of {format_count(denominator)}"
    return text if rows is None else f"{text} ({count_units(rows, row.get('units', 'rows'))})"


def _name_groups(row: Row) -> tuple[str, str]:
    groups = (row[f"{one}_group"] for one in ("first", "second"))
    first, second = (name_group(str(row["attribute"]), one, _LONGEST_NAME) for one in groups)
    return first, second
