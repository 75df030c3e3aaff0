"""Print the lowest versions that pyproject.toml allows, as constraints for pip."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

PROJECT = Path(__file__).parents[1] / "pyproject.toml"


def lowest() -> list[str]:
    """Return ``name==version`` for each dependency of the package.

    >>> [line for line in lowest() if line.startswith("numpy")]
    ['numpy==...']

    """
    needed = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]["dependencies"]
    return [_pinned(requirement) for requirement in needed]


def _pinned(requirement: str) -> str:
    found = re.fullmatch(r"([a-z0-9-]+)>=([0-9.]+)", requirement)
    if found is None:
        raise ValueError(f"a dependency must read name>=version; got {requirement!r}")
    return f"{found[1]}=={found[2]}"


if __name__ == "__main__":
    print("\n".join(lowest()))
