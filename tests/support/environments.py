"""Environments for packages that would change versions in that of the tests."""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"


def run_in_environment(folder: Path, group: str, *command: object, also: object = None) -> None:
    """Install a dependency group, and what else is asked for, and run a script with its Python."""
    venv.create(folder / "env")
    python = folder / "env" / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-compile"]
    asked = ["--group", f"{PYPROJECT}:{group}", *([] if also is None else [also])]
    for one in ([*pip, *asked], [python, "-P", *command]):
        done = subprocess.run([*map(str, one)], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
