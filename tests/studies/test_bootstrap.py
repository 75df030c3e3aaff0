"""The basic bootstrap, against plain loops over rows and against scipy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from fairperm import InputError
from fairperm.data.arguments import Alternative
from studies.bootstrap import Method, bootstrap_test
from tests.support.helpers import Counts, Pair, rate, rows, value

ALTERNATIVES: tuple[Alternative, ...] = ("two-sided", "greater", "less")
METHODS = ("percentile", "basic")
FULL_NAME = {"selection_rate": "selection_rate", "fnr": "false_negative_rate", "f1": "f1_score"}
PAIR: Pair = ((30, 12, 9, 13), (24, 8, 16, 16))
STRATA: list[Pair] = [PAIR, ((10, 9, 6, 25), (8, 12, 9, 11))]


def cells_of(counts: Counts) -> NDArray[np.int64]:
    return np.repeat(np.arange(4), counts)


def counts_of(cells: NDArray[np.int64]) -> Counts:
    tn, fp, fn, tp = np.bincount(cells, minlength=4).tolist()
    return tn, fp, fn, tp


def gap_of(metric: str, strata: Sequence[Sequence[NDArray[np.int64]]]) -> float:
    """Return the Mantel–Haenszel gap of rows by stratum and group."""
    total = weights = 0.0
    for pair in strata:
        a, b = (counts_of(cells) for cells in pair)
        m_a, m_b = (rate(FULL_NAME[metric], counts)[1] for counts in (a, b))
        weight = m_a * m_b / (m_a + m_b)
        weights += weight
        total += weight * (value(FULL_NAME[metric], a) - value(FULL_NAME[metric], b))
    return total / weights


def looped(metric: str, strata: Sequence[Pair], draws: int) -> NDArray[np.float64]:
    """Return the gaps of bootstrap samples, drawn row by row."""
    rng = np.random.default_rng(1)
    sample = [[cells_of(counts) for counts in pair] for pair in strata]
    return np.array(
        [
            gap_of(metric, [[rng.choice(rows, len(rows)) for rows in pair] for pair in sample])
            for _ in range(draws)
        ]
    )


@pytest.mark.parametrize("strata", [[PAIR], STRATA], ids=["all rows", "strata"])
@pytest.mark.parametrize("metric", FULL_NAME)
def test_pvalues_are_those_of_resampled_rows(metric: str, strata: list[Pair]) -> None:
    """Both are Monte Carlo: their counts of extreme samples are two draws of one binomial."""
    n, ours = 4000, 9999
    gap = gap_of(metric, [[cells_of(counts) for counts in pair] for pair in strata])
    away = looped(metric, strata, n) - gap
    sizes = {"two-sided": (np.abs(away), abs(gap)), "greater": (away, gap), "less": (-away, -gap)}
    for alternative in ALTERNATIVES:
        draws, least = sizes[alternative]
        theirs = int((draws >= least - 1e-9).sum())
        result = bootstrap_test(**rows(*strata), metric=metric, alternative=alternative, rng=1)
        assert result.difference == pytest.approx(gap)
        extremes = round(result.pvalue * (ours + 1)) - 1
        both = [[theirs, n - theirs], [extremes, ours - extremes]]
        assert stats.fisher_exact(both).pvalue > 1e-4


@pytest.mark.parametrize("metric", FULL_NAME)
def test_standard_error_is_that_of_resampled_rows(metric: str) -> None:
    """A standard deviation of n near-normal numbers has a relative error of 1/√(2n)."""
    n = 4000
    result = bootstrap_test(**rows(PAIR), metric=metric, rng=1)
    theirs = looped(metric, [PAIR], n).std()
    assert result.standard_error == pytest.approx(theirs, rel=5 / math.sqrt(2 * n))


# -- Intervals against scipy.stats.bootstrap ----------------------------------------------------


def scipys(metric: str, **options: Any) -> Any:
    def share(x: NDArray[np.int64], axis: int) -> Any:
        if metric == "selection_rate":
            return (x % 2 == 1).mean(axis=axis)
        return (x == 2).sum(axis=axis) / (x >= 2).sum(axis=axis)

    return stats.bootstrap(
        tuple(cells_of(counts) for counts in PAIR),
        lambda x, y, axis: share(x, axis) - share(y, axis),
        vectorized=True,
        **options,
    )


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("level", [0.9, 0.95, 0.99])
@pytest.mark.parametrize("metric", ["selection_rate", "fnr"])
def test_intervals_are_scipys_for_the_same_draws(metric: str, level: float, method: Method) -> None:
    """scipy's bootstrap takes draws made elsewhere, and makes none if n_resamples is 0."""
    result = bootstrap_test(
        **rows(PAIR), metric=metric, method=method, confidence_level=level, rng=1
    )
    draws = result.bootstrap_distribution
    tied = np.isclose(draws, result.difference, rtol=0, atol=1e-9)  # scipy would miss some
    given = SimpleNamespace(bootstrap_distribution=np.where(tied, result.difference, draws))
    theirs = scipys(
        metric, method=method, confidence_level=level, n_resamples=0, bootstrap_result=given
    ).confidence_interval
    assert result.confidence_interval == pytest.approx((theirs.low, theirs.high), abs=1e-12)


# -- Alternatives, strata, edges ----------------------------------------------------------------


@pytest.mark.parametrize("unit", [2.0**-40, 2.0**-23, 2.0**30])
def test_the_interval_is_in_the_unit_of_measurement(unit: float) -> None:
    rng = np.random.default_rng(4)
    y_true, y_pred = rng.normal(size=60), rng.standard_t(3, 60)
    group = np.repeat(["a", "b"], 30)

    def interval(unit: float) -> Any:
        data: dict[str, Any] = {"y_true": y_true * unit, "y_pred": y_pred * unit}
        data |= {"sensitive_features": group, "metric": "mean_squared_error"}
        found = bootstrap_test(**data, n_resamples=999, rng=1)
        return np.array(found.confidence_interval) / unit**2

    assert interval(unit) == pytest.approx(interval(1.0), rel=1e-9)


def test_undefined_samples_are_extreme_and_counted() -> None:
    """Of 4 rows with one positive, (3/4)⁴ of the samples have none."""
    result = bootstrap_test(**rows(((2, 1, 0, 1), (3, 4, 5, 6))), metric="fnr", rng=1)
    n = len(result.bootstrap_distribution)
    assert result.n_undefined == np.isnan(result.bootstrap_distribution).sum()
    assert stats.binomtest(result.n_undefined, n, (3 / 4) ** 4 + (7 / 18) ** 18).pvalue > 1e-4
    assert result.pvalue >= (result.n_undefined + 1) / (n + 1)
    assert not np.isnan(result.confidence_interval).any()


def test_given_weights() -> None:
    data = rows(*STRATA)
    one = bootstrap_test(**data, metric="fnr", stratum_weights={0: 1, 1: 0}, rng=1)
    assert one.difference == pytest.approx(9 / 22 - 16 / 32)
    both = bootstrap_test(**data, metric="fnr", stratum_weights={0: 1, 1: 3}, rng=1)
    assert both.difference == pytest.approx((9 / 22 - 16 / 32) / 4 + 3 * (6 / 31 - 9 / 20) / 4)


def test_a_gap_that_never_changes() -> None:
    """Every resample of 8 of 8 against 0 of 8 is the same: the p-value is 1/(B + 1)."""
    data = rows(((0, 8, 0, 0), (8, 0, 0, 0)))
    result = bootstrap_test(**data, metric="selection_rate", n_resamples=99, rng=1)
    assert result.pvalue == 1 / 100
    assert result.standard_error == 0
    assert result.confidence_interval == (1.0, 1.0)


def test_a_joint_metric_is_refused() -> None:
    with pytest.raises(InputError, match="metric must be a single metric; got 'equalized_odds'"):
        bootstrap_test(**rows(PAIR), metric="equalized_odds")


def test_an_unknown_method_is_refused() -> None:
    method: Any = "BCa"
    with pytest.raises(InputError, match="method must be one of 'percentile', 'basic'; got 'BCa'"):
        bootstrap_test(**rows(PAIR), metric="fnr", method=method)
