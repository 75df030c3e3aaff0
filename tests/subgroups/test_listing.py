"""The few subgroups that are listed, and confirmation in rows that were not searched."""

from __future__ import annotations

import numpy as np
import pytest

import fairperm
from fairperm.subgroups.confirmation import split_table
from fairperm.subgroups.listing import choose_listed
from tests.subgroups.populations import Population, find_cells
from tests.subgroups.test_search import RATE, find, make_data


def list_conditions(population: Population, seed: int = 0) -> list[dict[str, object]]:
    found = population.search(seed)
    return [found.candidates.describe(place) for place in found.choose_listed().places]


ONE, PAIR, OTHER = (("a", 0),), (("a", 0), ("b", 0)), (("a", 1), ("c", 0))


@pytest.mark.parametrize(
    ("metric", "planted"),
    [
        ("true_positive_rate", [ONE]),
        ("true_positive_rate", [PAIR]),
        ("true_positive_rate", [PAIR, OTHER]),
        ("mean_squared_error", [ONE]),
        ("mean_squared_error", [PAIR]),
    ],
)
def test_planted_subgroups_are_listed_and_what_they_explain_is_not(
    metric: str, planted: list[tuple[tuple[str, int], ...]]
) -> None:
    effect = -0.35 if metric == "true_positive_rate" else 3.0
    population = Population(metric, dict.fromkeys(planted, effect), n=4000)
    found = population.search(0)
    assert len(found.found) > 2 * len(planted)
    listed = list_conditions(population)
    inside = [find_cells(tuple(one.items())) for one in listed]  # type: ignore[arg-type]
    for one in planted:  # as such, or as its complement
        cells = find_cells(one)
        assert any((mine == cells).all() or (mine == ~cells).all() for mine in inside)
    assert len(listed) <= len(planted) + 1


def test_nothing_is_listed_where_nothing_is_found() -> None:
    found = Population("true_positive_rate", {}).search(1)
    assert len(found.found) == len(found.choose_listed().places) == 0


def test_of_subgroups_that_differ_alike_the_most_general_is_listed() -> None:
    found = Population("true_positive_rate", {(("a", 0),): -0.3}, n=3000).search(0)
    chosen = choose_listed(
        found.sample,
        found.candidates.take(found.found),
        np.ones(len(found.found)),
        found.scale,
        alternative="greater",
        alpha=0.05,
    )
    assert len(found.candidates.conditions[found.found[chosen.places[0]]]) == 1


def test_subgroups_without_variance_are_found_and_listed() -> None:
    feature = np.repeat(["x", "y", "z"], [40, 60, 60])
    with pytest.warns(fairperm.FairpermWarning, match="rest on few influential rows"):
        result = fairperm.find_subgroups(
            np.zeros(160),
            np.where(feature == "x", 2.0, 1.0),
            features={"a": feature},
            metric="mean_squared_error",
            n_resamples=199,
            rng=1,
        )
    assert result[0].conditions == {"a": "x"}
    assert np.isinf(result[0].statistic)
    assert result[0].confidence_interval[0] > 0  # without a standard error nothing more is known


def test_list_that_is_cut_short_does_not_claim_to_explain_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data = make_data(2000)
    assert len(find(data, **RATE, n_resamples=59, max_depth=1).listed) == 2
    monkeypatch.setattr("fairperm.subgroups.listing.MAX_LISTED", 1)
    with pytest.warns(fairperm.FairpermWarning, match="They do not explain all others found"):
        result = find(data, **RATE, n_resamples=59, max_depth=1)
    assert len(result.listed) == 1


def test_split_is_random_and_keeps_clusters_and_counts() -> None:
    table = Population("true_positive_rate", {}, n=1000).draw(1).table
    first, second = split_table(table, 0.3, seed=1)
    assert (first.count.sum(), second.count.sum()) == (700, 300)
    again = split_table(table.take(np.random.default_rng(1).permutation(1000)), 0.3, seed=1)
    assert np.array_equal(again[1].group, second.group)
    assert not np.array_equal(split_table(table, 0.3, seed=2)[1].group, second.group)


def test_confirmation_tests_in_other_rows_what_a_search_lists() -> None:
    data = make_data(2000)
    result = find(data, **RATE, confirm=0.5, n_resamples=59)
    assert result.adjust == "holm"
    assert result.confirm == 0.5
    assert 1 <= len(result) <= len(result.all) < 10
    assert result[0].conditions["sex"] == "f"
    assert 0.3 < result[0].n / len(data) / 0.5 / (0.5 * 0.37) < 1.7  # about half of them
    assert "Holm's method" in result.validity
    assert "Exact" in result.validity
    assert "Holm at 5 %, in 50 % of the rows; the other rows were searched" in repr(result)
    low, high = result[0].confidence_interval
    assert 0 < low < result[0].gap < high
    clustered = find(data, **RATE, confirm=0.5, cluster="person", n_resamples=39)
    assert clustered.confirm == 0.5


def test_confirmation_draws_enough_for_all_that_is_listed() -> None:
    data = make_data(2000)
    data["error"] = np.where((data.sex == "f") & (data.age < 40), 3.0, 1.0) * (data.score - 0.4)
    data["y"] = 0.0
    result = find(data, y_pred="error", metric="mean_squared_error", confirm=0.5, n_resamples=39)
    assert len(result.all) > 1
    assert result[0].adjusted_pvalue < 2 / 40  # which 39 draws would not give even a single test


def test_confirmation_has_the_notes_of_its_tests() -> None:
    rng = np.random.default_rng(1)
    tenth = rng.integers(10, size=900)
    y = np.where(tenth == 0, 3 + rng.lognormal(0, 1.5, 900), rng.uniform(0, 3, 900))
    features = {"tenth": tenth.astype(str)}
    message = "rows? of group 'tenth = 0' shows? how mean_outcome varies"
    with pytest.warns(fairperm.FairpermWarning, match=message):
        result = fairperm.find_subgroups(
            y, features=features, metric="mean_outcome", confirm=0.5, n_resamples=99, rng=1
        )
    assert "tenth = 0" in [one.description for one in result.all]
    assert len(set(result.notes)) == len(result.notes)
    assert "how mean_outcome varies" in " ".join(repr(result).split())
    assert list(result.notes) == result.to_dict()["notes"]


def test_confirmation_without_anything_to_confirm_is_empty() -> None:
    rng = np.random.default_rng(3)
    y, p, a = (rng.integers(2, size=300) for _ in range(3))
    result = fairperm.find_subgroups(
        y, p, features={"a": a}, metric="accuracy", confirm=0.5, n_resamples=39, rng=5
    )
    assert len(result) == len(result.all) == 0
    assert result.to_frame().shape[0] == 0
    assert "0 of 0 subgroups" in repr(result)
