"""The studies of the paper's Figures 2 and 3: of the real data if they are here, else of others."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import vl_convert

from fairperm.datasets import load_compas
from fairperm.errors import FairpermError
from fairperm.hypothesis_tests.permutation import permutation_test
from studies import Study, get_study
from studies.paper import figures, models
from tests.support.original_files import real_data, write_learnable

if TYPE_CHECKING:
    from pathlib import Path

REAL = real_data()  # before tests set FAIRPERM_DATA


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Let studies find the real data, or made-up ones in their formats; tell whether it is real."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = REAL or write_learnable(tmp_path / "data", 5000)
    monkeypatch.setenv("FAIRPERM_DATA", str(folder))
    return REAL is not None


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let studies find a few made-up rows, and take small samples of them."""
    monkeypatch.setenv("FAIRPERM_DATA", str(write_learnable(tmp_path / "data", 900)))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(figures, "SIZES", (300, 600))
    monkeypatch.setattr(figures, "PERMUTATIONS", 99)
    monkeypatch.setattr(figures, "QUICK_SIZES", (300, 600))
    monkeypatch.setattr(figures, "QUICK_SPLITS", 3)
    monkeypatch.setattr(figures, "QUICK_SAMPLES", 4)


def check_form(study: Study, name: str) -> None:
    """Assert what every study must have: finite values, plain tables, charts that can be drawn."""
    assert study.name == name
    quantities = [row.quantity for row in study.rows]
    assert len(set(quantities)) == len(quantities)
    assert all(math.isfinite(row.ours) for row in study.rows)
    assert all(row.agrees is not False for row in study.rows), study.rows
    for row in study.rows:
        assert row.interval is None or row.interval[0] <= row.interval[1]
    for table in study.tables.values():
        assert len({len(column) for column in table.values()}) == 1
        json.dumps(dict(table), allow_nan=False)
    for chart in study.charts.values():
        assert vl_convert.vegalite_to_svg(chart).startswith("<svg")


@pytest.mark.validate
def test_thresholds(data: bool) -> None:
    study = get_study("thresholds")(quick=True, seed=0, progress=False)
    assert study.missing == ()
    curves = study.tables["curves"]
    assert len(curves["gap"]) == 2 * 2 * 101
    assert (study.settings["n_resamples"], study.settings["seed"]) == (1000, 0)
    of = {name: np.array(column, dtype=object) for name, column in curves.items()}
    tested = np.array([one is not None for one in of["pvalue"]])
    gap, critical, p = (
        of[name][tested].astype(float) for name in ("gap", "critical_gap", "pvalue")
    )
    np.testing.assert_array_equal(np.abs(gap) > critical, p <= 0.05)
    np.testing.assert_allclose(gap, (of["women"] - of["men"])[tested].astype(float))
    if not data:
        return
    check_form(study, "thresholds")
    for name, low, high in (("COMPAS", 0.687, 0.773), ("Adult", 0.895, 0.915)):
        splits = np.array(study.tables["auc"]["auc"])[np.array(study.tables["auc"]["data"]) == name]
        assert ((splits > low) & (splits < high)).mean() >= 0.9  # a split in ten may be unusual
        row = study.row(f"{name}: AUC of the test rows")
        assert low <= row.ours <= high
        assert row.interval is not None
        assert row.paper is not None
        assert row.interval[0] <= row.paper <= row.interval[1]
    # women are less often predicted to earn much: whichever split, wherever it can be seen
    adult = study.row("Adult, FPR: share of thresholds with a significant gap")
    assert adult.ours > 0.5
    assert study.row("Adult, FPR: largest gap").ours < -0.2


@pytest.mark.validate
def test_sample_size(data: bool) -> None:
    study = get_study("sample-size")(quick=True, seed=0, progress=False)
    if data:
        check_form(study, "sample-size")
    table = study.tables["gaps"]
    assert table["rows"] == [950, 2000, 4500] * 4
    critical, detectable = (
        np.reshape(table[name], (4, 3)) for name in ("critical_gap", "detectable_gap")
    )
    for gaps in (critical, detectable):
        expected = np.sqrt(4500 / 950)
        np.testing.assert_allclose(gaps[:, 0] / gaps[:, 2], expected, rtol=0.1)
    assert (detectable > critical).all()  # a true gap at the critical value is found half the time


@pytest.mark.validate
@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("name", ["thresholds", "sample-size"])
def test_one_seed_gives_the_same_numbers_for_any_number_of_threads(name: str) -> None:
    first, again, other = (
        get_study(name)(quick=True, seed=seed, n_jobs=jobs, progress=False)
        for seed, jobs in ((7, None), (7, 2), (8, None))
    )
    assert first == again
    assert first.tables != other.tables


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("name", ["thresholds", "sample-size"])
def test_charts_of_few_rows_can_be_drawn(name: str) -> None:
    study = get_study(name)(quick=True, seed=1, progress=False)
    (chart,) = study.charts.values()
    assert vl_convert.vegalite_to_svg(chart).startswith("<svg")
    assert vl_convert.vegalite_to_png(chart).startswith(b"\x89PNG")
    assert "NaN" not in json.dumps(chart)


@pytest.mark.usefixtures("small")
def test_curve_is_that_of_single_tests() -> None:
    study = get_study("thresholds")(quick=True, seed=3, progress=False)
    scored = models.load_tasks()[0]["Adult"].score_test_rows(np.random.default_rng([3, 2, 0]))
    single = permutation_test(
        scored.label,
        y_score=scored.score,
        sensitive_features=scored.sex,
        metric="recall",
        threshold=0.5,
    )
    curves = study.tables["curves"]
    rows = zip(*(curves[name] for name in ("data", "metric", "threshold", "gap")), strict=True)
    (gap,) = (gap for *where, gap in rows if where == ["Adult", "recall", 0.5])
    assert gap == pytest.approx(single.difference)


@pytest.mark.usefixtures("small")
def test_model_is_not_shown_what_it_is_tested_on() -> None:
    task = models.load_tasks()[0]["COMPAS"]
    scored = task.score_test_rows(np.random.default_rng(1))
    assert len(scored.label) == 900 - round(0.85 * 900)
    assert 0.6 < models.compute_auc(scored) < 0.95
    # with labels that mean nothing, rows that were not in training cannot be told apart
    rng = np.random.default_rng(2)
    noise = models.Task(rng.integers(0, 2, 900), task.sex, task.numbers, task.words)
    everyone = noise.cross_fit(rng)
    assert models.compute_auc(everyone) == pytest.approx(0.5, abs=0.08)


def test_auc_is_the_known_one() -> None:
    label, score = np.array([0, 0, 1, 1]), np.array([0.1, 0.4, 0.35, 0.8])
    assert models.compute_auc(models.ScoredRows(label, score, label)) == 0.75
    assert models.compute_auc(models.ScoredRows(label, np.zeros(4), label)) == 0.5


@pytest.mark.usefixtures("small")
def test_too_few_rows_for_the_sizes_are_said_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "QUICK_SIZES", (300, 901))
    with pytest.raises(FairpermError, match=r"draws 901 rows of COMPAS; it has 900\."):
        get_study("sample-size")(quick=True, progress=False)


# Without a network.


@pytest.fixture
def offline(small: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of a few made-up rows, beside which nothing can be had."""

    def refuse(url: str) -> Any:
        raise OSError("no network")

    monkeypatch.setattr("fairperm.datasets.store._receive", refuse)
    return tmp_path / "data"


def remove(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).unlink()


COMPAS, ADULT = "compas-scores-two-years.csv", "adult.data"


@pytest.mark.parametrize("name", ["thresholds", "sample-size"])
def test_studies_run_on_what_comes_with_fairperm(name: str, offline: Path) -> None:
    remove(offline, COMPAS, ADULT)
    study = get_study(name)(quick=True, progress=False)
    assert all(row.quantity.startswith(models.SHIPPED) for row in study.rows)
    for table in study.tables.values():
        assert set(table["data"]) == {models.SHIPPED}
    for said, file in zip(study.missing, (COMPAS, ADULT), strict=True):
        assert said.count(f"{file} is not in the folder") == 1
        assert "no network" in said
    (chart,) = study.charts.values()
    assert vl_convert.vegalite_to_svg(chart).count(models.SHIPPED) >= 1


def test_other_features_are_not_compared_with_the_papers(offline: Path) -> None:
    remove(offline, COMPAS, ADULT)
    study = get_study("thresholds")(quick=True, progress=False)
    row = study.row(f"{models.SHIPPED}: AUC of the test rows")
    assert (row.paper, row.agrees) == (None, None)
    assert "is that of other features" in row.remark
    assert not any("can be compared by number" in note for note in study.notes)
    compas, (task,) = load_compas(), models.load_tasks()[0].values()
    np.testing.assert_array_equal(task.numbers[:, 0], compas["decile_score"])
    assert task.numbers.shape == (6172, 1)
    bands = ["25 - 45", "Greater than 45", "Less than 25"]  # and neither sex nor race
    np.testing.assert_array_equal(task.words, compas["age_band"][:, None] == np.array(bands))


@pytest.mark.parametrize(
    ("file", "names", "said"),
    [
        (COMPAS, [models.SHIPPED, "Adult"], "COMPAS with the paper's features is not available."),
        (ADULT, ["COMPAS"], "Adult is not available."),
    ],
)
def test_one_data_set_is_missing(file: str, names: list[str], said: str, offline: Path) -> None:
    remove(offline, file)
    study = get_study("thresholds")(quick=True, progress=False)
    assert [*dict.fromkeys(study.tables["auc"]["data"])] == names
    (missing,) = study.missing
    assert missing.startswith(said)
    assert f" {file} is not in the folder" in missing
    assert "can be compared by number" in study.notes[0]


def test_a_broken_file_is_not_passed_over(offline: Path) -> None:
    (offline / ADULT).write_text("1, 2\n")
    with pytest.raises(FairpermError, match=r"adult\.data must have 15 values in every line"):
        get_study("thresholds")(quick=True, progress=False)


def test_scikit_learn_that_is_not_there_is_said_so() -> None:
    code = (
        "import sys; sys.modules['sklearn'] = None\n"
        "from studies import get_study\n"
        "from fairperm.errors import FairpermError\n"
        "try:\n    get_study('thresholds')(quick=True)\n"
        "except FairpermError as error:\n    print(error)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == (
        "The studies of COMPAS and Adult train models with scikit-learn, which cannot be imported. "
        "Install it with: make .venv/studies"
    )
