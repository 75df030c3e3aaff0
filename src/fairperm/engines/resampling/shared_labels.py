"""Metrics of the same rows that exchange the same labels: these are drawn once for all of them.

What is drawn depends on how many rows of each group there are in each block, and on nothing else:
a metric's permutations are the same whether it is tested alone or beside others.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from fairperm._utils import streams

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from fairperm.engines.estimates import Estimates
    from fairperm.engines.resampling import blocks

T = TypeVar("T")


class Permuting(Protocol):
    """An engine that permutes the labels of its rows."""

    block_size: int

    def permuted(self, n: int, rng: np.random.Generator) -> Estimates:
        """Return the estimates of ``n`` random permutations."""


class SharedLabels(ABC):
    """An engine whose random labels others can use as well."""

    __slots__ = ()

    @property
    @abstractmethod
    def exchanged(self) -> bytes | None:
        """Return what labels are drawn from: engines in which it is equal draw the same.

        None if this one must draw its own.
        """

    @abstractmethod
    def random_labels(self, n: int, rng: np.random.Generator) -> NDArray[Any]:
        """Return ``n`` random assignments of the rows to the groups."""

    @abstractmethod
    def of_labels(self, labels: NDArray[Any], n: int, rng: np.random.Generator) -> Estimates:
        """Return the estimates of ``n`` assignments."""

    def permuted(self, n: int, rng: np.random.Generator) -> Estimates:
        """Return the estimates of ``n`` random permutations."""
        return self.of_labels(self.random_labels(n, rng), n, rng)


@dataclass(frozen=True, slots=True)
class Asked(Generic[T]):
    """An engine, and what is kept of its permutations; a user's function goes through joblib.

    ``counts`` is how many of them a permutation is made of, if it is made of counts.
    """

    engine: Permuting
    kept: Callable[[Estimates], T]
    through_joblib: bool
    counts: float = math.inf


def permute(asked: Sequence[Asked[T]], resampling: blocks.Resampling) -> list[list[T]]:
    """Return what is kept of every engine's permutations, in blocks."""
    found: dict[int, list[T]] = {}
    for places in _sharing([one.engine for one in asked]):
        first, together = asked[places[0]], [asked[place] for place in places]
        blocks = resampling.in_blocks(
            partial(_block, together),
            streams.PERMUTATIONS,
            first.engine.block_size,
            through_joblib=first.through_joblib,
            counts=sum(one.counts for one in together),
        )
        for place, mine in zip(places, zip(*blocks, strict=True), strict=True):
            found[place] = list(mine)
    return [found[place] for place in range(len(asked))]


def _block(together: Sequence[Asked[T]], n: int, rng: np.random.Generator) -> list[T]:
    first = together[0].engine
    if not isinstance(first, SharedLabels):
        return [one.kept(one.engine.permuted(n, rng)) for one in together]
    labels = first.random_labels(n, rng)
    return [
        one.kept(one.engine.of_labels(labels, n, rng))
        for one in together
        if isinstance(one.engine, SharedLabels)
    ]


def _sharing(engines: Sequence[Permuting]) -> list[list[int]]:
    """Return the places of engines that share their labels, together."""
    by_labels: dict[object, list[int]] = {}
    for place, engine in enumerate(engines):
        exchanged = engine.exchanged if isinstance(engine, SharedLabels) else None
        by_labels.setdefault(place if exchanged is None else exchanged, []).append(place)
    return list(by_labels.values())
