"""What ``make test`` does to have a browser: never fail, and say why there is none."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "browser.sh"
SHELL = shutil.which("sh")


@pytest.fixture
def commands(tmp_path: Path) -> Path:
    """Return a folder that is all of the PATH."""
    if SHELL is None:
        pytest.skip("there is no shell")
    write(tmp_path / "id", "echo 0")
    return tmp_path


def write(path: Path, script: str) -> None:
    path.write_text(f"#!{SHELL}\n{script}\n", encoding="utf-8")
    path.chmod(0o755)


def run(commands: Path, **variables: str) -> str:
    done = subprocess.run(
        [str(SHELL), str(SCRIPT)],
        env={"PATH": str(commands), **variables},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == ""
    return done.stderr


def test_browser_that_is_there_is_left_alone(commands: Path) -> None:
    write(commands / "chromium", "")
    assert run(commands) == ""
    assert run(commands, FAIRPERM_BROWSER=str(commands / "chromium")) == ""


def test_chromium_is_installed_as_root(commands: Path) -> None:
    write(commands / "chromium", "")
    (commands / "chromium").chmod(0o644)
    runs = f"PATH=/bin:/usr/bin chmod 755 {commands}/chromium"
    write(commands / "apt-get", f"echo $1 >> {commands}/log; {runs}")
    assert run(commands) == "Installing chromium for the tests of the report ...\n"
    assert (commands / "log").read_text(encoding="utf-8") == "install\n"


def test_lists_are_updated_if_they_are_old(commands: Path) -> None:
    write(commands / "apt-get", f"echo $1 >> {commands}/log; exit 100")
    assert "No browser: apt-get could not install chromium." in run(commands)
    assert (commands / "log").read_text(encoding="utf-8") == "install\nupdate\ninstall\n"


def test_without_apt_get_or_root_it_says_so(commands: Path) -> None:
    assert "No browser: chromium is not installed and there is no apt-get." in run(commands)
    write(commands / "apt-get", "exit 1")
    write(commands / "id", "echo 1000")
    assert "and installing it takes root." in run(commands)
    write(commands / "sudo", "exit 1")
    assert "and installing it takes root." in run(commands)


def test_sudo_is_used_if_it_does_not_ask(commands: Path) -> None:
    write(commands / "id", "echo 1000")
    write(commands / "apt-get", "exit 1")
    write(commands / "sudo", f'echo "$1 $2" >> {commands}/log; [ "$2" = true ]')
    assert "No browser: apt-get could not install chromium." in run(commands)
    told = (commands / "log").read_text(encoding="utf-8").splitlines()
    assert told == ["-n true", "-n apt-get", "-n apt-get", "-n apt-get"]


def test_browser_that_was_named_must_run(commands: Path) -> None:
    write(commands / "chromium", "")
    told = run(commands, FAIRPERM_BROWSER="/not/here")
    assert "No browser: FAIRPERM_BROWSER is /not/here, which does not run." in told
