"""The test of distances between distributions: oracles, invariances, levels, results."""

from __future__ import annotations

import itertools
import json
import tracemalloc
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy import stats
from scipy.spatial.distance import jensenshannon

import fairperm
from fairperm import distance_test
from fairperm.data.lazy import counting
from fairperm.engines import distances as engines
from tests.support.lazy_data import LAZY, clustered, sample
from tests.support.simulations import at_least, at_most

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Array = NDArray[Any]


# Written out by hand or by scipy, from the values of both groups.


def shares(first: Array, second: Array, extra: int = 0) -> tuple[Array, Array]:
    names = np.unique(np.concatenate([first, second]))
    p, q = ((names[:, None] == one).sum(axis=1) + extra for one in (first, second))
    return p / p.sum(), q / q.sum()


def kl(first: Array, second: Array) -> float:
    p, q = shares(first, second)[0], shares(first, second, 1)[1]
    return float(stats.entropy(p, q, base=2))


def chi_square(first: Array, second: Array) -> float:
    p, q = shares(first, second)
    return float(((p - q) ** 2 / (p + q)).sum() / 2)


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
    "chi_square": chi_square,
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


SMOOTHED = {"kullback_leibler", "skew"}  # less, if all rows are there twice
UNITS = [
    (distance, kind)
    for distance in ORACLES
    for kind in ("rows", "weights", "clusters")
    if kind != "clusters" or distance not in SMOOTHED
]


@pytest.mark.parametrize(("distance", "kind"), UNITS)
def test_units_agree_with_all_permutations(
    distance: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The engine of units draws 999 of them: four standard errors."""
    monkeypatch.setattr(engines, "_FEW_COUNTS", 0)
    given: dict[str, Any] = {}
    values, group, label = VALUES, GROUP, LABEL
    if kind == "weights":
        given["sample_weight"] = np.full(len(VALUES), 3.0)
    if kind == "clusters":
        values, group, label = (np.tile(one, 2) for one in (VALUES, GROUP, LABEL))
        given["cluster"] = np.tile(np.arange(len(VALUES)), 2)
    expected, p = enumerate_sections(distance, VALUES, GROUP, LABEL)
    found = distance_test(
        values, sensitive_features=group, distance=distance, y_true=label, n_resamples=999,
        rng=1, **given,
    )  # fmt: skip
    assert not found.largest.exact
    assert found.largest.distance == pytest.approx(expected)
    assert found.pvalue == pytest.approx(p, abs=4 * (p * (1 - p) / 999) ** 0.5 + 1e-3)


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


@pytest.mark.parametrize("options", [{}, {"y_true": "y"}, {"cluster": "c"}, {"sample_weight": "w"}])
def test_rows_names_and_threads_change_nothing(options: dict[str, Any]) -> None:
    rng = np.random.default_rng(3)
    n = 240
    data: dict[str, Array] = {
        "x": rng.normal(size=n).round(2),
        "g": np.repeat(["a", "b"], [90, 150]),
        "y": np.arange(n) // 2 % 2,
        "c": np.arange(n) // 2,
        "w": rng.uniform(1, 2, n),
    }

    def run(given: dict[str, Array], **more: Any) -> float:
        return distance_test(
            "x", sensitive_features="g", data=given, n_resamples=199, rng=1, **options, **more
        ).pvalue

    p, order = run(data), rng.permutation(n)
    assert run({name: one[order] for name, one in data.items()}) == p
    assert run(data | {"g": np.where(data["g"] == "a", "z", "b")}) == p
    assert run(data | {"y": np.where(data["y"] == 0, "yes", "no")}) == p
    assert run(data, n_jobs=3) == p


def test_sums_do_not_depend_on_the_order_of_rows() -> None:
    table = sample(200, decimals=1)
    found = set()
    for seed in range(8):
        order = np.random.default_rng(seed).permutation(200)
        (one,) = distance_test(
            "score", sensitive_features="sex", control_features="region", sample_weight="weight",
            data=table.take(order), n_resamples=64, rng=1,
        ).comparisons  # fmt: skip
        found.add((one.distance, one.expected, one.gap_at))
    assert len(found) == 1


def test_very_large_weights_hide_no_others() -> None:
    """One row has nearly all the weight: scipy's distances of all permutations."""
    x, w = np.arange(6.0), np.array([1e20, 1, 2, 3, 4, 5])
    given: dict[str, Any] = {"sensitive_features": x > 2, "sample_weight": w, "rng": 1}
    first = [np.isin(x, one) for one in itertools.combinations(range(6), 3)]
    every = [stats.wasserstein_distance(x[one], x[~one], w[one], w[~one]) for one in first]
    found = distance_test(x, distance="wasserstein", n_resamples=1999, **given)
    assert found.largest.distance == pytest.approx(every[0])
    p = np.mean(np.array(every) >= every[0] - 1e-9)
    assert found.pvalue == pytest.approx(p, abs=4 * (p * (1 - p) / 1999) ** 0.5 + 1e-3)
    assert distance_test(x, distance="ks", n_resamples=9, **given).largest.distance == 1


@pytest.mark.parametrize("form", ["duckdb", pytest.param("polars", marks=pytest.mark.validate)])
@pytest.mark.parametrize(
    "given",
    [
        {"values": "score", "y_true": "label", "control_features": "region"},
        {"values": "predicted", "distance": "js"},
        {"values": "region", "distance": "tv", "sample_weight": "weight"},
    ],
    ids=str,
)
def test_lazy_frames_give_the_same(form: str, given: dict[str, Any]) -> None:
    table = sample(600, decimals=1)
    options: dict[str, Any] = {"n_resamples": 99, "rng": 1}
    eager = distance_test(**given, sensitive_features="sex", data=table, **options)
    lazy = distance_test(**given, sensitive_features="sex", data=LAZY[form](table), **options)
    assert lazy.to_dict() == eager.to_dict()


def test_no_normal_limit_is_offered_for_many_lazy_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "MOST_KINDS", 50)
    data = LAZY["duckdb"](sample(400, decimals=None))
    with pytest.raises(fairperm.InputError, match=r"Pass sample_rows=1000000 to test a sample\.$"):
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


def test_counted_clusters_give_the_same() -> None:
    table = clustered(400, 4)
    given: dict[str, Any] = {"sensitive_features": "sex", "cluster": "person", "n_resamples": 99}
    eager = distance_test("predicted", data=table, rng=1, **given)
    lazy = distance_test("predicted", data=LAZY["duckdb"](table), rng=1, **given)
    assert lazy.to_dict() == eager.to_dict()


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
    assert ", adjusted p" in repr(every.largest)
    assert ", p " in repr(rest.largest)
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
BAD: dict[str, tuple[dict[str, Any], str]] = {
    "no values": ({"values": None}, "values must be given; got None"),
    "texts are no numbers": (
        {"values": list("abcdabcd")},
        "values must be made of real numbers; got 'a'.* such as distance='total_variation'",
    ),
    "given the label": (
        {"distance": "ks_given_label"},
        "distance must be the name of a distance; got 'ks_given_label'. To compare .* y_true",
    ),
    "infinite": ({"values": [np.inf, *range(7)]}, "values must be finite; got inf"),
    "missing": ({"values": [np.nan, *range(7)]}, "values has 1 missing value"),
    "too short": ({"values": [1.0, 2.0]}, "sensitive_features must be as long as values"),
    "two columns": ({"values": np.ones((8, 2))}, "values must be one-dimensional"),
    "no such column": ({"values": "x", "data": {"y": [1]}}, "values must be a column of data"),
    "unknown distance": ({"distance": "kss"}, "distance must be one of .*Did you mean 'ks'"),
    "a function": ({"distance": max}, "distance must be the name of a distance"),
    "many categories": (
        {"values": MANY, "sensitive_features": np.arange(400) % 2, "distance": "tv"},
        "values must be made of at most 100 different numbers for total_variation.*'ks'",
    ),
    "one group": ({"sensitive_features": ["a"] * 8}, "has 1 group"),
    "no groups": ({"sensitive_features": None}, "sensitive_features must be given"),
    "an unknown group": ({"groups": ("a", "c")}, "groups must be made of groups"),
    "a group twice": ({"groups": ("a", "a")}, "groups must be two or more different groups"),
    "compare": ({"compare": "all"}, "compare must be one of 'pairs', 'reference', 'rest'"),
    "reference": (
        {"reference": "a"},
        "reference can only be used with compare='reference'; got compare='pairs'",
    ),
    "an unknown reference": (
        {"compare": "reference", "reference": "A"},
        "reference must be one of the groups.*got 'A'.*Did you mean 'a'",
    ),
    "an array as reference": (
        {"compare": "reference", "reference": np.arange(2)},
        "reference must be one of the groups",
    ),
    "ages as groups": (
        {"values": np.arange(42), "sensitive_features": np.arange(42) // 2},
        "sensitive_features must have at most 20 groups named by numbers; got 21 in 'sens.*bands",
    ),
    "hundreds of groups": (
        {"values": np.arange(400), "sensitive_features": [f"s{i // 2}" for i in range(400)]},
        "sensitive_features must make at most 10,000 comparisons; got 200 groups.*compare='rest'",
    ),
    "adjust": ({"adjust": "maxt"}, "adjust must be one of 'holm', 'bh', 'by', None"),
    "no draws": ({"n_resamples": 0}, "n_resamples must be 'auto' or an integer from 1"),
    "level": ({"confidence_level": 95}, "confidence_level must be .*Did you mean 0.95"),
    "weights": ({"sample_weight": [0.0] + [1.0] * 7}, "sample_weight must be .*above 0"),
    "measurements as labels": (
        {"values": MANY, "y_true": MANY, "sensitive_features": np.arange(400) % 2},
        "y_true must be made of at most 100 different numbers, which .* got 400. Cut them",
    ),
    "split clusters": ({"cluster": [1] * 8}, "cluster must keep to one group"),
    "clusters of two labels": (
        {"cluster": [1, 1, 2, 2, 3, 3, 4, 4], "y_true": [0, 1] * 4},
        "cluster must have rows of one label with y_true.*got cluster 1",
    ),
    "no label in common": (
        {"y_true": [0] * 4 + [1] * 4},
        "y_true must have a value that rows of both groups have; got none for 'a', 'b'",
    ),
    "no stratum in common": (
        {"control_features": [0] * 4 + [1] * 4},
        "control_features must have a value that rows of both groups have",
    ),
    "sample of rows in memory": ({"sample_rows": 100}, "sample_rows is for lazy frames"),
    "seed": ({"rng": -1}, "rng must be an integer from 0"),
    "infinite differences": (
        {"values": [1.7e308, -1.7e308, *range(6)]},
        "values must be .* whose differences can be added up; got -1.7e.308 and 1.7e.308",
    ),
    "infinite sums of distances": (
        {"values": [1e308, *range(7)], "distance": "wasserstein"},
        "values must be .* whose differences can be added up; got 0.0 and 1e.308",
    ),
    "weights lost in sums": (
        {"sample_weight": [1e-10] * 4 + [1e300] * 4},
        "sample_weight must be made of numbers that can be added up; got 1e-10 and 1e.300",
    ),
    "weights beyond sums": (
        {"sample_weight": [1e308] * 8},
        "sample_weight must be made of numbers that can be added up; got 1e.308 and 1e.308",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_arguments_are_named(name: str) -> None:
    given, match = BAD[name]
    with pytest.raises((fairperm.InputError, fairperm.InputTypeError), match=match):
        distance_test(**(GOOD | given))
