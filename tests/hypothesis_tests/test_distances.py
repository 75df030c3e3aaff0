"""The test of distances between distributions: oracles, invariances, levels, results."""

from __future__ import annotations

import itertools
import json
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats
from scipy.spatial.distance import jensenshannon

import fairperm
from fairperm import distance_test
from fairperm.data.lazy import counting
from fairperm.engines import distances as engines
from tests.support.lazy_data import LAZY, sample
from tests.support.refusals import Refusal, check_wording, each, table
from tests.support.simulations import at_least, at_most

Array = NDArray[Any]


# Written out by hand or by scipy, from the values of both groups.


def shares(first: Array, second: Array, extra: int = 0) -> tuple[Array, Array]:
    names = np.unique(np.concatenate([first, second]))
    p, q = ((names[:, None] == one).sum(axis=1) + extra for one in (first, second))
    return p / p.sum(), q / q.sum()


def kl(first: Array, second: Array) -> float:
    p, q = shares(first, second)[0], shares(first, second, 1)[1]
    return float(stats.entropy(p, q, base=2))


def skew(first: Array, second: Array) -> float:
    p, q = shares(first, second, 1)
    return float(np.abs(np.log(p / q)).max())


def gaps(first: Array, second: Array) -> Array:
    p, q = shares(first, second)
    found: Array = np.abs(p - q)
    return found


ORACLES: dict[str, Callable[[Array, Array], float]] = {
    "ks": lambda a, b: float(stats.ks_2samp(a, b).statistic),
    "wasserstein": lambda a, b: float(stats.wasserstein_distance(a, b)),
    "demographic_parity": lambda a, b: float(abs(a.mean() - b.mean())),
    "total_variation": lambda a, b: float(gaps(a, b).sum() / 2),
    "infinity_norm": lambda a, b: float(gaps(a, b).max()),
    "jensen_shannon": lambda a, b: float(jensenshannon(*shares(a, b), base=2) ** 2),
    "kullback_leibler": kl,
    "skew": skew,
}
VALUES = np.array([1.0, 4.0, 2.0, 2.0, 4.0, 7.5, 7.5, 2.0, 4.0])
GROUP = np.array(list("aabbaabbb"))
LABEL = np.array([0, 0, 0, 0, 1, 1, 1, 1, 1])

by_distance = pytest.mark.parametrize("distance", ORACLES)


def enumerate_sections(
    name: str, values: Array, group: Array, section: Array
) -> tuple[float, float]:
    """Return the weighted mean distance over sections, and its p-value over all permutations."""
    found, weights = [], []
    for one in np.unique(section):
        mine = values[section == one]
        in_a = group[section == one] == "a"
        n, k = len(mine), int(in_a.sum())
        weights.append(k * (n - k) / n)
        every = []
        for chosen in itertools.combinations(range(n), k):
            is_first = np.isin(np.arange(n), chosen)
            every.append(ORACLES[name](mine[is_first], mine[~is_first]))
        found.append((ORACLES[name](mine[in_a], mine[~in_a]), every))
    share = np.array(weights) / np.sum(weights)
    observed = float(share @ [one for one, _ in found])
    draws = [share @ one for one in itertools.product(*(every for _, every in found))]
    return observed, float(np.mean(np.array(draws) >= observed - 1e-9))


@by_distance
@pytest.mark.parametrize("within", [False, True], ids=["all rows", "within labels"])
def test_exact_pvalues_are_those_of_all_permutations(distance: str, within: bool) -> None:
    section = LABEL if within else np.zeros(len(VALUES))
    expected = enumerate_sections(distance, VALUES, GROUP, section)
    for option in ("y_true", "control_features") if within else ("y_true",):
        given: dict[str, Any] = {option: LABEL} if within else {}
        found = distance_test(VALUES, sensitive_features=GROUP, distance=distance, **given)
        (one,) = found.comparisons
        assert one.exact
        assert (one.distance, one.pvalue) == pytest.approx(expected)
    if within:
        expected_by_label = [
            ORACLES[distance](*(VALUES[(label == LABEL) & (g == GROUP)] for g in "ab"))
            for label in (0, 1)
        ]
        by_label = distance_test(
            VALUES, sensitive_features=GROUP, distance=distance, y_true=LABEL
        ).largest.by_label
        assert by_label is not None
        assert list(by_label.values()) == pytest.approx(expected_by_label)


@by_distance
@pytest.mark.parametrize("kind", ["rows", "weights", "clusters"])
def test_units_agree_with_all_permutations(
    distance: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The engine of units draws 999 of them: four standard errors."""
    monkeypatch.setattr(engines, "_FEW_COUNTS", 0)
    given: dict[str, Any] = {}
    if kind == "weights":
        given["sample_weight"] = np.full(len(VALUES), 3.0)
    if kind == "clusters":
        given["cluster"] = np.arange(len(VALUES))
    expected, p = enumerate_sections(distance, VALUES, GROUP, LABEL)
    found = distance_test(
        VALUES, sensitive_features=GROUP, distance=distance, y_true=LABEL, n_resamples=999,
        rng=1, **given,
    )  # fmt: skip
    assert not found.largest.exact
    assert found.largest.distance == pytest.approx(expected)
    assert found.pvalue == pytest.approx(p, abs=4 * (p * (1 - p) / 999) ** 0.5 + 1e-3)


# Clusters and weighted rows: both references, written out for each unit.

OF_NUMBERS = ("ks", "wasserstein", "demographic_parity")
DEGREE = {"jensen_shannon": 2, "kullback_leibler": 2}


def distance_of_weights(name: str, first: Array, second: Array, values: Array) -> float:
    """Return the distance from both groups' weights at the values."""
    p, q = first / first.sum(), second / second.sum()
    gap, step = np.cumsum(p - q)[:-1], np.diff(values)
    p1, q1 = ((one + 1) / (one + 1).sum() for one in (first, second))
    found = {
        "ks": lambda: np.abs(gap).max(),
        "wasserstein": lambda: np.abs(gap) @ step,
        "demographic_parity": lambda: abs((p - q) @ values),
        "total_variation": lambda: np.abs(p - q).sum() / 2,
        "infinity_norm": lambda: np.abs(p - q).max(),
        "jensen_shannon": lambda: jensenshannon(p, q, base=2) ** 2,
        "kullback_leibler": lambda: stats.entropy(p, q1, base=2),
        "skew": lambda: np.abs(np.log(p1 / q1)).max(),
    }
    return float(found[name]())


@dataclass
class Section:
    """Weights by unit and value, and which units are in the first group."""

    cells: Array
    is_first: Array
    values: Array

    @property
    def weight(self) -> float:
        n, k = len(self.cells), int(self.is_first.sum())
        return k * (n - k) / n

    def deviations(self) -> Array:
        """Return each unit's weight times the gap between its shares and those of all others."""
        others = self.cells.sum(axis=0) - self.cells
        own = self.cells.sum(axis=1, keepdims=True)
        found: Array = own * (self.cells / own - others / others.sum(axis=1, keepdims=True))
        return found

    def compare(self, name: str, is_first: Array) -> tuple[float, float]:
        """Return the distance, and its ratio to the standard error."""
        sides = (is_first, ~is_first)
        first, second = (self.cells[one].sum(axis=0) for one in sides)
        deviations = self.deviations()
        if name in OF_NUMBERS:
            deviations = np.cumsum(deviations, axis=1)
        scatter = (deviations**2).sum(axis=1)
        variance = sum(scatter[one].sum() / self.cells[one].sum() ** 2 for one in sides)
        even = scatter.sum() / self.cells.sum() ** 2 * len(scatter) / self.weight
        distance = distance_of_weights(name, first, second, self.values)
        return distance, distance / (variance / even) ** (DEGREE.get(name, 1) / 2)

    def permuted(self, name: str) -> list[float]:
        n, k = len(self.cells), int(self.is_first.sum())
        every = itertools.combinations(range(n), k)
        return [self.compare(name, np.isin(np.arange(n), chosen))[1] for chosen in every]

    def signed(self, name: str) -> list[float]:
        found, total = [], self.cells.sum(axis=0)
        least = -np.inf if name in OF_NUMBERS else 0.0
        for signs in itertools.product([-1, 1], repeat=len(self.cells)):
            turned = np.array(signs)[:, None] * self.deviations()
            sides = [
                total / total.sum() * self.cells[one].sum() + turned[one].sum(axis=0)
                for one in (self.is_first, ~self.is_first)
            ]
            first, second = (np.maximum(one, least) for one in sides)
            found.append(distance_of_weights(name, first, second, self.values))
        return found


def both_references(name: str, *sections: Section) -> tuple[float, float]:
    """Return the distance, and the larger p-value of all permutations and of all signs."""
    weights = np.array([one.weight for one in sections])
    share = weights / weights.sum()
    observed, scaled = np.array([one.compare(name, one.is_first) for one in sections]).T @ share
    permuted = [share @ one for one in itertools.product(*(s.permuted(name) for s in sections))]
    signed = [share @ one for one in itertools.product(*(s.signed(name) for s in sections))]
    return float(observed), max(
        float(np.mean(np.array(permuted) >= scaled - 1e-12)),
        float(np.mean(np.array(signed) >= observed - 1e-12)),
    )


UNIT = np.repeat(np.arange(10), [1, 4, 2, 3, 1, 1, 2, 6, 1, 2])


@by_distance
@pytest.mark.parametrize("kind", ["weights", "clusters", "both", "labels", "strata"])
def test_unlike_units_agree_with_both_references(distance: str, kind: str) -> None:
    """With 1,999 draws: four standard errors."""
    rng = np.random.default_rng(8)
    unit = np.arange(10) if kind == "weights" else UNIT
    values, group = rng.integers(0, 4, len(unit)) ** 2.0, np.array(list("aabbbaabbb"))[unit]
    weight = np.ones(len(unit)) if kind == "clusters" else rng.uniform(0.3, 3, len(unit))
    within = unit >= 5 if kind in ("labels", "strata") else np.zeros(len(unit), bool)
    sections = []
    for one in np.unique(within):
        mine = within == one
        first, of_row = np.unique(unit[mine], return_index=True, return_inverse=True)[1:]
        names, cell = np.unique(values[mine], return_inverse=True)
        cells = np.zeros((len(first), len(names)))
        np.add.at(cells, (of_row, cell), weight[mine] / weight.mean())
        sections.append(Section(cells, group[mine][first] == "a", names))
    expected, p = both_references(distance, *sections)
    found = distance_test(
        values, sensitive_features=group, distance=distance, n_resamples=1999, rng=1,
        cluster=None if kind == "weights" else unit,
        sample_weight=None if kind == "clusters" else weight,
        y_true=within if kind == "labels" else None,
        control_features=within if kind == "strata" else None,
    ).largest  # fmt: skip
    assert found.distance == pytest.approx(expected)
    assert found.pvalue == pytest.approx(p, abs=4 * (p * (1 - p) / 1999) ** 0.5 + 1e-3)
    assert found.pvalue == (np.sum(found.null_distribution >= expected - 1e-12) + 1) / 2000


@by_distance
def test_rows_of_equal_weight_are_plain_rows(distance: str) -> None:
    """To the last digit. Weights that differ between strata only need no random signs either."""
    rng = np.random.default_rng(12)
    stratum, group = rng.integers(0, 3, 500), np.arange(500) % 3 == 0
    values = rng.normal(size=500) if distance in OF_NUMBERS else rng.integers(0, 60, 500)

    def run(**given: Any) -> fairperm.DistanceTestResult:
        return distance_test(
            values, sensitive_features=group, control_features=stratum, distance=distance,
            n_resamples=99, rng=1, **given,
        )  # fmt: skip

    plain, weighted, clustered = (
        run(),
        run(sample_weight=np.full(500, 0.1)),
        run(cluster=np.arange(500)),
    )
    for one in (weighted, clustered):
        assert (one.largest.null_distribution == plain.largest.null_distribution).all()
    by_stratum = run(sample_weight=np.array([0.5, 2.0, 8.0])[stratum])
    assert {one.validity for one in (plain, weighted, clustered, by_stratum)} == {
        "Exact if the groups have equal distributions of values within every stratum."
    }


def test_weights_are_those_of_scipy() -> None:
    rng = np.random.default_rng(1)
    x, w, first = rng.normal(size=60), rng.uniform(0.5, 3, 60), np.arange(60) < 25
    found = distance_test(
        x, sensitive_features=first, distance="wasserstein", sample_weight=w, n_resamples=9, rng=1
    )
    expected = stats.wasserstein_distance(x[first], x[~first], w[first], w[~first])
    assert found.largest.distance == pytest.approx(expected)


def test_ks_is_that_of_scipy() -> None:
    rng = np.random.default_rng(2)
    first, second = rng.normal(size=7), rng.normal(0.8, 1, 9)
    values, group = np.concatenate([first, second]), ["a"] * 7 + ["b"] * 9
    exact = stats.ks_2samp(first, second, method="exact")
    found = distance_test(values, sensitive_features=group)
    assert (found.largest.distance, found.pvalue) == pytest.approx((exact.statistic, exact.pvalue))
    assert found.largest.at == exact.statistic_location
    first, second = rng.normal(size=300), rng.normal(0.1, 1, 200)
    limit = stats.ks_2samp(first, second, method="asymp")
    found = distance_test(
        np.concatenate([first, second]), sensitive_features=[0] * 300 + [1] * 200, rng=1,
        n_resamples=999,
    )  # fmt: skip
    assert found.largest.distance == pytest.approx(limit.statistic)
    low, high = found.largest.pvalue_interval
    assert low - 0.02 < limit.pvalue < high + 0.02


def test_distances_of_lift() -> None:
    """The distributions of a test of LiFT: counts 24, 12, 4, 0 and 0, 10, 5, 20."""
    values = np.repeat(list("abcd" * 2), [24, 12, 4, 0, 0, 10, 5, 20])
    group = np.repeat([0, 1], [40, 35])
    terms = [(24, 1), (12, 11), (4, 6)]
    expected = {
        "KL_DIVERGENCE": sum(p / 40 * np.log2(p / 40 / (q / 39)) for p, q in terms),
        "SKEWS": np.log(21 / 39) - np.log(1 / 44),  # larger than the skew of the first
        "TOTAL_VAR_DIST": (24 / 40 + 12 / 40 - 10 / 35 + 5 / 35 - 4 / 40 + 20 / 35) / 2,
        "INF_NORM_DIST": 24 / 40,
        "JS_DIVERGENCE": jensenshannon([24, 12, 4, 0], [0, 10, 5, 20], base=2) ** 2,
    }
    for name, value in expected.items():
        found = distance_test(values, sensitive_features=group, distance=name, n_resamples=9, rng=1)
        assert found.largest.distance == pytest.approx(value), name
    rates = np.repeat([1, 0, 1, 0], [345, 123, 567, 89])
    sexes = np.repeat(["m", "f"], [468, 656])
    parity = distance_test(
        rates, sensitive_features=sexes, distance="DEMOGRAPHIC_PARITY", n_resamples=9, rng=1
    )
    assert parity.largest.distance == pytest.approx(0.12715, abs=1e-5)


# Invariances.


def test_very_large_weights_hide_no_others() -> None:
    """Two rows have nearly all the weight: in some permutations, of one group."""
    x, w = np.arange(6.0), np.array([1e8, 1, 2, 1e8, 4, 5])
    section = Section(np.diag(w / w.mean()), x < 3, x)
    expected, p = both_references("wasserstein", section)
    found = distance_test(
        x,
        sensitive_features=x > 2,
        sample_weight=w,
        distance="wasserstein",
        n_resamples=1999,
        rng=1,
    )
    assert found.largest.distance == pytest.approx(expected)
    assert found.pvalue == pytest.approx(p, abs=4 * (p * (1 - p) / 1999) ** 0.5 + 1e-3)


def test_no_normal_limit_is_offered_for_many_lazy_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "MAX_KINDS", 50)
    data = LAZY["duckdb"](sample(400, decimals=None))
    with pytest.raises(fairperm.InputError, match=r"Pass a random sample of the rows\.$"):
        distance_test("score", sensitive_features="sex", data=data)


def test_dates_of_every_library_give_the_same() -> None:
    """Of 12 days, more than are enumerated, in their order."""
    days = np.datetime64("2020-01-01") + np.arange(240) ** 2 % 12
    forms = (days, days.astype(object), days.astype("M8[ns]"), days.astype(str))
    found = [
        distance_test(one, sensitive_features=np.arange(240) % 3 == 0, distance="tv", rng=1)
        for one in forms
    ]
    assert len({(one.pvalue, str(one.largest.at)[:10]) for one in found}) == 1
    assert [str(one) for one in found[1].curves[False, True].values] == np.unique(forms[3]).tolist()


@pytest.mark.parametrize("distance", ["ks", "wasserstein", "demographic_parity"])
def test_the_unit_of_values_changes_nothing(distance: str) -> None:
    group = np.arange(40) % 2
    values = np.random.default_rng(3).normal(size=40) + 0.5 * group
    one, *others = (
        distance_test(
            values * unit, sensitive_features=group, distance=distance, n_resamples=99, rng=1
        )
        for unit in (1, 1e-15, 1e15)
    )
    assert one.pvalue < 0.5
    assert [other.pvalue for other in others] == [one.pvalue] * 2


# Several groups.


def test_each_pair_is_tested_by_itself_and_adjusted() -> None:
    rng = np.random.default_rng(4)
    x, g = rng.normal(size=90), np.repeat(list("abc"), 30)
    x[g == "c"] += 1.5
    options: dict[str, Any] = {"n_resamples": 199, "rng": 1}
    every = distance_test(x, sensitive_features=g, **options)
    assert [one.groups for one in every] == [("a", "b"), ("a", "c"), ("b", "c")]
    for one in every:
        alone = distance_test(x, sensitive_features=g, groups=one.groups, **options)
        assert (one.distance, one.pvalue) == (alone.largest.distance, alone.pvalue)
    raw = [one.pvalue for one in every]
    assert [one.adjusted_pvalue for one in every] == pytest.approx([raw[0], 3 * raw[1], 3 * raw[2]])
    assert every.pvalue == pytest.approx(3 * min(raw))
    assert "(adjusted p " in json.dumps(every.plot().to_dict())
    rest = distance_test(x, sensitive_features=g, compare="rest", adjust=None, **options)
    assert [one.groups for one in rest] == [(name, "all others") for name in "abc"]
    assert rest.largest.groups == ("c", "all others")
    assert "(adjusted p" in every.largest.answer
    assert "(p " in rest.largest.answer
    assert rest.largest.counts == {"c": 30, "all others": 60}


def test_groups_are_compared_with_a_reference() -> None:
    """By default the largest one; the distance is from it, which matters for an asymmetric one."""
    x, g = np.arange(60) ** 2 % 7, np.repeat(["a", "b", "c", "d"], [15, 20, 15, 10])
    options: dict[str, Any] = {"sensitive_features": g, "distance": "kl", "n_resamples": 99}
    largest = distance_test(x, compare="reference", rng=1, **options)
    assert [one.groups for one in largest] == [("a", "b"), ("c", "b"), ("d", "b")]
    named = distance_test(
        x, compare="reference", reference="d", groups=["b", "d", "a"], rng=1, **options
    )
    assert [one.groups for one in named] == [("b", "d"), ("a", "d")]
    assert named.comparisons[0].distance == pytest.approx(kl(x[g == "b"], x[g == "d"]))


# Results.


@pytest.mark.parametrize("distance", ["ks", "total_variation"])
def test_results_can_be_written_and_drawn(distance: str) -> None:
    result = distance_test(VALUES, sensitive_features=GROUP, distance=distance, y_true=LABEL, rng=1)
    plain = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert plain["comparisons"][0]["counts"] == [4, 5]
    assert plain["comparisons"][0]["by_label"].keys() == {"0", "1"}
    frame = result.to_frame("polars")
    assert frame["distance"].to_list() == [result.largest.distance]
    text = repr(result)
    for part in ("a and b", "by chance", "given 0", "largest gap", "exact", "given the label"):
        assert part in text
    drawn = json.dumps(result.plot().to_dict())
    assert "They differ most at" in drawn
    assert "given the label 0." in drawn
    assert ", on average over the labels" in text
    assert result.plot(["a", "b"]).to_dict() == result.plot(("a", "b")).to_dict()
    for pair in (("a", "c"), "a", 7, [["a"], "b"]):
        with pytest.raises(fairperm.InputError, match="groups must be two groups that were comp"):
            result.plot(pair)  # type: ignore[arg-type]
    with pytest.raises(AttributeError, match=r"a comparison: use result\.largest\.expected$"):
        result.expected  # type: ignore[attr-defined]  # noqa: B018


@pytest.mark.parametrize("within", ["y_true", "control_features"])
def test_numbers_whose_squares_overflow_are_compared_within(within: str) -> None:
    options: dict[str, Any] = {within: LABEL, "sample_weight": np.ones(len(VALUES)), "rng": 1}
    one, huge = (
        distance_test(VALUES * unit, sensitive_features=GROUP, **options) for unit in (1, 2.0**990)
    )
    assert huge.pvalue == one.pvalue


def test_the_place_of_the_gap_has_as_many_digits_as_other_numbers() -> None:
    found = distance_test(-np.arange(1, 9) / 7, sensitive_features=list("aaabbabb"), rng=1)
    assert found.largest.at == -4 / 7
    assert "at −0.571\n" in repr(found)
    assert "They differ most at −0.571." in str(found.plot().to_dict()["title"])


def test_the_place_of_the_gap_is_given_the_label() -> None:
    """Base rates alone make the groups differ at 5; given the label only 9 and 10 do."""
    x = np.repeat([1, 9, 1, 10], [40, 10, 10, 40])
    y = np.repeat([0, 1, 0, 1], [40, 10, 10, 40])
    g = np.repeat(list("ab"), 50)
    found = distance_test(x, sensitive_features=g, y_true=y, rng=1, n_resamples=99).largest
    assert (found.at, found.by_label) == (9, {0: 0.0, 1: 1.0})
    assert found.gap_at == pytest.approx(found.distance)


def test_the_place_of_the_gap_weighs_labels_as_the_distance_does() -> None:
    """By clusters: 2 and 2 of label 0, of 9 rows each, as many as single rows of label 1."""
    person = np.repeat(np.arange(8), [9, 9, 9, 9, 1, 1, 1, 1])
    label, group = (person >= 4).astype(int), np.array(list("abababab"))[person]
    x = np.where(label, 2 * (group == "b"), person % 4 // 2)  # equal given label 0
    found = distance_test(x, sensitive_features=group, y_true=label, cluster=person, rng=1).largest
    assert found.by_label == {0: 0.0, 1: 1.0}
    assert (found.distance, found.gap_at) == pytest.approx((0.5, 0.5))


def test_many_strata_take_little_memory() -> None:
    """A table of 1,000 strata, 2 groups and 4,000 values takes 64 MB."""
    values, row = np.random.default_rng(1).normal(size=4000), np.arange(4000)

    def run(n: int) -> None:
        options: dict[str, Any] = {"control_features": row[:n] // 4, "n_resamples": 9}
        distance_test(values[:n], sensitive_features=row[:n] % 2, **options)

    run(400)  # compiles
    tracemalloc.start()
    run(4000)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 32e6


def test_strata_of_one_group_do_not_count() -> None:
    options: dict[str, Any] = {"control_features": [*LABEL, 2, 2], "rng": 1}
    values, group = [*VALUES, 100.0, 100.0], [*GROUP, "a", "a"]
    found = distance_test(values, sensitive_features=group, **options)
    expected = enumerate_sections("ks", VALUES, GROUP, LABEL)
    assert (found.largest.distance, found.pvalue) == pytest.approx(expected)
    assert found.notes[0].startswith("2 rows do not count: their label or stratum")


# Levels.

DATA_SETS = 400


def rejections(draw: Callable[[np.random.Generator], dict[str, Any]], **options: Any) -> int:
    rng = np.random.default_rng(5)
    pvalues = [
        distance_test(**draw(rng), **options, n_resamples=199, rng=seed).pvalue
        for seed in range(DATA_SETS)
    ]
    return int(np.sum(np.array(pvalues) <= 0.05))


def separated(rng: np.random.Generator) -> dict[str, Any]:
    """Return scores that depend on the label only, which one group has more often."""
    group = np.repeat([0, 1], [40, 80])
    label = rng.random(120) < np.where(group, 0.3, 0.7)
    return {"values": label + rng.normal(size=120), "y_true": label, "sensitive_features": group}


@pytest.mark.validate
@pytest.mark.parametrize("distance", ["ks", "wasserstein"])
def test_level_within_labels(distance: str) -> None:
    assert rejections(separated, distance=distance) <= at_most(0.05, DATA_SETS)


@pytest.mark.validate
def test_base_rates_reject_without_labels() -> None:
    def draw(rng: np.random.Generator) -> dict[str, Any]:
        return {name: one for name, one in separated(rng).items() if name != "y_true"}

    assert rejections(draw) > at_least(0.15, DATA_SETS)


def of_sizes(
    rng: np.random.Generator,
    sizes: tuple[Array, Array],
    correlation: float = 0.0,
    shift: float = 0.0,
) -> dict[str, Any]:
    """Return normal numbers in clusters of these sizes, whose rows are correlated."""
    unit = np.repeat(np.arange(sum(map(len, sizes))), np.concatenate(sizes))
    common, own = rng.normal(size=unit[-1] + 1)[unit], rng.normal(size=len(unit))
    is_first = unit < len(sizes[0])
    values = correlation**0.5 * common + (1 - correlation) ** 0.5 * own + shift * is_first
    return {"values": values, "sensitive_features": is_first, "cluster": unit}


FEW_SMALL = (np.full(30, 2), np.full(300, 20))
FEW_LARGE = (np.full(30, 20), np.full(300, 2))


def poisson_sizes(rng: np.random.Generator) -> tuple[Array, Array]:
    return 1 + rng.poisson(3, 60), 1 + rng.poisson(12, 120)


def unlike_weights(rng: np.random.Generator) -> dict[str, Any]:
    """Return numbers with log-normal weights in the smaller group, and equal ones in the other."""
    weights = np.append(rng.lognormal(0, 1, 60), np.ones(300))
    group = np.arange(360) < 60
    return {"values": rng.normal(size=360), "sensitive_features": group, "sample_weight": weights}


def with_label(data: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """Return the clusters with a label each, which the values depend on."""
    label = rng.integers(0, 2, data["cluster"][-1] + 1)[data["cluster"]]
    return data | {"values": data["values"] + 2 * label, "y_true": label}


UNLIKE: dict[str, Callable[[np.random.Generator], dict[str, Any]]] = {
    "few small clusters": lambda rng: of_sizes(rng, FEW_SMALL),
    "few large clusters, correlated": lambda rng: of_sizes(rng, FEW_LARGE, 0.5),
    "Poisson sizes": lambda rng: of_sizes(rng, poisson_sizes(rng)),
    "Poisson sizes, within labels": lambda rng: with_label(of_sizes(rng, poisson_sizes(rng)), rng),
    "equal sizes, rows alike in one group": lambda rng: (
        of_sizes(rng, (np.full(30, 5),) * 2, 1.0)
        | {"values": np.append(rng.normal(size=30).repeat(5), rng.normal(size=150))}
    ),
    "log-normal weights": unlike_weights,
}


@pytest.mark.parametrize("name", UNLIKE)
def test_unlike_units_reject_seldom(name: str) -> None:
    rng = np.random.default_rng(14)
    tests = (distance_test(**UNLIKE[name](rng), n_resamples=99, rng=seed) for seed in range(20))
    assert sum(test.pvalue <= 0.05 for test in tests) <= at_most(0.05, 20)


def test_few_large_clusters_show_a_difference() -> None:
    """Permutations mix them with small ones: without their standard error, 0.11 are found."""
    rng = np.random.default_rng(15)
    every = (of_sizes(rng, FEW_LARGE, shift=0.25) for _ in range(20))
    found = [distance_test(**one, n_resamples=99, rng=1).pvalue <= 0.05 for one in every]
    assert sum(found) >= at_least(0.9, 20)


def test_few_clusters_and_heavy_rows_are_noted() -> None:
    rng = np.random.default_rng(17)
    few = distance_test(**of_sizes(rng, (np.full(8, 10), np.full(80, 2))), n_resamples=9, rng=1)
    assert few.notes == (
        "Only about 8 clusters of group True show how its distribution varies: with fewer than 20 "
        "the test may reject too often, unless the clusters of the groups are alike.",
    )
    heavy = unlike_weights(rng)
    heavy["sample_weight"][-1] = 1e4
    found = distance_test(**heavy, n_resamples=9, rng=1)
    assert found.notes[0].startswith("Only about 1 row of group False shows how its distribution")
    assert not distance_test(**unlike_weights(rng), n_resamples=9, rng=1).notes


@pytest.mark.validate
@pytest.mark.parametrize("name", UNLIKE)
@pytest.mark.parametrize("distance", ["ks", "wasserstein"])
def test_level_of_unlike_units(name: str, distance: str) -> None:
    assert rejections(UNLIKE[name], distance=distance) <= at_most(0.06, DATA_SETS)


@pytest.mark.validate
@pytest.mark.parametrize("name", ["Poisson sizes", "log-normal weights"])
@pytest.mark.parametrize("distance", ["total_variation", "jensen_shannon", "kullback_leibler"])
def test_level_of_unlike_units_in_categories(name: str, distance: str) -> None:
    def draw(rng: np.random.Generator) -> dict[str, Any]:
        data = UNLIKE[name](rng)
        return data | {"values": np.digitize(data["values"], [-1, -0.3, 0.3, 1.8])}

    assert rejections(draw, distance=distance) <= at_most(0.06, DATA_SETS)


@pytest.mark.validate
def test_distances_of_unlike_units_are_not_those_of_permutations() -> None:
    """Without the standard error of each draw, 0.98 of these are rejected."""
    rng, n_rejected = np.random.default_rng(16), 0
    for _ in range(50):
        data = of_sizes(rng, FEW_SMALL)
        order = np.argsort(data["values"])
        unit = data["cluster"][order]
        is_first = np.arange(330) < 30
        every = np.array([is_first, *(rng.permutation(is_first) for _ in range(99))])[:, unit]
        first, second = (np.cumsum(one, axis=1) for one in (every, ~every))
        gaps = np.abs(first / first[:, -1:] - second / second[:, -1:]).max(axis=1)
        n_rejected += np.mean(gaps >= gaps[0]) <= 0.05
    assert n_rejected >= at_least(0.9, 50)


def repeated(rng: np.random.Generator) -> dict[str, Any]:
    """Return three rows of each person that hardly differ, in groups of 15 and 30 persons."""
    person = np.repeat(np.arange(45), 3)
    values = rng.normal(size=45)[person] + rng.normal(0, 0.2, 135)
    return {"values": values, "sensitive_features": person < 15, "cluster": person}


@pytest.mark.validate
def test_level_with_clusters() -> None:
    assert rejections(repeated) <= at_most(0.05, DATA_SETS)


@pytest.mark.validate
def test_rows_of_clusters_are_not_exchangeable() -> None:
    def draw(rng: np.random.Generator) -> dict[str, Any]:
        return {name: one for name, one in repeated(rng).items() if name != "cluster"}

    assert rejections(draw) > at_least(0.15, DATA_SETS)


@pytest.mark.validate
def test_power_of_ks_is_that_of_scipy() -> None:
    """Without ties both are the exact test, but for the permutations that are drawn."""
    rng, n = np.random.default_rng(24), 400
    group = np.repeat([0, 1], [40, 60])
    found = np.zeros(2, int)
    for seed in range(n):
        values = rng.normal(size=100) + 0.6 * group
        test = distance_test(values, sensitive_features=group, n_resamples=399, rng=seed)
        limit = stats.ks_2samp(values[:40], values[40:], method="exact")
        found += test.pvalue <= 0.05, limit.pvalue <= 0.05
    assert found[1] > 0.5 * n
    assert abs(found[0] - found[1]) < 0.02 * n


# Refusals.

GOOD: dict[str, Any] = {
    "values": [1.0, 2.0, 3.0, 4.0, 1.0, 2.0, 3.0, 4.0],
    "sensitive_features": list("aaaabbbb"),
    "n_resamples": 9,
    "rng": 1,
}
MANY = np.arange(400) / 7
REFUSALS = table(
    distance_test,
    GOOD,
    globals(),
    """
values=None → TypeError: values must be given; got None.
values=list('abcdabcd') →
    TypeError: values must be made of real numbers; got 'a'. For categories, use a distance such
    as distance='total_variation'.
distance='ks_given_label' →
    distance must be the name of a distance; got 'ks_given_label'. To compare rows of equal
    label, pass y_true.
values=[np.inf, *range(7)] → values must be finite; got inf.
values=[np.nan, *range(7)] → values has 1 missing value
values=[1.0, 2.0] → sensitive_features must be as long as values
values=np.ones((8, 2)) → values must be one-dimensional
values='x', data={'y': [1]} → values must be a column of data
distance='kss' →
    distance must be one of 'kolmogorov_smirnov', 'wasserstein', 'demographic_parity',
    'total_variation', 'infinity_norm', 'jensen_shannon', 'kullback_leibler',
    'skew'; got 'kss'. Did you mean 'ks'?
distance=max → TypeError: distance must be the name of a distance
values=MANY, sensitive_features=np.arange(400) % 2, distance='tv' →
    values must be made of at most 100 different numbers for total_variation, which takes them
    as categories; got 400. Put them into bins, or use distance='ks'.
sensitive_features=['a'] * 8 → sensitive_features has 1 group
sensitive_features=None → TypeError: sensitive_features must be given
groups=('a', 'c') → groups must be made of groups
groups=('a', 'a') → groups must be two or more different groups
compare='all' → compare must be one of 'pairs', 'reference', 'rest'
reference='a' → reference can only be used with compare='reference'; got compare='pairs'.
compare='reference', reference='A' → reference must be one of the groups; got 'A'. Did you mean 'a'?
compare='reference', reference=np.arange(2) → reference must be one of the groups
values=np.arange(42), sensitive_features=np.arange(42) // 2 →
    sensitive_features must have at most 20 groups named by numbers; got 21 in
    'sensitive_features'. Cut numbers into bands
values=np.arange(400), sensitive_features=[f's{i // 2}' for i in range(400)] →
    sensitive_features must make at most 10,000 comparisons; got 200 groups in
    'sensitive_features'. Merge groups, or use compare='rest'.
adjust='maxt' → adjust must be one of 'holm', 'bh', 'by', None
n_resamples=0 → n_resamples must be 'auto' or an integer from 1
confidence_level=95 →
    confidence_level must be a number strictly between 0 and 1; got 95. Did you mean 0.95?
sample_weight=[0.0] + [1.0] * 7 → sample_weight must be made of numbers above 0
values=MANY, y_true=MANY, sensitive_features=np.arange(400) % 2 →
    y_true must be made of at most 100 different numbers, which are taken as labels; got 400.
    Cut them
cluster=[1] * 8 → cluster must keep to one group
cluster=[1, 1, 2, 2, 3, 3, 4, 4], y_true=[0, 1] * 4 →
    cluster must have rows of one label with y_true: whole clusters are exchanged, inside each
    label; got cluster 1
y_true=[0] * 4 + [1] * 4 →
    UndefinedMetricError: y_true must have a value that rows of both groups have; got none for
    'a', 'b'.
control_features=[0] * 4 + [1] * 4 →
    UndefinedMetricError: control_features must have a value that rows of both groups have
rng=-1 → rng must be an integer from 0
values=[1.7e+308, -1.7e+308, *range(6)] →
    values must be made of numbers whose differences can be added up; got -1.7e+308 and
    1.7e+308.
values=[1e+308, *range(7)], distance='wasserstein' →
    values must be made of numbers whose differences can be added up; got 0.0 and 1e+308.
sample_weight=[1e-10] * 4 + [1e+300] * 4 →
    sample_weight must be made of numbers that can be added up; got 1e-10 and 1e+300.
sample_weight=[1e+20] + [1.0] * 7 →
    sample_weight must be such that no row of a label and stratum weighs more than 1,000,000
    times all others; got one of 4.5e+15 times. Its value is the whole distribution of its
    group: nothing shows how it varies.
sample_weight=[1e+308] * 7 + [9e+307] →
    sample_weight must be made of numbers that can be added up; got 9e+307 and 1e+308.
""",
)


@each(REFUSALS)
def test_refusal(refusal: Refusal) -> None:
    check_wording(refusal)
