"""The steps of the GitHub Action: ``python -m fairperm.integrations.github test`` or ``comment``.

``action.yml`` sets what is read here from the environment.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shlex
import subprocess
import sys
from itertools import count
from pathlib import Path
from typing import Any, NoReturn
from urllib import error, request

_COMMANDS = ("audit", "compare", "selection")
_NAME = re.compile(r"[\w-]+", re.ASCII)
_MAX_SUMMARY, _MAX_COMMENT = 1 << 20, 1 << 16  # bytes; GitHub refuses more
_RESERVED_BYTES = 1 << 10  # for what is said about the rest
_PER_PAGE = 100
_SECONDS = 30


def test() -> None:
    """Run the command; keep its exit code, its files and the text of the comment."""
    command, name = os.environ["FAIRPERM_COMMAND"], _read_name()
    if command not in _COMMANDS:
        _refuse("command", f"one of {', '.join(_COMMANDS)}", command)
    folder = Path(os.environ["RUNNER_TEMP"]) / f"fairperm-{name}"
    folder.mkdir(exist_ok=True)
    files = {"markdown": "table.md", "report": "report.html", "json": "result.json"}
    files["junit"] = "junit.xml"  # which is refused without verdicts that fail
    for one in files.values():  # of an earlier step of this name
        (folder / one).unlink(missing_ok=True)
    given = os.environ.get("FAIRPERM_CONFIG", "")
    arguments = [*(["--config", given] if given else [])]
    arguments += shlex.split(os.environ.get("FAIRPERM_ARGUMENTS", ""))
    for option, file in files.items():
        arguments += [f"--{option}", str(folder / file)]
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-P", "-m", "fairperm", command, *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        errors="backslashreplace",
        check=False,
    )
    _log(f"{done.stdout}{done.stderr}")
    table = folder / files["markdown"]
    text = f"## fairperm {command}\n\n"
    text += table.read_text(encoding="utf-8") if table.exists() else "Nothing was tested.\n"
    if done.returncode:
        at = done.stderr.find("fairperm: failed: " if done.returncode == 1 else "fairperm: error: ")
        text += "\n" + _fence(done.stderr[max(at, 0) :].rstrip())
    _append("GITHUB_STEP_SUMMARY", _cut(text, _MAX_SUMMARY, "report"))
    (folder / "comment.md").write_text(text, encoding="utf-8")
    _append("GITHUB_OUTPUT", f"code={done.returncode}\nfolder={folder}\n")


def comment() -> None:
    """Write the table to the pull request: one comment of this name, which is updated."""
    name = _read_name()
    folder = Path(os.environ["RUNNER_TEMP"]) / f"fairperm-{name}"
    event = json.loads(Path(os.environ["GITHUB_EVENT_PATH"]).read_text(encoding="utf-8"))
    number = (event.get("pull_request") or {}).get("number")
    if number is None:
        print("There is no pull request to comment on.")
        return
    marker = f"<!-- fairperm: {name} -->"
    server, repository = os.environ["GITHUB_SERVER_URL"], os.environ["GITHUB_REPOSITORY"]
    run = f"{server}/{repository}/actions/runs/{os.environ['GITHUB_RUN_ID']}"
    text = f"{marker}\n{(folder / 'comment.md').read_text(encoding='utf-8')}"
    body = _cut(text, _MAX_COMMENT, f"summary of [the run]({run})")
    body += f"\nThe report is among the artifacts of [the run]({run}).\n"
    issues = f"/repos/{repository}/issues"
    try:
        known = _find_comment(f"{issues}/{int(number)}/comments", marker)
        if known is None:
            _call("POST", f"{issues}/{int(number)}/comments", {"body": body})
        else:
            _call("PATCH", f"{issues}/comments/{known}", {"body": body})
    except (OSError, ValueError) as failure:  # an URLError is an OSError
        print(
            f"::warning::The comment cannot be written ({failure}). Does the job have "
            "`permissions: pull-requests: write`? The table is in the summary of the run."
        )


def _find_comment(path: str, marker: str) -> int | None:
    """Return the number of the comment that begins with the marker."""
    for page in count(1):
        found = _call("GET", f"{path}?per_page={_PER_PAGE}&page={page}")
        for one in found:
            if str(one.get("body", "")).startswith(marker):
                return int(one["id"])
        if len(found) < _PER_PAGE:
            break
    return None


def _call(method: str, path: str, content: object = None) -> Any:
    """Return what the API of GitHub answers."""
    asked = request.Request(  # noqa: S310
        os.environ["GITHUB_API_URL"].rstrip("/") + path,
        method=method,
        data=None if content is None else json.dumps(content).encode(),
        headers={
            "Authorization": f"Bearer {os.environ['GITHUB_TOKEN']}",
            "Accept": "application/vnd.github+json",
            "Content-Type": "application/json",
        },
    )
    try:
        with request.urlopen(asked, timeout=_SECONDS) as answer:  # noqa: S310
            return json.load(answer)
    except error.HTTPError as failure:
        raise OSError(f"{method} was answered by {failure.code} {failure.reason}") from failure


def _read_name() -> str:
    name = os.environ["FAIRPERM_NAME"]
    if not _NAME.fullmatch(name):
        _refuse("name", "made of letters, digits, - and _", name)
    return name


def _refuse(what: str, rule: str, got: str) -> NoReturn:
    sys.exit(f"fairperm: error: {what} must be {rule}; got {got!r}.")


def _log(text: str) -> None:
    """Print a text in which no line is a command to the runner: names in it come from data."""
    token = secrets.token_hex()
    print(f"::stop-commands::{token}\n{text.rstrip()}\n::{token}::", flush=True)


def _fence(text: str) -> str:
    """Return a text as a block of code that nothing inside it ends."""
    longest = max((len(one) for one in re.findall("`+", text)), default=0)
    mark = "`" * max(3, longest + 1)
    return f"{mark}text\n{text}\n{mark}\n"


def _cut(text: str, limit: int, where: str) -> str:
    """Return a text without its last lines if it is too long, and where the rest is."""
    content = text.encode()
    if len(content) <= limit - _RESERVED_BYTES:
        return text
    kept = content[: limit - _RESERVED_BYTES].decode(errors="ignore").rpartition("\n")[0]
    return f"{kept}\n\nThis is not all: the rest is in the {where}.\n"


def _append(variable: str, text: str) -> None:
    with Path(os.environ[variable]).open("a", encoding="utf-8") as file:
        file.write(text)


if __name__ == "__main__":
    {"test": test, "comment": comment}[sys.argv[1]]()
