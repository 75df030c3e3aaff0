"""How the audit was done: its tests and their validity, power, settings."""

from __future__ import annotations

import platform
import sys
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

from fairperm._utils.formatting import format_metric, format_name, join_words
from fairperm.report.names import find_look_alikes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fairperm.hypothesis_tests.results.gaps import PermutationTestResult
    from fairperm.report.view import AuditView, ComparisonView, Section

_SCHEMES = {
    "denominator": "Group labels were exchanged among the rows in the metric's denominator.",
    "within_label": "Group labels were exchanged among rows with the same true label.",
    "pooled": "Group labels were exchanged among all rows of both groups.",
}
_STUDENTIZED = "Each gap was divided by its standard error, computed "
_VARIANCES = {
    "score": f"{_STUDENTIZED}from the pooled rate of both groups.",
    "wald": f"{_STUDENTIZED}from each group's own rate.",
    "delta": f"{_STUDENTIZED}by the delta method.",
    "delong": f"{_STUDENTIZED}by DeLong's method.",
    "bootstrap": f"{_STUDENTIZED}from bootstrap samples.",
    "fast_bootstrap": f"{_STUDENTIZED}from bootstrap samples.",
    None: "The gaps were not divided by a standard error.",
}
_PACKAGES = ("fairperm", "numpy", "scipy", "numba")


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
    return [_describe_test(results) for results in used.values()]


def _generalize(validity: str, metric: str) -> str:
    """Return a sentence about one metric as a sentence about any metric."""
    return validity.replace(f"equal {metric};", "equal metric;")


def _describe_test(results: list[tuple[str, PermutationTestResult]]) -> TestDescription:
    metrics = list(dict.fromkeys(metric for metric, _ in results))
    one = results[0][1]
    n_exact = sum(result.exact for _, result in results)
    if n_exact == len(results):
        draws = "All permutations were counted: the p-value has no Monte Carlo error."
    elif n_exact:
        draws = f"All permutations were counted, or {one.n_resamples:,} random ones if too many."
    elif one.n_resamples:
        draws = f"{one.n_resamples:,} random permutations were drawn."
    else:
        draws = "No permutations were drawn: the p-value is that of the normal limit."
    return TestDescription(
        metrics=join_words(metrics),
        scheme=_SCHEMES.get(one.scheme, one.scheme),
        variance=_VARIANCES.get(one.variance, str(one.variance)),
        draws=draws,
        validity=one.validity if len(metrics) == 1 else _generalize(one.validity, one.metric),
        code=f"scheme={one.scheme!r}, variance={one.variance!r}",
    )


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
    """Return every note of the results once, with the number of comparisons that have it."""
    places_by_note: dict[str, list[tuple[Section, ComparisonView]]] = {}
    for section in view.sections:
        for comparison in section.comparisons:
            for note in () if comparison.row.result is None else comparison.row.result.notes:
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
    def n_above_margin(self) -> int:
        """Number of comparisons whose detectable gap is above the margin."""
        margin = self.smallest.row.margin
        return sum(margin is not None and _detectable_gap(one) > margin for one in self.comparisons)


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
    results = [row.result for row in audit.rows if row.result is not None]
    return {
        "metrics": {section.metric: section.meaning for section in view.sections},
        "has_base_rates": any(one.positives is not None for one in audit.groups),
        "has_margins": any(row.margin is not None for row in audit.rows),
        "whole_names": [(one.name, one.whole_name) for one in groups if one.whole_name],
        "omnibus_reasons": sorted({one.omnibus_reason for one in view.sections} - {""}),
        "omnibus_validity": _describe_omnibus_validity(view),
        "is_studentized": all(result.variance is not None for result in results),
        "audit_notes": [*find_look_alikes(audit.groups), *audit.notes],
        "n_rows": sum(
            one.rows for one in audit.groups if one.attribute == audit.groups[0].attribute
        ),
    }


def list_settings(view: AuditView, provenance: Mapping[str, object]) -> dict[str, str]:
    """Return all settings that are needed to run the audit again."""
    audit = view.audit
    settings = {
        **provenance,
        "seed (rng)": audit.seed,
        "compare": audit.compare,
        "adjust": audit.adjust,
        "alpha": audit.alpha,
        "min_group_size": audit.min_group_size,
        **audit.settings,
    }
    return {str(name): _format_setting(value) for name, value in settings.items()}


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
