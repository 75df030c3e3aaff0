"""What must hold for every metric, scheme and variance, on any data.

Metrics are read from the registry, so that a new one inherits every property.
"""

from __future__ import annotations

import itertools
import warnings
from collections import Counter
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import fairperm
from fairperm.data.reading import Table
from fairperm.engines import counts
from fairperm.engines.resampling.blocks import Resampling
from fairperm.errors import FairpermWarning, InputError
from fairperm.hypothesis_tests.groups import compare
from fairperm.hypothesis_tests.plan import SCHEMES, VARIANCES, Options, Plan
from fairperm.metrics import get_metric
from studies import bootstrap
from tests.support.examples import examples
from tests.support.helpers import OTHERS
from tests.support.simulations import Procedure, only_monte_carlo, table_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from numpy.typing import NDArray

    from fairperm.hypothesis_tests.results.gaps import PermutationTestResult

    Ways = Callable[[], AbstractContextManager[None]]

TABLE_KINDS = {"binary", "labels"}  # of a confusion table
METRICS = [name for name in fairperm.metric_names() if get_metric(name).kind in TABLE_KINDS]
JOINT = {name for name in METRICS if len(get_metric(name).parts) > 1}
COMPLEMENTS = [(name, get_metric(name).complement) for name in METRICS]
ALIASES = [(alias, name) for name in fairperm.metric_names() for alias in get_metric(name).aliases]
OPPOSITE = {"two-sided": "two-sided", "greater": "less", "less": "greater"}

every_metric = pytest.mark.parametrize("metric", METRICS)
either_way = pytest.mark.parametrize("ways", [nullcontext, only_monte_carlo], ids=["exact", "MC"])
on_any_data = examples(20)


def procedures(metric: str) -> list[Procedure]:
    """Return the metric's tests by every scheme and variance that fit it."""
    fitting = []
    for scheme, variance in itertools.product(SCHEMES, VARIANCES):
        try:
            Plan.choose(get_metric(metric), scheme, variance)
        except InputError:
            continue
        fitting.append(Procedure(metric, scheme, variance, n_resamples=99, n_bootstrap=9))
    return fitting


@st.composite
def tables(draw: st.DrawFn) -> NDArray[np.int64]:
    """Draw counts by stratum, group and cell."""
    strata = draw(st.integers(1, 2))
    cells = draw(st.lists(st.integers(0, 6), min_size=8 * strata, max_size=8 * strata).filter(any))
    return np.reshape(cells, (strata, 2, 4))


def result_of(
    procedure: Procedure, counts: NDArray[np.int64], groups: tuple[str, str] = ("a", "b")
) -> PermutationTestResult:
    """Return the result, and pass over data in which the metric is undefined."""
    try:
        return procedure(counts, groups=groups)
    except InputError:
        assume(False)
        raise


def numbers(result: PermutationTestResult) -> dict[str, Any]:
    """Return everything but the names of the groups and of the metric."""
    plain = result.to_dict() | {"null": result.null_distribution.tolist()}
    named = {"groups", "metric", "notes"}
    return {name: value for name, value in plain.items() if name not in named}


def same(first: PermutationTestResult, second: PermutationTestResult) -> bool:
    return repr(numbers(first)) == repr(numbers(second))  # NaN is the same as NaN here


# Groups exchanged.


@every_metric
@either_way
@on_any_data
@given(data=st.data(), counts=tables())
def test_swapping_the_groups_flips_the_gap_and_nothing_else(
    metric: str, ways: Ways, data: st.DataObject, counts: NDArray[np.int64]
) -> None:
    procedure = data.draw(st.sampled_from(procedures(metric)))
    alternative = data.draw(st.sampled_from(["two-sided"] if metric in JOINT else [*OPPOSITE]))
    with ways():
        one = result_of(replace(procedure, alternative=alternative), counts)
        other = result_of(
            replace(procedure, alternative=OPPOSITE[alternative]), counts, groups=("b", "a")
        )
    # groups with equal counts have no first and second but by name, and names must not matter
    assume(alternative == "two-sided" or one.difference != 0)
    low, high = other.confidence_interval
    flipped = np.array([-other.difference, -other.statistic, -high, -low])
    if metric in JOINT:
        flipped = np.array([other.difference, other.statistic, low, high])
    found = np.array([one.difference, one.statistic, *one.confidence_interval])
    np.testing.assert_array_equal(found, flipped)
    assert one.pvalue == other.pvalue
    assert one.pvalue_interval == other.pvalue_interval
    assert one.standard_error == pytest.approx(other.standard_error, rel=0, abs=0, nan_ok=True)


@on_any_data
@given(counts=tables(), metric=st.sampled_from(sorted({*METRICS} - JOINT)))
def test_swapping_the_groups_keeps_the_bootstrap_pvalue(
    counts: NDArray[np.int64], metric: str
) -> None:
    one, other = (bootstrapped(metric, counts, groups) for groups in (("a", "b"), ("b", "a")))
    assert one.difference == -other.difference
    assert one.pvalue == other.pvalue
    assume(one.difference != 0)  # as above: between equal groups only names could decide
    assert one.confidence_interval == pytest.approx([-x for x in other.confidence_interval[::-1]])


def bootstrapped(
    metric: str, counts: NDArray[np.int64], groups: tuple[str, str]
) -> bootstrap.BootstrapTestResult:
    (part,) = get_metric(metric).parts
    options = Options(resampling=Resampling(99, 0, 1, False))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FairpermWarning)
            return bootstrap.compare(table_of(counts), part, groups, options)
    except InputError:
        assume(False)
        raise


# Rows and their names.

Rows = dict[str, Any]


def rows_of(counts: NDArray[np.int64]) -> Rows:
    """Write the counts out as rows of data."""
    stratum, group, cell = (np.repeat(index, counts.ravel()) for index in cell_indices(counts))
    return {
        "y_true": (cell // 2).tolist(),
        "y_pred": (cell % 2).tolist(),
        "sensitive_features": ["ab"[g] for g in group],
        "control_features": stratum.tolist(),
    }


def cell_indices(counts: NDArray[np.int64]) -> NDArray[np.intp]:
    return np.indices(counts.shape).reshape(counts.ndim, -1)


def result_of_rows(procedure: Procedure, rows: Rows, **options: Any) -> PermutationTestResult:
    scheme_and_variance = {"scheme": procedure.scheme, "variance": procedure.variance}
    options = {"groups": ("a", "b"), "rng": 0, **scheme_and_variance, **options}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FairpermWarning)
            return fairperm.permutation_test(
                **rows,
                metric=procedure.metric,
                n_resamples=procedure.n_resamples,
                n_bootstrap=procedure.n_bootstrap,
                **options,
            )
    except InputError:
        assume(False)
        raise


def renamed(rows: Rows, **names: dict[Any, Any]) -> Rows:
    return {
        column: [names[column][value] for value in values] if column in names else values
        for column, values in rows.items()
    }


@every_metric
@either_way
@on_any_data
@given(data=st.data(), counts=tables(), order=st.randoms(use_true_random=False))
def test_order_of_rows_and_names_do_not_matter(
    metric: str, ways: Ways, data: st.DataObject, counts: NDArray[np.int64], order: Any
) -> None:
    procedure = data.draw(st.sampled_from(procedures(metric)))
    rows = rows_of(counts)
    shuffled = list(zip(*rows.values(), strict=True))
    order.shuffle(shuffled)
    labels = {0: "no", 1: "ay"}
    reordered = dict(zip(rows, map(list, zip(*shuffled, strict=True)), strict=True))
    with ways():
        plain = result_of_rows(procedure, rows)
        assert same(plain, result_of_rows(procedure, reordered))
        other_groups = renamed(rows, sensitive_features={"a": (2, "z"), "b": (1, "y")})
        assert same(plain, result_of_rows(procedure, other_groups, groups=((2, "z"), (1, "y"))))
        other_strata = renamed(rows, control_features={0: "z", 1: "a"})
        assert same(plain, result_of_rows(procedure, other_strata))
        other_labels = renamed(rows, y_true=labels, y_pred=labels)
        assert same(plain, result_of_rows(procedure, other_labels, pos_label="ay"))


@every_metric
@either_way
@on_any_data
@given(data=st.data(), counts=tables(), others=tables())
def test_rows_of_a_third_group_do_not_matter(
    metric: str, ways: Ways, data: st.DataObject, counts: NDArray[np.int64], others: Any
) -> None:
    procedure = data.draw(st.sampled_from(procedures(metric)))
    rows, third = rows_of(counts), rows_of(others)
    third["sensitive_features"] = ["A third"] * len(third["y_true"])
    with ways():
        joined = {name: rows[name] + third[name] for name in rows}
        assert same(result_of_rows(procedure, rows), result_of_rows(procedure, joined))


@every_metric
@on_any_data
@given(data=st.data(), counts=tables())
def test_rows_counted_by_hand_give_the_same(
    metric: str, data: st.DataObject, counts: NDArray[np.int64]
) -> None:
    procedure = data.draw(st.sampled_from(procedures(metric)))
    rows = rows_of(counts)
    counted = Counter(zip(*rows.values(), strict=True))
    label, prediction, group, stratum = (np.array(column) for column in zip(*counted, strict=True))
    table = Table(
        columns={"y_true": label == 1, "y_pred": prediction == 1},
        group=np.where(group == "a", 0, 1),
        stratum=stratum,
        count=np.array([*counted.values()]),
        groups=("a", "b"),
        strata=tuple(range(len(counts))),
    )
    from_rows = result_of_rows(procedure, rows)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FairpermWarning)
        options = Options(
            scheme=procedure.scheme,
            variance=procedure.variance,
            resampling=Resampling(procedure.n_resamples, 0, 1, False),
            n_bootstrap=procedure.n_bootstrap,
        )
        plan = Plan.for_table(get_metric(metric), table, table.groups, options)
        by_hand = compare(table, plan, table.groups, options)
    assert same(from_rows, by_hand)


# Names of metrics.


@pytest.mark.parametrize(("metric", "complement"), [pair for pair in COMPLEMENTS if pair[1]])
@either_way
@on_any_data
@given(data=st.data(), counts=tables())
def test_complements_are_one_hypothesis(
    metric: str, complement: str, ways: Ways, data: st.DataObject, counts: NDArray[np.int64]
) -> None:
    procedure = data.draw(st.sampled_from(procedures(metric)))
    with ways():
        one = result_of(procedure, counts)
        other = result_of(replace(procedure, metric=complement), counts)
    assert one.pvalue == other.pvalue
    assert one.difference == pytest.approx(-other.difference, abs=1e-12)
    assert one.statistic == pytest.approx(-other.statistic, abs=1e-9, nan_ok=True)


@pytest.mark.parametrize(("alias", "metric"), ALIASES)
def test_alias_is_the_metric(alias: str, metric: str) -> None:
    assert get_metric(alias) is get_metric(metric)


# Numbers.


@every_metric
@either_way
@on_any_data
@given(data=st.data(), counts=tables())
def test_pvalue_is_a_probability_inside_its_interval(
    metric: str, ways: Ways, data: st.DataObject, counts: NDArray[np.int64]
) -> None:
    procedure = data.draw(st.sampled_from(procedures(metric)))
    with ways():
        result = result_of(procedure, counts)
    assert 0 < result.pvalue <= 1
    for low, high in (result.pvalue_interval, result.pvalue_interval_wilson):
        assert 0 <= low <= result.pvalue <= high <= 1
    low, high = result.confidence_interval
    assert np.isnan(result.standard_error) or low <= result.difference <= high


@every_metric
@on_any_data
@given(counts=tables(), times=st.integers(2, 5))
def test_more_of_the_same_rows_keep_the_values_and_shrink_the_error(
    metric: str, counts: NDArray[np.int64], times: int
) -> None:
    procedure = Procedure(metric, n_resamples=9)
    once, more = result_of(procedure, counts), result_of(procedure, counts * times)
    assert more.difference == pytest.approx(once.difference, abs=1e-12)
    error = more.standard_error * np.sqrt(times)
    if once.n_strata > 1 and metric in OTHERS:  # variances in strata are unbiased
        assert np.isnan(once.standard_error) or error <= once.standard_error + 1e-12
    else:
        assert error == pytest.approx(once.standard_error, abs=1e-12)


# Seeds.

BIG = [[[40, 12, 9, 31], [25, 15, 11, 19]], [[14, 9, 6, 21], [33, 8, 12, 17]]]
SEEDED = [
    Procedure("false_negative_rate", "denominator", "score", 2500),
    Procedure("f1_score", "pooled", "delta", 2500),
    Procedure("equalized_odds", "pooled", "wald", 2500),
    Procedure("accuracy", "pooled", "fast_bootstrap", 2500),
    Procedure("balanced_accuracy", "within_label", "bootstrap", 2500, n_bootstrap=9),
]


@pytest.mark.parametrize("procedure", SEEDED, ids=str)
def test_threads_change_no_number(procedure: Procedure) -> None:
    rows = rows_of(np.array(BIG))
    with only_monte_carlo():
        alone, *others = (result_of_rows(procedure, rows, n_jobs=jobs) for jobs in (1, 2, 5, -1))
        another = result_of_rows(procedure, rows, rng=1)
    assert not alone.exact
    assert all(same(alone, other) for other in others)
    assert not np.array_equal(alone.null_distribution, another.null_distribution)


@pytest.mark.parametrize("at_once", [1, 1000])
def test_size_of_batches_changes_no_number(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    procedure = Procedure("f1_score", "pooled", "bootstrap", 99, n_bootstrap=20)
    whole = procedure(BIG)
    monkeypatch.setattr(counts, "_NUMBERS_AT_ONCE", at_once)
    assert same(whole, procedure(BIG))


def test_a_generator_moves_on_and_a_seed_in_the_result_repeats_it() -> None:
    rows, procedure = rows_of(np.array(BIG)), SEEDED[1]
    rng = np.random.default_rng(5)
    first, second = (result_of_rows(procedure, rows, rng=rng) for _ in range(2))
    assert first.seed != second.seed
    assert same(first, result_of_rows(procedure, rows, rng=first.seed))
