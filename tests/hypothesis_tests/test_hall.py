"""Skewness removed in the sample and in every permutation, against direct sums of influences."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

import fairperm
from fairperm.data.arguments import Inputs
from fairperm.data.reading import read_table
from fairperm.engines.counts import CellsEngine
from fairperm.engines.sample import Cells
from fairperm.engines.totals import TotalsEngine
from fairperm.hypothesis_tests.comparison import Comparison
from fairperm.hypothesis_tests.margins.one_sided import Difference, Ratio, ratio_interval
from fairperm.hypothesis_tests.plan import Plan
from fairperm.metrics import get_metric
from fairperm.metrics.definition import Variance

Array = NDArray[np.float64]
Influences = Callable[[Array, Array], tuple[float, Array]]

METRICS = ("mean_outcome", "mean_squared_error", "r2_score", "balanced_accuracy")


def of_mean(values: Array) -> tuple[float, Array]:
    return float(values.mean()), (values - values.mean()) / len(values)


def of_r2(truth: Array, predicted: Array) -> tuple[float, Array]:
    """1 − E/D, of the mean squared error and the variance: its influence is −(e − E·d/D)/D."""
    squared, apart = (truth - predicted) ** 2, (truth - truth.mean()) ** 2
    error, spread = squared.mean(), apart.mean()
    return 1 - error / spread, -(squared - error / spread * apart) / spread / len(truth)


def of_balanced_accuracy(truth: Array, predicted: Array) -> tuple[float, Array]:
    influence, rates = np.zeros(len(truth)), []
    for label in (0, 1):
        mine = truth == label
        is_right = (predicted == label)[mine].astype(float)
        rates.append(is_right.mean())
        influence[mine] = (is_right - is_right.mean()) / mine.sum() / 2
    return float(np.mean(rates)), influence


INFLUENCES: dict[str, Influences] = {
    "mean_outcome": lambda truth, _: of_mean(truth),
    "mean_squared_error": lambda truth, predicted: of_mean((truth - predicted) ** 2),
    "r2_score": of_r2,
    "balanced_accuracy": of_balanced_accuracy,
}


def hall(metric: str, data: dict[str, Array], group: Array) -> tuple[float, float, float]:
    """Return the gap, S and H by direct sums; strata count by their Mantel–Haenszel weights."""
    stratum = data.get("stratum", np.zeros(len(group)))
    weights, gaps, variances, cumulants = [], [], [], []
    for s in np.unique(stratum):
        sides = [(stratum == s) & (group == g) for g in ("a", "b")]
        found = [INFLUENCES[metric](data["y_true"][one], data["y_pred"][one]) for one in sides]
        n = [one.sum() for one in sides]
        unbiased = [1.0 if (stratum == 0).all() else m / (m - 1) for m in n]
        weights.append(n[0] * n[1] / (n[0] + n[1]))
        gaps.append(found[0][0] - found[1][0])
        variances.append(
            sum(f * (one[1] ** 2).sum() for f, one in zip(unbiased, found, strict=True))
        )
        cumulants.append((found[0][1] ** 3).sum() - (found[1][1] ** 3).sum())
    share = np.array(weights) / np.sum(weights)
    gap, error = share @ gaps, np.sqrt(share**2 @ variances)
    s, k = gap / error, share**3 @ cumulants / error**3
    return gap, s, s + k * s**2 / 3 + k**2 * s**3 / 27 + k / 6


def draw(metric: str, n: int, rng: np.random.Generator) -> dict[str, Array]:
    if metric == "balanced_accuracy":
        truth = np.tile([0.0, 1.0], n)[:n]
        return {"y_true": truth, "y_pred": np.where(rng.random(n) < 0.3, 1 - truth, truth)}
    truth = rng.exponential(size=n) + 7
    return {"y_true": truth, "y_pred": truth + rng.normal(size=n)}


def options(metric: str, data: dict[str, Array], group: Any) -> dict[str, Any]:
    given: dict[str, Any] = {"y_true": data["y_true"], "sensitive_features": group}
    if metric != "mean_outcome":
        given["y_pred"] = data["y_pred"]
    if "stratum" in data:
        given["control_features"] = data["stratum"]
    return given | {"metric": metric}


@pytest.mark.parametrize(
    ("metric", "n_strata"),
    [*((one, 1) for one in METRICS), *((one, 3) for one in METRICS if one != "balanced_accuracy")],
)
def test_the_statistic_is_halls(metric: str, n_strata: int) -> None:
    rng = np.random.default_rng(1)
    group: Any = np.tile(np.repeat(["a", "b"], [12, 30]), n_strata)
    data = draw(metric, len(group), rng)
    if n_strata > 1:
        data["stratum"] = np.repeat(np.arange(n_strata), 42)
    gap, s, h = hall(metric, data, group)
    found, plain = (
        fairperm.permutation_test(
            **options(metric, data, group), variance=variance, n_resamples=19, rng=1
        )
        for variance in ("auto", "delta")
    )
    assert (found.variance, plain.variance) == ("hall", "delta")
    assert found.difference == plain.difference == pytest.approx(gap, rel=1e-9)
    assert plain.statistic == pytest.approx(s, rel=1e-9)
    assert found.statistic == pytest.approx(h, rel=1e-9)
    assert found.standard_error == plain.standard_error


@pytest.mark.parametrize("metric", METRICS)
def test_every_permutation_by_hand(metric: str) -> None:
    """All choices of the first group of nine rows; no p-value is below the normal one."""
    rng = np.random.default_rng(2)
    data = draw(metric, 9, rng)
    group = np.repeat(["a", "b"], [4, 5])
    h, draws = hall(metric, data, group)[2], []
    for chosen in itertools.combinations(range(9), 4):
        labels = np.where(np.isin(np.arange(9), chosen), "a", "b")
        label = data["y_true"]
        if metric == "balanced_accuracy" and label[[*chosen]].sum() != label[:4].sum():
            continue  # labels are exchanged within labels
        with np.errstate(all="ignore"):
            draws.append(hall(metric, data, labels)[2])
    above, below = (
        max(np.mean([not one < h - 1e-9 for one in np.multiply(side, draws)]), stats.norm.sf(h))
        for side, h in ((1, h), (-1, -h))
    )
    result = fairperm.permutation_test(**options(metric, data, group), n_resamples=10**6)
    assert result.exact
    assert result.pvalue == pytest.approx(min(1.0, 2 * min(above, below)), rel=1e-9)


@pytest.mark.parametrize("n_strata", [1, 2])
@pytest.mark.parametrize("metric", ["mean_outcome", "mean_squared_error", "r2_score"])
def test_engines_agree(metric: str, n_strata: int) -> None:
    """Products of three contributions, and cubes of the influences of cells."""
    rng = np.random.default_rng(3)
    data = draw(metric, 40, rng)
    group = rng.permutation(np.repeat(["a", "b"], [15, 25]))
    if n_strata > 1:
        data["stratum"] = np.tile(np.arange(n_strata), 40 // n_strata)
    given = options(metric, data, group)
    plan = Plan.choose(get_metric(given.pop("metric")), "auto", "auto")
    table = read_table(Inputs(**given), plan.metric)
    comparison = Comparison.of(table, plan, ("a", "b"), None)
    rows, parts = comparison.rows, comparison.parts
    totals = TotalsEngine.from_rows(parts, rows, None, Variance.HALL, 0).observed()  # type: ignore[arg-type]
    cells = CellsEngine(parts, Cells.from_rows(rows, None, many=False), Variance.HALL).observed()
    for name in ("value", "variance", "third"):
        found, expected = getattr(totals, name), getattr(cells, name)
        np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-12 * np.abs(expected).max())
    assert np.abs(cells.third).max() > 0  # type: ignore[arg-type]


def skewed() -> dict[str, Any]:
    rng = np.random.default_rng(4)
    value = rng.exponential(size=130) + np.repeat([0.3, 0.0], [40, 90])
    return {"y_true": value, "sensitive_features": np.repeat(["a", "b"], [40, 90])}


@pytest.mark.parametrize("alternative", ["two-sided", "symmetric", "greater", "less"])
def test_the_interval_gets_the_skewness_back(alternative: Any) -> None:
    """Its ends are where H, of the gap minus the end, leaves the quantiles of permutations."""
    result = fairperm.permutation_test(
        **skewed(), metric="mean_outcome", alternative=alternative, n_resamples=999, rng=1
    )
    data = {"y_true": skewed()["y_true"], "y_pred": np.zeros(130)}
    gap, s, _ = hall("mean_outcome", data, skewed()["sensitive_features"])
    k = result.tested.observed.skewness  # type: ignore[union-attr]
    lower, upper = result.tested.critical(0.95)  # type: ignore[union-attr]
    error = gap / s
    for end, limit in zip(result.confidence_interval, (upper, lower), strict=True):
        if np.isfinite(end):
            at = (gap - end) / error
            assert at + k * at**2 / 3 + k**2 * at**3 / 27 + k / 6 == pytest.approx(limit)
    widths = np.abs(np.array(result.confidence_interval) - gap)
    assert k > 0.1
    if alternative in {"two-sided", "symmetric"}:
        assert widths[1] > 1.05 * widths[0]  # rows far above the mean are missing more often


@pytest.mark.parametrize("bound", ["margin", "ratio"])
def test_margins_take_the_skewness_out(bound: str) -> None:
    data = skewed()
    result = fairperm.permutation_test(**data, metric="mean_outcome", n_resamples=999, rng=1)
    first, second = (data["y_true"][data["sensitive_features"] == g] for g in ("a", "b"))
    factor, shift = (1.0, 0.25) if bound == "margin" else (0.8, 0.0)
    cumulants, variances = zip(
        *(
            (((x - x.mean()) ** 3).sum() / len(x) ** 3, x.var() / len(x))
            for x in (first, factor * second)
        ),
        strict=True,
    )
    error = np.sqrt(sum(variances))
    s, k = (first.mean() - factor * second.mean() - shift) / error, np.subtract(*cumulants)
    k = k / error**3
    scale = Difference(result) if bound == "margin" else Ratio(result)
    found = scale.test(shift if bound == "margin" else factor, "greater")
    assert found.statistic == pytest.approx(s + k * s**2 / 3 + k**2 * s**3 / 27 + k / 6)


def test_log_ratios_have_less_skewness() -> None:
    """Logarithms of exponential means have a quarter of it: k − 1.5·cv/√n with k = 2/√n, cv = 1."""
    rng = np.random.default_rng(5)
    left = []
    for _ in range(40):
        x = rng.exponential(size=400)
        error = x.std() / 20 / x.mean()
        third = ((x - x.mean()) ** 3).sum() / 400**3 / x.mean() ** 3
        left.append((third - 1.5 * error**4) / error**3)
    assert np.mean(left) == pytest.approx(0.5 / 20, abs=0.02)
    result = fairperm.permutation_test(**skewed(), metric="mean_outcome", n_resamples=999, rng=1)
    ratio, (low, high) = ratio_interval(result)  # type: ignore[misc]
    assert low < ratio < high
    assert (low > 1) == (result.pvalue <= 0.05)


def test_sweeps_have_the_statistic_of_single_tests() -> None:
    rng = np.random.default_rng(6)
    truth, group = rng.integers(0, 2, 200), np.repeat(["a", "b"], [50, 150])
    score = np.round(np.clip(0.3 * truth + rng.random(200) * 0.7, 0, 1), 2)
    swept = fairperm.threshold_sweep(
        truth,
        score,
        sensitive_features=group,
        metric="balanced_accuracy",
        thresholds=[0.4, 0.6],
        n_resamples=199,
        rng=1,
    ).curves["balanced_accuracy"]
    assert swept.variance == "hall"
    for place, threshold in enumerate((0.4, 0.6)):
        single = fairperm.permutation_test(
            truth,
            score >= threshold,
            sensitive_features=group,
            metric="balanced_accuracy",
            n_resamples=19,
            rng=1,
        )
        assert swept.statistic[place] == pytest.approx(single.statistic)
        low, high = swept.pointwise_band[0][place], swept.pointwise_band[1][place]
        assert (low <= swept.difference[place] <= high) == (swept.pvalue[place] > 0.05)


def test_where_skewness_stays() -> None:
    data = skewed()
    kinds: tuple[tuple[dict[str, Any], str], ...] = (
        ({"n_resamples": 0}, "delta"),
        ({"sample_weight": np.arange(130) + 1.0, "n_resamples": 19}, "delta"),
        ({"cluster": np.arange(130) // 2, "n_resamples": 19}, "delta"),
        ({"variance": "delta", "n_resamples": 19}, "delta"),
    )
    for options, variance in kinds:
        result = fairperm.permutation_test(**data, metric="mean_outcome", rng=1, **options)
        assert result.variance == variance
        assert result.tested.observed.skewness == 0  # type: ignore[union-attr]
    with pytest.raises(fairperm.InputError, match="n_resamples must be at least 1 for mean_out"):
        fairperm.permutation_test(**data, metric="mean_outcome", variance="hall", n_resamples=0)


@pytest.mark.parametrize("change", ["swap", "scale", "mirror"])
def test_changes_of_units_and_groups_change_no_digit(change: str) -> None:
    data = skewed()
    result = fairperm.permutation_test(**data, metric="mean_outcome", n_resamples=199, rng=1)
    other, sign = dict(data), -1.0
    if change == "swap":
        other["groups"] = ("b", "a")
    elif change == "scale":
        other["y_true"], sign = data["y_true"] * 1024, 1.0
    else:
        other["y_true"] = -data["y_true"]
    changed = fairperm.permutation_test(**other, metric="mean_outcome", n_resamples=199, rng=1)
    if change == "mirror":  # rows are sorted by value: sums are rounded in another order
        assert changed.statistic == pytest.approx(-result.statistic, rel=1e-12)
        return
    assert changed.statistic == sign * result.statistic
    assert changed.pvalue == result.pvalue
    np.testing.assert_array_equal(changed.null_distribution, sign * result.null_distribution)
