"""Levels where few rows make the variance, and what allowing for them costs in power.

Bounds are 99.9 % quantiles of the binomial distribution. A design whose level is too high must be
one in which the result carries a note.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import fairperm
from tests.support import auc_designs as designs
from tests.support.simulations import at_least, at_most

pytestmark = pytest.mark.validate

LEVEL = 0.05
N_RESAMPLES = 199


def outcomes(design: designs.Design, n: int, **options: Any) -> tuple[int, int]:
    """Return how many of n data sets are rejected, and how many of these carry no note."""
    rejected = unnoted = 0
    for seed in range(n):
        given = {"n_resamples": N_RESAMPLES, **design(np.random.default_rng([7, seed])), **options}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", fairperm.FairpermWarning)
            result = fairperm.permutation_test(**given, rng=seed, progress=False)
        rejected += result.pvalue <= LEVEL
        unnoted += result.pvalue <= LEVEL and not result.notes
    return rejected, unnoted


HOLDING = {
    "rare misses": (designs.rare_misses, 400),
    "rarer misses": (designs.rarer_misses, 400),
    "few positives, limit": (designs.few_positives, 400),
    "one heavy weight, limit": (designs.one_heavy_weight, 400),
    "heavy weight in a stratum": (designs.heavy_weight_in_a_stratum, 400),
    "few clusters": (designs.few_clusters, 200),
    "base rates": (designs.binormal((200, 200), (0.8, 0.2)), 400),
    "60 and 600 rows": (designs.binormal((60, 600), (0.5, 0.5)), 400),
    "spreads": (designs.binormal((30, 300), (0.5, 0.5), spread=(3.0, 1.0)), 400),
    "ties": (designs.tied_scores, 400),
    "AUC near 1": (designs.binormal((200, 2000), (0.3, 0.3), (0.99, 0.99), (3.0, 1.0)), 400),
    "uneven clusters": (designs.uneven_clusters, 400),
    "weighted errors": (designs.weighted_errors, 400),
    "single clusters": (designs.single_clusters, 300),
}
FAILING_UNWIDENED = ("rare misses", "rarer misses", "few positives, limit", "AUC near 1")


@pytest.mark.parametrize("name", HOLDING)
def test_levels_hold(name: str) -> None:
    design, n = HOLDING[name]
    assert outcomes(design, n)[0] <= at_most(LEVEL, n)


@pytest.mark.parametrize("name", FAILING_UNWIDENED)
def test_without_wider_errors_they_do_not(name: str) -> None:
    design, n = HOLDING[name]
    assert outcomes(design, n // 2, variance="delong")[0] > at_most(LEVEL, n // 2)


def test_heavy_weights_still_reject_too_often_but_never_without_a_note() -> None:
    """About 0.08 where the unwidened error gives 0.13."""
    n = 250
    rejected, unnoted = outcomes(designs.uneven_weights, n)
    assert rejected <= at_most(0.09, n)
    assert unnoted <= at_most(LEVEL / 10, n)
    assert outcomes(designs.uneven_weights, n, variance="delong")[0] >= at_least(0.12, n)


def test_a_small_group_that_does_better_is_still_found() -> None:
    """The widest power setting with a note: 60 rows of AUC 0.95 against 600 of 0.83."""
    design, n = designs.binormal((60, 600), (0.5, 0.5), (0.95, 0.83)), 300
    found, plain = outcomes(design, n)[0], outcomes(design, n, variance="delong")[0]
    assert plain - 0.02 * n <= found <= plain


def median_error(y_true: Any, y_pred: Any) -> float:
    return float(np.median(np.abs(y_true - y_pred)))


def median_errors(step: float) -> Any:
    """Return a design whose errors are rounded to multiples of a step, or not at all."""

    def draw(rng: np.random.Generator) -> dict[str, Any]:
        error = rng.normal(size=360)
        return {
            "y_true": np.zeros(360),
            "y_pred": step * np.round(error / step) if step else error,
            "sensitive_features": np.repeat([0, 1], [60, 300]),
            "metric": median_error,
            "n_resamples": 99,
        }

    return draw


def test_medians_of_tied_values_reject_too_often_and_are_noted() -> None:
    assert outcomes(median_errors(0.0), 150)[0] <= at_most(LEVEL, 150)
    rejected, unnoted = outcomes(median_errors(0.25), 150)
    assert rejected > at_most(LEVEL, 150)
    assert unnoted < rejected / 5
