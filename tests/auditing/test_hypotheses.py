"""Which hypotheses an audit adjusts together, and what it notes."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from statsmodels.stats.multitest import multipletests

from fairperm import Audit, FairpermWarning, audit
from fairperm.data.arguments import Adjustment
from fairperm.metrics import generalized_entropy_index, get_metric
from fairperm.metrics.definition import Metric
from fairperm.planning.power import detectable_gap
from fairperm.report.sentences import describe_error_rates
from fairperm.report.view import AuditView
from tests.support.audits import DATA, DATA_OF_TWO, N, quietly, twice_accuracy

METHOD = {"holm": "holm", "bh": "fdr_bh", "by": "fdr_by"}


# Hypotheses


@pytest.mark.parametrize("adjust", ["holm", "bh", "by"])
def test_adjusted_pvalues_are_those_of_statsmodels(adjust: str) -> None:
    rows = quietly(
        **DATA["few scores"],
        metrics=["selection_rate", "fpr", "ppv", "f1_score", "roc_auc"],
        adjust=adjust,
        n_resamples=999,
        rng=1,
    )
    assert rows.n_hypotheses == 15
    _, expected, *_ = multipletests([row.pvalue for row in rows], method=METHOD[adjust])
    assert [row.adjusted_pvalue for row in rows] == pytest.approx(expected.tolist())


def test_unadjusted_pvalues() -> None:
    rows = quietly(**DATA["few scores"], metrics=["fpr", "ppv"], adjust=None, rng=1)
    assert [row.adjusted_pvalue for row in rows] == [row.pvalue for row in rows]
    assert all("(p = " in row.reason or "(p < " in row.reason for row in rows)


@pytest.mark.parametrize("adjust", ["holm", "bh", "by"])
def test_a_metric_and_its_complement_are_one_hypothesis(adjust: str) -> None:
    options: dict[str, Any] = {**DATA["few scores"], "adjust": adjust, "n_resamples": 999, "rng": 1}
    without = quietly(**options, metrics=["tpr", "fpr"])
    both = quietly(**options, metrics=["tpr", "fnr", "fpr", "tnr"])
    assert both.n_hypotheses == without.n_hypotheses == 6
    found = {(row.metric, row.groups): row.adjusted_pvalue for row in both}
    for row in without:
        other = {"true_positive_rate": "false_negative_rate"}.get(row.metric, "true_negative_rate")
        assert found[row.metric, row.groups] == row.adjusted_pvalue
        assert found[other, row.groups] == row.adjusted_pvalue


@pytest.mark.parametrize("adjust", ["holm", "bh", None])
@pytest.mark.parametrize("margin", [None, 0.3])
def test_no_row_is_judged_by_a_smaller_pvalue_of_its_complement(
    adjust: Adjustment, margin: float | None
) -> None:
    """With weights their permutations differ: the last metric's p-value was that of both."""
    rng = np.random.default_rng(0)
    rows: dict[str, Any] = {
        "y_true": rng.integers(0, 2, 200),
        "y_pred": rng.integers(0, 2, 200),
        "sensitive_features": rng.choice(["a", "b"], 200),
        "sample_weight": np.exp(rng.normal(size=200)),
        "min_group_size": 5,
        "n_resamples": 199,
        "rng": 1,
    }
    names = ["tpr", "fnr"]
    found = [
        {row.metric: row for row in quietly(**rows, metrics=order, adjust=adjust, margin=margin)}
        for order in (names, names[::-1])
    ]
    (first, second), again = found[0].values(), found[1]
    assert first.pvalue is not None
    assert second.pvalue is not None
    assert first.pvalue != second.pvalue
    for row in (first, second):
        assert row.adjusted_pvalue == again[row.metric].adjusted_pvalue
        assert row.adjusted_pvalue is not None
        assert row.adjusted_pvalue >= max(first.pvalue, second.pvalue)
        assert row.adjusted_equivalence_pvalue == again[row.metric].adjusted_equivalence_pvalue


def test_a_direction_makes_two_hypotheses_of_complements() -> None:
    rows = audit(**DATA_OF_TWO, metrics=["tpr", "fnr"], alternative="greater", rng=1)
    assert rows.n_hypotheses == 2


def test_one_metric_under_two_names_is_one_hypothesis() -> None:
    metrics = {
        "a": "selection_rate",
        "b": "selection_rate",
        "c": twice_accuracy,
        "d": twice_accuracy,
    }
    a, b, c, d = rows = quietly(**DATA_OF_TWO, metrics=metrics, n_resamples=199, rng=1)
    assert rows.n_hypotheses == 2
    assert a.adjusted_pvalue == b.adjusted_pvalue
    assert c.adjusted_pvalue == d.adjusted_pvalue


def test_a_function_named_like_a_metric_is_a_hypothesis_of_its_own() -> None:
    metrics = {"false_negative_rate": twice_accuracy, "recall": "tpr"}
    rows = quietly(**DATA["few scores"], metrics=metrics, n_resamples=199, adjust="holm", rng=1)
    assert rows.n_hypotheses == 6
    _, expected, *_ = multipletests([row.pvalue for row in rows], method="holm")
    assert [row.adjusted_pvalue for row in rows] == pytest.approx(expected.tolist())


@pytest.mark.parametrize("adjust", ["holm", "bh"])
def test_attributes_are_families_of_their_own_on_request(adjust: str) -> None:
    given = DATA["few scores"]
    features = {"one": given["sensitive_features"], "two": np.arange(N) % 2}
    options = {"metrics": ["fpr", "ppv"], "adjust": adjust, "n_resamples": 99, "rng": 1}
    rows = quietly(**{**given, "sensitive_features": features}, **options, family="attribute")
    assert (rows.n_hypotheses, rows.families) == (8, {"one": 6, "two": 2})
    assert "8 hypotheses, those of each attribute by themselves (one 6, two 2)." in repr(rows)
    told = describe_error_rates(AuditView.of(rows))
    assert "Each attribute is a family of its own (one: 6 and two: 2)" in told
    for name, groups in features.items():
        alone = quietly(**{**given, "sensitive_features": {name: groups}}, **options)
        mine = rows.where(attribute=name)
        for field in ("adjusted_pvalue", "detectable_gap", "verdict"):
            assert [getattr(row, field) for row in mine] == [getattr(row, field) for row in alone]


def test_attributes_are_adjusted_together() -> None:
    given = DATA["few scores"]
    features = {"one": given["sensitive_features"], "two": np.arange(N) % 2}
    rows = quietly(**{**given, "sensitive_features": features}, metrics=["fpr", "ppv"], rng=1)
    assert rows.n_hypotheses == 2 * (3 + 1)
    _, expected, *_ = multipletests([row.pvalue for row in rows], method="holm")
    assert [row.adjusted_pvalue for row in rows] == pytest.approx(expected.tolist())


# Notes


def noted(**options: Any) -> Audit:
    given = {name: DATA["few scores"][name] for name in ("y_true", "y_score", "sensitive_features")}
    return audit(**{**given, "metrics": ["roc_auc", "brier_score"], "rng": 1, **options})


HARMONIC = sum(1 / rank for rank in range(1, 7))


@pytest.mark.parametrize(
    ("adjust", "factor"), [("holm", 6), ("bh", 6), ("by", 6 * HARMONIC), (None, 1)]
)
def test_too_few_resamples_for_any_disparity(adjust: str | None, factor: float) -> None:
    """The smallest p-value is 2/(n + 1); adjusted it may be as many times larger as hypotheses."""
    enough = next(n for n in itertools.count(1) if 2 * factor / (n + 1) <= 0.05)
    message = (
        rf"A p-value from {enough - 1} resamples is at least .* n_resamples={enough} or more\."
    )
    with pytest.warns(FairpermWarning, match=message):
        rows = noted(adjust=adjust, n_resamples=enough - 1)
    n = sum(row.verdict != "disparity" for row in rows)
    assert n == (2 if adjust in {"bh", "by"} else 6)
    joint = [one for one in rows.notes[1:] if "but no comparison of two does" in one]
    assert len(rows.notes) == 1 + len(joint)
    assert len(joint) == (2 if n == 6 else 0)
    assert f"{n} comparisons might not be called a disparity" in rows.notes[0]
    assert noted(adjust=adjust, n_resamples=enough).notes == ()


def test_no_pvalue_below_the_smallest_that_the_note_names() -> None:
    """Scores that tell the groups apart as well as can be, and still no disparity."""
    y_true, group = np.tile([0, 1], 200), np.repeat(["a", "b"], 200)
    y_score = np.where(group == "a", y_true, 1 - y_true)
    with (
        pytest.warns(FairpermWarning, match="No row of group 'a' shows how roc_auc"),
        pytest.warns(FairpermWarning, match="A p-value from 38 resamples is at least 0.0513, and"),
    ):
        (row,) = audit(
            y_true, y_score=y_score, sensitive_features=group, metrics="roc_auc", n_resamples=38
        )
    assert row.pvalue == pytest.approx(2 / 39)
    assert row.verdict == "inconclusive"
    with pytest.warns(FairpermWarning, match="No row of group 'a' shows how roc_auc"):
        (row,) = audit(
            y_true, y_score=y_score, sensitive_features=group, metrics="roc_auc", n_resamples=39
        )
    assert row.verdict == "disparity"


def test_enumerated_pvalues_need_no_resamples() -> None:
    rows = audit(**DATA_OF_TWO, metrics="tpr", n_resamples=999, alpha=1e-5, rng=1)
    assert all(row.result is not None and row.result.exact for row in rows)
    assert rows.notes == ()


def test_notes_of_single_tests_are_counted() -> None:
    group = np.where(np.arange(N) < 60, "small", "large")
    label = np.where((group == "small") & (np.arange(N) > 8), 0, np.arange(N) % 2)
    with pytest.warns(FairpermWarning, match="1 comparison has notes, in the rows") as caught:
        rows = audit(
            label,
            y_score=np.arange(N) % 7 / 7,
            sensitive_features=group,
            metrics=["roc_auc", "brier_score"],
            group_size_by="rows",
            n_resamples=199,
            rng=1,
        )
    first = rows.rows[0].result
    assert first is not None
    assert rows.notes[0].endswith(first.notes[0])
    assert caught[0].filename == __file__


def test_notes_of_groups_too_small_to_judge_are_not_repeated() -> None:
    group = np.where(np.arange(N) < 30, "small", np.where(np.arange(N) % 3, "b", "c"))
    label = np.arange(N) % 2
    rows = audit(
        label,
        y_score=np.where(group == "small", label, np.arange(N) % 7 / 7),
        sensitive_features=group,
        metrics="roc_auc",
        n_resamples=99,
        rng=1,
    )
    assert [row.verdict for row in rows] == ["inconclusive", "too small", "too small"]
    assert rows.rows[1].result is not None
    assert rows.rows[1].result.notes
    assert rows.notes == ()


def test_complements_have_the_same_detectable_gap() -> None:
    rows = audit(**DATA_OF_TWO, metrics=["tpr", "fnr"], rng=1)
    for row in rows:
        assert row.result is not None
        assert row.detectable_gap == pytest.approx(detectable_gap(row.result, 0.05, 0.8), abs=1e-9)


def test_metrics_of_one_name_are_different_hypotheses() -> None:
    rng = np.random.default_rng(0)
    group = np.repeat(["a", "b"], 1000)
    y_true = np.where(group == "a", rng.gamma(1, 1, 2000), rng.gamma(9, 1, 2000))
    y_pred = rng.gamma(4, 1, 2000)
    named = {
        "of prediction": generalized_entropy_index(2, of=lambda y_pred: y_pred),
        "of outcome": generalized_entropy_index(2, of=lambda y_true: y_true),
    }
    for names in (["of prediction", "of outcome"], ["of outcome", "of prediction"]):
        metrics = {name: named[name] for name in names}
        rows = audit(
            y_true, y_pred, sensitive_features=group, metrics=metrics, n_resamples=999, rng=1
        )
        assert rows.n_hypotheses == 2
        verdicts = {row.metric: row.verdict for row in rows}
        assert verdicts == {"of prediction": "inconclusive", "of outcome": "disparity"}


def test_one_metric_by_two_names_is_one_hypothesis() -> None:
    rows = audit(**DATA_OF_TWO, metrics={"a": "recall", "b": "tpr", "c": "fnr"}, rng=1)
    assert rows.n_hypotheses == 1


def test_a_metric_made_of_a_rate_is_not_its_complement() -> None:
    specificity = get_metric("tnr")
    assert isinstance(specificity, Metric)
    copied = replace(get_metric("tpr"), contributions=specificity.contributions)  # type: ignore[type-var]
    rows = audit(**DATA_OF_TWO, metrics={"a": "fnr", "b": copied}, rng=1)
    assert rows.n_hypotheses == 2


def test_parameters_are_named_by_all_their_digits() -> None:
    names = [generalized_entropy_index(alpha).name for alpha in (2, 2.0000001)]
    assert names == ["generalized_entropy_index(2)", "generalized_entropy_index(2.0000001)"]
