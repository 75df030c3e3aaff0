"""What an import costs, and that all public names are explained."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from collections.abc import Callable

import pytest

import fairperm
from fairperm._utils.optional import EXTRA_OF

NOT_LOADED = (
    *EXTRA_OF,
    *("click", "jinja2", "pandas", "polars", "rich", "scipy", "sklearn"),
)


def test_import_loads_nothing_heavy() -> None:
    code = "import sys, fairperm; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(run.stdout.split())
    assert "fairperm" in loaded
    assert loaded.isdisjoint(NOT_LOADED)


@pytest.mark.parametrize(
    "call", ["permutation_test(metric='fnr', **data)", "audit(metrics='fnr', **data)"]
)
def test_a_test_of_a_rate_loads_nothing_heavy(call: str) -> None:
    code = (
        "import sys, fairperm; data = {'y_true': [1, 1, 0] * 40, 'y_pred': [1, 0, 0] * 40,"
        " 'sensitive_features': [0] * 60 + [1] * 60, 'rng': 1}; "
        f"fairperm.{call}; print(*sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(run.stdout.split()).isdisjoint(NOT_LOADED)


# Docstrings.

FUNCTIONS = [name for name in fairperm.__all__ if inspect.isfunction(getattr(fairperm, name))]


def section(function: Callable[..., object], title: str) -> str:
    """Return the text of one section of a numpydoc docstring; "" if there is none."""
    text = inspect.getdoc(function) or ""
    found = re.search(rf"^{title}\n-+\n(.*?)(?=^\w[\w ]*\n---|\Z)", text, re.DOTALL | re.MULTILINE)
    return found.group(1) if found else ""


def documented(function: Callable[..., object]) -> set[str]:
    """Return the parameters that have an entry of their own: lines that are not indented."""
    heads = re.findall(r"^(\w[\w, ]*?)(?: :.*)?$", section(function, "Parameters"), re.MULTILINE)
    return {name for head in heads for name in head.split(", ")}


def test_public_names_are_sorted_and_exist() -> None:
    assert fairperm.__all__ == sorted(fairperm.__all__)
    assert all(hasattr(fairperm, name) for name in fairperm.__all__)


@pytest.mark.parametrize("name", fairperm.__all__)
def test_public_name_is_documented(name: str) -> None:
    assert inspect.getdoc(getattr(fairperm, name))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_public_function_has_examples(name: str) -> None:
    assert ">>> " in section(getattr(fairperm, name), "Examples")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_public_function_documents_just_its_parameters(name: str) -> None:
    function = getattr(fairperm, name)
    assert documented(function) == set(inspect.signature(function).parameters)


def test_public_results_describe_just_their_fields() -> None:
    result = fairperm.PermutationTestResult
    described = {
        name
        for cls in result.__mro__[:2]
        for name in re.findall(r"^(\w[\w, ]*?) : ", section(cls, "Attributes"), re.MULTILINE)
    }
    names = {name for head in described for name in head.split(", ")}
    assert names <= {*result.__dataclass_fields__}
