"""The default test of a gap, and every other that people use, on one data set.

Permutation tests other than the default exchange labels among all rows; they share their draws,
and so do the tests that bootstrap, which resample each group by itself.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from fairperm import simulate
from fairperm._utils import streams
from fairperm.data.table import Table
from fairperm.engines.estimates import concatenate, variance_of_defined
from fairperm.engines.resampling import blocks
from fairperm.errors import UndefinedMetricError
from fairperm.hypothesis_tests import gap_test, small_groups
from fairperm.hypothesis_tests.comparison import Comparison
from fairperm.hypothesis_tests.options import Options
from fairperm.hypothesis_tests.plan import Plan
from fairperm.inference.null import Null, extreme, pvalue, tie_tolerance
from fairperm.metrics.registry import get_metric
from fairperm.simulate import GROUPS
from fairperm.studies.calibration.resampled_auc import resampled_auc

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from fairperm.engines.choice import PairEngine
    from fairperm.engines.estimates import Gaps
    from fairperm.hypothesis_tests.results.gaps import PermutationTestResult
    from fairperm.studies.calibration.grid import Setting

    Array = NDArray[np.float64]

DEFAULT = "fairperm's default"
PLAIN, WALD, LIFT = "un-studentized", "wald-studentized", "LiFT's shortcut"
BASIC, PERCENTILE = "basic bootstrap", "percentile bootstrap"
Z, FISHER, DELONG, WELCH = "two-proportion z", "Fisher", "DeLong z", "Welch t"
TESTS = (DEFAULT, PLAIN, WALD, LIFT, BASIC, PERCENTILE, Z, FISHER, DELONG, WELCH)
COUNT, WARNED = len(TESTS), len(TESTS) + 1  # what else is known of a data set
_NUMBERS_AT_ONCE = 1 << 18  # of a bootstrap, so that they stay in the cache


def tests_of(metric: str) -> tuple[str, ...]:
    """Return the tests of a metric; where wald is the default's own error, it is none of them."""
    common = (DEFAULT, PLAIN, LIFT, BASIC, PERCENTILE)
    own: tuple[str, ...] = (WALD, Z, FISHER)
    if not get_metric(metric).is_rate:
        tests = {"f1_score": (WALD,), "roc_auc": (WALD, DELONG), "mean_squared_error": (WELCH,)}
        own = tests.get(metric, ())
    return tuple(test for test in TESTS if test in {*common, *own})


def in_one(
    setting: Setting, n_resamples: int, rng: np.random.Generator, *, rivals: bool = True
) -> Array:
    """Return the p-values of a data set, NaN where there is none, and what else is known of it."""
    table = drawn(setting.population, rng)
    found = np.full(len(TESTS) + 2, np.nan)
    resampling = blocks.Resampling(n_resamples, int(rng.integers(2**53)), None, False)
    metric = get_metric(setting.metric)
    best = Plan.choose(metric, "auto", "auto")
    try:
        default = gap_test.compare(table, best, GROUPS, Options(resampling=resampling))
    except UndefinedMetricError:
        found[[COUNT, WARNED]] = 0, True  # nobody can test it, and an error says so
        return found
    plan = Plan.choose(metric, "pooled", "wald" if metric.is_rate else best.metric.closed_variance)
    comparison = Comparison.of(table, plan, GROUPS, None)
    found[[COUNT, WARNED]] = counted(comparison, default), bool(default.notes)
    pvalues = {DEFAULT: default.pvalue}
    if rivals:
        pvalues |= _rivals(table, comparison, plan, resampling, rng)
    for test in tests_of(setting.metric):
        found[TESTS.index(test)] = pvalues.get(test, math.nan)
    return found


def drawn(population: Any, rng: np.random.Generator) -> Table:
    """Draw a data set, as the table that a test starts from."""
    if isinstance(population, simulate.Rates):
        return table_of_counts(population.counts(1, rng)[0])
    columns = population.draw(rng)
    group = (columns.pop("group") == GROUPS[1]).astype(np.intp)
    return _table(columns, group, np.ones_like(group))


def table_of_counts(counts: NDArray[np.int64]) -> Table:
    """Return counts by group and cell (tn, fp, fn, tp) as such a table."""
    group, cell = np.nonzero(counts)
    return _table({"y_true": cell >= 2, "y_pred": cell % 2 == 1}, group, counts[group, cell])


def counted(comparison: Comparison, result: PermutationTestResult) -> float:
    """Return how many the smaller group has of what the metric counts.

    A rate has its denominator, as has a function of one, the AUC the rarer label, other metrics
    the rows that their variance rests on.
    """
    metric = comparison.metric
    if metric.has_denominator:
        _, denominator = metric.parts[0].contributions
        return min(result.counts[group][denominator] for group in GROUPS)
    if metric.name == "roc_auc":
        return float(small_groups.labels(comparison).min())
    return float(small_groups.effective_rows(comparison)[metric.name].min())


def _table(
    columns: Mapping[str, NDArray[Any]], group: NDArray[np.intp], count: NDArray[np.int64]
) -> Table:
    return Table(
        columns=columns,
        group=group,
        stratum=np.zeros_like(group),
        count=count,
        groups=GROUPS,
        strata=(None,),
    )


def _rivals(
    table: Table,
    comparison: Comparison,
    plan: Plan,
    resampling: blocks.Resampling,
    rng: np.random.Generator,
) -> dict[str, float]:
    """Return the p-values of all tests but the default that there are of this metric."""
    engine = comparison.engine(plan.variance)
    estimates = engine.observed(streams.stream(0, streams.OBSERVED))
    observed, scale = estimates.gaps(engine.weights), comparison.scale(estimates)
    permuted = concatenate(list(_permuted(engine, resampling)))
    of_rows = _OF_ROWS.get(comparison.metric.name)
    if of_rows is None:
        resampled = _resampled(engine, resampling.n_resamples, rng)
    else:
        resampled = of_rows(table, resampling.n_resamples, rng)
    gap, studentized = float(observed.difference[0, 0]), float(observed.studentized(scale)[0])
    pvalues = {
        PLAIN: _share(permuted.difference[:, 0], gap),
        WALD: _share(permuted.studentized(scale), studentized),
        LIFT: lift(gap, permuted.difference[:, 0], resampled),
        BASIC: _share(resampled - gap, gap),
        PERCENTILE: percentile(resampled),
        DELONG: normal(studentized),
    }
    if comparison.metric.is_rate:
        totals = [comparison.totals()[group] for group in GROUPS]
        k, m = ([one[name] for one in totals] for name in ("numerator", "denominator"))
        pvalues |= {Z: two_proportions(k, m), FISHER: fisher(k, m)}
    elif comparison.metric.name == "mean_squared_error":
        pvalues[WELCH] = welch(*_squares(table))
    return pvalues


def _permuted(engine: PairEngine, resampling: blocks.Resampling) -> Iterator[Gaps]:
    for block, n in enumerate(blocks.pieces(resampling.n_resamples, engine.block_size)):
        rng = streams.stream(resampling.seed, streams.PERMUTATIONS, block)
        yield engine.permuted(n, rng).gaps(engine.weights)


def _resampled(engine: PairEngine, n: int, rng: np.random.Generator) -> Array:
    estimates = engine.with_variance(None).bootstrapped(n, rng)
    return estimates.gaps(engine.weights).difference[:, 0]


def _share(null: Array, observed: float) -> float:
    """Return the p-value: the share of draws that are as far from zero, this one among them."""
    tolerance = tie_tolerance(observed, np.ones(1), np.ones(1))
    return pvalue(Null(null), extreme(null, observed, "two-sided", tolerance), 0.95).value


# Tests in closed form.


def two_proportions(k: Sequence[float], m: Sequence[float]) -> float:
    """Return the p-value of the z test of two proportions, with one rate from both."""
    rate = sum(k) / sum(m)
    error = math.sqrt(rate * (1 - rate) * (1 / m[0] + 1 / m[1]))
    return normal((k[0] / m[0] - k[1] / m[1]) / error) if error > 0 else 1.0


def fisher(k: Sequence[float], m: Sequence[float]) -> float:
    """Return the p-value of Fisher's exact test, tables being as extreme as they are unlikely."""
    from scipy.stats import fisher_exact

    table = [[int(one), int(of - one)] for one, of in zip(k, m, strict=True)]
    return float(fisher_exact(table).pvalue)


def welch(first: Array, second: Array) -> float:
    """Return the p-value of Welch's t test of two means."""
    from scipy.stats import ttest_ind

    return float(ttest_ind(first, second, equal_var=False).pvalue)


def normal(z: float) -> float:
    """Return the two-sided p-value of a standard normal deviate."""
    return math.erfc(abs(z) / math.sqrt(2))


# Tests by the bootstrap.


def lift(gap: float, permuted: Array, resampled: Array) -> float:
    """Return the p-value of LiFT's shortcut.

    The gap is divided by its deviation in bootstrap samples, those of permutations by their own.
    """
    error, spread = (math.sqrt(variance_of_defined(one)) for one in (resampled, permuted))
    if error > 0 and spread > 0:
        return _share(permuted / spread, gap / error)
    return 1.0 if gap == 0 else 1 / (len(permuted) + 1)


def percentile(resampled: Array) -> float:
    """Return one less the level of the narrowest percentile interval that reaches zero."""
    undefined = np.isnan(resampled).sum()
    tail = min((resampled <= 0).sum(), (resampled >= 0).sum()) + undefined
    return min(1.0, 2 * float(tail + 1) / (len(resampled) + 1))


def resampled_mean(values: Array, rows: NDArray[np.int32]) -> Array:
    """Return the mean of every sample (axis 0) of rows."""
    return np.asarray(values[rows].mean(axis=1))


def _over_samples(
    statistic: Callable[[Any, NDArray[np.int32]], Array],
    values: NDArray[Any],
    n: int,
    rng: np.random.Generator,
) -> Array:
    """Return a statistic of so many bootstrap samples of values, some of them at once."""
    size = len(values)
    found = [
        statistic(values, rng.integers(size, size=(piece, size), dtype=np.int32))
        for piece in blocks.pieces(n, max(1, _NUMBERS_AT_ONCE // size))
    ]
    return np.concatenate(found)


def _auc_gaps(table: Table, n: int, rng: np.random.Generator) -> Array:
    label, score = table.columns["y_true"], table.columns["y_score"]
    first, second = (
        _over_samples(resampled_auc, label[mine][np.argsort(score[mine])], n, rng)
        for mine in (table.group == 0, table.group == 1)
    )
    return first - second


def _error_gaps(table: Table, n: int, rng: np.random.Generator) -> Array:
    first, second = (_over_samples(resampled_mean, one, n, rng) for one in _squares(table))
    return first - second


def _squares(table: Table) -> tuple[Array, Array]:
    square = (table.columns["y_pred"] - table.columns["y_true"]) ** 2
    return square[table.group == 0], square[table.group == 1]


_OF_ROWS = {"roc_auc": _auc_gaps, "mean_squared_error": _error_gaps}
