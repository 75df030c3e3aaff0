"""The area under the ROC curve of units, most of whose scores are unlike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fairperm._auc import AucLayout, auc_by_lane
from fairperm._draws import OBSERVED, stream
from fairperm._estimates import Estimates
from fairperm._order import run_starts
from fairperm._rank import Components
from fairperm._units import Layout, UnitsEngine

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from fairperm._sample import Rows

    Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class RankEngine(UnitsEngine):
    """AUC and DeLong's variance, from scores that are sorted once."""

    auc_layout: AucLayout
    centres: Array
    label_and_score: Array

    @classmethod
    def from_rows(
        cls, rows: Rows, weights: Array | None, variance: str | None, n_bootstrap: int
    ) -> RankEngine:
        """Sort by score, inside strata and blocks: the order of rows must not matter."""
        positive, score = rows.contributions[:, 0] > 0, rows.contributions[:, 1]
        auc_layout = AucLayout.build(
            score, positive, rows.stratum, rows.n_strata, within_label=bool(rows.block.any())
        )
        order = auc_layout.order
        layout = Layout.of(
            rows.side[order],
            rows.stratum[order],
            rows.block[order],
            rows.n_strata,
            lambda: rows.contributions[order],
        )
        return cls(
            layout=layout,
            weights=weights,
            variance=variance,
            n_bootstrap=n_bootstrap,
            auc_layout=auc_layout,
            centres=auc_layout.centres(float(layout.in_first.mean())),
            label_and_score=rows.contributions,
        )

    def left_out(self) -> Iterator[tuple[Estimates, NDArray[np.int64]]]:
        """Yield for each stratum's group the estimates without one of its units.

        Without a positive the AUC is the mean of the other positives' components, and likewise
        for a negative.
        """
        whole = self.observed(stream(0, OBSERVED))
        for s, g, members in self.layout.members(self.layout.in_first):
            parts = self._components(members, np.ones((1, len(members))))
            value = parts.value()
            lists = []
            for counts, component in (
                (parts.positives[0], parts.of_positives[0]),
                (parts.negatives[0], parts.of_negatives[0]),
            ):
                n = counts.sum()
                there = counts > 0
                lists.append(((n * value - component[there]) / (n - 1), counts[there]))
            values = np.concatenate([one[0] for one in lists])
            repeated = np.repeat(whole.value, len(values), axis=1)
            repeated[0, :, s, g] = values
            size = np.tile(self.layout.sizes, (*repeated.shape[:2], 1, 1))
            size[0, :, s, g] -= 1
            estimates = Estimates(repeated, np.zeros(repeated.shape), size)
            yield estimates, np.concatenate([one[1] for one in lists]).astype(np.int64)

    def _of_words(self, words: NDArray[np.uint64], lanes: int) -> Estimates:
        del lanes  # all are computed at once
        value, variance = auc_by_lane(words, self.auc_layout, self.centres)
        size = np.broadcast_to(self.layout.sizes, value.shape)
        return Estimates(value[None], variance[None], size[None])

    def _resampled(
        self, in_first: NDArray[np.bool_], n: int, rng: np.random.Generator
    ) -> Estimates:
        value = np.full((1, n, self.layout.n_strata, 2), np.nan)
        for s, g, members in self.layout.members(in_first):
            for i in range(n if members.size else 0):
                drawn = rng.integers(len(members), size=len(members))
                times = np.bincount(drawn, minlength=len(members)).astype(float)
                value[0, i, s, g] = self._components(members, times[None]).value()[0]
        size = np.broadcast_to(self.layout.sizes, value.shape)
        return Estimates(value, np.zeros(value.shape), size)

    def _components(self, members: NDArray[np.intp], times: Array) -> Components:
        """Return the components of some units, each counted so many times."""
        label, score = self.label_and_score[self.auc_layout.order[members]].T
        order = np.argsort(score, kind="stable")
        positive = label[order] > 0
        starts = run_starts(score[order])
        counted = times[:, order]
        return Components(
            np.add.reduceat(counted * positive, starts, axis=1),
            np.add.reduceat(counted * ~positive, starts, axis=1),
        )
