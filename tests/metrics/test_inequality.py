"""Inequality of benefit inside a group: values, errors, and benefits that an index cannot take."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.typing import NDArray

from fairperm import InputError, InputTypeError, PermutationTestResult, permutation_test
from fairperm.metrics import atkinson_index, generalized_entropy_index

Array = NDArray[np.float64]
Formula = Callable[[Array], float]

N = 500
_RNG = np.random.default_rng(5)
GROUP: NDArray[np.str_] = np.where(_RNG.random(N) < 0.4, "a", "b")
TRUE: Array = _RNG.random(N)
PRED: Array = TRUE + _RNG.gamma(3.0, 0.3, N) - 0.5
BENEFIT: Array = PRED - TRUE + 1.0


def entropy(alpha: float) -> Formula:
    return lambda b: float(np.mean((b / b.mean()) ** alpha - 1) / (alpha * (alpha - 1)))


def theil_t(b: Array) -> float:
    share = b / b.mean()
    return float(np.mean(share * np.log(share)))


def theil_l(b: Array) -> float:
    return float(np.mean(np.log(b.mean() / b)))


def atkinson(epsilon: float) -> Formula:
    return lambda b: float(1 - np.mean(b ** (1 - epsilon)) ** (1 / (1 - epsilon)) / b.mean())


def atkinson_1(b: Array) -> float:
    return float(1 - np.exp(np.mean(np.log(b))) / b.mean())


def variation(b: Array) -> float:
    return float(b.std() / b.mean())


MADE: dict[str, tuple[Callable[..., Any], float, Formula]] = {
    **{
        f"entropy({alpha:g})": (generalized_entropy_index, alpha, entropy(alpha))
        for alpha in (-1, 0.5, 2, 3)
    },
    "entropy(0)": (generalized_entropy_index, 0, theil_l),
    "entropy(1)": (generalized_entropy_index, 1, theil_t),
    "atkinson(0.5)": (atkinson_index, 0.5, atkinson(0.5)),
    "atkinson(1)": (atkinson_index, 1, atkinson_1),
    "atkinson(2)": (atkinson_index, 2, atkinson(2)),
}
NAMED: dict[str, Formula] = {
    "generalized_entropy_index": entropy(2),
    "theil_t_index": theil_t,
    "theil_index": theil_t,
    "theil_t": theil_t,
    "theil_l_index": theil_l,
    "theil_l": theil_l,
    "mean_log_deviation": theil_l,
    "atkinson_index": atkinson(0.5),
    "coefficient_of_variation": variation,
}


def run(metric: Any, y_true: Any = TRUE, y_pred: Any = PRED, **options: Any) -> Any:
    return permutation_test(
        y_true,
        y_pred,
        sensitive_features=GROUP,
        metric=metric,
        **{"n_resamples": 99, "rng": 1, **options},
    )


def check_values(result: PermutationTestResult, formula: Formula, benefit: Array) -> None:
    for name, value in result.values.items():
        expected = formula(benefit[name == GROUP])
        assert value == pytest.approx(expected, rel=1e-10, abs=1e-14)


@pytest.mark.parametrize("name", MADE)
def test_values_are_those_of_the_formulas(name: str) -> None:
    make, parameter, formula = MADE[name]
    check_values(run(make(parameter)), formula, BENEFIT)


@pytest.mark.parametrize("name", NAMED)
def test_named_values_are_those_of_the_formulas(name: str) -> None:
    check_values(run(name), NAMED[name], BENEFIT)


@pytest.mark.parametrize("name", MADE)
def test_another_column_may_be_the_benefit(name: str) -> None:
    make, parameter, formula = MADE[name]
    own = make(parameter, of=lambda y_pred: y_pred)
    check_values(run(own, None, BENEFIT), formula, BENEFIT)
    score = make(parameter, of=lambda y_score: y_score**2)
    check_values(run(score, None, None, y_score=BENEFIT), formula, BENEFIT**2)


def check_unit(metric: Any, scale: float) -> None:
    truth = np.ones(N)  # the benefit of the named ones is prediction − outcome + 1
    one, other = run(metric, truth, BENEFIT), run(metric, truth, scale * BENEFIT)
    assert other.statistic == pytest.approx(one.statistic, rel=1e-9)
    assert other.values == pytest.approx(one.values, rel=1e-9)
    assert other.standard_error == pytest.approx(one.standard_error, rel=1e-9)
    assert other.pvalue == pytest.approx(one.pvalue, rel=1e-12)  # it may be the normal one


@pytest.mark.parametrize("scale", [1e-150, 1e-80, 1e-3, 8.0, 1e4, 1e80, 1e150])
@pytest.mark.parametrize("name", MADE)
def test_the_unit_of_the_benefit_does_not_matter(name: str, scale: float) -> None:
    make, parameter, _ = MADE[name]
    check_unit(make(parameter, of=lambda y_pred: y_pred), scale)


@pytest.mark.parametrize("name", [*MADE, "coefficient_of_variation"])
def test_errors_are_those_of_a_bootstrap(name: str) -> None:
    """Against 4,000 bootstrap samples, whose deviation is known to about 1.1 %."""
    if name in MADE:
        make, parameter, formula = MADE[name]
        result = run(make(parameter))
    else:
        result, formula = run(name), NAMED[name]
    rng = np.random.default_rng(11)
    gaps = np.zeros(4000)
    for sign, group in ((1, "a"), (-1, "b")):
        mine = BENEFIT[group == GROUP]
        draws = rng.choice(mine, (len(gaps), len(mine)))
        gaps += sign * np.array([formula(one) for one in draws])
    assert result.variance == "hall"
    assert result.standard_error == pytest.approx(gaps.std(), rel=0.05)


AS_BOOLEANS: dict[str, Callable[[NDArray[np.bool_]], object]] = {
    "NumPy": lambda column: column,
    "pandas": pd.Series,
    "nullable pandas": lambda column: pd.Series(column, dtype="boolean"),
    "Polars": lambda column: pl.Series(column.tolist()),
}


@pytest.mark.parametrize("kind", AS_BOOLEANS)
def test_labels_may_be_booleans(kind: str) -> None:
    y, pred = TRUE > 0.5, PRED > 0.6
    make = AS_BOOLEANS[kind]
    plain = run("generalized_entropy_index", y.astype(int), pred.astype(int))
    result = run("generalized_entropy_index", make(y), make(pred))
    assert result.to_dict() == plain.to_dict()
    check_values(plain, entropy(2), pred.astype(float) - y + 1.0)


@pytest.mark.filterwarnings("ignore:The standard error of .* is zero")
@pytest.mark.parametrize(
    "metric", ["generalized_entropy_index", "theil_t_index", "atkinson_index", "theil_l_index"]
)
def test_equal_benefits_are_no_inequality(metric: str) -> None:
    result = run(metric, TRUE, TRUE)
    assert result.values == pytest.approx({"a": 0.0, "b": 0.0}, abs=1e-15)
    assert result.pvalue == 1


@pytest.mark.filterwarnings("ignore:The standard error of .* is zero")
@pytest.mark.parametrize("benefit", [1.0, 0.1, 1 / 3, 1.7])
@pytest.mark.parametrize("groups", ["a", "b", "ab"])
def test_the_coefficient_of_variation_of_equal_benefits_is_zero(
    groups: str, benefit: float
) -> None:
    """Rounding must not put a root of less than nothing there, nor an error beyond all bounds."""
    equal = np.isin(GROUP, list(groups))
    result = run("coefficient_of_variation", np.zeros(N), np.where(equal, benefit, BENEFIT) - 1)
    for group in groups:
        assert result.values[group] == pytest.approx(0.0, abs=1e-6)
    assert result.standard_error < 1


def test_the_coefficient_of_variation_far_from_zero_keeps_its_digits() -> None:
    far = 1e6 + PRED
    result = run("coefficient_of_variation", np.zeros(N), far - 1.0)
    for group, value in result.values.items():
        assert value == pytest.approx(variation(far[group == GROUP]), rel=1e-6)


@pytest.mark.filterwarnings("ignore:The metric is undefined in")
def test_permutations_in_which_benefits_add_up_to_nothing_are_undefined() -> None:
    """A mean of zero has no coefficient of variation; infinite ones have no difference."""
    result = permutation_test(
        np.ones(8),
        np.array([-2.0, 1.0, 1.0, 2.0, -1.0, 3.0, 4.0, -1.0]),
        sensitive_features=np.repeat(["a", "b"], 4),
        metric="coefficient_of_variation",
        variance=None,
    )
    assert result.exact
    assert result.n_undefined > 0
    assert np.isfinite(result.null_distribution).sum() == result.n_resamples - result.n_undefined


@pytest.mark.parametrize("metric", ["generalized_entropy_index", "theil_t_index", "atkinson_index"])
def test_a_group_without_any_benefit_has_no_inequality_to_speak_of(metric: str) -> None:
    with pytest.raises(InputError, match=r"^metric must be defined in every group; got"):
        run(metric, np.ones(N), np.where(GROUP == "a", 0.0, BENEFIT))


@pytest.mark.parametrize("parameter", ["alpha", "epsilon"])
@pytest.mark.parametrize(
    ("value", "error"),
    [
        ("2", InputTypeError),
        (None, InputTypeError),
        (True, InputTypeError),
        ([2], InputTypeError),
        (2 + 0j, InputTypeError),
        (float("nan"), InputError),
        (float("inf"), InputError),
    ],
    ids=["text", "None", "boolean", "list", "complex", "NaN", "infinite"],
)
def test_a_parameter_that_is_no_number_is_refused(
    parameter: str, value: Any, error: type[Exception]
) -> None:
    make: Any = generalized_entropy_index if parameter == "alpha" else atkinson_index
    with pytest.raises(error, match=f"^{parameter} must be a finite number; got "):
        make(value)


@pytest.mark.parametrize("epsilon", [0, -0.5], ids=["zero", "negative"])
def test_aversion_to_inequality_is_above_zero(epsilon: float) -> None:
    with pytest.raises(InputError, match=r"^epsilon must be a number above 0; got "):
        atkinson_index(epsilon)


ABOVE_0 = [
    pytest.param("theil_l_index", id="theil_l_index"),
    pytest.param(generalized_entropy_index(-1), id="entropy(-1)"),
    pytest.param(atkinson_index(1), id="atkinson(1)"),
    pytest.param(atkinson_index(2), id="atkinson(2)"),
]
NOT_NEGATIVE = [
    pytest.param("generalized_entropy_index", id="generalized_entropy_index"),
    pytest.param("theil_t_index", id="theil_t_index"),
    pytest.param("atkinson_index", id="atkinson_index"),
    pytest.param(generalized_entropy_index(0.5), id="entropy(0.5)"),
    pytest.param(generalized_entropy_index(3), id="entropy(3)"),
]


@pytest.mark.parametrize("metric", ABOVE_0)
def test_logarithms_and_negative_powers_need_benefits_above_zero(metric: object) -> None:
    says = "^metric must be of benefits that are above 0; got 0.0. Choose another index, or"
    with pytest.raises(InputError, match=says):
        run(metric, (TRUE > 0.5).astype(int), (PRED > 0.6).astype(int))


@pytest.mark.parametrize("metric", NOT_NEGATIVE)
def test_a_benefit_of_zero_is_fine_for_the_others(metric: object) -> None:
    result = run(metric, (TRUE > 0.5).astype(int), (PRED > 0.6).astype(int))
    assert all(value > 0 for value in result.values.values())


@pytest.mark.parametrize("metric", [*ABOVE_0, *NOT_NEGATIVE])
def test_negative_benefits_are_refused(metric: object) -> None:
    says = r"^metric must be of benefits that are (above 0|not negative); got -[\d.]+\. Choose"
    with pytest.raises(InputError, match=says):
        run(metric, TRUE + 3.0, PRED)


@pytest.mark.parametrize("make", [generalized_entropy_index, atkinson_index])
@pytest.mark.parametrize(
    "of", [3, lambda income: income], ids=["not a function", "of an unknown column"]
)
def test_a_benefit_that_is_no_function_of_columns_is_refused(make: Any, of: Any) -> None:
    with pytest.raises((InputError, InputTypeError), match=r"^of must be"):
        run(make(of=of))
