"""The fenced blocks of Markdown pages, and how each language is run."""

from __future__ import annotations

import doctest
import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from fairperm import spark_job
from fairperm._utils.progress import COMPILING
from tests.support import commands

_FENCE = re.compile(
    r"^(?P<indent>[ \t]*)(?P<fence>`{3,}|~{3,})[ \t]*(?P<language>[\w+-]*)(?P<rest>[^\n]*)\n"
    r"(?P<body>.*?)^(?P=indent)(?P=fence)[ \t]*$",
    re.MULTILINE | re.DOTALL,
)
_TITLE = re.compile(r'title="([^"]+)"')
_SHELL = re.compile(r"[|;&<>$`*?~\\]")  # what means more to a shell than itself
_FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE

# Commands that pages show and that are run elsewhere, and where: nothing else is left out.
RUN_ELSEWHERE = {
    "pip install": "tests/project/test_release.py installs the wheel into a clean environment",
    "git clone": "the tests run in a clone",
    "make": "these are the commands that run the tests, the benchmarks and the site",
    "spark-submit": "tests/test_spark_job.py runs the job",
    "python -m fairperm.spark_job": "tests/test_spark_job.py runs the job",
    "python -m scripts.mitigation": "tests/project/test_mitigation.py, with the data",
    "fairperm demo": "tests/cli/test_main.py",
}


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, the file it is meant to be in, if any, and its text."""

    language: str
    title: str | None
    text: str
    line: int

    def run(self, namespace: dict[str, Any], page: str) -> None:
        """Do with the block what a reader does, in the current folder."""
        if self.title is not None:
            Path(self.title).parent.mkdir(parents=True, exist_ok=True)
            Path(self.title).write_text(self.text)
        if self.language not in _RUNNERS:
            raise AssertionError(f"{page}:{self.line}: no way to run {self.language or 'plain'!r}")
        _RUNNERS[self.language](self, namespace, page)


def blocks(page: Path) -> list[Block]:
    """Return the fenced blocks of a page, in order."""
    text = page.read_text(encoding="utf-8")
    found = []
    for match in _FENCE.finditer(text):
        indent, title = len(match["indent"]), _TITLE.search(match["rest"])
        lines = [line[indent:] for line in match["body"].splitlines()]
        found.append(
            Block(
                language=match["language"],
                title=title[1] if title else None,
                text="\n".join([*lines, ""]),
                line=text.count("\n", 0, match.start()) + 1,
            )
        )
    return found


def _python(block: Block, namespace: dict[str, Any], page: str) -> None:
    if ">>>" not in block.text:
        if block.title is None:  # else it is a file, which a command runs
            exec(compile("\n" * block.line + block.text, page, "exec"), namespace)  # noqa: S102
        return
    test = doctest.DocTestParser().get_doctest(block.text, namespace, page, page, block.line)
    test.globs = namespace  # the parser makes a copy
    said: list[str] = []
    runner = doctest.DocTestRunner(optionflags=_FLAGS)
    runner.run(test, out=said.append, clear_globs=False)
    assert not said, "".join(said)


def _shell(block: Block, _: dict[str, Any], page: str) -> None:
    """Run the commands after ``$``, and compare what they print with what the page says."""
    for command, expected in _commands(block.text):
        if any(command.startswith(start) for start in RUN_ELSEWHERE):
            continue
        done = _run(command)
        place = f"{page}:{block.line}: {command}\n{done.stdout}"
        fails = re.search(r"# exit code (\d+)", command)
        assert done.returncode == (int(fails[1]) if fails else 0), place
        checker = doctest.OutputChecker()
        assert not expected or checker.check_output(expected, done.stdout, _FLAGS), place


def _commands(text: str) -> list[tuple[str, str]]:
    """Return each command, its continued lines joined, with the output that follows it."""
    found: list[tuple[str, str]] = []
    for line in text.replace("\\\n", " ").splitlines(keepends=True):
        if line.startswith("$ "):
            found.append((line[2:].strip(), ""))
        elif found:
            found[-1] = (found[-1][0], found[-1][1] + line)
        elif line.strip():
            raise AssertionError(f"a console block begins with '$ ', not with {line!r}")
    return found


def _run(command: str) -> subprocess.CompletedProcess[str]:
    """Run a command as bash does; fairperm's own, if that is all, in this process."""
    summary = "summary.md"
    if command.startswith("fairperm ") and not _SHELL.search(command):
        done = commands.run(
            *shlex.split(command, comments=True)[1:], COLUMNS="120", GITHUB_STEP_SUMMARY=summary
        )
        said = (done.stdout + done.stderr).decode()
        return subprocess.CompletedProcess(command, done.returncode, said)
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    shell = subprocess.run(
        ["bash", "-ec", command],  # noqa: S607 (whichever bash there is)
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PATH": path, "COLUMNS": "120", "GITHUB_STEP_SUMMARY": summary},
        timeout=120,
        check=False,
    )
    shell.stdout = shell.stdout.replace(f"{COMPILING}\n", "")  # which a first run says
    return shell


def _yaml(block: Block, _: dict[str, Any], page: str) -> None:
    """Parse it, and run the fairperm commands of a workflow's steps."""
    for script in scripts(yaml.safe_load(block.text)):
        for command in script.replace("\\\n", " ").splitlines():
            if command.startswith("fairperm "):
                done = _run(command)
                assert done.returncode in {0, 1}, f"{page}:{block.line}: {done.stdout}"


def scripts(node: Any) -> list[str]:
    """Return the shell scripts of a workflow of GitHub, GitLab or Azure."""
    if isinstance(node, dict):
        own = [node[name] for name in ("run", "script") if name in node]
        texts = ["\n".join(one) if isinstance(one, list) else str(one) for one in own]
        return texts + [one for value in node.values() for one in scripts(value)]
    return [one for value in node for one in scripts(value)] if isinstance(node, list) else []


def _toml(block: Block, _: dict[str, Any], page: str) -> None:
    """Parse it, and check the settings of a Spark job."""
    settings = tomllib.loads(block.text)
    if {"input", "output"} & {*settings}:
        spark_job._check_config(settings)
        spark_job._find_outputs(settings["output"])


def _json(block: Block, _: dict[str, Any], page: str) -> None:
    json.loads(block.text)


def _text(block: Block, _: dict[str, Any], page: str) -> None:
    """Check that a block which is only shown (output, a formula, a chart) hides no command."""
    hidden = re.search(r"(?m)^(\$ |>>> |import |from \w+ import |fairperm \w+ -)", block.text)
    assert hidden is None, f"{page}:{block.line}: code in a block of text: {hidden and hidden[0]!r}"


_RUNNERS = {
    "python": _python,
    "py": _python,
    "console": _shell,
    "yaml": _yaml,
    "toml": _toml,
    "json": _json,
    "text": _text,
    "mermaid": _text,
}
