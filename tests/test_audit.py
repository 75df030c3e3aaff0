"""Each row is a test by itself; verdicts, hypotheses and notes follow from their definitions."""

from __future__ import annotations

import itertools
import math
import re
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests

from fairperm import FairpermWarning, audit, omnibus_test, permutation_test
from fairperm.planning import detectable_gap

if TYPE_CHECKING:
    from fairperm import Audit
    from fairperm._audit_data import AuditRow

N = 600
METHOD = {"holm": "holm", "bh": "fdr_bh", "by": "fdr_by"}


def _data(distinct_scores: int | None) -> dict[str, Any]:
    """Return labels, scores and predictions of three groups with different base rates."""
    rng = np.random.default_rng(4)
    group = rng.choice(["x", "y", "z"], N, p=[0.5, 0.3, 0.2])
    y_true = (rng.random(N) < np.where(group == "x", 0.6, 0.4)).astype(int)
    noise = rng.normal(size=N) * np.where(group == "z", 2, 1)
    y_score = 1 / (1 + np.exp(-(2 * y_true - 1 + noise)))
    if distinct_scores is not None:
        y_score = np.round(y_score * distinct_scores) / distinct_scores
    y_pred = (y_score + rng.normal(size=N) / 10 > 0.4).astype(int)
    return {"y_true": y_true, "y_pred": y_pred, "y_score": y_score, "sensitive_features": group}


DATA = {"few scores": _data(3), "unique scores": _data(None)}


def twice_accuracy(y_true: Any, y_pred: Any) -> float:
    return 2 * float(np.mean(y_true == y_pred))


METRICS: dict[str, tuple[Any, str]] = {  # a metric of each kind, and the column it reads
    "rate": ("false_positive_rate", "y_pred"),
    "rate of labels": ("accuracy", "y_pred"),
    "rate of no prediction": ("base_rate", "y_pred"),
    "table": ("f1_score", "y_pred"),
    "joint": ("equalized_odds", "y_pred"),
    "AUC": ("roc_auc", "y_score"),
    "probability": ("brier_score", "y_score"),
    "bins": ("expected_calibration_error", "y_score"),
    "regression": ("mean_squared_error", "y_pred"),
    "classes": ("macro_f1", "y_pred"),
    "function": (twice_accuracy, "y_pred"),
}


def quietly(**options: Any) -> Audit:
    """Return an audit, its notes unheard."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FairpermWarning)
        return audit(**options)


# Each row is what permutation_test says


def alone(data: dict[str, Any], kind: str, **options: Any) -> Any:
    metric, column = METRICS[kind]
    given = {name: data[name] for name in ("y_true", column, "sensitive_features")}
    return permutation_test(**{**given, "metric": metric, "n_resamples": 99, "rng": 5, **options})


def same(row: AuditRow, expected: Any) -> bool:
    """Tell whether two results are equal to the last bit."""
    assert row.result is not None
    mine, theirs = row.result.null_distribution, expected.null_distribution
    return bool(row.result.to_dict() == expected.to_dict() and mine.tobytes() == theirs.tobytes())


@pytest.fixture(scope="module", params=DATA.values(), ids=list(DATA))
def data(request: pytest.FixtureRequest) -> dict[str, Any]:
    return request.param  # type: ignore[no-any-return]


def everything(data: dict[str, Any], **options: Any) -> Audit:
    asked = {kind: metric for kind, (metric, _) in METRICS.items()}
    return quietly(**{**data, "metrics": asked, "n_resamples": 99, "rng": 5, **options})


def test_pairs_are_as_if_tested_alone(data: dict[str, Any]) -> None:
    rows = list(everything(data))
    asked = list(itertools.product(METRICS, itertools.combinations("xyz", 2)))
    assert [(row.metric, row.groups) for row in rows] == asked
    for row, (kind, pair) in zip(rows, asked, strict=True):
        assert same(row, alone(data, kind, groups=pair)), kind


def test_a_reference_is_the_second_group_of_every_pair(data: dict[str, Any]) -> None:
    rows = list(everything(data, compare="reference", reference="y"))
    asked = list(itertools.product(METRICS, [("x", "y"), ("z", "y")]))
    assert [(row.metric, row.groups) for row in rows] == asked
    for row, (kind, pair) in zip(rows, asked, strict=True):
        assert same(row, alone(data, kind, groups=pair)), kind


def test_the_reference_is_the_largest_group_unless_named() -> None:
    rows = everything(DATA["few scores"], compare="reference")
    assert {row.groups for row in rows} == {("y", "x"), ("z", "x")}


def test_the_rest_are_all_others(data: dict[str, Any]) -> None:
    rows = list(everything(data, compare="rest"))
    asked = list(itertools.product(METRICS, "xyz"))
    assert [(row.metric, row.groups) for row in rows] == [
        (kind, (group, "all others")) for kind, group in asked
    ]
    for row, (kind, group) in zip(rows, asked, strict=True):
        others = np.where(data["sensitive_features"] == group, group, "all others")
        expected = alone(data, kind, sensitive_features=others, groups=(group, "all others"))
        assert same(row, expected), kind


def test_the_rest_have_a_name_that_no_group_has() -> None:
    group = np.where(DATA["few scores"]["sensitive_features"] == "x", "all others", "y")
    group[:100] = "z"
    rows = list(everything(DATA["few scores"], compare="rest", sensitive_features=group))
    assert rows[0].groups == ("all others", "all others*")
    assert rows[0].sizes == ((group == "all others").sum(), (group != "all others").sum())


def test_two_groups_have_no_rest() -> None:
    group = np.where(DATA["few scores"]["sensitive_features"] == "x", "x", "y")
    rows = list(everything(DATA["few scores"], compare="rest", sensitive_features=group))
    assert {row.groups for row in rows} == {("x", "y")}


@pytest.mark.parametrize(
    "options",
    [
        {"alternative": "greater"},
        {"scheme": "pooled"},
        {"variance": "wald"},
        {"variance": None},
        {"confidence_level": 0.8},
        {"n_jobs": 2},
        {"control_features": np.arange(N) % 3},
        {"control_features": np.arange(N) % 2, "stratum_weights": {0: 1, 1: 3}},
        {"cluster": np.arange(N) // 2, "sensitive_features": np.repeat(list("xyz"), N // 3)},
        {"sample_weight": np.arange(N) % 4 + 0.5},
    ],
    ids=lambda options: " ".join(options),
)
def test_options_reach_every_test(options: dict[str, Any]) -> None:
    given = DATA["few scores"]
    rows = quietly(**{**given, "metrics": "fpr", "n_resamples": 99, "rng": 5, **options})
    for row in rows:
        assert same(row, alone(given, "rate", groups=row.groups, **options))


def test_few_scores_with_predictions_of_their_own_and_weights() -> None:
    """Rows that are equal but for what a metric does not read must not change its draws."""
    weight = np.arange(N) % 2 + 1
    rows = quietly(
        **DATA["few scores"],
        metrics=["fpr", "roc_auc", "brier_score"],
        sample_weight=weight,
        n_resamples=99,
        rng=5,
    )
    for row in rows:
        kind = {"false_positive_rate": "rate", "roc_auc": "AUC"}.get(row.metric, "probability")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FairpermWarning)
            expected = alone(DATA["few scores"], kind, groups=row.groups, sample_weight=weight)
        assert row.pvalue == expected.pvalue
        assert row.difference == pytest.approx(expected.difference, abs=1e-12)


def test_omnibus_is_as_if_tested_alone(data: dict[str, Any]) -> None:
    for one in everything(data).omnibus:
        metric, column = METRICS[one.metric]
        given = {name: data[name] for name in ("y_true", column, "sensitive_features")}
        expected = omnibus_test(**given, metric=metric, n_resamples=99, rng=5)
        assert one.result is not None
        assert one.result.to_dict() == expected.to_dict(), one.metric


def test_predictions_are_cut_from_scores_if_there_are_none() -> None:
    given = {name: value for name, value in DATA["unique scores"].items() if name != "y_pred"}
    rows = quietly(**given, metrics=["fpr", "roc_auc"], threshold=0.7, n_resamples=99, rng=5)
    for row in rows:
        metric = row.metric
        options: dict[str, Any] = {"threshold": 0.7} if metric != "roc_auc" else {}
        expected = permutation_test(
            **given, metric=metric, groups=row.groups, n_resamples=99, rng=5, **options
        )
        assert same(row, expected)


def test_a_seed_gives_the_same_audit_again() -> None:
    first = everything(DATA["few scores"], rng=None)
    again = everything(DATA["few scores"], rng=first.seed)
    assert first.to_dict() == again.to_dict()


# Verdicts


def selected(*counts: tuple[int, int]) -> dict[str, Any]:
    """Return groups 0, 1, … with so many rows selected of so many."""
    y_pred = np.concatenate([np.arange(n) < k for k, n in counts]).astype(int)
    group = np.repeat(np.arange(len(counts)), [n for _, n in counts])
    return {"y_true": y_pred, "y_pred": y_pred, "sensitive_features": group}


def one_row(*counts: tuple[int, int], **options: Any) -> AuditRow:
    (row,) = audit(**selected(*counts), metrics="selection_rate", rng=1, **options)
    return row


@pytest.mark.parametrize(
    ("counts", "margin", "verdict", "reason"),
    [
        # no margin: significant or not
        (((80, 100), (50, 100)), None, "disparity", r"adjusted p 1\.\d+e-05 is at most 0\.05\."),
        (((52, 100), (50, 100)), None, "inconclusive", "That is no evidence that there is none."),
        (((500, 1000), (500, 1000)), None, "inconclusive", "chance alone could make such a gap"),
        # margin
        (((80, 100), (50, 100)), 0.1, "disparity", "and the gap is beyond the margin of 0.1."),
        (((50, 100), (80, 100)), 0.1, "disparity", "and the gap is beyond the margin of 0.1."),
        (((6300, 10000), (6000, 10000)), 0.1, "equivalent", "of a gap beyond the margin of 0.1"),
        (((5000, 10000), (5000, 10000)), 0.1, "equivalent", "is at most 0.05"),
        (((690, 1000), (600, 1000)), 0.1, "inconclusive", "but the gap is not beyond the margin"),
        (((50, 100), (50, 100)), 0.1, "inconclusive", "That is no evidence that there is none."),
        (((62, 100), (50, 100)), 0.1, "inconclusive", "chance alone could make such a gap"),
        (((60, 100), (50, 100)), 0.1, "inconclusive", "chance alone"),  # just at the margin
        # size
        (((49, 49), (0, 100)), None, "too small", "0 has 49 rows, fewer than the 50 asked for."),
        (((0, 100), (49, 49)), 0.1, "too small", "1 has 49 rows, fewer than the 50 asked for."),
        (((49, 49), (0, 9)), None, "too small", "0 has 49 rows and 1 has 9 rows, fewer than"),
        (((50, 50), (0, 50)), None, "disparity", "is at most 0.05"),
    ],
)
def test_verdicts(
    counts: tuple[tuple[int, int], tuple[int, int]],
    margin: float | None,
    verdict: str,
    reason: str,
) -> None:
    row = one_row(*counts, margin=margin)
    assert row.verdict == verdict
    assert re.search(reason, row.reason)
    assert row.margin == margin
    if verdict == "too small":
        assert row.adjusted_pvalue is None
        assert row.equivalence_pvalue is None
    else:
        assert row.adjusted_pvalue == row.pvalue  # a single hypothesis
        assert (row.equivalence_pvalue is None) == (margin is None)


def test_verdicts_by_the_definition_on_many_tables() -> None:
    """The definition written out, on p-values that scipy finds: Fisher's, and z at the margin."""
    rng = np.random.default_rng(3)
    seen = set()
    for _ in range(40):
        n = int(rng.choice([60, 400, 3000]))
        rates = 0.5 + rng.choice([0, 0.04, 0.09, 0.3]) * np.array([0.5, -0.5])
        first, second = rng.binomial(n, rates).tolist()
        row = one_row((first, n), (second, n), margin=0.1)
        gap = (first - second) / n
        significant = stats.fisher_exact([[first, n - first], [second, n - second]])[1] <= 0.05
        assert row.equivalence_pvalue is not None
        if significant and abs(gap) > 0.1:
            expected = "disparity"
        elif row.equivalence_pvalue <= 0.05:
            expected = "equivalent"
            error = math.sqrt(sum(k / n * (1 - k / n) / n for k in (first, second)))
            assert (0.1 - abs(gap)) / error > 1.6  # the normal quantile is 1.645
        else:
            expected = "inconclusive"
        assert row.verdict == expected
        seen.add(expected)
    assert seen == {"disparity", "equivalent", "inconclusive"}


def test_a_tiny_group_keeps_its_numbers() -> None:
    row = one_row((9, 10), (100, 200))
    assert row.verdict == "too small"
    assert row.values == (0.9, 0.5)
    assert row.difference == pytest.approx(0.4)
    assert row.pvalue is not None
    assert row.detectable_gap is not None
    assert 0.2 < row.detectable_gap <= 0.5


@pytest.mark.parametrize(
    ("least", "verdict"), [(1, "disparity"), (40, "disparity"), (41, "too small")]
)
def test_min_group_size(least: int, verdict: str) -> None:
    assert one_row((39, 40), (50, 100), min_group_size=least).verdict == verdict


def test_small_groups_are_not_counted_as_hypotheses() -> None:
    rows = audit(**selected((30, 60), (50, 60), (3, 9)), metrics="selection_rate", rng=1)
    assert [row.verdict for row in rows] == ["disparity", "too small", "too small"]
    assert rows.n_hypotheses == 1
    assert rows.rows[0].adjusted_pvalue == rows.rows[0].pvalue
    assert [(one.group, one.rows, one.is_small) for one in rows.groups] == [
        (0, 60, False),
        (1, 60, False),
        (2, 9, True),
    ]


def test_nothing_to_judge() -> None:
    rows = audit(**selected((3, 9), (2, 9), (1, 9)), metrics=["selection_rate", "fpr"], rng=1)
    assert {row.verdict for row in rows} == {"too small"}
    assert rows.n_hypotheses == 0
    assert {one.reason for one in rows.omnibus} == {"0 groups are large enough; it takes three."}


def test_a_metric_without_a_value_in_a_group() -> None:
    y_true = np.tile([1, 0], 150)
    group = np.repeat(["a", "b", "c"], 100)
    y_true[group == "b"] = 0  # no positives
    y_pred = np.tile([1, 1, 0], 100)
    rows = audit(y_true, y_pred, sensitive_features=group, metrics=["tpr", "selection_rate"], rng=1)
    by_pair = {row.groups: row for row in rows.where(metric="true_positive_rate")}
    for pair in (("a", "b"), ("b", "c")):
        row = by_pair[pair]
        assert row.verdict == "too small"
        assert row.result is None
        assert row.values == (None, None)
        for name in ("difference", "pvalue", "adjusted_pvalue", "confidence_interval"):
            assert getattr(row, name) is None
        assert row.sizes == (100, 100)
        assert "true_positive_rate of group 'b', which has no positives" in row.reason
    assert by_pair["a", "c"].verdict == "inconclusive"
    assert rows.n_hypotheses == 1 + 3


@pytest.mark.parametrize("adjust", ["holm", "bh", "by", None])
def test_gaps_are_detectable_at_the_adjusted_level(adjust: str | None) -> None:
    rows = audit(
        **selected((30, 60), (35, 70), (3, 9), (200, 300)),
        metrics="selection_rate",
        adjust=adjust,
        alpha=0.1,
        rng=1,
    )
    assert rows.n_hypotheses == 3
    for row in rows:
        assert row.result is not None
        level = 0.1 if adjust is None else 0.1 / 3
        assert row.detectable_gap == detectable_gap(row.result, level, 0.8)


def test_a_level_above_the_power_needs_no_gap() -> None:
    assert one_row((30, 60), (31, 60), alpha=0.9).detectable_gap == 0


# Margins


def test_margins_of_single_metrics() -> None:
    rows = audit(
        **selected((6300, 10000), (6000, 10000)),
        metrics=["selection_rate", "base_rate"],
        margin={"selection_rate": 0.1},
        rng=1,
    )
    first, second = rows
    assert (first.margin, first.verdict) == (0.1, "equivalent")
    assert (second.margin, second.verdict) == (None, "disparity")
    assert second.equivalence_pvalue is None


@pytest.mark.parametrize("name", ["tpr", "recall", "true_positive_rate"])
def test_margins_by_any_name_of_a_metric(name: str) -> None:
    (row,) = audit(**DATA_OF_TWO, metrics=["tpr"], margin={name: 0.3}, rng=1)
    assert row.margin == 0.3


DATA_OF_TWO: dict[str, Any] = {
    "y_true": np.arange(400) % 2,
    "y_pred": np.arange(400) % 3 % 2,
    "sensitive_features": np.where(np.arange(400) < 180, "a", "b"),
}


def test_complements_may_have_margins_of_their_own() -> None:
    """Each margin has its own p-value, though the hypothesis of no gap is one."""
    rows = audit(
        **DATA_OF_TWO,
        metrics=["tpr", "fnr"],
        margin={"tpr": 0.3, "fnr": 0.05},
        adjust=None,
        rng=1,
    )
    first, second = rows
    for row in rows:
        (single,) = audit(
            **DATA_OF_TWO, metrics=[row.metric], margin=row.margin, adjust=None, rng=1
        )
        assert row.equivalence_pvalue == single.equivalence_pvalue
    assert first.equivalence_pvalue is not None
    assert second.equivalence_pvalue is not None
    assert first.equivalence_pvalue < second.equivalence_pvalue
    assert (first.verdict, second.verdict) == ("equivalent", "inconclusive")


def test_only_one_complement_has_a_margin() -> None:
    first, second = audit(**DATA_OF_TWO, metrics=["tpr", "fnr"], margin={"tpr": 0.3}, rng=1)
    assert first.equivalence_pvalue is not None
    assert (second.margin, second.equivalence_pvalue) == (None, None)


def test_a_joint_metric_is_never_called_equivalent() -> None:
    (row,) = audit(**DATA_OF_TWO, metrics="equalized_odds", margin=0.9, rng=1)
    assert row.verdict == "inconclusive"
    assert row.equivalence_pvalue is None


def test_without_an_error_nothing_is_called_equivalent() -> None:
    (row,) = audit(**DATA_OF_TWO, metrics="tpr", margin=0.9, variance=None, rng=1)
    assert row.equivalence_pvalue is None


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
    assert all(row.reason.startswith("p ") for row in rows)


@pytest.mark.parametrize("adjust", ["holm", "bh", "by", "maxt"])
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


def test_attributes_are_adjusted_together() -> None:
    given = DATA["few scores"]
    features = {"one": given["sensitive_features"], "two": np.arange(N) % 2}
    rows = quietly(**{**given, "sensitive_features": features}, metrics=["fpr", "ppv"], rng=1)
    assert rows.n_hypotheses == 2 * (3 + 1)
    _, expected, *_ = multipletests([row.pvalue for row in rows], method="holm")
    assert [row.adjusted_pvalue for row in rows] == pytest.approx(expected.tolist())


def test_joint_draws_are_at_least_each_tests_own_pvalue() -> None:
    rows = quietly(
        **DATA["few scores"],
        metrics=["selection_rate", "fpr", "f1_score", "roc_auc"],
        adjust="maxt",
        n_resamples=999,
        rng=1,
    )
    for row in rows:
        assert row.pvalue is not None
        assert row.adjusted_pvalue is not None
        assert row.pvalue <= row.adjusted_pvalue <= 1


# Notes


def noted(**options: Any) -> Audit:
    given = {name: DATA["few scores"][name] for name in ("y_true", "y_score", "sensitive_features")}
    return audit(**{**given, "metrics": ["roc_auc", "brier_score"], "rng": 1, **options})


HARMONIC = sum(1 / rank for rank in range(1, 7))


@pytest.mark.parametrize(
    ("adjust", "factor"), [("holm", 6), ("bh", 6), ("by", 6 * HARMONIC), ("maxt", 1), (None, 1)]
)
def test_too_few_resamples_for_any_disparity(adjust: str | None, factor: float) -> None:
    """The smallest p-value is 1/(n + 1); adjusted it may be as many times larger as hypotheses."""
    enough = next(n for n in itertools.count(1) if factor / (n + 1) <= 0.05)
    message = (
        rf"A p-value from {enough - 1} resamples is at least .* n_resamples={enough} or more\."
    )
    with pytest.warns(FairpermWarning, match=message):
        rows = noted(adjust=adjust, n_resamples=enough - 1)
    assert len(rows.notes) == 1
    assert "6 of the comparisons may not be called a disparity" in rows.notes[0]
    assert noted(adjust=adjust, n_resamples=enough).notes == ()


def test_no_pvalue_below_the_smallest_that_the_note_names() -> None:
    """Scores that tell the groups apart as well as can be, and still no disparity."""
    y_true, group = np.tile([0, 1], 200), np.repeat(["a", "b"], 200)
    y_score = np.where(group == "a", y_true, 1 - y_true)
    with pytest.warns(FairpermWarning, match="A p-value from 18 resamples is at least 0.0526, and"):
        (row,) = audit(
            y_true, y_score=y_score, sensitive_features=group, metrics="roc_auc", n_resamples=18
        )
    assert row.pvalue == pytest.approx(1 / 19)
    assert row.verdict == "inconclusive"
    (row,) = audit(
        y_true, y_score=y_score, sensitive_features=group, metrics="roc_auc", n_resamples=19
    )
    assert row.verdict == "disparity"


def test_enumerated_pvalues_need_no_resamples() -> None:
    rows = audit(**DATA_OF_TWO, metrics="tpr", n_resamples=999, alpha=1e-5, rng=1)
    assert all(row.result is not None and row.result.exact for row in rows)
    assert rows.notes == ()


def test_notes_of_single_tests_are_counted() -> None:
    group = np.where(np.arange(N) < 60, "small", "large")
    label = np.where((group == "small") & (np.arange(N) > 8), 0, np.arange(N) % 2)
    with pytest.warns(FairpermWarning, match="1 comparison has notes of its own") as caught:
        rows = audit(
            label,
            y_score=np.arange(N) % 7 / 7,
            sensitive_features=group,
            metrics=["roc_auc", "brier_score"],
            n_resamples=199,
            rng=1,
        )
    first = rows.rows[0].result
    assert first is not None
    assert rows.notes[0].endswith(first.notes[0])
    assert caught[0].filename == __file__


def test_notes_of_groups_too_small_to_judge_are_not_repeated() -> None:
    group = np.where(np.arange(N) < 30, "small", "large")
    rows = audit(
        np.arange(N) % 2,
        y_score=np.arange(N) % 7 / 7,
        sensitive_features=group,
        metrics="roc_auc",
        n_resamples=19,
        rng=1,
    )
    assert rows.rows[0].result is not None
    assert rows.rows[0].result.notes
    assert rows.notes == ()


def test_complements_have_the_same_detectable_gap() -> None:
    rows = audit(**DATA_OF_TWO, metrics=["tpr", "fnr"], rng=1)
    for row in rows:
        assert row.result is not None
        assert row.detectable_gap == pytest.approx(detectable_gap(row.result, 0.05, 0.8), abs=1e-9)
