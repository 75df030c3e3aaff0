"""Populations of independent features, in which some subgroups are affected."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairperm.data.columns import Column
from fairperm.data.sample import Sample
from fairperm.engines.resampling.blocks import Resampling
from fairperm.hypothesis_tests.plan import Options
from fairperm.metrics import get_metric
from fairperm.subgroups.features import Feature
from fairperm.subgroups.sample import SearchedRows, make_sample
from fairperm.subgroups.search import Search, Settings, search

Conditions = tuple[tuple[str, int], ...]

SHARES = {"a": (0.5, 0.5), "b": (0.3, 0.7), "c": (0.2, 0.3, 0.5), "d": (0.5, 0.3, 0.2)}
SHARES["e"] = (0.5, 0.5)
LEVELS = np.array(list(np.ndindex(*map(len, SHARES.values()))), np.intp)
CHANCES = np.prod([np.array(one)[LEVELS[:, f]] for f, one in enumerate(SHARES.values())], axis=0)
FEATURES = tuple(
    Feature(
        name, Column(name, np.empty(0, np.int64), 0, range(len(one))), (0, 1, 2)[: len(one)], None
    )
    for name, one in SHARES.items()
)


def find_cells(conditions: Conditions) -> NDArray[np.bool_]:
    """Return which cells meet the conditions."""
    places = {name: f for f, name in enumerate(SHARES)}
    inside: NDArray[np.bool_] = np.all(
        [LEVELS[:, places[name]] == level for name, level in conditions], axis=0
    )
    return inside


@dataclass(frozen=True)
class Population:
    """Rows with five independent features; ``affected`` are subgroups and their effects.

    ``uneven`` makes base rates, and the spread of scores or errors, depend on feature "d". Metrics
    stay the same.
    """

    metric: str
    affected: Mapping[Conditions, float]
    uneven: bool = False
    n: int = 800

    def effects(self) -> NDArray[np.float64]:
        """Return the effect in every cell."""
        total = np.zeros(len(LEVELS))
        for one, effect in self.affected.items():
            total += effect * find_cells(one)
        return total

    def draw(self, seed: int) -> SearchedRows:
        """Return a sample of labels with predictions, scores or errors."""
        rng = np.random.default_rng([7, seed])
        cell = rng.choice(len(LEVELS), self.n, p=CHANCES)
        effect = self.effects()[cell]
        kind = LEVELS[cell, 3] if self.uneven else np.ones(self.n, np.intp)
        label = rng.random(self.n) < np.array([0.3, 0.5, 0.7])[kind]
        columns: dict[str, NDArray[Any]] = {"y_true": label}
        if self.metric == "true_positive_rate":
            columns["y_pred"] = rng.random(self.n) < 0.7 + effect
        elif self.metric == "roc_auc":
            spread = np.array([1.0, 1.5, 2.0])[kind]
            columns["y_score"] = spread * (rng.normal(size=self.n) + label * (1 + effect))
        else:
            size = rng.choice([np.sqrt(0.4), np.sqrt(1.6)], self.n)  # their mean square is 1
            error = rng.normal(size=self.n) * np.where(kind == 0, size, 1.0)
            columns = {"y_true": np.zeros(self.n), "y_pred": error * np.sqrt(1 + effect)}
        return sample_cells(cell, columns, self.metric)

    def search(self, seed: int, n_resamples: int = 199, alternative: str = "two-sided") -> Search:
        """Search a sample of this population for pairs of conditions."""
        return search(self.draw(seed), make_settings(seed, n_resamples, alternative))

    def true_gaps(self, found: Search) -> NDArray[np.float64]:
        """Return the effect in every candidate minus that in the rest."""
        inside = found.candidates.members.toarray() * CHANCES
        effect, share = self.effects(), inside.sum(axis=1)
        mine = inside @ effect
        gaps: NDArray[np.float64] = mine / share - (CHANCES @ effect - mine) / (1 - share)
        return gaps


def sample_cells(
    cell: NDArray[np.intp], columns: Mapping[str, NDArray[Any]], metric: str
) -> SearchedRows:
    """Return the sample of rows in these cells."""
    order, n = np.argsort(cell, kind="stable"), len(cell)
    table = Sample(
        columns={name: column[order] for name, column in columns.items()},
        group=cell[order],
        stratum=np.zeros(n, np.uint8),
        count=np.ones(n, np.int64),
        groups=tuple(map(tuple, LEVELS.tolist())),
        strata=("all",),
    )
    return make_sample(FEATURES, LEVELS, table, get_metric(metric))


def make_settings(
    seed: int, n_resamples: int = 199, alternative: str = "two-sided", min_rows: int = 30
) -> Settings:
    """Return the settings of a search for pairs of conditions."""
    resampling = Resampling(n_resamples, seed, 1, False)
    options = Options(resampling=resampling, alternative=alternative)
    return Settings(options=options, max_depth=2, min_rows=min_rows, adjust="maxt", alpha=0.05)
