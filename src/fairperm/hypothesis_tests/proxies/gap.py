"""The test of the gap between two groups that are known only as probabilities."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fairperm._utils import streams
from fairperm._utils.checks import choice
from fairperm._utils.formatting import (
    drop_decimals,
    format_count,
    format_interval,
    format_level,
    name_of_gap,
)
from fairperm.engines.estimates import Gaps, join_gaps
from fairperm.engines.resampling.shared_labels import PermutationRequest
from fairperm.errors import InputError, argument, shown
from fairperm.hypothesis_tests import cautions, small_groups
from fairperm.hypothesis_tests.matched import check_statistic, check_values
from fairperm.hypothesis_tests.proxies.bounds import bound_gap
from fairperm.hypothesis_tests.proxies.estimates import Rows
from fairperm.hypothesis_tests.reaches import ErrorReach
from fairperm.hypothesis_tests.results.proxies import ProxyTestResult
from fairperm.hypothesis_tests.run import Observed, PermutationTest
from fairperm.inference.null import tie_tolerance
from fairperm.inference.reference import NormalLimit
from fairperm.inference.stopping import min_draws_for
from fairperm.metrics.definition import Variance, is_of_totals

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    from fairperm._utils.arrays import Array, Codes
    from fairperm.data.sample import Sample
    from fairperm.engines.resampling.blocks import Stop
    from fairperm.hypothesis_tests.plan import Options
    from fairperm.hypothesis_tests.run import Tested
    from fairperm.metrics.definition import AnyMetric, Metric

PROXIES = "probabilities"  # the scheme in results
_NUMBERS_AT_ONCE = 1 << 16  # probabilities that are permuted together, in the processor's cache


def choose_proxied(table: Sample, metric: AnyMetric, groups: Sequence[Hashable]) -> Metric:
    """Return the metric. Raises InputError if it is no function of totals."""
    chosen = metric.for_table(table, groups)
    if not is_of_totals(chosen) or not chosen.smooth:
        rule = (
            f"a rate, a mean or another function of totals with {argument('group_probabilities')}"
        )
        raise InputError("metric", rule, metric.name)
    return chosen


@dataclass(frozen=True, slots=True)
class ProxySample:
    """The rows of a table in an order of their own, and the influences of two groups' gap."""

    rows: Rows
    cluster: Codes | None
    cell: Codes | None

    @classmethod
    def of(cls, table: Sample, metric: Metric) -> ProxySample:
        """Sort the rows by their values: their original order changes no number."""
        table = table.expand()
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            contributions = metric.checked_matrix(table.columns)
        shares = np.asarray(table.probabilities)
        cells = [] if table.proxy is None else [table.proxy]
        order = np.lexsort([*cells, *contributions.T, *shares.T])
        cluster = None
        if table.cluster is not None:
            cluster = np.unique(table.cluster[order], return_inverse=True)[1].ravel()
        rows = Rows.of(metric, shares[order].T, contributions[order], table.assumption)
        cell = None if table.proxy is None else table.proxy[order]
        return cls(rows, cluster, cell)

    @property
    def can_permute(self) -> bool:
        """Whether exchanging the rows' probabilities tests that two groups are equal.

        A third group makes outcomes depend on the probabilities also where two are equal, and
        the rows of a cluster cannot be exchanged one by one.
        """
        return len(self.rows.shares) == 2 and self.cluster is None

    def influences(self, *, leaves_one_out: bool) -> Array:
        """Return how far each row, or cluster, moves each group's value."""
        if leaves_one_out:
            return self.rows.leave_out(self.cluster)
        return self.rows.estimate()[1]

    def permuted(self, sign: int, n: int, rng: np.random.Generator) -> Gaps:
        """Return the gaps of so many random exchanges of the rows' probabilities."""
        first = self.rows.shares[0]
        at_once = max(1, _NUMBERS_AT_ONCE // len(first))
        found = []
        for start in range(0, n, at_once):
            drawn = np.tile(first, (min(at_once, n - start), 1))
            rng.permuted(drawn, axis=1, out=drawn)
            with np.errstate(divide="ignore", invalid="ignore"):
                estimates = replace(self.rows, shares=np.stack([drawn, 1 - drawn])).estimate()
                found.append(make_gaps(*estimates, sign))
        return join_gaps(found)


def make_gaps(value: Array, influence: Array, sign: int) -> Gaps:
    """Return the gaps of two groups, one for each draw."""
    gap = sign * (value[0] - value[1])
    error = np.sqrt(((influence[0] - influence[1]) ** 2).sum(axis=-1))
    return Gaps(np.reshape(gap, (-1, 1)), np.reshape(error, (-1, 1)))


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxyTest(PermutationTest[Gaps]):
    """The gap between two groups known as probabilities, before its permutations."""

    observed: Observed
    read: ProxySample
    sign: int
    scale: Array
    is_limit: bool
    sizes: Mapping[str, Sequence[float]]
    sample: Mapping[str, Any]

    @classmethod
    def of(
        cls, table: Sample, metric: AnyMetric, groups: tuple[Hashable, ...], options: Options
    ) -> ProxyTest:
        """Studentize the observed gap. Raises UndefinedMetricError without a standard error."""
        for name, given in (("scheme", options.scheme), ("variance", options.variance)):
            choice(name, given, ("auto",) if name == "scheme" else ("auto", Variance.DELTA.value))
        if options.stratum_weights is not None:
            name = argument("group_probabilities")
            raise InputError(f"{argument('stratum_weights')} cannot be used with {name}.")
        part = choose_proxied(table, metric, groups)
        read = ProxySample.of(table, part)
        pair = [table.groups.index(one) for one in groups]
        is_limit = options.is_limit or not read.can_permute
        with np.errstate(divide="ignore", invalid="ignore"):
            values = read.rows.estimate()[0][pair]
            influence = read.influences(leaves_one_out=is_limit)[pair]
        check_values(part, groups, values)
        span = part.span if np.isfinite(part.span) else float(np.abs(values).max())
        scale = np.array([span])
        gaps = make_gaps(values, influence, 1).drop_rounding(scale)
        gap, error = gaps.difference[0], gaps.standard_error[0]
        statistic = float(gaps.studentized(scale)[0])
        check_statistic(part, statistic, options)
        observed = Observed(
            statistic=statistic,
            alternative=options.alternative,
            ordering=options.alternative,
            tolerance=tie_tolerance(statistic, scale, error),
            estimate=float(gap[0]),
            level=options.confidence_level,
            min_draws=min_draws_for(options.confidence_level),
            # an estimate may be impossible, such as a rate below 0: its interval holds it
            reach=ErrorReach(gap, error, max(part.span, float(abs(gap[0])))),
        )
        sizes = _effective_sizes(read, part, pair)
        sample: dict[str, Any] = {
            "metric": part.name,
            "attribute": table.attribute,
            "groups": groups,
            "values": dict(zip(groups, values.tolist(), strict=True)),
            "standard_errors": dict(
                zip(groups, np.sqrt((influence**2).sum(axis=1)).tolist(), strict=True)
            ),
            "counts": _count(table, read, groups),
            "difference": observed.estimate,
            "part": None,
            "standard_error": float(error[0]),
            "scheme": PROXIES,
            "variance": Variance.DELTA.value,
            "n_strata": 1,
            "n_dropped": table.n_dropped,
            "seed": options.seed,
            "validity": _state_validity(part, read, is_limit=is_limit),
            "binning_errors": None,
            "proxy_assumption": table.assumption,
            "notes": (
                *_note_few(influence, groups, part, is_clustered=read.cluster is not None),
                *_note_impossible(part, groups, values),
                *table.notes,
            ),
        }
        if read.cell is not None:
            bounds, interval = bound_gap(
                part,
                read.rows.shares[pair],
                read.rows.contributions,
                read.cell,
                read.cluster,
                options.confidence_level,
                streams.stream(options.seed, streams.HALVES),
            )
            note = _note_bounds(part, bounds, interval, groups, options.confidence_level)
            notes = (*sample["notes"], note)
            sample |= {"bounds": bounds, "bounds_interval": interval, "notes": notes}
        return cls(
            observed=observed,
            read=read,
            sign=1 if pair[0] == 0 else -1,
            scale=scale,
            is_limit=is_limit,
            sizes=sizes,
            sample=sample,
        )

    def result(self, tested: Tested) -> ProxyTestResult:
        """Return the result."""
        return tested.result(ProxyTestResult, **self.sample)

    @property
    def remarks(self) -> tuple[str, ...]:
        """The bounds."""
        return self.sample["notes"][-1:] if "bounds" in self.sample else ()

    def base_sizes(self) -> Mapping[str, Sequence[float]]:
        """Return how many rows of known groups would say as much."""
        return self.sizes

    def known_reference(self) -> NormalLimit | None:
        """Return the normal limit where probabilities cannot be exchanged, or if it is wanted."""
        return NormalLimit() if self.is_limit else None

    def request(self, stop: Stop[Gaps]) -> PermutationRequest[Gaps]:
        """Return what to permute."""

        def draw(n: int, rng: np.random.Generator) -> Gaps:
            return self.read.permuted(self.sign, n, rng)

        return PermutationRequest.of(draw, stop)

    def statistics(self, blocks: Sequence[Gaps], first: int | None) -> Array:
        """Return the studentized gaps."""
        del first
        return join_gaps(blocks).drop_rounding(self.scale).studentized(self.scale)


def _effective_sizes(
    read: ProxySample, metric: Metric, pair: Sequence[int]
) -> dict[str, list[float]]:
    """Return the effective numbers of rows or clusters that both values rest on."""
    unit = "effective " if read.cluster is None else "effective clusters of "
    rows = read.rows
    return {
        f"{unit}{name}": rows.effective_sizes(base, read.cluster)[pair].tolist()
        for name, base in metric.base_rows(rows.contributions).items()
    }


def _count(
    table: Sample, read: ProxySample, groups: Sequence[Hashable]
) -> dict[Hashable, dict[str, float]]:
    """Return the expected number of rows of each group."""
    sizes = table.sizes()
    found: dict[Hashable, dict[str, float]] = {one: {"rows": sizes[one]} for one in groups}
    if read.cluster is not None:
        for one in found.values():
            one["clusters"] = int(read.cluster.max()) + 1
    return found


def _state_validity(metric: Metric, read: ProxySample, *, is_limit: bool) -> str:
    """Return for which null the p-value is valid, and whether exactly or asymptotically."""
    weak = f"equal {metric.name}; the groups may differ in other ways"
    if len(read.rows.shares) > 2:
        return f"Asymptotically valid for the weak null ({weak}) if the assumption holds."
    # with two groups, equal values and either assumption make outcomes unrelated to the proxy
    text = f"Asymptotically valid for the weak null ({weak}) under either assumption"
    if is_limit:
        return f"{text}: the normal limit, without permutations."
    return f"{text}, and exact if outcomes are independent of the proxy."


def _note_few(
    influence: Array, groups: Sequence[Hashable], metric: Metric, *, is_clustered: bool
) -> list[str]:
    """Return a note if few rows or clusters make the gap's standard error."""
    moved = influence[0] - influence[1]
    n = small_groups.effective_number(moved, np.ones(len(moved)))
    least = small_groups.MIN_INFLUENTIAL_ROWS
    if n >= least:
        return []
    if n == 0:
        return [cautions.note_zero_error(metric.name)]
    one = "cluster" if is_clustered else "row"
    few = format_count(min(max(round(n), 1), least - 1), one)
    return [
        f"Only about {few} of groups {shown(groups[0])} and {shown(groups[1])} "
        f"{'shows' if few == f'1 {one}' else 'show'} how the gap in {metric.name} varies: with "
        f"fewer than {least} its standard error is unreliable, and the test may reject too often."
    ]


def _note_bounds(
    metric: Metric,
    bounds: tuple[float, float],
    interval: tuple[float, float],
    groups: Sequence[Hashable],
    level: float,
) -> str:
    """Return the bounds, with the interval that holds them."""
    first, second = (str(drop_decimals(one)) for one in groups)
    return (
        f"Without the assumption, the gap in {metric.name}, {name_of_gap(first, second)}, lies "
        f"from {format_interval(bounds, signed=True)} ({format_level(level)} interval "
        f"{format_interval(interval, signed=True)})."
    )


def _note_impossible(metric: Metric, groups: Sequence[Hashable], values: Array) -> list[str]:
    """Return a note on rates below 0 or above 1, which least squares can give."""
    if not metric.has_denominator:
        return []
    found = [shown(one) for one, v in zip(groups, values, strict=True) if not 0 <= v <= 1]
    if not found:
        return []
    return [
        f"The estimated {metric.name} of {' and '.join(found)} is not between 0 and 1: there are "
        "too few rows, or the assumption does not hold."
    ]
