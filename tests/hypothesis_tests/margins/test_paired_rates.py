"""Changes of gaps at a margin where few rows changed, against brute force and published limits."""

from __future__ import annotations

import itertools
import math
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq, minimize_scalar
from scipy.special import xlogy
from scipy.stats import norm

from fairperm import FairpermWarning, InputError, compare_models
from fairperm.data.sample import Sample
from fairperm.engines.resampling.blocks import Resampling
from fairperm.hypothesis_tests.changes.models import compare_tables
from fairperm.hypothesis_tests.margins.one_sided import margin_pvalues
from fairperm.hypothesis_tests.plan import Options
from fairperm.hypothesis_tests.results.changes import ModelComparisonResult
from fairperm.metrics import get_metric
from tests.support.simulations import at_least, at_most

pytestmark = pytest.mark.filterwarnings(
    "ignore:.* shows? how the change", "ignore:.*is zero in this", "ignore:.*is not tested"
)

Changes = tuple[int, int, int]  # rows that only the new model selects, only the old one, and all


def table_of(*groups: Changes) -> Sample:
    """Return two groups whose other rows neither model selects."""
    counts = np.array([(up, down, n - up - down) for up, down, n in groups])
    group, cell = np.nonzero(counts)
    columns = {"y_pred": cell == 1, "y_pred_new": cell == 0, "y_true": cell < 0}
    return Sample(
        columns=columns, group=group, stratum=np.zeros(len(cell), np.uint8),
        count=counts[group, cell], groups=("a", "b"), strata=("all",),
    )  # fmt: skip


def compared(
    *groups: Changes, level: float = 0.95, draws: int = 0, seed: int = 1, variance: str = "auto"
) -> ModelComparisonResult:
    resampling = Resampling(draws, seed, 1, False)
    options = Options(resampling=resampling, variance=variance, confidence_level=level)
    metric = get_metric("selection_rate")
    return compare_tables(table_of(*groups), metric, ("a", "b"), options)


@pytest.mark.parametrize(
    ("changes", "level", "published"),
    [
        # Fagerland, Lydersen, Laake, BMC Medical Research Methodology 14:116 (2014), table 3
        ((1, 7, 21), 0.95, (-0.517, -0.026)),
        ((28, 25, 618), 0.90, (-0.0148, 0.0247)),  # R, PropCIs 0.3-0: scoreci.mp(25, 28, 618, 0.9)
    ],
)
def test_next_to_a_huge_group_the_interval_is_tangos(
    changes: Changes, level: float, published: tuple[float, float]
) -> None:
    change = compared(changes, (0, 0, 10**9), level=(1 + level) / 2)
    digits = 3 if changes[2] < 100 else 4
    found = change.test_margin(0.9).confidence_interval
    assert tuple(round(end, digits) for end in found) == published


def brute_error(changes: Changes, true: float) -> float:
    """Return the error at the likeliest rates with this change, which a search finds."""
    up, down, n = changes
    rest = n - up - down

    def minus_log_likelihood(q: float) -> float:
        rates = np.array([q + max(true, 0), q - min(true, 0), 1 - 2 * q - abs(true)])
        return -float(xlogy([up, down, rest], np.maximum(rates, 0)).sum())

    most = (1 - abs(true)) / 2
    found = minimize_scalar(
        minus_log_likelihood, bounds=(0, most), method="bounded", options={"xatol": 1e-12}
    )
    q = min([0.0, float(found.x), most], key=minus_log_likelihood)
    return math.sqrt((2 * q + abs(true) - true**2) / n)


def brute_limit(changes: Changes, z: float) -> float:
    """Return the true change above the sample's that is z of these errors away."""
    up, down, n = changes
    estimate = (up - down) / n
    if estimate == 1:
        return 1.0
    return float(
        brentq(lambda d: (d - estimate) - z * brute_error(changes, d), estimate + 1e-9, 1 - 1e-12)
    )


def brute_upper(first: Changes, second: Changes, z: float) -> float:
    """Return MOVER's upper limit of the difference of changes."""
    (a, b, m), (c, d, n) = first, second
    one = brute_limit(first, z) - (a - b) / m
    other = brute_limit((d, c, n), z) - (d - c) / n  # the lower limit, upside down
    return (a - b) / m - (c - d) / n + math.hypot(one, other)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ((3, 0, 60), (0, 0, 2000)),
        ((0, 0, 60), (0, 0, 80)),  # the standard error of the sample is zero
        ((1, 4, 60), (20, 3, 500)),
        ((30, 30, 300), (5, 2, 100)),
        ((50, 0, 50), (3, 1, 40)),  # all rows changed
        ((0, 40, 60), (25, 0, 30)),
    ],
)
def test_the_interval_joins_score_intervals_that_brute_force_finds(
    first: Changes, second: Changes
) -> None:
    low, high = compared(first, second).test_margin(1.9).confidence_interval
    z = norm.ppf(0.95)
    assert high == pytest.approx(min(brute_upper(first, second, z), 2), abs=2e-6)
    assert -low == pytest.approx(min(brute_upper(second, first, z), 2), abs=2e-6)


def test_p_agrees_with_the_interval_and_neither_depends_on_the_order() -> None:
    first, second = (3, 1, 60), (4, 9, 300)
    change = compared(first, second, draws=999)
    low, high = change.test_margin(0.5).confidence_interval
    for end, sign in itertools.product((low, high), (-1, 1)):
        outside = change.test_margin(
            (-1.9, end + sign * 1e-9) if end > 0 else (end - sign * 1e-9, 1.9)
        )
        assert (outside.pvalue <= 0.05) == (sign > 0)
    swapped = compared(second, first, draws=999).test_margin(0.1)
    models = compared(*((down, up, n) for up, down, n in (first, second)), draws=999)
    for other in (swapped, models.test_margin(0.1)):
        ends = other.lower, other.upper
        assert [one.statistic for one in ends if one] == pytest.approx(
            [-one.statistic for one in margin_pvalues(change, 0.1)[::-1]]
        )


def test_identical_models_are_shown_to_have_equal_rates() -> None:
    within = compared((0, 0, 400), (0, 0, 900), draws=99).test_margin(0.05)
    assert within.holds_at(0.05)
    assert not any("is zero" in note for note in within.notes)
    assert not compared((0, 0, 40), (0, 0, 90), draws=99).test_margin(0.05).holds_at(0.05)


@pytest.mark.parametrize("margin", [2, 5.0])
def test_a_change_of_rates_is_at_most_2(margin: float) -> None:
    change = compared((3, 1, 60), (4, 9, 300))
    with pytest.raises(InputError, match=r"margin must be below 2 for change in selection_rate"):
        change.test_margin(margin)


def test_a_margin_may_be_a_number_of_numpy() -> None:
    change = compared((3, 1, 60), (4, 9, 300))
    assert change.test_margin(np.float64(0.1)).pvalue == change.test_margin(0.1).pvalue


def rows_with_changes(n_changed: int) -> dict[str, Any]:
    """Return 150 and 400 rows; the models disagree on so many of the first group's."""
    rng = np.random.default_rng(2)
    group = np.repeat(["a", "b"], [150, 400])
    label = rng.random(550) < 0.5
    old = label ^ (rng.random(550) < 0.2)
    changes = np.zeros(550, bool)
    changes[:150][np.flatnonzero(label[:150])[:n_changed]] = True
    changes[150::5] = True
    return {
        "y_true": label,
        "y_pred": old,
        "y_pred_new": old ^ changes,
        "sensitive_features": group,
    }


def share_right(y_true: Any, y_pred: Any) -> float:
    return float(np.mean(y_true == y_pred))


def as_scores(rows: dict[str, Any]) -> dict[str, Any]:
    noise = np.random.default_rng(4).random(550)
    return {
        "y_true": rows["y_true"],
        "sensitive_features": rows["sensitive_features"],
        "y_score": rows["y_pred"] + noise,
        "y_score_new": rows["y_pred_new"] + noise,
    }


@pytest.mark.filterwarnings("ignore:The change in share_right has one and the same value")
@pytest.mark.parametrize(
    ("metric", "options"),
    [
        ("precision", {}),
        ("f1_score", {}),
        (share_right, {"n_bootstrap": 20}),
        ("accuracy", {"control_features": np.arange(550) % 2}),
        ("accuracy", {"sample_weight": 1.0 + np.arange(550) % 2}),
        ("accuracy", {"cluster": np.arange(550) // 2}),
        ("mean_score", {"scores": True}),
        ("roc_auc", {"scores": True}),
    ],
)
@pytest.mark.parametrize("n_changed", [0, 1, 8])
def test_other_changes_of_few_rows_are_not_tested_at_margins(
    metric: Any, options: dict[str, Any], n_changed: int
) -> None:
    options = dict(options)
    rows = rows_with_changes(n_changed)
    if options.pop("scores", False):
        rows = as_scores(rows)
    change = compare_models(**rows, metric=metric, n_resamples=49, rng=1, **options)
    with pytest.warns(FairpermWarning, match=r"is within the margin is not tested: "):
        within = change.test_margin(0.99)
    assert within.pvalue == 1
    largest = math.inf if metric in {share_right, "mean_score"} else 2
    assert within.confidence_interval == (-largest, largest)  # all that is possible
    few = {0: "no ", 1: "only about 1 "}.get(n_changed, "only about ")
    unit = "cluster" if "cluster" in options else "row"
    assert within.notes[0].startswith(f"Whether the {change.metric} is within the margin")
    assert f": {few}" in within.notes[0]
    assert unit in within.notes[0]


@pytest.mark.parametrize("metric", ["precision", share_right])
def test_other_changes_of_many_rows_are_tested(metric: Any) -> None:
    change = compare_models(**rows_with_changes(60), metric=metric, n_resamples=49, rng=1)
    assert change.test_margin(0.99).holds_at(0.05)


SIZES = [(60, 2000, 0.10), (100, 2000, 0.05), (2000, 60, 0.10), (2000, 100, 0.05)]


@pytest.mark.validate
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(("first", "second", "margin"), SIZES)
def test_claims_at_the_margin_are_rare(first: int, second: int, margin: float, sign: int) -> None:
    n_sets, rng = 400, np.random.default_rng(first + second + sign)
    by_score = by_error = 0
    for seed in range(n_sets):
        groups = []
        for n in (first, second):
            true = sign * margin if n < 1000 else 0.0
            up, down = 0.001 + max(true, 0.0), 0.001 - min(true, 0.0)
            counts = rng.multinomial(n, [up, down, 1 - up - down])
            groups.append((int(counts[0]), int(counts[1]), n))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FairpermWarning)
            change = compared(*groups, draws=199, seed=seed)
            own = compared(*groups, draws=199, seed=seed, variance="delta")
        by_score += max(one.pvalue for one in margin_pvalues(change, margin)) <= 0.05
        own = replace(own, gap_variance=None)  # the sample's own standard error, and skewness
        by_error += max(one.pvalue for one in margin_pvalues(own, margin)) <= 0.05
    assert by_score <= at_most(0.05, n_sets)
    assert by_error > at_most(0.05, n_sets)  # control


@pytest.mark.validate
def test_few_changes_are_shown_to_be_within_a_wide_margin() -> None:
    n_sets, rng, shown = 200, np.random.default_rng(3), 0
    for seed in range(n_sets):
        counts = [rng.multinomial(n, [0.01, 0.01, 0.98]) for n in (60, 2000)]
        groups = [(int(up), int(down), int(up + down + rest)) for up, down, rest in counts]
        change = compared(*groups, draws=199, seed=seed)
        shown += max(one.pvalue for one in margin_pvalues(change, 0.1)) <= 0.05
    assert shown >= at_least(0.9, n_sets)
