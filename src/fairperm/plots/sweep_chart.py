"""Gaps over thresholds, with the bands that chance alone stays in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import altair as alt
import numpy as np

from fairperm.plots.text import (
    GAP_LABEL,
    PER_LETTER,
    finite,
    headed,
    isolated,
    layered,
    less,
    packed,
    room_of,
    sentence,
    table,
    tidy,
    told,
    told_p,
    words,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    Item = dict[str, Any]


_MOST = 1000  # thresholds drawn
_FEW = 41  # thresholds up to which each has a dot
_PICKED = "fairperm_threshold"
_LINE = 15  # pixels from a line of text to the next
_TEXT_AT = 24  # in pixels, of a legend
_CROSS = "M-0.7,-0.7L0.7,0.7M0.7,-0.7L-0.7,0.7"


def threshold_sweep(
    columns: Mapping[str, Sequence[Any] | np.ndarray[Any, Any]],
    *,
    groups: tuple[object, object],
    alpha: float = 0.05,
    slider: bool = False,
    start: float | None = None,
    title: str | None = None,
    width: int = 700,
    height: int = 200,
    mode: str = "auto",
) -> alt.VConcatChart:
    """Draw the gap between two groups over thresholds, with its bands.

    Parameters
    ----------
    columns : mapping of str to sequence
        The columns of :meth:`fairperm.ThresholdSweepResult.to_frame`.
    groups : tuple
        The names of the two groups.
    alpha : float
        The level of the bands.
    slider : bool
        Whether to pick a threshold with a slider (on a page, not in print) and tell its numbers.
    start : float, optional
        The threshold picked at first; by default the middle one.
    title : str, optional
        Instead of the usual one.
    width, height : int
        Of the whole chart, and of the plot of each metric, in pixels.
    mode : {"auto", "light", "dark"}
        The page's colours; see :func:`theme`.

    Returns
    -------
    altair.VConcatChart
        A plot for each metric. Of more than 1,000 thresholds it shows some, equally spaced.

    Examples
    --------
    >>> import fairperm
    >>> compas = fairperm.datasets.load_compas()
    >>> result = fairperm.threshold_sweep(
    ...     "two_year_recid", "decile_score", sensitive_features="sex", thresholds="scores",
    ...     metric="true_positive_rate", data=compas, rng=1, n_resamples=999,
    ... )
    >>> chart = fairperm.plots.threshold_sweep(
    ...     {name: column.to_numpy() for name, column in result.to_frame("pandas").items()},
    ...     groups=result.groups, slider=True,
    ... )
    """
    metrics = list(dict.fromkeys(map(str, columns["metric"])))
    room = room_of(width)
    letters = int(room / PER_LETTER)
    names = [isolated(tidy(group, min(60, letters - len(" 0.000,")))) for group in groups]
    curves = [_Curve.of(columns, metric, names, alpha, letters) for metric in metrics]
    level = f"{100 * (1 - alpha):.4g} %"
    n = max((curve.n for curve in curves), default=0)
    is_thinned = any(curve.n > len(curve.items) for curve in curves)
    heading = sentence(
        title or "How the gap changes with the threshold",
        f"{less(groups, 40)}. Gaps within a band can be chance ({level} bands).",
        f"Some of {n:,} thresholds are drawn, equally spaced." if is_thinned else "",
    )
    picks = _slider(curves[0], start) if slider and curves else None
    items = [item for curve in curves for item in curve.items]
    charts = [_legend(items, room), *(curve.chart(room, height, picks) for curve in curves)]
    chart = alt.vconcat(*charts, **headed(heading, mode), spacing=16)
    if picks is not None:
        chart = chart.add_params(picks)
    return chart


def _slider(curve: _Curve, start: float | None) -> alt.Parameter:
    at = np.array([item["threshold"] for item in curve.items])
    steps = np.diff(at)
    is_even = len(at) > 2 and np.allclose(steps, steps[0], rtol=1e-6)
    step = float(f"{steps[0] if is_even else (at[-1] - at[0]) / 200 or 1.0:.6g}")
    first = float(at[len(at) // 2] if start is None else np.clip(start, at[0], at[-1]))
    bind = alt.binding_range(min=float(at[0]), max=float(at[-1]), step=step, name="Threshold ")
    return alt.param(name=_PICKED, value=first, bind=bind)


@dataclass(frozen=True)
class _Curve:
    """One metric: what is drawn and told at each threshold, and how many thresholds there are."""

    metric: str
    items: list[Item]
    n: int

    @classmethod
    def of(
        cls,
        columns: Mapping[str, Any],
        metric: str,
        names: Sequence[str],
        alpha: float,
        letters: int,
    ) -> _Curve:
        """Return the metric's rows of the columns."""
        rows = np.flatnonzero([str(one) == metric for one in columns["metric"]])
        rows = rows[np.argsort([float(columns["threshold"][i]) for i in rows], kind="stable")]
        n = len(rows)
        rows = rows[np.unique(np.linspace(0, n - 1, min(n, _MOST)).round().astype(int))]
        at = np.array([float(columns["threshold"][i]) for i in rows])
        middles = (at[1:] + at[:-1]) / 2
        begins = [float(at[0]) - 1.0, *middles.tolist()]
        ends = [*middles.tolist(), float(at[-1]) + 1.0]
        items = [
            {"from": a, "to": b}
            | line_at({key: columns[key][i] for key in columns}, names, alpha, letters)
            for i, a, b in zip(rows, begins, ends, strict=True)
        ]
        return cls(metric, items, n)

    def reach(self) -> float:
        """Return how far the axis goes: to all gaps, and to the bands but where they are widest."""
        sizes = {
            key: [abs(item[key]) for item in self.items if item[key] is not None]
            for key in ("gap", "narrow_high", "wide_high")
        }
        bands = [float(np.quantile(some, 0.75)) for some in sizes.values() if some]
        return 1.15 * max([*sizes["gap"], *bands, 0.0]) or 1.0

    def chart(self, width: int, height: int, picks: alt.Parameter | None) -> alt.LayerChart:
        """Return the metric's layers, from the ground up."""
        items, reach = self.items, self.reach()
        at = [item["threshold"] for item in items]
        edge = 0.02 * (at[-1] - at[0]) or 0.5
        low, high = at[0] - edge, at[-1] + edge
        x_axis = alt.Axis(title="Threshold", grid=False, format=".6~g", tickCount=8)
        x_scale = alt.Scale(domain=[low, high], nice=False, zero=False)
        y_scale = alt.Scale(domain=[-reach, reach], nice=False)
        y_axis = alt.Axis(title="Gap", tickCount=5, labelExpr=GAP_LABEL)

        def x(field: str) -> alt.X:
            return alt.X(f"{field}:Q", scale=x_scale, axis=x_axis)

        def y(field: str) -> alt.Y:
            return alt.Y(f"{field}:Q", scale=y_scale, axis=y_axis)

        def write(rows: list[Item], field: str, style: str, above: int) -> alt.Chart:
            mark: alt.Chart = alt.Chart(table(rows)).mark_text(
                style=style, align="left", limit=width, lineBreak="\n", lineHeight=_LINE
            )
            return mark.encode(x=alt.value(0), y=alt.value(-above), text=f"{field}:N")

        layers: list[alt.Chart] = [*self._bands(x, y)]
        zero = alt.Chart(table([{"at": 0.0}])).mark_rule(style="fp-zero")
        line = alt.Chart(table(_only(one, "gap", "run") for one in _runs(items, "gap"))).mark_line(
            style="fp-line", clip=True
        )
        layers += [
            zero.encode(y=y("at")),
            line.encode(x=x("threshold"), y=y("gap"), detail="run:N"),
        ]
        for kind in _kinds(items):
            has_gap = kind.name != "none"
            some = [_only(item, *["gap"] * has_gap) for item in items if item["kind"] == kind.name]
            where = y("gap") if has_gap else alt.value(height - 5)
            if kind.shape is None and len(items) > _FEW:
                continue
            layers.append(kind.mark(table(some)).encode(x=x("threshold"), y=where))
        head = [{"label": tidy(words(self.metric), 60)}]
        layers.append(write(head, "label", "fp-head", self._above()[0] if picks else 12))
        if picks is not None:
            layers += self._picked(picks, x, y, write)
        tips = [alt.Tooltip(f"{field}:N", title=name) for field, name in TOLD.items()]
        spans = (
            {**_only(item, *TOLD), "from": max(item["from"], low), "to": min(item["to"], high)}
            for item in items
        )
        over = alt.Chart(table(spans)).mark_rect(opacity=0)
        over = over.encode(
            x=x("from"), x2="to:Q", y=alt.value(0), y2=alt.value(height), tooltip=tips
        )
        return layered([*layers, over], width=width, height=height)

    def _bands(self, x: Callable[[str], alt.X], y: Callable[[str], alt.Y]) -> Iterator[alt.Chart]:
        """Yield the bands, with a bar where a threshold has no neighbours to make one with."""
        for name in ("wide", "narrow"):
            keys = (f"{name}_low", f"{name}_high")
            runs = _runs(self.items, *keys)
            data = alt.Chart(table(_only(one, *keys, "run") for one in runs))
            limits = {"x": x("threshold"), "y": y(keys[0]), "y2": f"{keys[1]}:Q"}
            yield data.mark_area(style=f"fp-{name}", clip=True).encode(**limits, detail="run:N")
            alone = alt.Chart(table(_only(one, *keys) for one in runs if one["is_alone"]))
            yield alone.mark_bar(style=f"fp-{name}", clip=True, width=5).encode(**limits)

    def _picked(
        self,
        picks: alt.Parameter,
        x: Callable[[str], alt.X],
        y: Callable[[str], alt.Y],
        write: Callable[[list[Item], str, str, int], alt.Chart],
    ) -> Iterator[alt.Chart]:
        """Yield what is shown of the threshold that the slider is at."""
        is_picked = f"datum.from <= {picks.name} && {picks.name} < datum.to"
        read_out = [_only(item, "from", "to", "at_lines", "verdict_lines") for item in self.items]
        at = alt.Chart(table(read_out)).transform_filter(is_picked)
        yield at.mark_rule(style="fp-target").encode(x=x("threshold"))
        with_gap = (
            _only(item, "from", "to", "gap") for item in self.items if item["gap"] is not None
        )
        dot = alt.Chart(table(with_gap)).transform_filter(is_picked)
        yield dot.mark_point(style="fp-point", filled=True, size=90, opacity=1).encode(
            x=x("threshold"), y=y("gap")
        )
        _, numbers, verdict = self._above()
        yield write(read_out, "at_lines", "fp-text", numbers).transform_filter(is_picked)
        yield write(read_out, "verdict_lines", "fp-note", verdict).transform_filter(is_picked)

    def _above(self) -> tuple[int, int, int]:
        """Return how far above the plot its name, numbers and verdict begin, in pixels."""
        of_numbers, of_verdict = (
            max(item[key].count("\n") for item in self.items)
            for key in ("at_lines", "verdict_lines")
        )
        verdict = 13 + _LINE * of_verdict
        numbers = verdict + 17 + _LINE * of_numbers
        return numbers + 20, numbers, verdict


def _only(item: Item, *keys: str) -> Item:
    """Return what one layer needs, and no more."""
    return {key: item[key] for key in ("threshold", *keys)}


def _runs(items: Sequence[Item], *keys: str) -> list[Item]:
    """Return the items with a value, numbered by unbroken runs of them."""
    has_value = [all(item[key] is not None for key in keys) for item in items]
    found, run = [], 0
    for i, item in enumerate(items):
        if not has_value[i]:
            run += 1
            continue
        is_alone = not any(has_value[max(i - 1, 0) : i] + has_value[i + 1 : i + 2])
        found.append({**item, "run": run, "is_alone": is_alone})
    return found


@dataclass(frozen=True)
class _Kind:
    """What marks a kind of threshold, and how the legend calls it."""

    name: str
    label: str
    style: str
    shape: str | None = None
    is_filled: bool = True

    def mark(self, data: alt.InlineData) -> alt.Chart:
        """Return the kind's marks."""
        shape = self.shape or "circle"
        size = {"diamond": 46, "circle": 40 if self.shape else 22}.get(shape, 36)
        chart: alt.Chart = alt.Chart(data).mark_point(
            style=self.style, shape=shape, filled=self.is_filled, size=size, opacity=1
        )
        return chart


_KINDS = (
    _Kind("inside", "gap within its bands", "fp-point"),
    _Kind("maybe", "gap beyond the band of its threshold only", "fp-outside", "circle", False),
    _Kind("outside", "gap beyond the band of all thresholds", "fp-outside", "diamond"),
    _Kind("none", "no test at this threshold", "fp-missing", _CROSS, False),
)


def _kinds(items: Sequence[Item]) -> list[_Kind]:
    there = {item["kind"] for item in items}
    return [kind for kind in _KINDS if kind.name in there]


def _legend(items: Sequence[Item], width: int) -> alt.LayerChart:
    """Return what the marks mean: in two columns, or in one where these have no room."""
    keys: list[tuple[str, _Kind | str]] = [
        ("gap", "fp-line"),
        ("band of one threshold, chosen beforehand", "fp-narrow"),
        ("band of all thresholds at once", "fp-wide"),
        *((kind.label, kind) for kind in _kinds(items) if kind.name != "inside"),
    ]
    column = _TEXT_AT + int(max(len(label) for label, _ in keys) * PER_LETTER) + 20
    n_columns = 2 if 2 * column <= width else 1
    letters = int((width - _TEXT_AT) / PER_LETTER)
    layers: list[alt.Chart] = []
    top = bottom = 0
    for i, (label, kind) in enumerate(keys):
        lines = packed(label.split(), letters)
        if i % n_columns == 0:
            top, bottom = bottom, bottom + 18 + _LINE * (len(lines) - 1)
        layers += _key("\n".join(lines), kind, i % n_columns * column, top + 8)
    return layered(layers, width=width, height=bottom)


def _key(label: str, kind: _Kind | str, left: int, at: int) -> Iterator[alt.Chart]:
    """Yield a line of the legend: the mark, and what it means."""
    data = table([{"label": label}])
    base = alt.Chart(data)
    x, y = alt.value(left + 8), alt.value(at)
    if isinstance(kind, _Kind):
        yield kind.mark(data).encode(x=x, y=y)
    elif kind == "fp-line":
        ends = {"x": alt.value(left), "x2": alt.value(left + 16)}
        yield base.mark_rule(style=kind).encode(**ends, y=y)
    else:
        for style in ("fp-wide", "fp-narrow") if kind == "fp-narrow" else ("fp-wide",):
            yield base.mark_square(style=style, size=190, opacity=1).encode(x=x, y=y)
    text = base.mark_text(style="fp-text", align="left", lineBreak="\n", lineHeight=_LINE)
    yield text.encode(x=alt.value(left + _TEXT_AT), y=y, text="label:N")


_NO_TEST = {
    "trivial": "Every row of both groups is predicted alike: there is nothing to test.",
    "undefined": "The metric has no value in one of the groups: there is no test.",
}
TOLD = {
    "threshold": "threshold",
    "metric": "metric",
    "first_told": "first group",
    "second_told": "second group",
    "gap_told": "gap",
    "narrow_told": "band of this threshold",
    "wide_told": "band of all thresholds",
    "p_told": "p",
    "adjusted_told": "p, adjusted for all thresholds",
    "verdict": "in words",
}


def line_at(
    row: Mapping[str, Any], names: Sequence[str], alpha: float, letters: int
) -> dict[str, Any]:
    """Return what is drawn and told at one threshold, in lines of so many letters."""
    gap, p, adjusted = (finite(row[key]) for key in ("difference", "pvalue", "adjusted_pvalue"))
    bands = {
        name: (finite(row[f"{column}_lower"]), finite(row[f"{column}_upper"]))
        for name, column in (("narrow", "pointwise"), ("wide", "simultaneous"))
    }
    narrow, wide = (_band(*limits) for limits in bands.values())
    kind = _kind(gap, p, adjusted, alpha)
    first, second = names
    values = told(row["value_first"]), told(row["value_second"])
    threshold = float(row["threshold"])
    verdict = _verdict(kind, str(row["status"]), narrow, wide, is_joint=adjusted is not None)
    numbers = [f"{first} {values[0]},", f"{second} {values[1]},", f"gap {told(gap, '+')}"]
    return {
        "threshold": threshold,
        "metric": tidy(row["metric"]),
        "kind": kind,
        "gap": gap,
        **{f"{name}_low": low for name, (low, _) in bands.items()},
        **{f"{name}_high": high for name, (_, high) in bands.items()},
        "first_told": f"{values[0]} ({first})",
        "second_told": f"{values[1]} ({second})",
        "gap_told": told(gap, "+"),
        "narrow_told": narrow,
        "wide_told": wide,
        "p_told": told_p(p),
        "adjusted_told": told_p(adjusted),
        "verdict": verdict,
        "at_lines": "\n".join(packed([f"At {threshold:.6g}:", *numbers], letters)),
        "verdict_lines": "\n".join(packed(verdict.split(), letters)),
    }


def _kind(gap: float | None, p: float | None, adjusted: float | None, alpha: float) -> str:
    """Return how far out the gap is: within its bands, beyond one of them or both; or no test."""
    if gap is None or p is None:
        return "none"
    if adjusted is not None and adjusted <= alpha:
        return "outside"
    return "maybe" if p <= alpha else "inside"


def _verdict(kind: str, status: str, narrow: str, wide: str, *, is_joint: bool) -> str:
    """Say so in words; a threshold that is not joint has no part in the band of all."""
    if kind == "none":
        return _NO_TEST.get(status, "There is no test at this threshold.")
    if kind == "outside":
        return f"Beyond what chance explains, even over all thresholds ({wide})."
    if kind == "maybe":
        if not is_joint:
            return f"Beyond chance ({narrow}) at this threshold; too sparse for the joint band."
        chosen = f"Beyond chance if this threshold was chosen beforehand ({narrow})"
        return f"{chosen}, not if it was searched for ({wide})."
    if not is_joint:
        return f"Chance alone can explain it ({narrow}); too sparse for the joint band."
    return f"Chance alone can explain it ({narrow} here, {wide} over all)."


def _band(low: float | None, high: float | None) -> str:
    if low is None or high is None:
        return "–"
    is_even = abs(low + high) <= 1e-9 * abs(high - low)
    return f"±{told(high)}" if is_even else f"{told(low, '+')} to {told(high, '+')}"
