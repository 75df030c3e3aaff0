"""The lending environment, and who finds a gap in it when."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest

from studies.lending import METHODS, WEEKS, WORLDS, find_alarms, lending

ALIKE, LAYOFFS = WORLDS


def test_groups_move_together_until_something_happens() -> None:
    alike, layoffs = (world.rates() for world in WORLDS)
    assert np.array_equal(alike["north"], alike["south"])
    assert np.all(np.diff(alike["north"]) < 0)
    assert np.array_equal(layoffs["north"], alike["north"])
    gap = layoffs["north"] - layoffs["south"]
    assert not gap[: LAYOFFS.week].any()  # the first loans that fail lower the scores of the next
    assert np.all(np.diff(gap[LAYOFFS.week :]) > 0)


@pytest.mark.validate
def test_a_wide_gap_is_found_in_the_first_weeks() -> None:
    rates = {"north": np.full(WEEKS, 0.9), "south": np.full(WEEKS, 0.2)}
    monitor, often, once = find_alarms(rates, np.random.default_rng(1))
    assert often <= monitor <= 4
    assert once == WEEKS


@pytest.mark.validate
def test_looking_every_week_needs_the_monitor() -> None:
    study = lending(n_years=100, seed=1, n_jobs=-1, progress=False)
    monitor, often, once = (
        round(study.row(f"{ALIKE.name}: {method}").ours * 100) for method in METHODS
    )
    assert binomtest(monitor, 100, 0.05, "greater").pvalue > 1e-3
    assert binomtest(once, 100, 0.05, "greater").pvalue > 1e-3
    assert binomtest(often, 100, 0.05, "greater").pvalue < 1e-3
    when = study.tables["summary"]["median week"]
    assert LAYOFFS.week < when[1] < when[0] < when[2]
