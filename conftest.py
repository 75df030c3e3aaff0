"""What every test and every example shares."""

from __future__ import annotations

import gc
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from fairperm._utils.progress import keep_silent
from fairperm.metrics import registry
from studies.data import FOLDER

if TYPE_CHECKING:
    from collections.abc import Iterator

    from _pytest.terminal import TerminalReporter


pytest_plugins = ["tests.support.spark_session"]
# MLflow and the packages of model cards are in an environment of tests/integrations/test_mlflow.py
collect_ignore = ["src/fairperm/integrations/mlflow.py", "tests/support/use_cards.py"]
# the same examples every time: whether a change is sound must not depend on the day
settings.register_profile("test", max_examples=25, derandomize=True, deadline=None, database=None)
settings.register_profile("validate", settings.get_profile("test"), max_examples=100)
settings.load_profile("test")
DATA = Path(os.environ.get("FAIRPERM_DATA") or FOLDER)  # before tests set it
keep_silent()  # whether a test is the first to need a kernel must not change what it prints


@pytest.fixture(autouse=True)
def _own_registry() -> Iterator[None]:
    """Forget the metrics that a test registers: others read the whole registry."""
    names, aliases = dict(registry._BY_NAME), dict(registry._BY_ALIAS)
    yield
    for known, before in ((registry._BY_NAME, names), (registry._BY_ALIAS, aliases)):
        known.clear()
        known.update(before)


@pytest.fixture
def real_data(monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let ``fetch_compas`` and the like find the original files. Without them, a test fails."""
    if not DATA.is_dir():
        pytest.fail(f"{DATA} does not exist: `make .venv/data` puts the original files there")
    monkeypatch.setenv("FAIRPERM_DATA", str(DATA))
    return DATA


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave everything that starts Spark to ``make validate``."""
    for item in items:
        if {"spark", "java"} & {*getattr(item, "fixturenames", ())}:
            item.add_marker("validate")


def pytest_collection_finish() -> None:
    """Let no collection of garbage walk through all modules and tests: they stay to the end.

    Each that statsmodels asks for, at every call of Holm's method, would take a third of a second.
    """
    gc.freeze()


def pytest_sessionfinish() -> None:
    """Let them be freed again: DuckDB says so if what is its own outlives it."""
    gc.unfreeze()


def pytest_terminal_summary(terminalreporter: TerminalReporter) -> None:
    """Say loudly if reports were not looked at in a browser."""
    skipped = [
        report
        for report in terminalreporter.stats.get("skipped", [])
        if "report/test_browser.py" in report.nodeid
    ]
    if skipped:
        text = f"{len(skipped)} BROWSER TESTS WERE SKIPPED"
        terminalreporter.section(text, sep="!", yellow=True, bold=True)
        why = skipped[0].longrepr[2] if isinstance(skipped[0].longrepr, tuple) else ""
        terminalreporter.write_line(f"{why}. No report was opened in a browser.", yellow=True)
