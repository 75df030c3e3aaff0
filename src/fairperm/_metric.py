"""What a metric is: a few contributions of each row, and a function of their totals.

A metric knows its value and its variance in one sample; it knows nothing of groups, of
permutations, or of where the counts came from. All functions work on arrays whose last axis
is the cells (or the contributions) and whose other axes are whatever the caller needs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fairperm._sample import CELLS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

Function = Callable[..., Any]

_STEP = 1e-100  # of the complex-step derivative: nothing is subtracted, so it can be tiny
_ROUNDING = 1e-28  # a variance this small against the largest possible is zero but for rounding


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A function ``value`` of the totals of a few contributions.

    Attributes
    ----------
    name, aliases
        What users may call it.
    meaning
        What it measures, in plain words, as the end of "the …".
    contributions
        Name of each contribution, with the cells of the confusion table whose rows add one.
    value
        The metric from the totals of the contributions, in their order. Doubling all totals must
        not change it: it describes a distribution, not a sample's size. It must also work for
        complex numbers, by which its derivative is taken: no ``abs`` and no comparisons.
    complement
        The metric that is one minus this one: the same hypothesis.
    given
        "label" or "prediction" if the metric depends only on the distribution given that.
    span
        The largest value less the smallest.
    """

    name: str
    meaning: str
    contributions: Mapping[str, tuple[str, ...]]
    value: Function
    aliases: tuple[str, ...] = ()
    complement: str | None = None
    given: str | None = None
    span: float = 1.0

    @property
    def is_rate(self) -> bool:
        """Tell whether this is a simple rate: rows of one kind among rows of another."""
        return tuple(self.contributions) == ("numerator", "denominator")

    @property
    def parts(self) -> tuple[Metric, ...]:
        """Return the metrics whose gaps are tested: this one."""
        return (self,)

    @property
    def uses_prediction(self) -> bool:
        """Tell whether rows that differ in the prediction alone contribute differently."""
        return bool((self.matrix()[0::2] != self.matrix()[1::2]).any())

    def matrix(self) -> Array:
        """Return what a row of each cell (axis 0) contributes to each total (axis 1)."""
        return np.array(
            [[float(cell in cells) for cells in self.contributions.values()] for cell in CELLS]
        )

    def estimate(self, counts: Array, contributions: Array) -> Array:
        """Return the metric's value; NaN where it is undefined."""
        return np.asarray(self._of(totals(counts, contributions)))

    def delta_variance(self, counts: Array, contributions: Array) -> Array:
        """Return the delta-method variance of the value, from the sample's second moments.

        A row's influence is the derivative of the value along its contributions. As the value
        does not change with the sample's size, influences add up to zero and need no centring.
        """
        at = totals(counts, contributions)
        gradient = np.empty_like(at)
        for j in range(at.shape[-1]):
            shifted = at.astype(complex)
            shifted[..., j] += 1j * _STEP
            gradient[..., j] = self._of(shifted).imag / _STEP
        variance = (counts * totals(gradient, contributions.T) ** 2).sum(axis=-1)
        largest = self.span**2 * ((counts > 0) / np.maximum(counts, 1)).sum(axis=-1)
        return np.where(variance <= _ROUNDING * largest, 0.0, variance)

    def _of(self, totals: NDArray[Any]) -> Any:
        return self.value(*(totals[..., j] for j in range(totals.shape[-1])))


@dataclass(frozen=True, slots=True, kw_only=True)
class JointMetric:
    """Several rates tested as one hypothesis: that none of them differs."""

    name: str
    meaning: str
    parts: tuple[Metric, ...]
    aliases: tuple[str, ...] = ()
    given: str | None = None
    complement: None = None
    is_rate: bool = False
    uses_prediction: bool = True


AnyMetric = Metric | JointMetric


def rate(
    name: str,
    meaning: str,
    *,
    count: str,
    among: str = "tn fp fn tp",
    aliases: tuple[str, ...] = (),
    complement: str | None = None,
) -> Metric:
    """Define a simple rate: the rows of the cells ``count`` as a share of those ``among``."""
    given = {"fn tp": "label", "tn fp": "label", "fp tp": "prediction", "tn fn": "prediction"}
    return Metric(
        name=name,
        meaning=meaning,
        contributions={"numerator": tuple(count.split()), "denominator": tuple(among.split())},
        value=lambda numerator, denominator: numerator / denominator,
        aliases=aliases,
        complement=complement,
        given=given.get(among),
    )


def table_metric(
    name: str,
    meaning: str,
    value: Function,
    *,
    aliases: tuple[str, ...] = (),
    given: str | None = None,
    span: float = 1.0,
) -> Metric:
    """Define a metric as a function of a confusion table ``tn, fp, fn, tp``."""
    cells = {cell: (cell,) for cell in CELLS}
    return Metric(
        name=name,
        meaning=meaning,
        contributions=cells,
        value=value,
        aliases=aliases,
        given=given,
        span=span,
    )


def totals(counts: Array, contributions: Array) -> Array:
    """Return the totals of the contributions: one matrix product for any number of samples."""
    flat = counts.reshape(-1, counts.shape[-1]) @ contributions
    return flat.reshape(*counts.shape[:-1], contributions.shape[-1])
