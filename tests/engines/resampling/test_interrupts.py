"""Ctrl-C ends minutes of work within a second, whatever computes it."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import numpy as np
import pytest

from fairperm.engines.resampling.blocks import Resampling

SCRIPT = """
import sys
import time
import numpy as np
import fairperm
from fairperm.engines.resampling import blocks

def said(*arguments, run=blocks._run_block):
    sys.stdout.write("working\\n")  # at once, whichever thread is first
    sys.stdout.flush()
    return run(*arguments)

def distance(y_true, y_pred):
    return np.abs(y_true - y_pred).mean()

blocks._run_block = said
rng = np.random.default_rng(0)
n = {rows}
x, y, label = rng.random(n), rng.random(n), rng.integers(0, 2, n)
common = dict(n_resamples=10**6, n_jobs={n_jobs}, rng=1)
groups = dict(sensitive_features=rng.integers(0, 2, n), **common)
{work}
"""

TEST = "fairperm.permutation_test"
WORK = {  # minutes of it, on so many rows; the last two spend seconds in one compiled function
    "counts": (10**5, f"{TEST}(label, x > 0.5, control_features=y // 0.01, metric='f1', **groups)"),
    "ranks": (10**6, f"{TEST}(label, y_score=x, metric='roc_auc', **groups)"),
    "function": (10**5, f"{TEST}(x, y, metric=distance, **groups)"),
    "weighted": (10**6, f"{TEST}(label, y_score=x, metric='auc', sample_weight=y, **groups)"),
    "correlation": (10**6, "fairperm.correlation_test(x, y, method='spearman', **common)"),
}
NOTHING = "fairperm.permutation_test(label[:99], y_score=x[:99], metric='roc_auc', n_resamples=99, "
NOTHING += "sensitive_features=label[::-1][:99]); time.sleep(60)"


def seconds_to_end(rows: int, n_jobs: int, work: str) -> float:
    """Press Ctrl-C a moment into the first block; return how long until all processes ended."""
    code = SCRIPT.format(rows=rows, n_jobs=n_jobs, work=work)
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "working\n"
        time.sleep(0.5)
        assert process.poll() is None
        sent = time.monotonic()
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=120)  # until the last process closes its output
        took = time.monotonic() - sent
    assert errors.endswith("KeyboardInterrupt\n")
    assert process.returncode == -signal.SIGINT
    return took


@pytest.mark.parametrize(
    ("kind", "n_jobs"),
    [
        ("counts", 1),
        *(
            pytest.param(*one, marks=pytest.mark.validate)
            for one in (
                ("ranks", 1),
                ("ranks", 2),
                ("function", 1),
                ("function", 2),
                ("weighted", 1),
                ("correlation", 1),
                ("correlation", 2),
            )
        ),
    ],
)
def test_ctrl_c_ends_it(kind: str, n_jobs: int) -> None:
    """Allow a second and what an idle Python takes to end; thrice, as others may be at work."""
    rows, work = WORK[kind]
    took = []
    for _ in range(3):
        took.append(seconds_to_end(rows, n_jobs, work))
        if took[-1] < 1 or took[-1] < 1 + seconds_to_end(rows, n_jobs, NOTHING):
            return
    pytest.fail(f"It took {took} seconds.")


@pytest.fixture
def _python_hears() -> Iterator[None]:
    """Make sure that Ctrl-C has its usual meaning where the tests run."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("_python_hears")
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_no_block_is_waited_for_or_started(n_jobs: int) -> None:
    started, ended, go_on = [], [], threading.Event()
    caller = threading.get_ident()

    def endless(draws: int, rng: np.random.Generator) -> None:
        started.append(threading.get_ident())
        if len(started) == n_jobs:
            signal.pthread_kill(caller, signal.SIGINT)
        ended.append(go_on.wait(20))

    resampling = Resampling(n_resamples=99, seed=1, n_jobs=n_jobs, progress=False)
    with pytest.raises(KeyboardInterrupt, match=r"^$") as caught:
        resampling.run_blocks(endless, 0, 1)
    assert ended == []
    others = [thread for thread in threading.enumerate() if thread.daemon]
    go_on.set()
    for thread in others:
        thread.join(0.2)
    assert len(started) == n_jobs
    assert caller not in started
    assert caught.traceback  # which keeps alive whatever was under way


@pytest.mark.parametrize("n_jobs", [1, 2, 5])
@pytest.mark.parametrize("slow", [0, 0.11], ids=["quick", "slow"])
def test_results_are_in_order_and_errors_are_raised(n_jobs: int, slow: float) -> None:
    failing = False

    def task(draws: int, rng: np.random.Generator) -> int:
        number = int(rng.bit_generator.seed_seq.spawn_key[1])  # type: ignore[attr-defined]
        time.sleep(slow / (1 + number))
        if failing and number == 3:
            raise ZeroDivisionError("of block 3")
        return number

    resampling = Resampling(n_resamples=20, seed=1, n_jobs=n_jobs, progress=False)
    assert resampling.run_blocks(task, 0, 2) == list(range(10))
    failing = True
    with pytest.raises(ZeroDivisionError, match="of block 3"):
        resampling.run_blocks(task, 0, 2)


def test_only_few_counts_are_drawn_without_a_thread() -> None:
    def task(draws: int, rng: np.random.Generator) -> bool:
        return threading.current_thread() is threading.main_thread()

    resampling = Resampling(n_resamples=1024, seed=1, n_jobs=None, progress=False)
    assert resampling.run_blocks(task, 0, counts=64) == [True]
    assert resampling.run_blocks(task, 0, counts=65) == [False]
    assert resampling.run_blocks(task, 0) == [False]
