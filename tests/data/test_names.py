"""Values that are easily taken for each other: equal numbers, text forms, large integers."""

from __future__ import annotations

import unicodedata
from typing import Any

import numpy as np
import polars as pl
import pytest

import fairperm
from fairperm import InputError

N = 400
RNG = np.random.default_rng(3)
LABEL, PREDICTION = RNG.integers(0, 2, (2, N))
COMPOSED, DECOMPOSED = (unicodedata.normalize(form, "caf\xe9") for form in ("NFC", "NFD"))


def run(group: Any, **options: Any) -> fairperm.PermutationTestResult:
    return fairperm.permutation_test(
        LABEL,
        PREDICTION,
        sensitive_features=group,
        metric="accuracy",
        n_resamples=99,
        rng=1,
        **options,
    )


@pytest.mark.parametrize("as_array", [False, True])
def test_equal_numbers_of_different_types_are_one_group_and_noted(as_array: bool) -> None:
    group: list[object] = [1, True, 1.0, 2] * (N // 4)
    result = run(np.array(group, object) if as_array else group)
    assert result.counts[1]["rows"] == 3 * N // 4
    (note,) = result.notes
    assert note == (
        "sensitive_features has equal values of different types, each of which is one: "
        "1 = True = 1.0."
    )


@pytest.mark.parametrize("pair", [[1, 2.5], [1, np.int64(2)], [True, False], [1.0, np.nan]])
def test_different_numbers_are_not_noted(pair: list[Any]) -> None:
    group: list[Any] = [*pair, 3] * (N // 3) + [3] * (N % 3)
    assert run(group, missing="drop", groups=(pair[0], 3)).notes == ()


def test_strata_are_noted_too_and_labels_are_not() -> None:
    stratum: list[object] = [1, True, 2, 2] * (N // 4)
    group = ["a", "b"] * (N // 2)
    assert "control_features has equal values" in run(group, control_features=stratum).notes[0]
    mixed = [bool(one) if i % 2 else int(one) for i, one in enumerate(LABEL)]
    result = fairperm.permutation_test(
        mixed, PREDICTION, sensitive_features=group, metric="accuracy", rng=1
    )
    assert result.notes == ()


def test_text_that_ends_in_nul_cannot_be_two_things() -> None:
    """An array of text holds 'a' where a list holds 'a' with a NUL."""
    with pytest.raises(InputError, match=r"text that does not end in a NUL; got 'a\\x00'"):
        run(["a\0", "b"] * (N // 2))


def test_groups_that_differ_in_unicode_form_are_noted() -> None:
    (note,) = run([COMPOSED, DECOMPOSED] * (N // 2)).notes
    assert note.startswith("sensitive_features has names that look alike but differ in Unicode")
    assert run([COMPOSED, "cafe"] * (N // 2)).notes == ()


@pytest.mark.parametrize("metric", ["accuracy", "f1_macro"])
def test_labels_that_differ_in_unicode_form_are_refused(metric: str) -> None:
    label = [COMPOSED, "no"] * (N // 2)
    for y_true, y_pred in (
        (label, [DECOMPOSED, "no"] * (N // 2)),
        ([COMPOSED, DECOMPOSED, "no", "no"] * (N // 4), [DECOMPOSED, "no"] * (N // 2)),
    ):
        with pytest.raises(InputError, match=r"labels in one Unicode form .*'cafe\\u0301'"):
            fairperm.permutation_test(
                y_true, y_pred, sensitive_features=["a", "a", "b", "b"] * (N // 4), metric=metric
            )


def test_six_columns_of_integers_make_strata_if_few_combinations_occur() -> None:
    first = np.random.default_rng(4).choice([0, 4000], N)
    columns = {f"column {i}": first for i in range(6)}
    group = ["a", "b"] * (N // 2)
    result = run(group, control_features=columns)
    one = run(group, control_features=first)
    assert result.n_strata == one.n_strata == 2
    assert (result.difference, result.pvalue) == (one.difference, one.pvalue)


def test_combinations_of_many_columns_keep_their_names() -> None:
    rng = np.random.default_rng(5)
    columns = {f"column {i}": rng.choice([-i, 4000 - i], N) for i in range(6)}
    expected = {*zip(*(column.tolist() for column in columns.values()), strict=True)}
    audit = fairperm.audit(
        LABEL,
        PREDICTION,
        sensitive_features=columns,
        metrics="accuracy",
        intersections=True,
        compare="rest",
        min_group_size=1,
        n_resamples=9,
        rng=1,
    )
    groups = {one.group: one.rows for one in audit.groups if "×" in one.attribute}
    assert {*groups} == expected
    assert sum(groups.values()) == N


LARGE = 2**53


@pytest.mark.parametrize("form", ["array", "list", "unsigned", "polars"])
def test_integers_that_floats_round_are_refused(form: str) -> None:
    truth = [LARGE + 3 * (i % 2) for i in range(N)]
    given: dict[str, Any] = {
        "array": np.array(truth),
        "list": truth,
        "unsigned": np.array(truth, np.uint64),
        "polars": pl.Series(truth),
    }
    with pytest.raises(
        InputError, match=r"y_true must be .* up to 2\*\*53\); got 9007199254740995"
    ):
        fairperm.permutation_test(
            given[form], [LARGE] * N, sensitive_features=["a", "b"] * (N // 2), metric="mean_error"
        )


@pytest.mark.parametrize("form", [np.array, list])
def test_integers_that_floats_hold_are_exact_however_large(form: Any) -> None:
    truth = form([-(2**60) + 2**10 * (i % 2) for i in range(N)])
    result = fairperm.permutation_test(
        truth,
        [-(2**60)] * N,
        sensitive_features=["a", "b"] * (N // 2),
        metric="mean_error",
        variance=None,
        n_resamples=9,
        rng=1,
    )
    assert result.difference == 2**10


def test_sums_of_integers_that_floats_round_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairperm.data.lazy.counting.MAX_KINDS", 10)
    frame = pl.LazyFrame(
        {"y": [LARGE + i for i in range(N)], "p": [LARGE] * N, "g": ["a", "b"] * (N // 2)}
    )
    with pytest.raises(InputError, match=r"y_true \(column 'y'\) must be made of integers"):
        fairperm.permutation_test(
            "y", "p", data=frame, sensitive_features="g", metric="mean_error", n_resamples=0
        )
