"""The words of a report: the question, the findings, and how the audit was done.

Names from data are escaped and bidi-isolated.
"""

from __future__ import annotations

import platform
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

from fairperm._utils.formatting import (
    count_units,
    format_count,
    format_interval,
    format_level,
    format_metric,
    format_name,
    format_number,
    format_percent,
    format_points,
    join_words,
    state_pvalue,
)
from fairperm.hypothesis_tests.results.answers.audits import (
    describe_joint_findings,
    is_gap_shown,
    unit_of_row,
)
from fairperm.hypothesis_tests.results.audits import PLACES_OF_NOTES
from fairperm.inference.stopping import MIN_EXTREME_DRAWS
from fairperm.metrics.definition import Scheme
from fairperm.report.rerun import find_used_columns
from fairperm.report.view import WEIGHTIEST_FIRST, find_look_alikes

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fairperm.hypothesis_tests.results.gaps import PermutationTestResult
    from fairperm.report.view import AuditView, ComparisonView, Section

_NAME = Markup("<bdi>{}</bdi>")
_COMPARED = {
    "pairs": "every group with every other group",
    "reference": "every group with a reference group",
    "rest": "every group with all other groups together",
}
_DIRECTIONS = {"greater": "above", "less": "below"}
_ANY_FALSE = "probability of any false disparity"
_SHARE_FALSE = "expected share of false disparities"
_ADJUSTMENTS = {
    "holm": ("Holm's method", _ANY_FALSE),
    "bh": ("the Benjamini–Hochberg method", _SHARE_FALSE),
    "by": ("the Benjamini–Yekutieli method", _SHARE_FALSE),
}
_MAX_NAMED = 12
_SCHEMES = {
    "denominator": "Group labels were exchanged{within} among the {units} in the metric's "
    "denominator.",
    "unconditional": "The rows in the metric's denominator are two binomial samples with one rate.",
    "within_label": "Group labels were exchanged{within} among {units} with the same true label.",
    "pooled": "Group labels were exchanged{within} among all {units} of both groups.",
    "matched": "Group labels were exchanged inside each matched set, in which the rows of a group "
    "count as their mean.",
    "matched clusters": "Group labels were exchanged inside matched sets, in all sets of a cluster "
    "at once. In a set, the rows of a group count as their mean.",
    "clusters": "Group labels were exchanged{within} among the clusters of both groups, each as a "
    "whole.",
    "probabilities": "Groups are known only as probabilities. Of two groups, these were exchanged "
    "among all {units}; of more, or in clusters, the gap is compared with the normal distribution.",
    "lists": "Group labels were exchanged{within} among the items of each list.",
}
_STUDENTIZED = "Each gap was divided by its standard error, computed "
_VARIANCES = {
    "score": f"{_STUDENTIZED}from the pooled rate of both groups.",
    "wald": f"{_STUDENTIZED}from each group's own rate.",
    "delta": f"{_STUDENTIZED}by the delta method.",
    "hall": f"{_STUDENTIZED}by the delta method, and its skewness was removed (Hall, 1992).",
    "delong": f"{_STUDENTIZED}by DeLong's method.",
    "bootstrap": f"{_STUDENTIZED}from bootstrap samples.",
    "fast_bootstrap": f"{_STUDENTIZED}from bootstrap samples.",
    None: "The gaps were not divided by a standard error.",
}
_UNNAMED = re.compile(r"[\d,]+ values \(\w+\)")  # how settings show an array
_PACKAGES = ("fairperm", "numpy", "scipy", "numba")


def mark_name(text: str) -> Markup:
    """Return a name from data, isolated from the direction of the text around it."""
    return _NAME.format(text)


def mark_gap(first: str, second: str) -> Markup:
    """Return "a − b", each name isolated; one with "=" in brackets."""
    names = (mark_name(f"({one})" if " = " in one else one) for one in (first, second))
    return Markup(" − ").join(names)


def _join_names(texts: Iterable[str]) -> Markup:
    """Return "a, b and c", and the number of names beyond the first twelve."""
    return join_marked([mark_name(text) for text in texts])


def join_sections(sections: Iterable[Section]) -> Markup:
    """Return the attributes and metrics of sections, joined in the same way."""
    return _join_names(f"{one.attribute} · {one.metric}" for one in sections)


def join_marked(texts: Sequence[Markup]) -> Markup:
    """Return "a, b and c", and the number of texts beyond the first twelve."""
    marked = [*texts[:_MAX_NAMED]]
    if len(texts) > _MAX_NAMED:
        marked.append(Markup("{} more").format(len(texts) - _MAX_NAMED))
    if len(marked) < 2:
        return Markup("").join(marked)
    return Markup("{} and {}").format(Markup(", ").join(marked[:-1]), marked[-1])


def explain_verdicts(view: AuditView) -> dict[str, str]:
    """Return the meaning of each verdict."""
    disparity = _explain_verdict(
        view,
        "disparity",
        "The gap is larger than chance explains.",
        "The gap was shown to exceed the margin.",
    )
    inconclusive = _explain_verdict(
        view,
        "inconclusive",
        "Chance could explain the gap, and a real gap is possible.",
        "No gap was shown, and one beyond the margin is possible; or there is a gap, but whether "
        "it exceeds the margin is not settled.",
    )
    if view.audit.settings.get("alternative") in _DIRECTIONS:
        inconclusive += " It may also be in the direction that was not tested."
    return {
        "disparity": disparity,
        "equivalent": "The gap was shown to be within the margin.",
        "inconclusive": f"Not decided. {inconclusive}",
        "too small": f"A group has too few {view.units} that count for the metric, or no value.",
    }


def _explain_verdict(view: AuditView, verdict: str, without_margin: str, with_margin: str) -> str:
    """Return what a verdict means in the rows that have it, or if none has it in all rows."""
    rows = [row for row in view.audit.rows if row.verdict == verdict] or view.audit.rows
    have_margin = {row.margin is not None for row in rows}
    if True not in have_margin:
        return without_margin
    if False not in have_margin:
        return with_margin
    rest = f"{without_margin[:1].lower()}{without_margin[1:]}"
    return f"{with_margin} In metrics without a margin: {rest}"


@dataclass(frozen=True, slots=True)
class Finding:
    """The finding for one attribute and metric."""

    section: Section
    verdict: str
    sentences: tuple[Markup, ...]


def describe_findings(view: AuditView) -> list[Finding]:
    """Return the finding for every attribute and metric, disparities first."""
    joint = describe_joint_findings(view.audit)
    findings = [_describe_section(section, joint, view.p_name) for section in view.sections]
    return sorted(findings, key=lambda one: WEIGHTIEST_FIRST.index(one.verdict))


def _describe_section(
    section: Section, joint: Mapping[tuple[str, str], str], p_name: str
) -> Finding:
    disparities = section.with_verdict("disparity")
    if disparities:
        disparities.sort(key=lambda one: -abs(one.row.difference or 0.0))
        named = map(describe_comparison, disparities)
        return Finding(section, "disparity", (*named, *_count_others(section)))
    verdicts = [one for one in ("inconclusive", "equivalent") if section.with_verdict(one)]
    row = section.comparisons[0].row
    remarks = [escape(one) for one in (joint.get((row.attribute, row.metric)),) if one]
    sentences = (*_describe_no_disparity(section, p_name), *remarks)
    return Finding(section, [*verdicts, "too small"][0], sentences)


def _count_others(section: Section) -> list[Markup]:
    """Return how many other comparisons there are, by verdict."""
    counts = {one: len(section.with_verdict(one)) for one in _OTHERS}
    parts = [f"{n:,} {_are(n)} {_OTHERS[one]}" for one, n in counts.items() if n]
    return [escape(f"Of the other comparisons, {join_words(parts)}.")] if parts else []


_OTHERS = {
    "inconclusive": "inconclusive",
    "equivalent": "within the margin",
    "too small": "too small to judge",
}


def _describe_no_disparity(section: Section, p_name: str) -> list[Markup]:
    if len(section.comparisons) == 1:
        (one,) = section.comparisons
        comparison = [] if one.row.result is None else [describe_comparison(one)]
        return [*comparison, escape(one.reason[:1].upper() + one.reason[1:])]
    texts = {
        "inconclusive": "inconclusive: a gap may exist that these data do not show."
        if all(one.row.margin is None for one in section.comparisons)
        else "inconclusive: whether a gap exceeds the margin is not settled.",
        "equivalent": "shown to have a gap within the margin.",
        "too small": "not judged: a group is too small, or the metric has no value.",
    }
    counts = {verdict: len(section.with_verdict(verdict)) for verdict in texts}
    sentences = [
        escape(f"{format_count(n, 'comparison')} {_are(n)} {texts[verdict]}")
        for verdict, n in counts.items()
        if n
    ]
    shown = [
        Markup("{} Chance does not explain it ({}).").format(
            describe_comparison(one), state_pvalue(one.row.adjusted_pvalue, p_name)
        )
        for one in section.with_verdict("inconclusive")
        if is_gap_shown(one.row)  # and may be within the margin
    ]
    return [*(shown or [Markup("No disparity was found.")]), *sentences]


def describe_comparison(comparison: ComparisonView) -> Markup:
    """Return a comparison in one sentence, the higher value first."""
    row, result = comparison.row, comparison.row.result
    if result is None or row.difference is None:
        return Markup("")
    gap, limits = row.difference, row.adjusted_interval or result.confidence_interval
    if row.is_distance:
        return Markup("{} and {}: a distance of {}; by chance alone it is {} on average.").format(
            mark_name(comparison.first),
            mark_name(comparison.second),
            format_number(gap),
            format_number(row.expected),
        )
    if result.is_joint:
        text = f"{format_number(gap)} ({comparison.interval_name} {format_interval(limits)})"
        return Markup("{} and {}: the largest absolute gap ({}) is {}.").format(
            mark_name(comparison.first), mark_name(comparison.second), format_metric(row.part), text
        )
    order = (0, 1)
    if gap < 0:
        order, gap, limits = (1, 0), -gap, (-limits[1], -limits[0])
    is_rate = all("denominator" in result.counts[group] for group in row.groups)
    values = [_describe_value(comparison, place, is_rate=is_rate) for place in order]
    within = "within strata, a gap of" if result.n_strata > 1 else "a gap of"
    size, interval = format_number(gap), format_interval(limits)
    if is_rate:
        size = f"{format_points(gap)} percentage points"
        interval = " to ".join(map(format_points, limits))
    text = Markup("{}, {}: {} {} ({} {}).")
    return text.format(*values, within, size, comparison.interval_name, interval)


def describe_values(comparison: ComparisonView) -> Markup:
    """Return the values of two groups as "South 42.3 % v North 22.0 %", the higher first."""
    unit, values = unit_of_row(comparison.row), comparison.row.values
    names = (comparison.first, comparison.second)
    order = (1, 0) if (comparison.row.difference or 0.0) < 0 else (0, 1)
    ends = (Markup("{} {}").format(mark_name(names[i]), unit.value(values[i])) for i in order)
    return Markup(" v ").join(ends)


def _describe_value(comparison: ComparisonView, place: int, *, is_rate: bool) -> Markup:
    text = (comparison.first, comparison.second)[place]
    name = mark_name(f"{text}:" if " = " in text else text)
    value = comparison.row.values[place]
    if not is_rate:
        return Markup("{} {}").format(name, format_number(value))
    return Markup("{} {} ({})").format(name, format_percent(value), comparison.counts[place])


def _are(n: int) -> str:
    return "is" if n == 1 else "are"


def describe_question(view: AuditView) -> list[Markup]:
    """Return the question that the audit answers."""
    audit, settings = view.audit, view.audit.settings
    n_metrics = len({one.row.metric for one in view.comparisons})
    sentences = [
        Markup("The audit compares {} of {}, in {}.").format(
            _COMPARED.get(audit.compare, audit.compare),
            _join_names(view.groups),
            format_count(n_metrics, "metric"),
        ),
        Markup("Each comparison asks: is the gap between the two groups larger than chance alone "
               "explains?"),
        *_define_positives(view),
    ]  # fmt: skip
    if audit.compare == "reference":
        attributes = list(dict.fromkeys(one.attribute for one in audit.groups))
        sentences.append(_name_reference(settings.get("reference"), attributes))
    if view.has_margins:
        sentences.append(_describe_margins(view))
    if (alternative := settings.get("alternative")) in _DIRECTIONS:
        direction = f"the first group {_DIRECTIONS[alternative]} the second"
        sentences.append(escape(f"Only one direction counts: {direction}."))
    if audit.is_stratified:
        text = Markup("Only {} of the same stratum{} are compared with each other.")
        sentences.append(text.format(audit.units, name_setting(settings["control_features"])))
    if view.audit.is_weighted:
        text = Markup("Rows count by their weights{}: values of metrics are weighted. Counts are "
                      "numbers of rows.")  # fmt: skip
        sentences.append(text.format(name_setting(settings["sample_weight"])))
    if view.audit.is_matched:
        text = Markup("Rows of one matched set{} are compared with each other: every set counts "
                      "{}. {}")  # fmt: skip
        often = "by its weight" if view.audit.is_weighted else "once"
        sentences.append(text.format(name_setting(settings["matched"]), often, _count_sets(view)))
    if settings.get("rankings"):
        sentences.append(_describe_lists(view))
    if view.has_distances:
        sentences.append(_describe_distances(settings))
    if view.audit.is_clustered:
        text = Markup("{} of one cluster{} belong together: {}.")
        column = "names" if audit.has_names else "cluster"
        rows = "Rows" if audit.units == "rows" else "Queries"
        rows = "Sets" if audit.is_matched else rows
        so = f"clusters are compared, not {rows.lower()}"
        so = "their lists do not count as independent" if audit.units == "items" else so
        sentences.append(text.format(rows, name_setting(settings[column]), so))
    return sentences


def _describe_margins(view: AuditView) -> Markup:
    """Return the margins, and the metrics that have them unless all have the same."""
    metrics: dict[str, dict[str, None]] = {}
    for section in view.sections:
        for one in section.comparisons:
            size = "" if one.row.margin is None else unit_of_row(one.row).size(one.row.margin)
            metrics.setdefault(size, {})[section.metric] = None
    texts = [
        size if len(metrics) == 1 else f"{size} in {join_words(names)}"
        for size, names in metrics.items()
        if size
    ]
    return escape(
        f"A gap of at most the margin ({'; '.join(texts)}) is taken not to matter in practice: "
        f"{'these ' if '' in metrics else ''}comparisons also ask whether the gap exceeds the "
        "margin, or lies within it."
    )


def _define_metric(view: AuditView) -> str:
    """Return what a metric is, with an example."""
    if any(section.needs_predictions for section in view.sections):
        example = "such as the share of people predicted positive"
        return f"A number that measures the predictions for a group, {example}."
    if view.audit.units == "rows":
        for section in view.sections:
            if not any(one.row.is_distance for one in section.comparisons):
                return f"A number that is computed in each group, such as its {section.metric}."
        return "A number that measures how much the distributions of two groups differ."
    if view.audit.units == "queries":
        example = "such as how many of their first ten items are relevant"
        return f"A number that measures the ranked lists of a group, {example}."
    example = "such as the share of them among the first ten"
    return f"A number that measures the places of a group's items in ranked lists, {example}."


def _describe_lists(view: AuditView) -> Markup:
    """Return what the rows of ranked lists are, and what is compared in them."""
    each = "Each" if view.audit.units == "queries" else "In rankings, each"
    text = f"{each} query has one value: groups are compared in their means over queries."
    if view.audit.units == "items":
        results = [row.result for row in view.audit.rows if row.result is not None]
        counts = sorted({int(one.counts[one.groups[0]]["queries"]) for one in results})
        text = "Items are compared with items of the same list."
        if counts:
            least = f"{counts[0]:,} to " if len(counts) > 1 else ""
            rest = f"{least}{count_units(counts[-1], 'queries')} with items of both groups"
            text += f" The comparisons rest on {rest}."
    head = Markup("Rows of the data are items, in one ranked list for each query{}. ")
    return head.format(name_setting(view.audit.settings["query"])) + text


def _describe_distances(settings: Mapping[str, Any]) -> Markup:
    """Return what distributions are of, and among which rows they are compared."""
    columns = {one: name_setting(settings[one]) for one in settings["distances_of"]}
    values, called = ("y_score", "scores") if "y_score" in columns else ("y_pred", "predictions")
    text = Markup("A distance compares the groups in the whole distribution of their {}{}").format(
        called, columns[values]
    )
    if "y_true" in columns:
        given = Markup("; given the label, among rows with the same label{}")
        text += given.format(columns["y_true"])
    return text + Markup(".")


def _count_sets(view: AuditView) -> str:
    """Return how many sets the comparisons rest on, and that others were left out."""
    results = [row.result for row in view.audit.rows if row.result is not None]
    counts = sorted({int(one.counts[one.groups[0]]["sets"]) for one in results})
    if not counts:
        return ""
    text = f"The comparisons rest on {format_count(counts[0], 'set')}"
    if len(counts) > 1:
        text = f"The comparisons rest on {counts[0]:,} to {format_count(counts[-1], 'set')}"
    if any("left out" in note for one in results for note in one.notes):
        return f"{text}; sets without rows of both groups were left out (see the notes)."
    return f"{text}; no set was left out."


def name_setting(value: object) -> Markup:
    """Return the names of columns in brackets; nothing for values without a name."""
    names = list(value) if isinstance(value, Mapping) else value
    if value is None or (isinstance(value, str) and _UNNAMED.fullmatch(value)):
        return Markup("")
    return Markup(" ({})").format(mark_name(_join_value(names)))


def _name_reference(reference: Any, attributes: Sequence[str]) -> Markup:
    if isinstance(reference, Mapping):
        parts = (
            Markup("{} for {}").format(
                mark_name(_join_value(reference[attribute]))
                if attribute in reference
                else "the largest group",
                mark_name(attribute),
            )
            for attribute in attributes
        )
        return Markup("The reference is {}.").format(Markup(", ").join(parts))
    name = "the largest group" if reference is None else mark_name(_join_value(reference))
    if reference in {"best", "worst"}:  # a group of this name would be in a mapping
        name = f"the group with the {reference} value of each metric"
    return Markup("The reference is {}.").format(name)


def define_positives(view: AuditView) -> dict[str, Markup]:
    """Return which rows are predicted positive, and which are positive, where these are used."""
    settings, found = view.audit.settings, dict[str, Markup]()
    cut, label = settings.get("threshold"), settings.get("pos_label")
    label = _join_value(1 if label is None else label)
    if cut is not None:
        score = _name_column("a score", settings.get("y_score"))
        found["Predicted positive"] = Markup("{} of at least {}").format(score, f"{cut:.10g}")
    elif any(section.needs_predictions for section in view.sections):
        predicted = _describe_label("a prediction", settings.get("y_pred"), label)
        found["Predicted positive"] = predicted
    if any(one.positives is not None for one in view.audit.groups):
        found["Positive"] = _describe_label("a true label", settings.get("y_true"), label)
    return found


def _define_positives(view: AuditView) -> list[Markup]:
    found = define_positives(view)
    parts = [
        Markup("{}: {}").format(name.lower() if i else name, text)
        for i, (name, text) in enumerate(found.items())
    ]
    return [Markup("; ").join(parts) + Markup(".")] if parts else []


def _describe_label(default: str, column: str | None, label: str) -> Markup:
    link = "of" if column is None else "="
    return Markup("{} {} {}").format(_name_column(default, column), link, mark_name(label))


def _name_column(default: str, column: str | None) -> Markup:
    return escape(default) if column is None else mark_name(_join_value(column))


def describe_ratio_rule(view: AuditView) -> str:
    """Return what the verdicts on ratios mean; "" if there are none."""
    if not view.has_ratios:
        return ""
    adjusted = ", adjusted for the number of ratios" if view.audit.adjust is not None else ""
    return (
        "Each ratio stands beside its bound, as estimated, with what the tests show. A ratio keeps "
        "to its bound (met) if it is shown to lie between the bound and the bound's "
        "inverse, and breaks it (not met) if it is shown to lie outside. These tests have the same "
        f"level{adjusted}."
    )


def describe_error_rates(view: AuditView) -> str:
    """Return the error rate that the audit controls, and its method."""
    audit = view.audit
    level = format_level(audit.alpha)
    if audit.adjust is None:
        text = f"Each test by itself finds a disparity by chance at most {level} of the time."
        if view.has_margins:
            text += f" Each calls a gap beyond the margin equivalent at most {level} of the time."
        return text
    method, error_rate = _ADJUSTMENTS[audit.adjust]
    if audit.n_hypotheses == 0:
        return "No hypothesis was tested: no comparison could be judged."
    text = (
        f"The audit tests {format_count(audit.n_hypotheses, 'hypothesis', 'hypotheses')}. Its "
        f"p-values are adjusted by {method}, which keeps the {error_rate} at {level} or below."
    )
    if audit.families:
        numbers = join_words(f"{format_name(one)}: {n:,}" for one, n in audit.families.items())
        text += (
            f" Each attribute is a family of its own ({numbers}): this bound holds for each "
            "attribute, and not for all of them together."
        )
    if view.has_margins:
        both = format_level(min(2 * audit.alpha, 1.0))
        text += (
            " The same bound holds for gaps that are wrongly called equivalent; for both kinds of "
            f"error together it is {both}."
        )
    return text


def _join_value(value: object) -> str:
    if isinstance(value, (list, tuple)):
        return join_words(map(format_name, value))
    return format_name(value)


@dataclass(frozen=True, slots=True)
class TestDescription:
    """A test in sentences, and the metrics it was used for."""

    metrics: str
    scheme: str
    variance: str
    draws: str
    validity: str
    code: str


def describe_tests(view: AuditView) -> list[TestDescription]:
    """Return every test that was used, once."""
    used: dict[tuple[str, ...], list[tuple[str, PermutationTestResult]]] = {}
    for section in view.sections:
        for comparison in section.comparisons:
            if (result := comparison.row.result) is not None:
                validity = _generalize(result.validity, result.metric)
                key = str(result.scheme), str(result.variance), validity
                used.setdefault(key, []).append((section.metric, result))
    is_stratified = view.audit.is_stratified
    return [_describe_test(results, is_stratified=is_stratified) for results in used.values()]


def _generalize(validity: str, metric: str) -> str:
    """Return a sentence about one metric as a sentence about any metric."""
    return validity.replace(f"equal {metric};", "equal metric;")


def _describe_test(
    results: list[tuple[str, PermutationTestResult]], *, is_stratified: bool
) -> TestDescription:
    metrics = list(dict.fromkeys(metric for metric, _ in results))
    one = results[0][1]
    is_clustered = "clusters" in one.counts[one.groups[0]]
    n_exact = sum(result.exact for _, result in results)
    if one.scheme == Scheme.UNCONDITIONAL and one.exact:
        draws = (
            "All tables were counted, at the rate that makes the p-value largest, in an interval "
            "that almost surely contains the common rate (Berger and Boos, 1994)."
        )
    elif n_exact == len(results):
        draws = "All permutations were counted: the p-value has no Monte Carlo error."
    elif one.n_resamples == 0:
        draws = "No permutations were drawn: the p-value is that of the normal limit."
    else:
        draws = _describe_draws([result for _, result in results if not result.exact])
        if n_exact:
            draws = f"All permutations were counted, or if too many, random ones. {draws}"
    is_matched = "sets" in one.counts[one.groups[0]]
    scheme = _SCHEMES[one.scheme]
    if is_clustered:
        scheme = _SCHEMES["matched clusters" if is_matched else "clusters"]
    units = "queries" if "queries" in one.counts[one.groups[0]] else "rows"
    within = " within each stratum," if is_stratified else ""
    return TestDescription(
        metrics=join_words(metrics),
        scheme=scheme.format(units=units, within=within),
        variance=_VARIANCES.get(one.variance, str(one.variance)),
        draws=draws,
        validity=one.validity if len(metrics) == 1 else _generalize(one.validity, one.metric),
        code=f"scheme={one.scheme!r}, variance={one.variance!r}",
    )


def _describe_draws(results: Sequence[PermutationTestResult]) -> str:
    """Return how many permutations were drawn, and why no more."""
    numbers = sorted({result.n_resamples for result in results})
    were = f"{numbers[0]:,} random permutations were drawn"
    if len(numbers) > 1:
        were = f"{numbers[0]:,} to {numbers[-1]:,} random permutations were drawn"
    if any(result.stopped_early for result in results):
        has_tails = any(result.alternative == "two-sided" for result in results)
        tails = " (in each tail of a two-sided test)" if has_tails else ""
        return (
            f"{were}: drawing stopped where {MIN_EXTREME_DRAWS} of them were at least as extreme "
            f"as the data{tails}, because more would hardly change the p-value."
        )
    return f"{were}."


def _describe_omnibus_validity(view: AuditView) -> dict[str, str]:
    """Return the validity of the tests of all groups at once, by metrics."""
    metrics: dict[str, dict[str, None]] = {}
    for row in view.audit.omnibus:
        if row.result is not None:
            validity = _generalize(row.result.validity, row.result.metric)
            metrics.setdefault(validity, {})[format_metric(row.metric)] = None
    return {join_words(names): validity for validity, names in metrics.items()}


@dataclass(frozen=True, slots=True)
class ResultNote:
    """A note of one comparison or more."""

    text: str
    n: int
    example: ComparisonView
    section: Section


def collect_notes(view: AuditView) -> list[ResultNote]:
    """Return every note of the results once, with the number of comparisons that have it.

    Those that are notes of the whole audit are left out.
    """
    places_by_note: dict[str, list[tuple[Section, ComparisonView]]] = {}
    for section in view.sections:
        for comparison in section.comparisons:
            change = comparison.row.change
            results = comparison.row.result, None if change is None else change.result
            notes = (note for result in results if result is not None for note in result.notes)
            for note in dict.fromkeys(one for one in notes if one not in view.audit.notes):
                places_by_note.setdefault(note, []).append((section, comparison))
    return [
        ResultNote(text, len(places), example=places[0][1], section=places[0][0])
        for text, places in places_by_note.items()
    ]


@dataclass(frozen=True, slots=True)
class DetectableGaps:
    """The detectable gaps of the inconclusive comparisons of one attribute and metric."""

    section: Section
    comparisons: list[ComparisonView]

    @property
    def smallest(self) -> ComparisonView:
        """The comparison with the smallest detectable gap."""
        return min(self.comparisons, key=_detectable_gap)

    @property
    def largest(self) -> ComparisonView:
        """The comparison with the largest detectable gap."""
        return max(self.comparisons, key=_detectable_gap)

    @property
    def n_above_margin(self) -> int | None:
        """Number of comparisons whose detectable gap is above the margin; None without a margin."""
        margin = self.smallest.row.margin
        if margin is None:
            return None
        return sum(_detectable_gap(one) > margin for one in self.comparisons)


def _detectable_gap(comparison: ComparisonView) -> float:
    return comparison.row.detectable_gap or 0.0


def summarize_power(view: AuditView) -> list[DetectableGaps]:
    """Return the detectable gaps of all inconclusive comparisons."""
    gaps = []
    for section in view.sections:
        inconclusive = section.with_verdict("inconclusive")
        if some := [one for one in inconclusive if one.row.detectable_gap is not None]:
            gaps.append(DetectableGaps(section, some))
    return gaps


def collect_facts(view: AuditView) -> dict[str, object]:
    """Return the other facts on metrics, groups and tests that the template shows."""
    audit = view.audit
    groups = [group for groups in view.groups.values() for group in groups]
    results = [row.result for row in audit.rows if row.result and not row.is_distance]
    # not those that only point to other notes: the page has all of them
    notes = (one for one in audit.notes if not any(place in one for place in PLACES_OF_NOTES))
    return {
        "metrics": {one.metric: (one.meaning, one.reading) for one in view.sections},
        "has_base_rates": any(one.positives is not None for one in audit.groups),
        "whole_names": [(one.name, one.whole_name) for one in groups if one.whole_name],
        "without_omnibus": _join_names(_list_without_omnibus(view)),
        "omnibus_validity": _describe_omnibus_validity(view),
        "has_metrics": bool(results),
        "has_rates": any(section.needs_predictions for section in view.sections),
        "is_studentized": all(result.variance is not None for result in results),
        "chances": _describe_chances(view),
        "audit_notes": [*find_look_alikes(audit.groups), *notes],
        "n_rows": view.n_rows,
        "n_clusters": view.n_clusters,
        "has_clusters": any(one.clusters for one in audit.groups),
        "other_ways": _describe_other_ways(view),
        "metric_meaning": _define_metric(view),
        "labels": name_labels(view),
        "names_nulls": any("null" in row.result.validity for row in audit.rows if row.result),
    }


def name_labels(view: AuditView) -> str:
    """Return "the labels are", or what takes their place in rankings; "" if none are used."""
    if "y_true" not in find_used_columns(view.audit):
        return ""
    return "the labels are" if view.audit.units == "rows" else "the relevance is"


def _describe_other_ways(view: AuditView) -> str:
    """Return how groups may differ apart from the metric."""
    if view.audit.units != "rows":
        return "in how much they vary"
    has_base_rates = any(one.positives is not None for one in view.audit.groups)
    return f"in their {'base rates' if has_base_rates else 'outcomes'}"


def _list_without_omnibus(view: AuditView) -> list[str]:
    """Return where attributes of more than two groups have no test of all groups at once."""
    several = [one for one in view.sections if len(view.groups[one.attribute]) > 2]
    return [f"{one.attribute} · {one.metric}" for one in several if one.lacks_omnibus]


def _describe_chances(view: AuditView) -> str:
    """Return which gaps chance makes, if not all tests are permutation tests; else ""."""
    metrics: dict[bool, dict[str, None]] = {}
    for section in view.sections:
        for comparison in section.comparisons:
            if (result := comparison.row.result) and not comparison.row.is_distance:
                is_counted = result.scheme == Scheme.UNCONDITIONAL
                metrics.setdefault(is_counted, {})[section.metric] = None
    if True not in metrics:
        return ""
    text = (
        f"those of the tables that two groups with one rate can have ({join_words(metrics[True])})"
    )
    if False in metrics:
        text += (
            f", and those of permutations, in which {view.exchanged} exchange their group labels "
            f"({join_words(metrics[False])})"
        )
    return text


def list_settings(
    view: AuditView, provenance: Mapping[str, object], defaults: Mapping[str, object]
) -> dict[str, str]:
    """Return the settings that are needed to run the audit again: those that are no defaults."""
    audit = view.audit
    settings = {
        **provenance,
        "seed (rng)": audit.seed,
        "compare": audit.compare,
        "adjust": audit.adjust,
        "alpha": audit.alpha,
        "min_group_size": audit.min_group_size,
        "group_size_by": audit.group_size_by,
        **audit.settings,
    }
    return {
        str(name): _format_setting(value)
        for name, value in settings.items()
        if value is not None and (name not in defaults or value != defaults[name])
    }


def _format_setting(value: object) -> str:
    if value is None:
        return "none"
    if isinstance(value, (list, tuple)):
        return ", ".join(map(_format_setting, value))
    if isinstance(value, dict):
        parts = (f"{_format_setting(key)}: {_format_setting(one)}" for key, one in value.items())
        return ", ".join(parts)
    return format_name(value, sys.maxsize)


def list_versions() -> str:
    """Return the versions that the numbers may depend on."""
    versions = [f"Python {platform.python_version()}"]
    for package in _PACKAGES:
        try:
            versions.append(f"{package} {version(package)}")
        except PackageNotFoundError:  # not installed, only on the path
            continue
    return ", ".join(versions)
