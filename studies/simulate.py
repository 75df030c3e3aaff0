"""Populations with known values of metrics, to measure the level and power of tests.

Every population has two groups, ``"a"`` and ``"b"`` (except :class:`Correlation`, which has a
continuous attribute). ``draw`` returns columns that the tests take as ``data``, and ``truth`` the
metric's value in each group: if both are equal, the weak null holds, however much the groups
differ otherwise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from fairperm._utils import checks
from fairperm.errors import InputError, InputTypeError
from fairperm.metrics import get_metric
from fairperm.metrics.definition import ONE_ROW_OF_EACH, metrics_of_totals

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Columns = dict[str, NDArray[Any]]

__all__ = ["PAPER_FNR", "PAPER_TABLE1", "Clusters", "Correlation", "Rates", "Regression", "Scores"]

GROUPS = ("a", "b")
_ROWS = (1, 10**8)
_SHARE, _CHANCE, _SIZE = (0.0, 1.0), (1e-6, 1 - 1e-6), (1e-6, 1e6)

Pair = tuple[float, float]
Seed = int | np.random.Generator | None


@dataclass(frozen=True, slots=True)
class Rates:
    """Labels and predictions with given base rates and error rates.

    Parameters
    ----------
    n : pair of int
        Number of rows of each group.
    base_rate : pair of float
        The share of positives in each group.
    true_positive_rate, true_negative_rate : pair of float
        The shares of positives and of negatives that are predicted correctly.

    Examples
    --------
    Groups with the same false negative rate and different shares of positives:

    >>> import fairperm
    >>> from studies import simulate
    >>> population = simulate.Rates(n=(200, 200), base_rate=(0.8, 0.2))
    >>> population.truth("false_negative_rate")
    {'a': 0.1, 'b': 0.1}
    >>> population.truth("selection_rate")
    {'a': 0.74, 'b': 0.26}
    >>> result = fairperm.permutation_test(
    ...     "y_true", "y_pred", sensitive_features="group", metric="false_negative_rate",
    ...     data=population.draw(1),
    ... )
    """

    n: tuple[int, int]
    base_rate: Pair
    true_positive_rate: Pair = (0.9, 0.9)
    true_negative_rate: Pair = (0.9, 0.9)

    def __post_init__(self) -> None:
        _check_pairs(self, n=_ROWS, base_rate=_SHARE)
        _check_pairs(self, true_positive_rate=_SHARE, true_negative_rate=_SHARE)

    def cells(self) -> NDArray[np.float64]:
        """Return the probabilities of tn, fp, fn and tp, by group and cell."""
        positive, hit = np.array(self.base_rate), np.array(self.true_positive_rate)
        negative, right = 1 - positive, np.array(self.true_negative_rate)
        cells = [negative * right, negative * (1 - right), positive * (1 - hit), positive * hit]
        return np.stack(cells, axis=1)

    def counts(self, data_sets: int, rng: Seed = None) -> NDArray[np.int64]:
        """Draw many data sets as counts, by data set, group and cell (tn, fp, fn, tp)."""
        return np.random.default_rng(rng).multinomial(
            self.n, self.cells(), size=(data_sets, len(GROUPS))
        )

    def draw(self, rng: Seed = None) -> Columns:
        """Draw a data set: columns ``y_true``, ``y_pred`` and ``group``."""
        cell = np.repeat(np.tile(np.arange(4), 2), self.counts(1, rng)[0].ravel())
        columns = {name: one[cell] for name, one in ONE_ROW_OF_EACH.items()}
        return {**columns, "group": _repeat_groups(self.n)}

    def truth(self, metric: str) -> dict[str, float]:
        """Return the value in each group of a metric of labels and predictions."""
        totals = metrics_of_totals([get_metric(metric)])
        if not totals or not set(totals[0].columns) <= set(ONE_ROW_OF_EACH):
            raise InputError("metric", "one of labels and predictions", metric)
        (found,) = totals
        return _round_by_group(found.estimate(self.cells() @ found.matrix(ONE_ROW_OF_EACH)))


@dataclass(frozen=True, slots=True)
class Scores:
    """Labels and normal scores with a given AUC in each group.

    The scores of negatives are N(0, 1), those of positives N(μ, spread²), where
    μ = Φ⁻¹(AUC)·√(1 + spread²).

    Parameters
    ----------
    n : pair of int
        Number of rows of each group.
    base_rate : pair of float
        The share of positives in each group.
    auc : pair of float
        The probability that a positive scores higher than a negative of the same group.
    spread : pair of float
        The standard deviation of the positives' scores.

    Examples
    --------
    >>> from studies import simulate
    >>> population = simulate.Scores(n=(400, 1600), base_rate=(0.3, 0.3), spread=(3, 1))
    >>> population.truth("roc_auc")
    {'a': 0.85, 'b': 0.85}

    A threshold turns scores into predictions, whose error rates are known too:

    >>> {group: round(rate, 3) for group, rate in population.at(1.0).truth("recall").items()}
    {'a': 0.776, 'b': 0.679}
    """

    n: tuple[int, int]
    base_rate: Pair
    auc: Pair = (0.85, 0.85)
    spread: Pair = (1.0, 1.0)

    def __post_init__(self) -> None:
        _check_pairs(self, n=_ROWS, base_rate=_SHARE, auc=_CHANCE, spread=_SIZE)

    @property
    def shift(self) -> Pair:
        """The mean score of the positives of each group."""
        first, second = (
            NormalDist().inv_cdf(auc) * math.hypot(1, spread)
            for auc, spread in zip(self.auc, self.spread, strict=True)
        )
        return first, second

    def at(self, threshold: float) -> Rates:
        """Return the population of the predictions at a threshold."""
        hit = [
            1 - NormalDist(shift, spread).cdf(threshold)
            for shift, spread in zip(self.shift, self.spread, strict=True)
        ]
        right = NormalDist().cdf(threshold)
        return Rates(self.n, self.base_rate, (hit[0], hit[1]), (right, right))

    def draw(self, rng: Seed = None) -> Columns:
        """Draw a data set: columns ``y_true``, ``y_score`` and ``group``."""
        rng = np.random.default_rng(rng)
        positive = rng.random(sum(self.n)) < np.repeat(self.base_rate, self.n)
        score = rng.normal(size=sum(self.n))
        positive_score = np.repeat(self.shift, self.n) + np.repeat(self.spread, self.n) * score
        return {
            "y_true": positive,
            "y_score": np.where(positive, positive_score, score),
            "group": _repeat_groups(self.n),
        }

    def truth(self, metric: str = "roc_auc") -> dict[str, float]:
        """Return the AUC of each group."""
        return _select_truth(metric, {"roc_auc": self.auc})


@dataclass(frozen=True, slots=True)
class Regression:
    """Outcomes and predictions with a given mean squared error and kurtosis in each group.

    An error is ±√v with v from the gamma distribution of mean m, the mean squared error, and
    variance (kurtosis − 1)·m², the variance of squared errors. With a kurtosis of 3 the errors
    are normal. Outcomes are N(0, 1).

    Parameters
    ----------
    n : pair of int
        Number of rows of each group.
    mean_squared_error : pair of float
        The mean of the squared errors of each group.
    kurtosis : pair of float
        The mean fourth power of the errors divided by the square of their mean square; above 1.

    Examples
    --------
    >>> from studies import simulate
    >>> population = simulate.Regression(n=(1600, 400), kurtosis=(3, 9))
    >>> population.truth("mean_squared_error")
    {'a': 1.0, 'b': 1.0}
    >>> population.truth("mean_absolute_error")
    {'a': 0.797884560803, 'b': 0.538553686366}
    """

    n: tuple[int, int]
    mean_squared_error: Pair = (1.0, 1.0)
    kurtosis: Pair = (3.0, 3.0)

    def __post_init__(self) -> None:
        _check_pairs(self, n=_ROWS, mean_squared_error=_SIZE, kurtosis=(1.001, 1e6))

    def draw(self, rng: Seed = None) -> Columns:
        """Draw a data set: columns ``y_true``, ``y_pred`` and ``group``."""
        rng = np.random.default_rng(rng)
        excess = np.array(self.kurtosis) - 1
        scale = np.array(self.mean_squared_error) * excess
        square = rng.gamma(np.repeat(1 / excess, self.n), np.repeat(scale, self.n))
        y_true = rng.normal(size=sum(self.n))
        error = np.sqrt(square) * rng.choice([-1.0, 1.0], size=sum(self.n))
        return {"y_true": y_true, "y_pred": y_true + error, "group": _repeat_groups(self.n)}

    def truth(self, metric: str = "mean_squared_error") -> dict[str, float]:
        """Return the (root) mean squared error or the mean absolute error of each group."""
        mean = np.array(self.mean_squared_error)
        shape = 1 / (np.array(self.kurtosis) - 1)
        half = [math.exp(math.lgamma(a + 0.5) - math.lgamma(a)) for a in shape.tolist()]
        known = {
            "mean_squared_error": mean,
            "root_mean_squared_error": np.sqrt(mean),
            "mean_absolute_error": np.array(half) * np.sqrt(mean / shape),
        }
        return _select_truth(metric, known)


@dataclass(frozen=True, slots=True)
class Clusters:
    """Predictions that are correlated within clusters, such as several rows of one person.

    Each cluster has its own probability, from a beta distribution with the group's rate as its
    mean; the rows of the cluster are predicted positive with that probability.

    Parameters
    ----------
    n : pair of int
        Number of clusters of each group.
    rows : int
        Number of rows of each cluster.
    selection_rate : pair of float
        The probability of a positive prediction in each group.
    correlation : float
        The correlation of two rows of one cluster, between 0 and 1. The variance of a group's
        rate is 1 + (rows − 1)·correlation times that of independent rows.

    Examples
    --------
    >>> from studies import simulate
    >>> population = simulate.Clusters(n=(40, 40), rows=5, correlation=0.2)
    >>> population.truth("selection_rate"), round(population.design_effect, 2)
    ({'a': 0.5, 'b': 0.5}, 1.8)
    """

    n: tuple[int, int]
    rows: int = 5
    selection_rate: Pair = (0.5, 0.5)
    correlation: float = 1 / 3

    def __post_init__(self) -> None:
        _check_pairs(self, n=_ROWS, selection_rate=_CHANCE)
        checks.integer("rows", self.rows, *_ROWS)
        checks.fraction("correlation", self.correlation)

    @property
    def design_effect(self) -> float:
        """The variance of a group's rate divided by that of independent rows."""
        return 1 + (self.rows - 1) * self.correlation

    def draw(self, rng: Seed = None) -> Columns:
        """Draw a data set: columns ``y_true`` (all one), ``y_pred``, ``group`` and ``cluster``."""
        rng = np.random.default_rng(rng)
        total = 1 / self.correlation - 1  # of the beta distribution's two parameters
        rate = np.repeat(self.selection_rate, self.n)
        chance = np.repeat(rng.beta(rate * total, (1 - rate) * total), self.rows)
        return {
            "y_true": np.ones(len(chance), bool),
            "y_pred": rng.random(len(chance)) < chance,
            "group": np.repeat(_repeat_groups(self.n), self.rows),
            "cluster": np.repeat(np.arange(sum(self.n)), self.rows),
        }

    def truth(self, metric: str = "selection_rate") -> dict[str, float]:
        """Return the selection rate of each group."""
        return _select_truth(metric, {"selection_rate": self.selection_rate})


@dataclass(frozen=True, slots=True)
class Correlation:
    """A continuous attribute x and errors whose spread depends on it: slope·x + N(0, 1)/xᵖ.

    Parameters
    ----------
    n : int
        Number of rows.
    attribute : {"uniform", "exponential"}
        Whether x is uniform between `low` and 1, or 1 plus a standard exponential.
    power : int
        The exponent p; 1 reproduces the paper's Table 1.
    slope : float
        Zero for uncorrelated (but dependent) errors.
    low : float
        The smallest x, if uniform: 10⁻⁵ in the paper.

    Examples
    --------
    >>> import fairperm
    >>> from studies import simulate
    >>> population = simulate.Correlation(1000, "exponential", power=1)
    >>> population.truth()
    0.0
    >>> result = fairperm.correlation_test("x", "error", data=population.draw(1))
    >>> round(simulate.Correlation(1000, "exponential", power=1, slope=1).truth(), 4)
    0.8441
    """

    n: int = 2000
    attribute: str = "uniform"
    power: int = 2
    slope: float = 0.0
    low: float = 1e-5

    def __post_init__(self) -> None:
        checks.integer("n", self.n, *_ROWS)
        checks.choice("attribute", self.attribute, ("uniform", "exponential"))
        checks.integer("power", self.power, 0, 10)
        checks.number("slope", self.slope)
        checks.fraction("low", self.low)

    def draw(self, rng: Seed = None) -> Columns:
        """Draw a data set: columns ``x`` and ``error``."""
        rng = np.random.default_rng(rng)
        if self.attribute == "uniform":
            x = rng.uniform(self.low, 1, self.n)
        else:
            x = 1 + rng.exponential(size=self.n)
        return {"x": x, "error": self.slope * x + rng.normal(size=self.n) / x**self.power}

    def truth(self) -> float:
        """Return the correlation of x and the error."""
        explained = self.slope**2 * (self.moment(2) - self.moment(1) ** 2)
        spread = math.sqrt(explained + self.moment(-2 * self.power))
        return math.copysign(math.sqrt(explained), self.slope) / spread if self.slope else 0.0

    def moment(self, k: int) -> float:
        """Return the mean of xᵏ."""
        if self.attribute == "uniform":
            width = 1 - self.low
            whole = -math.log(self.low) if k == -1 else (1 - self.low ** (k + 1)) / (k + 1)
            return whole / width
        if k < 0:
            from scipy.special import expn

            return float(math.e * expn(-k, 1.0))
        return sum(math.factorial(k) / math.factorial(j) for j in range(k + 1))


def _repeat_groups(n: tuple[int, int]) -> NDArray[Any]:
    return np.repeat(GROUPS, n)


def _round_by_group(values: Any) -> dict[str, float]:
    """Return values by group, without rounding errors in the last digits."""
    return {group: float(f"{value:.12g}") for group, value in zip(GROUPS, values, strict=True)}


def _select_truth(metric: str, known: dict[str, Any]) -> dict[str, float]:
    """Return the known values of a metric by group."""
    return _round_by_group(known[checks.choice("metric", get_metric(metric).name, tuple(known))])


def _check_pairs(population: object, **ranges: Pair) -> None:
    """Raise InputError unless each parameter is a pair of numbers within its range."""
    for name, (low, high) in ranges.items():
        value = getattr(population, name)
        rule = f"a tuple of two numbers from {low:g} to {high:g}, one for each group"
        if not isinstance(value, tuple) or len(value) != len(GROUPS):
            raise InputTypeError(name, rule, value)
        if name == "n":
            for one in value:
                checks.integer(name, one, *_ROWS)
        elif not all(low <= checks.number(name, one, rule) <= high for one in value):
            raise InputError(name, rule, value)


# The paper's section 4.2: unequal base rates and equal false negative rates.
PAPER_FNR = Rates(n=(200, 200), base_rate=(0.8, 0.2))
# The rows of the paper's Table 1, by example.
PAPER_TABLE1 = {
    "uncorrelated": Correlation(2000, "uniform", power=1),
    "independent": Correlation(2000, "exponential", power=1),
}
