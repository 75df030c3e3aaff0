"""Signs of life on a terminal, silence in pipes."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import fairperm
from fairperm._utils import progress

ROOT = Path(__file__).parents[2]
IMPATIENT = """
from fairperm._utils import progress
from tests._utils.test_progress import resample
progress._PROGRESS_DELAY_S = 0.0
resample(None)
"""


def resample(progress: bool | None) -> None:
    """Run a test of several blocks of draws."""
    rng = np.random.default_rng(0)
    n = 2_000
    y_true = rng.integers(0, 2, n)
    fairperm.permutation_test(
        y_true,
        y_score=rng.random(n),
        sensitive_features=y_true ^ (rng.random(n) < 0.4),
        metric="roc_auc",
        n_jobs=1,
        progress=progress,
        rng=1,
    )


def on_terminal(command: list[str]) -> str:
    """Run a command with a terminal as its standard error and return what the terminal shows."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "80"}
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=theirs, env=environment, cwd=ROOT
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
    assert "resampling" in on_terminal([sys.executable, "-c", IMPATIENT])


def test_a_quick_test_shows_nothing() -> None:
    code = "import fairperm; fairperm.permutation_test([1] * 4, [1, 0] * 2, "
    code += "sensitive_features=list('aabb'), metric='recall')"
    assert on_terminal([sys.executable, "-c", code]) == ""


@pytest.mark.parametrize(
    ("wanted", "is_shown"),
    [(None, False), (False, False), (True, True)],
    ids=["unasked", "refused", "asked for"],
)
def test_a_pipe_stays_silent_unless_progress_is_asked_for(
    wanted: bool | None,
    is_shown: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(progress, "_PROGRESS_DELAY_S", 0.0)
    resample(wanted)
    out, err = capsys.readouterr()
    assert out == ""
    assert ("resampling" in err) == is_shown
    assert ("100%" in err) == is_shown  # also of draws that stop early
    assert is_shown or err == ""
