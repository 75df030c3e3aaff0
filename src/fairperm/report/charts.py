"""The charts of a report: which rows they show, and what they show in words."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from altair.utils.schemapi import debug_mode

from fairperm import plots
from fairperm.report import names as words
from fairperm.report.view import WEIGHTIEST_FIRST

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from fairperm.hypothesis_tests.results.sweeps import MetricSweep, ThresholdSweepResult
    from fairperm.report.view import Line, Section, View

MOST_IN_FOREST = 60
MOST_NULLS = 8
MOST_THRESHOLDS = 400
_WIDTHS = (900, 340)  # in pixels; the page stretches charts that are elastic
_FOREST_WIDTHS = (900, 640, 340)  # it is not
_NULL_WIDTHS = (900,)  # nothing in it depends on its width


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """One chart: its place on the page, its title, what it shows in words, and how it is drawn."""

    key: str
    title: str
    caption: tuple[str, ...]
    summary: str
    specs: dict[int, dict[str, Any]]
    is_elastic: bool = True
    has_slider: bool = False


def configs() -> dict[str, Any]:
    """Return how charts look on light and on dark pages."""
    return {mode: plots.theme(mode) for mode in ("light", "dark")}


def forest(view: View) -> Chart | None:
    """Return all gaps with their intervals; of very many, disparities first."""
    first = sorted(view.lines, key=lambda line: WEIGHTIEST_FIRST.index(line.verdict))
    kept = {id(line) for line in first[:MOST_IN_FOREST]}
    shown = [line for line in view.lines if id(line) in kept]
    judged = [line for line in shown if line.verdict != "too small" and _is_drawn(line)]
    if not judged:
        return None
    found = sum(line.verdict == "disparity" for line in shown)
    widest = max(judged, key=lambda line: abs(line.row.difference or 0.0))
    left_out = len(view.lines) - len(shown)
    summary = (
        f"{words.plural(len(shown), 'gap')} with {'its' if len(shown) == 1 else 'their'} "
        f"confidence intervals; {found:,} of them a disparity. The largest judged is {widest.gap} "
        f"({words.words(widest.row.metric)}, {widest.first} less {widest.second})."
    )
    if left_out:
        summary += f" {words.plural(left_out, 'more comparison')} only in the table."
    rows = [_cells(line, view) for line in shown]
    level = view.audit.settings.get("confidence_level")
    draw = partial(plots.forest, rows, confidence_level=level)
    return _chart("forest", summary, draw, _FOREST_WIDTHS, is_elastic=False)


def _chart(
    key: str,
    summary: str,
    draw: Callable[..., Any],
    widths: Sequence[int] = _WIDTHS,
    *,
    is_elastic: bool = True,
    has_slider: bool = False,
) -> Chart:
    """Return a chart in some widths; its title becomes text of the page, which wraps."""
    with debug_mode(False):  # checking takes most of the time, and tests have done it
        specs = {width: draw(width=width).to_dict(validate=False) for width in widths}
    for spec in specs.values():
        spec.pop("$schema", None)  # an address that nobody needs: the page says what it is
        spec.pop("config", None)  # the page has its own, for light and for dark
    titles = [spec.pop("title") for spec in specs.values()]
    return Chart(
        key=key,
        title=titles[0]["text"],
        caption=tuple(titles[0].get("subtitle", ())),
        summary=summary,
        specs=specs,
        is_elastic=is_elastic,
        has_slider=has_slider,
    )


def _is_drawn(line: Line) -> bool:
    return line.row.difference is not None and math.isfinite(line.row.difference)


def _cells(line: Line, view: View) -> dict[str, Any]:
    first, second = map(view.names.of, line.row.groups)
    return line.row.cells() | {
        "attribute": words.shortened(words.visible(line.row.attribute), 32),
        "metric": words.shortened(words.visible(words.words(line.row.metric)), 40),
        "first_group": first,
        "second_group": second,
    }


def nulls(view: View) -> list[Chart]:
    """Return the null distribution of one row for each attribute and metric, disparities first."""
    rows = [(section, line) for section in view.sections if (line := _clearest(section))]
    rows.sort(key=lambda one: WEIGHTIEST_FIRST.index(one[1].verdict))
    return [
        _null(f"null-{i}", section, line) for i, (section, line) in enumerate(rows[:MOST_NULLS], 1)
    ]


def _clearest(section: Section) -> Line | None:
    """Return the comparison that chance explains least: of disparities, if there are any."""
    tested = [
        line
        for line in section.lines
        if line.row.result is not None
        and math.isfinite(line.row.result.statistic)
        and line.verdict != "too small"
    ]
    return min(
        tested,
        key=lambda line: (WEIGHTIEST_FIRST.index(line.verdict), line.row.pvalue or 0.0),
        default=None,
    )


def _null(key: str, section: Section, line: Line) -> Chart:
    result: Any = line.row.result
    how = "under all possible exchanges of group labels"
    if result.n_resamples == 0:
        how = "in the normal limit"
    elif not result.exact:
        how = f"under {result.n_resamples:,} random exchanges of group labels"
    summary = (
        f"What chance alone makes of {section.metric}, {line.first} less {line.second}: the gap "
        f"over its standard error {how}. Observed: {words.number(result.statistic, '+')}. "
        f"p {words.p_is(line.pvalue)}."
    )
    draw = partial(
        plots.null_distribution,
        result.null_distribution,
        result.statistic,
        probabilities=result.null_probabilities,
        alternative=result.alternative,
        pvalue=result.pvalue,
        metric=section.metric,
        groups=(line.first, line.second),
        studentized=result.variance is not None,
        title=f"{section.attribute} · {section.metric}: {line.first} less {line.second}",
    )
    return _chart(key, summary, draw, _NULL_WIDTHS)


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepPart:
    """One sweep on the page: its chart, what was found, and its numbers."""

    chart: Chart
    first: str
    second: str
    findings: tuple[str, ...]
    validity: tuple[str, ...]
    tables: tuple[SweepTable, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepTable:
    """The numbers of one metric of a sweep."""

    metric: str
    lines: tuple[tuple[str, ...], ...]


def sweeps(view: View, given: Sequence[ThresholdSweepResult]) -> list[SweepPart]:
    """Return the sweeps over thresholds, each with a slider."""
    return [_sweep(f"sweep-{i}", one, view) for i, one in enumerate(given, 1)]


def _sweep(key: str, sweep: ThresholdSweepResult, view: View) -> SweepPart:
    n = len(sweep.thresholds)
    kept = np.unique(np.linspace(0, n - 1, min(n, MOST_THRESHOLDS)).round().astype(int))
    first, second = map(view.names.of, sweep.groups)
    curves = list(sweep.curves.values())
    each = [_columns(sweep, curve, kept) for curve in curves]
    columns = {name: np.concatenate([one[name] for one in each]) for name in each[0]}
    start = view.audit.settings.get("threshold")
    draw = partial(
        plots.threshold_sweep,
        columns,
        groups=(first, second),
        alpha=sweep.alpha,
        slider=True,
        start=start if isinstance(start, (int, float)) else None,
    )
    findings = tuple(_largest(sweep, curve) for curve in curves)
    return SweepPart(
        chart=_chart(key, " ".join(findings), draw, has_slider=True),
        first=first,
        second=second,
        findings=findings,
        validity=tuple(f"{words.words(one.metric)}: {one.validity}" for one in curves),
        tables=tuple(_numbers(sweep, curve, kept) for curve in curves),
    )


def _columns(
    sweep: ThresholdSweepResult, curve: MetricSweep, kept: NDArray[Any]
) -> dict[str, NDArray[Any]]:
    found = {name: np.asarray(one)[kept] for name, one in sweep.columns(curve).items()}
    return found | {"metric": np.full(len(kept), words.words(curve.metric))}


def _largest(sweep: ThresholdSweepResult, curve: MetricSweep) -> str:
    at = curve.largest()
    outside = int((curve.adjusted_pvalue <= sweep.alpha).sum())
    beyond = (
        "At no threshold is the gap beyond what chance explains, all thresholds considered."
        if not outside
        else f"At {words.plural(outside, 'threshold')} of {len(sweep.thresholds):,} the gap is "
        "beyond what chance explains, all thresholds considered."
    )
    metric = words.words(curve.metric)
    gap = words.number(float(curve.difference[at]), "+")
    return (
        f"{metric[:1].upper()}{metric[1:]}: the largest gap is {gap} at the threshold "
        f"{sweep.thresholds[at]:.4g}. {beyond}"
    )


def _numbers(sweep: ThresholdSweepResult, curve: MetricSweep, kept: NDArray[Any]) -> SweepTable:
    first, second = (curve.values[group] for group in sweep.groups)
    lines = [
        (
            f"{sweep.thresholds[i]:.4g}",
            words.number(float(first[i])),
            words.number(float(second[i])),
            words.number(float(curve.difference[i]), "+"),
            words.pvalue(float(curve.pvalue[i])),
            words.pvalue(float(curve.adjusted_pvalue[i])),
        )
        for i in kept.tolist()
    ]
    return SweepTable(metric=words.words(curve.metric), lines=tuple(lines))
