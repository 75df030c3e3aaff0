"""The entry point: run a command, and print whatever goes wrong as one sentence."""

from __future__ import annotations

import errno
import io
import sys
import traceback
from typing import Annotated, Any

import typer
import typer.core

from fairperm import cli
from fairperm._utils.formatting import join_words
from fairperm.cli.commands.audit import audit
from fairperm.cli.commands.compare import compare
from fairperm.cli.commands.demo import demo
from fairperm.cli.commands.discover import discover
from fairperm.cli.commands.metrics import metrics
from fairperm.cli.commands.periods import periods
from fairperm.cli.commands.power import power
from fairperm.cli.commands.ranking import ranking
from fairperm.cli.commands.report import report
from fairperm.cli.commands.sweep import sweep
from fairperm.cli.commands.test import one_test
from fairperm.cli.terminal import (
    ClosedPipeError,
    describe_failure,
    discard,
    print_error,
    write_message,
)
from fairperm.errors import FairpermError, shown

WRONG, INTERRUPTED, BROKEN_PIPE = 2, 130, 141  # exit codes; 1 means a --fail-on verdict
# what the loader, llvmlite and Python say if there are no more addresses
_NO_ADDRESSES = ("failed to map segment", "Could not find/load shared object", "start new thread")
_RULES = {"int_parsing": "a whole number", "float_parsing": "a number"}  # by pydantic's names


class Command(typer.core.TyperCommand):
    """A command that raises for an option given twice of which only one value would be used."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments, of which --help comes before any error."""
        given = list(args)  # parsing empties the list
        rest = super().parse_args(ctx, args)
        *_, used = self.make_parser(ctx).parse_args(given)
        for one in used:
            takes_one = isinstance(one, typer.core.TyperOption) and not (
                one.multiple or one.is_flag
            )
            if takes_one and used.count(one) > 1:
                ctx.fail(f"{max(one.opts, key=len)} must be given only once")
        return rest


app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command(cls=Command)(audit)
app.command("test", cls=Command)(one_test)
for command in (
    compare,
    report,
    sweep,
    discover,
    ranking,
    periods,
    power,
    metrics,
    demo,
):
    app.command(cls=Command)(command)


def _print_version(value: bool) -> None:
    if value:
        from importlib import metadata

        print(f"fairperm {metadata.version('fairperm')}")
        raise typer.Exit


@app.callback()
def _fairperm(
    version: Annotated[
        bool,
        typer.Option("--version", help="Show the version.", callback=_print_version, is_eager=True),
    ] = False,
) -> None:
    """Test whether gaps between groups in a model's metrics are real or due to chance.

    Exit codes: 0 success, 1 a --fail-on verdict was found, 2 an error, 128 + N ended by signal N.
    """


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
        result: Any = app(standalone_mode=False, prog_name="fairperm")
        return result if isinstance(result, int) else 0
    except (BrokenPipeError, ClosedPipeError):
        return BROKEN_PIPE
    except SystemExit as end:  # typer and rich exit with 1 if nobody reads what they print
        if end.code != 1:
            raise
        return BROKEN_PIPE
    except (KeyboardInterrupt, typer.Abort):
        return INTERRUPTED
    except Exception as error:
        if cli.received:  # by a callback, whose caller then failed
            return INTERRUPTED
        if "--debug" in sys.argv:
            print_error("".join(traceback.format_exception(error)).rstrip())
            return WRONG
        print_error(f"fairperm: error: {_explain(error)}")
        return WRONG


def _explain(error: Exception) -> str:
    """Return what went wrong in one sentence, or two with a hint."""
    if hasattr(error, "format_message"):
        text = _explain_usage(error).removesuffix(".")
        end = "" if text.endswith("?") else "."
        return f"{text}{end} `{_command_path(error)} --help` lists the options."
    if isinstance(error, FairpermError):
        return write_message(error)
    if isinstance(error, MemoryError):
        return "not enough memory for these data."
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
    # newer versions of typer ask pydantic, whose errors have data
    reasons: list[Any] = getattr(error.__cause__, "errors", list)()
    reason: dict[str, Any] = reasons[0] if reasons else {"type": ""}
    rule = _RULES.get(reason["type"])
    if rule is None:
        return f"{option}: {reason.get('ctx', {}).get('error', error.message)}"
    source = error.ctx.get_parameter_source(param.name)
    where = " in the file of options" if source.name == "DEFAULT_MAP" else ""
    return f"{option} must be {rule}; got {shown(reason['input'])}{where}"


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
    known = (one.name or getattr(one.callback, "__name__", "") for one in app.registered_commands)
    return next((f"fairperm {name}" for name in known if name in sys.argv[1:2]), "fairperm")
