"""Reports of the command line: written later from JSON, in the reader's words, and repeatable."""

from __future__ import annotations

import json
import random
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.commands import Here, as_text, sample
from tests.support.report_pages import Page

AUDIT = ("--label", "y", "--prediction", "p", "--group", "g", "--seed", "1")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Here:
    (tmp_path / "it's.csv").write_text(as_text(sample()), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return Here(tmp_path, monkeypatch)


def read(path: Path) -> str:
    return Page(path.read_text(encoding="utf-8")).text


def test_report_can_be_written_later(here: Here, tmp_path: Path) -> None:
    words: tuple[str, ...] = (
        "--title",
        "The case",
        "--author",
        "A. Author",
        "--note",
        "A note.",
        "--short",
    )
    words += ("--positive-means", "passed", "--rename", "g:a=women")
    assert here.run("audit", "it's.csv", *AUDIT, "--json", "audit.json", "-q")[0] == 0
    assert here.run("audit", "it's.csv", *AUDIT, "--report", "now.html", *words, "-q")[0] == 0
    code, out, said = here.run("report", "audit.json", *words)
    assert (code, said) == (0, "")
    assert out.split() == ["Open", "the", "report", "in", "a", "browser:", "audit.html"]
    assert read(tmp_path / "audit.html") == read(tmp_path / "now.html")
    text = read(tmp_path / "audit.html")
    for told in ("The case", "Author A. Author", "A note.", "people who passed", "women (a in"):
        assert told in text
    assert "Data it's.csv: " in text


def test_command_of_a_report_can_be_pasted(here: Here, tmp_path: Path) -> None:
    options: tuple[str, ...] = (
        *AUDIT[:-2],
        "--metric",
        "fpr",
        "--metric",
        "accuracy",
        "--margin",
        "fpr=0.1",
    )
    options += ("--adjust", "none", "--where", "g <> 'x y'", "--alpha", "0.1")
    assert here.run("audit", "it's.csv", *options, "--report", "r.html", "--json", "1.json")[0] == 0
    html = (tmp_path / "r.html").read_text(encoding="utf-8")
    (pre,) = Page(html).all("pre")
    program, *words = shlex.split(pre.text.replace("\\\n", ""))
    assert program == "fairperm"
    assert here.run(*words, "--json", "2.json")[0] == 0
    first, second = (json.loads((tmp_path / name).read_text()) for name in ("1.json", "2.json"))
    assert first == second


def test_command_of_a_sweep_can_be_pasted(here: Here, tmp_path: Path) -> None:
    options: tuple[str, ...] = (
        "--label",
        "y",
        "--score",
        "p",
        "--group",
        "g",
        "--pair",
        "b",
        "a",
        "--seed",
        "1",
    )
    options += ("--thresholds", "0.5", "--resamples", "99", "--metric", "selection_rate")
    assert here.run("sweep", "it's.csv", *options, "--report", "r.html", "--json", "1.json")[0] == 0
    (pre,) = Page((tmp_path / "r.html").read_text(encoding="utf-8")).all("pre")
    words = shlex.split(pre.text.replace("\\\n", ""))
    assert here.run(*words[1:], "--json", "2.json")[0] == 0
    assert (tmp_path / "1.json").read_text() == (tmp_path / "2.json").read_text()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--title", "x"), "--title needs --report, the file to write."),
        (("--report", "r.html", "--rename", "h:a=b"), "with a column of --group ('g')"),
        (("--report", "r.html", "--rename", "g:z=b"), "with a value of 'g' ("),
        (("--report", "r.html", "--rename", "g:a"), "--rename must be COLUMN:VALUE=NAME"),
    ],
)
def test_wrong_words_are_errors(
    here: Here, tmp_path: Path, words: tuple[str, ...], message: str
) -> None:
    code, _, said = here.run("audit", "it's.csv", *AUDIT, *words)
    assert code == 2
    assert message in said
    assert not (tmp_path / "r.html").exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "{",
            "JSON that `fairperm audit` or `fairperm compare` wrote with --json; got 'x.json'.",
        ),
        (
            "[]",
            "JSON that `fairperm audit` or `fairperm compare` wrote with --json; got 'x.json'.",
        ),
        ('{"schema": "fairperm.test"}', "FILE must be JSON that `fairperm audit` or"),
        ('{"schema": ["fairperm.audit"]}', "FILE must be JSON that `fairperm audit` or"),
        ("[" * 100_000, "FILE must be JSON that `fairperm audit` or"),
        (
            '{"schema": "fairperm.audit", "schema_version": 2, "result": {}}',
            "got 'x.json'. It was edited, or written by another version.",
        ),
        ('{"schema": "fairperm.audit"}', "FILE must be of schema_version 2; got None."),
    ],
)
def test_other_files_are_errors(here: Here, tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "x.json").write_text(text, encoding="utf-8")
    code, _, said = here.run("report", "x.json")
    assert code == 2
    assert message in said


def test_report_is_not_written_over_its_json(here: Here, tmp_path: Path) -> None:
    assert here.run("audit", "it's.csv", *AUDIT, "--json", "audit.html", "-q")[0] == 0
    before = (tmp_path / "audit.html").read_bytes()
    for report in ((), ("--report", "audit.html"), ("--report", "./audit.html")):
        code, _, said = here.run("report", "audit.html", *report)
        assert (code, "--report must be another file than the data" in said) == (2, True)
        assert (tmp_path / "audit.html").read_bytes() == before


def test_standard_input_that_is_closed(here: Here) -> None:
    here.monkeypatch.setattr("sys.stdin", None)
    code, _, said = here.run("report", "-", "--report", "x.html")
    assert (code, said) == (
        2,
        "fairperm: error: FILE '-' is standard input, but nothing is piped into it.\n",
    )


def test_options_of_an_edited_file_are_no_commands_of_a_shell(here: Here, tmp_path: Path) -> None:
    """The report shows a command that readers paste."""
    assert here.run("audit", "it's.csv", *AUDIT, "--json", "x.json", "-q")[0] == 0
    document = json.loads((tmp_path / "x.json").read_text())
    document["options"]["where"] = "'; touch pwned #"
    (tmp_path / "x.json").write_text(json.dumps(document))
    assert here.run("report", "x.json")[0] == 0
    (pre,) = Page((tmp_path / "x.html").read_text(encoding="utf-8")).all("pre")
    assert "'; touch pwned #" in shlex.split(pre.text.replace("\\\n", ""))
    document["options"]["x; touch pwned #"] = True
    (tmp_path / "x.json").write_text(json.dumps(document))
    assert "It was edited" in here.run("report", "x.json")[2]


HOSTILE: tuple[object, ...] = (
    "</script><img src=x onerror=alert(1)>",
    None,
    -1,
    1e308,
    [],
    {},
    [[1]],
    "\ud800",
    "Infinity",
)


def list_places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield every container of a document with each of its keys."""
    for key, one in value.items() if isinstance(value, dict) else enumerate(value):
        yield value, key
        if isinstance(one, (dict, list)):
            yield from list_places(one)


def test_edited_documents(here: Here, tmp_path: Path) -> None:
    """A report whose names are text, or one sentence; 30 documents, each with a part changed."""
    made = (*AUDIT, "--metric", "fpr", "--metric", "mcc", "--margin", 0.1, "--resamples", 99)
    assert here.run("audit", "it's.csv", *made, "--json", "x.json", "-q")[0] == 0
    text, endings = (tmp_path / "x.json").read_text(), []
    for seed in range(30):
        chance, document = random.Random(seed), json.loads(text)
        holder, key = chance.choice([*list_places(document)])
        holder[key] = chance.choice(HOSTILE)
        (tmp_path / "x.json").write_text(json.dumps(document))
        code, _, said = here.run("report", "x.json", "--report", f"{seed}.html")
        endings.append(code)
        if code == 0:
            page = Page((tmp_path / f"{seed}.html").read_text(encoding="utf-8"))
            n_charts = 3 if document["result"]["rows"] else 0
            assert (page.all("img"), len(page.all("script"))) == ([], n_charts)
        else:
            assert (code, said.count("\n"), "should not happen" in said) == (2, 1, False), said
    assert {*endings} == {0, 2}
