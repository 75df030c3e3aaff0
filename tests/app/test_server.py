"""The page's server: what it answers, to whom, and what it leaves."""

from __future__ import annotations

import json
import re
import shlex
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.app_server import AppServer
from tests.support.commands import succeeded

pytestmark = pytest.mark.xdist_group("app")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AppServer]:
    started = AppServer(tmp_path_factory.mktemp("app"))
    yield started
    assert started.process.poll() is None
    code, printed = started.end()
    assert (code, printed) == (143, "fairperm: interrupted\n")
    assert started.leftovers() == []


def test_example_from_file_to_report(server: AppServer, tmp_path: Path) -> None:
    tab = server.open_tab()
    assert "6,172 rows" in tab.open_example()["look"]
    assert tab.fields["question"] == ["audit"]
    assert tab.fields["metric"] == ["false_positive_rate", "false_negative_rate"]
    found = tab.run()
    assert "error" not in found
    result = json.loads(tab.output(found["run"], "result.json"))
    assert result["options"]["threshold"] == 5
    assert result["options"]["seed"] == found["seed"]
    command = re.search(r'id="command">(.*?)</code>', found["take"], re.S)
    assert command
    words = shlex.split(command[1].replace("&#39;", "'").replace("\\\n", " "))
    assert words[:2] == ["fairperm", "audit"]
    from importlib.resources import files

    path = tmp_path / words[2]
    path.write_bytes(files("fairperm.datasets").joinpath(words[2]).read_bytes())
    same = succeeded(*words[1:], "--json", "-", "-q", cwd=tmp_path)
    assert json.loads(same) == result
    report = tab.output(found["run"], "report.html").decode()
    assert "Thresholds" in report
    assert tab.output(found["run"], "table.xlsx")[:2] == b"PK"
    assert tab.output(found["run"], "table.csv").startswith(b"attribute,")


def test_only_the_page_itself_is_answered(server: AppServer) -> None:
    inside, ours = server.path, f"http://{server.host}"

    def status(path: str, method: str = "GET", **headers: str) -> int:
        names = {name.replace("_", "-"): one for name, one in headers.items()}
        response = server.request(method, path, headers=names)
        assert b"Traceback" not in response.content
        return response.status

    assert status(inside) == 200
    assert status(inside, Origin="") == 200
    assert status("/") == status("/favicon.ico") == status(inside[:-2] + "x/") == 404
    assert status(inside, Host="evil.example") == status(inside, Host="evil.example:80") == 403
    assert status(inside, Origin="http://evil.example") == status(inside, Origin="null") == 403
    assert status(inside, Sec_Fetch_Site="cross-site") == 403
    assert status(f"{inside}tabs/x/closed", "POST", Origin="") == 403
    assert status(f"{inside}tabs/x/closed", "POST", Origin="http://localhost:1") == 403
    assert status(f"{inside}tabs/x/closed", "POST", Origin=ours) == 204
    assert status(f"{inside}static/../server.py") == status(f"{inside}static/server.py") == 404
    assert status(f"{inside}static/%2e%2e/server.py") == 404
    policy = server.request("GET", inside).headers["content-security-policy"]
    assert "unsafe-eval" not in policy
    assert policy.startswith("default-src 'none'; script-src 'self'")


def test_tabs_do_not_mix(server: AppServer) -> None:
    one, other = server.open_tab(), server.open_tab()
    one.open_example()
    run = one.run()["run"]
    other.file, other.fields = one.file, one.fields
    assert other.run()["status"] == 410
    assert other.post("/runs").status == 404
    path = f"{server.path}tabs/{other.name}/runs/{run}/result.json"
    assert server.request("GET", path).status == 404
    one.post("/closed")
    assert one.run()["status"] == 410


def test_errors_are_sentences_in_the_page_s_words(server: AppServer) -> None:
    tab = server.open_tab()
    assert tab.open("x.csv", b"")["error"] == "The file is empty."
    assert tab.open("x.bin", b"\0\1")["error"].startswith("the name of 'x.bin' does not show")
    tab.open("../x;y.csv", b"y,p,g\n" + b"1,0,a\n0,1,b\n" * 60)
    assert "<bdi>x;y.csv</bdi>" in tab.look
    tab.choose(question=["audit"], label=["0"], prediction=["1"], group=["2"])
    tab.fields["min_group_size"] = ["-1"]
    assert tab.run()["error"].startswith("“Fewest rows of a group” must be")
    tab.fields = {"asked": ["audit"], "question": ["audit"]}
    assert tab.run()["error"] == "Choose at least one column of groups to compare."
    assert tab.ask("/run", b"[1")["status"] == tab.ask("/run", b"{}")["status"] == 400


LONG = [pytest.param(one, marks=pytest.mark.validate) for one in (signal.SIGINT, signal.SIGHUP)]


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL, *LONG])
def test_no_data_are_left(tmp_path: Path, how: int) -> None:
    server = AppServer(tmp_path)
    tab = server.open_tab()
    tab.open("people.csv", b"y,p,g\n" + b"1,0,a\n0,1,b\n" * 60)
    assert any(one.endswith("people.csv") for one in server.leftovers())
    code, printed = server.end(how)
    assert code == (-9 if how == signal.SIGKILL else 128 + how)
    assert "people" not in printed
    for _ in range(100):
        if not server.leftovers():
            break
        time.sleep(0.1)
    assert server.leftovers() == []
