"""The result of the omnibus test. No computing here."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fairperm._utils.formatting import format_number, format_pvalue, name_group
from fairperm.hypothesis_tests.results.gaps import PlainResult
from fairperm.hypothesis_tests.results.text import state_draws, state_value, write_result

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class OmnibusTestResult(PlainResult):
    """The result of :func:`fairperm.omnibus_test`.

    Attributes
    ----------
    metric : str
        The metric's full name.
    attribute : str
        The name of the column of groups, or "".
    groups : tuple
        The groups compared.
    values, standard_errors, counts : dict
        Of each group, all strata together: the metric, its standard error (assuming no null), and
        the totals it is made of.
    mean : float
        The groups' values averaged, each weighted by the inverse of its variance (with matched
        sets, all alike). NaN for a joint metric.
    statistic : float
        The sum over the groups of (value − mean)² / variance; of the parts of a joint metric, the
        largest. With the score variance, the groups' variances assume one rate. With matched sets,
        the squared distance between the groups' values, by their covariance over sets.
    pvalue : float
        The share of permutations with a statistic at least as large; never zero.
    pvalue_interval, pvalue_interval_wilson : tuple of float
        For the p-value that infinitely many permutations would give.
    stopped_early : bool
        Whether drawing stopped because 20 permutations were at least as extreme as the sample.
    validity : str
        For which null the p-value is valid, and in which sense.
    notes : tuple of str
        Remarks that matter for reading the result.
    null_distribution : numpy.ndarray
        The statistic under each permutation.
    """

    metric: str
    attribute: str = ""
    groups: tuple[Hashable, ...]
    values: Mapping[Hashable, Any]
    standard_errors: Mapping[Hashable, Any]
    counts: Mapping[Hashable, Mapping[str, float]]
    mean: float
    statistic: float
    pvalue: float
    pvalue_interval: tuple[float, float]
    pvalue_interval_wilson: tuple[float, float]
    confidence_level: float
    scheme: str
    variance: str | None
    n_resamples: int
    stopped_early: bool = False
    n_undefined: int
    n_strata: int
    n_dropped: int
    seed: int
    validity: str
    notes: tuple[str, ...]
    null_distribution: NDArray[np.float64] = field(repr=False)

    def __repr__(self) -> str:
        draws = state_draws(
            self.n_resamples,
            self.confidence_level,
            self.pvalue_interval,
            stopped_early=self.stopped_early,
        )
        lines = [
            *(
                (name_group(self.attribute, one), state_value(self.values[one], self.counts[one]))
                for one in self.groups
            ),
            ("statistic", format_number(self.statistic)),
            ("p-value", f"{format_pvalue(self.pvalue)}  {draws}"),
            ("validity", self.validity),
        ]
        title = f"OmnibusTestResult: {self.metric} in {len(self.groups)} groups"
        return write_result(title, lines, self.n_dropped, self.notes)
