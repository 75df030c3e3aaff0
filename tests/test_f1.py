"""F1 is a one-to-one function of a rate, and tested exactly as rates are.

Of a row that is positive or predicted so, a hit is a Bernoulli trial with Jaccard's index J as its
chance, and F1 = 2J/(1 + J).
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy.stats import hypergeom, multinomial, norm

from fairperm import omnibus_test, permutation_test
from helpers import rows
from simulate import Group, Procedure, at_least, at_most, draw_counts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from helpers import Counts, Pair

DATA_SETS = 1000
FEW: Pair = ((30, 3, 4, 8), (20, 9, 7, 5))  # 8 hits of 15 rows, and 5 of 21


def f1(hits: Any, trials: Any) -> Any:
    return 2 * hits / (hits + trials)


@pytest.mark.parametrize("scheme", ["auto", "denominator"])
def test_pvalue_is_a_sum_of_hypergeometric_probabilities(scheme: str) -> None:
    result = permutation_test(**rows(FEW), metric="f1_score", scheme=scheme)
    (hits, trials), (others, other_trials) = (8, 15), (5, 21)
    a = np.arange(14)
    probability = hypergeom.pmf(a, trials + other_trials, hits + others, trials)
    gaps = np.abs(f1(a, trials) - f1(hits + others - a, other_trials))
    observed = abs(f1(hits, trials) - f1(others, other_trials))
    assert result.exact
    assert result.pvalue == pytest.approx(probability[gaps >= observed - 1e-12].sum(), rel=1e-12)
    assert result.counts["a"] == {"rows": 45, "hits": 8, "denominator": 15}
    assert result.validity == (
        "Exact for the weak null (equal f1_score; base rates may differ) at every sample size, "
        "given the number of rows that are positive or predicted so."
    )


def test_statistic_has_the_error_of_one_rate() -> None:
    p, slope = 13 / 36, 2 / (1 + 13 / 36) ** 2
    error = slope * math.sqrt(p * (1 - p) * (1 / 15 + 1 / 21))
    result = permutation_test(**rows(FEW), metric="f1_score")
    assert result.statistic == pytest.approx((f1(8, 15) - f1(5, 21)) / error, rel=1e-12)


def test_interval_is_made_of_wilson_limits_of_the_rate() -> None:
    def limits(k: float, n: float, z: float) -> list[float]:
        roots = np.roots([n + z**2, -(2 * k + z**2), k**2 / n])
        return sorted(2 * one / (1 + one) for one in roots.tolist())

    result = permutation_test(**rows(FEW), metric="f1_score")
    null = np.abs(result.null_distribution)
    assert result.null_probabilities is not None
    order = np.argsort(null)
    reached = np.cumsum(result.null_probabilities[order])
    q = max(null[order][np.searchsorted(reached, 0.95 - 1e-12)], norm.ppf(0.975))
    (low, high), (other_low, other_high) = limits(8, 15, q), limits(5, 21, q)
    first, second = f1(8, 15), f1(5, 21)
    below, above = (
        math.hypot(first - low, other_high - second),
        math.hypot(high - first, second - other_low),
    )
    gap = first - second
    assert result.confidence_interval == pytest.approx((gap - below, gap + above), rel=1e-9)


# -- The weak null ---------------------------------------------------------------------------------

EQUAL_F1 = {  # tn, fp, fn, tp: with J = 1/2 each, or 1/4
    "base rates 0.3 and 0.8": ((0.6, 0.1, 0.1, 0.2), (0.1, 0.1, 0.4, 0.4)),
    "errors of other kinds": ((0.2, 0.4, 0.2, 0.2), (0.6, 0.0, 0.3, 0.1)),
}
N = 4


def outcomes(n: int) -> Iterator[Counts]:
    for tn, fp, fn in itertools.product(range(n + 1), repeat=3):
        if tn + fp + fn <= n:
            yield tn, fp, fn, n - tn - fp - fn


def test_default_is_exact_for_the_weak_null() -> None:
    """P(p ≤ level) is at most the level, summed over every outcome of two small samples."""
    pairs = list(itertools.product(outcomes(N), repeat=2))
    pvalues = np.array([_pvalue(pair) for pair in pairs])
    assert (pvalues < 0.1).any()
    for first, second in EQUAL_F1.values():
        chances = [multinomial.pmf(a, N, first) * multinomial.pmf(b, N, second) for a, b in pairs]
        chance = np.array(chances)
        assert chance.sum() == pytest.approx(1)
        for level in np.unique(pvalues):
            assert chance[pvalues <= level + 1e-12].sum() <= level + 1e-9


def _pvalue(pair: tuple[Counts, ...]) -> float:
    if any(sum(counts[1:]) == 0 for counts in pair):
        return 1.0  # undefined: no test is made
    return float(Procedure("f1_score")([pair]).pvalue)


FEW_POSITIVES = (Group(30, 0.8, 0.5, 1 / 3), Group(30, 0.2, 0.5, 1 - 1 / 24))  # F1 of 0.6 each


def rejected(procedure: Procedure) -> int:
    data_sets = draw_counts([FEW_POSITIVES], DATA_SETS, seed=25)
    return int((procedure.pvalues(data_sets) <= 0.05 + 1e-12).sum())


def test_default_holds_its_level_with_six_positives() -> None:
    truth = [f1(tp, fp + fn + tp) for _, fp, fn, tp in (one.cells() for one in FEW_POSITIVES)]
    assert truth == pytest.approx([0.6, 0.6])
    assert rejected(Procedure("f1_score")) <= at_most(0.05, DATA_SETS)


@pytest.mark.parametrize("variance", ["delta", None])
def test_exchanging_all_rows_does_not(variance: str | None) -> None:
    assert rejected(Procedure("f1_score", "pooled", variance, 199)) > at_most(0.05, DATA_SETS)


# -- More groups -----------------------------------------------------------------------------------


def test_omnibus_of_f1_weighs_squares_by_the_error_of_one_rate() -> None:
    third = {"y_true": [1] * 9 + [0] * 4, "y_pred": [1] * 6 + [0] * 5 + [1] * 2}
    columns = rows(FEW)
    data: dict[str, Any] = {name: [*columns[name], *third[name]] for name in third}
    group = [*columns["sensitive_features"], *["c"] * 13]
    result = omnibus_test(**data, sensitive_features=group, metric="f1_score", n_resamples=99)
    hits, trials = np.array([8, 5, 6]), np.array([15, 21, 11])
    p = hits.sum() / trials.sum()
    variance = (2 / (1 + p) ** 2) ** 2 * p * (1 - p) / trials
    values = f1(hits, trials)
    mean = np.average(values, weights=1 / variance)
    assert result.statistic == pytest.approx(((values - mean) ** 2 / variance).sum(), rel=1e-12)
    assert result.notes == ()


# -- Coverage --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "groups",
    [
        pytest.param((Group(60, 0.5, 0.8), Group(60, 0.2, 0.7)), id="small groups"),
        pytest.param((Group(500, 0.5, 0.8), Group(100, 0.2, 0.9)), id="of unequal size"),
    ],
)
def test_interval_covers_the_true_gap_often_enough(groups: tuple[Group, Group]) -> None:
    truth = [f1(tp, fp + fn + tp) for _, fp, fn, tp in (group.cells() for group in groups)]
    intervals = [
        Procedure("f1_score")(counts).confidence_interval
        for counts in draw_counts([groups], DATA_SETS, seed=24)
    ]
    covered = sum(low <= truth[0] - truth[1] <= high for low, high in intervals)
    assert covered >= at_least(0.95, DATA_SETS)
