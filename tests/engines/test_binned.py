"""Draws from coarse bins against draws from fine ones."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import fairperm
from fairperm.data.sample import Sample
from fairperm.engines import binned
from fairperm.engines.counts import CellsEngine
from fairperm.engines.sample import Cells
from fairperm.metrics import get_metric
from fairperm.metrics.definition import Variance

N = 4_000
COARSE = 64


def _labels(kind: str, score: Any, rng: np.random.Generator) -> Any:
    """Return labels that go with the scores, or in every coarse bin negatives below positives."""
    if kind == "random":
        return rng.random(N) < score
    return np.argsort(np.argsort(score)) * 2 * COARSE // N % 2 == 1


@pytest.mark.parametrize("kind", ["random", "alternating"])
@pytest.mark.parametrize("metric", ["roc_auc", "brier_score", "mean_score_positives"])
def test_no_permutation_is_further_off_than_the_bound(
    metric: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same labels in fine and in coarse bins have nearly the same studentized gap."""
    monkeypatch.setattr(binned, "COARSE_BINS", COARSE)
    monkeypatch.setattr(binned, "_MAX_ERROR_IN_SE", 1.0)
    rng = np.random.default_rng(7)
    score = rng.beta(2, 3, N)
    columns = {"y_true": _labels(kind, score, rng), "y_score": score}
    part: Any = get_metric(metric)
    group = (rng.random(N) < 0.3).astype(np.uint8)
    zeros = np.zeros(N, np.intp)
    rows = Sample(
        columns=columns, contributions=part.matrix(columns), group=group, stratum=zeros,
        block=zeros, count=np.ones(N, np.int64), groups=(0, 1), strata=("all",),
    )  # fmt: skip
    engine = binned.BinnedEngine.of((part,), rows, part.closed_variance, 0, many=False)
    assert engine is not None
    furthest = 0.0
    for _ in range(40):
        permuted = replace(rows, group=rng.permutation(group))
        found = binned._coarsen((part,), permuted)
        assert found is not None
        fine, coarse = (
            CellsEngine((part,), Cells.from_rows(one, None), part.closed_variance)
            .observed()
            .gaps(None)
            .studentized(np.ones(1))[0]
            for one in (permuted, found[0])
        )
        furthest = max(furthest, abs(fine - coarse))
    assert engine.draw_error / 100 < furthest < engine.draw_error


def test_threads_change_no_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sample keeps its fine bins: only its permutations have fewer."""
    rng = np.random.default_rng(3)
    score = rng.random(N)
    table = pa.table({"y": rng.random(N) < score, "s": score, "g": rng.integers(0, 3, N)})
    data = duckdb.connect().from_arrow(table)
    options: dict[str, Any] = {"y_score": "s", "sensitive_features": "g", "data": data, "rng": 1}
    options |= {"score_bins": 2_000, "n_resamples": 199}
    monkeypatch.setattr(binned.BinnedEngine, "block_size", 50)
    for metric in ("roc_auc", "brier_score"):
        one, *others = (
            fairperm.permutation_test("y", metric=metric, groups=(0, 1), n_jobs=n_jobs, **options)
            for n_jobs in (1, 2, 4)
        )
        for other in others:
            assert np.array_equal(one.null_distribution, other.null_distribution)
        with monkeypatch.context() as patch:
            patch.setattr(binned, "COARSE_BINS", N)
            fine = fairperm.permutation_test("y", metric=metric, groups=(0, 1), **options)
        assert one.statistic == pytest.approx(fine.statistic, rel=1e-12)
        assert one.pvalue == pytest.approx(fine.pvalue, abs=0.15)
        assert fairperm.omnibus_test("y", metric=metric, **options).pvalue > 0


def test_strata_schemes_and_variances_have_an_engine() -> None:
    rng = np.random.default_rng(5)
    score = rng.random(N)
    table = pa.table({"y": rng.random(N) < score, "s": score, "g": rng.integers(0, 2, N),
                      "z": rng.integers(0, 2, N)})  # fmt: skip
    data = duckdb.connect().from_arrow(table)
    options: dict[str, Any] = {"y_score": "s", "sensitive_features": "g", "data": data, "rng": 1}
    options |= {"score_bins": 2_000, "n_resamples": 199, "metric": "roc_auc"}
    eager = {**options, "data": table, "score_bins": None}
    for more in (
        {"control_features": "z"},
        {"control_features": "z", "stratum_weights": {0: 1.0, 1: 2.0}},
        {"scheme": "within_label"},
        {"variance": None},
    ):
        binned_result = fairperm.permutation_test("y", **options, **more)
        rows = fairperm.permutation_test("y", **eager, **more)
        assert binned_result.statistic == pytest.approx(rows.statistic, rel=0.02)
        assert binned_result.pvalue == pytest.approx(rows.pvalue, abs=0.2)


def test_variance_can_be_replaced() -> None:
    part: Any = get_metric("brier_score")
    score = np.linspace(0, 1, N)
    columns = {"y_true": score > 0.5, "y_score": score}
    zeros = np.zeros(N, np.intp)
    rows = Sample(
        columns=columns, contributions=part.matrix(columns), stratum=zeros, block=zeros,
        group=(np.arange(N) % 2).astype(np.uint8), count=np.ones(N, np.int64),
        groups=(0, 1), strata=("all",),
    )  # fmt: skip
    engine = binned.BinnedEngine.of((part,), rows, Variance.DELTA, 0, many=False)
    assert engine is not None
    without = engine.with_variance(None)
    assert (without.observed().variance == 0).all()
    assert (without.permuted(3, np.random.default_rng(0)).variance == 0).all()
