"""The omnibus test's level under the weak null: five groups of unequal sizes and base rates.

Bounds are binomial at 99.9 % (see ``simulate``). The un-studentized test in the same setting is
the control that must fail. What came out when this was written stands beside each setting.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

import fairperm
from fairperm.engines.resampling.blocks import Resampling
from fairperm.hypothesis_tests.omnibus import compare_all
from fairperm.hypothesis_tests.plan import Options, Plan
from fairperm.metrics import get_metric
from tests.hypothesis_tests.test_levels import equal_metric
from tests.support.callables import plain_accuracy
from tests.support.simulations import Group, at_least, at_most, table_of

pytestmark = pytest.mark.validate

LEVEL = 0.05
DATA_SETS = 1000
FEWER = 200  # of rows one by one, which take longer
N_RESAMPLES = 99  # (b + 1)/100 reaches 0.05 exactly, as (b + 1)/60 does
FEWER_RESAMPLES = 59
NAMES = tuple("abcde")
BASE_RATES = (0.8, 0.65, 0.5, 0.35, 0.2)
SIZES = (1000, 700, 500, 300, 250)
LARGE = (3000, 2100, 1500, 900, 750)
WITH_SMALL = (1000, 700, 500, 100, 60)


def equal_in(metric: str, sizes: Sequence[int]) -> tuple[Group, ...]:
    """Return five groups with the same value of the metric at unequal base rates."""
    first = Group(sizes[0], BASE_RATES[0])
    others = zip(sizes[1:], BASE_RATES[1:], strict=True)
    return first, *(equal_metric(metric, first, n, rate)[1] for n, rate in others)


RATE = tuple(Group(n, rate, 0.8) for n, rate in zip(SIZES, BASE_RATES, strict=True))
SETTINGS: dict[str, tuple[str, tuple[Group, ...]]] = {
    "TPR": ("true_positive_rate", RATE),
    "PPV": ("positive_predictive_value", equal_in("positive_predictive_value", SIZES)),
    "F1": ("f1_score", equal_in("f1_score", LARGE)),
    "F1, small groups": ("f1_score", equal_in("f1_score", WITH_SMALL)),
}


def rejections(
    setting: str, variance: str | None, scheme: str = "pooled", n: int = DATA_SETS
) -> int:
    """Count the data sets in which the test rejects at the level."""
    metric, groups = SETTINGS[setting]
    rng = np.random.default_rng(31)
    data_sets = np.stack([group.draw(n, rng) for group in groups], axis=1)
    plan = Plan.choose(get_metric(metric), scheme, variance)
    pvalues = [
        compare_all(
            table_of(counts[None], NAMES),
            plan,
            NAMES,
            Options(resampling=Resampling(N_RESAMPLES, seed, 1, False)),
        ).pvalue
        for seed, counts in enumerate(data_sets)
    ]
    return int((np.array(pvalues) <= LEVEL + 1e-12).sum())


@pytest.mark.parametrize("setting", SETTINGS)
def test_studentized_test_holds_its_level_where_base_rates_differ(setting: str) -> None:
    assert rejections(setting, "auto") <= at_most(LEVEL, DATA_SETS)


@pytest.mark.parametrize("setting", ["TPR", "PPV", "F1"])
def test_un_studentized_test_does_not(setting: str) -> None:
    n = 250  # is enough: all of them reject about 0.2
    assert rejections(setting, None, n=n) > at_most(LEVEL, n)


def test_exact_scheme_holds_its_level() -> None:
    assert rejections("TPR", "auto", "denominator") <= at_most(LEVEL, DATA_SETS)


def test_a_small_group_without_errors_does_not_decide() -> None:
    """Were its variance of zero taken for certainty, about one in four tests would reject."""
    assert rejections("PPV", "wald") <= at_most(LEVEL, DATA_SETS)


# -- Rows one by one ------------------------------------------------------------------------------


def scores(rng: np.random.Generator) -> dict[str, Any]:
    """Return binormal scores with an AUC of 0.8 in groups of unequal base rates and spreads."""
    sizes = (800, 150, 140, 130, 120)
    label, score = [], []
    for n, rate, deviation in zip(sizes, (0.5, 0.25, 0.3, 0.25, 0.3), (1, 4, 4, 4, 4), strict=True):
        positive = rng.random(n) < rate
        shift = norm.ppf(0.8) * np.sqrt(1 + deviation**2)
        label.append(positive)
        spread = np.where(positive, deviation, 1) * rng.normal(size=n)
        score.append(np.where(positive, shift, 0) + spread)
    return {
        "y_true": np.concatenate(label),
        "y_score": np.concatenate(score),
        "sensitive_features": np.repeat(range(5), sizes),
        "metric": "roc_auc",
    }


def errors(rng: np.random.Generator) -> dict[str, Any]:
    """Return errors with equal mean squares, whose squares vary more in the small groups."""
    sizes = (2000, 250, 200, 200, 150)
    error = [rng.uniform(-np.sqrt(3), np.sqrt(3), sizes[0])]
    error += [rng.normal(size=n) for n in sizes[1:]]
    return {
        "y_true": np.zeros(sum(sizes)),
        "y_pred": np.concatenate(error),
        "sensitive_features": np.repeat(range(5), sizes),
        "metric": "mean_squared_error",
    }


def labels(rng: np.random.Generator) -> dict[str, Any]:
    """Return predictions of equal accuracy for three groups of unequal base rates."""
    group = np.repeat(range(3), (120, 80, 60))
    y_true = (rng.random(260) < np.array([0.8, 0.5, 0.2])[group]).astype(int)
    right = rng.random(260) < 0.75
    return {
        "y_true": y_true,
        "y_pred": np.where(right, y_true, 1 - y_true),
        "sensitive_features": group,
        "metric": plain_accuracy,
    }


def rejected(
    draw: Callable[[np.random.Generator], dict[str, Any]], n: int = FEWER, **options: Any
) -> int:
    rng = np.random.default_rng(32)
    options = {"n_resamples": FEWER_RESAMPLES, "n_jobs": 1, "progress": False, **options}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fairperm.FairpermWarning)
        pvalues = [fairperm.omnibus_test(**draw(rng), rng=s, **options).pvalue for s in range(n)]
    return int((np.array(pvalues) <= LEVEL + 1e-12).sum())


@pytest.mark.parametrize("scheme", ["pooled", "within_label"])
def test_auc_holds_its_level(scheme: str) -> None:
    assert rejected(scores, scheme=scheme) <= at_most(LEVEL, FEWER)


def test_un_studentized_auc_does_not() -> None:
    assert rejected(scores, scheme="pooled", variance=None) > at_most(LEVEL, FEWER)


def test_squared_errors_hold_their_level() -> None:
    assert rejected(errors) <= at_most(LEVEL, FEWER)


def test_un_studentized_squared_errors_do_not() -> None:
    n = 100  # is enough: it rejects more than 0.25
    assert rejected(errors, n, variance=None) > at_most(LEVEL, n)


def test_a_function_holds_its_level() -> None:
    """Nor does it reject next to never: its draws are on the scale of its statistic."""
    n = 100
    times = rejected(labels, n)
    assert at_least(LEVEL / 2, n) <= times <= at_most(LEVEL, n)


# -- Power ----------------------------------------------------------------------------------------


def test_power_is_that_of_chi_square() -> None:
    """Rates of 0.75 and 0.85 among equals: by the noncentral chi-square, to a few per cent."""
    from scipy.stats import chi2, ncx2

    groups = (Group(400, 1.0, 0.8), Group(400, 1.0, 0.75), Group(400, 1.0, 0.85))
    rates = np.array([0.8, 0.75, 0.85])
    noncentrality = 400 * ((rates - 0.8) ** 2).sum() / (0.8 * 0.2)
    power = ncx2.sf(chi2.ppf(1 - LEVEL, 2), 2, noncentrality)
    rng = np.random.default_rng(33)
    plan = Plan.choose(get_metric("true_positive_rate"), "auto", "auto")
    data_sets = np.stack([group.draw(FEWER, rng) for group in groups], axis=1)
    pvalues = [
        compare_all(
            table_of(counts[None], NAMES[:3]),
            plan,
            NAMES[:3],
            Options(resampling=Resampling(N_RESAMPLES, seed, 1, False)),
        ).pvalue
        for seed, counts in enumerate(data_sets)
    ]
    found = int((np.array(pvalues) <= LEVEL + 1e-12).sum())
    assert 0.8 < power < 0.99
    # 99 draws know the critical value less well, which costs a few per cent
    assert at_least(power - 0.05, FEWER) <= found <= at_most(power, FEWER)
