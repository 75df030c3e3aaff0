"""The entry point: run a command, and print whatever goes wrong as one sentence."""

from __future__ import annotations

import errno
import io
import os
import sys
import traceback
from typing import Any

import click

from fairperm import cli
from fairperm._utils.formatting import join_words
from fairperm._utils.optional import describe_missing
from fairperm.cli.command import Command, make_help_option, wrap_help
from fairperm.cli.commands.app import app as page
from fairperm.cli.commands.audit import audit
from fairperm.cli.commands.compare import compare
from fairperm.cli.commands.demo import demo
from fairperm.cli.commands.flip import flip
from fairperm.cli.commands.metrics import metrics
from fairperm.cli.commands.monitor import monitor
from fairperm.cli.commands.periods import periods
from fairperm.cli.commands.power import power
from fairperm.cli.commands.questions import discover, ranking, sweep, test
from fairperm.cli.commands.report import report
from fairperm.cli.commands.selection import selection
from fairperm.cli.terminal import (
    ClosedPipeError,
    describe_failure,
    discard,
    print_error,
    print_text,
    write_message,
)
from fairperm.errors import FairpermError

WRONG, INTERRUPTED, BROKEN_PIPE = 2, 130, 141  # exit codes; 1 means a --fail-on verdict
# what the loader, llvmlite and Python say if there are no more addresses
_NO_ADDRESSES = ("failed to map segment", "Could not find/load shared object", "start new thread")
_COMPLETE = "_FAIRPERM_COMPLETE"  # click's name
_ENDINGS = (
    "`fairperm COMMAND --help` explains a command. Exit codes: 0 success; 1 a --fail-on verdict; 2 "
    "an error; 128 + N ended by signal N.",
    f'Shell completion: eval "$({_COMPLETE}=bash_source fairperm)"; or zsh_source.',
)
_COMMANDS = (
    *(audit, selection, compare, test, sweep, discover, flip, ranking, periods, monitor),
    *(power, report, metrics, demo, page),
)


class _Commands(click.Group):
    """All commands, in the order in which one meets them."""

    commands: dict[str, Command]  # type: ignore[assignment]

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return their names."""
        return [*self.commands]

    def get_help(self, ctx: click.Context) -> str:
        """Return what there is."""
        lines = [
            *wrap_help(self.help or ""),
            "",
            "Usage: fairperm COMMAND [OPTIONS]",
            "",
            "Commands:",
        ]
        for name, one in self.commands.items():
            lines += wrap_help((one.help or "").partition("\n")[0], f"  {name:<11}")
        for ending in _ENDINGS:
            lines += ["", *wrap_help(ending)]
        return "\n".join(lines)


@click.pass_context
def _show_help(ctx: click.Context) -> None:
    if ctx.invoked_subcommand is None:
        print_text(ctx.get_help())


def _print_version(ctx: click.Context, param: object, value: bool) -> None:
    if value:
        from importlib import metadata

        print_text(f"fairperm {metadata.version('fairperm')}")
        ctx.exit()


app = _Commands(
    "fairperm",
    {str(one.name): one for one in _COMMANDS},
    help="Test whether gaps between groups in a model's metrics are real or due to chance.",
    callback=_show_help,
    add_help_option=False,
    invoke_without_command=True,
    params=[
        make_help_option(["-h", "--help"], lambda ctx: ctx.get_help()),
        click.Option(
            ["--version"], is_flag=True, is_eager=True, expose_value=False, callback=_print_version
        ),
    ],
)


def main() -> None:
    """Run the command and exit with its code."""
    is_closed = sys.stdout is None
    sys.stdout, sys.stderr = sys.stdout or io.StringIO(), sys.stderr or io.StringIO()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # names from data may be unprintable
    code = _run()
    try:
        sys.stdout.flush()
        if is_closed and isinstance(sys.stdout, io.StringIO) and sys.stdout.getvalue():
            raise OSError(errno.EBADF, "it is closed")
    except BrokenPipeError:
        code = BROKEN_PIPE
    except OSError as error:
        print_error(f"fairperm: error: {describe_failure(error)}")
        code = WRONG
        discard(sys.stdout)
    if code == BROKEN_PIPE:
        discard(sys.stdout)
    sys.exit(code)


def _run() -> int:
    try:
        if _COMPLETE in os.environ:  # the shell asks how a word goes on
            app.main(prog_name="fairperm")
        with app.make_context("fairperm", sys.argv[1:]) as ctx:
            return app.invoke(ctx) or 0
    except click.exceptions.Exit as end:  # after --help or --version
        return end.exit_code
    except (BrokenPipeError, ClosedPipeError):
        return BROKEN_PIPE
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:
        if cli.received:  # by a callback, whose caller then failed
            return INTERRUPTED
        if "--debug" in sys.argv:
            print_error("".join(traceback.format_exception(error)).rstrip())
            return WRONG
        print_error(f"fairperm: error: {explain(error)}")
        return WRONG


def explain(error: Exception) -> str:
    """Return what went wrong in one sentence, or two with a hint."""
    if hasattr(error, "format_message"):
        text = _explain_usage(error).removesuffix(".")
        end = "" if text.endswith("?") else "."
        return f"{text}{end} `{_command_path(error)} --help` lists the options."
    if isinstance(error, FairpermError):
        return write_message(error)
    if isinstance(error, MemoryError):
        return "not enough memory for these data."
    if missing := describe_missing(error, "This command"):
        return f"{missing}."
    text = " ".join(str(error).split())
    if any(one in text for one in _NO_ADDRESSES) and (limit := _find_address_limit()):
        return (
            f"not enough memory to load a library or to start a thread: {limit >> 20:,} MB of "
            "addresses are allowed. Raise the limit (ulimit -v)."
        )
    if isinstance(error, OSError):
        return f"{error.strerror or text}{f': {error.filename}' if error.filename else ''}."
    return f"{type(error).__name__}: {text} (this should not happen; --debug shows where)"


def _find_address_limit() -> int | None:
    """Return the number of bytes that the process may address, if that is limited."""
    try:
        import resource
    except ModuleNotFoundError:  # Windows
        return None
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return None if limit == resource.RLIM_INFINITY else limit


def _explain_usage(error: Any) -> str:
    """Return what the parser of the command line says; of a wrong value, in our words."""
    param = getattr(error, "param", None)
    if param is None:
        if others := join_words(_find_commands(error)):
            return f"{error.option_name} is an option of {others}, not of {error.ctx.info_name}"
        return str(error.format_message())
    option = next((one for one in param.opts if one.startswith("--")), param.metavar)
    if not error.message.startswith("must be "):
        return f"{option}: {error.message}"
    source = error.ctx.get_parameter_source(param.name)
    where = " in the file of options" if source.name == "DEFAULT_MAP" else ""
    return f"{option} {error.message}{where}"


def _find_commands(error: Any) -> list[str]:
    """Return the other commands that have an option which this one lacks."""
    option, context = getattr(error, "option_name", None), getattr(error, "ctx", None)
    if context is None or any(option in one.opts for one in context.command.params):
        return []
    commands = getattr(context.find_root().command, "commands", {})
    return [
        name
        for name, command in commands.items()
        if any(option in one.opts for one in command.params)
    ]


def _command_path(error: Any) -> str:
    """Return the command that could not be parsed."""
    if getattr(error, "ctx", None) is not None:
        return str(error.ctx.command_path)
    return next((f"fairperm {name}" for name in app.commands if name in sys.argv[1:2]), "fairperm")
