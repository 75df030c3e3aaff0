"""Templates, styles and scripts put together into one page that needs nothing else."""

from __future__ import annotations

import base64
import hashlib
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from fairperm.report import names as words
from fairperm.report import sentences
from fairperm.report.vega import inline_json, vega_script
from fairperm.report.view import View

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from jinja2 import Environment

    from fairperm.hypothesis_tests.results.audits import AuditData
    from fairperm.hypothesis_tests.results.sweeps import ThresholdSweepResult

MOST_COMPACT_ROWS = 100
_TITLE = "Fairness audit"


def full_page(
    audit: AuditData,
    sweeps: Sequence[ThresholdSweepResult],
    not_swept: Mapping[str, str],
    title: str | None,
    provenance: Mapping[str, object],
) -> str:
    """Return the report."""
    from fairperm.report import charts, method

    view = View.of(audit)
    forest, nulls, swept = charts.forest(view), charts.nulls(view), charts.sweeps(view, sweeps)
    drawn = [*([forest] if forest else []), *(one.chart for one in swept), *nulls]
    scripts = [vega_script(), _text("charts.js")] if drawn else []
    return _render(
        "report.html.jinja",
        view=view,
        title=title or _TITLE,
        written=datetime.now(UTC).date().isoformat(),
        forest=forest,
        nulls=nulls,
        sweeps=swept,
        not_swept={words.shortened(words.visible(one)): why for one, why in not_swept.items()},
        findings=sentences.findings(view),
        question=sentences.question(view),
        **method.facts(view),
        methods=method.methods(view),
        notes=method.notes(view),
        power=method.power(view),
        settings=method.settings(view, provenance),
        versions=method.versions(),
        policy=_policy(scripts),
        scripts=[Markup(script) for script in scripts],  # noqa: S704
        charts=inline_json(
            {"configs": charts.configs(), "charts": {one.key: one.specs for one in drawn}}
        ),
    )


def compact_page(audit: AuditData) -> str:
    """Return the verdicts and the table, without scripts, for a notebook."""
    return _render("compact.html.jinja", view=View.of(audit), most_rows=MOST_COMPACT_ROWS)


def _render(template: str, **values: Any) -> str:
    return _environment().get_template(template).render(**values)


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("fairperm.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals |= {
        "lede": sentences.lede,
        "verdict_meanings": sentences.verdict_meanings,
        "error_rates": sentences.error_rates,
        "name": sentences.name,
        "plural": words.plural,
        "p_is": words.p_is,
        "style": lambda name: Markup(_text(name)),  # noqa: S704
    }
    return environment


def _text(name: str) -> str:
    return files("fairperm.report").joinpath("templates", name).read_text(encoding="utf-8").strip()


def _policy(scripts: Sequence[str]) -> str:
    """Return a content security policy: these scripts run and no others, and nothing is loaded."""
    hashes = [
        base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts
    ]
    allowed = " ".join(f"'sha256-{one}'" for one in hashes) or "'none'"
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
