"""The same question through fairperm and its peers: time, memory, and what is valid.

``make bench-peers`` runs this with ``--write``, which puts the tables and the picture into docs/.
A quick look: ``python benchmarks/bench_peers.py --sizes 1e3 1e4 --budget 0.3``.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
from pathlib import Path

from benchmarks.peers.measuring import Found, measure, measure_sizes
from benchmarks.peers.questions import METRICS
from benchmarks.peers.tools import OURS, TOOLS

DOCS = Path(__file__).parent.parent / "docs"
BEGIN, END = "<!-- begin: make bench-peers -->", "<!-- end: make bench-peers -->"
# what libraries would otherwise start on their own
_ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "NUMBA")}


def checked(found: list[Found]) -> None:
    """End the run if a tool was asked another question: all have the same gap."""
    gaps = {
        (one["metric"], one["rows"]): one["gap"]
        for one in found
        if one["tool"] == OURS and one.get("gap") is not None
    }
    for one in found:
        expected = gaps.get((one["metric"], one["rows"]))
        if expected is not None and not math.isclose(one["gap"], expected, rel_tol=1e-9):
            sys.exit(f"{one['tool']}: gap {one['gap']} in {one['metric']}, not {expected}")


def write(found: list[Found], text: str) -> None:
    from benchmarks.peers import page, picture  # late: not in the processes that are measured

    path = DOCS / "benchmarks.md"
    content = path.read_text(encoding="utf-8")
    start, stop = content.index(BEGIN) + len(BEGIN), content.index(END)
    path.write_text(f"{content[:start]}\n\n{text}\n\n{content[stop:]}", encoding="utf-8")
    picture.chart(page.plain(found)).save(DOCS / page.SVG)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", nargs="+", type=float, default=[1e3, 1e4, 1e5, 1e6, 1e7])
    parser.add_argument(
        "--budget", type=float, default=1.0, help="seconds of permutations for each time"
    )
    parser.add_argument("--write", action="store_true", help="into docs/benchmarks.md and its svg")
    parser.add_argument("--one", nargs=5, help=argparse.SUPPRESS)  # the arguments of ``measure``
    given = parser.parse_args()
    if given.one:
        name, metric, n, budget, each = given.one
        print(json.dumps(measure(name, metric, int(n), float(budget), float(each))))
        return
    os.environ.update(_ONE_THREAD)
    sizes = [int(n) for n in given.sizes]
    found = [
        one
        for name, tool in TOOLS.items()
        if tool.is_installed
        for metric in METRICS
        for one in measure_sizes(name, metric, sizes, given.budget)
    ]
    checked(found)
    from benchmarks.peers import page

    text = page.tables(found)
    print(text)
    if given.write:
        write(found, text)


if __name__ == "__main__":
    main()
