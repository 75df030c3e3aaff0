"""The paper's studies in small sizes: what must come out does, and what must fail fails.

Bounds are binomial at 99.9 % (see ``simulate``), around the paper's values or those of the
design's long runs; none was fitted to what came out.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from scipy import integrate, stats

import studies
from studies import Study
from studies import simulate as populations
from studies.paper.fnr import fnr
from studies.paper.table1 import PAPER, correlate_halves, fairtest_pvalue, table1
from studies.paper.theorems import (
    derive_auc_limits,
    derive_correlation_limits,
    derive_fnr_limits,
    derive_mse_limits,
    theorems,
)
from tests.support.simulations import at_least, at_most, between

# most tests read the same two studies: two workers of pytest would each run them
pytestmark = pytest.mark.xdist_group("studies")

LEVEL = 0.05


def hits(study: Study, quantity: str) -> int:
    return round(study.row(quantity).ours * int(study.settings["data sets"]))


# FairTest's procedure.


@pytest.mark.parametrize("scale", [1.0, 1e10])
def test_halves_are_correlated_as_numpy_does(scale: float) -> None:
    rng = np.random.default_rng(1)
    x, error = rng.random(50), scale * rng.normal(size=50)
    expected = np.corrcoef(x, error)[0, 1]
    assert correlate_halves(np.concatenate([x, error])) == pytest.approx(expected, abs=1e-12)


def test_fairtest_shuffles_the_whole_pool() -> None:
    x, error = np.array([0.1, 0.7, 0.4]), np.array([-2.0, 3.0, 0.3])
    pool, observed = [*x, *error], abs(np.corrcoef(x, error)[0, 1])
    every = [abs(np.corrcoef(order[:3], order[3:])[0, 1]) for order in itertools.permutations(pool)]
    share = float(np.mean(np.array(every) > observed + 1e-12))
    draws = 20_000
    p = fairtest_pvalue(x, error, draws, np.random.default_rng(2))
    assert 0.05 < share < 0.95
    assert abs(p - share) <= 4 * math.sqrt(share * (1 - share) / draws)


def test_fairtest_has_no_pvalue_of_zero() -> None:
    x = np.arange(20.0)
    assert fairtest_pvalue(x, x, 50, np.random.default_rng(3)) == 1 / 50


# Table 1.


@pytest.fixture(scope="module")
def of_table1() -> Study:
    return table1(n_data_sets=250, n_resamples=99, seed=1, n_jobs=2, progress=False)


@pytest.mark.validate
def test_table1_has_the_papers_four_cells(of_table1: Study) -> None:
    cells = of_table1.rows[:4]
    assert all(row.quantity.endswith("1/|x|") for row in cells)
    assert [row.paper for row in cells] == [0.0428, 0.0501, 0.7508, 0.0099]
    assert len(PAPER) == 4
    for row in cells:
        assert row.paper is not None
        fewest, most = between(row.paper, row.paper, 250)
        assert fewest <= hits(of_table1, row.quantity) <= most
        assert row.agrees


@pytest.mark.validate
@pytest.mark.parametrize("example", ["uncorrelated", "independent"])
@pytest.mark.parametrize("spread", ["1/|x|", "1/x²"])
def test_algorithm_1_holds_its_level(of_table1: Study, example: str, spread: str) -> None:
    assert hits(of_table1, f"{example}, Algorithm 1, {spread}") <= at_most(LEVEL, 250)


@pytest.mark.validate
def test_the_others_do_not_where_errors_spread_unequally(of_table1: Study) -> None:
    for spread, rate in (("1/|x|", 0.38), ("1/x²", 0.55)):  # of the design's long runs
        fewest, most = between(rate, rate, 250)
        assert fewest <= hits(of_table1, f"uncorrelated, un-studentized, {spread}") <= most
        assert hits(of_table1, f"uncorrelated, FairTest, {spread}") > at_most(0.5, 250)


@pytest.mark.validate
def test_errors_over_the_square_do_not_give_the_papers_table(of_table1: Study) -> None:
    row = of_table1.row("uncorrelated, FairTest, 1/x²")
    assert row.paper == 0.7508
    assert hits(of_table1, row.quantity) > at_most(0.7508, 250)
    assert row.agrees is False


@pytest.mark.validate
def test_fairtest_is_biased_where_independence_fails(of_table1: Study) -> None:
    both = sum(hits(of_table1, f"independent, FairTest, {one}") for one in ("1/|x|", "1/x²"))
    assert both < at_least(LEVEL, 500)


# Section 4.2.


@pytest.fixture(scope="module")
def of_fnr() -> Study:
    return fnr(n_data_sets=600, n_resamples=199, seed=2, n_jobs=2, progress=False)


@pytest.mark.validate
@pytest.mark.parametrize(
    ("test", "low", "high"),
    [
        ("un-studentized", 0.116, 0.1216),
        ("studentized, score", 0.046, 0.049),
        ("studentized, wald", 0.075, 0.075),
        ("denominator", 0.0342, 0.0342),
        ("unconditional (our default)", 0.0446, 0.0446),  # of 10,000 data sets
        ("bootstrap, one-sided", 0.1078, 0.111),
        ("bootstrap, |T* − T|", 0.076, 0.082),
        ("bootstrap, equal tails", 0.093, 0.093),
    ],
)
def test_fnr_rejects_as_often_as_in_long_runs(
    of_fnr: Study, test: str, low: float, high: float
) -> None:
    fewest, most = between(low, high, 600)
    assert fewest <= hits(of_fnr, test) <= most


@pytest.mark.validate
def test_only_tests_that_are_valid_hold_the_level(of_fnr: Study) -> None:
    for valid in ("studentized, score", "denominator", "unconditional (our default)"):
        assert hits(of_fnr, valid) <= at_most(LEVEL, 600)
    for invalid in ("un-studentized", "bootstrap, one-sided"):
        assert hits(of_fnr, invalid) > at_most(LEVEL, 600)


@pytest.mark.validate
def test_histograms_are_of_the_same_pvalues(of_fnr: Study) -> None:
    table = of_fnr.tables["pvalues"]
    assert table["to"][0] == 0.05
    for row in of_fnr.rows:
        assert sum(table[row.quantity]) == 600
        assert table[row.quantity][0] == hits(of_fnr, row.quantity)


# Theorems 1–3.


@pytest.mark.validate
def test_variances_are_those_of_the_formulas() -> None:
    study = theorems(n_data_sets=50, seed=3, n_jobs=2, progress=False)
    assert len(study.rows) == 32
    assert all(row.agrees for row in study.rows), [r for r in study.rows if not r.agrees]
    for name in ("FNR, base rates 0.8 and 0.2, pooled", "AUC, spreads 3 and 1, within label"):
        sampling, permuted = study.row(f"{name}: samples"), study.row(f"{name}: permuted")
        assert sampling.paper is not None
        assert permuted.interval is not None
        assert permuted.interval[1] < 0.9 * sampling.paper  # permuting shrinks the variance


def test_limits_of_rates_give_the_papers_level() -> None:
    limits = derive_fnr_limits(populations.PAPER_FNR)
    assert limits.sampling == pytest.approx(400 * 0.09 * (1 / 160 + 1 / 40))
    assert limits.permutation == pytest.approx(400 * 0.09 * (1 / 100 + 1 / 100))
    assert limits.level(LEVEL) == pytest.approx(2 * stats.norm.sf(1.959964 * 0.8), abs=1e-6)


def test_limits_of_the_auc_are_delongs_components() -> None:
    population = populations.Scores((300, 700), (0.3, 0.6), spread=(3.0, 0.5))
    shifts, spreads = population.shift, population.spread
    positives, negatives = np.array([90.0, 420.0]), np.array([210.0, 280.0])

    def mean(function: Any, distribution: Any) -> float:
        value: float = distribution.expect(lambda s: function(s))
        return value

    of = [stats.norm(shift, spread) for shift, spread in zip(shifts, spreads, strict=True)]
    sampling = 0.0
    for positive, m, k in zip(of, positives, negatives, strict=True):
        sampling += (mean(lambda s: stats.norm.cdf(s) ** 2, positive) - 0.85**2) / m
        sampling += (mean(lambda s, p=positive: p.sf(s) ** 2, stats.norm()) - 0.85**2) / k
    share = positives / positives.sum()
    mixed = sum(
        w * mean(lambda s: stats.norm.cdf(s) ** 2, p) for w, p in zip(share, of, strict=True)
    )
    above, _ = integrate.quad(
        lambda s: sum(w * p.sf(s) for w, p in zip(share, of, strict=True)) ** 2 * stats.norm.pdf(s),
        -9,
        9,
    )
    within = derive_auc_limits(population, within_label=True)
    pooled = derive_auc_limits(population, within_label=False)
    assert within.sampling == pooled.sampling == pytest.approx(1000 * sampling, rel=1e-5)
    first, second = mixed - 0.85**2, above - 0.85**2
    expected = first * (1 / positives).sum() + second * (1 / negatives).sum()
    assert within.permutation == pytest.approx(1000 * expected, rel=1e-5)
    expected = first * (1 / 153 + 1 / 357) + second * (1 / 147 + 1 / 343)
    assert pooled.permutation == pytest.approx(1000 * expected, rel=1e-5)


def test_limits_of_squared_errors() -> None:
    limits = derive_mse_limits(populations.Regression((100, 300), kurtosis=(3.0, 9.0)))
    assert limits.sampling == pytest.approx(400 * (2 / 100 + 8 / 300))
    together = 0.25 * 2 + 0.75 * 8
    assert limits.permutation == pytest.approx(400 * together * (1 / 100 + 1 / 300))


@pytest.mark.parametrize("attribute", ["uniform", "exponential"])
def test_limits_of_correlations(attribute: str) -> None:
    population = populations.Correlation(4000, attribute, low=0.1)
    x = stats.uniform(0.1, 0.9) if attribute == "uniform" else stats.expon(1)
    product = x.expect(lambda one: (one - x.mean()) ** 2 * one**-4.0)
    expected = product / (x.var() * x.expect(lambda one: one**-4.0))
    assert derive_correlation_limits(population).sampling == pytest.approx(expected, rel=1e-6)


# All of them.


@pytest.mark.validate
@pytest.mark.parametrize(
    ("study", "options"),
    [
        (table1, {"n_data_sets": 15, "n_resamples": 39}),
        (fnr, {"n_data_sets": 25, "n_resamples": 39}),
        (theorems, {"n_data_sets": 12}),
    ],
    ids=["table1", "fnr", "theorems"],
)
def test_threads_change_no_number_and_seeds_do(study: Any, options: dict[str, int]) -> None:
    one, two, other = (
        study(seed=seed, n_jobs=jobs, progress=False, **options)
        for seed, jobs in ((5, 1), (5, 2), (6, 2))
    )
    assert one.rows == two.rows
    assert one.tables == two.tables
    assert one.rows != other.rows


@pytest.mark.parametrize("name", studies.NAMES)
def test_every_study_is_called_alike(name: str) -> None:
    function: Any = studies.get_study(name)
    wanted = {"quick": False, "seed": 0, "n_jobs": None, "progress": None}
    assert wanted.items() <= function.__kwdefaults__.items()
