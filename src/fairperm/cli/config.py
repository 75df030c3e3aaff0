"""Options in a file: ``fairperm.toml``, or ``[tool.fairperm]`` in ``pyproject.toml``.

A key is an option's name. Keys at the top are for every command that has the option; those in a
table named after a command are for that command. The command line wins.

A file that is found in the working directory, and not given by ``--config``, may belong to someone
else: its inputs and outputs must be inside its folder, and names stay protected in its CSV files.
"""

from __future__ import annotations

import glob
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairperm._utils.files import read_toml
from fairperm.cli.outputs import OUTPUTS
from fairperm.cli.terminal import print_error
from fairperm.errors import InputError, did_you_mean, shown

if TYPE_CHECKING:
    import click

_INPUTS = {"files", "new", "before", "after"}
_PATHS = frozenset({*_INPUTS, *OUTPUTS, "out"})
_NOT_OPTIONS = frozenset({"config", "debug", "help", "help_all"})


def read_defaults(ctx: click.Context, param: object, value: str | None) -> str | None:
    """Take defaults from the given file, or from the one in the working directory."""
    if ctx.resilient_parsing:  # the shell completes a word
        return value
    path, settings = _read_settings(None if value is None else Path(value))
    if path is None or not settings:
        return value
    found = _find_defaults(ctx, path, settings)
    if value is None:
        for key in _PATHS & {*found}:
            for name in found[key] if isinstance(found[key], list) else [found[key]]:
                _check_inside(path, key, str(name))
        if found.get("raw_names"):  # the data may be by the same hand
            raise _refuse(path, "raw-names", "false in a file that you did not name", True)
    if found:
        print_error(f"fairperm: note: options from {shown(str(path))}")
        ctx.default_map = {**(ctx.default_map or {}), **found}
    return value


def _check_inside(path: Path, key: str, name: str) -> None:
    """Raise InputError if a path, or a file that a glob matches, is outside the file's folder."""
    folder = path.resolve().parent
    # links count by where they lead to
    places = [name, *glob.glob(name, recursive=True)]  # noqa: PTH207 (may be absolute)
    if name != "-" and not all(Path(one).resolve().is_relative_to(folder) for one in places):
        raise _refuse(path, key, "inside the folder of that file", name)


def _refuse(path: Path, key: str, rule: str, value: object) -> InputError:
    """Return the error for a value that only a file given by ``--config`` may have."""
    hint = f"If you trust the file, pass --config {path}."
    return InputError(f"{key} in {shown(str(path))}", rule, value, hint)


def _read_settings(given: Path | None) -> tuple[Path | None, dict[str, Any]]:
    """Return the path of the file and its settings, which may be empty."""
    path = given or next(
        (one for one in map(Path, ("fairperm.toml", "pyproject.toml")) if one.is_file()), None
    )
    if path is None:
        return None, {}
    try:
        settings = read_toml(path)
    except InputError:
        if given is None and path.name == "pyproject.toml":
            return None, {}  # other tools report it; nobody asked us to read it
        raise
    if path.name == "pyproject.toml":
        tools = settings.get("tool")
        settings = tools.get("fairperm", {}) if isinstance(tools, dict) else {}
        if not isinstance(settings, dict):
            raise InputError(f"tool.fairperm in {shown(str(path))}", "a table", settings)
    return (path, settings) if settings or given else (None, {})


def _find_defaults(ctx: click.Context, path: Path, settings: dict[str, Any]) -> dict[str, Any]:
    """Return the values for this command; raise InputError for unknown keys."""
    commands: dict[str, Any] = getattr(ctx.find_root().command, "commands", {})
    options = {name: _list_options(command) for name, command in commands.items()}
    every = {key for keys in options.values() for key in keys}
    mine = options[str(ctx.info_name)]
    found = {}
    for key, value in settings.items():
        if isinstance(value, dict) and key in commands:
            for inner, one in value.items():
                _check_known(path, f"{key}.{inner}", inner, options[key], key)
                if key == ctx.info_name:
                    found[inner] = one
            continue
        _check_known(path, key, key, {*every, *commands}, str(ctx.info_name))
        name = _with_hyphens(key)
        # a list of several values is for the commands that take several
        is_for_others = (
            isinstance(value, list)
            and len(value) != 1
            and not mine.get(name)
            and any(one.get(name) for one in options.values())
        )
        if name in mine and not is_for_others:
            found = {key: value, **found}  # the command's own table wins
    return {
        _parameter_name(ctx, key): _as_argument(path, key, value, mine[_with_hyphens(key)])
        for key, value in found.items()
    }


def _parameter_name(ctx: click.Context, key: str) -> str:
    """Return the name of the Python parameter that an option sets."""
    for one in ctx.command.params:
        if _with_hyphens(key) in _option_names(one):
            return str(one.name)
    return key


def _list_options(command: Any) -> dict[str, bool]:
    """Return the option names of a command, and whether each takes several values.

    A command without ``--config`` has none that a file could set.
    """
    if all(one.name != "config" for one in command.params):
        return {}
    return {
        name: bool(one.multiple if hasattr(one, "multiple") else one.nargs != 1) or one.nargs == -1
        for one in command.params
        for name in _option_names(one)
        if one.name not in _NOT_OPTIONS
    }


def _option_names(parameter: Any) -> set[str]:
    """Return the long options of a parameter, or the name of an argument without one."""
    long = {one[2:] for one in parameter.opts if one.startswith("--")}
    return {_with_hyphens(one) for one in long or {str(parameter.name)}}


def _with_hyphens(key: str) -> str:
    return key.replace("_", "-")


def _check_known(path: Path | None, shown_key: str, key: str, known: Any, command: str) -> None:
    if _with_hyphens(key) not in known:
        hint = did_you_mean(_with_hyphens(key), sorted(known))
        hint = hint or f"`fairperm {command} --help` lists those of {command}."
        raise InputError(f"{shown(str(path))} has an unknown key, {shown(shown_key)}. {hint}")


def _as_argument(path: Path | None, key: str, value: Any, several: bool) -> Any:
    """Return a TOML value in the form of command-line arguments."""
    if isinstance(value, list) and len(value) == 1 and not several:
        value = value[0]
    if isinstance(value, (dict, list)) and not several:
        kind = "table" if isinstance(value, dict) else "list"
        raise InputError(f"{key} in {shown(str(path))} must be one value; got a {kind}.")
    if isinstance(value, dict):  # margin = {selection_rate = 0.05}
        return [f"{name}={_as_text(one)}" for name, one in value.items()]
    if several:
        return [_as_text(one) for one in (value if isinstance(value, list) else [value])]
    return value if isinstance(value, bool) else _as_text(value)


def _as_text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
