"""A bet against equal groups, block by block: evidence that may be looked at whenever one likes.

The wealth of somebody who bets against the null hypothesis starts at 1. If the null is true, it
ever reaches 1/α with a probability of at most α (Ville's inequality), however often one looks. A
block has rows of both groups, and its difference d of their means is between −1 and 1. Against the
gaps from l to h one bets a share λ of the wealth. If earlier blocks say that the gap is above h,
the wealth becomes 1 + λ(d − h) times as large; if they say that it is below l, 1 + λ(l − d) times.
If the true gap is from l to h, no choice of λ ≥ 0 from earlier blocks wins on average. Such ranges
of gaps lie side by side: the true gap is in one of them, whatever it is.

Waudby-Smith and Ramdas, Estimating means of bounded random variables by betting, JRSS B 86, 2024;
Chugg, Cortes-Gomez, Wilder and Ramdas, Auditing fairness by betting, NeurIPS 2023.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fairperm._utils.arrays import Array

_MAX_LOSS = 0.5  # share of the wealth that one block may cost
_PRIOR_VARIANCE = 0.25  # of a block's difference
_N_ENDS = 201
_NEXT = 1e-4  # to a margin: an alarm is about gaps beyond
_PART = 4  # of the blocks so far: as many share one bet
_CHUNK_SIZE = 4096  # of differences whose logarithms are in memory at once


@dataclass(frozen=True, slots=True)
class Cells:
    """Ranges of gaps, side by side from −1 to 1: narrow near 0, with a margin's ends as ends.

    The last cell is the margin as a whole: a gap that moves within it is in no other one all the
    time. If the margin is 0, the gap 0 is a cell of its own.
    """

    low: Array
    high: Array
    margin: float

    @classmethod
    def make(cls, margin: float) -> Cells:
        """Return the cells for a margin."""
        root = np.linspace(-1.0, 1.0, _N_ENDS)
        of_margin = [margin, margin + _NEXT, -margin, -margin - _NEXT]
        ends = np.sort(np.concatenate([root * np.abs(root), of_margin]))
        return cls(np.append(ends[:-1], -margin), np.append(ends[1:], margin), margin)

    def least_beyond(self, logs: Array) -> float:
        """Return the evidence that the gap is above the margin or below it, whichever is more."""
        # It is the least of the cells up to the margin, or of those from minus the margin on. Both
        # have the margin as a whole: this bounds false alarms even if the gap moves within it.
        above = logs[self.low <= self.margin].min()
        below = logs[self.high >= -self.margin].min()
        return float(max(above, below))


@dataclass(frozen=True, slots=True)
class Pending:
    """Rows of one group that wait for a row of the other: their number and their sum."""

    rows: int = 0
    total: float = 0.0


@dataclass(frozen=True, slots=True)
class Wealth:
    """What has been won against each cell of gaps so far, and what the next bets rest on."""

    cells: Cells
    # the logarithm of the wealth against each cell, and the largest that it has been
    log_now: Array
    log_most: Array
    # the number of blocks so far, the sum of their differences and of the squares of these
    blocks: int = 0
    total: float = 0.0
    squares: float = 0.0
    # the rows of each group that are in no block yet
    pending: tuple[Pending, Pending] = (Pending(), Pending())

    @classmethod
    def start(cls, margin: float) -> Wealth:
        """Return the wealth before the first bet."""
        cells = Cells.make(margin)
        return cls(cells, np.zeros_like(cells.low), np.zeros_like(cells.low))

    def add(self, first: Array, second: Array) -> Wealth:
        """Return the wealth after a batch of values from 0 to 1 of both groups, once shuffled."""
        sides, pending = self._pair(first, second)
        found = replace(self, pending=pending)
        if sides is not None:
            differences = sides[0] - sides[1]
            for start, stop in _short_parts(self.blocks, len(differences)):
                found = found._bet(differences[start:stop])
        return found

    def interval(self, alpha: float) -> tuple[float, float] | None:
        """Return the ends of the gaps that have never been given up; None if all have been."""
        # Then no one gap fits all batches: it has changed. Where the margin as a whole still fits,
        # there is no alarm, and the interval has it: as the gaps in it that fit, or else all of it.
        low, high, margin = self.cells.low, self.cells.high, self.cells.margin
        kept = self.log_most < -np.log(alpha)
        if not kept[:-1].any():
            return None
        kept[-1] &= not (kept & (low >= -margin) & (high <= margin))[:-1].any()
        return float(low[kept].min()), float(high[kept].max())

    @property
    def log_evalue(self) -> float:
        """The logarithm of today's wealth against all gaps within the margin."""
        return self.cells.least_beyond(self.log_now)

    @property
    def log_most_evalue(self) -> float:
        """The largest that it has been: from 1/α on, the interval has no gap within the margin."""
        return self.cells.least_beyond(self.log_most)

    def _pair(
        self, first: Array, second: Array
    ) -> tuple[tuple[Array, Array] | None, tuple[Pending, Pending]]:
        """Return both groups' means in each block, and the rows that still wait."""
        waiting = self.pending
        sides = [
            _with_pending(values, one) for values, one in zip((first, second), waiting, strict=True)
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
        against, bet = find_bets(
            self.blocks, self.total, self.squares, self.cells.low, self.cells.high
        )
        values, counts = np.unique(differences, return_counts=True)
        path = self.log_now.copy()
        for start in range(0, len(values), _CHUNK_SIZE):
            chunk = slice(start, start + _CHUNK_SIZE)
            path += counts[chunk] @ np.log1p(bet * (values[chunk, None] - against))
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
        cells = Cells.make(margin)
        now, most = (np.array(plain[name], float) for name in ("log_now", "log_most"))
        if not now.shape == most.shape == cells.low.shape or not np.isfinite([now, most]).all():
            raise ValueError("log_now and log_most need a number for each range of gaps")
        return cls(
            cells=cells,
            log_now=now,
            log_most=most,
            blocks=int(plain["blocks"]),
            total=float(plain["total"]),
            squares=float(plain["squares"]),
            pending=(first, second),
        )


def find_bets(
    blocks: int, total: Array | float, squares: Array | float, low: Array, high: Array
) -> tuple[Array, Array]:
    """Return the gap of each range to bet against, and the share to bet on gaps above it."""
    # The share is negative for a bet on gaps below. It is what would have won most so far, to the
    # second order, and 0 if the mean of the earlier blocks is in the range.
    n = blocks + 1
    mean = total / n
    variance = (squares + _PRIOR_VARIANCE) / n - mean**2 * (1 - 1 / n)
    against = np.clip(mean, low, high)
    excess = mean - against
    most = _MAX_LOSS / (1 + np.abs(against))
    return against, np.clip(excess / (variance + excess**2), -most, most)


def shuffle(values: Array, rng: np.random.Generator) -> Array:
    """Return the values of one group in a batch in random order, whatever their order was."""
    # Blocks are never made of rows in the order of a file: one sorted by outcome would look like a
    # gap. Two groups need two streams: equal shuffles would pair equal ranks.
    return rng.permutation(np.sort(values))


def _with_pending(values: Array, pending: Pending) -> tuple[Array, Array]:
    """Return totals and numbers of rows; the rows that waited are one."""
    rows = np.ones(len(values))
    if not pending.rows:
        return values, rows
    return np.append(pending.total, values), np.append(float(pending.rows), rows)


def _block_means(totals: Array, rows: Array, n_blocks: int) -> Array:
    """Return the means of consecutive parts, as equal in number as possible."""
    starts = np.arange(n_blocks) * len(totals) // n_blocks
    means: Array = np.add.reduceat(totals, starts) / np.add.reduceat(rows, starts)
    return means


def _short_parts(before: int, n: int) -> Iterator[tuple[int, int]]:
    """Yield parts of n blocks, each of which is short against all blocks before it."""
    # bets then rest on nearly all that is known, whatever the size of a batch
    start = 0
    while start < n:
        stop = min(n, start + max(1, (before + start) // _PART))
        yield start, stop
        start = stop
