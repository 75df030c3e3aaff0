"""The page's numbers are those of the command and of the Python that it shows."""

from __future__ import annotations

import contextlib
import html
import json
import random
import re
import shlex
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.support.app_server import AppServer
from tests.support.commands import succeeded

pytestmark = [pytest.mark.validate, pytest.mark.xdist_group("app")]

ENDINGS = (".csv", ".tsv", ".csv.gz", ".xlsx", ".parquet", ".jsonl")
QUESTIONS = ("selection", "audit", "compare", "discover")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AppServer]:
    started = AppServer(tmp_path_factory.mktemp("app"))
    yield started
    started.end()


def make_frame(chance: random.Random) -> pd.DataFrame:
    """Return people with labels, decisions, scores and groups, each written in some way."""
    n = chance.randint(150, 900)
    kinds: list[list[object]] = [["w", "m"], ["18–30", "31–50", "über 50"], [1, 2, 3]]
    groups: list[Any] = chance.choice([*kinds, [f"g, {i}" for i in range(8)]])
    answers: list[tuple[object, object]] = [(1, 0), ("yes", "no"), ("ja", "nein"), (True, False)]
    yes, no = chance.choice([*answers, ("hired", "rejected")])
    score = [chance.random() for _ in range(n)]
    most = chance.choice([1, 1, 10])
    columns = {
        "applicant id": [*range(n)],
        chance.choice(["outcome", "Rückfall?", "y, true"]): [
            chance.random() < one for one in score
        ],
        chance.choice(["approved", "Entscheidung"]): [one > 0.5 for one in score],
        "new decision": [one + chance.gauss(0, 0.2) > 0.5 for one in score],
        "score": [round(most * one, 3) for one in score],
        chance.choice(["group", "Alter, Jahre", "ethnicity"]): chance.choices(groups, k=n),
        "sex": chance.choices("wwm", k=n),
    }
    frame = pd.DataFrame(columns)
    for name in frame.columns[1:4]:
        frame[name] = [yes if one else no for one in frame[name]]
    if chance.random() < 0.3:
        frame.loc[chance.sample(range(n), 9), "sex"] = None
    return frame


def write(frame: pd.DataFrame, folder: Path, chance: random.Random, ending: str) -> Path:
    """Write the file as one of many programs would."""
    path = folder / f"{chance.choice(['data', 'Bewerber 2025', 'a b (c)'])}{ending}"
    if ending == ".xlsx":
        frame.to_excel(path, index=False, startrow=0)
    elif ending == ".parquet":
        frame.to_parquet(path)
    elif ending == ".jsonl":
        frame.to_json(path, orient="records", lines=True, force_ascii=False)
    else:
        mark = "\t" if ending == ".tsv" else chance.choice(",;|")
        how: dict[str, Any] = {"decimal": chance.choice(".,") if mark != "," else "."}
        if ending == ".csv":
            how["encoding"] = chance.choice(["utf-8", "utf-8-sig", "windows-1252", "utf-16"])
        frame.to_csv(path, index=False, sep=mark, **how)
        if ending == ".csv" and chance.random() < 0.3:
            code = how["encoding"] if how["encoding"] != "utf-16" else "utf-8"
            content = path.read_bytes().decode(how["encoding"])
            path.write_text(f"Export of people\n{content}", code, newline="")
    return path


def code_of(take: str, name: str) -> str:
    found = re.search(rf'id="{name}">(.*?)</code>', take, re.S)
    assert found
    return html.unescape(found[1])


def without_versions(document: dict[str, Any]) -> dict[str, Any]:
    return {name: one for name, one in document.items() if name != "versions"}


@pytest.mark.parametrize("seed", range(50))
def test_same_numbers(server: AppServer, tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    frame = make_frame(chance)
    path = write(frame, tmp_path, chance, ENDINGS[seed % len(ENDINGS)])
    question = QUESTIONS[seed // len(ENDINGS) % 4]
    tab = server.open_tab()
    assert "error" not in tab.open(path.name, path.read_bytes())
    _, y, decision, new, score, group, sex = map(str, range(7))
    by_score = chance.random() < 0.4
    columns = {"label": [y], "prediction": [] if by_score else [decision], "score": [score]}
    columns |= {
        "prediction_new": [new],
        "selected": [decision],
        "group": [group, sex],
        "applicants": [],
    }
    if question == "compare":
        columns["prediction"] = [decision]
    tab.choose(question=[question], **columns)
    tab.choose(**columns)
    found = tab.run()
    assert "error" not in found, found
    document = json.loads(tab.output(found["run"], "result.json"))
    words = shlex.split(code_of(found["take"], "command"))
    again = succeeded(*(one for one in words[1:] if one != "\n"), "--json", "-", "-q", cwd=tmp_path)
    assert without_versions(json.loads(again)) == without_versions(document)
    same = run_python(code_of(found["take"], "python"), tmp_path)
    assert json.loads(json.dumps(same.to_dict())) == document["result"]


def run_python(code: str, folder: Path) -> Any:
    """Return the value of the last expression."""
    *before, call = code.split("\nfairperm.")
    names: dict[str, Any] = {}
    with contextlib.chdir(folder), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec("\nfairperm.".join(before), names)  # noqa: S102
        return eval(f"fairperm.{call}", names)  # noqa: S307
