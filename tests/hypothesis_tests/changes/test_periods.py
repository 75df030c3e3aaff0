"""The change of the gap between periods, against brute force and against what it consists of."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from fairperm import FairpermWarning, InputError, compare_periods, metric_names, permutation_test
from fairperm.metrics import get_metric
from fairperm.metrics.definition import Kind

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Array = NDArray[Any]

pytestmark = pytest.mark.filterwarnings(
    "ignore:.* of group .* shows? how", "ignore:.*is zero in this", "ignore:.* changes ha"
)


def people(n: int = 240, seed: int = 5) -> dict[str, Array]:
    """Return labels and scores of two groups in two years, whose base rates all differ."""
    rng = np.random.default_rng(seed)
    group = rng.choice(["a", "b"], n, p=[0.4, 0.6])
    year = rng.choice([2023, 2024], n, p=[0.35, 0.65])
    base = np.where(group == "a", 0.6, 0.4) + np.where(year == 2023, 0.1, -0.1)
    label = rng.random(n) < base
    score = np.round(1 / (1 + np.exp(-rng.normal(label - 0.3, 1))), 2)
    region = rng.choice(["north", "south"], n)
    return {"label": label, "group": group, "year": year, "score": score, "region": region}


def arguments(metric: Any, rows: dict[str, Array], **more: Any) -> dict[str, Any]:
    """Return the call for this metric: scores where it reads them, otherwise predictions."""
    given: dict[str, Any] = {
        "y_true": rows["label"],
        "sensitive_features": rows["group"],
        "period": rows["year"],
        "metric": metric,
    }
    name, score = "y_pred", rows["score"]
    if not callable(metric):
        kind = get_metric(metric).kind
        name = "y_score" if "y_score" in get_metric(metric).columns else "y_pred"
        if kind.is_categorical or metric == "equalized_odds":
            score = score > 0.5
        if kind == Kind.REGRESSION:
            given["y_true"] = rows["label"] / 2 + 0.5  # no error is relative to 0
        if kind == Kind.CLASS_SCORES:
            score = np.column_stack([1 - score, score])
    return {**given, name: score, "n_resamples": 99, "rng": 3, **more}


def in_year(call: dict[str, Any], year: int) -> dict[str, Any]:
    """Return the call of a test of one year."""
    chosen = call["period"] == year
    columns = ("y_true", "y_pred", "y_score", "sensitive_features", "control_features")
    kept = {name: one for name, one in call.items() if name != "period"}
    return kept | {name: call[name][chosen] for name in columns if name in call}


EVERY = metric_names()


def median_error(y_true: Array, y_pred: Array) -> float:
    return float(np.median(np.abs(y_true - y_pred)))


FEW = ["false_negative_rate", "f1_score", "equalized_odds", "roc_auc", "brier_score", median_error]
REST = [pytest.param(one, marks=pytest.mark.validate) for one in EVERY if one not in FEW]


@pytest.mark.parametrize("metric", [*FEW, *REST])
def test_every_metric_changes_as_its_gaps_do_and_swapping_changes_the_sign_only(
    metric: Any,
) -> None:
    call = arguments(metric, people())
    result = compare_periods(**call)
    (change,) = result.changes
    old, new = (permutation_test(**in_year(call, year)) for year in (2023, 2024))
    (back,) = compare_periods(**call, periods=[2024, 2023]).changes
    (other,) = compare_periods(**call, groups=["b", "a"]).changes
    assert (back.pvalue, other.pvalue) == (change.pvalue, change.pvalue)
    assert change.adjusted_pvalue == change.pvalue
    if change.is_joint:
        for part in change.gap_old:
            gaps = [one.values["a"][part] - one.values["b"][part] for one in (old, new)]
            assert [change.gap_old[part], change.gap_new[part]] == pytest.approx(gaps, abs=1e-12)
        return
    assert (result.gaps[2023].pvalue, result.gaps[2024].pvalue) == (old.pvalue, new.pvalue)
    assert (change.gap_old, change.gap_new) == (old.difference, new.difference)
    assert change.difference == pytest.approx(change.gap_new - change.gap_old, abs=1e-12)
    for swapped in (back, other):
        assert swapped.difference == -change.difference
        assert swapped.confidence_interval == pytest.approx(
            tuple(-end for end in change.confidence_interval[::-1]), rel=1e-12
        )
    for group in ("a", "b"):
        mine = change.group_changes[group]
        assert (mine.old, mine.new) == (old.values[group], new.values[group])


def test_swapping_groups_of_equal_size_changes_no_draw_of_a_function() -> None:
    rows = people(80)
    rows["group"] = np.repeat(["a", "b"], 40)
    call = arguments(median_error, rows, n_resamples=39, n_bootstrap=50)
    pairs = (
        (groups, periods) for groups in ("ab", "ba") for periods in ([2023, 2024], [2024, 2023])
    )
    results = [compare_periods(**call, groups=[*one], periods=other) for one, other in pairs]
    assert len({one.changes[0].pvalue for one in results}) == 1


def test_the_standard_error_has_all_four_variances() -> None:
    call = arguments("fnr", people())
    (change,) = compare_periods(**call).changes
    label, missed = call["y_true"], ~call["y_pred"]
    total = 0.0
    for group, year in itertools.product("ab", (2023, 2024)):
        cell = (call["sensitive_features"] == group) & (call["period"] == year) & label
        total += missed[cell].var(ddof=1) / cell.sum()
    assert change.standard_error == pytest.approx(math.sqrt(total))
    assert change.statistic == pytest.approx(change.difference / math.sqrt(total))


def relabellings(old: Array) -> list[Array]:
    """Return every choice of as many rows for the old period."""
    n = len(old)
    return [
        np.isin(np.arange(n), chosen) for chosen in itertools.combinations(range(n), int(old.sum()))
    ]


def brute_force(group: Array, old: Array, value: Callable[[Array], tuple[float, float]]) -> float:
    """Return twice the smaller tail of D over its error, over every exchange within groups."""
    statistics = []
    halves = [np.flatnonzero(group == one) for one in ("a", "b")]
    for chosen in itertools.product(*(relabellings(old[half]) for half in halves)):
        gap, variance = 0.0, 0.0
        for sign, half, is_old in zip((1, -1), halves, chosen, strict=True):
            (x, v), (y, w) = value(half[~is_old]), value(half[is_old])
            gap += sign * (x - y)
            variance += v + w
        is_zero = abs(gap) < 1e-12
        spread = math.sqrt(variance) if variance > 1e-12 or is_zero else 1e-300
        statistics.append(0.0 if is_zero else gap / spread)
        if all((one == old[half]).all() for one, half in zip(chosen, halves, strict=True)):
            observed = statistics[-1]
    drawn = np.array(statistics)
    tails = [(sign * drawn >= sign * observed - 1e-9).mean() for sign in (1, -1)]
    return float(min(1.0, 2 * min(tails)))


GROUP = np.array(["a"] * 7 + ["b"] * 7)
OLD = np.array([True] * 3 + [False] * 4 + [True] * 5 + [False] * 2)


def test_a_rate_equals_all_exchanges_within_the_groups() -> None:
    hit = np.array([1, 0, 0, 1, 1, 1, 1, 1, 1, 0, 1, 0, 1, 0], bool)

    def rate(rows: Array) -> tuple[float, float]:
        return hit[rows].mean(), hit[rows].var(ddof=1) / len(rows)

    (change,) = compare_periods(
        y_pred=hit, sensitive_features=GROUP, period=~OLD, metric="selection_rate"
    ).changes
    assert change.exact
    assert change.pvalue == pytest.approx(brute_force(GROUP, OLD, rate), rel=1e-12)


def test_only_the_rows_of_the_denominator_are_exchanged() -> None:
    group, old = np.tile(GROUP, 2), np.tile(OLD, 2)
    label = np.repeat([True, False], 14) ^ (np.arange(28) % 9 == 0)
    hit = np.arange(28) % 3 > 0

    def rate(rows: Array) -> tuple[float, float]:
        return hit[rows].mean(), hit[rows].var(ddof=1) / len(rows)

    call: dict[str, Any] = {"sensitive_features": group, "period": ~old, "metric": "tpr"}
    (change,) = compare_periods(label, hit, **call).changes
    positives = np.flatnonzero(label)
    expected = brute_force(group[label], old[label], lambda rows: rate(positives[rows]))
    assert change.pvalue == pytest.approx(expected, rel=1e-12)


def test_random_draws_of_an_average_agree_with_all_exchanges() -> None:
    score = np.random.default_rng(2).normal(size=14)

    def mean(rows: Array) -> tuple[float, float]:
        return score[rows].mean(), score[rows].var(ddof=1) / len(rows)

    call: dict[str, Any] = {
        "sensitive_features": GROUP,
        "period": ~OLD,
        "metric": "mean_prediction",
    }
    call["variance"] = "delta"
    (change,) = compare_periods(score, score, **call, n_resamples=4999, rng=1).changes
    low, high = change.pvalue_interval
    assert low <= brute_force(GROUP, OLD, mean) <= high


def test_equal_periods_have_no_change() -> None:
    rows = people(60)
    twice = {name: np.tile(one, 2) for name, one in rows.items()}
    twice["year"] = np.repeat([1, 2], 60)
    for metric in ("tpr", "f1_score", "roc_auc", "mse"):
        (change,) = compare_periods(**arguments(metric, twice)).changes
        assert change.difference == pytest.approx(0, abs=1e-15)
        assert change.pvalue > 0.7  # 99 random draws
        assert all(one.pvalue == 1 for one in change.group_changes.values())


def test_strata_weigh_the_same_in_all_periods() -> None:
    rows = people(400)
    call = arguments("selection_rate", rows, control_features=rows["region"])
    (change,) = compare_periods(**call).changes
    weights = []
    gaps: dict[int, list[float]] = {2023: [], 2024: []}
    for region in ("north", "south"):
        here = rows["region"] == region
        sizes = [int((here & (rows["group"] == group)).sum()) for group in "ab"]
        weights.append(sizes[0] * sizes[1] / sum(sizes))
        for year, found in gaps.items():
            cell = here & (rows["year"] == year)
            first, second = (
                call["y_pred"][cell & (rows["group"] == group)].mean() for group in "ab"
            )
            found.append(first - second)
    old, new = (np.average(one, weights=weights) for one in gaps.values())
    assert (change.gap_old, change.gap_new) == pytest.approx((old, new))
    assert change.difference == pytest.approx(new - old)
    given = dict(zip(("north", "south"), weights, strict=True))
    (same,) = compare_periods(**call, stratum_weights=given).changes
    assert (same.difference, same.pvalue) == pytest.approx((change.difference, change.pvalue))


def test_strata_without_all_groups_and_periods_do_not_count() -> None:
    rows = people(400)
    call = arguments("selection_rate", rows)
    (plain,) = compare_periods(**call).changes
    more = people(60, seed=8)
    more["year"][:] = 2024
    both = {name: np.concatenate([one, more[name]]) for name, one in rows.items()}
    region = np.repeat(["here", "nowhere"], [400, 60])
    call = arguments("selection_rate", both, control_features=region)
    with pytest.warns(FairpermWarning, match="1 of 2 strata has no rows of some group in some"):
        (change,) = compare_periods(**call).changes
    assert (change.difference, change.pvalue) == (plain.difference, plain.pvalue)
    both["label"] |= region == "nowhere"
    call = arguments("false_positive_rate", both, control_features=region)
    with pytest.warns(FairpermWarning, match="1 of 2 strata has no negatives of some group in"):
        compare_periods(**call)


def test_several_periods_are_compared_with_the_previous_or_the_first_and_adjusted() -> None:
    rows = people(600)
    rows["year"] = np.random.default_rng(1).integers(2020, 2023, 600)
    call = arguments("fpr", rows)
    result = compare_periods(**call)
    assert [one.periods for one in result.changes] == [(2020, 2021), (2021, 2022)]
    from_first = compare_periods(**call, against="first")
    assert [one.periods for one in from_first.changes] == [(2020, 2021), (2020, 2022)]
    p = sorted(one.pvalue for one in result.changes)
    holm = [min(1.0, 2 * p[0]), min(1.0, max(2 * p[0], p[1]))]
    assert sorted(one.adjusted_pvalue for one in result.changes) == holm
    for one in result.changes:
        (alone,) = compare_periods(**call, periods=one.periods).changes
        assert (alone.difference, alone.pvalue) == (one.difference, one.pvalue)
    frame = result.to_frame()
    assert list(frame["period"]) == [2020, 2021, 2022]
    assert list(frame["adjusted_pvalue"])[1:] == [one.adjusted_pvalue for one in result.changes]
    plain = result.to_dict()
    assert [len(plain[name]) for name in ("gaps", "changes")] == [3, 2]
    assert "2020 → 2021" in repr(result)


@pytest.mark.parametrize("frequency", [None, "M"])
def test_dates_are_periods(frequency: str | None) -> None:
    rows = people(300)
    month = pd.to_datetime(["2024-02-01", "2024-01-01"])[(rows["year"] == 2023).astype(int)]
    when = month if frequency is None else month.to_period(frequency)
    result = compare_periods(**{**arguments("fpr", rows), "period": when})
    assert result.periods == tuple(sorted(set(when)))
    names = ("2024-01-01", "2024-02-01") if frequency is None else ("2024-01", "2024-02")
    assert " → ".join(names) in repr(result)
    assert [str(one)[:7] for one in result.to_frame("polars")["period"]] == ["2024-01", "2024-02"]
    assert result.changes[0].pvalue == compare_periods(**arguments("fpr", rows)).changes[0].pvalue


QUARTERS = ("Q4 2023", "Q1 2024")  # not in the order of text


def in_quarters() -> dict[str, Any]:
    rows = people(300)
    quarter = np.take(QUARTERS, (rows["year"] == 2024).astype(int))
    return {"label": rows["label"], "group": rows["group"], "p": rows["score"] > 0.5, "q": quarter}


def as_pandas(rows: dict[str, Any]) -> Any:
    declared = pd.Categorical(rows["q"], categories=QUARTERS, ordered=True)
    return pd.DataFrame({**rows, "q": declared})


def as_polars(rows: dict[str, Any]) -> Any:
    return pl.DataFrame(rows).with_columns(pl.col("q").cast(pl.Enum(QUARTERS)))


def as_arrow(rows: dict[str, Any]) -> Any:
    codes = pa.array((rows["q"] == QUARTERS[1]).astype(int))
    declared = pa.DictionaryArray.from_arrays(codes, pa.array(QUARTERS), ordered=True)
    return pa.table({**rows, "q": declared})


def as_duckdb(rows: dict[str, Any]) -> Any:
    frame = pd.DataFrame(rows)  # noqa: F841 (DuckDB finds it by its name)
    return duckdb.sql(f"SELECT * REPLACE (q::ENUM{QUARTERS} AS q) FROM frame")


@pytest.mark.parametrize(
    "data_of",
    [
        as_pandas,
        lambda rows: as_pandas(rows).astype({"q": pd.ArrowDtype(as_arrow(rows)["q"].type)}),
        as_polars,
        lambda rows: as_polars(rows).lazy(),
        as_arrow,
        as_duckdb,
        lambda rows: {**rows, "q": as_pandas(rows)["q"]},
    ],
)
def test_a_declared_order_of_periods_wins(data_of: Callable[[dict[str, Any]], Any]) -> None:
    rows = in_quarters()
    call: dict[str, Any] = {"y_pred": "p", "sensitive_features": "group", "period": "q"}
    call |= {"metric": "fpr", "rng": 1, "n_resamples": 99}
    expected = compare_periods("label", data=rows, **call, periods=QUARTERS)
    result = compare_periods("label", data=data_of(rows), **call)
    assert result.periods == QUARTERS
    assert result.changes[0].difference == expected.changes[0].difference
    assert result.changes[0].pvalue == expected.changes[0].pvalue


@pytest.mark.parametrize("column", [as_pandas, as_polars, as_arrow])
def test_a_column_by_itself_may_declare_an_order(column: Callable[[dict[str, Any]], Any]) -> None:
    rows = in_quarters()
    call: dict[str, Any] = {"sensitive_features": rows["group"], "metric": "fpr", "rng": 1}
    when = column(rows)["q"]
    for period in (when, when.array) if column is as_pandas else (when,):
        result = compare_periods(rows["label"], rows["p"], period=period, n_resamples=49, **call)
        assert result.periods == QUARTERS


def test_each_of_several_columns_may_declare_an_order() -> None:
    rows = in_quarters()
    half = np.take(["late", "early"], np.arange(300) % 2)
    when = {"half": pd.Categorical(half, categories=["early", "late"], ordered=True)}
    when |= {"quarter": as_pandas(rows)["q"]}
    call: dict[str, Any] = {"sensitive_features": rows["group"], "metric": "fpr", "rng": 1}
    result = compare_periods(rows["label"], rows["p"], period=when, n_resamples=49, **call)
    assert result.periods == tuple(itertools.product(["early", "late"], QUARTERS))


@pytest.mark.parametrize(
    "unordered",
    [
        lambda rows: pd.DataFrame({**rows, "q": pd.Categorical(rows["q"])}),
        lambda rows: pl.DataFrame(rows).with_columns(pl.col("q").cast(pl.Categorical)),
        lambda rows: pl.DataFrame(rows).lazy(),
        # a column of pandas without an order is an enumeration of DuckDB in sorted order
        lambda rows: duckdb.from_df(pd.DataFrame({**rows, "q": pd.Categorical(rows["q"])})),
    ],
)
def test_without_a_declared_order_text_must_sort_by_time(
    unordered: Callable[[dict[str, Any]], Any],
) -> None:
    call: dict[str, Any] = {"y_pred": "p", "sensitive_features": "group", "metric": "fpr"}
    with pytest.raises(InputError, match=r"periods must be given, in their order, if period is te"):
        compare_periods("label", data=unordered(in_quarters()), period="q", **call)


@pytest.mark.parametrize(
    ("periods", "parts"),
    [
        (("Q4 2023", "Q1 2024"), "quarters"),
        (("Q1", "Q2"), "quarters"),
        (("4Q23", "1Q24"), "quarters"),
        (("first quarter", "second quarter"), "quarters"),
        (("Dec 2023", "Jan 2024"), "months"),
        (("2024 April", "2024 May"), "months"),
        (("month 1", "month 2"), "months"),
        (("31.12.2023", "01.01.2024"), "months"),
        (("12/31/23", "01/01/24"), "months"),
        (("week 51", "week 52"), "weeks"),
        (("W51 2023", "W01 2024"), "weeks"),
        (("12/2023", "01/2024"), "years that do not come first"),
        (("H2 2023", "H1 2024"), "years that do not come first"),
        (("11/22", "01/23"), "years that do not come first"),
        (("2H23", "1H24"), "years that do not come first"),
        (("H2 '23", "H1 '24"), "years that do not come first"),
        (("CW52/23", "CW01/24"), "weeks"),
        (("9", "10"), "numbers of different lengths"),
        (("v9", "v10"), "numbers of different lengths"),
        (("2024-9", "2024-10"), "numbers of different lengths"),
    ],
)
def test_text_that_does_not_sort_by_time_is_refused(periods: tuple[str, str], parts: str) -> None:
    rows = in_quarters()
    when = np.take(periods, (rows["q"] == QUARTERS[1]).astype(int))
    call: dict[str, Any] = {"sensitive_features": rows["group"], "metric": "fpr", "rng": 1}
    call |= {"period": when, "n_resamples": 49}
    with pytest.raises(InputError, match=f"if period is text with {parts}; got None"):
        compare_periods(rows["label"], rows["p"], **call)
    assert compare_periods(rows["label"], rows["p"], periods=periods, **call).periods == periods


@pytest.mark.parametrize(
    "periods",
    [
        ("2023-12-31", "2024-01-01"),
        ("2023-12", "2024-01"),
        ("20231231", "20240101"),
        ("2023", "2024"),
        ("2023 Q4", "2024 Q1"),
        ("2023Q4", "2024Q1"),
        ("2023-W52", "2024-W01"),
        ("FY23 H2", "FY24 H1"),
        ("May 2023", "May 2024"),
        ("2023/24", "2024/25"),
        ("site 09", "site 10"),
        ("v1", "v2"),
        ("Berlin", "Paris"),
        (9, 10),
        (9.5, 10.25),
    ],
)
def test_what_sorts_by_time_is_sorted(periods: tuple[Any, Any]) -> None:
    rows = in_quarters()
    when = np.take(periods, (rows["q"] == QUARTERS[1]).astype(int))
    call: dict[str, Any] = {"sensitive_features": rows["group"], "metric": "fpr", "rng": 1}
    result = compare_periods(rows["label"], rows["p"], period=when, n_resamples=49, **call)
    assert result.periods == periods


def test_margins_of_a_change() -> None:
    (change,) = compare_periods(**arguments("fpr", people(2000), n_resamples=999)).changes
    wide = change.test_margin(0.5)
    assert wide.pvalue < 0.01
    assert change.test_margin((-math.inf, 0.5)).lower is None
    assert change.test_margin(abs(change.difference) + 1e-6).pvalue > 0.4


def test_clusters_are_exchanged_whole_and_can_be_split() -> None:
    rows = people(300)
    cell = np.char.add(rows["group"].astype(str), rows["year"].astype(str))
    own = np.char.add(cell, (np.arange(300) // 3 % 20).astype(str))
    call = arguments("selection_rate", rows)
    (plain,) = compare_periods(**call).changes
    (change,) = compare_periods(**call, cluster=own).changes
    assert change.difference == pytest.approx(plain.difference)
    assert change.standard_error != plain.standard_error
    shared = np.arange(300) // 3 % 20
    (split,) = compare_periods(**call, cluster=shared, split_clusters=True).changes
    assert (split.pvalue, split.standard_error) == (change.pvalue, change.standard_error)
    assert "20 clusters have rows of several groups or periods" in split.notes[-1]
    table = duckdb.from_df(pd.DataFrame({**rows, "decision": call["y_pred"], "own": own}))
    names: dict[str, Any] = {"sensitive_features": "group", "period": "year"}
    names |= {
        "metric": "selection_rate",
        "cluster": "own",
        "data": table,
        "rng": 3,
        "n_resamples": 99,
    }
    (lazy,) = compare_periods(y_pred="decision", **names).changes
    assert lazy.pvalue == change.pvalue


def test_weights_count_in_values_and_errors() -> None:
    rows = people(300)
    weight = np.random.default_rng(4).uniform(0.5, 2, 300)
    call = arguments("selection_rate", rows, sample_weight=weight)
    (change,) = compare_periods(**call).changes
    gaps = []
    for year in (2023, 2024):
        here = rows["year"] == year
        first, second = (
            np.average(call["y_pred"][cell], weights=weight[cell])
            for cell in (here & (rows["group"] == group) for group in "ab")
        )
        gaps.append(first - second)
    assert change.difference == pytest.approx(gaps[1] - gaps[0])


def test_few_rows_are_noted_by_group_and_period() -> None:
    rows = people(60)
    with pytest.warns(FairpermWarning, match="Only about . rows of group 'a' in 2023 show how"):
        compare_periods(**arguments("fnr", rows))


def test_the_normal_limit_and_no_studentizing_state_their_validity() -> None:
    call = arguments("fpr", people())
    (limit,) = compare_periods(**{**call, "n_resamples": 0}).changes
    assert "the normal limit" in limit.validity
    assert limit.pvalue == pytest.approx(math.erfc(abs(limit.statistic) / math.sqrt(2)))
    (plain,) = compare_periods(**call, variance=None).changes
    assert "Not valid for the weak null" in plain.validity


@pytest.mark.parametrize(
    ("asked", "tested"), [("greater", "two-sided"), ("symmetric", "symmetric")]
)
def test_only_the_change_has_a_direction(asked: str, tested: str) -> None:
    found = compare_periods(**arguments("accuracy", people(), alternative=asked))
    assert {gap.alternative for gap in found.gaps.values()} == {tested}
