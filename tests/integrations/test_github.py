"""The GitHub Action: the shell of its own steps runs, and talks to a server that stands here."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.commands import QUIET, as_text, sample

BASH = shutil.which("bash") or "bash"
ROOT = Path(__file__).parents[2]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
PASSES = (
    'files = ["x.csv"]\nlabel = "y"\nprediction = "p"\ngroup = ["g"]\nmetric = ["fpr"]\nseed = 1\n'
)
GATE = 'fail-on = ["disparity"]\n'
UNLIKE = [(0, int(i < (60 if g == "a" else 20)), g) for g in "ab" for i in range(100)]


class GitHub(BaseHTTPRequestHandler):
    """Comments of one pull request, as the API of GitHub has them."""

    comments: list[dict[str, Any]]
    refuses: bool

    def answer(self) -> None:
        assert self.headers["Authorization"] == "Bearer secret"
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length)) if length else {}
        place, _, query = self.path.removeprefix("/api").partition("?")
        found: Any = {}
        code = 200
        if self.refuses and self.command != "GET":
            code, found = 403, {"message": "Resource not accessible by integration"}
        elif self.command == "GET":
            assert place == "/repos/me/mine/issues/7/comments"
            page = int(re.findall(r"\bpage=(\d+)", query)[0])
            found = self.comments[(page - 1) * 100 : page * 100]
        elif self.command == "POST":
            assert place == "/repos/me/mine/issues/7/comments"
            self.comments.append({"id": 1000 + len(self.comments), **body})
        else:
            number = int(place.removeprefix("/repos/me/mine/issues/comments/"))
            next(one for one in self.comments if one["id"] == number).update(body)
        self.send_response(code)
        self.end_headers()
        self.wfile.write(json.dumps(found).encode())

    do_GET = do_POST = do_PATCH = answer  # noqa: N815

    def log_message(self, *_: object) -> None:
        pass


class Runner:
    """A folder with a repository, and what a runner of GitHub sets for a step."""

    def __init__(self, folder: Path, server: type[GitHub], address: str) -> None:
        self.github, self.work, self.temp = server, folder / "work", folder / "temp"
        self.summary = folder / "summary.md"
        for one in (self.work, self.temp):
            one.mkdir()
        self.write(PASSES + GATE)
        event = folder / "event.json"
        event.write_text('{"pull_request": {"number": 7}}')
        self.environment = {
            **QUIET,
            "RUNNER_TEMP": str(self.temp),
            "GITHUB_STEP_SUMMARY": str(self.summary),
            "GITHUB_EVENT_PATH": str(event),
            "GITHUB_API_URL": f"{address}/api",
            "GITHUB_SERVER_URL": "https://github.example",
            "GITHUB_REPOSITORY": "me/mine",
            "GITHUB_RUN_ID": "99",
            "GITHUB_ACTION_PATH": str(ROOT),
        }

    def write(self, options: str, rows: list[tuple[int, int, str]] | None = None) -> None:
        (self.work / "fairperm.toml").write_text(options)
        (self.work / "x.csv").write_text(as_text(sample() if rows is None else rows))

    def run(self, *, installs: Any = False, only: str = "", **inputs: str) -> tuple[int, str]:
        """Run the steps in order, up to the first that fails; return its code and the log.

        Packages are installed if asked for; ``only`` one of the steps may run.
        """
        given = {name: one["default"] for name, one in ACTION["inputs"].items()}
        known = {f"inputs.{name}": one for name, one in {**given, **inputs}.items()}
        known |= {"github.token": "secret", "steps.install.outputs.python": sys.executable}
        log = ""

        def fill(text: str) -> str:
            for _ in range(2):  # the default of an input is an expression
                text = re.sub(r"\$\{\{ (\S+?) \}\}", lambda found: known[found[1]], text)
            return text

        for step in ACTION["runs"]["steps"]:
            if only not in {"", step.get("id")}:
                continue
            if "uses" in step:
                assert re.fullmatch(r"actions/upload-artifact@[0-9a-f]{40}", step["uses"])
                assert (Path(fill(step["with"]["path"])) / "result.json").exists() or log
                continue
            if "if" in step:
                name, wanted = re.fullmatch(r"\$\{\{ (\S+) == '(.*)' \}\}", step["if"]).groups()  # type: ignore[union-attr]
                if known[name] != wanted:
                    continue
            if step.get("id") == "install" and not installs:
                continue
            assert "${{" not in step["run"], "what comes from a pull request must not be shell"
            output = self.temp / "output"
            output.write_text("")
            done = subprocess.run(
                [BASH, "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
                cwd=self.work / fill(step.get("working-directory", ".")),
                env={
                    **self.environment,
                    "GITHUB_OUTPUT": str(output),
                    **{name: fill(str(one)) for name, one in step.get("env", {}).items()},
                },
                capture_output=True,
                text=True,
                check=False,
            )
            log += done.stdout + done.stderr
            for line in output.read_text().splitlines():
                name, _, value = line.partition("=")
                known[f"steps.{step['id']}.outputs.{name}"] = value
            if done.returncode:
                return done.returncode, log
        return 0, log


@pytest.fixture
def runner(tmp_path: Path) -> Iterator[Runner]:
    handler = type("Server", (GitHub,), {"comments": [], "refuses": False})
    server = HTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield Runner(tmp_path, handler, f"http://127.0.0.1:{server.server_port}")
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_gate_that_passes_then_fails_updates_its_comment(runner: Runner) -> None:
    runner.github.comments += [{"id": i, "body": "LGTM"} for i in range(150)]
    code, log = runner.run()
    assert code == 0, log
    assert "1 comparison: 1 inconclusive" in log
    (comment,) = runner.github.comments[150:]
    assert comment["body"].startswith("<!-- fairperm: fairness -->\n## fairperm audit\n")
    assert "| g | false_positive_rate |" in comment["body"]
    assert "failed" not in comment["body"]
    assert "https://github.example/me/mine/actions/runs/99" in comment["body"]
    assert "| g | false_positive_rate |" in runner.summary.read_text()
    files = {path.name for path in (runner.temp / "fairperm-fairness").iterdir()}
    assert {"comment.md", "junit.xml", "report.html", "result.json", "table.md"} == files

    runner.write(PASSES + GATE, UNLIKE)
    code, log = runner.run()
    assert code == 1, log
    assert len(runner.github.comments) == 151
    body = runner.github.comments[150]["body"]
    assert "**disparity** ✗" in body
    assert "\n```text\nfairperm: failed: 1 of 1 comparisons (--fail-on disparity)\n" in body
    assert body.count("false_positive_rate") == 2, "the table of the terminal is not in the comment"


def test_what_cannot_be_evaluated_fails_and_says_why(runner: Runner) -> None:
    runner.write(PASSES)
    code, log = runner.run()
    assert code == 2
    said = "fairperm: error: --junit needs --fail-on, the verdicts that fail."
    assert said in log
    assert f"Nothing was tested.\n\n```text\n{said}\n" in runner.github.comments[0]["body"]
    code, log = runner.run(arguments="--fail-on disparity --metric 'no such'")
    assert (code, "no such" in runner.github.comments[0]["body"]) == (2, True)
    assert runner.run(command="demo")[0] == 1
    assert (
        "command must be one of audit, compare, selection; got 'demo'."
        in runner.run(command="demo")[1]
    )
    assert "name must be made of letters" in runner.run(name="a --> b")[1]


def test_arguments_and_a_folder_are_inputs(runner: Runner) -> None:
    (runner.work / "inner").mkdir()
    (runner.work / "my options.toml").write_text(PASSES.replace("x.csv", "../x.csv"))
    runner.write("", UNLIKE)
    asked = {"working-directory": "inner", "config": "../my options.toml", "comment": "false"}
    code, log = runner.run(**asked, arguments="--fail-on 'disparity' --margin 0.9")
    assert code == 0, log
    assert "equivalent" in log
    assert not runner.github.comments


def test_a_pull_request_from_a_fork_cannot_be_commented_on(runner: Runner) -> None:
    runner.github.refuses = True
    code, log = runner.run()
    assert code == 0
    assert "::warning::The comment cannot be written (POST was answered by 403 Forbidden)" in log
    runner.environment["GITHUB_API_URL"] = "http://127.0.0.1:9"
    assert "::warning::The comment cannot be written" in runner.run(only="comment")[1]
    Path(runner.environment["GITHUB_EVENT_PATH"]).write_text("{}")
    assert "There is no pull request to comment on." in runner.run(only="comment")[1]


def test_names_from_data_are_no_commands_to_the_runner(runner: Runner) -> None:
    group = "::error::```</details> @me"
    rows = [(y, p, f'"{group}"' if g == "a" else g) for y, p, g in UNLIKE]
    runner.write(PASSES + GATE, rows)
    code, log = runner.run()
    assert code == 1
    start, stop = re.search(r"::stop-commands::(\w+)", log), log.rindex("::error::")
    assert start is not None
    assert (
        start.start() < log.index("::error::") <= stop < log.index(f"::{start[1]}::", start.end())
    )
    body = runner.github.comments[0]["body"]
    table, _, code_block = body.partition("\n````text\n")
    assert "@me" not in table
    assert "</details>" not in table
    assert code_block.count("````") == 1


@pytest.mark.validate
def test_a_long_table_is_cut(runner: Runner) -> None:
    rows = [(y, p, f"{g}{i % 24:0>50}") for i, (y, p, g) in enumerate(sample(3000))]
    runner.write(PASSES + GATE, rows)
    runner.run()
    body = runner.github.comments[0]["body"]
    assert 60_000 < len(body.encode()) < 65_536
    assert "\n\nThis is not all: the rest is in the summary of [the run](https" in body
    assert len(runner.summary.read_text()) > len(body)


@pytest.mark.validate
def test_it_installs_from_its_own_checkout(runner: Runner) -> None:
    runner.environment["PATH"] = f"{sys.base_prefix}/bin{os.pathsep}{os.environ['PATH']}"
    for name in [*runner.environment]:
        if name.startswith("PYTHON"):
            del runner.environment[name]
    runner.write(PASSES + GATE, UNLIKE)
    code, log = runner.run(installs=True, extras="files")
    assert code == 1, log
    assert "**disparity** ✗" in runner.github.comments[0]["body"]
