"""One table in every format: the same numbers as the library's, to the last digit."""

from __future__ import annotations

import gzip
import sys
from pathlib import Path
from typing import Any

import pytest

import fairperm
from tests.support.commands import as_text, cells, failed, sample, succeeded

pytestmark = pytest.mark.filterwarnings("ignore::fairperm.FairpermWarning")
pa = pytest.importorskip("pyarrow")
COLUMNS = ("--label", "two_year_recid", "--score", "decile_score", "--threshold", 5)
ASKED = (
    *(*COLUMNS, "--group", "sex", "--group", "race", "--control", "age_band"),
    *("--metric", "fpr", "--metric", "selection_rate", "--seed", 1, "--resamples", 99),
)


@pytest.fixture(scope="module")
def compas() -> Any:
    """Return every fourth row, the tiny groups among them."""
    return fairperm.datasets.load_compas("pandas").iloc[::4].reset_index(drop=True)


@pytest.fixture(scope="module")
def expected(compas: Any) -> list[dict[str, str]]:
    audit = fairperm.audit(
        "two_year_recid",
        y_score="decile_score",
        threshold=5,
        sensitive_features=["sex", "race"],
        control_features="age_band",
        metrics=["fpr", "selection_rate"],
        data=compas,
        rng=1,
        n_resamples=99,
    )
    return [
        {name: "" if one is None else str(one) for name, one in row.cells().items()}
        for row in audit.rows
    ]


def write(compas: Any, folder: Path, form: str) -> tuple[list[object], bytes | None]:
    """Write the data, and return the arguments and the standard input that read them."""
    path = folder / f"compas.{form}"
    if form in {"csv", "stdin"}:
        compas.to_csv(path, index=False)
        return (["-"], path.read_bytes()) if form == "stdin" else ([path], None)
    if form == "csv.gz":
        path.write_bytes(gzip.compress(compas.to_csv(index=False).encode()))
    elif form == "tsv":
        compas.to_csv(path, index=False, sep="\t")
    elif form == "parquet":
        compas.to_parquet(path)
    elif form == "stdin.parquet":
        compas.to_parquet(path)
        return ["-"], path.read_bytes()
    elif form == "jsonl":
        compas.to_json(path, orient="records", lines=True)
    elif form == "duckdb":
        import duckdb

        with duckdb.connect(str(path)) as database:
            database.register("frame", compas)
            database.execute('CREATE TABLE "the ""scores""" AS SELECT * FROM frame')
            database.execute("CREATE TABLE other (x INTEGER)")
        return [path, "--table", 'the "scores"'], None
    elif form == "database sql":
        import duckdb

        with duckdb.connect(str(path)) as database:
            database.register("frame", compas)
            database.execute("CREATE TABLE scores AS SELECT * FROM frame")
        return [path, "--format", "duckdb", "--sql", "SELECT * FROM scores"], None
    elif form == "glob":
        compas[::2].to_csv(folder / "part 1.csv", index=False)
        compas[1::2][list(reversed(compas.columns))].to_csv(folder / "part 2.csv", index=False)
        return [folder / "part*.csv"], None
    elif form == "glob of parquet":
        compas[::2].to_parquet(folder / "part 1.parquet")
        compas[1::2].to_parquet(folder / "part 2.parquet")
        return [folder / "part*.parquet"], None
    elif form == "sql":
        compas.rename(columns={"sex": "s"}).to_csv(folder / "x.csv", index=False)
        return [folder / "x.csv", "--sql", "SELECT *, s AS sex FROM data;"], None
    elif form == "where":
        more = compas.assign(keep=1)
        extra = more[:500].assign(keep=0)
        __import__("pandas").concat([more, extra]).to_csv(folder / "x.csv", index=False)
        return [folder / "x.csv", "--where", "keep = 1 -- the rest is a copy"], None
    return [path], None


FORMS = (
    *("csv", "csv.gz", "tsv", "parquet", "jsonl", "duckdb", "database sql"),
    *("stdin", "stdin.parquet", "glob", "glob of parquet", "sql", "where"),
)


@pytest.mark.parametrize("form", FORMS)
def test_same_numbers(
    compas: Any, expected: list[dict[str, str]], tmp_path: Path, form: str
) -> None:
    files, stdin = write(compas, tmp_path, form)
    piped = {} if stdin is None else {"stdin": stdin}
    found = cells(succeeded("audit", *files, *ASKED, "--csv", "-", **piped))
    assert found == expected


@pytest.mark.parametrize("form", ["csv", "parquet", "duckdb"])
def test_same_numbers_with_rows(compas: Any, tmp_path: Path, form: str) -> None:
    """Metrics of scores, weights and clusters read rows one by one."""
    compas = compas.assign(
        s=(compas["decile_score"] + compas.index % 7 / 7) / 11,
        w=1 + compas.index % 5 / 10,
        person=[f"{one}{i // 2}" for i, one in enumerate(compas["sex"])],
    )
    options: dict[str, Any] = {"rng": 2, "n_resamples": 49}
    audit = fairperm.audit(
        "two_year_recid",
        y_score="s",
        sensitive_features="sex",
        metrics=["roc_auc", "brier_score", "fpr"],
        sample_weight="w",
        cluster="person",
        data=compas,
        **options,
    )
    files, _ = write(compas, tmp_path, form)
    found = cells(
        succeeded(
            *("audit", *files, "--label", "two_year_recid", "--score", "s", "--group", "sex"),
            *("--metric", "roc_auc", "--metric", "brier_score", "--metric", "fpr"),
            *("--weight", "w", "--cluster", "person", "--seed", 2, "--resamples", 49),
            *("--csv", "-"),
        )
    )
    wanted = [
        {name: "" if one is None else str(one) for name, one in row.cells().items()}
        for row in audit.rows
    ]
    assert found == wanted


def test_regression_and_margins_and_references(compas: Any, tmp_path: Path) -> None:
    audit = fairperm.audit(
        "two_year_recid",
        "decile_score",
        sensitive_features=["sex", "race"],
        metrics=["mean_error", "mean_prediction"],
        compare="reference",
        reference={"race": "Asian"},
        margin={"mean_error": 0.5},
        adjust=None,
        intersections=True,
        data=compas,
        rng=1,
        n_resamples=49,
    )
    files, _ = write(compas, tmp_path, "csv")
    found = cells(
        succeeded(
            *("audit", *files, "--label", "two_year_recid", "--prediction", "decile_score"),
            *("--group", "sex", "--group", "race", "--intersections", "--adjust", "none"),
            *("--metric", "mean_error", "--metric", "mean_prediction", "--reference", "race=Asian"),
            *("--margin", "mean_error=0.5", "--seed", 1, "--resamples", 49, "--csv", "-"),
        )
    )
    assert [one["verdict"] for one in found] == [row.verdict for row in audit.rows]
    assert [one["difference"] for one in found] == [str(row.difference) for row in audit.rows]


def test_predictions_of_32_bits_are_cut_as_the_library_cuts_them(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    scores = pa.array([0.1, 0.7, 0.3, 0.7] * 50, pa.float32())
    table = pa.table({"y": [0, 1] * 100, "s": scores, "g": ["a", "a", "b", "b"] * 50})
    pq.write_table(table, tmp_path / "x.parquet")
    found = cells(
        succeeded(
            *("audit", tmp_path / "x.parquet", "--label", "y", "--score", "s", "--group", "g"),
            *("--threshold", 0.7, "--metric", "selection_rate", "--csv", "-"),
        )
    )
    assert found[0]["first_numerator"] == "50"


def test_tables_of_a_database(tmp_path: Path) -> None:
    import duckdb

    path = tmp_path / "x.db"
    with duckdb.connect(str(path)) as database:
        database.execute("CREATE TABLE one (y INTEGER, p INTEGER, g INTEGER)")
        database.execute("CREATE TABLE two (y INTEGER, p JSON, g INTEGER)")
        database.execute("INSERT INTO two VALUES (1, '\"x\"', 2), (0, '3', 4)")
        database.execute("CREATE TABLE three (y INTEGER, p BLOB, g INTEGER)")
        database.execute("INSERT INTO three VALUES (1, 'a'::BLOB, 2), (0, 'b'::BLOB, 4)")
    asked = ("--label", "y", "--prediction", "p", "--group", "g")
    assert "--table must name one of the tables" in failed("audit", path, *asked)
    assert "Did you mean 'one'?" in failed("audit", path, *asked, "--table", "onee")
    assert "must have values of one type" in failed("audit", path, *asked, "--table", "two")
    assert "has the type 'BLOB'" in failed("audit", path, *asked, "--table", "three")
    assert "at least one row" in failed("audit", path, *asked, "--table", "one")


def test_sql_reads_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("y,p,g\n1,1,a\n0,1,b\n")
    secret = tmp_path / "secret.csv"
    secret.write_text("y,p,g\n1,1,a\n0,1,b\n")
    asked = ("--label", "y", "--prediction", "p", "--group", "g")
    for sql in (
        "DROP TABLE data",
        f"COPY data TO '{tmp_path}/out.csv'",
        "SELECT 1; SELECT 2",
        "ATTACH 'x.db'",
        "INSTALL httpfs",
        "PRAGMA version",
    ):
        assert "--sql must be one SELECT" in failed("audit", path, *asked, "--sql", sql)
    for where in ("1 = 1; DROP TABLE data", "1 = 1) OR (1 = 1", "SELECT 1 FROM"):
        assert failed("audit", path, *asked, "--where", where).startswith("--where ")
    said = failed("audit", path, *asked, "--sql", f"SELECT * FROM '{secret}'")
    assert said.startswith("--sql cannot be run")
    said = failed("audit", path, *asked, "--sql", f"SELECT * FROM read_csv('{secret}')")
    assert said.startswith("--sql cannot be run")
    assert sorted(one.name for one in tmp_path.iterdir()) == ["secret.csv", "x.csv"]


def write_groups(path: Path, names: tuple[str, str]) -> Path:
    """Write labels, predictions and two groups by these names, of 120 and 180 rows."""
    lines = (f"{i % 2},{i % 3 % 2},{names[i % 5 < 3]}" for i in range(300))
    path.write_text("\n".join(["y,p,g", *lines]), encoding="utf-8")
    return path


GROUPS = ("--label", "y", "--prediction", "p", "--group", "g", "--metric", "accuracy")


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (("1.1", "1.10"), ("1.1", "1.10")),
        (("1E2", "100"), ("1E2", "100")),
        (("-0", "0"), ("-0", "0")),
        (("+1", "1"), ("+1", "1")),
        (("1.5", "2.50"), ("1.5", "2.5")),
        (("10", "9"), ("10", "9")),
    ],
)
def test_names_of_groups_are_text_unless_each_is_another_number(
    names: tuple[str, str], expected: tuple[str, str], tmp_path: Path
) -> None:
    path = write_groups(tmp_path / "x.csv", names)
    for options in ((), ("--where", "y < 2"), ("--control", "y")):
        (row,) = cells(succeeded("audit", path, *GROUPS, *options, "--csv", "-"))
        found = {row[f"{one}_group"]: row[f"{one}_rows"] for one in ("first", "second")}
        assert found == dict(zip(expected, ("120", "180"), strict=True))


@pytest.mark.parametrize(
    ("kind", "names", "expected"),
    [
        ("HUGEINT", ("123456789012345678901", "123456789012345678902"), None),
        ("DECIMAL(38, 2)", ("123456789012345678901.10", "123456789012345678901.20"), None),
        ("DECIMAL(18, 2)", ("1.10", "1.20"), ("1.1", "1.2")),
        ("HUGEINT", ("1", "2"), ("1.0", "2.0")),
    ],
)
def test_names_of_many_digits_are_not_rounded(
    kind: str, names: tuple[str, str], expected: tuple[str, str] | None, tmp_path: Path
) -> None:
    duckdb = pytest.importorskip("duckdb")
    text, path = write_groups(tmp_path / "x.csv", names), tmp_path / "x.duckdb"
    with duckdb.connect(str(path)) as database:
        database.execute(
            f"CREATE TABLE t AS SELECT y, p, CAST(g AS {kind}) AS g "
            f"FROM read_csv('{text}', all_varchar = true)"
        )
        database.execute("ALTER TABLE t ALTER y TYPE BIGINT; ALTER TABLE t ALTER p TYPE BIGINT")
    (row,) = cells(succeeded("audit", path, "--table", "t", *GROUPS, "--csv", "-"))
    assert (row["first_group"], row["second_group"]) == (expected or names)


def test_labels_of_many_digits_are_not_rounded(tmp_path: Path) -> None:
    label = {0: "12345678901234567890", 1: "12345678901234567891", 2: "12345678901234567892"}
    lines = (f"{label[i % 3]},{label[i % 2]},{i % 4 // 2}" for i in range(300))
    path = tmp_path / "x.csv"
    path.write_text("\n".join(["y,p,g", *lines]), encoding="utf-8")
    (row,) = cells(succeeded("audit", path, *GROUPS, "--csv", "-"))
    hits = [i % 4 // 2 for i in range(300) if i % 3 == i % 2]
    assert [row["first_numerator"], row["second_numerator"]] == [
        str(hits.count(one)) for one in (0, 1)
    ]


def test_numbers_of_128_bits_are_not_rounded(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    path = tmp_path / "x.duckdb"
    with duckdb.connect(str(path)) as database:
        database.execute(
            "CREATE TABLE t AS SELECT 9007199254740992::HUGEINT + 3 * (i % 2) AS y, "
            "9007199254740992::HUGEINT AS p, i % 2 AS g FROM range(300) r(i)"
        )
    asked = ("--table", "t", "--label", "y", "--prediction", "p", "--group", "g")
    said = failed("audit", path, *asked, "--metric", "mean_error")
    assert "--label (column 'y') must be made of integers up to 2**53; got 9007199254740995" in said


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_a_score_can_also_be_a_stratum_and_a_group(compas: Any, tmp_path: Path, form: str) -> None:
    files, _ = write(compas, tmp_path, form)
    options: dict[str, Any] = {"y_score": "decile_score", "threshold": 5, "data": compas, "rng": 1}
    options |= {"metrics": "accuracy", "n_resamples": 99}
    for group, control in (("sex", "decile_score"), ("decile_score", None)):
        audit = fairperm.audit(
            "two_year_recid", sensitive_features=group, control_features=control, **options
        )
        asked = (*COLUMNS, "--group", group, *(("--control", control) if control else ()))
        found = cells(
            succeeded(
                *("audit", *files, *asked, "--metric", "accuracy", "--seed", 1),
                *("--resamples", 99, "--csv", "-"),
            )
        )
        assert [(one["difference"], one["pvalue"]) for one in found] == [
            (str(row.difference), str(row.pvalue)) for row in audit
        ]


def test_a_missing_group_costs_no_row_of_another(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    lines = (f"{i % 2},{i % 3 % 2},{i % 2},{'' if i < 50 else i % 3 % 2}" for i in range(300))
    path.write_text("\n".join(["y,p,g,h", *lines]), encoding="utf-8")
    found = cells(
        succeeded("audit", path, *GROUPS, "--group", "h", "--missing", "drop", "--csv", "-")
    )
    rows = [int(one["first_rows"]) + int(one["second_rows"]) for one in found]
    assert rows == [300, 250]


PLAIN = as_text(sample())
GIVEN = ("--label", "y", "--prediction", "p", "--group", "g", "--metric", "fpr", "--csv", "-")


@pytest.fixture(scope="module")
def plain_rows(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("plain") / "x.csv"
    path.write_text(PLAIN)
    return succeeded("audit", path, *GIVEN)


def test_lines_above_the_header_are_skipped(tmp_path: Path, plain_rows: str) -> None:
    path = tmp_path / "titled.csv"
    path.write_text(f"Decisions of 2024\n\n{PLAIN}", encoding="utf-16")
    assert succeeded("audit", path, *GIVEN, "--skip", 2) == plain_rows
    assert "Lines above the header can be skipped: --skip 1, or" in failed("audit", path, *GIVEN)
    path.write_text(f"Decisions of 2024,,\n{PLAIN}")
    assert failed("audit", path, *GIVEN).endswith("--skip 1, or as many as there are.")
    said = failed("audit", path, *GIVEN, "--skip", 1000)
    assert said.startswith("--skip must be fewer than the lines of")
    assert "--skip must be an integer from 0" in failed("audit", path, *GIVEN, "--skip", -1)


def test_sheets_of_workbooks_are_read(tmp_path: Path, plain_rows: str) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.active.title = "people"
    for row in (("Decisions", None, None), (None,) * 3, ("y", "p", "g"), *sample()):
        book.active.append(row)
    book.save(tmp_path / "one.xlsx")
    assert succeeded("audit", tmp_path / "one.xlsx", *GIVEN, "--skip", 1) == plain_rows
    book.create_sheet("notes").append(["nothing"])
    book.save(tmp_path / "two.xlsx")
    said = failed("audit", tmp_path / "two.xlsx", *GIVEN)
    assert said.startswith("--table must name one of the tables ('people', 'notes').")
    chosen = ("--skip", 1, "--table", "people")
    assert succeeded("audit", tmp_path / "two.xlsx", *GIVEN, *chosen) == plain_rows
    (tmp_path / "bad.xlsx").write_bytes((tmp_path / "one.xlsx").read_bytes()[:99])
    assert "'bad.xlsx' cannot be read" in failed("audit", "bad.xlsx", *GIVEN, cwd=tmp_path)


def test_workbooks_need_openpyxl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    (tmp_path / "x.xlsx").write_bytes(b"PK")
    assert failed("audit", "x.xlsx", *GIVEN, cwd=tmp_path) == (
        "Reading the spreadsheet 'x.xlsx' needs openpyxl, which is not installed: "
        "pip install 'fairperm[excel]'"
    )
