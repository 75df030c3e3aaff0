"""Every word of --fail-on with every option: a gate is evaluated or refused, and never just passes.

All data here break what a word asks about, so that no exit code may be 0.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest

from fairperm.cli import main
from fairperm.cli.options import OPTIONS
from tests.support.commands import run

N = 200  # rows of each group
FEW = {"--resamples": 19}
SCORED = {"--prediction": None, "--score": "s", "--threshold": 0.5, "--metric": "accuracy"}
RANKED = {"--prediction": None, "--score": "s", "--metric": None, "--query": "q"}
OF_CLASSES = {"--label": "k", "--prediction": None, "--metric": "roc_auc_ovr"}
ALL_TEXTS = {
    "--report": "page.html",
    "--title": "T",
    "--author": "A",
    "--note": "N",
    "--positive-means": "won",
    "--negative-means": "lost",
    "--rename": "g:a=men",
    "--short": True,
}
OUTPUTS = {
    "--json": "x.json",
    "--csv": "x.csv",
    "--markdown": "x.md",
    "--junit": "x.xml",
    "--raw-names": True,
    "--show-small": True,
}

# what is added to the command, for each option at least once
SHARED: list[dict[str, Any]] = [
    {},
    {"FILE": "semicolons.csv", "--delimiter": ";", "--decimal": ","},
    {"FILE": "rows.txt", "--format": "csv"},
    {"FILE": "rows.db", "--table": "people"},
    {"--sql": "SELECT * FROM data"},
    {"--where": "w > 0"},
    {"FILE": "titled.csv", "--skip": 1, "--encoding": "latin-1"},
    {"--na": "-", "--missing": "drop"},
    {"--pos-label": 1},
    {"--control": "t"},
    {"--control": "t", "--stratum-weights": ["0=1", "1=2"]},
    {"--cluster": "c"},
    {"--cluster": "t", "--split-clusters": True, "--min-group-size": 1, "--resamples": 19},
    {"--matched": "d", "--names": "n", "--min-group-size": 5},
    {"--weight": "w"},
    {"--weight": "w", **FEW},
    {"--count": "k"},
    {"--metric": "equalized_odds"},
    {"--metric": "equalized_odds", "--margin": 0.1},
    {"--metric": "f1_score", **FEW},
    {"--label": "rare", "--metric": "tpr"},
    {"--compare": "rest"},
    {"--compare": "reference", "--reference": "b"},
    {"--group": ["g", "h"], "--intersections": True},
    {"--group": ["g", "h"], "--family": "attribute"},
    {"--margin": 0.1},
    {"--margin": 0.1, "--variance": "none"},
    {"--ratio": 0.8},
    {"--adjust": "by"},
    {"--adjust": "none"},
    {"--alpha": 0.2},
    {"--min-group-size": 10**6},
    {"--group-size-by": "rows"},
    {"--scheme": "pooled"},
    {"--variance": "none"},
    {"--variance": "wald"},
    {"--alternative": "symmetric"},
    {"--alternative": "greater"},
    {"--resamples": 0},
    {"--resamples": 1},
    {"--bootstraps": 20, "--variance": "bootstrap", "--resamples": 99},
    {"--confidence-level": 0.5},
    {"--seed": 7, "--jobs": 1},
    ALL_TEXTS,
    OUTPUTS,
    {"--config": "own.toml"},
    {"--quiet": True, "--debug": True},
]
OF_AUDITS: list[dict[str, Any]] = [
    SCORED,
    {**SCORED, "--metric": "balanced_accuracy", **FEW},
    {**OF_CLASSES, "--class-score": ["0=s0", "1=s1", "2=s2"]},
    {"--matched": "m"},
    {"--matched": "m", "--min-group-size": 10**6},
    {**SCORED, "--metric": "roc_auc", "--threshold": None, "--score-bins": 64},
    {**SCORED, "--metric": "roc_auc", "--threshold": None, **FEW},
    {"--group": None, "--group-probability": "g=wa,wb", "--proxy": "g"},
    {"--group": None, "--group-probability": "g=wa,wb", "--proxy-assumption": "group_given_proxy"},
    {"--distance": "ks"},
    {"--distance": "ks", "--metric": None, **FEW},
    {**RANKED, "--ranking": "ndcg", "--k": 3, "--min-group-size": 5},
    {**RANKED, "--ranking": "ndcg", "--min-group-size": 5, **FEW},
    {**RANKED, "--score": "e", "--query": "l", "--ranking": "exposure", "--min-group-size": 5},
]
OF_MODELS: list[dict[str, Any]] = [
    {**SCORED, "--score": "s_old", "--score-new": "s", "--threshold-new": 0.6},
    {"--metric": "balanced_accuracy", **FEW},
    {"--matched": "m"},
]
REASONS = (
    "cannot be evaluated",
    "--ratio must be left out",
    "--ratio cannot be used with --distance alone",
    "--alternative must be 'two-sided' or 'symmetric' with --prediction-new",
    "--variance must be 'auto' or one of",
)


def make_rows(*, is_fair: bool) -> pd.DataFrame:
    """Return rows of two groups, which predictions and scores treat alike or not at all alike."""
    rng = np.random.default_rng(5)
    i = np.arange(2 * N)
    first = i % 2 == 0
    y = rng.integers(0, 2, 2 * N)
    k = rng.integers(0, 3, 2 * N)
    old = rng.random(2 * N) < 0.5
    noise = rng.normal(0, 0.5, 2 * N)
    if is_fair:
        p, s = rng.random(2 * N) < 0.5, rng.random(2 * N)
        by_class = rng.random((3, 2 * N))
    else:
        p = np.where(first, i % 20 != 0, i % 20 == 1)
        s = 1 / (1 + np.exp(-4 * (np.where(first, y, 1 - y) - 0.5 + noise)))
        by_class = np.stack([(k == one) ^ ~first for one in range(3)]) + noise
    return pd.DataFrame(
        {
            "y": y,
            "rare": np.where(first, y, 0),
            "p": p.astype(int),
            "old": old.astype(int),
            "s": s,
            "e": p + rng.random(2 * N),
            "s_old": rng.random(2 * N),
            **{f"s{one}": scores for one, scores in enumerate(by_class)},
            "k": k,
            "g": np.where(first, "a", "b"),
            "wa": np.where(first, 0.9, 0.1),
            "wb": np.where(first, 0.1, 0.9),
            "h": np.where(i // 2 % 2, "u", "v"),
            "w": 1 + i // 2 % 3,
            "c": i % 2 + 2 * (i // 8),
            "t": i // 2 % 2,
            "m": i // 2,
            "n": i % 40,
            "d": i // 40,
            "q": i % 2 + 2 * (i // 20),
            "l": i // 20,
        }
    )


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[bool, Path]:
    found = {}
    for is_fair in (False, True):
        folder = found[is_fair] = tmp_path_factory.mktemp("fair" if is_fair else "unfair")
        rows = make_rows(is_fair=is_fair)
        rows.to_csv(folder / "rows.csv", index=False)
        rows.to_csv(folder / "rows.txt", index=False)
        rows.to_csv(folder / "semicolons.csv", index=False, sep=";", decimal=",")
        (folder / "titled.csv").write_text("Title\n" + (folder / "rows.csv").read_text())
        with duckdb.connect(str(folder / "rows.db")) as base:
            base.register("frame", rows)
            base.execute("CREATE TABLE people AS SELECT * FROM frame")
        (folder / "own.toml").write_text("seed = 3\n")
    return found


def write_command(command: str, word: str, case: dict[str, Any]) -> list[object]:
    given: dict[str, Any] = {
        "FILE": "rows.csv",
        "--label": "y",
        "--prediction": "p" if command == "audit" else "old",
        "--group": "g",
        "--metric": "selection_rate",
        "--seed": None if {"--config", "--seed"} & case.keys() else 1,
        **({} if command == "audit" else {"--prediction-new": "p"}),
        **({"--ratio": 0.8} if word.startswith("ratio") else {}),
        **({"--min-group-size": 10**6} if word == "too-small" else {}),
        "--fail-on": word,
        **case,
    }
    if "--score-new" in case:
        del given["--prediction-new"]
    if word == "inconclusive" and "--margin" in given:
        given["--margin"] = 0.001
    parts: list[object] = [command, given.pop("FILE")]
    for option, values in given.items():
        for one in values if isinstance(values, list) else [values]:
            parts += [] if one is None else [option] if one is True else [option, one]
    return parts


GATES = {
    "audit": OPTIONS["fail_on"].choices,
    "compare": OPTIONS["fail_on@changes"].choices,
}
COMMANDS = [
    (command, case)
    for command, own in (("audit", OF_AUDITS), ("compare", OF_MODELS))
    for case in [*SHARED, *own]
]
NAMES = [f"{command} {' '.join(f'{a} {b}' for a, b in case.items())}" for command, case in COMMANDS]


def check_gates(
    command: str, case: dict[str, Any], words: Iterable[str], folders: dict[bool, Path]
) -> None:
    for word in words:
        if word == "too-small" and "--min-group-size" in case and case["--min-group-size"] < N:
            continue
        done = run(*write_command(command, word, case), cwd=folders[word == "inconclusive"])
        last = done.stderr.decode().splitlines()[-1]
        if not case:
            assert done.returncode == 1
        elif done.returncode != 1:
            assert done.returncode == 2, (word, last)
            assert any(one in last for one in REASONS), (word, last)


by_number = pytest.mark.parametrize("number", range(len(COMMANDS)), ids=NAMES)


@by_number
def test_a_word_with_each_option(number: int, folders: dict[bool, Path]) -> None:
    command, case = COMMANDS[number]
    words = GATES[command]
    check_gates(command, case, [words[number % len(words)]], folders)


@pytest.mark.validate
@by_number
def test_no_gate_passes_unevaluated(number: int, folders: dict[bool, Path]) -> None:
    """The other words."""
    command, case = COMMANDS[number]
    words = GATES[command]
    others = [word for word in words if word != words[number % len(words)]]
    check_gates(command, case, others, folders)


@pytest.mark.parametrize("command", [*GATES])
def test_every_option_is_tried(command: str) -> None:
    known = {one for param in main.app.commands[command].params for one in param.opts[:1]}
    base = {"--label", "--prediction", "--group", "--metric", "--prediction-new", "--fail-on"}
    own = OF_AUDITS if command == "audit" else OF_MODELS
    tried = {option for case in [*SHARED, *own] for option in case} - {"FILE"}
    of_files = {"files", "--new", "--id", "--xlsx"}  # where rows come from, and where they go
    assert known - tried - base - of_files == {"-h", "--help-all"}
