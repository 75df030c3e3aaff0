"""Margins and options that cannot be: each is refused by name, with the rule and the value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from fairperm import InputError, InputTypeError, permutation_test
from fairperm.hypothesis_tests.margins.equivalence import equivalence_test, noninferiority
from fairperm.hypothesis_tests.margins.one_sided import Difference, Ratio, Scale
from tests.support.refusals import GOOD, Refusal, check_wording, each, table

MARGIN = "margin must be a number above 0, or a pair of one below and one above 0"
RATIO = "ratio must be a number strictly between 0 and 1"
ONE = "margin must be given, or ratio instead, but not both"
UNEXPECTED = "equivalence_test() got an unexpected keyword argument"
NEGATIVE: dict[str, Any] = {  # mean errors of −0.5 and 1/3
    "y_true": [1.0, 2.0, 3.0, 1.0, 2.0, 3.0],
    "y_pred": [0.5, 1.0, 3.0, 1.5, 2.0, 3.5],
}
REFUSALS = (
    table(
        equivalence_test,
        GOOD,
        globals(),
        """
margin=0 → {MARGIN}; got 0.
margin=-0.1 → {MARGIN}; got -0.1.
margin=np.nan → {MARGIN}; got nan.
margin=np.inf → {MARGIN}; got inf.
margin=True → TypeError: {MARGIN}; got True.
margin='0.1' → TypeError: {MARGIN}; got '0.1'.
margin=np.array([0.1, 0.2]) → TypeError: {MARGIN}; got array([0.1, 0.2]).
margin=(-1, 0, 1) → TypeError: {MARGIN}; got (-1, 0, 1).
margin=(0.1, 0.2) → {MARGIN}; got (0.1, 0.2).
margin=[0.2, -0.1] → {MARGIN}; got [0.2, -0.1].
margin=5 → margin must be below 1 for false_negative_rate; got 5.0. Rates are numbers from 0 to 1
ratio=0 → {RATIO}; got 0.
ratio=1 → {RATIO}; got 1.
ratio=1.25 → {RATIO}; got 1.25. For 1.25 pass 0.8: it bounds the ratio
ratio=-0.8 → {RATIO}; got -0.8.
ratio=np.nan → {RATIO}; got nan.
ratio=True → TypeError: {RATIO}; got True.
ratio=(0.8, 1.25) → TypeError: {RATIO}; got (0.8, 1.25).
**{} → {ONE}; got {'margin': None, 'ratio': None}.
margin=0.1, ratio=0.8 → {ONE}; got {'margin': 0.1, 'ratio': 0.8}.
margin=0.1, xyz=99 → TypeError: {UNEXPECTED} 'xyz'. It takes 'y_true'
margin=0.1, alternative='less' → TypeError: {UNEXPECTED} 'alternative'. It takes 'y_true'
ratio=0.8, variance='wald' → TypeError: {UNEXPECTED} 'variance'. It takes 'y_true'
ratio=0.8, control_features=list('xyxyxyxy') →
    ratio must be left out with control_features, whose gap is a mean of differences; got
    'strata'. Pass margin, a difference, instead.
ratio=0.8, y_pred=[1] * 8 →
    ratio must be one of rates that are not both 0; got {'a': 0.0, 'b': 0.0}. Pass margin
ratio=0.8, **NEGATIVE, sensitive_features=list('aaabbb'), metric='mean_error' →
    ratio must be one of values above 0 (mean_error); got {'a': -0.5, 'b': 0.333
""",
    )
    + table(
        equivalence_test,
        {},
        globals(),
        """
y_true=[1], sensitive_features=["a"], margin=0.1 →
    TypeError: metric must be given to equivalence_test(); got None.
""",
    )
    + table(
        noninferiority,
        GOOD,
        globals(),
        """
margin=(-0.1, 0.1) →
    TypeError: margin must be a number above 0; got (-0.1, 0.1). The other side has no margin.
margin=0.1, higher_is_better=1 → TypeError: higher_is_better must be True or False; got 1.
""",
    )
)


@each(REFUSALS)
def test_a_bad_argument_is_refused_in_a_full_sentence_that_names_it(refusal: Refusal) -> None:
    check_wording(refusal)


@pytest.mark.parametrize("test", [equivalence_test, noninferiority])
def test_an_option_is_refused_with_what_was_meant(test: Callable[..., Any]) -> None:
    says = r"\(\) got an unexpected keyword argument 'n_resample'. Did you mean 'n_resamples'\?$"
    with pytest.raises(InputTypeError, match=test.__name__ + says):
        test(**GOOD, margin=0.1, n_resample=99)


@pytest.mark.parametrize("bounds", [{"margin": 0.1}, {"ratio": 0.8}], ids=str)
def test_a_joint_metric_is_tested_by_its_parts(bounds: dict[str, Any]) -> None:
    says = r"^metric must be a single metric; got 'equalized_odds'\. Test its parts one by one"
    with pytest.raises(InputError, match=says):
        equivalence_test(**{**GOOD, "metric": "equalized_odds"}, **bounds)


@pytest.mark.parametrize("scale", [Difference, Ratio])
def test_a_result_that_is_not_studentized_is_refused(scale: type[Scale]) -> None:
    result = permutation_test(**GOOD, variance=None)
    with pytest.raises(InputError, match=r"^variance must be that of a studentized test.*got None"):
        scale(result)


def test_one_sided_bounds_need_a_level_above_one_half() -> None:
    says = r"^confidence_level must be above 0\.5: each end of the interval .*; got 0\.5\."
    with pytest.raises(InputError, match=says):
        equivalence_test(**GOOD, margin=0.1, confidence_level=0.5)


@pytest.mark.parametrize("alpha", [0, 1, 5, -0.1, np.nan])
def test_a_level_is_between_zero_and_one(alpha: float) -> None:
    with pytest.raises(InputError, match=r"^alpha must be a number strictly between 0 and 1; got"):
        equivalence_test(**GOOD, margin=0.1).holds_at(alpha)


def test_errors_of_the_permutation_test_come_through() -> None:
    with pytest.raises(InputError, match=r"^scheme must be one of .* got 'poled'"):
        equivalence_test(**{**GOOD, "scheme": "poled"}, margin=0.1)
