"""Errors of the search in simulated populations; the settings were fixed beforehand.

Max-T needs no more than the joint distribution of the statistics of subgroups that are *not*
affected: their permutations mix in the outcomes of those that are. "one" and "five" show that this
does no harm. In all settings but the first, base rates and spreads depend on a feature: equal
metrics with unequal distributions do no harm either.
"""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import norm

from fairperm.engines.estimates import Estimates
from fairperm.subgroups.candidates import Candidates
from fairperm.subgroups.sample import SearchedRows
from fairperm.subgroups.search import search
from tests.subgroups.populations import (
    CHANCES,
    LEVELS,
    Conditions,
    Population,
    make_settings,
    sample_cells,
)
from tests.support.simulations import at_least, at_most

pytestmark = pytest.mark.validate

DATA_SETS = 400
ONE: Conditions = (("a", 0),)
FIVE: tuple[Conditions, ...] = (
    (("a", 0), ("b", 0)),
    (("a", 1), ("c", 0)),
    (("b", 1), ("c", 1)),
    (("a", 0), ("c", 2)),
    (("a", 1), ("b", 0), ("c", 1)),
)
# to the worse, and to the better in one of five
EFFECTS = {
    "true_positive_rate": (-0.2, 0.2),
    "roc_auc": (-0.7, 0.7),
    "mean_squared_error": (0.9, -0.36),
}
CASES: dict[str, tuple[Conditions, ...]] = {"none": (), "one": (ONE,), "five": FIVE, "uneven": ()}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("metric", EFFECTS)
def test_family_wise_error_and_simultaneous_coverage(metric: str, case: str) -> None:
    worse, better = EFFECTS[metric]
    affected = {one: better if one == FIVE[2] else worse for one in CASES[case]}
    population = Population(metric, affected, uneven=case != "none")
    errors = unadjusted = covered = 0
    for seed in range(DATA_SETS):
        found = population.search(seed)
        gap, judged = population.true_gaps(found), found.judgement
        is_null = np.abs(gap) < 1e-9
        errors += bool((judged.adjusted_pvalue[is_null] <= 0.05).any())
        unadjusted += bool((judged.pvalue[is_null] <= 0.05).any())
        # the effect on an AUC is not the gap: its intervals are judged where there is none
        judges = is_null if metric == "roc_auc" else np.ones(len(gap), bool)
        inside = (judged.low <= gap + 1e-9) & (judged.high >= gap - 1e-9)
        covered += bool(inside[judges].all())
    assert errors <= at_most(0.05, DATA_SETS)
    assert unadjusted > at_most(0.05, DATA_SETS)
    assert covered >= at_least(0.95, DATA_SETS)


def draw_sharp_scores(seed: int) -> SearchedRows:
    """Return 800 rows with an AUC of 0.98 everywhere, in level 2 of feature "d" by total misses."""
    rng, n = np.random.default_rng([11, seed]), 800
    cell = rng.choice(len(LEVELS), n, p=CHANCES)
    label, is_missed = rng.random(n) < 0.5, rng.random(n) < 0.02
    score = rng.normal(size=n) + label * np.sqrt(2) * norm.ppf(0.98)
    sharp = np.where(label, np.where(is_missed, -10, 10), rng.random(n))
    score = np.where(LEVELS[cell, 3] == 2, sharp, score)
    return sample_cells(cell, {"y_true": label, "y_score": score}, "roc_auc")


def test_wider_errors_keep_the_level_where_few_rows_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    def count_errors(n: int) -> int:
        found = (search(draw_sharp_scores(seed), make_settings(seed)) for seed in range(n))
        return sum(bool((one.judgement.adjusted_pvalue <= 0.05).any()) for one in found)

    n = 200
    assert count_errors(n) <= at_most(0.05, n)
    monkeypatch.setattr("fairperm.subgroups.search.widen_errors", keep_errors)
    assert count_errors(n) > at_most(0.05, n)


def keep_errors(
    sample: SearchedRows, candidates: Candidates, observed: Estimates
) -> tuple[Estimates, NDArray[np.bool_]]:
    """Stand in for ``widen_errors``, and widen nothing."""
    del sample
    return observed, np.zeros(len(candidates), bool)
