"""Searches of COMPAS and Adult."""

from __future__ import annotations

import itertools

import pytest

import fairperm
from fairperm.datasets import fetch_adult

pytestmark = [pytest.mark.validate, pytest.mark.usefixtures("real_data")]


def test_values_of_all_subgroups_of_adult_are_those_of_a_group_by() -> None:
    adult = fetch_adult("pandas")
    adult = adult[adult.split == "test"]
    names = ["workclass", "marital-status", "occupation", "relationship", "race", "sex"]
    result = fairperm.find_subgroups(
        y_pred="income",
        features=names,
        metric="selection_rate",
        data=adult,
        min_rows=100,
        n_resamples=39,
        rng=1,
    )
    expected: dict[tuple[tuple[str, object], ...], tuple[float, int]] = {}
    for depth in (1, 2, 3):
        for some in itertools.combinations(sorted(names), depth):
            table = adult.groupby(list(some), dropna=False).income.agg(["mean", "size"])
            large = table[(table["size"] >= 100) & (table["size"] <= len(adult) - 100)]
            for key, mean, size in large.itertuples():
                values = key if isinstance(key, tuple) else (key,)
                known = (value if isinstance(value, str) else None for value in values)
                expected[tuple(zip(some, known, strict=True))] = (mean, size)
    found = {tuple(one.conditions.items()): (one.value, one.n) for one in result.all}
    assert len(found) > 500
    for conditions, pair in found.items():
        assert pair == pytest.approx(expected[conditions], rel=1e-12)
    # of subgroups with the same rows the most general one is tested
    assert {(round(one[0], 12), one[1]) for one in found.values()} == {
        (round(one[0], 12), one[1]) for one in expected.values()
    }


@pytest.mark.filterwarnings("ignore")  # of pandas, which DivExplorer calls in old ways
def test_values_of_all_subgroups_of_adult_are_those_of_divexplorer() -> None:
    from divexplorer import DivergenceExplorer

    adult = fetch_adult("pandas")
    adult = adult[adult.split == "test"].reset_index(drop=True)
    names = ["workclass", "education", "marital-status", "occupation", "relationship"]
    names += ["race", "sex", "native-country"]
    data, least = adult[names].astype(object).fillna("missing"), 300
    for name in ("age", "hours-per-week"):
        data[name] = (adult[name].rank(pct=True) * 4).round().astype(int).astype(str)
    error = (adult.income != (adult["education-num"] >= 13)).astype(float)
    explorer = DivergenceExplorer(data.assign(error=error))
    patterns = explorer.get_pattern_divergence(least / len(data), boolean_outcomes=["error"])
    theirs = dict(zip(patterns.itemset, patterns.error, strict=True))
    result = fairperm.find_subgroups(
        error, features=data, metric="base_rate", min_rows=least, n_resamples=39, rng=1
    )
    ours = {
        frozenset(f"{name}={value}" for name, value in one.conditions.items()): one.value
        for one in result.all
    }
    assert len(ours) > 1000
    assert ours == pytest.approx({key: theirs[key] for key in ours}, rel=1e-12)
