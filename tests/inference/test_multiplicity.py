"""Adjusted p-values: against statsmodels, Westfall and Young's algorithm written out, by hand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from statsmodels.stats.multitest import multipletests

from fairperm.inference.multiplicity import adjust_pvalues, step_down_max_t
from tests.support.examples import examples

on_any_data = examples(60)

THEIRS = {"holm": "holm", "bh": "fdr_bh", "by": "fdr_by"}
PVALUES = st.one_of(
    st.lists(st.floats(1e-12, 1), min_size=1, max_size=30),
    st.lists(st.integers(1, 6).map(lambda k: k / 20), min_size=1, max_size=12),  # ties
    st.lists(st.integers(1, 10_000).map(lambda k: k / 10_000), min_size=1, max_size=60),
)


@pytest.mark.parametrize("method", THEIRS)
@on_any_data
@given(pvalues=PVALUES)
def test_adjusted_are_those_of_statsmodels(method: str, pvalues: list[float]) -> None:
    expected = multipletests(pvalues, method=THEIRS[method])[1]
    np.testing.assert_allclose(adjust_pvalues(np.array(pvalues), method), expected, rtol=1e-12)


@pytest.mark.parametrize("method", [*THEIRS, None])
def test_one_or_no_hypothesis_is_not_adjusted(method: str | None) -> None:
    assert adjust_pvalues(np.array([0.03]), method).tolist() == [0.03]
    assert adjust_pvalues(np.array([]), method).size == 0


# -- Step-down max-T ------------------------------------------------------------------------------


def westfall_young(observed: list[float], permuted: list[list[float]]) -> list[float]:
    """Algorithm 4.1 of Westfall and Young (1993), draw by draw, for statistics.

    With the sample counted among the draws, as everywhere in fairperm, and undefined draws as
    large as can be.
    """
    m = len(observed)
    order = sorted(range(m), key=lambda j: -observed[j])
    count = [0] * m
    for draw in permuted:
        statistics = [math.inf if math.isnan(one) else one for one in draw]
        maximum = -math.inf
        for j in reversed(range(m)):  # successive maxima, from the least significant up
            maximum = max(maximum, statistics[order[j]])
            if maximum >= observed[order[j]] - 1e-9:
                count[j] += 1
    p = [(one + 1) / (len(permuted) + 1) for one in count]
    for j in range(1, m):
        p[j] = max(p[j], p[j - 1])
    result = [0.0] * m
    for j in range(m):
        result[order[j]] = p[j]
    return result


STATISTICS = st.one_of(
    st.integers(0, 5).map(float), st.floats(0, 6).map(lambda x: round(x, 6)), st.just(math.inf)
)


@st.composite
def draws_of_hypotheses(draw: st.DrawFn, undefined: bool = True) -> tuple[Any, Any]:
    m, n = draw(st.integers(1, 6)), draw(st.integers(1, 25))
    values = st.one_of(STATISTICS, st.just(math.nan)) if undefined else STATISTICS
    return (
        draw(arrays(np.float64, m, elements=STATISTICS)),
        draw(arrays(np.float64, (n, m), elements=values)),
    )


def max_t(observed: Any, permuted: Any) -> Any:
    """Return the p-values of statistics that are known to all of their digits."""
    return step_down_max_t(observed, permuted, np.zeros(len(observed)))


@on_any_data
@given(sample=draws_of_hypotheses())
def test_max_t_is_westfall_and_youngs(sample: tuple[Any, Any]) -> None:
    observed, permuted = sample
    expected = westfall_young(observed.tolist(), permuted.tolist())
    np.testing.assert_allclose(max_t(observed, permuted), expected, rtol=1e-12)


@on_any_data
@given(sample=draws_of_hypotheses(), at=st.integers(0, 5))
def test_an_untestable_hypothesis_is_not_rejected_and_takes_no_part(
    sample: tuple[Any, Any], at: int
) -> None:
    observed, permuted = sample
    without = max_t(observed, permuted)
    place = at % (len(observed) + 1)
    more = np.insert(observed, place, math.nan)
    wider = np.insert(permuted, place, math.nan, axis=1)
    found = max_t(more, wider)
    assert found[place] == 1
    np.testing.assert_array_equal(np.delete(found, place), without)


def test_ties_are_seen_through_the_rounding_of_large_values() -> None:
    """A metric of 10⁶ with an error of 1: its statistics are known to 10⁻¹⁰, not to 10⁻¹⁶."""
    observed, permuted = np.array([2.0]), np.array([[2.0 - 3e-11], [1.0], [1.0]])
    assert max_t(observed, permuted).tolist() == [0.25]
    assert step_down_max_t(observed, permuted, np.array([1e6])).tolist() == [0.5]
