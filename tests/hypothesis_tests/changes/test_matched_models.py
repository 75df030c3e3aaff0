"""Two models on matched sets, against the test of the sets' differences and closed forms."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from scipy import stats

from fairperm import FairpermError, audit, compare_models
from tests.support.simulations import between

pytestmark = pytest.mark.filterwarnings(
    "ignore:.* shows? how the", "ignore:.* left out; ", "ignore:.*is zero in this"
)


def answers(n: int, rng: np.random.Generator, gaps: tuple[float, float]) -> dict[str, Any]:
    """Return the answers of an old and a new model to n prompts with two names."""
    level = np.tile(rng.normal(0, 1, n), 2)
    first = np.repeat([1.0, 0.0], n)
    old, new = (level + gap * first + rng.normal(0, 0.7, 2 * n) for gap in gaps)
    return {
        "y_pred": old,
        "y_pred_new": new,
        "sensitive_features": ["a"] * n + ["b"] * n,
        "matched": np.tile(np.arange(n), 2),
    }


def compare(rows: dict[str, Any], **more: Any) -> Any:
    given: dict[str, Any] = {"metric": "mean_prediction", "rng": 1, "n_resamples": 299}
    return compare_models(np.zeros(len(rows["y_pred"])), **{**rows, **given, **more})


def test_a_change_of_means_is_the_test_of_the_rows_differences() -> None:
    rows = answers(50, np.random.default_rng(1), (0.6, 0.1))
    result = compare(rows, variance="delta")
    moved = rows["y_pred_new"] - rows["y_pred"]
    expected = stats.ttest_rel(moved[:50], moved[50:])
    assert result.statistic == pytest.approx(expected.statistic)
    for place, group in enumerate("ab"):
        mine = moved[50 * place : 50 * (place + 1)]
        change = result.group_changes[group]
        assert change.change == pytest.approx(mine.mean())
        t = stats.ttest_1samp(mine, 0).statistic
        assert change.pvalue == pytest.approx(2 * stats.norm.sf(abs(t)))
    assert result.gap_new - result.gap_old == pytest.approx(result.difference)


def test_swapping_models_or_groups_changes_only_signs() -> None:
    rows = answers(50, np.random.default_rng(2), (0.6, 0.1))
    rows |= {name: rows[name] > 0.2 for name in ("y_pred", "y_pred_new")}
    swapped = rows | {"y_pred": rows["y_pred_new"], "y_pred_new": rows["y_pred"]}
    for metric in ("selection_rate", "positive_predictive_value"):
        cases: list[Any] = [(rows, {}), (swapped, {}), (rows, {"groups": ("b", "a")})]
        options: dict[str, Any] = {"metric": metric, "y_true": np.tile(np.arange(50) % 3 > 0, 2)}
        here, there, back = (
            compare_models(**{**one, **options}, **more, rng=1, n_resamples=299)
            for one, more in cases
        )
        for other in (there, back):
            assert other.pvalue == here.pvalue
            assert other.difference == pytest.approx(-here.difference)


def test_rates_of_one_group_have_mcnemars_test() -> None:
    rows = answers(50, np.random.default_rng(3), (0.9, 0.0))
    rows |= {name: rows[name] > 0.2 for name in ("y_pred", "y_pred_new")}
    result = compare_models(**rows, metric="selection_rate", rng=1)
    moved = rows["y_pred_new"].astype(int) - rows["y_pred"]
    for place, group in enumerate("ab"):
        mine = moved[50 * place : 50 * (place + 1)]
        up, down = (mine > 0).sum(), (mine < 0).sum()
        change = result.group_changes[group]
        assert change.exact
        assert change.pvalue == pytest.approx(stats.binomtest(up, up + down).pvalue)


def test_margins_of_changes_need_sets_that_changed() -> None:
    rows = answers(60, np.random.default_rng(4), (0.2, 0.2))
    assert compare(rows).test_margin(1.0).holds_at(0.05)
    same = rows | {"y_pred_new": np.where(np.arange(120) % 60 < 10, 0, rows["y_pred"])}
    with pytest.warns(match="only about 10 sets of group 'a' show how the change"):
        assert compare(same).test_margin(5.0).pvalue == 1


def test_audits_of_two_models_know_matched_sets_in_strata() -> None:
    rows = answers(80, np.random.default_rng(5), (1.2, 0.0))
    stratum = np.tile(np.arange(80) % 2, 2)
    given: dict[str, Any] = {**rows, "control_features": stratum, "rng": 1, "n_resamples": 499}
    found = audit(np.zeros(160), **given, metrics="mean_prediction", margin=0.6)
    (row,) = found.rows
    assert row.change is not None
    assert row.change.result is not None
    alone = compare_models(np.zeros(160), **given, metric="mean_prediction")
    assert row.change.result.difference == alone.difference
    assert row.change.verdict in {"closed", "narrowed"}
    assert "inside each matched set" in found.to_html()


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"metric": "roc_auc", "y_pred": None}, "metric must be a rate, a mean or another"),
        ({"cluster": [1, 2, 2, 2]}, "cluster must be alike in all rows of one set of matched"),
        ({"matched": [1, 2, 3, 4]}, "matched must be names of at least two sets with rows of"),
        ({"matched": [1, 2, 1]}, "matched must be as long as"),
        ({"scheme": "pooled"}, "scheme must be one of 'auto'"),
        ({"y_pred_new": None}, "y_pred_new must be given for this metric"),
        ({"y_pred_new": [1, 0]}, "y_pred_new must be as long as"),
        ({"y_pred_new": ["yes", "no", "refused", "no"]}, "y_pred_new must"),
    ],
)
def test_what_does_not_fit_is_refused(given: dict[str, Any], says: str) -> None:
    good: dict[str, Any] = {
        "y_true": [1, 0, 1, 0],
        "y_pred": [1, 0, 0, 1],
        "y_pred_new": [1, 1, 0, 1],
        "sensitive_features": list("aabb"),
        "matched": [1, 2, 1, 2],
        "metric": "selection_rate",
    }
    if given.get("metric") == "roc_auc":
        good |= {"y_score": [1, 2, 3, 4], "y_score_new": [1, 2, 3, 4], "y_pred_new": None}
    with pytest.raises(FairpermError, match=re.escape(says)):
        compare_models(**{**good, **given})


@pytest.mark.validate
@pytest.mark.parametrize(("n", "is_rate"), [(40, False), (500, True)])
def test_matched_models_hold_the_level_and_beat_unpaired_rows(n: int, is_rate: bool) -> None:
    """Both models have one gap; unmatched rows lose power to the prompts' difficulty."""
    rng = np.random.default_rng(n)
    times, level, power, unmatched = 400, 0, 0, 0
    effect = (9 if is_rate else 4.2) / np.sqrt(n)

    def ask(rows: dict[str, Any], **options: Any) -> Any:
        if is_rate:
            rows |= {name: (rows[name] > 0.5).astype(int) for name in ("y_pred", "y_pred_new")}
            options["metric"] = "selection_rate"
        return compare(rows, n_resamples=199, **options).pvalue <= 0.05

    for seed in range(times):
        level += ask(answers(n, rng, (0.5, 0.5)), rng=seed)
        moved = answers(n, rng, (0.5, 0.5 + effect))
        moved["y_pred_new"] += np.tile(rng.normal(0, 1, n), 2)  # the new model's own difficulty
        alone = {name: one for name, one in moved.items() if name != "matched"}
        power += ask(moved, rng=seed)
        unmatched += ask(alone, rng=seed)
    low, high = between(0.03, 0.065, times)
    assert low <= level <= high
    assert power > unmatched + (0.03 if is_rate else 0.1) * times


@pytest.mark.validate
def test_templates_of_two_models_hold_the_level_where_single_prompts_do_not() -> None:
    """Prompts of one of 40 templates change their gaps together."""
    rng = np.random.default_rng(40)
    times, whole, apart = 400, 0, 0
    template = np.tile(np.repeat(np.arange(40), 6), 2)
    for seed in range(times):
        rows = answers(240, rng, (0.3, 0.3))
        rows["y_pred_new"] += rng.normal(0, 0.5, 80)[template + 40 * (np.arange(480) < 240)]
        whole += compare(rows, cluster=template, rng=seed, n_resamples=199).pvalue <= 0.05
        apart += compare(rows, rng=seed, n_resamples=199).pvalue <= 0.05
    low, high = between(0.025, 0.07, times)
    assert low <= whole <= high < apart
