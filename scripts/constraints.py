"""Write the versions that pip would install today to constraints.txt: ``make constraints``.

Run it with the oldest Python that fairperm supports: newer ones can install the same versions.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
EXTRAS = "app,excel,fast,files,plots"
GROUPS = ("dev", "bench", "peers", "docs")
HEADER = """\
# What CI and `make` install, and nothing else. Dependabot renews it; so does `make constraints`.
"""


def resolve() -> list[str]:
    """Return ``name==version`` of the package's dependencies, of its groups and of its builder."""
    groups = [part for name in GROUPS for part in ("--group", name)]
    options = ("--dry-run", "--ignore-installed", "--quiet", "--report", "-")
    command = [
        sys.executable,
        "-m",
        "pip",
        "install",
        *options,
        *groups,
        "pip",
        "hatchling",
        f".[{EXTRAS}]",
    ]
    done = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE)  # noqa: S603
    found = (one["metadata"] for one in json.loads(done.stdout)["install"])
    pinned = (f"{one['name']}=={one['version']}" for one in found if one["name"] != "fairperm")
    return sorted(pinned, key=str.casefold)


if __name__ == "__main__":
    (ROOT / "constraints.txt").write_text(HEADER + "\n".join(resolve()) + "\n", encoding="utf-8")
