"""An audit as one HTML file that needs nothing else, and as a short form for notebooks."""

from __future__ import annotations

import base64
import hashlib
import re
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
    format_name,
    format_pvalue,
    keep_units,
)
from fairperm.hypothesis_tests.results.sweeps import ThresholdSweepResult
from fairperm.hypothesis_tests.results.text import state_min_group_size, state_used_rows
from fairperm.plots.parts import theme
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
    from fairperm.report.charts import Chart

MAX_COMPACT_ROWS = 100
_TITLE = "Fairness audit"
_SWEEPS_TITLE = "Gaps at every threshold"
_NUMBERS = re.compile(r"–|[<+−-]? ?[\d.,∞]+ ?%?( to [+−-]?[\d.,∞]+)?")  # of a column


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
    """Return the report, and write it to `path`, whole or not at all, if there is one.

    Nothing is computed here: all numbers are the audit's own. Each sweep over thresholds is shown
    with a slider; ``not_swept`` has the attributes or pairs of groups without one, with the reason.
    ``provenance`` has other settings needed to run the audit again (the command, the file, its
    hash), by name, and ``defaults`` those of its arguments, which need not be named.
    """
    from fairperm.report import charts

    given, about = presentation or Presentation(), dict(provenance or {})
    given.check(audit)
    view = AuditView.of(audit, given.find_names(audit))
    written = _today()
    forest = charts.draw_forest(view)
    null = None if given.short else charts.draw_null(view)
    sweep_parts = [] if given.short else charts.draw_sweeps(view, _list_sweeps(sweep))
    slopes = charts.draw_changes(view)
    command = about.pop("command", None) or write_call(audit, defaults)
    settings = sentences.list_settings(view, about, defaults or {})
    if "version of fairperm" not in settings:
        settings["versions"] = sentences.list_versions()
    return _write_page(
        "report.html.jinja",
        path,
        [*slopes, forest, *(one.chart for one in sweep_parts), null],
        view=view,
        eyebrow="Statistical audit of group differences",
        title=given.title or _TITLE,
        summary=view.answer,
        note=given.note,
        short=given.short,
        facts=list_facts(view, given, about, written),
        lines=summarize_case(view, given),
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
        command=command,
        settings={} if given.short else settings,
    )


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
    pairs, cuts = len(sweeps), format_count(len(sweeps[0].thresholds), "threshold")
    return _write_page(
        "sweeps.html.jinja",
        path,
        [one.chart for one in parts],
        eyebrow="Group differences at every threshold of a score",
        title=_SWEEPS_TITLE,
        summary=f"{format_count(pairs, 'pair')} of groups at {cuts}. {level}",
        sweeps=parts,
        not_swept=not_swept,
        notes=notes,
        **_split_provenance(provenance),
    )


@dataclass(frozen=True, slots=True)
class Finding:
    """A part of a page: a heading, a sentence, and what specifies its chart in a width."""

    title: str
    text: str
    specify: Callable[..., dict[str, Any]] | None


@dataclass(frozen=True, slots=True)
class PageTable:
    """A table of a page: a heading, the heads of its columns, and its rows.

    A table that ``is_folded`` comes last, and opens on a click. ``verdicts`` is the head of a
    column of verdicts, which stand out.
    """

    title: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    is_folded: bool = False
    verdicts: str = ""

    def has_numbers(self, place: int) -> bool:
        """Whether a column has numbers, which are aligned on the right."""
        return all(_NUMBERS.fullmatch(row[place]) for row in self.rows)


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
    short: bool = False,
) -> str:
    """Return a report of findings with tables, and write it to `path` if there is one.

    A ``short`` one is printed in small type.
    """
    from fairperm.report import charts

    drawn = {
        i: charts.draw_chart(f"finding-{i}", one.text, one.specify)
        for i, one in enumerate(findings)
        if one.specify
    }
    return _write_page(
        "findings.html.jinja",
        path,
        [*drawn.values()],
        eyebrow=eyebrow,
        title=title,
        summary=sentences.mark_name(summary),
        facts={name: sentences.mark_name(one) for name, one in (facts or {}).items()},
        findings=[(one.title, one.text, drawn.get(i)) for i, one in enumerate(findings)],
        tables=tables,
        method=method,
        short=short,
        **_split_provenance(provenance),
    )


def _split_provenance(provenance: Mapping[str, object]) -> dict[str, Any]:
    """Return the command, and the settings as texts."""
    settings = {name: str(one) for name, one in provenance.items() if name != "command"}
    return {"command": provenance.get("command"), "settings": settings}


def _write_page(
    template: str,
    path: str | os.PathLike[str] | None,
    drawn: Iterable[Chart | None],
    **values: Any,
) -> str:
    """Return a page with its charts and the scripts that draw them, and perhaps write it."""
    from fairperm.report import charts

    specs = {one.key: one.specs for one in drawn if one is not None}
    themes = {mode: theme(mode) for mode in ("light", "dark")}
    scripts = [charts.vega_script(), _read_text("charts.js")] if specs else []
    page = _render(
        template,
        **{"short": False, "note": None, "facts": {}, **values},
        written=_today(),
        policy=_write_policy(scripts),
        scripts=[Markup(script) for script in scripts],  # noqa: S704
        charts=charts.inline_json({"configs": themes, "charts": specs}),
    )
    if path is not None:
        write_whole(path, page)
    return page


def _today() -> str:
    return datetime.now(UTC).date().isoformat()


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
        "keep": lambda text: type(text)(keep_units(text)),
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
