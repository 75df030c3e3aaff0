"""Means over classes, and metrics of one class: variances, levels, bad inputs, audits."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.stats import binom
from sklearn import metrics as sk

import fairperm
from fairperm.metrics import get_metric

Array = NDArray[np.float64]

THEIRS: dict[str, Callable[..., Any]] = {
    "recall_macro": sk.recall_score,
    "precision_macro": sk.precision_score,
    "f1_macro": sk.f1_score,
}
by_metric = pytest.mark.parametrize("metric", THEIRS)
ANIMALS = np.array(["cat", "dog", "emu"])
N = 300


def draw(seed: int = 0, n: int = N) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    code = rng.choice(3, n, p=[0.5, 0.3, 0.2])
    guess = np.where(rng.random(n) < 0.6, code, rng.integers(0, 3, n))
    group = np.array(["a", "b"])[rng.integers(0, 2, n)]
    return {"y_true": ANIMALS[code], "y_pred": ANIMALS[guess], "sensitive_features": group}


def run(data: dict[str, Any], metric: str, **options: Any) -> fairperm.PermutationTestResult:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fairperm.FairpermWarning)
        given = {"n_resamples": 99, "rng": 1, "progress": False, **options}
        return fairperm.permutation_test(**data, metric=metric, **given)


@by_metric
def test_standard_errors_are_those_of_a_large_bootstrap(metric: str) -> None:
    """A bootstrap of 4,000 samples knows a standard error within about 1.1 %: four times that."""
    data, rng = draw(n=1200), np.random.default_rng(1)
    found = run(data, metric)
    for group, error in found.standard_errors.items():
        mine = np.flatnonzero(data["sensitive_features"] == group)
        codes = [np.searchsorted(ANIMALS, data[name][mine]) for name in ("y_true", "y_pred")]
        cells = np.bincount(3 * codes[0] + codes[1], minlength=9)
        samples = rng.multinomial(len(mine), cells / len(mine), 4000).reshape(-1, 3, 3)
        hits, true, guessed = np.einsum("nii->ni", samples), samples.sum(2), samples.sum(1)
        values = {
            "recall_macro": hits / true,
            "precision_macro": hits / guessed,
            "f1_macro": 2 * hits / (true + guessed),
        }[metric].mean(axis=1)
        assert error == pytest.approx(values.std(), rel=0.045)


def test_a_class_is_meant_by_its_name_whatever_its_type() -> None:
    data, code = draw(), np.searchsorted(ANIMALS, draw()["y_true"])
    guess = np.searchsorted(ANIMALS, data["y_pred"])
    expected = run(data, "recall[dog]")
    for labels in ([0, 1, 2], [0.0, 1.0, 2.0], ["0", "1", "2"]):
        named = data | {"y_true": np.array(labels)[code], "y_pred": np.array(labels)[guess]}
        assert run(named, "recall[1]").pvalue == expected.pvalue
        assert run(named, "Recall[1]").metric == "recall[1]"


def test_equal_metrics_of_a_class_are_one_hypothesis() -> None:
    audit = fairperm.audit(
        **draw(n=900), metrics=["recall[cat]", "tpr[cat]", "fnr[cat]", "recall[dog]"], rng=1
    )
    assert audit.n_hypotheses == 2


@pytest.mark.parametrize("word", ["roc_auc", "gini"])
def test_the_auc_of_a_class_is_that_of_its_scores(word: str) -> None:
    data = draw()
    del data["y_pred"]
    scores = np.random.default_rng(3).normal(size=(N, 3)) + (data["y_true"][:, None] == ANIMALS)
    of_class = run(data | {"y_score": scores}, f"{word}[dog]")
    binary = data | {"y_true": data["y_true"] == "dog", "y_score": scores[:, 1]}
    alone = run(binary, word)
    assert of_class.values == alone.values
    assert of_class.standard_error == alone.standard_error
    assert (of_class.pvalue, of_class.scheme) == (alone.pvalue, "within_label")
    mapped = dict(zip(ANIMALS.tolist(), scores.T, strict=True))
    assert run(data | {"y_score": mapped}, f"{word}[dog]").pvalue == alone.pvalue


@pytest.mark.parametrize("metric", ["false_positive_rate", "balanced_accuracy"])
def test_rows_of_all_other_classes_are_exchanged_together(metric: str) -> None:
    """Exchanged within each class they would keep their mix, which alone moves the gap."""
    data = draw()
    binary = data | {name: data[name] == "cat" for name in ("y_true", "y_pred")}
    ours, theirs = (
        run(given, name, scheme="within_label", n_resamples=9999)
        for given, name in ((data, f"{metric}[cat]"), (binary, metric))
    )
    assert ours.pvalue == pytest.approx(theirs.pvalue, abs=0.02)


@pytest.mark.parametrize("metric", [*THEIRS, "recall[cat]", "f1[dog]"])
def test_the_change_between_two_models_is_the_change_of_the_values(metric: str) -> None:
    data = draw(n=600)
    new = np.where(np.random.default_rng(5).random(600) < 0.5, data["y_true"], data["y_pred"])
    found = fairperm.compare_models(**data, y_pred_new=new, metric=metric, n_resamples=99, rng=1)
    old, later = (run(data | {"y_pred": one}, metric) for one in (data["y_pred"], new))
    for group, change in found.group_changes.items():
        assert change.old == pytest.approx(old.values[group])
        assert change.new == pytest.approx(later.values[group])


# -- Audits -----------------------------------------------------------------------------------


def test_an_audit_of_several_classes_has_metrics_of_them_by_default() -> None:
    assert fairperm.audit(**draw(), rng=1, n_resamples=99).settings["metrics"] == [
        *("accuracy", "recall_macro", "precision_macro"),
        *("recall[cat]", "recall[dog]", "recall[emu]"),
    ]
    scored = draw() | {"y_score": np.random.default_rng(3).normal(size=(N, 3))}
    del scored["y_pred"]
    assert fairperm.audit(**scored, rng=1, n_resamples=99).settings["metrics"] == [
        *("roc_auc_ovr", "roc_auc[cat]", "roc_auc[dog]", "roc_auc[emu]")
    ]
    two = draw() | {name: draw()[name] == "cat" for name in ("y_true", "y_pred")}
    found = fairperm.audit(**two, rng=1, n_resamples=99).settings["metrics"]
    assert found == ["selection_rate", "false_positive_rate", "false_negative_rate"]


def test_rows_of_each_class_are_those_of_their_metrics() -> None:
    audit = fairperm.audit(**draw(), metrics={"found": "recall_per_class"}, rng=1)
    found = {row.metric: row.result for row in audit if row.result is not None}
    assert list(found) == ["found[cat]", "found[dog]", "found[emu]"]
    for animal in ANIMALS:
        alone = run(draw(), f"recall[{animal}]", n_resamples="auto")
        assert found[f"found[{animal}]"].pvalue == alone.pvalue


# -- Bad inputs -------------------------------------------------------------------------------

DATA = draw()
IN_A = DATA["sensitive_features"] == "a"
REFUSED: dict[str, tuple[str, dict[str, Any], str]] = {
    "a class that never occurs": (
        "recall[kat]",
        {},
        r"metric must be of a class that occurs \('cat', 'dog', 'emu'\); got 'recall\[kat\]'. "
        r"Did you mean 'recall\[cat\]'\?",
    ),
    "no class": ("recall[]", {}, "metric must be of a class that occurs"),
    "a metric of numbers": (
        "mse[cat]",
        {},
        r"metric must be one that metric_names\(\) lists; got 'mse\[cat\]'. One class is compared "
        r"with the rest by a metric of binary labels: 'recall\[cat\]'",
    ),
    "the name it had": ("macro_f1", {}, "got 'macro_f1'. Did you mean 'f1_macro'"),
    "all classes in one test": (
        "recall_per_class",
        {},
        r"metric must be one metric outside of audit\(\); got 'recall_per_class'. Name a class: "
        r"'recall\[cat\]'",
    ),
    "one class": (
        "recall_macro",
        {"y_true": np.full(N, "cat")},
        "y_true must be made of two classes or more; got 'cat'. recall_macro is a mean over",
    ),
    "a class that a group lacks": (
        "recall_macro",
        {"y_true": np.where(IN_A & (DATA["y_true"] == "cat"), "dog", DATA["y_true"])},
        "metric must be defined in every group; got recall_macro of group 'a', which has no rows "
        "of class 'cat'",
    ),
    "a class that is never predicted in a group": (
        "precision_macro",
        {"y_pred": np.where(IN_A & (DATA["y_pred"] == "cat"), "dog", DATA["y_pred"])},
        "got precision_macro of group 'a', which has no rows predicted as class 'cat'",
    ),
    "a positive label": (
        "recall_macro",
        {"pos_label": "cat"},
        "pos_label must be left out for recall_macro; got 'cat'. It compares each class",
    ),
    "a positive label for a class": (
        "recall[cat]",
        {"pos_label": "dog"},
        r"pos_label must be left out for recall\[cat\]; got 'dog'",
    ),
    "a binary metric of three classes": (
        "recall",
        {},
        r"y_true must be binary .* Pass pos_label: .* such as 'recall_macro' or 'recall\[cat\]'",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name: str) -> None:
    metric, given, match = REFUSED[name]
    with pytest.raises(fairperm.InputError, match=match):
        run(DATA | given, metric)


def test_a_predicted_class_that_no_row_has_does_not_count_for_recall() -> None:
    """That is balanced_accuracy_score of scikit-learn, whose recall_score counts it as 0."""
    data = draw()
    data["y_pred"] = np.where(data["y_pred"] == "emu", "fox", data["y_pred"])
    for group, found in run(data, "recall_macro").values.items():
        mine = data["sensitive_features"] == group
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = sk.balanced_accuracy_score(data["y_true"][mine], data["y_pred"][mine])
        assert found == pytest.approx(expected)


# -- Levels -----------------------------------------------------------------------------------

# Sizes, shares of the classes, and the share of rows predicted at random in the first group; in
# the second it is what makes the groups equal in the metric. Their guesses differ, too.
Setting = tuple[tuple[int, int], tuple[list[float], list[float]], float]
SETTINGS: dict[str, Setting] = {
    "shares": ((300, 300), ([0.6, 0.3, 0.1], [0.2, 0.3, 0.5]), 0.45),
    "rare classes": ((250, 1500), ([0.08, 0.12, 0.8], [0.4, 0.3, 0.3]), 0.45),
    "five classes": ((900, 150), ([0.1, 0.1, 0.1, 0.1, 0.6], [0.2] * 5), 0.45),
}
CONTROL: Setting = ((400, 3000), ([0.05, 0.05, 0.9], [1 / 3] * 3), 0.15)
N_SETS = 300


def table_of(share: list[float], errors: float, guess: Array) -> Array:
    """Return the shares of labels (rows) and predictions (columns)."""
    right = np.eye(len(share))
    return np.array(share)[:, None] * ((1 - errors) * right + errors * guess)


def value_of(table: Array, metric: str) -> float:
    hits, true, guessed = np.diag(table), table.sum(axis=1), table.sum(axis=0)
    of_class = {
        "recall_macro": hits / true,
        "precision_macro": hits / guessed,
        "f1_macro": 2 * hits / (true + guessed),
    }
    return float(of_class[metric].mean())


def count_rejections(setting: Setting, metric: str, **options: Any) -> int:
    sizes, shares, first_errors = setting
    k = len(shares[0])
    uneven = np.arange(1, k + 1) / (k * (k + 1) / 2)
    first = table_of(shares[0], first_errors, np.full(k, 1 / k))
    target = value_of(first, metric)
    errors = brentq(
        lambda one: value_of(table_of(shares[1], one, uneven), metric) - target, 0.001, 0.999
    )
    tables = first, table_of(shares[1], errors, uneven)
    rng, rejected = np.random.default_rng(7), 0
    for seed in range(N_SETS):
        pairs = zip(sizes, tables, strict=True)
        cell = np.concatenate([rng.choice(k * k, n, p=table.ravel()) for n, table in pairs])
        data = {"y_true": cell // k, "y_pred": cell % k}
        data |= {"sensitive_features": np.repeat([0, 1], sizes)}
        rejected += run(data, metric, n_resamples=319, rng=seed, **options).pvalue <= 0.05
    return rejected


@pytest.mark.validate
@by_metric
@pytest.mark.parametrize("setting", SETTINGS)
def test_the_level_holds_where_groups_are_equal_in_it_only(setting: str, metric: str) -> None:
    assert count_rejections(SETTINGS[setting], metric) <= binom.ppf(0.999, N_SETS, 0.05)


@pytest.mark.validate
@by_metric
def test_without_studentizing_the_level_does_not_hold(metric: str) -> None:
    rejected = count_rejections(CONTROL, metric, variance=None, scheme="pooled")
    assert rejected > binom.ppf(0.999, N_SETS, 0.05)


def test_names_are_known_everywhere() -> None:
    assert {*THEIRS} <= {*fairperm.metric_names()}
    assert get_metric("recall[cat]").identity == get_metric("tpr[cat]").identity
