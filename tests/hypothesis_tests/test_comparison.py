"""Strata that cannot be compared change no number of any test, to the last bit.

They lack a group, or rows of a rate's denominator in one. Their rows have far larger numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fairperm
from fairperm import permutation_test
from fairperm.metrics import get_metric

pytestmark = pytest.mark.filterwarnings("ignore::fairperm.FairpermWarning")

METRICS = fairperm.metric_names()
OTHERS = ("alone in a", "alone in b")  # strata with rows of one group
N_ROWS = 144
OPTIONS: dict[str, Any] = {"n_resamples": 19, "rng": 1}


def _draw(n: int, seed: int, size: float) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    outcome = size * rng.gamma(3, size=n).round(3) + 0.5
    return {
        "label": rng.random(n) < 0.5,
        "decision": rng.random(n) < 0.4,
        "decision_new": rng.random(n) < 0.5,
        "score": rng.random(n).round(3),
        "score_new": rng.random(n).round(3),
        "outcome": outcome,
        "prediction": outcome + size * rng.random(n).round(3),
        "weight": size * rng.integers(1, 4, n),
    }


def _sample(n_strata: int, *, others: bool) -> dict[str, Any]:
    """Return rows of groups a and b in some strata, with ``others`` in two more strata."""
    each = N_ROWS // n_strata
    found = _draw(N_ROWS, seed=0, size=1.0)
    found["group"] = np.tile(np.repeat(["a", "b"], each // 2), n_strata)
    found["stratum"] = np.repeat([f"shared {i}" for i in range(n_strata)], each)
    found["cluster"] = np.array([f"c{i // 3}" for i in range(N_ROWS)])
    found["period"] = np.tile(["2023", "2024"], N_ROWS // 2)
    if others:
        more = _draw(40, seed=9, size=1000.0)
        more["group"] = np.repeat(["a", "b"], 20)
        more["stratum"] = np.repeat(OTHERS, 20)
        more["cluster"] = np.array([f"d{i // 2}" for i in range(40)])
        more["period"] = np.repeat("2023", 40)
        parts = ((found[name][:31], more[name], found[name][31:]) for name in found)
        found = dict(zip(found, map(np.concatenate, parts), strict=True))
    return found


def _columns(metric: object, rows: dict[str, Any]) -> dict[str, Any]:
    kind = get_metric(metric).kind
    names = {"y_true": "label", "y_pred": "decision"}
    if kind == "class_scores":
        label = np.where(rows["label"], "u", "v")
        scores = {"u": rows["score"], "v": 1 - rows["score"]}
        return {"y_true": label, "y_score": scores, **_groups(rows)}
    if kind in {"regression", "any"}:
        names = {"y_true": "outcome", "y_pred": "prediction"}
    elif kind in {"score", "probability"}:
        names = {"y_true": "label", "y_score": "score"}
    return {**{name: rows[column] for name, column in names.items()}, **_groups(rows)}


def _groups(rows: dict[str, Any]) -> dict[str, Any]:
    return {"sensitive_features": rows["group"], "control_features": rows["stratum"]}


def _numbers(result: Any) -> list[Any]:
    names = ("pvalue", "statistic", "difference", "standard_error", "confidence_interval")
    draws = ("null_distribution", "bootstrap_distribution")
    found = [repr(getattr(result, name)) for name in names if hasattr(result, name)]
    return found + [repr(getattr(result, name).tolist()) for name in draws if hasattr(result, name)]


@pytest.fixture(params=[1, 3], ids=["1 stratum", "3 strata"])
def samples(request: pytest.FixtureRequest) -> list[dict[str, Any]]:
    return [_sample(request.param, others=others) for others in (False, True)]


@pytest.mark.parametrize("metric", METRICS)
def test_other_strata_change_no_test_of_a_metric(metric: str) -> None:
    samples = [_sample(3, others=others) for others in (False, True)]
    designs: list[dict[str, str]] = [{}, {"sample_weight": "weight"}, {"cluster": "cluster"}]
    for design in designs:
        alone, with_others = (
            permutation_test(
                **_columns(metric, rows),
                **{name: rows[column] for name, column in design.items()},
                metric=metric,
                **OPTIONS,
            )
            for rows in samples
        )
        assert _numbers(with_others) == _numbers(alone)
        assert with_others.n_strata == alone.n_strata + 2
        assert with_others.counts["a"]["rows"] == alone.counts["a"]["rows"] + 20
        (note,) = (one for one in with_others.notes if "strata have no rows" in one)
        assert "their rows (20 of group 'a', 20 of group 'b') carry no weight" in note


def _of_function(y_true: Any, y_pred: Any) -> float:
    return float(np.median(np.abs(y_true - y_pred)))


@pytest.mark.parametrize(
    "metric", ["true_positive_rate", "f1_score", "roc_auc", "mean_outcome", _of_function]
)
def test_other_strata_change_no_other_test_of_two_groups(
    metric: Any, samples: list[dict[str, Any]]
) -> None:
    def weigh(rows: dict[str, Any]) -> dict[str, float]:
        return {one: 0.0 if one in OTHERS else 2.0 for one in rows["stratum"].tolist()}

    def numbers(rows: dict[str, Any]) -> list[Any]:
        columns = {**_columns(metric, rows), "metric": metric, **OPTIONS}
        margin = fairperm.equivalence_test(**columns, margin=0.3)
        return [
            _numbers(permutation_test(**columns, scheme="pooled")),
            _numbers(permutation_test(**columns, stratum_weights=weigh(rows))),
            margin.pvalue,
            margin.confidence_interval,
        ]

    alone, with_others = map(numbers, samples)
    assert with_others == alone


def test_other_strata_change_no_test_of_many_groups(samples: list[dict[str, Any]]) -> None:
    for rows in samples:
        shared = np.flatnonzero(~np.isin(rows["stratum"], OTHERS))
        rows["group"][shared[::3]] = "c"
    for metric in ("selection_rate", "roc_auc", "mean_outcome", "balanced_accuracy"):
        for variance in ("auto", None):
            alone, with_others = (
                fairperm.omnibus_test(
                    **_columns(metric, rows), metric=metric, variance=variance, **OPTIONS
                )
                for rows in samples
            )
            assert _numbers(with_others) == _numbers(alone)


def test_other_strata_change_no_comparison_of_models_or_periods(
    samples: list[dict[str, Any]],
) -> None:
    def numbers(rows: dict[str, Any]) -> list[Any]:
        groups, labels = {**_groups(rows), **OPTIONS}, rows["label"]
        models = {"y_pred": rows["decision"], "y_pred_new": rows["decision_new"]}
        scores = {"y_score": rows["score"], "y_score_new": rows["score_new"]}
        rates = ("true_positive_rate", "positive_predictive_value", "equalized_odds")
        periods = fairperm.compare_periods(
            rows["outcome"], period=rows["period"], metric="mean_outcome", **groups
        )
        return [
            *(
                _numbers(fairperm.compare_models(labels, **models, metric=m, **groups))
                for m in rates
            ),
            _numbers(fairperm.compare_models(labels, **scores, metric="roc_auc", **groups)),
            _numbers(periods.changes[0]),
        ]

    alone, with_others = map(numbers, samples)
    assert with_others == alone


def test_other_strata_change_no_sweep_distance_or_audit(samples: list[dict[str, Any]]) -> None:
    def numbers(rows: dict[str, Any]) -> list[Any]:
        groups, labels, score = {**_groups(rows), **OPTIONS}, rows["label"], rows["score"]
        metrics = ["true_positive_rate", "false_positive_rate"]
        sweep = fairperm.threshold_sweep(
            labels, score, metric=metrics, thresholds=[0.2, 0.5, 0.7], **groups
        )
        distance = fairperm.distance_test(rows["outcome"], distance="wasserstein", **groups)
        audit = fairperm.audit(
            labels, rows["decision"], y_score=score, metrics=[*metrics, "roc_auc"], **groups
        )
        return [
            *([c.pvalue.tolist(), c.simultaneous_band[0].tolist()] for c in sweep.curves.values()),
            (distance.largest.pvalue, distance.largest.distance),
            *((row.pvalue, row.confidence_interval, row.verdict) for row in audit.rows),
        ]

    alone, with_others = map(numbers, samples)
    assert repr(with_others) == repr(alone)


@pytest.mark.parametrize("metric", ["mean_outcome", "true_positive_rate", "roc_auc"])
def test_other_strata_change_no_search(metric: str, samples: list[dict[str, Any]]) -> None:
    def numbers(rows: dict[str, Any]) -> list[Any]:
        is_other = np.isin(rows["stratum"], OTHERS)
        features = {"group": rows["group"], "new": rows["decision_new"] | is_other}
        columns = _columns(metric, rows)
        del columns["sensitive_features"]
        found = fairperm.find_subgroups(
            **columns, features=features, metric=metric, min_rows=5, **OPTIONS
        )
        assert any("rows are left out" in note for note in found.notes) == is_other.any()
        return [
            repr((one.pvalue, one.adjusted_pvalue, one.statistic, one.gap)) for one in found.all
        ]

    alone, with_others = map(numbers, samples)
    assert with_others == alone
    assert alone


@pytest.mark.parametrize(
    ("metric", "kept"),
    [("true_positive_rate", "label"), ("positive_predictive_value", "decision")],
)
def test_strata_without_a_denominator_in_one_group_change_no_number(
    metric: str, kept: str, samples: list[dict[str, Any]]
) -> None:
    _, rows = samples
    rows["group"][rows["stratum"] == OTHERS[0]] = ["a", "b"] * 10
    rows[kept][(rows["stratum"] == OTHERS[0]) & (rows["group"] == "a")] = False
    one, more = (permutation_test(**_columns(metric, r), metric=metric, **OPTIONS) for r in samples)
    assert _numbers(more) == _numbers(one)
    among = get_metric(metric).parts[0].among
    assert any(f"strata have no {among} of some group" in note for note in more.notes)


def test_a_clear_gap_is_found_beside_strata_that_lack_groups() -> None:
    stratum = np.r_[np.zeros(30), np.ones(30), np.repeat(np.arange(2, 8), 40)]
    group = np.r_[np.zeros(30), np.ones(30), np.tile(np.repeat([0, 1], 20), 6)].astype(int)
    outcome = np.random.default_rng(1).normal(size=300) + 1.5 * (group == 0)
    result = permutation_test(
        outcome,
        sensitive_features=group,
        control_features=stratum,
        metric="mean_outcome",
        n_resamples=199,
        rng=1,
    )
    assert result.statistic > 11
    assert result.pvalue == 0.01
