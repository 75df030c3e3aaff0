"""The gap between two groups at every threshold, with pointwise and simultaneous bands."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairperm._utils import checks, streams
from fairperm._utils.arrays import Array, Booleans, Places
from fairperm._utils.formatting import format_count
from fairperm._utils.signatures import complete, shares
from fairperm.data.arguments import (
    Alternative,
    Column,
    GroupArguments,
    Inputs,
    Label,
    MetricLike,
    SchemeName,
    StratumWeights,
    VarianceName,
)
from fairperm.data.columns import as_floats, library_of
from fairperm.data.lazy.thresholds import read_scores
from fairperm.data.sample import Sample
from fairperm.engines.resampling import blocks
from fairperm.errors import InputError, InputTypeError, Shown, argument, did_you_mean, listed
from fairperm.hypothesis_tests.comparison import Comparison
from fairperm.hypothesis_tests.comparison_checks import (
    find_compared_strata,
    find_shared_strata,
    read_stratum_weights,
)
from fairperm.hypothesis_tests.permutation import permutation_test
from fairperm.hypothesis_tests.plan import SCHEMES, Plan, check_resampling
from fairperm.hypothesis_tests.results.sweeps import MetricSweep, ThresholdSweepResult
from fairperm.hypothesis_tests.sweep.tables import Curve, CutGaps, Cuts, cut_rows
from fairperm.inference.bands import Bands, bands, join_bands
from fairperm.metrics.definition import Metric, Scheme, Variance, metrics_of_totals
from fairperm.metrics.registry import get_metric

__all__ = ["MetricSweep", "ThresholdSweepResult", "threshold_sweep"]

VARIANCES = ("auto", Variance.SCORE, Variance.WALD, Variance.HALL, Variance.DELTA, None)
_MAX_STATISTICS = 1 << 26  # 512 MiB, and as much again while they are compared
_MAX_THRESHOLDS = 1_000_000


class SweepArguments(GroupArguments, total=False):
    """Arguments of :func:`fairperm.permutation_test` that a sweep has, too."""

    pos_label: Label
    count: Column | None
    stratum_weights: StratumWeights | None
    scheme: SchemeName
    variance: VarianceName
    alternative: Alternative


@shares(permutation_test, SweepArguments)
def threshold_sweep(
    y_true: Column,
    y_score: Column,
    *,
    metric: MetricLike | Sequence[MetricLike],
    thresholds: int | ArrayLike | Literal["scores"] = 101,
    alpha: float = 0.05,
    n_resamples: int = 9999,
    **given: Unpack[SweepArguments],
) -> ThresholdSweepResult:
    """Test the gap between two groups at every threshold of a score, singly and all at once.

    Parameters
    ----------
    y_true, sensitive_features, data, groups, pos_label
        As in :func:`fairperm.permutation_test`.
    y_score : array-like or str
        Scores: a row is predicted positive if its score is at least the threshold.
    metric : str or list of str
        One metric or several out of :func:`fairperm.metric_names`, made of labels and
        predictions: rates, f1_score, balanced_accuracy and the like.
    thresholds : int, array-like or "scores"
        That many, equally spaced from 0 to 1 if all scores lie there and else from the lowest to
        the highest score; or these; or each distinct score.
    control_features, stratum_weights, missing, ignore_index
        As in :func:`fairperm.permutation_test`.
    scheme : {"auto", "pooled", "within_label", "denominator"}
        Among which rows group labels are exchanged, as in :func:`fairperm.permutation_test` but
        for all metrics and thresholds together. "auto" is "within_label" if that suits every
        metric, and else "pooled". "denominator" is for rates whose denominator does not depend
        on the threshold.
    variance : {"auto", "score", "wald", "hall", "delta"} or None
        What the gap is divided by in every permutation; "auto" is "score" for rates and f1_score,
        "hall" for other metrics, which takes skewness out, too. None does not studentize.
    alternative : {"two-sided", "symmetric", "greater", "less"}
        As in :func:`fairperm.permutation_test`; "two-sided" is twice the smaller tail for all
        metrics. One-sided bands have one end.
    alpha : float
        The level: how often the bands are left by chance where there is no gap.
    n_resamples : int
        Random permutations. Thresholds times permutations times metrics may be at most
        67,108,864, which takes about 1 GiB of memory.
    rng, n_jobs, progress
        As in :func:`fairperm.permutation_test`.

    Returns
    -------
    ThresholdSweepResult

    Notes
    -----
    At each threshold t, S(t) is the gap over its standard error, recomputed in every
    permutation. The pointwise band lies between the alpha/2 and 1 − alpha/2 quantiles of S(t) over
    the permutations, times the standard error in the sample. The simultaneous band has the
    quantiles of the largest S(t) and the largest −S(t) of all thresholds instead (max-T; Westfall
    and Young, 1993), each over its own 0.975 quantile, so that no threshold with long tails decides
    for all. A gap that was looked for must leave this band. It covers the thresholds of one
    metric; with several metrics, each has a simultaneous band of its own, and plots draw that
    one. The joint band has the quantiles over all thresholds and metrics: without any gap, a gap
    of some metric leaves it in at most alpha of all samples. With ``alternative="symmetric"``
    bands are ± the (1 − alpha) quantile of |S(t)| or of the largest |S(t)|, as in Figure 2 of
    DiCiccio et al. (2020). Undefined statistics count as extreme. One permutation serves all
    thresholds and metrics: rows are counted by label and by interval between thresholds, and one
    random draw of these counts makes every confusion table.

    References
    ----------
    DiCiccio, Vasudevan, Basu, Kenthapadi, Agarwal. Evaluating Fairness Using Permutation Tests.
    KDD 2020.

    Westfall, Young. Resampling-Based Multiple Testing. Wiley, 1993.

    Examples
    --------
    >>> import fairperm
    >>> from fairperm import threshold_sweep
    >>> compas = fairperm.datasets.load_compas()
    >>> result = threshold_sweep(
    ...     "two_year_recid", "decile_score", sensitive_features="sex", thresholds="scores",
    ...     metric="true_positive_rate", data=compas, rng=1,
    ... )
    >>> result
    At 2 of 10 thresholds the gap in true positive rate, Female − Male, is larger than
    chance explains; the largest is −7.8 points at 7 (p = 0.0104 for all thresholds
    together).
      largest gap  −0.078 at 7, Female − Male
      p-value      0.0104 over all thresholds; 2 gaps outside the simultaneous 95 % band
      validity     Exact for the weak null (equal true_positive_rate; base rates may differ)
                   at every sample size, given the rates' denominators. The same holds for
                   the simultaneous band.
      thresholds   10, with 9,999 draws
      rows         6,172 used, 0 left out for missing values
    >>> curve = result.curves["true_positive_rate"]
    >>> result.thresholds[curve.pvalue <= 0.05], result.thresholds[curve.adjusted_pvalue <= 0.05]
    (array([7., 8.]), array([7., 8.]))
    """
    given = complete(threshold_sweep, given)
    groups, options = given["groups"], SweepOptions.check(metric, alpha, n_resamples, given)
    inputs = Inputs.of(given, y_true=y_true, y_score=y_score)
    rows = ScoredRows.read(
        inputs, thresholds, lambda table: table.choose_groups(groups, for_all="sweep_pairs()")
    )
    first, second = rows.groups
    return options.sweep(rows, (first, second))


@dataclass(frozen=True, slots=True)
class ScoredRows:
    """Rows with labels and scores, the groups to compare, and the thresholds to cut scores at."""

    table: Sample
    groups: tuple[Hashable, ...]
    thresholds: Array
    precision: type[np.floating[Any]]
    frame_library: str | None

    @classmethod
    def read(
        cls,
        inputs: Inputs,
        thresholds: object,
        choose: Callable[[Sample], tuple[Hashable, ...]],
    ) -> ScoredRows:
        """Read the rows; the groups are chosen from their table."""
        for name in ("y_true", "y_score"):
            if getattr(inputs, name) is None:
                raise InputTypeError(name, "given", None)
        table, values, precision = read_scores(
            inputs,
            get_metric("roc_auc"),  # a metric of labels and scores reads the same columns
            lambda table: _thresholds(thresholds, table, choose(table)),
            need_all=isinstance(thresholds, str),
        )
        return cls(table, choose(table), values, precision, library_of(inputs.data))


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepOptions:
    """What a sweep tests, and how: checked."""

    plans: list[tuple[Metric, Plan]]
    stratum_weights: StratumWeights | None
    alternative: str
    alpha: float
    resampling: blocks.Resampling

    @classmethod
    def check(
        cls, metric: object, alpha: object, n_resamples: object, given: SweepArguments
    ) -> SweepOptions:
        """Check the options of a public function."""
        rng, n_jobs, progress = given["rng"], given["n_jobs"], given["progress"]
        return cls(
            plans=_plans(metric, given["scheme"], given["variance"]),
            resampling=check_resampling(n_resamples, rng, n_jobs, progress),
            alpha=checks.fraction("alpha", alpha),
            alternative=checks.choice("alternative", given["alternative"], checks.ALTERNATIVES),
            stratum_weights=given["stratum_weights"],
        )

    def sweep(self, rows: ScoredRows, pair: tuple[Hashable, Hashable]) -> ThresholdSweepResult:
        """Test the gaps of two groups at all thresholds."""
        n_resamples = self.resampling.n_resamples
        table, thresholds = rows.table, rows.thresholds
        _check_memory(len(thresholds), len(self.plans), n_resamples, len(table.strata))
        with np.errstate(over="ignore"):  # in the scores' own precision: 0.7 in 32 bits is 0.7
            cuts = thresholds.astype(rows.precision).astype(np.float64)
        counted, place = cut_rows(table, pair, cuts)
        every = self._count_cuts(counted, pair)
        values = [Curve.of(one, plan, every).values()[place] for one, plan in self.plans]
        is_compared = self._find_compared_strata(counted, pair)
        between = every
        if is_compared.any() and not is_compared[counted.stratum].all():
            kept = table.take(np.flatnonzero(is_compared[table.stratum]))
            counted, place = cut_rows(kept, pair, cuts)
            between = self._count_cuts(counted, pair)
        curves = [Curve.of(one, plan, between) for one, plan in self.plans]
        sizes = table.sizes()
        return ThresholdSweepResult(
            thresholds=thresholds,
            curves=_sweep(
                curves, values, place, pair, self.alpha, self.alternative, self.resampling
            ),
            groups=pair,
            alternative=self.alternative,
            alpha=self.alpha,
            scheme=curves[0].plan.scheme.value,
            n_resamples=n_resamples,
            n_strata=every.n_strata,
            sizes=(sizes[pair[0]], sizes[pair[1]]),
            n_dropped=table.n_dropped,
            seed=self.resampling.seed,
            frame_library=rows.frame_library,
            attribute=table.attribute,
        )

    def _count_cuts(self, counted: Sample, pair: tuple[Hashable, Hashable]) -> Cuts:
        """Return the tables at all cuts; every plan is checked, and all exchange the same rows."""
        compared = [
            Comparison.of(counted, plan, pair, self.stratum_weights, all_strata=True)
            for _, plan in self.plans
        ]
        return Cuts.from_rows(compared[0].rows, compared[0].weights)

    def _find_compared_strata(self, counted: Sample, pair: tuple[Hashable, Hashable]) -> Booleans:
        """Return which strata can be compared in some metric at some threshold."""
        if self.stratum_weights is not None:
            return np.asarray(read_stratum_weights(counted, self.stratum_weights) != 0)
        found = [
            find_compared_strata(counted, metric, plan.scheme, pair, None)
            if metric.given in {None, "label"}
            else find_shared_strata(counted, pair)  # thresholds change the denominator
            for metric, plan in self.plans
        ]
        return np.asarray(np.any(found, axis=0))


def _sweep(
    curves: Sequence[Curve],
    values: Sequence[Array],
    place: Places,
    groups: tuple[Hashable, Hashable],
    alpha: float,
    alternative: str,
    resampling: blocks.Resampling,
) -> dict[str, MetricSweep]:
    """Compare the gaps at all cuts with those of one set of permutations."""
    cuts = curves[0].cuts
    sample = [(curve, _testable_gaps(curve)) for curve in curves]
    permuted = [curve.permuted(observed) for curve, observed in sample]

    def block(n: int, stream: np.random.Generator) -> list[Array]:
        first = cuts.permuted(n, stream)
        return [statistics(first, stream) for statistics in permuted]

    counts = cuts.tables.size * len(curves)
    blocks = resampling.run_blocks(block, streams.PERMUTATIONS, cuts.block_size, counts=counts)
    inner, every = slice(1, -1), []
    for i, (curve, observed) in enumerate(sample):
        draws = np.concatenate([one[i] for one in blocks])
        statistic, error = observed.statistic[inner], observed.error[inner]
        every.append(
            bands(
                draws,
                statistic,
                error,
                curve.scale(),
                alpha,
                alternative,
                observed.skewness[inner],
                has_normal_floor=curve.plan.removes_skewness,
            )
        )
    return {
        curve.metric.name: _found(curve, value, observed, own, joint, place, groups)
        for (curve, observed), value, own, joint in zip(
            sample, values, every, join_bands(every, alpha), strict=True
        )
    }


def _found(
    curve: Curve,
    values: Array,
    observed: CutGaps,
    found: Bands,
    of_all_metrics: tuple[Array, tuple[Array, Array]],
    place: Places,
    groups: tuple[Hashable, Hashable],
) -> MetricSweep:
    """Return a metric's results, from cuts to the thresholds that lie there."""
    plan, span, (joint_pvalue, widest) = curve.plan, curve.metric.span, of_all_metrics
    pointwise, simultaneous, joint = (
        (np.maximum(_at(place, low), -span), np.minimum(_at(place, high), span))
        for low, high in (found.band, found.joint_band, widest)
    )
    first, second = values.T
    return MetricSweep(
        metric=curve.metric.name,
        values=dict(zip(groups, (first, second), strict=True)),
        difference=observed.difference[place],
        standard_error=curve.standard_error()[place],
        statistic=observed.statistic[place],
        pointwise_band=pointwise,
        simultaneous_band=simultaneous,
        joint_band=joint,
        pvalue=_at(place, found.pvalue),
        adjusted_pvalue=_at(place, found.adjusted_pvalue),
        joint_pvalue=_at(place, joint_pvalue),
        global_pvalue=found.global_pvalue,
        status=np.select(
            [
                (place == 0) | (place == curve.cuts.n_intervals),
                np.isnan(observed.statistic[place]),
                _at(place, found.joint) != 1,
                curve.is_trivial()[place],
            ],
            ["trivial", "undefined", "sparse", "trivial"],
            "tested",
        ),
        variance=plan.variance_name,
        validity=_validity(plan, strata=curve.cuts.n_strata > 1),
    )


def _at(place: Places, between: NDArray[Any]) -> Array:
    """Return the values at the thresholds; NaN if all rows have the same prediction."""
    return np.concatenate([[np.nan], between, [np.nan]])[place]


def _validity(plan: Plan, *, strata: bool) -> str:
    jointly = "The simultaneous band is exact for the strong null and approximate for the weak one."
    if plan.fixes_denominators or plan.variance is None:
        jointly = "The same holds for the simultaneous band."
    return f"{plan.validity(strata=strata)} {jointly}"


def _testable_gaps(curve: Curve) -> CutGaps:
    """Return the gaps of the sample. Raises InputError if no gap can be tested."""
    gaps = curve.gaps()
    if curve.cuts.n_intervals == 1:
        raise InputError(
            f"{argument('thresholds')} must include one between the lowest and the highest score; "
            "got none. Check that scores differ and are on the same scale as the thresholds."
        )
    if np.isnan(gaps.statistic[1:-1]).all():
        got = Shown(f"{curve.metric.name}, which is undefined at all thresholds")
        hint = "Choose another metric, or groups (and strata) with more rows."
        raise InputError("metric", "defined in both groups at some threshold", got, hint)
    return gaps


def _plans(metric: object, scheme: object, variance: object) -> list[tuple[Metric, Plan]]:
    """Return a plan for each metric, all with one scheme, which makes draws joint."""
    checks.choice("variance", variance, VARIANCES)
    checks.choice("scheme", scheme, SCHEMES)
    metrics = [_metric(one) for one in (metric if isinstance(metric, (list, tuple)) else [metric])]
    names = [one.name for one in metrics]
    if not names or len(set(names)) < len(names):
        rule = "a metric, or a list of different metrics"
        raise InputError("metric", rule, metric)
    if scheme == "auto":
        fixed = all(one.given == "label" for one in metrics)
        scheme = Scheme.WITHIN_LABEL if fixed else Scheme.POOLED
    plans = [(one, Plan.choose(one, scheme, variance)) for one in metrics]
    if scheme == Scheme.DENOMINATOR:
        _check_denominators(metrics)
    return plans


def _metric(given: object) -> Metric:
    metric = get_metric(given)
    if metric.uses_threshold and not metric.is_joint:
        (part,) = metrics_of_totals(metric.parts)
        return part
    if metric.kind.makes_predictions and not metric.is_joint:
        hint = "This metric does not depend on the threshold."
    elif metric.is_joint:
        hint = f"Pass a list of its parts: [{listed(part.name for part in metric.parts)}]."
    else:
        hint = "Only metrics of a confusion table change with a threshold."
    rule = "a metric of labels and binary predictions"
    raise InputError("metric", rule, metric.name, hint)


def _check_denominators(metrics: Sequence[Metric]) -> None:
    """Raise InputError if an exchange changes a denominator at some threshold."""
    hint = f"Use {argument('scheme', Scheme.POOLED)}."
    for metric in metrics:
        if metric.given in {"prediction", "either"}:
            rule = f"'pooled' for {metric.name}, whose denominator changes with the threshold"
            raise InputError("scheme", rule, "denominator", hint)
    if len({metric.given for metric in metrics}) > 1:
        rule = "'pooled' for rates with different denominators"
        raise InputError("scheme", rule, "denominator", hint)


def _thresholds(given: object, table: Sample, groups: tuple[Hashable, ...]) -> Array:
    """Return the thresholds in ascending order."""
    scores = table.columns_of(groups)["y_score"]
    rule = "an integer above 1, an array of finite numbers or 'scores'"
    if isinstance(given, str):
        if given != "scores":
            hint = did_you_mean(given, ["scores"])
            raise InputError("thresholds", rule, given, hint)
        return np.unique(scores)
    if isinstance(given, (int, np.integer, np.bool_)):
        hint = "Pass a single threshold as a list of one number."
        n = checks.integer("thresholds", given, 2, _MAX_THRESHOLDS, hint)
        return _equally_spaced(n, float(scores.min()), float(scores.max()))
    values = np.unique(as_floats("thresholds", given).astype(np.float64))
    if not values.size or not np.isfinite(values).all():
        hint = "Leave out the infinite threshold that roc_curve starts with." if values.size else ""
        raise InputError("thresholds", rule, given, hint)
    return values


def _equally_spaced(n: int, low: float, high: float) -> Array:
    if 0 <= low <= high <= 1:
        low, high = 0.0, 1.0
    # 57/100 is 0.57, as scores with two decimals are, and 57 times 0.01 is not; likewise for
    # integers. A power of two rounds nothing, and then no sum overflows
    exponent = np.frexp(max(abs(low), abs(high)))[1]
    ends = np.ldexp([low, high], -exponent)
    steps = np.arange(n)
    grid = (ends[0] * (n - 1 - steps) + ends[1] * steps) / (n - 1)
    return np.unique(np.clip(np.ldexp(grid, exponent), low, high))


def _check_memory(n_thresholds: int, n_metrics: int, n_resamples: int, n_strata: int) -> None:
    for_each = max(n_resamples * n_metrics, 16 * n_strata)  # strata have tables of their own
    if n_thresholds * for_each > _MAX_STATISTICS:
        rule = (
            f"at most {_MAX_STATISTICS // for_each:,} for {n_resamples:,} permutations of "
            f"{format_count(n_metrics, 'metric')}, to fit into 1 GiB of memory"
        )
        hint = "101 thresholds suffice for a curve. Or use fewer permutations, metrics or strata."
        raise InputError("thresholds", rule, n_thresholds, hint)
