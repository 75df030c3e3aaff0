"""The paper's Theorems 1–3: the variance of a gap over samples and over permutations.

Both have limits in closed form, and they differ: that is why an un-studentized test has the wrong
level. The studentized gap has variance one in both.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from fairperm.hypothesis_tests.correlation import correlation_test
from fairperm.hypothesis_tests.permutation import permutation_test
from fairperm.inference.null import normal_quantile
from studies import charts, simulate
from studies.simulating import simulate_data_sets
from studies.study import CONFIDENCE, LEVEL, Row, Study

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from fairperm.data.arguments import CorrelationVariance
    from fairperm.hypothesis_tests.correlation import CorrelationTestResult
    from fairperm.hypothesis_tests.results.gaps import PermutationTestResult
    from studies.simulate import Correlation, Rates, Regression, Scores

    Array = NDArray[np.float64]

_FULL, _QUICK = (4000, 99), (80, 99)  # data sets, permutations of each
_PURPOSE = 300
_TOLERANCE = 0.03  # relative to the limit: samples are finite
_ABOUT = (
    "In every setting the metric is the same in both groups, and something else differs. N·Var of "
    "the gap has one limit over samples and another over permutations of one sample; both are "
    "known in closed form. The un-studentized test confuses the two. Divided by its standard "
    "error, the gap has a variance of one over samples and over permutations: that is why the "
    "studentized test is valid. The paper's column has the values of the formulas."
)
_NOTES = (
    "A value agrees with a formula, a limit for large samples, if the formula is within its "
    f"Monte Carlo interval widened by {_TOLERANCE:.0%} of the formula's value.",
    "The first example of Table 1 is not included: half of the variance of N(0, 1)/|x| is due "
    "to x below 0.00002. Here x is at least 0.1 instead.",
)


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of N·Var T over samples and over permutations of one sample."""

    sampling: float
    permutation: float

    def level(self, nominal: float) -> float:
        """Return the level of the un-studentized test in large samples."""
        z = NormalDist().inv_cdf(1 - nominal / 2)
        return 2 * NormalDist().cdf(-z * math.sqrt(self.permutation / self.sampling))


def derive_fnr_limits(population: Rates) -> Limits:
    """Return the limits for the false negative rate: p(1 − p) divided by numbers of positives."""
    n, base_rate = np.array(population.n), np.array(population.base_rate)
    rate = 1 - population.true_positive_rate[0]
    variance = n.sum() * rate * (1 - rate)
    pooled = (n @ base_rate) / n.sum()
    return Limits(
        float(variance * (1 / (n * base_rate)).sum()), float(variance * (1 / (n * pooled)).sum())
    )


def derive_mse_limits(population: Regression) -> Limits:
    """Return the limits for the mean squared error: (kurtosis − 1)·m² over numbers of rows."""
    n = np.array(population.n)
    variance = (np.array(population.kurtosis) - 1) * population.mean_squared_error[0] ** 2
    pooled = (n @ variance) / n.sum()
    return Limits(float(n.sum() * (variance / n).sum()), float(n.sum() * (pooled / n).sum()))


def derive_auc_limits(population: Scores, *, within_label: bool) -> Limits:
    """Return the limits for the AUC: DeLong's v10 and v01 over positives and negatives.

    With h = Φ⁻¹(AUC), the same in both groups, both are Φ₂(h, h; ρ) − AUC²: for v10, two negatives
    below one positive have ρ = s²/(1 + s²); for v01, two positives of spreads s and t above one
    negative have ρ = 1/√((1 + s²)(1 + t²)).
    """
    n, base_rate = np.array(population.n), np.array(population.base_rate)
    positives, negatives = n * base_rate, n * (1 - base_rate)
    spread = 1 + np.array(population.spread) ** 2
    auc = population.auc[0]
    v10 = _bivariate_normal(auc, 1 - 1 / spread) - auc**2
    v01 = _bivariate_normal(auc, 1 / np.sqrt(np.outer(spread, spread))) - auc**2
    sampling = (v10 / positives).sum() + (np.diag(v01) / negatives).sum()
    share = positives / positives.sum()  # of each group among the positives of both
    if not within_label:
        positives, negatives = (n * one.sum() / n.sum() for one in (positives, negatives))
    permutation = (share @ v10 / positives).sum()
    permutation += (share @ v01 @ share / negatives).sum()
    return Limits(float(n.sum() * sampling), float(n.sum() * permutation))


def _bivariate_normal(auc: float, correlation: Array) -> Array:
    """Return the probability that two normal variables are both below Φ⁻¹(AUC)."""
    from scipy.special import owens_t

    slope = np.sqrt((1 - correlation) / (1 + correlation))
    both: Array = auc - 2 * owens_t(NormalDist().inv_cdf(auc), slope)
    return both


def derive_correlation_limits(population: Correlation) -> Limits:
    """Return the limits for √n·r: E[(x − μ)²·error²] / (Var x · Var error), and one."""
    power, mean = -2 * population.power, population.moment(1)
    product = (
        population.moment(power + 2)
        - 2 * mean * population.moment(power + 1)
        + mean**2 * population.moment(power)
    )
    variances = (population.moment(2) - mean**2) * population.moment(power)
    return Limits(product / variances, 1.0)


@dataclass(frozen=True, slots=True)
class _Setting:
    """A population with an equal metric in both groups, its test, and the limits of variances."""

    name: str
    population: Any
    limits: Limits
    options: Mapping[str, Any]

    @property
    def rows(self) -> int:
        return int(np.sum(self.population.n))


def _list_settings() -> list[_Setting]:
    rates = replace(simulate.PAPER_FNR, n=(1000, 1000))
    bases = simulate.Scores((1000, 1000), base_rate=(0.8, 0.2))
    spreads = simulate.Scores((600, 2400), base_rate=(0.3, 0.3), spread=(3.0, 1.0))
    errors = simulate.Regression((2400, 600), kurtosis=(3.0, 6.0))
    steep = simulate.Correlation(2000, "uniform", power=1, low=0.1)
    flat = simulate.PAPER_TABLE1["independent"]
    fnr = {"metric": "false_negative_rate", "scheme": "pooled"}
    pooled, within = ({"metric": "roc_auc", "scheme": one} for one in ("pooled", "within_label"))
    auc = partial(derive_auc_limits, within_label=False)
    auc_within = partial(derive_auc_limits, within_label=True)
    mse = {"metric": "mean_squared_error"}
    return [
        _Setting("FNR, base rates 0.8 and 0.2, pooled", rates, derive_fnr_limits(rates), fnr),
        _Setting("AUC, base rates 0.8 and 0.2, pooled", bases, auc(bases), pooled),
        _Setting("AUC, base rates 0.8 and 0.2, within label", bases, auc_within(bases), within),
        _Setting("AUC, spreads 3 and 1, pooled", spreads, auc(spreads), pooled),
        _Setting("AUC, spreads 3 and 1, within label", spreads, auc_within(spreads), within),
        _Setting("MSE, kurtosis 3 and 6, pooled", errors, derive_mse_limits(errors), mse),
        _Setting("correlation, x uniform", steep, derive_correlation_limits(steep), {}),
        _Setting("correlation, x exponential", flat, derive_correlation_limits(flat), {}),
    ]


def theorems(
    *,
    quick: bool = False,
    seed: int = 0,
    n_jobs: int | None = None,
    progress: bool | None = None,
    n_data_sets: int | None = None,
) -> Study:
    """Compare variances over samples and over permutations with their formulas."""
    default_sets, n_resamples = _QUICK if quick else _FULL
    n_data_sets = n_data_sets or default_sets
    rows: list[Row] = []
    relative: list[Row] = []
    for number, setting in enumerate(_list_settings()):
        results = simulate_data_sets(
            partial(_test_data_set, setting, n_resamples),
            n_data_sets,
            seed=seed,
            purpose=_PURPOSE + number,
            n_jobs=n_jobs,
            progress=progress,
        )
        rows += _make_rows(setting, results)
        relative += _make_rows(setting, results, unit=setting.limits.sampling)
    title = "Variances: over that of the gap's sampling formula, and of the studentized gap"
    return Study(
        name="theorems",
        title="Theorems 1–3: variances over samples and over permutations",
        about=_ABOUT,
        rows=tuple(rows),
        notes=_NOTES,
        settings={"data sets": n_data_sets, "permutations": n_resamples, "seed": seed},
        charts={
            "variances": charts.draw_agreement(
                relative, title=title, axis="variance", expected="formula", level=1.0
            )
        },
    )


def _test_data_set(setting: _Setting, n_resamples: int, rng: np.random.Generator) -> Array:
    """Return a data set's gap and studentized gap, and their variances over permutations."""
    data = setting.population.draw(rng)
    results = [_run_test(setting, data, n_resamples, rng, studentize=one) for one in (False, True)]
    variances = [_permutation_variance(result) for result in results]
    return np.array([*(result.statistic for result in results), *variances])


def _run_test(
    setting: _Setting,
    data: Mapping[str, Any],
    n_resamples: int,
    rng: np.random.Generator,
    *,
    studentize: bool,
) -> PermutationTestResult | CorrelationTestResult:
    common: dict[str, Any] = {"n_resamples": n_resamples, "rng": rng, "progress": False}
    if "group" not in data:
        variance: CorrelationVariance = "delta" if studentize else None
        return correlation_test("x", "error", data=data, variance=variance, **common)
    common |= {name: name for name in ("y_true", "y_pred", "y_score") if name in data}
    common |= setting.options
    if not studentize:
        common["variance"] = None
    return permutation_test(data=data, sensitive_features="group", **common)


def _permutation_variance(result: PermutationTestResult | CorrelationTestResult) -> float:
    """Return the variance of the statistic over all permutations."""
    chances = getattr(result, "null_probabilities", None)
    if chances is None:
        return float(result.null_distribution.var(ddof=1))
    mean = chances @ result.null_distribution
    return float(chances @ (result.null_distribution - mean) ** 2)


def _make_rows(setting: _Setting, results: Array, unit: float = 1.0) -> list[Row]:
    """Return the variances beside their formulas; those of the plain gap in this unit."""
    limits, n = setting.limits, setting.rows / unit
    sampling, permutation = limits.sampling / unit, limits.permutation / unit
    gaps, statistics, permuted, permuted_studentized = results.T
    values = {
        "samples": (sampling, *_estimate_variance(gaps * np.sqrt(n))),
        "permuted": (permutation, *_estimate_mean(n * permuted)),
        "samples, studentized": (1.0, *_estimate_variance(statistics)),
        "permuted, studentized": (1.0, *_estimate_mean(permuted_studentized)),
    }
    level = f"un-studentized, the level is {limits.level(LEVEL):.3f} at nominal level 0.05"
    return [
        _make_row(f"{setting.name}: {name}", *numbers, level if name == "permuted" else "")
        for name, numbers in values.items()
    ]


def _estimate_variance(values: Array) -> tuple[float, float]:
    """Return the variance of values, and its standard error."""
    squares = (values - values.mean()) ** 2
    return float(values.var(ddof=1)), float(squares.std(ddof=1) / np.sqrt(len(values)))


def _estimate_mean(values: Array) -> tuple[float, float]:
    """Return the mean of values, and its standard error."""
    return float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values)))


def _make_row(quantity: str, formula: float, value: float, error: float, remark: str) -> Row:
    reach = normal_quantile(CONFIDENCE) * error
    return Row(
        quantity=quantity,
        paper=formula,
        ours=value,
        interval=(value - reach, value + reach),
        agrees=abs(value - formula) <= reach + _TOLERANCE * formula,
        remark=remark,
    )
