"""F1 is a one-to-one function of a rate, and tested exactly as rates are.

A row that is positive or predicted positive is a true positive with probability J, Jaccard's index,
and F1 = 2J/(1 + J).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.stats import binom, hypergeom, multinomial, norm

from fairperm import equivalence_test, omnibus_test, permutation_test
from fairperm.hypothesis_tests.margins.one_sided import margin_pvalues
from fairperm.hypothesis_tests.margins.restricted_rates import F1Scores
from fairperm.planning.power import detectable_gap
from tests.support.helpers import Counts, Pair, rows
from tests.support.simulations import Group, Procedure, at_least, at_most, draw_counts

DATA_SETS = 1000
FEW: Pair = ((30, 3, 4, 8), (20, 9, 7, 5))  # 8 hits of 15 rows, and 5 of 21


def f1(hits: Any, trials: Any) -> Any:
    return 2 * hits / (hits + trials)


def test_pvalue_is_a_sum_of_hypergeometric_probabilities() -> None:
    result = permutation_test(**rows(FEW), metric="f1_score", scheme="denominator")
    (hits, trials), (others, other_trials) = (8, 15), (5, 21)
    a = np.arange(14)
    probability = hypergeom.pmf(a, trials + other_trials, hits + others, trials)
    gaps = np.abs(f1(a, trials) - f1(hits + others - a, other_trials))
    observed = abs(f1(hits, trials) - f1(others, other_trials))
    assert result.exact
    assert result.pvalue == pytest.approx(probability[gaps >= observed - 1e-12].sum(), rel=1e-12)
    assert result.counts["a"] == {"rows": 45, "hits": 8, "hits and misses": 15}
    assert result.validity == (
        "Exact for the weak null (equal f1_score; base rates may differ) at every sample size, "
        "given the number of rows that are positive or predicted positive."
    )


def test_statistic_has_the_error_of_one_rate() -> None:
    p, slope = 13 / 36, 2 / (1 + 13 / 36) ** 2
    error = slope * math.sqrt(p * (1 - p) * (1 / 15 + 1 / 21))
    result = permutation_test(**rows(FEW), metric="f1_score", scheme="denominator")
    assert result.statistic == pytest.approx((f1(8, 15) - f1(5, 21)) / error, rel=1e-12)


def test_interval_is_made_of_wilson_limits_of_the_rate() -> None:
    def limits(k: float, n: float, z: float) -> list[float]:
        roots = np.roots([n + z**2, -(2 * k + z**2), k**2 / n])
        return sorted(2 * one / (1 + one) for one in roots.tolist())

    result = permutation_test(**rows(FEW), metric="f1_score", scheme="denominator")
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


@pytest.mark.validate
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


@pytest.mark.validate
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


# -- Margins, ratios, gaps that could be found -----------------------------------------------------

COUNTS = [((8, 15), (5, 21)), ((10, 10), (9, 10)), ((0, 12), (3, 40)), ((15, 15), (60, 60))]


def likeliest(counts: F1Scores, first_of: Callable[[float], float], most: float) -> float:
    """Return the likeliest second score, by looking for it."""

    def unlikely(second: float) -> float:
        scores = first_of(second), second
        rates = [score / (2 - score) for score in scores]
        return -sum(
            float(binom.logpmf(k, n, min(max(p, 0), 1)))
            for (k, n), p in zip((counts.first, counts.second), rates, strict=True)
        )

    least = 1e-9 if first_of(0.0) >= 0 else -first_of(0.0)
    options = {"xatol": 1e-12}
    return float(minimize_scalar(unlikely, bounds=(least, most), options=options).x)


@pytest.mark.parametrize("counts", COUNTS, ids=str)
@pytest.mark.parametrize("gap", [-0.2, -0.05, 0.1])
def test_restricted_scores_by_difference_are_the_likeliest(counts: Any, gap: float) -> None:
    scores = F1Scores(*counts)
    first, second = scores.differing_by(gap)
    assert first - second == pytest.approx(gap)
    best = likeliest(scores, lambda one: one + gap, min(1.0, 1 - gap))
    assert second == pytest.approx(best, abs=1e-5)


@pytest.mark.parametrize("counts", COUNTS, ids=str)
@pytest.mark.parametrize("ratio", [0.8, 1.25])
def test_restricted_scores_by_ratio_are_the_likeliest(counts: Any, ratio: float) -> None:
    scores = F1Scores(*counts)
    first, second = scores.with_ratio(ratio)
    assert first == pytest.approx(ratio * second)
    best = likeliest(scores, lambda one: ratio * one, min(1.0, 1 / ratio))
    assert second == pytest.approx(best, abs=1e-5)


def test_error_is_that_of_a_function_of_a_rate() -> None:
    (error, other), (p, q) = F1Scores((8, 15), (5, 21)).errors((0.6, 0.4)), (0.6 / 1.4, 0.4 / 1.6)
    assert error == pytest.approx(2 / (1 + p) ** 2 * math.sqrt(p * (1 - p) / 15))
    assert other == pytest.approx(2 / (1 + q) ** 2 * math.sqrt(q * (1 - q) / 21))


def test_perfect_predictions_are_within_a_margin_if_there_are_enough() -> None:
    """Scores of 1 have no error of their own, but have one if the margin were the truth."""
    pvalues = []
    for n in (8, 150):
        data = rows(((9, 0, 0, n), (9, 0, 0, n)))
        result = equivalence_test(**data, metric="f1_score", margin=0.1)
        pvalues.append(result.pvalue)
    assert 0.05 < pvalues[0] < 0.5
    assert pvalues[1] < 0.001


AT_THE_MARGIN = (Group(150, 0.5, 0.7, 0.8), Group(400, 0.3, 0.9, 0.9))


@pytest.mark.validate
def test_noninferiority_holds_its_level_at_the_margin() -> None:
    truth = [f1(tp, fp + fn + tp) for _, fp, fn, tp in (one.cells() for one in AT_THE_MARGIN)]
    margin = truth[1] - truth[0]
    assert margin > 0.05
    met = 0
    for counts in draw_counts([AT_THE_MARGIN], DATA_SETS, seed=26):
        above, _ = margin_pvalues(Procedure("f1_score")(counts), margin)
        met += above.pvalue <= 0.05
    assert met <= at_most(0.05, DATA_SETS)


@pytest.mark.validate
@pytest.mark.parametrize(
    ("trials", "within"),
    [((20, 20), 0.02), ((12, 30), 0.1), ((30, 12), 0.1)],  # of unlike sizes, that of J is near it
)
def test_detectable_gap_is_found_as_often_as_it_says(
    trials: tuple[int, int], within: float
) -> None:
    m, n = trials
    outcome = np.array(
        [
            [Procedure("f1_score")([[(9, m - k, 0, k), (9, 0, n - j, j)]]).pvalue <= 0.05]
            for k in range(m + 1)
            for j in range(n + 1)
        ]
    ).reshape(m + 1, n + 1)
    data = rows(((9, m - m // 2, 0, m // 2), (9, 0, n - n // 2, n // 2)))
    gap = detectable_gap(permutation_test(**data, metric="f1_score"), 0.05)
    second = f1(m // 2 + n // 2, m + n)
    powers = []
    for first in (second - gap, second + gap):
        rates = [score / (2 - score) for score in (min(max(first, 0.0), 1.0), second)]
        chances = [binom.pmf(np.arange(k + 1), k, p) for k, p in zip(trials, rates, strict=True)]
        powers.append(chances[0] @ outcome @ chances[1])
    assert min(powers) == pytest.approx(0.8, abs=within)


# -- Coverage --------------------------------------------------------------------------------------


@pytest.mark.validate
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
