"""Functions that cannot be a metric, and functions that fail half-way: who is told what."""

from __future__ import annotations

import functools
import itertools
import math
import re
import warnings
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from fairperm import InputError, InputTypeError, permutation_test
from fairperm.errors import FairpermError
from tests.support.refusals import GOOD, Refusal, check_wording, each, table

NUMBER = "metric must be a function that returns a real number; got"
VALUE = "metric must be a function that has a value in every sample; got"
CALL = "metric must be a function that can be called as metric(y_true, y_pred); got"
KINDS = "metric must be the name of a metric or a function; got"


def mean(y_true: Any, y_pred: Any) -> Any:
    return np.mean(y_pred)


def fbeta(y_true: Any, y_pred: Any, *, beta: float) -> float:
    return beta


def returning(result: object) -> Any:
    def odd(y_true: Any, y_pred: Any) -> object:
        return result

    return odd


def raising(error: BaseException) -> Any:
    def fails(y_true: Any, y_pred: Any) -> float:
        raise error

    return fails


class Scorer:
    def __call__(self, estimator: Any, features: Any, y_true: Any) -> float:
        return float(estimator.score(features, y_true))


# Not functions of two columns.


def of_one(y_true: Any) -> float:
    return 0.0


def of_keywords(*, y_true: Any, y_pred: Any) -> float:
    return 0.0


def of_groups(y_true: Any, y_pred: Any, *, sensitive_features: Any) -> float:
    return 0.0


FULL, HALF = functools.partial(mean, y_pred=1), Decimal("0.5")
REFUSALS = table(
    permutation_test,
    GOOD,
    globals(),
    """
metric=3 → TypeError: {KINDS} 3.
metric=None → TypeError: {KINDS} None.
metric=[mean] → TypeError: {KINDS} [<function mean
metric=Refusal → TypeError: {KINDS} <class 'tests.support.refusals.Refusal'>. Pass an object of it.
metric=of_one → TypeError: {CALL} <function of_one
metric=lambda: 0.0 → TypeError: {CALL} <function <lambda>
metric=of_keywords → TypeError: {CALL} <function of_keywords
metric=fbeta → TypeError: {CALL} <function fbeta
metric=of_groups → TypeError: {CALL} <function of_groups
metric=Scorer() → TypeError: {CALL} <tests.metrics.test_bad_callables.Scorer object
metric=FULL → TypeError: {CALL} functools.partial(
metric=mean, pos_label=1 →
    pos_label must be left out for a function, which gets labels as they are; got 1. Fix it:
    functools.partial(mean, pos_label=1).
metric=mean, threshold=0.3 →
    threshold must be left out for a function, which gets scores as they are; got 0.3. Pass
    y_pred=scores >= threshold.
metric=mean, sample_weight=[1, 2, 3, 4, 5, 6, 7, 8] →
    TypeError: metric must be a function with a parameter sample_weight if weights are given;
    got
metric=mean, y_pred=None → TypeError: y_pred must be given for mean; got None.
metric=mean, scheme='within_label' → scheme must be 'pooled' for mean;
metric=mean, scheme='denominator' →
    scheme must be 'pooled' or 'within_label' for mean, which has no single denominator;
metric=mean, variance='wald' →
    variance must be 'auto' or one of 'fast_bootstrap', 'bootstrap', None for mean;
metric=returning(None) → TypeError: {NUMBER} None from odd in
metric=returning('0.5') → TypeError: {NUMBER} '0.5' from odd in
metric=returning(True) → TypeError: {NUMBER} True from odd in
metric=returning(np.True_) → TypeError: {NUMBER} True from odd in
metric=returning(0.5j) → TypeError: {NUMBER} 0.5j from odd in
metric=returning(np.complex128(1j)) → TypeError: {NUMBER} 1j from odd in
metric=returning(np.array([0.5])) → TypeError: {NUMBER} array([0.5]) from odd in
metric=returning(np.array([0.5, 0.6])) → TypeError: {NUMBER} array([0.5, 0.6]) from odd in
metric=returning([0.5]) → TypeError: {NUMBER} [0.5] from odd in
metric=returning((0.5, 0.6)) → TypeError: {NUMBER} (0.5, 0.6) from odd in
metric=returning({'f1': 0.5}) → TypeError: {NUMBER} {'f1': 0.5} from odd in
metric=returning(HALF) → TypeError: {NUMBER} Decimal('0.5') from odd in
metric=returning(np.ma.masked) → TypeError: {NUMBER} masked from odd in
metric=returning(np.array('0.5')) → TypeError: {NUMBER} '0.5' from odd in
""",
)
ERRORS = table(
    permutation_test,
    GOOD,
    globals(),
    """
metric=raising(ValueError('Only one class is present.\\nTwo are needed.')) → {VALUE} ValueError(
metric=raising(ZeroDivisionError('division by zero')) → {VALUE} ZeroDivisionError(
metric=raising(KeyError('y')) → {VALUE} KeyError(
metric=raising(AssertionError()) → {VALUE} AssertionError(
metric=raising(InputError('from another test')) → {VALUE} InputError(
metric=raising(StopIteration(1)) → {VALUE} StopIteration(
""",
)


@each(REFUSALS)
def test_refusal(refusal: Refusal) -> None:
    check_wording(refusal)


@each(ERRORS)
def test_errors_are_kept(refusal: Refusal) -> None:
    with pytest.raises(InputError, match=re.escape(refusal.says)) as caught:
        refusal.function(**refusal.given)
    original = caught.value.__cause__
    assert type(original).__name__ in refusal.says
    text = str(caught.value)
    assert re.search(r" in (group '[ab]'|the (first|second) group)\. Return NaN where", text)
    assert "\n" not in text


def test_a_call_that_does_not_fit_keeps_why() -> None:
    with pytest.raises(InputTypeError, match=r"missing a required .*argument: 'beta'") as caught:
        permutation_test(**{**GOOD, "metric": fbeta})
    assert isinstance(caught.value.__cause__, TypeError)


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit])
def test_interrupts_are_not_errors_of_the_function(stop: type[BaseException]) -> None:
    with pytest.raises(stop, match=r"^enough$"):
        permutation_test(**{**GOOD, "metric": raising(stop("enough"))})


# Functions that fail later: which draw it was must be said.


def failing_after(calls: int, error: type[Exception] = ZeroDivisionError) -> Any:
    """Return a mean that fails in its call of this number: two a draw, after the sample's two."""
    number = itertools.count(1)

    def fails(y_true: Any, y_pred: Any) -> float:
        if next(number) > calls:
            raise error("boom")
        return float(np.mean(y_pred))

    return fails


@pytest.mark.parametrize(
    ("calls", "where"),
    [
        (0, "(group|the first|the second).*"),
        (2, ".* of bootstrap sample 1"),
        (2 + 2 * 17 + 1, ".* of bootstrap sample 18"),
        (2 + 2 * 99, ".* of permutation 1"),
        (2 + 2 * 99 + 2 * 40, ".* of permutation 41"),
    ],
)
def test_the_draw_is_named(calls: int, where: str) -> None:
    with pytest.raises(InputError, match=rf"\('boom'\) from fails in {where}\. Return") as caught:
        permutation_test(**{**GOOD, "metric": failing_after(calls)})
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_the_draw_of_a_nested_bootstrap_is_named() -> None:
    # both groups, their bootstrap samples for the error and for ties, and a permutation
    metric = failing_after(2 + 2 * 5 + 2 * 5 + 2)
    with pytest.raises(InputError, match=r"in a bootstrap sample of .* of permutation 1\."):
        permutation_test(**{**GOOD, "metric": metric, "variance": "bootstrap", "n_bootstrap": 5})


def rarely(y_true: Any, y_pred: Any) -> float:
    if np.mean(y_pred) == 1:
        raise ZeroDivisionError("boom")
    return float(np.mean(y_pred))


def test_errors_come_back_from_processes() -> None:
    """Exceptions lose their causes on the way; joblib puts the whole traceback in their place."""
    with pytest.raises(FairpermError, match=r"ZeroDivisionError.* of (perm|boot)") as caught:
        permutation_test(**{**GOOD, "metric": rarely, "n_jobs": 2})
    assert "ZeroDivisionError: boom" in str(caught.value.__cause__)


# Undefined, rather than wrong.


@pytest.mark.parametrize("nothing", [math.nan, np.nan, np.float32("nan"), math.inf, -math.inf])
def test_undefined_in_the_sample(nothing: float) -> None:
    message = "metric must be finite in every group; got NaN or infinity from odd in group 'a'"
    with pytest.raises(InputError, match=message):
        permutation_test(**{**GOOD, "metric": returning(nothing)})


@pytest.mark.filterwarnings("ignore:The standard error of odd is zero")
@pytest.mark.parametrize("same", [0, 1.5, np.float32(2), np.int8(3), np.array(0.25)])
def test_a_constant_has_no_gap(same: float) -> None:
    for variance in ("fast_bootstrap", "bootstrap", None):
        options = {"metric": returning(same), "variance": variance, "n_bootstrap": 2}
        result = permutation_test(**{**GOOD, **options})
        assert (result.difference, result.statistic, result.pvalue) == (0, 0, 1)


def test_warnings_turned_into_errors_are_errors_of_the_function() -> None:
    def loud(y_true: Any, y_pred: Any) -> float:
        warnings.warn("ill-defined", RuntimeWarning, stacklevel=1)
        return 0.5

    with pytest.raises(
        InputError, match=r"got RuntimeWarning\('ill-defined'\) from loud"
    ) as caught:
        permutation_test(**{**GOOD, "metric": loud})
    assert isinstance(caught.value.__cause__, RuntimeWarning)


def test_a_function_that_changes_its_arguments_changes_no_other_draw() -> None:
    def spoils(y_true: Any, y_pred: Any) -> float:
        share = float(np.mean(y_pred))
        y_true[:], y_pred[:] = 9, 9
        return share

    rows = {name: GOOD[name] * 5 for name in ("y_true", "y_pred", "sensitive_features")}
    spoilt, clean = (permutation_test(**{**GOOD, **rows, "metric": m}) for m in (spoils, mean))
    assert np.array_equal(spoilt.null_distribution, clean.null_distribution)
