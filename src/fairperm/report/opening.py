"""The beginning of a report: who, when and what, and the case in a few lines."""

from __future__ import annotations

import math
from enum import Enum, auto
from typing import TYPE_CHECKING

from markupsafe import Markup, escape

from fairperm._utils.formatting import (
    count_units,
    format_beside,
    format_count,
    format_level,
    format_percent,
    state_pvalue,
)
from fairperm.hypothesis_tests.results.answers.audits import unit_of_row
from fairperm.hypothesis_tests.results.audits import keeps_ratio
from fairperm.hypothesis_tests.results.text import state_used_rows
from fairperm.report.plain_words import find_case
from fairperm.report.rerun import find_used_columns
from fairperm.report.sentences import (
    define_positives,
    describe_comparison,
    describe_values,
    join_marked,
    join_sections,
    mark_name,
    name_labels,
    name_setting,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fairperm.report.presentation import Presentation
    from fairperm.report.view import AuditView, ComparisonView, Section

_MAX_CASES = 3
_FOUR_FIFTHS = 0.8
_HYPOTHESIS = {  # a metric and its complement say the same
    "false_negative_rate": "true_positive_rate",
    "false_positive_rate": "true_negative_rate",
    "false_discovery_rate": "positive_predictive_value",
    "false_omission_rate": "negative_predictive_value",
    "error_rate": "accuracy",
}


def list_facts(
    view: AuditView, presentation: Presentation, provenance: Mapping[str, object], written: str
) -> dict[str, Markup]:
    """Return who wrote the report, when, on which data, and what is called positive."""
    facts = {"Author": mark_name(presentation.author)} if presentation.author else {}
    facts["Date"] = escape(written)
    file = provenance.get("file")
    people = _count_people(view)
    facts["Data"] = Markup("{}: {}").format(mark_name(str(file)), people) if file else people
    if view.audit.is_stratified:
        text = Markup("Only rows of the same stratum{}: each gap is a mean over the strata.")
        strata = name_setting(view.audit.settings["control_features"])
        facts["Compared"] = text.format(strata)
    definitions = define_positives(view)
    if presentation.positive_means:
        means = Markup("people who {}").format(mark_name(presentation.positive_means))
        label = definitions.get("Positive")
        definitions["Positive"] = Markup("{}, that is, {}").format(label, means) if label else means
    return facts | definitions


def _count_people(view: AuditView) -> Markup:
    rows = view.n_rows
    if not view.audit.has_plain_rows:
        text = count_units(rows, view.audit.units)
    else:
        text = f"{format_count(rows, 'person', 'people')} (one row each)"
    return escape(f"{text}. {state_used_rows(view.audit)}")


def summarize_case(view: AuditView, presentation: Presentation) -> list[Markup]:
    """Return at most six lines: all disparities, or what there is, four fifths, the limits."""
    chosen: dict[tuple[str, str], tuple[Section, ComparisonView]] = {}
    for weight in _Weight:
        for section in view.sections:
            if some := [one for one in section.comparisons if _weigh(one, view) == weight]:
                widest = max(some, key=lambda one: abs(one.row.difference or 0.0))
                same = _HYPOTHESIS.get(section.name, section.name or section.metric)
                chosen.setdefault((section.attribute, same), (section, widest))
    cases = [*chosen.values()]
    lines = [
        _describe_case(section, one, view, presentation) + _name_others(section, one)
        for section, one in cases[:_MAX_CASES]
    ]
    if more := [one for one, _ in cases[_MAX_CASES:] if one.with_verdict("disparity")]:
        lines.append(Markup("Disparities were also found in {}.").format(join_sections(more)))
    if rule := _apply_four_fifths(view):
        lines.append(rule)
    return [*lines, _state_limits(view)]


def _name_others(section: Section, told: ComparisonView) -> Markup:
    """Return the other disparities in a metric, each the higher value first."""
    others = [one for one in section.with_verdict("disparity") if one is not told]
    if told.verdict != "disparity" or not others:
        return Markup("")
    names = join_marked([describe_values(one) for one in others])
    return Markup(" Also a disparity: {}.").format(names)


def _state_limits(view: AuditView) -> Markup:
    labels = name_labels(view)
    if labels:
        labels = f", whether {labels} right,"
    return Markup(
        "The audit shows differences between groups. It does not show their causes{} or whether a "
        "difference is lawful."
    ).format(labels)


def _are_decisions(view: AuditView) -> bool:
    """Whether there are neither labels nor scores that a model could have made predictions of."""
    used = find_used_columns(view.audit)
    return "y_true" not in used and "y_score" not in used


class _Weight(Enum):
    """What a comparison says, the weightiest first."""

    DISPARITY = auto()
    GAP = auto()  # that is shown, and may or may not exceed the margin
    EQUIVALENT = auto()
    UNDECIDED = auto()


def _weigh(comparison: ComparisonView, view: AuditView) -> _Weight | None:
    row = comparison.row
    if row.result is None or row.verdict == "too small":
        return None
    if row.verdict == "inconclusive":
        is_shown = row.adjusted_pvalue is not None and row.adjusted_pvalue <= view.audit.alpha
        return _Weight.GAP if is_shown else _Weight.UNDECIDED
    return _Weight.DISPARITY if row.verdict == "disparity" else _Weight.EQUIVALENT


def _describe_case(
    section: Section, comparison: ComparisonView, view: AuditView, presentation: Presentation
) -> Markup:
    """Return whom the model treats how, how many people that makes, and the verdict."""
    row, result = comparison.row, comparison.row.result
    case = find_case(
        section.name,
        presentation.positive_means,
        presentation.negative_means,
        are_decisions=_are_decisions(view),
    )
    is_plain = view.audit.has_plain_rows
    if case is None or result is None or result.n_strata > 1 or not is_plain:
        head = Markup("{}: ").format(mark_name(f"{section.metric[:1].upper()}{section.metric[1:]}"))
        return head + describe_comparison(comparison) + _state_verdict(comparison, view)
    names = [mark_name(one) for one in (comparison.first, comparison.second)]
    high, low = (0, 1) if row.values[0] >= row.values[1] else (1, 0)
    # names that were given are nouns, such as "women"; values of columns hardly are
    are_nouns = all(view.names.is_given(row.attribute, group) for group in row.groups)
    sentence = Markup("{} {} of {} and {} of {}{}").format(
        case.text,
        *(format_percent(row.values[high]), names[high]),
        *(format_percent(row.values[low]), names[low]),
        "" if are_nouns else " people",
    )
    worse, better = (low, high) if case.is_favourable else (high, low)
    n = abs(row.values[0] - row.values[1]) * result.counts[row.groups[worse]]["denominator"]
    is_shown = _weigh(comparison, view) in {_Weight.DISPARITY, _Weight.GAP}
    if is_shown and round(n):
        sentence += Markup("; at the rate of {}, about {:,} {} {}{}").format(
            names[better],
            round(n),
            "more" if case.is_favourable else "fewer",
            names[worse],
            "" if are_nouns else " person" if round(n) == 1 else " people",
        )
    return sentence + Markup(".") + _state_verdict(comparison, view)


def _state_verdict(comparison: ComparisonView, view: AuditView) -> Markup:
    row = comparison.row
    p = state_pvalue(row.adjusted_pvalue, view.p_name)
    size = unit_of_row(row).size(row.margin)
    if row.verdict == "disparity":
        if row.margin is not None:
            p = state_pvalue(row.adjusted_exceedance_pvalue, view.p_name)
            return Markup(" The gap exceeds the margin of {} ({}).").format(size, p)
        return Markup(" Chance alone does not explain this gap ({}).").format(p)
    if row.verdict == "equivalent":
        return Markup(" The gap is within the margin of {}.").format(size)
    undecided = "whether there is a real gap"
    if row.margin is not None:
        undecided = f"whether the gap exceeds the margin of {size}"
    if _weigh(comparison, view) is _Weight.GAP:
        text = " Chance alone does not explain this gap ({}), but these data do not decide {}."
        return Markup(text).format(p, undecided)  # noqa: S704
    return Markup(" These data do not decide {}.").format(undecided)


def _apply_four_fifths(view: AuditView) -> Markup | None:
    """Return the smallest ratio of selection rates of each attribute, beside four fifths."""
    sentences = []
    for section in view.sections:
        judged = [one for one in section.comparisons if _has_ratio(one)]
        if section.name == "selection_rate" and judged:
            least = min(judged, key=lambda one: _order_ratio(one.row.ratio))
            sentences.append(_compare_with_four_fifths(section, least))
    if not sentences:
        return None
    rule = Markup(
        "Four-fifths rule (a positive prediction being the favourable one, no group should be "
        "selected at less than 0.8 times the rate of another): "
    )
    if view.audit.compare != "pairs" and any(len(groups) > 2 for groups in view.groups.values()):
        sentences.append(Markup("Groups that were not compared may have smaller ratios."))
    return rule + Markup(" ").join(sentences)


def _has_ratio(comparison: ComparisonView) -> bool:
    row = comparison.row
    numbers = (math.nan if row.ratio is None else row.ratio, *(row.ratio_interval or (math.nan,)))
    return row.verdict != "too small" and not any(map(math.isnan, numbers))


def _order_ratio(ratio: float | None) -> float:
    """Return the ratio of the smaller to the larger value."""
    return 1.0 if ratio is None else min(ratio, _invert(ratio))


def _invert(ratio: float) -> float:
    return 1 / ratio if ratio else math.inf


def _compare_with_four_fifths(section: Section, comparison: ComparisonView) -> Markup:
    row, ratio = comparison.row, comparison.row.ratio
    ratio, (low, high) = 1.0 if ratio is None else ratio, row.ratio_interval or (0.0, 0.0)
    names = [mark_name(one) for one in (comparison.first, comparison.second)]
    if ratio > 1:
        ratio, low, high, names = _invert(ratio), _invert(high), _invert(low), names[::-1]
    number = format_beside(ratio, _FOUR_FIFTHS)[0]
    head = Markup("{}: {}’s rate is {} times that of {}").format(
        mark_name(section.attribute), names[0], number, names[1]
    )
    result, verdict = row.result, row.ratio_verdict
    if verdict is not None:
        texts = {
            "met": "which keeps to the bound of {:g} beyond chance",
            "not met": "which breaks the bound of {:g} beyond chance",
            "undecided": "and whether the bound of {:g} is kept is undecided",
        }
        return head + Markup(", {}.").format(texts[verdict].format(row.ratio_bound))
    level = "" if result is None else f"{format_level(result.confidence_level)} "
    ends = " to ".join(format_beside(one, _FOUR_FIFTHS)[0] for one in (low, high))
    is_kept = keeps_ratio(ratio, _FOUR_FIFTHS)
    is_clear = low >= _FOUR_FIFTHS if is_kept else high < _FOUR_FIFTHS
    side = "at least 0.8" if is_kept else "below 0.8"
    claim = f"clearly {side}" if is_clear else f"{side} here, but the true ratio may not be"
    return head + Markup(" ({}interval {}), {}.").format(level, ends, claim)
