"""Planted subgroups: what a search of all rows finds, and what one of half of them confirms."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fairperm import Subgroup
from fairperm.subgroups.search import _search_all, _search_and_confirm
from tests.subgroups.populations import CHANCES, Conditions, Population, find_cells, make_settings

DATA_SETS = 40
# subgroups of 2, 5 and 10 % of the rows; the settings were fixed beforehand
PLANTED: dict[float, Conditions] = {
    0.02: (("a", 0), ("c", 0), ("d", 2)),
    0.05: (("a", 0), ("c", 2), ("d", 2)),
    0.10: (("a", 1), ("d", 2)),
}
EFFECTS = {
    "true_positive_rate": {0.02: -0.6, 0.05: -0.4, 0.10: -0.25},
    "roc_auc": {0.02: -1.6, 0.05: -1.0, 0.10: -0.7},
    "mean_squared_error": {0.02: 2.5, 0.05: 1.5, 0.10: 0.9},
}


def overlap(one: Subgroup, planted: Conditions) -> float:
    """Return the share of rows in both among those in either, in the population."""
    inside = find_cells(tuple(one.conditions.items()))  # type: ignore[arg-type]
    cells = find_cells(planted)
    return float(CHANCES[inside & cells].sum() / CHANCES[inside | cells].sum())


@pytest.mark.validate
@pytest.mark.parametrize("share", PLANTED)
@pytest.mark.parametrize("metric", EFFECTS)
def test_search_of_all_rows_lists_more_planted_subgroups_than_confirmation(
    metric: str, share: float
) -> None:
    planted = PLANTED[share]
    population = Population(metric, {planted: EFFECTS[metric][share]}, n=2000)
    listed = confirmed = exact = 0
    for seed in range(DATA_SETS):
        sample = population.draw(seed)
        settings = replace(make_settings(seed, min_rows=15), max_depth=3)
        whole = _search_all(sample, settings).listed
        half = _search_and_confirm(sample, settings, 0.5).listed
        listed += any(overlap(one, planted) >= 0.5 for one in whole)
        confirmed += any(overlap(one, planted) >= 0.5 for one in half)
        exact += any(overlap(one, planted) == 1 for one in whole)
    assert listed >= confirmed
    assert 2 * exact >= listed
    assert listed >= DATA_SETS / 2
