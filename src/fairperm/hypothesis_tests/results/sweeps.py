"""What a sweep over thresholds returns: arrays by metric, JSON and data frames. No computing."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from fairperm._utils.checks import choice
from fairperm.data.frames import frame_of
from fairperm.errors import shown
from fairperm.hypothesis_tests.results.gaps import json_ready, left_out

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    from altair import VConcatChart
    from numpy.typing import NDArray

    Array = NDArray[np.float64]


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
        The gap: first group less second; with strata, the weighted mean of the strata's gaps.
    standard_error : numpy.ndarray
        Of the difference.
    statistic : numpy.ndarray
        The studentized gap.
    pointwise_band, simultaneous_band : tuple of numpy.ndarray
        The lower and the upper limit, around zero. A gap outside the first is significant if its
        threshold was chosen beforehand; one outside the second, wherever one looks.
    pvalue, adjusted_pvalue : numpy.ndarray
        The same as p-values: at most alpha just where the gap lies outside the band.
    global_pvalue : float
        For the null hypothesis that there is no gap at any threshold; NaN if all are "sparse".
    status : numpy.ndarray
        "tested"; "trivial" where every row of a group is predicted alike (tested, unless it is
        every row of both groups); "undefined" where the metric is, so that there is no test;
        "sparse" where over 1 % of the permutations leave it undefined, so that the threshold is
        tested by itself but has no part in the simultaneous band.
    variance : str
        What the gap was divided by (None: nothing).
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
    pvalue: Array
    adjusted_pvalue: Array
    global_pvalue: float
    status: NDArray[np.str_]
    variance: str | None
    validity: str

    def largest(self) -> int:
        """Return the place of the largest gap that was tested beside the others.

        By itself, if none was.
        """
        p = self.pvalue if np.isnan(self.global_pvalue) else self.adjusted_pvalue
        return int(np.where(np.isnan(p), 0.0, np.abs(self.difference)).argmax())


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class ThresholdSweepResult:
    """The result of :func:`fairperm.threshold_sweep`.

    Attributes
    ----------
    thresholds : numpy.ndarray
        In ascending order; a row is predicted positive if its score is at least the threshold.
    curves : dict of MetricSweep
        What was found for each metric, by its full name.
    groups : tuple
        The two groups; every difference is the first less the second.
    alpha : float
        The level of the bands.
    scheme : str
        Among which rows labels were exchanged, for all metrics and thresholds at once.
    n_resamples : int
        Random permutations, the same for all metrics and thresholds.
    n_strata, n_dropped : int
        Strata, and rows left out for missing values.
    seed : int
        Passing it as ``rng`` gives the same result again.
    frame_library : str or None
        The library of the frame that was passed as `data`, if one was.
    """

    thresholds: Array
    curves: Mapping[str, MetricSweep]
    groups: tuple[Hashable, Hashable]
    alpha: float
    scheme: str
    n_resamples: int
    n_strata: int
    n_dropped: int
    seed: int
    frame_library: str | None = field(repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Return the result as JSON-ready values.

        Each curve's values are two lists in the order of ``groups``, whose names need not be
        strings. Undefined numbers are None.
        """
        plain = {part.name: getattr(self, part.name) for part in fields(self)}
        del plain["frame_library"]
        plain["curves"] = {name: self._plain(curve) for name, curve in self.curves.items()}
        plain["thresholds"] = self.thresholds.tolist()
        ready: dict[str, Any] = json_ready(plain)
        return ready

    def to_frame(self, library: str | None = None) -> Any:
        """Return a data frame with a row for each metric and threshold.

        Parameters
        ----------
        library : {"pandas", "polars", "pyarrow"}, optional
            What makes the frame: by default the library of the frame passed as `data`, or pandas.

        Returns
        -------
        frame
            With the columns metric, threshold, status, value_first, value_second (the two
            ``groups``), difference, standard_error, statistic, pointwise_lower, pointwise_upper,
            simultaneous_lower, simultaneous_upper, pvalue and adjusted_pvalue.
        """
        curves = [self.columns(curve) for curve in self.curves.values()]
        columns = {name: np.concatenate([one[name] for one in curves]) for name in curves[0]}
        return frame_of(columns, library, self.frame_library)

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

        With `slider`, a threshold can be picked whose numbers are told; `mode` is "light" or
        "dark", as the page is, or "auto" for both. See :func:`fairperm.plots.threshold_sweep`.
        """
        from fairperm import plots

        if metric is not None:
            choice("metric", metric, tuple(self.curves))
        chosen = self.curves if metric is None else {metric: self.curves[metric]}
        curves = [self.columns(curve) for curve in chosen.values()]
        return plots.threshold_sweep(
            {name: np.concatenate([one[name] for one in curves]) for name in curves[0]},
            groups=self.groups,
            alpha=self.alpha,
            slider=slider,
            width=width,
            height=height,
            mode=mode,
        )

    def columns(self, curve: MetricSweep) -> dict[str, NDArray[Any]]:
        """Return one metric's curve by threshold, as :meth:`to_frame` has it."""
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
        }

    def _plain(self, curve: MetricSweep) -> dict[str, Any]:
        plain = {part.name: getattr(curve, part.name) for part in fields(curve)}
        plain["values"] = [curve.values[group].tolist() for group in self.groups]
        for name in ("pointwise_band", "simultaneous_band"):
            plain[name] = [limit.tolist() for limit in plain[name]]
        return {
            name: one.tolist() if isinstance(one, np.ndarray) else one
            for name, one in plain.items()
        }

    def __repr__(self) -> str:
        first, second = map(shown, self.groups)
        lines = [
            f"{type(self).__name__}: {first} less {second} at {len(self.thresholds):,} thresholds, "
            f"{self.n_resamples:,} draws"
        ]
        for name, curve in self.curves.items():
            worst = curve.largest()
            outside = int((curve.adjusted_pvalue <= self.alpha).sum())
            lines += [
                f"  {name}",
                f"    largest gap  {curve.difference[worst]:+z.4f} at {self.thresholds[worst]:.4g}",
                f"    p-value      {curve.global_pvalue:.4g} for all thresholds together; "
                f"{outside:,} {'gap' if outside == 1 else 'gaps'} outside the simultaneous "
                f"{1 - self.alpha:.4g} band",
                f"    validity     {curve.validity}",
            ]
        return "\n".join([*lines, *left_out(self.n_dropped)])
