"""Sweeps of all pairs of groups: each is a sweep of its own, and the level is that of all."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fairperm
from fairperm import InputError
from tests.support.simulations import at_most


def scored(rng: np.random.Generator, n: int = 300, groups: str = "abc") -> dict[str, Any]:
    """Return labels, scores from 0 to 9 and groups with different base rates and no gap."""
    group = rng.permutation(np.resize(list(groups), n))
    y_true = rng.random(n) < np.where(group == "a", 0.7, 0.4)
    y_score = rng.binomial(9, np.where(y_true, 0.7, 0.4))
    return {"y_true": y_true, "y_score": y_score, "sensitive_features": group}


def test_each_pair_is_a_sweep_at_its_share_of_the_level() -> None:
    data = scored(np.random.default_rng(1))
    options: dict[str, Any] = {"metric": ["tpr", "ppv"], "thresholds": [3, 5, 7], "rng": 1}
    options |= {"n_resamples": 199, "alternative": "greater"}
    found = fairperm.sweep_pairs(**data, **options, alpha=0.06)
    assert [one.groups for one in found] == [("a", "b"), ("a", "c"), ("b", "c")]
    for one in found:
        alone = fairperm.threshold_sweep(**data, **options, groups=one.groups, alpha=0.06 / 3)
        assert one.to_dict() == alone.to_dict()
    assert found.alpha == 0.06
    assert " The bands of each metric have the level 0.06 for all 3 pairs" in repr(found)
    frame = found.to_frame()
    assert len(frame) == 3 * 2 * 3
    assert frame.columns[:4].tolist() == ["first_group", "second_group", "metric", "threshold"]
    assert frame.groupby(["first_group", "second_group"], sort=False).ngroups == len(found) == 3


def test_all_pairs_have_the_same_thresholds() -> None:
    data = scored(np.random.default_rng(1))
    data["y_score"] = np.where(data["sensitive_features"] == "c", 2, 1) * data["y_score"]
    for thresholds in ("scores", 5):
        found = fairperm.sweep_pairs(
            **data, metric="tpr", thresholds=thresholds, n_resamples=199, rng=1
        )
        assert {one.thresholds.max() for one in found} == {data["y_score"].max()}


def test_groups_can_be_chosen_and_are_not_too_many() -> None:
    data = scored(np.random.default_rng(1), groups="abcdefghijk")
    options: dict[str, Any] = {"metric": "selection_rate", "thresholds": [5], "n_resamples": 199}
    found = fairperm.sweep_pairs(**data, **options, groups=("k", "a", "b"), rng=1)
    assert [one.groups for one in found] == [("k", "a"), ("k", "b"), ("a", "b")]
    with pytest.raises(InputError, match=r"at most 10 groups; got 11, which make 55 pairs\."):
        fairperm.sweep_pairs(**data, **options)
    with pytest.raises(InputError, match=r"pass groups=\('a', 'b'\), or use sweep_pairs\(\)"):
        fairperm.threshold_sweep(**data, **options)


def test_pairs_that_cannot_be_tested_are_named_with_the_reason() -> None:
    data = scored(np.random.default_rng(1), 600)
    lacks_positives = (data["sensitive_features"] == "c") & data["y_true"]
    data = {name: column[~lacks_positives] for name, column in data.items()}
    data["code"] = ["abc".index(one) for one in data.pop("sensitive_features")]
    given: dict[str, Any] = {
        "y_true": "y_true",
        "y_score": "y_score",
        "sensitive_features": "code",
        "data": data,
    }
    options: dict[str, Any] = {**given, "metric": "tpr", "thresholds": [5], "rng": 1}
    found = fairperm.sweep_pairs(**options, n_resamples=199)
    assert list(found.not_swept) == ["(code = 0) − (code = 2)", "(code = 1) − (code = 2)"]
    assert all("undefined at all thresholds" in one for one in found.not_swept.values())
    (one,) = found
    assert one.alpha == 0.05 / 3
    assert "not tested" in repr(found)
    assert "(code = 0) − (code = 2): metric must be" in " ".join(repr(found).split())
    assert "together: 0.017 for each of them." in " ".join(repr(found).split())
    for page in (
        found.to_html(),
        fairperm.audit(**given, threshold=5, metrics="tpr").to_html(sweep=found),
    ):
        assert "<bdi>(code = 1) − (code = 2)</bdi> was not tested" in page
    with pytest.raises(InputError, match="undefined at all thresholds"):
        fairperm.sweep_pairs(**options, groups=(0, 2))


def test_too_few_permutations_for_so_many_pairs_are_noted() -> None:
    data = scored(np.random.default_rng(1))
    options: dict[str, Any] = {"metric": "tpr", "thresholds": [5], "rng": 1}
    with pytest.warns(fairperm.FairpermWarning, match="no gap can be found. Use n_resamples=120"):
        found = fairperm.sweep_pairs(**data, **options, n_resamples=99)
    assert found.to_dict()["notes"] == list(found.notes)
    assert found.notes[0] in found.to_html()
    assert not fairperm.sweep_pairs(**data, **options, n_resamples=120).notes


@pytest.mark.validate
def test_the_level_holds_for_all_pairs_together() -> None:
    n_sets, level = 400, 0.05
    rng = np.random.default_rng(20)
    rejected, of_each = 0, 0
    for seed in range(n_sets):
        found = fairperm.sweep_pairs(
            **scored(rng), metric="tpr", thresholds="scores", n_resamples=199, rng=seed
        )
        p = min(one.curves["true_positive_rate"].global_pvalue for one in found)
        rejected += p <= level / 3
        of_each += p <= level
    assert rejected <= at_most(level, n_sets)
    assert of_each > at_most(level, n_sets)  # without dividing it does not
