"""Gaps over thresholds, with the bands within which chance alone explains them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fairperm._utils.formatting import (
    NONE,
    Unit,
    format_level,
    format_metric,
    format_name,
    format_pvalue,
    isolate_direction,
    name_of_gap,
)
from fairperm.plots.parts import (
    GAP_LABEL,
    PER_LETTER,
    POINTS_LABEL,
    as_finite,
    as_panels,
    charted,
    draw_rows,
    fit_plot,
    head_chart,
    number,
    pixels,
    text,
    tooltip,
    wrap_parts,
)

if TYPE_CHECKING:
    from fairperm.plots.parts import Spec

    Item = dict[str, Any]

_MAX_THRESHOLDS = 1000  # thresholds drawn
_FEW = 41  # thresholds up to which each has a dot
_PICKED = "fairperm_threshold"
_LINE = 15  # pixels from a line of text to the next
_TEXT_AT = 24  # in pixels, of a legend
_CROSS = "M-0.7,-0.7L0.7,0.7M0.7,-0.7L-0.7,0.7"
_NO_TEST = {
    "trivial": "All rows of both groups have the same prediction: there is nothing to test.",
    "undefined": "The metric is undefined in one of the groups: there is no test.",
}
_TOOLTIP = {
    "threshold": "threshold",
    "metric": "metric",
    "first_value": "first group",
    "second_value": "second group",
    "gap_label": "gap",
    "narrow_band": "band of this threshold",
    "wide_band": "band of all thresholds",
    "p": "p",
    "adjusted_p": "p, adjusted for all thresholds",
    "verdict": "in words",
}


@charted(as_panels)
def threshold_sweep(
    columns: Mapping[str, Sequence[Any] | np.ndarray[Any, Any]],
    *,
    groups: tuple[object, object],
    rates: Collection[str] = (),
    alpha: float = 0.05,
    slider: bool = False,
    start: float | None = None,
    title: str | None = None,
    width: int = 700,
    height: int = 200,
    mode: str = "auto",
) -> Spec:
    """Draw the gap between two groups over thresholds, with its bands.

    Parameters
    ----------
    columns : mapping of str to sequence
        The columns of :meth:`fairperm.ThresholdSweepResult.columns`.
    groups : tuple
        The names of the two groups.
    rates : collection of str
        The metrics that are rates: values are in percent, and gaps in percentage points.
    alpha : float
        The level of the bands.
    slider : bool
        Whether to add a slider (on a page, not in print) that picks a threshold and shows its
        numbers.
    start : float, optional
        The threshold picked at first; by default the middle one.
    title : str, optional
        Title in place of the default one.
    width, height : int
        Width of the whole chart and height of each metric's plot, in pixels.
    mode : {"auto", "light", "dark"}
        Colours of the page; see :func:`theme`.

    Returns
    -------
    altair.VConcatChart
        A plot for each metric. Of more than 1,000 thresholds, 1,000 are drawn, equally spaced.

    Examples
    --------
    >>> import fairperm
    >>> compas = fairperm.datasets.load_compas()
    >>> result = fairperm.threshold_sweep(
    ...     "two_year_recid", "decile_score", sensitive_features="sex", thresholds="scores",
    ...     metric="true_positive_rate", data=compas, rng=1, n_resamples=999,
    ... )
    >>> chart = fairperm.plots.threshold_sweep(
    ...     result.columns(), groups=result.groups, slider=True
    ... )
    """
    metrics = list(dict.fromkeys(map(str, columns["metric"])))
    room = fit_plot(width)
    letters = int(room / PER_LETTER)
    longest = min(60, letters - len(" 00.0 %,"))
    names = [isolate_direction(format_name(group, longest)) for group in groups]
    curves = [
        _Curve.of(columns, metric, Unit(metric in rates), names, alpha, letters)
        for metric in metrics
    ]
    of_each = " of each metric by itself" if len(metrics) > 1 else ""
    bands = f"Chance can explain gaps within a band ({format_level(1 - alpha)} bands{of_each})."
    n = max((curve.n for curve in curves), default=0)
    is_thinned = any(curve.n > len(curve.items) for curve in curves)
    head = head_chart(
        mode,
        title or "How the gap changes with the threshold",
        f"{name_of_gap(*groups, 40)}. {bands}",
        f"{_MAX_THRESHOLDS:,} of {n:,} thresholds are drawn, equally spaced." if is_thinned else "",
    )
    has_slider = slider and bool(curves)
    items = [item for curve in curves for item in curve.items]
    panels = [
        _specify_legend(items, room),
        *(curve.specify(room, height, has_slider=has_slider) for curve in curves),
    ]
    params = {"params": [_specify_slider(curves[0], start)]} if has_slider else {}
    return {"vconcat": panels, **head, "spacing": 16, **params}


def _specify_slider(curve: _Curve, start: float | None) -> Spec:
    at = np.array([item["threshold"] for item in curve.items])
    steps = np.diff(at)
    is_even = len(at) > 2 and np.allclose(steps, steps[0], rtol=1e-6)
    step = float(f"{steps[0] if is_even else (at[-1] - at[0]) / 200 or 1.0:.6g}")
    first = float(at[len(at) // 2] if start is None else np.clip(start, at[0], at[-1]))
    bind = {"input": "range", "min": float(at[0]), "max": float(at[-1]), "step": step}
    return {"name": _PICKED, "value": first, "bind": bind | {"name": "Threshold "}}


@dataclass(frozen=True)
class _Curve:
    """One metric: the marks and texts of the thresholds drawn, and the number of thresholds."""

    metric: str
    unit: Unit
    items: list[Item]
    n: int

    @classmethod
    def of(
        cls,
        columns: Mapping[str, Any],
        metric: str,
        unit: Unit,
        names: Sequence[str],
        alpha: float,
        letters: int,
    ) -> _Curve:
        """Return the metric's rows of the columns."""
        rows = np.flatnonzero([str(one) == metric for one in columns["metric"]])
        rows = rows[np.argsort([float(columns["threshold"][i]) for i in rows], kind="stable")]
        n = len(rows)
        rows = rows[np.unique(np.linspace(0, n - 1, min(n, _MAX_THRESHOLDS)).round().astype(int))]
        at = np.array([float(columns["threshold"][i]) for i in rows])
        middles = (at[1:] + at[:-1]) / 2
        begins = [float(at[0]) - 1.0, *middles.tolist()]
        ends = [*middles.tolist(), float(at[-1]) + 1.0]
        items = [
            {"from": a, "to": b}
            | _describe_row({key: columns[key][i] for key in columns}, unit, names, alpha, letters)
            for i, a, b in zip(rows, begins, ends, strict=True)
        ]
        return cls(metric, unit, items, n)

    def reach(self) -> float:
        """Return the end of the axis: beyond all gaps, and all but the widest bands."""
        sizes = {
            key: [abs(item[key]) for item in self.items if item[key] is not None]
            for key in ("gap", "narrow_high", "wide_high")
        }
        bands = [float(np.quantile(some, 0.75)) for some in sizes.values() if some]
        return 1.15 * max([*sizes["gap"], *bands, 0.0]) or 1.0

    def specify(self, width: int, height: int, *, has_slider: bool) -> Spec:
        """Return the metric's layers, from the ground up."""
        items, reach = self.items, self.reach()
        at = [item["threshold"] for item in items]
        edge = 0.02 * (at[-1] - at[0]) or 0.5
        low, high = at[0] - edge, at[-1] + edge
        x_axis = {"title": "Threshold", "grid": False, "format": ".6~g", "tickCount": 8}
        x_scale = {"domain": [low, high], "nice": False, "zero": False}
        y_scale = {"domain": [-reach, reach], "nice": False}
        y_axis = {
            "title": "Gap in points" if self.unit.is_share else "Gap",
            "tickCount": 5,
            "labelExpr": POINTS_LABEL if self.unit.is_share else GAP_LABEL,
        }

        def x(field: str) -> Spec:
            return number(field, scale=x_scale, axis=x_axis)

        def y(field: str) -> Spec:
            return number(field, scale=y_scale, axis=y_axis)

        def write(rows: list[Item], field: str, style: str, above: int, where: str = "") -> Spec:
            encoding = {"x": pixels(0), "y": pixels(-above), "text": text(field)}
            look: Spec = {"align": "left", "limit": width, "lineBreak": "\n", "lineHeight": _LINE}
            return draw_rows(rows, "text", encoding, where=where, style=style, **look)

        layers = [*self._bands(x, y)]
        runs = [_only(one, "gap", "run") for one in _runs(items, "gap")]
        line = {"x": x("threshold"), "y": y("gap"), "detail": text("run")}
        layers += [
            draw_rows([{"at": 0.0}], "rule", {"y": y("at")}, style="fp-zero"),
            draw_rows(runs, "line", line, style="fp-line", clip=True),
        ]
        for kind in _kinds(items):
            has_gap = kind.name != "none"
            some = [_only(item, *["gap"] * has_gap) for item in items if item["kind"] == kind.name]
            place = y("gap") if has_gap else pixels(height - 5)
            if kind.shape is None and len(items) > _FEW:
                continue
            layers.append(kind.draw(some, {"x": x("threshold"), "y": place}))
        head = [{"label": format_name(format_metric(self.metric))}]
        layers.append(write(head, "label", "fp-head", self._above()[0] if has_slider else 12))
        if has_slider:
            layers += self._picked(x, y, write)
        spans = (
            {**_only(item, *_TOOLTIP), "from": max(item["from"], low), "to": min(item["to"], high)}
            for item in items
        )
        whole = {"x": x("from"), "x2": {"field": "to"}, "y": pixels(0), "y2": pixels(height)}
        over = draw_rows(spans, "rect", {**whole, "tooltip": tooltip(_TOOLTIP)}, opacity=0)
        return {"layer": [*layers, over], "width": width, "height": height}

    def _bands(self, x: Callable[[str], Spec], y: Callable[[str], Spec]) -> Iterator[Spec]:
        """Yield the bands, with a bar where a threshold has no neighbours to make one with."""
        for name in ("wide", "narrow"):
            keys = (f"{name}_low", f"{name}_high")
            runs = _runs(self.items, *keys)
            look: Spec = {"style": f"fp-{name}", "clip": True}
            limits = {"x": x("threshold"), "y": y(keys[0]), "y2": {"field": keys[1]}}
            area = [_only(one, *keys, "run") for one in runs]
            yield draw_rows(area, "area", {**limits, "detail": text("run")}, **look)
            alone = [_only(one, *keys) for one in runs if one["is_alone"]]
            yield draw_rows(alone, "bar", limits, **look, width=5)

    def _picked(
        self,
        x: Callable[[str], Spec],
        y: Callable[[str], Spec],
        write: Callable[[list[Item], str, str, int, str], Spec],
    ) -> Iterator[Spec]:
        """Yield the line, dot and numbers of the threshold that the slider is at."""
        picked = f"datum.from <= {_PICKED} && {_PICKED} < datum.to"
        read_out = [_only(item, "from", "to", "at_lines", "verdict_lines") for item in self.items]
        yield draw_rows(read_out, "rule", {"x": x("threshold")}, where=picked, style="fp-target")
        with_gap = [
            _only(item, "from", "to", "gap") for item in self.items if item["gap"] is not None
        ]
        dot: Spec = {"style": "fp-point", "filled": True, "size": 90, "opacity": 1}
        xy = {"x": x("threshold"), "y": y("gap")}
        yield draw_rows(with_gap, "point", xy, where=picked, **dot)
        _, numbers, verdict = self._above()
        yield write(read_out, "at_lines", "fp-text", numbers, picked)
        yield write(read_out, "verdict_lines", "fp-note", verdict, picked)

    def _above(self) -> tuple[int, int, int]:
        """Return the heights of name, numbers and verdict above the plot, in pixels."""
        number_lines, verdict_line_count = (
            max(item[key].count("\n") for item in self.items)
            for key in ("at_lines", "verdict_lines")
        )
        verdict = 13 + _LINE * verdict_line_count
        numbers = verdict + 17 + _LINE * number_lines
        return numbers + 20, numbers, verdict


def _only(item: Item, *keys: str) -> Item:
    """Return the threshold and these fields of an item."""
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
    """A kind of threshold: its mark, and its label in the legend."""

    name: str
    label: str
    style: str
    shape: str | None = None
    is_filled: bool = True

    def draw(self, rows: Sequence[Item], encoding: Spec) -> Spec:
        """Return the kind's marks."""
        shape = self.shape or "circle"
        size = {"diamond": 46, "circle": 40 if self.shape else 22}.get(shape, 36)
        look: Spec = {"style": self.style, "shape": shape, "filled": self.is_filled, "size": size}
        return draw_rows(rows, "point", encoding, **look, opacity=1)


_KINDS = (
    _Kind("inside", "gap within its bands", "fp-point"),
    _Kind("maybe", "gap beyond the band of its threshold only", "fp-outside", "circle", False),
    _Kind("outside", "gap beyond the band of all thresholds", "fp-outside", "diamond"),
    _Kind("none", "no test at this threshold", "fp-missing", _CROSS, False),
)


def _kinds(items: Sequence[Item]) -> list[_Kind]:
    there = {item["kind"] for item in items}
    return [kind for kind in _KINDS if kind.name in there]


def _specify_legend(items: Sequence[Item], width: int) -> Spec:
    """Return the legend, in two columns where there is room."""
    keys: list[tuple[str, _Kind | str]] = [
        ("gap", "fp-line"),
        ("band of one threshold, chosen beforehand", "fp-narrow"),
        ("band of all thresholds at once", "fp-wide"),
        *((kind.label, kind) for kind in _kinds(items) if kind.name != "inside"),
    ]
    column = _TEXT_AT + int(max(len(label) for label, _ in keys) * PER_LETTER) + 20
    n_columns = 2 if 2 * column <= width else 1
    letters = int((width - _TEXT_AT) / PER_LETTER)
    layers: list[Spec] = []
    top = bottom = 0
    for i, (label, kind) in enumerate(keys):
        lines = wrap_parts(label.split(), letters)
        if i % n_columns == 0:
            top, bottom = bottom, bottom + 18 + _LINE * (len(lines) - 1)
        layers += _draw_key("\n".join(lines), kind, i % n_columns * column, top + 8)
    return {"layer": layers, "width": width, "height": bottom}


def _draw_key(label: str, kind: _Kind | str, left: int, at: int) -> Iterator[Spec]:
    """Yield a line of the legend: the mark and its meaning."""
    rows = [{"label": label}]
    x, y = pixels(left + 8), pixels(at)
    if isinstance(kind, _Kind):
        yield kind.draw(rows, {"x": x, "y": y})
    elif kind == "fp-line":
        ends = {"x": pixels(left), "x2": pixels(left + 16), "y": y}
        yield draw_rows(rows, "rule", ends, style=kind)
    else:
        for style in ("fp-wide", "fp-narrow") if kind == "fp-narrow" else ("fp-wide",):
            yield draw_rows(rows, "square", {"x": x, "y": y}, style=style, size=190, opacity=1)
    encoding = {"x": pixels(left + _TEXT_AT), "y": y, "text": text("label")}
    look: Spec = {"align": "left", "lineBreak": "\n", "lineHeight": _LINE}
    yield draw_rows(rows, "text", encoding, style="fp-text", **look)


def _describe_row(
    row: Mapping[str, Any], unit: Unit, names: Sequence[str], alpha: float, letters: int
) -> Item:
    """Return the marks and texts of one threshold, in lines of so many letters."""
    gap, p, adjusted = (as_finite(row[key]) for key in ("difference", "pvalue", "adjusted_pvalue"))
    bands = {
        name: (as_finite(row[f"{column}_lower"]), as_finite(row[f"{column}_upper"]))
        for name, column in (("narrow", "pointwise"), ("wide", "simultaneous"))
    }
    narrow, wide = (_describe_band(*limits, unit) for limits in bands.values())
    kind = _classify_gap(gap, p, adjusted, alpha)
    first, second = (
        (name, unit.value(row[f"value_{place}"]))
        for name, place in zip(names, ("first", "second"), strict=True)
    )
    threshold, gap_label = float(row["threshold"]), unit.signed(gap)
    verdict = _describe_verdict(kind, str(row["status"]), narrow, wide, adjusted is not None)
    numbers = [f"{' '.join(first)},", f"{' '.join(second)},", f"gap {gap_label}"]
    return {
        "threshold": threshold,
        "metric": format_name(row["metric"], 200),
        "kind": kind,
        "gap": gap,
        **{f"{name}_low": low for name, (low, _) in bands.items()},
        **{f"{name}_high": high for name, (_, high) in bands.items()},
        "first_value": f"{first[1]} ({first[0]})",
        "second_value": f"{second[1]} ({second[0]})",
        "gap_label": gap_label,
        "narrow_band": narrow,
        "wide_band": wide,
        "p": format_pvalue(p),
        "adjusted_p": format_pvalue(adjusted),
        "verdict": verdict,
        "at_lines": "\n".join(wrap_parts([f"At {threshold:.6g}:", *numbers], letters)),
        "verdict_lines": "\n".join(wrap_parts(verdict.split(), letters)),
    }


def _classify_gap(gap: float | None, p: float | None, adjusted: float | None, alpha: float) -> str:
    """Return whether a gap is within its bands, beyond one, beyond both, or not tested."""
    if gap is None or p is None:
        return "none"
    if adjusted is not None and adjusted <= alpha:
        return "outside"
    return "maybe" if p <= alpha else "inside"


def _describe_verdict(kind: str, status: str, narrow: str, wide: str, is_joint: bool) -> str:
    """Return the verdict in words; a threshold that is not joint is not in the band of all."""
    if kind == "none":
        return _NO_TEST.get(status, "There is no test at this threshold.")
    if kind == "outside":
        return f"Beyond what chance explains, over all thresholds of this metric alone ({wide})."
    if kind == "maybe":
        if not is_joint:
            return f"Beyond chance by itself ({narrow}); too sparse for the joint band."
        chosen = f"Beyond chance by itself if this threshold was chosen beforehand ({narrow})"
        return f"{chosen}, not if it was searched for ({wide})."
    if not is_joint:
        return f"Chance alone can explain it ({narrow}); too sparse for the joint band."
    return f"Chance alone can explain it ({narrow} here, {wide} over all)."


def _describe_band(low: float | None, high: float | None, unit: Unit) -> str:
    if low is None or high is None:
        return NONE
    is_even = abs(low + high) <= 1e-9 * abs(high - low)
    return f"±{unit.size(high)}" if is_even else unit.interval((low, high))
