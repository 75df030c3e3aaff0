"""The paper's Table 1: tests of a correlation when the spread of errors varies with x.

FairTest's own test is part of the table; it is written here from the paper's description.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from fairperm.engines.kernels.kernel import kernel
from fairperm.engines.kernels.shuffles import shuffle
from fairperm.hypothesis_tests.correlation import correlation_test
from studies import charts
from studies.simulate import PAPER_TABLE1
from studies.simulating import simulate_data_sets
from studies.study import LEVEL, Row, Study

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairperm.data.arguments import CorrelationVariance
    from studies.simulate import Correlation

    Floats = NDArray[np.float64]

_FULL = (10_000, 1000)  # data sets, permutations: as in the paper
_QUICK = (200, 199)
_PURPOSE = 100

ALGORITHM, PLAIN, FAIRTEST = "Algorithm 1", "un-studentized", "FairTest"
_VARIANCES: tuple[CorrelationVariance, ...] = ("delta", None)  # the paper's, and un-studentized
_TESTS = (ALGORITHM, PLAIN, FAIRTEST)
_SPREADS = {1: "1/|x|", 2: "1/x²"}
PAPER = {
    ("uncorrelated", ALGORITHM): 0.0428,
    ("independent", ALGORITHM): 0.0501,
    ("uncorrelated", FAIRTEST): 0.7508,
    ("independent", FAIRTEST): 0.0099,
}
_REMARKS = {
    PLAIN: "not in the paper: shuffling one variable without studentizing",
    1: "the paper's table",
    2: "the paper's table, if errors were N(0, 1)/x²",
}
_ABOUT = (
    "An attribute x and errors that are uncorrelated with it, but whose spread depends on x: "
    "N(0, 1) divided by x² or |x|. In the first example x is uniform between 0.00001 and 1, in the "
    "second it is 1 plus an exponential variable. Algorithm 1 is fairperm.correlation_test: "
    "Pearson's correlation, studentized in every permutation and compared by |S|. FairTest puts x "
    "and the errors into one pool, shuffles it and correlates the halves; it is implemented here "
    "from that description."
)
_NOTES = (
    "In the first example the null hypothesis is zero correlation, and it holds: a test should "
    "reject 0.05. In the second it is independence, which does not hold; a test that rejects "
    "less often than 0.05 there is biased.",
    "Errors of N(0, 1)/|x|, whose variance is 1/x², reproduce all four values of the paper's "
    "table. Errors with a standard deviation of 1/x² do not.",
)


def table1(
    *,
    quick: bool = False,
    seed: int = 0,
    n_jobs: int | None = None,
    progress: bool | None = None,
    n_data_sets: int | None = None,
    n_resamples: int | None = None,
) -> Study:
    """Run the paper's Table 1 again: four cells, with both readings of the spread of errors."""
    default_sets, default_resamples = _QUICK if quick else _FULL
    n_data_sets = n_data_sets or default_sets
    n_resamples = n_resamples or default_resamples
    rejected = {}
    settings = [(example, power) for example in PAPER_TABLE1 for power in _SPREADS]
    for number, (example, power) in enumerate(settings):
        pvalues = simulate_data_sets(
            partial(_compute_pvalues, replace(PAPER_TABLE1[example], power=power), n_resamples),
            n_data_sets,
            seed=seed,
            purpose=_PURPOSE + number,
            n_jobs=n_jobs,
            progress=progress,
        )
        rejects = (pvalues[:, :2] <= LEVEL).sum(axis=0), (pvalues[:, 2] < LEVEL).sum()
        for test, hits in zip(_TESTS, (*rejects[0].tolist(), int(rejects[1])), strict=True):
            rejected[example, test, power] = hits
    order = [(example, test, power) for power in _SPREADS for example, test in PAPER]
    order += [key for key in rejected if key[1] == PLAIN]
    rows = tuple(_make_row(key, rejected[key], n_data_sets) for key in order)
    return Study(
        name="table1",
        title="Table 1: correlation with unequally spread errors",
        about=_ABOUT,
        rows=rows,
        notes=_NOTES,
        settings={
            "data sets": n_data_sets,
            "permutations": n_resamples,
            "rows": PAPER_TABLE1["uncorrelated"].n,
            "seed": seed,
        },
        charts={
            "rejections": charts.draw_agreement(
                rows, title="Rejections at 0.05", axis="share of data sets", level=LEVEL
            )
        },
    )


def _compute_pvalues(
    population: Correlation, n_resamples: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Return the p-values of all tests for one data set."""
    data = population.draw(rng)
    ours = [
        correlation_test(
            *("x", "error"),
            data=data,
            variance=variance,
            alternative="symmetric",
            n_resamples=n_resamples,
            rng=rng,
            progress=False,
        ).pvalue
        for variance in _VARIANCES
    ]
    return np.array([*ours, fairtest_pvalue(data["x"], data["error"], n_resamples, rng)])


def _make_row(key: tuple[str, str, int], hits: int, n_data_sets: int) -> Row:
    example, test, power = key
    paper = PAPER.get((example, test))
    return Row.of_share(
        f"{example}, {test}, {_SPREADS[power]}",
        hits,
        n_data_sets,
        paper,
        None if paper is None else _FULL[0],
        remark=_REMARKS[PLAIN if paper is None else power],
    )


def fairtest_pvalue(x: Floats, error: Floats, n_resamples: int, rng: np.random.Generator) -> float:
    """Return FairTest's p-value: the share of shuffles with a larger |r|, at least one."""
    state = rng.integers(2**64, size=4, dtype=np.uint64)
    exceeded = _count_larger(np.concatenate([x, error]), n_resamples, state)
    return max(exceeded, 1) / n_resamples


@kernel
def _count_larger(pool: Floats, draws: int, state: NDArray[np.uint64]) -> int:
    """Return the number of shuffles of the pool that make its halves more correlated."""
    observed = abs(correlate_halves(pool))
    larger = 0
    for _ in range(draws):
        shuffle(pool, state)
        larger += abs(correlate_halves(pool)) > observed
    return larger


@kernel
def correlate_halves(pool: Floats) -> float:
    """Return Pearson's correlation of the two halves, centred before anything is squared."""
    n = len(pool) // 2
    first = second = 0.0
    for i in range(n):
        first += pool[i]
        second += pool[n + i]
    first /= n
    second /= n
    squares = other_squares = products = 0.0
    for i in range(n):
        one, other = pool[i] - first, pool[n + i] - second
        squares += one * one
        other_squares += other * other
        products += one * other
    return products / math.sqrt(squares * other_squares)
