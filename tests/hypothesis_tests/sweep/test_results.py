"""At which thresholds a sweep tests, what it marks there, and what it returns."""

from __future__ import annotations

import math
import subprocess
import sys
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import fairperm
from fairperm.hypothesis_tests.sweep.threshold_sweep import threshold_sweep
from tests.support.sweeps import scored, sweep

# Thresholds.


def test_rows_at_the_threshold_are_predicted_positive() -> None:
    data = {
        "y_true": [1] * 8,
        "y_score": [0.2, 0.4, 0.4, 0.8, 0.2, 0.2, 0.4, 0.8],
        "sensitive_features": list("aaaabbbb"),
    }
    curve = sweep(data, thresholds=[0.8, 0.4, 0.41, 0.4], n_resamples=9)
    assert curve.values["a"].tolist() == [0.75, 0.25, 0.25]
    assert curve.values["b"].tolist() == [0.5, 0.25, 0.25]


def test_scores_of_32_bits_reach_thresholds_that_are_written_alike() -> None:
    scores = np.array([0.1, 0.3, 0.57, 0.7, 0.1, 0.3, 0.57, 0.7], np.float32)
    data = {"y_true": [1] * 8, "y_score": scores, "sensitive_features": list("aaaabbbb")}
    thresholds = [0.1, 0.3, 0.57, 0.7]
    for given in (thresholds, np.array(thresholds, np.float32), "scores"):
        curve = sweep(data, thresholds=given, n_resamples=9)
        assert curve.values["a"].tolist() == [1, 0.75, 0.5, 0.25]
    data["y_score"] = scores.astype(np.float64)  # 0.699999988 and the like: now it is below
    assert sweep(data, thresholds=thresholds, n_resamples=9).values["a"].tolist() != [
        1,
        0.75,
        0.5,
        0.25,
    ]


def test_an_integer_makes_equally_spaced_thresholds() -> None:
    data = scored(decimals=2)
    result = threshold_sweep(**data, metric="tpr", n_resamples=9, rng=1)
    assert result.thresholds.tolist() == [k / 100 for k in range(101)]
    data["y_score"] = np.tile(np.arange(1, 11), 20)
    result = threshold_sweep(**data, metric="tpr", thresholds=10, n_resamples=9, rng=1)
    assert result.thresholds.tolist() == list(range(1, 11))
    data["y_score"] = data["y_score"] * -1e307
    result = threshold_sweep(**data, metric="tpr", thresholds=10, n_resamples=9, rng=1)
    assert result.thresholds == pytest.approx(np.unique(data["y_score"]))


def test_each_distinct_score_of_the_two_groups_can_be_a_threshold() -> None:
    data = scored()
    data["sensitive_features"] = np.append(data["sensitive_features"], "c")
    data["y_true"], data["y_score"] = np.append(data["y_true"], 1), np.append(data["y_score"], 7)
    result = threshold_sweep(
        **data, metric="tpr", groups=("b", "a"), thresholds="scores", n_resamples=9, rng=1
    )
    assert result.thresholds.tolist() == np.unique(data["y_score"])[:-1].tolist()
    assert result.groups == ("b", "a")


def test_thresholds_with_no_score_between_them_agree() -> None:
    data = scored(decimals=1)
    coarse = sweep(data, thresholds="scores", n_resamples=99)
    fine = sweep(data, thresholds=np.sort(np.r_[data["y_score"] - 0.05, data["y_score"] - 0.01]))
    assert np.isin(fine.difference, coarse.difference).all()
    for name in ("pvalue", "adjusted_pvalue", "difference"):
        coarse_too = sweep(data, thresholds=np.unique(data["y_score"]), n_resamples=99)
        assert np.array_equal(getattr(coarse, name), getattr(coarse_too, name), equal_nan=True)


# Thresholds at which there is nothing to test, or little.


def test_trivial_thresholds_are_marked_and_not_tested() -> None:
    data = scored()
    curve = sweep(data, thresholds=[-1, 0.5, 2], n_resamples=99)
    assert curve.status.tolist() == ["trivial", "tested", "trivial"]
    assert curve.values["a"][[0, 2]].tolist() == [1, 0]
    for array in (curve.pvalue, curve.adjusted_pvalue, *curve.pointwise_band):
        assert np.isnan(array).tolist() == [True, False, True]
    alone = sweep(data, thresholds=[0.5], n_resamples=99)
    assert curve.adjusted_pvalue[1] == alone.adjusted_pvalue[0] == alone.pvalue[0]


def test_a_threshold_trivial_in_one_group_is_marked_and_tested() -> None:
    data = scored()
    in_first = data["sensitive_features"] == "a"
    data["y_score"][in_first] = 0.2 + 0.6 * data["y_score"][in_first]
    curve = sweep(data, thresholds=[0.1, 0.5, 0.9], n_resamples=99)
    assert curve.status.tolist() == ["trivial", "tested", "trivial"]
    assert not np.isnan(curve.adjusted_pvalue).any()
    assert (curve.values["a"][0], curve.values["a"][2]) == (1, 0)


def test_where_the_metric_is_undefined_there_is_no_test() -> None:
    data = scored()
    in_first = data["sensitive_features"] == "a"
    data["y_score"][in_first] *= 0.8  # above 0.8, nobody in this group is predicted positive
    curve = sweep(data, "ppv", thresholds=[0.5, 0.85], n_resamples=99)
    assert curve.status.tolist() == ["tested", "undefined"]
    for array in (curve.difference, curve.standard_error, curve.statistic, curve.pvalue):
        assert np.isnan(array).tolist() == [False, True]
    assert math.isnan(curve.values["a"][1])


def test_where_many_draws_are_undefined_the_threshold_is_tested_by_itself_only() -> None:
    data = scored(400)
    top = np.sort(data["y_score"])[-4]  # four rows: a group has none of them in 1/8 of the draws
    data["sensitive_features"][data["y_score"] >= top] = list("aabb")
    curve = sweep(data, "ppv", thresholds=[0.5, top], n_resamples=999)
    assert curve.status.tolist() == ["tested", "sparse"]
    assert curve.pvalue[1] > 0.05
    assert np.isnan(curve.adjusted_pvalue).tolist() == [False, True]
    assert np.isnan(curve.simultaneous_band[0]).tolist() == [False, True]
    assert curve.adjusted_pvalue[0] == curve.pvalue[0]


def test_the_largest_gap_is_one_that_was_tested_beside_the_others() -> None:
    data = scored(400)
    few = data["y_score"] >= np.sort(data["y_score"])[-4]
    data["sensitive_features"][few], data["y_true"][few] = list("aabb"), [1, 1, 0, 0]
    least = data["y_score"][few].min()
    curve = sweep(data, "ppv", thresholds=[0.3, 0.5, least], n_resamples=99)
    assert curve.status.tolist() == ["tested", "tested", "sparse"]
    assert np.abs(curve.difference).argmax() == 2
    assert curve.largest() == np.abs(curve.difference[:2]).argmax()
    alone = sweep(data, "ppv", thresholds=[least, least + 1e-9], n_resamples=99)
    assert math.isnan(alone.global_pvalue)
    assert alone.largest() == np.nanargmax(np.abs(alone.difference))


# The result.


@pytest.mark.parametrize("library", [pd, pl, pa])
def test_a_frame_comes_back_from_the_library_that_the_data_came_from(library: Any) -> None:
    columns = scored()
    names: dict[str, Any] = {name: name for name in columns}
    make = pa.table if library is pa else library.DataFrame
    result = threshold_sweep(
        **names,
        data=make(columns),
        metric=["tpr", "ppv"],
        thresholds=11,
        n_resamples=19,
        rng=1,
    )
    frame = result.to_frame()
    assert isinstance(frame, type(make(columns)))
    assert frame.shape == (22, 17)
    assert isinstance(result.to_frame("polars"), pl.DataFrame)
    first = pd.DataFrame(result.to_frame("pandas")).iloc[5]
    curve = result.curves["true_positive_rate"]
    assert first["threshold"] == 0.5
    assert first["difference"] == curve.difference[5]
    assert first["value_first"] == curve.values["a"][5]


def test_without_a_frame_the_default_is_pandas() -> None:
    result = threshold_sweep(**scored(), metric="tpr", thresholds=11, n_resamples=19, rng=1)
    assert isinstance(result.to_frame(), pd.DataFrame)


def test_a_library_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object, **__: object) -> None:
        raise ModuleNotFoundError

    result = threshold_sweep(**scored(), metric="tpr", thresholds=11, n_resamples=19, rng=1)
    monkeypatch.setattr("fairperm.data.columns.nw.from_dict", missing)
    with pytest.raises(fairperm.InputError, match=r"^library must be .* got 'pandas'\. Install"):
        result.to_frame()
    with pytest.raises(fairperm.InputError, match=r"^library must be one of 'pandas'"):
        result.to_frame("dask")


def test_the_result_reads_well_and_never_says_fair() -> None:
    result = threshold_sweep(**scored(), metric=["tpr", "ppv"], n_resamples=99, rng=1)
    text = repr(result)
    assert "\n  thresholds   101, with 99 draws\n" in text
    assert "largest gap" in text
    assert "fair" not in text.lower().replace("fairperm", "")


def test_a_sweep_loads_nothing_heavy() -> None:
    code = (
        "import sys, fairperm; fairperm.threshold_sweep([1, 1, 0, 1, 1, 0], "
        "[.1, .5, .2, .7, .2, .4], sensitive_features=[0, 0, 0, 1, 1, 1], metric=['tpr', 'f1'], "
        "n_resamples=99, rng=1); print(*sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(run.stdout.split()).isdisjoint({"numba", "pandas", "polars", "pyarrow", "scipy"})
