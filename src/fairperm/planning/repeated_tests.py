"""The user's test, repeated on samples drawn from the user's own rows."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np

from fairperm._utils import checks, streams
from fairperm._utils.arrays import Array, Integers
from fairperm.data.arguments import Inputs
from fairperm.data.sample import Sample
from fairperm.engines.resampling import blocks
from fairperm.errors import FairpermWarning, UndefinedMetricError
from fairperm.hypothesis_tests.groups import compare
from fairperm.hypothesis_tests.permutation import permutation_test
from fairperm.hypothesis_tests.plan import Options, Plan, plan_test
from fairperm.hypothesis_tests.results.gaps import PermutationTestResult
from fairperm.planning.equal_groups import UnreachableError
from fairperm.planning.populations import Population, select_units, sort_units

T = TypeVar("T")

MAX_SIMULATIONS = 10**6
_BLOCK = 10  # simulations per random stream; changing it changes the draws
_BOOTSTRAP_SAMPLES = 25  # of the user's rows
_OPTIONS = ("stratum_weights", "alternative", "n_bootstrap")


@dataclass(frozen=True, slots=True)
class RepeatedTest:
    """The result of a test, its plan, the sorted rows of the two groups, and its options."""

    observed: PermutationTestResult
    plan: Plan
    table: Sample
    options: Options

    @classmethod
    def of(
        cls, given: Mapping[str, Any], resampling: blocks.Resampling, confidence_level: float
    ) -> RepeatedTest:
        """Test the observed rows and read them. Warnings of the test are only in its notes."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FairpermWarning)
            observed = permutation_test(
                n_resamples=resampling.n_resamples,
                confidence_level=confidence_level,
                rng=resampling.seed,
                progress=False,
                **given,
            )
        names = (one.name for one in fields(Inputs))
        columns = {name: given[name] for name in names if name in given}
        inputs = Inputs(**columns)
        options = Options(
            resampling=resampling,
            scheme=observed.scheme,
            variance=given.get("variance", "auto"),
            **{name: given[name] for name in _OPTIONS if name in given},
        )
        table, plan, groups = plan_test(inputs, given["metric"], options, lambda _: observed.groups)
        return cls(observed, plan, sort_units(table, groups), options)

    @property
    def unit(self) -> str:
        """Return "cluster" or "row": the unit that samples draw."""
        return "cluster" if self.plan.clustered else "row"

    def sizes(self) -> tuple[int, int]:
        """Return the number of units of the first and of the second group."""
        first, second = select_units(self.table).sizes().values()
        return first, second

    def shares(self) -> tuple[Array, Array]:
        """Return the share of each unit in the first and in the second group."""
        drawn = select_units(self.table)
        counts = [np.where(drawn.group == side, drawn.count, 0) for side in (0, 1)]
        return counts[0] / counts[0].sum(), counts[1] / counts[1].sum()

    def count_rejections(
        self,
        populations: Sequence[Population],
        alpha: float,
        n_simulations: int,
        resampling: blocks.Resampling,
    ) -> list[list[int]]:
        """Count, for each population, the samples with a rejection and those without a test."""
        test = partial(_test_sample, self.plan, self.options)
        task = partial(_count_rejections, populations, test, alpha, resampling.n_resamples)
        simulations = replace(resampling, n_resamples=n_simulations)
        blocks = simulations.run_blocks(task, streams.BOOTSTRAP, _BLOCK, through_joblib=True)
        counts: list[list[int]] = np.sum(blocks, axis=0).tolist()
        return counts

    def count_in_resamples(
        self,
        make_populations: Callable[[RepeatedTest], Sequence[Population]],
        alpha: float,
        n_simulations: int,
        resampling: blocks.Resampling,
    ) -> list[tuple[int, list[list[int]]]]:
        """Return the simulations and their counts in each of a few bootstrap samples of the rows.

        The simulations are divided among them. A bootstrap sample from which ``make_populations``
        cannot make any is left out.
        """
        n_samples = min(_BOOTSTRAP_SAMPLES, n_simulations)
        each = n_simulations // n_samples
        task = partial(_count_in_resample, self, make_populations, alpha, each, resampling)
        samples = replace(resampling, n_resamples=n_samples)
        counts = samples.run_blocks(task, streams.RESAMPLED_ROWS, 1, through_joblib=True)
        return [(each, one) for one in counts if one is not None]


def _count_in_resample(
    test: RepeatedTest,
    make_populations: Callable[[RepeatedTest], Sequence[Population]],
    alpha: float,
    n_simulations: int,
    resampling: blocks.Resampling,
    _: int,
    rng: np.random.Generator,
) -> list[list[int]] | None:
    """Count rejections in samples of populations that are made from one bootstrap sample."""
    resampled = Population(test.table, test.sizes(), test.shares()).sample(rng)
    try:
        populations = make_populations(replace(test, table=resampled))
    except UnreachableError:
        return None
    run = partial(_test_sample, test.plan, test.options)
    counts = _count_rejections(populations, run, alpha, resampling.n_resamples, n_simulations, rng)
    found: list[list[int]] = counts.tolist()
    return found


@dataclass(frozen=True, slots=True)
class _SerialResampling(blocks.Resampling):
    """The draws of one test among many, without threads: they would cost more than the test."""

    def run_blocks(
        self,
        task: Callable[[int, np.random.Generator], T],
        purpose: int,
        size: int = blocks.BLOCK,
        **_: Any,  # nothing goes through joblib, and no draws stop early
    ) -> list[T]:
        return [
            task(n, streams.stream(self.seed, purpose, block))
            for block, n in enumerate(blocks.split_draws(self.n_resamples, size))
        ]


def _test_sample(
    plan: Plan, options: Options, sample: Sample, resampling: blocks.Resampling
) -> PermutationTestResult:
    return compare(sample, plan, sample.groups, replace(options, resampling=resampling))


def _count_rejections(
    populations: Sequence[Population],
    test: Callable[[Sample, blocks.Resampling], PermutationTestResult],
    alpha: float,
    n_resamples: int,
    n: int,
    rng: np.random.Generator,
) -> Integers:
    """Draw n samples of each population; count rejections, and samples without a test."""
    counts = np.zeros((len(populations), 2), np.int64)
    for _ in range(n):
        for count, population in zip(counts, populations, strict=True):
            sample = population.sample(rng)
            resampling = _SerialResampling(n_resamples, checks.seed(rng), n_jobs=1, progress=False)
            try:
                result = test(sample, resampling)
                count[0] += result.pvalue <= alpha
            except UndefinedMetricError:
                count[1] += 1
    return counts
