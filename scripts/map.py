"""Describe the house: modules per folder, imports, layers, and how far six calls travel.

Run from the root of the repository:

    python -m scripts.map             # the numbers
    python -m scripts.map --mermaid   # the layers as a Mermaid flowchart

Conventions
-----------
*Modules and lines.* Every ``.py`` file of ``src/fairperm``; all its lines.

*Import edges.* Distinct pairs of modules (importer, imported), found in the syntax tree, including
imports inside functions and under ``TYPE_CHECKING``. ``from package import name`` leads to the
module ``package.name`` if there is one, and to ``package`` otherwise.

*Against the layers.* An edge that leads from a lower to a higher layer, or between packages of one
layer that are separated by ``|``, in a contract of type "layers" in ``[tool.importlinter]``. All
are counted, also those that the contract lists as exceptions. Only direct imports are judged;
import-linter itself also follows chains.

*Files and changes of a call.* The call is run once, so that imports and caches are warm, and then
traced in all threads. Every named function of ``src/fairperm`` counts once, when it is first
called, as for a reader who reads it once and then knows it; comprehensions, generator expressions,
lambdas and kernels compiled by Numba do not count. The files are those of these functions, in the
order of their first calls, and a change is a function whose file differs from that of the one
before. Of the conventions tried, this one is nearest to the review of the old tree (a rate: 27
files and 95 changes, an audit with a report: 82 and 290); it gives 27 and 93, and 79 and 288.
(All calls in order, repeated ones too, give 220 changes for the rate and thousands for the audit.)

*Classes of a call.* Those of ``src/fairperm`` of which the call runs a method or makes an instance.

*Tests of classes.* Calls of ``isinstance`` whose second argument names a class of ours.

*Code alone.* Lines that are not blank, no comment, and not in a docstring.
"""

from __future__ import annotations

import argparse
import ast
import csv
import fnmatch
import importlib
import io
import os
import sys
import tempfile
import threading
import tomllib
import warnings
from collections import Counter
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from types import CodeType, FrameType

PACKAGE = "fairperm"
_TYPE_GUARDS = ("TYPE_CHECKING", "typing.TYPE_CHECKING")
Edge = tuple[str, str]  # importer, imported


@dataclass(frozen=True)
class Layers:
    """One contract of type "layers", from the highest to the lowest.

    ``ranks`` maps the full name of each package to its layer, counted from the top. Packages of
    the layers in ``independent`` must not import each other.
    """

    ranks: Mapping[str, int]
    independent: frozenset[int]
    ignored: tuple[Edge, ...]

    def package_of(self, module: str) -> str | None:
        """Return the package of the contract that a module belongs to, if any."""
        inside = (one for one in self.ranks if module == one or module.startswith(f"{one}."))
        return max(inside, key=len, default=None)

    def is_broken_by(self, edge: Edge) -> bool:
        """Return whether an import leads up, or sideways between independent packages."""
        importer, imported = map(self.package_of, edge)
        if importer is None or imported is None or importer == imported:
            return False
        above, below = self.ranks[importer], self.ranks[imported]
        return above > below or (above == below and above in self.independent)

    def ignores(self, edge: Edge) -> bool:
        """Return whether the contract lists an import among its exceptions."""
        return any(
            fnmatch.fnmatchcase(edge[0], importer) and fnmatch.fnmatchcase(edge[1], imported)
            for importer, imported in self.ignored
        )


def find_modules(root: Path) -> dict[str, Path]:
    """Return the path of every module of the package, by its full name."""
    source = root / "src"
    return {
        ".".join(path.relative_to(source).with_suffix("").parts).removesuffix(".__init__"): path
        for path in sorted((source / PACKAGE).rglob("*.py"))
    }


def find_edges(modules: Mapping[str, Path]) -> dict[Edge, bool]:
    """Return every import edge, and whether it exists for type checking only."""
    edges: dict[Edge, bool] = {}
    for name, path in modules.items():
        package = name if path.name == "__init__.py" else name.rpartition(".")[0]
        tree = ast.parse(path.read_text("utf-8"))
        for node, for_types in walk_imports(tree):
            for imported in imported_modules(node, package, modules):
                if imported != name:
                    edge = (name, imported)
                    edges[edge] = edges.get(edge, True) and for_types
    return edges


def walk_imports(
    node: ast.AST, for_types: bool = False
) -> Iterator[tuple[ast.Import | ast.ImportFrom, bool]]:
    """Yield every import below a node, and whether it is under ``if TYPE_CHECKING``."""
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        yield node, for_types
    guarded = isinstance(node, ast.If) and ast.unparse(node.test) in _TYPE_GUARDS
    for field, value in ast.iter_fields(node):
        children = value if isinstance(value, list) else [value]
        for child in children:
            if isinstance(child, ast.AST):
                yield from walk_imports(child, for_types or (guarded and field == "body"))


def imported_modules(
    node: ast.Import | ast.ImportFrom, package: str, modules: Mapping[str, Path]
) -> set[str]:
    """Return the modules of the package that one import statement leads to."""
    if isinstance(node, ast.Import):
        return {one.name for one in node.names} & modules.keys()
    base = node.module or ""
    if node.level:
        parent = package.split(".")[: len(package.split(".")) - node.level + 1]
        base = ".".join([*parent, *([base] if base else [])])
    inside = {f"{base}.{one.name}" for one in node.names}
    found = inside & modules.keys()
    return found | ({base} & modules.keys() if inside - found else set())


def read_layers(root: Path) -> list[Layers]:
    """Return the contracts of type "layers" in ``pyproject.toml``."""
    config = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))
    contracts = config.get("tool", {}).get("importlinter", {}).get("contracts", [])
    return [
        parse_contract(one, container)
        for one in contracts
        if one["type"] == "layers"
        for container in one.get("containers", [None])
    ]


def parse_contract(contract: Mapping[str, Any], container: str | None) -> Layers:
    """Return one contract, in one of its containers, as ranks of packages."""
    prefix = f"{container}." if container else ""
    ranks: dict[str, int] = {}
    independent = set()
    for rank, layer in enumerate(contract["layers"]):
        text = layer if isinstance(layer, str) else " | ".join(layer)
        if "|" in text:
            independent.add(rank)
        for name in text.replace("|", ":").split(":"):
            ranks[prefix + name.strip().strip("()").strip()] = rank
    ignored = [one.split("->") for one in contract.get("ignore_imports", [])]
    pairs = tuple((a.strip().replace("**", "*"), b.strip().replace("**", "*")) for a, b in ignored)
    return Layers(ranks, frozenset(independent), pairs)


def make_calls(root: Path, folder: Path) -> dict[str, Callable[[], object]]:
    """Return the six calls to trace, over COMPAS and a table of 400 rows."""
    import fairperm

    compas = fairperm.datasets.load_compas()
    races = ("African-American", "Caucasian")
    scored: dict[str, Any] = {
        "y_true": "two_year_recid",
        "y_score": "decile_score",
        "sensitive_features": "race",
        "data": compas,
        "rng": 1,
        "n_resamples": 199,
    }
    counted: dict[str, Any] = {
        "y_true": [1] * 160 + [0] * 40 + [1] * 40 + [0] * 160,
        "y_pred": [0] * 16 + [1] * 184 + [0] * 8 + [1] * 192,
        "sensitive_features": ["a"] * 200 + ["b"] * 200,
        "rng": 1,
    }
    path = folder / "compas.csv"
    write_csv(path, compas, races)
    return {
        "rate": lambda: fairperm.permutation_test(**counted, metric="fnr"),
        "AUC": lambda: fairperm.permutation_test(**scored, groups=races, metric="roc_auc"),
        "omnibus": lambda: fairperm.omnibus_test(**scored, threshold=5, metric="fnr"),
        "sweep": lambda: fairperm.threshold_sweep(
            **scored, groups=races, metric="fnr", thresholds=[3, 5, 7]
        ),
        "equivalence": lambda: fairperm.equivalence_test(**counted, metric="fnr", margin=0.2),
        "audit, report": lambda: run_audit(root, path),
    }


def write_csv(path: Path, columns: Mapping[str, Any], races: tuple[str, ...]) -> None:
    """Write the rows of some races as a CSV file."""
    rows = zip(*columns.values(), strict=True)
    place = list(columns).index("race")
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(row for row in rows if row[place] in races)


def run_audit(root: Path, path: Path) -> None:
    """Run ``fairperm audit FILE --report REPORT`` in this process."""
    config = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))
    module, _, name = config["project"]["scripts"][PACKAGE].partition(":")
    main = getattr(importlib.import_module(module), name)
    given, command = sys.argv, f"{PACKAGE} audit {path.name} --report report.html --seed 1"
    options = "--label two_year_recid --score decile_score --threshold 5 --group race"
    sys.argv = f"{command} {options}".split()
    try:
        with redirect_stdout(io.StringIO()) as out, redirect_stderr(out):
            code = main()
    except SystemExit as end:
        code = end.code
    finally:
        sys.argv = given
    if code:
        raise RuntimeError(f"the audit ended with exit code {code}:\n{out.getvalue()}")


def trace_files(call: Callable[[], object], source: str) -> tuple[list[str], set[str]]:
    """Return the files of the functions that a warm call runs, in the order of first calls.

    With them, the names of the classes that it meets.
    """
    first: dict[CodeType, None] = {}
    classes: set[str] = set()

    def record(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event != "call":
            return
        if code.co_filename.startswith(source) and code.co_name[0] != "<":
            first.setdefault(code)
        mine = frame.f_locals.get("self")  # also of methods that dataclasses generate
        owner = type(mine) if mine is not None else frame.f_locals.get("cls")
        if isinstance(owner, type) and owner.__module__.split(".")[0] == PACKAGE:
            classes.add(f"{owner.__module__}.{owner.__qualname__}")

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        call()
        threading.setprofile(record)
        sys.setprofile(record)
        try:
            call()
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
    return [code.co_filename for code in first], classes


def count_changes(files: list[str]) -> int:
    """Return how often a file differs from the one before."""
    return sum(one != other for one, other in pairwise(files))


def describe_tree(modules: Mapping[str, Path], root: Path) -> list[str]:
    """Return the lines on folders and lines of source."""
    source = root / "src"
    folders = Counter(str(path.parent.relative_to(source)) for path in modules.values())
    texts = [path.read_text("utf-8") for path in modules.values()]
    tests = [path.read_text("utf-8") for path in sorted((root / "tests").rglob("*.py"))]
    trees = [ast.parse(text) for text in texts]
    return [
        f"modules           {len(modules):>7,}",
        *(f"  {folder:<24}{n:>5,}" for folder, n in sorted(folders.items())),
        f"lines of source   {count_lines(texts):>7,}   code alone: {count_code(texts):,}",
        f"lines of tests    {count_lines(tests):>7,}   code alone: {count_code(tests):,}",
        f"tests of classes  {count_class_tests(trees):>7,}",
    ]


def count_lines(texts: Iterable[str]) -> int:
    """Return the number of all lines."""
    return sum(len(text.splitlines()) for text in texts)


def count_code(texts: Iterable[str]) -> int:
    """Return the number of lines that hold code."""
    return sum(len(code_lines(text)) for text in texts)


def code_lines(text: str) -> set[int]:
    """Return the numbers of lines that hold code."""
    docstrings: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and isinstance(body[0], ast.Expr):
            value = body[0].value
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                docstrings.update(range(body[0].lineno, (body[0].end_lineno or 0) + 1))
    numbered = enumerate(text.splitlines(), 1)
    full = {n for n, line in numbered if line.strip() and not line.lstrip().startswith("#")}
    return full - docstrings


def count_class_tests(trees: list[ast.Module]) -> int:
    """Return the number of calls of isinstance with a class that one of these modules defines."""
    nodes = [node for tree in trees for node in ast.walk(tree)]
    ours = {node.name for node in nodes if isinstance(node, ast.ClassDef)}
    found = 0
    for node in nodes:
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "isinstance":
            asked = ast.walk(node.args[1])
            found += any(isinstance(one, ast.Name) and one.id in ours for one in asked)
    return found


def describe_imports(edges: Mapping[Edge, bool], contracts: list[Layers]) -> list[str]:
    """Return the lines on import edges and on those that break the layers."""
    lines = [f"import edges      {len(edges):>7,}   for types only: {sum(edges.values()):,}"]
    if not contracts:
        return [*lines, "against layers    no contracts"]
    broken = [edge for edge in edges if any(one.is_broken_by(edge) for one in contracts)]
    for_types = sum(edges[edge] for edge in broken)
    ignored = sum(any(one.ignores(edge) for one in contracts) for edge in broken)
    lines.append(
        f"against layers    {len(broken):>7,}   for types only: {for_types:,}, "
        f"exceptions in the contracts: {ignored:,}"
    )
    return [*lines, *(f"  {importer} -> {imported}" for importer, imported in sorted(broken))]


def describe_calls(root: Path) -> Iterator[str]:
    """Yield a line for each of the six calls."""
    source = str(root / "src" / PACKAGE) + os.sep
    start = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        calls = make_calls(root, Path(folder))
        yield f"{'warm call':<18}{'files':>7}{'changes':>10}{'classes':>10}"
        os.chdir(folder)  # where there is no file of options, and reports may be written
        try:
            for name, call in calls.items():
                files, classes = trace_files(call, source)
                counts = len(set(files)), count_changes(files), len(classes)
                yield f"  {name:<16}{counts[0]:>7}{counts[1]:>10}{counts[2]:>10}"
        finally:
            os.chdir(start)


def top_level(module: str) -> str:
    """Return the package or module directly below fairperm that a module belongs to."""
    return module.split(".")[1] if "." in module else PACKAGE


def rank_packages(modules: Mapping[str, Path], contracts: list[Layers]) -> dict[str, int]:
    """Return the top-level packages of the main contract with their layers, or all folders."""
    for contract in contracts:
        if all(name.count(".") == 1 for name in contract.ranks):
            return {top_level(name): rank for name, rank in contract.ranks.items()}
    folders = {top_level(name) for name, path in modules.items() if path.name == "__init__.py"}
    return dict.fromkeys([PACKAGE, *sorted(folders - {PACKAGE})], 0)


def reduce_edges(edges: set[Edge]) -> set[Edge]:
    """Return the edges without those that a longer path replaces (transitive reduction)."""
    kept = set(edges)
    for edge in sorted(edges):
        if edge[1] in reach(edge[0], kept - {edge}):
            kept.remove(edge)
    return kept


def reach(start: str, edges: set[Edge]) -> set[str]:
    """Return all that can be reached from a node."""
    found: set[str] = set()
    waiting = [start]
    while waiting:
        node = waiting.pop()
        new = {after for before, after in edges if before == node} - found
        found |= new
        waiting += new
    return found


def draw_layers(
    modules: Mapping[str, Path], edges: Mapping[Edge, bool], contracts: list[Layers]
) -> list[str]:
    """Return a Mermaid flowchart of the top-level packages, from the top layer down.

    An arrow is an import that no longer chain of arrows replaces; a dotted one leads up, against
    the layers. Without contracts, the nodes are the folders, and the modules beside them are one.
    """
    ranks = rank_packages(modules, contracts)
    pairs = set()
    for edge in edges:
        before, after = (name if name in ranks else PACKAGE for name in map(top_level, edge))
        if before != after and {before, after} <= ranks.keys():
            pairs.add((before, after))
    lines = ["flowchart TD", *(f'    {name}["{name}"]' for name in ranks)]
    down = {(before, after) for before, after in pairs if ranks[before] <= ranks[after]}
    lines += [f"    {before} --> {after}" for before, after in sorted(reduce_edges(down))]
    return lines + [f"    {before} -.-> {after}" for before, after in sorted(pairs - down)]


def main() -> None:
    """Print the numbers, or the flowchart."""
    parser = argparse.ArgumentParser(description="Describe the modules and layers of fairperm.")
    parser.add_argument("--mermaid", action="store_true", help="print a flowchart of the layers")
    wants_chart = parser.parse_args().mermaid
    root = Path.cwd()
    modules = find_modules(root)
    if not modules:
        parser.error("run this from the root of the repository: there is no src/fairperm here")
    edges, contracts = find_edges(modules), read_layers(root)
    if wants_chart:
        print("\n".join(draw_layers(modules, edges, contracts)))
        return
    print("\n".join(describe_tree(modules, root) + describe_imports(edges, contracts)))
    sys.path.insert(0, str(root / "src"))
    for line in describe_calls(root):
        print(line, flush=True)


if __name__ == "__main__":
    main()
