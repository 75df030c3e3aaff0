"""The default test of a gap and its rivals, the other tests in use, on one data set.

The rival permutation tests exchange labels among all rows and share their draws. The bootstrap
tests resample each group separately and share their samples.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from fairperm._utils import streams
from fairperm.data.sample import Sample
from fairperm.engines.estimates import join_gaps, variance_of_defined
from fairperm.engines.kernels.kernel import kernel
from fairperm.engines.resampling import blocks
from fairperm.errors import UndefinedMetricError
from fairperm.hypothesis_tests import groups, small_groups
from fairperm.hypothesis_tests.comparison import Comparison
from fairperm.hypothesis_tests.plan import Options, Plan
from fairperm.inference.null import Null, pvalue, tie_tolerance
from fairperm.metrics.registry import get_metric
from studies import simulate
from studies.simulate import GROUPS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from fairperm.engines.choice import Engine
    from fairperm.engines.estimates import Gaps
    from fairperm.hypothesis_tests.results.gaps import PermutationTestResult
    from studies.calibration.grid import Setting

    Array = NDArray[np.float64]

DEFAULT = "fairperm's default"
PLAIN, WALD, LIFT = "un-studentized", "wald-studentized", "LiFT's shortcut"
BASIC, PERCENTILE = "basic bootstrap", "percentile bootstrap"
Z, FISHER, DELONG, WELCH = "two-proportion z", "Fisher", "DeLong z", "Welch t"
TESTS = (DEFAULT, PLAIN, WALD, LIFT, BASIC, PERCENTILE, Z, FISHER, DELONG, WELCH)
COUNT, WARNED = len(TESTS), len(TESTS) + 1  # two more columns: see run_tests
_NUMBERS_AT_ONCE = 1 << 18  # numbers of a bootstrap that fit into the cache


def list_tests(metric: str) -> tuple[str, ...]:
    """Return the tests of a metric, without wald if the default has the same standard error."""
    common = (DEFAULT, PLAIN, LIFT, BASIC, PERCENTILE)
    own: tuple[str, ...] = (WALD, Z, FISHER)
    if not get_metric(metric).is_rate:
        tests = {"f1_score": (WALD,), "roc_auc": (WALD, DELONG), "mean_squared_error": (WELCH,)}
        own = tests.get(metric, ())
    return tuple(test for test in TESTS if test in {*common, *own})


def run_tests(
    setting: Setting, n_resamples: int, rng: np.random.Generator, *, rivals: bool = True
) -> Array:
    """Return the p-values of a data set (NaN without a test), its count and if the default warns.

    The count is :func:`count_smaller_group`.
    """
    table = draw_table(setting.population, rng)
    results = np.full(len(TESTS) + 2, np.nan)
    resampling = blocks.Resampling(n_resamples, int(rng.integers(2**53)), None, False)
    metric = get_metric(setting.metric)
    best = Plan.choose(metric, "auto", "auto")
    try:
        default = groups.compare(table, best, GROUPS, Options(resampling=resampling))
    except UndefinedMetricError:
        results[[COUNT, WARNED]] = 0, True  # an error warns of it
        return results
    plan = Plan.choose(metric, "pooled", "wald" if metric.is_rate else best.metric.closed_variance)
    comparison = Comparison.of(table, plan, GROUPS, None)
    results[[COUNT, WARNED]] = count_smaller_group(comparison, default), bool(default.notes)
    pvalues = {DEFAULT: default.pvalue}
    if rivals:
        pvalues |= _run_rivals(table, comparison, plan, resampling, rng)
    for test in list_tests(setting.metric):
        results[TESTS.index(test)] = pvalues.get(test, math.nan)
    return results


def draw_table(population: Any, rng: np.random.Generator) -> Sample:
    """Return a random data set as the table that tests take."""
    if isinstance(population, simulate.Rates):
        return tabulate_counts(population.counts(1, rng)[0])
    columns = population.draw(rng)
    group = (columns.pop("group") == GROUPS[1]).astype(np.intp)
    return _make_table(columns, group, np.ones_like(group))


def tabulate_counts(counts: NDArray[np.int64]) -> Sample:
    """Return counts by group and cell (tn, fp, fn, tp) as a table that tests take."""
    group, cell = np.nonzero(counts)
    return _make_table({"y_true": cell >= 2, "y_pred": cell % 2 == 1}, group, counts[group, cell])


def count_smaller_group(comparison: Comparison, result: PermutationTestResult) -> float:
    """Return the smaller group's count of the rows that matter for the metric.

    That is the denominator of a rate (or of a function of a rate), the rarer label of an AUC, and
    the effective number of rows of the variance of other metrics.
    """
    metric = comparison.metric
    if metric.has_denominator:
        _, denominator = metric.parts[0].contributions
        return min(result.counts[group][denominator] for group in GROUPS)
    if metric.name == "roc_auc":
        return float(small_groups.labels(comparison).min())
    (found,) = small_groups.count_influential(comparison, rates=False)
    return float(found.effective.min())


def _make_table(
    columns: Mapping[str, NDArray[Any]], group: NDArray[np.intp], count: NDArray[np.int64]
) -> Sample:
    return Sample(
        columns=columns,
        group=group,
        stratum=np.zeros_like(group),
        count=count,
        groups=GROUPS,
        strata=(None,),
    )


def _run_rivals(
    table: Sample,
    comparison: Comparison,
    plan: Plan,
    resampling: blocks.Resampling,
    rng: np.random.Generator,
) -> dict[str, float]:
    """Return the p-values of all tests of this metric but the default."""
    engine = comparison.engine(plan.variance)
    estimates = engine.observed()
    observed, scale = estimates.gaps(engine.weights), comparison.scale(estimates)
    permuted = join_gaps(list(_permute_gaps(engine, resampling)))
    bootstrap = _ROW_BOOTSTRAPS.get(comparison.metric.name)
    if bootstrap is None:
        resampled = _bootstrap_gaps(engine, resampling.n_resamples, rng)
    else:
        resampled = bootstrap(table, resampling.n_resamples, rng)
    gap, studentized = float(observed.difference[0, 0]), float(observed.studentized(scale)[0])
    pvalues = {
        PLAIN: _count_pvalue(permuted.difference[:, 0], gap),
        WALD: _count_pvalue(permuted.studentized(scale), studentized),
        LIFT: lift_pvalue(gap, permuted.difference[:, 0], resampled),
        BASIC: _count_pvalue(resampled - gap, gap),
        PERCENTILE: percentile_pvalue(resampled),
        DELONG: normal_pvalue(studentized),
    }
    if comparison.metric.is_rate:
        totals = [comparison.totals()[group] for group in GROUPS]
        k, m = ([one[name] for one in totals] for name in ("numerator", "denominator"))
        pvalues |= {Z: z_pvalue(k, m), FISHER: fisher_pvalue(k, m)}
    elif comparison.metric.name == "mean_squared_error":
        pvalues[WELCH] = welch_pvalue(*_square_errors(table))
    return pvalues


def _permute_gaps(engine: Engine, resampling: blocks.Resampling) -> Iterator[Gaps]:
    for block, n in enumerate(blocks.split_draws(resampling.n_resamples, engine.block_size)):
        rng = streams.stream(resampling.seed, streams.PERMUTATIONS, block)
        yield engine.permuted(n, rng).gaps(engine.weights)


def _bootstrap_gaps(engine: Engine, n: int, rng: np.random.Generator) -> Array:
    estimates = engine.with_variance(None).bootstrapped(n, rng)
    return estimates.gaps(engine.weights).difference[:, 0]


def _count_pvalue(null: Array, observed: float) -> float:
    """Return the share of draws as far from zero as the observed one, which counts as a draw."""
    tolerance = tie_tolerance(observed, np.ones(1), np.ones(1))
    return pvalue(Null(null), observed, "symmetric", tolerance, 0.95).value


# Tests in closed form.


def z_pvalue(k: Sequence[float], m: Sequence[float]) -> float:
    """Return the p-value of the z test of two proportions, with the pooled rate."""
    rate = sum(k) / sum(m)
    error = math.sqrt(rate * (1 - rate) * (1 / m[0] + 1 / m[1]))
    return normal_pvalue((k[0] / m[0] - k[1] / m[1]) / error) if error > 0 else 1.0


def fisher_pvalue(k: Sequence[float], m: Sequence[float]) -> float:
    """Return the p-value of Fisher's exact test, which orders tables by probability."""
    from scipy.stats import fisher_exact

    table = [[int(one), int(of - one)] for one, of in zip(k, m, strict=True)]
    return float(fisher_exact(table).pvalue)


def welch_pvalue(first: Array, second: Array) -> float:
    """Return the p-value of Welch's t test of two means."""
    from scipy.stats import ttest_ind

    return float(ttest_ind(first, second, equal_var=False).pvalue)


def normal_pvalue(z: float) -> float:
    """Return the two-sided p-value of a standard normal deviate."""
    return math.erfc(abs(z) / math.sqrt(2))


# Tests by the bootstrap.


def lift_pvalue(gap: float, permuted: Array, resampled: Array) -> float:
    """Return the p-value of LiFT's shortcut.

    The gap is divided by its standard deviation over bootstrap samples, the permuted gaps by
    their own standard deviation.
    """
    error, spread = (math.sqrt(variance_of_defined(one)) for one in (resampled, permuted))
    if error > 0 and spread > 0:
        return _count_pvalue(permuted / spread, gap / error)
    return 1.0 if gap == 0 else 1 / (len(permuted) + 1)


def percentile_pvalue(resampled: Array) -> float:
    """Return one minus the level of the narrowest percentile interval that contains zero."""
    undefined = np.isnan(resampled).sum()
    tail = min((resampled <= 0).sum(), (resampled >= 0).sum()) + undefined
    return min(1.0, 2 * float(tail + 1) / (len(resampled) + 1))


@kernel
def compute_aucs(positive: NDArray[np.bool_], rows: NDArray[np.int32]) -> NDArray[np.float64]:
    """Return the AUC of every sample (axis 0) of rows in the order of their scores, without ties.

    It is NaN for samples with one label only.
    """
    aucs = np.empty(len(rows))
    times = np.empty(len(positive), np.int64)
    for sample in range(len(rows)):
        times[:] = 0
        for row in rows[sample]:
            times[row] += 1
        positives = negatives = pairs = 0
        for row in range(len(positive)):
            if positive[row]:
                positives += times[row]
                pairs += times[row] * negatives
            else:
                negatives += times[row]
        aucs[sample] = pairs / (positives * negatives)
    return aucs


def compute_means(values: Array, rows: NDArray[np.int32]) -> Array:
    """Return the mean of every sample (axis 0) of rows."""
    return np.asarray(values[rows].mean(axis=1))


def _bootstrap_statistic(
    statistic: Callable[[Any, NDArray[np.int32]], Array],
    values: NDArray[Any],
    n: int,
    rng: np.random.Generator,
) -> Array:
    """Return a statistic of n bootstrap samples of values, computed in pieces."""
    size = len(values)
    pieces = [
        statistic(values, rng.integers(size, size=(piece, size), dtype=np.int32))
        for piece in blocks.split_draws(n, max(1, _NUMBERS_AT_ONCE // size))
    ]
    return np.concatenate(pieces)


def _bootstrap_auc_gaps(table: Sample, n: int, rng: np.random.Generator) -> Array:
    label, score = table.columns["y_true"], table.columns["y_score"]
    first, second = (
        _bootstrap_statistic(compute_aucs, label[mine][np.argsort(score[mine])], n, rng)
        for mine in (table.group == 0, table.group == 1)
    )
    return first - second


def _bootstrap_error_gaps(table: Sample, n: int, rng: np.random.Generator) -> Array:
    first, second = (
        _bootstrap_statistic(compute_means, one, n, rng) for one in _square_errors(table)
    )
    return first - second


def _square_errors(table: Sample) -> tuple[Array, Array]:
    square = (table.columns["y_pred"] - table.columns["y_true"]) ** 2
    return square[table.group == 0], square[table.group == 1]


_ROW_BOOTSTRAPS = {"roc_auc": _bootstrap_auc_gaps, "mean_squared_error": _bootstrap_error_gaps}
