"""What every command does around its test: options read, warnings said once, files written."""

from __future__ import annotations

import sys
import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from fairperm._utils.files import check_target, write_whole
from fairperm.cli.terminal import complain, say, wrapped
from fairperm.cli.words import in_options
from fairperm.errors import FairpermWarning, InputError, shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from fairperm.hypothesis_tests.results.audits import GroupSummary

NOT_SETTINGS = frozenset(
    {"files", "json", "csv", "markdown", "report", "quiet", "config", "debug", "fail_on"}
)
_ONE_OF_MANY = (
    '--sql "SELECT * REPLACE (lower(trim(x)) AS x) FROM data" makes one of them in column x.'
)


@contextmanager
def noted(quiet: bool) -> Iterator[set[str]]:
    """Say on standard error what the library warns of, each thing once; tell what was said."""
    said: set[str] = set()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", FairpermWarning)
        try:
            yield said
        finally:
            for text in dict.fromkeys(
                str(one.message) for one in caught if issubclass(one.category, FairpermWarning)
            ):
                said.add(text)
                if not quiet:
                    complain(f"fairperm: note: {in_options(text)}")


def unsaid(notes: Iterable[str], said: set[str]) -> tuple[str, ...]:
    """Return the notes that were no warnings, in the command line's words."""
    return tuple(in_options(note) for note in notes if note not in said)


def note_look_alikes(groups: Iterable[GroupSummary], *, quiet: bool) -> None:
    """Say on standard error which groups may be one, misspelt, and how to make them one."""
    from fairperm.report.names import find_look_alikes

    for text in () if quiet else find_look_alikes(groups):
        complain(f"fairperm: note: {text} {_ONE_OF_MANY}")


def word_or_none(value: str) -> str | None:
    """Return an option's word; "none" is none."""
    return None if value.strip().lower() == "none" else value


def number_or_pairs(option: str, given: Sequence[str] | None) -> Any:
    """Return one number, or numbers by name from NAME=NUMBER."""
    if not given:
        return None
    if len(given) == 1 and "=" not in given[0]:
        return number(option, given[0])
    return pairs(option, given, "NUMBER or NAME=NUMBER", "With several, each needs a name.")


def pairs(option: str, given: Sequence[str], rule: str, hint: str = "") -> dict[str, float]:
    """Return numbers by name from NAME=NUMBER."""
    found: dict[str, float] = {}
    for text in given:
        name, mark, value = text.rpartition("=")
        if not mark or not name.strip():
            raise InputError(f"{option} must be {rule}; got {shown(text)}. {hint}".rstrip())
        if name.strip() in found:
            raise InputError(f"{option} must be given once for {shown(name.strip())}.")
        found[name.strip()] = number(option, value)
    return found


def number(option: str, text: str) -> float:
    """Return a text as a number."""
    try:
        return float(text)
    except ValueError:
        raise InputError(f"{option} must be a number; got {shown(text)}.") from None


def tell_seed(seed: int) -> None:
    """Say how to get the same numbers again."""
    say(wrapped(f"Seed {seed}: the same --seed gives the same numbers again."))


def settings(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that decide the numbers, as JSON has them."""
    return {
        name: _plain(value)
        for name, value in params.items()
        if name not in NOT_SETTINGS and value not in (None, [], ())
    }


def _plain(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    return getattr(value, "value", value)


def check_outputs(outputs: Mapping[str, str | Path | None]) -> bool:
    """Check where files go before any work is done; tell whether one goes to standard output."""
    printed = [name for name, path in outputs.items() if str(path) == "-"]
    if len(printed) > 1:
        raise InputError(f"only one of {' and '.join(printed)} can be '-', standard output.")
    if "--report" in printed:
        raise InputError("--report must be the name of a file; '-' is for --json and the like.")
    names = [str(path) for path in outputs.values() if path is not None and str(path) != "-"]
    for name in names:
        check_target(name)
        if names.count(name) > 1:
            raise InputError(f"two files cannot have one name, {shown(name)}.")
    return bool(printed)


def write(path: str, text: str) -> None:
    """Write a file whole, or print it."""
    if path == "-":
        sys.stdout.flush()
        say(text.rstrip("\n"))
    else:
        write_whole(path, text)
