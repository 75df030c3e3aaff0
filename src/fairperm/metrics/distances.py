"""Distances between the distributions of a column in two groups: one short definition each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fairperm._utils.arrays import Array
from fairperm._utils.sorting import ranks
from fairperm.errors import InputError, InputTypeError, argument, did_you_mean, listed
from fairperm.metrics.definition import Kind, SingleMetric

if TYPE_CHECKING:
    from fairperm.metrics.definition import Function

_MAX_CATEGORIES = 100  # distinct numbers that are taken as categories, or as labels


@dataclass(frozen=True, slots=True, kw_only=True)
class Distance(SingleMetric):
    """A function of two distributions that is zero where they are equal."""

    name: str
    meaning: str
    # For numbers, a function of the gap G between the cumulative shares: of the largest |G|, of the
    # area of |G| and of that of G. For categories, a function of the counts of the first and the
    # second group by category (last axis).
    value: Function
    kind: Kind  # ``Kind.NUMBERS``, or ``Kind.ANY`` for categories
    aliases: tuple[str, ...] = ()
    given: str | None = None  # "label" if the distributions are compared given the label
    degree: int = 1  # the power of small gaps that it grows with: 2 for divergences

    is_distance: ClassVar[bool] = True
    complement: ClassVar[None] = None
    smooth: ClassVar[bool] = False
    contributions: ClassVar[tuple[str, ...]] = ("_value",)

    @property
    def of_numbers(self) -> bool:
        """Whether values are ordered numbers; if not, they are categories."""
        return self.kind == Kind.NUMBERS

    @property
    def columns(self) -> tuple[str, ...]:
        return ("values", "y_true") if self.given else ("values",)

    @property
    def identity(self) -> object:
        return self.name, self.given

    def given_label(self) -> Distance:
        """Return the distance given the label."""
        return replace(self, given="label")

    def checked_matrix(self, columns: Mapping[str, NDArray[Any]]) -> Array:
        """Return the number of each row, or that of its category. Raises InputError for too many.

        Of numbers that hardly repeat, no two groups have any in common: their distributions over
        categories are as far apart as can be, whatever they are.
        """
        values = columns["values"]
        if self.given:
            _check_labels(columns["y_true"])
        if self.of_numbers:
            return values.astype(np.float64)[:, None]
        category = ranks(values)
        if values.dtype.kind == "f" and len(category) and category.max() >= _MAX_CATEGORIES:
            raise InputError(
                "values",
                f"made of at most {_MAX_CATEGORIES} different numbers for {self.name}, which "
                "takes them as categories",
                int(category.max()) + 1,
                f"Put them into bins, or use {argument('distance', 'ks')}.",
            )
        return category.astype(np.float64)[:, None]

    def of_counts(self, first: Array, second: Array, values: Array) -> Array:
        """Return the distance from counts or weights of both groups by ascending value."""
        if not self.of_numbers:
            return np.asarray(self.value(first, second))
        gap = _shares(np.cumsum(first, axis=-1)) - _shares(np.cumsum(second, axis=-1))
        step = np.append(np.diff(values), 0.0)
        size = np.abs(gap)
        return np.asarray(
            self.value(size.max(axis=-1), (size * step).sum(axis=-1), (gap * step).sum(axis=-1))
        )


def get_distance(distance: object) -> Distance:
    """Return the distance that a user means by this name or alias."""
    if not isinstance(distance, str):
        raise InputTypeError("distance", "the name of a distance", distance)
    word = distance.strip().lower().replace("-", "_").replace(" ", "_")
    for one in DISTANCES:
        if word == one.name or word in one.aliases:
            return one
    if word.endswith("_given_label"):
        hint = f"To compare rows of equal label, pass {argument('y_true')}."
        raise InputError("distance", "the name of a distance", distance, hint)
    names = [one.name for one in DISTANCES]
    hint = did_you_mean(word, [*names, *(alias for one in DISTANCES for alias in one.aliases)])
    raise InputError("distance", f"one of {listed(names, most=len(names))}", distance, hint)


def _check_labels(labels: NDArray[Any]) -> None:
    """Raise InputError for measurements: hardly two rows would have the same label."""
    n = len(np.unique(labels)) if labels.dtype.kind in "iuf" else 0
    if n > _MAX_CATEGORIES:
        rule = f"made of at most {_MAX_CATEGORIES} different numbers, which are taken as labels"
        raise InputError("y_true", rule, n, "Cut them into bands.")


def _shares(cumulative: Array) -> Array:
    shares: Array = cumulative / cumulative[..., -1:]
    return shares


def _probabilities(counts: Array) -> Array:
    shares: Array = counts / counts.sum(axis=-1, keepdims=True)
    return shares


def _smoothed(counts: Array) -> Array:
    """Return shares after one row more of each category, as LiFT has them: none is zero."""
    return _probabilities(counts + 1)


def _differences(first: Array, second: Array) -> Array:
    return np.abs(_probabilities(first) - _probabilities(second))


def _bits(share: Array, other: Array) -> Array:
    """Return Σ p·log2(p/q)."""
    ratio = np.where(share > 0, share, 1.0) / np.where(share > 0, other, 1.0)
    total: Array = (share * np.log2(ratio)).sum(axis=-1)
    return total


def _jensen_shannon(first: Array, second: Array) -> Array:
    p, q = _probabilities(first), _probabilities(second)
    middle = (p + q) / 2
    return (_bits(p, middle) + _bits(q, middle)) / 2


def _skew(first: Array, second: Array) -> Array:
    largest: Array = np.abs(np.log(_smoothed(first) / _smoothed(second))).max(axis=-1)
    return largest


DISTANCES = (
    Distance(
        name="kolmogorov_smirnov",
        meaning="largest difference between the cumulative shares",
        value=lambda largest, _area, _signed: largest,
        kind=Kind.NUMBERS,
        aliases=("ks",),
    ),
    Distance(
        name="wasserstein",
        meaning="area between the cumulative shares: how far values must move on average",
        value=lambda _largest, area, _signed: area,
        kind=Kind.NUMBERS,
        aliases=("wasserstein_1", "earth_movers_distance"),
    ),
    Distance(
        name="demographic_parity",
        meaning="absolute difference of the means",
        value=lambda _largest, _area, signed: np.abs(signed),
        kind=Kind.NUMBERS,
        aliases=("mean_difference",),
    ),
    Distance(
        name="total_variation",
        meaning="half the sum of the absolute differences of the shares",
        value=lambda first, second: _differences(first, second).sum(axis=-1) / 2,
        kind=Kind.ANY,
        aliases=("tv", "total_var_dist"),
    ),
    Distance(
        name="infinity_norm",
        meaning="largest absolute difference of the shares",
        value=lambda first, second: _differences(first, second).max(axis=-1),
        kind=Kind.ANY,
        aliases=("inf_norm_dist", "chebyshev"),
    ),
    Distance(
        name="jensen_shannon",
        meaning="Jensen–Shannon divergence of the shares, in bits",
        value=_jensen_shannon,
        kind=Kind.ANY,
        aliases=("js", "js_divergence"),
        degree=2,
    ),
    Distance(
        name="kullback_leibler",
        meaning="Kullback–Leibler divergence of the first group's shares from the second's, in "
        "bits; the second's with one row more of each category",
        value=lambda first, second: _bits(_probabilities(first), _smoothed(second)),
        kind=Kind.ANY,
        aliases=("kl", "kl_divergence"),
        degree=2,
    ),
    Distance(
        name="skew",
        meaning="largest absolute log ratio of the shares, with one row more of each category",
        value=_skew,
        kind=Kind.ANY,
        aliases=("skews",),
    ),
)
