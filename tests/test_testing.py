"""The helper for test suites."""

from __future__ import annotations

from typing import Any

import pytest

import fairperm
from fairperm.errors import InputError
from fairperm.testing import assert_no_disparity

LABELS = [1] * 100 + [0] * 100 + [1] * 100 + [0] * 100
UNLIKE = [1] * 90 + [0] * 110 + [1] * 40 + [0] * 160
GROUPS = ["a"] * 200 + ["b"] * 200


def test_passes_and_returns_the_audit() -> None:
    audit = assert_no_disparity(LABELS, LABELS, sensitive_features=GROUPS, metrics="base_rate")
    assert isinstance(audit, fairperm.Audit)
    assert_no_disparity(y_true=LABELS, sensitive_features=GROUPS, metrics="base_rate")


def test_fails_with_the_table() -> None:
    with pytest.raises(AssertionError, match="1 of 2 comparisons have the verdict") as caught:
        assert_no_disparity(
            LABELS, UNLIKE, sensitive_features=GROUPS, metrics=["selection_rate", "base_rate"]
        )
    assert "selection_rate" in str(caught.value)
    assert "disparity" in str(caught.value)


def test_takes_an_audit() -> None:
    audit = fairperm.audit(LABELS, UNLIKE, sensitive_features=GROUPS, metrics="selection_rate")
    with pytest.raises(AssertionError, match="disparity"):
        assert_no_disparity(audit)
    with pytest.raises(
        InputError, match=r"Pass an audit or its arguments, not both; got 'metrics'\."
    ):
        assert_no_disparity(audit, metrics="base_rate")


def test_fails_on_what_it_is_told_to() -> None:
    def check(fail_on: Any) -> None:
        assert_no_disparity(
            LABELS, LABELS, sensitive_features=GROUPS, metrics="selection_rate", fail_on=fail_on
        )

    check(["disparity", "too-small"])
    with pytest.raises(AssertionError, match="inconclusive"):
        check("inconclusive")
    with pytest.raises(
        InputError, match=r"fail_on must be one or several of .* Did you mean 'disparity'\?"
    ):
        check("disparty")


def test_too_small() -> None:
    with (
        pytest.warns(fairperm.FairpermWarning, match="Nothing was judged"),
        pytest.raises(AssertionError, match="too small"),
    ):
        assert_no_disparity(
            [1, 0] * 10,
            [1, 0] * 10,
            sensitive_features=["a"] * 10 + ["b"] * 10,
            metrics="selection_rate",
            fail_on="too small",
        )


def rates(*counts: tuple[int, int]) -> dict[str, Any]:
    """Return groups of which so many of so many rows are selected."""
    return {
        "y_pred": [one for k, n in counts for one in [1] * k + [0] * (n - k)],
        "sensitive_features": [i for i, (_, n) in enumerate(counts) for _ in range(n)],
        "metrics": "selection_rate",
    }


def gate(fail_on: Any, **options: Any) -> fairperm.Audit:
    return assert_no_disparity(options.pop("y_true", None), fail_on=fail_on, **options)


def test_a_ratio_that_is_not_met() -> None:
    unlike = rates((80, 100), (20, 100))
    with pytest.raises(AssertionError, match="1 of 1 comparisons have the verdict ratio not met"):
        gate("ratio", **unlike, ratio=0.8)
    assert gate("ratio", **rates((79, 100), (80, 100)), ratio=0.8).rows[0].ratio_verdict
    slight = rates((30, 100), (40, 100)) | {"ratio": 0.8}
    assert [row.ratio_text for row in gate("ratio", **slight)] == ["0.750 < 0.8, undecided"]
    with pytest.raises(AssertionError, match=r"1 of 1 .* ratio not met by the estimate"):
        gate("ratio-estimate", **slight)
    with pytest.raises(InputError, match=r"fail_on='ratio' needs ratio, such as 0\.8\."):
        gate(["disparity", "ratio"], **unlike)


CONTROL = {"control_features": [i % 2 for i in range(200)]}
JOINT = {"y_true": LABELS, "y_pred": UNLIKE, "sensitive_features": GROUPS} | {
    "metrics": "equalized_odds"
}


@pytest.mark.parametrize(
    ("fail_on", "options", "said"),
    [
        ("ratio", rates((80, 100), (20, 100)) | CONTROL | {"ratio": 0.8}, "ratio must be left out"),
        ("ratio", rates((0, 100), (0, 100)) | {"ratio": 0.8}, "0.000 / 0.000 have no ratio"),
        ("ratio estimate", rates((0, 99), (0, 99)) | {"ratio": 0.8}, "0.000 have no ratio"),
        ("disparity", rates((9, 10), (1, 10)), "in every comparison a group is too small"),
        ("inconclusive", rates((9, 10), (1, 10)), "fail_on='too-small' fails there"),
        ("disparity", JOINT | {"margin": 0.1}, "several gaps at once have no test at a margin"),
        ("disparity", rates((2, 2), (0, 2)) | {"min_group_size": 1}, "so few rows or clusters"),
        ([], rates((80, 100), (20, 100)), "fail_on must be one or several of"),
    ],
)
@pytest.mark.filterwarnings("ignore::fairperm.FairpermWarning")
def test_what_cannot_be_evaluated_is_refused(
    fail_on: Any, options: dict[str, Any], said: str
) -> None:
    with pytest.raises(InputError, match=said):
        gate(fail_on, **options)


def test_few_permutations_are_refused() -> None:
    scores = [i % 7 / 7 for i in range(400)]
    options: dict[str, Any] = {"y_score": scores, "sensitive_features": GROUPS}
    with (
        pytest.warns(fairperm.FairpermWarning, match="might not be called a disparity"),
        pytest.raises(InputError, match=r"so few resamples .* Use n_resamples=39 or more"),
    ):
        assert_no_disparity(LABELS, **options, metrics="roc_auc", n_resamples=19)
    assert_no_disparity(LABELS, **options, metrics="roc_auc", n_resamples=39)


def test_an_audit_read_from_a_file_is_evaluated_alike() -> None:
    options: dict[str, Any] = rates((2, 2), (0, 2)) | {"min_group_size": 1, "scheme": "pooled"}
    audit = fairperm.audit(**options)
    for one in (audit, fairperm.Audit.from_dict(audit.to_dict())):
        with pytest.raises(InputError, match="so few rows or clusters have no p-value"):
            assert_no_disparity(one)


def test_no_row_is_no_evidence() -> None:
    audit = fairperm.audit(LABELS, UNLIKE, sensitive_features=GROUPS, metrics="selection_rate")
    with pytest.raises(InputError, match="fail_on='disparity' cannot be evaluated: there is no"):
        assert_no_disparity(audit.where(verdict="equivalent"))


def test_groups_that_are_too_small_are_counted() -> None:
    three = rates((50, 100), (50, 100), (1, 9))
    with pytest.warns(
        fairperm.FairpermWarning, match="2 of 3 comparisons have no verdict: a group"
    ):
        gate("disparity", **three)
    with pytest.raises(AssertionError, match="2 of 3 comparisons have the verdict too small"):
        gate("too small", **three)
