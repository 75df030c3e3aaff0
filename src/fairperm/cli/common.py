"""The steps around every command: parse its options, show warnings once, write its outputs."""

from __future__ import annotations

import sys
import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from fairperm._utils.files import check_target, write_whole
from fairperm.cli.messages import write_message
from fairperm.cli.terminal import fits, print_error, print_text, render, width, wrap
from fairperm.errors import FairpermWarning, InputError, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from fairperm.auditing.result import Audit
    from fairperm.hypothesis_tests.results.audits import GroupSummary

NOT_SETTINGS = frozenset(
    {"files", "json", "csv", "raw_names", "markdown", "report", "quiet"}
    | {"config", "debug", "fail_on"}
)
_MERGE_NAMES = '--sql "SELECT * REPLACE (lower(trim(x)) AS x) FROM data" makes them equal.'


@contextmanager
def show_warnings(quiet: bool) -> Iterator[set[str]]:
    """Print each warning of the library once, on standard error; yield those that were shown."""
    seen: set[str] = set()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", FairpermWarning)
        try:
            yield seen
        finally:
            for one in caught:
                note = one.message.args[0] if isinstance(one.message, FairpermWarning) else None
                if note is None or note in seen:
                    continue
                seen.add(note)
                if not quiet:
                    print_error(f"fairperm: note: {write_message(note)}")


def select_unseen(notes: Iterable[str], seen: set[str]) -> tuple[str, ...]:
    """Return the notes that were not shown as warnings, in the command line's words."""
    return tuple(write_message(note) for note in notes if note not in seen)


def warn_of_similar_names(groups: Iterable[GroupSummary], *, quiet: bool) -> None:
    """Print which groups may be one group misspelt, and how to merge them."""
    from fairperm.report.view import find_look_alikes

    for text in () if quiet else find_look_alikes(groups):
        print_error(f"fairperm: note: {text} {_MERGE_NAMES}")


def parse_word(value: str) -> str | None:
    """Return the word, or None for "none"."""
    return None if value.strip().lower() == "none" else value


def parse_numbers(option: str, given: Sequence[str] | None) -> Any:
    """Return one number, or numbers by name from NAME=NUMBER."""
    if not given:
        return None
    if len(given) == 1 and "=" not in given[0]:
        return parse_number(option, given[0])
    return parse_pairs(option, given, "NUMBER or NAME=NUMBER", "With several, each needs a name.")


def parse_pairs(option: str, given: Sequence[str], rule: str, hint: str = "") -> dict[str, float]:
    """Return numbers by name from NAME=NUMBER."""
    found: dict[str, float] = {}
    for text in given:
        name, mark, value = text.rpartition("=")
        if not mark or not name.strip():
            raise InputError(option, rule, text, hint)
        if name.strip() in found:
            raise InputError(f"{option} must be given only once for {shown(name.strip())}.")
        found[name.strip()] = parse_number(option, value)
    return found


def parse_number(option: str, text: str) -> float:
    """Return a text as a number."""
    try:
        return float(text)
    except ValueError:
        raise InputError(option, "a number", text) from None


def print_audit(audit: Audit) -> None:
    """Print an audit as a table, or as lines if the terminal is narrow."""
    from fairperm.auditing.text import as_table, footing, heading
    from fairperm.cli.documents import as_lines

    table = as_table(audit, width())
    print_text(wrap(heading(audit)))
    print_text(render(table) if fits(table) else as_lines(audit, width()))
    print_text(wrap(footing(audit)))


def print_seed(seed: int) -> None:
    """Print how to get the same numbers again."""
    print_text(wrap(f"Seed {seed}: the same --seed gives the same numbers again."))


def collect_settings(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that decide the numbers, ready for JSON."""
    return {
        name: _make_plain(value)
        for name, value in params.items()
        if name not in NOT_SETTINGS and value not in (None, [], ())
    }


def _make_plain(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_make_plain(one) for one in value]
    return getattr(value, "value", value)


def check_outputs(outputs: Mapping[str, str | Path | None]) -> bool:
    """Check the paths of outputs before any work; return whether one is standard output."""
    printed = [name for name, path in outputs.items() if str(path) == "-"]
    if len(printed) > 1:
        raise InputError(f"only one of {' and '.join(printed)} can be '-', standard output.")
    if "--report" in printed:
        raise InputError("--report must be the name of a file; only text can go to '-'.")
    names = [str(path) for path in outputs.values() if path is not None and str(path) != "-"]
    seen = set()
    for name in names:
        target = check_target(name).resolve()  # "./x" and a link to x are x
        if target in seen:
            raise InputError(f"two outputs cannot be the same file, {shown(name)}.")
        seen.add(target)
    return bool(printed)


def write_output(path: str, text: str) -> None:
    """Write a file whole or not at all, or print it if the path is "-"."""
    if path == "-":
        sys.stdout.flush()
        print_text(text.rstrip("\n"))
    else:
        write_whole(path, text)


def write_outputs(*outputs: tuple[str | None, Callable[[], str]]) -> None:
    """Write the outputs that have a path; what is printed comes last, for its reader may leave."""
    for path, make_text in sorted(outputs, key=lambda one: one[0] == "-"):
        if path is not None:
            write_output(path, make_text())
