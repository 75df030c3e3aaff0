"""Measure what each extra installs and how fast commands start, and write docs/dev/sizes.md.

``python -m scripts.sizes`` installs the checkout once for each extra, in environments of their own
in a temporary folder, with the newest versions that pip finds; ``--old REVISION`` measures an older
commit, without extras, to compare with. Sizes are of files on the disk after ``pip install``, which
compiles them. Times are of the processor, medians of several starts, as ratios to ``python -c
"import numpy, scipy"`` in the same run.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import subprocess
import sys
import tempfile
import tomllib
import venv
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "dev" / "sizes.md"
STARTS = 9
ASKED = ("--label", "y", "--prediction", "p", "--group", "g", "--metric", "fpr", "--seed", "1")
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
HEAD = """\
# Installed sizes and start times

`python -m scripts.sizes --old {old}` wrote this page, on Python {python}. Megabytes are those of
the whole environment after `pip install`, compiled files included. Times are of the processor, as
ratios to `python -c "import numpy, scipy"` in the same environment and run.

| installed | MB | `import fairperm` | `fairperm --help` | audit of rates in a CSV file |
|---|--:|--:|--:|--:|
"""
TAIL = """
The core must stay below 260 MB, `--help` below 1.5 and the audit below 6. Numba is an extra: it
would nearly double the core, and rates, their intervals and reports never use it. Without it,
other metrics have the same p-values, slowly, and a warning says so. DuckDB is an extra, because
Python reads text files to the same values.
"""


@dataclass(frozen=True, slots=True)
class Measured:
    """The size of an environment in megabytes, and times as ratios."""

    name: str
    size: float
    ratios: tuple[float, ...]

    def __str__(self) -> str:
        """Return a row of the table."""
        cells = [self.name, f"{self.size:,.0f}", *(f"{one:.1f}" for one in self.ratios)]
        return f"| {' | '.join(cells)} |"


def measure(name: str, requirement: str, folder: Path) -> Measured:
    """Install a requirement, and measure the environment that it makes."""
    folder.mkdir()
    venv.create(folder / "venv", with_pip=False)
    python = folder / "venv" / "bin" / "python"
    pip = (sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", requirement)
    subprocess.run(pip, check=True, env=CLEAN)  # noqa: S603
    size = sum(one.lstat().st_blocks * 512 for one in (folder / "venv").rglob("*")) / 2**20
    chance = random.Random(1)  # noqa: S311
    rows = (
        f"{chance.randint(0, 1)},{chance.randint(0, 1)},{chance.choice('ab')}" for _ in "x" * 500
    )
    data = folder / "x.csv"
    data.write_text("\n".join(["y,p,g", *rows, ""]), encoding="utf-8")
    command = str(python.with_name("fairperm"))
    runs = (
        (str(python), "-c", "import numpy, scipy"),
        (str(python), "-c", "import fairperm"),
        (command, "--help"),
        (command, "audit", str(data), *ASKED),
    )
    times = [[_time(*one) for one in runs] for _ in range(STARTS)]
    base, *others = (statistics.median(column) for column in zip(*times, strict=True))
    return Measured(name, size, tuple(one / base for one in others))


def _time(*command: str) -> float:
    """Return the processor's seconds that a command takes."""
    before = os.times()
    subprocess.run(command, check=True, env=CLEAN, stdout=subprocess.DEVNULL)  # noqa: S603
    after = os.times()
    used = after.children_user - before.children_user
    return used + after.children_system - before.children_system


def main() -> None:
    """Measure the core and each extra, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--old", help="a commit to compare with")
    old = parser.parse_args().old
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    found = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if old:
            (folder / "old").mkdir()
            archive = subprocess.run(  # noqa: S603
                ("git", "-C", str(ROOT), "archive", old),  # noqa: S607
                check=True,
                stdout=subprocess.PIPE,
            ).stdout
            subprocess.run(("tar", "-x", "-C", folder / "old"), input=archive, check=True)  # noqa: S603, S607
            found.append(measure(f"before extras ({old})", str(folder / "old"), folder / "before"))
        found.append(measure("fairperm", str(ROOT), folder / "core"))
        for extra in project["optional-dependencies"]:
            found.append(measure(f"fairperm[{extra}]", f"{ROOT}[{extra}]", folder / extra))
            print(found[-1], flush=True)
    text = HEAD.format(old=old, python=sys.version.split()[0]) + "\n".join(map(str, found)) + "\n"
    PAGE.write_text(text + TAIL, encoding="utf-8")


if __name__ == "__main__":
    main()
