"""The calibration study's settings: a product of metrics, sizes and contrasts, fixed beforehand.

In a null setting the metric is equal in both groups, while base rates or spreads may differ; in a
gap setting the metric differs too, once for the better in the first group and once for the worse.
If groups have equal sizes, a setting and its mirror image are one. No setting was removed because
of its result.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from studies import simulate

if TYPE_CHECKING:
    from collections.abc import Iterator

    Population = simulate.Rates | simulate.Scores | simulate.Regression

Pair = tuple[float, float]
Sizes = tuple[int, int]

NULL_SIZES: tuple[Sizes, ...] = ((30, 30), (200, 200), (5000, 5000), (30, 300), (200, 2000))
GAP_SIZES: tuple[Sizes, ...] = ((200, 200), (200, 2000))
BASE_RATES: tuple[Pair, ...] = ((0.5, 0.5), (0.8, 0.2), (0.2, 0.8))
SPREADS: tuple[Pair, ...] = ((3.0, 1.0), (1.0, 3.0))
KURTOSES: tuple[Pair, ...] = ((3.0, 3.0), (9.0, 3.0), (3.0, 9.0))
# The metric in the first group, and in the second group of a gap setting.
TRUTHS: dict[str, Pair] = {
    "true_positive_rate": (0.9, 0.8),
    "false_positive_rate": (0.1, 0.2),
    "selection_rate": (0.3, 0.4),
    "positive_predictive_value": (0.7, 0.8),
    "accuracy": (0.8, 0.7),
    "f1_score": (0.6, 0.7),
    "balanced_accuracy": (0.8, 0.7),
    "roc_auc": (0.85, 0.75),
    "mean_squared_error": (1.0, 1.5),
}
METRICS = tuple(TRUTHS)
_EVEN = ("base rates 0.5 and 0.5", "kurtosis 3 and 3")  # contrasts that are their mirror images
# Sizes and contrasts (kurtosis, base rates) for which the smaller group's effective number of rows
# is just above 20, which counts as enough. That bound was chosen after trials of the grid above;
# these settings were fixed later, before their levels were measured.
_BOUND: dict[str, tuple[tuple[Sizes, Pair], ...]] = {
    "mean_squared_error": (
        ((300, 300), (3.0, 3.0)),
        ((550, 550), (6.0, 3.0)),
        ((770, 770), (9.0, 3.0)),
        ((1380, 1380), (15.0, 3.0)),
        ((850, 850), (9.0, 6.0)),
        ((220, 2200), (3.0, 3.0)),
        ((500, 5000), (6.0, 3.0)),
        ((770, 7700), (9.0, 3.0)),
        ((1420, 14200), (15.0, 3.0)),
        ((780, 7800), (9.0, 6.0)),
        ((480, 4800), (6.0, 9.0)),
    ),
    "balanced_accuracy": (
        ((90, 90), (0.5, 0.5)),
        ((920, 920), (0.1, 0.5)),
        ((370, 370), (0.2, 0.8)),
        ((165, 165), (0.3, 0.7)),
        ((80, 800), (0.5, 0.5)),
        ((890, 8900), (0.1, 0.5)),
        ((310, 3100), (0.2, 0.8)),
        ((140, 1400), (0.3, 0.7)),
        ((140, 1400), (0.7, 0.3)),
    ),
}


@dataclass(frozen=True, slots=True)
class Setting:
    """A population, and the metric to compare in samples from it."""

    metric: str
    n: Sizes
    contrast: str
    population: Population

    @property
    def is_null(self) -> bool:
        """Whether the metric is equal in both groups."""
        first, second = self.population.truth(self.metric).values()
        return first == second

    @property
    def place(self) -> str:
        """The sizes and the contrast: the name of a setting among those of a metric."""
        return f"{self.n[0]} and {self.n[1]} rows, {self.contrast}"

    @property
    def name(self) -> str:
        """The name of a setting among all; with a gap, it has the metric's values."""
        if self.is_null:
            return f"{self.metric}, {self.place}"
        first, second = self.population.truth(self.metric).values()
        return f"{self.metric} {first:.3g} and {second:.3g}, {self.place}"


def null_settings() -> list[Setting]:
    """Return the settings in which the metric is equal."""
    return [
        one
        for metric, (first, _) in TRUTHS.items()
        for n in NULL_SIZES
        for one in _settings(metric, n, (first, first))
    ]


def gap_settings() -> list[Setting]:
    """Return the settings in which the metric differs; each has a null setting of its place."""
    mirrored = [
        one
        for metric, truth in TRUTHS.items()
        for n in GAP_SIZES
        for one in _settings(metric, n, truth[::-1])
        if n[0] != n[1] or one.contrast not in _EVEN
    ]
    given = [
        one
        for metric, truth in TRUTHS.items()
        for n in GAP_SIZES
        for one in _settings(metric, n, truth)
    ]
    return [*given, *mirrored]


def bound_settings() -> list[Setting]:
    """Return the settings with just enough rows for the variance of a metric that is not a rate."""
    return [
        Setting(metric, n, *_contrast(metric, n, contrast, (TRUTHS[metric][0],) * 2))
        for metric, cases in _BOUND.items()
        for n, contrast in cases
    ]


def _settings(metric: str, n: Sizes, truth: Pair) -> Iterator[Setting]:
    for contrast, population in _populations(metric, n, truth):
        yield Setting(metric, n, contrast, population)


def _populations(metric: str, n: Sizes, truth: Pair) -> Iterator[tuple[str, Population]]:
    """Yield the name and population of every contrast, without mirror images for equal sizes."""
    pairs = KURTOSES if metric == "mean_squared_error" else BASE_RATES
    for pair in _drop_mirrored(pairs, n):
        yield _contrast(metric, n, pair, truth)
    if metric == "roc_auc":
        for spread in _drop_mirrored(SPREADS, n):
            yield f"spreads {_join_pair(spread)}", simulate.Scores(n, BASE_RATES[0], truth, spread)


def _contrast(metric: str, n: Sizes, pair: Pair, truth: Pair) -> tuple[str, Population]:
    """Return the name and the population of a contrast of kurtosis or base rates."""
    if metric == "mean_squared_error":
        return f"kurtosis {_join_pair(pair)}", simulate.Regression(n, truth, pair)
    name = f"base rates {_join_pair(pair)}"
    if metric == "roc_auc":
        return name, simulate.Scores(n, pair, truth)
    return name, _rates(metric, n, pair, truth)


def _rates(metric: str, n: Sizes, base_rate: Pair, truth: Pair) -> simulate.Rates:
    """Return a population of predictions in which the metric has these values."""
    first, second = (_error_rates(metric, *one) for one in zip(base_rate, truth, strict=True))
    hits, rights = (first[0], second[0]), (1 - first[1], 1 - second[1])
    return simulate.Rates(n, base_rate, hits, rights)


def _error_rates(metric: str, base: float, value: float) -> Pair:
    """Return the TPR and the FPR that give a metric this value at this base rate."""
    if metric == "true_positive_rate":
        return value, 0.1
    if metric == "false_positive_rate":
        return 0.9, value
    if metric == "accuracy":
        return value, 1 - value
    if metric == "balanced_accuracy":  # the rarer label is predicted better
        return value + 0.2 * (0.5 - base), 1 - value + 0.2 * (0.5 - base)
    if metric == "selection_rate":  # TPR and FPR 0.3 apart
        return value + 0.3 * (1 - base), value - 0.3 * base
    if metric == "positive_predictive_value":
        return 0.5, 0.5 * base * (1 - value) / (value * (1 - base))
    hit = value - 0.1  # f1_score: 2·base·hit / (base·hit + base + (1 − base)·FPR)
    return hit, (2 * base * hit / value - base * hit - base) / (1 - base)


def _drop_mirrored(pairs: tuple[Pair, ...], n: Sizes) -> list[Pair]:
    """Return the pairs; for equal sizes, without pairs that are another one reversed."""
    kept: list[Pair] = []
    for pair in pairs:
        if n[0] != n[1] or pair[::-1] not in kept:
            kept.append(pair)
    return kept


def _join_pair(pair: Pair) -> str:
    return f"{pair[0]:g} and {pair[1]:g}"
