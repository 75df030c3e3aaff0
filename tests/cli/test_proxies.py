"""The commands read columns of probabilities, and give what the functions give."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fairperm
from tests.support.commands import run

RNG = np.random.default_rng(2)
N = 400
CELL = np.arange(N) % 5
DATA = {
    "y": RNG.integers(0, 2, N).tolist(),
    "black": ((CELL + 1) / 10).tolist(),
    "white": (1 - (CELL + 1) / 10).round(1).tolist(),
    "cell": CELL.tolist(),
}
SHARED = ("--group-probability", "race=black,white", "--json", "-")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rows = zip(*DATA.values(), strict=True)
    lines = [",".join(DATA), *(",".join(map(str, row)) for row in rows)]
    (tmp_path / "a.csv").write_text("\n".join(lines))
    return tmp_path


def test_the_commands_are_the_functions(folder: Path) -> None:
    given: dict[str, Any] = {
        "group_probabilities": {"race": ["black", "white"]},
        "proxy_assumption": "group_given_proxy",
        "data": DATA,
    }
    options = ("--proxy-assumption", "group_given_proxy", *SHARED)
    model = ("--prediction", "y", "--metric", "selection_rate", "--proxy", "cell", "--seed", "1")
    calls: dict[tuple[str, ...], Any] = {
        ("test", *model, "--pair", "white", "black"): fairperm.permutation_test(
            y_pred="y", metric="selection_rate", proxy="cell", rng=1, groups=("white", "black"),
            **given,
        ),
        ("audit", *model, "--reference", "race=white"): fairperm.audit(
            y_pred="y", metrics="selection_rate", proxy="cell", rng=1, compare="reference",
            reference="white", **given,
        ),
        ("selection", "--selected", "y"): fairperm.selection_audit("y", **given),
    }  # fmt: skip
    for (command, *own), expected in calls.items():
        done = run(command, "a.csv", *own, *options, cwd=folder)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["result"] == expected.to_dict()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--group-probability", "black,white"), "must be NAME=COLUMNS, such as race=black,white"),
        (("--group-probability", "race=black,wite"), "got 'wite'. Did you mean 'white'?"),
        (("--group-probability", "race=black"), "must be given for 2 to 20 groups"),
        (("--group-probability", "race=black,cell"), "probabilities, from 0 to 1"),
        (("--group-probability", "race=black,white", "--group", "cell"), "--group cannot be used"),
        (("--group", "cell", "--proxy", "cell"), "--proxy needs --group-probability"),
        (("--group-probability", "race=black,white", "--compare", "rest"), "--compare rest cannot"),
    ],
)
def test_mistakes_are_told_in_the_words_of_the_command(
    folder: Path, options: tuple[str, ...], says: str
) -> None:
    given = ("--prediction", "y", "--metric", "selection_rate")
    done = run("audit", "a.csv", *given, *options, cwd=folder)
    assert done.returncode == 2
    assert says in " ".join(done.stderr.decode().split())
    assert "group_probabilit" not in done.stderr.decode()
