"""What was asked and found, in sentences. Names from data are escaped and keep their direction."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

from fairperm.report import names as words
from fairperm.report.view import WEIGHTIEST_FIRST

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fairperm.report.view import Line, Section, View

_NAME = Markup("<bdi>{}</bdi>")
_COMPARED = {
    "pairs": "every group with every other group",
    "reference": "every group with a reference group",
    "rest": "every group with all other groups together",
}
_SIDES = {"greater": "above", "less": "below"}
_ADJUSTMENTS = {
    "holm": "Holm's method, which bounds the chance of even one false disparity",
    "maxt": "the max-T method, which bounds the chance of even one false disparity",
    "bh": "the Benjamini–Hochberg method, which bounds the expected share of false disparities",
    "by": "the Benjamini–Yekutieli method, which bounds the expected share of false disparities",
}
_MOST_NAMED = 12


def name(text: str) -> Markup:
    """Return a name from data, isolated: one written from right to left turns nothing around."""
    return _NAME.format(text)


def names(texts: Iterable[str]) -> Markup:
    """Return "a, b and c"."""
    texts = list(texts)
    marked = [name(text) for text in texts[:_MOST_NAMED]]
    if len(texts) > _MOST_NAMED:
        marked.append(Markup("{} more").format(len(texts) - _MOST_NAMED))
    if len(marked) < 2:
        return Markup("").join(marked)
    return Markup("{} and {}").format(Markup(", ").join(marked[:-1]), marked[-1])


def lede(view: View) -> str:
    """Return the whole audit in one sentence or two."""
    found, judged = view.tally["disparity"], view.n_judged
    if not judged:
        return "No comparison could be judged: the groups are too small."
    if found:
        told = [f"{found:,} of {_judged(judged)} {'shows' if found == 1 else 'show'} a disparity."]
    elif view.tally["inconclusive"]:
        told = [
            f"None of {_judged(judged)} shows a disparity. That does not show that there is none."
        ]
    else:
        return (
            f"In all of {words.plural(judged, 'judged comparison')} the gap is within the margin."
        )
    for verdict, text in (("equivalent", "within the margin"), ("inconclusive", "inconclusive")):
        if n := view.tally[verdict]:
            told.append(f"{n:,} {_are(n)} {text}.")
    if n := view.tally["too small"]:
        told.append(f"{n:,} more could not be judged.")
    return " ".join(told)


def verdict_meanings(view: View) -> dict[str, str]:
    """Return what each verdict says."""
    margin = any(row.margin is not None for row in view.audit.rows)
    beyond = ", and it is beyond the margin" if margin else ""
    within = (
        "The gap was shown to lie within the margin."
        if margin
        else "Can only be found if a margin is set. None was."
    )
    return {
        "disparity": f"The gap is larger than chance explains{beyond}.",
        "equivalent": within,
        "inconclusive": "The data do not settle it. There may be a gap that matters, or none.",
        "too small": "A group has too few rows to be judged.",
    }


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found for one attribute and metric."""

    section: Section
    verdict: str
    sentences: tuple[Markup, ...]


def findings(view: View) -> list[Finding]:
    """Return what was found for every attribute and metric: disparities first."""
    found = [_finding(section) for section in view.sections]
    return sorted(found, key=lambda one: WEIGHTIEST_FIRST.index(one.verdict))


def _finding(section: Section) -> Finding:
    disparities = section.of("disparity")
    if disparities:
        worst = max(disparities, key=lambda line: abs(line.row.difference or 0.0))
        sentences = [compared(worst), *_others(section, len(disparities))]
        return Finding(section, "disparity", tuple(sentences))
    verdict = next((one for one in ("inconclusive", "equivalent") if section.of(one)), "too small")
    return Finding(section, verdict, tuple(_undecided(section)))


def _others(section: Section, found: int) -> list[Markup]:
    if len(section.lines) == 1:
        return []
    judged = len(section.lines) - len(section.of("too small"))
    if found == 1:
        return [Markup("It is the only disparity among {}.").format(_judged(judged))]
    told = f"{found:,} disparities among {_judged(judged)}"
    return [Markup("This is the largest of {}.").format(told)]


def _undecided(section: Section) -> list[Markup]:
    counts = {one: len(section.of(one)) for one in ("inconclusive", "equivalent", "too small")}
    if len(section.lines) == 1:
        line = section.lines[0]
        seen = [] if line.row.result is None else [compared(line)]
        return [*seen, Markup("{}{}").format(line.reason[:1].upper(), line.reason[1:])]
    texts = {
        "inconclusive": "inconclusive: a gap may exist that these data do not show.",
        "equivalent": "shown to have a gap within the margin.",
        "too small": "not judged, because a group is too small.",
    }
    told = [escape(f"{_comparisons(n)} {_are(n)} {texts[one]}") for one, n in counts.items() if n]
    return [Markup("No disparity was found."), *told]


def compared(line: Line) -> Markup:
    """Return a comparison in one sentence, the higher value first."""
    row, result = line.row, line.row.result
    if result is None or row.difference is None:
        return Markup("")
    groups = [(line.first, 0), (line.second, 1)]
    gap, limits = row.difference, result.confidence_interval
    if result.is_joint:
        limited = f"{words.number(gap)} ({_level(line)} interval {words.interval(limits)})"
        return Markup("{} and {}: the larger gap of the two is {}.").format(
            name(line.first), name(line.second), limited
        )
    if gap < 0:
        groups.reverse()
        gap, limits = -gap, (-limits[1], -limits[0])
    shares = all("denominator" in result.counts[group] for group in row.groups)
    told = [_value(line, label, place, shares=shares) for label, place in groups]
    within = "within strata, a gap of" if result.n_strata > 1 else "a gap of"
    return Markup("{}, {}: {} {} ({} interval {}).").format(
        *told, within, _gap(gap, shares=shares), _level(line), _limits(limits, shares=shares)
    )


def _value(line: Line, label: str, place: int, *, shares: bool) -> Markup:
    value = line.row.values[place]
    if not shares:
        return Markup("{} {}").format(name(label), words.number(value))
    return Markup("{} {} ({})").format(name(label), words.percent(value), line.counts[place])


def _gap(gap: float, *, shares: bool) -> str:
    return f"{_points(gap)} percentage points" if shares else words.number(gap)


def _limits(limits: tuple[float, float], *, shares: bool) -> str:
    return f"{_points(limits[0])} to {_points(limits[1])}" if shares else words.interval(limits)


def _points(value: float) -> str:
    if math.isinf(value) or math.isnan(value):
        return words.number(value)
    return f"{100 * value:z.1f}".replace("-", words.MINUS)


def _level(line: Line) -> str:
    result: Any = line.row.result
    return f"{100 * result.confidence_level:g} %"


def _comparisons(n: int) -> str:
    return words.plural(n, "comparison")


def _judged(n: int) -> str:
    return words.plural(n, "judged comparison")


def _are(n: int) -> str:
    return "is" if n == 1 else "are"


def question(view: View) -> list[Markup]:
    """Return what was asked."""
    audit, settings = view.audit, view.audit.settings
    told = [
        Markup("The audit compares {} of {}, in {}.").format(
            _COMPARED.get(audit.compare, audit.compare),
            names(view.groups),
            words.plural(len({line.row.metric for line in view.lines}), "metric"),
        ),
        Markup("Each comparison asks: is the gap between the two groups larger than chance alone "
               "would make it?"),
        *_positives(view),
    ]  # fmt: skip
    if audit.compare == "reference":
        given = settings.get("reference")
        if isinstance(given, Mapping):
            chosen = [
                Markup("{} for {}").format(name(_plain(group)), name(attribute))
                for attribute, group in given.items()
            ]
            told.append(Markup("The reference is {}.").format(Markup(", ").join(chosen)))
        else:
            one = "the largest group" if given is None else name(_plain(given))
            told.append(Markup("The reference is {}.").format(one))
    margins = sorted({row.margin for row in audit.rows if row.margin is not None})
    if margins:
        largest = words.joined(f"{one:g}" for one in margins)
        told.append(
            escape(f"A gap of at most {largest} (the margin) is taken not to matter in practice.")
        )
    if (side := settings.get("alternative")) in _SIDES:
        told.append(
            escape(f"Only one direction counts: the first group {_SIDES[side]} the second.")
        )
    strata = settings.get("control_features")
    if strata is not None:
        told.append(
            Markup("Only rows that are alike in {} are compared with each other.").format(
                name(_plain(strata))
            )
        )
    return told


def _positives(view: View) -> list[Markup]:
    """Return which rows are positive and which are predicted to be, where labels are of two."""
    if all(one.positives is None for one in view.audit.groups):
        return []
    settings = view.audit.settings
    cut, label = settings.get("threshold"), settings.get("pos_label")
    label = _plain(1 if label is None else label)
    positive = _is_labelled("a true label", settings.get("y_true"), label)
    if cut is not None:
        score = _called("a score", settings.get("y_score"))
        predicted = Markup("{} of at least {}").format(score, f"{cut:.10g}")
    elif any(section.needs_predictions for section in view.sections):
        predicted = _is_labelled("a prediction", settings.get("y_pred"), label)
    else:
        return [Markup("Positive: {}.").format(positive)]
    return [Markup("Predicted positive: {}; positive: {}.").format(predicted, positive)]


def _is_labelled(unnamed: str, column: str | None, label: str) -> Markup:
    called, is_ = _called(unnamed, column), "of" if column is None else "="
    return Markup("{} {} {}").format(called, is_, name(label))


def _called(unnamed: str, column: str | None) -> Markup:
    return escape(unnamed) if column is None else name(_plain(column))


def error_rates(view: View) -> str:
    """Return which errors are bounded, and how."""
    audit = view.audit
    level = f"{100 * audit.alpha:g} %"
    if audit.adjust is None:
        return f"Each test by itself calls a disparity by chance at most {level} of the time."
    return (
        f"The audit asks {words.plural(audit.n_hypotheses, 'question')} at once. Its "
        f"p-values are adjusted for that by {_ADJUSTMENTS[audit.adjust]}, at the level {level}."
    )


def _plain(value: object) -> str:
    if isinstance(value, (list, tuple)):
        return words.joined(words.shortened(words.visible(one)) for one in value)
    return words.shortened(words.visible(value))
