"""Simulated confusion tables, and the shares of them that a test rejects.

Tables are drawn cell by cell, never row by row, so that thousands of data sets are cheap.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom

from fairperm.data.sample import Sample
from fairperm.engines.resampling import enumeration
from fairperm.engines.resampling.blocks import Resampling
from fairperm.errors import FairpermWarning
from fairperm.hypothesis_tests.groups import compare
from fairperm.hypothesis_tests.plan import Options, Plan
from fairperm.hypothesis_tests.results.gaps import PermutationTestResult
from fairperm.metrics import get_metric
from studies import bootstrap

Counts = NDArray[np.int64]

SURE = 0.999  # probability with which a right implementation passes any one bound


@dataclass(frozen=True)
class Group:
    """One group's distribution: how many rows, how many of them positive, how many hit."""

    n: int
    base_rate: float
    true_positive_rate: float = 0.9
    true_negative_rate: float = 0.9

    def cells(self) -> list[float]:
        """Return the probabilities of tn, fp, fn and tp."""
        positive, negative = self.base_rate, 1 - self.base_rate
        hit, right = self.true_positive_rate, self.true_negative_rate
        return [negative * right, negative * (1 - right), positive * (1 - hit), positive * hit]

    def draw(self, data_sets: int, rng: np.random.Generator) -> Counts:
        return rng.multinomial(self.n, self.cells(), size=data_sets)


PAPER = (Group(200, 0.8), Group(200, 0.2))  # of section 4.2: unequal base rates, equal FNR


def draw_counts(strata: Sequence[tuple[Group, Group]], data_sets: int, seed: int) -> Counts:
    """Return counts by data set, stratum, group and cell."""
    rng = np.random.default_rng(seed)
    pairs = [[group.draw(data_sets, rng) for group in pair] for pair in strata]
    return np.moveaxis(np.array(pairs), 2, 0)


def table_of(counts: object, groups: Sequence[Hashable] = ("a", "b")) -> Sample:
    """Return counts by stratum, group and cell as the table that a test starts from."""
    array = np.asarray(counts, np.int64)
    stratum, group, cell = np.nonzero(array)
    return Sample(
        columns={"y_true": cell >= 2, "y_pred": cell % 2 == 1},
        group=group,
        stratum=stratum,
        count=array[stratum, group, cell],
        groups=tuple(groups),
        strata=tuple(range(len(array))),
    )


@dataclass(frozen=True)
class Procedure:
    """A permutation test, ready to be run on tables of counts."""

    metric: str
    scheme: str = "auto"
    variance: str | None = "auto"
    n_resamples: int = 9999
    n_bootstrap: int = 500
    alternative: str = "two-sided"

    def __str__(self) -> str:
        return f"{self.metric}-{self.scheme}-{self.variance}"

    def __call__(
        self, counts: object, seed: int = 0, groups: tuple[str, str] = ("a", "b")
    ) -> PermutationTestResult:
        """Test the groups "a" and "b" of counts by stratum, group and cell."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FairpermWarning)  # of undefined draws in small tables
            table = table_of(counts)
            options = Options(
                scheme=self.scheme,
                variance=self.variance,
                alternative=self.alternative,
                resampling=Resampling(self.n_resamples, seed, 1, False),
                n_bootstrap=self.n_bootstrap,
            )
            plan = Plan.for_table(get_metric(self.metric), table, groups, options)
            return compare(table, plan, groups, options)

    def pvalues(self, data_sets: Counts) -> NDArray[np.float64]:
        """Return the p-value of every data set, each drawn from a seed of its own."""
        return np.array([self(counts, seed).pvalue for seed, counts in enumerate(data_sets)])


@dataclass(frozen=True)
class BasicBootstrap:
    """The basic bootstrap test, for comparison."""

    alternative: str
    metric: str = "false_negative_rate"
    n_resamples: int = 499

    def pvalues(self, data_sets: Counts) -> NDArray[np.float64]:
        """Return the p-value of every data set, each drawn from a seed of its own."""
        (metric,) = get_metric(self.metric).parts
        results = [
            bootstrap.compare(
                table_of(counts),
                metric,
                ("a", "b"),
                Options(
                    alternative=self.alternative,
                    resampling=Resampling(self.n_resamples, seed, 1, False),
                ),
            )
            for seed, counts in enumerate(data_sets)
        ]
        return np.array([result.pvalue for result in results])


@contextlib.contextmanager
def only_monte_carlo() -> Iterator[None]:
    """Keep tests from enumerating the permutations, however few there are."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(enumeration, "POINTS_PER_DRAW", 0)
        patch.setattr(enumeration, "_STEPS_PER_DRAW", 0)
        yield


def at_most(rate: float, trials: int) -> int:
    """Return how many of the trials may succeed at this rate: a one-sided 99.9 % bound."""
    return int(binom.ppf(SURE, trials, rate))


def at_least(rate: float, trials: int) -> int:
    """Return how many of the trials must succeed at this rate: a one-sided 99.9 % bound."""
    return int(binom.ppf(1 - SURE, trials, rate))


def between(low: float, high: float, trials: int) -> tuple[int, int]:
    """Return how few and how many may succeed at a rate in [low, high]: two-sided 99.9 %."""
    tail = (1 - SURE) / 2
    return int(binom.ppf(tail, trials, low)), int(binom.ppf(1 - tail, trials, high))
