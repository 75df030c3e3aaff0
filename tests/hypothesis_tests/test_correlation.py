"""The correlation test against definitions written out, scipy, and its own symmetries."""

from __future__ import annotations

import itertools
import json
import math
import subprocess
import sys
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from fairperm import FairpermWarning, InputError, InputTypeError
from fairperm.data.arguments import Alternative, CorrelationMethod, CorrelationVariance
from fairperm.hypothesis_tests.correlation import _statistic, correlation_test
from fairperm.metrics.definition import Variance
from tests.support.examples import examples

Array = NDArray[np.float64]

METHODS = ("pearson", "spearman")
OPPOSITE = {"two-sided": "two-sided", "greater": "less", "less": "greater"}
every_method = pytest.mark.parametrize("method", METHODS)
HOW: list[tuple[CorrelationMethod, CorrelationVariance]] = [
    ("pearson", "hall"),
    ("pearson", "delta"),
    ("pearson", None),
    ("spearman", "delta"),
    ("spearman", None),
]
every_variance = pytest.mark.parametrize(("method", "variance"), HOW)
on_any_data = examples(50)

DATA: dict[str, tuple[Sequence[float], Sequence[float]]] = {
    "untied": ([3.1, -0.4, 1.5, 2.2, 9.7, 0.3], [0.2, -1.4, 0.5, 7.1, 1.6, -0.8]),
    "tied": ([1, 2, 2, 3, 3, 3], [4, 1, 4, 2, 2, 5]),
    "binary": ([0.1, 0.4, 0.2, 0.9, 0.7, 0.5], [0, 1, 0, 1, 1, 0]),
    "two binaries": ([0, 1, 1, 0, 1], [0, 0, 1, 1, 1]),
    "perfect": ([1, 2, 3, 4, 5], [2.2, 4.4, 6.6, 8.8, 11.0]),
    "no product": ([0.1, 0.2, 0.2, 0.2, 0.3], [0.7, 0.4, 1.0, 0.7, 0.7]),
    "four rows": ([1, 2, 4, 8], [3, 1, 2, 9]),
}


def some_data(n: int, seed: int = 5) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    x = rng.exponential(size=n)
    return x, rng.normal(size=n) * x + 0.1 * x


WHOLE = [(side * 8).round().tolist() for side in some_data(60)]


# The definitions, written out.


def definition(x: Array, y: Array, method: str) -> tuple[float, float, float]:
    """Return the correlation, its error and its skewness, by double sums."""
    n = len(x)
    earlier_x = np.where(x[:, None] == x, 0.5, x[:, None] < x)
    earlier_y = np.where(y[:, None] == y, 0.5, y[:, None] < y)
    if method == "spearman":
        x, y = stats.rankdata(x) / n, stats.rankdata(y) / n
    x, y = x - x.mean(), y - y.mean()
    w = x * y
    if method == "spearman":
        w = w + earlier_x @ y / n + earlier_y @ x / n
    length_x, length_y = math.sqrt((x**2).sum()), math.sqrt((y**2).sum())
    scale = length_x * length_y
    r = float((x * y).sum()) / scale
    influence = x * y / scale - r * ((x / length_x) ** 2 + (y / length_y) ** 2) / 2
    error = math.sqrt((w**2).sum()) / scale
    return r, error, float((influence**3).sum()) / error**3 if error > 1e-12 else 0.0


def statistic(x: Array, y: Array, method: str, variance: str | None) -> float:
    r, error, k = definition(x, y, method)
    if variance is None:
        return r
    s = r / error if error > 1e-12 else 0.0
    return s if variance == "delta" else s + k * s**2 / 3 + k**2 * s**3 / 27 + k / 6


@every_variance
@pytest.mark.parametrize("name", DATA)
def test_pvalue_is_that_of_all_permutations(
    name: str, method: CorrelationMethod, variance: CorrelationVariance
) -> None:
    x, y = (np.array(side, float) for side in DATA[name])
    null = np.array(
        [statistic(x, np.array(p), method, variance) for p in itertools.permutations(y)]
    )
    observed = statistic(x, y, method, variance)
    expected: dict[Alternative, float] = {
        "symmetric": (np.abs(null) >= abs(observed) - 1e-9).mean(),
        "greater": (null >= observed - 1e-9).mean(),
        "less": (null <= observed + 1e-9).mean(),
    }
    if variance == "hall":  # no tail is smaller than the normal one
        above, below = stats.norm.sf(observed), stats.norm.cdf(observed)
        expected["greater"] = max(expected["greater"], above)
        expected["less"] = max(expected["less"], below)
        expected["symmetric"] = max(expected["symmetric"], 2 * min(above, below))
    expected["two-sided"] = min(1.0, 2 * min(expected["greater"], expected["less"]))
    for alternative, p in expected.items():
        result = correlation_test(x, y, method=method, variance=variance, alternative=alternative)
        assert result.exact
        assert result.n_resamples == math.factorial(len(x))
        assert result.statistic == pytest.approx(observed, abs=1e-12)
        assert result.pvalue == pytest.approx(p, rel=1e-12)
        assert result.pvalue_interval == result.pvalue_interval_wilson
        assert set(result.pvalue_interval) == {result.pvalue}
        np.testing.assert_allclose(np.sort(result.null_distribution), np.sort(null), atol=1e-12)


@pytest.mark.parametrize("alternative", ["two-sided", "greater", "symmetric"])
@pytest.mark.parametrize("name", ["four rows", "tied", "two binaries"])
def test_independent_pairs_are_rejected_as_often_as_the_level_says(
    name: str, alternative: Alternative
) -> None:
    """Under independence all pairings are equally likely: P(p ≤ α) ≤ α, by enumeration."""
    x, y = DATA[name]
    found = {
        p: correlation_test(x, p, alternative=alternative).pvalue
        for p in set(itertools.permutations(y))
    }
    p = np.sort(list(found.values()))
    assert (np.arange(1, len(p) + 1) / len(p) <= p + 1e-12)[
        np.append(np.diff(p) > 1e-12, True)
    ].all()


@every_method
@pytest.mark.parametrize("decimals", [8, 0], ids=["untied", "tied"])
def test_correlation_is_that_of_scipy(method: CorrelationMethod, decimals: int) -> None:
    x, y = (side.round(decimals) for side in some_data(300))
    expected = stats.pearsonr(x, y) if method == "pearson" else stats.spearmanr(x, y)
    result = correlation_test(x, y, method=method, n_resamples=99, rng=1)
    assert result.correlation == pytest.approx(expected.statistic, abs=1e-13)
    assert result.standard_error == pytest.approx(definition(x, y, method)[1], rel=1e-12)


def test_numba_is_loaded_by_the_first_test_only() -> None:
    code = "import sys, fairperm; fairperm.correlation_test; print('numba' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"


# What must not change the answer, and what must.


@st.composite
def pairs(draw: st.DrawFn, most: int = 12) -> tuple[Array, Array]:
    """Draw small whole numbers, tied or not, neither side constant."""
    n = draw(st.integers(4, most))
    x, y = (draw(st.lists(st.integers(-9, 9), min_size=n, max_size=n)) for _ in range(2))
    assume(len(set(x)) > 1 and len(set(y)) > 1)
    return np.array(x, float), np.array(y, float)


options = st.builds(
    lambda way, alternative, rng: {
        **dict(zip(("method", "variance"), way, strict=True)),
        "alternative": alternative,
        "rng": rng,
        "n_resamples": 200,
    },
    st.sampled_from(HOW),
    st.sampled_from(list(OPPOSITE)),
    st.integers(0, 3),
)


@on_any_data
@given(pairs(), options, st.randoms(use_true_random=False))
def test_row_order_changes_no_bit(data: tuple[Array, Array], how: dict[str, Any], rnd: Any) -> None:
    x, y = data
    order = rnd.sample(range(len(x)), len(x))
    one, other = correlation_test(x, y, **how), correlation_test(x[order], y[order], **how)
    assert one.to_dict() == other.to_dict()
    np.testing.assert_array_equal(one.null_distribution, other.null_distribution)


@on_any_data
@given(pairs(), options, st.sampled_from([2, 3, 7, 0.5, 0.375]), st.integers(-99, 99))
def test_units_do_not_matter(
    data: tuple[Array, Array], how: dict[str, Any], slope: float, shift: int
) -> None:
    # exact arithmetic, so the statistic moves by rounding errors alone and ties stay ties
    x, y = data
    one, other = correlation_test(x, y, **how), correlation_test(slope * x + shift, y, **how)
    another = correlation_test(x, slope * y + shift, **how)
    for moved in (other, another):
        # a normal tail has the rounding errors of the statistic
        assert moved.pvalue == pytest.approx(one.pvalue, rel=1e-11)
        assert moved.statistic == pytest.approx(one.statistic, abs=1e-12)
    if slope in {2, 0.5} and shift == 0:
        assert one.to_dict() == other.to_dict() == another.to_dict()


@on_any_data
@given(pairs(most=5), options)
def test_a_change_of_sign_mirrors_the_test(data: tuple[Array, Array], how: dict[str, Any]) -> None:
    x, y = data
    mirrored = {**how, "alternative": OPPOSITE[how["alternative"]]}
    one = correlation_test(x, y, **how)
    low, high = one.confidence_interval
    for other in (correlation_test(-x, y, **mirrored), correlation_test(x, -y, **mirrored)):
        assert other.statistic == pytest.approx(-one.statistic, abs=1e-12)
        assert other.pvalue == pytest.approx(one.pvalue, rel=1e-11)
        assert other.confidence_interval == pytest.approx((-high, -low), abs=1e-12)


@on_any_data
@given(pairs(), options)
def test_ranks_see_only_the_order(data: tuple[Array, Array], how: dict[str, Any]) -> None:
    x, y = data
    how = {**how, "method": "spearman", "variance": "auto"}
    one, other = correlation_test(x, y, **how), correlation_test(np.exp(x), y**3, **how)
    assert one.to_dict() == other.to_dict()
    np.testing.assert_array_equal(one.null_distribution, other.null_distribution)


@on_any_data
@given(pairs(most=5), options)
def test_either_side_may_be_permuted(data: tuple[Array, Array], how: dict[str, Any]) -> None:
    one, other = correlation_test(*data, **how), correlation_test(*data[::-1], **how)
    assert one.statistic == pytest.approx(other.statistic, abs=1e-12)
    assert one.exact
    assert other.pvalue == pytest.approx(one.pvalue, rel=1e-11)


@pytest.mark.parametrize("scale", [2.0**1000, 2.0**-1000, 5e-324 / 9], ids=["huge", "tiny", "0"])
def test_size_does_not_matter(scale: float) -> None:
    x, y = DATA["tied"]
    scale = scale or 5e-324  # the smallest float there is: whole multiples are still exact
    result = correlation_test(np.array(x) * scale, y)
    assert result.to_dict() | {"seed": 0} == correlation_test(x, y).to_dict() | {"seed": 0}


def test_a_constant_added_to_integers_does_not_matter() -> None:
    x, y = np.array(WHOLE)
    one, other = (correlation_test(side, y, n_resamples=99, rng=1) for side in (x, x + 10.0**12))
    assert one.pvalue == pytest.approx(other.pvalue, rel=1e-11)
    assert one.statistic == pytest.approx(other.statistic, rel=1e-12)


@every_method
def test_no_error_means_no_correlation_and_not_a_ratio_of_rounding_errors(
    method: CorrelationMethod,
) -> None:
    x = [-3, -2, -1, 0, 0, 0, 0, 0, 1, 2, 3]
    y = [0, 0, 0, -1, 1, 0, 0, 0, 0, 0, 0]  # beside the zeros of x: every product is zero
    one, other = (
        correlation_test(x, y, method=method, alternative=way, rng=1) for way in ("less", "greater")
    )
    assert one.statistic == one.correlation == one.standard_error == 0
    # by symmetry half of the permutations, and half of the 20 in 110 that tie
    assert one.pvalue == pytest.approx(0.5 + 10 / 110, abs=0.02)
    assert other.pvalue == pytest.approx(0.5 + 10 / 110, abs=0.02)
    sums = np.array([[1e-17, 0.5], [1e-33, 0.25], [0.0, 0.0]])
    for variance in (Variance.HALL, Variance.DELTA):
        assert (_statistic(sums, variance) == [0, 1]).all()


def test_true_and_false_are_one_and_zero() -> None:
    x, y = DATA["binary"]
    expected = correlation_test(x, y).pvalue
    assert correlation_test(x, np.array(y, bool)).pvalue == expected
    assert correlation_test(x, [bool(one) for one in y]).pvalue == expected


# The result.


@pytest.mark.parametrize("variance", ["hall", "delta", None])
def test_interval_excludes_zero_where_the_test_rejects(variance: CorrelationVariance) -> None:
    for seed in range(40):
        x, y = some_data(40, seed)
        result = correlation_test(x, y + 0.5 * x, variance=variance, n_resamples=999, rng=1)
        low, high = result.confidence_interval
        assert -1 <= low <= result.correlation <= high <= 1
        assert (low > 0 or high < 0) == (result.pvalue <= 0.05)


def test_one_sided_intervals_have_one_end() -> None:
    x, y = some_data(40)
    assert correlation_test(x, y, alternative="greater", rng=1).confidence_interval[1] == 1
    assert correlation_test(x, y, alternative="less", rng=1).confidence_interval[0] == -1


def test_result_can_be_repeated_and_told() -> None:
    x, y = some_data(50)
    result = correlation_test(x, y, n_resamples=1000)
    again = correlation_test(x, y, n_resamples=1000, rng=result.seed)
    assert json.loads(json.dumps(result.to_dict())) == again.to_dict()
    assert "null_distribution" not in result.to_dict()
    assert repr(result).startswith("Pearson's correlation of the 50 rows is ")
    assert "two-sided, 1,000 draws" in repr(result)
    assert "independence only" in correlation_test(x, y, variance=None, rng=1).validity
    assert "two-sided, exact" in repr(correlation_test(*DATA["tied"]))


# What is refused.

GOOD: dict[str, Any] = {"x": [1, 2, 3, 4, 5], "y": [2, 1, 4, 3, 5]}
FRAME = {"age": [1, 2, 3, 4, 5], "error": [2, 1, 4, 3, 5]}


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"x": [7] * 5}, r"^x must be made of numbers that differ .*; got 7\.0\. A constant"),
        ({"y": [0.1] * 5}, r"^y must be made of numbers that differ .*; got 0\.1\."),
        ({"x": [1e16, 1e16 + 2, 1e16, 1e16, 1e16]}, r"^x must be .* more than rounding errors"),
        ({"x": [1, 2, 3], "y": [1, 3, 2]}, r"^x and y must have at least 4 rows; got 3\.$"),
        ({"x": [], "y": []}, r"^x and y must have at least 4 rows; got 0\.$"),
        ({"y": [1, 2, 3, 4]}, r"^y must be as long as x \(5 rows\); got 4\."),
        ({"x": [1, None, 3, math.nan, 5]}, r"missing values in x: 2 \(rows 1, 3\)\. Pass missing="),
        ({"y": [None] * 5}, r"missing values in y: 5 \(rows 0, 1, 2, 3, 4\)\. Pass missing="),
        ({"y": [1, 2, None, 4, 5], "missing": "drop", "x": [1, 2, 3, 4, None]}, "got 3, and 2 wit"),
        ({"x": [1, 2, math.inf, 4, 5]}, r"^x must be finite; got inf\. Leave out row 2"),
        ({"y": [1, 2, 3, 4, 10**400]}, r"^y must be finite; got inf\. Leave out row 4"),
        ({"x": np.ones((5, 2))}, r"^x must be one-dimensional; got \(5, 2\)\."),
        ({"method": "spearmann"}, r"^method must be one of .*Did you mean 'spearman'\?"),
        ({"method": "kendall"}, r"^method must be one of 'pearson', 'spearman'; got 'kendall'\.$"),
        ({"alternative": "two_sided"}, r"^alternative must be .*Did you mean 'two-sided'\?"),
        ({"missing": "ignore"}, r"^missing must be one of 'error', 'drop'; got 'ignore'\."),
        ({"variance": "halls"}, r"^variance must be one of .*Did you mean 'hall'\?"),
        (
            {"variance": "hall", "method": "spearman"},
            r"^variance must be 'auto', 'delta' or None with method='spearman'; got 'hall'",
        ),
        ({"confidence_level": 95}, r"^confidence_level must be .*Did you mean 0\.95\?"),
        ({"n_resamples": 0}, r"^n_resamples must be 'auto' or an integer from 1"),
        ({"n_jobs": 0}, r"^n_jobs must be"),
        ({"rng": -1}, r"^rng must be an integer"),
        (
            {"x": "agee", "data": FRAME},
            r"^x must be a column of data; got 'agee'. Did",
        ),
        (
            {"x": "age", "y": "error", "data": {**FRAME, "error": [1, 2, None, 4, 5]}},
            r"missing values in y \(column 'error'\): 1 \(rows 2\)\.",
        ),
    ],
)
def test_bad_values_are_refused(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        correlation_test(**{**GOOD, **changes})


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"x": ["a", "b", "c", "d", "e"]}, r"^x must be made of real numbers; got 'a'"),
        ({"y": np.array([1, 2, 3, 4, 5j])}, r"^y must be made of real numbers; got"),
        ({"x": np.array(["2020-01-01"] * 5, "M8[D]")}, r"^x must be made of real numbers; got"),
        ({"x": "age"}, r"^x must be a list.*; got 'age'\. Column names need data=frame\."),
        ({"y": None}, r"^y must be .*; got None"),
        ({"y": 5}, r"^y must be .*; got 5"),
        ({"y": pd.DataFrame(FRAME)}, r"^y must be one column of values; got .*Pass one of its"),
        ({"data": 7}, r"^data must be a pandas, Polars or pyarrow frame, or a mapping"),
        ({"n_resamples": 99.0}, r"^n_resamples must be 'auto' or an integer"),
        ({"y": np.arange(5).astype("m8[D]")}, r"^y must be made of real numbers; got"),
        ({"progress": 1}, r"^progress must be True, False or None"),
    ],
)
def test_bad_kinds_are_refused(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(InputTypeError, match=says):
        correlation_test(**{**GOOD, **changes})


# Few rows that carry the correlation.


def effective_by_hand(x: Array, y: Array, method: str) -> float:
    """Return (Σw²)²/Σw⁴, with the influences w that the notes of the test define."""
    if method == "spearman":
        x, y = stats.rankdata(x), stats.rankdata(y)
    if method == "pearson":
        influence = (x - x.mean()) * (y - y.mean())
    else:
        n, half = len(x), 0.5
        u, v = (x - x.mean()) / n, (y - y.mean()) / n
        below_x = (x[:, None] < x) + half * (x[:, None] == x)
        below_y = (y[:, None] < y) + half * (y[:, None] == y)
        influence = u * v + below_x @ v / n + below_y @ u / n
    return float((influence**2).sum() ** 2 / (influence**4).sum())


@every_method
@pytest.mark.parametrize("seed", range(20))
def test_few_rows_that_carry_the_correlation_are_noted(
    method: CorrelationMethod, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    x = np.append(rng.random(28) < 0.15, [True, False]).astype(float)
    y = np.round(rng.normal(size=30) * np.where(x > 0, 5, 1), 1)
    n = effective_by_hand(x, y, method)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FairpermWarning)
        result = correlation_test(x, y, method=method, n_resamples=9, rng=1)
        plain = correlation_test(x, y, method=method, n_resamples=9, rng=1, variance=None)
    assert len(result.notes) == (n < 5)
    assert not plain.notes  # claims nothing that few rows could spoil
    if result.notes:
        assert f"Only about {max(1, min(4, round(n)))} of 30 rows show how" in result.notes[0]
        assert result.notes[0] in " ".join(repr(result).split())


def test_few_rows_that_carry_the_correlation_are_warned_of() -> None:
    x = np.repeat([0.0, 1.0], [27, 3])
    y = np.random.default_rng(1).normal(size=30) * np.repeat([1, 3], [27, 3])
    with pytest.warns(FairpermWarning, match="of 30 rows show how the correlation"):
        correlation_test(x, y, n_resamples=9, rng=1)


def test_many_rows_that_carry_the_correlation_are_not_noted() -> None:
    x, y = np.random.default_rng(1).normal(size=(2, 100))
    assert correlation_test(x, y, n_resamples=9, rng=1).notes == ()


@pytest.mark.parametrize(
    ("x", "y", "level"),
    [
        ([1, 3, 0, 2, 3], [1, 3, 2, 3, 2], 0.8),
        ([2, 3, 3, 2], [0, 0, 0, 1], 0.9),
        ([0, 2, 2, 1, 1, 3, 1], [3, 3, 0, 0, 3, 1, 0], 0.5),
    ],
)
def test_an_interval_that_ends_at_zero_includes_it(x: Any, y: Any, level: float) -> None:
    result = correlation_test(x, y, confidence_level=level)
    assert result.pvalue > 1 - level
    low, high = result.confidence_interval
    assert low <= 0 <= high
