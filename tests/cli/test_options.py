"""Every option of the library is one of the command line, and means the same there."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import openpyxl
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fairperm
from fairperm import errors
from fairperm.cli import values
from fairperm.cli.terminal import write_message
from fairperm.data.lazy import counting as lazy
from tests.support.commands import Here, as_text, cells, sample
from tests.support.report_pages import Page

pytestmark = pytest.mark.filterwarnings("ignore::fairperm.FairpermWarning")

COLUMNS = ("--label", "y", "--score", "p", "--group", "g")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Here:
    return Here(tmp_path, monkeypatch)


@pytest.fixture(scope="module")
def compas(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("options") / "compas.csv"
    fairperm.datasets.load_compas("pandas").to_csv(path, index=False)
    return path


SCORES = ("--label", "two_year_recid", "--score", "decile_score", "--group", "sex", "--seed", 1)
GIVEN: dict[str, Any] = {
    "y_true": "two_year_recid",
    "y_score": "decile_score",
    "sensitive_features": "sex",
    "rng": 1,
}
WEIGHTS = {"25 - 45": 2.0, "Greater than 45": 1.0, "Less than 25": 0.5}
BY_AGE = tuple(
    item for age, one in WEIGHTS.items() for item in ("--stratum-weights", f"{age}={one}")
)


def as_printed(audit: fairperm.Audit) -> list[dict[str, str]]:
    return [
        {name: "" if one is None else str(one) for name, one in row.cells().items()}
        for row in audit.rows
    ]


def test_weights_of_strata(here: Here, compas: Path, tmp_path: Path) -> None:
    asked = (*SCORES, "--threshold", 5, "--metric", "fpr", "--control", "age_band")
    code, out, err = here.run("audit", compas, *asked, *BY_AGE, "--csv", "-")
    assert code == 0, err
    audit = fairperm.audit(
        **GIVEN,
        data=fairperm.datasets.load_compas(),
        threshold=5,
        metrics="fpr",
        control_features="age_band",
        stratum_weights=WEIGHTS,
    )
    assert cells(out) == as_printed(audit)
    plain = here.run("audit", compas, *asked, "--csv", "-")[1]
    assert cells(plain) != cells(out)
    file, report = tmp_path / "x.json", tmp_path / "x.html"
    settings = "".join(f'"{age}" = {one}\n' for age, one in WEIGHTS.items())
    config = tmp_path / "fairperm.toml"
    config.write_text(f"[audit.stratum-weights]\n{settings}")
    outputs = ("--json", file, "--report", report, "-q")
    assert here.run("audit", compas, *asked, "--config", config, *outputs)[0] == 0
    document = json.loads(file.read_text())
    assert document["options"]["stratum_weights"] == [f"{age}={w}" for age, w in WEIGHTS.items()]
    assert document["result"]["settings"]["stratum_weights"] == WEIGHTS
    assert document["result"]["rows"][0]["test"]["pvalue"] == audit.rows[0].pvalue
    text = Page(report.read_text(encoding="utf-8")).text
    for stratum in ("25 - 45=2.0", "Greater than 45=1.0", "Less than 25=0.5"):
        assert f"--stratum-weights '{stratum}'" in text


def test_weights_of_strata_of_two_columns(here: Here, tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    rows = sample(600)
    strata = [("ab"[i % 2], i // 2 % 2) for i in range(len(rows))]
    lines = [f"{y},{p},{g},{a},{b}" for (y, p, g), (a, b) in zip(rows, strata, strict=True)]
    path.write_text("\n".join(["y,p,g,a,b", *lines]))
    weights = {("a", 0): 1.0, ("a", 1): 2.0, ("b", 0): 3.0, ("b", 1): 0.0}
    given = [x for (a, b), w in weights.items() for x in ("--stratum-weights", f"{a},{b}={w}")]
    asked = ("--label", "y", "--prediction", "p", "--group", "g", "--metric", "fnr")
    controls = ("--control", "a", "--control", "b")
    code, out, err = here.run("test", path, *asked, *controls, *given, "--json", "-", "--seed", 1)
    assert code == 0, err
    y, p, g = (list(column) for column in zip(*rows, strict=True))
    expected = fairperm.permutation_test(
        y,
        p,
        sensitive_features=g,
        metric="fnr",
        control_features={"a": [a for a, _ in strata], "b": [b for _, b in strata]},
        stratum_weights=weights,
        rng=1,
    )
    assert json.loads(out)["result"]["pvalue"] == expected.pvalue
    assert json.loads(out)["result"]["difference"] == expected.difference


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--stratum-weights", "a=1"), "--stratum-weights needs --control"),
        (("--control", "age_band", "--stratum-weights", "x"), "must be VALUE=NUMBER; got 'x'"),
        (("--control", "age_band", "--stratum-weights", "x=y"), "must be a number; got 'y'"),
        (
            ("--control", "age_band", "--stratum-weights", "25-45=1"),
            "got '25-45'. Did you mean '25 - 45'?",
        ),
        (("--control", "age_band", *BY_AGE[:4]), "'Less than 25' has none"),
        (("--score-bins", 1), "--score-bins must be an integer from 2"),
        (
            ("--score-bins", 9, "--metric", "average_precision"),
            "--score-bins cannot be used for average_precision",
        ),
    ],
)
def test_refusals(here: Here, compas: Path, options: tuple[object, ...], said: str) -> None:
    code, out, err = here.run("audit", compas, *SCORES, "--metric", "roc_auc", *options)
    assert (code, out) == (2, "")
    assert said in err


def test_scores_in_bins(here: Here, compas: Path, tmp_path: Path) -> None:
    """With bins rows stay in the database; of 64 bins each holds one of ten scores at most."""
    asked = (
        *(*SCORES, "--threshold", 5, "--metric", "fpr", "--metric", "roc_auc"),
        *("--control", "age_band", "--resamples", 99),
    )
    report, file = tmp_path / "x.html", tmp_path / "x.json"
    outputs = ("--csv", "-", "--json", file, "--report", report)
    code, out, err = here.run("audit", compas, *asked, "--score-bins", 64, *outputs)
    assert code == 0, err
    audit = fairperm.audit(
        **GIVEN,
        data=fairperm.datasets.load_compas(),
        threshold=5,
        metrics=["fpr", "roc_auc"],
        control_features="age_band",
        n_resamples=99,
    )
    assert cells(out) == as_printed(audit)
    document = json.loads(file.read_text())
    assert (document["options"]["score_bins"], document["rows_read"]) == (64, 6172)
    text = Page(report.read_text(encoding="utf-8")).text
    assert "--score-bins 64" in text
    assert "Move the slider" in text  # the sweep is of the scores themselves
    said = here.run("audit", compas, *asked, "--score-bins", 2, "-q", "--csv", "-")
    assert cells(said[1])[1]["difference"] != cells(out)[1]["difference"]


def test_report_tells_which_sweep_failed(here: Here, tmp_path: Path) -> None:
    """One attribute has only one group that is large enough; then rows have weights."""
    rows = [(i % 2, (i // 4 % 10) / 10, "ab"[i % 3 > 0], "cd"[i < 45]) for i in range(240)]
    path, report = tmp_path / "x.csv", tmp_path / "x.html"
    path.write_text("y,p,g,h\n" + "".join(f"{y},{p},{g},{h}\n" for y, p, g, h in rows))
    asked = ("--label", "y", "--score", "p", "--group", "g", "--group", "h", "--metric", "fpr")
    options = ("--threshold", 0.5, "--report", report, "-q")
    code, _, err = here.run("audit", path, *asked, *options)
    assert (code, err) == (0, "")
    text = Page(report.read_text(encoding="utf-8")).text
    assert "h was not tested over all thresholds: fewer than two of its groups" in text
    assert "g was not tested" not in text
    assert "Move the slider" in text
    weighted = (*asked[:6], "--metric", "fpr", "--weight", "p", "--where", "p > 0")
    assert here.run("audit", path, *weighted, *options)[0] == 0
    text = Page(report.read_text(encoding="utf-8")).text
    assert "g was not tested over all thresholds: sweeps do not support --weight." in text


def test_bins_need_names_that_sql_can_tell(here: Here, tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text(as_text(sample(), "P,p,g"))
    asked = ("--label", "P", "--score", "p", "--group", "g", "--metric", "roc_auc")
    assert here.run("audit", tmp_path / "x.csv", *asked)[0] == 0
    code, _, said = here.run("audit", tmp_path / "x.csv", *asked, "--score-bins", 9)
    assert (code, "must differ in more than case; got 'P', 'p'" in said) == (2, True)


def test_scores_of_a_large_file_are_binned(
    here: Here, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bins are those that the library chooses of the same rows."""
    import duckdb

    monkeypatch.setattr(lazy, "MAX_KINDS", 1000)
    monkeypatch.setattr("fairperm.data.sample._NEXT_TO_NOTHING", 1.0)
    chance = np.random.default_rng(4)
    score = chance.random(2000)
    label, group = chance.random(2000) < score, chance.integers(0, 2, 2000)
    frame = pa.table({"y": label, "s": score, "g": group})
    pq.write_table(frame, tmp_path / "x.parquet")
    asked = ("--label", "y", "--score", "s", "--group", "g", "--resamples", 99, "--seed", 1)
    for metric in ("roc_auc", "brier_score"):
        options = (*asked, "--metric", metric, "--json", "-")
        code, out, err = here.run("test", tmp_path / "x.parquet", *options)
        assert code == 0, err
        result = json.loads(out)["result"]
        with pytest.warns(fairperm.FairpermWarning, match="Scores were put into bins"):
            expected = fairperm.permutation_test(
                "y", y_score="s", sensitive_features="g", metric=metric, n_resamples=99, rng=1,
                data=duckdb.connect().from_arrow(frame),
            )  # fmt: skip
        assert (result["difference"], result["pvalue"]) == (expected.difference, expected.pvalue)
        assert "so many scores are distinct" in " ".join(result["notes"]).lower()


def test_what_was_said_as_a_warning_is_not_said_again(here: Here) -> None:
    path = here.folder / "few.csv"
    lines = [f"{i % 2},{i % 3 % 2},{'ab'[i % 5 > 2]}" for i in range(40)]
    path.write_text("\n".join(["y,p,g", *lines]))
    code, out, err = here.run("test", path, *COLUMNS, "--metric", "mcc", "--resamples", 99)
    assert code == 0, err
    assert "of group 'a' show how matthews_corrcoef" in err
    assert "note" not in out


def test_decimal_commas_are_read_if_one_says_so(here: Here) -> None:
    lines = [f"{y};{p / 4 + i / 1000};{g}" for i, (y, p, g) in enumerate(sample())]
    text = "\n".join(["y;p;g", *lines])
    dots, commas = here.folder / "dots.csv", here.folder / "commas.csv"
    dots.write_text(text)
    commas.write_text(text.replace(".", ","))
    asked = (*COLUMNS, "--metric", "fpr", "--seed", 1, "--threshold", 0.2, "--csv", "-")
    wanted = here.run("audit", dots, *asked)
    assert wanted[0] == 0
    assert here.run("audit", commas, *asked, "--decimal", ",") == wanted
    kept = ("--where", "p < 0.4")
    where = here.run("audit", commas, *asked, "--decimal", ",", *kept)
    assert where == here.run("audit", dots, *asked, *kept) != wanted
    code, _, said = here.run("audit", commas, *asked)
    assert code == 2
    assert said.endswith("Pass --decimal ',' for decimal commas.\n")
    code, _, said = here.run("audit", dots, *asked, "--decimal", ",")
    assert code == 2
    assert "--score (column 'p') must be made of real numbers" in said
    assert "--decimal must be one of" in here.run("audit", dots, *asked, "--decimal", "x")[2]


def test_hints_are_options_and_sql(here: Here) -> None:
    path = here.folder / "three.csv"
    names = {"a": "ä b", "b": "b"}
    path.write_text(
        as_text([(y, p, names[g]) for y, p, g in sample()] + [(1, 1, "c"), (0, 0, "c")])
    )
    said = here.run("test", path, *COLUMNS, "--metric", "fpr")[2]
    assert "pass --pair b c, or use `fairperm audit` to compare all groups." in said
    said = here.run("audit", path, *COLUMNS, "--where", "g = b2")[2]
    assert said.endswith("Write text in 'single quotes'.\n")
    ages = here.folder / "ages.csv"
    ages.write_text(as_text([(y, p, f"{i % 30}") for i, (y, p, _) in enumerate(sample())]))
    said = here.run("audit", ages, *COLUMNS)[2]
    assert "bands, or use correlation_test in Python; numbers that are names can be made" in said
    code, *_ = here.run("audit", ages, *COLUMNS, "--sql", "SELECT y, p, g // 10 AS g FROM data")
    assert code == 0


def test_groups_that_may_be_one_are_noted(here: Here) -> None:
    path = here.folder / "spelt.csv"
    names = {"a": ["Male", "male "], "b": ["Female"]}
    rows = [(y, p, names[g][i % len(names[g])]) for i, (y, p, g) in enumerate(sample())]
    path.write_text(as_text(rows))
    asked = ("audit", path, *COLUMNS, "--metric", "fpr", "--seed", 1)
    code, _, said = here.run(*asked)
    assert code == 0
    assert "differ only in case or spaces" in said
    one = ("--sql", "SELECT * REPLACE (lower(trim(g)) AS g) FROM data")
    assert here.run(*asked, *one)[2] == ""
    assert here.run(*asked, "--quiet")[2] == ""


@pytest.mark.parametrize(
    ("groups", "reference"),
    [
        (("sex,race",), ("Male,Other",)),
        (("sex,race",), ("sex,race=Male,Other",)),
        (("sex", "race"), ("sex,race=Male,Other", "sex=Female")),
    ],
)
def test_references_of_combinations(
    here: Here, compas: Path, groups: tuple[str, ...], reference: tuple[str, ...]
) -> None:
    asked = ("audit", compas, *SCORES[:4], "--metric", "fpr", "--threshold", 5, "--csv", "-")
    many = [x for one in groups for x in ("--group", one)]
    many += ["--intersections"] if len(groups) > 1 else []
    code, out, err = here.run(
        *asked, *many, *(x for one in reference for x in ("--reference", one))
    )
    assert code == 0, err
    seconds = {row["second_group"] for row in cells(out) if row["attribute"] == "sex × race"}
    assert seconds == {"('Male', 'Other')"}


@pytest.mark.parametrize(
    ("reference", "said"),
    [
        (("Male,other",), "if there are several ('sex', 'sex,race'); got 'Male,other'"),
        (
            ("sex,race=Male,other",),
            "a group of sex,race; got 'Male,other'. Did you mean 'Male,Other'",
        ),
        (("sx=Male",), "if there are several; got 'sx'. Did you mean 'sex'?"),
        (("sex=Male", "sex=Female"), "--reference must be given only once for 'sex'"),
    ],
)
def test_references_that_are_none(
    here: Here, compas: Path, reference: tuple[str, ...], said: str
) -> None:
    asked = ("audit", compas, *SCORES[:4], "--metric", "fpr", "--threshold", 5)
    groups = ("--group", "sex", "--group", "sex,race")
    options = [x for one in reference for x in ("--reference", one)]
    code, out, err = here.run(*asked, *groups, *options)
    assert (code, out) == (2, "")
    assert said in err


def test_report_sweeps_every_score_where_they_are_few(here: Here) -> None:
    path, page = here.folder / "few.csv", here.folder / "x.html"
    path.write_text(as_text([(y, 1 + (p + i) % 5, g) for i, (y, p, g) in enumerate(sample())]))
    asked = (*COLUMNS, "--threshold", 3, "--metric", "fpr", "--seed", 1)
    code, out, _ = here.run("audit", path, *asked, "--report", page)
    assert (code, out.endswith(f"Open the report in a browser: {page}\n")) == (0, True)
    text = Page(page.read_text(encoding="utf-8")).text
    assert "thresholds of 5" in text or "At no threshold" in text
    assert "The numbers: false positive rate" in text
    assert "1.04" not in text


def test_columns_separated_by_commas_are_combined(here: Here) -> None:
    path, page = here.folder / "x.csv", here.folder / "x.html"
    lines = [
        f"{y},{(p + i % 3) / 3},{g},{'mf'[i // 2 % 2]}" for i, (y, p, g) in enumerate(sample(600))
    ]
    path.write_text("\n".join(["y,p,g,sex", *lines]))
    asked = ("--label", "y", "--score", "p", "--metric", "fpr", "--seed", 1, "--threshold", 0.5)
    groups = ("--group", "sex", "--group", "sex,g", "--reference", "sex=m")
    code, out, err = here.run(
        "audit", path, *asked, *groups, "--csv", "-", "--report", page, "--rename", "sex:m=men"
    )
    assert code == 0, err
    found = {(row["attribute"], row["first_group"], row["second_group"]) for row in cells(out)}
    data = pd.read_csv(path)
    expected = fairperm.audit(
        "y",
        y_score="p",
        threshold=0.5,
        data=data,
        sensitive_features=["sex", ("sex", "g")],
        metrics="fpr",
        compare="reference",
        reference={"sex": "m"},
        rng=1,
    )
    cells_of = (row.cells() for row in expected.rows)
    assert found == {
        (one["attribute"], one["first_group"], one["second_group"]) for one in cells_of
    }
    shown = Page(page.read_text(encoding="utf-8")).text
    assert "--group sex,g" in shown
    assert "men × a" in shown
    assert shown.count("The numbers: false positive rate") == 2  # both attributes are swept
    assert "got 'h'" in here.run("audit", path, *asked, "--group", "sex,h")[2]


def test_messages_name_options() -> None:
    pair, none = errors.argument("groups", "a b", 3), errors.argument("variance", None)
    note = errors.Note(f"Pass {pair} or {none}, not {errors.argument('audit()')}.")
    assert write_message(note) == "Pass --pair 'a b' 3 or --variance none, not `fairperm audit`."
    wrong = errors.InputError("y_score (column 'y_true')", "a number", "y_true")
    assert write_message(wrong) == "--score (column 'y_true') must be a number; got 'y_true'."
    switch = errors.InputError(f"Pass {errors.argument('split_clusters', True)}.")
    assert write_message(switch) == "Pass --split-clusters."
    assert write_message("y_true is a name from data") == "y_true is a name from data"


def test_columns_with_commas_in_quotes(here: Here) -> None:
    awkward = ['"age, years"', '"say ""hi"", or not"', "sex,race"]
    rows = ["1,0,1,w,x", "0,1,2,m,y", "1,1,1,m,x", "0,0,2,w,y"] * 40
    names = ",".join(["y", "p", *awkward[:2], "sex"])
    (here.folder / "data.csv").write_text("\n".join([names, *rows]))
    given = ("audit", here.folder / "data.csv", "--label", "y", "--prediction", "p", "--csv", "-")
    code, out, err = here.run(
        *given, "--group", awkward[0], "--group", awkward[1], "--reference", f"{awkward[0]}=2"
    )
    assert code == 0, err
    assert {one["attribute"] for one in cells(out)} == {"age, years", 'say "hi", or not'}
    assert values.list_columns('"quote') == ('"quote',)
    for name in ('"', "a,b", "x", "", '"a",b'):
        assert values.list_columns(values.join_columns([name, "z"])) == (name, "z")


@pytest.mark.parametrize("command", ["audit", "discover"])
def test_workbooks_have_the_rows_of_the_csv(here: Here, compas: Path, command: str) -> None:
    by = "--feature" if command == "discover" else "--group"
    given = (command, compas, "--label", "two_year_recid", "--score", "decile_score", by, "race")
    more = ("--threshold", 5, "--metric", "fpr", "--csv", "-", "--xlsx", here.folder / "a.xlsx")
    code, out, err = here.run(*given, *more, "--seed", 1)
    assert code == 0, err
    heads, *rows = openpyxl.load_workbook(here.folder / "a.xlsx").active.values
    assert heads == tuple(cells(out)[0])
    for row, texts in zip(rows, cells(out), strict=True):
        for one, text in zip(row, texts.values(), strict=True):
            is_float = isinstance(one, float)
            assert math.isclose(one, float(text)) if is_float else str(one or "") == text
