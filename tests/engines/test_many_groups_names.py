"""Names, rows and threads change no number of many groups: draws belong to contents."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairperm import FairpermWarning, omnibus_test
from tests.support.examples import examples
from tests.support.many_groups import ENGINES, build, force, permuted, repeating

INVARIANT = [
    ("selection_rate", "counts", {}),
    ("selection_rate", "units", {}),
    ("selection_rate", "units", {"variance": "wald"}),
    ("roc_auc", "counts", {}),
    ("roc_auc", "units", {}),
    ("roc_auc", "units", {"scheme": "pooled"}),
    ("mean_squared_error", "units", {}),
    ("expected_calibration_error", "counts", {"variance": None}),
    ("expected_calibration_error", "units", {"variance": None}),
]


def outcome(data: dict[str, Any], metric: str, **options: Any) -> tuple[float, float, float]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FairpermWarning)
        result = omnibus_test(
            **data, **{"metric": metric, "n_resamples": 499, "rng": 5, "n_jobs": 1, **options}
        )
    return result.pvalue, result.statistic, result.n_undefined


@pytest.mark.parametrize("strata", [False, True], ids=["all rows", "strata"])
@pytest.mark.parametrize(("metric", "engine", "options"), INVARIANT)
def test_names_rows_and_threads_change_no_number(
    metric: str, engine: str, options: dict[str, Any], strata: bool
) -> None:
    if strata and metric == "expected_calibration_error":
        return  # has a bootstrapped variance, which strata are refused for
    data = repeating(metric, 160, seed=3)
    # groups of equal sizes: only what is in them tells them apart
    data["sensitive_features"] = np.array(list("abcd"))[np.arange(160) % 4]
    if strata:
        data["control_features"] = np.arange(160) * 7 % 3
    rng = np.random.default_rng(8)
    with pytest.MonkeyPatch.context() as patch:
        force(patch, engine)
        expected = outcome(data, metric, **options)
        order = rng.permutation(160)
        shuffled = {name: np.asarray(column)[order] for name, column in data.items()}
        assert outcome(shuffled, metric, **options) == pytest.approx(expected, rel=1e-12)
        for names in ("dcba", "badc", "cdab"):
            other = np.array(list(names))[np.arange(160) % 4]
            renamed = {**data, "sensitive_features": other}
            assert outcome(renamed, metric, **options) == pytest.approx(expected, rel=1e-10)
        assert outcome(data, metric, **options, n_jobs=2) == expected
        if strata:
            renamed = {**data, "control_features": (data["control_features"] + 1) % 3}
            assert outcome(renamed, metric, **options) == pytest.approx(expected, rel=1e-12)


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


@pytest.mark.parametrize("groups", [2, 3])
def test_the_order_of_groups_is_by_size(groups: int) -> None:
    data = repeating("roc_auc")
    data["sensitive_features"] = np.arange(400) ** 2 % 7 % groups
    for engine in ENGINES:
        order = build(engine, data, "roc_auc", "pooled", "delong").order
        sizes = np.bincount(data["sensitive_features"])
        assert sorted(order) == list(range(groups))
        assert (np.diff(sizes[list(order)]) >= 0).all()
