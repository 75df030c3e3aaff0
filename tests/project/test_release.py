"""What is released: the wheel and the sdist are whole, and run where nothing else is installed."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

# all tests need the wheel, which two workers of pytest would each build
pytestmark = [pytest.mark.validate, pytest.mark.xdist_group("release")]

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
# a clean environment must not see the packages that the tests have
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
AUDIT = """
import sys, fairperm
data = {"y": [0, 1] * 200, "p": [0, 1, 1, 0] * 100, "s": [0.2, 0.9, 0.6, 0.4] * 100}
data["g"] = ["a"] * 200 + ["b"] * 200
audit = fairperm.audit("y", "p", sensitive_features="g", metrics="fpr", data=data, rng=1)
"""
COMMAND = """
from fairperm.cli import start
sys.argv = ["fairperm", "audit", "x.parquet", "--prediction", "p", "--group", "g", *{more}]
start()
"""
USES = {  # what needs each extra; an environment of its own tries mlflow, `make test` spark
    "fast": "import warnings; warnings.simplefilter('error', fairperm.FairpermWarning)\n"
    "fairperm.permutation_test('y', y_score='s', sensitive_features='g', metric='roc_auc', "
    "data=data, rng=1)",
    "files": 'import duckdb; duckdb.sql("COPY (SELECT i % 2 AS p, i % 3 > 0 AS g FROM range(300) '
    "AS one(i)) TO 'x.parquet'\")" + COMMAND.format(more=["--json", "x.json"]),
    "plots": "audit.plot().save('x.svg'); audit.plot().save('x.png')",
    "excel": COMMAND.format(more=["--xlsx", "x.xlsx"]),
    "app": "import uvicorn, fairperm.app.server",
}


def run(*command: object, cwd: Path | None = None) -> str:
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=CLEAN,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return the wheel and the sdist. ``build`` makes the wheel out of the sdist."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--outdir", folder, ROOT)
    (wheel,) = folder.glob("*.whl")
    (sdist,) = folder.glob("*.tar.gz")
    return wheel, sdist


def files_of_the_package() -> set[str]:
    """Return what git knows of, so that nothing lost from the wheel goes unseen."""
    known = run("git", "-C", ROOT, "ls-files", "--cached", "--others", "--exclude-standard", "src")
    return {line.removeprefix("src/") for line in known.splitlines()}


def test_the_wheel_has_every_file_of_the_package_and_nothing_else(
    released: tuple[Path, Path],
) -> None:
    wheel, sdist = released
    with zipfile.ZipFile(wheel) as archive:
        inside = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert inside == files_of_the_package()
    with tarfile.open(sdist) as archive:
        top = {name.split("/")[1] for name in archive.getnames() if "/" in name}
    assert {"src", "tests", "docs", "README.md", "LICENSE", "CHANGELOG.md"} <= top
    assert not top & {".venv", "site", "dist", ".benchmarks", "fairperm-demo.html"}


def test_the_metadata_reads_well_where_packages_are_published(
    released: tuple[Path, Path],
) -> None:
    assert "PASSED" in run(sys.executable, "-m", "twine", "check", "--strict", *released)


def test_all_names_of_the_version_agree(released: tuple[Path, Path]) -> None:
    version = PROJECT["version"]
    assert released[0].name.startswith(f"fairperm-{version}-")
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\n## {version}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("versions", ["newest", "lowest"])
def test_the_demo_runs_in_a_clean_environment(
    released: tuple[Path, Path], tmp_path: Path, versions: str
) -> None:
    if versions == "lowest" and sys.version_info >= (3, 12):
        pytest.skip("the lowest versions of the dependencies are built for Python 3.11")
    constraints = tmp_path / "constraints.txt"
    pinned = run(sys.executable, ROOT / "scripts" / "lowest.py") if versions == "lowest" else ""
    constraints.write_text(pinned, encoding="utf-8")
    venv.create(tmp_path / "clean")
    bin_folder = tmp_path / "clean" / ("Scripts" if os.name == "nt" else "bin")
    pip = (sys.executable, "-m", "pip", "--python", bin_folder / "python")
    # not compiled before it is needed: most of what the dependencies bring is never imported
    options = ("--quiet", "--no-compile", "--constraint", constraints)
    run(*pip, "install", *options, released[0])
    empty = tmp_path / "empty"
    empty.mkdir()
    said = run(bin_folder / "fairperm", "demo", cwd=empty)
    assert "African-American" in said
    names = sorted(path.name for path in empty.iterdir())
    assert names == ["fairperm-demo-full.html", "fairperm-demo.html"]
    assert run(bin_folder / "fairperm", "--version").split()[-1] == PROJECT["version"]
    assert {*USES, "all", "mlflow", "spark"} == {*PROJECT["optional-dependencies"]}
    run(*pip, "install", *options, f"{released[0]}[{','.join(USES)}]")
    for code in USES.values():
        run(bin_folder / "python", "-c", AUDIT + code, cwd=empty)
    made = {one.name for one in empty.iterdir()}
    assert {"x.json", "x.parquet", "x.png", "x.svg", "x.xlsx"} <= made
