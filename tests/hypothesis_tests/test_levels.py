"""Level and coverage, by seeded simulation. ``test_exact_levels`` enumerates small samples.

Bounds are binomial at 99.9 % (see ``simulate``) and follow from the level claimed, or from the
rates of earlier runs of 20,000 data sets (0.1 % wide in themselves) in the paper's setting;
none was fitted to what came out.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import brentq

from fairperm.metrics import get_metric
from fairperm.metrics.definition import Metric
from tests.support.helpers import CELL_COLUMNS
from tests.support.simulations import (
    PAPER,
    BasicBootstrap,
    Group,
    Procedure,
    at_least,
    at_most,
    between,
    draw_counts,
    only_monte_carlo,
)

pytestmark = pytest.mark.validate

LEVEL = 0.05
DATA_SETS = 2000


def rejections(pvalues: NDArray[np.float64], level: float = LEVEL) -> int:
    return int((pvalues <= level + 1e-12).sum())


# The paper's setting: base rates of 0.8 and 0.2, equal false negative rates of 0.1.


def fnr(scheme: str, variance: str | None, n_resamples: int = 9999) -> Procedure:
    """Return a test of the paper, which compares |S|."""
    return Procedure("false_negative_rate", scheme, variance, n_resamples, 100, "symmetric")


@cache
def paper_rejections(procedure: Procedure | BasicBootstrap) -> int:
    data_sets = draw_counts([PAPER], DATA_SETS, seed=20)
    return rejections(procedure.pvalues(data_sets))


# tests of the same rejections: two workers of pytest would each count them
in_the_papers_setting = pytest.mark.xdist_group("paper's setting")

NAIVE = fnr("pooled", None)
SCORE = fnr("pooled", "score")
DENOMINATOR = fnr("denominator", "auto")


@in_the_papers_setting
@pytest.mark.parametrize(
    ("procedure", "low", "high"),
    [
        pytest.param(NAIVE, 0.116, 0.118, id="un-studentized"),
        pytest.param(fnr("pooled", "wald"), 0.075, 0.075, id="wald"),
        pytest.param(SCORE, 0.046, 0.049, id="score"),
        pytest.param(DENOMINATOR, 0.0342, 0.0342, id="denominator"),  # by summing all outcomes
        pytest.param(BasicBootstrap("greater"), 0.111, 0.111, id="basic-bootstrap-greater"),
        pytest.param(BasicBootstrap("two-sided"), 0.076, 0.082, id="basic-bootstrap-two-sided"),
    ],
)
def test_rejects_as_often_as_in_the_long_runs(
    procedure: Procedure | BasicBootstrap, low: float, high: float
) -> None:
    fewest, most = between(low, high, DATA_SETS)
    assert fewest <= paper_rejections(procedure) <= most


@in_the_papers_setting
@pytest.mark.parametrize("procedure", [SCORE, DENOMINATOR], ids=str)
def test_level_is_held_where_base_rates_differ(procedure: Procedure) -> None:
    assert paper_rejections(procedure) <= at_most(LEVEL, DATA_SETS)


@in_the_papers_setting
def test_without_studentizing_the_level_is_not_held() -> None:
    assert paper_rejections(NAIVE) > at_most(LEVEL, DATA_SETS)


@pytest.mark.parametrize(
    "procedure",
    [fnr("pooled", "bootstrap", n_resamples=59), fnr("pooled", "fast_bootstrap", n_resamples=199)],
    ids=str,
)
def test_bootstrap_errors_do_no_worse_than_wald_and_better_than_none(procedure: Procedure) -> None:
    # both estimate the wald error, which rejects 0.075 here; no studentizing rejects 0.117
    assert paper_rejections(procedure) <= at_most(0.075, DATA_SETS)
    assert paper_rejections(procedure) < at_least(0.117, DATA_SETS)


# Equal distributions: every permutation test holds every level.

ONE_STRATUM = [(Group(40, 0.5, 0.7, 0.6), Group(25, 0.5, 0.7, 0.6))]
TWO_STRATA = [
    (Group(40, 0.4, 0.6, 0.7), Group(25, 0.4, 0.6, 0.7)),
    (Group(25, 0.6, 0.8, 0.5), Group(30, 0.6, 0.8, 0.5)),
]
STRONG_NULL_DATA_SETS = 1000
LEVELS = (0.01, 0.05, 0.1, 0.2)


@pytest.mark.parametrize("strata", [ONE_STRATUM, TWO_STRATA], ids=["one stratum", "two strata"])
@pytest.mark.parametrize(
    "procedure",
    [
        Procedure("false_negative_rate", "pooled", "score", 99),
        Procedure("positive_predictive_value", "pooled", "bootstrap", 99, n_bootstrap=20),
        Procedure("true_positive_rate", "within_label", "wald", 99),
        Procedure("false_positive_rate", "denominator", "score", 99),
        Procedure("equalized_odds", "within_label", "score", 99),
        Procedure("f1_score", "pooled", "delta", 99),
    ],
    ids=str,
)
def test_random_permutations_hold_every_level_where_distributions_are_equal(
    procedure: Procedure, strata: list[tuple[Group, Group]]
) -> None:
    data_sets = draw_counts(strata, STRONG_NULL_DATA_SETS, seed=21)
    with only_monte_carlo():
        pvalues = procedure.pvalues(data_sets)
    rejected = {level: rejections(pvalues, level) for level in LEVELS}
    allowed = {level: at_most(level, STRONG_NULL_DATA_SETS) for level in LEVELS}
    assert all(rejected[level] <= allowed[level] for level in LEVELS), rejected


# The weak null for other metrics: one metric is equal, base rates are not.


def equal_metric(name: str, first: Group, n: int, base_rate: float) -> tuple[Group, Group]:
    """Return the first group with one of another base rate and the same value of the metric."""
    metric = get_metric(name)
    assert isinstance(metric, Metric)

    def value(group: Group) -> float:
        return float(metric.estimate(np.array(group.cells()) @ metric.matrix(CELL_COLUMNS)))

    def second(true_negative_rate: float) -> Group:
        return Group(n, base_rate, first.true_positive_rate, true_negative_rate)

    root = brentq(lambda rate: value(second(rate)) - value(first), 0.3, 0.9999)
    return first, second(root)


UNEQUAL_BASES = {
    "balanced_accuracy": equal_metric("balanced_accuracy", Group(1000, 0.8), 1000, 0.2),
    "f1_score": equal_metric("f1_score", Group(1000, 0.8), 1000, 0.2),
    "jaccard_score": equal_metric("jaccard_score", Group(1000, 0.8), 1000, 0.2),
    "matthews_corrcoef": equal_metric("matthews_corrcoef", Group(1000, 0.5), 1000, 0.1),
    "positive_predictive_value": equal_metric(
        "positive_predictive_value", Group(1000, 0.8), 1000, 0.2
    ),
}


def weak_null_rejections(metric: str, variance: str | None, n: int) -> int:
    data_sets = draw_counts([UNEQUAL_BASES[metric]], n, seed=22)
    return rejections(Procedure(metric, "pooled", variance, n_resamples=199).pvalues(data_sets))


@pytest.mark.parametrize("metric", UNEQUAL_BASES)
def test_studentized_tests_hold_the_level_where_base_rates_differ(metric: str) -> None:
    assert weak_null_rejections(metric, "auto", DATA_SETS) <= at_most(LEVEL, DATA_SETS)


@pytest.mark.parametrize("metric", UNEQUAL_BASES)
def test_un_studentized_tests_do_not(metric: str) -> None:
    n = 1000  # is enough: all of them reject more than 0.1
    assert weak_null_rejections(metric, None, n) > at_most(LEVEL, n)


# Intervals.


@pytest.mark.parametrize(
    "groups",
    [
        pytest.param((Group(400, 0.5, 0.9), Group(400, 0.5, 0.9)), id="all equal"),
        pytest.param((Group(500, 0.5, 0.8), Group(500, 0.5, 0.65)), id="a gap of 0.15"),
        pytest.param((Group(1000, 0.6, 0.8), Group(500, 0.3, 0.7)), id="unequal base rates"),
    ],
)
def test_interval_covers_the_true_gap_as_often_as_it_says(groups: tuple[Group, Group]) -> None:
    fewest, most = between(0.95, 0.95, 2 * DATA_SETS)
    assert fewest <= intervals_that_cover(groups) <= most


def test_interval_covers_often_enough_in_the_papers_setting() -> None:
    """With 40 positives in one group, discrete rates may well cover more often."""
    assert intervals_that_cover(PAPER) >= at_least(0.95, 2 * DATA_SETS)


def intervals_that_cover(groups: tuple[Group, Group]) -> int:
    data_sets = draw_counts([groups], 2 * DATA_SETS, seed=23)
    first, second = groups
    gap = second.true_positive_rate - first.true_positive_rate
    intervals = [
        Procedure("false_negative_rate")(counts).confidence_interval for counts in data_sets
    ]
    return sum(low <= gap <= high for low, high in intervals)


# The small group has about six positives, a number that pooled permutations do not keep.
FEW_POSITIVES = (Group(60, 0.1, 0.8, 0.9), Group(1000, 0.5, 0.8, 0.9))


def test_balanced_accuracy_of_few_positives_holds_its_level_by_default() -> None:
    """Pooled, it rejects about five times as often as it should."""
    n = 600
    data_sets = draw_counts([FEW_POSITIVES], n, seed=22)
    defined = data_sets[(data_sets[:, 0, 0, 2:].sum(axis=-1) > 0)]  # a group without has no value
    default, pooled = (
        rejections(Procedure("balanced_accuracy", scheme, n_resamples=299).pvalues(defined))
        for scheme in ("auto", "pooled")
    )
    assert default <= at_most(LEVEL, len(defined))
    assert pooled > at_most(3 * LEVEL, len(defined))
