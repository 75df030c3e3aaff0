"""Levels, power, bias and coverage where groups are known only as probabilities.

Settings were fixed before any result was seen. Bounds are binomial; each procedure stands beside
one that must fail in the same data.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom

from fairperm import FairpermWarning, permutation_test
from tests.support.simulations import SURE

Array = NDArray[Any]
WEIGHTING, LEAST_SQUARES = "group_given_proxy", "outcome_given_group"
ASSUMPTIONS = (WEIGHTING, LEAST_SQUARES)
pytestmark = pytest.mark.validate


def gap_test(y: Array, shares: Array, assumption: str, **given: Any) -> Any:
    names = "abcd"[: shares.shape[1]]
    options: dict[str, Any] = {"n_resamples": 199, "n_jobs": 1, "progress": False, "rng": 1}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FairpermWarning)
        return permutation_test(
            y_pred=y,
            metric="selection_rate",
            group_probabilities=dict(zip(names, shares.T, strict=True)),
            groups=("a", "b"),
            **options | {"proxy_assumption": assumption} | given,
        )


def rejections(
    draw: Callable[[np.random.Generator], dict[str, Any]], data_sets: int, **given: Any
) -> dict[str, int]:
    """Return how many data sets each assumption's test rejects at 0.05."""
    rng, found = np.random.default_rng(40), dict.fromkeys(ASSUMPTIONS, 0)
    for _ in range(data_sets):
        columns = draw(rng)
        for one in ASSUMPTIONS:
            found[one] += gap_test(**columns, assumption=one, **given).pvalue <= 0.05
    return found


def most(data_sets: int, level: float = 0.05) -> float:
    """Return the most rejections that a test of this level has, but once in a thousand."""
    return float(binom.ppf(SURE, data_sets, level))


def pick(shares: Array, rng: np.random.Generator) -> Array:
    """Return a group of each row by its probabilities."""
    return np.asarray((rng.random((len(shares), 1)) > shares.cumsum(axis=1)[:, :-1]).sum(axis=1))


def of_two(rates: tuple[float, float], n: int = 2000) -> Callable[..., dict[str, Any]]:
    def draw(rng: np.random.Generator) -> dict[str, Any]:
        share = rng.beta(2, 2, n)
        shares = np.stack([share, 1 - share], axis=1)
        return {"y": rng.random(n) < np.array(rates)[pick(shares, rng)], "shares": shares}

    return draw


def counts_pvalue(y: Array, shares: Array) -> float:
    """Return p of a two-proportion test that takes probabilities for counts."""
    n, k = shares.sum(axis=0), y @ shares
    pooled = k.sum() / n.sum()
    z = (k[0] / n[0] - k[1] / n[1]) / math.sqrt(pooled * (1 - pooled) * (1 / n).sum())
    return 2 * NormalDist().cdf(-abs(z))


def test_level_and_power_with_two_groups() -> None:
    data_sets = 600
    for n, rate in ((2000, 0.3), (150, 0.1)):  # of a rare outcome, permutations stay exact
        found = rejections(of_two((rate, rate), n), data_sets)
        assert max(found.values()) <= most(data_sets)
    # 0.20 and 0.60 in an independent prototype
    for gap, low, high in ((0.05, 0.13, 0.28), (0.1, 0.5, 0.72)):
        found = rejections(of_two((0.3 + gap, 0.3)), 300)
        assert all(low <= one / 300 <= high for one in found.values())
    rng, draw = np.random.default_rng(40), of_two((0.3, 0.3))
    by_counts = [counts_pvalue(**draw(rng)) for _ in range(data_sets)]
    assert sum(p <= 0.05 for p in by_counts) < binom.ppf(1 - SURE, data_sets, 0.05)  # no power


def of_three(rng: np.random.Generator) -> dict[str, Any]:
    """Return rows of two equal groups and a third; a and c live together, and so do a and b."""
    shares = np.where(
        rng.random((2000, 1)) < 0.5,
        rng.dirichlet([3, 0.3, 3], 2000),
        rng.dirichlet([2, 6, 0.3], 2000),
    )
    return {"y": rng.random(2000) < np.array([0.3, 0.3, 0.6])[pick(shares, rng)], "shares": shares}


def test_a_third_group_that_differs_misleads_weighting_only() -> None:
    found = rejections(of_three, 400)
    assert found[LEAST_SQUARES] <= most(400)
    assert found[WEIGHTING] > 380  # the assumption does not hold, which its sentences say
    answer = gap_test(**of_three(np.random.default_rng(1)), assumption=WEIGHTING).answer
    assert "a third group can make one" in answer


def test_surnames_shared_by_families_need_clusters() -> None:
    def draw(rng: np.random.Generator) -> dict[str, Any]:
        name = np.repeat(np.arange(150), rng.integers(1, 20, 150))
        share = rng.beta(0.5, 0.5, 150)[name]
        chance = 1 / (1 + np.exp(0.8 - rng.normal(size=150)[name]))
        return {
            "y": rng.random(len(name)) < chance,
            "shares": np.stack([share, 1 - share], axis=1),
            "cluster": name,
        }

    found = rejections(draw, 400)
    assert max(found.values()) <= most(400)
    alone = rejections(lambda rng: draw(rng) | {"cluster": None}, 400)
    assert min(alone.values()) > most(400, 0.1)


def test_probabilities_estimated_with_error_hold_the_level() -> None:
    def noisy(rng: np.random.Generator) -> dict[str, Any]:
        drawn = of_two((0.3, 0.3))(rng)
        share = np.clip(drawn["shares"][:, 0] + rng.normal(0, 0.2, 2000), 0, 1)
        return drawn | {"shares": np.stack([share, 1 - share], axis=1)}

    assert max(rejections(noisy, 400).values()) <= most(400)

    def coarse(rng: np.random.Generator) -> dict[str, Any]:
        """Return the shares of cells: right on average, though wrong for every row."""
        drawn = of_three(rng)
        _, cell = np.unique((4 * drawn["shares"]).round(), axis=0, return_inverse=True)
        cell = cell.ravel()
        means = [np.bincount(cell, one) / np.bincount(cell) for one in drawn["shares"].T]
        return drawn | {"shares": np.stack(means, axis=1)[cell]}

    assert rejections(coarse, 400)[LEAST_SQUARES] <= most(400)

    def wrong(rng: np.random.Generator) -> dict[str, Any]:
        """Return shares with errors of their own: those of the third group spread to others."""
        drawn = of_three(rng)
        moved = np.clip(drawn["shares"] + rng.normal(0, 0.3, (2000, 3)), 0.001, 1)
        return drawn | {"shares": moved / moved.sum(axis=1, keepdims=True)}

    assert rejections(wrong, 400)[LEAST_SQUARES] > most(400, 0.3)


def test_each_estimate_has_the_bias_of_the_assumption_that_fails() -> None:
    """A 3 × 3 grid: how far outcomes depend on the group, and on the proxy within a group."""
    rng, n = np.random.default_rng(7), 200_000
    cell = rng.integers(0, 20, n)
    share = (cell + 0.5) / 20
    shares = np.stack([share, 1 - share], axis=1)
    group = pick(shares, rng)
    told = share[group == 0].mean() - share[group == 1].mean()  # what proxies say of groups: 1/3
    for by_group in (0.0, -0.1, -0.2):
        for by_proxy in (0.0, 0.1, 0.2):
            chance = 0.5 + by_group * (group == 0) + by_proxy * share
            y = rng.random(n) < chance
            truth = chance[group == 0].mean() - chance[group == 1].mean()
            found = {
                one: gap_test(y, shares, one, proxy=cell, n_resamples=0) for one in ASSUMPTIONS
            }
            bias = {LEAST_SQUARES: by_proxy * (1 - told), WEIGHTING: -by_group * (1 - told)}
            for one, result in found.items():
                off = result.difference - truth
                assert abs(off - bias[one]) < 4 * result.standard_error
                assert (abs(off) > 4 * result.standard_error) == (bias[one] != 0)
                low, high = result.bounds_interval
                assert low < truth < high


def test_intervals_and_bounds_cover_in_a_thousand_populations() -> None:
    rng, n, cells, populations = np.random.default_rng(8), 2000, 20, 1000
    covered = {"interval": 0, "bounds": 0, "narrow": 0}
    share_of_cell = np.linspace(0.03, 0.97, cells)
    cell = np.repeat(np.arange(cells), n // cells)
    share = share_of_cell[cell]
    shares = np.stack([share, 1 - share], axis=1)
    for _ in range(populations):
        rates = rng.uniform(0.2, 0.8, 2)
        group = pick(shares, rng)
        y = rng.random(n) < rates[group]
        result = gap_test(y, shares, LEAST_SQUARES, proxy=cell)
        low, high = result.confidence_interval
        covered["interval"] += low <= rates[0] - rates[1] <= high
        # of the population: outcomes near the probabilities, where bounds have their kinks
        chance = share_of_cell @ np.diag([rates[0]] * cells) + (1 - share_of_cell) * rates[1]
        ends = true_bounds(chance, share_of_cell)
        low, high = result.bounds_interval
        covered["bounds"] += low <= ends[0] and ends[1] <= high
        # the control: bounds from cells' own rates, without an interval
        own = true_bounds(np.bincount(cell, y) / np.bincount(cell), share_of_cell)
        covered["narrow"] += own[0] <= ends[0] and ends[1] <= own[1]
    for name in ("interval", "bounds"):
        assert covered[name] >= binom.ppf(1 - SURE, populations, 0.95)
    assert covered["narrow"] < populations / 2


def true_bounds(chance: Array, share: Array) -> tuple[float, float]:
    """Return the bounds of equally large cells with these chances and probabilities."""
    first, second = share.sum(), (1 - share).sum()
    least = np.maximum(0, chance + share - 1).sum() / first
    most_of_second = np.minimum(chance, 1 - share).sum() / second
    largest = np.minimum(chance, share).sum() / first
    least_of_second = np.maximum(0, chance - share).sum() / second
    return float(least - most_of_second), float(largest - least_of_second)
