"""Distances between distributions, and rankings of many queries."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

import fairperm

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.conftest import Report

N = 10**6
QUERIES = 50_000
DRAWS = 999
REPEATS = 3


def _seconds(call: Callable[[], Any]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def test_distances(report: Report) -> None:
    """Kolmogorov–Smirnov takes about as long as the AUC: both walk up the scores."""
    rng = np.random.default_rng(24)
    y_true, group = rng.integers(0, 2, N), rng.integers(0, 2, N)
    score = y_true + rng.normal(size=N)
    options: dict[str, Any] = {"n_resamples": DRAWS, "rng": 0, "n_jobs": 1, "progress": False}

    def auc() -> None:
        fairperm.permutation_test(
            y_true, y_score=score, sensitive_features=group, metric="roc_auc", **options
        )

    def ks() -> None:
        fairperm.distance_test(score, sensitive_features=group, distance="ks", **options)

    auc()
    ks()
    pairs = [(_seconds(auc), _seconds(ks)) for _ in range(REPEATS)]
    plain, mine = (min(times) for times in zip(*pairs, strict=True))
    report.notes.append(f"Kolmogorov–Smirnov of 10⁶ rows, {DRAWS} permutations: {mine:.2f} s")
    report.bar("Kolmogorov–Smirnov / AUC of 10⁶ plain rows", mine / plain, "≤", 2.0)


def test_rankings(report: Report) -> None:
    """Of a million items in 50,000 lists, all kinds of test."""
    rng = np.random.default_rng(24)
    query = np.repeat(np.arange(QUERIES), N // QUERIES)
    score, relevance = rng.normal(size=N), (rng.random(N) < 0.2).astype(int)
    groups = {
        "ndcg": rng.integers(0, 2, QUERIES)[query],
        "exposure": rng.integers(0, 2, N),
        "ndkl": rng.integers(0, 5, N),
    }
    for metric, group in groups.items():

        def call(metric: str = metric, group: Any = group) -> None:
            fairperm.ranking_test(
                relevance,
                score=score,
                query=query,
                sensitive_features=group,
                metric=metric,
                n_resamples=DRAWS,
                rng=0,
                n_jobs=1,
                progress=False,
            )

        seconds = min(_seconds(call) for _ in range(REPEATS))
        report.bar(f"{metric} of 10⁶ items in 50,000 queries, seconds", seconds, "≤", 10.0)
