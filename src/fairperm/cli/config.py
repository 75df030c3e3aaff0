"""Options in a file: ``fairperm.toml``, or ``[tool.fairperm]`` in ``pyproject.toml``.

A key is an option's name. Keys at the top are for every command that has the option; those in a
table named after a command are for that command. The command line wins.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from fairperm._utils.files import read_toml
from fairperm.errors import InputError, did_you_mean, shown

_NOT_OPTIONS = frozenset({"config", "debug", "help", "version"})


def read(ctx: typer.Context, value: Path | None) -> Path | None:
    """Take defaults from the file that is given, or that lies in the working directory."""
    if ctx.resilient_parsing:  # the shell completes a word
        return value
    path, settings = _found(value)
    if settings:
        ctx.default_map = {**(ctx.default_map or {}), **_defaults(ctx, path, settings)}
    return path


def _found(given: Path | None) -> tuple[Path | None, dict[str, Any]]:
    if given is not None:
        found = read_toml(given)
        if given.name == "pyproject.toml":
            found = found.get("tool", {}).get("fairperm", {})
        return given, found
    path = Path("fairperm.toml")
    if path.is_file():
        return path, read_toml(path)
    path = Path("pyproject.toml")
    if path.is_file():
        try:
            found = read_toml(path).get("tool", {}).get("fairperm", {})
        except InputError:
            found = {}  # whose file it is, says so; and nobody asked us to read it
        return (path, found) if found else (None, {})
    return None, {}


def _defaults(ctx: typer.Context, path: Path | None, settings: dict[str, Any]) -> dict[str, Any]:
    """Return the values for this command, checked against the options that there are."""
    commands: dict[str, Any] = getattr(ctx.find_root().command, "commands", {})
    options = {name: _options(command) for name, command in commands.items()}
    every = {key for keys in options.values() for key in keys}
    mine = options[str(ctx.info_name)]
    found = {}
    for key, value in settings.items():
        if isinstance(value, dict) and key in commands:
            for inner, one in value.items():
                _check_known(path, f"{key}.{inner}", inner, options[key])
                if key == ctx.info_name:
                    found[inner] = one
            continue
        _check_known(path, key, key, {*every, *commands})
        if _plain(key) in mine and not _for_others(key, value, ctx, options):
            found = {key: value, **found}  # the command's own table wins
    return {
        _inner_name(ctx, key): _value(path, key, value, mine[_plain(key)])
        for key, value in found.items()
    }


def _for_others(
    key: str, value: Any, ctx: typer.Context, options: dict[str, dict[str, bool]]
) -> bool:
    """Tell whether several values are meant for commands that take several, unlike this one."""
    here = options[str(ctx.info_name)][_plain(key)]
    elsewhere = any(one.get(_plain(key)) for one in options.values())
    return isinstance(value, list) and len(value) != 1 and not here and elsewhere


def _inner_name(ctx: typer.Context, key: str) -> str:
    """Return what the option is called inside."""
    for one in ctx.command.params:
        if _plain(key) in _names(one):
            return str(one.name)
    return key


def _options(command: Any) -> dict[str, bool]:
    """Return the option names of a command, and whether each takes several values."""
    return {
        name: bool(one.multiple if hasattr(one, "multiple") else one.nargs != 1) or one.nargs == -1
        for one in command.params
        for name in _names(one)
        if one.name not in _NOT_OPTIONS
    }


def _names(parameter: Any) -> set[str]:
    """Return what a parameter is called outside: by its long option, or, an argument, by name."""
    long = {one[2:] for one in parameter.opts if one.startswith("--")}
    return {_plain(one) for one in long} or {_plain(str(parameter.name))}


def _plain(key: str) -> str:
    return key.replace("_", "-")


def _check_known(path: Path | None, shown_key: str, key: str, known: Any) -> None:
    if _plain(key) not in known:
        hint = did_you_mean(_plain(key), sorted(known)) or "`fairperm audit --help` lists them."
        raise InputError(f"{shown(str(path))} has an unknown key, {shown(shown_key)}. {hint}")


def _value(path: Path | None, key: str, value: Any, several: bool) -> Any:
    """Return a value of TOML as the command line would have it."""
    if isinstance(value, dict):  # margin = {selection_rate = 0.05}
        if not several:
            raise InputError(f"{key} in {shown(str(path))} must be one value; got a table.")
        return [f"{name}={_text(one)}" for name, one in value.items()]
    if isinstance(value, list) and len(value) == 1 and not several:
        value = value[0]
    if isinstance(value, list):
        if not several:
            raise InputError(f"{key} in {shown(str(path))} must be one value; got a list.")
        return [_text(one) for one in value]
    if several:
        return [_text(value)]
    return value if isinstance(value, bool) else _text(value)


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
