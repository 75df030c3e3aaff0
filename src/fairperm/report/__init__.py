"""An audit as one HTML file that needs nothing else, and as a short form for notebooks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairperm._utils.files import write_whole
from fairperm.hypothesis_tests.results.sweeps import ThresholdSweepResult
from fairperm.report.page import render_notebook, render_report

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

    from fairperm.hypothesis_tests.results.audits import AuditData

__all__ = ["as_html", "as_notebook_html"]


def as_html(
    audit: AuditData,
    path: str | os.PathLike[str] | None = None,
    *,
    sweep: ThresholdSweepResult | Sequence[ThresholdSweepResult] | None = None,
    not_swept: Mapping[str, str] | None = None,
    title: str | None = None,
    provenance: Mapping[str, object] | None = None,
) -> str:
    """Return the report, and write it to `path` if there is one.

    Parameters
    ----------
    audit
        The audit to report. Nothing is computed here: all numbers are the audit's own.
    path
        A file, written whole or not at all.
    sweep
        One sweep over thresholds, or several, each shown with a slider.
    not_swept
        Attributes for which there is no sweep, with the reason.
    title
        The report's heading.
    provenance
        Other settings needed to run the audit again (the command, the file, its hash), by name.
    """
    page = render_report(audit, _list_sweeps(sweep), not_swept or {}, title, provenance or {})
    if path is not None:
        write_whole(path, page)
    return page


def as_notebook_html(audit: AuditData) -> str:
    """Return the verdicts and the table, without scripts."""
    return render_notebook(audit)


def _list_sweeps(
    sweep: ThresholdSweepResult | Sequence[ThresholdSweepResult] | None,
) -> list[ThresholdSweepResult]:
    if sweep is None:
        return []
    return [sweep] if isinstance(sweep, ThresholdSweepResult) else list(sweep)
