"""What CI runs is fixed: actions by their commits, packages by their versions."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from scripts.constraints import EXTRAS

from fairperm._utils.optional import EXTRA_OF

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
OPTIONAL = PROJECT["project"]["optional-dependencies"]
CONSTRAINTS = (ROOT / "constraints.txt").read_text(encoding="utf-8")


def test_actions_are_pinned_by_commit() -> None:
    workflows = [one.read_text(encoding="utf-8") for one in ROOT.glob(".github/workflows/*.yml")]
    used = [line for text in workflows for line in re.findall(r"uses: (.+)", text)]
    assert len(used) >= 10
    for one in used:
        assert re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", one), one
    assert len({one.partition("@")[0] for one in used}) == len(set(used))  # one version of each


def test_actions_and_packages_are_renewed() -> None:
    text = (ROOT / ".github" / "dependabot.yml").read_text(encoding="utf-8")
    assert re.findall(r"package-ecosystem: (.+)", text) == ["github-actions", "pip"]


def pinned() -> dict[str, str]:
    """Return the version of each package; other lines than comments are an error."""
    lines = [line for line in CONSTRAINTS.splitlines() if not line.startswith("#")]
    found = [re.fullmatch(r"([\w.-]+)==([\w.]+)", line) for line in lines]
    assert all(found), lines
    return {canonicalize_name(one[1]): one[2] for one in found if one}


def required(group: str) -> list[Requirement]:
    """Return the packages of a group of pyproject.toml and of the groups that it includes."""
    found = []
    for one in PROJECT["dependency-groups"][group]:
        found += [Requirement(one)] if isinstance(one, str) else required(one["include-group"])
    return found


def of_extras(names: Iterable[str]) -> list[Requirement]:
    """Return what extras bring; other extras of the project have requirements of their own."""
    found = [Requirement(one) for name in names for one in OPTIONAL[name]]
    return [one for one in found if one.name != "fairperm"]


def test_extras_are_known_by_the_modules_that_they_bring() -> None:
    """A missing module is answered with the extra that installs it."""
    modules = {"vl_convert": "vl-convert-python"}
    for module, extra in EXTRA_OF.items():
        name = canonicalize_name(modules.get(module, module))
        assert name in {one.name for one in of_extras([extra])}, module
    brought = {one.name for one in of_extras(OPTIONAL)}
    known = {canonicalize_name(modules.get(one, one)) for one in EXTRA_OF}
    assert brought == known
    assert set(OPTIONAL) == {*EXTRA_OF.values(), "all"}
    (every,) = map(Requirement, OPTIONAL["all"])
    assert every.extras == {*EXTRA_OF.values()}


def test_the_makefile_installs_what_a_newcomer_meets() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert f"\nEXTRAS := {EXTRAS}\n" in makefile
    assert '--editable ".[$(EXTRAS)]"' in makefile
    assert set(EXTRAS.split(",")) == set(OPTIONAL) - {"all", "mlflow", "spark"}


def test_constraints_allow_what_the_project_asks_for() -> None:
    asked = [Requirement(one) for one in PROJECT["project"]["dependencies"]]
    asked += of_extras(set(OPTIONAL) - {"mlflow"})  # which is tried in an environment of its own
    asked += [Requirement(one) for one in PROJECT["build-system"]["requires"]]
    own = {"cards", "logs", "peers"}  # environments of their own, too
    groups = set(PROJECT["dependency-groups"]) - own
    asked += [one for group in groups for one in required(group)]
    versions = pinned()
    for one in asked:
        assert versions[canonicalize_name(one.name)] in one.specifier, one


def test_constraints_cover_what_make_test_installs() -> None:
    todo = [*map(Requirement, PROJECT["project"]["dependencies"]), *required("dev")]
    todo += of_extras(EXTRAS.split(","))
    seen: set[tuple[str, str]] = set()
    while todo:
        one = todo.pop()
        for extra in ("", *one.extras):
            if (one.name, extra) not in seen:
                seen.add((one.name, extra))
                needed = map(Requirement, metadata.requires(one.name) or ())
                todo += [r for r in needed if not r.marker or r.marker.evaluate({"extra": extra})]
    assert len(seen) > 100
    assert {canonicalize_name(name) for name, _ in seen} <= {*pinned()}


def test_installs_use_the_constraints() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    installs = re.findall(r"\$\(BIN\)/python -m pip install (.+)", makefile)  # peers: the newest
    assert len(installs) >= 6
    assert all(one.startswith("$(PIP)") for one in installs)
    assert re.search(r"^PIP := .*--constraint \$\(CONSTRAINTS\)$", makefile, re.MULTILINE)
