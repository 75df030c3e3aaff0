"""What a run of the studies writes and prints, and how it fails."""

from __future__ import annotations

import csv
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

import fairperm
import studies
from studies import Row, Study, charts, runner, writing
from studies.paper.fnr import fnr
from tests.support.commands import QUIET

ROOT = Path(__file__).parents[2]
NASTY = "<script>alert('no')</script> & [bold]x"


def nasty(**options: Any) -> Study:
    rows = (
        Row.of_share("share", 60, 1000, 0.05, 10_000, NASTY),
        Row(quantity=NASTY, paper=None, ours=1e-9),
        Row(quantity="off", paper=1.0, ours=2.0, interval=(1.9, 2.1), agrees=False),
    )
    chart = charts.draw_agreement(rows, title=NASTY, axis="share", level=0.05)
    return Study(
        name="table1",
        title=NASTY,
        about=NASTY,
        rows=rows,
        notes=(NASTY,),
        settings={"data sets": 1000, "seed": options["seed"]},
        tables={"extra": {"a": [1, "=2+2"], NASTY: ["x,y", None]}},
        charts={"chart": chart},
    )


def refused(**_: Any) -> Study:
    raise fairperm.InputError("adult.data must be text in UTF-8.")


@pytest.fixture
def fakes(monkeypatch: pytest.MonkeyPatch) -> None:
    known = {
        "table1": nasty,
        "fnr": partial(fnr, n_data_sets=20, n_resamples=39),
        "thresholds": refused,
    }
    monkeypatch.setattr(runner, "get_study", known.__getitem__)


def read(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.usefixtures("fakes")
def test_run_writes_every_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "some" / "folder"
    found = studies.run(["fnr", "table1", "fnr"], out, quick=True, seed=7, progress=False)
    assert [study.name for study in found] == ["table1", "fnr"]
    charts = ("table1-chart", "fnr-pvalues", "fnr-rejections")
    assert {path.name for path in out.iterdir()} == {
        *("index.html", "vega.js", "table1.csv", "table1-extra.csv", "fnr.csv", "fnr-pvalues.csv"),
        *(f"{chart}.{kind}" for chart in charts for kind in ("svg", "png", "html")),
    }
    for chart in charts:
        assert ET.parse(out / f"{chart}.svg").getroot().tag.endswith("svg")  # noqa: S314
        assert (out / f"{chart}.png").read_bytes().startswith(b"\x89PNG\r\n")
        assert '<script src="vega.js">' in (out / f"{chart}.html").read_text("utf-8")
    assert "window.vegaEmbed=" in (out / "vega.js").read_text("utf-8").replace(" ", "")
    printed = capsys.readouterr().out
    assert "0.1216" in printed
    assert "index.html" in printed


@pytest.mark.usefixtures("fakes")
def test_csv_files_hold_the_rows(tmp_path: Path) -> None:
    studies.run("table1", tmp_path, seed=7)
    share, other, off = read(tmp_path / "table1.csv")
    assert share["paper"] == "0.05"
    assert share["ours"] == "0.06"
    assert float(share["low"]) < 0.06 < float(share["high"])
    assert float(share["paper_low"]) < 0.05 < float(share["paper_high"])
    assert [row["agrees"] for row in (share, other, off)] == ["True", "", "False"]
    assert other["quantity"] == NASTY
    found = read(tmp_path / "table1-extra.csv")
    assert found == [{"a": "1", NASTY: "x,y"}, {"a": "'=2+2", NASTY: ""}]  # no formula


@pytest.mark.usefixtures("fakes")
def test_page_shows_everything_and_runs_nothing(tmp_path: Path) -> None:
    studies.run("table1", tmp_path, quick=True, seed=7)
    page = (tmp_path / "index.html").read_text("utf-8")
    assert "alert(" in page
    assert "<script" not in page
    assert "seed: 7" in page
    assert f"fairperm {version('fairperm')}" in page
    assert "quick runs" in page
    assert "1 of 2" in page
    assert re.search(r"<td class=\"no\">no</td>", page)
    assert page.count("data:image/svg+xml;base64,") == 1
    chart = (tmp_path / "table1-chart.html").read_text("utf-8")
    assert chart.count("</script>") == 2  # what is in the data ends no script


@pytest.mark.usefixtures("fakes")
def test_a_study_that_cannot_be_run_stops_no_other(tmp_path: Path) -> None:
    with pytest.raises(fairperm.InputError, match=r"thresholds: adult.data must be text"):
        studies.run(["thresholds", "table1"], tmp_path)
    assert (tmp_path / "table1.csv").exists()
    page = (tmp_path / "index.html").read_text("utf-8")
    assert "adult.data must be text in UTF-8." in page
    assert "quick runs" not in page


def command(*arguments: object, data: Path) -> subprocess.CompletedProcess[str]:
    """Return what ``python -m studies`` does with the data in a folder, and without a network."""
    offline = {"https_proxy": "http://127.0.0.1:9", "XDG_CACHE_HOME": str(data / "cache")}
    return subprocess.run(
        [sys.executable, "-m", "studies", *map(str, arguments)],
        cwd=ROOT,
        capture_output=True,
        env={**QUIET, **offline, "FAIRPERM_DATA": str(data)},
        timeout=900,
        check=False,
        text=True,
        encoding="utf-8",
    )


@pytest.mark.validate
def test_the_command_runs_all_of_them(tmp_path: Path, real_data: Path) -> None:
    done = command("--out", tmp_path, data=real_data)
    assert done.returncode == 0, done.stderr
    assert {path.stem for path in tmp_path.glob("*.csv")} >= set(studies.NAMES)
    assert "not run." not in (tmp_path / "index.html").read_text("utf-8")
    for name in ("thresholds", "sample-size"):
        rows = read(tmp_path / f"{name}.csv")
        assert {row["quantity"].split(",")[0].split(":")[0] for row in rows} == {"COMPAS", "Adult"}
        assert {row["agrees"] for row in rows} <= {"", "True"}


@pytest.mark.validate
def test_the_command_names_the_data_that_are_missing(tmp_path: Path) -> None:
    done = command("thresholds", "--out", tmp_path / "out", data=tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith("studies: error: Not all studies could be run. thresholds: ")
    assert "compas-scores-two-years.csv is not in the folder of FAIRPERM_DATA" in done.stderr


@pytest.mark.usefixtures("fakes")
def test_markdown_says_the_same(tmp_path: Path) -> None:
    file = tmp_path / "docs" / "paper.md"
    file.parent.mkdir()
    with pytest.raises(fairperm.InputError, match=r"thresholds: adult.data must be text"):
        studies.run(["table1", "thresholds"], tmp_path / "out", markdown=file, seed=7)
    page = file.read_text("utf-8")
    assert page.startswith("# The paper, run again")
    assert "thresholds: **not run.** adult.data must be text in UTF-8." in page
    assert "<script>" not in page  # HTML can stand in Markdown
    assert "![" in page
    assert "](../out/table1-chart.svg)" in page
    assert "| off | 1.0000 | 2.0000 | 1.9000 to 2.1000 | no |" in page
    assert "`make reproduce STUDY=table1 FULL=1`" in page
    assert f"fairperm {version('fairperm')}" in page


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"names": "table2"}, r"names must be one of .* Did you mean 'table1'\?"),
        ({"names": ["fnr", "tabel1"]}, r"Did you mean 'table1'\?"),
        ({"names": []}, r"names must be 'all', the name of a study or a list"),
        ({"names": None}, r"names must be 'all', the name of a study or a list"),
        ({"seed": -1}, r"seed must be an integer from 0"),
        ({"n_jobs": 0}, r"n_jobs must be"),
        ({"progress": 1}, r"progress must be True, False or None"),
    ],
)
def test_bad_options_raise(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(fairperm.FairpermError, match=message):
        studies.run(**{"names": "fnr", "out": tmp_path, **options})
    assert not list(tmp_path.iterdir())


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("mine")
    with pytest.raises(fairperm.InputError, match=r"out must be a folder; got .*taken"):
        studies.run("fnr", tmp_path / "taken")
    assert (tmp_path / "taken").read_text() == "mine"


# Rows.


def test_shares_agree_if_chance_explains_their_difference() -> None:
    near = Row.of_share("x", 60, 1000, 0.05, 10_000)
    far = Row.of_share("x", 75, 1000, 0.05, 10_000)
    assert (near.agrees, far.agrees) == (True, False)
    # z of the two-sample test, by hand: (0.06 - 0.05) / sqrt(p(1 - p)(1/1000 + 1/10000)) = 1.37
    assert near.ours == 0.06
    assert Row.of_share("x", 66, 1000, 0.05, 10_000).agrees  # z = 2.17
    assert not Row.of_share("x", 70, 1000, 0.05, 10_000).agrees  # z = 2.71


def test_exact_values_must_be_in_our_interval() -> None:
    for exact, agrees in ((0.05, True), (0.0342, False)):
        row = Row.of_share("x", 55, 1000, exact)
        assert row.agrees is agrees
        assert row.paper_interval is None


def test_a_share_without_a_value_to_compare_with_agrees_with_nothing() -> None:
    row = Row.of_share("x", 0, 50)
    assert row.agrees is None
    assert row.interval is not None
    assert row.interval[0] == 0


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.05, "0.0500"),
        (None, "–"),
        (float("nan"), "–"),
        (1e-5, "1e-05"),
        (27.5, "27.5"),
        (0, "0.0000"),
    ],
)
def test_values_have_four_decimals(value: float | None, text: str) -> None:
    assert writing.format_value(value) == text


def test_studies_are_chosen_by_name() -> None:
    with pytest.raises(fairperm.InputError, match=r"name must be one of"):
        studies.get_study("figure2")
