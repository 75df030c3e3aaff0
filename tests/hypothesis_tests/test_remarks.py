"""Remarks on data that are probably not what the user meant."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fairperm
from fairperm.errors import FairpermWarning

GROUP = np.repeat(["a", "b", "c"], 40)
LABEL = np.tile([0, 1], 60)
SCORE = np.random.default_rng(1).normal(size=120) - LABEL
REVERSED = (
    "roc_auc is below 0.5 in every group: higher scores go with negative labels. Check the "
    "direction of the scores, and pos_label."
)
PERFECT = "y_pred equals y_true in all 120 rows. Check that the columns are not the same."
DRAWS: dict[str, Any] = {"n_resamples": 9, "rng": 1}


def audit_auc(score: Any) -> fairperm.Audit:
    with pytest.warns(FairpermWarning, match="comparisons have notes"):
        return fairperm.audit(
            LABEL,
            y_score=score,
            sensitive_features=GROUP,
            metrics="roc_auc",
            min_group_size=2,
            alpha=0.9,
            **DRAWS,
        )


def test_an_auc_below_one_half_in_every_group_gets_a_remark() -> None:
    given: dict[str, Any] = {"y_score": SCORE, "sensitive_features": GROUP, **DRAWS}
    with pytest.warns(FairpermWarning, match="rows of group 'a' show how roc_auc"):
        all_groups = fairperm.omnibus_test(LABEL, metric="roc_auc", **given)
    assert REVERSED in all_groups.notes
    audit = audit_auc(SCORE)
    assert audit.notes.count(REVERSED) == 1
    assert "Only about" in audit.notes[0]  # notes of the tests come first
    one = audit.rows[0].result
    assert one is not None
    assert REVERSED in one.notes


def test_no_remark_if_the_auc_of_one_group_is_above_one_half() -> None:
    assert REVERSED not in audit_auc(np.where(GROUP == "a", -SCORE, SCORE)).notes


def of_model(age: str, name: str) -> str:
    return (
        f"roc_auc of the {age} model is below 0.5 in every group: its higher scores go with "
        f"negative labels. Check the direction of {name}, and pos_label."
    )


OLD, NEW = of_model("old", "y_score"), of_model("new", "y_score_new")


@pytest.mark.parametrize(
    ("signs", "notes"), [((-1, 1), [NEW]), ((1, -1), [OLD]), ((1, 1), [OLD, NEW]), ((-1, -1), [])]
)
def test_a_model_with_an_auc_below_one_half_in_every_group_gets_a_remark(
    signs: tuple[int, int], notes: list[str]
) -> None:
    rng = np.random.default_rng(1)
    label, group = np.tile([0, 1], 300), np.repeat(["a", "b", "c"], 200)
    old, new = (sign * (rng.normal(size=600) - label) for sign in signs)
    given: dict[str, Any] = {"y_score": old, "y_score_new": new, "sensitive_features": group}
    pair = fairperm.compare_models(label, metric="roc_auc", groups=("a", "b"), **given, **DRAWS)
    assert [*pair.notes] == notes
    assert pair.to_dict()["notes"] == notes
    assert all(note in " ".join(repr(pair).split()) for note in notes)
    enough = {**DRAWS, "n_resamples": 59}  # for a p-value below the level
    audit = fairperm.audit(label, metrics="roc_auc", alpha=0.2, **given, **enough)
    assert [*audit.notes] == notes
    assert audit.to_dict()["notes"] == notes
    for note in notes:
        assert note.split(":")[0] in audit.to_html()


def test_no_remark_on_a_model_if_the_auc_of_one_group_is_above_one_half() -> None:
    label, group = np.tile([0, 1], 300), np.repeat(["a", "b"], 300)
    rng = np.random.default_rng(1)
    score, other = rng.normal(size=(2, 600)) + label
    new = np.where(group == "a", other, -other)
    pair = fairperm.compare_models(
        label, y_score=score, y_score_new=new, sensitive_features=group, metric="roc_auc", **DRAWS
    )
    assert pair.notes == ()


def test_predictions_that_equal_the_labels_get_a_remark() -> None:
    given: dict[str, Any] = {"sensitive_features": GROUP, **DRAWS}
    audit = fairperm.audit(LABEL, LABEL, metrics=["accuracy", "tpr"], min_group_size=2, **given)
    assert audit.notes == (PERFECT,)
    one = fairperm.permutation_test(LABEL, LABEL, metric="tpr", groups=("a", "b"), **given)
    assert PERFECT in one.notes
    other = np.where(np.arange(120) == 5, 1 - LABEL, LABEL)
    one = fairperm.permutation_test(LABEL, other, metric="tpr", groups=("a", "b"), **given)
    assert one.notes == ()
