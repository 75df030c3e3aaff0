"""joblib's cluster backends: the same numbers from the workers of a Dask cluster."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import joblib
import numpy as np
import pytest
from distributed import Client, LocalCluster

from tests.support.callables import accuracy, auc, labels, plain_accuracy, run, scores

# two workers of pytest would each start a cluster
pytestmark = [pytest.mark.validate, pytest.mark.xdist_group("dask")]


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    """Yield the client of two worker processes, reached through the loopback interface."""
    with (
        LocalCluster(  # type: ignore[no-untyped-call]
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",  # any port that is free
        ) as cluster,
        Client(cluster) as client,  # type: ignore[no-untyped-call]
    ):
        yield client


@pytest.mark.parametrize(
    ("metric", "data", "variance"),
    [
        pytest.param(accuracy, labels(), "fast_bootstrap", id="weights"),
        pytest.param(plain_accuracy, labels(), "bootstrap", id="rows"),
        pytest.param(auc, scores(), None, id="scores"),
        pytest.param(lambda y, p: np.mean(y == p), labels(), "fast_bootstrap", id="lambda"),
    ],
)
def test_a_cluster_changes_nothing(
    client: Client, metric: Any, data: dict[str, Any], variance: str | None
) -> None:
    options = {"variance": variance, "n_resamples": 99, "n_bootstrap": 5}
    one = run(data, metric, n_jobs=1, **options)
    with joblib.parallel_config(backend="dask"):
        other = run(data, metric, **options)
    assert other.pvalue == one.pvalue
    assert other.statistic == one.statistic
    assert other.standard_error == one.standard_error
    assert np.array_equal(other.null_distribution, one.null_distribution)


def test_the_function_runs_on_the_workers(client: Client) -> None:
    """Let the metric of the smaller group be the process that computes it."""
    data = labels()
    smaller = min(np.unique(data["sensitive_features"], return_counts=True)[1])

    def process(y_true: Any, y_pred: Any) -> float:
        return float(os.getpid() * (len(y_true) == smaller))

    with joblib.parallel_config(backend="dask"):
        result = run(data, process, variance=None)
    assert abs(result.statistic) == os.getpid()
    assert set(np.abs(result.null_distribution)) <= set(client.run(os.getpid).values())
