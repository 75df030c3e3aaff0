"""The command for periods gives what the function gives."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
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


def test_text_that_does_not_sort_by_time_needs_an_order(here: Here) -> None:
    quarters, months = ("Q4 2023", "Q1 2024", "Q2 2024"), (8, 9, 10)
    for name, order in (("quarters.csv", quarters), ("months.csv", months)):
        periods = np.take(order, DATA["year"] - 2022)
        pl.DataFrame({**DATA, "year": periods}).write_csv(here.folder / name)
    options = (*COLUMNS, "--period", "year", "--resamples", 99)
    call = ("periods", here.folder / "quarters.csv", *options)
    code, _, said = here.run(*call)
    says = "--periods must be given, in their order, if --period is text with quarters"
    assert (code, says in said) == (2, True)
    _, printed, _ = here.run(*call, *(part for one in quarters for part in ("--periods", one)))
    assert "Q4 2023 → Q1 2024" in printed
    _, printed, _ = here.run("periods", here.folder / "months.csv", *options)
    assert "9 → 10" in printed  # numbers have an order


def test_a_column_of_periods_must_be_given(here: Here) -> None:
    call = ("periods", here.folder / "d.csv", *COLUMNS)
    code, _, said = here.run(*call)
    assert (code, "--period must be given" in said) == (2, True)
    code, _, said = here.run(
        "periods", here.folder / "d.csv", *COLUMNS, "--period", "year", "--periods", "2021"
    )
    assert (code, "--periods must be made of values of --period" in said) == (2, True)
