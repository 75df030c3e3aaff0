"""The whole command, killed at random moments: every file is the old one or the new one, whole."""

from __future__ import annotations

import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.commands import QUIET, Here, as_text, sample

pytestmark = pytest.mark.validate

# The command over and over, with one seed and another: most moments are close to a write.
COMMANDS = """
import sys
from fairperm.cli import main
arguments = sys.argv[1:]
while True:
    for seed in "12":
        sys.argv = ["fairperm", *arguments, "--seed", seed]
        if main._run() != 0:
            sys.exit("the command failed")
        print(seed, flush=True)
"""
OUTPUTS = {"report": "x.html", "json": "x.json", "csv": "x.csv", "markdown": "x.md"}
TEMPORARY = re.compile(r"\.x\.(html|json|csv|md)\..+\.tmp")
KILLS, MAX_STOPS = 4, 400


def arguments(data: Path, folder: Path) -> list[object]:
    asked = ("--label", "y", "--prediction", "p", "--group", "g", "--metric", "mcc")
    outputs = [x for name, file in OUTPUTS.items() for x in (f"--{name}", folder / file)]
    return ["audit", data, *asked, "--resamples", 99, "-q", *outputs]


def is_writing(folder: Path) -> bool:
    return any(TEMPORARY.fullmatch(one.name) for one in folder.iterdir())


def test_killed_at_any_moment_every_file_is_old_or_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stopped process has left what a killed one leaves; so one is stopped often, then killed.

    It is killed when it has begun to write and not ended. Only then may a temporary file be left.
    """
    data, folder = tmp_path / "data.csv", tmp_path / "out"
    data.write_text(as_text(sample(120)))
    folder.mkdir()
    asked = arguments(data, folder)
    whole: dict[Path, set[bytes]] = {folder / file: set() for file in OUTPUTS.values()}
    for seed in "21":
        assert Here(folder, monkeypatch).run(*asked, "--seed", seed)[0] == 0
        for path, contents in whole.items():
            contents.add(path.read_bytes())
    assert min(map(len, whole.values())) == 2
    chance = random.Random(9)
    halfway = 0
    for _ in range(KILLS):
        with subprocess.Popen(
            [sys.executable, "-c", COMMANDS, *map(str, asked)], stdout=subprocess.PIPE, env=QUIET
        ) as process:
            assert process.stdout is not None
            assert process.stdout.readline()
            for _ in range(MAX_STOPS):
                time.sleep(chance.random() * 0.01)
                process.send_signal(signal.SIGSTOP)
                assert all(path.read_bytes() in contents for path, contents in whole.items())
                if is_writing(folder):
                    break
                process.send_signal(signal.SIGCONT)
            process.send_signal(signal.SIGKILL)
        assert all(path.read_bytes() in contents for path, contents in whole.items())
        left = {*folder.iterdir()} - {*whole}
        assert len(left) <= 1
        for one in left:
            assert TEMPORARY.fullmatch(one.name)
            one.unlink()
        halfway += len(left)
    assert halfway > 0
