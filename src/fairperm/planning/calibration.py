"""What a test's level and power really are, with the user's own data."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fairperm._utils import checks
from fairperm.engines.resampling import blocks
from fairperm.errors import InputError, UndefinedMetricError, shown
from fairperm.hypothesis_tests.results.gaps import PlainResult, noted
from fairperm.inference.intervals import clopper_pearson
from fairperm.planning.equal_groups import UnreachableError, holds_labels, values, with_gap
from fairperm.planning.populations import Population, units
from fairperm.planning.trials import MOST_SIMULATIONS, Trial

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

    from numpy.typing import NDArray

    from fairperm.data.table import Table

    Array = NDArray[np.float64]

__all__ = ["Calibration", "calibrate"]

_MUCH = 0.25  # of a group's rows


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Calibration(PlainResult):
    """The result of :func:`fairperm.calibrate`.

    Attributes
    ----------
    metric : str
        The metric's full name.
    groups : tuple
        The first and the second group.
    sizes : tuple of int
        Their rows, in the data and, without clusters, in every simulated sample.
    clusters : tuple of int or None
        Their clusters, in the data and in every simulated sample; None if rows are drawn.
    scheme, variance, alternative, n_resamples
        The test: what is exchanged, what the gap is divided by, its side, its permutations.
    alpha : float
        The level that the test is said to have: it rejects if its p-value is at most this.
    level : float
        The level that it has: the share of samples with equal groups in which it rejects. Those
        in which the metric is undefined (or with `n_resamples` of 0 the error is zero) have no
        test, and are not counted.
    level_interval : tuple of float
        Clopper–Pearson interval for the level in infinitely many samples.
    gap : float
        The gap for which the power is: first group less second.
    power : float
        The share of samples with this gap in which the test rejects. Those without a test count
        as not rejected.
    power_interval : tuple of float
        Clopper–Pearson interval for the power in infinitely many samples.
    confidence_level : float
        Of both intervals.
    n_simulations : int
        Samples, with equal groups and again with the gap.
    n_undefined : tuple of int
        Those without a test: with equal groups, and with the gap.
    null : str
        How the groups were made equal.
    moved : tuple of float
        How much of each group's weight went to other rows, or clusters, for it.
    notes : tuple of str
        What else must be known to read the result rightly.
    seed : int
        Passing it as ``rng`` gives the same result again.
    """

    metric: str
    groups: tuple[Hashable, Hashable]
    sizes: tuple[int, int]
    clusters: tuple[int, int] | None
    scheme: str
    variance: str | None
    alternative: str
    n_resamples: int
    alpha: float
    level: float
    level_interval: tuple[float, float]
    gap: float
    power: float
    power_interval: tuple[float, float]
    confidence_level: float
    n_simulations: int
    n_undefined: tuple[int, int]
    null: str
    moved: tuple[float, float]
    notes: tuple[str, ...]
    seed: int

    def summary(self) -> str:
        """Return the answer in plain words."""
        low, high = self.level_interval
        verdict = "That is within what simulation can tell."
        if low > self.alpha:
            verdict = "It rejects more often than it should."
        elif high < self.alpha:
            verdict = "It rejects less often than it may: it errs on the safe side."
        return (
            f"With your data, this test's {_percent(self.alpha)} % is really "
            f"{_share(self.level, self.level_interval, ' by simulation')}. {verdict} It finds a "
            f"gap of {self.gap:+.4g} in {_share(self.power, self.power_interval)} of such samples."
        )

    def __str__(self) -> str:
        return "\n".join([self.summary(), *noted(self.notes)])

    def __repr__(self) -> str:
        rows = [f"{n:,} rows" for n in self.sizes]
        if self.clusters is not None:
            rows = [f"{n:,} clusters" for n in self.clusters]
        both = zip(rows, self.groups, strict=True)
        n = self.n_resamples
        level = f"{self.confidence_level:.4g} interval"
        (low, high), (lowest, highest) = self.level_interval, self.power_interval
        return "\n".join(
            [
                f"{type(self).__name__}: {self.metric}, "
                + " and ".join(f"{one} of {shown(group)}" for one, group in both),
                f"  test   {self.scheme}, variance {self.variance}, {self.alternative}, "
                + (f"{n:,} permutations" if n else "normal limit"),
                f"  level  {self.level:.4f}  {level} [{low:.4f}, {high:.4f}], said to be "
                f"{self.alpha:.4g}",
                f"  power  {self.power:.4f}  {level} [{lowest:.4f}, {highest:.4f}], for a gap of "
                f"{self.gap:+.4g}",
                f"  null   {self.null}",
                *noted(self.notes, len("level")),
            ]
        )


def calibrate(
    y_true: object,
    y_pred: object = None,
    *,
    alpha: float = 0.05,
    gap: float | None = None,
    n_simulations: int = 1000,
    n_resamples: int = 499,
    confidence_level: float = 0.95,
    rng: int | np.random.Generator | None = None,
    n_jobs: int | None = None,
    progress: bool | None = None,
    **test_options: Any,
) -> Calibration:
    """Tell which level and which power a permutation test really has with these data.

    Parameters
    ----------
    y_true, y_pred, n_resamples
        As in :func:`fairperm.permutation_test`.
    alpha : float
        The level that the test is said to have: it rejects if its p-value is at most this.
    gap : float, optional
        The gap, first group less second, for which the power is; if not given, the observed one.
        With strata it is the gap in each of them.
    n_simulations : int
        Samples in which the groups are equal, and as many with the gap.
    confidence_level : float
        Of the intervals for level and power.
    rng : int or numpy.random.Generator, optional
        One seed gives one answer, for any `n_jobs` and row order.
    n_jobs : int, optional
        Processes, through joblib; -1 for all cores.
    progress : bool, optional
        Whether to show a bar when it takes over a second; None: on a terminal or in a notebook.
    test_options
        All else that :func:`fairperm.permutation_test` takes, of which `sensitive_features` and
        `metric` must be given; but no function as `metric`, as nothing tells by how much each row
        moves it (:func:`fairperm.register_metric` makes it one of which that is known).

    Returns
    -------
    Calibration

    Notes
    -----
    *Equal groups.* The weak null is imposed by giving the rows of each group weights, so that the
    metric has the same value in both: the mean of the observed ones, weighted by the rows that
    they are made of (for a rate and for a mean, the value of both groups together). Each label
    keeps its share in the group; so base rates stay what they are, and scores nearly so. The
    weights are exp(λ·influence), which of all that do this are the nearest to equal weights in
    Kullback–Leibler divergence; but no influence counts for more than three times their mean size
    among rows of a label, so that tails stay what they are, and few rows do not bear it all. With
    strata this is done in each. If no weights of its own rows bring a group there (a rate of 0
    has no rows to give weight to), rows of the other group with the same label are mixed in, as
    the result's ``null`` then says. Outcomes of a regression have no shares to keep.

    *Samples.* Every sample has as many rows of each group as the data. They are drawn by those
    weights with replacement, independently of each other: how many positives there are among them
    varies, as it would in new data. The test is run on each.

    *Clusters.* With `cluster`, whole clusters are given weights and drawn, as many of each group
    as the data have; so the number of rows varies if clusters differ in size. A cluster's influence
    is the sum of those of its rows, and the metric's value is that of rows as likely as their
    clusters. Shares of labels are held among all rows of a group. A cluster that is drawn twice is
    two clusters.

    *Power.* The same with groups as they were observed, or with weights that give them the `gap`
    around the same mean.

    The rows at hand stand for all that there could be. The level is that of this test in
    populations like these, not the probability that the result at hand is wrong.

    Examples
    --------
    Base rates of 0.8 and 0.2, and a test that only shuffles labels; then the default one:

    >>> import fairperm
    >>> rows = {
    ...     "y_true": [1] * 160 + [0] * 40 + [1] * 40 + [0] * 160,
    ...     "y_pred": [0] * 16 + [1] * 184 + [0] * 8 + [1] * 192,
    ...     "sensitive_features": ["a"] * 200 + ["b"] * 200,
    ... }
    >>> fairperm.calibrate(
    ...     **rows, metric="fnr", scheme="pooled", variance=None, n_simulations=200, rng=1
    ... )
    Calibration: false_negative_rate, 200 rows of 'a' and 200 rows of 'b'
      test   pooled, variance None, two-sided, 499 permutations
      level  0.1250  0.95 interval [0.0826, 0.1790], said to be 0.05
      power  0.5350  0.95 interval [0.4633, 0.6056], for a gap of -0.1
      null   Rows were given weights until false_negative_rate was 0.12 in both groups, each
             label keeping its share; this moved 1.6 % of 'a' and 1.6 % of 'b'.
    >>> print(fairperm.calibrate(**rows, metric="fnr", n_simulations=200, rng=1))
    With your data, this test's 5 % is really 3 % (1.11 to 6.42 % by simulation). That is within
    what simulation can tell. It finds a gap of -0.1 in 32 % (25.6 to 38.9 %) of such samples.
    """
    alpha = checks.fraction("alpha", alpha)
    n_simulations = checks.integer("n_simulations", n_simulations, 1, MOST_SIMULATIONS)
    resampling = blocks.Resampling.from_options(n_resamples, rng, n_jobs, progress, least=0)
    _check_resolution(resampling.n_resamples, alpha)
    given = {"y_true": y_true, "y_pred": y_pred, **test_options}
    trial = Trial.of(given, resampling, confidence_level)
    own, observed = trial.shares(), trial.observed
    equal = _equal(trial, own)
    apart = own if gap is None else _apart(trial, own, gap)
    drawn = _by_group(units(trial.table))
    populations = [Population(trial.table, drawn, chances) for chances in (equal, apart)]
    counts = trial.rejections(populations, alpha, n_simulations, resampling)
    (rejected, without), (found, missing) = counts
    if without == n_simulations:
        rule = "one that is defined in samples of this size"
        raise UndefinedMetricError("metric", rule, observed.metric, "Use larger groups.")
    moved = [float(np.abs(one - of).sum() / 2) for one, of in zip(equal, own, strict=True)]
    return Calibration(
        metric=observed.metric,
        groups=observed.groups,
        sizes=_by_group(trial.table),
        clusters=drawn if trial.plan.clustered else None,
        scheme=observed.scheme,
        variance=observed.variance,
        alternative=observed.alternative,
        n_resamples=resampling.n_resamples,
        alpha=alpha,
        level=rejected / (n_simulations - without),
        level_interval=clopper_pearson(rejected, n_simulations - without, confidence_level),
        gap=observed.difference if gap is None else float(gap),
        power=found / n_simulations,
        power_interval=clopper_pearson(found, n_simulations, confidence_level),
        confidence_level=confidence_level,
        n_simulations=n_simulations,
        n_undefined=(without, missing),
        null=" ".join(_how(trial, equal, moved)),
        moved=(moved[0], moved[1]),
        notes=(*observed.notes, *_far(observed.groups, moved)),
        seed=resampling.seed,
    )


def _check_resolution(n_resamples: int, alpha: float) -> None:
    """Refuse so few permutations that a test of random ones could never reject."""
    fewest = math.ceil(1 / alpha - 1e-9) - 1
    if 0 < n_resamples < fewest:
        rule = f"at least {fewest:,} for alpha={alpha:g}"
        hint = "A p-value of fewer random permutations is never so small."
        raise InputError("n_resamples", rule, n_resamples, hint)


def _by_group(table: Table) -> tuple[int, int]:
    """Return how many there are of each of two groups."""
    first, second = table.sizes().values()
    return first, second


def _equal(trial: Trial, own: tuple[Array, Array]) -> tuple[Array, Array]:
    """Return the chances with which the metric is the same in both groups."""
    metric = trial.plan.metric
    if metric.is_function:
        hint = "If it is a function of means, register_metric makes it such."
        rule = (
            "a metric by name, of which it is known by how much each row moves it, and not a "
            "function"
        )
        raise InputError("metric", rule, metric.name, hint)
    try:
        return with_gap(trial.table, metric.parts, own, 0.0)
    except UnreachableError:
        rule = f"one that weights of {trial.unit}s can make equal in both groups"
        hint = f"The groups have too few kinds of {trial.unit}s."
        raise InputError("metric", rule, metric.name, hint) from None


def _apart(trial: Trial, own: tuple[Array, Array], gap: object) -> tuple[Array, Array]:
    """Return the chances with which the groups have this gap."""
    distance = checks.number("gap", gap, "a number other than 0")
    if distance == 0:
        raise InputError("gap", "a number other than 0", gap, "Without one, see level.")
    parts = trial.plan.metric.parts
    if len(parts) > 1:
        rule = f"left out for {trial.plan.metric.name}, which has several"
        raise InputError("gap", rule, gap)
    try:
        return with_gap(trial.table, parts, own, distance)
    except UnreachableError:
        first, second = (values(trial.table, parts, share)[0] for share in own)
        hint = f"The groups have {first:.4g} and {second:.4g}; gaps around their mean have limits."
        rule = f"one that weights of {trial.unit}s can make in {trial.plan.metric.name}"
        raise InputError("gap", rule, gap, hint) from None


def _how(trial: Trial, equal: tuple[Array, Array], moved: list[float]) -> Iterator[str]:
    """Yield the sentences that say how the groups were made equal."""
    parts, groups = trial.plan.metric.parts, trial.observed.groups
    names = " and ".join(part.name for part in parts)
    what = f"{trial.unit}s".capitalize()
    same = "was the same in both groups" if len(parts) == 1 else "were the same in both groups"
    if len(parts) == trial.observed.n_strata == 1:
        same = f"was {values(trial.table, parts, equal[0])[0]:.4g} in both groups"
    where = " in every stratum" if trial.observed.n_strata > 1 else ""
    kept = ", each label keeping its share" if holds_labels(trial.table, parts) else ""
    first, second = (
        f"{_percent(one)} % of {shown(g)}" for one, g in zip(moved, groups, strict=True)
    )
    yield (
        f"{what} were given weights until {names} {same}{where}{kept}; this moved {first} and "
        f"{second}."
    )
    for side, group in enumerate(groups):
        if (equal[side][units(trial.table).group != side] > 0).any():
            yield f"{what} of {shown(groups[1 - side])} were mixed into {shown(group)} for it."


def _far(groups: tuple[Hashable, Hashable], moved: list[float]) -> Iterator[str]:
    """Yield a note for each group that had to be changed much."""
    for group, much in zip(groups, moved, strict=True):
        if much > _MUCH:
            yield (
                f"Making the groups equal moved {_percent(much)} % of {shown(group)}: the level "
                "is that of a population which is not much like it."
            )


def _percent(share: float) -> str:
    return f"{100 * share:.3g}"


def _share(share: float, interval: tuple[float, float], how: str = "") -> str:
    low, high = map(_percent, interval)
    return f"{_percent(share)} % ({low} to {high} %{how})"
