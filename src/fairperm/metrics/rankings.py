"""Metrics of ranked lists: one value for each query, or of the items of each group.

The value of a group's items is computed from their sums in each list. The influence of a list on it
is how the value changes if the list counts a little more; its mean over lists is zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from fairperm._utils.arrays import Array, Codes, Integers, Places
from fairperm._utils.sorting import equate_close, run_numbers, run_starts
from fairperm.errors import InputError, InputTypeError, Shown, argument, did_you_mean, listed
from fairperm.metrics.definition import Kind, SingleMetric

_ROUNDING = 1e-12  # of a value, and of a sum relative to that of both groups
_MAX_RELEVANT = 1e100
_MAX_DIGITS = 9  # of a number of items


@dataclass(frozen=True, slots=True)
class RankedLists:
    """Items sorted by query and from the top of its list; a query starts at each of ``starts``.

    ``run`` numbers the runs of items with equal scores, which share what they get.
    """

    query: Codes
    position: Array
    relevance: Array
    run: Places
    starts: Places

    @classmethod
    def sort(
        cls, query: Codes, score: Array, relevance: Array, *, is_rank: bool
    ) -> tuple[RankedLists, Places]:
        """Return the lists, and the order of the given items in them; a rank is a position."""
        descending = score if is_rank else -score
        # tied items in one order: a sum over them may not depend on the user's
        order = np.lexsort([relevance, descending, query])
        query, descending = query[order], descending[order]
        starts = run_starts(query)
        position = np.arange(len(query)) - np.repeat(starts, np.diff(np.append(starts, len(query))))
        run = run_numbers(run_starts(query, descending), len(query))
        placed = (descending if is_rank else position + 1).astype(np.float64)
        return cls(query, placed, relevance[order], run, starts), order

    @property
    def sizes(self) -> Integers:
        """The number of items of each query."""
        return np.diff(np.append(self.starts, len(self.query)))

    @property
    def places(self) -> Array:
        """The place of each item among those of its query, from 1; positions may have gaps."""
        place = np.arange(1, len(self.query) + 1) - np.repeat(self.starts, self.sizes)
        return place.astype(np.float64)

    def total(self, values: Array) -> Array:
        """Return the sum of each query."""
        total: Array = np.add.reduceat(values, self.starts)
        return total

    def share_ties(self, values: Array) -> Array:
        """Return for each item the mean over the items with its score."""
        mean = np.bincount(self.run, values) / np.bincount(self.run)
        return mean[self.run]

    def find_ties(self) -> Places:
        """Return the items whose score the next one has too."""
        return np.flatnonzero(self.run[1:] == self.run[:-1])

    def ideal(self) -> Array:
        """Return the relevance of the items if the most relevant ones were first."""
        ideal: Array = self.relevance[np.lexsort([-self.relevance, self.query])]
        return ideal


@dataclass(frozen=True, slots=True)
class ListSums:
    """Sums over a group's items: of each of their values (first axis), list, and draw (last axis).

    ``totals`` are the sums over the items of both groups. In each list the group has ``n`` items,
    both groups have ``sizes``.
    """

    sums: Array
    totals: Array
    n: Integers
    sizes: Integers

    def mean(self) -> tuple[Array, Array]:
        """Return the mean over lists of the group's mean, and the influence of each list."""
        means = self.sums[0] / self.n
        value = means.mean(axis=0)
        return value, means - value

    def ratio(self) -> tuple[Array, Array]:
        """Return the ratio of two such means, NaN if the second is zero, and the influences."""
        above, below = self.sums / self.n
        base = below.mean(axis=0)
        least = _ROUNDING * (self.totals[1] / self.sizes).mean(axis=0)
        base = np.where(base > least, base, np.nan)
        value = above.mean(axis=0) / base
        return value, (above - value * below) / base

    def skew(self) -> tuple[Array, Array]:
        """Return the log of observed over expected sums, NaN for a sum of zero, and influences."""
        # expected is what the group has if values in a list do not depend on the group
        found, expected = self.sums[0], self.totals[0] * self.n / self.sizes
        mean, due = found.mean(axis=0), expected.mean(axis=0)
        mean = np.where(mean > _ROUNDING * self.totals[0].mean(axis=0), mean, np.nan)
        due = np.where(due > 0, due, np.nan)
        return np.log(mean / due), found / mean - expected / due


@dataclass(frozen=True, slots=True, kw_only=True)
class RankingMetric(SingleMetric):
    """A value of each query, or of the items of a group."""

    name: str
    meaning: str
    # The values of queries, from the lists and k, NaN where undefined; or those of items, by item
    # (last axis). If ``of_all_groups``, the weight of the shares down to each item.
    value: Callable[[RankedLists, int], Array]
    aliases: tuple[str, ...] = ()
    # whether items are compared within their query, instead of queries with each other
    of_items: bool = False
    # whether the value is one of all groups together, without a value of each
    of_all_groups: bool = False
    # the value of a group of items, and the influence of each list on it
    of_group: Callable[[ListSums], tuple[Array, Array]] = ListSums.mean
    largest_gap: float = 1.0  # the largest possible gap between groups of items
    has_ratio: bool = True  # whether values can be divided by each other: logarithms cannot
    reads_relevance: bool = True  # whether relevance is needed
    is_binary: bool = True  # whether relevance must be 0 or 1
    breaks_ties: bool = False  # whether the value depends on the order of items with equal scores
    uses_k: bool = True  # whether only the top k of a list count
    k: int = 10  # how many items these are

    is_ranking: ClassVar[bool] = True
    kind: ClassVar[Kind] = Kind.REGRESSION
    given: ClassVar[None] = None
    complement: ClassVar[None] = None

    @property
    def columns(self) -> tuple[str, ...]:
        return ("y_true", "y_pred") if self.reads_relevance else ("y_pred",)

    @property
    def span(self) -> float:
        """The largest possible gap."""
        return self.largest_gap

    @property
    def full_name(self) -> str:
        """The name with the number of items that count: "ndcg@10"."""
        return f"{self.name}@{self.k}" if self.uses_k else self.name

    def at(self, k: int) -> RankingMetric:
        """Return the metric of the top k."""
        return replace(self, k=k)


def get_ranking_metric(metric: object) -> RankingMetric:
    """Return the metric of rankings that a user means by this name or alias."""
    if not isinstance(metric, str):
        raise InputTypeError("metric", "the name of a metric of rankings", metric)
    word = metric.strip().lower().replace("-", "_").replace(" ", "_").replace("@k", "_at_k")
    for one in RANKING_METRICS:
        if word == one.name or word in one.aliases:
            return one
    names = [one.name for one in RANKING_METRICS]
    raise InputError("metric", f"one of {listed(names)}", metric, did_you_mean(word, names))


def find_ranking(name: object, k: int = 10) -> RankingMetric:
    """Return the metric that a name means: "ndcg@5", or "ndcg" for the top k.

    Examples
    --------
    >>> find_ranking("ndcg@5").full_name, find_ranking("MRR").full_name
    ('ndcg@5', 'reciprocal_rank@10')
    """
    word, _, top = name.partition("@") if isinstance(name, str) else ("", "", "")
    if not top.isdecimal():
        return get_ranking_metric(name).at(k)
    metric = get_ranking_metric(word)
    if not metric.uses_k:
        raise InputError("metric", f"{metric.name} without '@': it counts whole lists", name)
    if len(top) > _MAX_DIGITS or int(top) < 1:
        raise InputError("metric", f"{metric.name}@ and a number of items from 1 on", name)
    return metric.at(int(top))


def check_lists(metric: RankingMetric, lists: RankedLists, source: str) -> None:
    """Raise InputError for relevance and ties that the metric is not defined for."""
    if metric.reads_relevance:
        check_relevance(float(lists.relevance.min()), float(lists.relevance.max()))
        unlike = lists.relevance[(lists.relevance != 0) & (lists.relevance != 1)]
        if metric.is_binary and unlike.size:
            hint = f"Graded relevance needs {argument('metric', 'ndcg')}."
            raise InputError("relevance", f"0 or 1 for {metric.name}", float(unlike[0]), hint)
    tied = lists.find_ties()
    if source == "rank":
        wrong = lists.position[(lists.position < 1) | (lists.position % 1 != 0)]
        if wrong.size:
            hint = "The first position is 1: add 1 to positions that begin at 0."
            raise InputError("rank", "made of positions 1, 2, 3, …", Shown(f"{wrong[0]:g}"), hint)
        if tied.size:
            rule = "made of different positions within a query"
            raise InputError("rank", rule, Shown(f"{lists.position[tied[0]]:g} twice"))
    elif metric.breaks_ties and tied.size:
        hint = f"Pass {argument('rank')} to say which item comes first."
        rule = f"made of different numbers within a query for {metric.name}"
        raise InputError("score", rule, Shown("equal scores"), hint)


def check_relevance(lowest: float, highest: float) -> None:
    """Raise InputError for relevance that is negative, or that cannot be squared or divided by."""
    if lowest < 0:
        raise InputError("relevance", "not negative", lowest)
    if highest > _MAX_RELEVANT:
        raise InputError("relevance", f"at most {_MAX_RELEVANT:g}", highest)
    if 0 < highest < 1 / _MAX_RELEVANT:
        raise InputError("relevance", f"at least {1 / _MAX_RELEVANT:g} for some item", highest)


def check_top(metric: RankingMetric, k: int, longest: int, *, is_rank: bool) -> None:
    """Raise InputError if no list has k items; given positions may be those of longer lists."""
    if metric.uses_k and metric.of_items and k >= longest:
        hint = "All items are in the top otherwise, whatever their order."
        raise InputError("k", f"below the last position ({longest:,}) for {metric.name}", k, hint)
    if metric.uses_k and not is_rank and k > longest:
        whole = argument("metric", metric.at(longest).full_name)  # also if k is part of the name
        hint = f"Pass {whole} for whole lists."
        raise InputError("k", f"at most the longest list ({longest:,} items)", k, hint)


def equate_values(values: Array) -> Array:
    """Return the values of queries, with those equal that only rounding errors tell apart."""
    # engines add in their own order, and a third may be a sum of thirds
    equated, known = values.copy(), ~np.isnan(values)
    equated[known] = equate_close(values[known], _ROUNDING * values[known])
    return equated


def _discount(lists: RankedLists) -> Array:
    discount: Array = 1 / np.log2(lists.position + 1)
    return discount


def _in_top(lists: RankedLists, k: int) -> Array:
    return (lists.position <= k).astype(np.float64)


def _ratio(numerator: Array, denominator: Array) -> Array:
    """Return a ratio; NaN without a denominator."""
    ratio = np.full(len(numerator), np.nan)
    np.divide(numerator, denominator, where=denominator > 0, out=ratio)
    return ratio


def _ndcg(lists: RankedLists, k: int) -> Array:
    discount = _discount(lists) * _in_top(lists, k)
    gained = lists.total(lists.relevance * lists.share_ties(discount))
    # the best list has its items at the first positions, even if those given have gaps
    best = np.where(lists.places <= k, 1 / np.log2(lists.places + 1), 0.0)
    return _ratio(gained, lists.total(lists.ideal() * best))


def _precision(lists: RankedLists, k: int) -> Array:
    hits = lists.total(lists.relevance * lists.share_ties(_in_top(lists, k)))
    last = np.maximum.reduceat(lists.position, lists.starts)  # given positions may have gaps
    precision: Array = hits / np.minimum(last, k)
    return precision


def _recall(lists: RankedLists, k: int) -> Array:
    hits = lists.total(lists.relevance * lists.share_ties(_in_top(lists, k)))
    return _ratio(hits, lists.total(lists.relevance))


def _average_precision(lists: RankedLists, k: int) -> Array:
    del k  # the whole list
    last = np.append(np.flatnonzero(np.diff(lists.run)), len(lists.run) - 1)
    before = np.cumsum(lists.relevance)[lists.starts] - lists.relevance[lists.starts]
    found = np.cumsum(lists.relevance) - np.repeat(before, lists.sizes)
    at_run = found[last] / lists.position[last]  # the precision down to the end of a run
    return _ratio(lists.total(lists.relevance * at_run[lists.run]), lists.total(lists.relevance))


def _first_hit(lists: RankedLists) -> Array:
    first: Array = np.minimum.reduceat(
        np.where(lists.relevance > 0, lists.position, np.inf), lists.starts
    )
    return first


def _reciprocal_rank(lists: RankedLists, k: int) -> Array:
    first = _first_hit(lists)
    return np.where(first <= k, 1 / first, 0.0)


def _place_weights(lists: RankedLists) -> Array:
    discount = 1 / np.log2(lists.places + 1)
    return discount / np.repeat(lists.total(discount), lists.sizes)


RANKING_METRICS = (
    RankingMetric(
        name="ndcg",
        meaning="normalized discounted cumulative gain of the top k",
        value=_ndcg,
        aliases=("ndcg_score", "ndcg_at_k"),
        is_binary=False,
    ),
    RankingMetric(
        name="precision",
        meaning="share of relevant items in the top k, or in a shorter list",
        value=_precision,
        aliases=("precision_at_k",),
    ),
    RankingMetric(
        name="recall",
        meaning="share of the relevant items that are in the top k",
        value=_recall,
        aliases=("recall_at_k",),
    ),
    RankingMetric(
        name="average_precision",
        meaning="mean precision at the relevant items of the whole list",
        value=_average_precision,
        aliases=("map", "mean_average_precision"),
        uses_k=False,
    ),
    RankingMetric(
        name="reciprocal_rank",
        meaning="one over the position of the first relevant item, 0 below the top k",
        value=_reciprocal_rank,
        aliases=("mrr", "mean_reciprocal_rank"),
        breaks_ties=True,
    ),
    RankingMetric(
        name="hit_rate",
        meaning="whether a relevant item is in the top k",
        value=lambda lists, k: (_first_hit(lists) <= k).astype(np.float64),
        aliases=("hit_rate_at_k",),
        breaks_ties=True,
    ),
    RankingMetric(
        name="exposure",
        meaning="mean position-discounted exposure 1/log2(1 + position) of a group's items",
        value=lambda lists, _k: lists.share_ties(_discount(lists))[None],
        of_items=True,
        reads_relevance=False,
        uses_k=False,
    ),
    RankingMetric(
        name="exposure_per_relevance",
        meaning="mean exposure of a group's items over their mean relevance",
        value=lambda lists, _k: np.stack([lists.share_ties(_discount(lists)), lists.relevance]),
        of_items=True,
        of_group=ListSums.ratio,
        largest_gap=math.inf,
        is_binary=False,
        uses_k=False,
    ),
    RankingMetric(
        name="top_k_share",
        meaning="share of a group's items that are in the top k",
        value=lambda lists, k: lists.share_ties(_in_top(lists, k))[None],
        of_items=True,
        reads_relevance=False,
    ),
    RankingMetric(
        name="skew",
        meaning="log of a group's share of the top k over its share of the lists, among the items "
        "of both groups",
        value=lambda lists, k: lists.share_ties(_in_top(lists, k))[None],
        aliases=("skew_at_k",),
        of_items=True,
        of_group=ListSums.skew,
        largest_gap=math.inf,
        has_ratio=False,
        reads_relevance=False,
    ),
    RankingMetric(
        name="ndkl",
        meaning="mean Kullback–Leibler divergence of the groups' shares of the top i from those of "
        "the list, over all i, discounted by 1/log2(1 + i)",
        value=lambda lists, _k: _place_weights(lists)[None],
        of_items=True,
        of_all_groups=True,
        reads_relevance=False,
        breaks_ties=True,
        uses_k=False,
    ),
)
