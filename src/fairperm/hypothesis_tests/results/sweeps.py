"""The result of a sweep over thresholds: arrays by metric, JSON and data frames."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fairperm._utils.arrays import Array
from fairperm._utils.checks import choice
from fairperm._utils.formatting import (
    format_count,
    format_level,
    format_number,
    format_pvalue,
    name_group,
    name_of_gap,
)
from fairperm.hypothesis_tests.results.answers.sweeps import answer_sweep
from fairperm.hypothesis_tests.results.answers.words import unit_of
from fairperm.hypothesis_tests.results.gaps import PlainResult, ResultWithFrame, json_ready
from fairperm.hypothesis_tests.results.text import state_rows

if TYPE_CHECKING:
    from altair import VConcatChart


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class MetricSweep:
    """One metric in a :class:`ThresholdSweepResult`: arrays with an entry for each threshold.

    Attributes
    ----------
    metric : str
        The metric's full name.
    values : dict
        The metric in each group (with strata: over all strata together).
    difference : numpy.ndarray
        The gap: first group minus second; with strata, the weighted mean of the strata's gaps.
    standard_error : numpy.ndarray
        Standard error of the difference.
    statistic : numpy.ndarray
        The studentized gap.
    pointwise_band, simultaneous_band, joint_band : tuple of numpy.ndarray
        The lower and the upper limit, around zero. A gap outside the first is significant if its
        threshold was chosen beforehand; one outside the second, at whichever threshold of this
        metric one looks; one outside the third, at whichever threshold of whichever metric.
    pvalue, adjusted_pvalue, joint_pvalue : numpy.ndarray
        The same as p-values: at most alpha just where the gap lies outside the band.
    global_pvalue : float
        For the null hypothesis that there is no gap at any threshold; NaN if all are "sparse".
    status : numpy.ndarray
        "tested"; "trivial" if all rows of a group have the same prediction (tested unless all rows
        of both groups have it); "undefined" if the metric is undefined, and there is no test;
        "sparse" if over 1 % of the permutations leave it undefined: the threshold is then tested
        by itself, and left out of the simultaneous band.
    variance : str
        The variance that studentized the gap; None if it was not studentized.
    validity : str
        For which null the p-values are valid, and in which sense.
    """

    metric: str
    values: Mapping[Hashable, Array]
    difference: Array
    standard_error: Array
    statistic: Array
    pointwise_band: tuple[Array, Array]
    simultaneous_band: tuple[Array, Array]
    joint_band: tuple[Array, Array]
    pvalue: Array
    adjusted_pvalue: Array
    joint_pvalue: Array
    global_pvalue: float
    status: NDArray[np.str_]
    variance: str | None
    validity: str

    def largest(self) -> int:
        """Return the index of the largest gap in the simultaneous band, or of all sparse ones."""
        p = self.pvalue if np.isnan(self.global_pvalue) else self.adjusted_pvalue
        return int(np.where(np.isnan(p), 0.0, np.abs(self.difference)).argmax())


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class ThresholdSweepResult(ResultWithFrame):
    """The result of :func:`fairperm.threshold_sweep`.

    Attributes
    ----------
    thresholds : numpy.ndarray
        In ascending order; a row is predicted positive if its score is at least the threshold.
    curves : dict of MetricSweep
        The results of each metric, by its full name.
    groups : tuple
        The two groups; every difference is the first minus the second.
    attribute : str
        The name of the column of groups, or "".
    alternative : str
        In which directions gaps are tested.
    alpha : float
        The level of the bands.
    scheme : str
        Among which rows labels were exchanged, for all metrics and thresholds at once.
    n_resamples : int
        Random permutations, the same for all metrics and thresholds.
    sizes : tuple of int
        Rows of the two groups.
    n_strata, n_dropped : int
        Numbers of strata, and of rows left out because of missing values.
    seed : int
        Passing it as ``rng`` gives the same result again.
    """

    thresholds: Array
    curves: Mapping[str, MetricSweep]
    groups: tuple[Hashable, Hashable]
    alternative: str
    alpha: float
    scheme: str
    n_resamples: int
    n_strata: int
    sizes: tuple[int, int]
    n_dropped: int
    seed: int
    attribute: str = ""

    @property
    def group_names(self) -> tuple[str, str]:
        """The groups as text; one that is a number with its column."""
        first, second = (name_group(self.attribute, group) for group in self.groups)
        return first, second

    def to_dict(self) -> dict[str, Any]:
        """Return the result as JSON-ready values.

        Each curve's values are two lists in the order of ``groups``, whose names need not be
        strings. Undefined numbers are None.
        """
        plain = PlainResult.to_dict(self)
        for name, curve in self.curves.items():
            plain["curves"][name]["values"] = json_ready([curve.values[one] for one in self.groups])
        return plain

    def columns(self) -> dict[str, NDArray[Any]]:
        """Return a column of an entry for each metric and threshold, by name.

        They are metric, threshold, status, value_first, value_second (the two ``groups``),
        difference, standard_error, statistic, pointwise_lower, pointwise_upper, simultaneous_lower,
        simultaneous_upper, pvalue, adjusted_pvalue, joint_lower, joint_upper and joint_pvalue.
        """
        curves = [self.columns_of(curve) for curve in self.curves.values()]
        return {name: np.concatenate([one[name] for one in curves]) for name in curves[0]}

    def plot(
        self,
        metric: str | None = None,
        *,
        slider: bool = False,
        width: int = 700,
        height: int = 200,
        mode: str = "auto",
    ) -> VConcatChart:
        """Draw the gaps of one metric, or of all, with their bands over the thresholds.

        The bands are the pointwise and the simultaneous one of each metric by itself.

        With `slider`, readers pick a threshold to see its numbers; `mode` is "light" or
        "dark", as the page is, or "auto" for both. See :func:`fairperm.plots.threshold_sweep`.
        """
        from fairperm import plots

        if metric is not None:
            choice("metric", metric, tuple(self.curves))
        chosen = self if metric is None else replace(self, curves={metric: self.curves[metric]})
        return plots.threshold_sweep(
            chosen.columns(),
            groups=self.group_names,
            rates=[name for name in chosen.curves if unit_of(name).is_share],
            alpha=self.alpha,
            slider=slider,
            width=width,
            height=height,
            mode=mode,
        )

    def columns_of(self, curve: MetricSweep) -> dict[str, NDArray[Any]]:
        """Return the columns of one metric."""
        first, second = (curve.values[group] for group in self.groups)
        return {
            "metric": np.full(len(self.thresholds), curve.metric),
            "threshold": self.thresholds,
            "status": curve.status,
            "value_first": first,
            "value_second": second,
            "difference": curve.difference,
            "standard_error": curve.standard_error,
            "statistic": curve.statistic,
            "pointwise_lower": curve.pointwise_band[0],
            "pointwise_upper": curve.pointwise_band[1],
            "simultaneous_lower": curve.simultaneous_band[0],
            "simultaneous_upper": curve.simultaneous_band[1],
            "pvalue": curve.pvalue,
            "adjusted_pvalue": curve.adjusted_pvalue,
            "joint_lower": curve.joint_band[0],
            "joint_upper": curve.joint_band[1],
            "joint_pvalue": curve.joint_pvalue,
        }

    @property
    def answer(self) -> str:
        """At how many thresholds the gap of each metric is larger than chance explains."""
        return answer_sweep(self)

    def _lines(self) -> list[tuple[str, str]]:
        lines = [line for curve in self.curves.values() for line in self._describe(curve)]
        draws = f"{len(self.thresholds):,}, with {self.n_resamples:,} draws"
        return [*lines, ("thresholds", draws), state_rows(sum(self.sizes), self.n_dropped)]

    def _describe(self, curve: MetricSweep) -> list[tuple[str, str]]:
        worst = curve.largest()
        gap = format_number(curve.difference[worst], signed=True)
        outside = format_count(int((curve.adjusted_pvalue <= self.alpha).sum()), "gap")
        level = format_level(1 - self.alpha)
        of_metric = [("metric", curve.metric)] if len(self.curves) > 1 else []
        lines = [
            *of_metric,
            (
                "largest gap",
                f"{gap} at {self.thresholds[worst]:.4g}, {name_of_gap(*self.group_names)}",
            ),
            (
                "p-value",
                f"{format_pvalue(curve.global_pvalue)} over all thresholds; {outside} "
                f"outside the simultaneous {level} band",
            ),
        ]
        if len(self.curves) > 1:
            outside = format_count(int((curve.joint_pvalue <= self.alpha).sum()), "gap")
            jointly = f"{outside} outside the joint {level} band of all {len(self.curves)} metrics"
            lines.append(("jointly", jointly))
        return [*lines, ("validity", curve.validity)]
