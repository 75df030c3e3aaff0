"""Bootstrap samples of units, against sums over the rows that are drawn."""

import numpy as np
import pytest

from fairperm.data.sample import Sample
from fairperm.engines.totals import TotalsEngine
from fairperm.metrics import get_metric
from fairperm.metrics.definition import Metric


@pytest.mark.parametrize("metric", ["expected_calibration_error", "brier_score"])
def test_bootstrap_samples_are_rows_drawn_with_replacement(metric: str) -> None:
    rng = np.random.default_rng(1)
    y_true, y_score = rng.integers(2, size=50), rng.random(50)
    group = (np.arange(50) >= 20).astype(np.uint8)  # the smaller comes first
    definition = get_metric(metric)
    assert isinstance(definition, Metric)
    contributions = definition.matrix({"y_true": y_true, "y_score": y_score})
    engine = TotalsEngine.from_rows(
        (definition,),
        Sample(
            columns={},
            contributions=contributions,
            group=group,
            stratum=np.zeros(50, np.int64),
            block=np.zeros(50, np.int64),
            count=np.ones(50, np.int64),
            groups=(0, 1),
            strata=("all",),
        ),
        None,
        None,
        0,
    )
    found = engine.bootstrapped(6, np.random.default_rng(2)).value[0, :, 0]
    again = np.random.default_rng(2)
    order = np.lexsort(contributions.T[::-1])
    for g in (0, 1):
        mine = contributions[order[group[order] == g]]
        totals = mine[again.integers(len(mine), size=(6, len(mine)))].sum(axis=1)
        np.testing.assert_allclose(found[:, g], definition.estimate(totals), rtol=1e-12)
