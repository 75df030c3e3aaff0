"""The installed command: exit codes, what goes where, pipes, terminals and locales."""

from __future__ import annotations

import hashlib
import json
import os
import pty
import re
import resource
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

import fairperm
from fairperm.cli import main
from fairperm.cli.options import ARGUMENTS
from tests.support.commands import (
    COMMAND,
    QUIET,
    as_text,
    cells,
    failed,
    run,
    sample,
    start,
    succeeded,
)

if TYPE_CHECKING:
    from pathlib import Path

    from fairperm.cli.command import Command

COLUMNS = ("--label", "y", "--prediction", "p", "--group", "g")
UNLIKE = [(1, 1, "a")] * 90 + [(1, 0, "a")] * 10 + [(1, 1, "b")] * 50 + [(1, 0, "b")] * 50


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("cli") / "plain.csv"
    path.write_text(as_text(sample()))
    return path


@pytest.fixture(scope="module")
def unlike(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("cli") / "unlike.csv"
    path.write_text(as_text(UNLIKE))
    return path


def test_help_names_every_command_and_is_fast() -> None:
    times = []
    for _ in range(4):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        said = start("--help").stdout.decode()
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    names = "audit selection compare test sweep discover ranking periods power metrics demo"
    for name in names.split():
        assert re.search(rf"\b{name}\b", said)
    assert min(times) < 1.0  # seconds of work; it takes about 0.2


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys; sys.argv = ['fairperm', '--help']\n"
        "from fairperm.cli.main import main\n"
        "try: main()\n"
        "except SystemExit: print('LOADED', *sys.modules)"
    )
    python = COMMAND.with_name("python")
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split("LOADED")[1].split())
    assert loaded.isdisjoint({"numpy", "scipy", "duckdb", "pyarrow", "narwhals", "altair"})


@pytest.mark.parametrize("command", main.app.commands.values(), ids=str)
def test_help_fits_two_screens_and_lists_every_option(command: Command) -> None:
    said = succeeded(command.name, "--help", COLUMNS="80").splitlines()
    assert len(said) <= 48
    assert max(map(len, said)) <= 80
    has_more = any("--help-all" in one for one in said)
    whole = succeeded(command.name, "--help-all" if has_more else "--help", COLUMNS="80")
    for one in command.options:
        assert one.name in ARGUMENTS or f"{one.spelt} " in whole.replace("\n", " ")
        assert one.name in ARGUMENTS or one.spelt in "\n".join(said)
    assert max(map(len, whole.splitlines())) <= 80


def test_options_may_be_called_as_in_python(plain: Path) -> None:
    ours = ("--label", "y", "--prediction", "p", "--group", "g", "--resamples", 9, "--seed", 1)
    names = ("--y-true", "--y-pred", "--sensitive-features", "--n-resamples", "--rng")
    theirs = [x for name, value in zip(names, ours[1::2], strict=True) for x in (name, value)]
    assert succeeded("audit", plain, *ours) == succeeded("audit", plain, *theirs)


def test_the_shell_completes_metrics_and_leaves_files_to_itself() -> None:
    asked: dict[str, Any] = {"_FAIRPERM_COMPLETE": "bash_complete", "COMP_CWORD": "3"}
    for words, expected in (
        ("fairperm audit --metric true_", b"plain,true_positive_rate\nplain,true_negative_rate\n"),
        ("fairperm audit --report a", b"file,a\n"),
        ("fairperm audit --fail-on disp", b"plain,disparity\n"),
    ):
        assert start(COMP_WORDS=words, **asked).stdout == expected


def test_version() -> None:
    assert re.fullmatch(rb"fairperm \d+\.\d+\.\d+\S*\n", start("--version").stdout)


def test_table_says_it_in_words(plain: Path) -> None:
    said = succeeded("audit", plain, *COLUMNS, "--seed", 1)
    assert "3 comparisons: " in said
    assert "false_positive_rate" in said
    assert "inconclusive" in said
    assert "Seed 1" in said
    assert "\x1b" not in said


def test_quiet_prints_nothing(plain: Path) -> None:
    done = start("audit", plain, *COLUMNS, "--quiet")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@pytest.mark.parametrize("columns", ["40", "72"])
def test_narrow_and_wide_terminals(plain: Path, columns: str) -> None:
    said = succeeded("audit", plain, *COLUMNS, "--metric", "fpr", COLUMNS=columns)
    assert max(map(len, said.splitlines())) <= max(40, int(columns))
    assert "inconclusive" in said.replace("\n", "")


def test_long_names_on_narrow_terminals(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text(as_text(sample()).replace("a\n", "a name of many words and letters\n"))
    said = succeeded("audit", path, *COLUMNS, "--metric", "fpr", COLUMNS="32")
    assert max(map(len, said.splitlines())) <= 32
    assert "name of many words and letters" in " ".join(said.split())


@pytest.mark.parametrize(
    "environment",
    [
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        {"PYTHONIOENCODING": "ascii"},
        {"PYTHONIOENCODING": "latin-1"},
    ],
)
def test_screens_that_know_no_unicode(tmp_path: Path, environment: dict[str, Any]) -> None:
    path = tmp_path / "x.csv"
    path.write_text(as_text(sample()).replace("a\n", "日本\n"), encoding="utf-8")
    done = start("audit", path, *COLUMNS, "--metric", "fpr", **environment)
    assert done.returncode == 0, done.stderr
    said = done.stdout.decode("ascii" if "ascii" in environment.values() else "latin-1")
    assert "\n  b − \\u65e5\\u672c " in said.replace(" - ", " − ").replace("\\u2212", "−")
    if environment == {"PYTHONIOENCODING": "ascii"}:
        assert start("audit", "--help", **environment).returncode == 0
        assert start("metrics", **environment).returncode == 0


def in_terminal(*arguments: object, **environment: str) -> str:
    """Return what the command shows on a terminal."""
    leader, follower = pty.openpty()
    with subprocess.Popen(
        [COMMAND, *map(str, arguments)],
        stdout=follower,
        stderr=follower,
        stdin=subprocess.DEVNULL,
        env={**QUIET, "TERM": "xterm-256color", **environment},
    ):
        os.close(follower)
        shown = b""
        while True:
            try:
                block = os.read(leader, 65536)
            except OSError:
                break
            if not block:
                break
            shown += block
    os.close(leader)
    return shown.decode()


def test_colour_on_terminals_unless_unwanted(unlike: Path) -> None:
    arguments = ("audit", unlike, *COLUMNS, "--metric", "selection_rate")
    assert "\x1b[1;31mdisparity" in in_terminal(*arguments)
    assert not re.search(r"\x1b\[[\d;]*3\dm", in_terminal(*arguments, NO_COLOR="1"))


def test_broken_pipe_is_no_accident(plain: Path) -> None:
    with subprocess.Popen(
        [COMMAND, "metrics"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=QUIET
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141


def test_files_are_written_though_nobody_reads_the_table(unlike: Path, tmp_path: Path) -> None:
    arguments = ["audit", unlike, *COLUMNS, "--csv", tmp_path / "x.csv"]
    with subprocess.Popen(
        [COMMAND, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=QUIET
    ) as process:
        assert process.stdout is not None
        process.stdout.close()
    assert process.returncode == 141
    assert len(cells((tmp_path / "x.csv").read_text())) > 0


def test_places_of_files_are_checked_before_any_work(tmp_path: Path) -> None:
    for command in ("audit", "test", "sweep"):
        said = failed(command, tmp_path / "none.csv", "--json", tmp_path / "no" / "x.json")
        assert "the folder" in said
    assert "is a folder" in failed("power", "--json", tmp_path)


def _hear() -> None:
    """Listen to Ctrl-C: what a shell starts in the background is deaf to it, and its children."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


WORKING = """
import sys
from fairperm.cli.main import main
from fairperm.engines.resampling import blocks

def announced(*arguments, run=blocks._run_block):
    sys.stdout.write("working\\n")
    sys.stdout.flush()
    return run(*arguments)

blocks._run_block = announced
main()
"""


def test_interrupt_ends_without_traceback(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text(as_text([(i % 2, i % 97, "ab"[i % 3 > 1]) for i in range(20_000)]))
    arguments = ("--label", "y", "--score", "p", "--group", "g", "--metric", "roc_auc")
    with subprocess.Popen(
        [sys.executable, "-c", WORKING, "audit", path, *arguments, "--resamples", "90000000"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=QUIET,
        preexec_fn=_hear,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"working\n"
        process.send_signal(signal.SIGINT)
        try:
            _, said = process.communicate(timeout=60)
        finally:
            process.kill()
    assert b"Traceback" not in said
    assert process.returncode == 130, said


def test_errors_are_one_sentence(plain: Path) -> None:
    assert "Did you mean 'plain.csv'?" in failed("audit", plain.with_name("plan.csv"), *COLUMNS)
    wrong = failed("audit", plain, "--label", "yy", "--prediction", "p", "--group", "g")
    assert wrong.startswith("--label must be a column of the data; got 'yy'. Did you mean 'y'?")
    assert "Did you mean 'roc_auc'?" in failed("audit", plain, *COLUMNS, "--metric", "rocauc")
    assert "--prediction or --score must be given" in failed("audit", plain, "--group", "g")
    assert "--bogus" in failed("audit", plain, "--bogus")
    said = failed("ranking", plain, "--fail-on", "disparity")
    assert said.startswith(
        "--fail-on is an option of audit, selection, compare, periods and monitor, not of ranking"
    )
    assert "'bogus'" in failed("bogus")
    assert "'audit'? `fairperm --help` lists the options." in failed("audt")
    assert "FILE must be given" in failed("audit")
    assert "'by', 'none'; got 'bonf'" in failed("audit", plain, *COLUMNS, "--adjust", "bonf")
    said = failed("audit", plain, *COLUMNS, "--adjust", "maxt")
    assert "'by', 'none'; got 'maxt'. Max-T over metrics" in said
    assert said.endswith("Use --adjust holm.")
    assert "--alpha must be a number strictly" in failed("audit", plain, *COLUMNS, "--alpha", 5)
    assert "--margin must be a number" in failed("audit", plain, *COLUMNS, "--margin", "x")
    assert "does not exist" in failed("audit", plain, *COLUMNS, "-q", "--csv", "/nowhere/x.csv")
    said = failed("audit", plain, *COLUMNS, "--seed", "abc")
    assert said.startswith("--seed must be a whole number; got 'abc'. `fairperm audit --help`")
    said = failed("audit", plain, *COLUMNS, "--fail-on", "ratio")
    assert said.startswith("--fail-on ratio needs --ratio")
    said = failed("audit", plain, *COLUMNS, "--fail-on", "disparities")
    assert "'disparities' is not one of 'disparity', 'inconclusive', 'too-small', 'ratio'" in said
    assert "Value error" not in said
    assert "`fairperm test --help`" in failed("test", plain, "--pair", "a")
    assert failed("metrics", "nope").startswith("NAME must be one that `fairperm metrics` lists")
    said = failed("audit", plain, *COLUMNS, "--margin", "acc=0.1", "--metric", "fpr")
    assert said.startswith("--margin must be given for metrics of the audit (")
    said = failed("audit", plain, "--prediction", "p", "--group", "g", "--metric", "fpr")
    assert said.startswith("--label must be given for false_positive_rate: the column of true")
    said = failed("audit", plain, *COLUMNS, "--threshold", 5)
    assert "--threshold cannot be used with --prediction: it only turns --score into" in said


@pytest.mark.parametrize("command", ["test", "ranking", "sweep"])
def test_an_option_for_one_value_is_given_once(command: str, plain: Path) -> None:
    said = failed(command, plain, "--group", "g", "--group", "y")
    assert said.startswith(f"--group must be given only once. `fairperm {command} --help`")


def test_several_values_switches_and_help_may_be_repeated(plain: Path) -> None:
    succeeded("audit", plain, *COLUMNS, "--metric", "fpr", "--metric", "fnr", "--quiet", "--quiet")
    assert "Usage:" in succeeded("test", plain, "--group", "g", "--group", "y", "--help")


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("ks", "It is a distance: pass --distance ks to `fairperm audit`."),
        ("ndcg", "It is a metric of rankings: pass --ranking ndcg to `fairperm audit`."),
        ("pinball_loss@0.9", "A quantile between 0 and 1 is written as in 'pinball_loss(0.9)'."),
        ("atkinson_index(1)", "in Python, pass fairperm.metrics.atkinson_index(…) as the metric."),
        ("ovr", "Did you mean 'roc_auc_ovr'?"),
    ],
)
def test_names_that_are_no_metrics_of_rows(name: str, hint: str, plain: Path) -> None:
    assert failed("audit", plain, *COLUMNS, "--metric", name).endswith(hint)


def test_decisions_need_no_labels(plain: Path) -> None:
    given = ("--prediction", "p", "--group", "g", "--json", "-")
    alone = json.loads(run("audit", plain, *given).stdout)["result"]
    labelled = json.loads(run("audit", plain, "--label", "y", *given).stdout)["result"]
    expected = [row for row in labelled["rows"] if row["metric"] == "selection_rate"]
    assert [row["test"]["pvalue"] for row in alone["rows"]] == [
        row["test"]["pvalue"] for row in expected
    ]
    one = run("test", plain, *given, "--metric", "selection_rate").stdout
    assert json.loads(one)["result"]["values"] == expected[0]["test"]["values"]


def test_the_four_fifths_rule(unlike: Path, plain: Path) -> None:
    given = ("audit", unlike, *COLUMNS, "--metric", "selection_rate", "--ratio", 0.8)
    done = run(*given, "--fail-on", "ratio", "--markdown", "-")
    assert done.returncode == 1
    assert " > 1.25, not met |" in done.stdout.decode()
    assert " > 1.25, not met\n" in done.stderr.decode()
    slight = ("audit", plain, *COLUMNS, "--metric", "selection_rate", "--ratio", 0.99)
    assert run(*slight, "--fail-on", "ratio").returncode == 0
    done = run(*slight, "--fail-on", "ratio-estimate", "-q")
    assert done.returncode == 1
    assert ", undecided\n" in done.stderr.decode()
    said = failed(*given[:-1], "1.2")
    assert said.startswith("--ratio must be a number strictly between 0 and 1; got 1.2")


@pytest.mark.parametrize(
    ("options", "function", "given"),
    [
        (["--ratio", 0.8], "equivalence_test", {"ratio": 0.8}),
        (["--margin", 0.1], "equivalence_test", {"margin": 0.1}),
        (["--ratio", 0.8, "--better", "higher"], "noninferiority", {"ratio": 0.8}),
        (
            ["--margin", 0.1, "--better", "lower"],
            "noninferiority",
            {"margin": 0.1, "higher_is_better": False},
        ),
    ],
)
def test_margins(plain: Path, options: list[Any], function: str, given: dict[str, Any]) -> None:
    asked = ("test", plain, *COLUMNS, "--metric", "selection_rate", *options)
    found = json.loads(run(*asked, "--json", "-").stdout)["result"]
    label, said, group = zip(*sample(), strict=True)
    expected = getattr(fairperm, function)(
        label, said, sensitive_features=group, metric="selection_rate", **given
    )
    assert found["pvalue"] == expected.pvalue
    assert "established" in run(*asked).stdout.decode()
    said_no = failed(*asked, "--alternative", "less")
    assert said_no == "--alternative cannot be used with --margin or --ratio, which decide it."


def test_sweeps_of_all_pairs_of_groups(tmp_path: Path) -> None:
    path, page = tmp_path / "x.csv", tmp_path / "sweeps.html"
    rows = [(i % 2, (i * 37 % 100) / 100, "abc"[i % 3]) for i in range(300)] + [(1, 0.5, "d")]
    path.write_text("\n".join(["y,s,g", *(",".join(map(str, row)) for row in rows)]))
    given = (
        *("sweep", path, "--label", "y", "--score", "s", "--group", "g", "--metric", "fpr"),
        *("--thresholds", 5, "--resamples", 49, "--seed", 1),
    )
    found = json.loads(run(*given, "--json", "-", "--report", page).stdout)["result"]
    assert [one["groups"] for one in found["sweeps"]] == [["a", "b"], ["a", "c"], ["b", "c"]]
    assert {one["alpha"] for one in found["sweeps"]} == {0.05 / 6}
    assert found["alpha"] == 0.05
    assert set(found["not_swept"]) == {"a − d", "b − d", "c − d"}
    text = page.read_text(encoding="utf-8")
    pair = ("--pair", "a", "c", "--alpha", 0.05 / 6, "--report", page)
    one = json.loads(run(*given, *pair, "--json", "-").stdout)
    assert one["result"] == found["sweeps"][1]
    assert "--pair a c" in page.read_text(encoding="utf-8")
    assert text.count("<h3>") == 3
    assert "0.0083 for each of them" in text
    assert "was not tested" in text
    told = run(*given).stdout.decode()
    assert "level 0.05 for all 6 pairs together: 0.0083 for each" in " ".join(told.split())
    table = run(*given, "--csv", "-").stdout.decode()
    assert table.startswith("first_group,second_group,metric,threshold")


def test_gate(unlike: Path, tmp_path: Path) -> None:
    arguments = ("audit", unlike, *COLUMNS, "--metric", "selection_rate", "--metric", "base_rate")
    assert run(*arguments).returncode == 0
    assert run(*arguments, "--fail-on", "too-small").returncode == 0
    done = run(*arguments, "--fail-on", "disparity", "--quiet", "--markdown", tmp_path / "x.md")
    assert done.returncode == 1
    said = done.stderr.decode()
    assert said.startswith("fairperm: failed: 1 of 2 comparisons (--fail-on disparity)\n")
    assert "disparity: g, selection_rate, a − b, gap +0.400, adjusted p" in said
    assert "**disparity**" in (tmp_path / "x.md").read_text()
    margin = run(*arguments, "--margin", 0.1, "--fail-on", "disparity", "-q", "--markdown", "-")
    assert "adjusted p < 0.0001, beyond the margin of 0.1 adjusted p" in margin.stderr.decode()
    assert "| adjusted p | p beyond | p within |" in margin.stdout.decode()
    alone = run(*arguments, "--margin", 0.1, "--adjust", "none", "--fail-on", "disparity")
    assert ", p < 0.0001, beyond the margin of 0.1 p < 0.0001" in alone.stderr.decode()
    assert "P beyond and p within are the p-values of these two tests." in " ".join(
        alone.stdout.decode().split()
    )
    wide = run(*arguments, "--margin", 0.35, "--fail-on", "disparity", "-q")  # the gap is 0.4
    assert wide.returncode == 0
    many = ("--fail-on", "inconclusive", "--fail-on", "disparity", "-q")
    assert run(*arguments, *many).stderr.count(b"\n") == 3
    small = run(*arguments, "--min-group-size", 1000, "--fail-on", "too-small", "-q")
    assert small.returncode == 1


def test_json_is_enough_to_run_it_again(plain: Path, tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    succeeded("audit", plain, *COLUMNS, "--margin", 0.1, "--json", path, "-q")
    document = json.loads(path.read_text())
    assert document["schema"] == "fairperm.audit"
    assert document["schema_version"] == 2
    assert document["versions"]["fairperm"]
    assert document["versions"]["numpy"]
    assert document["versions"]["python"]
    assert document["rows_read"] == 300
    (described,) = document["inputs"]
    assert described["sha256"] == hashlib.sha256(plain.read_bytes()).hexdigest()
    options = document["options"]
    assert options["seed"] == document["result"]["seed"]
    again = [
        item
        for name, value in options.items()
        if value is not False
        for one in (value if isinstance(value, list) else [value])
        for item in (f"--{name.rstrip('_').replace('_', '-')}", one)
    ]
    second = json.loads(succeeded("audit", described["path"], *again, "--json", "-"))
    assert second["result"] == document["result"]


def test_csv_has_every_digit(plain: Path) -> None:
    rows = sample()
    labels, predictions, groups = ([row[i] for row in rows] for i in range(3))
    audit = fairperm.audit(
        labels, predictions, sensitive_features=groups, metrics=["fpr", "f1_score"], rng=3
    )
    found = cells(
        succeeded(
            *("audit", plain, *COLUMNS, "--metric", "fpr", "--metric", "f1_score"),
            *("--seed", 3, "--csv", "-"),
        )
    )
    for row, printed in zip(audit.rows, found, strict=True):
        for name, value in row.cells().items():
            if name not in {"attribute"}:
                assert printed[name] == ("" if value is None else str(value))


def test_only_one_output_can_be_printed(plain: Path) -> None:
    said = failed("audit", plain, *COLUMNS, "--csv", "-", "--json", "-")
    assert said == "only one of --json and --csv can be '-', standard output."


def test_markdown_shows_names_as_they_are(tmp_path: Path) -> None:
    hostile = {"a": "<script>|x|", "b": "@someone #1 `c` [l](http://x.y) *b* __u__"}
    path = tmp_path / "x.jsonl"
    path.write_text(
        "".join(json.dumps({"y": y, "p": p, "g": hostile[g]}) + "\n" for y, p, g in sample())
    )
    said = succeeded("audit", path, *COLUMNS, "--metric", "fpr", "--markdown", "-")
    answer, *_, row = (line for line in said.splitlines() if "script" in line)
    assert row.count("|") == 10
    for line in (answer, row):
        for mark in "<>@#`[]":
            assert mark not in line.replace("&#", "")
        assert "://" not in line


def test_test_command(plain: Path) -> None:
    said = succeeded("test", plain, *COLUMNS, "--metric", "fnr", "--pair", "b", "a")
    assert "false negative rate is " in said.splitlines()[0]
    assert "Seed" not in said  # every permutation was counted
    drawn = succeeded("test", plain, *COLUMNS, "--metric", "mcc", "--seed", 4)
    assert "Seed 4: the same --seed gives the same numbers again." in drawn
    assert "--metric must be given" in failed("test", plain, *COLUMNS)
    document = json.loads(succeeded("test", plain, *COLUMNS, "--metric", "fnr", "--json", "-"))
    assert document["schema"] == "fairperm.test"


def test_sweep_command(tmp_path: Path) -> None:
    path = tmp_path / "compas.csv"
    fairperm.datasets.load_compas("pandas").to_csv(path, index=False)
    arguments = ("--label", "two_year_recid", "--score", "decile_score", "--group", "sex")
    options = ("--metric", "tpr", "--thresholds", "scores", "--seed", 1)
    said = succeeded("sweep", path, *arguments, *options)
    assert "largest gap  −0.078 at 7" in said
    assert len(cells(succeeded("sweep", path, *arguments, *options, "--csv", "-"))) == 10
    assert "--thresholds must be a number" in failed("sweep", path, *arguments, "--thresholds", "x")


def test_discover_command(tmp_path: Path) -> None:
    path = tmp_path / "compas.csv"
    fairperm.datasets.load_compas("pandas").to_csv(path, index=False)
    arguments = ("--label", "two_year_recid", "--score", "decile_score", "--threshold", 5)
    features = ("--feature", "race", "--feature", "age_band", "--feature", "decile_score")
    options = ("--metric", "fpr", "--max-depth", 1, "--resamples", 99, "--seed", 1)
    said = succeeded("discover", path, *arguments, *features[:4], *options)
    assert "race = African-American" in said
    assert "Seed 1" in said
    assert "--feature must be given" in failed("discover", path, *arguments, *options)
    assert "--metric must be given" in failed("discover", path, *arguments, *features)
    document = json.loads(
        succeeded("discover", path, *arguments, *features, *options, "--json", "-")
    )
    assert document["schema"] == "fairperm.discover"
    conditions = [one["conditions"] for one in document["result"]["all"]]
    assert {"decile_score": {"low": None, "high": 2}} in conditions
    page = tmp_path / "found.html"
    succeeded("discover", path, *arguments, *features[:4], *options, "--report", page, "-q")
    assert "race = African-American" in page.read_text()
    assert "fairperm discover" in page.read_text()
    table = cells(succeeded("discover", path, *arguments, *features, *options, "--csv", "-"))
    assert len(table) == len(document["result"]["found"])


def test_power_command() -> None:
    rates = ("--metric", "fnr", "--second", 0.2, "--base-rate", 0.8, "--base-rate", 0.2)
    assert "42.2 % power" in succeeded("power", *rates, "--first", 0.1, "--n", 400)
    assert succeeded("power", *rates, "--first", 0.1).startswith(
        "You need 1,138 rows in total for 80 % power to detect a false negative rate of 10.0 %"
    )
    of_rows: tuple[str | float, ...] = ("power", "--metric", "accuracy", "--n", 400, "--share", 0.2)
    assert " ".join(succeeded(*of_rows, "--second", 0.7).split()) == (
        "With 400 rows the test detects a gap of 16.7 points in accuracy with 80 % power: 86.7 % "
        "or more, and 53.3 % or less, against 70.0 %."
    )
    one_side = ("--first", 0.7, "--alternative", "greater")
    assert "54.9 % or less, against" in succeeded(*of_rows, *one_side)
    assert "--first and --second, or one of them and --n, must be" in failed("power", *rates)
    few = ("power", "--metric", "fnr", "--second", 0.5, "--base-rate", 0.5, "--n", 8)
    unseen = json.loads(succeeded(*few, "--json", "-"))
    answer = "With 8 rows the test detects no gap in false negative rate with 80 % power."
    gap = {"minimum_detectable_gap": "Infinity", "moves": "first"}
    assert unseen["result"] == {"answer": answer, **gap}
    assert succeeded(*few).strip() == answer
    found = json.loads(succeeded("power", *rates, "--first", 0.1, "--json", "-"))
    assert found["result"]["sample_size"] == 1138


def test_metrics_command_lists_the_registry() -> None:
    found = json.loads(succeeded("metrics", "--json", "-"))
    assert [one["name"] for one in found] == list(fairperm.metric_names())
    assert all(one["meaning"] for one in found)
    assert "(also fpr, fall_out)" in succeeded("metrics", "fall_out")


def test_demo(tmp_path: Path) -> None:
    said = succeeded("demo", cwd=tmp_path)
    assert "COMPAS is a score from 1 to 10" in said
    assert re.search(r"African-American .*disparity\n +Caucasian ", said)
    assert "fairperm audit predictions.csv" in said
    short, whole = (tmp_path / f"fairperm-demo{end}.html" for end in ("", "-full"))
    assert 10_000 < short.stat().st_size < whole.stat().st_size
    assert said.index(f"{short.name}\n") < said.index(f"{whole.name}\n")


def test_report(plain: Path, tmp_path: Path) -> None:
    path = tmp_path / "x.html"
    succeeded("audit", plain, *COLUMNS, "--metric", "fpr", "--report", path, "-q")
    assert "<html" in path.read_text(encoding="utf-8")
    assert "--report must be" in failed("audit", plain, *COLUMNS, "--report", "-")
