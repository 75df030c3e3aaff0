"""The registry of metrics: values, variances, names."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
import pytest

from fairperm import InputError, InputTypeError, metric_names
from fairperm._metric import JointMetric, Metric
from fairperm.metrics import get_metric
from helpers import JOINT, OTHERS, RATES, delta_variance, value

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from helpers import Counts

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

by_metric = pytest.mark.parametrize("name", SINGLE)
by_name = pytest.mark.parametrize("name", metric_names())


def single(name: str) -> Metric:
    metric = get_metric(name)
    assert isinstance(metric, Metric)
    return metric


def estimated(name: str, counts: NDArray[np.int64]) -> NDArray[np.float64]:
    metric = single(name)
    with np.errstate(divide="ignore", invalid="ignore"):
        return metric.estimate(counts.astype(float), metric.matrix())


def variance(name: str, counts: Counts) -> float:
    metric = single(name)
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(metric.delta_variance(np.array(counts, float), metric.matrix()))


# -- Values -----------------------------------------------------------------------------------


def test_every_metric_is_tested_here() -> None:
    assert set(metric_names()) == {*RATES, *OTHERS, *JOINT}


@by_metric
def test_values_are_those_of_the_formulas(name: str) -> None:
    expected = [value(name, counts) for counts in TABLES]
    assert estimated(name, np.array(TABLES)) == pytest.approx(expected, nan_ok=True)


@by_metric
def test_values_describe_a_distribution_not_its_size(name: str) -> None:
    counts = np.array(TABLES)
    assert estimated(name, 7 * counts) == pytest.approx(estimated(name, counts), nan_ok=True)


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


@by_metric
def test_delta_variance_is_that_of_the_bootstrap(name: str) -> None:
    """A variance of 20,000 normal draws has a relative error of 1 %; five of those."""
    counts: Counts = (2400, 900, 600, 2100)
    shares = np.array(counts) / sum(counts)
    drawn = np.random.default_rng(1).multinomial(sum(counts), shares, size=20_000)
    assert variance(name, counts) == pytest.approx(estimated(name, drawn).var(), rel=0.05)


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
    assert isinstance(metric, (Metric, JointMetric))
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


@pytest.mark.parametrize(
    ("given", "error", "match"),
    [
        ("recal", InputError, "metric must be one of .* got 'recal'. Did you mean 'recall'?"),
        ("", InputError, "metric must be one of .* got ''"),
        (3, InputTypeError, "metric must be the name of a metric; got 3"),
        (len, InputTypeError, "not supported yet"),
    ],
)
def test_what_is_no_metric(given: object, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        get_metric(given)
