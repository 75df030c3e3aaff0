"""Logs as they are: nested fields by their path, lm-evaluation-harness, Inspect, and two logs."""

from __future__ import annotations

import json
import shutil
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from scipy import stats

from tests.support.commands import failed, run, succeeded
from tests.support.environments import run_in_environment

pytestmark = pytest.mark.filterwarnings("ignore::fairperm.FairpermWarning")
ROOT = Path(__file__).parents[2]
LOGS = Path(__file__).with_name("logs")
SETS = ("--metric", "selection_rate", "--seed", 1, "--json", "-")


def result_of(*command: object) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(succeeded(*command))
    return found["result"]  # type: ignore[no-any-return]


def read_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def mcnemar(first: Mapping[int, float], second: Mapping[int, float]) -> float:
    up = sum(first[one] > second[one] for one in first)
    down = sum(first[one] < second[one] for one in first)
    return float(stats.binomtest(up, up + down).pvalue) if up + down else 1.0


def check_logs(folder: Path) -> None:
    """Compare what the command reads in the logs with what Python reads in them."""
    for name in ("old", "new"):
        rows = read_lines(folder / f"lm_eval_{name}.jsonl")
        sides = ({one["doc"]["prompt"]: one["acc"] for one in rows if one["doc"]["group"] == group}
                 for group in ("white", "black"))  # fmt: skip
        path: tuple[object, ...] = (
            "test",
            folder / f"lm_eval_{name}.jsonl",
            "--group",
            "doc.group",
        )
        found = result_of(*path, "--prediction", "acc", "--matched", "doc.prompt", *SETS)
        assert found["pvalue"] == pytest.approx(mcnemar(*sides))
        assert sum(one["rows"] for one in found["counts"]) == len(rows) == 12
    said = failed("test", folder / "lm_eval_filters.jsonl", "--group", "doc.group",
                  "--prediction", "exact_match", "--metric", "selection_rate")  # fmt: skip
    assert "has each answer once for each filter ('strict', 'upper'). Keep one, such as" in said
    for name, n in (("inspect.eval", 6), ("inspect.json", 2)):
        path = ("test", folder / name, "--group", "metadata.group", "--matched", "metadata.prompt")
        found = result_of(*path, "--prediction", "scores.refused.value", *SETS)
        assert (found["groups"], found["values"]) == (["black", "white"], [0.5, 0.0])
        assert found["counts"] == [{"rows": n, "sets": n}] * 2
        words = ("--prediction", "scores.style.value.words", "--metric", "mean_prediction")
        asked = ("--label", "metadata.hired", *words, *SETS[2:])
        assert result_of(*path, *asked)["values"] == [1.5, 1.0]
        answer = ("--prediction", "scores.match.value", "--pos-label", "C")
        assert result_of(*path, *answer, *SETS)["values"] == [0.5, 1.0]
        sql = "SELECT *, contains(output.completion, 'sorry') AS is_sorry FROM data"
        by_sql = result_of(*path, "--sql", sql, "--prediction", "is_sorry", *SETS)
        assert by_sql["values"] == found["values"]
    epochs = ("test", folder / "inspect_epochs.eval", "--group", "metadata.group")
    refused = ("--prediction", "scores.refused.value", *SETS)
    said = failed(*epochs, *refused)
    assert 'several answers to each item (1, 2). Keep one, such as --where "epoch = 1"' in said
    one = result_of(*epochs, "--where", "epoch = 1", *refused)
    assert [each["rows"] for each in one["counts"]] == [2, 2]
    averaged = result_of(*epochs, "--matched", "metadata.prompt", *refused)
    assert averaged["counts"] == [{"rows": 4, "sets": 2}] * 2


def test_committed_logs() -> None:
    check_logs(LOGS)


@pytest.mark.validate
def test_logs_of_the_packages_of_today(tmp_path: Path) -> None:
    """In an environment of its own: pip installs the group, and both packages write their logs."""
    made = tmp_path / "logs"
    made.mkdir()
    shutil.copy(ROOT / "tests" / "support" / "make_logs.py", tmp_path)
    run_in_environment(tmp_path, "logs", tmp_path / "make_logs.py", made)
    assert {one.name for one in made.iterdir()} == {one.name for one in LOGS.iterdir()}
    check_logs(made)


def test_two_logs_are_two_models() -> None:
    old, new = LOGS / "lm_eval_old.jsonl", LOGS / "lm_eval_new.jsonl"
    rows = [(one, other["acc"]) for one, other in
            zip(read_lines(old), read_lines(new), strict=True)]  # fmt: skip
    sides = ({one["doc"]["prompt"]: acc - one["acc"] for one, acc in rows
              if one["doc"]["group"] == group} for group in ("white", "black"))  # fmt: skip
    white, black = sides
    asked: tuple[object, ...] = ("--id", "doc_hash", "--prediction", "acc", "--group", "doc.group")
    asked += ("--matched", "doc.prompt", "--min-group-size", 2, *SETS)
    document = json.loads(succeeded("compare", old, "--new", new, *asked))
    (row,) = document["result"]["rows"]
    change = sum(white[one] - black[one] for one in white) / 6
    assert row["groups"] == ["black", "white"]
    assert row["change"]["test"]["difference"] == pytest.approx(-change)
    assert [one.get("option") for one in document["inputs"]] == [None, "new"]
    assert document["options"]["new"] == str(new)


@pytest.fixture
def pair(tmp_path: Path) -> Any:
    """Write decisions before and after a change, and return the command that reads them."""

    def write(
        before: list[dict[str, Any]], after: list[dict[str, Any]], *options: object
    ) -> tuple[object, ...]:
        for name, rows in (("a", before), ("b", after)):
            text = "".join(json.dumps(one) + "\n" for one in rows)
            (tmp_path / f"{name}.jsonl").write_text(text)
        files = ("--before", tmp_path / "a.jsonl", "--after", tmp_path / "b.jsonl", "--id", "id")
        return ("flip", *files, "--prediction", "said.yes", *options)

    return write


def items(n: int, value: str, said: Any) -> list[dict[str, Any]]:
    return [{"id": i, "sex": value, "age": i % 60, "said": {"yes": said(i)}} for i in range(n)]


def test_flips_of_decisions_made_elsewhere(pair: Any) -> None:
    before = items(120, "female", lambda i: i % 3 == 0)
    after = items(120, "male", lambda i: i % 3 == 0 or (i % 60 < 20 and i % 2 == 0))
    after.reverse()
    command = pair(before, after, "--group", "sex", "--seed", 1)
    found = result_of(*command, "--feature", "age", "--json", "-")
    n = sum(i % 60 < 20 and i % 2 == 0 and i % 3 > 0 for i in range(120))
    assert (found["n"], found["n_changed"]) == (120, n)
    low, high = stats.binomtest(n, 120).proportion_ci(0.95, "exact")
    assert found["interval"] == pytest.approx([low, high])
    assert found["pairs"] == [
        {"groups": ["female", "male"], "n_changed": n, "n_higher": 0, "n_lower": n}
    ]
    assert found["test"]["pvalue"] == pytest.approx(stats.binomtest(0, n).pvalue)
    assert found["subgroups"]["listed"][0]["conditions"].keys() == {"age"}
    printed = " ".join(succeeded(*command, "--feature", "age").split())
    assert "Setting sex to female or male changes the decision for" in printed
    plain = " ".join(succeeded(*pair(before, after)).split())
    assert plain.startswith("What differs between before and after changes the decision for")
    rows = succeeded(*command, "--csv", "-").splitlines()
    assert (rows[0], len(rows)) == ("row,value,decision,changed", 241)


WHOLE = items(6, "f", lambda i: i % 2)
OTHER = items(6, "m", lambda i: i % 3 == 0)


@pytest.mark.parametrize(
    ("before", "after", "options", "says"),
    [
        (WHOLE, OTHER[:4], (), "--id must be of items that both files have; got 2 without a row"),
        (WHOLE[:4], OTHER, (), "got 2 without a row in"),
        (WHOLE, [{**one, "id": 9} for one in OTHER[:1]], (), "both files have; got none"),
        (WHOLE, OTHER + OTHER[:1], (), "one row for each item; got several of '0' in"),
        (WHOLE + WHOLE[:1], OTHER, (), "Name more columns, such as the epoch"),
        (WHOLE, [*OTHER[1:], {**OTHER[0], "id": None}], (), "--id must be without missing values"),
        (WHOLE, [*OTHER[1:], {**OTHER[0], "said": None}], (), "--after must be without missing"),
        (WHOLE, OTHER[:1], ("--missing", "drop"), "decisions on two items or more; got 1"),
        (WHOLE, WHOLE, ("--group", "sex"), "--group must be one of two values before, and the"),
        (WHOLE, [{**OTHER[0], "sex": "x"}, *OTHER[1:]], ("--group", "sex"), "'f', 'm', 'x'"),
        (WHOLE, OTHER, ("--group", "gender"), "--group must be a column of the data"),
        (WHOLE, OTHER, ("--prediction-new", "x"), "is an option of compare, not of flip"),
        (WHOLE, OTHER, ("--pos-label", "maybe"), "--pos-label must be one of the decisions"),
        (WHOLE, OTHER, ("--confidence-level", 95), "--confidence-level must be a number"),
        (WHOLE, OTHER, ("--missing", "group"), "--missing: 'group' is not one of 'error', 'drop'"),
        (WHOLE, [{"id": i, "said": "yes"} for i in range(6)], (), "--prediction must be a column"),
        (WHOLE, [{"id": i, "said": {"yes": [1]}} for i in range(6)], (), "must be made of numbers"),
        (
            WHOLE,
            [{"id": i, "said": {"yes": 1e400}} for i in range(6)],
            (),
            "64 bits cannot represent",
        ),
        (WHOLE, [{"id": i, "said": {"YES": 1}} for i in range(6)], (), "mean 'said.YES'?"),
        (
            items(6, "f", str),
            OTHER,
            ("--threshold", 0.5),
            "--before must be scores with --threshold",
        ),
    ],
)
def test_files_that_do_not_fit_are_refused(
    pair: Any, before: Any, after: Any, options: Any, says: str
) -> None:
    assert says in failed(*pair(before, after, *options))


def test_what_is_needed_is_named(tmp_path: Path) -> None:
    path = LOGS / "lm_eval_old.jsonl"
    asked = ("--prediction", "acc", "--group", "doc.group")
    assert "--id must be given with --new" in failed("compare", path, "--new", path, *asked)
    assert "--id needs --new" in failed("compare", path, "--id", "doc_id", *asked)
    assert "--before must be given: a file" in failed("flip")
    assert "--id must be given" in failed(
        "flip", "--before", path, "--after", path, "--prediction", "acc"
    )


def test_damaged_and_unended_logs_of_inspect(tmp_path: Path) -> None:
    whole = (LOGS / "inspect.eval").read_bytes()
    asked = ("--prediction", "scores.refused.value", "--group", "metadata.group", *SETS[:2])

    def read(content: bytes | str, name: str = "x.eval") -> Any:
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return run("test", path, *asked)

    at = whole.index(b"samples/") + 200
    for content in (b"no log", whole[: len(whole) // 2], whole[:at] + b"xxxx" + whole[at + 4 :]):
        done = read(content)
        assert done.returncode == 2
        assert b"cannot be read: " in done.stderr
        assert done.stderr.count(b"\n") == 1
    log = json.loads((LOGS / "inspect.json").read_text())
    done = read(json.dumps({**log, "status": "cancelled"}), "x.json")
    assert b"of a run that did not succeed (status: cancelled)" in done.stderr
    assert done.returncode == 0
    assert b"has no samples" in read(json.dumps({**log, "samples": []}), "x.json").stderr
    assert b"an object was expected" in read(json.dumps({**log, "samples": [1]}), "x.json").stderr
    with zipfile.ZipFile(tmp_path / "y.eval", "w") as archive:  # a run that was killed
        archive.writestr("_journal/start.json", json.dumps({"eval": {"task": "t", "model": "m"}}))
        for i, sample in enumerate(log["samples"]):
            archive.writestr(f"samples/{i}.json", json.dumps(sample))
    done = run("test", tmp_path / "y.eval", *asked, "--where", "task = 't' AND model = 'm'")
    assert (done.returncode, b"status: not ended" in done.stderr) == (0, True)


def test_paths_of_nested_fields(tmp_path: Path) -> None:
    rows = [
        {
            "g": {"when": "2026-01-0" + "12"[i % 2], "a.b": "xy"[i % 2], 'q"': i % 2},
            "flat.name": i % 3 == 0,
            "flat": {"name": 1, "n": [1]},
        }
        for i in range(40)
    ]
    path = tmp_path / "x.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in rows))
    asked = ("--prediction", "flat.name", *SETS)
    for column, groups in {
        "g.when": ["2026-01-01", "2026-01-02"],
        "g.a.b": ["x", "y"],
        'g.q"': [0, 1],
    }.items():
        found = result_of("test", path, "--group", column, *asked)
        assert found["groups"] == groups  # a date stays text
        assert found["values"] != [1, 1]
    assert "Did you mean 'g.when'?" in failed("test", path, "--group", "g.then", *asked)
    assert "--group (column 'flat.n') must be" in failed("test", path, "--group", "flat.n", *asked)
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "x.parquet")
    found = result_of("test", tmp_path / "x.parquet", "--group", "g.when", *asked)
    assert found["groups"] == ["2026-01-01", "2026-01-02"]
    long = "".join(f'{{"g": {{"n": 1234567890123456789012{i % 2}}}, "p": 1}}\n' for i in range(9))
    path.write_text(long)
    said = failed("test", path, "--group", "g.n", "--prediction", "p", *SETS)
    assert "column 'g.n' has a number that 64 bits cannot represent" in said
