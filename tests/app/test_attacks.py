"""The page under attack: hostile and damaged uploads, names and forms, many requests at once."""

from __future__ import annotations

import random
import re
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support.app_server import AppServer
from tests.support.damaged_files import damage, write_files
from tests.support.hostile_files import KINDS

pytestmark = [pytest.mark.validate, pytest.mark.xdist_group("app")]

UPLOADS = 60
GOOD = b"y,p,g\n" + b"1,0,a\n0,1,b\n1,1,b\n" * 40
INSIDE = re.compile(r"Traceback|should not|site-packages|fairperm-|\n")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AppServer]:
    started = AppServer(tmp_path_factory.mktemp("app"))
    yield started
    assert started.end() == (143, "fairperm: interrupted\n")
    assert started.leftovers() == []


def files_of_tabs(server: AppServer) -> list[str]:
    return [one for one in server.leftovers() if not one.endswith("/lock")]


def make_upload(number: int) -> tuple[str, bytes]:
    """Return the name and the content of a file that is odd, broken or made to hurt."""
    chance = random.Random(number)
    kind = chance.choice(["parquet", "text", "compressed", "encoded", "blank", "sheet", "json"])
    if number % 50 == 0:
        rows = [[str(i * j % 7) for j in range(1_000)] for i in range(40)]
        return "wide.csv", "\n".join(map(",".join, rows)).encode()
    if kind == "parquet":
        name, content = chance.choice([*write_files().items()])
        return name, damage(content, chance)
    case = KINDS[kind][0](chance)
    return case.name, case.content


def test_damaged_uploads_get_an_answer_or_a_sentence(server: AppServer) -> None:
    """And the server lives, and says nothing of its own files."""

    def attack(number: int) -> str:
        name, content = make_upload(number)
        tab = server.open_tab()
        found = tab.open(name, content)
        if "error" not in found:
            found = tab.run()
        tab.post("/closed")
        return str(found.get("error", ""))

    with ThreadPoolExecutor(3) as threads:
        said = [*threads.map(attack, range(UPLOADS))]
    assert [one for one in said if INSIDE.search(one) or str(server.folder) in one] == []
    answered = sum(not one for one in said)
    assert 0.2 < answered / UPLOADS < 0.9  # the damage is neither always fatal nor never
    assert server.process.poll() is None
    assert files_of_tabs(server) == []


@pytest.mark.parametrize(
    "name",
    [
        *("../../x.csv", "..\\..\\x.csv", "/etc/x.csv", "a\0/..\0/x.csv", "%2e%2e%2fx.csv"),
        *("--sql=1.csv", "*.csv", "fairperm.toml.csv", "x" * 5_000 + ".csv", "\u202evsc.csv"),
    ],
)
def test_names_stay_in_their_folder(server: AppServer, name: str) -> None:
    tab = server.open_tab()
    assert "error" not in tab.open(name, GOOD)
    assert "error" not in tab.run()
    (path,) = (one for one in files_of_tabs(server) if Path(one).read_bytes() == GOOD)
    inside = path.removeprefix(str(server.folder)).split("/")
    assert len(inside) == 5  # the folders of the page, of the tab and of the file, and its name
    tab.post("/closed")
    assert files_of_tabs(server) == []


def test_oversized_uploads_are_refused_at_once(server: AppServer) -> None:
    tab = server.open_tab()
    host, port = server.host.split(":")
    head = (
        f"POST {server.path}tabs/{tab.name}/file?name=x.csv HTTP/1.1\r\nHost: {server.host}\r\n"
        f"Origin: http://{server.host}\r\nContent-Length: {1 << 40}\r\n\r\n"
    )
    with socket.create_connection((host, int(port)), timeout=60) as connection:
        connection.sendall(head.encode() + GOOD)
        answer = connection.recv(1 << 16)
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert tab.post("/form", b"[" * (1 << 19)).status == 413
    assert files_of_tabs(server) == []


def test_fifty_requests_at_once_have_one_answer(server: AppServer) -> None:
    tabs = [server.open_tab() for _ in range(10)]
    for tab in tabs:
        assert "error" not in tab.open("x.csv", GOOD)
    with ThreadPoolExecutor(50) as threads:
        found = [*threads.map(lambda i: tabs[i % 10].run(), range(50))]
    assert [one for one in found if "error" in one] == []
    outputs = {
        tabs[i % 10].output(one["run"], "table.csv") for i, one in enumerate(found) if i >= 40
    }
    assert len(outputs) == 1
    for tab in tabs:
        tab.post("/closed")
    assert files_of_tabs(server) == []
