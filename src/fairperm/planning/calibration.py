"""Calibration: the actual level and power of a test on the user's own data."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from fairperm._utils import checks
from fairperm._utils.arrays import Array
from fairperm._utils.formatting import (
    format_count,
    format_interval,
    format_level,
    format_number,
    format_percent,
)
from fairperm.data.arguments import Column, Seed
from fairperm.data.sample import Sample
from fairperm.errors import InputError, UndefinedMetricError, argument, shown
from fairperm.hypothesis_tests.plan import check_resampling
from fairperm.hypothesis_tests.results.gaps import PlainResult
from fairperm.inference.null import clopper_pearson
from fairperm.metrics.definition import Scheme
from fairperm.planning.equal_groups import (
    UnreachableError,
    compute_values,
    impose_gap,
    keeps_label_shares,
)
from fairperm.planning.populations import Population, select_units
from fairperm.planning.repeated_tests import MAX_SIMULATIONS, RepeatedTest

__all__ = ["Calibration", "calibrate"]

_LARGE_CHANGE = 0.25  # of a group's weight
_UPPER_LIMIT = 0.9  # confidence that the variance between samples is at most the one used


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
        Their numbers of rows, in the data and, without clusters, in every simulated sample.
    clusters : tuple of int or None
        Their numbers of clusters, in the data and in every simulated sample; None without clusters.
    scheme, variance, alternative, n_resamples
        The options of the test.
    alpha : float
        The nominal level: the test rejects if its p-value is at most this.
    level : float
        The actual level: the share of samples with equal groups in which the test rejects. Samples
        in which the metric is undefined (or the standard error is zero, with `n_resamples` of 0)
        have no test and do not count.
    level_interval : tuple of float
        Clopper–Pearson interval for the level in infinitely many samples drawn from these rows: it
        allows for chance in the simulation only.
    level_total_interval : tuple of float
        The interval for the level in the population that the rows come from: it allows for chance
        in the simulation and in the observed sample, as far as a bootstrap of the rows shows it.
    gap : float
        The gap for which the power is computed: first group minus second.
    power : float
        The share of samples with this gap in which the test rejects. Samples without a test count
        as not rejected.
    power_interval, power_total_interval : tuple of float
        The same two intervals for the power.
    confidence_level : float
        The level of all intervals.
    n_simulations : int
        Number of samples with equal groups, and of samples with the gap.
    n_undefined : tuple of int
        Numbers of samples without a test: with equal groups, and with the gap.
    null : str
        How the groups were made equal.
    moved : tuple of float
        The share of each group's weight that this moved to other rows or clusters.
    notes : tuple of str
        Remarks that the reader of the result should know.
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
    level_total_interval: tuple[float, float]
    gap: float
    power: float
    power_interval: tuple[float, float]
    power_total_interval: tuple[float, float]
    confidence_level: float
    n_simulations: int
    n_undefined: tuple[int, int]
    null: str
    moved: tuple[float, float]
    notes: tuple[str, ...]
    seed: int

    @property
    def answer(self) -> str:
        """The level and the power in plain words."""
        level = _state_share(self.level, self.level_interval, self.level_total_interval)
        power = _state_share(self.power, self.power_interval, self.power_total_interval)
        return (
            f"At nominal level {format_level(self.alpha)}, this test rejects in {level} of samples "
            f"like yours with equal groups. {self._verdict()} It detects a gap of "
            f"{format_number(self.gap, signed=True)} in {power} of samples. The first interval "
            f"allows for chance in the simulation, the second for chance in your sample as well."
        )

    def _verdict(self) -> str:
        (low, high), (lowest, highest) = self.level_interval, self.level_total_interval
        if low <= self.alpha <= high:
            return "That agrees with the nominal level."
        often = "more often than it should" if self.alpha < low else "less often than it may"
        if lowest <= self.alpha <= highest:
            return f"That is {often}, or it is chance in your sample."
        return f"That is {often}."

    def _lines(self) -> list[tuple[str, str]]:
        counts, unit = (self.sizes, "row") if self.clusters is None else (self.clusters, "cluster")
        groups = (
            f"{format_count(n, unit)} of {shown(group)}"
            for n, group in zip(counts, self.groups, strict=True)
        )
        n = self.n_resamples
        draws = format_count(n, "permutation") if n else "normal limit"
        if n and self.scheme == Scheme.UNCONDITIONAL:
            draws = "exact"
        nominal = f"nominal level {format_level(self.alpha)}"
        gap = f"gap {format_number(self.gap, signed=True)}"
        ends = (
            (self.level_interval, self.level_total_interval),
            (self.power_interval, self.power_total_interval),
        )
        level, power = (
            f"{format_level(self.confidence_level)} interval {format_interval(one)} (simulation), "
            f"{format_interval(total)} (and sample)"
            for one, total in ends
        )
        return [
            ("sample", " and ".join(groups)),
            ("test", f"{self.scheme}, variance {self.variance}, {self.alternative}, {draws}"),
            ("level", f"{format_number(self.level)}  {nominal}; {level}"),
            ("power", f"{format_number(self.power)}  {gap}; {power}"),
            ("null", self.null),
        ]


def calibrate(
    y_true: Column,
    y_pred: Column | None = None,
    *,
    alpha: float = 0.05,
    gap: float | None = None,
    n_simulations: int = 1000,
    n_resamples: int = 499,
    confidence_level: float = 0.95,
    rng: Seed = None,
    n_jobs: int | None = None,
    progress: bool | None = None,
    **test_options: Any,
) -> Calibration:
    """Estimate the actual level and power of a permutation test on these data, by simulation.

    Parameters
    ----------
    y_true, y_pred, n_resamples
        As in :func:`fairperm.permutation_test`.
    alpha : float
        The nominal level: the test rejects if its p-value is at most this.
    gap : float, optional
        The gap, first group minus second, for which to compute the power; by default the observed
        one. With strata it is the gap in each of them.
    n_simulations : int
        Number of samples with equal groups, and of samples with the gap.
    confidence_level : float
        Level of the intervals for level and power.
    rng : int or numpy.random.Generator, optional
        Seed; the result does not depend on `n_jobs` or row order.
    n_jobs : int, optional
        Processes, through joblib; -1 for all cores.
    progress : bool, optional
        Whether to show a bar when it takes over a second; None: on a terminal or in a notebook.
    test_options
        Other arguments of :func:`fairperm.permutation_test`. `sensitive_features` and `metric` are
        required. A function cannot be the `metric`, because the influence of a row on it is not
        known (:func:`fairperm.register_metric` makes a metric with known influences).

    Returns
    -------
    Calibration

    Notes
    -----
    *Equal groups.* The weak null is imposed by reweighting the rows of each group, in each stratum,
    until the metric has the same value in both: the mean of the observed values, weighted by the
    rows that they depend on. Each label keeps its share in the group, except in regression. The
    weights are exp(λ·influence), the nearest to equal weights in Kullback–Leibler divergence; no
    influence counts for more than three times their mean size among rows of a label. If no weights
    of its own rows give a group that value (a rate of 0 has no rows to give weight to), rows of the
    other group with the same label are mixed in, as the result's ``null`` then states.

    *Samples.* Rows are drawn independently with replacement, by their weights, as many of each
    group as in the data; the number of positives varies. With `cluster`, whole clusters are
    reweighted, by the sum of their rows' influences, and drawn; one drawn twice counts as two.

    *Power.* The same with groups as observed, or with weights that give them the `gap` around the
    same mean.

    *Intervals.* The observed rows stand for the whole population, and another sample of it would
    give another level. Hence the simulation is repeated, with as many samples in all, from 25
    bootstrap samples of the rows (or clusters) that are made equal, or given the gap, in the same
    way. The variance between them, less that of the simulation, widens the
    ``level_total_interval``; it is taken at its upper 90 % confidence limit, because 25 samples
    show it only roughly. No bootstrap shows what is in the population but not in the rows.

    The level is that of this test in populations like these, not the probability that the observed
    result is wrong.

    Examples
    --------
    Base rates of 0.8 and 0.2, and a test that only shuffles labels:

    >>> import fairperm
    >>> rows = {
    ...     "y_true": [1] * 160 + [0] * 40 + [1] * 40 + [0] * 160,
    ...     "y_pred": [0] * 16 + [1] * 184 + [0] * 8 + [1] * 192,
    ...     "sensitive_features": ["a"] * 200 + ["b"] * 200,
    ... }
    >>> fairperm.calibrate(
    ...     **rows, metric="fnr", scheme="pooled", variance=None, n_simulations=200, rng=1
    ... )
    At nominal level 5 %, this test rejects in 12.0 % (7.8 % to 17.3 %; 1.6 % to 36.3 %) of
    samples like yours with equal groups. That is more often than it should, or it is chance
    in your sample. It detects a gap of −0.100 in 51.5 % (44.3 % to 58.6 %; 20.6 % to
    81.6 %) of samples. The first interval allows for chance in the simulation, the second
    for chance in your sample as well.
      sample  200 rows of 'a' and 200 rows of 'b'
      test    pooled, variance None, two-sided, 499 permutations
      level   0.120  nominal level 5 %; 95 % interval 0.078 to 0.173 (simulation), 0.016 to
              0.363 (and sample)
      power   0.515  gap −0.100; 95 % interval 0.443 to 0.586 (simulation), 0.206 to 0.816
              (and sample)
      null    Rows were reweighted until false_negative_rate was 0.120 in both groups, with
              the share of each label unchanged; this moved 1.6 % of 'a' and 1.6 % of 'b'.

    More simulations make both intervals narrower.
    """
    alpha = checks.fraction("alpha", alpha)
    n_simulations = checks.integer("n_simulations", n_simulations, 1, MAX_SIMULATIONS)
    resampling = check_resampling(n_resamples, rng, n_jobs, progress, fewest=0)
    given = {"y_true": y_true, "y_pred": y_pred, **test_options}
    test = RepeatedTest.of(given, resampling, confidence_level)
    _check_resolution(resampling.n_resamples, alpha, test.observed.ordering)
    own, observed = test.shares(), test.observed
    equal = _equalize_groups(test, own)
    apart = own if gap is None else _separate_groups(test, own, gap)
    distance = observed.difference if gap is None else float(gap)
    populations = [Population(test.table, test.sizes(), chances) for chances in (equal, apart)]
    counts = test.count_rejections(populations, alpha, n_simulations, resampling)
    (rejected, without), (found, missing) = counts
    if without == n_simulations:
        rule = "a metric that is defined in samples of this size"
        raise UndefinedMetricError("metric", rule, observed.metric, "Use larger groups.")
    repopulate = partial(_make_populations, distance)
    resampled = test.count_in_resamples(repopulate, alpha, n_simulations, resampling)
    n_tests = n_simulations - without
    level = SimulatedShare(rejected, n_tests, [(k, n - lost) for n, ((k, lost), _) in resampled])
    power = SimulatedShare(found, n_simulations, [(k, n) for n, (_, (k, _)) in resampled])
    moved = [float(np.abs(one - of).sum() / 2) for one, of in zip(equal, own, strict=True)]
    return Calibration(
        metric=observed.metric,
        groups=observed.groups,
        sizes=_count_by_group(test.table),
        clusters=test.sizes() if test.plan.clustered else None,
        scheme=observed.scheme,
        variance=observed.variance,
        alternative=observed.alternative,
        n_resamples=resampling.n_resamples,
        alpha=alpha,
        level=level.value,
        level_interval=level.interval(confidence_level),
        level_total_interval=level.total_interval(confidence_level),
        gap=distance,
        power=power.value,
        power_interval=power.interval(confidence_level),
        power_total_interval=power.total_interval(confidence_level),
        confidence_level=confidence_level,
        n_simulations=n_simulations,
        n_undefined=(without, missing),
        null=" ".join(_describe_null(test, equal, moved)),
        moved=(moved[0], moved[1]),
        notes=(*observed.notes, *_note_large_changes(observed.groups, moved)),
        seed=resampling.seed,
    )


@dataclass(frozen=True, slots=True)
class SimulatedShare:
    """Rejections among simulated samples; ``resampled`` the same for bootstrap samples."""

    rejected: int
    n: int
    resampled: Sequence[tuple[int, int]]

    @property
    def value(self) -> float:
        """Return the share of samples in which the test rejects."""
        return self.rejected / self.n

    def interval(self, confidence_level: float) -> tuple[float, float]:
        """Return an interval for the share in infinitely many samples of the user's rows."""
        return clopper_pearson(self.rejected, self.n, confidence_level)

    def total_interval(self, confidence_level: float) -> tuple[float, float]:
        """Return an interval for the share in the population that the user's rows come from."""
        # it is Clopper and Pearson's for a smaller number of simulations: that with which chance
        # alone would be as large as the chance in the simulation and in the user's sample together
        between = self.variance_between()
        typical = (self.rejected + 0.5) / (self.n + 1)
        n = self.n / (1 + self.n * between / (typical * (1 - typical)))
        return clopper_pearson(self.value * n, n, confidence_level) if n > 0 else (0.0, 1.0)

    def variance_between(self) -> float:
        """Return an upper limit of the variance of the share between samples like the user's."""
        # The variance between bootstrap samples is that of their shares less that of a binomial
        # distribution. A few samples estimate it roughly; hence the upper limit.
        from scipy.special import gammaincinv

        counts = np.array([pair for pair in self.resampled if pair[1] > 0], np.float64)
        if len(counts) < 2:
            return math.inf
        rejected, n = counts.T
        mean = rejected.sum() / n.sum()
        freedom = len(counts) - 1
        largest = np.sum((rejected / n - mean) ** 2) / (
            2 * gammaincinv(freedom / 2, 1 - _UPPER_LIMIT)
        )
        return max(0.0, float(largest - np.mean(mean * (1 - mean) / n)))


def _check_resolution(n_resamples: int, alpha: float, ordering: str) -> None:
    """Raise InputError for so few permutations that the test could never reject."""
    n_tails = 2 if ordering == "two-sided" else 1
    fewest = math.ceil(n_tails / alpha - 1e-9) - 1
    if 0 < n_resamples < fewest:
        rule = f"at least {fewest:,} for {argument('alpha', alpha)}"
        hint = "With fewer random permutations no p-value is small enough."
        raise InputError("n_resamples", rule, n_resamples, hint)


def _count_by_group(table: Sample) -> tuple[int, int]:
    """Return the size of each of two groups."""
    first, second = table.sizes().values()
    return first, second


def _equalize_groups(test: RepeatedTest, own: tuple[Array, Array]) -> tuple[Array, Array]:
    """Return chances of units with which the metric is the same in both groups."""
    metric = test.plan.metric
    if metric.is_function:
        hint = "register_metric makes a metric of a function of means."
        rule = "a metric by name: the influence of a row on a function is not known"
        raise InputError("metric", rule, metric.name, hint)
    try:
        return impose_gap(test.table, metric.parts, own, 0.0)
    except UnreachableError:
        rule = f"a metric that weights of {test.unit}s can make equal in both groups"
        hint = f"The groups have too few different {test.unit}s."
        raise InputError("metric", rule, metric.name, hint) from None


def _make_populations(gap: float, test: RepeatedTest) -> list[Population]:
    """Return the rows' populations with equal groups, and with this gap."""
    # Raises UnreachableError if no weights make one of them. Several gaps stay as they are.
    own, parts = test.shares(), test.plan.metric.parts
    equal = impose_gap(test.table, parts, own, 0.0)
    apart = impose_gap(test.table, parts, own, gap) if len(parts) == 1 else own
    return [Population(test.table, test.sizes(), chances) for chances in (equal, apart)]


def _separate_groups(
    test: RepeatedTest, own: tuple[Array, Array], gap: object
) -> tuple[Array, Array]:
    """Return chances of units with which the groups have this gap."""
    distance = checks.number("gap", gap, "a number other than 0")
    if distance == 0:
        raise InputError(
            "gap", "a number other than 0", gap, "The level is the power without a gap."
        )
    parts = test.plan.metric.parts
    if len(parts) > 1:
        name = test.plan.metric.name
        raise InputError(f"{argument('gap')} cannot be used with {name}, which has several gaps.")
    try:
        return impose_gap(test.table, parts, own, distance)
    except UnreachableError:
        first, second = (compute_values(test.table, parts, share)[0] for share in own)
        hint = (
            f"The groups have {format_number(first)} and {format_number(second)}, which limits "
            "gaps around their mean."
        )
        rule = f"a gap that weights of {test.unit}s can make in {test.plan.metric.name}"
        raise InputError("gap", rule, gap, hint) from None


def _describe_null(
    test: RepeatedTest, equal: tuple[Array, Array], moved: list[float]
) -> Iterator[str]:
    """Yield sentences about how the groups were made equal."""
    parts, groups = test.plan.metric.parts, test.observed.groups
    names = " and ".join(part.name for part in parts)
    units = f"{test.unit}s".capitalize()
    same = "was the same in both groups" if len(parts) == 1 else "were the same in both groups"
    if len(parts) == test.observed.n_strata == 1:
        value = compute_values(test.table, parts, equal[0])[0]
        same = f"was {format_number(value)} in both groups"
    where = " in every stratum" if test.observed.n_strata > 1 else ""
    kept = (
        ", with the share of each label unchanged" if keeps_label_shares(test.table, parts) else ""
    )
    first, second = (
        f"{format_percent(one)} of {shown(g)}" for one, g in zip(moved, groups, strict=True)
    )
    yield (
        f"{units} were reweighted until {names} {same}{where}{kept}; this moved {first} and "
        f"{second}."
    )
    for side, group in enumerate(groups):
        if (equal[side][select_units(test.table).group != side] > 0).any():
            yield f"{units} of {shown(groups[1 - side])} were mixed into {shown(group)}."


def _note_large_changes(groups: tuple[Hashable, Hashable], moved: list[float]) -> Iterator[str]:
    """Yield a note for each group that changed much."""
    for group, much in zip(groups, moved, strict=True):
        if much > _LARGE_CHANGE:
            yield (
                f"Making the groups equal moved {format_percent(much)} of {shown(group)}: the "
                "level is that of a population unlike it."
            )


def _state_share(share: float, interval: tuple[float, float], total: tuple[float, float]) -> str:
    ends = (" to ".join(map(format_percent, one)) for one in (interval, total))
    return f"{format_percent(share)} ({'; '.join(ends)})"
