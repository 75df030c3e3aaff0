"""The audit of periods: which gaps, and which groups' values, changed from one to another."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Required, Unpack

import numpy as np

from fairperm._utils import checks
from fairperm._utils.formatting import format_count, format_name, state_pvalue
from fairperm._utils.progress import show_progress
from fairperm._utils.signatures import complete, shares
from fairperm.auditing.period_result import PeriodAudit, PeriodRow
from fairperm.auditing.questions import name_metrics
from fairperm.auditing.verdicts import adjust_by_key, draw_for, explain_few, largest_by_key
from fairperm.data.arguments import (
    DEFAULT_METRICS,
    Column,
    Columns,
    FrameArguments,
    Groups,
    Label,
    MetricLike,
    Pairing,
    PeriodInputs,
    Resamples,
    StratumWeights,
)
from fairperm.data.columns import library_of
from fairperm.data.period_order import declared_orders
from fairperm.data.reading import read_table
from fairperm.data.sample import Sample
from fairperm.errors import InputError, InputTypeError, UndefinedMetricError, warn_of
from fairperm.hypothesis_tests.changes.periods import (
    AGAINST,
    PeriodSample,
    choose_periods,
    compare_tables,
    split_by_period,
)
from fairperm.hypothesis_tests.groups import make_test
from fairperm.hypothesis_tests.pairs import find_reference, list_pairs
from fairperm.hypothesis_tests.permutation import permutation_test
from fairperm.hypothesis_tests.plan import Options, Plan
from fairperm.hypothesis_tests.results.gaps import PermutationTestResult
from fairperm.hypothesis_tests.run import run
from fairperm.inference.multiplicity import interval_level
from fairperm.inference.null import agree
from fairperm.metrics.definition import AnyMetric
from fairperm.metrics.registry import hypothesis_of, is_lower_better

Pair = tuple[Hashable, Hashable]


class PeriodAuditArguments(FrameArguments, total=False):
    """Arguments of :func:`fairperm.permutation_test` that an audit of periods has, too."""

    y_score: Columns | None
    sensitive_features: Required[Columns]
    threshold: float | None
    pos_label: Label
    stratum_weights: StratumWeights | None
    cluster: Columns | None
    split_clusters: bool
    sample_weight: Column | None
    count: Column | None
    score_bins: int | None
    n_resamples: Resamples


@shares(permutation_test, PeriodAuditArguments)
def audit_periods(
    y_true: Column | None = None,
    y_pred: Column | None = None,
    *,
    period: Columns,
    metrics: MetricLike | Sequence[MetricLike] | Mapping[str, MetricLike] | None = None,
    periods: Groups | None = None,
    against: str = "previous",
    reference: Hashable = None,
    alpha: float = 0.05,
    min_group_size: int = 50,
    **given: Unpack[PeriodAuditArguments],
) -> PeriodAudit:
    """Test which gaps changed from one period to another, and which groups' values did.

    Periods are fixed beforehand and looked at once. For batches that keep arriving, and are looked
    at after each, use :class:`fairperm.Monitor`.

    Parameters
    ----------
    metrics : str, callable, sequence or mapping, optional
        Metrics as in :func:`fairperm.audit`. By default selection_rate, false_positive_rate and
        false_negative_rate; without labels, selection_rate.
    period, periods, against
        As in :func:`fairperm.compare_periods`.
    reference : optional
        The group that each other one is compared with. By default every two are compared.
    alpha : float
        The probability that any gap or group that did not change is said to have changed is at most
        this.
    min_group_size : int
        Groups with fewer rows in a period that a metric rests on are not judged.
    **given
        All others are those of :func:`fairperm.permutation_test`.

    Returns
    -------
    PeriodAudit

    Notes
    -----
    A gap is tested as by :func:`fairperm.compare_periods`, a group as by
    :func:`fairperm.permutation_test` of its rows with the periods as groups. P-values of both are
    adjusted together by Holm's method, for all metrics and changes; a metric and its complement
    count once. A gap is called widened or narrowed if its size is shown to have changed: if neither
    its change nor the sum of the gaps of both periods is zero. Claims of size are adjusted in the
    same way.

    Examples
    --------
    >>> import fairperm
    >>> fairperm.audit_periods(
    ...     y_pred=([1] * 150 + [0] * 850 + [1] * 100 + [0] * 900)
    ...     + ([1] * 90 + [0] * 910 + [1] * 100 + [0] * 900),
    ...     sensitive_features=(["a"] * 1000 + ["b"] * 1000) * 2,
    ...     period=[2023] * 2000 + [2024] * 2000,
    ...     metrics="selection_rate",
    ...     rng=0,
    ... )
    1 gap changed and 1 group’s value fell, of 3 changes. The clearest: from 2023 to 2024
    selection rate, a, fell: 0.150 to 0.090 (adjusted p = 0.0001).
      metric          of     periods      values           change  its interval      adjusted p  verdict
      selection rate  a − b  2023 → 2024  +0.050 → −0.010  −0.060  −0.108 to −0.014  0.0032      changed
      selection rate  a      2023 → 2024  0.150 → 0.090    −0.060  −0.095 to −0.025  0.0001      fell
      selection rate  b      2023 → 2024  0.100 → 0.100    +0.000  −0.032 to +0.032  1.0000      inconclusive
    ...
    """  # noqa: E501
    arguments = complete(audit_periods, given)
    options = Options.check(arguments, fewest=0)
    checks.choice("against", against, AGAINST)
    alpha = checks.fraction("alpha", alpha)
    least = checks.integer("min_group_size", min_group_size, 1, 10**12)
    if period is None:
        raise InputTypeError("period", "given", None)
    inputs = PeriodInputs.of(arguments, y_true=y_true, y_pred=y_pred, period=period)
    if metrics is None:
        metrics = DEFAULT_METRICS if y_true is not None else DEFAULT_METRICS[:1]
    questions = [
        _ask(name, metric, inputs, periods, against, reference)
        for name, metric in name_metrics(metrics).items()
    ]
    n_hypotheses = sum(one.n_hypotheses for one in questions)
    if options.resampling.stops_early:
        resampling = draw_for(options.resampling, 2 * n_hypotheses, alpha)
        options = replace(options, resampling=resampling)
    found = [
        row
        for one in questions
        for row in one.answer(options.quiet(), least, options.resampling.progress)
    ]
    rows, n_judged = _judge(found, questions, alpha)
    reading_notes = dict.fromkeys(note for one in questions for note in one.table.notes)
    notes = tuple(_write_notes(rows, reading_notes))
    warn_of(notes)
    return PeriodAudit(
        rows=tuple(rows),
        periods=questions[0].periods,
        against=against,
        alpha=alpha,
        n_hypotheses=n_judged,
        min_group_size=least,
        n_resamples="auto" if options.resampling.stops_early else options.resampling.n_resamples,
        n_used=max(int(one.table.count.sum()) for one in questions),
        n_dropped=max(one.table.n_dropped for one in questions),
        seed=options.seed,
        notes=(*notes, *reading_notes),
        frame_library=library_of(arguments["data"]),
    )


@dataclass(frozen=True, slots=True)
class _Question:
    """A metric, the rows that it is computed from, and what is compared."""

    name: str
    metric: AnyMetric
    table: Sample
    periods: tuple[Hashable, ...]
    changes: tuple[Pair, ...]
    pairs: tuple[Pair, ...]

    @property
    def n_hypotheses(self) -> int:
        """The number of changes of gaps and of groups."""
        return len(self.changes) * (len(self.pairs) + len(self.table.groups))

    def answer(self, options: Options, least: int, progress: bool | None) -> Iterator[PeriodRow]:
        """Yield the gaps and the groups' values, without verdicts but "too small"."""
        for change in show_progress(self.changes, len(self.changes), progress):
            groups = {
                group: self._test_group(group, change, options, least)
                for group in self.table.groups
            }
            for pair in self.pairs:
                sides = [groups[group].reason for group in pair if groups[group].verdict]
                yield self._test_gap(pair, change, options, sides)
            yield from groups.values()

    def _test_group(self, group: Hashable, change: Pair, options: Options, least: int) -> PeriodRow:
        """Test the change of a group's value: exchange the periods of its rows."""
        old, new = change
        row = PeriodRow(metric=self.name, groups=(group,), periods=change)
        rows = split_by_period(self.table, group, (new, old))
        try:
            plan = Plan.for_table(self.metric, rows, (new, old), options)
            test = make_test(rows, plan, (new, old), options)
        except UndefinedMetricError as error:
            return replace(row, verdict="too small", reason=str(error))
        names = [f"{format_name(group)} in {format_name(one)}" for one in (new, old)]
        few = explain_few(names, test.base_sizes(), least)
        (tested,) = run([test], options.resampling)
        result = test.result(tested)
        return replace(
            row,
            result=result,
            before=float(result.values[old]),
            after=float(result.values[new]),
            lower_is_better=is_lower_better(self.metric),
            verdict="too small" if few else "",
            reason=few,
        )

    def _test_gap(
        self, pair: Pair, change: Pair, options: Options, too_small: Sequence[str]
    ) -> PeriodRow:
        """Test the change of the gap and that of its size."""
        # ``too_small`` says why a group is
        row = PeriodRow(metric=self.name, groups=pair, periods=change)
        try:
            found = compare_tables(self.table, self.metric, pair, change, "previous", options)
            total = PeriodSample.of(self.table, self.metric, pair, change, options).test_sum()
        except UndefinedMetricError as error:
            reason = too_small[0] if too_small else str(error)
            return replace(row, verdict="too small", reason=reason)
        (result,) = found.changes
        return replace(
            row,
            result=result,
            gaps=(found.gaps[change[0]], found.gaps[change[1]]),
            before=float(result.gap_old),
            after=float(result.gap_new),
            size_pvalue=max(result.pvalue, total.pvalue),
            verdict="too small" if too_small else "",
            reason=too_small[0] if too_small else "",
        )


def _ask(
    name: str,
    metric: AnyMetric,
    inputs: PeriodInputs,
    periods: object,
    against: str,
    reference: object,
) -> _Question:
    """Read what a metric needs, and choose what to compare."""
    metric = metric.for_arguments(inputs)
    if metric.is_joint:
        parts = ", ".join(part.name for part in metric.parts)
        raise InputError("metrics", "metrics of one gap each", name, f"Its parts are {parts}.")
    table = read_table(inputs, metric)
    order = choose_periods(table, periods, declared_orders(inputs.data, inputs.period))
    if len(table.groups) < 2:
        raise InputError("sensitive_features", "of at least two groups", [*table.groups])
    if reference is not None:
        reference = find_reference(table, table.groups, reference)
    pairing: Pairing = "pairs" if reference is None else "reference"
    pairs = tuple(list_pairs(table, table.groups, pairing, reference, table.attribute))
    firsts = itertools.repeat(order[0]) if against == "first" else order
    changes = tuple(zip(firsts, order[1:], strict=False))
    return _Question(name, metric, table, order, changes, pairs)


def _judge(
    found: Sequence[PeriodRow], questions: Sequence[_Question], alpha: float
) -> tuple[list[PeriodRow], int]:
    """Return the rows with adjusted p-values and verdicts, and the number of hypotheses."""
    identities = {one.name: hypothesis_of(one.metric, directed=False) for one in questions}
    tests = [(row, row.result) for row in found if row.result is not None and not row.verdict]
    keys = [(identities[row.metric], row.groups, row.periods) for row, _ in tests]
    raw = largest_by_key(keys, [result.pvalue for _, result in tests])
    # a claim of size implies one of change: no smaller p-value
    sizes = [row.size_pvalue or result.pvalue for row, result in tests]
    adjusted = adjust_by_key(raw, "holm")
    by_size = adjust_by_key(largest_by_key(keys, sizes), "holm")
    level = interval_level(np.array([*raw.values()]), "holm", alpha)
    judged = iter(
        _give_verdict(row, result, (adjusted[key], by_size[key]), level, alpha)
        for (row, result), key in zip(tests, keys, strict=True)
    )
    return [row if row.verdict else next(judged) for row in found], len(raw)


def _give_verdict(
    row: PeriodRow,
    result: PermutationTestResult,
    adjusted: tuple[float, float],
    level: float,
    alpha: float,
) -> PeriodRow:
    """Return a row with its verdict; ``adjusted`` are the p-values of its change and its size."""
    p, of_size = adjusted
    stated, size = (state_pvalue(one, "adjusted p") for one in adjusted)
    verdict, reason = row.direction, f"shown to have changed ({stated})."
    if p > alpha:
        verdict = "inconclusive"
        reason = f"chance could explain this change, and a real one is not ruled out ({stated})."
    elif row.is_gap and of_size <= alpha:
        reason = f"the size of the gap is shown to have changed ({size})."
    elif row.is_gap:
        verdict = "changed"
        reason = f"{reason[:-1]}; whether the gap is smaller or larger is undecided ({size})."
    if result.tested is None:
        raise ValueError("a result of this audit has its test")
    return replace(
        row,
        adjusted_pvalue=p,
        adjusted_size_pvalue=of_size if row.is_gap else None,
        interval=agree(result.tested.interval(level), p, "two-sided", 1 - alpha, result.difference),
        verdict=verdict,
        reason=reason,
    )


def _write_notes(rows: Sequence[PeriodRow], known: Mapping[str, None]) -> Iterator[str]:
    """Yield what a reader of the whole must know."""
    if all(row.verdict == "too small" for row in rows):
        yield (
            "Nothing was judged: every change has a group that is too small, or in which the "
            "metric is undefined. That is no evidence of anything."
        )
    noted = [
        (row, note)
        for row in rows
        if row.adjusted_pvalue is not None and row.result is not None
        for note in [one for one in row.result.notes if one not in known][:1]
    ]
    if noted:
        row, note = noted[0]
        have = ("change has", "changes have")
        yield f"{format_count(len(noted), *have)} notes. The first ({row.name}): {note}"
