"""What the page sees in a file, and which options it makes of it."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import openpyxl
import pytest

from fairperm.app.look import Look, look
from fairperm.app.questions import Form
from fairperm.errors import InputError

ROWS = "".join(
    f"{'wm'[i % 2]};{i % 9 / 10:.1f};{'ja' if i % 3 else 'nein'};{i}\n" for i in range(99)
)
GERMAN = "Geschlecht;Punktzahl;Eingestellt?;Bewerber-Nr\n" + ROWS.replace(".", ",")


def see(folder: Path, content: bytes | str, name: str = "a.csv", **given: Any) -> Look:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    copies = folder / "copies"
    copies.mkdir(exist_ok=True)
    return look(str(path), copies, given)


@pytest.mark.parametrize("code", ["utf-8", "utf-8-sig", "utf-16", "windows-1252"])
@pytest.mark.parametrize("titles", ["", "Bewerbungen 2025\n\n"])
def test_german_files(tmp_path: Path, code: str, titles: str) -> None:
    found = see(tmp_path, (titles + GERMAN.replace("nein", "nö")).encode(code))
    assert found.n_rows == 99
    assert [one.kind for one in found.columns] == ["text", "number", "text", "number"]
    options: dict[str, object] = {"skip": 2} if titles else {}
    options |= {"encoding": "windows-1252"} if code == "windows-1252" else {}
    assert found.reading.options() == options | {"decimal": ","}
    assert found.columns[1].high == 0.8
    form = Form({}, found)
    assert form.question.command == "selection"
    assert form.options()[:3] == [
        "--selected=Eingestellt?",
        "--group=Geschlecht",
        "--pos-label=ja",
    ]


def test_words_among_numbers_are_missing_values(tmp_path: Path) -> None:
    numbers = "".join(f"{i / 100},{'wm'[i % 2]}\n" for i in range(100))
    found = see(tmp_path, f"score,sex\n{numbers}k.A.,w\nk.A.,m\n,w\nrefused,-\n")
    score, sex = found.columns
    assert (score.kind, score.n_missing, sex.n_missing) == ("number", 4, 1)
    assert found.unknown_words == ["k.A.", "refused", "-"]
    assert "k.A." in found.reading.options()["na"]
    given = see(tmp_path, f"score,sex\n{numbers}k.A.,w\n", na=())
    assert given.columns[0].kind == "text"


def test_sheets(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    book.active.append(["Notes"])
    sheet = book.create_sheet("People, all")
    for row in (
        ["Applicants of 2025"],
        ["sex", "age, years", "hired"],
        *[["w", 1, "yes"], ["m", 2, "no"]] * 9,
    ):
        sheet.append(row)
    path = tmp_path / "x.xlsx"
    book.save(path)
    found = look(str(path), tmp_path, {})
    assert found.reading.options() == {"table": "People, all", "skip": 1}
    assert found.sheets == ("Sheet", "People, all")
    assert [one.name for one in found.columns] == ["sex", "age, years", "hired"]
    form = Form({"question": ["audit"], "asked": ["audit"], "group": ["1"], "label": ["2"]}, found)
    assert '--group="age, years"' in form.options()
    assert "--pos-label=yes" in form.options()


def test_columns_that_cannot_be_named(tmp_path: Path) -> None:
    found = see(tmp_path, gzip.compress(b"a,,a,b\n1,2,3,4\n5,6,7,8\n"), "a.csv.gz")
    assert ([one.name for one in found.columns], found.n_more) == (["b"], 3)
    assert found.rows == (("4",), ("8",))
    with pytest.raises(InputError, match=r"has no rows below the names of its columns"):
        see(tmp_path, "a,b\n")


def test_summaries(tmp_path: Path) -> None:
    found = see(tmp_path, "sex,applicants,selected\nw,120,40\nm,130,52\n")
    assert Form({}, found).options() == [
        *("--selected=selected", "--applicants=applicants", "--group=sex")
    ]


@pytest.mark.parametrize(
    "values", [("Hired", "Not Hired"), ("Hired", "Rejected", "Withdrawn")], ids=["two", "three"]
)
def test_values_say_who_was_selected(tmp_path: Path, values: tuple[str, ...]) -> None:
    """Although there are a score, and another column with two values."""
    rows = "".join(
        f"{i},{values[i % len(values)]},{'FM'[i % 2]},{'yn'[i % 3 % 2]},{i % 50 + 0.5}\n"
        for i in range(120)
    )
    found = see(tmp_path, f"Applicant ID,Disposition,Gender,Referral,Score\n{rows}")
    form = Form({}, found)
    assert form.question.command == "selection"
    assert form.options() == ["--selected=Disposition", "--group=Gender", "--pos-label=Hired"]
    assert "it says “Hired”" in form.why("selected")


def test_many_groups_are_compared_with_the_rest(tmp_path: Path) -> None:
    rows = "".join(f"{i % 2},{i % 3 % 2},g{i % 30}\n" for i in range(300))
    form = Form({}, see(tmp_path, f"outcome,decision,group\n{rows}"))
    assert form.options() == [
        *("--label=outcome", "--prediction=decision", "--group=group"),
        *("--metric=false_positive_rate", "--metric=false_negative_rate", "--compare=rest"),
    ]


def test_what_must_be_chosen(tmp_path: Path) -> None:
    found = see(tmp_path, "hired,sex\n" + "this,w\nthat,m\n" * 9)
    with pytest.raises(InputError, match=r"Choose which value of “hired” means yes"):
        Form({}, found).options()
    with pytest.raises(InputError, match=r"Choose at least one column of groups"):
        Form({"question": ["selection"], "asked": ["selection"]}, found).options()


def test_parquet_and_codes(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"y": [0, 1] * 50, "decision": [0, 0, 1, 1] * 25, "sex": [1, 2] * 50})
    frame["sex"] = frame["sex"].to_numpy()
    frame["lists"] = [[1]] * 100
    frame.to_parquet(tmp_path / "x.parquet")
    found = look(str(tmp_path / "x.parquet"), tmp_path, {})
    assert [one.name for one in found.columns] == ["y", "decision", "sex"]
    form = Form({"code-2-0": ["women"]}, found)
    assert form.codes == {"sex": [("code-2-0", "1", "women"), ("code-2-1", "2", "")]}
    assert "--rename=sex:1=women" in form.options()
