"""Measurements as tables for docs/benchmarks.md."""

from __future__ import annotations

import math
import os
import platform
import sys
from importlib import metadata
from typing import TYPE_CHECKING, Any

from benchmarks.peers import installed
from benchmarks.peers.measuring import DRAWS, LIMIT
from benchmarks.peers.questions import METRICS, SEED
from benchmarks.peers.tools import OURS, TOOLS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from benchmarks.peers.measuring import Found

SVG = "benchmarks.svg"
_UNITS = ((86_400.0, "d"), (3_600.0, "h"), (60.0, "min"), (1.0, "s"), (1e-3, "ms"))
_BUSY = 2.0  # of the machine; this run alone is a load of 1
_POWERS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def told_seconds(seconds: float) -> str:
    """Return a time in two digits and the unit that it is read in."""
    size, unit = next((one for one in _UNITS if seconds >= 0.995 * one[0]), _UNITS[-1])
    return f"{two_digits(seconds / size)} {unit}"


def two_digits(number: float) -> str:
    """Return a number in two significant digits, never as a power."""
    if number <= 0:
        return "0"
    rounded = float(f"{number:.1e}")
    return f"{rounded:,.{max(0, 1 - math.floor(math.log10(rounded)))}f}"


def told_rows(n: int) -> str:
    """Return a power of ten as one, another number as it is."""
    digits = len(str(n)) - 1
    return f"10{str(digits).translate(_POWERS)}" if n == 10**digits else f"{n:,}"


def mark(one: Found) -> str:
    """Return how a time was found: "" measured, "~" of fewer permutations, "≈" of fewer rows."""
    return "≈" if "draws" not in one else "" if one["draws"] == DRAWS else "~"


def table(head: Sequence[str], rows: Iterable[Sequence[str]], words: int = 1) -> str:
    """Return a Markdown table: so many columns of words, the others of numbers."""
    rule = ["---"] * words + ["---:"] * (len(head) - words)
    lines = [head, rule, *rows]
    return "\n".join(f"| {' | '.join(one)} |" for one in lines)


def tables(found: list[Found]) -> str:
    """Return the page's part that is measured."""
    sizes = sorted({one["rows"] for one in found})
    load = os.getloadavg()[0]
    busy = f"**The machine was busy (a load of {load:.1f}): these times are preliminary.**"
    parts = [
        *([busy] if load > _BUSY else []),
        "## Time",
        f"{DRAWS} permutations, one thread. In brackets: the time divided by fairperm's. ~ marks "
        "a time extrapolated from fewer permutations, ≈ a time extrapolated from fewer rows, "
        f"because three permutations took more than {LIMIT:g} s.",
        f"![Seconds by rows, one panel for each metric]({SVG})",
    ]
    parts += [
        _time_table(found, sizes),
        "## Memory",
        "Peak memory of the process in MB, minus its memory with the data in place and everything "
        "imported. For extrapolated times it is the memory of the permutations that were run.",
        _memory_table(found, sizes),
        "## Validity",
        _validity_table(found),
        "## Before the first test",
        "Time of a new process (the shortest of three) and disk space in MB in this environment, "
        "without compiled bytecode. `python -c pass` takes "
        f"{told_seconds(installed.start_seconds('pass'))}, `fairperm --help` "
        f"{told_seconds(installed.help_seconds())}. fairperm imports most packages with the first "
        "test, so the table also has the time with a first test: an AUC of 1,000 rows, with "
        "compiled kernels.",
        _start_table(found),
        "## Machine and versions",
        _conditions(),
    ]
    return "\n\n".join(parts)


def _names(found: list[Found]) -> list[str]:
    return list(dict.fromkeys(one["tool"] for one in found))


def _cells(found: list[Found], tool: str, metric: str) -> dict[int, Found]:
    return {one["rows"]: one for one in found if one["tool"] == tool and one["metric"] == metric}


def _time_table(found: list[Found], sizes: list[int]) -> str:
    shown = [(metric, n) for metric in METRICS for n in _shown(sizes)]
    rows = []
    for tool in _names(found):
        line = []
        for metric, n in shown:
            theirs, ours = (_cells(found, one, metric)[n] for one in (tool, OURS))
            told = f"{mark(theirs)} {told_seconds(theirs['seconds'])}".strip()
            ratio = theirs["seconds"] / ours["seconds"]
            line.append(told if tool == OURS else f"{told} ({two_digits(ratio)}×)")
        rows.append([tool, *line])
    return table(["tool", *(f"{metric}, {told_rows(n)}" for metric, n in shown)], rows)


def _shown(sizes: list[int]) -> list[int]:
    """Return every second size from 100,000 rows on: the picture has all."""
    return [n for n in sizes[::2] if n >= 10**5] or sizes


def _memory_table(found: list[Found], sizes: list[int]) -> str:
    shown = _shown(sizes)
    rows = []
    for tool in _names(found):
        cells = [_cells(found, tool, metric)[n] for metric in METRICS for n in shown]
        rows.append([tool, *(f"{one['memory']:,.0f}" if "memory" in one else "" for one in cells)])
    head = ["tool", *(f"{metric}, {told_rows(n)}" for metric in METRICS for n in shown)]
    return table(head, rows)


def _validity_table(found: list[Found]) -> str:
    rows = []
    for name, tool in TOOLS.items():
        here = tool.call if name in _names(found) else "not installed here; not measured"
        rows.append([name, here, tool.valid, tool.lacks])
    head = ["tool", "call", "its result is valid for", "drawbacks"]
    return table(head, rows, words=4)


def _start_table(found: list[Found]) -> str:
    kept = {TOOLS[name].package: name for name in reversed(_names(found))}
    rows = []
    for package, name in reversed(kept.items()):
        module, needed = TOOLS[name].module, installed.closure(package)
        rows.append(
            [
                f"{package} {metadata.version(package)}",
                f"`import {module}`",
                told_seconds(installed.start_seconds(f"import {module}")),
                told_seconds(installed.first_test_seconds(name)),
                f"{installed.megabytes({package}):,.1f}",
                f"{installed.megabytes(needed):,.0f} ({len(needed) - 1})",
            ]
        )
    head = [
        "package",
        "statement",
        "time",
        "with a first test",
        "MB",
        "MB with its dependencies (packages)",
    ]
    return table(head, rows, words=2)


def _conditions() -> str:
    packages = {tool.package for tool in TOOLS.values() if tool.is_installed}
    versions = sorted(packages | {"numba", "pandas"})
    told = ", ".join(f"{one} {metadata.version(one)}" for one in versions)
    options = " ".join(sys.argv[1:])
    return (
        f"`python benchmarks/bench_peers.py {options}`, seed {SEED}; Python "
        f"{platform.python_version()}, {platform.system()} {platform.machine()}, "
        f"{os.cpu_count()} cores, one thread; {told}."
    )


def plain(found: list[Found]) -> list[dict[str, Any]]:
    """Return what the picture shows."""
    return [
        {
            "tool": one["tool"],
            "metric": f"{one['metric']} gap",
            "rows": one["rows"],
            "seconds": one["seconds"],
            "found": "extrapolated" if mark(one) else "measured",
        }
        for one in found
    ]
