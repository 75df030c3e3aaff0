"""How the audit was made: tests and their validity, power, settings."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

from fairperm.report import names as words
from fairperm.report.view import detectable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fairperm.hypothesis_tests.results.gaps import PermutationTestResult
    from fairperm.report.view import Line, Section, View

_SCHEMES = {
    "denominator": "Group labels were exchanged among the rows that the metric is taken of.",
    "within_label": "Group labels were exchanged among rows with the same true label.",
    "pooled": "Group labels were exchanged among all rows of both groups.",
}
_VARIANCES = {
    "score": "Each gap was divided by its standard error, from the rate of both groups together.",
    "wald": "Each gap was divided by its standard error, from each group's own rate.",
    "delta": "Each gap was divided by its standard error, found by the delta method.",
    "delong": "Each gap was divided by its standard error, found by DeLong's method.",
    "bootstrap": "Each gap was divided by its standard error, found by resampling rows.",
    "fast_bootstrap": "Each gap was divided by its standard error, found by resampling rows.",
    None: "The gaps were not divided by a standard error.",
}
_PACKAGES = ("fairperm", "numpy", "scipy", "numba")


@dataclass(frozen=True, slots=True)
class Method:
    """A test, and the metrics it was used for."""

    metrics: str
    scheme: str
    variance: str
    draws: str
    validity: str
    code: str


def methods(view: View) -> list[Method]:
    """Return every test that was used, once."""
    used: dict[tuple[str, ...], list[tuple[str, PermutationTestResult]]] = {}
    for section in view.sections:
        for line in section.lines:
            if line.row.result is not None:
                of_key = used.setdefault(_key(line.row.result), [])
                of_key.append((section.metric, line.row.result))
    return [_method(results) for results in used.values()]


def _key(result: PermutationTestResult) -> tuple[str, ...]:
    return str(result.scheme), str(result.variance), _validity(result.validity, result.metric)


def _validity(text: str, metric: str) -> str:
    """Return a sentence about one metric as one about any."""
    return text.replace(f"equal {metric};", "equal metric;")


def _method(results: list[tuple[str, PermutationTestResult]]) -> Method:
    metrics = list(dict.fromkeys(metric for metric, _ in results))
    one = results[0][1]
    exact = sum(result.exact for _, result in results)
    drawn = f"{one.n_resamples:,} random exchanges were drawn"
    if exact == len(results):
        draws = "Every possible exchange was counted, so the p-value has no random error."
    elif exact:
        draws = f"Every possible exchange was counted, or, if there were too many, {drawn}."
    elif one.n_resamples:
        draws = f"{drawn}."
    else:
        draws = "Nothing was exchanged: the p-value is that of the normal limit."
    return Method(
        metrics=words.joined(metrics),
        scheme=_SCHEMES.get(one.scheme, one.scheme),
        variance=_VARIANCES.get(one.variance, str(one.variance)),
        draws=draws,
        validity=one.validity if len(metrics) == 1 else _validity(one.validity, one.metric),
        code=f"scheme={one.scheme!r}, variance={one.variance!r}",
    )


def omnibus_validity(view: View) -> dict[str, str]:
    """Return for which metrics the tests of all groups at once are valid, and how."""
    by_text: dict[str, list[str]] = {}
    for row in view.audit.omnibus:
        if row.result is not None:
            text = _validity(row.result.validity, row.result.metric)
            of_text = by_text.setdefault(text, [])
            if (metric := words.words(row.metric)) not in of_text:
                of_text.append(metric)
    return {words.joined(metrics): text for text, metrics in by_text.items()}


@dataclass(frozen=True, slots=True)
class Note:
    """Something to know of one comparison or more."""

    text: str
    n: int
    example: Line
    section: Section


def notes(view: View) -> list[Note]:
    """Return every note of the results once, with how many comparisons it concerns."""
    found: dict[str, list[tuple[Section, Line]]] = {}
    for section in view.sections:
        for line in section.lines:
            for note in () if line.row.result is None else line.row.result.notes:
                found.setdefault(note, []).append((section, line))
    return [Note(text, len(of), of[0][1], of[0][0]) for text, of in found.items()]


@dataclass(frozen=True, slots=True)
class Seen:
    """What the comparisons of one attribute and metric could have shown."""

    section: Section
    n: int
    least: str
    least_line: Line
    most: str
    most_line: Line
    blind: int


def power(view: View) -> list[Seen]:
    """Return, where no disparity was found, which gaps would have been."""
    found = []
    for section in view.sections:
        lines = [line for line in section.of("inconclusive") if line.row.detectable_gap is not None]
        if lines:
            found.append(_seen(section, lines))
    return found


def _seen(section: Section, lines: list[Line]) -> Seen:
    least, most = min(lines, key=_gap), max(lines, key=_gap)
    margin = least.row.margin
    return Seen(
        section=section,
        n=len(lines),
        least=detectable(least.row.detectable_gap),
        least_line=least,
        most=detectable(most.row.detectable_gap),
        most_line=most,
        blind=sum(margin is not None and _gap(line) > margin for line in lines),
    )


def _gap(line: Line) -> float:
    return line.row.detectable_gap or 0.0


def facts(view: View) -> dict[str, object]:
    """Return what else the page tells of metrics, groups and tests."""
    audit, groups = view.audit, [one for of in view.groups.values() for one in of]
    return {
        "metrics": {section.metric: section.meaning for section in view.sections},
        "has_base_rates": any(one.positives is not None for one in audit.groups),
        "has_margins": any(row.margin is not None for row in audit.rows),
        "whole_names": [(one.name, one.whole_name) for one in groups if one.whole_name],
        "together_reasons": sorted(
            {one.together_reason for one in view.sections if one.together_reason}
        ),
        "omnibus_validity": omnibus_validity(view),
        "is_studentized": all(
            row.result.variance is not None for row in audit.rows if row.result is not None
        ),
        "audit_notes": [*words.look_alikes(audit.groups), *audit.notes],
        "n_rows": sum(
            one.rows for one in audit.groups if one.attribute == audit.groups[0].attribute
        ),
    }


def settings(view: View, provenance: Mapping[str, object]) -> dict[str, str]:
    """Return all that it takes to run the audit again."""
    audit = view.audit
    given = {
        **provenance,
        "seed (rng)": audit.seed,
        "compare": audit.compare,
        "adjust": audit.adjust,
        "alpha": audit.alpha,
        "min_group_size": audit.min_group_size,
        **audit.settings,
    }
    return {str(name): _plain(value) for name, value in given.items()}


def versions() -> str:
    """Return the versions that the numbers may depend on."""
    found = [f"Python {platform.python_version()}"]
    for package in _PACKAGES:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:  # not installed, only on the path
            continue
    return ", ".join(found)


def _plain(value: object) -> str:
    if value is None:
        return "none"
    if isinstance(value, (list, tuple)):
        return ", ".join(map(words.visible, value))
    if isinstance(value, dict):
        return ", ".join(f"{words.visible(key)}: {_plain(one)}" for key, one in value.items())
    return words.visible(value)
