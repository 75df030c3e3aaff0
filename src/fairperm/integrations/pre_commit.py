"""The hook of pre-commit: ``python -m fairperm.integrations.pre_commit``, ``fairperm audit``.

It is refused where neither its arguments nor the file of options name verdicts that fail.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory


def main() -> int:
    """Return the exit code of the audit."""
    with TemporaryDirectory() as folder:
        gate = ("--junit", str(Path(folder) / "junit.xml"))  # which needs verdicts that fail
        command = (sys.executable, "-P", "-m", "fairperm", "audit", *sys.argv[1:], *gate)
        return subprocess.run(command, check=False).returncode  # noqa: S603


if __name__ == "__main__":
    sys.exit(main())
