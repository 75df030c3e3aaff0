"""The permutation test of a distance between the groups' distributions of a column."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Unpack

import numpy as np

from fairperm._utils import streams
from fairperm._utils.arrays import Array, Integers
from fairperm._utils.checks import choice
from fairperm._utils.formatting import format_count, name_of_gap
from fairperm._utils.progress import waiting
from fairperm._utils.signatures import complete, shares
from fairperm._utils.sorting import ranks
from fairperm.data.arguments import Adjustment, Column, Columns, Inputs, Pairing, TestArguments
from fairperm.data.columns import library_of, to_python
from fairperm.data.reading import read_table
from fairperm.data.sample import Sample
from fairperm.engines.distances import DistanceEngine, choose_distance_engine, number_sections
from fairperm.engines.resampling.blocks import Resampling, Stop
from fairperm.engines.resampling.shared_labels import PermutationRequest
from fairperm.engines.sample import order_blocks
from fairperm.errors import (
    InputError,
    InputTypeError,
    Shown,
    UndefinedMetricError,
    argument,
    listed,
    shown,
)
from fairperm.hypothesis_tests.base_rows import base_sizes
from fairperm.hypothesis_tests.comparison import Comparison
from fairperm.hypothesis_tests.pairs import check_pairing, find_reference, list_pairs
from fairperm.hypothesis_tests.permutation import permutation_test
from fairperm.hypothesis_tests.plan import Options, Plan
from fairperm.hypothesis_tests.results.distances import (
    Curves,
    DistanceComparison,
    DistanceTestResult,
)
from fairperm.hypothesis_tests.results.gaps import PermutationTestResult
from fairperm.hypothesis_tests.run import Observed, PermutationTest, Tested, run
from fairperm.inference.multiplicity import adjust_pvalues
from fairperm.inference.null import tie_tolerance
from fairperm.inference.stopping import MIN_DRAWS
from fairperm.metrics.definition import Scheme
from fairperm.metrics.distances import Distance, get_distance

_ADJUSTMENTS: tuple[Adjustment, ...] = ("holm", "bh", "by", None)
_MAX_POINTS = 512  # of a curve of cumulative shares
_MAX_WHOLE = 2**53
_MAX_DISTANCES = 2.0**27  # that are averaged: no more permutations can be drawn
_MIN_EFFECTIVE = 20  # clusters or weighted rows: with 8 against 80, levels of 0.12 were measured
_MAX_LEVERAGE = 1e6  # weight of a unit relative to all others: deviations keep ten digits


class DistanceArguments(TestArguments, total=False):
    """Arguments of :func:`fairperm.permutation_test` that a test of a distance has, too."""

    cluster: Columns | None
    sample_weight: Column | None
    count: Column | None


@shares(permutation_test, DistanceArguments)
def distance_test(
    values: Column,
    *,
    distance: str = "ks",
    y_true: Column | None = None,
    compare: Pairing = "pairs",
    reference: Hashable = None,
    adjust: Adjustment = "holm",
    **given: Unpack[DistanceArguments],
) -> DistanceTestResult:
    """Test whether a column has the same distribution in all groups, by a distance between them.

    Parameters
    ----------
    values : array-like or str
        Scores, predictions of any number of classes, or any other column.
    distance : str
        Of numbers: "ks" (Kolmogorov–Smirnov: the largest difference between the cumulative
        shares), "wasserstein" (the area between them) or "demographic_parity" (the absolute
        difference of the means). Of categories: "total_variation", "infinity_norm",
        "jensen_shannon", "kullback_leibler" or "skew". LiFT's names are understood
        too, such as "JS_DIVERGENCE".
    y_true : array-like or str, optional
        Labels of any kind: distributions are then compared given the label (separation, which is
        equalized odds of the whole score), and group labels are exchanged inside each label.
    groups : sequence, optional
        Two groups or more; by default all.
    compare : {"pairs", "reference", "rest"}
        Whether to compare each pair of groups, each group with the reference, or each group with
        all others together.
    reference : optional
        The reference group, by default the one with most rows.
    adjust : {"holm", "bh", "by"} or None
        How p-values are adjusted for the number of comparisons.
    control_features : array-like, str or list of str, optional
        Strata: labels are exchanged only within them.
    cluster : array-like or str, optional
        Rows that belong together. With `y_true`, the rows of a cluster must have one label.
    sample_weight : array-like or str, optional
        Weight of each row, above 0, in the distributions. Weights stay with their rows.
    n_resamples : int or "auto"
        As in :func:`fairperm.permutation_test`; at least 1, and with "auto" at least 299.
    confidence_level : float
        Confidence level of the intervals for p-values.
    **given
        All others are those of :func:`fairperm.permutation_test`.

    Returns
    -------
    DistanceTestResult

    Notes
    -----
    If the groups have equal distributions, group labels can be exchanged, so the p-value is exact
    at every sample size: the share of permutations with a distance at least as large, (b + 1)/(B +
    1) for B random ones. It is no test of equal means or rates alone: distributions may differ in
    other ways.

    Clusters, and rows of unequal weights, may differ between groups of equal distributions: in
    their sizes, weights, or in how much the rows of a cluster are alike. The p-value is then the
    larger of two. One is that of permutations of whole clusters (or weighted rows), with each
    distance divided by the standard error that its groups have: it is exact if clusters can be
    exchanged. The other keeps every cluster in its group, and gives its deviation from the
    distribution of all other clusters a random sign: it is asymptotic, whatever the clusters are.

    With labels or strata, the distance is the mean of the distances inside them, weighted by
    m_A·m_B/(m_A + m_B), where m are the groups' numbers of rows (of clusters, if there are any).

    There is no confidence interval. A distance of samples is positive even if the distributions are
    equal, so an interval around it, by the bootstrap too, would not contain a true distance of
    zero. Compare it with ``expected``, the mean distance of the permutations.

    "kullback_leibler" and "skew" add one row (of mean weight) to each category, the former in the
    second group only, as LiFT does: no share is then zero. Divergences are in bits.

    Examples
    --------
    >>> import fairperm
    >>> compas = fairperm.datasets.load_compas()
    >>> fairperm.distance_test(
    ...     "decile_score", y_true="two_year_recid", sensitive_features="sex", data=compas, rng=1
    ... )
    The Kolmogorov–Smirnov distance given the label between Female and Male is 0.048 (0.031
    expected by chance); chance does not explain it (p = 0.0250).
      Female and Male  0.048  by chance 0.031, 1,175 and 4,997 rows
      given 0          0.031
      given 1          0.078
      largest gap      +0.048 at 6, on average over the labels
      p-value          0.0250  800 draws (stopped early), 95 % interval 0.0144 to 0.0368
      validity         Exact if the groups have equal distributions of values given the
                       label.
      rows             6,172 used, 0 left out for missing values
    """
    given = complete(distance_test, given)
    options, groups = Options.check(given), given["groups"]
    chosen = get_distance(distance)
    compare = check_pairing(compare, reference)
    adjust = choice("adjust", adjust, _ADJUSTMENTS)
    if values is None:
        raise InputTypeError("values", "given", None)
    if y_true is not None:
        chosen = chosen.given_label()
    inputs = Inputs.of(given, y_true=y_true, values=values)
    table = read_table(inputs, chosen)
    every = table.choose_several(groups)
    if groups is not None:
        table = table.take(np.flatnonzero(np.isin(table.group, [*map(table.groups.index, every)])))
    if compare == "reference":
        reference = find_reference(table, every, reference)
    pairs = [*list_pairs(table, every, compare, reference, table.attribute)]
    tests = [DistanceTest.of(table.against_rest(*pair), chosen, pair, options) for pair in pairs]
    tested = [test.run(options.resampling) for test in tests]
    adjusted = adjust_pvalues(np.array([one.pvalue.value for one in tested]), adjust)
    comparisons = tuple(
        test.result(one, float(p)) for test, one, p in zip(tests, tested, adjusted, strict=True)
    )
    return DistanceTestResult(
        distance=chosen.name,
        groups=every,
        comparisons=comparisons,
        pvalue=float(adjusted.min()),
        adjust=adjust,
        confidence_level=options.confidence_level,
        n_strata=table.count_strata(every),
        n_dropped=table.n_dropped,
        seed=options.seed,
        validity=_validity(
            table,
            chosen,
            strata=table.count_strata(every) > 1,
            exchangeable=all(test.exchangeable for test in tests),
        ),
        notes=(*table.notes, *(note for test in tests for note in test.notes)),
        curves={pair: test.curves for pair, test in zip(pairs, tests, strict=True)},
        frame_library=library_of(inputs.data),
        attribute=table.attribute,
    )


@dataclass(frozen=True, slots=True)
class DistanceDraws(PermutationTest[Array]):
    """The distance of two groups, and those that permutations make, or random signs.

    Distances of permutations are multiplied by ``unit``: those of clusters or weighted rows are
    divided by their scales, and this makes the sample's what it was.
    """

    observed: Observed
    engine: DistanceEngine
    shares: Array
    unit: float = 1.0
    by_signs: bool = False

    def enumerated(self, most: int) -> tuple[Array, Array] | None:
        found = None if self.by_signs else self.engine.enumerated(most)
        return None if found is None else (found[0] @ self.shares, found[1])

    def request(self, stop: Stop[Array]) -> PermutationRequest[Array]:
        purpose = streams.SIGNS if self.by_signs else streams.PERMUTATIONS
        return PermutationRequest.of(self._draw, stop, self.engine.block_size, purpose=purpose)

    def _draw(self, n: int, rng: np.random.Generator) -> Array:
        draw = self.engine.signed if self.by_signs else self.engine.permuted
        distances: Array = draw(n, rng) @ self.shares * self.unit
        return distances

    def statistics(self, blocks: Sequence[Array], first: int | None) -> Array:
        del first
        return np.concatenate(blocks)


@dataclass(frozen=True, slots=True)
class DistanceTest:
    """The distance of two groups before its draws, and the distributions that it is of.

    Clusters and weighted rows have two references, of which the one with the larger p-value
    counts.
    """

    draws: tuple[DistanceDraws, ...]
    compared: Comparison
    curves: Curves
    sample: Mapping[str, Any]
    notes: tuple[str, ...]

    @classmethod
    def of(
        cls, table: Sample, distance: Distance, pair: tuple[Hashable, Hashable], options: Options
    ) -> DistanceTest:
        """Compute the distance. Raises UndefinedMetricError if no rows can be compared."""
        scheme = Scheme.WITHIN_LABEL if distance.given else Scheme.POOLED
        plan = Plan(distance, scheme, None)
        compared = Comparison.of(table, plan, pair, None)
        whole = compared.whole
        if distance.given:
            compared = replace(compared, rows=order_blocks(compared.rows))
        rows = compared.rows
        n_lost = _check_sections(whole, table)
        _check_sizes(rows, distance)
        with waiting("preparing", options.resampling.progress):
            engine = choose_distance_engine(distance, rows)
            sections = engine.observed()[0]
        shares = engine.weights / engine.weights.sum()
        width = np.ptp(rows.contributions)
        span = distance.value(1.0, width, width) if distance.of_numbers else 1.0  # the largest
        found = float(sections @ shares)
        observed = Observed(
            statistic=found,
            alternative="greater",
            ordering="greater",
            tolerance=tie_tolerance(found, np.array([span]), np.ones(1)),
            estimate=found,
            level=options.confidence_level,
            min_draws=MIN_DRAWS,
        )
        draws: tuple[DistanceDraws, ...] = (DistanceDraws(observed, engine, shares),)
        notes: list[str] = []
        if n_lost:
            pair_name = name_of_gap(*pair, absolute=True)
            lost = format_count(n_lost, "row does", "rows do")
            notes = [f"{lost} not count: their label or stratum has no rows of both {pair_name}."]
        if engine.deviations is not None:
            _check_leverage(engine.deviations.largest_leverage, rows)
            unit = found / float(sections / engine.scales() @ shares) if sections.any() else 1.0
            draws = (
                DistanceDraws(observed, engine, shares, unit),
                DistanceDraws(observed, engine, shares, by_signs=True),
            )
            notes += _note_few(engine.deviations.effective, compared)
        curves, place = _curves(compared, distance)
        sample = {
            "groups": pair,
            "distance": found,
            "by_label": _by_label(engine, sections, compared) if distance.given else None,
            "at": curves.values[place],
            "gap_at": float(curves.first[place] - curves.second[place]),
        }
        return cls(draws, compared, curves, sample, tuple(notes))

    @property
    def exchangeable(self) -> bool:
        """Whether clusters and weights are alike: rows of equal weight."""
        return len(self.draws) == 1

    def run(self, resampling: Resampling) -> Tested:
        """Return the test by the reference with the larger p-value."""
        tested = [one for draws in self.draws for one in run([draws], resampling)]
        return max(tested, key=lambda one: one.pvalue.value)

    def result(self, tested: Tested, adjusted_pvalue: float) -> DistanceComparison:
        """Return the comparison."""
        totals = self.compared.whole.totals()
        return tested.result(
            DistanceComparison,
            **self.sample,
            expected=expected_distance(tested),
            counts={group: total["rows"] for group, total in totals.items()},
            adjusted_pvalue=adjusted_pvalue,
        )

    def base_sizes(self) -> dict[str, list[float]]:
        """Return how many rows each group's distribution rests on."""
        return base_sizes(self.compared)

    def as_gap(
        self, tested: Tested, table: Sample, distance: Distance, options: Options
    ) -> PermutationTestResult:
        """Return the distance as a gap that has no values, no standard error and no interval."""
        groups = self.compared.groups
        n_strata = table.count_strata(groups)
        return tested.result(
            PermutationTestResult,
            metric=distance.name,
            attribute=table.attribute,
            groups=groups,
            values={group: {} for group in groups},  # a joint metric without parts
            counts=self.compared.whole.totals(),
            difference=self.sample["distance"],
            part=None,
            standard_error=math.nan,
            n_strata=n_strata,
            n_dropped=table.n_dropped,
            seed=options.seed,
            validity=_validity(
                table, distance, strata=n_strata > 1, exchangeable=self.exchangeable
            ),
            notes=(*table.notes, *self.notes),
            standard_errors=dict.fromkeys(groups, math.nan),
            scheme=Scheme.WITHIN_LABEL if distance.given else Scheme.POOLED,
            variance=None,
            binning_errors=None,
        )


def expected_distance(tested: Tested) -> float:
    """Return the mean distance that chance makes."""
    null = tested.reference.null
    chances = None if null.log_probability is None else np.exp(null.log_probability)
    return float(np.average(null.statistic, weights=chances))


def _check_sections(compared: Comparison, table: Sample) -> int:
    """Return how many rows have no rows of the other group in their stratum and label."""
    # raises UndefinedMetricError if all rows have none, and InputError if a cluster has rows of
    # several labels
    rows = compared.rows
    if rows.cluster is not None and rows.block.any():
        order = np.lexsort([rows.block, rows.cluster])
        same = rows.cluster[order][1:] == rows.cluster[order][:-1]
        split = np.flatnonzero(same & (rows.block[order][1:] != rows.block[order][:-1]))
        if split.size:
            which = table.clusters[rows.cluster[order[split[0]]]]
            raise InputError(
                f"{argument('cluster')} must have rows of one label with {argument('y_true')}: "
                f"whole clusters are exchanged, inside each label; got cluster {shown(which)} with "
                f"rows of several. Leave {argument('y_true')} out, or use a finer cluster."
            )
    section = number_sections(rows)
    first, second = (np.unique(section[rows.group == side]) for side in (0, 1))
    shared = np.intersect1d(first, second)
    if not shared.size:
        within = argument("y_true") if rows.block.any() else argument("control_features")
        raise UndefinedMetricError(
            f"{within} must have a value that rows of both groups have; got none for "
            f"{listed(compared.groups)}. Distributions are compared inside each."
        )
    return int(rows.count[~np.isin(section, shared)].sum())


def _by_label(
    engine: DistanceEngine, sections: Array, compared: Comparison
) -> dict[Hashable, float]:
    """Return the distance given each label, over all strata."""
    rows = compared.rows
    _, first = np.unique(ranks(rows.columns["y_true"]), return_index=True)
    found: dict[Hashable, float] = {}
    for row in first:
        mine = engine.labels == rows.block[row]
        if mine.any():
            name = _plain(rows.columns["y_true"][row])
            found[name] = float(np.average(sections[mine], weights=engine.weights[mine]))
    return found


def _check_sizes(rows: Sample, distance: Distance) -> None:
    """Raise InputError if no float can hold sums of distances, or of weights."""
    low, high = float(rows.contributions.min()), float(rows.contributions.max())
    if distance.of_numbers and not math.isfinite((high - low) * _MAX_DISTANCES):
        got = Shown(f"{low} and {high}")
        raise InputError("values", "made of numbers whose differences can be added up", got)
    if rows.weight is not None:
        low, high = float(rows.weight.min()), float(rows.weight.max())
        is_finite = math.isfinite(high * float(rows.count.sum()))
        if not is_finite or (low / high) ** 2 < np.finfo(np.float64).tiny:  # of a variance
            got = Shown(f"{low} and {high}")
            raise InputError("sample_weight", "made of numbers that can be added up", got)


def _check_leverage(largest: float, rows: Sample) -> None:
    """Raise InputError if one cluster or row has nearly all of the weight."""
    if largest > _MAX_LEVERAGE:
        name, unit = ("sample_weight", "row") if rows.cluster is None else ("cluster", "cluster")
        raise InputError(
            name,
            f"such that no {unit} of a label and stratum weighs more than {_MAX_LEVERAGE:,.0f} "
            "times all others",
            Shown(f"one of {largest:.3g} times"),
            f"Its {'value is' if unit == 'row' else 'rows are'} the whole distribution of its "
            "group: nothing shows how it varies.",
        )


def _note_few(effective: Array, compared: Comparison) -> Iterator[str]:
    """Yield a note for every group of few clusters or weighted rows."""
    unit = "row" if compared.rows.cluster is None else "cluster"
    for n, group in zip(effective, compared.groups, strict=True):
        if n < _MIN_EFFECTIVE:
            few = min(round(n), _MIN_EFFECTIVE - 1)  # 19.9 is fewer than 20
            yield (
                f"Only about {format_count(few, unit)} of group {shown(group)} "
                f"{'shows' if few == 1 else 'show'} how its distribution varies: with fewer than "
                f"{_MIN_EFFECTIVE} the test may reject too often, unless the {unit}s of the groups "
                f"are alike."
            )


def _curves(compared: Comparison, distance: Distance) -> tuple[Curves, int]:
    """Return the distributions of both groups, and where they differ most."""
    # With labels or strata, each group has the same shares of them. Of curves with very many
    # points, those are kept that can be drawn.
    rows = compared.rows
    # no sum may depend on the order of rows, or on how many of them are counted as one
    if rows.weight is not None:
        rows = replace(rows, weight=rows.weight / rows.weight.max()).expand()
        rows = rows.take(np.argsort(np.asarray(rows.weight), kind="stable"))
    factor = _section_factors(rows)
    rows = rows.merge_equal() if rows.weight is None else rows
    weight = rows.count * rows.weight_of_each() * factor[number_sections(rows), rows.group]
    cells, first, cell = np.unique(rows.contributions[:, 0], return_index=True, return_inverse=True)
    order = np.argsort(weight, kind="stable")
    shares: list[Array] = []
    for side in (0, 1):
        mine = order[rows.group[order] == side]
        share = np.bincount(cell.ravel()[mine], weight[mine], len(cells)).astype(np.float64)
        shares.append(np.cumsum(share) if distance.of_numbers else share)
    place = int(np.argmax(np.abs(shares[0] - shares[1])))
    kept = np.arange(len(cells))
    if distance.of_numbers and len(cells) > _MAX_POINTS:
        spread = np.linspace(0, len(cells) - 1, _MAX_POINTS).astype(np.intp)
        kept = np.unique(np.append(spread, place))
    names = tuple(_plain(one) for one in rows.columns["values"][first[kept]])
    curves = Curves(names, shares[0][kept], shares[1][kept], cumulative=distance.of_numbers)
    return curves, int(np.searchsorted(kept, place))


def _section_factors(rows: Sample) -> Array:
    """Return by section and group what makes shares of weights, equal sums for both groups."""
    weight = rows.count * rows.weight_of_each()
    section = number_sections(rows)
    place, n = 2 * section + rows.group, 2 * int(section.max()) + 2
    counts = (_count_units(rows), weight)
    sizes, totals = (np.bincount(place, one, n).reshape(-1, 2) for one in counts)
    with np.errstate(divide="ignore", invalid="ignore"):
        shared = np.nan_to_num(sizes.prod(axis=1) / sizes.sum(axis=1))
        return np.where(totals > 0, (shared / np.sort(shared).sum())[:, None] / totals, 0.0)


def _count_units(rows: Sample) -> Integers:
    """Return how many units each row counts for: rows, or clusters at the first row of each."""
    if rows.cluster is None:
        return rows.count
    _, first = np.unique(rows.cluster, return_index=True)
    found = np.zeros(len(rows.count), np.int64)
    found[first] = 1 if rows.alike is None else rows.alike[first]
    return found


def _plain(value: Any) -> Any:
    """Return a value as Python's own, whole numbers that are exact as integers."""
    plain = to_python(value)
    if isinstance(plain, float) and plain.is_integer() and abs(plain) <= _MAX_WHOLE:
        return int(plain)
    return plain


def _validity(table: Sample, distance: Distance, *, strata: bool, exchangeable: bool) -> str:
    """Return for which null the p-values are valid."""
    given = " given the label" if distance.given else ""
    where = " within every stratum" if strata else ""
    if exchangeable:
        return f"Exact if the groups have equal distributions of values{given}{where}."
    weighted = "" if table.weight is None else "weighted "
    units = "rows" if table.cluster is None else "clusters"
    sizes = "weights" if table.cluster is None else "clusters"
    return (
        f"Asymptotic, for groups of many {units}, if they have equal {weighted}distributions of "
        f"values{given}{where}; never liberal if those of their {sizes} are equal too."
    )
