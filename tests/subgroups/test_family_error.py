"""Errors of the search in simulated populations; the settings were fixed beforehand.

Max-T needs no more than the joint distribution of the statistics of subgroups that are *not*
affected: their permutations mix in the outcomes of those that are. "one" and "five" show that this
does no harm, "uneven" that equal metrics with unequal distributions do none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.subgroups.populations import Population
from tests.support.simulations import at_least, at_most

if TYPE_CHECKING:
    from tests.subgroups.populations import Conditions

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
    population = Population(metric, affected, uneven=case == "uneven")
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
