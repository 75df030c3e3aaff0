"""Impact ratios to the best group: by hand, and their simultaneous levels by simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom, binomtest, norm

from fairperm.selection.impact import (
    Evidence,
    Group,
    Impact,
    applicants_to_decide,
    compare_with_best,
    equality_pvalues,
    ratio_interval,
    ratio_limit,
)

BOUND, LEVEL, ALPHA = 0.8, 0.95, 0.05


def impacts(*counts: tuple[int, int]) -> list[Impact]:
    return compare_with_best([Group(*one) for one in counts], bound=BOUND, level=LEVEL)


def test_two_groups_by_hand() -> None:
    best, low = impacts((48, 80), (12, 40))
    assert low.ratio == pytest.approx(0.5)
    assert low.shortfall == pytest.approx(12)
    pooled = 60 / 120
    assert low.standard_deviations == pytest.approx(
        -0.3 / math.sqrt(pooled * (1 - pooled) * (1 / 80 + 1 / 40))
    )
    assert (best.ratio, best.shortfall, best.pvalue, best.interval[1]) == (1.0, 0.0, 1.0, 1.0)


@pytest.mark.parametrize(
    ("counts", "flips"),
    [
        ((3, 5), True),  # 0.6 against 0.8 is 0.75; 4 of 5 is 1
        ((2, 5), False),  # 0.5; 3 of 5 is still 0.75
        ((4, 6), True),  # 0.83; 3 of 6 is 0.625
        ((0, 5), False),
    ],
)
def test_one_selection_more_or_fewer(counts: tuple[int, int], flips: bool) -> None:
    assert impacts((80, 100), counts)[1].flips is flips


def test_the_ratio_is_to_the_best_of_all_groups() -> None:
    found = impacts((30, 100), (60, 100), (45, 100))
    assert [one.ratio for one in found] == pytest.approx([0.5, 1.0, 0.75])


def test_a_limit_keeps_its_level_by_enumeration() -> None:
    """The upper limit misses the true ratio at most at its level, summed over all tables."""
    m, n, level = 12, 9, 0.95
    limits = np.array(
        [
            [ratio_limit(Group(i, m), Group(j, n), "less", level) for j in range(n + 1)]
            for i in range(m + 1)
        ]
    )
    for q in (0.2, 0.5, 0.9):
        for ratio in (0.4, 0.8, 1.0):
            chance = np.outer(binom.pmf(range(m + 1), m, ratio * q), binom.pmf(range(n + 1), n, q))
            assert chance[limits < ratio].sum() <= 1 - level


def test_pvalues_are_adjusted_for_all_pairs() -> None:
    alone = equality_pvalues([Group(40, 80), Group(20, 80)])
    among = equality_pvalues([Group(40, 80), Group(20, 80), Group(40, 80)])
    assert alone[0] == among[0] == among[2] == 1.0
    assert among[1] == pytest.approx(3 * alone[1])


@pytest.mark.parametrize(
    "counts",
    [
        [(0, 10), (3, 9)],
        [(0, 1), (1, 1), (5, 200)],
        [(10, 10), (9, 9)],
        [(0, 5), (0, 7), (1, 3)],
        [(1, 10**7), (10**6, 10**7)],
    ],
)
def test_extreme_counts_have_possible_intervals(counts: list[tuple[int, int]]) -> None:
    for one in impacts(*counts):
        low, high = one.interval
        assert 0 <= low <= one.ratio <= high <= 1
        assert 0 < one.pvalue <= 1


def test_groups_in_another_order_have_the_same_impacts() -> None:
    counts = [(30, 100), (60, 100), (45, 90), (7, 31)]
    found, turned = impacts(*counts), impacts(*counts[::-1])
    assert found == turned[::-1]


def test_enough_applicants_decide_and_fewer_do_not() -> None:
    groups = [Group(48, 80), Group(40, 80)]
    n = applicants_to_decide(groups, 1, BOUND, LEVEL)

    def decides(total: float) -> bool:
        larger = [one.times(total / 160) for one in groups]
        return Evidence.of(ratio_interval(larger, 1, LEVEL), BOUND) != Evidence.UNDECIDED

    assert decides(n)
    assert not decides(0.9 * n)
    assert applicants_to_decide([Group(50, 100), Group(40, 100)], 1, BOUND, LEVEL) == math.inf


@pytest.mark.validate
@pytest.mark.parametrize("n", [300, 1000, 5000])
@pytest.mark.parametrize(("k", "n_low"), [(7, 0), (14, 0), (7, 3), (14, 7)])
def test_error_of_all_groups_together(k: int, n: int, n_low: int) -> None:
    """Of the best, "below" and a small p are false; of groups truly at 0.8 of it, any decision is.

    The ratio by itself, z, and z with Bonferroni's level for k − 1 groups err beside it.
    """
    rng, reps = np.random.default_rng(k + n + n_low), 200 if k == 7 else 100
    rates = np.array([0.4] * (k - n_low) + [0.32] * n_low)
    z_of_all = norm.isf(ALPHA / (2 * (k - 1)))
    false = dict.fromkeys(("evidence", "coverage", "pvalue", "ratio", "z", "bonferroni"), 0)
    for _ in range(reps):
        sizes = rng.multinomial(n, np.full(k, 1 / k))
        groups = [Group(*one) for one in zip(rng.binomial(sizes, rates), sizes, strict=True)]
        found = list(zip(compare_with_best(groups, bound=BOUND, level=LEVEL), rates, strict=True))
        best = [one for one, rate in found if rate == 0.4]
        false["evidence"] += any(one.evidence == Evidence.BELOW for one in best) or any(
            one.evidence != Evidence.UNDECIDED for one, rate in found if rate < 0.4
        )
        false["coverage"] += any(
            not one.interval[0] <= rate / 0.4 <= one.interval[1] for one, rate in found
        )
        false["pvalue"] += any(one.pvalue <= ALPHA for one in best)
        false["ratio"] += any(one.ratio < BOUND for one in best)
        false["z"] += any(one.standard_deviations < -1.96 for one in best)
        false["bonferroni"] += any(one.standard_deviations < -z_of_all for one in best)
    for name in ("evidence", "coverage", "pvalue"):
        assert binomtest(false[name], reps, ALPHA, "greater").pvalue > 1e-3, (name, false)
    if n_low == 0:
        for name in ("z", "bonferroni") if n == 5000 else ("ratio", "z", "bonferroni"):
            assert binomtest(false[name], reps, ALPHA, "greater").pvalue < 0.05, (name, false)


@pytest.mark.validate
def test_power_to_say_below() -> None:
    """One of five groups has half the rate; 100 samples of 1,000 applicants.

    Splitting picks the best group in one half and tests in the other: of half the rows, at α for
    four groups. All pairs adjusted by Holm's method spend no error on "at least".
    """
    rng, reps, k = np.random.default_rng(5), 100, 5
    rates, shown = np.array([0.4] * (k - 1) + [0.2]), {"interval": 0, "pairs": 0, "split": 0}
    for _ in range(reps):
        sizes = rng.multinomial(1000, np.full(k, 1 / k))
        half = rng.binomial(sizes, 0.5)
        first, second = rng.binomial(half, rates), rng.binomial(sizes - half, rates)
        groups = [
            Group(*one) for one in zip((first + second).tolist(), sizes.tolist(), strict=True)
        ]
        later = [Group(*one) for one in zip(second.tolist(), (sizes - half).tolist(), strict=True)]
        low = compare_with_best(groups, bound=BOUND, level=LEVEL)[-1]
        shown["interval"] += low.evidence == Evidence.BELOW
        limits = [ratio_limit(groups[-1], one, "less", 1 - ALPHA / (k * (k - 1))) for one in groups]
        shown["pairs"] += min(limits[:-1]) < BOUND
        best = int((first / half).argmax())
        limit = ratio_limit(later[-1], later[best], "less", 1 - ALPHA / (k - 1))
        shown["split"] += best < k - 1 and limit < BOUND
    assert shown["split"] + 20 < shown["interval"] <= shown["pairs"], shown
