"""The page on a mitigation shows what its script prints."""

from __future__ import annotations

from pathlib import Path

import pytest
from scripts import mitigation

from tests.support.original_files import real_data

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "mitigation.md"
REAL = real_data()  # before tests set FAIRPERM_DATA


@pytest.mark.validate
@pytest.mark.skipif(REAL is None, reason="Adult is not on this machine")
def test_the_page_shows_what_the_script_prints(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FAIRPERM_DATA", str(REAL))
    mitigation.main()
    printed = capsys.readouterr().out
    assert printed.count("\n") > 20
    page = PAGE.read_text()
    for paragraph in printed.split("\n\n"):
        assert paragraph.strip("\n") in page
