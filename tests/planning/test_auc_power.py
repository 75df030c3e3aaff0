"""The power of the test of the AUC against derivatives, SciPy's integrals and simulated tests."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.integrate import quad
from scipy.stats import norm

from fairperm.data.arguments import Alternative
from fairperm.data.sample import Sample
from fairperm.engines.resampling.blocks import Resampling
from fairperm.hypothesis_tests.groups import compare
from fairperm.hypothesis_tests.plan import Options, Plan
from fairperm.metrics import get_metric
from fairperm.planning.auc_power import ScoreGap, ScoreGroup
from fairperm.planning.power import power
from tests.support.simulations import between

Array = NDArray[np.float64]


def normal_scores(auc: float, sizes: tuple[float, float], width: float = 0.02) -> ScoreGroup:
    edges = np.arange(-8, 16, width)
    means = np.array([math.sqrt(2) * norm.ppf(auc), 0.0])
    return ScoreGroup(np.diff(norm.cdf(edges - means[:, None])), np.array(sizes))


def unequal_scores(seed: int) -> ScoreGroup:
    rng = np.random.default_rng(seed)
    return ScoreGroup(rng.dirichlet(np.ones(7), 2), rng.uniform(10, 50, 2))


@pytest.mark.parametrize("auc", [0.5, 0.73, 0.9, 0.99])
def test_variance_is_that_of_normal_scores(auc: float) -> None:
    group = normal_scores(auc, (41, 72))
    shift = norm.ppf(auc) * math.sqrt(2)
    twice, _ = quad(lambda x: norm.cdf(x) ** 2 * norm.pdf(x - shift), -10, 15)
    pairs = auc * (1 - auc) + (41 + 72 - 2) * (twice - auc**2)  # Hanley and McNeil
    of_rows = (group.chances * group.influences[0] ** 2).sum(axis=1) @ (1 / group.sizes)
    assert group.estimate()[0] == pytest.approx(auc, abs=1e-4)
    assert of_rows + group.interaction == pytest.approx(pairs / (41 * 72), rel=1e-3)


def test_influences_are_derivatives() -> None:
    group, step = unequal_scores(1), 1e-6
    for label, cell in ((0, 2), (0, 6), (1, 0), (1, 4)):
        towards = np.zeros((2, 7))
        towards[label] = np.eye(7)[cell] - group.chances[label]
        above, below = (np.array(group.estimate(side * step * towards)) for side in (1, -1))
        found = [one[label, cell] for one in group.influences]
        np.testing.assert_allclose(found, (above - below) / (2 * step), rtol=1e-6)


@pytest.mark.validate
def test_cumulants_are_those_of_samples() -> None:
    """Of samples whose labels are not random; DeLong's variance in closed form."""
    rng, n = np.random.default_rng(5), 40_000
    groups = normal_scores(0.9, (60, 90), 0.25), normal_scores(0.8, (200, 300), 0.25)
    gaps, variances = np.zeros(n), np.zeros(n)
    for group, sign in zip(groups, (1, -1), strict=True):
        counts = [
            rng.multinomial(int(size), one / one.sum(), size=n)
            for size, one in zip(group.sizes, group.chances, strict=True)
        ]
        positives, negatives = (one / one.sum(axis=1, keepdims=True) for one in counts)
        below = np.cumsum(negatives, axis=1) - negatives / 2
        above = 1 - np.cumsum(positives, axis=1) + positives / 2
        auc = (positives * below).sum(axis=1)
        gaps += sign * auc
        for share, place, size in (
            (positives, below, group.sizes[0]),
            (negatives, above, group.sizes[1]),
        ):
            variances += (share * (place - auc[:, None]) ** 2).sum(axis=1) / (size - 1)
    for statistic, side in ((2.0, 1), (1.8, -1)):
        sample = side * gaps - statistic * np.sqrt(variances)
        mean, variance, third = ScoreGap(groups)._cumulants(statistic, side)
        assert mean == pytest.approx(sample.mean(), abs=0.02 * sample.std())
        assert variance == pytest.approx(sample.var(), rel=0.04)
        skewness = ((sample - sample.mean()) ** 3).mean() / sample.std() ** 3
        assert third / variance**1.5 == pytest.approx(skewness, abs=0.06)


# Simulated tests: values, rows, share of the first group, base rates. Both ways round.
SETTINGS = {
    "few positives": ((0.7, 0.8), 1500, 0.2, (0.1, 0.3)),
    "few positives, better": ((0.8, 0.7), 1500, 0.2, (0.1, 0.3)),
    "high": ((0.85, 0.9), 1000, 0.1, (0.5, 0.5)),
    "high, better": ((0.95, 0.9), 1000, 0.1, (0.5, 0.5)),
    "small": ((0.69, 0.87), 660, 1 / 11, (0.5, 0.5)),
    "small, better": ((0.95, 0.83), 660, 1 / 11, (0.5, 0.5)),
    "large and small": ((0.7, 0.6), 1000, 0.8, (0.2, 0.5)),
    "large and small, worse": ((0.6, 0.7), 1000, 0.8, (0.2, 0.5)),
}
DATA_SETS = 500
ALTERNATIVES: tuple[Alternative, ...] = ("two-sided", "symmetric", "greater", "less")


@cache
def pvalues(name: str) -> dict[str, Array]:
    """Return the p-values of simulated tests, by their alternative."""
    (first, second), n, share, bases = SETTINGS[name]
    rng, plan = np.random.default_rng(2026), Plan.choose(get_metric("roc_auc"), "auto", "auto")
    group = np.repeat([0, 1], [round(n * share), n - round(n * share)])
    shift = math.sqrt(2) * norm.ppf(np.where(group == 0, first, second))
    found: dict[str, list[float]] = {one: [] for one in ALTERNATIVES}
    for seed in range(DATA_SETS):
        label = rng.random(n) < np.where(group == 0, *bases)
        table = Sample(
            columns={"y_true": label, "y_score": rng.normal(size=n) + shift * label},
            group=group,
            stratum=np.zeros(n, np.intp),
            count=np.ones(n, np.int64),
            groups=("a", "b"),
            strata=(0,),
        )
        result = compare(
            table, plan, ("a", "b"), Options(resampling=Resampling(799, seed, 1, False))
        )
        drawn = result.null_distribution
        tails = [float((side * drawn >= side * result.statistic).mean()) for side in (1, -1)]
        found["two-sided"].append(result.pvalue)
        found["symmetric"].append(float((abs(drawn) >= abs(result.statistic)).mean()))
        found["greater"].append(tails[0])
        found["less"].append(tails[1])
    return {one: np.array(p) for one, p in found.items()}


def predicted(name: str, alternative: Alternative) -> float:
    values, n, share, bases = SETTINGS[name]
    given: Any = {"values": values, "n": n, "share": share, "base_rates": bases}
    return power("roc_auc", alternative=alternative, **given)


@pytest.mark.validate
@pytest.mark.parametrize("alternative", ALTERNATIVES)
@pytest.mark.parametrize("name", SETTINGS)
def test_power_is_that_of_simulated_tests(name: str, alternative: Alternative) -> None:
    chance = predicted(name, alternative)
    low, high = between(chance, chance, DATA_SETS)
    assert low <= (pvalues(name)[alternative] <= 0.05).sum() <= high


def normal_limit(name: str) -> float:
    """Return the power if the standard error were a constant."""
    (first, second), n, share, bases = SETTINGS[name]
    variance = 0.0
    for auc, size, base in zip((first, second), (n * share, n - n * share), bases, strict=True):
        group = normal_scores(auc, (size * base, size * (1 - base)))
        variance += group.estimate()[1] + group.interaction
    return float(norm.cdf(abs(first - second) / math.sqrt(variance) - norm.ppf(0.975)))


@pytest.mark.validate
@pytest.mark.parametrize("name", ["small", "small, better"])
def test_the_normal_limit_is_not_the_power(name: str) -> None:
    low, high = between(normal_limit(name), normal_limit(name), DATA_SETS)
    assert not low <= (pvalues(name)["two-sided"] <= 0.05).sum() <= high
