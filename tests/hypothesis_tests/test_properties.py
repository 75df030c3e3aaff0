"""What must hold for every metric, scheme and variance, on any data.

Metrics are read from the registry, so that a new one inherits every property.
"""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import warnings
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st

from fairperm import PermutationTestResult, metric_names, permutation_test
from fairperm.engines import counts
from fairperm.engines.resampling.blocks import BLOCK
from fairperm.errors import FairpermWarning, InputError
from fairperm.hypothesis_tests.plan import SCHEMES, VARIANCES, Plan
from fairperm.metrics import get_metric
from studies.bootstrap import bootstrap_test
from tests.support.examples import examples
from tests.support.number_data import arguments, columns_for
from tests.support.simulations import only_monte_carlo

Rows = dict[str, list[Any]]

METRICS = metric_names()
TABLES = [name for name in METRICS if get_metric(name).kind in {"binary", "labels"}]
MACRO = [name for name in METRICS if get_metric(name).kind == "classes"]
JOINT = {name for name in METRICS if len(get_metric(name).parts) > 1}
BOOTSTRAPPED = [
    name for name in METRICS if name not in JOINT and get_metric(name).kind != "class_scores"
]
COMPLEMENTS = [(name, get_metric(name).complement) for name in TABLES]
OPPOSITE = {"two-sided": "two-sided", "greater": "less", "less": "greater"}

every_metric = pytest.mark.parametrize("metric", METRICS)
# rows that are all unlike have nothing to shrink
on_any_data = settings(examples(8), phases=(Phase.generate,))


@st.composite
def options(draw: st.DrawFn, metric: str) -> dict[str, Any]:
    """Draw a scheme and a variance that fit the metric."""
    fitting = []
    for scheme, variance in itertools.product(SCHEMES, VARIANCES):
        try:
            Plan.choose(get_metric(metric), scheme, variance)
        except InputError:
            continue
        fitting.append({"scheme": scheme, "variance": variance})
    return draw(st.sampled_from(fitting))


@st.composite
def samples(draw: st.DrawFn, metric: str) -> Rows:
    """Draw rows of two groups, which may be equally large, in one stratum or two."""
    if metric in TABLES:  # with any counts
        n_strata = draw(st.integers(1, 2))
        cells = st.lists(st.integers(0, 6), min_size=8 * n_strata, max_size=8 * n_strata)
        count = np.reshape(draw(cells.filter(any)), (n_strata, 2, 4))
        stratum, group, cell = (np.repeat(one, count.ravel()) for one in _indices(count))
        columns = {"y_true": cell // 2, "y_pred": cell % 2}
    else:  # all unlike
        sizes = draw(st.lists(st.integers(6, 14), min_size=4, max_size=4))
        if draw(st.booleans()):
            sizes[2:] = sizes[1::-1]
        stratum, group = (np.repeat(one, sizes) for one in ([0, 1, 0, 1], [0, 0, 1, 1]))
        if not draw(st.booleans()):
            stratum[:] = 0
        columns = columns_of(metric, sum(sizes), draw(st.integers(0, 999)))
    return {name: column.tolist() for name, column in columns.items()} | {
        "sensitive_features": ["ab"[g] for g in group],
        "control_features": stratum.tolist(),
    }


def _indices(count: Any) -> Any:
    return np.indices(count.shape).reshape(count.ndim, -1)


def columns_of(metric: str, n: int, seed: int) -> dict[str, Any]:
    """Return columns for a metric that is not of a confusion table."""
    rng, kind = np.random.default_rng(seed), get_metric(metric).kind
    if kind in {"classes", "class_scores"}:
        y = rng.permutation(np.arange(n) % 3)
        if kind == "class_scores":
            return {"y_true": y, "y_score": rng.normal(size=(n, 3)) + np.eye(3)[y]}
        return {"y_true": y, "y_pred": np.where(rng.random(n) < 0.6, y, rng.permutation(y))}
    if get_metric(metric).name.endswith(("index", "variation")):  # of benefits above 0
        return {"y_true": rng.random(n), "y_pred": rng.random(n)}
    return arguments(metric, *columns_for(metric, n, seed))


def run(metric: Any, rows: Rows, **chosen: Any) -> PermutationTestResult:
    """Return the result, and pass over data in which the metric is undefined."""
    chosen = {"groups": ("a", "b"), "n_resamples": 99, "n_bootstrap": 9, "rng": 0, **chosen}
    columns: dict[str, Any] = {**rows}
    if np.ndim(columns.get("y_score", 0)) == 2:
        columns["y_score"] = np.array(columns["y_score"])
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FairpermWarning)
            return permutation_test(**columns, metric=metric, **chosen)
    except InputError:
        assume(False)
        raise


def same(first: PermutationTestResult, second: PermutationTestResult) -> bool:
    """Tell whether all is the same but the groups' names; NaN is the same as NaN.

    Totals of numbers are added up in the order in which rows come, and may round otherwise.
    """

    def numbers(result: PermutationTestResult) -> str:
        plain = result.to_dict() | {"null": result.null_distribution.tolist()}
        named = {"answer", "groups", "counts", "notes"}
        return repr({name: one for name, one in plain.items() if name not in named})

    totals = [[[*one.counts[group].values()] for group in one.groups] for one in (first, second)]
    return numbers(first) == numbers(second) and totals[0] == pytest.approx(np.array(totals[1]))


def renamed(rows: Rows, **names: dict[Any, Any]) -> Rows:
    return {
        column: [names[column][value] for value in values] if column in names else values
        for column, values in rows.items()
    }


def either_way(data: st.DataObject) -> Any:
    """Enumerate permutations if they are few, or draw them all the same."""
    ways: list[Any] = [nullcontext, only_monte_carlo]
    return data.draw(st.sampled_from(ways))()


@every_metric
@on_any_data
@given(data=st.data())
def test_swapping_the_groups_flips_the_gap_and_nothing_else(
    metric: str, data: st.DataObject
) -> None:
    rows, chosen = data.draw(samples(metric)), data.draw(options(metric))
    alternative = data.draw(st.sampled_from(["two-sided"] if metric in JOINT else [*OPPOSITE]))
    with either_way(data):
        one = run(metric, rows, alternative=alternative, **chosen)
        other = run(metric, rows, alternative=OPPOSITE[alternative], groups=("b", "a"), **chosen)
    # groups with equal counts have no first and second but by name, and names must not matter
    assume(alternative == "two-sided" or one.difference != 0)
    sign, (low, high) = (1 if metric in JOINT else -1), other.confidence_interval
    ends = (low, high) if metric in JOINT else (-high, -low)
    flipped = [sign * other.difference, sign * other.statistic, *ends]
    found = [one.difference, one.statistic, *one.confidence_interval]
    rounding = 0 if metric in TABLES else 1e-12
    assert found == pytest.approx(flipped, rel=rounding, abs=0, nan_ok=True)
    assert one.pvalue == other.pvalue
    assert one.pvalue_interval == other.pvalue_interval
    error = other.standard_error
    assert one.standard_error == pytest.approx(error, rel=rounding, abs=0, nan_ok=True)


@pytest.mark.parametrize("metric", BOOTSTRAPPED)
@on_any_data
@given(data=st.data())
def test_swapping_the_groups_keeps_the_bootstrap_pvalue(metric: str, data: st.DataObject) -> None:
    rows: dict[str, Any] = data.draw(samples(metric))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FairpermWarning)
        given = {**rows, "metric": metric, "n_resamples": 99, "rng": 0}
        try:
            one, other = (bootstrap_test(**given, groups=pair) for pair in (("a", "b"), ("b", "a")))
        except InputError:
            assume(False)
            raise
    assert one.difference == pytest.approx(-other.difference, rel=1e-12)
    assert one.pvalue == other.pvalue
    assume(one.difference != 0)  # as above: between equal groups only names could decide
    assert one.confidence_interval == pytest.approx([-x for x in other.confidence_interval[::-1]])


@every_metric
@on_any_data
@given(data=st.data(), order=st.randoms(use_true_random=False))
def test_order_of_rows_and_names_do_not_matter(
    metric: str, data: st.DataObject, order: Any
) -> None:
    rows, chosen = data.draw(samples(metric)), data.draw(options(metric))
    shuffled = list(zip(*rows.values(), strict=True))
    order.shuffle(shuffled)
    reordered = dict(zip(rows, map(list, zip(*shuffled, strict=True)), strict=True))
    with either_way(data):
        plain = run(metric, rows, **chosen)
        assert same(plain, run(metric, reordered, **chosen))
        other_groups = renamed(rows, sensitive_features={"a": (2, "z"), "b": (1, "y")})
        assert same(plain, run(metric, other_groups, groups=((2, "z"), (1, "y")), **chosen))
        other_strata = renamed(rows, control_features={0: "z", 1: "a"})
        assert same(plain, run(metric, other_strata, **chosen))
        known = get_metric(metric)
        if known.kind != "regression" and "y_true" in known.columns:
            labels: Any = {0: "no", 1: "ay"}
            columns = {"y_true": labels, "y_pred": labels}
            if known.kind in {"classes", "class_scores"}:
                labels |= {0: "as", 2: "so"}
            else:
                chosen["pos_label"] = "ay"
            assert same(plain, run(metric, renamed(rows, **columns), **chosen))


@every_metric
@on_any_data
@given(data=st.data())
def test_rows_of_a_third_group_do_not_matter(metric: str, data: st.DataObject) -> None:
    rows, chosen = data.draw(samples(metric)), data.draw(options(metric))
    third = data.draw(samples(metric))
    third["sensitive_features"] = ["A third"] * len(third["control_features"])
    joined = {name: rows[name] + third[name] for name in rows}
    with either_way(data):
        assert same(run(metric, rows, **chosen), run(metric, joined, **chosen))


@pytest.mark.parametrize(("metric", "complement"), [pair for pair in COMPLEMENTS if pair[1]])
@on_any_data
@given(data=st.data())
def test_complements_are_one_hypothesis(metric: str, complement: str, data: st.DataObject) -> None:
    rows, chosen = data.draw(samples(metric)), data.draw(options(metric))
    with either_way(data):
        one, other = run(metric, rows, **chosen), run(complement, rows, **chosen)
    assert one.pvalue == other.pvalue
    assert one.difference == pytest.approx(-other.difference, abs=1e-12)
    assert one.statistic == pytest.approx(-other.statistic, abs=1e-9, nan_ok=True)


@every_metric
@on_any_data
@given(data=st.data())
def test_pvalue_is_a_probability_inside_its_interval(metric: str, data: st.DataObject) -> None:
    rows, chosen = data.draw(samples(metric)), data.draw(options(metric))
    with either_way(data):
        result = run(metric, rows, **chosen)
    assert 0 < result.pvalue <= 1
    for low, high in (result.pvalue_interval, result.pvalue_interval_wilson):
        assert 0 <= low <= result.pvalue <= high <= 1
    low, high = result.confidence_interval
    assert np.isnan(result.standard_error) or low <= result.difference <= high


@every_metric
@on_any_data
@given(data=st.data(), times=st.integers(2, 5))
def test_more_of_the_same_rows_keep_the_values_and_shrink_the_error(
    metric: str, data: st.DataObject, times: int
) -> None:
    rows, of_table = data.draw(samples(metric)), metric in TABLES
    once, more = (
        run(metric, one, n_resamples=9)
        for one in (rows, {name: column * times for name, column in rows.items()})
    )
    if metric not in JOINT:
        assert dict(more.values) == pytest.approx(dict(once.values), abs=1e-12)
    assert more.difference == pytest.approx(once.difference, abs=1e-12)
    error = more.standard_error * np.sqrt(times)
    if of_table and once.n_strata == 1:
        assert error == pytest.approx(once.standard_error, abs=1e-12)
    elif of_table:  # variances in strata are unbiased
        assert np.isnan(once.standard_error) or error <= once.standard_error + 1e-12


# Seeds.

WAYS: list[tuple[str, dict[str, Any]]] = [
    *((metric, {}) for metric in METRICS),
    *((m, {"variance": v}) for m in ("roc_auc", "r2_score") for v in ("bootstrap", None)),
    ("mean_squared_error", {"variance": "fast_bootstrap"}),
    ("false_negative_rate", {"scheme": "denominator", "variance": "score"}),
    ("f1_score", {"scheme": "pooled", "variance": "delta"}),
    ("equalized_odds", {"scheme": "pooled", "variance": "wald"}),
    ("accuracy", {"scheme": "pooled", "variance": "fast_bootstrap"}),
    ("balanced_accuracy", {"scheme": "within_label", "variance": "bootstrap"}),
]


def many_rows(metric: str) -> Rows:
    """Return rows whose permutations are too many to be enumerated."""
    n = 240
    if metric in TABLES:
        cell = np.random.default_rng(1).choice(4, n, p=[0.4, 0.15, 0.1, 0.35])
        columns = {"y_true": cell // 2, "y_pred": cell % 2}
    else:
        columns = columns_of(metric, n, seed=1)
    return {
        **{name: column.tolist() for name, column in columns.items()},
        "sensitive_features": [*"abb"] * (n // 3),
        "control_features": [0] * (n // 2) + [1] * (n // 2),
    }


@pytest.mark.parametrize(("metric", "chosen"), WAYS, ids=str)
def test_threads_change_no_number_and_more_draws_begin_with_the_same(
    metric: str, chosen: dict[str, Any]
) -> None:
    n = 2 * BLOCK + 100 if metric in TABLES else 300  # several blocks
    rows, chosen = many_rows(metric), {"n_resamples": n, **chosen}
    with only_monte_carlo():
        alone, other = (run(metric, rows, n_jobs=jobs, **chosen) for jobs in (1, 2))
        few = run(metric, rows, **{**chosen, "n_resamples": 100})
        another = run(metric, rows, **chosen | {"rng": 1})
    assert same(alone, other)
    if alone.null_distribution.size and not alone.exact:
        assert not np.array_equal(alone.null_distribution, another.null_distribution)
        # draws of counts are made many at a time, and a fast bootstrap has one deviation of all
        if metric not in {*TABLES, *MACRO} and few.variance != "fast_bootstrap":
            assert np.array_equal(few.null_distribution, alone.null_distribution[:100])


@pytest.mark.parametrize("at_once", [1, 1000])
def test_size_of_batches_changes_no_number(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = {"scheme": "pooled", "variance": "bootstrap", "n_bootstrap": 20}
    whole = run("f1_score", many_rows("f1_score"), **chosen)
    monkeypatch.setattr(counts, "_NUMBERS_AT_ONCE", at_once)
    assert same(whole, run("f1_score", many_rows("f1_score"), **chosen))


def test_a_generator_moves_on_and_a_seed_in_the_result_repeats_it() -> None:
    rows, rng = many_rows("f1_macro"), np.random.default_rng(5)
    first, second = (run("f1_macro", rows, rng=rng) for _ in range(2))
    assert first.seed != second.seed
    assert same(first, run("f1_macro", rows, rng=first.seed))


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


def mean_error(y_true: Any, y_pred: Any) -> float:
    return float(np.mean(y_pred - y_true))


def test_a_standard_error_that_is_only_reported_takes_few_bootstrap_samples() -> None:
    rows = many_rows("mean_error")
    many, few, least = (
        run(mean_error, rows, variance=None, n_resamples=n, n_bootstrap=n_bootstrap)
        for n, n_bootstrap in ((199, 500), (199, 50), (50, 500))
    )
    assert many.pvalue == few.pvalue
    assert few.standard_error == least.standard_error != many.standard_error
