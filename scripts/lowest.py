"""Print the lowest versions that pyproject.toml allows, as constraints for pip."""

from __future__ import annotations

import re
import tomllib
from itertools import chain
from pathlib import Path

PROJECT = Path(__file__).parents[1] / "pyproject.toml"


def lowest() -> list[str]:
    """Return ``name==version`` for each dependency of the package and of its extras.

    >>> [line for line in lowest() if line.startswith("numpy")]
    ['numpy==...']

    """
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    needed = [*project["dependencies"], *chain(*project["optional-dependencies"].values())]
    others = (one for one in needed if not one.startswith("fairperm["))  # an extra of extras
    return sorted({_pinned(requirement) for requirement in others})


def _pinned(requirement: str) -> str:
    found = re.fullmatch(r"([a-z0-9-]+)>=([0-9.]+)", requirement)
    if found is None:
        raise ValueError(f"a dependency must read name>=version; got {requirement!r}")
    return f"{found[1]}=={found[2]}"


if __name__ == "__main__":
    print("\n".join(lowest()))
