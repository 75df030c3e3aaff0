"""The tables, the workbook and the page of an audit of selection."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from openpyxl import load_workbook

from fairperm import SelectionAudit, selection_audit
from fairperm.selection.page import specify_rates
from fairperm.selection.tables import make_tables

PEOPLE = {("F", "x"): (90, 60), ("F", "=1+1"): (90, 15), ("M", "x"): (90, 54), ("M", "o"): (2, 1)}


def audit(**options: Any) -> SelectionAudit:
    return selection_audit(
        [hired for hired, _ in _counts()],
        applicants=[n for _, n in _counts()],
        sensitive_features={
            "sex": [sex for sex, _ in PEOPLE],
            "race/origin": [race for _, race in PEOPLE],
        },
        **options,
    )


def _counts() -> list[tuple[int, int]]:
    return [(hired, n) for n, hired in PEOPLE.values()]


def test_tables_have_a_column_for_each_attribute() -> None:
    sex, race, both = make_tables(audit())
    assert sex.heads[:5] == ("sex", "applicants", "selected", "selection rate", "impact ratio")
    assert both.heads[:4] == ("sex", "race/origin", "applicants", "selected")
    assert [row[:4] for row in both.rows] == [
        ("F", "=1+1", 90, 15),
        ("F", "x", 90, 60),
        ("M", "o", 2, 1),
        ("M", "x", 90, 54),
    ]
    assert race.rows[1][3:] == (0.5, None, None, None, "too small", None, None, None)
    assert {len(row) for row in both.rows} == {len(both.heads)}


def test_workbook_has_a_sheet_for_each_table(tmp_path: Path) -> None:
    path = tmp_path / "a.xlsx"
    found = audit(source="the <b>portal</b>", start="2025-01-01", why_excluded="=too few")
    found.to_excel(path)
    book = load_workbook(path)
    assert book.sheetnames == ["About", "sex", "race origin", "sex × race origin"]
    about = dict(book["About"].iter_rows(values_only=True))
    assert about["Answer"] == found.answer
    assert about["Source of the data"] == "the <b>portal</b>"
    assert about["Dates of the data"] == "2025-01-01 to …"
    assert about["Left out of the ratios"] == "'=too few"
    rows = list(book["sex × race origin"].iter_rows(values_only=True))
    assert rows[1][:4] == ("F", "'=1+1", 90, 15)
    assert rows[2][4:6] == pytest.approx((60 / 90, 1))


def test_page_has_every_table_and_one_picture(tmp_path: Path) -> None:
    path = tmp_path / "a.html"
    found = audit(source="the <b>portal</b>")
    page = found.to_html(path, title="Hiring <2025>")
    assert path.read_text() == page
    assert page.count('<div class="scroll"') == 3
    assert page.count("<figure") == 1
    assert "the &lt;b&gt;portal&lt;/b&gt;" in page
    assert "Hiring &lt;2025&gt;" in page
    assert "selection rate is 0.697 times that of M" in page
    assert "<b>portal" not in page
    assert "No number here says that a rule is kept" in page


@pytest.mark.parametrize("width", [340, 900])
def test_picture_has_rates_with_intervals_and_a_line_at_the_bound(width: int) -> None:
    found = audit()
    lines, names, bars, points = specify_rates(found, width=width)["layer"]
    drawn = [row for row in found.rows if row.impact_ratio is not None]
    assert [one["value"] for one in points["data"]["values"]] == [row.rate for row in drawn]
    assert len(names["data"]["values"]) == len(drawn)
    for row, one in zip(drawn, bars["data"]["values"], strict=True):
        assert (one["low"], one["high"]) == row.rate_interval
        assert one["low"] < row.rate < one["high"]
    highest = [max(one.rate for one in found.compared(name)) for name in found.attributes]
    assert [one["at"] for one in lines["data"]["values"]] == pytest.approx(
        [0.8 * rate for rate in highest]
    )
