"""Metrics of one's own: three lines give all that the built-in ones have."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fairperm import (
    FairpermError,
    InputError,
    InputTypeError,
    metric_names,
    permutation_test,
    register_metric,
)
from fairperm.metrics import get_metric
from fairperm.metrics.definition import Kind, mean_function
from studies.bootstrap import bootstrap_test
from tests.support import number_data

N = 200
_RNG = np.random.default_rng(4)
GROUP: NDArray[np.str_] = np.where(_RNG.random(N) < 0.4, "a", "b")
STRATUM: NDArray[np.int64] = _RNG.integers(0, 2, N)
WEIGHT: NDArray[np.float64] = _RNG.uniform(0.5, 3, N)
CLUSTER = np.array([f"{group}{i // 4}" for i, group in enumerate(GROUP)])


def squares(y_true: Any, y_pred: Any) -> Any:
    return (y_pred - y_true) ** 2


def a_word(y_true: Any) -> str:
    return "x"


def columns_for(builtin: str) -> dict[str, Any]:
    """Return the columns that a built-in metric takes."""
    if builtin in number_data.NUMBER_METRICS:
        y, x = number_data.columns_for(builtin, N, 3)
        return number_data.arguments(builtin, y, x)
    y, score = number_data.columns_for("brier_score", N, 3)
    return {"y_true": y.astype(int), "y_pred": (score > 0.5).astype(int)}


# a built-in metric, and how it is made again
REMADE: dict[str, dict[str, Any]] = {
    "mean_squared_error": {"contributions": {"e2": squares}},
    "mean_absolute_error": {"contributions": {"e": lambda y_true, y_pred: abs(y_pred - y_true)}},
    "root_mean_squared_error": {"contributions": {"e2": squares}, "value": np.sqrt},
    "mean_prediction": {"contributions": {"p": lambda y_pred: y_pred}},
    "brier_score": {
        "contributions": {"e2": lambda y_true, y_score: (y_score - y_true) ** 2},
        "kind": "probability",
    },
    "mean_score": {"contributions": {"s": lambda y_score: y_score}, "kind": "score"},
    "mean_score_positives": {
        "contributions": {
            "s": lambda y_true, y_score: y_true * y_score,
            "p": lambda y_true: y_true,
        },
        "value": lambda s, p: s / p,
        "kind": "score",
    },
    "matthews_corrcoef": {
        "contributions": {
            "tn": lambda y_true, y_pred: (1 - y_true) * (1 - y_pred),
            "fp": lambda y_true, y_pred: (1 - y_true) * y_pred,
            "fn": lambda y_true, y_pred: y_true * (1 - y_pred),
            "tp": lambda y_true, y_pred: y_true * y_pred,
        },
        "value": lambda tn, fp, fn, tp: (
            (tp * tn - fp * fn) / np.sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn))
        ),
        "kind": "binary",
    },
}
EXTRAS: dict[str, dict[str, Any]] = {
    "plain": {},
    "strata": {"control_features": STRATUM},
    "weights": {"sample_weight": WEIGHT},
    "clusters": {"cluster": CLUSTER},
    "weighted clusters": {"cluster": CLUSTER, "sample_weight": WEIGHT},
    "unstudentized": {"variance": None},
    "fast bootstrap": {"variance": "fast_bootstrap"},
}


@pytest.mark.parametrize("extra", EXTRAS)
@pytest.mark.parametrize("builtin", REMADE)
def test_a_metric_made_again_is_the_same(builtin: str, extra: str) -> None:
    register_metric("mine", **REMADE[builtin])
    given = {
        **columns_for(builtin),
        **EXTRAS[extra],
        "sensitive_features": GROUP,
        "n_resamples": 199,
        "rng": 1,
        "scheme": "pooled",
    }
    theirs, ours = (
        permutation_test(**given, metric=builtin),
        permutation_test(**given, metric="mine"),
    )
    assert ours.metric == "mine"
    assert ours.variance == theirs.variance
    assert ours.exact == theirs.exact
    assert ours.values == pytest.approx(theirs.values, rel=1e-12)
    is_weighted = bool({"sample_weight", "cluster"} & EXTRAS[extra].keys())
    if builtin != "mean_score_positives" or not is_weighted:
        assert ours.pvalue == pytest.approx(theirs.pvalue, rel=1e-12)
    if (builtin, extra) == ("mean_score_positives", "strata"):  # all rows count in a user's metric
        assert ours.standard_error < theirs.standard_error
    elif builtin == "mean_score_positives" and is_weighted:  # so do those of each cluster
        assert ours.standard_error == pytest.approx(theirs.standard_error, rel=0.03)
    else:
        assert ours.standard_error == pytest.approx(theirs.standard_error, rel=1e-9)


def test_what_its_contributions_are_called_makes_no_rate_of_it() -> None:
    found = []
    for names in (("top", "bottom"), ("error", "denominator"), ("numerator", "denominator")):
        metric = register_metric(
            "_".join(names),
            contributions=dict(zip(names, (squares, lambda y_true: y_true**2), strict=True)),
            value=lambda a, b: a / b,
        )
        given: dict[str, Any] = {**columns_for("mean_squared_error"), "sensitive_features": GROUP}
        found.append(permutation_test(**given, metric=metric, n_resamples=99, rng=1))
    assert {one.scheme for one in found} == {"pooled"}
    assert {one.variance for one in found} == {"hall"}
    assert len({one.pvalue for one in found}) == 1


def test_a_mean_made_again_is_the_same_bit_for_bit() -> None:
    register_metric("mine", contributions={"e2": squares})
    given: dict[str, Any] = {"sensitive_features": GROUP, "rng": 1, "n_resamples": 999}
    given |= columns_for("mean_squared_error")
    theirs, ours = permutation_test(**given, metric="mse"), permutation_test(**given, metric="mine")
    assert (ours.pvalue, ours.standard_error) == (theirs.pvalue, theirs.standard_error)


@pytest.mark.parametrize("builtin", REMADE)
def test_the_bootstrap_knows_it(builtin: str) -> None:
    metric = register_metric("mine", **REMADE[builtin])
    given = {**columns_for(builtin), "sensitive_features": GROUP, "n_resamples": 199, "rng": 1}
    theirs = bootstrap_test(**given, metric=builtin)
    ours = bootstrap_test(**given, metric="mine")
    assert ours.pvalue == theirs.pvalue
    assert ours.confidence_interval == pytest.approx(theirs.confidence_interval, rel=1e-9)
    assert bootstrap_test(**given, metric=metric).pvalue == ours.pvalue


def test_it_is_listed_and_found_by_its_names() -> None:
    before = metric_names()
    metric = register_metric("mine", contributions={"e2": squares})
    assert metric_names() == (*before, "mine")
    assert get_metric("mine") is get_metric("Mine") is metric
    assert (metric.kind, metric.meaning) == ("regression", "mine")


def test_registered_metrics_are_gone_in_the_next_test() -> None:
    assert "mine" not in metric_names()


@pytest.mark.parametrize("name", ["MyError", "my error", "my-error", " my_error "])
def test_it_is_found_however_its_name_is_written(name: str) -> None:
    """Names are looked up in lower case with underscores."""
    metric = register_metric(name, contributions={"e2": squares})
    assert get_metric(name) is metric


@pytest.mark.parametrize("taken", ["accuracy", "recall", "Accuracy", "mean squared error", "mine"])
def test_a_name_is_given_once(taken: str) -> None:
    register_metric("mine", contributions={"e2": squares})
    before = metric_names()
    with pytest.raises(InputError, match=r"^name must be .* no metric has yet; got"):
        register_metric(taken, contributions={"e2": squares})
    assert metric_names() == before


@pytest.mark.parametrize(
    ("kind", "bad"),
    [
        ("binary", {"y_true": [0, 1, 2] * 10, "y_pred": [0, 1, 1] * 10}),
        ("score", {"y_true": [0, 1, 2] * 10, "y_score": [0.1, 0.2, 0.3] * 10}),
        ("probability", {"y_true": [0, 1] * 15, "y_score": [0.1, 1.2, 0.3] * 10}),
        ("regression", {"y_true": ["x", "y"] * 15, "y_pred": [0.1, 1.2, 0.3] * 10}),
    ],
    ids=["binary", "score", "probability", "regression"],
)
def test_columns_are_checked_by_its_kind(kind: Any, bad: dict[str, Any]) -> None:
    second = "y_score" if "y_score" in bad else "y_pred"
    both = {
        "y_pred": lambda y_true, y_pred: y_true * y_pred,
        "y_score": lambda y_true, y_score: y_true * y_score,
    }
    register_metric("mine", contributions={"product": both[second]}, kind=kind)
    with pytest.raises(
        FairpermError, match=r"^y_(true|score) must be (binary|from 0 to 1|made of)"
    ):
        permutation_test(**bad, sensitive_features=list("ab") * 15, metric="mine")


def test_labels_are_numbers_to_its_contributions() -> None:
    """As documented: 0/1 labels and predictions. NumPy refuses to subtract booleans."""
    register_metric(
        "excess", contributions={"gap": lambda y_true, y_pred: y_pred - y_true}, kind="binary"
    )
    columns = columns_for("accuracy")
    result = permutation_test(**columns, sensitive_features=GROUP, metric="excess", rng=1)
    excess = columns["y_pred"] - columns["y_true"]
    for group, value in result.values.items():
        assert value == pytest.approx(float(excess[group == GROUP].mean()), abs=1e-15)


GOOD: dict[str, Any] = {"name": "mine", "contributions": {"e2": squares}}
REFUSED: dict[str, tuple[str, dict[str, Any]]] = {
    "empty name": ("name must be a word; got ''", {"name": ""}),
    "blank name": ("name must be a word; got ' '", {"name": " "}),
    "name of no text": ("name must be a word; got 3", {"name": 3}),
    "name None": ("name must be a word; got None", {"name": None}),
    "misspelt kind": (
        "kind must be one of 'regression', 'score', 'probability', 'binary'; got 'regresion'. "
        "Did you mean 'regression'?",
        {"kind": "regresion"},
    ),
    "kind None": ("kind must be one of", {"kind": None}),
    "no contributions": ("contributions must be a mapping", {"contributions": {}}),
    "contributions in a list": ("contributions must be a mapping", {"contributions": [squares]}),
    "bare function": ("contributions must be a mapping", {"contributions": squares}),
    "contribution named rows": (
        "contributions must be a mapping of names to functions of columns, named by other words",
        {"contributions": {"rows": squares}},
    ),
    "misspelt column": (
        "contributions must be functions of 'y_true', 'y_pred'; got 'y_tru'. "
        "Did you mean 'y_true'?",
        {"contributions": {"e": lambda y_tru: y_tru}},
    ),
    "any columns": (
        "contributions must be functions of 'y_true', 'y_pred'; got 'columns'",
        {"contributions": {"e": lambda *columns: columns[0]}},
    ),
    # what follows is about functions that could not run
    "contribution is no function": ("contributions must be", {"contributions": {"e": 3}}),
    "contribution is a string": ("contributions must be", {"contributions": {"e": "y_pred"}}),
    "contribution has no signature": ("contributions must be", {"contributions": {"e": max}}),
    "contribution of no column": ("contributions must be", {"contributions": {"e": lambda: 1.0}}),
    "contribution of keywords only": (
        "contributions must be",
        {"contributions": {"e": lambda *, y_true: y_true}},
    ),
    "contribution without a name": ("contributions must be", {"contributions": {3: squares}}),
    "value is no function": ("value must be", {"value": 3}),
    "value is None": ("value must be", {"value": None}),
    "value of too many means": ("value must be", {"value": lambda e2, other: e2 + other}),
    "value of too few means": (
        "value must be",
        {"contributions": {"e2": squares, "t": lambda y_true: y_true}, "value": lambda e2: e2},
    ),
    "default value of two means": (
        "value must be",
        {"contributions": {"e2": squares, "t": lambda y_true: y_true}},
    ),
    "scores in a binary metric": (
        "contributions must be",
        {"contributions": {"s": lambda y_score: y_score}, "kind": "binary"},
    ),
    "no scores in a metric of probabilities": (
        "contributions must be",
        {"contributions": {"t": lambda y_true: y_true}, "kind": "probability"},
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_bad_definition_is_refused_at_once(case: str) -> None:
    says, changes = REFUSED[case]
    before = metric_names()
    with pytest.raises(FairpermError, match=f"^{re.escape(says)}") as caught:
        register_metric(**{**GOOD, **changes})
    assert isinstance(caught.value, (InputError, InputTypeError))
    assert str(caught.value)[-1] in ".?"
    assert metric_names() == before


BROKEN: dict[str, dict[str, Any]] = {
    "contribution of text": {"contributions": {"e": a_word}},
    "contribution of some rows": {"contributions": {"e": lambda y_true: y_true[:3]}},
    "contribution of one number": {"contributions": {"e": lambda y_true: y_true.mean()}},
    "contribution of NaN": {"contributions": {"e": lambda y_true: y_true * np.nan}},
    "value of text": {"contributions": {"e2": squares}, "value": lambda _: "x"},
    "value of nothing": {"contributions": {"e2": squares}, "value": lambda _: None},
    "constant value": {"contributions": {"e2": squares}, "value": lambda _: 3.0},
    "value that compares": {
        "contributions": {"e2": squares},
        "value": lambda e2: e2 if e2 > 0 else -e2,
    },
    "value with abs": {"contributions": {"e2": squares}, "value": lambda e2: np.abs(e2)},
}


@pytest.mark.parametrize("case", BROKEN)
def test_what_only_the_data_can_show_is_refused_then(case: str) -> None:
    """Its author must learn which of the functions is wrong, not where NumPy gave up."""
    register_metric("mine", **BROKEN[case])
    with pytest.raises(FairpermError, match="mine"):
        permutation_test(
            **columns_for("mean_squared_error"),
            sensitive_features=GROUP,
            metric="mine",
            n_resamples=99,
            rng=1,
        )


def test_the_kind_may_be_a_plain_word() -> None:
    own = mean_function("mine", {"x": lambda y_pred: y_pred}, np.sqrt, kind="score", meaning="mine")
    assert own.kind is Kind.SCORE
    with pytest.raises(ValueError, match="'scores' is not a valid Kind"):
        mean_function("mine", {"x": lambda y_pred: y_pred}, np.sqrt, kind="scores", meaning="mine")
