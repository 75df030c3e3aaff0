"""Names, rows and threads change no number of many groups: draws belong to contents."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.examples import examples
from tests.support.many_groups import ENGINES, build, permuted


@pytest.mark.parametrize("engine", ENGINES)
@examples(40)
@given(data=st.data())
def test_every_groups_draws_follow_it_under_any_name(engine: str, data: st.DataObject) -> None:
    """Few rows with many ties, in groups that are alike: draws belong to contents, not names."""
    n_groups = data.draw(st.integers(2, 4))
    size = data.draw(st.integers(2, 4))
    n = n_groups * size
    label = np.array(data.draw(st.lists(st.integers(0, 1), min_size=n, max_size=n)))
    score = np.array(data.draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))) / 4
    order = np.array(data.draw(st.permutations(range(n))))
    names = np.array(data.draw(st.permutations(range(n_groups))))
    group = np.repeat(np.arange(n_groups), size)
    if len(set(label.tolist())) < 2:
        return
    both = []
    for rows, name in ((np.arange(n), np.arange(n_groups)), (order, names)):
        columns = {
            "y_true": label[rows],
            "y_score": score[rows],
            "sensitive_features": name[group[rows]],
        }
        found = permuted(build(engine, columns, "roc_auc", "pooled", "delong"), 16)
        both.append(found.value[0, :, 0][:, name])
    contents = [
        sorted(zip(label[group == g].tolist(), score[group == g].tolist(), strict=True))
        for g in range(n_groups)
    ]
    for g in range(n_groups):
        if contents.count(contents[g]) == 1:  # groups that are alike cannot be told apart
            np.testing.assert_allclose(both[0][:, g], both[1][:, g])
