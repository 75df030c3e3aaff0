"""Calls that together use every kernel, and their results to the last bit.

As a script it prints them, so that they can be had without Numba, too:
``python -m tests.support.blocked numba tests.support.kernel_runs``.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

import fairperm
from fairperm.engines.kernels.subsets import STATE_WORDS, random_subsets
from studies.calibration.rivals import compute_aucs
from studies.paper.table1 import fairtest_pvalue

ROWS = 150


def seeded(seed: int) -> NDArray[np.uint64]:
    """Return the state of a random stream."""
    return np.random.SeedSequence(seed).generate_state(STATE_WORDS, np.uint64).astype(np.uint64)


def _data() -> dict[str, Any]:
    rng = np.random.default_rng(20200823)
    y_true = rng.integers(0, 2, ROWS)
    return {
        "y_true": y_true,
        "y_score": (rng.normal(size=ROWS) + y_true).round(2),  # some of which tie
        "sensitive_features": rng.choice(["a", "b"], ROWS, p=[0.4, 0.6]),
        "n_resamples": 70,
        "rng": 1,
    }


def _tests() -> Iterator[tuple[str, Any]]:
    """Yield the draws of tests of every kind of metric, scheme, weights, clusters and strata."""
    data = _data()
    rng = np.random.default_rng(7)
    few = {**data, "y_score": data["y_score"].round()}  # most of which tie
    strata = {"control_features": rng.integers(0, 2, ROWS)}
    weights = {"sample_weight": rng.uniform(1, 3, ROWS)}
    person = np.arange(ROWS) // 3
    clusters = {"cluster": person, "sensitive_features": rng.choice(["a", "b"], ROWS)[person]}
    scores = {"y_true": rng.integers(0, 3, ROWS), "y_score": rng.normal(size=(ROWS, 3)).round(1)}
    classes = {**data, **scores}
    numbers = {**data, "y_true": rng.normal(size=ROWS), "y_pred": data["y_score"], "y_score": None}
    for name, metric, given in (
        ("pooled", "roc_auc", {**data, "scheme": "pooled"}),
        ("within label", "roc_auc", data),
        ("tied", "roc_auc", few),
        ("strata", "roc_auc", {**data, **strata}),
        ("weights", "roc_auc", {**data, **weights}),
        ("clusters", "roc_auc", {**data, **clusters}),
        ("precision", "average_precision", data),
        ("precision, clusters", "average_precision", {**data, **clusters}),
        ("classes", "roc_auc_ovr", classes),
        ("classes, clusters", "roc_auc_ovr_weighted", {**classes, **clusters}),
        ("numbers", "mean_squared_error", numbers),
        ("numbers, strata", "mean_squared_error", {**numbers, **strata}),
        ("numbers, weights", "mean_squared_error", {**numbers, **weights}),
    ):
        yield name, fairperm.permutation_test(metric=metric, **given).null_distribution
    groups = {"sensitive_features": rng.choice(["a", "b", "c"], ROWS)}
    for name, metric, given in (
        ("many", "roc_auc", {**few, **groups}),
        ("many pooled", "roc_auc", {**data, **groups, **strata, "scheme": "pooled"}),
        ("many precisions", "average_precision", {**data, **groups}),
        ("many numbers", "mean_squared_error", {**numbers, **groups}),
    ):
        yield name, fairperm.omnibus_test(metric=metric, **given).null_distribution
    new = rng.normal(size=ROWS)
    for name, more in (("changes", {}), ("changes, clusters", {**clusters, **weights})):
        change = fairperm.compare_models(metric="roc_auc", y_score_new=new, **{**data, **more})
        yield name, change.null_distribution
    features = {"a": data["sensitive_features"], "b": groups["sensitive_features"]}
    for name, score in (("subgroups", data["y_score"]), ("subgroups, tied", few["y_score"])):
        searched = fairperm.find_subgroups(
            data["y_true"],
            y_score=score,
            features=features,
            metric="roc_auc",
            min_rows=5,
            n_resamples=39,
            rng=1,
        )
        yield name, np.array([[one.statistic, one.pvalue] for one in searched.all])
    few = {"sensitive_features": data["sensitive_features"], "n_resamples": 70, "rng": 1}
    for name, given in (("gaps", {}), ("weighted gaps", {**weights, **clusters})):
        found = fairperm.distance_test(data["y_score"], **{**few, **given})
        yield name, found.largest.null_distribution
    for name, n in (("lists", ROWS), ("lists, all", 6)):
        rows = np.arange(n)
        ranked = fairperm.ranking_test(
            score=rng.normal(size=n),
            query=rows // 5,
            sensitive_features=rows % 3,
            control_features=rows % 2,
            metric="ndkl",
            n_resamples=70,
            rng=1,
        )
        yield name, ranked.largest.null_distribution
    for method in ("pearson", "spearman"):
        x, y = rng.normal(size=(2, 40))
        result = fairperm.correlation_test(x, x + y, method=method, n_resamples=20, rng=1)
        yield method, result.null_distribution
        yield f"{method}, all", fairperm.correlation_test(x[:5], y[:5], method=method, rng=1).pvalue


def _kernels() -> Iterator[tuple[str, Any]]:
    """Yield what kernels return that no test of few rows comes by."""
    rng = np.random.default_rng(3)
    state = seeded(5)
    sizes = np.array([3, 64, 65, 1000])
    yield "subsets", random_subsets(sizes, np.array([1, 60, 5, 900]), state)
    x, error = rng.normal(size=(2, 30))
    yield "fairtest", fairtest_pvalue(x, error, 20, rng)
    yield "resampled", compute_aucs(rng.random(30) < 0.5, rng.integers(0, 30, (9, 30), np.int32))


def results() -> dict[str, list[str]]:
    """Return the bits of every result."""
    found = {**dict(_tests()), **dict(_kernels())}
    return {name: [one.tobytes().hex() for one in np.ravel(found[name])] for name in found}


if __name__ == "__main__":
    json.dump(results(), sys.stdout)
