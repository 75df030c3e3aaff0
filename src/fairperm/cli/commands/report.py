"""``fairperm report``: write the report of an audit that was written as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairperm._utils.files import read_limited, write_whole
from fairperm.cli import outputs
from fairperm.cli.command import command
from fairperm.cli.presenting import describe_run, read_presentation
from fairperm.cli.terminal import print_report
from fairperm.errors import FairpermError, InputError, shown

if TYPE_CHECKING:
    import click

_RULE = "JSON that `fairperm audit` or `fairperm compare` wrote with --json"
_MAX_JSON_BYTES = 64 << 20  # tens of thousands of comparisons, in Python a gigabyte at most
_SCHEMAS = {f"fairperm.{command}": command for command in ("audit", "compare")}


@command(
    "report",
    "file report short title author note positive_means negative_means rename quiet debug",
    example="fairperm report audit.json --short --report audit.html",
)
def report(ctx: click.Context) -> int:
    """Write the report of an audit later, or on another machine: from its JSON, without the data.

    It has no threshold sweep and no permutation histogram, which need the data. Without --report
    it is FILE with the ending .html.
    """
    from fairperm.cli.files.formats import check_outputs_not_inputs

    file, report = ctx.params["file"], ctx.params["report"]
    if report is None and file == "-":
        raise InputError("--report must be given: the name of the file to write.")
    path = Path(file).with_suffix(".html") if report is None else Path(report)
    outputs.check_outputs({"--report": path})
    document = _read_document(file)
    check_outputs_not_inputs([file], {"--report": str(path)})
    write_whole(path, _write_page(file, document, ctx.params))
    if not ctx.params["quiet"]:
        print_report(path)
    return 0


def _write_page(name: str, document: Mapping[str, Any], params: Mapping[str, Any]) -> str:
    """Return the report of a document, every part of which may have been edited by anyone."""
    from fairperm.auditing.result import Audit, list_defaults
    from fairperm.hypothesis_tests.results.reading import read_audit
    from fairperm.report.page import as_html

    try:
        audit = read_audit(Audit, document["result"])
        groups = ((one.attribute, one.group) for one in audit.groups)
        presentation = read_presentation(params, groups)
        parts = ("options", "inputs", "rows_read", "versions")
        run = describe_run(_SCHEMAS[document["schema"]], *(document[one] for one in parts))
        return as_html(
            audit, presentation=presentation, provenance=run, defaults=list_defaults(audit.settings)
        )
    except (FairpermError, MemoryError, OSError):
        raise
    except Exception as error:  # a wrong type or a missing key shows itself anywhere
        hint = "It was edited, or written by another version."
        raise InputError("FILE", _RULE, name, hint) from error


def _read_document(name: str) -> Mapping[str, Any]:
    import json

    from fairperm.cli.files.formats import open_stdin

    try:
        with open_stdin() if name == "-" else Path(name).open("rb") as file:
            content = read_limited(file, name, _MAX_JSON_BYTES)
    except OSError as error:
        raise InputError(f"{shown(name)} cannot be read: {error.strerror or error}.") from error
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        raise InputError("FILE", _RULE, name) from None
    if not isinstance(document, dict) or document.get("schema") not in [*_SCHEMAS]:
        raise InputError("FILE", _RULE, name)
    version = document.get("schema_version")
    if version != outputs.SCHEMA_VERSION:
        rule = f"of schema_version {outputs.SCHEMA_VERSION}"
        raise InputError("FILE", rule, version, "Run the audit again with this version.")
    return document
