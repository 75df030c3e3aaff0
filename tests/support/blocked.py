"""Run a module as if packages were missing: ``python -m tests.support.blocked NAMES MODULE …``.

NAMES are joined by commas. Processes that the module starts have the packages again.
"""

from __future__ import annotations

import runpy
import sys

if __name__ == "__main__":
    names, module, *rest = sys.argv[1:]
    for name in names.split(","):
        sys.modules[name] = None  # type: ignore[assignment]  # what Python then says is not found
    sys.argv = [module, *rest]
    runpy.run_module(module, run_name="__main__", alter_sys=True)
