"""The benchmark beside other tools: all of them are asked the same question."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from benchmarks.bench_peers import BEGIN, END
from benchmarks.peers import compared, installed, measuring, page
from benchmarks.peers.questions import METRICS, Question, question
from benchmarks.peers.tools import TOOLS, Answer

if TYPE_CHECKING:
    from collections.abc import Callable

DOCS = Path(__file__).parents[2] / "docs"
ROWS = 2_500
MANY = 9_999  # permutations of fairperm, which the peers' p-values are compared with
# those that shuffle labels and compare plain gaps, with the permutations that they are given here
SAME_TEST = {
    "NumPy loop": 499,
    "scikit-learn loop": 49,
    "scipy": 499,
    "mlxtend": 499,
    "permute": 49,
}
INSTALLED = [name for name, tool in TOOLS.items() if tool.is_installed]


@pytest.fixture(scope="module")
def asked() -> list[tuple[Question, Answer]]:
    """Return every question with fairperm's answer to it, not studentized as the peers' are."""
    questions = [question(metric, ROWS) for metric in METRICS]
    return [(one, TOOLS["fairperm, not studentized"].run(one, MANY)) for one in questions]


@pytest.mark.parametrize("name", INSTALLED)
def test_all_find_the_same(asked: list[tuple[Question, Answer]], name: str) -> None:
    draws = SAME_TEST.get(name, 2)
    for one, ours in asked:
        theirs = TOOLS[name].run(one, draws)
        assert theirs.gap == pytest.approx(ours.gap, rel=1e-9), one.metric
        if name in SAME_TEST:
            assert ours.pvalue is not None
            assert theirs.pvalue is not None
            assert 0.02 < ours.pvalue < 0.98  # a p-value that could differ
            off = math.sqrt(ours.pvalue * (1 - ours.pvalue) * (1 / draws + 1 / MANY))
            assert abs(ours.pvalue - theirs.pvalue) < 4 * off + 1 / draws, one.metric


def test_exponents_of_powers() -> None:
    sizes = [10**k for k in range(3, 8)]
    for power in (0.0, 1.0, 1.7):
        seconds = [3e-6 * n**power for n in sizes]
        assert measuring.exponent(sizes, seconds) == pytest.approx(power, abs=1e-9)
    # of times that are a factor of 2 above and below, least squares finds the line between
    wobbly = [n * factor for n, factor in zip(sizes, (1, 2, 1, 2, 1), strict=True)]
    assert measuring.exponent(sizes, wobbly) == pytest.approx(1.0)
    assert math.isnan(measuring.exponent([10], [1.0]))


@pytest.mark.parametrize(("fixed", "each"), [(0.0, 0.3), (5.0, 0.02), (29.0, 0.5), (0.0, 1e-5)])
def test_fewer_permutations_tell_the_time_of_all(fixed: float, each: float) -> None:
    spent = []

    def seconds(draws: int) -> float:
        spent.append(fixed + each * draws)
        return spent[-1]

    timed = measuring._timed(seconds, budget=1.0, each=each)
    assert measuring.total_seconds(timed, 999) == pytest.approx(fixed + each * 999)
    assert measuring.slope_of(timed) == pytest.approx(each)
    assert len(spent) == 2
    assert sum(spent) < min(measuring.LIMIT + 10, 2.25 * fixed + 5)


def test_what_takes_too_long_is_extrapolated_in_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    run: list[int] = []

    def one(name: str, metric: str, n: int, budget: float, each: float = 0.0) -> dict[str, Any]:
        run.append(n)
        return {"tool": name, "metric": metric, "rows": n, "seconds": 2e-5 * n**1.5,
                "least": 1e-8 * n**1.5, "draws": 7, "each": 2e-7 * n}  # fmt: skip

    monkeypatch.setattr(measuring, "in_new_process", one)
    sizes = [10**k for k in range(3, 8)]
    found = measuring.measure_sizes("scipy", "AUC", sizes, 1.0)
    assert run == sizes[:-1]  # 10⁷ would take more than 300 s
    assert [page.mark(one) for one in found] == ["~"] * 4 + ["≈"]
    # the first two draws as they grow, and 997 more as one of them does
    assert found[-1]["seconds"] == pytest.approx(1e-8 * 10**10.5 + 997 * 2e-7 * 10**7)
    monkeypatch.setattr(measuring, "in_new_process", _stopped_at(10**4, one))
    found = measuring.measure_sizes("scipy", "AUC", sizes, 1.0)
    assert [page.mark(one) for one in found] == ["~"] + ["≈"] * 4


def _stopped_at(most: int, measure: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *asked: None if asked[2] >= most else measure(*asked)


def test_times_in_words() -> None:
    told = {0.00123: "1.2 ms", 0.9999: "1.0 s", 12.34: "12 s", 100.0: "1.7 min", 7200: "2.0 h"}
    assert {one: page.told_seconds(one) for one in told} == told
    assert page.told_seconds(86_400 * 1234) == "1,200 d"
    assert page.told_rows(10**7) == "10⁷"
    assert page.told_rows(2_500) == "2,500"


def test_room_on_the_disk() -> None:
    needed = installed.closure("scikit-learn")
    assert {"scikit-learn", "numpy", "scipy", "joblib"} <= needed
    assert "pytest" not in needed
    assert 0 < installed.megabytes({"joblib"}) < installed.megabytes(needed)


def test_the_page_has_every_tool() -> None:
    text = (DOCS / "benchmarks.md").read_text(encoding="utf-8")
    made = text[text.index(BEGIN) : text.index(END)]
    assert [name for name in TOOLS if f"| {name} |" not in made] == []
    assert f"({page.SVG})" in made
    assert (DOCS / page.SVG).stat().st_size < 300_000


@pytest.mark.validate
@pytest.mark.parametrize("tool", [one for one in compared.TOOLS if one.is_installed])
def test_the_page_of_comparisons_says_what_runs(tool: compared.Tool) -> None:
    written = (DOCS / "compared.md").read_text(encoding="utf-8").split(compared.BEGIN)[1]
    head, _, *rows = (
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in written.splitlines()
        if line.startswith("|")
    )
    column = next(i for i, name in enumerate(head) if name.startswith(f"{tool.package} "))
    answers = compared.answers(tool)
    assert {row[0]: row[column] for row in rows[: len(answers)]} == answers
