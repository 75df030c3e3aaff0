"""Every notebook runs from top to bottom, and is kept without outputs."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

import fairperm
from fairperm._utils import progress

FOLDER = Path(__file__).parents[2] / "docs" / "notebooks"
NOTEBOOKS = sorted(path.name for path in FOLDER.glob("*.ipynb"))
# tests/data/lazy/test_spark.py runs this one, with the session that its tests share
ON_SPARK = "spark.ipynb"


def read(name: str) -> Any:
    return nbformat.read(FOLDER / name, as_version=4)  # type: ignore[no-untyped-call]


@pytest.mark.validate
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of Jupyter's own event loops
@pytest.mark.parametrize("name", sorted({*NOTEBOOKS} - {ON_SPARK}))
def test_a_notebook_runs(name: str, tmp_path: Path) -> None:
    notebook = read(name)
    NotebookClient(
        notebook,
        timeout=120,
        kernel_name="python3",
        resources={"metadata": {"path": str(tmp_path)}},
    ).execute()
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(cell.execution_count for cell in code)
    said = [out for cell in code for out in cell.outputs if out.get("name") == "stderr"]
    assert not said, said


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_is_kept_clean(name: str) -> None:
    for cell in read(name).cells:
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None


def test_an_audit_prints_whole_in_a_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    audit = fairperm.audit(
        [1, 0] * 100, [1, 0, 0, 1] * 50, sensitive_features=list("aabb") * 50, metrics="accuracy"
    )
    expected = repr(audit)
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    assert repr(audit) == expected
    assert "a − b" in expected


def test_a_notebook_without_widgets_has_no_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ipykernel", ModuleType("ipykernel"))
    monkeypatch.setattr("fairperm._utils.progress.find_spec", lambda _: None)
    assert not progress._is_wanted(None)
    assert progress._is_wanted(True)
    monkeypatch.setattr("fairperm._utils.progress.find_spec", lambda _: object())
    assert progress._is_wanted(None)
