"""The change of a metric between two models of the same rows, itself a metric.

A row has the columns of both models: those of the new one end in ``_new``. Its contributions to
both values stand side by side, so the delta method gives the variance of the *paired* change, and
the gap between groups in it is the change of the gap.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from fairperm._utils.sorting import order_by, run_starts
from fairperm.metrics.callables import CallableMetric
from fairperm.metrics.definition import (
    NEW,
    AnyMetric,
    Metric,
    SingleMetric,
    Variance,
    WalkKind,
    columns_of,
    is_of_totals,
    name_change,
)
from fairperm.metrics.ranks import (
    AreaUnderCurve,
    RankInfluences,
    SortedCells,
    drop_rounding,
    placements,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence

    from numpy.typing import NDArray

    from fairperm._utils.arrays import Array, Integers, Places
    from fairperm.metrics.definition import GroupedColumns

    Columns = Mapping[str, NDArray[Any]]

_MEANS = ("numerator", "total")  # first contributions of metrics that are a mean of them


def columns_of_model(columns: Columns, *, new: bool) -> dict[str, NDArray[Any]]:
    """Return the columns of one of the two models, under the names that a metric knows."""
    if not new:
        return {name: one for name, one in columns.items() if not name.endswith(NEW)}
    return {
        name.removesuffix(NEW): one
        for name, one in columns.items()
        if name.endswith(NEW) or f"{name}{NEW}" not in columns
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Change(Metric):
    """The change of a function of totals."""

    single: Metric  # the metric that changes
    # where the contributions of the old and of the new model are among those of the change; None if
    # the first contribution is their difference, and the second is shared
    places: tuple[tuple[int, ...], tuple[int, ...]] | None
    old: int  # −1, or 1 if the models' values are added up
    sign: int = 1  # −1 if the contributions of the models stand in each other's places

    @classmethod
    def between_models(cls, metric: Metric, old: int = -1) -> Change:
        """Define the change of a metric."""
        names = tuple(metric.contributions)
        is_shared = [
            not any(column in {"y_pred", "y_score"} for column in columns_of(one))
            for one in metric.contributions.values()
        ]
        places = None
        if not (names[0] in _MEANS and is_shared[1:] == [True] and not metric.own):
            new, last = [], len(names)
            for place, shared in enumerate(is_shared):
                new.append(place if shared else last)
                last += not shared
            places = (tuple(range(len(names))), tuple(new))
        kept = {one.name: getattr(metric, one.name) for one in fields(Metric)}
        changed = {
            **name_change(metric),
            "aliases": (),
            "complement": None,
            "rate": None,
            "span": 2 * metric.span,
            "contributions": _contributions(metric, is_shared, has_difference=places is None),
        }
        change = cls(**{**kept, **changed}, single=metric, places=places, old=old)
        return replace(change, value=change._value)

    @property
    def columns(self) -> tuple[str, ...]:
        made = (f"{name}{NEW}" for name in self.single.columns if name != "y_true")
        return (*self.single.columns, *made)

    @property
    def is_mean(self) -> bool:
        """Whether it is the mean of the rows' differences."""
        return self.places is None

    @property
    def sizes_groups(self) -> bool:
        return self.is_mean and self.single.has_denominator

    @property
    def has_two_denominators(self) -> bool:
        return self.single.has_denominator and not self.is_mean

    def for_table(self, table: GroupedColumns, groups: Sequence[Hashable]) -> Metric:
        single = self.single.for_table(table, groups)
        if single is self.single or not is_of_totals(single):
            return self
        return replace(Change.between_models(single, self.old), sign=self.sign)

    def exchanged_label(self, columns: Columns) -> NDArray[Any]:
        return self.single.exchanged_label(columns)

    def find_lacking(self, contributions: Array) -> str:
        if self.places is None:
            return AnyMetric.find_lacking(self, contributions)
        found = (self.single.find_lacking(contributions[:, list(side)]) for side in self.places)
        return next(filter(None, found), "")

    def matrix(self, columns: Columns) -> Array:
        old, new = (
            self.single.matrix(columns_of_model(columns, new=side)) for side in (False, True)
        )
        if self.places is None:
            return np.stack([new[:, 0] + self.old * old[:, 0], old[:, 1]], axis=-1)
        apart = [j for j, place in enumerate(self.places[1]) if place >= len(self.places[0])]
        return np.hstack([old, new[:, apart]])

    def swap(self, matrix: Array) -> Array:
        """Return the contributions of rows whose models are swapped."""
        if self.places is None:
            return np.stack([self.old * matrix[:, 0] + 0.0, matrix[:, 1]], axis=-1)
        swapped = np.empty_like(matrix)
        for old, new in zip(*self.places, strict=True):
            swapped[:, old], swapped[:, new] = matrix[:, new], matrix[:, old]
        return swapped

    def bases(self) -> dict[str, Array]:
        # only a denominator has other rows in the other model
        if self.places is None:
            return self.single.bases()
        sides = {"": self.places[0]}
        if self.single.has_denominator:
            models = (" with the old model", " with the new model")[:: self.sign]
            sides = dict(zip(models, self.places, strict=True))
        found = {}
        for suffix, side in sides.items():
            for name, coefficients in self.single.bases().items():
                base = np.zeros(len(self.contributions))
                base[list(side)] = coefficients
                found[f"{name}{suffix}"] = base
        return found

    def base_of_contributions(self) -> Places:
        """Return the place of each contribution's base: the models' denominators are apart."""
        single = self.single.base_of_contributions()
        if self.places is None:
            return single
        found = np.zeros(len(self.contributions), np.intp)
        for place, side in enumerate(self.places):
            found[list(side)] = single + place * self.single.has_denominator
        return found

    def _value(self, *totals: Any) -> Any:
        if self.places is None:
            return totals[0] / totals[1]
        old, new = ([totals[place] for place in side] for side in self.places)
        return self.single.value(*new) + self.old * self.single.value(*old)

    def _of(self, totals: NDArray[Any]) -> Any:
        return self.sign * Metric._of(self, totals)


def _contributions(
    metric: Metric, is_shared: Sequence[bool], *, has_difference: bool
) -> dict[str, Any]:
    """Return the names of the contributions; their functions are those of one model."""
    names = dict(metric.contributions)
    if has_difference:
        first, second = names
        return {f"change of {first}": names[first], second: names[second]}
    pairs = zip(metric.contributions, is_shared, strict=True)
    return names | {f"{name}{NEW}": names[name] for name, shared in pairs if not shared}


@dataclass(frozen=True, slots=True, kw_only=True)
class RankChange(SingleMetric):
    """The change of the AUC, with the paired variance of DeLong, DeLong and Clarke-Pearson.

    The AUC of scores with the other sign is 1 minus the AUC: a sum is a change but for a constant.
    """

    name: str
    meaning: str
    single: AreaUnderCurve
    old: int
    sign: int = 1

    kind: ClassVar = AreaUnderCurve.kind
    columns: ClassVar[tuple[str, ...]] = ("y_true", "y_score", f"y_score{NEW}")
    contributions: ClassVar[tuple[str, ...]] = ("positives", "_score", f"_score{NEW}")
    aliases: ClassVar[tuple[str, ...]] = ()
    given: ClassVar[str] = "label"
    complement: ClassVar[None] = None
    span: ClassVar[float] = 2.0
    among: ClassVar[str] = "rows"
    is_mean: ClassVar[bool] = False
    walk: ClassVar[WalkKind] = WalkKind.AUC_CHANGE
    has_counts: ClassVar[bool] = False

    @property
    def closed_variance(self) -> Variance:
        return Variance.DELONG

    def matrix(self, columns: Columns) -> Array:
        matrix = np.column_stack([columns[name] for name in self.columns]).astype(np.float64)
        return matrix * [1.0, -self.old, 1.0]

    def base_rows(self, contributions: Array) -> dict[str, Array]:
        return self.single.base_rows(contributions)

    def swap(self, matrix: Array) -> Array:
        """Return the contributions of rows whose models are swapped."""
        return matrix[:, [0, 2, 1]] * [1.0, -self.old, -self.old]

    def value_of_counts(self, cells: Array) -> Callable[[Array], Array]:
        old, new = (SortedCells.of(cells[:, [0, score]]) for score in (1, 2))
        return lambda counts: (
            self.sign * (new.components(counts).value() - old.components(counts).value())
        )

    def of_walk(self, value: Array, variance: Array) -> tuple[Array, Array]:
        return self.sign * value, variance

    def analyze(self, counts: Array, cells: Array) -> RankInfluences:
        """Return what the change rests on; one more row that is missed is not allowed for."""
        (auc, difference, n), (auc_new, difference_new, _) = (
            placements(counts, cells[:, [0, score]]) for score in (1, 2)
        )
        change = drop_rounding(difference_new - difference)
        return RankInfluences(auc_new - auc, change / n, 1 / n, np.zeros(2))


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionChange(CallableMetric):
    """The change of a user's function of two columns."""

    single: CallableMetric
    old: int
    sign: int = 1

    is_mean: ClassVar[bool] = False

    @classmethod
    def between_models(cls, metric: CallableMetric, old: int) -> FunctionChange:
        """Define the change of a function."""
        return cls(
            name=name_change(metric)["name"],
            function=metric.function,
            columns=(*metric.columns, f"{metric.columns[1]}{NEW}"),
            takes_weight=metric.takes_weight,
            single=metric,
            old=old,
        )

    def base_rows(self, contributions: Array) -> dict[str, Array]:
        return self.single.base_rows(contributions)

    def swap(self, matrix: Array) -> Array:
        """Return the contributions of rows whose models are swapped."""
        return matrix[:, [0, 2, 1]]

    def value(self, columns: Sequence[NDArray[Any]], weight: Array | None, where: str) -> float:
        truth, old, new = columns
        of_old, of_new = (self.single.value([truth, one], weight, where) for one in (old, new))
        return self.sign * (of_new + self.old * of_old)


def is_swapped_first(here: Sequence[Array], there: Sequence[Array], count: Integers) -> bool:
    """Whether the rows with swapped models come before the rows, in the order of their values.

    Whichever comes first is drawn: swapping the models then changes no draw. Rows have several
    columns; each is read only if those before it do not tell ``here`` from ``there``, as if as many
    rows move up as down.
    """
    if all(map(np.array_equal, here, there)):
        return False
    for n in range(1, len(here) + 1):
        mine, other = (_count_equal(np.column_stack(one[:n]), count) for one in (here, there))
        shared = min(len(mine), len(other))  # equal only if all are: the counts have one total
        unlike = np.argwhere(mine[:shared] != other[:shared])
        if unlike.size:
            return bool(other[tuple(unlike[0])] < mine[tuple(unlike[0])])
    return False


def _count_equal(matrix: Array, count: Integers) -> Array:
    """Return the distinct rows in the order of their values, each with its count."""
    order = order_by([*matrix.T])
    starts = run_starts(*matrix[order].T)
    return np.column_stack([matrix[order[starts]], np.add.reduceat(count[order], starts)])
