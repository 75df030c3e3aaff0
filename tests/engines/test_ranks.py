"""The jackknife of an AUC among rows that hardly repeat, which BCa intervals are made with."""

from __future__ import annotations

import numpy as np
import pytest

import fairperm

SCORE = np.random.default_rng(0).random(400)
GROUP = np.repeat(["a", "b"], 200)


@pytest.mark.parametrize("positives", [1, 2])
def test_a_group_of_few_positives_has_an_interval_and_no_numpy_warning(positives: int) -> None:
    few = np.arange(200) < positives
    label = np.concatenate([few, np.random.default_rng(1).random(200) < 0.5])
    with pytest.warns(fairperm.FairpermWarning, match="undefined in .* of the bootstrap") as said:
        result = fairperm.bootstrap_test(
            *(label, None),
            y_score=SCORE,
            sensitive_features=GROUP,
            metric="roc_auc",
            n_resamples=99,
            rng=1,
        )
    assert len(said) == 1
    low, high = result.confidence_interval
    assert -1 <= low < high <= 1
