"""How often sweeps reject where score curves are equal and base rates are not: simulated.

Bounds are binomial at 99.9 % (see ``simulate``) and follow from the level claimed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest

from fairperm.data.arguments import SchemeName, VarianceName
from fairperm.hypothesis_tests.sweep.threshold_sweep import threshold_sweep
from tests.support.simulations import at_least, at_most

# most tests read the same sweeps: two workers of pytest would each make them
pytestmark = [pytest.mark.validate, pytest.mark.xdist_group("sweep levels")]

LEVEL = 0.05
DATA_SETS = 1000
DRAWS = 199
HIGHEST = 9  # score
ALL = tuple(range(1, HIGHEST + 1))
# where each group expects five positives on either side, as asymptotic tests need: of the 40 of
# the second group, at 6 there are 6.6 below, at 8 there are 12 above
MIDDLE = (6, 7, 8)
N = 200
BASE_RATES = {"a": 0.8, "b": 0.2}  # as the number of rows, from the paper's section 4.2
GIVEN_LABEL = ("true_positive_rate", "false_positive_rate", "balanced_accuracy")


@dataclass(frozen=True)
class Rejected:
    """How many data sets are: at each threshold, at any of them, and by the simultaneous band."""

    pointwise: tuple[int, ...]
    anywhere: int
    jointly: int


def drawn(rng: np.random.Generator, shift: float) -> dict[str, Any]:
    """Return a data set in which scores depend on the label, and by ``shift`` on the group."""
    group = np.repeat(list(BASE_RATES), N)
    y_true = rng.random(2 * N) < np.repeat(list(BASE_RATES.values()), N)
    chance = np.where(y_true, 0.75, 0.4) - np.where(group == "a", shift, 0.0)
    y_score = rng.binomial(HIGHEST, chance)
    return {"y_true": y_true, "y_score": y_score, "sensitive_features": group}


@cache
def rejected(
    metrics: tuple[str, ...],
    scheme: SchemeName = "auto",
    variance: VarianceName = "auto",
    thresholds: tuple[int, ...] = ALL,
    shift: float = 0.0,
) -> dict[str, Rejected]:
    """Return for each metric how many data sets are rejected."""
    rng = np.random.default_rng(11)
    outside = np.zeros((len(metrics), 2, DATA_SETS, len(thresholds)), bool)
    for seed in range(DATA_SETS):
        result = threshold_sweep(
            **drawn(rng, shift),
            metric=metrics,
            thresholds=thresholds,
            scheme=scheme,
            variance=variance,
            n_resamples=DRAWS,
            rng=seed,
        )
        for i, curve in enumerate(result.curves.values()):
            for j, band in enumerate((curve.pointwise_band, curve.simultaneous_band)):
                outside[i, j, seed] = (curve.difference < band[0]) | (curve.difference > band[1])
            assert outside[i, 1, seed].any() == (curve.global_pvalue <= LEVEL)
    return {
        name: Rejected(
            tuple(pointwise.sum(axis=0).tolist()),
            int(pointwise.any(axis=1).sum()),
            int(jointly.any(axis=1).sum()),
        )
        for name, (pointwise, jointly) in zip(metrics, outside, strict=True)
    }


@pytest.mark.parametrize("metric", GIVEN_LABEL)
def test_the_level_is_held_at_each_threshold_and_over_all(metric: str) -> None:
    found = rejected(GIVEN_LABEL)[metric]
    assert max(found.pointwise) <= at_most(LEVEL, DATA_SETS)
    assert found.jointly <= at_most(LEVEL, DATA_SETS)


def test_the_simultaneous_band_is_no_wider_than_it_must_be() -> None:
    # the maximum takes so many values that an exact test of it is hardly below its level
    assert rejected(GIVEN_LABEL)["true_positive_rate"].jointly >= at_least(0.04, DATA_SETS)


def test_the_pooled_scheme_holds_the_level_where_each_group_has_enough_rows() -> None:
    found = rejected(("true_positive_rate",), "pooled", thresholds=MIDDLE)["true_positive_rate"]
    assert max(found.pointwise) <= at_most(LEVEL, DATA_SETS)
    assert found.jointly <= at_most(LEVEL, DATA_SETS)


def test_without_studentizing_neither_level_is_held() -> None:
    options = (("true_positive_rate",), "pooled", None, MIDDLE)
    found = rejected(*options)["true_positive_rate"]
    assert max(found.pointwise) > at_most(LEVEL, DATA_SETS)
    assert found.jointly > at_most(LEVEL, DATA_SETS)


def test_looking_everywhere_with_the_pointwise_band_does_not_hold_the_level() -> None:
    assert rejected(GIVEN_LABEL)["true_positive_rate"].anywhere > at_most(LEVEL, DATA_SETS)


def test_a_real_gap_is_found() -> None:
    found = rejected(("true_positive_rate",), shift=0.15)["true_positive_rate"]
    assert found.jointly >= at_least(0.9, DATA_SETS)
