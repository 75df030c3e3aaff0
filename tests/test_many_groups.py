"""Counts, units and trials of many groups: one answer, whatever groups are called.

Permutation distributions of different engines are compared by Kolmogorov and Smirnov's test and
by moments; a right engine fails one such comparison in 10,000.
"""

from __future__ import annotations

import itertools
import math
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from fairperm import FairpermWarning, InputError, _many_groups, omnibus_test
from fairperm import _draws as draws
from fairperm._comparison import Comparison
from fairperm._inputs import Inputs
from fairperm._intake import read_table
from fairperm._many_groups import ManyCells, ManyTrials, ManyUnits, many_groups
from fairperm._metric import JointMetric
from fairperm._plan import Plan
from fairperm._sample import Cells
from fairperm.metrics import get_metric
from number_data import SCORES, arguments, value

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairperm._estimates import Estimates
    from fairperm._many_groups import ManyGroups

    Array = NDArray[np.float64]

ENGINES = {  # thresholds at which every sample goes one way
    "counts": {"_FEW_CELLS": 10**9, "_MERGEABLE": 10**9},
    "units": {"_FEW_CELLS": -1, "_MERGEABLE": -1, "_CELL_COST": 10**12},
}
KINDS = {"counts": ManyCells, "units": ManyUnits}


def force(patch: pytest.MonkeyPatch, engine: str) -> None:
    for name, number in ENGINES[engine].items():
        patch.setattr(_many_groups, name, number)


def build(
    engine: str,
    data: dict[str, Any],
    metric: str,
    scheme: str,
    variance: str | None,
) -> ManyGroups:
    chosen = get_metric(metric)
    table = read_table(Inputs(**data), chosen)
    comparison = Comparison.of(table, Plan(chosen, scheme, variance), table.groups, None)
    with pytest.MonkeyPatch.context() as patch:
        force(patch, engine)
        found = many_groups(comparison, variance)
    assert isinstance(found, KINDS[engine])
    return found


def observed(engine: ManyGroups) -> Estimates:
    return engine.observed(draws.stream(0, draws.OBSERVED))


def permuted(engine: ManyGroups, n: int, seed: int = 1) -> Estimates:
    """Return draws in the blocks that a test would make."""
    resampling = draws.Resampling(n, seed, 1, False)
    blocks = resampling.in_blocks(engine.permuted, draws.PERMUTATIONS, engine.block_size)
    names = ("value", "variance", "size")
    return type(blocks[0])(
        *(np.concatenate([getattr(one, name) for one in blocks], axis=1) for name in names)
    )


GROUPS = np.array(["d", "a", "c", "b"])


def repeating(metric: str, n: int = 400, *, strata: bool = False, seed: int = 1) -> dict[str, Any]:
    """Return numbers that repeat, in four groups of unequal sizes."""
    rng = np.random.default_rng([seed, n])
    if metric in SCORES:
        data = arguments(metric, rng.integers(0, 2, n), rng.integers(1, 10, n) / 10)
    elif get_metric(metric).kind == "regression":
        data = arguments(metric, rng.integers(1, 6, n), rng.integers(1, 6, n))
    else:
        data = {"y_true": rng.integers(0, 2, n), "y_pred": rng.integers(0, 2, n)}
    data["sensitive_features"] = GROUPS[rng.choice(4, n, p=[0.1, 0.4, 0.2, 0.3])]
    if strata:
        data["control_features"] = rng.integers(0, 3, n)
    return data


CASES = [
    ("selection_rate", "pooled", "score"),
    ("true_positive_rate", "denominator", "score"),
    ("true_positive_rate", "pooled", "wald"),
    ("positive_predictive_value", "pooled", "delta"),
    ("accuracy", "pooled", None),
    ("f1_score", "pooled", "delta"),
    ("balanced_accuracy", "within_label", "delta"),
    ("equalized_odds", "within_label", "score"),
    ("roc_auc", "pooled", "delong"),
    ("roc_auc", "within_label", "delong"),
    ("brier_score", "pooled", "delta"),
    ("mean_score_positives", "within_label", "delta"),
    ("expected_calibration_error", "pooled", None),
    ("mean_squared_error", "pooled", "delta"),
    ("r2_score", "pooled", "delta"),
]


@pytest.mark.parametrize("strata", [False, True], ids=["all rows", "strata"])
@pytest.mark.parametrize(("metric", "scheme", "variance"), CASES)
def test_counts_and_units_agree(
    metric: str, scheme: str, variance: str | None, strata: bool
) -> None:
    data = repeating(metric, strata=strata)
    counts, units = (build(one, data, metric, scheme, variance) for one in ENGINES)
    assert observed(counts).value.shape[-1] == 4
    in_strata = by_content(observed(counts)), by_content(observed(units))
    for name in ("value", "variance", "size"):
        one, other = (getattr(estimates, name) for estimates in in_strata)
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-13, err_msg=name)
    if not strata:
        same_distribution(permuted(counts, 1024), permuted(units, 1000), metric)


def by_content(estimates: Estimates) -> Estimates:
    """Return the estimates with the strata in the order of their sizes: engines have their own."""
    order = np.lexsort(estimates.size[0, 0].T)
    return type(estimates)(
        estimates.value[:, :, order], estimates.variance[:, :, order], estimates.size[:, :, order]
    )


def same_distribution(one: Estimates, other: Estimates, what: str) -> None:
    """Compare every group's permuted values and variances, and the gaps of neighbours."""
    for name in ("value", "variance"):
        first, second = (getattr(estimates, name)[:, :, 0] for estimates in (one, other))
        for part, group in itertools.product(range(len(first)), range(first.shape[-1])):
            a, b = (np.round(x[part, :, group], 10) for x in (first, second))
            assert stats.ks_2samp(a, b).pvalue > 1e-4, (what, name, part, group)
            if name == "value":
                after = (group + 1) % first.shape[-1]
                a, b = (
                    np.round(x[part, :, group] - x[part, :, after], 10) for x in (first, second)
                )
                assert stats.ks_2samp(a, b).pvalue > 1e-4, (what, "gap", part, group)


@pytest.mark.parametrize("metric", ["roc_auc", "f1_score", "mean_squared_error"])
@pytest.mark.parametrize("engine", ENGINES)
def test_estimates_are_those_of_the_groups(metric: str, engine: str) -> None:
    """By functions written out by hand, and by the variance of two groups alone."""
    data = repeating(metric)
    variance = "delong" if metric == "roc_auc" else "delta"
    found = observed(build(engine, data, metric, "pooled", variance))
    y, x = (np.asarray(data[name], float) for name in list(data)[:2])
    for place, group in enumerate(sorted(GROUPS)):
        mine = data["sensitive_features"] == group
        if metric == "f1_score":
            expected = 2 * (y * x)[mine].sum() / (y[mine].sum() + x[mine].sum())
        else:
            expected = value(metric, y[mine], x[mine])
        assert found.value[0, 0, 0, place] == pytest.approx(expected, rel=1e-12)
        assert found.size[0, 0, 0, place] == mine.sum()
        pair = {**data, "sensitive_features": np.where(mine, "a", "b")}
        two = observed(build("counts", pair, metric, "pooled", variance))
        own = found.variance[0, 0, 0, place]
        assert own == pytest.approx(two.variance[0, 0, 0, 0], rel=1e-10)


def test_permuted_groups_add_up_to_all_rows() -> None:
    data = repeating("selection_rate")
    for engine in ENGINES:
        found = permuted(build(engine, data, "selection_rate", "pooled", "score"), 64)
        selected = found.value * found.size
        np.testing.assert_allclose(found.size.sum(axis=-1), len(data["y_true"]))
        np.testing.assert_allclose(selected.sum(axis=-1), np.sum(data["y_pred"]))


def mean_difference(y_true: Any, y_pred: Any, sample_weight: Any = None) -> Any:
    return np.average((y_pred - y_true) ** 2, weights=sample_weight)


@pytest.mark.parametrize("strata", [False, True])
def test_trials_agree_with_counts(strata: bool) -> None:
    data = repeating("mean_squared_error", strata=strata)
    function: Any = get_metric(mean_difference)
    inputs = Inputs(**data)
    table = read_table(inputs, function.reading(inputs))
    plan = Plan(function.reading(inputs), "pooled", None)
    trials = many_groups(Comparison.of(table, plan, table.groups, None), None)
    assert isinstance(trials, ManyTrials)
    counts = build("counts", data, "mean_squared_error", "pooled", None)
    ours, theirs = by_content(observed(trials)), by_content(observed(counts))
    np.testing.assert_allclose(ours.value, theirs.value, rtol=1e-12)
    np.testing.assert_allclose(ours.size, theirs.size)
    if not strata:
        ours, theirs = permuted(trials, 512), permuted(counts, 1024)
        for group in range(4):
            a, b = (np.round(one.value[0, :, 0, group], 10) for one in (ours, theirs))
            assert stats.ks_2samp(a, b).pvalue > 1e-4


def test_a_joint_metric_of_ranks_and_totals() -> None:
    """As max-T makes it: every part is what it is alone, in the same permutations."""
    data = repeating("roc_auc", 300)
    parts = [get_metric(name).parts[0] for name in ("brier_score", "roc_auc", "mean_score")]
    joint: Any = JointMetric(name="all", meaning="", parts=tuple(parts), kind="probability")
    table = read_table(Inputs(**data), joint)
    comparison = Comparison.of(table, Plan(joint, "pooled", "score"), table.groups, None)
    found = []
    for engine in ENGINES:
        with pytest.MonkeyPatch.context() as patch:
            force(patch, engine)
            found.append(many_groups(comparison, "score"))
    counts, units = found
    np.testing.assert_allclose(observed(counts).value, observed(units).value, rtol=1e-12)
    np.testing.assert_allclose(observed(counts).variance, observed(units).variance, rtol=1e-9)
    same_distribution(permuted(counts, 1024), permuted(units, 1000), "joint")
    for i, (part, variance) in enumerate(zip(parts, ("delta", "delong", "delta"), strict=True)):
        alone = observed(build("units", data, part.name, "pooled", variance))
        np.testing.assert_allclose(observed(units).value[i], alone.value[0], rtol=1e-12)
        np.testing.assert_allclose(observed(units).variance[i], alone.variance[0], rtol=1e-9)


# -- What must not matter -------------------------------------------------------------------------

INVARIANT = [
    ("selection_rate", "counts", {}),
    ("selection_rate", "units", {}),
    ("selection_rate", "units", {"variance": "wald"}),
    ("roc_auc", "counts", {}),
    ("roc_auc", "units", {}),
    ("roc_auc", "units", {"scheme": "pooled"}),
    ("mean_squared_error", "units", {}),
    ("expected_calibration_error", "counts", {"n_resamples": 199}),
    ("expected_calibration_error", "units", {"n_resamples": 199}),
]


def outcome(data: dict[str, Any], metric: str, **options: Any) -> tuple[float, float, float]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FairpermWarning)
        result = omnibus_test(
            **data, **{"metric": metric, "n_resamples": 499, "rng": 5, "n_jobs": 1, **options}
        )
    return result.pvalue, result.statistic, result.n_undefined


@pytest.mark.parametrize("strata", [False, True], ids=["all rows", "strata"])
@pytest.mark.parametrize(("metric", "engine", "options"), INVARIANT)
def test_names_rows_and_threads_change_no_number(
    metric: str, engine: str, options: dict[str, Any], strata: bool
) -> None:
    if strata and metric == "expected_calibration_error":
        return  # has a bootstrapped variance, which strata are refused for
    data = repeating(metric, 160, seed=3)
    # groups of equal sizes: only what is in them tells them apart
    data["sensitive_features"] = np.array(list("abcd"))[np.arange(160) % 4]
    if strata:
        data["control_features"] = np.arange(160) * 7 % 3
    rng = np.random.default_rng(8)
    with pytest.MonkeyPatch.context() as patch:
        force(patch, engine)
        expected = outcome(data, metric, **options)
        order = rng.permutation(160)
        shuffled = {name: np.asarray(column)[order] for name, column in data.items()}
        assert outcome(shuffled, metric, **options) == pytest.approx(expected, rel=1e-12)
        for names in ("dcba", "badc", "cdab"):
            other = np.array(list(names))[np.arange(160) % 4]
            renamed = {**data, "sensitive_features": other}
            assert outcome(renamed, metric, **options) == pytest.approx(expected, rel=1e-10)
        assert outcome(data, metric, **options, n_jobs=2) == expected
        if strata:
            renamed = {**data, "control_features": (data["control_features"] + 1) % 3}
            assert outcome(renamed, metric, **options) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("engine", ENGINES)
@settings(derandomize=True, deadline=None, max_examples=40, database=None)
@given(data=st.data())
def test_every_groups_draws_follow_it_under_any_name(engine: str, data: st.DataObject) -> None:
    """Few rows with many ties, in groups that are alike: draws belong to contents, not names."""
    n_groups = data.draw(st.integers(2, 4))
    size = data.draw(st.integers(2, 4))
    n = n_groups * size
    label = np.array(data.draw(st.lists(st.integers(0, 1), min_size=n, max_size=n)))
    score = np.array(data.draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))) / 4
    order = np.array(data.draw(st.permutations(range(n))))
    names = np.array(data.draw(st.permutations(range(n_groups))))
    group = np.repeat(np.arange(n_groups), size)
    if len(set(label.tolist())) < 2:
        return
    both = []
    for rows, name in ((np.arange(n), np.arange(n_groups)), (order, names)):
        columns = {
            "y_true": label[rows],
            "y_score": score[rows],
            "sensitive_features": name[group[rows]],
        }
        found = permuted(build(engine, columns, "roc_auc", "pooled", "delong"), 16)
        both.append(found.value[0, :, 0][:, name])
    contents = [
        sorted(zip(label[group == g].tolist(), score[group == g].tolist(), strict=True))
        for g in range(n_groups)
    ]
    for g in range(n_groups):
        if contents.count(contents[g]) == 1:  # groups that are alike cannot be told apart
            np.testing.assert_allclose(both[0][:, g], both[1][:, g])


@pytest.mark.parametrize("groups", [2, 3])
def test_the_order_of_groups_is_by_size(groups: int) -> None:
    data = repeating("roc_auc")
    data["sensitive_features"] = np.arange(400) ** 2 % 7 % groups
    for engine in ENGINES:
        order = build(engine, data, "roc_auc", "pooled", "delong").order
        sizes = np.bincount(data["sensitive_features"])
        assert sorted(order) == list(range(groups))
        assert (np.diff(sizes[list(order)]) >= 0).all()


# -- Draws of counts ------------------------------------------------------------------------------


def tables_of(sample: NDArray[np.int64]) -> dict[bytes, float]:
    """Return every table with these margins (groups by cells) and its probability."""
    sizes, totals = sample.sum(axis=1).tolist(), sample.sum(axis=0).tolist()
    n = math.factorial(sum(sizes))
    ways = math.prod(math.factorial(x) for x in (*sizes, *totals))
    found = {}
    ranges = (range(min(a, b) + 1) for a in sizes for b in totals)
    for entries in itertools.product(*ranges):
        table = np.array(entries, np.int64).reshape(sample.shape)
        if (table.sum(axis=1) == sizes).all() and (table.sum(axis=0) == totals).all():
            found[table.tobytes()] = ways / n / math.prod(math.factorial(x) for x in entries)
    assert sum(found.values()) == pytest.approx(1)
    return found


def cells_of(sample: NDArray[np.int64]) -> Cells:
    kinds = sample.shape[1]
    return Cells(sample[None], np.eye(kinds), np.zeros(kinds, np.int64), None, swapped=False)


@pytest.mark.parametrize("thinned", [False, True], ids=["by kind", "thinned"])
@pytest.mark.parametrize(
    "counts",
    [
        [[1, 2], [2, 0], [1, 1]],
        [[1, 0, 1], [0, 2, 1], [2, 1, 0]],
        [[1, 1], [0, 1], [1, 0], [2, 1]],
        [[0, 0], [2, 1], [1, 2]],
    ],
    ids=str,
)
def test_permuted_tables_are_multivariate_hypergeometric(
    counts: list[list[int]], thinned: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if thinned:
        monkeypatch.setattr(draws, "_NUMPY_LIMIT", 2)
    sample, n = np.array(counts), 20_000
    drawn = draws.permute(cells_of(sample), n, draws.stream(1, draws.PERMUTATIONS))[:, 0]
    chance = tables_of(sample)
    place = {table: i for i, table in enumerate(chance)}
    times = np.bincount([place[one.tobytes()] for one in drawn], minlength=len(chance))
    expected = n * np.array(list(chance.values()))
    assert expected.min() >= 5
    assert stats.chisquare(times, expected).pvalue > 1e-4


def test_counts_of_billions_are_permuted() -> None:
    """Beyond NumPy's limit: exact margins, hypergeometric means and covariances."""
    sample = np.array([[3, 1, 2], [5, 4, 1], [1, 2, 6]]) * 10**9
    n = 4000
    drawn = draws.permute(cells_of(sample), n, draws.stream(2, draws.PERMUTATIONS))[:, 0]
    sizes, totals = sample.sum(axis=1), sample.sum(axis=0)
    assert (drawn.sum(axis=2) == sizes).all()
    assert (drawn.sum(axis=1) == totals).all()
    population = int(sizes.sum())
    for g, c in itertools.product(range(3), range(3)):
        share, kind = sizes[g] / population, totals[c] / population
        variance = population * share * (1 - share) * kind * (1 - kind)
        z = (drawn[:, g, c] - population * share * kind) / math.sqrt(variance)
        assert abs(z.mean()) < 5 / math.sqrt(n)
        assert abs((z**2).mean() - 1) < 5 * math.sqrt(2 / n)
    # two groups' counts of one cell: their correlation is -sqrt(odds · odds) of the shares
    odds = [sizes[g] / (population - sizes[g]) for g in (0, 1)]
    rho = -math.sqrt(odds[0] * odds[1])
    found = np.corrcoef(drawn[:, 0, 0], drawn[:, 1, 0])[0, 1]
    assert abs(found - rho) < 5 * (1 - rho**2) / math.sqrt(n)


def test_labels_stay_in_their_blocks_and_strata() -> None:
    data = repeating("true_positive_rate", strata=True)
    for engine in ENGINES:
        made = build(engine, data, "true_positive_rate", "within_label", "score")
        found, sample = permuted(made, 32), observed(made)
        np.testing.assert_allclose(found.size, np.broadcast_to(sample.size, found.size.shape))
        pooled = permuted(build(engine, data, "true_positive_rate", "pooled", "score"), 32)
        assert (pooled.size != sample.size).any()


def test_more_groups_than_a_byte_can_tell_are_refused() -> None:
    _many_groups.check_number(tuple(range(254)), "")
    rule = r"sensitive_features must be made of at most 254 groups to permute together; got 255"
    with pytest.raises(InputError, match=rule):
        _many_groups.check_number(tuple(range(255)), "")


def test_as_many_groups_as_there_can_be() -> None:
    rng = np.random.default_rng(1)
    group = np.repeat(np.arange(254), 4)
    data = {"y_true": np.zeros(1016), "y_pred": rng.normal(size=1016), "sensitive_features": group}
    engine = build("units", data, "mean_squared_error", "pooled", "delta")
    found = observed(engine).value[0, 0, 0]
    np.testing.assert_allclose(found, (data["y_pred"] ** 2).reshape(254, 4).mean(axis=1))
    totals = permuted(engine, 8).value[0, :, 0].sum(axis=1)
    np.testing.assert_allclose(totals, found.sum())
