"""The registry of metrics: values, variances, names."""

from __future__ import annotations

import itertools
import math
import warnings
from collections import Counter
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fairperm import (
    FairpermWarning,
    InputError,
    PermutationTestResult,
    metric_names,
    permutation_test,
)
from fairperm.engines.counts import _sum_squares
from fairperm.metrics import get_metric, pinball_loss
from fairperm.metrics.classes import MacroMetric
from fairperm.metrics.definition import JointMetric, Metric
from fairperm.metrics.ranks import RankMetric
from tests.support.helpers import CELL_COLUMNS, JOINT, OTHERS, RATES, Counts, delta_variance, value
from tests.support.number_data import (
    AUCS,
    GIVEN_LABEL,
    NUMBER_METRICS,
    SCORES,
    arguments,
    numbers_for,
)
from tests.support.number_data import value as number_value

TABLES: list[Counts] = [
    (40, 10, 15, 35),
    (900, 50, 5, 45),
    (3, 1, 2, 8),
    (0, 4, 3, 9),
    (7, 0, 2, 1),
    (6, 5, 0, 4),
    (5, 2, 3, 0),
    (9, 0, 0, 4),
    (0, 6, 5, 0),
]
SINGLE = (*RATES, *OTHERS)
ELSEWHERE = {
    *(
        "recall_macro",
        "precision_macro",
        "f1_macro",
        "generalized_entropy_index",
        "theil_t_index",
        "theil_l_index",
    ),
    *("atkinson_index", "coefficient_of_variation", "roc_auc_ovr", "roc_auc_ovr_weighted"),
}

by_metric = pytest.mark.parametrize("name", SINGLE)
by_name = pytest.mark.parametrize("name", metric_names())


def single(name: str) -> Metric:
    metric = get_metric(name)
    assert isinstance(metric, Metric)
    return metric


def estimated(name: str, counts: NDArray[np.int64]) -> NDArray[np.float64]:
    metric = single(name)
    with np.errstate(divide="ignore", invalid="ignore"):
        return metric.estimate(counts.astype(float) @ metric.matrix(CELL_COLUMNS))


def variance(name: str, counts: Counts) -> float:
    metric = single(name)
    table, rows = np.array(counts, float), metric.matrix(CELL_COLUMNS)
    with np.errstate(divide="ignore", invalid="ignore"):
        influence = metric.gradient(table @ rows) @ rows.T
        return float(_sum_squares(metric, influence, table, table @ rows))


# -- Values -----------------------------------------------------------------------------------


def test_every_metric_is_tested_here() -> None:
    of_tables = {name for name in metric_names() if get_metric(name).kind in {"binary", "labels"}}
    assert of_tables == {*RATES, *OTHERS, *JOINT}
    assert set(metric_names()) - of_tables - ELSEWHERE == {*NUMBER_METRICS}


@by_metric
def test_values_are_those_of_the_formulas(name: str) -> None:
    expected = [value(name, counts) for counts in TABLES]
    assert estimated(name, np.array(TABLES)) == pytest.approx(expected, nan_ok=True)


@by_metric
def test_values_fill_their_span(name: str) -> None:
    tables = [t for t in itertools.product(range(5), repeat=4) if sum(t) == 4]
    values = estimated(name, np.array(tables))
    span = (np.nanmin(values), np.nanmax(values))
    assert span == pytest.approx((1 - single(name).span, 1))


@by_metric
def test_an_empty_table_has_no_value(name: str) -> None:
    assert math.isnan(estimated(name, np.zeros(4, np.int64)))


def test_a_joint_metric_is_made_of_its_parts() -> None:
    for name, parts in JOINT.items():
        assert tuple(part.name for part in get_metric(name).parts) == parts


# -- Variances --------------------------------------------------------------------------------


def differentiated(name: str, counts: Counts) -> float:
    """Return n·(gradient over shares)ᵀ·(diag(p) − ppᵀ)·gradient / n², by central differences."""
    n, step = sum(counts), 1e-5
    shares = np.array(counts) / n
    gradient = np.empty(4)
    for cell in range(4):
        up, down = shares.copy(), shares.copy()
        up[cell] += step
        down[cell] -= step
        gradient[cell] = (_plain(name, up) - _plain(name, down)) / (2 * step)
    covariance = (np.diag(shares) - np.outer(shares, shares)) / n
    return float(gradient @ covariance @ gradient)


def _plain(name: str, shares: NDArray[np.float64]) -> float:
    if name in OTHERS:
        return OTHERS[name](*shares.tolist())
    k, m = (
        sum(shares[["tn", "fp", "fn", "tp"].index(cell)] for cell in cells.split())
        for cells in RATES[name]
    )
    return float(k / m)


@by_metric
@pytest.mark.parametrize("counts", TABLES[:3], ids=str)
def test_delta_variance_is_that_of_central_differences(name: str, counts: Counts) -> None:
    expected = differentiated(name, counts)
    assert variance(name, counts) == pytest.approx(expected, rel=1e-6)
    assert delta_variance(name, counts) == pytest.approx(expected, rel=1e-6)  # derived by hand


@by_metric
def test_delta_variance_is_the_one_derived_by_hand(name: str) -> None:
    """For a rate that is wald's p(1 − p)/m."""
    for counts in TABLES:
        if not math.isnan(value(name, counts)):
            expected = delta_variance(name, counts)
            assert variance(name, counts) == pytest.approx(expected, rel=1e-10, abs=1e-15)


@by_metric
def test_what_cannot_vary_has_no_variance(name: str) -> None:
    """A table of hits only, or of errors only, without any rounding error."""
    sizes = (1, 2, 3, 7, 9, 11, 49, 10**3, 10**6, 10**9 + 7)
    for a, b in itertools.product(sizes, sizes):
        for counts in ((a, 0, 0, b), (0, a, b, 0)):
            if name not in {"selection_rate", "base_rate"} and not math.isnan(value(name, counts)):
                assert variance(name, counts) == 0.0, counts


@by_metric
@pytest.mark.parametrize("n", [10**3, 10**6, 10**12], ids="{:.0e}".format)
def test_what_can_vary_has_a_variance(name: str, n: int) -> None:
    """Even if one row in so many is all that does."""
    for tn, fp, fn, tp in itertools.product((1, n), repeat=4):
        counts = (tn, fp, fn, tp)
        expected = delta_variance(name, counts)
        assert variance(name, counts) == pytest.approx(expected, rel=1e-3, abs=0)


# -- Metrics of numbers ---------------------------------------------------------------------------

by_number_metric = pytest.mark.parametrize("name", NUMBER_METRICS)


def run(name: Any, data: dict[str, Any], **options: Any) -> PermutationTestResult:
    options = {"n_resamples": 9, "rng": 1, **options}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FairpermWarning)  # of small groups and undefined draws
        return permutation_test(**data, metric=name, **options)


def by_hand(name: str, data: dict[str, Any]) -> dict[str, float]:
    y, x = (np.asarray(data[key]) for key in list(data)[:2])
    groups = np.asarray(data["sensitive_features"])
    return {group: number_value(name, y[groups == group], x[groups == group]) for group in "ab"}


@by_number_metric
@pytest.mark.parametrize("n", [12, 900], ids="{} rows".format)
def test_values_of_numbers_are_those_of_the_formulas(name: str, n: int) -> None:
    data = numbers_for(name, n, seed=2)
    result = run(name, data, variance=None)
    expected = by_hand(name, data)
    assert result.values == pytest.approx(expected, rel=1e-12)
    assert result.difference == pytest.approx(expected["a"] - expected["b"], rel=1e-10)


@by_number_metric
def test_values_of_numbers_that_repeat(name: str) -> None:
    """Scores of 0.1, 0.2, … stand at the ends of the bins; each bin has its lower end."""
    rng = np.random.default_rng(3)
    if name in SCORES:
        data = arguments(name, rng.integers(0, 2, 600), rng.integers(1, 10, 600) / 10)
    else:
        data = arguments(name, rng.integers(1, 6, 600), rng.integers(1, 6, 600))
    data["sensitive_features"] = np.array(["a", "b"])[rng.integers(0, 2, 600)]
    assert run(name, data).values == pytest.approx(by_hand(name, data), rel=1e-12)


EDGES: list[tuple[str, list[float], list[float], float]] = [
    # of a sure but wrong score, as in scikit-learn: −log of the smallest step from 1
    ("log_loss", [1, 0], [0.0, 0.0], 52 * math.log(2) / 2),
    ("log_loss", [0, 1], [1.0, 1.0], 52 * math.log(2) / 2),
    # of an outcome of 0, as in scikit-learn: over that step
    ("mean_absolute_percentage_error", [0, 2], [1, 1], (2.0**52 + 0.5) / 2),
    ("roc_auc", [0, 1, 1, 0], [3.0, 3.0, 3.0, 3.0], 0.5),
    ("roc_auc", [0, 1, 1, 0], [-3.0, 1e300, -1e300, -5.0], 0.5),
    ("r2_score", [1e9 + 1, 1e9 + 2, 1e9 + 3], [1e9 + 2, 1e9 + 2, 1e9 + 2], 0.0),
]


@pytest.mark.parametrize(("name", "y", "x", "expected"), EDGES, ids=str)
def test_values_at_the_edges(name: str, y: list[float], x: list[float], expected: float) -> None:
    data = arguments(name, np.tile(y, 2), np.tile(x, 2))
    data["sensitive_features"] = list("a" * len(y) + "b" * len(y))
    values = run(name, data, variance=None).values
    assert values == {"a": pytest.approx(expected), "b": pytest.approx(expected)}


def bootstrap_variance(name: str, y: NDArray[np.float64], x: NDArray[np.float64]) -> float:
    rng = np.random.default_rng(5)
    drawn = (rng.integers(len(y), size=len(y)) for _ in range(4000))
    return float(np.var([number_value(name, y[rows], x[rows]) for rows in drawn], ddof=1))


@pytest.mark.validate
@by_number_metric
def test_standard_error_of_numbers_is_that_of_the_bootstrap(name: str) -> None:
    """A standard deviation of 4000 near-normal draws has a relative error of 1.1 %."""
    data = numbers_for(name, 1000, seed=6)
    y, x = list(data.values())[:2]
    halves = (slice(0, None, 2), slice(1, None, 2))
    expected = math.sqrt(sum(bootstrap_variance(name, y[half], x[half]) for half in halves))
    result = run(name, data, n_resamples=9)
    assert (result.variance == "delong") == (name in AUCS)
    assert result.standard_error == pytest.approx(expected, rel=0.05)


@by_number_metric
def test_standard_error_is_reported_for_a_gap_that_is_not_studentized(name: str) -> None:
    data = numbers_for(name, 1000, seed=6)
    studentized = run(name, data, n_resamples=999)
    plain = run(name, data, n_resamples=999, variance=None)
    assert plain.standard_error == pytest.approx(studentized.standard_error, rel=0.1)


@pytest.mark.parametrize("name", sorted({*NUMBER_METRICS} - {"r2_score"}))  # of no variance: 0/0
def test_numbers_that_cannot_vary_have_no_error(name: str) -> None:
    """However many rows there are of one kind, and whatever rounding does to their sums."""
    kinds = [(1.0, 0.7), (0.0, 0.1)] if name in SCORES else [(0.1, 0.3), (0.7, 0.9)]
    if name not in GIVEN_LABEL:
        kinds = kinds[:1]
    y, x = (np.repeat(column, 321) for column in zip(*kinds, strict=True))
    data = arguments(name, np.tile(y, 2), np.tile(x, 2))
    data["sensitive_features"] = ["a"] * len(y) + ["b"] * len(y)
    options = {"variance": "delong"} if name in AUCS else {}  # "auto" allows for the unseen
    result = run(name, data, **options)
    assert (result.difference, result.statistic) == (0, 0)
    rounding = 1e-12 if result.variance is None else 0  # the error is then bootstrapped
    assert 0 <= result.standard_error <= rounding
    assert result.pvalue == 1


# -- Names ------------------------------------------------------------------------------------


def test_no_name_means_two_things() -> None:
    words = Counter(metric_names())
    for name in metric_names():
        words.update(get_metric(name).aliases)
    assert [word for word, times in words.items() if times > 1] == []


@by_name
def test_names_and_aliases_find_their_metric(name: str) -> None:
    metric = get_metric(name)
    assert metric.name == name
    for word in (name, *metric.aliases):
        assert get_metric(word) is metric
        assert get_metric(f" {word.upper().replace('_', '-')} ") is metric


@by_name
def test_a_metric_stands_for_itself(name: str) -> None:
    metric = get_metric(name)
    assert isinstance(metric, (Metric, JointMetric, RankMetric, MacroMetric))
    assert get_metric(metric) is metric


@by_name
def test_every_metric_has_a_meaning(name: str) -> None:
    meaning = get_metric(name).meaning
    assert meaning.strip() == meaning != ""
    assert not meaning.endswith(".")
    assert meaning[0].islower()


COMPLEMENTS = {
    ("true_positive_rate", "false_negative_rate"),
    ("true_negative_rate", "false_positive_rate"),
    ("positive_predictive_value", "false_discovery_rate"),
    ("negative_predictive_value", "false_omission_rate"),
    ("accuracy", "error_rate"),
}  # section 2.9 of the design


def test_complements_are_mutual_and_add_to_one() -> None:
    found = {(name, get_metric(name).complement) for name in metric_names()}
    both = COMPLEMENTS | {(b, a) for a, b in COMPLEMENTS}
    assert {pair for pair in found if pair[1] is not None} == both
    drawn = np.random.default_rng(1).multinomial(30, [0.25] * 4, size=200)
    for a, b in COMPLEMENTS:
        assert estimated(a, drawn) + estimated(b, drawn) == pytest.approx(1, nan_ok=True)


def test_a_quantile_is_part_of_a_name() -> None:
    data = numbers_for("pinball_loss", 60, seed=1)
    by_name, made = (run(one, data) for one in (" Pinball-loss(.9)", pinball_loss(0.9)))
    assert by_name.to_dict() == made.to_dict()
    with pytest.raises(InputError, match="alpha must be a number strictly between 0 and 1; got 0"):
        get_metric("pinball_loss(0.0)")


@pytest.mark.parametrize("alpha", [0.0, 1.0, 50, -0.1])
def test_levels_that_no_quantile_has(alpha: float) -> None:
    with pytest.raises(InputError, match="alpha must be a number strictly between 0 and 1"):
        pinball_loss(alpha)


@pytest.mark.parametrize("name", ["expected_calibration_error", "ECE"])
def test_the_expected_calibration_error_is_known_for_its_bias(name: str) -> None:
    """Groups that are both calibrated, with base rates 0.05 and 0.5, would differ in it: 0.41."""
    assert name not in metric_names()
    with pytest.raises(InputError, match="Test 'calibration_in_the_large' or 'brier_score' ins"):
        get_metric(name)
