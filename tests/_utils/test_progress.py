"""Signs of life on a terminal, silence in pipes."""

from __future__ import annotations

import os
import pty
import subprocess
import sys

import pytest

LONG = """
import sys
import numpy as np
import fairperm
rng = np.random.default_rng(0)
n = 20_000
y_true = rng.integers(0, 2, n)
print("started", flush=True)
fairperm.permutation_test(
    y_true, y_score=rng.random(n), sensitive_features=y_true ^ (rng.random(n) < 0.4),
    metric="roc_auc", n_resamples={n_resamples}, n_jobs={n_jobs}, progress={progress}, rng=1,
)
print("finished", flush=True)
"""


def script(n_resamples: int, *, n_jobs: int = 1, progress: bool | None = None) -> list[str]:
    code = LONG.format(n_resamples=n_resamples, n_jobs=n_jobs, progress=progress)
    return [sys.executable, "-c", code]


def on_terminal(command: list[str]) -> str:
    """Run a command with a terminal as its standard error and return what the terminal shows."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "80"}
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=theirs, env=environment
    ) as process:
        os.close(theirs)
        shown = b""
        while True:
            try:
                piece = os.read(ours, 4096)
            except OSError:  # how Linux says that the other side is closed
                break
            if not piece:
                break
            shown += piece
    os.close(ours)
    assert process.returncode == 0
    return shown.decode()


def test_a_terminal_shows_progress() -> None:
    assert "resampling" in on_terminal(script(150_000))


def test_a_quick_test_shows_nothing() -> None:
    code = "import fairperm; fairperm.permutation_test([1] * 4, [1, 0] * 2, "
    code += "sensitive_features=list('aabb'), metric='recall')"
    assert on_terminal([sys.executable, "-c", code]) == ""


@pytest.mark.parametrize("progress", [None, False], ids=["unasked", "refused"])
def test_a_pipe_stays_silent(progress: bool | None) -> None:
    run = subprocess.run(
        script(150_000, progress=progress), capture_output=True, text=True, check=True
    )
    assert run.stderr == ""
    assert run.stdout == "started\nfinished\n"


def test_progress_can_be_asked_for() -> None:
    run = subprocess.run(script(150_000, progress=True), capture_output=True, text=True, check=True)
    assert "resampling" in run.stderr
