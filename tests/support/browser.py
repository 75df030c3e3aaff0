"""The browser that tests open pages in."""

from __future__ import annotations

import os
import shutil

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def find_browser() -> str | None:
    """Return the path of Debian's chromium, or of the one that FAIRPERM_BROWSER names."""
    given = os.environ.get("FAIRPERM_BROWSER")
    return next(filter(None, map(shutil.which, [given] if given else NAMES)), None)
