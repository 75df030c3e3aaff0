"""Levels of tests without skewness under the weak null, and of the paper's statistic as a control.

The designs were fixed beforehand (``studies/calibration/designs.py``); bounds are binomial.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import fairperm
from studies.calibration.designs import DESIGNS
from tests.support.simulations import at_most

pytestmark = pytest.mark.validate

LEVEL, DATA_SETS = 0.05, 800
NAMES = (
    "60 / 1,000, normal 10:1",
    "60 / 1,200, uniform v normal 1:0.03",
    "25 / 2,500, ±1 v normal 1:0.001",
    "300 / 3,000, rare costs v normal 3:1",
)


@cache
def rejections(name: str, variance: Any) -> int:
    (design,) = (one for one in DESIGNS if one.name == name)
    rng, found = np.random.default_rng(35), 0
    for _ in range(DATA_SETS):
        units = design.draw(rng, 0)
        result = fairperm.permutation_test(
            units.total,
            sensitive_features=units.group,
            metric="mean_outcome",
            variance=variance,
            n_resamples=299,
            rng=rng,
            n_jobs=1,
            progress=False,
        )
        found += result.pvalue <= LEVEL + 1e-12
    return found


@pytest.mark.filterwarnings("ignore::fairperm.FairpermWarning")
@pytest.mark.parametrize("name", NAMES)
def test_without_skewness_the_level_is_held(name: str) -> None:
    assert rejections(name, "auto") <= at_most(LEVEL, DATA_SETS)


@pytest.mark.filterwarnings("ignore::fairperm.FairpermWarning")
@pytest.mark.parametrize("name", NAMES)
def test_with_skewness_it_is_not(name: str) -> None:
    assert rejections(name, "delta") > at_most(LEVEL, DATA_SETS)
