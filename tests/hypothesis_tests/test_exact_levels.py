"""Levels of small samples, summed over every outcome: no simulation, no chance."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom

from fairperm.engines.resampling.enumeration import enumerate_permutations
from fairperm.engines.sample import Cells
from fairperm.errors import InputError
from fairperm.hypothesis_tests.plan import Plan
from fairperm.metrics import get_metric
from tests.support.helpers import CELL_COLUMNS
from tests.support.simulations import Procedure

# Equal distributions: every permutation test is exact, for the groups' sizes whatever they are.

EXACT_TESTS = [
    Procedure("false_negative_rate", "pooled", "score"),
    Procedure("false_negative_rate", "pooled", None),
    Procedure("positive_predictive_value", "pooled", "wald"),
    Procedure("true_positive_rate", "within_label", "score"),
    Procedure("false_positive_rate", "denominator", "score"),
    Procedure("false_omission_rate", "denominator", "wald"),
    Procedure("accuracy", "denominator", None),
    Procedure("equalized_odds", "within_label", "score"),
    Procedure("equalized_odds", "pooled", "wald"),
    Procedure("balanced_accuracy", "within_label", "delta"),
    Procedure("f1_score", "pooled", "delta"),
    Procedure("matthews_corrcoef", "pooled", "delta"),
]
SMALL_TABLES = {
    "one stratum": [[[1, 2, 2, 1], [2, 1, 2, 4]]],
    "two strata": [[[1, 1, 1, 0], [1, 1, 1, 2]], [[0, 1, 0, 1], [1, 0, 2, 1]]],
}


def every_permutation(
    procedure: Procedure, counts: list[list[list[int]]]
) -> Iterator[tuple[NDArray[np.int64], float]]:
    """Yield every table that exchanging labels can give, with its probability."""
    plan = Plan.choose(get_metric(procedure.metric), procedure.scheme, procedure.variance)
    block = plan.scheme.block(plan.metric, CELL_COLUMNS)
    cells = Cells(np.array(counts), np.eye(4), block, None, order=(0, 1))
    every = enumerate_permutations(cells, 10**6, by_sum=False)
    assert every is not None
    yield from zip(every[0], np.exp(every[1]), strict=True)


def pvalue_or_one(procedure: Procedure, counts: NDArray[np.int64]) -> float:
    """Return the p-value; one where the metric is undefined, as no test is made then."""
    try:
        pvalue = procedure(counts).pvalue
    except InputError:
        return 1.0
    return pvalue


def worst_excess(pvalues: Iterable[float], probabilities: Iterable[float]) -> float:
    """Return the most by which P(p-value ≤ level) exceeds the level, over all levels."""
    p, weight = np.array([*pvalues]), np.array([*probabilities])
    return max(float(weight[p <= level + 1e-12].sum() - level) for level in p)


@pytest.mark.parametrize("counts", SMALL_TABLES.values(), ids=SMALL_TABLES)
@pytest.mark.parametrize("procedure", EXACT_TESTS, ids=str)
def test_enumerated_pvalues_are_exact_over_all_permutations(
    procedure: Procedure, counts: list[list[list[int]]]
) -> None:
    tables, probabilities = zip(*every_permutation(procedure, counts), strict=True)
    assert sum(probabilities) == pytest.approx(1)
    assert len(tables) > 10
    pvalues = [pvalue_or_one(procedure, table) for table in tables]
    assert worst_excess(pvalues, probabilities) <= 1e-9


# The weak null at the smallest sizes: summed over every outcome, with no simulation.

FNR = Procedure("false_negative_rate", "denominator")
LEVELS = (0.01, 0.05, 0.1, 0.2)
RATES = (0.02, 0.1, 0.3, 0.5, 0.8)
NEVER = 1e-5  # numbers of positives rarer than this are counted as rejected


def likely(n: int, base_rate: float) -> dict[int, float]:
    positives = {m: float(binom.pmf(m, n, base_rate)) for m in range(1, n + 1)}
    return {m: probability for m, probability in positives.items() if probability > NEVER}


@pytest.mark.validate
@pytest.mark.parametrize(("n", "base_rates"), [(20, (0.9, 0.1)), (10, (0.6, 0.2))])
def test_denominator_scheme_is_exact_for_the_weak_null(
    n: int, base_rates: tuple[float, float]
) -> None:
    levels = dict.fromkeys(itertools.product(RATES, LEVELS), 2 * n * NEVER)
    sizes = itertools.product(*(likely(n, rate).items() for rate in base_rates))
    for (a, chance_of_a), (b, chance_of_b) in sizes:
        pvalues = fnr_pvalues(a, b)
        for rate, level in levels:
            outcomes = np.outer(binom.pmf(range(a + 1), a, rate), binom.pmf(range(b + 1), b, rate))
            rejected = float(outcomes[pvalues <= level + 1e-12].sum())
            assert rejected <= level + 1e-12, (a, b, rate)
            levels[rate, level] += chance_of_a * chance_of_b * rejected
    assert all(total <= level for (_, level), total in levels.items())


@cache
def fnr_pvalues(a: int, b: int) -> NDArray[np.float64]:
    """Return the p-value for any numbers of misses among a and b positives."""
    tables = [[[[5, 0, j, a - j], [5, 0, k, b - k]]] for j in range(a + 1) for k in range(b + 1)]
    return np.reshape([FNR(counts).pvalue for counts in tables], (a + 1, b + 1))


@pytest.mark.parametrize("positives", [(5, 1), (2, 4), (3, 3)], ids=str)
def test_equalized_odds_are_tested_exactly_for_the_weak_null(positives: tuple[int, int]) -> None:
    n, (a, b) = 6, positives
    procedure = Procedure("equalized_odds")
    sizes = (n - a, a, n - b, b)
    outcomes = list(itertools.product(*(range(size + 1) for size in sizes)))
    pvalues = [
        procedure([[[n - a - i, i, j, a - j], [n - b - k, k, m, b - m]]]).pvalue
        for i, j, k, m in outcomes
    ]
    for of_negatives, of_positives in itertools.product(RATES, RATES):
        rates = (of_negatives, of_positives) * 2
        weights = [np.prod(binom.pmf(outcome, sizes, rates)) for outcome in outcomes]
        assert worst_excess(pvalues, weights) <= 1e-9
