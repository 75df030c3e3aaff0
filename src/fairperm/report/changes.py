"""What a report says of a new model: its verdicts in words, how they were given, and the charts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fairperm._utils.formatting import format_count, format_level, join_words
from fairperm.hypothesis_tests.margins.paired_rates import MIN_CHANGED_ROWS
from fairperm.hypothesis_tests.results.answers.audits import unit_of_row
from fairperm.hypothesis_tests.results.audits import AuditRow
from fairperm.hypothesis_tests.results.changes import CHANGE_VERDICTS
from fairperm.report.view import AuditView, ComparisonView, Section

_MEANINGS = {
    "closed": "the absolute gap fell significantly, and is now shown to be within the margin",
    "narrowed": "the absolute gap fell significantly",
    "unchanged within margin": "shown to change by less than the margin",
    "widened": "the absolute gap rose significantly",
    "changed": "changed by more than chance explains; whether it is smaller or larger is undecided",
    "inconclusive": "not decided; chance could explain the change",
    "too small": "not judged: too few rows, or the metric has no value",
}
_ERRORS = {
    None: "Each of these claims is wrong for a single gap at most {level} of the time",
    "holm": "The probability that any gap is wrongly called narrowed is at most {level}",
    "bh": "The expected share of wrong ones among the gaps called narrowed is at most {level}",
}


@dataclass(frozen=True, slots=True)
class ChangesPart:
    """The changes of an audit of two models."""

    tally: Mapping[str, int]
    sections: Sequence[Section]
    method: Sequence[str]

    @classmethod
    def of(cls, view: AuditView) -> ChangesPart | None:
        """Return the changes; None for an audit of one model."""
        verdicts = [one.row.change.verdict for one in view.comparisons if one.row.change]
        if not verdicts:
            return None
        counts = Counter(verdicts)
        tally = {one: counts[one] for one in CHANGE_VERDICTS if counts[one]}
        return cls(tally, view.sections, tuple(_describe_method(view)))

    @property
    def summary(self) -> str:
        """How many gaps have each verdict."""
        numbers = join_words(f"{n:,} {verdict}" for verdict, n in self.tally.items())
        return f"{format_count(sum(self.tally.values()), 'gap')}: {numbers}."

    @property
    def meanings(self) -> dict[str, str]:
        """What the verdicts mean that occur."""
        return {verdict: _MEANINGS[verdict] for verdict in self.tally}


def write_change(row: AuditRow) -> dict[str, str]:
    """Return the texts of a change in the unit of its metric, gaps of rates in points."""
    change = row.change
    if change is None or change.result is None:
        return {}
    result, unit = change.result, unit_of_row(row)
    first, second = (
        ", ".join(f"{unit.value(one.old)} → {unit.value(one.new)}" for one in _parts(several))
        for several in (result.group_changes[group] for group in result.groups)
    )
    gaps = " → ".join(", ".join(map(unit.signed, _parts(gap))) for gap in change.gaps)
    points = " points" if gaps.endswith(" points") else ""
    has_sign = not result.is_joint
    write = unit.signed if has_sign else unit.size
    return {
        "first": first,
        "second": second,
        "gaps": f"{gaps.replace(' points', '')}{points}",
        "change": write(change.difference),
        "interval": unit.interval(
            change.adjusted_interval or change.confidence_interval, signed=has_sign
        ),
    }


def _parts(value: Any) -> Iterable[Any]:
    """Return the parts of a joint metric's value, or the value alone."""
    return value.values() if isinstance(value, Mapping) else [value]


def list_slopes(section: Section, view: AuditView) -> dict[str, tuple[float, float]]:
    """Return the old and the new value of every group of a section, by its name on the page."""
    known = {(one.attribute, one.group) for one in view.audit.groups}
    found: dict[str, tuple[float, float]] = {}
    for one in section.comparisons:
        result = None if one.row.change is None else one.row.change.result
        if result is None or result.is_joint:
            continue
        for group, name in zip(one.row.groups, (one.first, one.second), strict=True):
            if (one.row.attribute, group) in known:  # not all others together
                change = result.group_changes[group]
                found[name] = change.old, change.new
    return found


def _describe_method(view: AuditView) -> list[str]:
    audit = view.audit
    method = "bh" if audit.adjust == "by" else audit.adjust
    error = _ERRORS[method].format(level=format_level(audit.alpha))
    same = "" if method is None else ", and the same bound holds for each other verdict"
    tested = [one.row.change.result for one in view.comparisons if one.row.change]
    drawn = {one.n_resamples for one in tested if one is not None and not one.exact}
    how = "their normal limit" if drawn == {0} else "permutations of group labels"
    return [
        "Both models predict the same rows, and each row is compared with itself: the change is "
        "the gap with the new model minus the gap with the old one, over the standard error of "
        f"the rows’ differences, compared with {how}.",
        "A gap is called smaller or larger if both its change and the sum of the two gaps are "
        "shown to differ from zero: gaps may change sides.",
        *_describe_margin(view),
        f"{error}{same}.",
    ]


def _describe_margin(view: AuditView) -> list[str]:
    """Return how changes are tested at a margin, if there is one."""
    if all(one.row.margin is None for one in view.comparisons):
        return []
    return [
        "A gap is called unchanged within the margin if both ends of the margin are rejected. For "
        "rates whose denominator the models share, the errors there are those of score intervals "
        "of paired rates (Tango, 1998), joined by MOVER. Other changes are tested only if in each "
        f"group at least {MIN_CHANGED_ROWS} rows show how they vary."
    ]


def count_verdicts(comparisons: Sequence[ComparisonView]) -> str:
    """Return the verdicts on the changes of a section, with their numbers if there are several."""
    counts = Counter(one.row.change.verdict for one in comparisons if one.row.change)
    if sum(counts.values()) == 1:
        return next(iter(counts))
    return ", ".join(f"{counts[one]:,} {one}" for one in CHANGE_VERDICTS if counts[one])
