"""The page on a mitigation shows what its script prints."""

from __future__ import annotations

from pathlib import Path

import pytest
from scripts import mitigation

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "mitigation.md"


@pytest.mark.validate
@pytest.mark.usefixtures("real_data")
def test_the_page_shows_what_the_script_prints(capsys: pytest.CaptureFixture[str]) -> None:
    mitigation.main()
    printed = capsys.readouterr().out
    assert printed.count("\n") > 20
    page = PAGE.read_text()
    for paragraph in printed.split("\n\n"):
        assert paragraph.strip("\n") in page
