"""What Numba makes of the kernels is what they say in Python, where it is not installed."""

from __future__ import annotations

import json
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
        [
            *(sys.executable, "-W", "ignore::fairperm.FairpermWarning"),
            *("-m", "tests.support.blocked", "numba", "tests.support.kernel_runs"),
        ],
        cwd=Path(__file__).parents[3],
        capture_output=True,
        check=True,
        text=True,
    )
    assert json.loads(interpreted.stdout) == results()
