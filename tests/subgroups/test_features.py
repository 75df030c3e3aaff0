"""Features as levels: quantile bands, ranges of ordered bands, values and missing values."""

from __future__ import annotations

import json
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from fairperm import Band
from fairperm.data.columns import Source
from fairperm.subgroups.features import Feature, describe, read_features


def read(values: object, bands: int = 4) -> Feature:
    (feature,) = read_features(Source(None), None, {"x": values}, bands)
    return feature


def conditions(feature: Feature) -> list[object]:
    return [item.condition for item in feature.items()]


def test_numbers_are_cut_at_quantiles_and_bands_join_into_ranges() -> None:
    feature = read(np.arange(1, 101))
    single = [Band(None, 25), Band(26, 50), Band(51, 75), Band(76, None)]
    joined = [Band(None, 50), Band(None, 75), Band(26, 75), Band(26, None), Band(51, None)]
    assert conditions(feature) == [*single, *joined]
    assert np.bincount(feature.column.codes).tolist() == [25, 25, 25, 25]


def test_equal_numbers_are_never_separated() -> None:
    feature = read([0] * 90 + [5.5, 6.5, 7.5, 8.5] * 3)
    assert feature.levels == (0.0, Band(5.5, None))
    assert conditions(read([0, 1, 1, 2])) == [0, 1, 2, Band(None, 1), Band(1, None)]


def test_missing_values_and_values_of_any_type_are_levels() -> None:
    assert read(["b", None, "a"]).levels == ("a", "b", None)
    assert read([True, False, None]).levels == (False, True, None)
    assert read([1.0, float("nan"), 2.0]).levels == (1.0, 2.0, None)
    assert conditions(read([3.0, float("nan"), 1.0, 2.0], 2))[-1] is None
    assert len(read(np.array([1, 2, 3], "m8[s]"), 2).levels) == 3


@pytest.mark.parametrize("kind", [float, Decimal, Fraction, np.float32, np.int64])
def test_numbers_of_every_type_are_cut_at_quantiles(kind: Any) -> None:
    feature = read([kind(i) for i in range(8)])
    assert feature.levels == (Band(None, 1), Band(2, 3), Band(4, 5), Band(6, None))
    assert json.dumps(feature.bounds)  # plain numbers


def test_infinite_numbers_are_at_the_ends() -> None:
    feature = read([-np.inf, 1, 2, 3, 4, np.inf], 3)
    assert feature.levels == (Band(None, 1), Band(2, 3), Band(4, None))
    assert np.inf in Band(4, None)


def test_large_numbers_are_told_apart() -> None:
    assert describe({"a": Band(1234567, 1234568)}) == "a 1234567 to 1234568"
    assert describe({"a": Band(1700000001.5, None)}) == "a at least 1700000002"
    assert describe({"a": 10**20 + 1, "b": 2e6}) == "a = 100000000000000000001 and b = 2000000"


def test_descriptions_are_words() -> None:
    found = {"age": Band(26, 45), "priors": 0, "race": None, "rate": 0.5, "s\nx": "Female"}
    expected = "age 26 to 45 and priors = 0 and race missing and rate = 0.5 and s␊x = Female"
    assert describe(found) == expected
    assert [str(Band(None, 2)), str(Band(3, None)), str(Band(4, 4))] == [
        "at most 2",
        "at least 3",
        "4",
    ]


@pytest.mark.parametrize(("number", "inside"), [(25, False), (26, True), (45, True), (46, False)])
def test_bands_include_their_ends(number: int, inside: bool) -> None:
    assert (number in Band(26, 45)) is inside
