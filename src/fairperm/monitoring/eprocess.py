"""A bet against equal groups, block by block: evidence that may be looked at whenever one likes.

The wealth of somebody who bets against the null hypothesis starts at 1. If the null is true, it
ever reaches 1/α with a probability of at most α (Ville's inequality), however often one looks. A
block has rows of both groups, and its difference d of their means is between −1 and 1. Against a
gap g one bets a share λ of the wealth, which becomes 1 + λ(d − g) times as large: if g is the true
gap, no choice of λ from earlier blocks wins on average.

Waudby-Smith and Ramdas, Estimating means of bounded random variables by betting, JRSS B 86, 2024;
Chugg, Cortes-Gomez, Wilder and Ramdas, Auditing fairness by betting, NeurIPS 2023.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    Array = NDArray[np.float64]

_MAX_LOSS = 0.5  # share of the wealth that one block may cost
_PRIOR_VARIANCE = 0.25  # of a block's difference
_N_GAPS = 201
_PART = 4  # of the blocks so far: as many share one bet


def make_gaps(margin: float) -> Array:
    """Return the gaps that are bet against: close together near 0, with both ends of a margin."""
    root = np.linspace(-1.0, 1.0, _N_GAPS)
    return np.unique(np.concatenate([root * np.abs(root), [-margin, margin]]))


@dataclass(frozen=True, slots=True)
class Pending:
    """Rows of one group that wait for a row of the other: their number and their sum."""

    rows: int = 0
    total: float = 0.0


@dataclass(frozen=True, slots=True)
class Wealth:
    """What has been won against each gap so far, and what the next bets rest on.

    Attributes
    ----------
    log_now, log_most
        The logarithm of the wealth against each gap, and the largest that it has been.
    blocks, total, squares
        The number of blocks so far, the sum of their differences and of the squares of these.
    pending
        The rows of each group that are in no block yet.
    """

    gaps: Array
    log_now: Array
    log_most: Array
    blocks: int = 0
    total: float = 0.0
    squares: float = 0.0
    pending: tuple[Pending, Pending] = (Pending(), Pending())

    @classmethod
    def start(cls, margin: float) -> Wealth:
        """Return the wealth before the first bet."""
        gaps = make_gaps(margin)
        return cls(gaps, np.zeros_like(gaps), np.zeros_like(gaps))

    def add(self, first: Array, second: Array, rng: np.random.Generator) -> Wealth:
        """Return the wealth after a batch of values from 0 to 1 of both groups.

        Rows are put into blocks at random, never by their order in a file: a file sorted by
        outcome would look like a gap.
        """
        sides, pending = self._pair(first, second, rng)
        found = replace(self, pending=pending)
        if sides is not None:
            differences = sides[0] - sides[1]
            for start, stop in _short_parts(self.blocks, len(differences)):
                found = found._bet(differences[start:stop])
        return found

    def interval(self, alpha: float) -> tuple[float, float]:
        """Return the gaps that have never been given up, with their neighbours on the grid."""
        kept = np.flatnonzero(self.log_most < -np.log(alpha))
        if not kept.size:  # the gaps changed: no gap fits all batches
            best = int(self.log_most.argmin())
            kept = np.array([best])
        low, high = max(kept[0] - 1, 0), min(kept[-1] + 1, len(self.gaps) - 1)
        return float(self.gaps[low]), float(self.gaps[high])

    def log_evalues(self, margin: float) -> tuple[float, float]:
        """Return the logarithms of the wealth against all gaps within a margin.

        Today's, and the largest that it has been.
        """
        within = np.abs(self.gaps) <= margin
        return float(self.log_now[within].min()), float(self.log_most[within].min())

    def _pair(
        self, first: Array, second: Array, rng: np.random.Generator
    ) -> tuple[tuple[Array, Array] | None, tuple[Pending, Pending]]:
        """Return both groups' means in each block, and the rows that still wait."""
        waiting = self.pending
        sides = [
            _with_pending(values, one, rng)
            for values, one in zip((first, second), waiting, strict=True)
        ]
        n_blocks = min(len(one[0]) for one in sides)
        if not n_blocks:
            totals = ((len(first), first.sum()), (len(second), second.sum()))
            merged = [
                Pending(one.rows + n, one.total + float(total))
                for one, (n, total) in zip(waiting, totals, strict=True)
            ]
            return None, (merged[0], merged[1])
        means = [_block_means(total, rows, n_blocks) for total, rows in sides]
        return (means[0], means[1]), (Pending(), Pending())

    def _bet(self, differences: Array) -> Wealth:
        """Return the wealth after blocks on all of which the same shares are bet."""
        n = self.blocks + 1
        mean = self.total / n
        variance = (self.squares + _PRIOR_VARIANCE) / n - mean**2 * (1 - 1 / n)
        excess = mean - self.gaps
        most = _MAX_LOSS / (1 + np.abs(self.gaps))
        # what would have won most so far, to the second order
        bet = np.clip(excess / (variance + excess**2), -most, most)
        values, counts = np.unique(differences, return_counts=True)
        won = np.log1p(bet * (values[:, None] - self.gaps))
        path = self.log_now + counts @ won
        return replace(
            self,
            log_now=path,
            log_most=np.maximum(self.log_most, path),
            blocks=self.blocks + len(differences),
            total=self.total + float(differences.sum()),
            squares=self.squares + float((differences**2).sum()),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the wealth as JSON-ready values."""
        return {
            "log_now": self.log_now.tolist(),
            "log_most": self.log_most.tolist(),
            "blocks": self.blocks,
            "total": self.total,
            "squares": self.squares,
            "pending": [[one.rows, one.total] for one in self.pending],
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any], margin: float) -> Wealth:
        """Return the wealth that was written down."""
        first, second = (Pending(int(n), float(total)) for n, total in plain["pending"])
        return cls(
            gaps=make_gaps(margin),
            log_now=np.array(plain["log_now"], float),
            log_most=np.array(plain["log_most"], float),
            blocks=int(plain["blocks"]),
            total=float(plain["total"]),
            squares=float(plain["squares"]),
            pending=(first, second),
        )


def _with_pending(values: Array, pending: Pending, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return totals and numbers of rows of a group in random order; those that waited are one."""
    totals = rng.permutation(np.sort(values))
    rows = np.ones(len(totals))
    if not pending.rows:
        return totals, rows
    return np.append(pending.total, totals), np.append(float(pending.rows), rows)


def _block_means(totals: Array, rows: Array, n_blocks: int) -> Array:
    """Return the means of consecutive parts, as equal in number as possible."""
    starts = np.arange(n_blocks) * len(totals) // n_blocks
    means: Array = np.add.reduceat(totals, starts) / np.add.reduceat(rows, starts)
    return means


def _short_parts(before: int, n: int) -> Iterator[tuple[int, int]]:
    """Yield parts of n blocks, each of which is short against all blocks before it.

    Bets then rest on nearly all that is known, whatever the size of a batch.
    """
    start = 0
    while start < n:
        stop = min(n, start + max(1, (before + start) // _PART))
        yield start, stop
        start = stop


def adjust_level(alpha: float, n_hypotheses: int) -> float:
    """Return the level of each of several bets (Bonferroni): intervals and alarms then agree."""
    return alpha / max(n_hypotheses, 1)


def sorted_values(values: Sequence[float], counts: Sequence[int]) -> Array:
    """Return values that occur so many times each."""
    return np.repeat(np.asarray(values, float), np.asarray(counts, int))
