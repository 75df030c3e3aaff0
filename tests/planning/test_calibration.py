"""Levels and powers that are known, found again from data; and what a result says.

Bounds are 99.9 % quantiles of the binomial distribution at the known rate.
"""

from __future__ import annotations

import itertools
import json
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest, hypergeom, multinomial, norm

from fairperm import Calibration, FairpermWarning, calibrate, permutation_test
from tests.support.helpers import rows
from tests.support.simulations import at_most, between

LEVEL = 0.05
SAMPLES = 500

Columns = dict[str, Any]

# The paper's setting, as data: 200 rows each, base rates 0.8 and 0.2, a tenth of positives missed.
PAPER = rows(((36, 4, 16, 144), (144, 16, 4, 36)))
GAP = rows(((36, 4, 16, 144), (144, 16, 8, 32)))  # the same with a gap: 0.1 and 0.2


@pytest.mark.validate
@pytest.mark.parametrize(
    ("variance", "scheme", "low", "high"),
    [
        pytest.param(None, "pooled", 0.116, 0.118, id="un-studentized"),
        pytest.param("score", "pooled", 0.046, 0.049, id="score"),
        pytest.param("score", "denominator", 0.0342, 0.0342, id="denominator"),
    ],
)
def test_finds_the_levels_that_are_known_in_the_papers_setting(
    variance: str | None, scheme: str, low: float, high: float
) -> None:
    """They are those of tests/hypothesis_tests/test_levels.py: long runs, and all outcomes."""
    found = calibrate(
        **PAPER, metric="fnr", scheme=scheme, variance=variance, n_simulations=SAMPLES, rng=5
    )
    assert found.moved == (0, 0)
    # there is no gap, so that both are of samples from one population
    fewest, most = between(low, high, 2 * SAMPLES)
    assert fewest <= (found.level + found.power) * SAMPLES <= most


@cache
def with_a_gap(variance: str | None) -> Calibration:
    return calibrate(
        **GAP, metric="fnr", scheme="pooled", variance=variance, n_simulations=SAMPLES, rng=6
    )


@pytest.mark.validate
def test_a_test_that_only_shuffles_is_found_out_where_there_is_a_gap() -> None:
    found = with_a_gap(None)
    assert found.level * SAMPLES > at_most(LEVEL, SAMPLES)
    assert found.level_interval[0] > LEVEL
    assert found.power > 2 * found.level


@pytest.mark.validate
def test_a_studentized_test_is_found_to_hold_its_level() -> None:
    found = with_a_gap("score")
    assert found.level * SAMPLES <= at_most(LEVEL, SAMPLES)
    assert found.level_interval[0] <= LEVEL
    assert found.gap == pytest.approx(-0.1)


# An oracle: the sum over all outcomes, with p-values from the definition.


def fnr_pvalue(first: tuple[int, ...], second: tuple[int, ...]) -> float | None:
    """Shuffle labels in every way; counts are of negatives, misses and hits; None: no test."""
    if first[1] + first[2] == 0 or second[1] + second[2] == 0:
        return None
    pool, size = np.add(first, second), sum(first)
    misses, hits = (one.ravel() for one in np.mgrid[0 : pool[1] + 1, 0 : pool[2] + 1])
    chance = hypergeom.pmf(misses + hits, pool.sum(), pool[1] + pool[2], size) * hypergeom.pmf(
        misses, pool[1] + pool[2], pool[1], misses + hits
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        gap = misses / (misses + hits) - (pool[1] - misses) / (pool[1:].sum() - misses - hits)
    observed = first[1] / (first[1] + first[2]) - second[1] / (second[1] + second[2])
    extreme = ~(np.abs(gap) < abs(observed) - 1e-12)  # and where it is undefined
    return float(np.nan_to_num(chance)[extreme].sum())


def limit_pvalue(first: tuple[int, ...], second: tuple[int, ...]) -> float | None:
    """Return that of the normal limit, whose variance has the rate of both; None: no test."""
    (_, misses, hits), (_, others, rest) = first, second
    rate = (misses + others) / max(sum(first[1:]) + sum(second[1:]), 1)
    if misses + hits == 0 or others + rest == 0 or rate in {0, 1}:
        return None
    error = np.sqrt(rate * (1 - rate) * (1 / (misses + hits) + 1 / (others + rest)))
    gap = misses / (misses + hits) - others / (others + rest)
    return float(2 * norm.sf(abs(gap) / error))


def outcomes(size: int) -> list[tuple[int, int, int]]:
    both = itertools.product(range(size + 1), repeat=2)
    return [(size - a - b, a, b) for a, b in both if a + b <= size]


def chances_of(first: list[float], second: list[float]) -> list[float]:
    """Return the probability of every outcome of 9 rows and 6."""
    both = multinomial.pmf(outcomes(9), 9, first), multinomial.pmf(outcomes(6), 6, second)
    chances: list[float] = np.outer(*both).ravel().tolist()
    return chances


@pytest.mark.validate
@pytest.mark.parametrize(
    ("pvalue", "options"),
    [
        pytest.param(fnr_pvalue, {"scheme": "pooled", "variance": None}, id="permutations"),
        pytest.param(limit_pvalue, {"n_resamples": 0}, id="normal limit"),
    ],
)
def test_level_and_power_are_those_of_summing_over_all_outcomes(
    pvalue: Callable[..., float | None], options: Columns
) -> None:
    # 9 rows with 7 positives, 3 missed; 6 rows with 3 positives, 2 missed: together 5 of 10
    given = rows(((2, 0, 3, 4), (2, 1, 2, 1)))
    equal = ([2 / 9, 7 / 18, 7 / 18], [1 / 2, 1 / 4, 1 / 4])
    own = ([2 / 9, 3 / 9, 4 / 9], [1 / 2, 1 / 3, 1 / 6])
    alpha, n = 0.2, 500
    pvalues = [pvalue(*pair) for pair in itertools.product(outcomes(9), outcomes(6))]
    undefined, missing, rejected, found = (
        sum(itertools.compress(chances, chosen))
        for chosen in (
            [p is None for p in pvalues],
            [p is not None and p <= alpha for p in pvalues],
        )
        for chances in (chances_of(*equal), chances_of(*own))
    )
    result = calibrate(
        **given,
        **options,
        metric="fnr",
        alpha=alpha,
        n_simulations=n,
        rng=3,
    )
    for count, chance in zip(result.n_undefined, (undefined, missing), strict=True):
        low, high = between(chance, chance, n)
        assert low <= count <= high
    tests = n - result.n_undefined[0]
    level = rejected / (1 - undefined)
    low, high = between(level, level, tests)
    assert low <= result.level * tests <= high
    low, high = between(found, found, n)
    assert low <= result.power * n <= high
    interval = binomtest(round(result.level * tests), tests).proportion_ci(0.95, method="exact")
    assert result.level_interval == pytest.approx((interval.low, interval.high))
    interval = binomtest(round(result.power * n), n).proportion_ci(0.95, method="exact")
    assert result.power_interval == pytest.approx((interval.low, interval.high))


# Metrics of numbers: groups that differ in size and in spread.


def errors(seed: int = 1) -> Columns:
    rng = np.random.default_rng(seed)
    group = np.repeat([0, 1], [150, 450])
    even = rng.uniform(-1.8, 1.8, 600)
    return {
        "y_true": np.zeros(600),
        "y_pred": np.where(group == 0, rng.normal(size=600), even),
        "sensitive_features": group,
        "metric": "mean_squared_error",
    }


@pytest.mark.validate
def test_unequal_spread_is_found_to_matter_for_means() -> None:
    n = 300
    plain = calibrate(**errors(), variance=None, n_simulations=n, n_resamples=99, rng=2)
    divided = calibrate(**errors(), n_simulations=n, n_resamples=99, rng=2)
    assert plain.level * n > at_most(LEVEL, n)
    assert divided.level * n <= at_most(LEVEL, n)
    assert divided.variance == "hall"


def scores(seed: int = 1) -> Columns:
    rng = np.random.default_rng(seed)
    group = np.repeat([0, 1], [120, 80])
    label = rng.random(200) < np.where(group, 0.6, 0.4)
    return {
        "y_true": label,
        "y_score": rng.normal(size=200) + np.where(group, 1.4, 0.8) * label,
        "sensitive_features": group,
        "metric": "roc_auc",
    }


@pytest.mark.validate
def test_the_aucs_level_is_held_and_its_power_found() -> None:
    n = 300
    found = calibrate(**scores(), n_simulations=n, n_resamples=99, rng=4)
    assert found.level * n <= at_most(LEVEL, n)
    assert found.power > found.level
    assert "roc_auc was 0." in found.null


# Chance in the user's sample.


def heavy_tails(rng: np.random.Generator) -> Columns:
    """Return errors of equal mean square, with heavy tails in a tenth of the rows."""
    errors = np.append(rng.standard_t(4, 60) / np.sqrt(2), rng.normal(size=600))
    group = np.repeat([0, 1], [60, 600])
    return {"y_true": 0 * errors, "y_pred": errors, "sensitive_features": group}


@pytest.mark.validate
def test_the_total_interval_allows_for_the_users_sample() -> None:
    """In longer trials the level was 0.149; 15 of 20 total intervals had it, none of the others."""
    rng = np.random.default_rng(77)
    options: Columns = {"metric": "mean_squared_error", "n_resamples": 59}
    found = [
        calibrate(**heavy_tails(rng), **options, n_simulations=200, rng=seed) for seed in range(8)
    ]
    levels = [one.level for one in found]
    assert max(levels) - min(levels) > 0.1
    total = [one.level_total_interval for one in found]
    alone = [one.level_interval for one in found]
    assert sum(low <= 0.149 <= high for low, high in total) >= 6
    assert sum(low <= 0.149 <= high for low, high in alone) <= 3


# One seed, one answer.


@pytest.mark.parametrize(
    ("given", "n_jobs"), [(scores(), 2), (errors(), 1)], ids=["scores", "errors"]
)
def test_row_order_and_processes_change_nothing(given: Columns, n_jobs: int) -> None:
    shared: Columns = {"n_simulations": 12, "n_resamples": 39, "rng": 8}
    expected = calibrate(**given, **shared)
    order = np.random.default_rng(0).permutation(len(given["y_true"]))
    columns = {name: one for name, one in given.items() if name != "metric"}
    mixed = {name: one[order] for name, one in columns.items()}
    again = calibrate(**mixed, metric=given["metric"], **shared, n_jobs=n_jobs)
    assert again.to_dict() == expected.to_dict()
    frame = pd.DataFrame(mixed)
    names: Columns = {name: name for name in columns}
    named = calibrate(**names, metric=given["metric"], data=frame, **shared)
    assert named.to_dict() == expected.to_dict()
    assert expected.seed == 8
    assert 0 < expected.power <= 1


def test_a_generator_gives_its_next_seed() -> None:
    first = calibrate(**GAP, metric="fnr", n_simulations=5, rng=np.random.default_rng(1))
    again = calibrate(**GAP, metric="fnr", n_simulations=5, rng=first.seed)
    assert again.to_dict() == first.to_dict()


# What it takes.


@pytest.mark.validate
def test_power_is_for_the_gap_that_is_asked_for() -> None:
    shared: Columns = {**GAP, "metric": "fnr", "n_simulations": 100, "rng": 1}
    powers = [calibrate(**shared, gap=gap) for gap in (-0.1, -0.25, -0.4)]
    assert [one.gap for one in powers] == [-0.1, -0.25, -0.4]
    assert powers[0].power < powers[1].power < powers[2].power
    assert powers[2].power > 0.9
    # the observed gap is the one that there is if none is asked for
    assert calibrate(**shared).power == pytest.approx(powers[0].power)


def test_an_alternative_has_its_side() -> None:
    shared: Columns = {**GAP, "metric": "fnr", "gap": -0.4, "n_simulations": 40, "rng": 1}
    assert calibrate(**shared, alternative="less").power > 0.9
    assert calibrate(**shared, alternative="greater").power == 0


@pytest.mark.parametrize(
    "changes",
    [
        {"metric": "equalized_odds"},
        {"metric": "f1_macro"},
        {"metric": "accuracy", "sample_weight": np.linspace(1, 2, 400)},
        {
            "metric": "tpr",
            "control_features": ["x", "y"] * 200,
            "stratum_weights": {"x": 1, "y": 2},
        },
        {"metric": "tpr", "variance": "bootstrap", "n_bootstrap": 10},
        {"metric": "f1_score", "variance": "fast_bootstrap"},
        {"metric": "fpr", "scheme": "pooled", "groups": ("b", "a")},
    ],
    ids=["joint", "macro", "weights", "strata", "bootstrap", "fast bootstrap", "groups"],
)
def test_takes_what_the_test_takes(changes: Columns) -> None:
    found = calibrate(**GAP, **changes, n_simulations=6, n_resamples=39, rng=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FairpermWarning)
        expected = permutation_test(**GAP, **changes, n_resamples=39, rng=1)
    assert found.notes == expected.notes  # which calibrate answers, and does not warn of
    for name in ("metric", "groups", "scheme", "variance", "alternative"):
        assert getattr(found, name) == getattr(expected, name)
    assert found.gap == expected.difference
    assert found.sizes == (200, 200)
    for low, value, high in (
        (found.level_interval[0], found.level, found.level_interval[1]),
        (found.power_interval[0], found.power, found.power_interval[1]),
        (found.level_total_interval[0], found.level, found.level_total_interval[1]),
        (found.power_total_interval[0], found.power, found.power_total_interval[1]),
    ):
        assert 0 <= low <= value <= high <= 1


# What it says.


def test_says_how_the_groups_were_made_equal() -> None:
    strata: Columns = {"control_features": ["x", "y"] * 200}
    shared: Columns = {"n_simulations": 2, "rng": 1}
    assert calibrate(**GAP, metric="fnr", **shared).null == (
        "Rows were reweighted until false_negative_rate was 0.120 in both groups, with the share "
        "of each label unchanged; this moved 1.6 % of 'a' and 1.6 % of 'b'."
    )
    stratified = calibrate(**GAP, metric="tpr", **strata, **shared).null
    assert "true_positive_rate was the same in both groups in every stratum, with" in stratified
    joint = calibrate(**GAP, metric="equalized_odds", **shared).null
    assert "true_positive_rate and false_positive_rate were the same in both groups, with" in joint
    outcome = calibrate(**errors(), **shared).null
    assert "in both groups; this moved" in outcome


def test_says_so_if_rows_were_borrowed_or_much_was_moved() -> None:
    none = rows(((40, 10, 0, 50), (20, 30, 20, 80)))
    found = calibrate(**none, metric="fnr", n_simulations=2, rng=1)
    assert found.null.endswith(" Rows of 'b' were mixed into 'a'.")
    assert found.notes == ()
    far = rows(((90, 10, 0, 0), (10, 90, 0, 0)))
    found = calibrate(**far, metric="selection_rate", n_simulations=2, rng=1)
    assert found.moved == pytest.approx((0.4, 0.4))
    assert found.notes[0] == (
        "Making the groups equal moved 40.0 % of 'a': the level is that of a population unlike it."
    )


def example() -> Calibration:
    found = calibrate(**GAP, metric="fnr", n_simulations=2, rng=1)
    return replace(
        found,
        level=0.048,
        level_interval=(0.036, 0.063),
        level_total_interval=(0.02, 0.092),
        power=0.31,
        power_interval=(0.28, 0.342),
        power_total_interval=(0.21, 0.423),
    )


def test_the_answer_is_said_in_plain_words() -> None:
    found = example()
    assert found.answer == (
        "At nominal level 5 %, this test rejects in 4.8 % (3.6 % to 6.3 %; 2.0 % to 9.2 %) of "
        "samples like yours with equal groups. That agrees with the nominal level. It detects a "
        "gap of −0.100 in 31.0 % (28.0 % to 34.2 %; 21.0 % to 42.3 %) of samples. The first "
        "interval allows for chance in the simulation, the second for chance in your sample as "
        "well."
    )
    often = replace(found, level_interval=(0.1, 0.14), level_total_interval=(0.06, 0.2))
    assert "That is more often than it should. " in often.answer
    maybe = replace(often, level_total_interval=(0.04, 0.2))
    assert "That is more often than it should, or it is chance in your sample. " in maybe.answer
    seldom = replace(found, level_interval=(0.01, 0.03), level_total_interval=(0.01, 0.04))
    assert "That is less often than it may. " in seldom.answer


def test_the_result_is_shown_on_a_few_lines() -> None:
    assert repr(example()).endswith(
        "\n  sample  200 rows of 'a' and 200 rows of 'b'\n"
        "  test    unconditional, variance score, two-sided, exact\n"
        "  level   0.048  nominal level 5 %; 95 % interval 0.036 to 0.063 (simulation), 0.020 to\n"
        "          0.092 (and sample)\n"
        "  power   0.310  gap −0.100; 95 % interval 0.280 to 0.342 (simulation), 0.210 to 0.423\n"
        "          (and sample)\n"
        "  null    Rows were reweighted until false_negative_rate was 0.120 in both groups, with\n"
        "          the share of each label unchanged; this moved 1.6 % of 'a' and 1.6 % of 'b'."
    )


def test_a_normal_limit_is_said_to_be_one() -> None:
    found = calibrate(**GAP, metric="mcc", n_resamples=0, n_simulations=2, rng=1)
    assert "\n  test    pooled, variance delta, two-sided, normal limit\n" in repr(found)
    assert found.n_resamples == 0


def test_the_result_can_be_written_down() -> None:
    plain = json.loads(json.dumps(example().to_dict()))
    assert plain["level"] == 0.048
    assert plain["groups"] == ["a", "b"]
    assert plain["n_undefined"] == [0, 0]
    assert set(plain) == {"answer", *Calibration.__dataclass_fields__}
