"""What the command line hands to a report: its presentation, and how to run the audit again."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fairperm.cli import outputs
from fairperm.errors import InputError, did_you_mean, listed
from fairperm.report.presentation import Presentation

if TYPE_CHECKING:
    import click


_LINE = 84  # characters


def read_presentation(
    params: Mapping[str, Any], groups: Iterable[tuple[str, object]]
) -> Presentation:
    """Return the presentation that the options ask for, of an audit of these groups."""
    from fairperm.report.presentation import Presentation

    known: dict[str, set[str]] = {}
    for attribute, group in groups:
        known.setdefault(attribute, set()).add(str(group))
    return Presentation(
        title=params["title"],
        author=params["author"],
        note=params["note"],
        positive_means=params["positive_means"],
        negative_means=params["negative_means"],
        rename=_parse_renames(params["rename"] or (), known),
        short=params["short"],
    )


def check_presentation(ctx: click.Context) -> None:
    """Raise InputError for an option of the report if none is written."""
    for name in ("title", "author", "note", "positive_means", "negative_means", "rename", "short"):
        source = ctx.get_parameter_source(name)
        if ctx.params["report"] is None and source is not None and source.name == "COMMANDLINE":
            raise InputError(f"--{name.replace('_', '-')} needs --report, the file to write.")


def _parse_renames(
    given: Sequence[str], known: Mapping[str, set[str]]
) -> dict[str, dict[str, str]]:
    """Return names by column and value, given as COLUMN:VALUE=NAME."""
    found: dict[str, dict[str, str]] = {}
    for text in given:
        columns = [one for one in known if text.startswith(f"{one}:")]
        if not columns:
            rule = f"COLUMN:VALUE=NAME with a column of --group ({listed(known)})"
            raise InputError("--rename", rule, text, did_you_mean(text.partition(":")[0], known))
        column = max(columns, key=len)
        value, name = _split_name(text.removeprefix(f"{column}:"), known[column])
        if not name:
            rule = f"COLUMN:VALUE=NAME with a value of {column!r} ({listed(sorted(known[column]))})"
            raise InputError("--rename", rule, text, did_you_mean(value, known[column]))
        found.setdefault(column, {})[value] = name
    return found


def _split_name(text: str, values: set[str]) -> tuple[str, str]:
    """Return value and name; values may have equals signs. An unknown value has no name."""
    for value in sorted(values, key=len, reverse=True):
        if text.startswith(f"{value}="):
            return value, text.removeprefix(f"{value}=")
    return text.partition("=")[0], ""


def describe_run(
    command: str,
    options: Mapping[str, Any],
    files: Sequence[Mapping[str, Any]],
    rows: int | None,
    versions: Mapping[str, str] | None = None,
) -> dict[str, object]:
    """Return what is needed to run the command again, by name."""
    found: dict[str, object] = {"command": write_command(command, options, files)}
    if files:
        found["file"] = ", ".join(file["path"] for file in files)
    for file in files:
        found[f"sha256 of {file['path']}"] = file["sha256"]
    if rows is not None:
        found["rows read"] = f"{rows:,}"
    versions = outputs.versions() if versions is None else versions
    return found | {f"version of {name}": one for name, one in versions.items()}


def write_command(
    command: str, options: Mapping[str, Any], files: Sequence[Mapping[str, Any]]
) -> str:
    """Return the command as text for a shell, without options that have their default."""
    from fairperm.plots.parts import wrap_parts

    paths = [file["path"] for file in files if "option" not in file]  # an option names others
    parts = [f"fairperm {command}", *map(shlex.quote, paths)]
    lines = wrap_parts([*parts, *_write_options(command, options)], _LINE)
    return " \\\n    ".join(lines)


def _write_options(command: str, options: Mapping[str, Any]) -> Iterator[str]:
    from fairperm.cli.main import app

    known = {one.name: one for one in app.commands[command].options}
    for name, value in options.items():
        flag = f"--{name.rstrip('_').replace('_', '-')}"
        if (
            value is False or value == known[name].default
        ):  # an unknown name, from a file, is no text for a shell
            continue
        if name == "pair":
            yield f"{flag} {shlex.join(map(str, value))}"
            continue
        for one in value if isinstance(value, list) else [value]:
            yield flag if one is True else f"{flag} {shlex.quote(str(one))}"
