"""Options that cannot be: each is refused by name, with the rule, the value and a hint."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

from fairperm import InputError, permutation_test
from fairperm.datasets import load_compas
from tests.support.refusals import GOOD, Refusal, check_wording, each, kind, value

SCHEMES = "'auto', 'pooled', 'within_label', 'denominator', 'unconditional'"
VARIANCES = "'auto', 'score', 'wald', 'delta', 'delong', 'bootstrap', 'fast_bootstrap', None"
COUNT = "must be 'auto' or an integer from 0 to 100,000,000"
SHARE = "must be a number strictly between 0 and 1"
SEED = "must be an integer from 0 to 2**128 - 1, a numpy Generator or None"
STRATA = list("xxyyxxyy")
strata_value = functools.partial(value, control_features=STRATA)
strata_kind = functools.partial(kind, control_features=STRATA)

CHOICES = [
    value(
        "scheme misspelt",
        f"scheme must be one of {SCHEMES}; got 'poled'. Did you mean 'pooled'?",
        scheme="poled",
    ),
    value("scheme None", f"scheme must be one of {SCHEMES}; got None.", scheme=None),
    value(
        "scheme array", f"scheme must be one of {SCHEMES}; got array([1, 2]).", scheme=np.r_[1:3]
    ),
    value(
        "variance misspelt",
        f"variance must be one of {VARIANCES}; got 'Score'. Did you mean 'score'?",
        variance="Score",
    ),
    value(
        "variance 'none'",
        f"variance must be one of {VARIANCES}; got 'none'. Did you mean None?",
        variance="none",
    ),
    value("variance False", f"variance must be one of {VARIANCES}; got False.", variance=False),
    value(
        "alternative misspelt",
        "alternative must be one of 'two-sided', 'symmetric', 'greater', 'less'; got 'two_sided'. "
        "Did you mean 'two-sided'?",
        alternative="two_sided",
    ),
    value(
        "missing unknown",
        "missing must be one of 'error', 'drop', 'group'; got 'dropp'. Did you mean 'drop'?",
        missing="dropp",
    ),
    value(
        "missing None", "missing must be one of 'error', 'drop', 'group'; got None.", missing=None
    ),
    kind(
        "metric None", "metric must be the name of a metric or a function; got None.", metric=None
    ),
    kind("metric number", "metric must be the name of a metric or a function; got 3.", metric=3),
    kind(
        "metric of one argument",
        "metric must be a function that can be called as metric(y_true, y_pred); got <built-in",
        metric=len,
    ),
]

UNFIT = [
    value(
        f"within_label for {metric}",
        f"scheme must be 'denominator' or 'pooled' for {metric}; got 'within_label'. "
        "Different base rates alone would make the groups differ in it.",
        scheme="within_label",
        metric=metric,
    )
    for metric in ("positive_predictive_value", "accuracy", "selection_rate", "f1_score")
] + [
    value(
        "within_label for matthews_corrcoef",
        "scheme must be 'pooled' for matthews_corrcoef; got 'within_label'.",
        scheme="within_label",
        metric="mcc",
    ),
    value(
        "wald variance for f1_score",
        "variance must be 'auto' or one of 'score', 'delta', 'bootstrap', 'fast_bootstrap', None "
        "for f1_score; got 'wald'.",
        variance="wald",
        metric="f1_score",
    ),
    value(
        "score variance for balanced_accuracy",
        "variance must be 'auto' or one of 'delta', 'bootstrap', 'fast_bootstrap', None for "
        "balanced_accuracy; got 'score'.",
        variance="score",
        metric="balanced_accuracy",
    ),
    value(
        "direction of equalized_odds",
        "alternative must be 'two-sided' for equalized_odds; got 'greater'. "
        "A joint test has no direction",
        alternative="greater",
        metric="equalized_odds",
    ),
    value(
        "cluster in both groups",
        "cluster must keep to one group: whole clusters are exchanged; got cluster 1 with rows of "
        "'a', 'b'.",
        cluster=[1] * 8,
    ),
    value(
        "sample_weight of zero",
        "sample_weight must be made of numbers above 0; got 0.0.",
        sample_weight=[1] * 7 + [0],
    ),
]

NUMBERS = [
    value("n_resamples -1", f"n_resamples {COUNT}; got -1. 9999 resolves", n_resamples=-1),
    value("n_resamples -5", f"n_resamples {COUNT}; got -5. 9999 resolves", n_resamples=-5),
    value("n_resamples 10**12", f"n_resamples {COUNT}; got 1000000000000.", n_resamples=10**12),
    kind("n_resamples 99.0", f"n_resamples {COUNT}; got 99.0. 9999 resolves", n_resamples=99.0),
    kind("n_resamples True", f"n_resamples {COUNT}; got True. 9999 resolves", n_resamples=True),
    kind("n_resamples '99'", f"n_resamples {COUNT}; got '99'. 9999 resolves", n_resamples="99"),
    kind("n_resamples None", f"n_resamples {COUNT}; got None. 9999", n_resamples=None),
    kind("n_resamples array", f"n_resamples {COUNT}; got array([9]).", n_resamples=np.array([9])),
    value(
        "n_bootstrap 1", "n_bootstrap must be an integer from 2 to 100,000; got 1.", n_bootstrap=1
    ),
    value("confidence 0", f"confidence_level {SHARE}; got 0.", confidence_level=0),
    value("confidence 1", f"confidence_level {SHARE}; got 1.", confidence_level=1),
    value(
        "confidence 95",
        f"confidence_level {SHARE}; got 95. Did you mean 0.95?",
        confidence_level=95,
    ),
    value("confidence nan", f"confidence_level {SHARE}; got nan.", confidence_level=np.nan),
    value("confidence 10**400", f"confidence_level {SHARE}; got 1000", confidence_level=10**400),
    kind("confidence text", f"confidence_level {SHARE}; got '0.95'.", confidence_level="0.95"),
    kind("confidence True", f"confidence_level {SHARE}; got True.", confidence_level=True),
    value("rng negative", f"rng {SEED}; got -1.", rng=-1),
    value("rng 2**128", f"rng {SEED}; got {2**128}.", rng=2**128),
    kind("rng text", f"rng {SEED}; got 'seed'.", rng="seed"),
    kind("rng float", f"rng {SEED}; got 1.5.", rng=1.5),
    kind("rng RandomState", f"rng {SEED}; got RandomState(MT19937)", rng=np.random.RandomState(1)),
    kind("rng array", f"rng {SEED}; got array([1, 2]).", rng=np.array([1, 2])),
    value(
        "n_jobs 0",
        "n_jobs must be a positive or negative integer, or None; got 0. "
        "None means one thread, -1 all cores.",
        n_jobs=0,
    ),
    kind("n_jobs 1.5", "n_jobs must be an integer from -1,024 to 1,024; got 1.5.", n_jobs=1.5),
    kind("progress", "progress must be True, False or None; got 'yes'.", progress="yes"),
    kind("threshold text", "threshold must be a finite number; got 'half'.", threshold="half"),
    value("threshold nan", "threshold must be a finite number; got nan.", threshold=np.nan),
    value("threshold 10**400", "threshold must be a finite number; got 1000", threshold=10**400),
]

WEIGHTS = [
    strata_kind(
        "weights in a list",
        "stratum_weights must be a mapping of strata to weights; got [1, 2].",
        stratum_weights=[1, 2],
    ),
    strata_kind(
        "weight that is text",
        "stratum_weights must be a mapping of strata to finite numbers; got '2'.",
        stratum_weights={"x": 1, "y": "2"},
    ),
    strata_value(
        "weight of an unknown stratum",
        "stratum_weights must be a mapping with strata of control_features ('x', 'y') as keys; "
        "got 'X'. Did you mean 'x'?",
        stratum_weights={"X": 1, "y": 1},
    ),
    strata_value(
        "no weight for a stratum",
        "stratum_weights must be a mapping with a weight for every stratum, and 'y' has none; "
        "got {'x': 1}. Give strata that should not count a weight of 0.",
        stratum_weights={"x": 1},
    ),
    strata_value(
        "negative weight",
        "stratum_weights must be made of weights that are not negative, and not all zero; "
        "got {'x': 1, 'y': -1}.",
        stratum_weights={"x": 1, "y": -1},
    ),
    strata_value(
        "weights all zero",
        "stratum_weights must be made of weights that are not negative, and not all zero; "
        "got {'x': 0, 'y': 0}.",
        stratum_weights={"x": 0, "y": 0},
    ),
    strata_value(
        "weight nan",
        "stratum_weights must be a mapping of strata to finite numbers; got nan.",
        stratum_weights={"x": np.nan, "y": 0},
    ),
    strata_value(
        "weight on a stratum without a gap",
        "stratum_weights must give weight to strata in which false_negative_rate is defined in "
        "every group, and to no other; got weight on 2 strata, 1 of them without a gap. ",
        y_true=[1, 0, 1, 1, 1, 0, 0, 0],
        stratum_weights={"x": 1, "y": 1},
    ),
    value(
        "weight on one-sided strata alone",
        "stratum_weights must give weight to strata in which false_negative_rate is defined in "
        "every group, and to no other; got weight on 1 strata, 1 of them without a gap. ",
        control_features=list("xxxxxxxy"),
        stratum_weights={"x": 0, "y": 1},
    ),
]

OTHER_FUNCTIONS = [
    Refusal(
        "compas backend",
        "backend must be one of None, 'pandas', 'polars', 'pyarrow'; got 'panda'. "
        "Did you mean 'pandas'?",
        {"backend": "panda"},
        function=load_compas,
    ),
]

REFUSALS = [*CHOICES, *UNFIT, *NUMBERS, *WEIGHTS, *OTHER_FUNCTIONS]


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
