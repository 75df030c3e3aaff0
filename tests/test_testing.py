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
