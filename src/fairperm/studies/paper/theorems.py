"""The paper's Theorems 1–3: what permuting does to a gap's variance, and studentizing to both."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from fairperm import simulate
from fairperm.hypothesis_tests.correlation import correlation_test
from fairperm.hypothesis_tests.permutation import permutation_test
from fairperm.inference.intervals import normal_quantile
from fairperm.studies import charts
from fairperm.studies.simulating import over_data_sets
from fairperm.studies.study import CONFIDENCE, LEVEL, Row, Study

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from fairperm.hypothesis_tests.correlation import CorrelationTestResult
    from fairperm.hypothesis_tests.results.gaps import PermutationTestResult

    Array = NDArray[np.float64]

    from fairperm.simulate import Correlation, Rates, Regression, Scores


_FULL, _QUICK = (4000, 99), (80, 99)  # data sets, permutations of each
_PURPOSE = 300
_TOLERANCE = 0.03  # of a limit's value: samples are not infinite
_ABOUT = (
    "In every setting the metric is the same in both groups, and something else is not. Over "
    "samples, N·Var of the gap comes to one limit, over permutations of one sample to another; "
    "both are known in closed form. The un-studentized test takes one for the other. Divided by "
    "its standard error, the gap has a variance of one over samples and over permutations: that "
    "is why the studentized test is valid. The formulas stand in the paper's column."
)
_NOTES = (
    f"A formula is a limit for ever larger samples, so a value agrees with it if it is within its "
    f"Monte Carlo interval widened by {_TOLERANCE:.0%} of the formula's value.",
    "The first example of Table 1 is not among these: half of the variance of N(0, 1)/|x| is due "
    "to x below 0.00002, of which 2,000 rows have none, as a rule. Its limit is out of reach; here "
    "x is at least 0.1 instead.",
)


@dataclass(frozen=True, slots=True)
class _Setting:
    """A population in which the metric is equal, its test, and what the variances come to."""

    name: str
    population: Any
    limits: Limits
    options: Mapping[str, Any]

    @property
    def rows(self) -> int:
        return int(np.sum(self.population.n))


def _settings() -> list[_Setting]:
    rates = replace(simulate.PAPER_FNR, n=(1000, 1000))
    bases = simulate.Scores((1000, 1000), base_rate=(0.8, 0.2))
    spreads = simulate.Scores((600, 2400), base_rate=(0.3, 0.3), spread=(3.0, 1.0))
    errors = simulate.Regression((2400, 600), kurtosis=(3.0, 6.0))
    steep = simulate.Correlation(2000, "uniform", power=1, low=0.1)
    flat = simulate.PAPER_TABLE1["independent"]
    fnr = {"metric": "false_negative_rate", "scheme": "pooled"}
    pooled, within = ({"metric": "roc_auc", "scheme": one} for one in ("pooled", "within_label"))
    auc = partial(of_auc, within_label=False)
    auc_within = partial(of_auc, within_label=True)
    of_fnr = of_false_negative_rate
    of_mse = of_mean_squared_error
    mse = {"metric": "mean_squared_error"}
    return [
        _Setting("FNR, base rates 0.8 and 0.2, pooled", rates, of_fnr(rates), fnr),
        _Setting("AUC, base rates 0.8 and 0.2, pooled", bases, auc(bases), pooled),
        _Setting("AUC, base rates 0.8 and 0.2, within label", bases, auc_within(bases), within),
        _Setting("AUC, spreads 3 and 1, pooled", spreads, auc(spreads), pooled),
        _Setting("AUC, spreads 3 and 1, within label", spreads, auc_within(spreads), within),
        _Setting("MSE, kurtosis 3 and 6, pooled", errors, of_mse(errors), mse),
        _Setting("correlation, x uniform", steep, of_correlation(steep), {}),
        _Setting("correlation, x exponential", flat, of_correlation(flat), {}),
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
    for number, setting in enumerate(_settings()):
        found = over_data_sets(
            partial(_in_one, setting, n_resamples),
            n_data_sets,
            seed=seed,
            purpose=_PURPOSE + number,
            n_jobs=n_jobs,
            progress=progress,
        )
        rows += _rows(setting, found)
        relative += _rows(setting, found, unit=setting.limits.sampling)
    title = "Variances: over that of the gap's sampling formula, and of the studentized gap"
    return Study(
        name="theorems",
        title="Theorems 1–3: variances over samples and over permutations",
        about=_ABOUT,
        rows=tuple(rows),
        notes=_NOTES,
        settings={"data sets": n_data_sets, "permutations": n_resamples, "seed": seed},
        charts={
            "variances": charts.agreement(
                relative, title=title, axis="variance", expected="formula", level=1.0
            )
        },
    )


def _in_one(setting: _Setting, n_resamples: int, rng: np.random.Generator) -> Array:
    """Return a data set's gap and studentized gap, and the variances of both when permuted."""
    data = setting.population.draw(rng)
    plain, studentized = (
        _test(setting, data, n_resamples, rng, studentize=one) for one in (False, True)
    )
    return np.array([plain.statistic, studentized.statistic, _spread(plain), _spread(studentized)])


def _test(
    setting: _Setting,
    data: Mapping[str, Any],
    n_resamples: int,
    rng: np.random.Generator,
    *,
    studentize: bool,
) -> PermutationTestResult | CorrelationTestResult:
    common: dict[str, Any] = {"n_resamples": n_resamples, "rng": rng, "progress": False}
    if "group" not in data:
        return correlation_test("x", "error", data=data, studentize=studentize, **common)
    common |= {name: name for name in ("y_true", "y_pred", "y_score") if name in data}
    common |= setting.options
    if not studentize:
        common["variance"] = None
    return permutation_test(data=data, sensitive_features="group", **common)


def _spread(result: PermutationTestResult | CorrelationTestResult) -> float:
    """Return the variance of the statistic over all permutations."""
    chances = getattr(result, "null_probabilities", None)
    if chances is None:
        return float(result.null_distribution.var(ddof=1))
    mean = chances @ result.null_distribution
    return float(chances @ (result.null_distribution - mean) ** 2)


def _rows(setting: _Setting, found: Array, unit: float = 1.0) -> list[Row]:
    """Return the variances beside their formulas, those of the gap itself in this unit."""
    limits, n = setting.limits, setting.rows / unit
    sampling, permutation = limits.sampling / unit, limits.permutation / unit
    gaps, statistics, of_permuted, of_studentized = found.T
    z = normal_quantile(CONFIDENCE)
    remark = f"so un-studentized, a level of 0.05 is one of {limits.level(LEVEL):.3f}"
    return [
        _row(f"{setting.name}: samples", sampling, *_variance(gaps * np.sqrt(n)), z),
        _row(f"{setting.name}: permuted", permutation, *_mean(n * of_permuted), z, remark),
        _row(f"{setting.name}: samples, studentized", 1.0, *_variance(statistics), z),
        _row(f"{setting.name}: permuted, studentized", 1.0, *_mean(of_studentized), z),
    ]


def _variance(values: Array) -> tuple[float, float]:
    """Return the variance of values, and its standard error."""
    squares = (values - values.mean()) ** 2
    return float(values.var(ddof=1)), float(squares.std(ddof=1) / np.sqrt(len(values)))


def _mean(values: Array) -> tuple[float, float]:
    """Return the mean of values, and its standard error."""
    return float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values)))


def _row(
    quantity: str, formula: float, value: float, error: float, z: float, remark: str = ""
) -> Row:
    room = z * error + _TOLERANCE * formula
    return Row(
        quantity=quantity,
        paper=formula,
        ours=value,
        interval=(value - z * error, value + z * error),
        agrees=abs(value - formula) <= room,
        remark=remark,
    )


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of N·Var T over samples and over permutations of one sample."""

    sampling: float
    permutation: float

    def level(self, nominal: float) -> float:
        """Return how often the un-studentized test rejects in large samples."""
        z = NormalDist().inv_cdf(1 - nominal / 2)
        return 2 * NormalDist().cdf(-z * math.sqrt(self.permutation / self.sampling))


def of_false_negative_rate(population: Rates) -> Limits:
    """Return the limits for the false negative rate: p(1 − p) over numbers of positives."""
    n, base_rate = np.array(population.n), np.array(population.base_rate)
    rate = 1 - population.true_positive_rate[0]
    of_one = n.sum() * rate * (1 - rate)
    together = (n @ base_rate) / n.sum()
    return Limits(
        float(of_one * (1 / (n * base_rate)).sum()), float(of_one * (1 / (n * together)).sum())
    )


def of_mean_squared_error(population: Regression) -> Limits:
    """Return the limits for the mean squared error: (kurtosis − 1)·m² over numbers of rows."""
    n = np.array(population.n)
    of_square = (np.array(population.kurtosis) - 1) * population.mean_squared_error[0] ** 2
    together = (n @ of_square) / n.sum()
    return Limits(float(n.sum() * (of_square / n).sum()), float(n.sum() * (together / n).sum()))


def of_auc(population: Scores, *, within_label: bool) -> Limits:
    """Return the limits for the AUC: DeLong's two components, over positives and negatives.

    With h = Φ⁻¹(AUC), the same in both groups, the components are Φ₂(h, h; ρ) − AUC²: two
    negatives below one positive have ρ = s²/(1 + s²), two positives of spreads s and t above
    one negative have ρ = 1/√((1 + s²)(1 + t²)).
    """
    n, base_rate = np.array(population.n), np.array(population.base_rate)
    positives, negatives = n * base_rate, n * (1 - base_rate)
    spread = 1 + np.array(population.spread) ** 2
    auc = population.auc[0]
    of_positives = _both(auc, 1 - 1 / spread) - auc**2
    of_negatives = _both(auc, 1 / np.sqrt(np.outer(spread, spread))) - auc**2
    sampling = (of_positives / positives).sum() + (np.diag(of_negatives) / negatives).sum()
    share = positives / positives.sum()  # of each group among the positives of both
    if not within_label:
        positives, negatives = (n * one.sum() / n.sum() for one in (positives, negatives))
    permutation = (share @ of_positives / positives).sum()
    permutation += (share @ of_negatives @ share / negatives).sum()
    return Limits(float(n.sum() * sampling), float(n.sum() * permutation))


def _both(auc: float, correlation: Array) -> Array:
    """Return the probability that two normal variables are both below Φ⁻¹(AUC)."""
    from scipy.special import owens_t

    slope = np.sqrt((1 - correlation) / (1 + correlation))
    both: Array = auc - 2 * owens_t(NormalDist().inv_cdf(auc), slope)
    return both


def of_correlation(population: Correlation) -> Limits:
    """Return the limits for √n·r: E[(x − μ)²·error²] / (Var x · Var error), and one."""
    power, mean = -2 * population.power, population.moment(1)
    product = (
        population.moment(power + 2)
        - 2 * mean * population.moment(power + 1)
        + mean**2 * population.moment(power)
    )
    variances = (population.moment(2) - mean**2) * population.moment(power)
    return Limits(product / variances, 1.0)
