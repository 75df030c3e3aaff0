"""The command for rankings gives what the function gives."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from fairperm import ranking_test
from tests.support.commands import run

RNG = np.random.default_rng(3)
N = 90
QUERY = np.repeat(np.arange(N), 5)
DATA = {
    "q": np.array([f"q{one}" for one in QUERY]),
    "s": RNG.normal(size=5 * N).round(6),
    "r": (RNG.random(5 * N) < 0.4).astype(int),
    "country": RNG.choice(["at", "de", "fr"], N)[QUERY],
    "seller": RNG.choice(["large", "small"], 5 * N),
}


def test_the_command_is_the_function(tmp_path: Path) -> None:
    lines = [",".join(DATA), *(",".join(map(str, one)) for one in zip(*DATA.values(), strict=True))]
    (tmp_path / "d.csv").write_text("\n".join(lines))
    columns = ("ranking", "d.csv", "--score", "s", "--query", "q", "--seed", 1, "--resamples", 99)
    quality = (*columns, "--relevance", "r", "--group", "country", "--k", 3)
    done = run(*quality, "--json", "-", cwd=tmp_path)
    document = json.loads(done.stdout)
    expected = ranking_test(
        "r",
        score="s",
        query="q",
        sensitive_features="country",
        k=3,
        data=DATA,
        n_resamples=99,
        rng=1,
    )
    assert (document["schema"], document["result"]) == ("fairperm.ranking", expected.to_dict())
    done = run(*quality, "--pair", "at", "de", cwd=tmp_path)
    assert "nDCG@3 is " in done.stdout.decode().splitlines()[0]
    done = run(*quality, "--reference", "de", "--csv", "-", cwd=tmp_path)
    assert [line.split(",")[1:3] for line in done.stdout.decode().splitlines()[1:]] == [
        ["at", "de"],
        ["fr", "de"],
    ]
    done = run(
        *columns, "--group", "seller", "--metric", "exposure", "--control", "r", cwd=tmp_path
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"large's exposure is " in done.stdout
    all_groups = (*columns, "--group", "seller", "--metric", "ndkl")
    document = json.loads(run(*all_groups, "--json", "-", cwd=tmp_path).stdout)
    expected = ranking_test(
        score="s",
        query="q",
        sensitive_features="seller",
        metric="ndkl",
        data=DATA,
        n_resamples=99,
        rng=1,
    )
    assert document["result"] == expected.to_dict()
    done = run(*all_groups, cwd=tmp_path)
    assert "ndkl is 0." in " ".join(done.stdout.decode().split())
    done = run(*all_groups, "--csv", "-", cwd=tmp_path)
    assert done.stdout.decode().splitlines()[0].startswith("metric,groups,value,expected,queries,")
    for options, said in (
        (
            ("--group", "seller", "--metric", "ndkl", "--compare", "rest"),
            "--compare cannot be used",
        ),
        (("--group", "seller"), "--relevance must be given for ndcg"),
        (("--group", "seller", "--rank", "r"), "Pass --score or --rank; got both"),
        (("--metric", "exposure"), "--group must be given"),
    ):
        done = run(*columns, *options, cwd=tmp_path)
        assert (done.returncode, said in done.stderr.decode()) == (2, True)
    done = run("ranking", "d.csv", "--score", "s", "--group", "seller", cwd=tmp_path)
    assert b"--query must be given" in done.stderr
