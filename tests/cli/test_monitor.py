"""The command for monitors: its answers, its state under kills and beside others, its refusals."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from fairperm import Monitor
from tests.support.commands import COMMAND, QUIET, Here

COLUMNS = ("--label", "y", "--prediction", "p", "--group", "g", "--metric", "fpr")


def make_rows(seed: int, gap: float = 0.0, n: int = 300) -> dict[str, list[object]]:
    rng = np.random.default_rng(seed)
    group = rng.choice(["a", "b"], n)
    decided = rng.random(n) < 0.2 + gap * (group == "a")
    return {
        "y": rng.integers(0, 2, n).tolist(),
        "p": decided.astype(int).tolist(),
        "g": group.tolist(),
    }


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Here:
    for name, seed, gap, n in (("one", 1, 0, 300), ("two", 2, 0, 300), ("gap", 3, 0.5, 2000)):
        pl.DataFrame(make_rows(seed, gap, n)).write_csv(tmp_path / f"{name}.csv")
    return Here(tmp_path, monkeypatch)


def update(here: Here, name: str, batch: object, *options: object) -> tuple[int, str, str]:
    state = here.folder / "state.json"
    return here.run("monitor", here.folder / f"{name}.csv", "--state", state, "--batch", batch,
                    *options)  # fmt: skip


def test_the_command_is_the_monitor(here: Here) -> None:
    expected = Monitor(y_true="y", y_pred="p", sensitive_features="g", metrics=["fpr"])
    code, printed, _ = update(here, "one", 1, *COLUMNS)
    assert (code, printed.strip()) == (0, repr(expected.update(make_rows(1), batch=1)))
    code, printed, _ = update(here, "two", 2, "--json", "-")  # the state knows the columns
    document = json.loads(printed)
    plain = json.dumps(expected.update(make_rows(2), batch=2).to_dict())
    assert document["result"] == json.loads(plain)
    assert document["options"]["metric"] == ["false_positive_rate"]
    assert json.loads((here.folder / "state.json").read_text()) == expected.state


def test_a_batch_that_comes_again_is_not_counted_again(here: Here) -> None:
    update(here, "one", "2026-03-01", *COLUMNS)
    state = (here.folder / "state.json").read_bytes()
    code, printed, said = update(here, "one", "2026-03-01")
    assert (code, "after 1 batch" in printed) == (0, True)
    assert "batch '2026-03-01' has been counted; nothing is added" in said
    assert (here.folder / "state.json").read_bytes() == state


def test_an_alarm_can_fail_a_job_and_is_in_the_report(here: Here) -> None:
    report = here.folder / "r.html"
    assert update(here, "one", 1, *COLUMNS, "--fail-on", "disparity")[0] == 0
    assert update(here, "two", 2, "--fail-on", "inconclusive", "-q")[0] == 1
    code, printed, said = update(here, "gap", 3, "--fail-on", "disparity", "--report", report)
    assert (code, printed.startswith("Alarm after 3 batches")) == (1, True)
    assert "disparity: false positive rate, a − b" in said
    page = report.read_text()
    assert "Alarm after 3 batches" in page
    assert "95 % band at all times" in page
    assert update(here, "two", 4, "--fail-on", "disparity", "-q")[0] == 1  # it stays


def test_a_gate_that_cannot_be_evaluated_is_an_error(here: Here) -> None:
    options = ("--known-group", "a", "--known-group", "b", "--known-group", "c")
    code, _, said = update(here, "one", 1, *COLUMNS, *options, "--fail-on", "disparity")
    assert (code, "--fail-on disparity cannot be evaluated" in said) == (2, True)
    assert update(here, "two", 2)[0] == 0  # the batch was counted


@pytest.mark.parametrize(
    ("name", "batch", "options", "says"),
    [
        ("one", 5, (), "--batch must be after 6, the last one; got 5"),
        ("one", "x", (), "--batch must be like those before"),
        ("none", 7, (), "FILE must be a file that exists"),
        ("one", 7, ("--metric", "tpr"), "--metric must be"),
        ("one", 7, ("--alpha", 0.1), "--alpha must be 0.05, as in the state; got 0.1"),
        ("one", 7, ("--label", "g"), "--label must be 'y', as in the state"),
        ("one", 7, ("--known-group", "a"), "--known-group must be"),
        ("one", 7, ("--report", "-"), "--report must be the name of a file"),
        ("other", 7, (), "Name all groups when the monitor is made, as --known-group"),
        ("late", 7, (), "Rows count once their labels are known"),
    ],
)
def test_refusals_leave_the_state_alone(
    here: Here, name: str, batch: object, options: tuple[object, ...], says: str
) -> None:
    rows = make_rows(1)
    pl.DataFrame({**rows, "g": ["a", "c"] * 150}).write_csv(here.folder / "other.csv")
    pl.DataFrame({**rows, "y": [None, *rows["y"][1:]]}).write_csv(here.folder / "late.csv")
    update(here, "one", 6, *COLUMNS)
    state = (here.folder / "state.json").read_bytes()
    code, _, said = update(here, name, batch, *options)
    assert (code, says in said) == (2, True), said
    assert "Traceback" not in said
    assert (here.folder / "state.json").read_bytes() == state


@pytest.mark.parametrize("content", ["", "{", "[]", "3", '{"fairperm_monitor": 1}', "[" * 99_999])
def test_damaged_states_are_refused(here: Here, content: str) -> None:
    (here.folder / "state.json").write_text(content)
    code, _, said = update(here, "one", 1, *COLUMNS)
    assert (code, "must be the state of a monitor" in said) == (2, True), said
    assert (here.folder / "state.json").read_text() == content


def test_what_the_first_batch_needs(here: Here) -> None:
    assert "--metric must be given" in update(here, "one", 1, *COLUMNS[:-2])[2]
    assert "--group must be given" in update(here, "one", 1, *COLUMNS[:-4], *COLUMNS[-2:])[2]
    assert "--batch must be given" in here.run("monitor", "x.csv", "--state", "s.json")[2]
    assert "--state must be given" in here.run("monitor", "x.csv", "--batch", 1)[2]
    one = here.folder / "one.csv"
    rows = one.read_bytes()
    assert here.run("monitor", one, "--state", one, "--batch", 1, *COLUMNS)[0] == 2
    assert one.read_bytes() == rows
    assert not (here.folder / "state.json").exists()


def test_processes_at_the_same_time_count_a_batch_once(here: Here) -> None:
    files = [here.folder / "one.csv", "--state", here.folder / "state.json"]
    call = [str(COMMAND), "monitor", *map(str, files), "--batch", "1", *COLUMNS]
    every = [subprocess.Popen(call, env=QUIET, stdout=subprocess.DEVNULL) for _ in range(2)]
    assert [one.wait(60) for one in every] == [0, 0]
    state = json.loads((here.folder / "state.json").read_text())
    rows = sum(n for _, _, n, _ in state["sums"])
    assert (state["batches"], rows) == (1, make_rows(1)["y"].count(0))


# Forks that update until they are killed: each begins with the batch after the one in the state.
KILLED = """
import json, os, random, signal, sys, time
from pathlib import Path
from fairperm.cli import main
state, data, options = Path(sys.argv[1]), sys.argv[2], sys.argv[3:]
call = ["fairperm", "monitor", data, "-q", *options, "--state"]
sys.argv = [*call, f"{state}.first", "--batch", "1"]
assert main._run() == 0  # imports what every fork needs
chance = random.Random(5)
kills, printed = 100, Path(f"{state}.seen")
for _ in range(kills):
    child = os.fork()
    if not child:
        batch = json.loads(state.read_text())["last_batch"] if state.exists() else 0
        while True:
            batch += 1
            sys.argv = [*call, str(state), "--batch", str(batch)]
            assert main._run() == 0
            printed.write_text(str(batch))
    time.sleep(0.05 + chance.random() * 0.3)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    if not state.exists():
        continue
    found = json.loads(state.read_text())
    counted = sum(n for _, _, n, _ in found["sums"])
    seen = printed.read_text() if printed.exists() else ""
    assert found["batches"] == found["last_batch"] >= int(seen or 0), found["batches"]
    print(found["batches"], counted)
"""


@pytest.mark.validate
@pytest.mark.skipif(sys.platform == "win32", reason="needs fork")
def test_killed_at_any_moment_a_batch_is_counted_once_or_not_yet(here: Here) -> None:
    state, data = here.folder / "state.json", here.folder / "one.csv"
    done = subprocess.run(
        [sys.executable, "-c", KILLED, state, data, *COLUMNS],
        env=QUIET, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    of_a_batch = make_rows(1)["y"].count(0)
    found = [tuple(map(int, line.split())) for line in done.stdout.splitlines()]
    assert len(found) > 50
    assert found[-1][0] > 5
    assert all(rows == batches * of_a_batch for batches, rows in found)
    temporary = [one for one in here.folder.iterdir() if one.name.endswith(".tmp")]
    assert all(one.name.startswith(".state.json.") for one in temporary)
