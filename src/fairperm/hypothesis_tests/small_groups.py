"""Notes, errors and wider standard errors for groups too small for a reliable standard error."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeGuard

import numpy as np

from fairperm._utils.formatting import (
    count_units,
    drop_decimals,
    format_count,
    format_percent,
    singular,
)
from fairperm._utils.pieces import split_rows
from fairperm.engines.estimates import is_contrast
from fairperm.errors import Note, Shown, UndefinedMetricError, argument, shown
from fairperm.metrics.definition import Scheme, Variance, by_part

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from numpy.typing import NDArray

    from fairperm.data.sample import Sample
    from fairperm.engines.estimates import Estimates
    from fairperm.hypothesis_tests.comparison import Comparison
    from fairperm.hypothesis_tests.plan import Plan
    from fairperm.metrics.definition import AnyMetric, Metric
    from fairperm.metrics.ranks import RankMetric

    Array = NDArray[np.float64]

MIN_INFLUENTIAL_ROWS = 20
MIN_INFLUENTIAL_RANKS = 10  # for metrics of ranks, permuted by the scheme that is best for them
# influential rows e multiply a variance by 1 + (this/e)² − (this/MIN_INFLUENTIAL_ROWS)²
_UNSURE = 3.0
_MIN_EFFECTIVE_ROWS = 3  # effective rows of a group in the normal limit with weights or clusters
_MAX_SD_BETWEEN_OUTCOMES = 2.0  # standard deviations between mean outcomes
_HEAVY_TIES = 0.5  # share of a group's bootstrap samples that have one value
_ROUNDING = 1e-12  # relative to the metric's size: smaller influences are rounding errors


@dataclass(frozen=True, slots=True)
class InfluentialRows:
    """The effective number of rows behind each group's variance, and what follows from a small one.

    With few influential rows the observed variance is often far too small, while those of
    permutations, whose groups are mixed, are not. Under ``auto`` it is then widened: multiplied
    with weights, with clusters, for a metric by influence and in the normal limit of an AUC, and
    for any metric of ranks increased by what one more total miss would add. Permutations are left
    alone, so the p-value can only grow.

    Attributes
    ----------
    effective
        Effective number of rows by part and group.
    enough
        The effective number from which on nothing is noted and nothing widened.
    factor, extra
        By part and group, what widens the variance: it is multiplied and added to.
    """

    comparison: Comparison
    effective: Array
    enough: int
    factor: Array
    extra: Array

    @classmethod
    def count(
        cls, comparison: Comparison, plan: Plan, observed: Estimates, *, limit: bool = False
    ) -> InfluentialRows:
        """Count them; in the normal ``limit``, and with weights or clusters, those of rates too.

        Rates and F1 of plain rows are not counted, as their default test is exact, nor is an AUC
        whose ``observed`` variance shows that there are enough.
        """
        asymptotic = limit or plan.weighted or plan.clustered
        # an AUC whose permutations keep each group's positives, and an average precision
        is_fit = plan.metric.is_rank and plan.scheme == Scheme.best_for(plan.metric)
        enough = MIN_INFLUENTIAL_RANKS if is_fit and not asymptotic else MIN_INFLUENTIAL_ROWS
        effective, unseen = _effective_and_unseen(
            comparison, rates=asymptotic, ranks=not _has_many_placements(comparison, plan, observed)
        )
        factor, extra = np.ones_like(effective), np.zeros_like(effective)
        if not plan.is_chosen:
            is_rank = np.array([[part.is_rank] for part in comparison.parts])
            has_totals = np.array([[part.has_totals] for part in comparison.parts])
            is_wider = (limit & is_rank) | ((plan.weighted or plan.clustered) & ~has_totals)
            by_influence = [[_by_influence(part)] for part in comparison.parts]
            is_wider = is_wider | (np.array(by_influence) & (effective < enough))
            factor = np.where(is_wider, widening_factor(effective), factor)
            extra = np.where(effective < enough, unseen / (1 + effective) ** 3, 0.0)
        return cls(comparison, effective, enough, factor, extra)

    @property
    def widens(self) -> bool:
        """Whether any variance is widened."""
        return bool((self.factor > 1).any() or (self.extra > 0).any())

    def widen(self, estimates: Estimates, weights: Array | None) -> Estimates:
        """Return the observed estimates with variances that allow for few influential rows."""
        if not self.widens:
            return estimates
        return estimates.widen(self.factor, self.extra, weights)

    def notes(self) -> Iterator[str]:
        """Yield a note for every group that is too small for a reliable standard error."""
        rows = self.comparison.rows
        unit, units = singular(rows.units), str(rows.units)
        if rows.cluster is not None:
            unit, units = "cluster", "clusters"
        places = zip(*np.nonzero(self.effective < self.enough), strict=True)
        for part, side in places:
            n, few, show = self.effective[part, side], f"No {unit}", "shows"
            if n:  # 19.9 is fewer than 20
                at_most = min(max(round(n), 1), self.enough - 1)
                few = f"Only about {format_count(at_most, unit, units)}"
                show = "shows" if at_most == 1 else "show"
            is_wider = self.factor[part, side] > 1 or self.extra[part, side] > 0
            metric = self.comparison.parts[part]
            the = "the " if metric.compares_models else ""
            yield (
                f"{few} of group {shown(drop_decimals(self.comparison.groups[side]))} {show} how "
                f"{the}{metric.name} varies: with fewer than {self.enough} its standard "
                f"error is unreliable{', even widened' if is_wider else ''}, and the test may "
                "reject too often."
            )


def widening_factor(effective: Array) -> Array:
    """Return what multiplies variances that rest on so many influential rows."""
    factor, few = np.ones_like(effective), (effective < MIN_INFLUENTIAL_ROWS) & (effective > 0)
    factor[few] += _UNSURE**2 * (effective[few] ** -2 - float(MIN_INFLUENTIAL_ROWS) ** -2)
    return factor


def note_outcomes_apart(comparison: Comparison, alternative: str) -> list[str]:
    """Return a note if outcomes of the groups are too far apart for the tails of a test of R².

    Permuted groups mix the outcomes of both, and their R² is then skewed in another way.
    """
    if comparison.metric.name != "r2_score" or alternative == "symmetric":
        return []
    rows = comparison.units()
    _, outcomes, squares, n = (
        np.bincount(rows.group, rows.count * column, len(comparison.groups))
        for column in rows.contributions.T
    )
    means = outcomes / n
    apart = np.ptp(means) / np.sqrt(max(squares / n - means**2))
    if not apart > _MAX_SD_BETWEEN_OUTCOMES:
        return []
    return [
        Note(
            f"The groups' mean outcomes are {apart:.1f} standard deviations apart: permuted values "
            "of r2_score are then skewed in another way, and the test may reject too often. "
            f"Use {argument('alternative', 'symmetric')}."
        )
    ]


def missing_error(comparison: Comparison, plan: Plan) -> UndefinedMetricError:
    """Return the error for groups without a studentized gap."""
    name = plan.metric.name
    if plan.is_chosen:
        rule = f"one whose standard error of {name} is defined, and not zero"
        closed = plan.has_closed_form
        hint = "The groups are too small for it." if closed else "Use 'auto', or larger groups."
        return UndefinedMetricError("variance", rule, plan.variance, hint)
    sizes = [counts["rows"] for counts in comparison.totals().values()]
    least, few = int(np.argmin(sizes)), ""
    if plan.metric.is_rank:
        of_label = labels(comparison)
        least = int(of_label.min(axis=1).argmin())
        few = f", {of_label[least, 1]:,} of them positive"
        if plan.metric.classes:
            rarest = int(of_label[least].argmin())
            of_class = shown(plan.metric.classes[rarest])
            few = f", {of_label[least, rarest]:,} of them of class {of_class}"
    units, name_of_group = comparison.rows.units, shown(drop_decimals(comparison.groups[least]))
    group = f"group {name_of_group} of {count_units(sizes[least], units)}{few}"
    rule = "one whose standard error is defined, and not zero"
    hint = "The groups are too small for it, or do not vary in it."
    if comparison.rows.n_strata > 1:
        hint = (
            f"One stratum with a single {singular(units)} of a group that counts has no variance, "
            f"and neither have {units} that do not vary: use coarser strata."
        )
    return UndefinedMetricError("metric", rule, Shown(f"{name} with {group}"), hint)


def check_limit_rows(comparison: Comparison, metric: AnyMetric) -> None:
    """Raise UndefinedMetricError if hardly more than one row or cluster makes a group's value.

    Such a group hardly varies within the sample, however much it varies between samples. The errors
    of an AUC and of a mean AUC over classes allow for it.
    """
    rows = comparison.rows
    if metric.allows_for_one_row or all(part.has_totals for part in metric.parts):
        return
    if rows.weight is None and rows.cluster is None:
        return
    unit = rows.units if rows.cluster is None else "clusters"
    for number in count_base_rows(comparison).values():
        least = int(number.argmin())
        if number[least] < _MIN_EFFECTIVE_ROWS:
            group = shown(drop_decimals(comparison.groups[least]))
            rule = f"at least 1 for a group with fewer than {_MIN_EFFECTIVE_ROWS} effective {unit}"
            got = Shown(f"0 with {number[least]:.1f} in group {group}")
            hint = "Its standard error is meaningless: draw permutations."
            raise UndefinedMetricError("n_resamples", rule, got, hint)


def note_zero_error(metric: str) -> str:
    """Return the note on a standard error of zero."""
    return (
        f"The standard error of {metric} is zero in this sample, which therefore does not show how "
        "far chance goes: the confidence interval is meaningless."
    )


def note_ties(comparison: Comparison, ties: Array) -> list[str]:
    """Return a note if much the same bootstrap values make a group's standard error.

    ``ties`` are the shares of bootstrap samples with the most common value, by part and group.
    """
    part, side = np.unravel_index(int(ties.argmax()), ties.shape)
    share = float(ties[part, side])
    if share < _HEAVY_TIES:
        return []
    of_group = f"of group {shown(drop_decimals(comparison.groups[side]))}"
    if is_contrast(comparison.weights):
        of_group = "of a group"
    metric = comparison.parts[part]
    the = "the " if metric.compares_models else ""
    return [
        f"{the.capitalize()}{metric.name} has one and the same value in {format_percent(share)} of "
        f"the bootstrap samples {of_group}: with half or more its standard error is unreliable, "
        "and the test may reject too often, or hardly ever."
    ]


def note_bias_of_strata(plan: Plan, bias: float, *, has_few_rows: bool) -> str:
    """Return the note on a gap whose permutations are not centred at zero.

    With weights or clusters it is few of them that make the bias, which exchanging them does not
    show as it is.
    """
    metric = plan.metric
    if plan.weighted or plan.clustered:
        units = "weights" if plan.weighted else "cluster sizes"
        return (
            f"Permuted gaps in {metric.name} are centred at about {bias:+.2g}, not at 0: {units} "
            "differ too much within strata, and the test may reject too often."
        )
    allowed = " The p-value and the interval allow for it, the difference does not."
    instead = (
        " Test jaccard_score instead: it has no such bias, and groups that are equal in it are "
        "equal in f1_score."
    )
    return (
        f"Strata are small and groups differ in size there, which biases the gap in {metric.name} "
        f"by about {bias:+.2g}.{'' if has_few_rows else allowed}"
        f"{instead if metric.name == 'f1_score' else ''}"
    )


def labels(comparison: Comparison) -> NDArray[np.int64]:
    """Return the numbers of rows of each label (axis 1) in each group, for a metric of ranks."""
    (part,), rows = comparison.parts, comparison.rows
    every = part.base_rows(rows.contributions).values()
    return np.stack([comparison.total(rows.count, one) for one in every], axis=1).astype(np.int64)


def effective_rows(comparison: Comparison, *, rates: bool = False) -> Array:
    """Return the effective number of rows behind closed-form variances, by part and group.

    It is (Σψ²)²/Σψ⁴ of the influences ψ of rows, or of clusters: their number if all have the same
    influence, and about the number of the rarer outcome if there are two. Without variance it is 0.
    Where it is not computed it is infinite: for functions, and for rates unless ``rates``.
    """
    return _effective_and_unseen(comparison, rates=rates, ranks=True)[0]


def _has_many_placements(comparison: Comparison, plan: Plan, observed: Estimates) -> bool:
    """Return whether the variance of an AUC of plain rows rests on enough of them for certain.

    (Σψ²)²/Σψ⁴ is at least Σψ² over the largest ψ². Σψ² is DeLong's variance times 1 − 1/n or more,
    n the fewest rows of a label, and no ψ is above 2/n, also of the change to another AUC. So the
    influences of millions of rows need not be computed.
    """
    rows = comparison.rows
    if rows.weight is not None or rows.cluster is not None or rows.n_strata > 1:
        return False
    if plan.variance != Variance.DELONG or not plan.metric.is_rank:
        return False
    n, variance = labels(comparison).min(), observed.variance.min() / comparison.parts[0].span ** 2
    return bool(variance * n * (n - 1) / 4 >= MIN_INFLUENTIAL_ROWS)


def _effective_and_unseen(
    comparison: Comparison, *, rates: bool, ranks: bool
) -> tuple[Array, Array]:
    """Return the effective numbers, and the squared influence of one more total miss of ranks.

    Both are rounded: the order of rows changes the last digits of their sums, and must not change
    an error that they widen.
    """
    shape = len(comparison.parts), len(comparison.groups)
    effective, unseen = np.full(shape, np.inf), np.zeros(shape)
    is_counted = [
        (ranks and _by_ranks(part)) or _by_delta(part, rates=rates) or _by_influence(part)
        for part in comparison.parts
    ]
    if not any(is_counted):
        return effective, unseen
    units = comparison.units()
    for i, (part, place) in enumerate(by_part(comparison.parts)):
        u = units.contributions[:, place]
        if ranks and _by_ranks(part):
            effective[i], unseen[i] = _count_placements(part, comparison, units, u)
        elif _by_delta(part, rates=rates):
            effective[i] = _count_influences(part, units, u, comparison.weights)
        elif _by_influence(part):
            effective[i] = _count_by_influence(part, units, u, comparison.weights)
            unseen[i] = _square_misses(part, units, u, comparison)
    return _round_off(effective), _round_off(unseen)


def base_sizes(comparison: Comparison) -> dict[str, list[float]]:
    """Return the numbers of :func:`count_base_rows` with their unit before their names."""
    unit = ""
    if comparison.rows.cluster is not None:
        unit = "effective clusters of "
    elif comparison.rows.weight is not None:
        unit = "effective "
    found, units = count_base_rows(comparison), comparison.rows.units
    if "rows" in found and units != "rows":
        found[units] = found.pop("rows")
    return {f"{unit}{name}": numbers.tolist() for name, numbers in found.items()}


def count_base_rows(comparison: Comparison) -> dict[str, Array]:
    """Return the numbers of rows that the value of each group rests on, by what they are.

    These are a rate's denominator, positives and negatives for a metric given the label, and else
    all rows. With weights or clusters it is Kish's effective number (Σb)²/Σb², where b is what a
    row or a cluster adds to the number. Strata in which some group has none do not count.
    """
    rows, n_groups = comparison.rows, len(comparison.groups)
    found: dict[str, Array] = {}
    for part, place in by_part(comparison.parts):
        for name, base in part.base_rows(rows.contributions[:, place]).items():
            units = replace(rows, contributions=base[:, None]).sum_units()
            added = units.contributions[:, 0]
            if rows.n_strata > 1:
                in_stratum = np.zeros((rows.n_strata, n_groups), bool)
                in_stratum[units.stratum[added > 0], units.group[added > 0]] = True
                counts = np.asarray(in_stratum.all(axis=1))
                added = np.where(counts[units.stratum], added, 0.0)
            total = np.bincount(units.group, units.count * added, n_groups)
            squares = np.bincount(units.group, units.count * added**2, n_groups)
            number = np.zeros(n_groups)
            np.divide(total**2, squares, where=squares > 0, out=number)
            found[name] = np.round(number, 6)  # equal weights count one each
    return found


def _by_delta(part: Metric | RankMetric, *, rates: bool) -> TypeGuard[Metric]:
    return part.has_totals and part.smooth and (rates or not part.has_denominator)


def _by_ranks(part: Metric | RankMetric) -> TypeGuard[RankMetric]:
    return part.closed_variance == Variance.DELONG


def _by_influence(part: Metric | RankMetric) -> TypeGuard[RankMetric]:
    return part.is_rank and not _by_ranks(part)


def _effective(part: Metric, contributions: Array, units: Sample, group: int) -> float:
    """Return the effective number of a group's units; in pieces, as there may be millions."""

    def pieces() -> Iterator[tuple[Array, Array]]:
        for rows in split_rows(len(units.group)):
            mine = rows.start + np.flatnonzero(units.group[rows] == group)
            yield contributions.take(mine, axis=0), units.count[mine].astype(float)

    totals, counts = zip(*((count @ u, count.sum()) for u, count in pieces()), strict=True)
    total, n = np.sum(totals, axis=0), np.sum(counts)
    return _effective_of_pieces(
        lambda: ((part.influences_at(total, n, u), count) for u, count in pieces())
    )


def _count_influences(part: Metric, units: Sample, u: Array, weights: Array | None) -> Array:
    """Return the effective number of rows or clusters behind each group's value.

    A row's influence is that on its stratum, which counts by its share in the gap: strata that lack
    a group do not count. Where a group has one row of a stratum, the variance is that between such
    strata, and each counts as one row.
    """
    n_groups = units.n_groups
    if units.n_strata == 1:
        return np.array([_effective(part, u, units, group) for group in range(n_groups)])
    count, shape = units.count.astype(float), (units.n_strata, n_groups)
    cell = np.ravel_multi_index((units.stratum, units.group), shape)

    def add(values: Array | float) -> Array:
        sums = np.bincount(cell, count * values, units.n_strata * n_groups)
        return sums.astype(np.float64).reshape(shape)

    totals, sizes = np.stack([add(one) for one in u.T], axis=-1), add(1.0)
    share = _share_strata(totals[..., 1] if part.sizes_groups else sizes, weights)
    bases = part.base_rows(u).values()
    has_one = np.any([(add(base != 0) == 1).any(axis=1) for base in bases], axis=0)
    is_between, is_within = has_one & (share > 0), (~has_one & (share > 0))[units.stratum]
    with np.errstate(divide="ignore", invalid="ignore"):
        between = _deviations(part.estimate(totals[is_between]), share[is_between])
    influence = part.influences_at(totals.reshape(-1, u.shape[1]), sizes.ravel(), u, cell)
    within = np.abs(influence) * share[units.stratum]
    found = []
    for group in range(n_groups):
        mine = np.flatnonzero(is_within & (units.group == group))
        moved = np.concatenate([within[mine], between[:, group]])
        found.append(effective_number(moved, np.append(count[mine], np.ones(len(between)))))
    return np.array(found)


def _deviations(value: Array, share: Array) -> Array:
    """Return the influences of single rows, by stratum and group, from the values of strata.

    What the groups of a stratum have in common cancels in the gap: a group's own part is how far it
    is from their mean, of which the mean has taken one in as many as there are groups.
    """
    own = value - value.mean(axis=1, keepdims=True)
    apart = own - share @ own / share.sum() if len(share) else own
    return np.asarray(np.abs(share[:, None] * apart) / np.sqrt(1 - 1 / value.shape[1]))


def _share_strata(sizes: Array, weights: Array | None) -> Array:
    """Return the strata's shares in the gap, given the groups' sizes there."""
    with np.errstate(divide="ignore", invalid="ignore"):
        share = 1 / (1 / sizes).sum(axis=1) if weights is None else weights
        return np.asarray(share / share.sum())


def _count_placements(
    part: RankMetric, comparison: Comparison, rows: Sample, label_and_score: Array
) -> tuple[Array, Array]:
    """Return the effective number of rows or clusters behind each group's AUC, and one more's part.

    A row's influence is its weight times its structural component minus the AUC, over the weight of
    its label. Those of a cluster's rows are added up, and strata count by their shares. A stratum
    with one row of each label counts as one row: its AUC varies between such strata only.

    One more row of a label has at most an influence like that of a row whose component is 0 or 1,
    whichever is farther from the AUC. The mean of these largest influences, each counting by its
    own size, is squared and added up over both labels: it is about (AUC/m)² + (AUC/n)² for plain
    rows, of which m are positive and n negative.

    A row or cluster with most of its label's weight makes the AUC, and so has almost no influence.
    With weights or clusters the effective number is therefore at most Kish's number k of positives,
    and of negatives; in strata with shares s, at most (Σv)²/Σ(v²/k), where v = s²/k.
    """
    n_groups, weight = rows.n_groups, rows.weight_of_each()
    influences: list[list[Array]] = [[] for _ in range(n_groups)]
    counts: list[list[Array]] = [[] for _ in range(n_groups)]
    pairs: list[list[tuple[float, float]]] = [[] for _ in range(n_groups)]  # shares and AUCs
    sums = np.zeros((n_groups, 2, 2))  # of largest influences and their squares, by label
    limits = np.zeros((n_groups, 2, 2))  # sums of v and of v²/k, by label
    for group, share, members in _list_groups_of_strata(rows, comparison.weights):
        count, cells = rows.count[members].astype(float), label_and_score[members]
        found = part.analyze(count * weight[members], cells)
        if (np.bincount(cells[:, 0] > 0, count) == 1).all():
            pairs[group].append((share, float(found.value)))
        scale = share * weight[members]
        influence, largest = scale * found.influence, np.zeros((len(members), 2))
        largest[np.arange(len(members)), (cells[:, 0] > 0).astype(np.intp)] = scale * found.share
        if rows.cluster is not None:
            cluster = np.unique(rows.cluster[members], return_inverse=True)[1].ravel()
            influence = np.bincount(cluster, count * influence).astype(np.float64)
            largest = np.stack([np.bincount(cluster, count * one) for one in largest.T], axis=1)
            least = _ROUNDING * part.span * largest.sum(axis=1)
            influence[np.abs(influence) <= least] = 0.0
            count = np.ones(len(influence))
        influences[group].append(influence)
        counts[group].append(count)
        v = count @ largest**2
        limits[group] += v, v * (v / share) ** 2
        largest *= found.misses
        sums[group] += count @ largest, count @ largest**2
    for group, pair in enumerate(pairs):
        shares, aucs = np.reshape(pair, (-1, 2)).T
        influences[group].append(shares * (aucs - aucs.mean() if pair else aucs))
        counts[group].append(np.ones(len(pair)))
    effective = _effective_numbers(influences, counts)
    with np.errstate(divide="ignore", invalid="ignore"):
        unseen = ((sums[:, 1] / sums[:, 0]) ** 2).sum(axis=-1)
        if rows.weight is not None or rows.cluster is not None:
            effective = np.fmin(effective, (limits[:, 0] ** 2 / limits[:, 1]).min(axis=-1))
    return effective, np.nan_to_num(unseen)


def _count_by_influence(
    part: RankMetric, rows: Sample, contributions: Array, weights: Array | None
) -> Array:
    """Return the effective number of rows or clusters behind each group's value."""
    sizes: list[list[list[Array]]] = [[[] for _ in range(rows.n_groups)] for _ in range(2)]
    counts: list[list[Array]] = [[] for _ in range(rows.n_groups)]
    weight = rows.weight_of_each()
    for group, share, members in _list_groups_of_strata(rows, weights):
        count, cells = rows.count[members].astype(float), contributions[members]
        found = part.analyze(count * weight[members], cells)
        both = [one * share * weight[members] for one in (found.influence, found.share)]
        if rows.cluster is not None:
            cluster = np.unique(rows.cluster[members], return_inverse=True)[1].ravel()
            both = [np.bincount(cluster, count * one).astype(np.float64) for one in both]
            count = np.ones(len(both[0]))
        for every, one in zip(sizes, both, strict=True):
            every[group].append(one)
        counts[group].append(count)
    return np.minimum(*(_effective_numbers(one, counts) for one in sizes))


def _round_off(values: Array) -> Array:
    """Return the values with ten digits each."""
    return np.array([float(f"{one:.10g}") for one in values.flat]).reshape(values.shape)


def _square_misses(
    part: RankMetric, rows: Sample, contributions: Array, comparison: Comparison
) -> Array:
    """Return the squared influence of one more row of each label that is ranked worst, added up.

    It is that of all strata of a group together, which is enough for an allowance.
    """
    numbers = np.stack([*count_base_rows(comparison).values()], axis=-1)
    weight = rows.count * rows.weight_of_each()
    found = np.empty(rows.n_groups)
    for group in range(rows.n_groups):
        mine = rows.group == group
        one_more = part.analyze(weight[mine], contributions[mine]).misses
        squares = (one_more / np.maximum(numbers[group], 1)) ** 2
        found[group] = np.nan_to_num(squares).sum()  # without a value there is no test
    return found


def _list_groups_of_strata(
    rows: Sample, weights: Array | None
) -> Iterator[tuple[int, float, NDArray[np.intp]]]:
    """Yield every group of every stratum that counts, the stratum's share in the gap, and rows."""
    n_groups = rows.n_groups
    place = rows.stratum.astype(np.intp) * n_groups + rows.group
    sizes = np.bincount(place, rows.count, rows.n_strata * n_groups).astype(np.float64)
    shares = _share_strata(sizes.reshape(-1, n_groups), weights)
    order = np.argsort(place, kind="stable")
    for members in np.split(order, np.flatnonzero(np.diff(place[order])) + 1):
        stratum, group = divmod(int(place[members[0]]), n_groups)
        if shares[stratum] != 0:
            yield group, float(shares[stratum]), members


def _effective_numbers(influences: list[list[Array]], counts: list[list[Array]]) -> Array:
    """Return the effective number of each group, from influences in each of its strata."""
    found = zip(influences, counts, strict=True)
    return np.array(
        [
            effective_number(np.concatenate(influence), np.concatenate(count)) if influence else 0.0
            for influence, count in found
        ]
    )


def effective_number(influence: Array, count: Array) -> float:
    """Return (Σψ²)²/Σψ⁴ of influences ψ, each of which occurs so often; 0 if all are 0."""
    return _effective_of_pieces(lambda: [(influence, count)])


def _effective_of_pieces(pieces: Callable[[], Iterable[tuple[Array, Array]]]) -> float:
    largest = np.max([np.abs(influence).max(initial=0.0) for influence, _ in pieces()])
    with np.errstate(divide="ignore", invalid="ignore"):  # over the largest nothing overflows
        squares = ((np.square(influence / largest), count) for influence, count in pieces())
        sums = [(count @ square, count @ np.square(square)) for square, count in squares]
        second, fourth = np.sum(sums, axis=0)
        effective = second**2 / fourth
    return float(effective) if np.isfinite(effective) else 0.0
