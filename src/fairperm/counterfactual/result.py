"""The result of a flip test: whose decisions change with an attribute, and which way."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from fairperm._utils.arrays import Booleans, Places
from fairperm._utils.formatting import (
    format_count,
    format_interval,
    format_level,
    format_percent,
    join_words,
    name_group,
)
from fairperm.data.columns import as_narwhals
from fairperm.errors import InputError, argument
from fairperm.hypothesis_tests.results.answers.words import isolate
from fairperm.hypothesis_tests.results.gaps import PermutationTestResult, ResultWithFrame
from fairperm.hypothesis_tests.results.omnibus import OmnibusTestResult
from fairperm.metrics.definition import rate
from fairperm.subgroups.result import Subgroups

__all__ = ["FlipPair", "FlipTestResult"]

_SHARE_CHANGED = rate("share_changed", "share of rows whose decision changes", count="fp tp")


@dataclass(frozen=True, slots=True, kw_only=True)
class FlipPair:
    """How the decisions with two values differ.

    Attributes
    ----------
    groups : tuple
        The two values.
    n_changed : int
        Rows with different decisions.
    n_higher, n_lower : int or None
        Rows whose decision is higher (1 and not 0, a larger number, `pos_label` and not another
        one) with the first value, and with the second; None for texts without `pos_label`.
    """

    groups: tuple[Hashable, Hashable]
    n_changed: int
    n_higher: int | None
    n_lower: int | None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class FlipTestResult(ResultWithFrame):
    """The result of :func:`fairperm.flip_test`.

    Attributes
    ----------
    feature : str
        The attribute that was changed.
    groups : tuple
        The values of it that every row was copied with.
    n, n_changed : int
        Rows, and those among them whose decision is not the same with all values.
    share_changed : float
        The share of the latter.
    interval : tuple of float
        Its interval: Clopper and Pearson's or, if `is_anytime`, that of a confidence sequence.
    is_anytime : bool
        Whether the interval is valid although drawing stopped when it was narrow.
    confidence_level : float
        The level of all intervals.
    pairs : tuple of FlipPair
        How often and which way decisions differ between every two values.
    test : PermutationTestResult, OmnibusTestResult or None
        The test of the gap: of two values, of all if there are more; None for decisions that are
        texts without `pos_label`.
    seed : int
        Passing it as ``rng`` gives the same result again.
    validity : str
        For which rows the interval is valid, and in which sense.
    notes : tuple of str
        Remarks that matter for reading the result.
    rows : numpy.ndarray
        The places of the rows in the data, in the order in which they were used.
    decisions : tuple of tuple
        Of each value, the decisions on these rows.
    inputs : frame or None
        These rows, as they are in the data.
    """

    feature: str
    groups: tuple[Hashable, ...]
    n: int
    n_changed: int
    share_changed: float
    interval: tuple[float, float]
    is_anytime: bool
    confidence_level: float
    pairs: tuple[FlipPair, ...]
    test: PermutationTestResult | OmnibusTestResult | None
    seed: int
    validity: str
    notes: tuple[str, ...]
    rows: Places = field(repr=False)
    decisions: tuple[tuple[Hashable, ...], ...] = field(repr=False)
    inputs: Any = field(repr=False)

    @property
    def answer(self) -> str:
        """How often decisions change, and whether chance explains the direction."""
        values = [isolate(name_group("", one)) for one in self.groups]
        named = " or ".join(values) if len(values) == 2 else join_words(values)
        low, high = map(format_percent, self.interval)
        level = format_level(self.confidence_level)
        rows = f"{self.n_changed:,} of {format_count(self.n, 'row')}"
        cause = f"Setting {isolate(self.feature)} to {named}"
        if not self.feature:
            cause = f"What differs between {' and '.join(values)}"
        head = (
            f"{cause} changes the decision for {format_percent(self.share_changed)} of rows "
            f"({rows}; {level} interval {low} to {high})"
        )
        return f"{head}." if self.test is None else f"{head}. {self.test.answer}"

    def changed(self) -> Booleans:
        """Return for each of the rows whether its decision changes."""
        first, *others = self.decisions
        return np.array(
            [any(a != b for b in more) for a, *more in zip(first, *others, strict=True)]
        )

    def find_subgroups(self, features: Any = None, **options: Any) -> Subgroups:
        """Find the subgroups whose decisions change more often, or less, than those of others.

        Parameters
        ----------
        features : list of str, optional
            Columns that describe subgroups; by default all.
        **options
            Those of :func:`fairperm.find_subgroups`.
        """
        from fairperm.subgroups.search import find_subgroups

        frame = as_narwhals("data", self.inputs)
        if not isinstance(frame, nw.DataFrame):
            raise InputError(f"{argument('features')} were not read: nothing describes the rows.")
        names = frame.columns if features is None else features
        given: dict[str, Any] = {"rng": self.seed, **options}
        column = next(f"changed{'_' * i}" for i in range(len(frame.columns) + 1)
                      if f"changed{'_' * i}" not in frame.columns)  # fmt: skip
        changed = nw.new_series(column, self.changed().tolist(), backend=frame.implementation)
        data = frame.with_columns(changed).to_native()
        return find_subgroups(
            y_pred=column, features=names, data=data, metric=_SHARE_CHANGED, **given
        )

    def columns(self) -> Mapping[str, Any]:
        """Return a row for each copy: its row in the data, its value, its decision, any change."""
        n, k = self.n, len(self.groups)
        return {
            "row": np.tile(self.rows, k).tolist(),
            "value": [one for one in self.groups for _ in range(n)],
            "decision": [one for same in self.decisions for one in same],
            "changed": np.tile(self.changed(), k).tolist(),
        }

    def _lines(self) -> list[tuple[str, str]]:
        level, interval = format_level(self.confidence_level), format_interval(self.interval)
        kind = "any time, " if self.is_anytime else ""
        lines = [("changed", f"{self.n_changed:,} of {format_count(self.n, 'row')}  "
                             f"{level} interval {kind}{interval}")]  # fmt: skip
        for one in self.pairs:
            first, second = (name_group(self.feature, value) for value in one.groups)
            told = f"{one.n_changed:,} differ"
            if one.n_higher is not None:
                told += f", {one.n_higher:,} higher with {first}, {one.n_lower:,} with {second}"
            lines.append((f"{first} v {second}", told))
        validity = self.validity
        if self.test is not None:
            lines += [one for one in self.test._lines() if one[0] in ("difference", "p-value")]
            validity = f"{validity} {self.test.validity}"
        return [*lines, ("validity", validity)]
