"""The result of an audit of periods. No computing here."""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from fairperm._utils.formatting import (
    NONE,
    format_count,
    format_interval,
    format_level,
    format_metric,
    format_name,
    format_number,
    format_pvalue,
    join_words,
    name_of_gap,
    state_pvalue,
)
from fairperm.auditing.gates import explain_few_draws, smallest_pvalue
from fairperm.errors import InputError, Note, argument
from fairperm.hypothesis_tests.results.changes import name_period
from fairperm.hypothesis_tests.results.gaps import (
    PermutationTestResult,
    ResultWithFrame,
    json_ready,
)
from fairperm.hypothesis_tests.results.text import (
    state_rows,
    wrap_answer,
    write_table,
    write_table_html,
)

_SHOWN = ("widened", "worse", "changed", "rose", "fell", "narrowed", "better")
_MAX_LINES = 40  # of a table with changes that are inconclusive
_HEADS = ("metric", "of", "periods", "values", "change", "its interval", "adjusted p", "verdict")
_WORDS = {
    "widened": ("gap widened", "gaps widened"),
    "worse": ("group got worse", "groups got worse"),
    "changed": ("gap changed", "gaps changed"),
    "rose": ("group’s value rose", "groups’ values rose"),
    "fell": ("group’s value fell", "groups’ values fell"),
    "narrowed": ("gap narrowed", "gaps narrowed"),
    "better": ("group got better", "groups got better"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PeriodRow:
    """The change of a gap, or of a group's value, from one period to another.

    Attributes
    ----------
    metric, periods
        What changed, and the old and the new period.
    groups
        Two groups, of which the gap is the first minus the second, or one group.
    before, after
        The gap or the value in the old and in the new period; NaN if the metric has no value.
    interval
        The interval of the change, simultaneous with all others of the audit.
    pvalue, adjusted_pvalue
        Of no change, by itself and adjusted by Holm's method. None if a group is too small.
    size_pvalue, adjusted_size_pvalue
        Of a gap that has not become larger in size or, if it is smaller, not smaller. None for a
        group.
    verdict
        Of a gap "widened", "narrowed", "changed" (whether it is smaller or larger is undecided),
        "inconclusive" or "too small". Of a group "worse" or "better", or "rose" or "fell" in a
        metric of which neither is worse, or "inconclusive" or "too small".
    reason
        Why, in plain words.
    result
        The test of the change: a :class:`fairperm.PeriodChange` for a gap.
    gaps
        The tests of the gap in both periods.
    """

    metric: str
    groups: tuple[Hashable, ...]
    periods: tuple[Hashable, Hashable]
    before: float = float("nan")
    after: float = float("nan")
    interval: tuple[float, float] | None = None
    adjusted_pvalue: float | None = None
    size_pvalue: float | None = None
    adjusted_size_pvalue: float | None = None
    verdict: str = ""
    reason: str = ""
    lower_is_better: bool | None = None
    result: PermutationTestResult | None = field(default=None, repr=False)
    gaps: tuple[PermutationTestResult, PermutationTestResult] | None = field(
        default=None, repr=False
    )

    @property
    def is_gap(self) -> bool:
        """Whether it is about a gap, and not about one group."""
        return len(self.groups) == 2

    @property
    def pvalue(self) -> float | None:
        """The p-value of no change, by itself."""
        return None if self.result is None else self.result.pvalue

    @property
    def difference(self) -> float:
        """The change, new minus old; with strata their mean, which no value is part of."""
        return float("nan") if self.result is None else self.result.difference

    @property
    def direction(self) -> str:
        """What the change would be called if it were shown."""
        if self.is_gap:
            return "widened" if abs(self.after) > abs(self.before) else "narrowed"
        if self.lower_is_better is None:
            return "rose" if self.difference > 0 else "fell"
        return "worse" if (self.difference > 0) == self.lower_is_better else "better"

    @property
    def who(self) -> str:
        """The group or the gap, in words."""
        first, *others = self.groups
        return name_of_gap(first, others[0]) if others else format_name(first)

    @property
    def name(self) -> str:
        """What is compared, in words."""
        old, new = map(name_period, self.periods)
        return f"{format_metric(self.metric)}, {self.who}, {old} → {new}"

    def describe(self) -> str:
        """Return the change in a sentence without its end."""
        old, new = map(name_period, self.periods)
        values = f"{self._write(self.before)} to {self._write(self.after)}"
        what = f"{format_metric(self.metric)}, {self.who}"
        if self.is_gap:
            verb = self.verdict if self.verdict in _WORDS else "went"
            return f"from {old} to {new} the gap in {what}, {verb} from {values}"
        verb = f"got {self.verdict}" if self.verdict in {"worse", "better"} else self.verdict
        return f"from {old} to {new} {what}, {verb}: {values}"

    def cells(self) -> dict[str, Any]:
        """Return the row as flat values, for a frame or JSON."""
        low, high = self.interval or (None, None)
        return {
            "metric": self.metric,
            "group": str(self.groups[0]),
            "other_group": str(self.groups[1]) if self.is_gap else None,
            "old_period": name_period(self.periods[0]),
            "new_period": name_period(self.periods[1]),
            "old": self.before,
            "new": self.after,
            "difference": self.difference,
            "low": low,
            "high": high,
            "pvalue": self.pvalue,
            "adjusted_pvalue": self.adjusted_pvalue,
            "adjusted_size_pvalue": self.adjusted_size_pvalue,
            "verdict": self.verdict,
            "reason": self.reason,
        }

    def texts(self) -> tuple[str, ...]:
        """Return what a table says of the row."""
        return (
            format_metric(self.metric),
            self.who,
            " → ".join(map(name_period, self.periods)),
            f"{self._write(self.before)} → {self._write(self.after)}",
            format_number(self.difference, signed=True),
            NONE if self.interval is None else format_interval(self.interval, signed=True),
            format_pvalue(self.adjusted_pvalue),
            self.verdict,
        )

    def _write(self, value: float) -> str:
        return format_number(value, signed=self.is_gap)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class PeriodAudit(ResultWithFrame):
    """The result of :func:`fairperm.audit_periods`: a sequence of its rows.

    Attributes
    ----------
    rows : tuple of PeriodRow
        For each metric and change the gaps, then the groups.
    periods : tuple
        In their order.
    against : str
        Whether changes are from the "previous" or from the "first" period.
    alpha, min_group_size : float, int
        The options.
    n_hypotheses : int
        The number of changes of gaps and groups that p-values are adjusted for.
    n_resamples : int or "auto"
        Draws of each test.
    n_used, n_dropped : int
        Rows used, and rows left out because of missing values, in the metric that lost most.
    seed : int
        Passing it as ``rng`` gives the same result again.
    notes : tuple of str
        Remarks that matter for reading the result.
    """

    rows: tuple[PeriodRow, ...]
    periods: tuple[Hashable, ...]
    against: str
    alpha: float
    n_hypotheses: int
    min_group_size: int
    n_resamples: int | str
    n_used: int
    n_dropped: int
    seed: int
    notes: tuple[str, ...]

    def __iter__(self) -> Iterator[PeriodRow]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def answer(self) -> str:
        """How many gaps and groups changed, and the clearest change."""
        judged = [row for row in self.rows if row.adjusted_pvalue is not None]
        if not judged:
            return "No change could be judged: groups are too small, or metrics have no value."
        found = [row for row in judged if row.verdict in _SHOWN]
        n = format_count(len(judged), "change")
        if not found:
            none = f"None of {n} is shown"
            if len(judged) == 1:
                none = "The only change that could be judged is not shown"
            return f"{none}; this does not show that nothing changed."
        verdicts = [row.verdict for row in found]
        counts = [
            format_count(verdicts.count(one), *_WORDS[one]) for one in _SHOWN if one in verdicts
        ]
        clearest = min(found, key=lambda row: (row.adjusted_pvalue or 0.0, row.pvalue or 0.0))
        p = state_pvalue(clearest.adjusted_pvalue, "adjusted p")
        return f"{join_words(counts)}, of {n}. The clearest: {clearest.describe()} ({p})."

    def columns(self) -> dict[str, list[Any]]:
        """Return a column of an entry for each row, by name."""
        rows = [row.cells() for row in self.rows]
        return {name: [row[name] for row in rows] for name in rows[0]}

    def to_dict(self) -> dict[str, Any]:
        """Return the result as JSON-ready values, without the draws of its tests."""
        plain: dict[str, Any] = {"answer": self.answer}
        for name in ("periods", "against", "alpha", "n_hypotheses", "min_group_size"):
            plain[name] = json_ready(getattr(self, name))
        for name in ("n_resamples", "n_used", "n_dropped", "seed", "notes"):
            plain[name] = json_ready(getattr(self, name))
        plain["rows"] = [
            {"answer": row.describe(), "groups": json_ready(row.groups)}
            | {name: json_ready(one) for name, one in row.cells().items()}
            for row in self.rows
        ]
        return plain

    def find_failed(self, words: Sequence[str]) -> list[PeriodRow]:
        """Return the rows that a gate of these words fails.

        They are verdicts; "changed" means every change that is shown. Raises InputError if none
        fails and one could not have failed.
        """
        failed = self.select_failed(words)
        if not failed:
            for word in words:
                self._check_gate(word)
        return failed

    def select_failed(self, words: Sequence[str]) -> list[PeriodRow]:
        """Return the rows that have one of the verdicts of a gate."""
        shown = _SHOWN if "changed" in words else ()
        return [row for row in self.rows if row.verdict in (*words, *shown)]

    def _check_gate(self, word: str) -> None:
        """Raise InputError if no row could have this verdict, or one that was judged."""
        if word == "too small":
            return
        name = argument("fail_on", word)
        rows = [row for row in self.rows if row.is_gap or word != "widened"]
        rows = [row for row in rows if not row.is_gap or word != "worse"]
        judged = [row for row in rows if row.adjusted_pvalue is not None]
        if not judged:
            too_small = argument("fail_on", "too-small")
            raise InputError(
                f"{name} cannot be evaluated: every group is too small, or the metric has no value "
                f"in it. {too_small} fails there."
            )
        for row in judged:
            if word == "inconclusive" or row.result is None:
                continue
            if word == "worse" and row.lower_is_better is None:
                instead = argument("fail_on", "changed")
                raise InputError(
                    f"{name} cannot be evaluated for {format_metric(row.metric)}, of which neither "
                    f"a rise nor a fall is worse. Use {instead}."
                )
            factor = float(self.n_hypotheses)
            reason = ""
            if row.result.n_resamples > 0 and not row.result.exact:
                reason = explain_few_draws(self.n_resamples, 2 * factor, self.alpha)
            elif row.result.exact and factor * smallest_pvalue(row.result) > self.alpha:
                reason = "so few rows or clusters have no p-value that reaches the level."
            if reason:
                raise InputError(f"{name} cannot be evaluated for {row.name}: {reason}")

    def note_not_judged(self, words: Sequence[str]) -> tuple[Note, ...]:
        """Return a note on rows that a gate leaves out because they were not judged."""
        n = sum(row.verdict == "too small" for row in self.rows)
        if n == 0 or not words or "too small" in words:
            return ()
        have = "has" if n == 1 else "have"
        return (
            Note(
                f"{n:,} of {format_count(len(self.rows), 'change')} {have} no verdict: a group is "
                f"too small, or the metric has no value in it. {argument('fail_on', 'too-small')} "
                "fails there."
            ),
        )

    def to_html(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        provenance: Mapping[str, object] | None = None,
    ) -> str:
        """Return a report with every gap over time, and write it to `path` if there is one.

        It is one file, which loads nothing from the network. `provenance` says how it was made, by
        name.
        """
        from fairperm.report.page import Finding, PageTable, findings_as_html

        gaps: dict[tuple[str, tuple[Hashable, ...]], list[PeriodRow]] = {}
        for row in self.rows:
            if row.is_gap:
                gaps.setdefault((row.metric, row.groups), []).append(row)
        findings = []
        for (metric, _), rows in gaps.items():
            text = " ".join(f"{_name_change(row)}: {row.verdict}; {row.reason}" for row in rows)
            specify = partial(self._specify, rows) if any(row.gaps for row in rows) else None
            findings.append(Finding(f"{format_metric(metric)}, {rows[0].who}", text, specify))
        return findings_as_html(
            path,
            eyebrow="Gaps between groups, and the groups’ own values, from period to period",
            title="Periods",
            summary=self.answer,
            findings=findings,
            tables=[PageTable("", _HEADS, [row.texts() for row in self.rows])],
            method=[*self._explain(), *self.notes],
            provenance={"seed": self.seed} if provenance is None else provenance,
        )

    def _specify(self, rows: Sequence[PeriodRow], **look: Any) -> dict[str, Any]:
        """Return the chart of a gap over time."""
        from fairperm.plots.period_chart import gap_over_time

        tests: dict[Hashable, PermutationTestResult] = {}
        for row in rows:
            if row.gaps is not None:
                tests.update(zip(row.periods, row.gaps, strict=True))
        known = [tests.get(one) for one in self.periods]
        missing = float("nan")
        level = next(iter(tests.values())).confidence_level
        intervals = [(missing, missing) if t is None else t.confidence_interval for t in known]
        pvalues = {row.periods[1]: row.adjusted_pvalue for row in rows}
        return gap_over_time.specify(
            [name_period(one) for one in self.periods],
            [missing if one is None else one.difference for one in known],
            [low for low, _ in intervals],
            [high for _, high in intervals],
            pvalues=[missing if (p := pvalues.get(one)) is None else p for one in self.periods],
            against=self.against,
            metric=rows[0].metric,
            groups=(format_name(rows[0].groups[0]), format_name(rows[0].groups[1])),
            confidence_level=level,
            alpha=self.alpha,
            **look,
        )

    def _explain(self) -> Iterator[str]:
        """Yield how verdicts are given, and what they hold for."""
        yield (
            f"Level {self.alpha:g}: {format_level(1 - self.alpha)} intervals hold at the same "
            f"time, and p-values are adjusted by Holm’s method, for "
            f"{format_count(self.n_hypotheses, 'change')} of gaps and groups."
        )
        yield (
            "Widened or narrowed: the absolute gap is shown to have changed. Worse or better: the "
            "group’s own value is."
        )
        yield (
            f"Groups with fewer than {self.min_group_size:,} rows in a period that a metric rests "
            "on are not judged."
        )
        yield (
            "Valid for periods that were fixed beforehand and are looked at once. To look again "
            "whenever rows arrive, use a monitor: fairperm monitor."
        )
        units, used = state_rows(self.n_used, self.n_dropped)
        yield f"{units.capitalize()}: {used}."

    def __repr__(self) -> str:
        sentences = [*self._explain(), *self.notes]
        if len(shown := self._select()) < len(self):
            left_out = format_count(len(self) - len(shown), "other change")
            sentences.insert(0, f"{left_out} inconclusive; to_frame() has all.")
        rows = [_HEADS, *(row.texts() for row in shown)]
        return write_table(self.answer, rows, ["", *wrap_answer(" ".join(sentences))])

    def _repr_html_(self) -> str:
        rows = [row.texts() for row in self._select()]
        return write_table_html(self.answer, _HEADS, rows, [*self._explain(), *self.notes])

    def _select(self) -> list[PeriodRow]:
        """Return the rows that a table shows: of many, not those that are inconclusive."""
        if len(self.rows) <= _MAX_LINES:
            return [*self.rows]
        return [row for row in self.rows if row.verdict != "inconclusive"]


def _name_change(row: PeriodRow) -> str:
    return " → ".join(map(name_period, row.periods))
