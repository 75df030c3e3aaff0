"""Levels and power of the test of a change of the gap, with the un-studentized test as control.

Both groups change by the same amount (the weak null), but differ in base rates, in how good the
models are and in how often they disagree. The settings were fixed beforehand; the bounds are those
of the nominal level.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fairperm import FairpermWarning
from fairperm.data.sample import Sample
from fairperm.engines.resampling.blocks import Resampling
from fairperm.hypothesis_tests.changes.models import compare_tables
from fairperm.hypothesis_tests.groups import compare
from fairperm.hypothesis_tests.plan import Options, Plan
from fairperm.hypothesis_tests.results.gaps import PermutationTestResult
from fairperm.metrics import get_metric
from fairperm.metrics.changes import columns_of_model
from fairperm.metrics.definition import AnyMetric
from tests.support.simulations import at_least, at_most, between

Array = NDArray[Any]

DATA_SETS = 300
DRAWS = 199


@dataclass(frozen=True)
class Group:
    """Rows of one group: how many, how many positives, and where and how the models disagree.

    ``old`` is P(predicted positive) of a negative and of a positive by the old model. The new model
    takes back the share ``down`` of these predictions and adds the share ``up`` of the others, for
    negatives and for positives.
    """

    n: int
    base: float
    old: tuple[float, float]
    down: tuple[float, float]
    up: tuple[float, float]

    def draw(self, rng: np.random.Generator) -> tuple[Array, Array, Array]:
        """Return labels, and predictions of both models."""
        label = rng.random(self.n) < self.base
        at = label.astype(int)
        old = rng.random(self.n) < np.take(self.old, at)
        moves = rng.random(self.n) < np.where(old, np.take(self.down, at), np.take(self.up, at))
        return label, old, old ^ moves


def alike(old: float, change: float, disagree: float) -> tuple[float, float]:
    """Return shares taken back and added, for this change of a rate and this disagreement."""
    return (disagree - change) / 2 / old, (disagree + change) / 2 / (1 - old)


def group(
    n: int, base: float, old: tuple[float, float], change: float, disagree: tuple[float, float]
) -> Group:
    """Return a group in which both rates change by the same amount."""
    moves = [alike(*one) for one in zip(old, (change, change), disagree, strict=True)]
    return Group(n, base, old, *zip(*moves, strict=True))


def scores(
    rng: np.random.Generator, n: int, base: float, apart: float, spread: float, *noise: float
) -> tuple[Array, Array, Array]:
    """Return labels and two scores that differ by noise in both: of equal expected AUC if alike."""
    label = rng.random(n) < base
    common = rng.normal(apart * label, 1, n)
    old, new = (common + rng.normal(0, one, n) for one in (noise[0], noise[-1]))
    return label, old * spread, new * spread


def errors(
    rng: np.random.Generator, n: int, spread: float, *noise: float
) -> tuple[Array, Array, Array]:
    """Return outcomes and two predictions, of equal expected error if both noises are alike."""
    outcome = rng.normal(0, 1, n)
    common = rng.laplace(0, spread, n)
    old, new = (outcome + common + rng.normal(0, one, n) for one in (noise[0], noise[-1]))
    return outcome, old, new


def f1_group(n: int, base: float, old: tuple[float, float], swap: float) -> Group:
    """Return a group whose models are equally good, but disagree on some rows."""
    moves = [alike(one, 0.0, swap) for one in old]
    return Group(n, base, old, *zip(*moves, strict=True))


SETTINGS: dict[str, tuple[str, Any, Any]] = {
    "selection rate, 80 % v 99 % agreement": (
        "selection_rate",
        group(150, 0.6, (0.3, 0.7), 0.01, (0.2, 0.2)),
        group(900, 0.2, (0.2, 0.6), 0.01, (0.01, 0.01)),
    ),
    "selection rate, equal sizes": (
        "selection_rate",
        group(300, 0.8, (0.5, 0.5), -0.03, (0.1, 0.1)),
        group(300, 0.2, (0.2, 0.4), -0.03, (0.04, 0.04)),
    ),
    "true positive rate": (
        "true_positive_rate",
        group(400, 0.7, (0.2, 0.8), 0.03, (0.1, 0.2)),
        group(400, 0.3, (0.1, 0.6), 0.03, (0.1, 0.08)),
    ),
    "true positive rate, small group": (
        "true_positive_rate",
        group(120, 0.5, (0.2, 0.7), 0.05, (0.1, 0.15)),
        group(800, 0.4, (0.1, 0.8), 0.05, (0.1, 0.07)),
    ),
    "false positive rate": (
        "false_positive_rate",
        group(600, 0.33, (0.25, 0.8), -0.02, (0.06, 0.1)),
        group(300, 0.5, (0.4, 0.7), -0.02, (0.15, 0.1)),
    ),
    "precision": (
        "positive_predictive_value",
        f1_group(300, 0.7, (0.3, 0.7), 0.15),
        f1_group(600, 0.4, (0.2, 0.6), 0.05),
    ),
    "F1": (
        "f1_score",
        f1_group(300, 0.6, (0.3, 0.7), 0.15),
        f1_group(600, 0.3, (0.2, 0.6), 0.05),
    ),
    "accuracy": (
        "accuracy",
        f1_group(200, 0.6, (0.3, 0.7), 0.2),
        f1_group(600, 0.3, (0.2, 0.6), 0.04),
    ),
    "AUC": ("roc_auc", (200, 0.7, 1.0, 1.0, 0.6), (400, 0.3, 1.5, 2.0, 0.2)),
    "AUC, small group": ("roc_auc", (120, 0.4, 1.2, 1.0, 0.3), (500, 0.3, 0.8, 1.0, 0.8)),
    "squared error": ("mean_squared_error", (150, 0.7, 0.3), (450, 0.3, 0.6)),
    "median error, a function": ("median", (150, 0.7, 0.3), (300, 0.4, 0.6)),
}
# The smaller group's models disagree far more often: un-studentized permutation takes the
# disagreement of all rows for its own.
FAILING = ("selection rate, 80 % v 99 % agreement", "accuracy")


def median(y_true: Array, y_pred: Array) -> float:
    """Return the median absolute error."""
    return float(np.median(np.abs(y_true - y_pred)))


def draw(metric: str, first: Any, second: Any, seed: int) -> Sample:
    """Return a data set of two groups."""
    rng = np.random.default_rng(seed)
    parts = []
    for one in (first, second):
        if isinstance(one, Group):
            parts.append(one.draw(rng))
        else:
            parts.append(scores(rng, *one) if metric == "roc_auc" else errors(rng, *one))
    label, old, new = (np.concatenate(both) for both in zip(*parts, strict=True))
    name = "y_score" if metric == "roc_auc" else "y_pred"
    return Sample(
        columns={"y_true": label, name: old, f"{name}_new": new},
        group=np.repeat([0, 1], [len(part[0]) for part in parts]).astype(np.uint8),
        stratum=np.zeros(len(label), np.uint8),
        count=np.ones(len(label), np.int64),
        groups=("a", "b"),
        strata=("all",),
    )


def rejections(setting: tuple[str, Any, Any], data_sets: int, **options: Any) -> int:
    """Return how many data sets are rejected at level 0.05."""
    metric = get_metric(median if setting[0] == "median" else setting[0])
    draws = DRAWS // 2 if metric.is_function else DRAWS
    found = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FairpermWarning)
        for seed in range(data_sets):
            chosen = Options(resampling=Resampling(draws, seed, 1, False), **options)
            table = draw(*setting, seed)
            found += compare_tables(table, metric, ("a", "b"), chosen).pvalue <= 0.05
    return found


@pytest.mark.validate
@pytest.mark.parametrize("name", SETTINGS)
def test_the_level_holds_if_both_groups_change_alike(name: str) -> None:
    low, high = between(0.05, 0.05, DATA_SETS)
    assert low <= rejections(SETTINGS[name], DATA_SETS) <= high


@pytest.mark.validate
@pytest.mark.parametrize("name", FAILING)
def test_without_studentizing_it_does_not(name: str) -> None:
    _, high = between(0.05, 0.05, DATA_SETS)
    assert rejections(SETTINGS[name], DATA_SETS, variance=None) > high


def separate_tests(metric: AnyMetric, table: Sample) -> list[PermutationTestResult]:
    """Return a test of the gap for each model by itself: its normal limit."""
    options, found = Options(resampling=Resampling(0, 0, 1, False)), []
    for new in (False, True):
        one = replace(table, columns=columns_of_model(table.columns, new=new))
        plan = Plan.for_table(metric, one, ("a", "b"), options)
        found.append(compare(one, plan, ("a", "b"), options))
    return found


def differ(old: PermutationTestResult, new: PermutationTestResult) -> bool:
    """Whether two gaps differ at level 0.05 as those of different rows would."""
    error = math.hypot(old.standard_error, new.standard_error)
    return abs(new.difference - old.difference) > 1.96 * error


def falls(n: tuple[int, int], old: float, removed: float) -> tuple[str, Group, Group]:
    """Return a new model that removes a share of the first group's false alarms."""
    first = Group(n[0], 0.0, (old, 0.5), (removed, 0.0), (0.0, 0.0))
    second = Group(n[1], 0.0, (0.2, 0.5), (0.03, 0.0), (0.0075, 0.0))
    return "false_positive_rate", first, second


# settings with a change, and what is to be detected: that of the prototype, or nothing
POWER: dict[str, tuple[tuple[str, Any, Any], float]] = {
    "10 % of false alarms removed": (falls((400, 150), 0.3, 0.1), 0.41),
    "20 % of false alarms removed": (falls((400, 150), 0.3, 0.2), 0.86),
    "30 % of false alarms removed": (falls((400, 150), 0.3, 0.3), 0.98),
    "the smaller group changes": (falls((150, 400), 0.3, 0.2), 0.0),
    "models disagree on 20 % of rows": (
        (
            "selection_rate",
            group(300, 0.5, (0.4, 0.6), -0.1, (0.2, 0.2)),
            group(500, 0.3, (0.3, 0.5), 0.0, (0.2, 0.2)),
        ),
        0.0,
    ),
    "precision": (
        (
            "positive_predictive_value",
            Group(400, 0.5, (0.4, 0.7), (0.4, 0.05), (0.02, 0.05)),
            f1_group(400, 0.5, (0.3, 0.7), 0.05),
        ),
        0.0,
    ),
    "AUC": (("roc_auc", (300, 0.5, 1.5, 1.0, 0.4, 1.0), (300, 0.4, 1.5, 1.0, 0.4)), 0.0),
    "squared error": (("mean_squared_error", (200, 0.4, 0.5, 0.2), (300, 0.4, 0.5)), 0.0),
}


@pytest.mark.validate
@pytest.mark.parametrize("name", POWER)
def test_pairing_detects_no_less_than_two_separate_tests(name: str) -> None:
    setting, power = POWER[name]
    n, metric = 100 if power else 50, get_metric(setting[0])
    apart = sum(differ(*separate_tests(metric, draw(*setting, seed))) for seed in range(n))
    paired = rejections(setting, n)
    assert paired >= at_least(power, n)
    assert paired >= apart


@pytest.mark.validate
def test_one_significant_gap_of_two_is_no_evidence_of_a_change() -> None:
    n, metric = 100, get_metric("selection_rate")
    setting = (
        "selection_rate",
        group(300, 0.5, (0.28, 0.48), 0.0, (0.2, 0.2)),
        group(300, 0.5, (0.2, 0.4), 0.0, (0.2, 0.2)),
    )
    tables = [draw(*setting, seed) for seed in range(n)]
    pvalues = [[one.pvalue for one in separate_tests(metric, table)] for table in tables]
    assert sum((old <= 0.05) != (new <= 0.05) for old, new in pvalues) > at_most(0.05, n)
    assert rejections(setting, n) <= at_most(0.05, n)
