"""The command for periods gives what the function gives."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pytest

from fairperm import compare_periods
from tests.support.commands import Here

if TYPE_CHECKING:
    from pathlib import Path

RNG = np.random.default_rng(3)
N = 900
DATA = {
    "y": RNG.integers(0, 2, N),
    "p": RNG.integers(0, 2, N),
    "g": RNG.choice(["a", "b"], N),
    "year": RNG.integers(2022, 2025, N),
}
COLUMNS = ("--label", "y", "--prediction", "p", "--group", "g", "--metric", "fpr", "--seed", "1")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Here:
    lines = [",".join(DATA), *(",".join(map(str, one)) for one in zip(*DATA.values(), strict=True))]
    (tmp_path / "d.csv").write_text("\n".join(lines))
    return Here(tmp_path, monkeypatch)


def test_the_command_is_the_function(here: Here) -> None:
    call = ("periods", here.folder / "d.csv", *COLUMNS, "--period", "year")
    expected = compare_periods("y", "p", sensitive_features="g", period="year", metric="fpr",
                               data=DATA, rng=1)  # fmt: skip
    code, printed, _ = here.run(*call, "--json", "-")
    document = json.loads(printed)
    assert (code, document["schema"]) == (0, "fairperm.periods")
    assert document["result"] == expected.to_dict()
    _, printed, _ = here.run(*call)
    assert printed.startswith(repr(expected))
    _, printed, _ = here.run(
        *call, "--periods", "2024", "--periods", "2022", "--against", "first", "--csv", "-"
    )
    assert [line.split(",")[0] for line in printed.splitlines()] == ["period", "2024", "2022"]


def test_a_column_of_periods_must_be_given(here: Here) -> None:
    call = ("periods", here.folder / "d.csv", *COLUMNS)
    code, _, said = here.run(*call)
    assert (code, "--period must be given" in said) == (2, True)
    code, _, said = here.run(
        "periods", here.folder / "d.csv", *COLUMNS, "--period", "year", "--periods", "2021"
    )
    assert (code, "--periods must be made of values of --period" in said) == (2, True)
