"""Small data sets in the files of their original sources."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from pathlib import Path

import numpy as np

COMPAS_HEADER = (
    *("id", "name", "first", "last", "compas_screening_date", "sex", "dob", "age", "age_cat"),
    *("race", "juv_fel_count", "decile_score", "juv_misd_count", "juv_other_count"),
    *("priors_count", "days_b_screening_arrest", "c_charge_degree", "c_charge_desc", "is_recid"),
    *("decile_score", "score_text", "priors_count", "two_year_recid"),
)
ADULT_TRAIN = """\
39, State-gov, 77516, Bachelors, 13, Never-married, Adm-clerical, Not-in-family, White, Male, \
2174, 0, 40, United-States, <=50K
52, ?, 209642, HS-grad, 9, Married-civ-spouse, ?, Husband, Black, Male, 0, 0, 45, ?, >50K

"""
ADULT_TEST = """\
|1x3 Cross validator
25, Private, 226802, 11th, 7, Never-married, Machine-op-inspct, Own-child, Black, Female, \
0, 0, 40, United-States, <=50K.
44, Private, 160323, Some-college, 10, Divorced, Sales, Unmarried, White, Female, \
7688, 0, 40, Cuba, >50K.

"""
GERMAN = """\
A11 6 A34 A43 1169 A65 A75 4 A93 A101 4 A121 67 A143 A152 2 A173 1 A192 A201 1
A12 48 A32 A43 5951 A61 A73 2 A92 A101 2 A121 22 A143 A152 1 A173 1 A191 A201 2
A14 12 A34 A46 2096 A61 A74 2 A95 A101 3 A121 49 A143 A152 1 A172 2 A191 A202 1
"""


def compas_record(**values: object) -> dict[str, str]:
    """Return a row of ProPublica's file that its filter keeps, with these values in it."""
    usual: dict[str, object] = dict(  # noqa: C408 - shorter than a literal
        id=1,
        name="x y",
        sex="Male",
        age=34,
        age_cat="25 - 45",
        race="Caucasian",
        juv_fel_count=0,
        decile_score=3,
        juv_misd_count=0,
        juv_other_count=0,
        priors_count=2,
        days_b_screening_arrest=-1,
        c_charge_degree="F",
        c_charge_desc="Battery",
        is_recid=1,
        score_text="Low",
        two_year_recid=1,
    )
    return {name: str(value) for name, value in (usual | values).items()}


def compas_file(records: Iterable[dict[str, str]]) -> str:
    """Return a file as ProPublica's: two columns are there twice, and lines end as on Windows."""
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(COMPAS_HEADER)
    writer.writerows([record.get(name, "") for name in COMPAS_HEADER] for record in records)
    return text.getvalue()


def write_originals(folder: Path) -> Path:
    """Write a few rows of each data set, in the sources' own formats."""
    folder.mkdir(parents=True, exist_ok=True)
    records = [
        compas_record(id=1, sex="Female", two_year_recid=0, is_recid=0),
        compas_record(id=2, days_b_screening_arrest=""),
        compas_record(id=3, days_b_screening_arrest=31),
        compas_record(id=4, days_b_screening_arrest=-30, c_charge_desc=""),
        compas_record(id=5, is_recid=-1),
        compas_record(id=6, c_charge_degree="O"),
        compas_record(id=7, score_text="N/A"),
        compas_record(id=8, age=22, age_cat="Less than 25", c_charge_desc="Theft, other"),
    ]
    (folder / "compas-scores-two-years.csv").write_bytes(compas_file(records).encode())
    (folder / "adult.data").write_text(ADULT_TRAIN)
    (folder / "adult.test").write_text(ADULT_TEST)
    (folder / "german.data").write_text(GERMAN)
    return folder


def write_learnable(folder: Path, n: int, seed: int = 0) -> Path:
    """Write COMPAS and Adult files of n made-up rows, of which a model can learn something."""
    rng = np.random.default_rng(seed)
    folder.mkdir(parents=True, exist_ok=True)
    sexes = rng.choice(["Female", "Male"], n, p=[0.3, 0.7])
    worth = rng.normal(size=n) + 0.6 * (sexes == "Male")
    label = (rng.random(n) < 1 / (1 + np.exp(-1.5 * worth))).astype(int)
    level = np.clip(np.round(2 * worth + 4), 0, 12).astype(int)
    records = [
        compas_record(id=i, sex=sex, priors_count=prior, two_year_recid=one, age=20 + i % 50)
        for i, (sex, prior, one) in enumerate(zip(sexes, level, label, strict=True))
    ]
    (folder / "compas-scores-two-years.csv").write_bytes(compas_file(records).encode())
    lines = [
        f"{20 + i % 50}, {'?' if i % 9 == 0 else 'Private'}, 1, HS-grad, {years}, Divorced, "
        f"Sales, Husband, White, {sex}, 0, 0, {30 + i % 20}, Cuba, {('<=50K', '>50K')[one]}"
        for i, (sex, years, one) in enumerate(zip(sexes, level, label, strict=True))
    ]
    half = n // 2
    (folder / "adult.data").write_text("".join(f"{line}\n" for line in lines[:half]))
    test = "".join(f"{line}.\n" for line in lines[half:])
    (folder / "adult.test").write_text(f"|1x3 Cross validator\n{test}")
    return folder
