"""Strata with one row or few rows of a group: levels, coverage and power, and refusals.

Designs and metrics were fixed before their levels were known. The negative control divides by
variances that are zero in strata of one row, as the tests once did.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from fairperm import UndefinedMetricError, equivalence_test, permutation_test
from tests.support.simulations import at_least, at_most

if TYPE_CHECKING:
    from collections.abc import Callable

    Design = Callable[[np.random.Generator], tuple[np.ndarray, np.ndarray]]

pytestmark = pytest.mark.filterwarnings("ignore::fairperm.FairpermWarning")


def equal(a: int, b: int, strata: int) -> Design:
    """Return strata that all have so many rows of each group."""
    return lambda _: (np.full(strata, a), np.full(strata, b))


DESIGNS: dict[str, Design] = {
    "100 pairs": equal(1, 1, 100),
    "100 of 1 and 3": equal(1, 3, 100),
    "100 of 3 and 1": equal(3, 1, 100),
    "60 of 2 and 2": equal(2, 2, 60),
    "60 Poisson": lambda rng: (rng.poisson(1.5, 60), rng.poisson(6, 60)),
    "one large, 40 of 1 and 2": lambda _: (np.r_[np.ones(40, int), 60], np.r_[[2] * 40, 80]),
}


def rows(design: Design, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return the stratum of each row, and whether it is of the first group."""
    first, second = design(rng)
    stratum = np.repeat(np.arange(len(first)), first + second)
    in_first = np.concatenate([np.arange(a + b) < a for a, b in zip(first, second, strict=True)])
    return stratum, in_first


def errors(design: Design, seed: int, gap: float = 0.0) -> dict[str, Any]:
    """Return errors of mean zero, of which the first group's spread thrice as far."""
    rng = np.random.default_rng([7, seed])
    stratum, in_first = rows(design, rng)
    error = rng.normal(size=len(stratum)) * np.where(in_first, 3, 1) + gap * in_first
    error += rng.normal(size=stratum.max() + 1)[stratum]
    return {
        "y_true": np.zeros(len(error)),
        "y_pred": error,
        "sensitive_features": np.where(in_first, "a", "b"),
        "control_features": stratum,
    }


def outcomes(design: Design, seed: int, rates: tuple[float, float]) -> dict[str, Any]:
    """Return predictions that are positive at these rates, a little more often in some strata."""
    rng = np.random.default_rng([8, seed])
    stratum, in_first = rows(design, rng)
    shift = rng.uniform(-0.2, 0.2, stratum.max() + 1)[stratum]
    y = (rng.random(len(stratum)) < np.where(in_first, *rates) + shift).astype(int)
    return {
        "y_true": y,
        "y_pred": y,
        "sensitive_features": np.where(in_first, "a", "b"),
        "control_features": stratum,
    }


# -- Quick ---------------------------------------------------------------------------------------


def test_pairs_find_a_gap_and_have_an_interval() -> None:
    """It is the paired test: the error is that of the mean of the pairs' differences."""
    rng = np.random.default_rng(0)
    group = np.tile(["a", "b"], 100)
    y_pred = rng.normal(size=200) + 5 * (group == "a")
    result = permutation_test(
        np.zeros(200),
        y_pred,
        sensitive_features=group,
        control_features=np.repeat(np.arange(100), 2),
        metric="mean_error",
        n_resamples=199,
        rng=0,
    )
    difference = y_pred[::2] - y_pred[1::2]
    assert result.pvalue == 2 / 200
    assert result.standard_error == pytest.approx(difference.std(ddof=1) / 10, rel=1e-9)
    low, high = result.confidence_interval
    assert 4 < low < result.difference < high < 6


def test_variances_of_strata_and_between_strata_add_up() -> None:
    """By hand: two strata with variances of their own, and three in which a group has one row."""
    first, second = [3, 2, 1, 1, 2], [4, 2, 1, 3, 1]
    rng = np.random.default_rng(1)
    stratum, in_first = rows(lambda _: (np.array(first), np.array(second)), rng)
    y_pred = rng.normal(size=len(stratum))
    result = permutation_test(
        np.zeros(len(stratum)),
        y_pred,
        sensitive_features=np.where(in_first, "a", "b"),
        control_features=stratum,
        metric="mean_error",
        n_resamples=9,
        rng=0,
    )
    weights = np.array([a * b / (a + b) for a, b in zip(first, second, strict=True)])
    share = weights / weights.sum()
    parts = [
        (y_pred[(stratum == s) & in_first], y_pred[(stratum == s) & ~in_first]) for s in range(5)
    ]
    gaps = np.array([a.mean() - b.mean() for a, b in parts])
    own = sum(
        share[s] ** 2 * (parts[s][0].var(ddof=1) / first[s] + parts[s][1].var(ddof=1) / second[s])
        for s in (0, 1)
    )
    among = share[2:] / share[2:].sum()
    between = (share[2:] ** 2 * (gaps[2:] - among @ gaps[2:]) ** 2 / (1 - among)).sum()
    assert result.difference == pytest.approx(share @ gaps, rel=1e-12)
    assert result.standard_error == pytest.approx(np.sqrt(own + between), rel=1e-9)


def test_one_stratum_of_single_rows_has_no_error_and_is_refused() -> None:
    data = errors(lambda _: (np.array([1, 20]), np.array([2, 20])), seed=1)
    with pytest.raises(UndefinedMetricError, match="standard error"):
        permutation_test(**data, metric="mean_error", n_resamples=99, rng=1)


def test_no_pvalue_comes_from_an_error_of_zero() -> None:
    """Two equal rows of each group in every stratum: the groups differ, and nothing varies."""
    group = np.tile(["a", "a", "b", "b"], 10)
    with pytest.raises(UndefinedMetricError, match="standard error"):
        permutation_test(
            np.zeros(40),
            (group == "a").astype(float),
            sensitive_features=group,
            control_features=np.repeat(np.arange(10), 4),
            metric="mean_error",
            n_resamples=99,
            rng=1,
        )


@pytest.mark.parametrize("rate", [0, 1])
@pytest.mark.parametrize("sizes", [(1, 3), (3, 1), (2, 2)], ids=str)
def test_rates_that_are_all_alike_have_intervals_with_a_width(
    rate: int, sizes: tuple[int, int]
) -> None:
    """Nothing varies in the sample, but that does not make the gap known."""
    group = np.tile(np.repeat(["a", "b"], sizes), 20)
    y = np.full(len(group), rate)
    result = permutation_test(
        y,
        y,
        sensitive_features=group,
        control_features=np.repeat(np.arange(20), sum(sizes)),
        metric="selection_rate",
        rng=1,
    )
    low, high = result.confidence_interval
    assert result.pvalue == 1
    assert low < -0.04 < 0.04 < high


def test_more_strata_than_an_array_has_axes_are_enumerated() -> None:
    y = (np.random.default_rng(0).random(140) < 0.05).astype(int)
    result = permutation_test(
        y,
        y,
        sensitive_features=np.tile(["a", "b"], 70),
        control_features=np.repeat(np.arange(70), 2),
        metric="selection_rate",
        rng=0,
    )
    discordant = int((y[::2] != y[1::2]).sum())
    assert result.exact
    assert len(result.null_distribution) == 2**discordant


# -- Simulations ---------------------------------------------------------------------------------

DATA_SETS = 300


@pytest.mark.validate
@pytest.mark.parametrize("design", DESIGNS.values(), ids=DESIGNS)
def test_level_and_coverage_of_a_mean(design: Design) -> None:
    rejected, covered = [], []
    for seed in range(DATA_SETS):
        result = permutation_test(
            **errors(design, seed), metric="mean_error", n_resamples=199, rng=seed
        )
        low, high = result.confidence_interval
        rejected.append(result.pvalue <= 0.05)
        covered.append(low <= 0 <= high)
    assert sum(rejected) <= at_most(0.05, DATA_SETS)
    assert sum(covered) >= at_least(0.95, DATA_SETS)


@pytest.mark.validate
@pytest.mark.parametrize("rate", [0.3, 0.5])
@pytest.mark.parametrize("design", DESIGNS.values(), ids=DESIGNS)
def test_level_and_coverage_of_a_rate_and_no_contradiction(design: Design, rate: float) -> None:
    rejected, covered = [], []
    for seed in range(DATA_SETS):
        result = permutation_test(
            **outcomes(design, seed, (rate, rate)),
            metric="selection_rate",
            n_resamples=199,
            rng=seed,
        )
        low, high = result.confidence_interval
        rejected.append(result.pvalue <= 0.05)
        covered.append(low <= 0 <= high)
        assert (result.pvalue <= 0.05) == (not low <= 0 <= high)
    assert sum(rejected) <= at_most(0.05, DATA_SETS)
    assert sum(covered) >= at_least(0.95, DATA_SETS)


@pytest.mark.validate
@pytest.mark.parametrize("design", DESIGNS.values(), ids=DESIGNS)
def test_level_at_the_margin_and_coverage_of_a_gap(design: Design) -> None:
    rejected, covered = [], []
    for seed in range(DATA_SETS):
        result = equivalence_test(
            **outcomes(design, seed, (0.6, 0.5)),
            metric="selection_rate",
            margin=0.1,
            n_resamples=199,
            rng=seed,
        )
        low, high = result.permutation.confidence_interval
        rejected.append(result.pvalue <= 0.05)
        covered.append(low <= 0.1 <= high)
    assert sum(rejected) <= at_most(0.05, DATA_SETS)
    assert sum(covered) >= at_least(0.95, DATA_SETS)


@pytest.mark.validate
def test_variances_of_single_rows_reject_far_too_often() -> None:
    """The control: within-stratum variances alone, in strata of one and three rows."""
    rejected = []
    for seed in range(DATA_SETS):
        data = errors(DESIGNS["100 of 1 and 3"], seed)
        in_first = data["sensitive_features"] == "a"
        single = data["y_pred"][in_first]
        others = data["y_pred"][~in_first].reshape(100, 3)
        error = np.sqrt((others.var(axis=1) / 3).sum()) / 100
        rejected.append(abs((single - others.mean(axis=1)).mean() / error) > 1.96)
    assert sum(rejected) > 0.2 * DATA_SETS
