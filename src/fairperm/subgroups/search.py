"""The search for subgroups that differ from the rest: ``find_subgroups``."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from fairperm._utils import checks
from fairperm._utils.formatting import format_count
from fairperm._utils.progress import waiting
from fairperm._utils.signatures import complete, shares
from fairperm.data.arguments import FrameArguments, Inputs
from fairperm.data.columns import library_of
from fairperm.errors import Note, UndefinedMetricError, argument, warn_of
from fairperm.hypothesis_tests.permutation import permutation_test
from fairperm.hypothesis_tests.plan import Options
from fairperm.metrics.definition import Variance
from fairperm.subgroups.candidates import find_candidates
from fairperm.subgroups.confirmation import confirm_subgroups, split_table
from fairperm.subgroups.engine import make_engine
from fairperm.subgroups.inference import is_widened, judge, widen_errors
from fairperm.subgroups.listing import MAX_LISTED, choose_listed
from fairperm.subgroups.result import Subgroup, Subgroups
from fairperm.subgroups.sample import make_sample, number_strata, read_sample

if TYPE_CHECKING:
    from typing import Literal, Required, Unpack

    from fairperm._utils.arrays import Array, Booleans, Places
    from fairperm.data.arguments import Alternative, Column, Columns, Label, MetricLike
    from fairperm.engines.estimates import Estimates
    from fairperm.subgroups.candidates import Candidates
    from fairperm.subgroups.engine import SubgroupEngine
    from fairperm.subgroups.inference import Judgement
    from fairperm.subgroups.listing import Listing
    from fairperm.subgroups.sample import SearchedRows

MAX_STATISTICS = 20_000_000  # subgroups times permutations: 160 MB
_WEIGHTED = "Values are weighted; numbers of rows are not."
_CUT_SHORT = (
    f"The list ends after {MAX_LISTED} subgroups. They do not explain all others found: some "
    "still differ among rows that are alike in these."
)
_BINNED = Note(
    "Scores were put into bins: rows in one bin count as ties, which moves each value a little. "
    f"More {argument('score_bins')} move it less."
)
_ADJUSTMENTS: tuple[Literal["maxt", "holm", "bh", "by"], ...] = ("maxt", "holm", "bh", "by")


class SearchArguments(FrameArguments, total=False):
    """Arguments of :func:`fairperm.permutation_test` that a search has, too."""

    y_score: Columns | None
    metric: Required[MetricLike]
    threshold: float | None
    pos_label: Label
    cluster: Columns | None
    sample_weight: Column | None
    count: Column | None
    score_bins: int | None
    alternative: Alternative


@shares(permutation_test, SearchArguments)
def find_subgroups(
    y_true: Column | None = None,
    y_pred: Column | None = None,
    *,
    features: Columns,
    max_depth: int = 3,
    min_rows: int = 30,
    bands: int = 4,
    adjust: Literal["maxt", "holm", "bh", "by"] = "maxt",
    alpha: float = 0.05,
    confirm: float | None = None,
    n_resamples: int = 999,
    **given: Unpack[SearchArguments],
) -> Subgroups:
    """Find the subgroups in which a metric differs from that of all other rows.

    Parameters
    ----------
    features : array-like, frame, mapping, str or list of str
        Columns that describe subgroups; with `data`, their names. Numbers of more than `bands`
        different values are cut at their quantiles; ordered bands also join into ranges. Convert
        numbers that are names to text. Missing values are a value.
    metric : str or metric
        A rate, an AUC, a metric of scores or of a regression, or one of
        :func:`fairperm.register_metric`. It needs a standard error in closed form.
    cluster : array-like or str, optional
        As in :func:`fairperm.permutation_test`. All rows of a cluster must agree in every feature.
    missing : {"error", "drop", "group"}
        As in :func:`fairperm.permutation_test`; it is about all columns but the features.
    max_depth : int
        The most conditions of a subgroup, each on another feature.
    min_rows : int
        A subgroup and its rest need so many of the rows that the metric rests on: negatives for
        the false positive rate, positives and also negatives for an AUC. Clusters are counted
        instead of rows.
    bands : int
        The most quantile bands of a number.
    alternative : {"two-sided", "symmetric", "greater", "less"}
        Which gaps are looked for; "greater": subgroups with a larger value than the rest.
    adjust : {"maxt", "holm", "bh", "by"}
        How p-values are adjusted for the search: step-down max-T, or Holm's method, control the
        probability of any false finding; Benjamini and Hochberg's, or Yekutieli's, the expected
        share of false ones. All but max-T need many more permutations.
    alpha : float
        The level: subgroups with adjusted p-values up to it are found.
    confirm : float, optional
        The share of rows, chosen at random, that are kept for confirmation: the others are
        searched, and the subgroups listed there are tested in these rows as by
        :func:`fairperm.permutation_test`, with Holm's adjustment. By default all rows serve both
        purposes, which finds more.
    n_resamples : int
        Random permutations of outcomes against features. Those of a confirmation stop early.
    **given
        All others are those of :func:`fairperm.permutation_test`.

    Returns
    -------
    Subgroups

    Notes
    -----
    Every conjunction of up to `max_depth` conditions is compared with all other rows. Outcomes are
    permuted against features, only among the rows of a rate's denominator, among rows of one label
    for an AUC, balanced accuracy and mean scores of a class, and within strata. The gaps of all
    subgroups are studentized in each permutation, and the largest are compared with those observed.

    Examples
    --------
    >>> import fairperm
    >>> compas = fairperm.datasets.load_compas()
    >>> result = fairperm.find_subgroups(
    ...     "two_year_recid", y_score="decile_score", threshold=5, data=compas,
    ...     features=["age_band", "sex", "race"], metric="false_positive_rate",
    ...     max_depth=2, rng=1,
    ... )
    >>> for one in result.listed:
    ...     print(f"{one.description}: {one.value:.2f}, others {one.rest:.2f}")
    race = African-American: 0.42, others 0.20
    age_band = Less than 25: 0.53, others 0.25
    age_band = Greater than 45: 0.13, others 0.36
    race = Other: 0.13, others 0.31
    race = Hispanic and sex = Female: 0.05, others 0.31
    """
    given = complete(find_subgroups, given)
    options = Options.check({**given, "n_resamples": n_resamples}, or_auto=False)
    checks.integer("max_depth", max_depth, 1, 10)
    checks.integer("min_rows", min_rows, 2, 10**9)
    checks.integer("bands", bands, 2, 100)
    checks.choice("adjust", adjust, _ADJUSTMENTS)
    checks.fraction("alpha", alpha)
    inputs = Inputs.of(given, y_true=y_true, y_pred=y_pred, sensitive_features=features)
    settings = Settings(
        options=options, max_depth=max_depth, min_rows=min_rows, adjust=adjust, alpha=alpha
    )
    sample = read_sample(inputs, features, given["metric"], bands)
    if confirm is None:
        answer = _search_all(sample, settings)
    else:
        answer = _search_and_confirm(sample, settings, checks.fraction("confirm", confirm))
    ranges = sample.table.bins
    bins = [_BINNED] if ranges is not None and ranges.are_mixed.any() else []
    weighted = [] if sample.table.weight is None else [_WEIGHTED]
    result = Subgroups(
        listed=answer.listed,
        found=answer.found,
        all=answer.every,
        metric=sample.metric.name,
        features=tuple(feature.name for feature in sample.features),
        counted=sample.base_names,
        value=sample.value,
        n=int(sample.n_rows.sum()),
        max_depth=max_depth,
        min_rows=min_rows,
        bands=bands,
        alternative=options.alternative,
        adjust=adjust if confirm is None else "holm",
        alpha=alpha,
        confirm=confirm,
        scheme=sample.plan.scheme.value,
        variance=sample.variance.value,
        n_resamples=options.resampling.n_resamples,
        n_strata=sample.units.n_strata,
        n_dropped=sample.table.n_dropped,
        validity=answer.validity,
        seed=options.seed,
        notes=(*sample.table.notes, *bins, *weighted, *answer.notes),
        frame_library=library_of(inputs.data) or library_of(features),
    )
    warn_of(answer.notes)
    return result


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    """The subgroups listed, found and tested, and what is to be said of their p-values."""

    listed: tuple[Subgroup, ...]
    found: tuple[Subgroup, ...]
    every: tuple[Subgroup, ...]
    validity: str
    notes: tuple[str, ...] = ()


def _search_all(sample: SearchedRows, settings: Settings) -> _Answer:
    searched = search(sample, settings)
    every, listing = searched.describe(), searched.choose_listed()
    return _Answer(
        listed=tuple(every[place] for place in listing.places),
        found=tuple(every[place] for place in searched.found),
        every=every,
        validity=_state_validity(sample, settings.adjust),
        notes=(
            *_note_permutations(len(every), settings),
            *searched.note_untested(),
            *searched.note_few_rows(),
            *([] if listing.is_complete else [_CUT_SHORT]),
        ),
    )


def _search_and_confirm(sample: SearchedRows, settings: Settings, share: float) -> _Answer:
    """List subgroups in one part of the rows by unadjusted tests, and test them in the other."""
    options = settings.options
    parts = split_table(sample.table, share, options.seed)
    first, second = (
        make_sample(sample.features, sample.levels, part, sample.plan.metric) for part in parts
    )
    least = max(2, round(settings.min_rows * (1 - share)))
    searched = search(first, replace(settings, adjust=None, min_rows=least))
    listed = searched.candidates.take(searched.choose_listed().places)
    every, notes = confirm_subgroups(second, listed, options.quiet(), settings.alpha)
    found = tuple(one for one in every if one.adjusted_pvalue <= settings.alpha)
    validity = sample.plan.validity(strata=sample.units.n_strata > 1)
    listed_there = f"{format_count(len(every), 'subgroup')}, listed in other rows"
    by_holm = f"Family-wise error by Holm's method for {listed_there}"
    return _Answer(
        listed=found, found=found, every=every, validity=f"{by_holm}. {validity}", notes=notes
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How subgroups are searched and tested."""

    options: Options
    max_depth: int
    min_rows: int
    adjust: str | None
    alpha: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """The candidates of a sample, and what permutations say of them.

    ``rests_on_few`` tells whose gaps rest on few influential rows, if errors are widened for them;
    ``scale`` is the size of the metric's values; ``found`` are the places of the candidates that
    differ from the rest, by adjusted p-value and size of the statistic.
    """

    sample: SearchedRows
    settings: Settings
    candidates: Candidates
    engine: SubgroupEngine
    observed: Estimates
    rests_on_few: Booleans | None
    scale: Array
    statistic: Array
    judgement: Judgement
    found: Places

    def choose_listed(self) -> Listing:
        """Return the few candidates that explain the others found."""
        listing = choose_listed(
            self.sample,
            self.candidates.take(self.found),
            self.statistic[self.found],
            self.scale,
            alternative=self.settings.options.alternative,
            alpha=self.settings.alpha,
        )
        return replace(listing, places=self.found[listing.places])

    def note_untested(self) -> list[str]:
        """Return a note if some candidates could not be tested."""
        n = int(np.isnan(self.judgement.adjusted_pvalue).sum())
        if not n:
            return []
        where = " in strata" if self.sample.units.n_strata > 1 else ""
        return [
            f"{format_count(n, 'subgroup')} could not be tested: the gap to the rest{where} is "
            "undefined, in the sample or in more than 1 % of the permutations."
        ]

    def note_few_rows(self) -> list[str]:
        """Return a note if gaps of subgroups that are found rest on few influential rows."""
        if self.rests_on_few is None:
            found_there = self.observed.each(lambda array: array[:, self.found])
            few = widen_errors(self.sample, self.candidates.take(self.found), found_there)[1]
        else:
            few = self.rests_on_few[self.found]
        if not few.any():
            return []
        units = "clusters" if self.sample.plan.clustered else "rows"
        widened = "" if self.rests_on_few is None else "even widened, "
        return [
            f"The gaps of {format_count(int(few.sum()), 'subgroup')} among those found rest on few "
            f"influential {units}: their standard errors are unreliable, {widened}and p-values may "
            "be too small."
        ]

    def describe(self) -> tuple[Subgroup, ...]:
        """Return every candidate with its numbers."""
        sample, candidates, judgement = self.sample, self.candidates, self.judgement
        merged = self.observed
        gap = self.observed.gaps(None).drop_rounding(self.scale).difference[:, 0]
        if sample.units.n_strata > 1:
            rows = number_strata(sample.units, np.zeros_like(sample.units.stratum))
            members = candidates.members
            merged = make_engine(sample.metric, sample.variance, rows, members).observed()
        free = self.observed
        if sample.variance == Variance.SCORE:  # which is that of one rate for both
            free = self.engine.observed(sample.metric.closed_variance)
        error = free.gaps(None).standard_error[:, 0]
        n = candidates.members @ sample.n_rows
        counts = candidates.members @ sample.sizes
        return tuple(
            Subgroup(
                conditions=candidates.describe(i),
                value=float(merged.value[0, i, 0, 0]),
                rest=float(merged.value[0, i, 0, 1]),
                gap=float(gap[i]),
                standard_error=float(error[i]),
                confidence_interval=(float(judgement.low[i]), float(judgement.high[i])),
                statistic=float(self.statistic[i]),
                pvalue=float(judgement.pvalue[i]),
                adjusted_pvalue=float(judgement.adjusted_pvalue[i]),
                n=int(n[i]),
                counts=dict(zip(sample.base_names, map(int, counts[i]), strict=True)),
            )
            for i in range(len(candidates))
        )


def search(sample: SearchedRows, settings: Settings) -> Search:
    """Compare every candidate with the rest, and with the largest gaps of permutations."""
    options = settings.options
    with waiting("listing subgroups", options.resampling.progress):
        candidates = find_candidates(
            sample.features,
            sample.levels,
            sample.sizes,
            max_depth=settings.max_depth,
            min_rows=settings.min_rows,
            most=MAX_STATISTICS // options.resampling.n_resamples,
        )
        engine = make_engine(sample.metric, sample.variance, sample.units, candidates.members)
        observed, few = engine.observed(), None
        if is_widened(sample):
            observed, few = widen_errors(sample, candidates, observed)
    scale = _find_scale(sample, observed)
    judgement = judge(
        sample,
        observed,
        scale,
        engine.statistics(scale, options.resampling),
        alternative=options.alternative,
        adjust=settings.adjust,
        alpha=settings.alpha,
    )
    gaps, p = observed.gaps(None).drop_rounding(scale), judgement.adjusted_pvalue
    statistic = gaps.studentized(scale)
    found = np.flatnonzero(p <= settings.alpha)
    return Search(
        sample=sample,
        settings=settings,
        candidates=candidates,
        engine=engine,
        observed=observed,
        rests_on_few=few,
        scale=scale,
        statistic=statistic,
        judgement=judgement,
        found=found[np.lexsort([-np.abs(statistic[found]), p[found]])],
    )


def _find_scale(sample: SearchedRows, observed: Estimates) -> Array:
    """Return the size of the metric's values, to which rounding errors are relative."""
    if np.isnan(observed.gaps(None).difference).all():
        where = " of the same stratum" if sample.units.n_strata > 1 else ""
        rule = f"defined in some subgroup and in its rest{where}"
        raise UndefinedMetricError("metric", rule, sample.metric.name)
    span = sample.metric.span
    return np.array([span if np.isfinite(span) else np.nanmax(np.abs(observed.value))])


def _note_permutations(n_subgroups: int, settings: Settings) -> list[str]:
    """Return a note if so few permutations cannot find a single affected subgroup."""
    options, adjust, alpha = settings.options, settings.adjust, settings.alpha
    tails = 2 if options.alternative == "two-sided" else 1
    least = tails * (1 if adjust == "maxt" else n_subgroups) / alpha
    n = options.resampling.n_resamples
    if n + 1 >= least:
        return []
    return [
        Note(
            f"{n:,} permutations cannot find a single one of {n_subgroups:,} subgroups at a level "
            f"of {alpha:g} with {argument('adjust', adjust)}. Use "
            f"{argument('n_resamples', math.ceil(least) - 1)}."
        )
    ]


def _state_validity(sample: SearchedRows, adjust: str | None) -> str:
    where = " within every stratum" if sample.units.n_strata > 1 else ""
    rate = "Family-wise error" if adjust in {"maxt", "holm"} else "False discovery rate"
    exact = "exact" if adjust == "maxt" else "controlled"
    return (
        f"{rate}: {exact} if outcomes are independent of all features{where}; asymptotically "
        f"valid for equal {sample.metric.name} of a subgroup and the rest, if others are affected."
    )
