"""The monitor: gaps between groups, looked at after every batch."""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Hashable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from fairperm._utils.formatting import (
    format_count,
    format_interval,
    format_level,
    format_name,
    format_number,
    state_pvalue,
)
from fairperm._utils.sorting import sort_key
from fairperm._utils.streams import BATCHES, stream
from fairperm.data.arguments import Frame
from fairperm.errors import (
    InputError,
    InputTypeError,
    Shown,
    argument,
    listed,
    shown,
    unknown_name,
)
from fairperm.hypothesis_tests.results.text import write_table
from fairperm.metrics.registry import get_metric
from fairperm.monitoring.eprocess import Wealth, shuffle
from fairperm.monitoring.question import Question, check_same
from fairperm.monitoring.results import Drift, MonitoredGap, Verdict

if TYPE_CHECKING:
    from altair import LayerChart

    Key = tuple[int, Hashable, Hashable]

_HEADS = ("comparison", "gap", "interval at all times", "p", "verdict", "")
_VERSION = 1  # of the state
_MAX_POINTS = 100  # of the path: older batches are thinned out
_LARGEST_LOG = 700.0  # JSON has no infinity


class Monitor:
    """Look at gaps between groups after every batch of rows, with no false alarm for looking often.

    Parameters
    ----------
    y_true, y_pred, y_score : str, optional
        Names of the columns, of which the metrics decide which are needed. Labels are 0 and 1.
    sensitive_features : str
        Name of the column of groups.
    metrics : sequence of str
        Rates with one denominator, such as "false_positive_rate", and means of values with bounds,
        such as "brier_score", "mean_score" or "mean_absolute_error".
    alpha : float
        The probability of any false alarm, ever, over all metrics and pairs of groups.
    margin : float
        The largest gap that does not matter.
    bounds : tuple of float, optional
        The lowest and highest possible value of a row, for means whose bounds are not known.
        A rate and "brier_score" have values from 0 to 1.
    known_groups : sequence, optional
        All groups that will be monitored. By default those of the first batch.
    reference : optional
        The group that each other one is compared with. By default every two are compared.
    threshold : float, optional
        Scores from here on are positive predictions.
    count : str, optional
        Name of a column that says how many equal rows a row stands for.
    rng : int
        Seed of the shuffle of each batch. The same batches give the same numbers.

    Notes
    -----
    Each batch is split at random into blocks with at least one row of both groups, and a bet is
    placed on the difference of means of each block. If a gap is within the margin in every batch,
    the wealth ever reaches 1/α with a probability of at most α, whatever the groups' values are,
    whether they change together, and whenever one looks or stops. Comparisons share α
    (Bonferroni).

    Rows must be sampled independently: each person once. Rows of one group wait for a batch with
    rows of the other. Labels that arrive late count in the batch in which they arrive. If how late
    a label is depends on the outcome, and not in both groups alike, the rows that have labels have
    another gap than all rows, and nothing is guaranteed.

    Examples
    --------
    >>> import fairperm
    >>> monitor = fairperm.Monitor(
    ...     y_pred="approved", sensitive_features="sex", metrics=["selection_rate"]
    ... )
    >>> day = {"approved": [1, 1, 1, 0, 1, 0, 0, 0] * 50, "sex": (["F"] * 4 + ["M"] * 4) * 50}
    >>> monitor.update(day, batch="2026-03-01")
    Alarm after 1 batch: a gap in selection rate, F − M, is shown (p < 0.0001).
      selection rate, F − M  +0.500  95 % at all times +0.336 to +0.608  p < 0.0001  disparity
    """

    def __init__(
        self,
        *,
        y_true: str | None = None,
        y_pred: str | None = None,
        y_score: str | None = None,
        sensitive_features: str,
        metrics: Sequence[str],
        alpha: float = 0.05,
        margin: float = 0.0,
        bounds: tuple[float, float] | None = None,
        known_groups: Sequence[Hashable] | None = None,
        reference: Hashable = None,
        threshold: float | None = None,
        count: str | None = None,
        rng: int = 0,
    ) -> None:
        given = {**locals()}  # every argument travels under its own name
        del given["self"], given["known_groups"]
        self.question = Question.check(**given)
        self._groups: tuple[Hashable, ...] = ()
        self._wealth: dict[Key, Wealth] = {}
        self._sums: dict[tuple[int, Hashable], tuple[int, float]] = {}
        self._last: int | str | None = None
        self._n_batches = 0
        self._path: list[dict[str, Any]] = []
        if known_groups is not None:
            if isinstance(known_groups, str) or not isinstance(known_groups, Sequence):
                raise InputTypeError("known_groups", "a sequence of groups", known_groups)
            self._start(known_groups)

    def update(self, data: Frame, batch: int | str | None = None) -> Monitor:
        """Add a batch of rows, and return the monitor, which prints as the answer.

        Parameters
        ----------
        data : data frame or mapping
            A frame with the columns that the monitor was made with.
        batch : int or str, optional
            What the batch is called: a number or a text, such as a date, that is greater than
            those before. By default the next number. A batch that was counted is refused, and so
            is one with an error; neither changes the monitor.
        """
        batch = self._check_batch(batch)
        tables = self.question.read(data)
        found = list(dict.fromkeys(group for one in tables for group in one))
        if not self._groups:
            self._start(found)
        for group in found:
            if group not in self._groups:
                hint = f"Name all groups when the monitor is made, as {argument('known_groups')}."
                raise unknown_name(
                    "sensitive_features", "made of monitored groups", group, self._groups, hint
                )
        values = {
            (i, group): shuffle(one, self._stream(i, group))
            for i, table in enumerate(tables)
            for group, one in table.items()
        }
        none = np.empty(0)
        for (i, first, second), wealth in self._wealth.items():
            sides = (values.get((i, group), none) for group in (first, second))
            self._wealth[i, first, second] = wealth.add(*sides)
        for key, one in values.items():
            n, total = self._sums.get(key, (0, 0.0))
            self._sums[key] = n + len(one), total + math.fsum(one)
        self._last = batch
        self._n_batches += 1
        self._path.append(self._make_point())
        if len(self._path) >= _MAX_POINTS:
            self._path = self._path[1::2]
        return self

    @property
    def comparisons(self) -> tuple[MonitoredGap, ...]:
        """Every metric and pair of groups. All statements together have the level alpha."""
        return tuple(self._compare(*key) for key in self._wealth)

    @property
    def rejected(self) -> bool:
        """Whether there is an alarm: a gap beyond the margin. It stays once it is raised."""
        return any(one.verdict == "disparity" for one in self.comparisons)

    @property
    def evalue(self) -> float:
        """The largest of today's e-values over the number of comparisons; 1 before any batch."""
        return max((one.evalue for one in self.comparisons), default=1.0) / max(
            len(self._wealth), 1
        )

    @property
    def pvalue(self) -> float:
        """The smallest p-value. It is valid whenever one looks, and never grows."""
        return min((one.pvalue for one in self.comparisons), default=1.0)

    @property
    def confidence_sequence(
        self,
    ) -> dict[tuple[str, Hashable, Hashable], tuple[float, float] | None]:
        """The interval of every gap, by metric, first and second group."""
        return {(one.metric, *one.groups): one.interval for one in self.comparisons}

    @property
    def last_batch(self) -> int | str | None:
        """What the last batch was called; None before any."""
        return self._last

    @property
    def answer(self) -> str:
        """The answer in a sentence."""
        if not self._n_batches:
            return "No batch has been counted yet."
        after = f"after {format_count(self._n_batches, 'batch', 'batches')}"
        margin = self.question.margin
        found = sorted(
            (one for one in self.comparisons if one.verdict == "disparity"),
            key=lambda one: one.pvalue,
        )
        if found:
            beyond = f" of more than {format_number(margin)}" if margin else ""
            others = len(found) - 1
            more = f" So is one in {format_count(others, 'other comparison')}." if others else ""
            p = state_pvalue(found[0].pvalue)
            return f"Alarm {after}: a gap{beyond} in {found[0].name}, is shown ({p}).{more}"
        if all(one.verdict == "equivalent" for one in self.comparisons):
            return (
                f"No gap is larger than {format_number(margin)}, {after}, if gaps have not changed."
            )
        return f"No alarm {after}; this does not show that the groups are equal."

    @property
    def path(self) -> tuple[dict[str, Any], ...]:
        """The gaps and intervals after earlier batches, of which the older ones are thinned out."""
        return tuple(self._path)

    def plot(
        self,
        metric: str | None = None,
        groups: tuple[Hashable, Hashable] | None = None,
        *,
        width: int = 700,
        height: int = 220,
        mode: str = "auto",
    ) -> LayerChart:
        """Draw the path of a gap with the band of its confidence sequence.

        Parameters
        ----------
        metric, groups : optional
            Which comparison; by default the first of those with the smallest p-value.
        width, height : int
            Width of the whole chart and height of the plot, in pixels.
        mode : {"auto", "light", "dark"}
            Colours of the page; see :func:`fairperm.plots.theme`.

        Returns
        -------
        altair.LayerChart
        """
        from fairperm.plots.parts import as_layers

        place = self._find_comparison(metric, groups)
        return as_layers(self._specify_path(place, width=width, height=height, mode=mode))

    def to_html(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        provenance: Mapping[str, object] | None = None,
    ) -> str:
        """Return a report with the path of every gap, and write it to `path` if there is one.

        It is one file, which loads nothing from the network. `provenance` says how it was made, by
        name; by default the arguments of the monitor.
        """
        from fairperm.report.page import Finding, PageTable, findings_as_html

        found = []
        for place, one in enumerate(self.comparisons):
            *_, changed = _cells(one)
            text = f"{one.verdict}, {state_pvalue(one.pvalue)}. {changed}"
            specify = partial(self._specify_path, place) if self._path else None
            found.append(Finding(one.name, text, specify))
        return findings_as_html(
            path,
            eyebrow="Gaps between groups, looked at after every batch",
            title="Monitor",
            summary=self.answer,
            findings=found,
            tables=[PageTable("", _HEADS, [_cells(one) for one in self.comparisons])],
            method=self._describe_method(),
            provenance=self.question.to_dict() if provenance is None else provenance,
        )

    def drift(self, reference: Monitor) -> tuple[Drift, ...]:
        """Return for each gap whether it differs from that of another monitor.

        Both have the same metrics, groups, bounds and alpha, such as one of the year of the
        approval and one of now. The probability that any equal gap is ever said to have drifted is
        at most alpha.
        """
        if not isinstance(reference, Monitor):
            raise InputTypeError("reference", "a Monitor", reference)
        alike = ("metrics", "alpha", "bounds", "reference", "threshold")
        for name in alike:
            mine, other = (getattr(one.question, name) for one in (self, reference))
            if mine != other:
                raise InputError("reference", f"a monitor with {argument(name, mine)}", other)
        if self._wealth.keys() != reference._wealth.keys():
            rule = f"a monitor of the groups {listed(self._groups)}"
            raise InputError("reference", rule, reference._groups)
        found = []
        for i, first, second in self._wealth:
            before, now = (one._interval(i, first, second, 2) for one in (reference, self))
            drifted = before is None or now is None or now[0] > before[1] or now[1] < before[0]
            found.append(
                Drift(
                    metric=self.question.metrics[i],
                    groups=(first, second),
                    before=before,
                    now=now,
                    drifted=drifted,
                )
            )
        return tuple(found)

    @property
    def state(self) -> dict[str, Any]:
        """All that the monitor knows, ready for JSON; it has no rows. See :meth:`from_state`."""
        return {
            "fairperm_monitor": _VERSION,
            "question": self.question.to_dict(),
            "groups": [*self._groups],
            "batches": self._n_batches,
            "last_batch": self._last,
            "path": self._path,
            "sums": [[i, group, n, total] for (i, group), (n, total) in self._sums.items()],
            "wealth": [
                [i, first, second, one.to_dict()]
                for (i, first, second), one in self._wealth.items()
            ],
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any], **expected: Any) -> Self:
        """Return the monitor of a state.

        Parameters
        ----------
        state : mapping
            What :attr:`state` returned.
        **expected
            Arguments of the monitor. A state that was made with others is refused.
        """
        if not isinstance(state, Mapping) or "fairperm_monitor" not in state:
            raise InputTypeError("state", "the state of a monitor", state)
        version = state["fairperm_monitor"]
        if version != _VERSION:
            hint = "Another version of fairperm wrote it: begin a new monitor."
            raise InputError("state", f"of version {_VERSION}", version, hint)
        try:
            monitor = cls(**state["question"], known_groups=state["groups"] or None)
            wealth = {
                (i, first, second): Wealth.from_dict(one, monitor._scaled_margin(i))
                for i, first, second, one in state["wealth"]
            }
            monitor._sums = {
                (i, group): (int(n), float(total)) for i, group, n, total in state["sums"]
            }
            monitor._n_batches, monitor._last = int(state["batches"]), state["last_batch"]
            monitor._path = [dict(one) for one in state["path"]]
            if min([monitor._n_batches, *(n for n, _ in monitor._sums.values())]) < 0:
                raise ValueError("fewer than no batches or rows")
        except InputError:
            raise
        except (KeyError, TypeError, ValueError) as error:
            hint = "It is damaged, or was not written by a monitor."
            got = f"one without {error}" if isinstance(error, KeyError) else f"{error}"
            raise InputError("state", "the state of a monitor", Shown(got), hint) from error
        if wealth.keys() != monitor._wealth.keys():
            raise InputError("state", "of all comparisons", [*wealth], "It is damaged.")
        monitor._wealth = wealth
        if (groups := expected.pop("known_groups", None)) is not None:
            check_same("known_groups", tuple(sorted(groups, key=sort_key)), monitor._groups)
        monitor.question.check_expected(expected)
        return monitor

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as values that JSON can store."""
        return {
            "answer": self.answer,
            "rejected": self.rejected,
            "evalue": self.evalue,
            "pvalue": self.pvalue,
            "batches": self._n_batches,
            "last_batch": self._last,
            "alpha": self.question.alpha,
            "margin": self.question.margin,
            "comparisons": [one.to_dict() for one in self.comparisons],
        }

    def __repr__(self) -> str:
        level = f"{format_level(1 - self.question.alpha)} at all times"
        rows = []
        for one in self.comparisons:
            name, gap, interval, *others = _cells(one)
            rows.append((name, gap, f"{level} {interval}" if one.interval else interval, *others))
        return write_table(self.answer, rows)

    def _start(self, groups: Sequence[Hashable]) -> None:
        """Fix the groups and the pairs that are compared: they share the level."""
        for group in groups:
            if not isinstance(group, (str, int, float)) or group != group:
                rule = "made of text, numbers or truth values, which a state can store"
                raise InputTypeError("known_groups", rule, group)
        distinct = sorted(set(groups), key=sort_key)
        if len(distinct) < len(groups):
            raise InputError("known_groups", "different", groups)
        if len(distinct) < 2:
            hint = f"Name all groups as {argument('known_groups')} if the first batch has only one."
            raise InputError("sensitive_features", "of at least two groups", distinct, hint)
        reference = self.question.reference
        if reference is None:
            pairs = [*itertools.combinations(distinct, 2)]
        elif reference in distinct:
            pairs = [(group, reference) for group in distinct if group != reference]
        else:
            raise unknown_name("reference", "one of the groups", reference, distinct)
        self._groups = tuple(distinct)
        self._wealth = {
            (i, *pair): Wealth.start(self._scaled_margin(i))
            for i in range(len(self.question.metrics))
            for pair in pairs
        }

    def _check_batch(self, batch: object) -> int | str:
        last = self._last
        if batch is None:
            if isinstance(last, str):
                raise InputTypeError("batch", f"given, as those before ({shown(last)})", None)
            return 1 if last is None else last + 1
        if isinstance(batch, bool) or not isinstance(batch, (int, str)) or batch == "":
            raise InputTypeError("batch", "a number or a text, such as a date", batch)
        if last is None:
            return batch
        if isinstance(batch, str) != isinstance(last, str):
            raise InputTypeError("batch", f"like those before ({shown(last)})", batch)
        if batch == last:
            hint = "It has been counted; it is not counted again."
            raise InputError("batch", f"after {shown(last)}, the last one", batch, hint)
        if batch < last:  # type: ignore[operator]
            hint = ""
            if isinstance(batch, str):
                hint = "Texts are compared from left to right: write dates as 2026-03-01."
            raise InputError("batch", f"after {shown(last)}, the last one", batch, hint)
        return batch

    def _stream(self, metric: int, group: Hashable) -> np.random.Generator:
        """Return the random stream that shuffles the rows of a group in this batch."""
        number = metric * len(self._groups) + self._groups.index(group)
        block = self._n_batches * len(self._groups) * len(self.question.metrics) + number
        return stream(self.question.rng, BATCHES, block)

    def _make_point(self) -> dict[str, Any]:
        """Return where all gaps and their intervals are now, rounded: it is only for charts."""
        found = ((one.gap, *(one.interval or (None, None))) for one in self.comparisons)
        gaps = [[None if end is None else round(end, 5) for end in one] for one in found]
        return {"batch": self._last, "gaps": gaps}

    def _specify_path(self, place: int, **look: Any) -> dict[str, Any]:
        """Return the chart of the path of a comparison."""
        from fairperm.plots.period_chart import gap_over_time

        if not self._path:
            raise InputError("There is nothing to draw before the first batch.")
        one = self.comparisons[place]
        points = [(point["batch"], *point["gaps"][place]) for point in self._path]
        return gap_over_time.specify(
            *map(list, zip(*points, strict=True)),
            metric=one.metric,
            groups=(format_name(one.groups[0]), format_name(one.groups[1])),
            margin=self.question.margin,
            at_all_times=True,
            confidence_level=1 - self.question.alpha,
            **look,
        )

    def _describe_method(self) -> list[str]:
        """Return how the gaps are tested, for a report."""
        alpha = f"{self.question.alpha:g}"
        margin = self.question.margin
        beyond = f"beyond the margin of {margin:g}" if margin else "between equal groups"
        return [
            f"The probability that a gap is ever falsely reported {beyond} is at most {alpha}, "
            f"over {format_count(len(self._wealth), 'comparison')} together (Bonferroni), however "
            "often one looks and whenever one stops.",
            "A band has every gap that fits all batches so far. If the gap is the same in all of "
            "them, the band always has it, with the probability that the chart states. If it "
            "changed, the band is not that of today’s gap.",
            "The line is the gap of all rows so far. Of older batches only some are drawn.",
            "Each batch is split at random into blocks with rows of both groups, and a bet on the "
            "difference of their means is placed before a block is seen (Waudby-Smith and Ramdas, "
            "2024; Chugg et al., 2023).",
            "Rows must be independent. If how late a label arrives depends on the outcome, and not "
            "in both groups alike, nothing is guaranteed.",
        ]

    def _find_comparison(self, metric: str | None, groups: tuple[Hashable, Hashable] | None) -> int:
        """Return the place of a comparison: the clearest of those that fit."""
        name = None if metric is None else get_metric(metric).name
        fitting = [
            (one.pvalue, place)
            for place, one in enumerate(self.comparisons)
            if name in (None, one.metric) and groups in (None, one.groups)
        ]
        if not fitting:
            known = [one.name for one in self.comparisons]
            raise unknown_name("metric, groups", "a comparison", (metric, groups), known)
        return min(fitting)[1]

    def _scaled_margin(self, i: int) -> float:
        return self.question.margin / self.question.scale(i)

    @property
    def _level(self) -> float:
        """Each comparison's part of alpha (Bonferroni): wealth, interval and alarm then agree."""
        return self.question.alpha / len(self._wealth)

    def _interval(
        self, i: int, first: Hashable, second: Hashable, shares: int = 1
    ) -> tuple[float, float] | None:
        """Return the interval of a gap at its part of the level."""
        found = self._wealth[i, first, second].interval(self._level / shares)
        scale = self.question.scale(i)
        return None if found is None else (found[0] * scale, found[1] * scale)

    def _compare(self, i: int, first: Hashable, second: Hashable) -> MonitoredGap:
        wealth = self._wealth[i, first, second]
        (low, _), scale = self.question.found_bounds[i], self.question.scale(i)
        sums = [self._sums.get((i, group), (0, 0.0)) for group in (first, second)]
        values = [low + scale * total / n if n else None for n, total in sums]
        gap = None if None in values else values[0] - values[1]  # type: ignore[operator]
        scaled, margin = wealth.interval(self._level), self._scaled_margin(i)
        verdict: Verdict = "inconclusive"
        if wealth.log_most_evalue >= -math.log(self._level):
            verdict = "disparity"
        elif margin > 0 and gap is not None and scaled and max(-scaled[0], scaled[1]) <= margin:
            is_in = scaled[0] <= gap / scale <= scaled[1]  # else it seems to have changed
            verdict = "equivalent" if is_in else verdict
        return MonitoredGap(
            metric=self.question.metrics[i],
            groups=(first, second),
            rows=(sums[0][0], sums[1][0]),
            values=(values[0], values[1]),
            gap=gap,
            evalue=math.exp(min(wealth.log_evalue, _LARGEST_LOG)),
            pvalue=min(1.0, len(self._wealth) * math.exp(-max(wealth.log_most_evalue, 0.0))),
            interval=self._interval(i, first, second),
            verdict=verdict,
        )


def _cells(one: MonitoredGap) -> tuple[str, str, str, str, str, str]:
    """Return what a table says of a comparison."""
    interval = format_interval(one.interval, signed=True) if one.interval else ""
    return (
        one.name,
        "—" if one.gap is None else format_number(one.gap, signed=True),
        interval or "no one gap fits all batches",
        state_pvalue(one.pvalue),
        one.verdict,
        "the gap seems to have changed" if one.seems_changed else "",
    )
