"""``fairperm report``: write the report of an audit that was written as JSON."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fairperm.cli import options as arg
from fairperm.cli import outputs
from fairperm.cli.presenting import describe_run, read_presentation
from fairperm.cli.terminal import print_report
from fairperm.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

_RULE = "JSON that `fairperm audit` or `fairperm compare` wrote with --json"
_SCHEMAS = {"fairperm.audit", "fairperm.compare"}


def report(
    ctx: typer.Context,
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            show_default=False,
            help="JSON that `fairperm audit` or `fairperm compare` wrote; '-' for standard input.",
        ),
    ],
    report: arg.Report = None,
    title: arg.Title = None,
    author: arg.Author = None,
    note: arg.ReportNote = None,
    positive_means: arg.PositiveMeans = None,
    rename: arg.Rename = None,
    short: arg.Short = False,
    quiet: arg.Quiet = False,
    debug: arg.Debug = False,
) -> int:
    """Write the report of an audit later, or on another machine: from its JSON, without the data.

    It has no threshold sweep and no permutation histogram, which need the data. Without --report
    it is FILE with the ending .html.
    """
    from fairperm.auditing.result import Audit
    from fairperm.report.page import as_html

    if report is None and file == "-":
        raise InputError("--report must be given: the name of the file to write.")
    path = Path(file).with_suffix(".html") if report is None else report
    outputs.check_outputs({"--report": path})
    document = _read_document(file)
    audit = Audit.from_dict(document["result"])
    presentation = read_presentation(
        ctx.params, ((one.attribute, one.group) for one in audit.groups)
    )
    parts = ("command", "options", "inputs", "rows_read", "versions")
    run = describe_run(*(document[name] for name in parts))
    as_html(audit, path, presentation=presentation, provenance=run)
    if not quiet:
        print_report(path)
    return 0


def _read_document(name: str) -> Mapping[str, Any]:
    import json

    try:
        text = sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8")
        document = json.loads(text)
    except ValueError:
        raise InputError("FILE", _RULE, name) from None
    if not isinstance(document, dict) or document.get("schema") not in _SCHEMAS:
        raise InputError("FILE", _RULE, name)
    version = document.get("schema_version")
    if version != outputs.SCHEMA_VERSION:
        rule = f"of schema_version {outputs.SCHEMA_VERSION}"
        raise InputError("FILE", rule, version, "Run the audit again with this version.")
    return document
