"""Which module may know of which, what an import costs, and that all public names are explained."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import fairperm

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SOURCE = Path(fairperm.__file__).parent

# What each module may import of fairperm, for types too, and does: a row says no more than there
# is. Rows point only to rows above them, so there are no circles.
ALLOWED: dict[str, set[str]] = {
    "errors": set(),
    "_progress": set(),
    "_broadcast": set(),
    "_inference": set(),
    "_kernel": set(),
    "_order": set(),
    "_options": {"errors"},
    "_files": {"errors"},
    "datasets": {"errors", "_files", "_options"},
    # the sample: counts, and nothing of where they came from
    "_columns": {"errors"},
    "_labels": {"errors", "_columns"},
    "_source": {"errors", "_columns"},
    "_frames": {"errors", "_columns", "_options", "_source"},
    "_sample": {"errors", "_order"},
    # draws of such counts, and what each random stream is for
    "_draws": {"_options", "_progress", "_broadcast", "_sample"},
    # metrics: nothing of resampling
    "_rank": {"_order"},
    "_metric": {"_rank"},
    "_estimates": {"_metric"},
    "_class_metrics": {"_metric", "_order"},
    "_number_metrics": {"_metric", "_rank"},
    "_inequality": {"errors", "_options", "_metric"},
    "_callable": {"errors", "_order"},
    "metrics": {
        *("errors", "_options", "_metric", "_rank", "_class_metrics", "_number_metrics"),
        *("_inequality", "_callable", "_sample"),
    },
    # intake: columns, missing values, labels, groups; nothing of statistics
    "_inputs": {"errors", "_options"},
    "_given": {"errors", "_inputs", "metrics"},
    "_remote": {"errors", "_columns"},
    "_expressions": set(),
    "_lazy": {"errors", "_source", "_inputs", "metrics", "_given", "_remote"},
    "_lazy_clusters": {"_source", "_inputs", "_remote", "_lazy"},
    "_lazy_sample": {
        *("errors", "_order", "_draws", "_source", "_inputs", "metrics", "_remote", "_lazy"),
    },
    "_lazy_sums": {
        *("errors", "_metric", "_source", "_inputs", "metrics", "_remote", "_lazy", "_expressions"),
    },
    "_counting": {
        *("errors", "_options", "_rank", "metrics", "_inputs", "_remote", "_lazy"),
        *("_lazy_clusters", "_lazy_sample", "_lazy_sums"),
    },
    "_intake": {
        *("errors", "_options", "_columns", "_labels", "_sample", "_source", "metrics"),
        *("_inputs", "_given", "_counting"),
    },
    "_lazy_cuts": {
        *("errors", "_sample", "_source", "_inputs", "metrics", "_intake", "_lazy", "_remote"),
    },
    # resampling: nothing of metrics
    "_sharing": {"_draws", "_estimates"},
    "_exact_sums": set(),
    "_enumeration": {"_sample"},
    "_shuffles": {"_kernel"},
    "_subsets": {"_kernel"},
    "_radix": {"_kernel"},
    "_totals": {"_kernel"},
    "_auc": {"_kernel", "_order", "_radix"},
    "_weighted_auc": {"_kernel"},
    "_assignments": {"_kernel"},
    # engines: estimates of a sample, of permutations and of resamples; nothing of p-values
    "_cells": {"_sample", "_draws", "_enumeration", "_estimates", "_metric", "_rank"},
    "_trials": {"_sample", "_order", "_draws", "_estimates", "_callable"},
    "_units": {"_kernel", "_order", "_subsets", "_estimates", "_sharing"},
    "_moments": {"_estimates", "_metric"},
    "_unit_totals": {
        *("_kernel", "_order", "_radix", "_subsets", "_totals", "_sample", "_estimates"),
        *("_metric", "_moments", "_units"),
    },
    "_unit_ranks": {"_draws", "_auc", "_sample", "_estimates", "_rank", "_units"},
    "_weighted_ranks": {"_order", "_subsets", "_weighted_auc", "_sample", "_estimates", "_units"},
    "_engines": {
        *("_sample", "_estimates", "_metric", "_rank", "_callable", "_cells", "_trials"),
        *("_unit_totals", "_unit_ranks", "_weighted_ranks", "_sharing"),
    },
    # charts: from plain numbers and names; nothing of results, which draw themselves with them
    "_chart_parts": {"_options"},
    "_forest_rows": {"_chart_parts"},
    "_forest_chart": {"_chart_parts", "_forest_rows"},
    "_null_chart": {"errors", "_inference", "_options", "_chart_parts"},
    "_sweep_rows": {"_chart_parts"},
    "_sweep_chart": {"_chart_parts", "_sweep_rows"},
    "plots": {
        *("errors", "_options", "_chart_parts", "_forest_chart", "_null_chart", "_sweep_chart"),
    },
    # results: no computing
    "results": {"errors", "plots"},
    # tests: the only place where all of it meets
    "_plan": {
        *("errors", "_options", "_order", "_sample", "_rank", "_callable", "_intake", "metrics"),
        "_inputs",
    },
    "_comparison": {
        "_exact_sums",
        *("errors", "_options", "_sample", "_draws", "_metric", "_rank", "metrics"),
        *("_estimates", "_engines", "_plan"),
    },
    "_small_groups": {"errors", "_metric", "_rank", "_plan", "_comparison"},
    "bootstrap": {
        *("errors", "_options", "_sample", "_inputs", "_comparison", "_plan", "_draws", "_metric"),
        *("_rank", "_callable", "_estimates", "_engines", "_inference", "_small_groups", "results"),
    },
    "_many_groups": {
        *("errors", "_assignments", "_auc", "_order", "_radix", "_draws", "_sample", "_estimates"),
        *("_metric", "_rank", "_callable", "_cells", "_moments", "_trials", "_comparison"),
        "_sharing",
    },
    "_omnibus_result": {"errors", "results"},
    "_omnibus_test": {
        *("_omnibus_result", "_small_groups", "_sharing"),
        *("errors", "_progress", "_sample", "_comparison", "_plan", "_draws", "_rank"),
        *("_callable", "_estimates", "_engines", "_many_groups", "_inference"),
    },
    "omnibus": {
        *("errors", "_options", "_plan", "_draws", "_inputs", "_omnibus_result", "_omnibus_test"),
    },
    "_gap_test": {
        *("_progress", "_sample", "_comparison", "_plan", "_draws", "_callable", "_estimates"),
        *("_metric", "_engines", "_inference", "_small_groups", "_sharing", "results"),
    },
    "permutation": {
        *("errors", "_options", "_inputs", "_plan", "_draws", "_gap_test", "metrics", "results"),
    },
    "correlation": {
        *("errors", "_options", "_source", "_draws", "_shuffles", "_inference", "results"),
    },
    "_power": {"_inference"},
    "planning": {"errors", "_options", "_plan", "_power", "_rank", "metrics", "results"},
    "_populations": {"_order", "_sample"},
    "_simulated_tests": {
        *("errors", "_options", "_sample", "_plan", "_draws", "_gap_test"),
        *("results", "permutation", "_inputs", "_populations"),
    },
    "simulation": {
        *("errors", "_options", "_draws", "_inference", "results"),
        *("_populations", "_simulated_tests"),
    },
    "_measures": {"_metric", "_order", "_rank", "_sample", "_populations"},
    "_null_population": {"_order", "_sample", "_populations", "_measures"},
    "calibration": {
        *("errors", "_options", "_sample", "_draws", "_callable", "_inference", "results"),
        *("_populations", "_null_population", "_simulated_tests"),
    },
    "_bands": {"_inference"},
    "_cuts": {"_sample", "_draws", "_cells", "_estimates", "_metric", "_plan"},
    "_sweep_result": {"errors", "_frames", "_options", "plots", "results"},
    "sweep": {
        *("errors", "_options", "_frames", "_source", "_sample", "_metric", "metrics", "_plan"),
        *("_draws", "_comparison", "_cuts", "_bands", "_sweep_result", "_lazy_cuts"),
        "_inputs",
    },
    # margins: functions of a result, and the tests made of them
    "_restricted": {"metrics"},
    "_margin_options": {"errors", "_options"},
    "_margins": {"errors", "_inference", "_restricted", "metrics", "results"},
    "equivalence": {
        *("errors", "_options", "_margin_options", "_margins", "permutation", "results"),
    },
    # audits: all tests, of all metrics and groups
    "_multiplicity": {"_inference"},
    "_max_t": {
        *("_sample", "_comparison", "_plan", "_draws", "_metric", "_rank", "_estimates"),
        *("_many_groups", "_multiplicity"),
    },
    "_questions": {
        *("errors", "_sample", "_source", "_intake", "_metric", "_callable", "metrics"),
        *("_inputs", "_remote"),
    },
    "_audit_data": {"_omnibus_result", "results"},
    "_audit_table": {"results", "_audit_data"},
    # the report: results in, pages out; no statistics
    "report": {
        *("errors", "_files", "datasets", "metrics", "plots", "results", "_sweep_result"),
        "_audit_data",
    },
    "audit_result": {
        *("errors", "_frames", "_options", "plots", "results", "_audit_data", "_audit_table"),
        *("_sweep_result", "metrics", "report"),
    },
    "_audit": {
        *("errors", "_progress", "_sample", "_plan", "_draws", "_callable", "metrics"),
        *("_gap_test", "_margins", "_questions", "_omnibus_test", "results", "_audit_data"),
    },
    "_verdicts": {
        *("errors", "_rank", "_callable", "_margins", "_max_t", "_multiplicity"),
        *("_questions", "planning", "results", "_audit_data", "_audit"),
    },
    "auditing": {
        *("errors", "_options", "_sample", "_inputs", "_frames", "_draws", "_questions"),
        *("_audit", "_verdicts", "_audit_data", "audit_result"),
    },
    # populations of known truth, and the paper's studies of them
    "simulate": {"errors", "_options", "_metric", "metrics"},
    "studies": {
        *("errors", "_files", "_inference", "_kernel", "_options", "_progress", "_shuffles"),
        *("datasets", "_draws", "_sample", "metrics", "plots", "results", "_plan", "_gap_test"),
        *("bootstrap", "correlation", "permutation", "planning", "simulate", "sweep"),
        *("_comparison", "_engines", "_estimates", "_small_groups", "report"),
    },
    # the command line: arguments in, files and tables out; no statistics
    "testing": {"errors", "audit_result", "auditing"},
    "cli": {
        *("errors", "_options", "_progress", "_files", "_source", "_inputs", "_audit_data"),
        *("_audit_table", "audit_result", "_metric", "metrics", "report", "results", "sweep"),
        "studies",
    },
    "spark_job": {"errors", "_files", "_remote", "auditing", "audit_result"},
    "__init__": {
        *("audit_result", "auditing", "bootstrap", "correlation", "datasets", "equivalence"),
        "calibration",
        *("errors", "metrics", "omnibus", "permutation", "planning", "plots", "results"),
        *("simulation", "sweep", "_omnibus_result"),
    },
}
NOT_LOADED = (
    *("altair", "duckdb", "jinja2", "numba", "pandas", "polars", "pyarrow", "pyspark", "rich"),
    *("scipy", "sklearn"),
)


def modules() -> dict[str, Path]:
    """Return every module of the package by its name; a folder is one module."""
    files = {path.stem: path for path in SOURCE.glob("*.py")}
    folders = {path.parent.name: path for path in SOURCE.glob("*/__init__.py")}
    return files | folders


def files_of(module: str) -> list[Path]:
    """Return the files of a module: one, or all of a folder."""
    path = modules()[module]
    is_folder = path.name == "__init__.py" and path.parent != SOURCE
    return sorted(path.parent.rglob("*.py")) if is_folder else [path]


def imported(path: Path) -> Iterator[str]:
    """Yield the modules of fairperm that a file, or a folder's files, import, anywhere in it."""
    if path.name == "__init__.py" and path.parent != SOURCE:
        mine = path.parent.name
        for part in sorted(path.parent.rglob("*.py")):
            yield from (name for name in _imported(part) if name != mine)
    else:
        yield from _imported(path)


def _imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        yield from (name.split(".")[1] for name in names if name.startswith("fairperm."))


def test_every_module_has_its_place() -> None:
    assert set(modules()) == set(ALLOWED)


@pytest.mark.parametrize("module", ALLOWED)
def test_module_imports_just_what_it_may_know_of(module: str) -> None:
    known = {name for path in files_of(module) for name in imported(path)}
    assert known - {module} == ALLOWED[module]


def test_allowed_imports_make_no_circles() -> None:
    above: set[str] = set()
    for module, may_import in ALLOWED.items():
        assert may_import <= above, module
        above.add(module)


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
    for result in (fairperm.PermutationTestResult, fairperm.BootstrapTestResult):
        described = {
            name
            for cls in result.__mro__[:2]
            for name in re.findall(r"^(\w[\w, ]*?) : ", section(cls, "Attributes"), re.MULTILINE)
        }
        names = {name for head in described for name in head.split(", ")}
        assert names <= {*result.__dataclass_fields__}
