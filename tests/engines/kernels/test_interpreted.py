"""What Numba makes of the kernels is what they say in Python."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.kernel_runs import results


@pytest.mark.validate
@pytest.mark.filterwarnings("ignore::fairperm.FairpermWarning")  # so few resamples
def test_compiled_and_interpreted_kernels_agree_to_the_last_bit() -> None:
    """A difference would be of types: what Python and Numba do with integers of two kinds."""
    interpreted = subprocess.run(
        # integers overflow, as they should
        [sys.executable, "-W", "ignore", "-m", "tests.support.kernel_runs"],
        cwd=Path(__file__).parents[3],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        check=True,
        text=True,
    )
    assert json.loads(interpreted.stdout) == results()
