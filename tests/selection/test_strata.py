"""Selection within strata: against R, by hand, and by simulation."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.stats import binomtest, fisher_exact, hypergeom
from statsmodels.stats.contingency_tables import StratifiedTable

from fairperm import selection_audit
from fairperm.selection.impact import Evidence, Group, compare_with_best
from fairperm.selection.strata import StratifiedGroup, homogeneity_pvalue, weigh_strata


def group(*counts: tuple[int, int], weights: tuple[float, ...] | None = None) -> StratifiedGroup:
    parts = tuple(Group(*one) for one in counts)
    return StratifiedGroup(parts, weights or (1 / len(parts),) * len(parts))


def test_equality_is_that_of_r() -> None:
    """``mantelhaen.test(Rabbits, exact = TRUE)``, of R's own example: p-value = 0.03994."""
    at_once = group((0, 6), (3, 6), (6, 6), (5, 6), (2, 2))
    later = group((0, 5), (0, 6), (2, 6), (6, 6), (5, 5))
    assert at_once.equality_pvalue(later) == pytest.approx(0.03994, abs=5e-6)
    assert later.equality_pvalue(at_once) == pytest.approx(at_once.equality_pvalue(later))


def test_equality_in_one_stratum_is_that_of_fisher() -> None:
    first, second = group((3, 20)), group((12, 25))
    expected = fisher_exact([[3, 17], [12, 13]]).pvalue
    assert first.equality_pvalue(second) == pytest.approx(expected, rel=1e-9)
    nobody, everybody = group((0, 4)), group((0, 9))
    assert nobody.equality_pvalue(everybody) == 1


def test_equality_by_enumeration() -> None:
    """All numbers of selections in three strata, with their probabilities multiplied."""
    own, its = [(2, 5), (1, 4), (0, 3)], [(1, 6), (3, 3), (2, 7)]
    totals: dict[int, float] = {}
    margins = [(n, k + j, n + m) for (k, n), (j, m) in zip(own, its, strict=True)]
    for counts in product(*(range(n + 1) for n, _, _ in margins)):
        chance = math.prod(
            hypergeom.pmf(k, n_all, n, total)
            for k, (n, total, n_all) in zip(counts, margins, strict=True)
        )
        totals[sum(counts)] = totals.get(sum(counts), 0) + chance
    observed = totals[sum(k for k, _ in own)]
    expected = sum(one for one in totals.values() if one <= observed * (1 + 1e-7))
    assert group(*own).equality_pvalue(group(*its)) == pytest.approx(expected, rel=1e-12)


def test_large_strata_have_a_pvalue() -> None:
    first, second = group((5_000, 100_000), (9, 10)), group((5_300, 100_000), (1, 10))
    table = [np.array([[5_000, 95_000], [5_300, 94_700]]), np.array([[9, 1], [1, 9]])]
    near = StratifiedTable(table).test_null_odds(correction=True).pvalue
    assert first.equality_pvalue(second) == pytest.approx(near, rel=0.02)
    assert 0 < group((0, 10**5)).equality_pvalue(group((10**5, 10**5))) < 1e-300


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        # BreslowDayTest of DescTools, https://msph-p8120.github.io/breslow_day.html:
        # X-squared = 0.57493, df = 1, p-value = 0.4483
        (group((68, 162), (12, 29)), group((4, 10), (30, 55)), 0.4483),
        # X-squared = 4.2069, df = 1, p-value = 0.04026
        (group((92, 242), (25, 143)), group((96, 244), (12, 33)), 0.04026),
    ],
)
def test_homogeneity_is_that_of_r(
    first: StratifiedGroup, second: StratifiedGroup, expected: float
) -> None:
    assert homogeneity_pvalue(first, second) == pytest.approx(expected, abs=5e-5)
    assert homogeneity_pvalue(second, first) == pytest.approx(expected, abs=5e-5)


def test_homogeneity_is_that_of_statsmodels() -> None:
    rng = np.random.default_rng(3)
    for _ in range(20):
        n = rng.integers(20, 90, (2, 4))
        k = rng.integers(3, n - 2)
        tables = [np.array([[k[0, i], n[0, i] - k[0, i]], [k[1, i], n[1, i] - k[1, i]]])
                  for i in range(4)]  # fmt: skip
        expected = StratifiedTable(tables).test_equal_odds(adjust=False).pvalue
        groups = [group(*zip(k[g].tolist(), n[g].tolist(), strict=True)) for g in (0, 1)]
        assert homogeneity_pvalue(*groups) == pytest.approx(expected)


def test_homogeneity_needs_two_strata_that_differ() -> None:
    assert homogeneity_pvalue(group((1, 5), (0, 5)), group((2, 5), (0, 4))) is None
    assert homogeneity_pvalue(group((5, 5), (4, 4)), group((0, 5), (0, 4))) is None


def test_standardized_rates_by_hand() -> None:
    """Equal rates in both requisitions, but women apply where few are selected."""
    weights = weigh_strata(np.array([[80.0, 20], [20, 80]]))
    women = group((8, 80), (10, 20), weights=weights)
    men = group((2, 20), (40, 80), weights=weights)
    assert (women.rate, men.rate) == pytest.approx((0.3, 0.3))
    ratios = [one.ratio for one in compare_with_best([women, men], bound=0.8, level=0.95)]
    assert ratios == pytest.approx([1, 1])
    assert women.equality_pvalue(men) == pytest.approx(1)
    assert women.deviations_from(men) == pytest.approx(0, abs=1e-12)


def test_strata_that_lack_a_group_have_no_weight() -> None:
    assert weigh_strata(np.array([[10.0, 0, 30], [10, 5, 10]])) == (1 / 3, 0, 2 / 3)
    assert weigh_strata(np.array([[10.0, 0], [0, 5]])) == (0, 0)


def test_deviations_are_those_without_strata_if_there_is_one() -> None:
    plain = Group(12, 40).deviations_from(Group(48, 80))
    assert group((12, 40)).deviations_from(group((48, 80))) == pytest.approx(plain)


REQUISITIONS: dict[str, Any] = {
    "sex": ["w"] * 100 + ["m"] * 100,
    "job": ["a"] * 80 + ["b"] * 20 + ["a"] * 20 + ["b"] * 80,
    "hired": [1] * 8 + [0] * 72 + [1] * 10 + [0] * 10 + [1] * 2 + [0] * 18 + [1] * 40 + [0] * 40,
}


def test_audit_within_strata() -> None:
    found = selection_audit(
        "hired", sensitive_features="sex", control_features="job", data=REQUISITIONS
    )
    men, women = found.rows
    assert (women.rate, women.standardized_rate) == pytest.approx((0.18, 0.3))
    assert women.impact_ratio == pytest.approx(1)
    assert women.pvalue == pytest.approx(1)
    assert women.flips is None
    assert found.n_strata == 2
    assert men.homogeneity_pvalue is None
    assert women.homogeneity_pvalue == pytest.approx(1)
    assert "standardized" in repr(found)
    plain = selection_audit("hired", sensitive_features="sex", data=REQUISITIONS)
    one_job = {**REQUISITIONS, "job": ["a"] * 200}
    same = selection_audit("hired", sensitive_features="sex", control_features="job", data=one_job)
    assert same.to_dict() == plain.to_dict()


def test_applicants_in_strata_without_a_group_are_noted() -> None:
    extra = {"sex": "w", "job": "c", "hired": 1}
    data = {name: [*REQUISITIONS[name], *[one] * 5] for name, one in extra.items()}
    found = selection_audit("hired", sensitive_features="sex", control_features="job", data=data)
    assert found.notes == (
        "sex: 1 stratum lacks a compared group; 5 applicants there count in p, but in no "
        "standardized rate.",
    )


@pytest.mark.validate
@pytest.mark.parametrize(
    ("k", "sizes", "rates"),
    [
        (2, (60, 60), (0.1, 0.5)),
        (4, (40, 200), (0.4, 0.2)),
        (7, (12,) * 20, (0.3,) * 20),  # small requisitions
        (3, (5,) * 60, (0.5,) * 60),
    ],
)
@pytest.mark.parametrize("effect", [1.0, 0.8])
def test_error_of_all_groups_within_strata(
    k: int, sizes: tuple[int, ...], rates: tuple[float, ...], effect: float
) -> None:
    """Sizes are of each group. Half of the groups have `effect` times the rate of the others.

    Rates that ignore strata err where groups apply to different ones: the last group applies twice
    as often to the first half of the strata.
    """
    rng, reps = np.random.default_rng(k + len(sizes)), 300
    n = np.array([sizes] * k)
    n[-1, : len(sizes) // 2] *= 3
    p = np.array([rates] * k)
    low = np.arange(k) < k // 2
    p[low] *= effect
    weights = weigh_strata(n.astype(float))
    true = (p * weights).sum(axis=1)
    true /= true.max()
    false = dict.fromkeys(("evidence", "coverage", "pvalue", "crude"), 0)
    for _ in range(reps):
        selected = rng.binomial(n, p)
        groups = [
            StratifiedGroup(
                tuple(Group(int(a), int(b)) for a, b in zip(x, y, strict=True)), weights
            )
            for x, y in zip(selected, n, strict=True)
        ]
        if not any(one.rate for one in groups):
            continue
        found = list(zip(compare_with_best(groups, bound=0.8, level=0.95), true, strict=True))
        false["coverage"] += any(not a.interval[0] <= b <= a.interval[1] for a, b in found)
        false["evidence"] += any(
            (a.evidence == Evidence.BELOW and b >= 0.8)
            or (a.evidence == Evidence.AT_LEAST and b < 0.8 - 1e-9)
            for a, b in found
        )
        false["pvalue"] += any(a.pvalue <= 0.05 for a, b in found if b == 1)
        plain = [Group(int(a.sum()), int(b.sum())) for a, b in zip(selected, n, strict=True)]
        crude = compare_with_best(plain, bound=0.8, level=0.95)
        false["crude"] += any(
            not a.interval[0] <= b <= a.interval[1] for a, b in zip(crude, true, strict=True)
        )
    for name in ("evidence", "coverage", "pvalue"):
        assert binomtest(false[name], reps, 0.05, "greater").pvalue > 1e-3, (name, false)
    if k == 2:  # whose strata differ most
        assert binomtest(false["crude"], reps, 0.05, "greater").pvalue < 1e-3, false
