"""What a monitor was asked, which never changes, and how it reads a batch."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from fairperm._utils import checks
from fairperm._utils.arrays import Array
from fairperm.data.arguments import Inputs
from fairperm.data.columns import Source, columns_of_frame
from fairperm.data.copies import as_copies
from fairperm.data.reading import read_table
from fairperm.errors import InputError, InputTypeError, shown, unknown_name
from fairperm.metrics.definition import AnyMetric, Metric
from fairperm.metrics.registry import get_metric

if TYPE_CHECKING:
    from typing_extensions import TypeIs


_OWN_BOUNDS = {"brier_score": (0.0, 1.0), "calibration_in_the_large": (-1.0, 1.0)}
_MAX_COUNTED = 10**8  # rows of a batch
_COLUMNS = ("y_true", "y_pred", "y_score", "sensitive_features", "count")


@dataclass(frozen=True)
class Question:
    """What a monitor was asked: checked, and ready for JSON."""

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

    @classmethod
    def check(cls, **given: Any) -> Self:
        """Return the question of these arguments. Raises InputError for bad ones."""
        for name in _COLUMNS:
            is_needed = name == "sensitive_features"
            if not isinstance(given[name], str) and (is_needed or given[name] is not None):
                raise InputTypeError(name, "the name of a column", given[name])
        found = _find_metrics(given["metrics"])
        margin, bounds, threshold = (given[name] for name in ("margin", "bounds", "threshold"))
        every = [_find_bounds(one, bounds) for one in found]
        if bounds is not None and all(one.is_rate or one.name in _OWN_BOUNDS for one in found):
            raise InputError("bounds", "left out: those of all metrics are known", bounds)
        margin = checks.number("margin", margin)
        widest = min(high - low for low, high in every)
        if not 0 <= margin < widest:
            raise InputError("margin", f"a number from 0 to below {widest:g}", margin)
        checked = {
            "metrics": tuple(one.name for one in found),
            "alpha": checks.fraction("alpha", given["alpha"]),
            "margin": margin,
            "bounds": None if bounds is None else (float(bounds[0]), float(bounds[1])),
            "threshold": None if threshold is None else checks.number("threshold", threshold),
            "rng": checks.integer("rng", given["rng"], 0, 2**53),
        }
        return cls(**given | checked)

    @cached_property
    def found_metrics(self) -> tuple[Metric, ...]:
        """The metrics themselves."""
        return _find_metrics(self.metrics)

    @cached_property
    def found_bounds(self) -> tuple[tuple[float, float], ...]:
        """The lowest and highest value of a row in each metric."""
        return tuple(_find_bounds(one, self.bounds) for one in self.found_metrics)

    def scale(self, i: int) -> float:
        """Return the width of the range of a metric: rows are from 0 to 1 in bets."""
        low, high = self.found_bounds[i]
        return high - low

    def to_dict(self) -> dict[str, Any]:
        """Return the question as JSON-ready values."""
        return {
            name: [*one] if isinstance(one, tuple) else one for name, one in asdict(self).items()
        }

    def check_expected(self, expected: Mapping[str, Any]) -> None:
        """Raise InputError for arguments other than these."""
        names = [one.name for one in fields(self)]
        for name, given in expected.items():
            if name not in names:
                raise unknown_name("expected", "an argument of the monitor", name, names)
            if name == "metrics":
                given = tuple(one.name for one in _find_metrics(given))
            elif isinstance(given, list):
                given = tuple(given)
            check_same(name, given, getattr(self, name))

    def read(self, data: object) -> list[dict[Hashable, Array]]:
        """Return for each metric the values of each group, scaled to be from 0 to 1."""
        columns = columns_of_frame("data", data)
        count = None if self.count is None else as_copies(columns, self.count).count
        if count is not None and count.sum() > _MAX_COUNTED:
            raise InputError("count", f"at most {_MAX_COUNTED:,} together", int(count.sum()))
        source = Source(columns, count=count)
        tables = []
        for i, metric in enumerate(self.found_metrics):
            makes = metric.kind.makes_predictions and self.y_pred is None
            uses_score = makes or "y_score" in metric.columns
            inputs = Inputs(
                y_true=self.y_true if "y_true" in metric.columns else None,
                y_pred=None if uses_score else self.y_pred,
                y_score=self.y_score if uses_score else None,
                sensitive_features=self.sensitive_features,
                threshold=self.threshold if makes else None,
                data=source,
                must_keep="Rows count once their labels are known: leave them out until then.",
            )
            table = read_table(inputs, metric, source)
            totals = metric.checked_matrix(table.columns)
            low, high = self.found_bounds[i]
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


def check_same(name: str, given: object, kept: object) -> None:
    """Raise InputError if an argument is not that of the state."""
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
