"""The forest plot: a line for each comparison, with its gap, interval and verdict."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import altair as alt

from fairperm.plots.style import FINDINGS, SHAPES, style_of
from fairperm.plots.text import (
    GAP_LABEL,
    LONGEST_TOLD,
    PER_LETTER,
    finite,
    headed,
    isolated,
    layered,
    sentence,
    table,
    ticks,
    tidy,
    told,
    told_p,
    words,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    Row = Mapping[str, Any]
    Item = dict[str, Any]
    from collections.abc import Mapping


_STEP, _DENSE_STEP, _SECOND_LINE, _MANY = 22, 18, 13, 40
_NARROW, _SPACE = 120, 14  # the least room for names, and that between plot and columns
_LEAST_PLOT, _LEAST_SHARE = 96, 0.28  # in pixels, and of the whole width
_ONE_LINE = 0.36  # of the width for two names on one line
_COLUMNS = {"gap_short": 48, "adjusted_told": 72, "verdict": 98}
_HEADS = {"gap_short": "gap", "adjusted_told": "adjusted p", "verdict": "verdict"}
_ROOM_FOR = {"gap_short": 440, "adjusted_told": 560, "verdict": 0}  # width of the whole chart
_REACH = 5.5  # of a hollow mark, in pixels
_UNIT, _ROOM_FOR_UNIT = " (0.1 is 10 percentage points)", 360
_PER_NARROW_LETTER = 5.2  # pixels, in a narrow font: the browser cuts what is too long for it
_PER_TICK, _PER_DIGIT = 32, 6.6  # pixels that a number on the axis takes at the least
_BESIDE_ZERO = 24  # pixels from a number to the zero, which is narrow
_ROUND = (1, 1.5, 2, 2.5, 3, 4, 5, 6, 8)


def forest(
    rows: Sequence[Row],
    *,
    confidence_level: float | None = None,
    title: str | None = None,
    width: int = 700,
    mode: str = "auto",
) -> alt.VConcatChart:
    """Draw every gap with its interval and verdict, a line for each comparison.

    Parameters
    ----------
    rows : sequence of mapping
        Comparisons with the columns of :meth:`fairperm.Audit.to_frame`. All are drawn: those
        without a gap say so.
    confidence_level : float, optional
        Of the intervals, to be named in the title.
    title : str, optional
        Instead of the usual one.
    width : int
        Of the whole chart, in pixels.
    mode : {"auto", "light", "dark"}
        The page's colours; see :func:`theme`.

    Returns
    -------
    altair.VConcatChart
        Rates share an axis; every other metric has one of its own. Intervals that go beyond it
        end in an arrow. Margins are shaded.

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
    most = max(_NARROW, int(free - max(_LEAST_SHARE * width, _LEAST_PLOT)))
    left = min(max(_wanted(rows, width), _NARROW), most)
    room = max(free - left, _LEAST_PLOT)
    layout = _Layout(left, room, columns, _STEP if len(rows) <= _MANY else _DENSE_STEP)
    panels = list(_panels(rows, layout))
    has_margin = any(finite(row.get("margin")) is not None for row in rows)
    named = f"{100 * confidence_level:.4g} % intervals" if confidence_level else "intervals"
    heading = sentence(
        title or ("Gaps between groups, with " + named if rows else "No comparisons to show"),
        _counts(rows),
        "Shaded: gaps within the margin, too small to matter in practice." if has_margin else "",
    )
    charts = [panel.chart(is_first=i == 0) for i, panel in enumerate(panels)]
    return alt.vconcat(*charts, **headed(heading, mode), spacing=22)


def _wanted(rows: Sequence[Row], width: int) -> int:
    """Return the room that the names want: of both on a line if they are short, else of each."""
    names = [names_of(row) for row in rows]
    of_both = max((len(f"{first} less {second}") for first, second in names), default=0)
    of_each = max((len(f"less {name}") for pair in names for name in pair), default=0)
    pixels = [int(letters * PER_LETTER + 14) for letters in (of_both, of_each)]
    return pixels[0] if pixels[0] <= _ONE_LINE * width else pixels[1]


def _counts(rows: Sequence[Row]) -> str:
    found = {verdict: sum(row["verdict"] == verdict for row in rows) for verdict in SHAPES}
    verdicts = ", ".join(f"{n} {name}" for name, n in found.items() if n)
    n = "1 comparison" if len(rows) == 1 else f"{len(rows):,} comparisons"
    return f"{n}: {verdicts}" if verdicts else ""


@dataclass(frozen=True)
class _Layout:
    """How much room names and plot have in width, and a line in height."""

    left: int
    width: int
    columns: Mapping[str, int]
    step: int

    @property
    def right(self) -> int:
        """Return where the last column ends, in pixels from the plot's left."""
        return self.width + _SPACE + sum(self.columns.values())

    @property
    def letters(self) -> int:
        """Return how many letters of the two names surely fit into a line."""
        return int((self.left - 6) / PER_LETTER) - len("less ")

    @property
    def most_letters(self) -> int:
        """Return how many letters fit into a line at best."""
        return int((self.left - 6) / _PER_NARROW_LETTER)


def _panels(rows: Sequence[Row], layout: _Layout) -> Iterator[_Panel]:
    """Yield the comparisons that share an axis: all rates, and each other metric."""
    with_value = [row for row in rows if finite(row["difference"]) is not None]
    others = {row["metric"] for row in with_value if row.get("first_denominator") is None}
    by_axis: dict[tuple[Any] | None, list[Row]] = {}
    for row in rows:
        key = (row["metric"],) if row["metric"] in others else None
        by_axis.setdefault(key, []).append(row)
    for key, some in (by_axis or {None: []}).items():
        yield _Panel(some, layout, is_rate=key is None)


@dataclass(frozen=True)
class _Panel:
    """Comparisons on one axis."""

    rows: Sequence[Row]
    layout: _Layout
    is_rate: bool

    def chart(self, *, is_first: bool) -> alt.LayerChart:
        """Return the panel's layers, from the ground up."""
        heads, lines, labels, margins, zeros = self._placed()
        height = max((one["bottom"] for one in lines), default=self.layout.step)
        is_long = len(lines) > _MANY
        low, high = self._domain()
        left, width = self.layout.left, self.layout.width
        right = self.layout.right
        scale = alt.Scale(domain=[low, high], nice=False, zero=False)
        y = alt.Y("place:Q", scale=alt.Scale(domain=[height, 0], nice=False), axis=None)
        top, bottom = y.copy(), alt.Y2("bottom:Q")
        top.shorthand = "top:Q"

        def x(field: str, axis: alt.Axis | None = None) -> alt.X:
            return alt.X(f"{field}:Q", scale=scale, axis=axis)

        def write(
            rows: Sequence[Row],
            field: str,
            style: str,
            at: float,
            align: Any,
            limit: int = left - 6,
        ) -> alt.Chart:
            data = alt.Chart(_only(rows, "place", field))
            mark: alt.Chart = data.mark_text(style=style, align=align, limit=limit)
            return mark.encode(x=alt.value(at), y=y, text=f"{field}:N")

        zero = alt.Chart(table(zeros))
        marks = _spaced(low, high, width) if lines else []
        repeated = [{"at": one, "told": _tick(one)} for one in marks if is_long]
        layers = [
            alt.Chart(table(margins))
            .mark_rect(style="fp-margin")
            .encode(x=x("from"), x2="to:Q", y=top, y2=bottom),
            zero.mark_rule(style="fp-zero").encode(
                x=x("at", self._axis(marks) if lines else None), y=top, y2=bottom
            ),
            alt.Chart(table(repeated))
            .mark_text(style="fp-note")
            .encode(x=x("at"), y=alt.value(-9), text="told:N"),
            alt.Chart(_only(heads, "top"))
            .mark_rule(style="fp-ruler")
            .encode(x=alt.value(-left), x2=alt.value(right), y=top),
            write(heads, "label", "fp-head", -left, "left", right + left),
            write(labels, "label", "fp-text", -left, "left"),
        ]
        for verdict in SHAPES:
            layers += self._marks([one for one in lines if one["style"] == verdict], verdict, x, y)
        layers += self._columns(lines, write, has_heads=is_first and bool(lines))
        # over everything: what the pointer finds on the whole line
        told_of = [alt.Tooltip(f"{field}:N", title=name) for field, name in TOLD.items()]
        layers.append(
            alt.Chart(_only(lines, "top", "bottom", *TOLD))
            .mark_rect(opacity=0)
            .encode(x=alt.value(-left), x2=alt.value(right), y=top, y2=bottom, tooltip=told_of)
        )
        own = alt.Resolve(axis=alt.AxisResolveMap(x="independent"))
        return layered(layers, width=width, height=height, resolve=own)

    def _marks(self, lines: Sequence[Row], verdict: str, x: Any, y: alt.Y) -> list[alt.Chart]:
        """Return the intervals, marks and arrows of a verdict, and what stands for them."""
        name = style_of(verdict)
        reach = _REACH * (self._domain()[1] - self._domain()[0]) / self.layout.width
        is_filled = verdict in FINDINGS
        segments, arrows = [], []
        for one in lines:
            if one["gap"] is None:
                continue
            inner = [one["gap"] - reach, one["gap"] + reach]
            ends = [(one["from"], inner[0]), (inner[1], one["to"])]
            if is_filled or not one["is_inside"]:
                ends = [(one["from"], one["to"])]
            segments += [{**one, "from": a, "to": b} for a, b in ends if a < b]
            arrows += [{**one, "at": one[end]} for end in one["open"]]
        left = [one for one in arrows if one["at"] == one["from"]]
        right = [one for one in arrows if one["at"] == one["to"]]
        inside = [one for one in lines if one["is_inside"]]
        without = [{**one, "at": 0.0, "none": "no value"} for one in lines if one["gap"] is None]
        shape, size = SHAPES[verdict], 46 if verdict == "too small" else 70
        return [
            alt.Chart(_only(segments, "place", "from", "to"))
            .mark_rule(style=f"{name}-line")
            .encode(x=x("from"), x2="to:Q", y=y),
            *(
                alt.Chart(_only(some, "place", "at"))
                .mark_point(style=f"{name}-mark", shape=pointing, size=34, filled=True)
                .encode(x=x("at"), y=y)
                for some, pointing in ((left, "triangle-left"), (right, "triangle-right"))
            ),
            alt.Chart(_only(inside, "place", "gap"))
            .mark_point(style=f"{name}-mark", shape=shape, size=size, filled=is_filled, opacity=1)
            .encode(x=x("gap"), y=y),
            alt.Chart(_only(without, "place", "at", "none"))
            .mark_text(style="fp-note", fontStyle="italic", align="left", dx=8)
            .encode(x=x("at"), y=y, text="none:N"),
        ]

    def _columns(
        self, lines: Sequence[Row], write: Callable[..., alt.Chart], *, has_heads: bool
    ) -> Iterator[alt.Chart]:
        """Yield the columns on the right of the plot."""
        edge = self.layout.width + _SPACE
        for field, room in self.layout.columns.items():
            edge += room
            is_word = field == "verdict"
            at = edge - room + _SPACE if is_word else edge
            align: Any = "left" if is_word else "right"
            if has_heads:
                head = alt.Chart(table([{"label": _HEADS[field]}]))
                mark = head.mark_text(style="fp-note", align=align)
                above = alt.value(-24 if len(lines) > _MANY else -9)
                yield mark.encode(x=alt.value(at), y=above, text="label:N")
            if not is_word:
                yield write(lines, field, "fp-text", at, align)
                continue
            for verdict in SHAPES:
                some = [one for one in lines if one["style"] == verdict]
                yield write(some, field, f"{style_of(verdict)}-word", at, align)

    def _placed(self) -> tuple[list[Item], list[Item], list[Item], list[Item], list[Item]]:
        """Return headings, lines, their labels, margins and zeros, in pixels from the top."""
        blocks: dict[tuple[Any, Any], list[Row]] = {}
        for row in self.rows:
            blocks.setdefault((row["attribute"], row["metric"]), []).append(row)
        low, high = self._domain()
        heads: list[Item] = []
        lines: list[Item] = []
        labels: list[Item] = []
        margins: list[Item] = []
        zeros: list[Item] = []
        at = 0.0
        for (attribute, metric), rows in blocks.items():
            label = f"{isolated(tidy(attribute, 30))} · {isolated(tidy(words(metric), 50))}"
            heads.append({"place": at + _STEP / 2, "top": at, "label": label})
            at += _STEP
            begin, most = at, self.layout.most_letters
            is_double = any(sum(map(len, names_of(row))) > self.layout.letters for row in rows)
            step = self.layout.step + is_double * _SECOND_LINE
            for row in rows:
                span = {"place": at + step / 2, "top": at, "bottom": at + step}
                lines.append(span | line_of(row, low, high))
                rooms = (most, most - len("less "))
                first, second = (
                    isolated(tidy(name, n)) for name, n in zip(names_of(row), rooms, strict=True)
                )
                texts = [first, f"less {second}"] if is_double else [f"{first} less {second}"]
                shifts = [-_SECOND_LINE / 2, _SECOND_LINE / 2] if is_double else [0]
                labels += [
                    {"place": at + step / 2 + shift, "label": text}
                    for text, shift in zip(texts, shifts, strict=True)
                ]
                at += step
            zeros.append({"at": 0.0, "top": begin, "bottom": at})
            margin = finite(rows[0].get("margin"))
            if margin is not None:
                reach = {"from": max(-margin, low), "to": min(margin, high)}
                margins.append({"top": begin, "bottom": at, **reach})
        return heads, lines, labels, margins, zeros

    def _domain(self) -> tuple[float, float]:
        """Return the axis: where the judged gaps are, with some room for those that are not."""
        judged = [row for row in self.rows if row["verdict"] != "too small"]
        every = [one for row in self.rows for one in reach_of(row)]
        main = [one for row in judged for one in reach_of(row)] or every
        low, high = min([0.0, *main]), max([0.0, *main])
        room = 0.5 * (high - low)
        low, high = max(min([low, *every]), low - room), min(max([high, *every]), high + room)
        edge = 0.05 * (high - low) or 1.0
        return low - edge, high + edge

    def _axis(self, values: Sequence[float]) -> alt.Axis:
        """Return the axis with these numbers; what they mean is told where there is room."""
        is_told = self.is_rate and self.layout.left + self.layout.width >= _ROOM_FOR_UNIT
        return alt.Axis(
            title=f"Gap: first group less second{_UNIT if is_told else ''}",
            values=list(values),
            labelExpr=GAP_LABEL,
            labelOverlap=False,  # they have room, and without its ends an axis says nothing
            labelFlush=False,
            grid=True,
        )


def _only(rows: Sequence[Row], *keys: str) -> alt.InlineData:
    """Return as data what one layer needs, and no more."""
    return table({key: row[key] for key in keys} for row in rows)


def _spaced(low: float, high: float, width: int) -> list[float]:
    """Return round numbers for the axis: six or so, fewer where they would touch."""
    per_pixel = (high - low) / width
    for most in (6, 5, 4, 3):
        found = ticks(low, high, most)
        longest = max(len(_tick(one)) for one in found)
        room = max(_PER_TICK, _PER_DIGIT * longest + 4) * per_pixel
        if len(found) > 2 and found[1] - found[0] >= room:
            return found
    ends = -_rounded(-low), _rounded(high)
    return sorted([0.0, *(one for one in ends if abs(one) >= _BESIDE_ZERO * per_pixel)])


def _rounded(end: float) -> float:
    """Return the largest round number up to the end of an axis; 0 if it has no such side."""
    if end <= 0:
        return 0.0
    unit = 10.0 ** math.floor(math.log10(end))
    return float(f"{max(unit * one for one in _ROUND if unit * one <= end * (1 + 1e-9)):.12g}")


def _tick(value: float) -> str:
    return f"{value:+.6g}".replace("-", "−") if value else "0"


TOLD = {
    "attribute": "attribute",
    "metric": "metric",
    "first": "first group",
    "second": "second group",
    "first_told": "first group's value",
    "second_told": "second group's value",
    "gap_told": "gap [interval]",
    "p_told": "p",
    "adjusted_told": "adjusted p",
    "margin_told": "margin",
    "detectable_told": "detectable gap (80 % power)",
    "verdict": "verdict",
    "reason": "reason",
}


def reach_of(row: Row) -> Iterator[float]:
    """Yield how far a gap reaches; not the side on which an interval is open, or all but open."""
    gap = finite(row["difference"])
    margin = finite(row.get("margin")) or 0.0
    yield from (-margin, margin)
    if gap is None:
        return
    ends = finite(row["difference_low"]), finite(row["difference_high"])
    reaches = [abs(gap - one) for one in ends if one is not None]
    yield gap
    for end in ends:
        if end is not None and abs(end - gap) <= 8 * min(reaches) + abs(gap):
            yield end


def line_of(row: Row, low: float, high: float) -> dict[str, Any]:
    """Return what is drawn and told of a comparison."""
    first, second = names_of(row)
    gap, verdict = finite(row["difference"]), str(row["verdict"])
    limits = row["difference_low"], row["difference_high"]
    ends = [
        far if finite(end) is None else min(max(float(end), low), high)
        for end, far in zip(limits, (low, high), strict=True)
    ]
    interval = f" [{told(limits[0], '+')}, {told(limits[1], '+')}]"
    is_inside = gap is not None and low <= gap <= high
    beyond = [
        name
        for name, end, drawn in zip(("from", "to"), limits, ends, strict=True)
        if gap is not None and finite(end) != drawn
    ]
    return {
        "attribute": tidy(row["attribute"]),
        "metric": tidy(row["metric"]),
        "first": first,
        "second": second,
        "gap": gap,
        "from": ends[0],
        "to": ends[1],
        "is_inside": is_inside,
        "open": beyond,
        "verdict": tidy(verdict, 40),
        "style": verdict if verdict in SHAPES else "too small",
        "reason": tidy(row["reason"], 2 * LONGEST_TOLD) if row["reason"] else "",
        "gap_short": told(gap, "+", small=2),
        "gap_told": "no value" if gap is None else told(gap, "+") + interval,
        "p_told": told_p(row["pvalue"]),
        "adjusted_told": told_p(row["adjusted_pvalue"]),
        "margin_told": told(row.get("margin")),
        "detectable_told": told(row.get("detectable_gap")),
        **{f"{place}_told": _value(row, place) for place in ("first", "second")},
    }


def _value(row: Row, place: str) -> str:
    """Return a group's value with what it was counted among."""
    value = told(row[f"{place}_value"])
    top, among = finite(row.get(f"{place}_numerator")), finite(row.get(f"{place}_denominator"))
    rows = finite(row.get(f"{place}_rows"))
    if top is not None and among is not None:
        value += f" = {top:,.6g} of {among:,.6g}"
    return value if rows is None else f"{value} ({rows:,.0f} rows)"


def _name(group: object) -> str:
    return ", ".join(map(str, group)) if isinstance(group, tuple) else str(group)


def names_of(row: Row) -> tuple[str, str]:
    """Return what the two groups are called."""
    return tidy(_name(row["first_group"])), tidy(_name(row["second_group"]))
