"""The charts of a report, each with a summary in words, and the script that draws them.

The script is made of Vega, Vega-Lite and Vega-Embed.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from fairperm._utils.formatting import (
    format_count,
    format_metric,
    format_name,
    format_number,
    format_pvalue,
    join_words,
    state_pvalue,
)
from fairperm.hypothesis_tests.results.answers.audits import unit_of_row
from fairperm.hypothesis_tests.results.answers.words import unit_of
from fairperm.hypothesis_tests.results.gaps import json_ready
from fairperm.hypothesis_tests.results.sweeps import MetricSweep, ThresholdSweepResult
from fairperm.metrics.definition import Scheme
from fairperm.plots.forest_chart import forest
from fairperm.plots.null_chart import null_distribution
from fairperm.plots.slope_chart import specify_slope
from fairperm.plots.sweep_chart import threshold_sweep
from fairperm.report.changes import count_verdicts, list_slopes
from fairperm.report.view import WEIGHTIEST_FIRST, AuditView, ComparisonView, Section

if TYPE_CHECKING:
    from fairperm.plots.parts import Spec

MAX_IN_FOREST = 60
MAX_SLOPES = 24
MAX_THRESHOLDS = 400
_WIDTHS = (900, 340)  # in pixels; the page stretches charts that are elastic
_FOREST_WIDTHS = (900, 640, 340)  # it is not elastic
_SLOPE_WIDTHS = (340,)
_NULL_WIDTHS = (900,)  # it differs in nothing but its width


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """One chart: its place on the page, title, summary, and a specification for each width."""

    key: str
    title: str
    caption: tuple[str, ...]
    summary: str
    specs: dict[int, Spec]
    is_elastic: bool = True
    has_slider: bool = False
    is_counted: bool = False  # a null distribution of tables, not of permutations


def draw_forest(view: AuditView) -> Chart | None:
    """Return all judged gaps with their intervals; if too many, disparities come first."""
    # distances have no interval, and are not drawn
    ranked = [one for one in view.comparisons if one.verdict != "too small" and _has_gap(one)]
    ranked = [one for one in ranked if not one.row.is_distance]
    ranked.sort(key=lambda one: WEIGHTIEST_FIRST.index(one.verdict))
    kept = {id(one) for one in ranked[:MAX_IN_FOREST]}
    shown = [one for one in view.comparisons if id(one) in kept]
    if not shown:
        return None
    found = sum(one.verdict == "disparity" for one in shown)
    widest = max(shown, key=lambda one: abs(one.row.difference or 0.0))
    place = f"{format_metric(widest.row.metric)}, {widest.gap_name}"
    summary = (
        f"{format_count(len(shown), 'gap')} with confidence intervals; {found:,} of them a "
        f"disparity. The largest judged gap is {widest.gap} ({place})."
    )
    if more := len(view.comparisons) - len(shown):
        summary += f" {format_count(more, 'more comparison')} only in the table."
    rows = [_describe_row(one) for one in shown]
    level = view.audit.settings.get("confidence_level")
    specify = partial(forest.specify, rows, confidence_level=level)
    return draw_chart("forest", summary, specify, _FOREST_WIDTHS, is_elastic=False)


def draw_chart(
    key: str,
    summary: str,
    specify: Callable[..., Spec],
    widths: Sequence[int] = _WIDTHS,
    *,
    is_elastic: bool = False,
    has_slider: bool = False,
) -> Chart:
    """Return a chart in several widths; its title becomes text of the page, which wraps."""
    specs = {width: specify(width=width) for width in widths}
    for spec in specs.values():
        spec.pop("config")  # the page has its own themes, light and dark
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


def _has_gap(comparison: ComparisonView) -> bool:
    gap = comparison.row.difference
    return gap is not None and math.isfinite(gap)


def _describe_row(comparison: ComparisonView) -> dict[str, Any]:
    """Return the columns of a comparison, with the names that the page uses."""
    row = comparison.row
    return row.cells() | {
        "attribute": format_name(row.attribute, 32),
        "metric": format_name(format_metric(row.metric), 40),
        "first_group": comparison.first,
        "second_group": comparison.second,
    }


def draw_null(view: AuditView) -> Chart | None:
    """Return the null distribution of a disparity if there is one: others look much alike."""
    tested = [
        (section, one)
        for section in view.sections
        for one in section.comparisons
        if one.row.result is not None
        and not one.row.is_distance
        and len(one.row.result.null_distribution)
        and math.isfinite(one.row.result.statistic)
        and one.verdict != "too small"
    ]
    if not tested:
        return None
    first = min(tested, key=lambda pair: WEIGHTIEST_FIRST.index(pair[1].verdict))
    return _draw_null("null", *first)


def _draw_null(key: str, section: Section, comparison: ComparisonView) -> Chart:
    result: Any = comparison.row.result
    draws = "over all permutations of group labels"
    if result.scheme == Scheme.UNCONDITIONAL:
        draws = "over all tables of two samples with one rate"
    if result.n_resamples == 0:
        draws = "in the normal limit"
    elif not result.exact:
        draws = f"over {result.n_resamples:,} random permutations of group labels"
    gap = comparison.gap_name
    summary = (
        f"Null distribution of {section.metric}, {gap}: the gap divided by its standard error "
        f"{draws}. Observed: {format_number(result.statistic, signed=True)}. "
        f"{state_pvalue(result.pvalue)}."
    )
    specify = partial(
        null_distribution.specify,
        result.null_distribution,
        result.statistic,
        probabilities=result.null_probabilities,
        alternative=result.ordering,
        pvalue=result.pvalue,
        metric=section.metric,
        groups=None if result.is_joint else (comparison.first, comparison.second),
        studentized=result.variance is not None,
        draws="tables" if result.scheme == Scheme.UNCONDITIONAL else "permutations",
        title=f"{section.attribute} · {section.metric}: {gap}",
    )
    chart = draw_chart(key, summary, specify, _NULL_WIDTHS)
    return replace(chart, is_counted=result.scheme == Scheme.UNCONDITIONAL)


def draw_changes(view: AuditView) -> list[Chart]:
    """Return the values of groups with both models, of each attribute and metric with changes."""
    drawn: list[Chart] = []
    by_section = [(section, list_slopes(section, view)) for section in view.sections]
    every: dict[str, list[float]] = {}  # charts of one metric share an axis
    for section, values in by_section:
        every.setdefault(section.metric, []).extend(end for pair in values.values() for end in pair)
    for section, values in by_section:
        if not values or len(drawn) == MAX_SLOPES:
            continue
        unit = unit_of_row(section.comparisons[0].row)
        ends = (f"{name} {unit.value(a)} → {unit.value(b)}" for name, (a, b) in values.items())
        specify = partial(
            specify_slope,
            values,
            title=f"{section.attribute} · {section.metric}",
            subtitle=count_verdicts(section.comparisons),
            limits=(min(every[section.metric]), max(every[section.metric])),
            unit=unit,
        )
        summary = f"Old and new value of each group: {'; '.join(ends)}."
        key = f"slope-{len(drawn) + 1}"
        drawn.append(draw_chart(key, summary, specify, _SLOPE_WIDTHS, is_elastic=False))
    return drawn


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepPart:
    """One sweep on the page: its chart, findings and numbers."""

    chart: Chart
    first: str
    second: str
    findings: tuple[str, ...]
    verdicts: tuple[str, ...]
    validity: tuple[str, ...]
    tables: dict[str, list[tuple[str, ...]]]  # the rows of each metric


def draw_sweeps(view: AuditView | None, sweeps: Sequence[ThresholdSweepResult]) -> list[SweepPart]:
    """Return the sweeps over thresholds, each with a slider, in the view's names of groups."""
    return [_draw_sweep(f"sweep-{i}", one, view) for i, one in enumerate(sweeps, 1)]


def _draw_sweep(key: str, sweep: ThresholdSweepResult, view: AuditView | None) -> SweepPart:
    n = len(sweep.thresholds)
    kept = np.unique(np.linspace(0, n - 1, min(n, MAX_THRESHOLDS)).round().astype(int))
    first, second = sweep.group_names
    start = None
    if view is not None:
        first, second = view.name_groups(sweep.groups)
        start = view.audit.settings.get("threshold")
    curves = list(sweep.curves.values())
    parts = [_select_columns(sweep, curve, kept) for curve in curves]
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    specify = partial(
        threshold_sweep.specify,
        columns,
        groups=(first, second),
        rates=[format_metric(one.metric) for one in curves if unit_of(one.metric).is_share],
        alpha=sweep.alpha,
        slider=True,
        start=start if isinstance(start, (int, float)) else None,
    )
    findings = tuple(_describe_largest(sweep, curve) for curve in curves)
    return SweepPart(
        chart=draw_chart(key, " ".join(findings), specify, has_slider=True),
        first=first,
        second=second,
        findings=findings,
        verdicts=() if view is None else tuple(_list_verdicts(view, sweep)),
        validity=_join_validity(curves),
        tables={format_metric(one.metric): _tabulate_curve(sweep, one, kept) for one in curves},
    )


def _join_validity(curves: Sequence[MetricSweep]) -> tuple[str, ...]:
    """Return each sentence on validity once, after its metrics."""
    metrics: dict[str, list[str]] = {}
    for one in curves:
        validity = one.validity.replace(f"equal {one.metric};", "equal metric;")
        metrics.setdefault(validity, []).append(format_metric(one.metric))
    return tuple(f"{join_words(names)}: {validity}" for validity, names in metrics.items())


def _list_verdicts(view: AuditView, sweep: ThresholdSweepResult) -> Iterator[str]:
    """Yield what the audit says of these groups and metrics, in its own family of hypotheses."""
    cut = view.audit.settings.get("threshold")
    where = "its predictions" if cut is None else f"its threshold of {cut:.10g}"
    found = [
        (section, one)
        for section in view.sections
        for one in section.comparisons
        if {*one.row.groups} == {*sweep.groups}
        and one.row.result is not None
        and one.row.result.metric in sweep.curves
    ]
    named = [pair for pair in found if pair[1].row.attribute == sweep.attribute]
    for section, one in named or found:
        question = f"{section.attribute} · {section.metric}"
        yield f"The audit of {question} at {where}: {one.verdict}, {one.reason}"


def _select_columns(
    sweep: ThresholdSweepResult, curve: MetricSweep, kept: NDArray[Any]
) -> dict[str, NDArray[Any]]:
    columns = {name: np.asarray(one)[kept] for name, one in sweep.columns_of(curve).items()}
    return columns | {"metric": np.full(len(kept), format_metric(curve.metric))}


def _describe_largest(sweep: ThresholdSweepResult, curve: MetricSweep) -> str:
    """Return the largest gap over thresholds, and the number of gaps that chance cannot explain."""
    largest = curve.largest()
    n_beyond = int((curve.adjusted_pvalue <= sweep.alpha).sum())
    where = "no threshold"
    if n_beyond:
        where = f"{n_beyond:,} of {format_count(len(sweep.thresholds), 'threshold')}"
    metric = format_metric(curve.metric)
    gap = unit_of(curve.metric).signed(curve.difference[largest])
    return (
        f"{metric[:1].upper()}{metric[1:]}: the largest gap is {gap} at the threshold "
        f"{sweep.thresholds[largest]:.4g}. At {where} the gap is larger than chance explains "
        f"(level {sweep.alpha:.2g}, for all thresholds together)."
    )


def _tabulate_curve(
    sweep: ThresholdSweepResult, curve: MetricSweep, kept: NDArray[Any]
) -> list[tuple[str, ...]]:
    first, second = (curve.values[group] for group in sweep.groups)
    unit = unit_of(curve.metric)
    return [
        (
            f"{sweep.thresholds[i]:.4g}",
            unit.value(first[i]),
            unit.value(second[i]),
            unit.signed(curve.difference[i]),
            format_pvalue(curve.pvalue[i]),
            format_pvalue(curve.adjusted_pvalue[i]),
        )
        for i in kept.tolist()
    ]


@cache
def vega_script() -> str:
    """Return the script, which ``python -m scripts.vega`` puts into the package."""
    return files("fairperm.report").joinpath("vega", "vega.js").read_text(encoding="utf-8")


def inline_json(value: object) -> Markup:
    """Return JSON that is safe inside a script element: no tag, comment or line can end it."""
    text = json.dumps(json_ready(value), ensure_ascii=True, separators=(",", ":"))
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)  # noqa: S704
