"""Files are written whole or not at all."""

from __future__ import annotations

import os
import random
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fairperm._utils.files import write_whole
from fairperm.errors import InputError

WRITER = """
import sys
from fairperm._utils.files import write_whole
print("ready", flush=True)
n = 0
while True:
    n += 1
    write_whole(sys.argv[1], f"{n % 10}" * 2_000_000)
"""


def test_text_is_utf8_and_bytes_are_themselves(tmp_path: Path) -> None:
    path = write_whole(tmp_path / "a.txt", "é\n")
    assert path.read_bytes() == b"\xc3\xa9\n"
    assert write_whole(path, b"\xff").read_bytes() == b"\xff"
    assert list(tmp_path.iterdir()) == [path]


def test_lone_surrogates_do_not_stop_a_report(tmp_path: Path) -> None:
    assert write_whole(tmp_path / "a", "x\udc80").read_bytes() == b"x\\udc80"


def test_permissions_are_kept_and_links_stay_links(tmp_path: Path) -> None:
    path = write_whole(tmp_path / "a.txt", "1")
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~mask
    path.chmod(0o640)
    link = tmp_path / "link"
    link.symlink_to(path)
    write_whole(link, "2")
    assert link.is_symlink()
    assert path.read_text() == "2"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_missing_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"the folder '.*nowhere' does not exist"):
        write_whole(tmp_path / "nowhere" / "a.txt", "")


def test_folder_instead_of_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is a folder"):
        write_whole(tmp_path, "")


def test_file_instead_of_folder(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("")
    with pytest.raises(InputError, match=r"'.*a' is not a folder"):
        write_whole(tmp_path / "a" / "b", "")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_folder_without_permission(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(InputError, match="no permission to write"):
        write_whole(tmp_path / "a", "")


def test_failure_leaves_the_old_file_and_no_litter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_whole(tmp_path / "a.txt", "old")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InputError, match="No space left on device"):
        write_whole(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_killed_at_any_moment_the_file_is_old_or_new(tmp_path: Path) -> None:
    chance = random.Random(7)
    path = tmp_path / "report.html"
    path.write_text("0" * 2_000_000)
    for _ in range(12):
        with subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE
        ) as writer:
            assert writer.stdout is not None
            writer.stdout.readline()
            time.sleep(chance.random() * 0.05)
            writer.send_signal(signal.SIGKILL)
        text = path.read_text()
        assert len(text) == 2_000_000
        assert len(set(text)) == 1
