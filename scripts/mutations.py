"""Change one place of the source at a time, and see whether a test notices.

    pytest -m "not validate" --cov --cov-context=test    # once: which tests run which lines
    python scripts/mutations.py --coverage .coverage

draws 60 changes by a seed, a third each of

- flipped comparisons: ``<`` becomes ``>``, ``==`` becomes ``!=``, ``in`` becomes ``not in``;
- changed constants: a whole number is one larger, another number twice as large;
- dropped terms: of a sum, a product or a condition, one side is left.

For each, the tests that run the changed line run until the first failure, most specific tests
first: those that run few other modules. ``--tree`` is another checkout, say of the commit before.
A change is known by its function, its line and its place in it, so that two trees get the same
changes where they have the same lines; where one is gone, the next of the seed stands in.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import hashlib
import importlib
import importlib.abc
import importlib.machinery
import os
import re
import resource
import sys
import tempfile
from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOMS = ("inference", "metrics", "hypothesis_tests")
NOT_MUTATED = ("results", "__init__.py", "comparison_checks.py", "plan.py")  # words and options
FLIPPED = {
    ast.Lt: ">", ast.Gt: "<", ast.LtE: ">=", ast.GtE: "<=", ast.Eq: "!=", ast.NotEq: "==",
    ast.Is: "is not", ast.IsNot: "is", ast.In: "not in", ast.NotIn: "in",
}  # fmt: skip
KINDS = ("flipped comparison", "changed constant", "dropped term")
SHARED = (  # by all changes, and slow to import
    *("hypothesis", "numba", "pandas", "scipy.stats", "sklearn.metrics", "statsmodels.api"),
)
MAX_TESTS = 60
CPU_LIMIT_S = 40


@dataclass(frozen=True)
class Mutation:
    """Another text for one place of a file."""

    path: str
    line: int
    start: int  # in bytes of the file
    stop: int
    text: str
    kind: str
    name: str  # the same in every tree that has the line

    def apply(self, source: bytes) -> bytes:
        """Return the file with the change."""
        return source[: self.start] + self.text.encode() + source[self.stop :]


def mutations(tree: Path) -> Iterator[Mutation]:
    """Find all changes of the kinds above, in the files that compute."""
    for room in ROOMS:
        for path in sorted((tree / "src/fairperm" / room).rglob("*.py")):
            if not {path.name, path.parent.name} & set(NOT_MUTATED):
                yield from _of_file(path.relative_to(tree), path.read_bytes())


def _of_file(path: Path, source: bytes) -> Iterator[Mutation]:
    lines = source.splitlines(keepends=True)
    starts = [sum(map(len, lines[:i])) for i in range(len(lines) + 1)]
    seen: Counter[str] = Counter()

    def position(line: int, column: int) -> int:
        return starts[line - 1] + column

    for function, node in _expressions(ast.parse(source), ""):
        first = position(node.lineno, node.col_offset)
        last = position(node.end_lineno or node.lineno, node.end_col_offset or 0)
        for kind, text in _changes(node):
            words = lines[node.lineno - 1].decode().strip()
            name = f"{function}: {words}: {ast.unparse(node)} -> {text}"
            seen[name] += 1
            # parentheses: a changed term must not bind otherwise
            yield Mutation(str(path), node.lineno, first, last, f"({text})", kind,
                           f"{name} ({seen[name]})")  # fmt: skip


def _expressions(node: ast.AST, function: str) -> Iterator[tuple[str, ast.expr]]:
    """Walk through what runs: no annotations, no decorators, no words, no errors' hints."""
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "exc"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if not isinstance(child, ast.AST) or isinstance(child, ast.JoinedStr):
                continue
            inside = function
            if isinstance(child, ast.FunctionDef | ast.ClassDef):
                inside = f"{function}.{child.name}".strip(".")
            elif isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
                continue
            if isinstance(child, ast.expr):
                yield inside, child
            yield from _expressions(child, inside)


def _changes(node: ast.expr) -> Iterator[tuple[str, str]]:
    match node:
        case ast.Compare(left=left, ops=[operator], comparators=[right]):
            flipped = f"{ast.unparse(left)} {FLIPPED[type(operator)]} {ast.unparse(right)}"
            yield "flipped comparison", flipped
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            other = value + 1 if isinstance(value, int) else 2 * value or 1.0
            yield "changed constant", repr(other)
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() | ast.Mult() | ast.Div(), right=right):
            if not any(isinstance(one, ast.JoinedStr) for one in (left, right)):
                yield "dropped term", ast.unparse(left)
                yield "dropped term", ast.unparse(right)
        case ast.BoolOp(values=values):
            yield "dropped term", ast.unparse(values[0])


def draw(tree: Path, seed: int, n: int) -> list[Mutation]:
    """Return as many of each kind: those whose names come first when hashed with the seed."""

    def rank(mutation: Mutation) -> bytes:
        return hashlib.sha256(f"{seed} {mutation.name}".encode()).digest()

    ranked = sorted(mutations(tree), key=rank)
    by_kind = [[one for one in ranked if one.kind == kind] for kind in KINDS]
    return [one for some in by_kind for one in some[: n // len(KINDS)]]


class Contexts:
    """Which tests ran which lines, when the coverage was measured in some checkout."""

    def __init__(self, data_file: Path, measured: Path) -> None:
        """Read the file; ``measured`` is the checkout, which may have other line numbers."""
        from coverage import CoverageData

        data = CoverageData(str(data_file))
        data.read()
        self.measured = measured
        self.lines: dict[str, dict[int, list[str]]] = {}
        self.modules: defaultdict[str, set[str]] = defaultdict(set)
        for file in data.measured_files():
            if "src/fairperm/" in file:
                name = "src/fairperm/" + file.split("src/fairperm/")[1]
                self.lines[name] = data.contexts_by_lineno(file)
                for test in {one for some in self.lines[name].values() for one in some}:
                    self.modules[test].add(name)

    def tests(self, mutation: Mutation, words: str) -> list[str]:
        """Return the tests that run a line with these words, most specific first."""
        source = self.measured / mutation.path
        old = source.read_text().splitlines() if source.exists() else []
        lines = self.lines.get(mutation.path, {})
        places = [i for i, line in enumerate(old, 1) if line.strip() == words.strip()]
        # where a file has a line several times, the nearest
        places = sorted(places, key=lambda i: abs(i - mutation.line))[:1]
        found = {one for place in places for one in lines.get(place, []) if one}
        if not found:  # a line that is new, or no test's: runs at import, or continues another
            found = {one for some in lines.values() for one in some if one}
        return sorted(found, key=lambda one: (len(self.modules[one]), one))


def run(tree: Path, mutation: Mutation, tests: list[str], cpu_limit_s: int) -> str:
    """Return "killed", "survived", or that neither can be said.

    The tests run in a fork of this process, which has imported what does not change.
    """
    with tempfile.TemporaryFile("w+") as output:
        process = os.fork()
        if process == 0:  # the fork; only a signal or _exit may end it
            resource.setrlimit(resource.RLIMIT_CPU, (cpu_limit_s, cpu_limit_s + 5))
            os.dup2(output.fileno(), 1)
            os.dup2(output.fileno(), 2)
            os.chdir(tree)
            sys.path[:0] = [str(tree / "src"), str(tree)]
            _Loader.mutation = mutation
            sys.meta_path.insert(0, _Finder())
            options = ["-x", "-q", "-n", "0", "-p", "no:cacheprovider", "--no-header"]
            options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # imported before
            code = 70
            with contextlib.suppress(BaseException):
                code = int(pytest.main([*options, *tests]))
            sys.stdout.flush()
            os._exit(code)
        _, status = os.waitpid(process, 0)
        output.seek(0)
        if status == 0:
            return "survived"
        found = re.search(r"\d (failed|error)|ImportError while loading", output.read())
        return "killed" if found else f"no verdict in {cpu_limit_s} s"


class _Loader(importlib.machinery.SourceFileLoader):
    """Import one file with its change."""

    mutation: Mutation

    def get_code(self, fullname: str) -> Any:
        path = self.get_filename(fullname)
        return compile(self.mutation.apply(Path(path).read_bytes()), path, "exec")


class _Finder(importlib.abc.MetaPathFinder):
    """Give the changed file a loader of its own."""

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> Any:
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec and str(spec.origin).endswith(_Loader.mutation.path):
            spec.loader = _Loader(fullname, str(spec.origin))
            return spec
        return None


def existing(tree: Path, tests: list[str]) -> list[str]:
    """Return those tests, by their functions, that the tree still has."""
    functions = dict.fromkeys(one.split("[")[0].split("|")[0] for one in tests)
    found = []
    for function in functions:
        file, *names = function.split("::")
        source = tree / file
        if names and source.exists() and f"def {names[-1]}(" in source.read_text():
            found.append(function)
    return found


def main() -> None:
    """Draw changes, run tests, and print what became of each."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--tree", type=Path, default=Path())
    parser.add_argument("--coverage", type=Path, required=True)
    parser.add_argument("--measured", type=Path, help="the checkout that was measured")
    parser.add_argument("--also", nargs="*", default=[], help="test files that were not measured")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("-n", type=int, default=60)
    parser.add_argument("--list", action="store_true", help="only list the changes")
    given = parser.parse_args()
    tree = given.tree.resolve()
    contexts = Contexts(given.coverage, (given.measured or tree).resolve())
    verdicts: Counter[str] = Counter()
    for name in SHARED:
        importlib.import_module(name)
    drawn = draw(tree, given.seed, given.n)
    if not given.list:  # the same without a change must survive
        first = drawn[0]
        source = (tree / first.path).read_bytes()
        same = replace(first, text=source[first.start : first.stop].decode())
        words = source.decode().splitlines()[first.line - 1]
        control = existing(tree, contexts.tests(first, words))[:MAX_TESTS]
        print("without a change:", run(tree, same, control, CPU_LIMIT_S), flush=True)
    for mutation in drawn:
        words = (tree / mutation.path).read_text().splitlines()[mutation.line - 1]
        tests = [*existing(tree, contexts.tests(mutation, words))[:MAX_TESTS], *given.also]
        verdict = "listed" if given.list else "survived"
        if tests and not given.list:
            verdict = run(tree, mutation, tests, CPU_LIMIT_S)
        verdicts[verdict] += 1
        print(f"{verdict:10} {mutation.path}:{mutation.line} {mutation.name}  "
              f"[{len(tests)} tests]", flush=True)  # fmt: skip
    print(", ".join(f"{n} {verdict}" for verdict, n in verdicts.items()))


if __name__ == "__main__":
    main()
