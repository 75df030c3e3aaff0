"""The command for periods gives what the function gives, and can fail a job."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from fairperm import audit_periods
from tests.support.commands import Here

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
    pl.DataFrame(DATA).write_csv(tmp_path / "d.csv")
    # from 2024 on, more false alarms in group a, and in a small group
    worse = (DATA["year"] == 2024) & (DATA["g"] == "a")
    groups = np.where(RNG.random(N) < 0.04, "few", DATA["g"])
    pl.DataFrame({**DATA, "p": np.where(worse, 1, DATA["p"]), "g": groups}).write_csv(
        tmp_path / "worse.csv"
    )
    return Here(tmp_path, monkeypatch)


def test_the_command_is_the_function(here: Here) -> None:
    call = ("periods", here.folder / "d.csv", *COLUMNS, "--metric", "fnr", "--period", "year")
    expected = audit_periods("y", "p", sensitive_features="g", period="year",
                             metrics=["fpr", "fnr"], data=DATA, rng=1)  # fmt: skip
    report = here.folder / "r.html"
    code, printed, _ = here.run(*call, "--json", "-", "--report", report)
    document = json.loads(printed)
    assert (code, document["schema"]) == (0, "fairperm.periods")
    assert document["result"] == expected.to_dict()
    assert expected.answer in report.read_text()
    _, printed, _ = here.run(*call)
    assert printed.startswith(repr(expected))
    assert "use a monitor: fairperm monitor" in " ".join(printed.split())
    _, printed, _ = here.run(
        *call, "--periods", "2024", "--periods", "2022", "--against", "first", "--csv", "-"
    )
    changes = {tuple(line.split(",")[3:5]) for line in printed.splitlines()[1:]}
    assert changes == {("2024", "2022")}


@pytest.mark.parametrize(
    ("options", "code", "says"),
    [
        (("--fail-on", "worse"), 1, "worse: false positive rate, a, 2023 → 2024"),
        (("--fail-on", "widened"), 1, "widened: false positive rate, a − b, 2023 → 2024"),
        (("--fail-on", "changed"), 1, "failed: 2 of 12 changes (--fail-on changed)"),
        (("--fail-on", "too-small"), 1, "too small: false positive rate, few, 2022 → 2023"),
        (("--fail-on", "worse"), 1, "have no verdict: a group is too small"),
        (("--periods", 2022, "--periods", 2023, "--fail-on", "worse"), 0, "have no verdict"),
        (("--min-group-size", 999, "--fail-on", "widened"), 2, "--fail-on too-small fails there"),
        (("--resamples", 99, "--periods", 2022, "--periods", 2023, "--fail-on", "widened"), 2,
         "so few resamples have no p-value that reaches the level"),
        (("--metric", "selection_rate", "--periods", 2022, "--periods", 2023, "--fail-on",
          "worse"), 2, "neither a rise nor a fall is worse. Use --fail-on changed"),
        (("--metric", "equalized_odds"), 2, "Its parts are true_positive_rate, false_positive"),
        (("--reference", "c"), 2, "--reference must be one of the groups"),
    ],
)  # fmt: skip
def test_gates(here: Here, options: tuple[object, ...], code: int, says: str) -> None:
    found = here.run("periods", here.folder / "worse.csv", *COLUMNS, "--period", "year", *options)
    assert (found[0], says in found[2]) == (code, True), found[2]


def test_text_that_does_not_sort_by_time_needs_an_order(here: Here) -> None:
    quarters, months = ("Q4 2023", "Q1 2024", "Q2 2024"), (8, 9, 10)
    for name, order in (("quarters.csv", quarters), ("months.csv", months)):
        periods = np.take(order, DATA["year"] - 2022)
        pl.DataFrame({**DATA, "year": periods}).write_csv(here.folder / name)
    options = (*COLUMNS, "--period", "year", "--resamples", 999)
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
