"""Errors of weighted rows and of clusters: the jackknife, in the sample and in every draw."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import fairperm
from fairperm.data.sample import Sample
from fairperm.engines.counts import CellsEngine
from fairperm.engines.kernels.subsets import lane_bits
from fairperm.engines.many_groups import ManyGroupsEngine
from fairperm.engines.sample import Cells
from fairperm.engines.totals import TotalsEngine
from fairperm.metrics import get_metric
from fairperm.metrics.definition import Metric, Variance, by_part, metrics_of_totals

Array = NDArray[np.float64]

RATIOS = (  # values that are a ratio to one base, whose leave-one-out values are exact
    "mean_outcome",
    "accuracy",
    "false_negative_rate",
    "positive_predictive_value",
    "mean_squared_error",
    "log_loss",
    "change in accuracy",
    "change in mean_squared_error",
)
OTHERS = (
    "f1_score",
    "balanced_accuracy",
    "r2_score",
    "equalized_odds",
    "change in positive_predictive_value",
    "change in balanced_accuracy",
)


@dataclass(frozen=True)
class Setting:
    """A metric's parts and the units of two groups: weighted rows, or clusters of three."""

    parts: tuple[Metric, ...]
    rows: Sample

    @classmethod
    def of(cls, name: str, option: str, n: int = 60, n_strata: int = 1) -> Setting:
        rng = np.random.default_rng(len(name))
        single = get_metric(name.removeprefix("change in "))
        metric = single.change() if name.startswith("change") else single
        columns: dict[str, Any] = {one: rng.random(n) < 0.5 for one in ("y_true", "y_pred")}
        columns["y_pred_new"] = columns["y_pred"] ^ (rng.random(n) < 0.3)
        columns |= {one: rng.random(n) for one in ("y_score", "y_score_new")}
        if metric.kind == "regression":
            columns = {one: 5 + rng.normal(size=n) for one in columns}
        group, cluster = (rng.random(n) < 0.4).astype(np.uint8), np.arange(n) // 3
        group[:6] = [0, 0, 0, 1, 1, 1]
        stratum = np.arange(n) // 6 % n_strata
        is_weighted = option == "weights"
        parts = metrics_of_totals(metric.parts)
        rows = Sample(
            columns={},
            contributions=np.hstack([one.matrix(columns) for one in parts]),
            group=group if is_weighted else group[3 * cluster],
            stratum=stratum,
            count=np.ones(n, np.int64),
            block=np.zeros(n, np.uint8),
            groups=(0, 1),
            strata=tuple(range(n_strata)),
            weight=rng.lognormal(size=n) if is_weighted else None,
            cluster=None if is_weighted else cluster,
        )
        return cls(parts, rows.sum_units().expand())

    def engine(self) -> TotalsEngine:
        return TotalsEngine.from_rows(self.parts, self.rows, None, Variance.DELTA, 0)


def leave_one_out(part: Metric, u: Array) -> Array:
    """Return the fall of a value for each unit that is left out."""
    return np.asarray(part.estimate(u.sum(axis=0)) - part.estimate(u.sum(axis=0) - u))


def jackknife(part: Metric, u: Array) -> float:
    """Return the jackknife's variance around the value, over the units that it rests on."""
    (base,) = part.bases().values()
    n = np.count_nonzero(u @ base)
    return float((leave_one_out(part, u) ** 2).sum() * (n - 1) / n)


def by_hand(part: Metric, u: Array) -> float:
    """Return the same with each base's ratio as if it were the whole value, by small steps."""
    of_each, influence = part.base_of_contributions(), np.zeros(len(u))
    total = u.sum(axis=0)
    for place, base in enumerate(part.bases().values()):
        mine = np.where(of_each == place, u, 0.0)
        step = 1e-6
        ends = [part.estimate(total + sign * step * mine) for sign in (1, -1)]
        b, n = u @ base, np.count_nonzero(u @ base)
        slope = (ends[0] - ends[1]) / (2 * step)
        influence += np.sqrt((n - 1) / n) * slope / (1 - b / b.sum())
    return float((influence**2).sum())


@pytest.mark.parametrize("option", ["weights", "clusters"])
@pytest.mark.parametrize("name", [*RATIOS, *OTHERS])
def test_every_engine_and_every_draw_has_the_errors_of_the_jackknife(
    name: str, option: str
) -> None:
    setting = Setting.of(name, option)
    parts, rows = setting.parts, setting.rows
    expected, rel = (jackknife, 1e-12) if name in RATIOS else (by_hand, 1e-7)
    engine = setting.engine()
    cells = CellsEngine(parts, Cells.from_rows(rows, None), Variance.DELTA)
    many = ManyGroupsEngine.from_rows(parts, rows, None, Variance.DELTA)
    of_sample = [
        [expected(part, rows.contributions[rows.group == g][:, place]) for g in (0, 1)]
        for part, place in by_part(parts)
    ]
    for one in (engine, cells, many):
        found = one.observed().variance[:, 0, 0]
        np.testing.assert_allclose(found, of_sample, rtol=rel)
    words = engine.random_labels(64, np.random.default_rng(1))
    drawn = engine.of_labels(words, 64, np.random.default_rng(1)).variance[:, :, 0]
    u = sorted_contributions(engine)
    for lane in (0, 31, 63):
        in_first = lane_bits(words)[lane]
        for i, (part, place) in enumerate(by_part(parts)):
            sides = [expected(part, u[mine][:, place]) for mine in (in_first, ~in_first)]
            np.testing.assert_allclose(drawn[i, lane, list(engine.order)], sides, rtol=rel)


def sorted_contributions(engine: TotalsEngine) -> Array:
    """Return the contributions in the engine's order, from its own columns."""
    moments = engine.moments
    u = np.tile(moments.centre, (len(moments.columns), 1))
    for column, place in zip(moments.columns.T, moments.moving, strict=True):
        if place < moments.width:
            u[:, place] += column
    return np.asarray(u + moments.shift * u[:, moments.base])


@pytest.mark.parametrize("option", ["weights", "clusters"])
def test_strata_have_their_own_and_a_single_unit_has_none(option: str) -> None:
    setting = Setting.of("mean_squared_error", option, 90, 3)
    (part,), rows = setting.parts, setting.rows
    alone = np.flatnonzero((rows.stratum == 2) & (rows.group == 0))[:1]
    kept = (rows.stratum != 2) | (rows.group != 0)
    kept[alone] = True
    rows = rows.take(np.flatnonzero(kept))
    engine = TotalsEngine.from_rows((part,), rows, None, Variance.DELTA, 0)
    cells = CellsEngine((part,), Cells.from_rows(rows, None), Variance.DELTA)
    for one in (engine.observed(), cells.observed()):
        for s, g in itertools.product(range(3), (0, 1)):
            mine = rows.contributions[(rows.stratum == s) & (rows.group == g)]
            expected = np.nan if (s, g) == (2, 0) else jackknife(part, mine)
            found = np.sort(one.variance[0, 0, :, g])  # the counts engine orders strata its own way
            assert np.isclose(found, expected, rtol=1e-12, equal_nan=True).any()
        assert np.isnan(one.variance).sum() == 1


def test_a_row_with_almost_all_the_weight_has_the_error_of_what_it_hides() -> None:
    """The value is the heavy row's; left out, the value is the others' mean."""
    rng = np.random.default_rng(1)
    x, group = rng.normal(size=100), np.repeat([0, 1], 50)
    weight = np.where(np.arange(100) == 0, 1e6, 1.0)
    result = fairperm.permutation_test(
        x,
        sensitive_features=group,
        sample_weight=weight,
        metric="mean_outcome",
        n_resamples=99,
        rng=1,
    )
    expected = np.sqrt(49 / 50) * abs(x[0] - x[1:50].mean())
    assert result.standard_errors[0] == pytest.approx(expected, rel=1e-4)


def strong_null_pvalues(x: Array, weight: Array, n_first: int, **options: Any) -> Array:
    """Return the p-values of all ways to label the rows."""
    found = []
    for chosen in itertools.combinations(range(len(x)), n_first):
        group = np.isin(np.arange(len(x)), chosen).astype(int)
        result = fairperm.permutation_test(
            x,
            sensitive_features=group,
            sample_weight=weight,
            metric="mean_outcome",
            rng=1,
            **options,
        )
        assert result.exact
        found.append(result.pvalue)
    return np.array(found)


@pytest.mark.filterwarnings("ignore::fairperm.FairpermWarning")
@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
def test_under_the_strong_null_p_is_never_too_small(alternative: str) -> None:
    """All 84 labellings of nine rows, one of them with most of the weight."""
    x = np.array([0.0, 1.0, 2.0, 4.0, 7.0, 1.5, 3.0, 5.0, 2.5])
    weight = np.array([30.0, 1, 1, 1, 1, 2, 2, 2, 1])
    p = strong_null_pvalues(x, weight, 3, alternative=alternative)
    levels = np.unique(p)
    shares = (p[:, None] <= levels + 1e-12).mean(axis=0)
    assert (shares <= levels + 1e-12).all()


@pytest.mark.parametrize("metric", ["mean_outcome", "selection_rate", "r2_score"])
@pytest.mark.filterwarnings("ignore::fairperm.FairpermWarning")
def test_neither_equal_weights_nor_clusters_of_one_row_nor_the_scale_change_a_bit(
    metric: str,
) -> None:
    rng, n = np.random.default_rng(1), 90
    given: dict[str, Any] = {"sensitive_features": np.arange(n) % 3 == 0, "metric": metric}
    given |= {"y_true": rng.normal(size=n), "n_resamples": 99, "rng": 1}
    if metric == "selection_rate":
        given |= {"y_true": np.ones(n, int), "y_pred": rng.integers(0, 2, n)}
    elif metric == "r2_score":
        given["y_pred"] = rng.normal(size=n)
    plain = fairperm.permutation_test(**given)
    for option in ({"sample_weight": np.full(n, 0.1)}, {"cluster": rng.permutation(n)}):
        same = fairperm.permutation_test(**given, **option)
        assert same.to_dict() == plain.to_dict()
        assert np.array_equal(same.null_distribution, plain.null_distribution)
    weight = rng.lognormal(size=n)
    one, other = (
        fairperm.permutation_test(**given, sample_weight=k * weight) for k in (1, 2.0**40)
    )
    assert one.pvalue == other.pvalue
    assert one.statistic == pytest.approx(other.statistic, rel=1e-12)


@pytest.mark.filterwarnings("ignore::fairperm.FairpermWarning")
@pytest.mark.parametrize("value", [0.1, 1e9 + 0.1])
@pytest.mark.parametrize("option", ["sample_weight", "cluster"])
def test_values_that_are_all_alike_have_no_error(value: float, option: str) -> None:
    rng, n = np.random.default_rng(1), 400
    group = np.repeat([0, 1], [90, n - 90])
    given: dict[str, Any] = {"sample_weight": rng.lognormal(size=n)}
    if option == "cluster":
        given = {"cluster": np.minimum(np.arange(n) // 3, 25) + (np.arange(n) // 6 + 100) * group}
    y = np.where(group == 0, value, 2 * value)
    result = fairperm.permutation_test(
        y, sensitive_features=group, metric="mean_outcome", n_resamples=99, rng=1, **given
    )
    assert set(result.standard_errors.values()) == {0.0}


@pytest.mark.filterwarnings("ignore::fairperm.FairpermWarning")
@pytest.mark.parametrize("metric", ["roc_auc", "mean_squared_error"])
def test_ranks_have_the_errors_of_the_jackknife_in_the_sample_alone(metric: str) -> None:
    """Of a change of the AUC, too: there, those of draws are linear."""
    rng, n = np.random.default_rng(1), 60
    label = np.tile([0, 1], n // 2)
    name = "y_score" if metric == "roc_auc" else "y_pred"
    given: dict[str, Any] = {name: label + rng.normal(size=n), "y_true": label, "rng": 1}
    given[f"{name}_new"] = label + rng.normal(size=n)
    given |= {"sensitive_features": np.repeat([0, 1], [20, 40]), "metric": metric}
    given |= {"sample_weight": rng.lognormal(0, 2, n), "n_resamples": 19}
    chosen: Any = "delong" if metric == "roc_auc" else "delta"
    default, plain = (
        fairperm.compare_models(**given, variance=variance) for variance in ("auto", chosen)
    )
    assert default.standard_error is not None
    assert plain.standard_error is not None
    if metric == "roc_auc":
        assert default.standard_error > 1.001 * plain.standard_error
    else:
        assert default.standard_error == plain.standard_error
