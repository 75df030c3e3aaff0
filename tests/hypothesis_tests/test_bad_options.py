"""Options that cannot be: each is refused by name, with the rule, the value and a hint."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fairperm import InputError, permutation_test
from fairperm.datasets import load_compas
from tests.support.refusals import GOOD, Refusal, check_wording, each, table

SCHEMES = "'auto', 'pooled', 'within_label', 'denominator', 'unconditional'"
VARIANCES = (
    "'auto', 'score', 'wald', 'delta', 'hall', 'delong', 'bootstrap', 'fast_bootstrap', None"
)
COUNT = "must be 'auto' or an integer from 0 to 100,000,000"
SHARE = "must be a number strictly between 0 and 1"
SEED = "must be an integer from 0 to 2**128 - 1, a numpy Generator or None"
BASE_RATES = "Different base rates alone would make the groups differ in it."
STRATIFIED = {"control_features": list("xxyyxxyy")}

REFUSALS = table(
    permutation_test,
    GOOD,
    globals(),
    """
scheme='poled' → scheme must be one of {SCHEMES}; got 'poled'. Did you mean 'pooled'?
scheme=None → scheme must be one of {SCHEMES}; got None.
scheme=np.r_[1:3] → scheme must be one of {SCHEMES}; got array([1, 2]).
variance='Score' → variance must be one of {VARIANCES}; got 'Score'. Did you mean 'score'?
variance='none' → variance must be one of {VARIANCES}; got 'none'. Did you mean None?
variance=False → variance must be one of {VARIANCES}; got False.
alternative='two_sided' →
    alternative must be one of 'two-sided', 'symmetric', 'greater', 'less'; got 'two_sided'. Did
    you mean 'two-sided'?
missing='dropp' → missing must be one of 'error', 'drop', 'group'; got 'dropp'. Did you mean 'drop'?
missing=None → missing must be one of 'error', 'drop', 'group'; got None.
metric=None → TypeError: metric must be the name of a metric or a function; got None.
metric='' → metric must be one that metric_names() lists; got ''.
metric=3 → TypeError: metric must be the name of a metric or a function; got 3.
metric=len →
    TypeError: metric must be a function that can be called as metric(y_true, y_pred); got
    <built-in
scheme='within_label', metric='mcc' →
    scheme must be 'pooled' for matthews_corrcoef; got 'within_label'.
variance='wald', metric='f1_score' →
    variance must be 'auto' or one of 'score', 'delta', 'bootstrap', 'fast_bootstrap', None for
    f1_score; got 'wald'.
variance='score', metric='balanced_accuracy' →
    variance must be 'auto' or one of 'hall', 'delta', 'bootstrap', 'fast_bootstrap', None for
    balanced_accuracy; got 'score'.
alternative='greater', metric='equalized_odds' →
    alternative must be 'two-sided' for equalized_odds; got 'greater'. A joint test has no
    direction
cluster=[1] * 8 →
    cluster must keep to one group: whole clusters are exchanged; got cluster 1 with rows of
    'a', 'b'.
sample_weight=[1] * 7 + [0] → sample_weight must be made of numbers above 0; got 0.0.
n_resamples=-1 → n_resamples {COUNT}; got -1. 9999 resolves
n_resamples=-5 → n_resamples {COUNT}; got -5. 9999 resolves
n_resamples=10 ** 12 → n_resamples {COUNT}; got 1000000000000.
n_resamples=99.0 → TypeError: n_resamples {COUNT}; got 99.0. 9999 resolves
n_resamples=True → TypeError: n_resamples {COUNT}; got True. 9999 resolves
n_resamples='99' → TypeError: n_resamples {COUNT}; got '99'. 9999 resolves
n_resamples=None → TypeError: n_resamples {COUNT}; got None. 9999
n_resamples=np.array([9]) → TypeError: n_resamples {COUNT}; got array([9]).
n_bootstrap=1 → n_bootstrap must be an integer from 2 to 100,000; got 1.
confidence_level=0 → confidence_level {SHARE}; got 0.
confidence_level=1 → confidence_level {SHARE}; got 1.
confidence_level=95 → confidence_level {SHARE}; got 95. Did you mean 0.95?
confidence_level=np.nan → confidence_level {SHARE}; got nan.
confidence_level=10 ** 400 → confidence_level {SHARE}; got 1000
confidence_level='0.95' → TypeError: confidence_level {SHARE}; got '0.95'.
confidence_level=True → TypeError: confidence_level {SHARE}; got True.
rng=-1 → rng {SEED}; got -1.
rng=2 ** 128 →
    rng must be an integer from 0 to 2**128 - 1, a numpy Generator or None; got
    340282366920938463463374607431768211456.
rng='seed' → TypeError: rng {SEED}; got 'seed'.
rng=1.5 → TypeError: rng {SEED}; got 1.5.
rng=np.random.RandomState(1) → TypeError: rng {SEED}; got RandomState(MT19937)
rng=np.array([1, 2]) → TypeError: rng {SEED}; got array([1, 2]).
n_jobs=0 →
    n_jobs must be a positive or negative integer, or None; got 0. None means one thread, -1 all
    cores.
n_jobs=1.5 → TypeError: n_jobs must be an integer from -1,024 to 1,024; got 1.5.
progress='yes' → TypeError: progress must be True, False or None; got 'yes'.
threshold='half' → TypeError: threshold must be a finite number; got 'half'.
threshold=np.nan → threshold must be a finite number; got nan.
threshold=10 ** 400 → threshold must be a finite number; got 1000
**STRATIFIED, stratum_weights=[1, 2] →
    TypeError: stratum_weights must be a mapping of strata to weights; got [1, 2].
**STRATIFIED, stratum_weights={'x': 1, 'y': '2'} →
    TypeError: stratum_weights must be a mapping of strata to finite numbers; got '2'.
**STRATIFIED, stratum_weights={'X': 1, 'y': 1} →
    stratum_weights must be a mapping with strata of control_features ('x', 'y') as keys; got
    'X'. Did you mean 'x'?
**STRATIFIED, stratum_weights={'x': 1} →
    stratum_weights must be a mapping with a weight for every stratum, and 'y' has none; got
    {'x': 1}. Give strata that should not count a weight of 0.
**STRATIFIED, stratum_weights={'x': 1, 'y': -1} →
    stratum_weights must be made of weights that are not negative, and not all zero; got {'x':
    1, 'y': -1}.
**STRATIFIED, stratum_weights={'x': 0, 'y': 0} →
    stratum_weights must be made of weights that are not negative, and not all zero; got {'x':
    0, 'y': 0}.
**STRATIFIED, stratum_weights={'x': np.nan, 'y': 0} →
    stratum_weights must be a mapping of strata to finite numbers; got nan.
**STRATIFIED, y_true=[1, 0, 1, 1, 1, 0, 0, 0], stratum_weights={'x': 1, 'y': 1} →
    stratum_weights must give weight to strata in which false_negative_rate is defined in every
    group, and to no other; got weight on 2 strata, 1 of them without a gap.
control_features=list('xxxxxxxy'), stratum_weights={'x': 0, 'y': 1} →
    stratum_weights must give weight to strata in which false_negative_rate is defined in every
    group, and to no other; got weight on 1 strata, 1 of them without a gap.
metric='positive_predictive_value', scheme='within_label' →
    scheme must be 'denominator' or 'pooled' for positive_predictive_value; got 'within_label'.
    {BASE_RATES}
metric='accuracy', scheme='within_label' →
    scheme must be 'denominator' or 'pooled' for accuracy; got 'within_label'.
    {BASE_RATES}
metric='selection_rate', scheme='within_label' →
    scheme must be 'denominator' or 'pooled' for selection_rate; got 'within_label'.
    {BASE_RATES}
metric='f1_score', scheme='within_label' →
    scheme must be 'denominator' or 'pooled' for f1_score; got 'within_label'.
    {BASE_RATES}
""",
) + table(
    load_compas,
    {},
    globals(),
    """
backend='panda' →
    backend must be one of None, 'pandas', 'polars', 'pyarrow'; got 'panda'. Did you mean
    'pandas'?
""",
)


@each(REFUSALS)
def test_a_bad_option_is_refused_in_a_full_sentence_that_names_it(refusal: Refusal) -> None:
    check_wording(refusal)


@pytest.mark.parametrize(
    ("metric", "meant"),
    [("fals_negative_rate", "false_negative_rate"), ("Recal", "recall"), ("f1-scor", "f1_score")],
)
def test_a_misspelt_metric_is_answered_with_the_nearest(metric: str, meant: str) -> None:
    says = rf"^metric must be one that .* lists; got '{metric}'\. Did you mean '{meant}'\?$"
    with pytest.raises(InputError, match=says):
        permutation_test(**{**GOOD, "metric": metric})


@pytest.mark.parametrize("metric", ["balanced_accuracy", "equalized_odds"])
def test_there_is_no_denominator_scheme_without_a_denominator(metric: str) -> None:
    says = f"^scheme must be .* for {metric}, which has no single denominator; got 'denominator'"
    with pytest.raises(InputError, match=says):
        permutation_test(**{**GOOD, "metric": metric, "scheme": "denominator"})


GOOD_OPTIONS: dict[str, dict[str, Any]] = {
    "NumPy text": {"scheme": np.str_("unconditional"), "alternative": np.str_("two-sided")},
    "NumPy integers": {"n_resamples": np.int16(99), "rng": np.uint8(1), "n_jobs": np.int64(-1)},
    "NumPy floats": {"confidence_level": np.float64(0.95)},
}


@pytest.mark.parametrize("options", GOOD_OPTIONS.values(), ids=GOOD_OPTIONS)
def test_numpy_scalars_are_as_good_as_python_ones(options: dict[str, Any]) -> None:
    result, expected = permutation_test(**{**GOOD, **options}), permutation_test(**GOOD)
    assert result.to_dict() == expected.to_dict()


@pytest.mark.parametrize("scale", [1e308, 5e-324, 3.0], ids=str)
def test_only_the_proportions_of_stratum_weights_count(scale: float) -> None:
    given = {**GOOD, "control_features": list("xyxyxyxy")}
    result = permutation_test(**given, stratum_weights={"x": scale, "y": scale})
    expected = permutation_test(**given, stratum_weights={"x": 1, "y": 1})
    assert result.to_dict() == expected.to_dict()
