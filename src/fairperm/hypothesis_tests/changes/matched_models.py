"""The change of the gap inside matched sets between two models: the same prompts, asked twice."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from fairperm._utils.arrays import Array
from fairperm.data.sample import Sample
from fairperm.engines.matched_sets import Sides
from fairperm.hypothesis_tests.changes.group_changes import compare_values, mcnemar
from fairperm.hypothesis_tests.margins.paired_rates import MIN_CHANGED_ROWS, FewChangedRows
from fairperm.hypothesis_tests.matched import MatchedTest, choose_matched
from fairperm.hypothesis_tests.matched_sides import SidesOfSets, read_sides
from fairperm.hypothesis_tests.plan import Options
from fairperm.hypothesis_tests.results.changes import GroupChange, ModelComparisonResult
from fairperm.hypothesis_tests.run import Tested
from fairperm.metrics.changes import Change, columns_of_model, is_swapped_first
from fairperm.metrics.definition import AnyMetric


@dataclass(frozen=True, slots=True)
class MatchedChangeTest:
    """The studentized change of the gap inside matched sets, before its permutations.

    ``old`` and ``new`` are the values of both groups with either model.
    """

    gap_test: MatchedTest
    change: Change
    old: Array
    new: Array

    @classmethod
    def of(
        cls, table: Sample, metric: AnyMetric, groups: tuple[Hashable, Hashable], options: Options
    ) -> MatchedChangeTest:
        """Studentize the observed change. Raises UndefinedMetricError without a standard error."""
        test, change = _make_test(table, metric.change(), groups, options)
        old, new = (
            _estimate_model(table, metric, groups, options, test.read, new=side)
            for side in (False, True)
        )
        return cls(test, change, old, new)

    @property
    def is_joint(self) -> bool:
        """Whether several gaps are tested at once: never."""
        return False

    @property
    def has_error(self) -> bool:
        """Whether the change is studentized."""
        return self.gap_test.sample["variance"] is not None

    def weigh_strata(self, table: Sample) -> None:
        """Return None: the strata of both models have the same weights, numbers of sets."""
        del table

    def result(self, tested: Tested) -> ModelComparisonResult:
        groups = self.gap_test.sample["groups"]
        changes = {group: self._change(side, group) for side, group in enumerate(groups)}
        return tested.result(
            ModelComparisonResult,
            **{
                **self.gap_test.sample,
                "gap_variance": self._few_changed(),
                "values": {group: one.change for group, one in changes.items()},
            },
            gap_old=float(self.old[0] - self.old[1]),
            gap_new=float(self.new[0] - self.new[1]),
            group_changes=changes,
        )

    def _change(self, side: int, group: Hashable) -> GroupChange:
        """Return the change of one group's value, with a paired test of its own over the sets."""
        sides, rate = self.gap_test.read.sides, self.change
        moved, exact = sides.totals[:, side, 0], None
        # a set's share of a group changes as a whole, and counts as every other one
        is_plain = not sides.leaves_one_out and len(sides.share) == 1
        is_rate = is_plain and rate.is_mean and rate.single.is_rate
        if is_rate and np.isin(sides.totals[..., 0], (-1, 0, 1)).all():
            exact = mcnemar(moved, np.ones(len(moved), np.int64))
        error = self.gap_test.sample["standard_errors"][group]
        return compare_values(rate.span, float(self.old[side]), float(self.new[side]), error, exact)

    def _few_changed(self) -> FewChangedRows | None:
        """Return why a change is not tested at a margin, if the models differ in few sets."""
        read = self.gap_test.read
        totals = read.sides.totals
        numbers = [
            float((self.change.swap(side) != side).any(axis=1).sum())
            for side in np.moveaxis(totals, 1, 0)
        ]
        least = int(np.argmin(numbers))
        if numbers[least] >= MIN_CHANGED_ROWS:
            return None
        unit = "cluster" if read.is_clustered else "set"
        group = self.gap_test.sample["groups"][least]
        return FewChangedRows(self.change.name, group, numbers[least], unit)


def make_matched_sum_test(
    table: Sample, metric: AnyMetric, groups: tuple[Hashable, Hashable], options: Options
) -> MatchedTest:
    """Return the test of the sum of both models' gaps, before its permutations."""
    return _make_test(table, metric.change(old=1), groups, options)[0]


def _make_test(
    table: Sample, change: AnyMetric, groups: tuple[Hashable, Hashable], options: Options
) -> tuple[MatchedTest, Change]:
    """Return the test with the models in an order that only the sets decide, and the change."""
    # swapping the models then changes the sign of every draw (not that of sums), and nothing else
    chosen = cast("Change", choose_matched(table, change, groups))
    read = read_sides(table, chosen, groups, options.stratum_weights)
    swapped = _swap(chosen, read.sides)
    if _come_first(swapped, read.sides):
        chosen = replace(chosen, sign=chosen.old)
        read = replace(read, sides=swapped)
    return MatchedTest.of_sides(table, chosen, groups, options, read), chosen


def _swap(change: Change, sides: Sides) -> Sides:
    """Return the sides with swapped models."""
    flat = sides.totals.reshape(-1, sides.totals.shape[-1])
    return replace(sides, totals=change.swap(flat).reshape(sides.totals.shape))


def _come_first(these: Sides, others: Sides) -> bool:
    """Whether these sets come before the others in the order of their values, in any group."""
    columns = []
    for one in (these, others):
        inside = np.lexsort(np.moveaxis(one.totals, -1, 0)[::-1], axis=-1)
        ordered = np.take_along_axis(one.totals, inside[..., None], axis=1)
        columns.append([ordered.reshape(len(ordered), -1), one.share[one.stratum]])
    count = np.ones(len(these.totals), np.int64)
    return is_swapped_first(columns[1], columns[0], count)


def _estimate_model(
    table: Sample,
    metric: AnyMetric,
    groups: tuple[Hashable, Hashable],
    options: Options,
    read: SidesOfSets,
    *,
    new: bool,
) -> Array:
    """Return the values of both groups with one model, in the same sets and strata."""
    own = replace(table, columns=columns_of_model(table.columns, new=new))
    single = choose_matched(own, metric, groups)
    sides = read_sides(own, single, groups, options.stratum_weights, read.compared).sides
    strata, share = sides.strata()
    totals = np.stack([one.sum(axis=0) for one in strata])
    return np.asarray(share @ single.estimate(totals))
