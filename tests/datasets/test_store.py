"""The cache and the download, against a server on this machine."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from fairperm.datasets import DataUnavailableError, fetch, fetch_adult, fetch_german, store
from fairperm.datasets.store import Original, cache_folder
from fairperm.errors import FairpermError, FairpermWarning
from tests.support.original_files import ADULT_TEST, ADULT_TRAIN, GERMAN

FILES = {"german.data": GERMAN, "adult.data": ADULT_TRAIN, "adult.test": ADULT_TEST}


class Server(ThreadingHTTPServer):
    """A source of files that can misbehave; it notes what it is asked for."""

    daemon_threads = True
    behaviour = "good"

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked: list[str] = []
        self.over = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    """Answer as the server's behaviour is."""

    server: Server

    def do_GET(self) -> None:
        name = self.path.strip("/")
        self.server.asked.append(name)
        content = FILES[name].encode()
        behaviour = self.server.behaviour
        with suppress(OSError):  # who asked may have gone
            if behaviour == "missing":
                self.send_error(404)
                return
            self.send_response(200)
            if behaviour == "broken chunks":
                self.send_header("Transfer-Encoding", "chunked")
            elif behaviour in {"good", "half", "changed"}:
                self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if behaviour == "silent":
                self.server.over.wait(10)
            elif behaviour == "broken chunks":
                self.wfile.write(b"40\r\nonly so much")
            elif behaviour == "half":
                self.wfile.write(content[: len(content) // 2])
            else:
                self.wfile.write(content.swapcase() if behaviour == "changed" else content)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the cache, not there yet, with no folder to look in before it."""
    monkeypatch.delenv("FAIRPERM_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setattr(store, "TIMEOUT", 5.0)
    return tmp_path / "cache" / "fairperm"


@pytest.fixture
def server(cache: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """Return a server from which Adult and German are downloaded."""
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        originals = {
            name: Original(
                name,
                f"{server.url}/{name}",
                hashlib.md5(text.encode(), usedforsecurity=False).hexdigest(),
            )
            for name, text in FILES.items()
        }
        monkeypatch.setattr(fetch, "_GERMAN", originals["german.data"])
        monkeypatch.setattr(fetch, "_ADULT", (originals["adult.data"], originals["adult.test"]))
        yield server
        server.over.set()
        server.shutdown()
        thread.join()


def kept(cache: Path) -> dict[str, str]:
    """Return what lies in the cache, unfinished files too."""
    return {file.name: file.read_text() for file in cache.iterdir()} if cache.exists() else {}


def test_download_is_kept_and_not_repeated(server: Server, cache: Path) -> None:
    assert fetch_german()["bad_risk"].tolist() == [0, 1, 0]
    assert kept(cache) == {"german.data": GERMAN}
    server.behaviour = "missing"
    assert fetch_german()["bad_risk"].tolist() == [0, 1, 0]
    assert server.asked == ["german.data"]


def test_all_files_of_a_data_set_are_downloaded_but_only_those_that_lack(
    server: Server, cache: Path
) -> None:
    cache.mkdir(parents=True)
    (cache / "adult.test").write_text(ADULT_TEST)
    assert fetch_adult()["income"].tolist() == [0, 1, 0, 1]
    assert server.asked == ["adult.data"]
    assert kept(cache) == {"adult.data": ADULT_TRAIN, "adult.test": ADULT_TEST}


def test_damaged_file_in_the_cache_is_replaced(server: Server, cache: Path) -> None:
    cache.mkdir(parents=True)
    (cache / "german.data").write_text(GERMAN[:-20])
    assert len(fetch_german()["age"]) == 3
    assert kept(cache) == {"german.data": GERMAN}


def test_folder_without_the_data_leads_on_to_the_download(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own").mkdir()
    monkeypatch.setenv("FAIRPERM_DATA", str(tmp_path / "own"))
    assert len(fetch_german()["age"]) == 3
    assert not list((tmp_path / "own").iterdir())


@pytest.mark.parametrize(
    ("behaviour", "reason"),
    [
        ("changed", r"the \d+ bytes received do not have md5 [0-9a-f]{32}"),
        ("half", r"IncompleteRead\(\d+ bytes read, \d+ more expected\)"),
        ("broken chunks", r"IncompleteRead\(.*\)"),
        ("missing", r"HTTP Error 404: Not Found"),
        ("silent", r"timed out"),
    ],
)
def test_failed_download_says_why_and_leaves_nothing(
    server: Server, cache: Path, monkeypatch: pytest.MonkeyPatch, behaviour: str, reason: str
) -> None:
    monkeypatch.setattr(store, "TIMEOUT", 0.3)
    server.behaviour = behaviour
    message = (
        r"german\.data is not in the folder of FAIRPERM_DATA \(not set\), not in the cache "
        rf"\('.*fairperm'\), and could not be downloaded from {server.url}/german\.data: "
        rf"{reason}\. Download it on a machine with a network, and set FAIRPERM_DATA to the folder "
        r"that has german\.data\."
    )
    with pytest.raises(DataUnavailableError, match=message):
        fetch_german()
    assert kept(cache) == {}


def test_damaged_file_stays_if_there_is_no_better_one(server: Server, cache: Path) -> None:
    cache.mkdir(parents=True)
    (cache / "german.data").write_text("half")
    server.behaviour = "changed"
    with pytest.raises(DataUnavailableError, match=r"do not have md5"):
        fetch_german()
    assert kept(cache) == {"german.data": "half"}


def test_without_a_network_the_message_says_where_to_put_the_files(
    cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with Server() as gone:
        address = gone.url
    originals = tuple(Original(name, f"{address}/{name}", "0" * 32) for name in ("a", "b"))
    monkeypatch.setattr(fetch, "_ADULT", originals)
    monkeypatch.setenv("FAIRPERM_DATA", str(tmp_path))
    message = (
        r"a is not in the folder of FAIRPERM_DATA \('.*'\), not in the cache .* could not be "
        r"downloaded from .*refused.* the folder that has a and b\."
    )
    with pytest.raises(DataUnavailableError, match=message) as caught:
        fetch_adult()
    assert isinstance(caught.value, FairpermError)
    assert isinstance(caught.value, OSError)
    assert kept(cache) == {}


def test_cache_that_cannot_be_written_is_a_warning_only(
    server: Server, cache: Path, tmp_path: Path
) -> None:
    (tmp_path / "cache").write_text("a file where the folder should be")
    with pytest.warns(FairpermWarning, match=r"german\.data was downloaded but could not be") as w:
        assert len(fetch_german()["age"]) == 3
    assert Path(w[0].filename) == Path(__file__)


@pytest.mark.parametrize(
    ("platform", "variable", "place"),
    [
        ("linux", None, ".cache/fairperm"),
        ("darwin", None, "Library/Caches/fairperm"),
        ("win32", None, "AppData/Local/fairperm"),
        ("win32", "LOCALAPPDATA", "own/fairperm"),
        ("linux", "XDG_CACHE_HOME", "own/fairperm"),
        ("darwin", "XDG_CACHE_HOME", "own/fairperm"),
    ],
)
def test_cache_is_where_the_system_has_it(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    platform: str,
    variable: str | None,
    place: str,
) -> None:
    for name in ("XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(name, str(tmp_path))
    if variable:
        monkeypatch.setenv(variable, str(tmp_path / "own"))
    monkeypatch.setattr(store, "sys", type("System", (), {"platform": platform}))
    assert cache_folder() == tmp_path / place


def test_relative_cache_is_ignored(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "here")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    assert cache_folder().is_relative_to(tmp_path)


def test_addresses_are_secure_and_the_sources_own() -> None:
    for one in (fetch._COMPAS, *fetch._ADULT, fetch._GERMAN):
        assert one.url.startswith(
            (
                "https://archive.ics.uci.edu/ml/machine-learning-databases/",
                "https://raw.githubusercontent.com/propublica/compas-analysis/",
            )
        )
        assert one.url.endswith(f"/{one.name}")


def test_network_is_not_loaded_before_it_is_needed() -> None:
    code = "import sys, fairperm.datasets; print('urllib.request' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"
