"""Sweeps over thresholds of all pairs of groups, at a level that holds for all pairs together."""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, Unpack

import numpy as np
from numpy.typing import ArrayLike

from fairperm._utils.formatting import (
    format_number,
    name_group,
    name_of_gap,
    state_pvalue,
)
from fairperm._utils.signatures import complete, shares
from fairperm.data.arguments import Column, Inputs, MetricLike
from fairperm.data.sample import Sample
from fairperm.errors import ArgumentError, InputError, Note, Shown, argument, warn_of
from fairperm.hypothesis_tests.results.answers.sweeps import answer_sweeps
from fairperm.hypothesis_tests.results.gaps import ResultWithFrame
from fairperm.hypothesis_tests.results.sweeps import ThresholdSweepResult
from fairperm.hypothesis_tests.results.text import state_rows
from fairperm.hypothesis_tests.sweep.threshold_sweep import (
    ScoredRows,
    SweepArguments,
    SweepOptions,
    threshold_sweep,
)

if TYPE_CHECKING:
    from os import PathLike


__all__ = ["PairSweeps", "sweep_pairs"]

_MAX_GROUPS = 10  # 45 pairs


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class PairSweeps(ResultWithFrame):
    """The result of :func:`fairperm.sweep_pairs`: iterate over it for the sweeps.

    Attributes
    ----------
    sweeps : tuple of ThresholdSweepResult
        The sweep of each pair of groups. Its `alpha` is that of one pair.
    not_swept : dict
        Pairs that could not be tested, as text, with the reason.
    alpha : float
        The level of the bands of all pairs together.
    notes : tuple of str
        Remarks that matter for reading the result.
    """

    sweeps: tuple[ThresholdSweepResult, ...]
    not_swept: Mapping[str, str]
    alpha: float
    notes: tuple[str, ...]

    def __iter__(self) -> Iterator[ThresholdSweepResult]:
        return iter(self.sweeps)

    def __len__(self) -> int:
        return len(self.sweeps)

    @property
    def n_pairs(self) -> int:
        """The number of pairs that the level was divided by."""
        return len(self.sweeps) + len(self.not_swept)

    def columns(self) -> dict[str, Any]:
        """Return a column of an entry for each pair, metric and threshold, by name.

        They are first_group, second_group and those of
        :meth:`fairperm.ThresholdSweepResult.columns`.
        """
        parts = [(one.groups, one.columns()) for one in self]
        first, second = (
            np.concatenate([np.full(len(part["metric"]), str(pair[side])) for pair, part in parts])
            for side in range(2)
        )
        joined = {name: np.concatenate([part[name] for _, part in parts]) for name in parts[0][1]}
        return {"first_group": first, "second_group": second, **joined}

    def to_html(
        self,
        path: str | PathLike[str] | None = None,
        *,
        provenance: Mapping[str, object] | None = None,
    ) -> str:
        """Return a report that needs no other file and no network; with a `path`, write it too.

        Parameters
        ----------
        path : path-like, optional
            The file to write, atomically.
        provenance : mapping, optional
            What else is needed to repeat the sweeps, by name: the command, the file, its hash.
        """
        from fairperm.report.page import sweeps_as_html

        first = self.sweeps[0]
        about: dict[str, object] = {"metrics": ", ".join(first.curves)}
        about |= {"permutations": first.n_resamples, "seed": first.seed}
        return sweeps_as_html(
            self.sweeps,
            path,
            level=self.describe_level(),
            not_swept=self.not_swept,
            notes=self.notes,
            provenance=about if provenance is None else provenance,
        )

    def describe_level(self) -> str:
        """Return the level of the bands, of all pairs and of each."""
        of_metric = " of each metric" if len(self.sweeps[0].curves) > 1 else ""
        level = f"The bands{of_metric} have the level {self.alpha:g}"
        if self.n_pairs == 1:
            return f"{level}."
        of_pair = f"{self.alpha / self.n_pairs:.2g} for each of them"
        return f"{level} for all {self.n_pairs} pairs together: {of_pair}."

    @property
    def answer(self) -> str:
        """How many pairs have a gap that chance does not explain, and the clearest."""
        return answer_sweeps(self.sweeps)

    def _lines(self) -> list[tuple[str, str]]:
        first = self.sweeps[0]
        untested = [("not tested", f"{one}: {reason}") for one, reason in self.not_swept.items()]
        draws = f"{len(first.thresholds):,}, with {first.n_resamples:,} draws"
        sizes = {
            group: n for one in self.sweeps for group, n in zip(one.groups, one.sizes, strict=True)
        }
        return [
            *(line for metric in first.curves for line in self._describe(metric)),
            *untested,
            ("level", self.describe_level()),
            ("thresholds", draws),
            state_rows(sum(sizes.values()), first.n_dropped),
        ]

    def _describe(self, metric: str) -> list[tuple[str, str]]:
        """Return the largest gap of each pair in a metric."""
        lines = [("metric", f"{metric}: largest gap, p over all thresholds, gaps outside the band")]
        for one in self:
            curve = one.curves[metric]
            worst = curve.largest()
            gap = format_number(curve.difference[worst], signed=True)
            outside = f"{int((curve.adjusted_pvalue <= one.alpha).sum()):,} outside"
            text = f"{gap} at {one.thresholds[worst]:.4g}, {state_pvalue(curve.global_pvalue)}"
            lines.append((name_of_gap(*one.group_names), f"{text}, {outside}"))
        return [*lines, ("validity", self.sweeps[0].curves[metric].validity)]


@shares(threshold_sweep, SweepArguments)
def sweep_pairs(
    y_true: Column,
    y_score: Column,
    *,
    metric: MetricLike | Sequence[MetricLike],
    thresholds: int | ArrayLike | Literal["scores"] = 101,
    alpha: float = 0.05,
    n_resamples: int = 9999,
    **given: Unpack[SweepArguments],
) -> PairSweeps:
    """Test the gap of every pair of groups at every threshold of a score.

    Parameters
    ----------
    groups : sequence, optional
        Two to ten groups; by default all, in sorted order.
    thresholds : int, array-like or "scores"
        As in :func:`fairperm.threshold_sweep`; all pairs have the same thresholds.
    alpha : float
        The level of all pairs together: how often a band of some pair is left by chance where
        there is no gap.
    **given
        All others are those of :func:`fairperm.threshold_sweep`.

    Returns
    -------
    PairSweeps

    Notes
    -----
    Each pair is swept as :func:`fairperm.threshold_sweep` does, at the level `alpha` divided by the
    number of pairs (Bonferroni). A pair that cannot be tested counts as a pair.

    Examples
    --------
    >>> import fairperm
    >>> compas = fairperm.datasets.load_compas()
    >>> sweeps = fairperm.sweep_pairs(
    ...     "two_year_recid", "decile_score", sensitive_features="age_band", thresholds="scores",
    ...     metric="false_positive_rate", data=compas, n_resamples=999, rng=1,
    ... )
    >>> sweeps
    3 of 3 pairs of groups have a gap that chance does not explain, at some threshold. The
    clearest: at 9 of 10 thresholds the gap in false positive rate, 25 - 45 − Greater than
    45, is larger than chance explains; the largest is +39.2 points at 2 (p = 0.0020 for all
    thresholds together).
      metric                          false_positive_rate: largest gap, p over all
                                      thresholds, gaps outside the band
      25 - 45 − Greater than 45       +0.392 at 2, p = 0.0020, 9 outside
      25 - 45 − Less than 25          −0.354 at 3, p = 0.0020, 8 outside
      Greater than 45 − Less than 25  −0.654 at 3, p = 0.0020, 9 outside
      validity                        Exact for the weak null (equal false_positive_rate;
                                      base rates may differ) at every sample size, given the
                                      rates' denominators. The same holds for the
                                      simultaneous band.
      level                           The bands have the level 0.05 for all 3 pairs
                                      together: 0.017 for each of them.
      thresholds                      10, with 999 draws
      rows                            6,172 used, 0 left out for missing values
    >>> [sweep.groups for sweep in sweeps]
    [('25 - 45', 'Greater than 45'), ('25 - 45', 'Less than 25'),
     ('Greater than 45', 'Less than 25')]
    """
    given = complete(sweep_pairs, given)
    groups, options = given["groups"], SweepOptions.check(metric, alpha, n_resamples, given)
    inputs = Inputs.of(given, y_true=y_true, y_score=y_score)
    rows = ScoredRows.read(inputs, thresholds, lambda table: _choose_groups(table, groups))
    pairs = list(itertools.combinations(rows.groups, 2))
    of_pair = replace(options, alpha=options.alpha / len(pairs))
    swept: list[ThresholdSweepResult] = []
    not_swept: dict[str, str] = {}
    for pair in pairs:
        try:
            swept.append(of_pair.sweep(rows, pair))
        except ArgumentError as error:
            if pair == pairs[-1] and not swept:
                raise
            first, second = (name_group(rows.table.attribute, group) for group in pair)
            not_swept[name_of_gap(first, second)] = Note(error.marked_text())
    notes = tuple(_note_few_resamples(of_pair))
    warn_of(notes)
    return PairSweeps(
        sweeps=tuple(swept),
        not_swept=not_swept,
        alpha=options.alpha,
        notes=notes,
        frame_library=rows.frame_library,
    )


def _choose_groups(table: Sample, groups: object) -> tuple[Hashable, ...]:
    chosen = table.choose_several(groups)
    if len(chosen) > _MAX_GROUPS:
        n_pairs = math.comb(len(chosen), 2)
        rule = f"at most {_MAX_GROUPS} groups"
        got = Shown(f"{len(chosen):,}, which make {n_pairs:,} pairs")
        raise InputError("groups", rule, got, "Choose those to compare.")
    return chosen


def _note_few_resamples(options: SweepOptions) -> Iterator[str]:
    """Yield a note if no gap, however large, can leave a band."""
    n_tails = 2 if options.alternative == "two-sided" else 1
    n_resamples = options.resampling.n_resamples
    least = n_tails / (n_resamples + 1)
    if least > options.alpha:
        enough = argument("n_resamples", math.ceil(n_tails / options.alpha))
        yield Note(
            f"A p-value from {n_resamples:,} permutations is at least {least:.3g}, and the level "
            f"of a pair is {options.alpha:.2g}: no gap can be found. Use {enough} or more."
        )
