"""Every promise of SECURITY.md has a test, which exists."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_promises_have_tests() -> None:
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    promises = re.findall(r"^- .+(?:\n  .+)*", text, re.MULTILINE)
    assert len(promises) >= 7
    named = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
    assert all(map(named.search, promises))
    for path, name in named.findall(text):
        assert f"def {name}(" in (ROOT / path).read_text(encoding="utf-8"), name
