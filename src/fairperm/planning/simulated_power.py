"""Power by simulation: tests of many samples drawn from the user's own rows."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairperm._utils import checks
from fairperm._utils.formatting import (
    format_count,
    format_interval,
    format_level,
    format_metric,
    format_name,
    format_number,
    format_percent,
)
from fairperm.data.arguments import Column, Seed
from fairperm.errors import InputError, argument, warn_of
from fairperm.hypothesis_tests.plan import check_resampling
from fairperm.hypothesis_tests.results.gaps import PlainResult
from fairperm.inference.null import clopper_pearson
from fairperm.planning.populations import Population
from fairperm.planning.repeated_tests import MAX_SIMULATIONS, RepeatedTest

__all__ = ["SimulatedPower", "simulated_power"]

_MAX_ROWS = 10**9


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class SimulatedPower(PlainResult):
    """The result of :func:`fairperm.simulated_power`.

    Attributes
    ----------
    metric : str
        The metric's full name.
    groups : tuple
        The first and the second group.
    sizes : tuple of int
        Their numbers of rows in every simulated sample.
    effect : float
        The share of the observed difference between the groups that was kept.
    alpha : float
        The level of the tests.
    power : float
        The share of simulated samples in which the test rejected.
    confidence_interval : tuple of float
        Clopper–Pearson interval for the share in infinitely many samples.
    n_simulations : int
        Number of simulated samples.
    n_undefined : int
        Samples in which the metric was undefined in a group. They count as not rejected.
    seed : int
        Passing it as ``rng`` gives the same result again.
    """

    metric: str
    groups: tuple[Hashable, Hashable]
    sizes: tuple[int, int]
    effect: float
    alpha: float
    power: float
    confidence_interval: tuple[float, float]
    confidence_level: float
    n_simulations: int
    n_undefined: int
    seed: int

    @property
    def answer(self) -> str:
        """The power for samples of these sizes, in words."""
        rows = " and ".join(
            f"{format_count(size, 'row')} of {format_name(group)}"
            for size, group in zip(self.sizes, self.groups, strict=True)
        )
        share = f"{format_percent(self.effect)} of " if self.effect < 1 else ""
        gap = f"{share}the observed gap in {format_metric(self.metric)}"
        return f"With {rows} the test detects {gap} with {format_percent(self.power)} power."

    def _lines(self) -> list[tuple[str, str]]:
        interval = format_interval(self.confidence_interval)
        simulations = format_count(self.n_simulations, "simulation")
        level = format_level(self.confidence_level)
        return [
            ("power", f"{format_number(self.power)}  {level} interval {interval}, {simulations}"),
            ("level", format_level(self.alpha)),
        ]


def simulated_power(
    y_true: Column,
    y_pred: Column | None = None,
    *,
    n: int,
    share: float | None = None,
    effect: float = 1.0,
    alpha: float = 0.05,
    n_simulations: int = 1000,
    n_resamples: int = 999,
    confidence_level: float = 0.95,
    rng: Seed = None,
    n_jobs: int | None = None,
    progress: bool | None = None,
    **test_options: Any,
) -> SimulatedPower:
    """Estimate the power of a permutation test of n rows like these, by simulation.

    Parameters
    ----------
    y_true, y_pred, n_resamples
        As in :func:`fairperm.permutation_test`.
    n : int
        Rows of both groups together in every simulated sample.
    share : float, optional
        The first group's share of them, by default that in the data.
    effect : float
        The share of the observed difference between the groups that is kept, from 0 to 1.
    alpha : float
        A test rejects if its p-value is at most this.
    n_simulations : int
        Number of samples.
    confidence_level : float
        Level of the interval for the power.
    rng : int or numpy.random.Generator, optional
        Seed; the power does not depend on `n_jobs` or row order.
    n_jobs : int, optional
        Processes, through joblib; -1 for all cores.
    progress : bool, optional
        Whether to show a bar when it takes over a second; None: on a terminal or in a notebook.
    test_options
        Other arguments of :func:`fairperm.permutation_test`. `sensitive_features` and `metric` are
        required; `cluster` is not supported, because rows are drawn one by one.

    Returns
    -------
    SimulatedPower

    Notes
    -----
    In every sample n·share rows belong to the first group and the rest to the second. Each row is
    drawn with replacement: with probability `effect` from the rows of its own group, otherwise from
    the rows of both groups together. With an effect of 1 each group is as observed, and the power
    is that of detecting the observed gap. With 0 the groups do not differ at all (the strong null),
    and the power is the level of the test. In between, the gap of a metric that is a mean over all
    rows is `effect` times the observed one; other metrics come near.

    The observed rows stand for the whole population, and a gap by chance is taken for real: the
    power with an effect of 1 is as uncertain as the gap itself.

    Examples
    --------
    >>> import fairperm
    >>> from fairperm import simulated_power
    >>> compas = fairperm.datasets.load_compas()
    >>> simulated_power(
    ...     "two_year_recid", y_score="decile_score", threshold=5, sensitive_features="race",
    ...     groups=("African-American", "Caucasian"), metric="f1_score", data=compas,
    ...     n=400, n_simulations=100, n_resamples=199, rng=1,
    ... )
    With 241 rows of African-American and 159 rows of Caucasian the test detects the
    observed gap in F1 score with 56.0 % power.
      power  0.560  95 % interval 0.457 to 0.659, 100 simulations
      level  5 %
    """
    n = checks.integer("n", n, 2, _MAX_ROWS)
    alpha = checks.fraction("alpha", alpha)
    effect = _check_effect(effect)
    n_simulations = checks.integer("n_simulations", n_simulations, 1, MAX_SIMULATIONS)
    resampling = check_resampling(n_resamples, rng, n_jobs, progress)
    if test_options.get("cluster") is not None:
        raise InputError(
            f"simulated_power does not support {argument('cluster')}: it draws rows one by one. "
            "See calibrate, which draws whole clusters."
        )
    given = {"y_true": y_true, "y_pred": y_pred, **test_options}
    test = RepeatedTest.of(given, resampling, confidence_level)
    warn_of(note for note in test.observed.notes if note not in test.table.notes)
    population = _mix_groups(test, n, share, effect)
    ((rejected, undefined),) = test.count_rejections([population], alpha, n_simulations, resampling)
    return SimulatedPower(
        metric=test.observed.metric,
        groups=test.observed.groups,
        sizes=population.sizes,
        effect=effect,
        alpha=alpha,
        power=rejected / n_simulations,
        confidence_interval=clopper_pearson(rejected, n_simulations, confidence_level),
        confidence_level=confidence_level,
        n_simulations=n_simulations,
        n_undefined=undefined,
        seed=resampling.seed,
    )


def _mix_groups(test: RepeatedTest, n: int, share: object, effect: float) -> Population:
    """Return groups with this share of their own rows, and the rest from both groups together."""
    own = test.shares()
    rows = np.bincount(test.table.group, test.table.count)
    part = rows[0] / rows.sum() if share is None else checks.fraction("share", share)
    size = min(max(1, round(n * part)), n - 1)
    mixed_in = (1 - effect) * test.table.count / rows.sum()
    chances = effect * own[0] + mixed_in, effect * own[1] + mixed_in
    return Population(test.table, (size, n - size), chances)


def _check_effect(effect: object) -> float:
    rule = "a number from 0 to 1"
    number = checks.number("effect", effect, rule)
    if not 0 <= number <= 1:
        raise InputError("effect", rule, effect, "1 keeps the observed difference.")
    return number
