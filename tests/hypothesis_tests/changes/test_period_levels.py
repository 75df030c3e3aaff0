"""Levels of the test of a change between periods, with the un-studentized test as control.

The gap is the same in both periods (the weak null), but both groups change, and base rates and
sizes differ between groups and periods. The settings were fixed beforehand; the bounds are those of
the change between models.
"""

from __future__ import annotations

import warnings
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fairperm import FairpermWarning, minimum_detectable_gap, power
from fairperm.data.sample import Sample
from fairperm.engines.resampling.blocks import Resampling
from fairperm.hypothesis_tests.changes.periods import PeriodSample, compare_tables
from fairperm.hypothesis_tests.plan import Options
from fairperm.metrics import get_metric
from tests.support.simulations import Group, between

Array = NDArray[Any]

DATA_SETS = 400
DRAWS = 199


def for_f1(n: int, base: float, false_alarms: float, f1: float) -> Group:
    """Return a group with this F1 score."""
    hit = f1 * ((1 - base) * false_alarms + base) / (base * (2 - f1))
    return Group(n, base, hit, 1 - false_alarms)


def for_ppv(n: int, base: float, hit: float, ppv: float) -> Group:
    """Return a group with this positive predictive value."""
    return Group(n, base, hit, 1 - base * hit * (1 - ppv) / ppv / (1 - base))


def for_selection(n: int, rate: float) -> Group:
    """Return a group with this selection rate."""
    return Group(n, 0.5, rate, 1 - rate)


# first group in the old and the new period, then the second
SETTINGS: dict[str, tuple[str, tuple[Any, ...]]] = {
    "selection rate": (
        "selection_rate",
        (
            for_selection(120, 0.5),
            for_selection(600, 0.7),
            for_selection(400, 0.2),
            for_selection(250, 0.4),
        ),
    ),
    "selection rate, far apart": (
        "selection_rate",
        (
            for_selection(100, 0.5),
            for_selection(1000, 0.9),
            for_selection(1000, 0.1),
            for_selection(100, 0.5),
        ),
    ),
    "true positive rate": (
        "true_positive_rate",
        (Group(200, 0.7, 0.8), Group(500, 0.3, 0.7), Group(300, 0.3, 0.9), Group(150, 0.6, 0.8)),
    ),
    "false positive rate, far apart": (
        "false_positive_rate",
        (
            Group(300, 0.5, 0.9, 0.6),
            Group(1500, 0.2, 0.8, 0.9),
            Group(1600, 0.3, 0.8, 0.65),
            Group(200, 0.4, 0.9, 0.95),
        ),
    ),
    "precision": (
        "positive_predictive_value",
        (
            for_ppv(300, 0.5, 0.7, 0.7),
            for_ppv(900, 0.3, 0.6, 0.6),
            for_ppv(700, 0.4, 0.8, 0.8),
            for_ppv(300, 0.4, 0.5, 0.7),
        ),
    ),
    "F1": (
        "f1_score",
        (
            for_f1(300, 0.5, 0.2, 0.7),
            for_f1(800, 0.3, 0.1, 0.6),
            for_f1(600, 0.4, 0.1, 0.75),
            for_f1(250, 0.6, 0.3, 0.65),
        ),
    ),
    "balanced accuracy": (
        "balanced_accuracy",
        (
            Group(250, 0.6, 0.8, 0.8),
            Group(700, 0.3, 0.7, 0.8),
            Group(400, 0.3, 0.7, 0.9),
            Group(300, 0.5, 0.8, 0.7),
        ),
    ),
    # rows, base rate, AUC, spread
    "AUC": (
        "roc_auc",
        ((200, 0.6, 0.85, 1.0), (500, 0.3, 0.8, 2.0), (400, 0.3, 0.8, 1.0), (150, 0.5, 0.75, 1.0)),
    ),
    # rows, standard deviation of the errors
    "squared error": (
        "mean_squared_error",
        ((100, 1.0), (400, 2**0.5), (300, 2**0.5), (120, 3**0.5)),
    ),
    "median error, a function": ("median", ((120, 1.0), (300, 1.5), (200, 1.5), (120, 2.0))),
}
FAILING = "selection rate, far apart"  # the smaller period of each group has the larger variance


def median(y_true: Array, y_pred: Array) -> float:
    """Return the median absolute error."""
    return float(np.median(np.abs(y_true - y_pred)))


def draw_rows(metric: str, setting: Any, rng: np.random.Generator) -> tuple[Array, Array, Array]:
    """Return labels, predictions or scores, and counts of one group in one period."""
    if isinstance(setting, Group):
        count = setting.draw(1, rng)[0]
        return np.arange(4) >= 2, np.arange(4) % 2 == 1, count
    n = setting[0]
    ones = np.ones(n, np.int64)
    if metric == "roc_auc":
        _, base, auc, spread = setting
        label = rng.random(n) < base
        apart = NormalDist().inv_cdf(auc) * (1 + spread**2) ** 0.5
        return label, rng.normal(apart * label, np.where(label, spread, 1)), ones
    return np.zeros(n), rng.normal(0, setting[1], n), ones


def draw(metric: str, cells: tuple[Any, ...], seed: int) -> Sample:
    """Return a data set of two groups in two periods."""
    rng = np.random.default_rng(seed)
    parts = [draw_rows(metric, one, rng) for one in cells]
    label, predicted, count = (np.concatenate(some) for some in zip(*parts, strict=True))
    place = np.repeat(np.arange(4), [len(part[0]) for part in parts])
    table = Sample(
        columns={"y_true": label, "y_score" if metric == "roc_auc" else "y_pred": predicted},
        group=place // 2,
        stratum=np.zeros(len(label), np.uint8),
        count=count,
        groups=("a", "b"),
        strata=("all",),
        period=place % 2,
        periods=("old", "new"),
    )
    return table.take(np.flatnonzero(count))


def rejections(title: str, cells: tuple[Any, ...], **options: Any) -> tuple[int, int]:
    """Return how many data sets are rejected at level 0.05, and how many there are."""
    metric = get_metric(median if title == "median" else title)
    draws, data_sets = (99, 150) if metric.is_function else (DRAWS, DATA_SETS)
    found = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FairpermWarning)
        for seed in range(data_sets):
            chosen = Options(resampling=Resampling(draws, seed, 1, False), **options)
            table = draw(title, cells, seed)
            sample = PeriodSample.of(table, metric, ("a", "b"), ("old", "new"), chosen)
            found += sample.test_change("old", "new").pvalue <= 0.05
    return found, data_sets


@pytest.mark.validate
@pytest.mark.parametrize("name", SETTINGS)
def test_the_level_holds_if_the_gap_stays(name: str) -> None:
    found, data_sets = rejections(*SETTINGS[name])
    low, high = between(0.05, 0.05, data_sets)
    assert low <= found <= high


@pytest.mark.validate
def test_without_studentizing_it_does_not() -> None:
    found, data_sets = rejections(*SETTINGS[FAILING], variance=None)
    _, high = between(0.05, 0.05, data_sets)
    assert found > high


@pytest.mark.validate
def test_the_power_for_a_change_is_that_of_its_pilot() -> None:
    """A pilot of ten times the rows, whose standard error is nearly the true one."""
    sizes = (200, 400, 500, 300)
    rates = (0.3, 0.3, 0.4, 0.5)  # the gap falls by 0.1
    options = Options(resampling=Resampling(DRAWS, 0, 1, False))
    many = tuple(for_selection(10 * n, rate) for n, rate in zip(sizes, rates, strict=True))
    table = draw("selection_rate", many, 1)
    metric = get_metric("selection_rate")
    result = compare_tables(table, metric, ("a", "b"), ("old", "new"), "previous", options)
    (pilot,) = result.changes
    planned = power(pilot=pilot, values=(0.0, 0.1), n=sum(sizes))
    few = tuple(for_selection(n, rate) for n, rate in zip(sizes, rates, strict=True))
    found, data_sets = rejections("selection_rate", few)
    low, high = between(planned - 0.03, planned + 0.03, data_sets)
    assert low <= found <= high
    detectable = minimum_detectable_gap(pilot=pilot, n=sum(sizes), power=planned)
    assert detectable == pytest.approx(0.1, rel=0.01)
