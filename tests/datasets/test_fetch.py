"""Columns read from the files of the original sources, found in a folder."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import pytest
from numpy.typing import NDArray

from fairperm.datasets import fetch, fetch_adult, fetch_compas, fetch_german, load_compas
from fairperm.errors import InputError
from tests.support.original_files import compas_file, compas_record, write_originals

Columns = dict[str, NDArray[Any]]

FETCHES = (fetch_compas, fetch_adult, fetch_german)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with small files in the sources' formats, and no other place to look."""
    monkeypatch.setenv("FAIRPERM_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return write_originals(tmp_path / "data")


def test_compas_is_filtered_as_by_propublica_and_has_no_names(folder: Path) -> None:
    compas = fetch_compas()
    assert {name: column.tolist() for name, column in compas.items()} == {
        "sex": ["Female", "Male", "Male"],
        "age": [34, 34, 22],
        "age_cat": ["25 - 45", "25 - 45", "Less than 25"],
        "race": ["Caucasian"] * 3,
        "juv_fel_count": [0, 0, 0],
        "juv_misd_count": [0, 0, 0],
        "juv_other_count": [0, 0, 0],
        "priors_count": [2, 2, 2],
        "c_charge_degree": ["F"] * 3,
        "c_charge_desc": ["Battery", None, "Theft, other"],
        "decile_score": [3, 3, 3],
        "score_text": ["Low"] * 3,
        "two_year_recid": [0, 1, 1],
    }


def test_adult_has_both_halves_with_labels_as_numbers_and_none_for_question_marks(
    folder: Path,
) -> None:
    adult = fetch_adult()
    assert adult["income"].tolist() == [0, 1, 0, 1]
    assert adult["split"].tolist() == ["train", "train", "test", "test"]
    assert adult["workclass"].tolist() == ["State-gov", None, "Private", "Private"]
    assert adult["occupation"].tolist()[1] is None
    assert adult["native-country"].tolist() == ["United-States", None, "United-States", "Cuba"]
    assert adult["sex"].tolist() == ["Male", "Male", "Female", "Female"]
    assert adult["capital-gain"].tolist() == [2174, 0, 0, 7688]
    assert list(adult) == [*fetch._ADULT_COLUMNS, "split"]


def test_german_has_labels_as_numbers_and_sexes(folder: Path) -> None:
    german = fetch_german()
    assert german["bad_risk"].tolist() == [0, 1, 0]
    assert german["sex"].tolist() == ["male", "female", "female"]
    assert german["age"].tolist() == [67, 22, 49]
    assert german["foreign_worker"].tolist() == ["A201", "A201", "A202"]
    assert "class" not in german


@pytest.mark.parametrize("fetch", FETCHES)
def test_numbers_are_integers_and_all_else_is_text(
    folder: Path, fetch: Callable[..., Columns]
) -> None:
    for column in fetch().values():
        kinds = {type(one) for one in column.tolist()}
        assert kinds == {int} if column.dtype == np.int64 else kinds <= {str, type(None)}


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
@pytest.mark.parametrize("fetch", FETCHES)
def test_every_backend_gives_the_same_content(
    folder: Path, backend: Any, fetch: Callable[..., Any]
) -> None:
    native = fetch(backend=backend)
    assert type(native).__module__.split(".")[0] == backend
    frame = nw.from_native(native, eager_only=True)
    for name, column in fetch().items():
        known = np.array([one is not None for one in column])
        assert frame[name].is_null().to_list() == (~known).tolist()
        assert frame[name].drop_nulls().to_list() == column[known].tolist()
        assert frame.schema[name] == (nw.Int64() if column.dtype == np.int64 else nw.String())


@pytest.mark.parametrize("fetch", FETCHES)
def test_wrong_backend_is_refused_before_anything_is_read(
    monkeypatch: pytest.MonkeyPatch, fetch: Callable[..., Any]
) -> None:
    monkeypatch.setenv("FAIRPERM_DATA", "/nowhere")
    with pytest.raises(InputError, match=r"backend must be one of .*; got 'panda'"):
        fetch(backend="panda")


def test_folder_that_is_none_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FAIRPERM_DATA", str(tmp_path / "gone"))
    with pytest.raises(
        InputError, match=r"FAIRPERM_DATA must be the path of a folder; got '.*gone"
    ):
        fetch_german()


def test_home_is_understood_in_the_folder(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setenv("HOME", str(folder.parent))
    monkeypatch.setenv("USERPROFILE", str(folder.parent))
    monkeypatch.setenv("FAIRPERM_DATA", str(Path("~") / folder.name))
    assert len(fetch_german()["age"]) == 3


@pytest.mark.parametrize(
    ("file", "content", "fetch", "message"),
    [
        (
            *("german.data", "A11 6 A34\n", fetch_german),
            r"german\.data must have 21 values in every line; line 1 has 3\.",
        ),
        ("german.data", "\n\n", fetch_german, r"german\.data must have rows; it has none\."),
        (
            *("german.data", b"\xff\xfe", fetch_german),
            r"german\.data must be a CSV file in UTF-8: .* byte 0xff in position 0: .*\.",
        ),
        (
            *("adult.data", "39, a, b\n", fetch_adult),
            r"adult\.data must have 15 values in every line; line 1 has 3\.",
        ),
        (
            *("adult.test", "x, " * 14 + "<=50K\n", fetch_adult),
            r"age in adult\.test must be integers; got 'x'\.",
        ),
        (
            *("adult.test", "1, " * 14 + "50K\n", fetch_adult),
            r"income in adult\.test must be one of '<=50K', .*; got '50K'\.",
        ),
        (
            *("compas-scores-two-years.csv", "", fetch_compas),
            r"compas-scores-two-years\.csv must have a header with 'sex', .* more\.",
        ),
        (
            *("compas-scores-two-years.csv", compas_file([]) + "1,2\r\n", fetch_compas),
            r"compas-scores-two-years\.csv must have 23 values in every line; line 2 has 2\.",
        ),
        (
            "compas-scores-two-years.csv",
            compas_file([compas_record(days_b_screening_arrest="soon")]),
            fetch_compas,
            r"days_b_screening_arrest in compas-.*\.csv must be integers; got 'soon'\.",
        ),
        (
            "compas-scores-two-years.csv",
            compas_file([compas_record(two_year_recid=2)]),
            fetch_compas,
            r"two_year_recid in compas-.*\.csv must be one of '0', '1'; got '2'\.",
        ),
        (
            "compas-scores-two-years.csv",
            compas_file([compas_record(age=10**30)]),
            fetch_compas,
            r"age in compas-.*\.csv must be integers; got '10+'\.",
        ),
        (
            "compas-scores-two-years.csv",
            compas_file([compas_record()]).replace("x y", "x" * 200_000),
            fetch_compas,
            r"compas-.*\.csv must be a CSV file in UTF-8: field larger than field limit .*\.",
        ),
    ],
)
def test_file_that_is_something_else_is_refused(
    folder: Path, file: str, content: str | bytes, fetch: Callable[..., Any], message: str
) -> None:
    data = content.encode() if isinstance(content, str) else content
    (folder / file).write_bytes(data)
    with pytest.raises(InputError, match=message):
        fetch()


# The real data.


def test_real_compas_agrees_with_the_shipped_one(real_data: Path) -> None:
    compas, shipped = fetch_compas(), load_compas()
    names = ("decile_score", "two_year_recid", "sex", "race", "age_cat")
    found = Counter(zip(*(compas[name].tolist() for name in names), strict=True))
    known = Counter(zip(*(column.tolist() for column in shipped.values()), strict=True))
    assert found == known
    assert found.total() == 6172
    assert sum(one is None for one in compas["c_charge_desc"]) == 5


def test_real_adult_is_the_published_one(real_data: Path) -> None:
    adult = fetch_adult()
    assert Counter(adult["split"]) == {"train": 32561, "test": 16281}
    assert int(adult["income"].sum()) == 11687
    assert Counter(adult["sex"]) == {"Male": 32650, "Female": 16192}
    missing = {name: sum(one is None for one in column) for name, column in adult.items()}
    assert {name: n for name, n in missing.items() if n} == {
        "workclass": 2799,
        "occupation": 2809,
        "native-country": 857,
    }


def test_real_german_is_the_published_one(real_data: Path) -> None:
    german = fetch_german()
    assert Counter(german["bad_risk"].tolist()) == {0: 700, 1: 300}
    assert Counter(german["personal_status_sex"]) == {"A93": 548, "A92": 310, "A94": 92, "A91": 50}
    assert Counter(german["sex"]) == {"male": 690, "female": 310}


def test_checksums_are_of_these_data_as_uci_writes_them(real_data: Path) -> None:
    adult, german = fetch_adult(), fetch_german()
    german["class"] = german["bad_risk"] + 1
    rows = zip(*(german[name] for name in fetch._GERMAN_COLUMNS), strict=True)
    text = "".join(" ".join(map(str, row)) + "\n" for row in rows)
    assert md5(text) == fetch._GERMAN.md5
    adult["income"] = np.array(["<=50K", ">50K"])[adult["income"]]
    for original, split, before, end in zip(
        fetch._ADULT, ("train", "test"), ("", "|1x3 Cross validator\n"), ("", "."), strict=True
    ):
        here = adult["split"] == split
        rows = zip(*(adult[name][here] for name in fetch._ADULT_COLUMNS), strict=True)
        lines = (", ".join("?" if one is None else str(one) for one in row) for row in rows)
        text = before + "".join(f"{line}{end}\n" for line in lines) + "\n"
        assert md5(text) == original.md5


def md5(text: str) -> str:
    return hashlib.md5(text.encode("ascii"), usedforsecurity=False).hexdigest()
