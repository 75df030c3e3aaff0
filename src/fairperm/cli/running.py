"""One run of a command that tests something: read the data, call the library, write the result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairperm.cli import outputs
from fairperm.cli.options import as_arguments, collect_settings
from fairperm.cli.presenting import describe_run
from fairperm.cli.terminal import (
    print_error,
    print_report,
    print_seed,
    print_text,
    select_unseen,
    show_warnings,
)
from fairperm.cli.values import name_scores
from fairperm.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import click

    from fairperm.cli.command import Command
    from fairperm.cli.files.loading import LoadedData

CALL = "fairperm.call"
_MAX_FAILED = 20


class Run:
    """One run of a command; its outputs are checked before any work."""

    loaded: LoadedData

    def __init__(self, ctx: click.Context) -> None:
        self.ctx, self.given = ctx, ctx.params
        command: Command = ctx.command  # type: ignore[assignment]
        self.options, self.command = command.options, str(command.name)
        self.paths = {name: self.given[name] for name in outputs.OUTPUTS if name in self.given}
        if self.given.get("junit") is not None and not self.given["fail_on"]:
            raise InputError("--junit needs --fail-on, the verdicts that fail.")
        is_printed = outputs.check_outputs({f"--{name}": one for name, one in self.paths.items()})
        self.is_silent = is_printed or self.given["quiet"]
        self.seen: set[str] = set()

    def need(self, **what: str) -> None:
        """Raise InputError for an option that is not given; the texts say what it is."""
        for name, text in what.items():
            if self.given[name] is None:
                raise InputError(f"--{name} must be given{text}.")

    def read(self, metrics: Sequence[str], *, rows: bool = False) -> LoadedData:
        """Read the columns that these metrics need; ``rows`` asks for every row."""
        from fairperm.cli.files.loading import read_columns

        return self.use(read_columns(self.given, metrics, with_hashes=self.keeps_hashes, rows=rows))

    def use(self, reading: Any) -> LoadedData:
        """Keep the data open until the command ends."""
        with show_warnings(self.given["quiet"]):
            self.loaded = self.ctx.with_resource(reading)
        return self.loaded

    @property
    def keeps_hashes(self) -> bool:
        """Whether an output identifies the files."""
        return bool(self.given.get("json") or self.given.get("report"))

    def call(self, function: Callable[..., Any], **own: Any) -> Any:
        """Return what a function of the library returns for the options, with some of its own."""
        given = self.given
        with (
            show_warnings(given["quiet"]) as self.seen,
            self.loaded.clear_errors(),
            name_scores(given.get("class_score")),
        ):
            arguments = as_arguments(self.options, given, self.loaded) | own
            self.ctx.meta[CALL] = arguments  # for whoever runs the command, and asks for its Python
            return function(**arguments)

    def settings(self, **changed: Any) -> dict[str, Any]:
        """Return the options that decide the numbers."""
        return collect_settings(self.options, self.given) | changed

    def describe(self, settings: Mapping[str, Any]) -> dict[str, object]:
        """Return how to run this again, for a report."""
        return describe_run(self.command, settings, self.loaded.files, self.loaded.n_rows)

    def report(self, found: Any, settings: Mapping[str, Any]) -> None:
        """Write the report of a result, if it has a path."""
        if self.given["report"] is not None:
            found.to_html(self.given["report"], provenance=self.describe(settings))

    def write(
        self,
        result: Callable[[], Mapping[str, Any]],
        settings: Mapping[str, Any],
        rows: Callable[[], Sequence[Mapping[str, Any]]] | None = None,
        *others: tuple[str | None, Callable[[], str]],
    ) -> None:
        """Write the result as JSON, its rows as CSV, and others, each if it has a path."""

        def make_json() -> str:
            files, n_rows = self.loaded.files, self.loaded.n_rows
            return outputs.as_json(
                self.command, result(), options=settings, files=files, rows=n_rows
            )

        written: list[tuple[str | None, Callable[[], str | bytes]]] = [
            (self.given["json"], make_json),
            *others,
        ]
        if rows is not None:
            raw = self.given["raw_names"]
            written.append((self.given["csv"], lambda: outputs.as_csv(rows(), raw_names=raw)))
            if self.command != "selection":  # whose workbook has a sheet for each table
                written.append((self.given.get("xlsx"), lambda: outputs.as_xlsx(rows())))
        outputs.write_outputs(*written)

    def unseen(self, notes: Iterable[str]) -> tuple[str, ...]:
        """Return the notes that were not shown as warnings."""
        return select_unseen(notes, self.seen)

    def say(self, text: str, seed: int | None) -> None:
        """Print the result, and how to get it again if it depends on a seed."""
        if not self.is_silent:
            print_text(text)
            if seed is not None:
                print_seed(seed)
            print_report(self.given.get("report"))


def print_failed(lines: Sequence[str], n: int, what: str, words: Iterable[str]) -> int:
    """Print what makes the command fail, of so many, and return the exit code."""
    if not lines:
        return 0
    print_error(f"fairperm: failed: {len(lines)} of {n:,} {what} (--fail-on {', '.join(words)})")
    for line in lines[:_MAX_FAILED]:
        print_error(f"  {line}")
    if len(lines) > _MAX_FAILED:
        print_error(f"  and {len(lines) - _MAX_FAILED:,} more")
    return 1
