"""The report of an audit, with threshold sweeps if there are scores."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fairperm.cli.messages import write_message
from fairperm.errors import FairpermError

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence
    from pathlib import Path

    from fairperm.auditing.result import Audit
    from fairperm.hypothesis_tests.results.sweeps import ThresholdSweepResult

_RESAMPLES = 999


@dataclass(frozen=True, slots=True)
class Sweeps:
    """The threshold sweeps for a report, and for each attribute without one the reason."""

    found: list[ThresholdSweepResult] = field(default_factory=list)
    reasons: dict[str, str] = field(default_factory=dict)


def write_report(
    audit: Audit,
    path: Path,
    *,
    title: str | None = None,
    provenance: Mapping[str, object],
    sweeps: Sweeps,
) -> None:
    """Write the report."""
    from fairperm.report.page import as_html

    as_html(
        audit,
        path,
        sweep=sweeps.found,
        not_swept=sweeps.reasons,
        title=title,
        provenance=provenance,
    )


def describe_run(
    command: str,
    options: Mapping[str, Any],
    files: Sequence[Mapping[str, Any]],
    rows: int | None,
) -> dict[str, object]:
    """Return what is needed to run the command again, by name."""
    from fairperm.cli.documents import versions

    found: dict[str, object] = {"command": f"fairperm {command}"}
    for file in files:
        found[f"sha256 of {file['path']}"] = file["sha256"]
    if rows is not None:
        found["rows read"] = f"{rows:,}"
    for name, value in options.items():
        text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
        found[f"--{name.rstrip('_').replace('_', '-')}"] = text
    return found | {f"version of {name}": one for name, one in versions().items()}


def make_sweeps(
    audit: Audit, data: Any, *, label: str, score: str, attributes: Sequence[str], **options: Any
) -> Sweeps:
    """Sweep the thresholds for the two largest groups of each attribute.

    Metrics without a threshold are skipped. If a sweep fails, the report gives the reason: it is
    about the audit, not its sweeps.
    """
    import fairperm
    from fairperm.metrics.registry import get_metric

    names = [
        one.name
        for one in map(get_metric, audit.settings["metrics"])
        if one.uses_threshold and not one.is_joint
    ]
    made = Sweeps()
    for attribute in attributes if names else ():
        pair = _largest_pair(audit, attribute)
        if pair is None:
            made.reasons[attribute] = "fewer than two of its groups are large enough for a verdict."
            continue
        try:
            made.found.append(
                fairperm.threshold_sweep(
                    label,
                    score,
                    sensitive_features=attribute,
                    metric=names,
                    data=data,
                    groups=pair,
                    alpha=audit.alpha,
                    n_resamples=_RESAMPLES,
                    rng=audit.seed,
                    **options,
                )
            )
        except FairpermError as error:
            made.reasons[attribute] = write_message(error)
    return made


def _largest_pair(audit: Audit, attribute: str) -> tuple[Hashable, Hashable] | None:
    """Return the two largest groups with verdicts, in the order of the audit."""
    groups = [one for one in audit.groups if one.attribute == attribute and not one.is_small]
    largest = sorted(groups, key=lambda one: -one.rows)[:2]
    if len(largest) < 2:
        return None
    first, second = (one.group for one in groups if one in largest)
    compared = {row.groups for row in audit.rows if row.attribute == attribute}
    return (second, first) if (second, first) in compared else (first, second)
