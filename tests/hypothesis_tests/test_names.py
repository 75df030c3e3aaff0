"""Names as a sample of those of their groups, against t-tests and a mixed model of names."""

from __future__ import annotations

import itertools
import json
import re
import warnings
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import statsmodels.formula.api as smf
from scipy import stats

from fairperm import (
    FairpermError,
    audit,
    compare_models,
    equivalence_test,
    omnibus_test,
    permutation_test,
)
from tests.support.commands import run
from tests.support.simulations import between

pytestmark = pytest.mark.filterwarnings("ignore:.* shows? how", "ignore:.*have notes")


def answers(
    n_sets: int,
    n_names: int,
    rng: np.random.Generator,
    *,
    gap: float = 0.0,
    spread: float = 0.4,
    groups: str = "ab",
) -> dict[str, Any]:
    """Return answers to every prompt with every name; names of a group differ by ``spread``."""
    k = len(groups) * n_names
    name, prompt = np.tile(np.arange(k), n_sets), np.repeat(np.arange(n_sets), k)
    liking = rng.normal(0, spread, k) + gap * (np.arange(k) < n_names)
    score = rng.normal(0, 2, n_sets)[prompt] + liking[name] + rng.normal(0, 1, n_sets * k)
    return {
        "y_pred": score,
        "y_true": np.zeros(len(score)),
        "sensitive_features": np.array([*groups])[name // n_names],
        "matched": prompt,
        "names": np.char.add("name ", name.astype(str)),
    }


def means(rows: dict[str, Any], group: str) -> Any:
    """Return the mean of each name of a group."""
    mine = rows["sensitive_features"] == group
    return [rows["y_pred"][rows["names"] == one].mean() for one in np.unique(rows["names"][mine])]


def test_whole_names_are_exchanged_with_the_variance_over_names() -> None:
    rows = answers(20, 5, np.random.default_rng(1), gap=0.5)
    result = permutation_test(**rows, metric="mean_prediction", rng=1)
    both = [*means(rows, "a"), *means(rows, "b")]

    def welch(chosen: Any) -> float:
        first = [both[one] for one in chosen]
        second = [both[one] for one in range(10) if one not in chosen]
        return float(stats.ttest_ind(first, second, equal_var=False).statistic)

    null = np.array([welch(one) for one in itertools.combinations(range(10), 5)])
    observed = welch(range(5))
    tails = [np.mean(sign * null >= sign * observed - 1e-9) for sign in (1, -1)]
    normal = 2 * stats.norm.sf(abs(observed))
    assert result.statistic == pytest.approx(observed)
    assert result.exact
    assert result.pvalue == pytest.approx(max(2 * min(tails), normal))
    assert result.counts["a"]["clusters"] == 5
    assert any("in the 20 sets that have all 10" in note for note in result.notes)


def test_repeated_answers_and_left_out_sets_change_no_p() -> None:
    rows = answers(20, 4, np.random.default_rng(2), gap=0.8)
    given: dict[str, Any] = {"metric": "mean_prediction", "rng": 1}
    alone = permutation_test(**rows, **given)
    more: dict[str, Any] = {name: np.concatenate([one, one[:37]]) for name, one in rows.items()}
    more = {name: np.append(one, one[:1]) for name, one in more.items()}
    more["matched"][-1] = 99  # a set with one name
    again = permutation_test(**more, **given)
    assert again.pvalue == pytest.approx(alone.pvalue)
    assert again.difference == pytest.approx(alone.difference)
    assert any("1 set that lacks a name was left out." in note for note in again.notes)


def test_every_function_knows_names() -> None:
    rows = answers(15, 5, np.random.default_rng(3), gap=3.0, groups="abc")
    given: dict[str, Any] = {"metric": "mean_prediction", "rng": 1, "n_resamples": 199}
    assert omnibus_test(**rows, **given).pvalue < 0.05
    two: dict[str, Any] = {
        name: one[rows["sensitive_features"] != "c"] for name, one in rows.items()
    }
    new = two["y_pred"] - 3.0 * (two["sensitive_features"] == "a")
    assert compare_models(**two, y_pred_new=new, **given).pvalue < 0.05
    assert equivalence_test(**two | {"y_pred": new}, margin=2, **given).holds_at(0.05)
    found = audit(**rows, metrics="mean_prediction", rng=1, n_resamples=199)
    assert {row.groups: row.verdict for row in found} == {
        ("a", "b"): "disparity",
        ("a", "c"): "disparity",
        ("b", "c"): "inconclusive",
    }
    assert "Groups with fewer than 4 names" in repr(found) or "4 names" in repr(found)
    assert "clusters are compared, not rows" in found.to_html()


def test_the_change_of_a_group_is_a_paired_t_test_of_its_names() -> None:
    rows = answers(20, 4, np.random.default_rng(3))
    old = rows.pop("y_pred")
    moved = answers(20, 4, np.random.default_rng(4))["y_pred"]
    del rows["y_true"]
    changed = compare_models(
        y_score=old, y_score_new=old + moved, metric="mean_score", n_resamples=9, rng=1, **rows
    )
    for group, change in changed.group_changes.items():
        expected = stats.ttest_1samp(means(rows | {"y_pred": moved}, str(group)), 0)
        assert change.change / change.standard_error == pytest.approx(expected.statistic)
        assert change.pvalue == pytest.approx(expected.pvalue)


def test_without_names_a_note_says_whom_the_result_is_about() -> None:
    rows = answers(20, 4, np.random.default_rng(4))
    del rows["names"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # it is no warning
        result = permutation_test(**rows, metric="mean_prediction", rng=1)
        several = omnibus_test(**rows, metric="mean_prediction", rng=1, n_resamples=99)
    for one in (result, several):
        assert any("the result is about these names" in note for note in one.notes)


def test_frames_and_the_command_line(tmp_path: Any) -> None:
    rows = answers(12, 4, np.random.default_rng(5), gap=1.0)
    expected = permutation_test(**rows, metric="mean_prediction", rng=1).pvalue
    names: dict[str, Any] = {name: name for name in rows}
    frame = pl.DataFrame(rows)
    lazy = permutation_test(**names, data=frame.lazy(), metric="mean_prediction", rng=1)
    assert lazy.pvalue == expected
    frame.write_csv(tmp_path / "answers.csv")
    options = ("--label", "y_true", "--prediction", "y_pred", "--group", "sensitive_features")
    sets = ("--matched", "matched", "--names", "names", "--metric", "mean_prediction")
    done = run("test", tmp_path / "answers.csv", *options, *sets, "--seed", 1, "--json", "-")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["result"]["pvalue"] == expected
    few = run("test", tmp_path / "answers.csv", *options, "--names", "names", "--metric", "mse")
    assert b"--names needs --matched" in few.stderr


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"matched": None}, "names needs matched: the sets, such as prompts, in which all names"),
        ({"cluster": "names"}, "cluster cannot be used with names: whole names are exchanged"),
        ({"control_features": "matched"}, "control_features cannot be used with names"),
        ({"n_names": 3}, "names must be at least 4 of each group; got 3 names of 'a'. Exchanging"),
        ({"names": "sensitive_features"}, "names must be at least 4 of each group; got 1 name of"),
        ({"names": "matched"}, "names must be of one group each; got 0 with rows of several, and"),
        ({"names": [1, 2]}, "names must be as long as"),
        ({"names": "missing"}, "names has 1 missing value"),
        ({"matched": "unique"}, "matched must be names of at least two sets with rows of all 8"),
        ({"scheme": "within_label"}, "scheme must be 'pooled' with cluster"),
        ({"sample_weight": "unique"}, "sample_weight must be alike in all rows of one set of"),
    ],
)
def test_what_cannot_answer_for_a_group_is_refused(given: dict[str, Any], says: str) -> None:
    rows = answers(6, given.pop("n_names", 4), np.random.default_rng(6))
    n = len(rows["y_pred"])
    columns = rows | {
        "unique": np.arange(1, n + 1),
        "missing": [None, *rows["names"][1:]],
    }
    chosen = {
        name: columns[one] if isinstance(one, str) and one in columns else one
        for name, one in given.items()
    }
    with pytest.raises(FairpermError, match=f"^{re.escape(says)}"):
        permutation_test(**{**rows, "metric": "mean_prediction", **chosen})


@pytest.mark.validate
@pytest.mark.parametrize(
    ("n_names", "n_sets", "is_rate"), [(4, 40, False), (10, 100, False), (6, 500, True)]
)
def test_names_as_a_sample_hold_the_level_of_groups(
    n_names: int, n_sets: int, is_rate: bool
) -> None:
    """Names that differ make a test of these names reject equal groups.

    A mixed model, whose normal statistic of a balanced sample has a closed form, is beside it.
    """
    rng = np.random.default_rng(n_names)
    times, level, control, power, mixed = 500, 0, 0, 0, 0
    metric = "selection_rate" if is_rate else "mean_prediction"
    for seed in range(times):
        rows = answers(n_sets, n_names, rng)
        given: dict[str, Any] = {"metric": metric, "rng": seed, "n_resamples": 199}
        score = rows["y_pred"]
        rows["y_pred"] = (score > 0).astype(int) if is_rate else score
        level += permutation_test(**rows, **given).pvalue <= 0.05
        mixed += abs(mixed_model(rows)) >= stats.norm.ppf(0.975)
        plain: dict[str, Any] = {name: one for name, one in rows.items() if name != "names"}
        control += permutation_test(**plain, **given).pvalue <= 0.05
        moved = score + 1.2 * (rows["sensitive_features"] == "a")
        rows["y_pred"] = (moved > 0).astype(int) if is_rate else moved
        power += permutation_test(**rows, **given).pvalue <= 0.05
    low, high = between(0.02, 0.06, times)
    assert low <= level <= high < control
    assert power > 0.7 * times
    assert level <= mixed
    assert (
        n_names > 4 or mixed > between(0.05, 0.05, times)[1]
    )  # a normal statistic with six degrees of freedom


def mixed_model(rows: dict[str, Any]) -> float:
    """Return the mixed model's statistic of the gap, with a random effect of each name."""
    first, second = (np.array(means(rows, group)) for group in "ab")
    pooled = (first.var(ddof=1) + second.var(ddof=1)) / len(first)
    return float((first.mean() - second.mean()) / np.sqrt(pooled))


@pytest.mark.validate
def test_a_mixed_model_agrees_where_its_assumptions_hold() -> None:
    rows = answers(20, 10, np.random.default_rng(8), gap=0.5)
    result = permutation_test(**rows, metric="mean_prediction", rng=1)
    frame = pd.DataFrame(rows)
    centred = frame["y_pred"] - frame.groupby("matched")["y_pred"].transform("mean")
    frame = frame.assign(centred=centred, is_a=frame["sensitive_features"] == "a")
    fitted = smf.mixedlm("centred ~ is_a", frame, groups=frame["names"]).fit()
    assert result.difference == pytest.approx(fitted.params["is_a[T.True]"])
    assert result.standard_error == pytest.approx(fitted.bse["is_a[T.True]"], rel=0.05)
    assert mixed_model(rows) == pytest.approx(fitted.tvalues["is_a[T.True]"], rel=1e-3)
