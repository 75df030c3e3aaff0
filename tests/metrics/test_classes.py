"""Labels of more than two classes: accuracy, macro F1, and the recall or precision of one class."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fairperm import InputError, PermutationTestResult, permutation_test
from fairperm.data.arguments import MetricLike

N = 120
KINDS: dict[str, list[Any]] = {
    "words": ["cat", "dog", "emu"],
    "integers": [0, 1, 2],
    "negative integers": [-1, 0, 1],
    "whole floats": [0.0, 1.0, 2.0],
    "words and integers": [1, "dog", "emu"],
    "tuples": [("a", 1), ("a", 2), ("b", 1)],
}
KIND = pytest.mark.parametrize("kind", KINDS)
ONE_VS_REST = pytest.mark.parametrize(
    "binary", ["recall", "precision", "fpr", "npv", "accuracy", "f1"]
)

_RNG = np.random.default_rng(0)
TRUE: NDArray[np.int64] = _RNG.integers(0, 3, N)
PRED: NDArray[np.int64] = np.where(_RNG.random(N) < 0.6, TRUE, _RNG.integers(0, 3, N))
GROUP: NDArray[np.str_] = np.where(_RNG.random(N) < 0.5, "a", "b")


def named(codes: NDArray[np.int64], kind: str = "words") -> list[Any]:
    return [KINDS[kind][code] for code in codes.tolist()]


def run(
    metric: Any, y_true: Any = None, y_pred: Any = None, **options: Any
) -> PermutationTestResult:
    return permutation_test(
        named(TRUE) if y_true is None else y_true,
        named(PRED) if y_pred is None else y_pred,
        sensitive_features=GROUP,
        metric=metric,
        **{"rng": 1, "n_resamples": 499, **options},
    )


def f1(y: NDArray[np.int64], pred: NDArray[np.int64], code: int) -> float:
    hits = int(((y == code) & (pred == code)).sum())
    return 2 * hits / int((y == code).sum() + (pred == code).sum())


BY_HAND: dict[str, Callable[[NDArray[np.int64], NDArray[np.int64]], float]] = {
    "accuracy": lambda y, pred: float((y == pred).mean()),
    "error_rate": lambda y, pred: float((y != pred).mean()),
    "f1_macro": lambda y, pred: float(np.mean([f1(y, pred, code) for code in range(3)])),
}


@KIND
@pytest.mark.parametrize("metric", BY_HAND)
def test_values_are_those_of_the_definitions(kind: str, metric: str) -> None:
    result = run(metric, named(TRUE, kind), named(PRED, kind))
    for name, value in result.values.items():
        rows = name == GROUP
        assert value == pytest.approx(BY_HAND[metric](TRUE[rows], PRED[rows]), rel=1e-12)


@KIND
@pytest.mark.parametrize("code", range(3))
def test_recall_and_precision_of_a_class_are_those_of_the_definitions(kind: str, code: int) -> None:
    y, pred, label = named(TRUE, kind), named(PRED, kind), KINDS[kind][code]
    recall, precision = (run(f"{one}[{label}]", y, pred) for one in ("recall", "precision"))
    for name in "ab":
        rows = name == GROUP
        is_true, is_pred = np.equal(TRUE, code) & rows, np.equal(PRED, code) & rows
        hits, truths, guesses = (int(one.sum()) for one in (is_true & is_pred, is_true, is_pred))
        assert recall.values[name] == hits / truths
        assert precision.values[name] == hits / guesses
        assert recall.counts[name]["denominator"] == truths
        assert precision.counts[name]["denominator"] == guesses


@pytest.mark.parametrize("metric", ["accuracy", "error_rate", "f1_macro"])
@pytest.mark.parametrize("make", [np.array, lambda x: np.array(x, object)], ids=["array", "object"])
def test_arrays_and_lists_are_the_same(metric: str, make: Callable[[list[Any]], Any]) -> None:
    arrays = run(metric, make(named(TRUE)), make(named(PRED)))
    assert arrays.to_dict() == run(metric).to_dict()


@pytest.mark.parametrize(
    "metric",
    ["accuracy", "error_rate", "recall[cat]", "precision[cat]", "accuracy[cat]", "f1[cat]"],
)
def test_rates_are_exact_given_their_denominators(metric: object) -> None:
    result = run(metric, n_resamples=9999)
    assert result.exact
    assert (result.scheme, result.variance) == ("unconditional", "score")
    assert result.validity.startswith("Exact for the weak null")


def test_f1_macro_is_studentized_by_the_delta_method_without_skewness() -> None:
    result = run("f1_macro")
    assert (result.scheme, result.variance) == ("pooled", "hall")
    assert result.metric == "f1_macro"
    assert result.to_dict() == run("f1_macro").to_dict()


@ONE_VS_REST
@pytest.mark.parametrize("scheme", ["denominator", "pooled"])
@pytest.mark.parametrize("code", range(3))
def test_one_class_is_that_class_against_the_rest(binary: str, scheme: str, code: int) -> None:
    y, pred = np.equal(TRUE, code).astype(int), np.equal(PRED, code).astype(int)
    ours = run(
        f"{binary}[{KINDS['words'][code]}]", scheme=scheme, variance="score", n_resamples=9999
    )
    theirs = run(binary, y, pred, scheme=scheme, variance="score", n_resamples=9999)
    assert ours.values == theirs.values
    if scheme == "pooled":  # drawn, from tables with different cells
        low, high = theirs.pvalue_interval
        assert low - 0.01 < ours.pvalue < high + 0.01
        return
    assert ours.exact
    assert theirs.exact
    for one in ("pvalue", "statistic", "standard_error", "confidence_interval"):
        assert getattr(ours, one) == pytest.approx(getattr(theirs, one), rel=1e-12)


def test_labels_are_exchanged_within_the_label_if_asked_for() -> None:
    ours = run("recall[cat]", scheme="within_label", n_resamples=9999)
    theirs = run(
        "true_positive_rate",
        (TRUE == 0).astype(int),
        (PRED == 0).astype(int),
        scheme="within_label",
        n_resamples=9999,
    )
    assert ours.scheme == "within_label"
    assert ours.validity.startswith("Exact for the weak null")
    assert ours.pvalue == pytest.approx(theirs.pvalue, rel=1e-12)
    exchanged = run("recall[cat]", scheme="denominator", n_resamples=9999)
    assert ours.pvalue == pytest.approx(exchanged.pvalue, rel=1e-12)


@pytest.mark.parametrize(
    ("metric", "shown"),
    [
        ("precision[cat]", r"'denominator' or 'pooled' for precision\[cat\]"),
        ("accuracy", "'denominator' or 'pooled' for accuracy"),
        ("f1_macro", "'pooled' for f1_macro"),
    ],
    ids=["precision", "accuracy", "f1_macro"],
)
def test_what_depends_on_base_rates_is_not_exchanged_within_the_label(
    metric: object, shown: str
) -> None:
    with pytest.raises(InputError, match=f"^scheme must be {shown}; got 'within_label'"):
        run(metric, scheme="within_label")


@pytest.mark.parametrize(
    "metric",
    ["accuracy", "error_rate", "f1_macro", "recall_macro", "recall[Yes]", "precision[Yes]"],
)
@pytest.mark.parametrize(
    ("truth", "guess"),
    [("Yes", "yes"), ("Yes", " Yes"), ("1", 1)],
    ids=["case", "space", "number"],
)
def test_labels_that_differ_in_spelling_are_refused(
    metric: object, truth: object, guess: object
) -> None:
    y = [truth if one == 0 else "no" for one in TRUE]
    pred = [guess if one == 0 else "no" for one in PRED]
    says = (
        rf"^y_pred must be made of the labels of y_true .*; got {guess!r}. Did you mean {truth!r}"
    )
    with pytest.raises(InputError, match=says):
        run(metric, y, pred)


def test_predicted_classes_need_not_be_true_of_any_row() -> None:
    pred = ["fox" if one == "emu" else one for one in named(PRED)]
    y, p = np.array(named(TRUE)), np.array(pred)
    accuracy, macro = run("accuracy", y, p), run("f1_macro", y, p)
    for name in "ab":
        rows = name == GROUP
        assert accuracy.values[name] == float((y == p)[rows].mean())
        known = [f1(TRUE[rows], np.where(PRED == 2, 3, PRED)[rows], code) for code in range(2)]
        assert macro.values[name] == pytest.approx(sum(known) / 4, rel=1e-12)  # emu and fox: 0
        assert run("precision[fox]", y, p).values[name] == 0
        assert run("recall[emu]", y, p).values[name] == 0


def test_classes_of_groups_that_take_no_part_do_not_count() -> None:
    y, pred = [*named(TRUE), "fox", "fox"], [*named(PRED), "fox", "cat"]
    result = permutation_test(
        y,
        pred,
        sensitive_features=[*GROUP.tolist(), "c", "c"],
        groups=("a", "b"),
        metric="f1_macro",
        n_resamples=99,
        rng=1,
    )
    assert result.values == pytest.approx(run("f1_macro").values, rel=1e-12)


def test_scores_are_no_predictions_of_several_classes() -> None:
    """A score that is cut says True or False, which no label of three classes is equal to."""
    with pytest.raises(InputError, match=r"^y_true must be binary"):
        permutation_test(
            named(TRUE),
            y_score=np.linspace(0, 1, N),
            sensitive_features=GROUP,
            metric="accuracy",
            n_resamples=99,
        )


@pytest.mark.parametrize("metric", ["f1_macro", "accuracy", "error_rate"])
def test_strata_clusters_and_weights_work(metric: str) -> None:
    rng = np.random.default_rng(3)
    assert run(metric, control_features=rng.integers(0, 2, N)).n_strata == 2
    assert 0 < run(metric, cluster=np.arange(N)).pvalue <= 1
    same = run(metric, sample_weight=np.full(N, 2.5))
    assert same.values == pytest.approx(run(metric).values, rel=1e-12)


@pytest.mark.parametrize("clustered", [False, True], ids=["weights", "weighted clusters"])
@pytest.mark.parametrize(
    "metric",
    ["true_positive_rate", "balanced_accuracy", "recall[1]", "recall_macro"],
)
def test_a_class_that_a_group_lacks_has_no_recall_with_weights_either(
    metric: MetricLike, clustered: bool
) -> None:
    """Weighted totals are sums of centred numbers, of which zero must still come out as zero."""
    rng = np.random.default_rng(0)
    group = np.where(rng.random(301) < 0.4, "a", "b")
    y = ((rng.random(301) < 0.37) & (group == "b")).astype(int)
    cluster = [f"{one}{i // 3}" for i, one in enumerate(group)]
    with pytest.raises(InputError, match=r"^metric must be defined in every group; got"):
        permutation_test(
            y,
            rng.integers(0, 2, 301),
            sensitive_features=group,
            metric=metric,
            sample_weight=rng.uniform(0.3, 2, 301),
            cluster=cluster if clustered else None,
            n_resamples=99,
            rng=1,
        )
