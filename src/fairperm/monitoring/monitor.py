"""The monitor: gaps between groups, looked at after every batch."""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from fairperm._utils import checks
from fairperm._utils.formatting import (
    format_count,
    format_interval,
    format_metric,
    format_name,
    format_number,
    state_pvalue,
)
from fairperm._utils.sorting import sort_key
from fairperm._utils.streams import BATCHES, stream
from fairperm.data.arguments import Inputs
from fairperm.data.columns import CountedRows, Source, as_floats, columns_of_frame
from fairperm.data.reading import read_table
from fairperm.errors import InputError, InputTypeError, argument, listed, shown, unknown_name
from fairperm.metrics.definition import Metric
from fairperm.metrics.registry import get_metric
from fairperm.monitoring.eprocess import Wealth, shuffle

if TYPE_CHECKING:
    from typing import Self

    from numpy.typing import NDArray
    from typing_extensions import TypeIs

    from fairperm.data.arguments import Frame
    from fairperm.metrics.definition import AnyMetric

    Array = NDArray[np.float64]

Verdict = Literal["disparity", "equivalent", "inconclusive"]

_VERSION = 1  # of the state
_OWN_BOUNDS = {"brier_score": (0.0, 1.0), "calibration_in_the_large": (-1.0, 1.0)}
_COLUMNS = ("y_true", "y_pred", "y_score", "sensitive_features", "count")
_MAX_COUNTED = 10**8  # rows of a batch that are given as counts


@dataclass(frozen=True, slots=True)
class _Settings:
    """What a monitor was asked, which never changes: checked, and ready for JSON."""

    y_true: str | None
    y_pred: str | None
    y_score: str | None
    sensitive_features: str
    count: str | None
    metrics: tuple[str, ...]
    alpha: float
    margin: float
    bounds: tuple[float, float] | None
    reference: Hashable
    threshold: float | None
    rng: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MonitoredGap:
    """The gap between two groups in one metric, first minus second, after the batches so far.

    Attributes
    ----------
    metric, groups
        What is compared.
    rows, values
        The rows of each group in the metric's denominator, and its value in them.
    gap
        The difference of the values: None if a group has no rows yet.
    evalue
        Today's evidence against a gap within the margin in every batch: wealth that began at 1.
    pvalue
        One over the largest that it has been, times the number of comparisons, and at most 1.
    interval
        The confidence sequence: gaps that fit all batches, if the gap is the same in all. None if
        there is no such gap, because it changed.
    verdict
        "disparity" if the interval has no gap within the margin; "equivalent" if it lies within the
        margin; else "inconclusive".
    """

    metric: str
    groups: tuple[Hashable, Hashable]
    rows: tuple[int, int]
    values: tuple[float | None, float | None]
    gap: float | None
    evalue: float
    pvalue: float
    interval: tuple[float, float] | None
    verdict: Verdict

    @property
    def name(self) -> str:
        """What is compared, in words."""
        first, second = map(format_name, self.groups)
        return f"{format_metric(self.metric)}, {first} − {second}"

    @property
    def seems_changed(self) -> bool:
        """Whether the gap of all rows does not fit all batches: then it has probably changed."""
        if self.gap is None:
            return False
        return self.interval is None or not self.interval[0] <= self.gap <= self.interval[1]

    def to_dict(self) -> dict[str, Any]:
        """Return values that JSON can store."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """Whether a gap differs between two monitors.

    Attributes
    ----------
    metric, groups
        What is compared.
    before, now
        The intervals of the gap in the reference monitor and in this one, both wider than their
        own, so that together they have the level; None as in :class:`fairperm.MonitoredGap`.
    drifted
        Whether no gap is in both.
    """

    metric: str
    groups: tuple[Hashable, Hashable]
    before: tuple[float, float] | None
    now: tuple[float, float] | None
    drifted: bool

    def to_dict(self) -> dict[str, Any]:
        """Return values that JSON can store."""
        return asdict(self)


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
    groups : sequence, optional
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
        groups: Sequence[Hashable] | None = None,
        reference: Hashable = None,
        threshold: float | None = None,
        count: str | None = None,
        rng: int = 0,
    ) -> None:
        names = dict(
            zip(_COLUMNS, (y_true, y_pred, y_score, sensitive_features, count), strict=True)
        )
        for name, given in names.items():
            is_needed = name == "sensitive_features"
            if not isinstance(given, str) and (is_needed or given is not None):
                raise InputTypeError(name, "the name of a column", given)
        self._metrics = _find_metrics(metrics)
        self._bounds = [_find_bounds(one, bounds) for one in self._metrics]
        has_bounds = (one.is_rate or one.name in _OWN_BOUNDS for one in self._metrics)
        if bounds is not None and all(has_bounds):
            raise InputError("bounds", "left out: those of all metrics are known", bounds)
        margin = checks.number("margin", margin)
        widest = min(high - low for low, high in self._bounds)
        if not 0 <= margin < widest:
            raise InputError("margin", f"a number from 0 to below {widest:g}", margin)
        self._settings = _Settings(
            y_true=y_true,
            y_pred=y_pred,
            y_score=y_score,
            sensitive_features=sensitive_features,
            count=count,
            metrics=tuple(one.name for one in self._metrics),
            alpha=checks.fraction("alpha", alpha),
            margin=margin,
            bounds=None if bounds is None else (float(bounds[0]), float(bounds[1])),
            reference=reference,
            threshold=None if threshold is None else checks.number("threshold", threshold),
            rng=checks.integer("rng", rng, 0, 2**53),
        )
        self._groups: tuple[Hashable, ...] = ()
        self._wealth: dict[tuple[int, Hashable, Hashable], Wealth] = {}
        self._sums: dict[tuple[int, Hashable], tuple[int, float]] = {}
        self._last: int | str | None = None
        self._n_batches = 0
        if groups is not None:
            if isinstance(groups, str) or not isinstance(groups, Sequence):
                raise InputTypeError("groups", "a sequence of groups", groups)
            self._start(groups)

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
        tables = self._read(data)
        found = list(dict.fromkeys(group for one in tables for group in one))
        if not self._groups:
            self._start(found)
        for group in found:
            if group not in self._groups:
                hint = f"Name all groups when the monitor is made, as {argument('groups')}."
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
        margin = self._settings.margin
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
            return f"No gap is larger than {format_number(margin)}, {after}."
        return f"No alarm {after}; this does not show that the groups are equal."

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
            mine, other = (getattr(one._settings, name) for one in (self, reference))
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
                    metric=self._metrics[i].name,
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
            "settings": {
                name: [*one] if isinstance(one, tuple) else one
                for name, one in asdict(self._settings).items()
            },
            "groups": [*self._groups],
            "batches": self._n_batches,
            "last_batch": self._last,
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
            settings = dict(state["settings"])
            if settings["bounds"] is not None:
                settings["bounds"] = tuple(settings["bounds"])
            monitor = cls(**settings, groups=state["groups"] or None)
            wealth = {
                (i, first, second): Wealth.from_dict(one, monitor._scaled_margin(i))
                for i, first, second, one in state["wealth"]
            }
            monitor._sums = {
                (i, group): (int(n), float(total)) for i, group, n, total in state["sums"]
            }
            monitor._n_batches, monitor._last = int(state["batches"]), state["last_batch"]
        except InputError:
            raise
        except (KeyError, TypeError, ValueError) as error:
            hint = "It is damaged, or was not written by a monitor."
            raise InputError("state", "the state of a monitor", str(error), hint) from error
        if wealth.keys() != monitor._wealth.keys():
            raise InputError("state", "of all comparisons", [*wealth], "It is damaged.")
        monitor._wealth = wealth
        monitor._check_expected(expected)
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
            "alpha": self._settings.alpha,
            "margin": self._settings.margin,
            "comparisons": [one.to_dict() for one in self.comparisons],
        }

    def __repr__(self) -> str:
        rows = []
        level = f"{100 * (1 - self._settings.alpha):g} % at all times"
        for one in self.comparisons:
            gap = "—" if one.gap is None else format_number(one.gap, signed=True)
            interval = (
                "no one gap fits all batches"
                if one.interval is None
                else f"{level} {format_interval(one.interval, signed=True)}"
            )
            changed = "the gap seems to have changed" if one.seems_changed else ""
            p = state_pvalue(one.pvalue)
            rows.append((one.name, gap, interval, p, one.verdict, changed))
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
            for row in rows
        ]
        return "\n".join([self.answer, *(f"  {line.rstrip()}" for line in lines)])

    def _start(self, groups: Sequence[Hashable]) -> None:
        """Fix the groups and the pairs that are compared: they share the level."""
        for group in groups:
            if not isinstance(group, (str, int, float)) or group != group:
                rule = "made of text, numbers or truth values, which a state can store"
                raise InputTypeError("groups", rule, group)
        distinct = sorted(set(groups), key=sort_key)
        if len(distinct) < len(groups):
            raise InputError("groups", "different", groups)
        if len(distinct) < 2:
            hint = f"Name all groups as {argument('groups')} if the first batch has only one."
            raise InputError("sensitive_features", "of at least two groups", distinct, hint)
        reference = self._settings.reference
        if reference is None:
            pairs = [*itertools.combinations(distinct, 2)]
        elif reference in distinct:
            pairs = [(group, reference) for group in distinct if group != reference]
        else:
            raise unknown_name("reference", "one of the groups", reference, distinct)
        self._groups = tuple(distinct)
        self._wealth = {
            (i, *pair): Wealth.start(self._scaled_margin(i))
            for i in range(len(self._metrics))
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
            hint = "Texts are compared from left to right: write dates as 2026-03-01."
            raise InputError("batch", f"after {shown(last)}, the last one", batch, hint)
        return batch

    def _read(self, data: object) -> list[dict[Hashable, Array]]:
        """Return for each metric the values of each group, scaled to be from 0 to 1."""
        settings = self._settings
        columns = columns_of_frame("data", data)
        count = None if settings.count is None else _read_counts(columns, settings.count)
        source = Source(CountedRows(columns=columns, count=count))
        tables = []
        for i, metric in enumerate(self._metrics):
            makes = metric.kind.makes_predictions and settings.y_pred is None
            uses_score = makes or "y_score" in metric.columns
            inputs = Inputs(
                y_true=settings.y_true if "y_true" in metric.columns else None,
                y_pred=None if uses_score else settings.y_pred,
                y_score=settings.y_score if uses_score else None,
                sensitive_features=settings.sensitive_features,
                threshold=settings.threshold if makes else None,
                data=source.rows,
                must_keep="Rows count once their labels are known: leave them out until then.",
            )
            table = read_table(inputs, metric, source)
            totals = metric.checked_matrix(table.columns)
            low, high = self._bounds[i]
            by_group: dict[Hashable, Array] = {}
            for code, group in enumerate(table.groups):
                mine = (table.group == code) & (totals[:, 1] > 0)
                values = totals[mine, 0]
                outside = values[(values < low) | (values > high)]
                if outside.size:
                    rule = f"such that each row of {metric.name} is from {low:g} to {high:g}"
                    raise InputError("data", rule, float(outside[0]))
                by_group[group] = np.repeat((values - low) / (high - low), table.count[mine])
            tables.append(by_group)
        return tables

    def _stream(self, metric: int, group: Hashable) -> np.random.Generator:
        """Return the random stream that shuffles the rows of a group in this batch."""
        number = metric * len(self._groups) + self._groups.index(group)
        block = self._n_batches * len(self._groups) * len(self._metrics) + number
        return stream(self._settings.rng, BATCHES, block)

    def _scaled_margin(self, i: int) -> float:
        low, high = self._bounds[i]
        return self._settings.margin / (high - low)

    @property
    def _level(self) -> float:
        """Each comparison's part of alpha (Bonferroni): wealth, interval and alarm then agree."""
        return self._settings.alpha / len(self._wealth)

    def _interval(
        self, i: int, first: Hashable, second: Hashable, shares: int = 1
    ) -> tuple[float, float] | None:
        """Return the interval of a gap at its part of the level."""
        found = self._wealth[i, first, second].interval(self._level / shares)
        low, high = self._bounds[i]
        return None if found is None else (found[0] * (high - low), found[1] * (high - low))

    def _compare(self, i: int, first: Hashable, second: Hashable) -> MonitoredGap:
        wealth = self._wealth[i, first, second]
        low, high = self._bounds[i]
        sums = [self._sums.get((i, group), (0, 0.0)) for group in (first, second)]
        values = [low + (high - low) * total / n if n else None for n, total in sums]
        gap = None if None in values else values[0] - values[1]  # type: ignore[operator]
        scaled, margin = wealth.interval(self._level), self._scaled_margin(i)
        verdict: Verdict = "inconclusive"
        if wealth.log_most_evalue >= -math.log(self._level):
            verdict = "disparity"
        elif margin > 0 and scaled and -margin <= scaled[0] and scaled[1] <= margin:
            verdict = "equivalent"
        return MonitoredGap(
            metric=self._metrics[i].name,
            groups=(first, second),
            rows=(sums[0][0], sums[1][0]),
            values=(values[0], values[1]),
            gap=gap,
            evalue=_exp(wealth.log_evalue),
            pvalue=min(1.0, len(self._wealth) * math.exp(-max(wealth.log_most_evalue, 0.0))),
            interval=self._interval(i, first, second),
            verdict=verdict,
        )

    def _check_expected(self, expected: Mapping[str, Any]) -> None:
        """Raise InputError for arguments that the state was not made with."""
        names = {one.name for one in fields(_Settings)}
        for name, given in expected.items():
            if name not in names | {"groups"}:
                raise unknown_name("expected", "an argument of the monitor", name, names)
            kept = self._groups if name == "groups" else getattr(self._settings, name)
            if name == "metrics":
                given = tuple(one.name for one in _find_metrics(given))
            elif name == "groups":
                given = tuple(sorted(given, key=sort_key))
            elif isinstance(given, list):
                given = tuple(given)
            if given != kept:
                hint = "The question of a monitor cannot be changed: begin a new one."
                raise InputError(name, f"{shown(kept)}, as in the state", given, hint)


def _is_mean(metric: AnyMetric) -> TypeIs[Metric]:
    """Whether it is a rate, or the mean of one value for each row that counts."""
    if not isinstance(metric, Metric) or metric.compares_models:
        return False
    return metric.is_rate or (
        len(metric.contributions) == 2 and next(iter(metric.contributions)) == "total"
    )


def _find_metrics(given: object) -> tuple[Metric, ...]:
    if isinstance(given, str) or not isinstance(given, Sequence) or not given:
        raise InputTypeError("metrics", "a list of names", given)
    found: list[Metric] = []
    for name in given:
        metric = get_metric(name)
        if not _is_mean(metric):
            rule = "rates with one denominator or means of one value for each row"
            hint = "Other metrics can be tested with permutation_test, looked at once."
            if metric.name == "f1_score":
                hint = "jaccard_score asks the same: it is f1 / (2 − f1)."
            raise InputError("metrics", rule, name, hint)
        found.append(metric)
    names = [one.name for one in found]
    if len(set(names)) < len(names):
        raise InputError("metrics", "different", given)
    return tuple(found)


def _find_bounds(metric: Metric, given: object) -> tuple[float, float]:
    """Return the lowest and highest value of a row."""
    if metric.is_rate:
        return 0.0, 1.0
    if metric.name in _OWN_BOUNDS:
        return _OWN_BOUNDS[metric.name]
    rule = "the lowest and the highest possible value of a row"
    if given is None:
        raise InputTypeError("bounds", f"given for {metric.name}: {rule}", None)
    if not isinstance(given, Sequence) or isinstance(given, str) or len(given) != 2:
        raise InputTypeError("bounds", rule, given)
    low, high = (checks.number("bounds", one) for one in given)
    if low >= high:
        raise InputError("bounds", f"{rule}, in this order", given)
    return low, high


def _read_counts(columns: Mapping[Any, Any], name: str) -> NDArray[np.int64]:
    if name not in columns:
        raise unknown_name("count", "a column of the data", name, columns)
    counts = as_floats("count", columns[name])
    bad = counts[~((counts >= 0) & (counts % 1 == 0) & (counts <= _MAX_COUNTED))]
    if bad.size:
        raise InputError("count", "made of whole numbers from 0 on", float(bad[0]))
    return counts.astype(np.int64)


def _exp(log: float) -> float:
    """Return e to a power, or the largest number that there is: JSON has no infinity."""
    return math.exp(min(log, 700.0))
