"""Errors of whole audits: any false disparity (Holm), the share of false ones (BH).

Data sets are seeded; bounds are binomial at 99.9 % (see ``simulate``).
"""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

import numpy as np
import pytest

import fairperm
from fairperm.data.arguments import Adjustment
from fairperm.inference.multiplicity import adjust_pvalues
from tests.support.simulations import Group, at_most

# all tests read the same audits: two workers of pytest would each make them
pytestmark = [pytest.mark.validate, pytest.mark.xdist_group("family errors")]

ALPHA = 0.05
DATA_SETS = 150
N_RESAMPLES = 199
METRICS = ["true_positive_rate", "false_positive_rate", "balanced_accuracy", "accuracy"]
NAMES = list("abc")

# equal rates of hits for both labels, so that all four metrics are equal, at unequal base rates
NULL = (Group(300, 0.7, 0.8, 0.8), Group(200, 0.5, 0.8, 0.8), Group(250, 0.3, 0.8, 0.8))
# the third group has fewer hits among positives: its TPR, balanced accuracy and accuracy differ
SOME = (*NULL[:2], Group(250, 0.4, 0.6, 0.8))
TRUE_GAPS = {"true_positive_rate", "balanced_accuracy", "accuracy"}


def rows_of(counts: Any) -> dict[str, Any]:
    """Return rows of counts by group and cell."""
    group, cell = np.indices(counts.shape).reshape(2, -1)
    times = counts.ravel()
    return {
        "y_true": np.repeat(cell // 2, times),
        "y_pred": np.repeat(cell % 2, times),
        "sensitive_features": np.repeat(np.array(NAMES)[group], times),
    }


def audited(counts: Any, seed: int, adjust: Adjustment) -> fairperm.Audit:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fairperm.FairpermWarning)
        return fairperm.audit(
            **rows_of(counts),
            metrics=METRICS,
            adjust=adjust,
            alpha=ALPHA,
            n_resamples=N_RESAMPLES,
            rng=seed,
            n_jobs=1,
            progress=False,
        )


def draw(groups: tuple[Group, ...]) -> Any:
    rng = np.random.default_rng(41)
    return np.stack([group.draw(DATA_SETS, rng) for group in groups], axis=1)


@cache
def pvalues(groups: tuple[Group, ...]) -> tuple[Any, Any]:
    """Return p-values by data set and row, and in which rows there is a gap."""
    raw = []
    for seed, counts in enumerate(draw(groups)):
        audit = audited(counts, seed, None)
        raw.append([row.pvalue for row in audit])
    differs = groups[-1] is not NULL[-1]
    is_true = [differs and "c" in row.groups and row.metric in TRUE_GAPS for row in audit]
    return np.array(raw), np.array(is_true)


@cache
def rejections(groups: tuple[Group, ...], adjust: Adjustment) -> tuple[Any, Any]:
    """Return by data set and row whether a disparity is found, and where there is one."""
    raw, is_true = pvalues(groups)
    return np.array([adjust_pvalues(one, adjust) for one in raw]) <= ALPHA, is_true


@pytest.mark.parametrize("adjust", ["holm", "bh", None])
def test_verdicts_of_audits_are_these(adjust: Adjustment) -> None:
    """So that one audit of each data set does for all adjustments."""
    for seed, counts in enumerate(draw(SOME)[:3]):
        verdicts = [row.verdict == "disparity" for row in audited(counts, seed, adjust)]
        assert verdicts == rejections(SOME, adjust)[0][seed].tolist()


@pytest.mark.parametrize("groups", [NULL, SOME], ids=["all null", "some null"])
def test_any_false_disparity_is_rare(groups: tuple[Group, ...]) -> None:
    found, is_true = rejections(groups, "holm")
    false = found[:, ~is_true].any(axis=1).sum()
    assert false <= at_most(ALPHA, DATA_SETS)


def test_without_adjustment_it_is_not() -> None:
    found, _ = rejections(NULL, None)
    assert found.any(axis=1).sum() > at_most(ALPHA, DATA_SETS)


def test_the_share_of_false_disparities_is_small() -> None:
    """Of each data set, a number from 0 to 1: it varies no more than a coin of the same mean."""
    found, is_true = rejections(SOME, "bh")
    share = found[:, ~is_true].sum(axis=1) / np.maximum(found.sum(axis=1), 1)
    assert share.sum() <= at_most(ALPHA, DATA_SETS)
    none, _ = rejections(NULL, "bh")
    assert none.any(axis=1).sum() <= at_most(ALPHA, DATA_SETS)
