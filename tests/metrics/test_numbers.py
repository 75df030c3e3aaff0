"""What must hold for every metric of numbers that hardly repeat, on any data."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st

import fairperm
from fairperm.engines import choice
from fairperm.engines.sample import order_strata
from fairperm.errors import FairpermWarning, InputError
from fairperm.hypothesis_tests.plan import SCHEMES, VARIANCES, Plan
from fairperm.metrics import get_metric
from studies.bootstrap import bootstrap_test
from tests.support.examples import examples
from tests.support.number_data import (
    NUMBER_METRICS,
    STUDENTIZED_METRICS,
    arguments,
    columns_for,
    default_variance,
)

if TYPE_CHECKING:
    from fairperm import PermutationTestResult
    from studies.bootstrap import BootstrapTestResult

OPPOSITE = {"two-sided": "two-sided", "greater": "less", "less": "greater"}

Rows = dict[str, list[Any]]

every_metric = pytest.mark.parametrize("metric", NUMBER_METRICS)
# rows that are all unlike have nothing to shrink
on_any_data = settings(examples(8), phases=(Phase.generate,))


def options(metric: str) -> st.SearchStrategy[dict[str, Any]]:
    """Draw a scheme and a variance that fit the metric."""
    fitting = []
    for scheme, variance in itertools.product(SCHEMES, VARIANCES):
        try:
            Plan.choose(get_metric(metric), scheme, variance)
        except InputError:
            continue
        fitting.append({"scheme": scheme, "variance": variance})
    return st.sampled_from(fitting)


@st.composite
def samples(draw: st.DrawFn, metric: str) -> Rows:
    """Draw rows that are all unlike, of two groups that may be equally large, in two strata."""
    sizes = draw(st.lists(st.integers(6, 14), min_size=4, max_size=4))
    if draw(st.booleans()):
        sizes[2:] = sizes[1::-1]  # the same numbers of rows in both groups
    stratum, group = (np.repeat(one, sizes).tolist() for one in ([0, 1, 0, 1], list("aabb")))
    y, x = columns_for(metric, sum(sizes), draw(st.integers(0, 999)))
    if not draw(st.booleans()):
        stratum = [0] * len(stratum)
    columns = {name: column.tolist() for name, column in arguments(metric, y, x).items()}
    return {**columns, "sensitive_features": group, "control_features": stratum}


def run(metric: str, rows: Rows, **chosen: Any) -> PermutationTestResult:
    """Return the result, and pass over data in which the metric is undefined."""
    chosen = {"groups": ("a", "b"), "n_resamples": 99, "n_bootstrap": 9, "rng": 0, **chosen}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FairpermWarning)
            return fairperm.permutation_test(**rows, metric=metric, **chosen)  # type: ignore[arg-type]
    except InputError:
        assume(False)
        raise


def same(first: PermutationTestResult, second: PermutationTestResult) -> bool:
    """Tell whether all is the same but the groups' names; NaN is the same as NaN.

    Totals of numbers are added up in the order in which rows come, and may round otherwise.
    """

    named = {"groups", "counts", "notes"}

    def numbers(result: PermutationTestResult) -> str:
        plain = result.to_dict() | {"null": result.null_distribution.tolist()}
        return repr({name: one for name, one in plain.items() if name not in named})

    totals = [[[*one.counts[group].values()] for group in one.groups] for one in (first, second)]
    return numbers(first) == numbers(second) and totals[0] == pytest.approx(np.array(totals[1]))


def renamed(rows: Rows, **names: dict[Any, Any]) -> Rows:
    return {
        column: [names[column][value] for value in values] if column in names else values
        for column, values in rows.items()
    }


@every_metric
def test_these_are_tested_by_the_units_engine(metric: str, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = []

    def spy(*given: Any) -> Any:
        chosen.append(given)
        return order_strata(*given)

    # the engine of counts orders its strata by itself
    monkeypatch.setattr(choice, "order_strata", spy)
    y, x = columns_for(metric, 60, seed=1)
    groups = ["a", "b"] * 30
    rows = {**arguments(metric, y, x), "sensitive_features": groups}
    run(metric, rows, n_resamples=9, variance=default_variance(metric))
    assert chosen


@every_metric
@on_any_data
@given(data=st.data())
def test_swapping_the_groups_flips_the_gap_and_nothing_else(
    metric: str, data: st.DataObject
) -> None:
    rows, chosen = data.draw(samples(metric)), data.draw(options(metric))
    alternative = data.draw(st.sampled_from([*OPPOSITE]))
    one = run(metric, rows, alternative=alternative, **chosen)
    other = run(metric, rows, alternative=OPPOSITE[alternative], groups=("b", "a"), **chosen)
    low, high = other.confidence_interval
    flipped = [-other.difference, -other.statistic, -high, -low]
    found = [one.difference, one.statistic, *one.confidence_interval]
    assert found == pytest.approx(flipped, rel=1e-12, abs=0, nan_ok=True)
    assert one.pvalue == other.pvalue
    assert one.pvalue_interval == other.pvalue_interval
    assert one.standard_error == pytest.approx(other.standard_error, rel=1e-12, nan_ok=True)


def bootstrapped(metric: str, rows: Rows, groups: tuple[str, str]) -> BootstrapTestResult:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FairpermWarning)
            return bootstrap_test(
                **rows,  # type: ignore[arg-type]
                metric=metric,
                groups=groups,
                n_resamples=99,
                rng=0,
            )
    except InputError:
        assume(False)
        raise


@pytest.mark.parametrize("metric", STUDENTIZED_METRICS)
@on_any_data
@given(data=st.data())
def test_swapping_the_groups_keeps_the_bootstrap_pvalue(metric: str, data: st.DataObject) -> None:
    rows = data.draw(samples(metric))
    one, other = (bootstrapped(metric, rows, groups) for groups in (("a", "b"), ("b", "a")))
    assert one.difference == pytest.approx(-other.difference, rel=1e-12)
    assert one.pvalue == other.pvalue
    assert one.confidence_interval == pytest.approx([-x for x in other.confidence_interval[::-1]])


@every_metric
@on_any_data
@given(data=st.data(), order=st.randoms(use_true_random=False))
def test_order_of_rows_does_not_matter(metric: str, data: st.DataObject, order: Any) -> None:
    rows, chosen = data.draw(samples(metric)), data.draw(options(metric))
    shuffled = list(zip(*rows.values(), strict=True))
    order.shuffle(shuffled)
    reordered = dict(zip(rows, map(list, zip(*shuffled, strict=True)), strict=True))
    assert same(run(metric, rows, **chosen), run(metric, reordered, **chosen))


@every_metric
@on_any_data
@given(data=st.data())
def test_names_of_groups_and_labels_do_not_matter(metric: str, data: st.DataObject) -> None:
    rows, chosen = data.draw(samples(metric)), data.draw(options(metric))
    plain = run(metric, rows, **chosen)
    other_groups = renamed(rows, sensitive_features={"a": (2, "z"), "b": (1, "y")})
    assert same(plain, run(metric, other_groups, groups=((2, "z"), (1, "y")), **chosen))
    if get_metric(metric).kind != "regression" and "y_true" in get_metric(metric).columns:
        other_labels = renamed(rows, y_true={0: "no", 1: "ay"})
        assert same(plain, run(metric, other_labels, pos_label="ay", **chosen))


@every_metric
@on_any_data
@given(data=st.data())
def test_names_of_strata_do_not_matter(metric: str, data: st.DataObject) -> None:
    rows, chosen = data.draw(samples(metric)), data.draw(options(metric))
    other_strata = renamed(rows, control_features={0: "z", 1: "a"})
    assert same(run(metric, rows, **chosen), run(metric, other_strata, **chosen))


@every_metric
@on_any_data
@given(data=st.data())
def test_rows_of_a_third_group_do_not_matter(metric: str, data: st.DataObject) -> None:
    rows, chosen = data.draw(samples(metric)), data.draw(options(metric))
    third = data.draw(samples(metric))
    third["sensitive_features"] = ["A third"] * len(third["control_features"])
    joined = {name: rows[name] + third[name] for name in rows}
    assert same(run(metric, rows, **chosen), run(metric, joined, **chosen))


@every_metric
@on_any_data
@given(data=st.data())
def test_pvalue_is_a_probability_inside_its_interval(metric: str, data: st.DataObject) -> None:
    rows, chosen = data.draw(samples(metric)), data.draw(options(metric))
    result = run(metric, rows, **chosen)
    assert 0 < result.pvalue <= 1
    for low, high in (result.pvalue_interval, result.pvalue_interval_wilson):
        assert 0 <= low <= result.pvalue <= high <= 1
    low, high = result.confidence_interval
    assert np.isnan(result.standard_error) or low <= result.difference <= high


# Seeds.


WAYS: list[tuple[str, str | None]] = [(metric, "auto") for metric in STUDENTIZED_METRICS]
WAYS += itertools.product(
    ["roc_auc", "mean_squared_error", "r2_score"], ["bootstrap", "fast_bootstrap", None]
)


@pytest.mark.parametrize(("metric", "variance"), WAYS)
def test_threads_change_no_number(metric: str, variance: str | None) -> None:
    y, x = columns_for(metric, 80, seed=1)
    rows = {**arguments(metric, y, x), "sensitive_features": ["a", "b"] * 40}
    chosen: dict[str, Any] = {"variance": variance, "n_resamples": 300}
    alone, *others = (run(metric, rows, n_jobs=jobs, **chosen) for jobs in (1, 2, 5))
    assert not alone.exact
    assert all(same(alone, other) for other in others)
    assert same(alone, run(metric, rows, rng=alone.seed, **chosen))
    another = run(metric, rows, rng=1, **chosen)
    assert not np.array_equal(alone.null_distribution, another.null_distribution)


@every_metric
def test_more_draws_begin_with_the_same(metric: str) -> None:
    y, x = columns_for(metric, 80, seed=1)
    rows = {**arguments(metric, y, x), "sensitive_features": ["a", "b"] * 40}
    few, many = (run(metric, rows, variance=None, n_resamples=n) for n in (100, 300))
    assert np.array_equal(few.null_distribution, many.null_distribution[:100])


@pytest.mark.validate
def test_one_seed_gives_one_pvalue_in_every_process() -> None:
    """Python hashes strings anew in every process; no draw may hang on the order of a set."""
    code = (
        "import numpy as np, fairperm; r = np.random.default_rng(1);"
        "y, p = r.integers(0, 5, 400), r.integers(0, 4, 400);"
        "print([fairperm.permutation_test(y, p, sensitive_features=r.integers(0, 2, 400),"
        " metric=m, n_resamples=99, rng=1).null_distribution.sum()"
        " for m in ('r2_score', 'mean_absolute_error')])"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": str(seed)},
        ).stdout
        for seed in range(4)
    }
    assert len(outputs) == 1


def test_a_standard_error_that_is_only_reported_takes_few_bootstrap_samples() -> None:
    rng = np.random.default_rng(2)
    group = rng.integers(0, 2, 200)
    data: dict[str, Any] = {"y_score": rng.random(200), "sensitive_features": group}
    data |= {"metric": "expected_calibration_error", "variance": None, "rng": 1}
    label = data["y_score"] > 0.4
    many, few, least = (
        fairperm.permutation_test(label, **data, n_resamples=n, n_bootstrap=n_bootstrap)
        for n, n_bootstrap in ((199, 500), (199, 50), (50, 500))
    )
    assert many.pvalue == few.pvalue
    assert few.standard_error == least.standard_error != many.standard_error
