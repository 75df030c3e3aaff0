"""The report of an audit: with its sweeps over thresholds where there are scores."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fairperm.cli.words import in_options
from fairperm.errors import FairpermError

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence
    from pathlib import Path

    from fairperm.auditing.result import Audit
    from fairperm.hypothesis_tests.results.sweeps import ThresholdSweepResult

_RESAMPLES = 999


@dataclass(frozen=True, slots=True)
class Sweeps:
    """The sweeps over thresholds for a report, and by attribute why there is none."""

    found: list[ThresholdSweepResult] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)


def write_report(
    audit: Audit,
    path: Path,
    *,
    title: str | None = None,
    provenance: Mapping[str, object],
    sweeps: Sweeps,
) -> None:
    """Write the report."""
    from fairperm.report import as_html

    as_html(
        audit,
        path,
        sweep=sweeps.found,
        not_swept=sweeps.left_out,
        title=title,
        provenance=provenance,
    )


def provenance(
    command: str,
    options: Mapping[str, Any],
    files: Sequence[Mapping[str, Any]],
    rows: int | None,
) -> dict[str, object]:
    """Return what it takes to run the audit again, by name."""
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


def sweeps(
    audit: Audit, data: Any, *, label: str, score: str, attributes: Sequence[str], **options: Any
) -> Sweeps:
    """Return for each attribute a sweep of its two largest groups, in the metrics that have one.

    An attribute whose sweep cannot be made is left out, and the report says why: it is about the
    audit.
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
        pair = _pair(audit, attribute)
        if pair is None:
            made.left_out[attribute] = "fewer than two of its groups are large enough to be judged."
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
            made.left_out[attribute] = in_options(str(error))
    return made


def _pair(audit: Audit, attribute: str) -> tuple[Hashable, Hashable] | None:
    """Return the two largest groups that are judged, in the order in which the audit has them."""
    groups = [one for one in audit.groups if one.attribute == attribute and not one.is_small]
    largest = sorted(groups, key=lambda one: -one.rows)[:2]
    if len(largest) < 2:
        return None
    first, second = (one.group for one in groups if one in largest)
    compared = {row.groups for row in audit.rows if row.attribute == attribute}
    return (second, first) if (second, first) in compared else (first, second)
