"""An audit as one HTML file that needs nothing else, and as a short form for notebooks."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from fairperm._utils.files import write_whole
from fairperm._utils.formatting import (
    count_units,
    format_count,
    format_metric,
    format_name,
    format_pvalue,
)
from fairperm.hypothesis_tests.results.sweeps import ThresholdSweepResult
from fairperm.hypothesis_tests.results.text import state_min_group_size, state_used_rows
from fairperm.report import sentences
from fairperm.report.changes import ChangesPart, write_change
from fairperm.report.opening import list_facts, summarize_case
from fairperm.report.presentation import Presentation
from fairperm.report.rerun import write_call
from fairperm.report.view import AuditView

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from jinja2 import Environment

    from fairperm.hypothesis_tests.results.audits import AuditData

MAX_COMPACT_ROWS = 100
MAX_SUBGROUPS = 500
_TITLE = "Fairness audit"
_SWEEPS_TITLE = "Gaps at every threshold"


def as_html(
    audit: AuditData,
    path: str | os.PathLike[str] | None = None,
    *,
    presentation: Presentation | None = None,
    sweep: ThresholdSweepResult | Iterable[ThresholdSweepResult] | None = None,
    not_swept: Mapping[str, str] | None = None,
    provenance: Mapping[str, object] | None = None,
    defaults: Mapping[str, object] | None = None,
) -> str:
    """Return the report, and write it to `path` if there is one.

    Parameters
    ----------
    audit
        The audit to report. Nothing is computed here: all numbers are the audit's own.
    path
        A file, written whole or not at all.
    presentation
        Heading, author, words for the case, and length.
    sweep
        One sweep over thresholds, or several, each shown with a slider.
    not_swept
        Attributes or pairs of groups for which there is no sweep, with the reason.
    provenance
        Other settings needed to run the audit again (the command, the file, its hash), by name.
    defaults
        The defaults of the audit's arguments, which running it again need not name.
    """
    from fairperm.report import charts

    given, about = presentation or Presentation(), dict(provenance or {})
    given.check(audit)
    view = AuditView.of(audit, given.find_names(audit))
    written = datetime.now(UTC).date().isoformat()
    forest = charts.draw_forest(view, short=given.short)
    null = None if given.short else charts.draw_null(view)
    sweep_parts = [] if given.short else charts.draw_sweeps(view, _list_sweeps(sweep))
    slopes = charts.draw_changes(view)
    drawn = [one for one in (*slopes, forest, *(one.chart for one in sweep_parts), null) if one]
    scripts = [charts.vega_script(), _read_text("charts.js")] if drawn else []
    page = _render(
        "report.html.jinja",
        view=view,
        title=given.title or _TITLE,
        note=given.note,
        short=given.short,
        case=list_facts(view, given, about, written),
        lines=summarize_case(view, given),
        written=written,
        changes=ChangesPart.of(view),
        slopes=slopes,
        forest=forest,
        null=null,
        sweeps=sweep_parts,
        some_are_not_swept=len({(row.attribute, row.groups) for row in audit.rows})
        > len(sweep_parts),
        not_swept={format_name(name): reason for name, reason in (not_swept or {}).items()},
        findings=sentences.describe_findings(view),
        question=sentences.describe_question(view),
        **sentences.collect_facts(view),
        tests=sentences.describe_tests(view),
        notes=sentences.collect_notes(view),
        power=sentences.summarize_power(view),
        command=about.pop("command", None) or write_call(audit, defaults),
        settings=sentences.list_settings(view, about, defaults or {}),
        versions=sentences.list_versions(),
        policy=_write_policy(scripts),
        scripts=[Markup(script) for script in scripts],  # noqa: S704
        charts=charts.inline_json(
            {"configs": charts.make_themes(), "charts": {one.key: one.specs for one in drawn}}
        ),
    )
    if path is not None:
        write_whole(path, page)
    return page


def sweeps_as_html(
    sweeps: Sequence[ThresholdSweepResult],
    path: str | os.PathLike[str] | None,
    *,
    level: str,
    not_swept: Mapping[str, str],
    notes: Sequence[str],
    provenance: Mapping[str, object],
) -> str:
    """Return the report of sweeps alone, and write it to `path` if there is one.

    ``level`` is a sentence about the level of their bands.
    """
    from fairperm.report import charts

    parts = charts.draw_sweeps(None, sweeps)
    scripts = [charts.vega_script(), _read_text("charts.js")]
    page = _render(
        "sweeps.html.jinja",
        title=_SWEEPS_TITLE,
        written=datetime.now(UTC).date().isoformat(),
        sweeps=parts,
        n_thresholds=len(sweeps[0].thresholds),
        level=level,
        not_swept=not_swept,
        notes=notes,
        command=provenance.get("command"),
        settings={name: str(one) for name, one in provenance.items() if name != "command"},
        policy=_write_policy(scripts),
        scripts=[Markup(script) for script in scripts],  # noqa: S704
        charts=charts.inline_json(
            {
                "configs": charts.make_themes(),
                "charts": {one.chart.key: one.chart.specs for one in parts},
            }
        ),
    )
    if path is not None:
        write_whole(path, page)
    return page


def subgroups_as_html(
    found: FoundSubgroups, path: str | os.PathLike[str] | None, *, provenance: Mapping[str, object]
) -> str:
    """Return the report of a search for subgroups, and write it to `path` if there is one."""
    from fairperm.report import charts

    chart = charts.draw_subgroups(found.drawn, found.metric, found.level, found.summary)
    scripts = [charts.vega_script(), _read_text("charts.js")] if chart else []
    page = _render(
        "subgroups.html.jinja",
        title=f"Subgroups: {format_metric(found.metric)}",
        written=datetime.now(UTC).date().isoformat(),
        summary=found.summary,
        chart=chart,
        heads=found.heads,
        listed=found.listed,
        found=found.found[:MAX_SUBGROUPS],
        n_more=max(0, len(found.found) - MAX_SUBGROUPS),
        method=found.method,
        settings={name: str(one) for name, one in provenance.items()},
        policy=_write_policy(scripts),
        scripts=[Markup(script) for script in scripts],  # noqa: S704
        charts=charts.inline_json(
            {
                "configs": charts.make_themes(),
                "charts": {one.key: one.specs for one in (chart,) if one},
            }
        ),
    )
    if path is not None:
        write_whole(path, page)
    return page


@dataclass(frozen=True, slots=True)
class Finding:
    """A part of a page: a heading, a sentence, and what specifies its chart in a width."""

    title: str
    text: str
    specify: Callable[..., dict[str, Any]] | None


@dataclass(frozen=True, slots=True)
class PageTable:
    """A table of a page: a heading, the heads of its columns, and its rows."""

    title: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]


def findings_as_html(
    path: str | os.PathLike[str] | None,
    *,
    eyebrow: str,
    title: str,
    summary: str,
    findings: Sequence[Finding],
    tables: Sequence[PageTable],
    method: Sequence[str],
    provenance: Mapping[str, object],
    facts: Mapping[str, str] | None = None,
) -> str:
    """Return a report of findings with tables, and write it to `path` if there is one."""
    from fairperm.report import charts

    drawn = {
        i: charts.draw_finding(f"finding-{i}", one.text, one.specify)
        for i, one in enumerate(findings)
        if one.specify
    }
    scripts = [charts.vega_script(), _read_text("charts.js")] if drawn else []
    page = _render(
        "findings.html.jinja",
        eyebrow=eyebrow,
        title=title,
        written=datetime.now(UTC).date().isoformat(),
        summary=summary,
        findings=[(one.title, one.text, drawn.get(i)) for i, one in enumerate(findings)],
        tables=tables,
        facts=facts or {},
        method=method,
        settings={name: str(one) for name, one in provenance.items()},
        policy=_write_policy(scripts),
        scripts=[Markup(script) for script in scripts],  # noqa: S704
        charts=charts.inline_json(
            {
                "configs": charts.make_themes(),
                "charts": {one.key: one.specs for one in drawn.values()},
            }
        ),
    )
    if path is not None:
        write_whole(path, page)
    return page


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundSubgroups:
    """What a report says of a search for subgroups.

    ``heads`` and the rows of ``listed`` and ``found`` are cells of tables; ``drawn`` are the rows
    of the chart; ``level`` is that of the intervals; ``method`` says how they were tested.
    """

    metric: str
    level: float
    summary: str
    heads: Sequence[str]
    listed: Sequence[Sequence[str]]
    found: Sequence[Sequence[str]]
    drawn: Sequence[Mapping[str, Any]]
    method: Sequence[str]


def _list_sweeps(
    sweep: ThresholdSweepResult | Iterable[ThresholdSweepResult] | None,
) -> list[ThresholdSweepResult]:
    if sweep is None:
        return []
    return [sweep] if isinstance(sweep, ThresholdSweepResult) else list(sweep)


def as_notebook_html(audit: AuditData) -> str:
    """Return the verdicts and the table, without scripts, for a notebook."""
    view = AuditView.of(audit)
    return _render(
        "compact.html.jinja", view=view, changes=ChangesPart.of(view), most_rows=MAX_COMPACT_ROWS
    )


def _render(template: str, **values: Any) -> str:
    return _environment().get_template(template).render(**values)


def make_environment(package: str) -> Environment:
    """Return what renders the templates of a package: values are escaped, unknown names raise."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader(package),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


@cache
def _environment() -> Environment:
    environment = make_environment("fairperm.report")
    environment.globals |= {
        "verdict_meanings": sentences.explain_verdicts,
        "error_rates": sentences.describe_error_rates,
        "ratio_rule": sentences.describe_ratio_rule,
        "min_group_size": state_min_group_size,
        "name": sentences.mark_name,
        "gap_name": sentences.mark_gap,
        "count": format_count,
        "count_units": count_units,
        "pvalue": format_pvalue,
        "change_texts": write_change,
        "dropped": state_used_rows,
        "style": lambda name: Markup(_read_text(name)),  # noqa: S704
    }
    return environment


def _read_text(name: str) -> str:
    return files("fairperm.report").joinpath("templates", name).read_text(encoding="utf-8").strip()


def _write_policy(scripts: Sequence[str]) -> str:
    """Return a content security policy: these scripts run and no others, and nothing is loaded."""
    hashes = [
        base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts
    ]
    allowed = " ".join(f"'sha256-{one}'" for one in hashes) or "'none'"
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
