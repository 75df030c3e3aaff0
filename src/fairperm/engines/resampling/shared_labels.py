"""Labels that are drawn once for all metrics of the same rows that exchange the same labels.

A draw depends only on the number of rows of each group in each block, so the permutations of a
metric are the same whether it is tested alone or with other metrics.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, cast

from fairperm._utils import streams
from fairperm.engines.resampling.blocks import BLOCK, Stop

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from fairperm.engines.estimates import Estimates
    from fairperm.engines.resampling import blocks

T = TypeVar("T")


class Permuting(Protocol):
    """An engine that permutes the labels of its rows."""

    @property
    def block_size(self) -> int:
        """How many permutations are made at a time."""

    @property
    def label_key(self) -> bytes | None:
        """Return the key of labels that other engines may share; None if none can."""

    @property
    def permuted(self) -> Callable[[int, np.random.Generator], Any]:
        """Return the estimates of ``n`` random permutations."""


@dataclass(frozen=True, slots=True)
class _Alone:
    """What permutes by itself."""

    permuted: Callable[[int, np.random.Generator], Any]
    block_size: int

    label_key = None


def _as_it_is(block: T) -> T:
    return block


class SharedLabels(ABC):
    """An engine whose random labels other engines can use as well."""

    __slots__ = ()

    @property
    @abstractmethod
    def label_key(self) -> bytes | None:
        """Return a key that is equal in engines that draw the same labels.

        None if this engine must draw its own.
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
class PermutationRequest(Generic[T]):
    """An engine to permute, and the function of its estimates whose values are kept.

    A user's function runs ``through_joblib``. ``counts`` is the number of counts in a permutation,
    if it is made of counts. ``stop`` says when the permutations suffice.
    """

    engine: Permuting
    keep: Callable[[Any], T]
    through_joblib: bool
    stop: Stop[T]
    counts: float = math.inf
    purpose: int = streams.PERMUTATIONS

    @classmethod
    def of(
        cls,
        permuted: Callable[[int, np.random.Generator], T],
        stop: Stop[T],
        block_size: int = BLOCK,
        counts: float = math.inf,
        purpose: int = streams.PERMUTATIONS,
    ) -> PermutationRequest[T]:
        """Return the request of a design that shares its labels with no other."""
        return cls(_Alone(permuted, block_size), _as_it_is, False, stop, counts, purpose)


def permute(
    requests: Sequence[PermutationRequest[T]], resampling: blocks.Resampling
) -> list[list[T]]:
    """Return for each request the values that it keeps, by block of permutations."""
    # permutations that requests share go on until they suffice for all
    found: dict[int, list[T]] = {}
    for places in _group_by_labels([request.engine for request in requests]):
        first, together = requests[places[0]], [requests[place] for place in places]
        blocks = resampling.run_blocks(
            partial(_permute_block, [(request.engine, request.keep) for request in together]),
            first.purpose,
            first.engine.block_size,
            through_joblib=first.through_joblib,
            counts=sum(request.counts for request in together),
            stop=_stop_together([request.stop for request in together]),
        )
        for place, mine in zip(places, zip(*blocks, strict=True), strict=True):
            found[place] = list(mine)
    return [found[place] for place in range(len(requests))]


def _stop_together(stops: Sequence[Stop[T]]) -> Stop[list[T]]:
    """Return when permutations suffice for all."""

    def is_enough(blocks: list[list[T]]) -> bool:
        by_stop = zip(stops, zip(*blocks, strict=True), strict=True)
        return all(stop.is_enough(list(mine)) for stop, mine in by_stop)

    return Stop(max(stop.min_draws for stop in stops), is_enough)


def _permute_block(
    together: Sequence[tuple[Permuting, Callable[[Estimates], T]]], n: int, rng: np.random.Generator
) -> list[T]:
    if len(together) == 1:
        engine, keep = together[0]
        return [keep(engine.permuted(n, rng))]
    sharing = cast("Sequence[tuple[SharedLabels, Callable[[Estimates], T]]]", together)
    labels = sharing[0][0].random_labels(n, rng)
    return [keep(engine.of_labels(labels, n, rng)) for engine, keep in sharing]


def _group_by_labels(engines: Sequence[Permuting]) -> list[list[int]]:
    """Return lists of the places of engines that share their labels."""
    by_labels: dict[object, list[int]] = {}
    for place, engine in enumerate(engines):
        key = engine.label_key
        by_labels.setdefault(place if key is None else key, []).append(place)
    return list(by_labels.values())
