"""The paper's algorithm: a statistic of the sample against the same statistic of permutations.

Every test of one statistic goes through :func:`run`. A design (two groups, matched sets, ranked
lists, periods, a correlation …) is a :class:`PermutationTest`: what was observed, what to permute,
and the statistic of each permutation.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import numpy as np

from fairperm._utils.arrays import Array
from fairperm.engines.resampling.blocks import Stop
from fairperm.engines.resampling.shared_labels import permute
from fairperm.inference.null import Null, PValue, agree, note_undefined
from fairperm.inference.reference import Permutations, at_least_normal
from fairperm.inference.stopping import StoppingRule

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fairperm.engines.resampling.blocks import Resampling
    from fairperm.engines.resampling.shared_labels import PermutationRequest
    from fairperm.inference.reference import Reference

B = TypeVar("B")  # what a design keeps of a block of permutations
R = TypeVar("R")  # a result


class Reach(Protocol):
    """How far an interval goes for critical values of the statistic."""

    @property
    def span(self) -> float:
        """The largest possible estimate, in size."""

    def invert(self, ordering: str, level: float) -> tuple[float, float] | None:
        """Return the values that the test itself does not reject; None if it tests only zero."""

    def interval(self, critical: tuple[float, float]) -> tuple[float, float]:
        """Return the interval; an infinite critical value leaves its side open."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """The sample, before any permutation."""

    statistic: float  # compared with that of permutations
    # what the user asked for, and how draws are compared: an ordering "symmetric" by size
    alternative: str
    ordering: str
    tolerance: float  # draws this close to the statistic are tied with it
    estimate: float  # what the interval is for
    level: float  # the confidence level of intervals
    min_draws: int  # draws that are made before drawing may stop
    reach: Reach | None = None  # None if there is no interval
    # whether p is at least the normal one in each tail, and critical values are as far out
    has_normal_floor: bool = False
    # whether critical values alone are at least the normal ones: p-values of rates are exact
    has_normal_critical: bool = False
    # the groups' values in the strata that are compared; None if all are
    compared_values: tuple[float, float] | None = None
    skewness: float = 0.0  # what the statistic is without: that of the gap, 0 if it is left in
    # third cumulants of the groups' values; None if skewness is left in
    cumulants: tuple[float, float] | None = None


class PermutationTest(Generic[B]):
    """A design, one file each: what was observed, what to permute, the statistic of each draw.

    ``B`` is what is kept of a block of permutations. A design with a known reference permutes
    nothing.
    """

    __slots__ = ()

    observed: Observed

    @property
    def remarks(self) -> tuple[str, ...]:
        """Those notes of the sample that are no warnings."""
        return ()

    def base_sizes(self) -> Mapping[str, Sequence[float]]:
        """Return how many rows each group's value rests on, by what they are."""
        raise NotImplementedError

    def known_reference(self) -> Reference | None:
        """Return what the statistic is compared with; None for permutations."""
        return None

    def enumerated(self, most: int) -> tuple[B, Array] | None:
        """Return all permutations with their log-probabilities as one block, if they are few."""
        del most
        return None

    def request(self, stop: Stop[B]) -> PermutationRequest[B]:
        """Return what to permute at random, until it suffices."""
        raise NotImplementedError

    def statistics(self, blocks: Sequence[B], first: int | None) -> Array:
        """Return the statistic of each permutation.

        What all permutations share (a standard deviation of theirs) is that of the ``first`` ones.
        """
        raise NotImplementedError

    def smallest(self) -> float:
        """Return the probability of one labelling, for tests at a margin."""
        return 0.0

    def notes(self, null: Null, blocks: Sequence[B]) -> tuple[str, ...]:
        """Return what the permutations show that a reader must know."""
        del blocks
        return tuple(note_undefined(null))


@dataclass(frozen=True, slots=True)
class Tested:
    """A statistic with its reference and p-value. It holds no rows, and can be asked again."""

    __test__ = False  # pytest takes it for a test

    observed: Observed
    reference: Reference
    pvalue: PValue
    notes: tuple[str, ...] = ()

    def critical(self, level: float) -> tuple[float, float]:
        """Return the statistics between which the test does not reject; around 0."""
        ordering = self.observed.ordering
        lower, upper = self.reference.critical(ordering, level)
        if self.observed.has_normal_critical:
            return at_least_normal((lower, upper), ordering, level)
        return min(lower, 0.0), max(upper, 0.0)

    def interval(self, level: float) -> tuple[float, float]:
        """Return the estimate's interval at a level: the test inverted, or from its quantiles."""
        reach = self.observed.reach
        if reach is None:
            return np.nan, np.nan
        inverted = reach.invert(self.observed.ordering, level)
        return reach.interval(self.critical(level)) if inverted is None else inverted

    def smallest_pvalue(self) -> float | None:
        """Return the smallest p-value that the data allow, if that is above the level."""
        alpha, reference = 1 - self.observed.level, self.reference
        if self.pvalue.value <= alpha or not reference.exact:
            return None
        found = reference.most_extreme_pvalue(self.observed.ordering, enough=alpha)
        return found if found > alpha else None

    def result(self, kind: type[R], **sample: Any) -> R:
        """Return the test as a result: what was found, and these fields of the sample."""
        seen, null = self.observed, self.reference.null
        interval, level = self.interval(seen.level), seen.level
        if seen.reach is not None:
            interval = agree(interval, self.pvalue.value, seen.alternative, level, seen.estimate)
        probability = null.log_probability
        found: dict[str, Any] = {
            "statistic": seen.statistic,
            "alternative": seen.alternative,
            "ordering": seen.ordering,
            "confidence_level": level,
            "confidence_interval": interval,
            "pvalue": self.pvalue.value,
            "pvalue_interval": self.pvalue.interval,
            "pvalue_interval_wilson": self.pvalue.wilson_interval,
            "n_resamples": self.reference.n_resamples,
            "stopped_early": null.stopped_early,
            "n_undefined": int(null.undefined.sum()),
            "exact": self.reference.exact,
            "null_distribution": null.statistic,
            "null_probabilities": None if probability is None else np.exp(probability),
            "smallest_pvalue": self.smallest_pvalue(),
            "tested": self,
        }
        sample["notes"] = (*sample.get("notes", ()), *self.notes)
        known = {one.name for one in fields(kind)}  # type: ignore[arg-type]
        return kind(**{name: one for name, one in (found | sample).items() if name in known})


def run(tests: Sequence[PermutationTest[Any]], resampling: Resampling) -> list[Tested]:
    """Compare the statistic of each sample with that of permutations: the paper's Algorithm 1."""
    tested: dict[int, Tested] = {}
    drawn: dict[int, StoppingRule] = {}
    for place, test in enumerate(tests):
        reference = test.known_reference()  # two binomial samples, or the normal limit
        if reference is not None:
            tested[place] = _compare(test, reference, [])
        # permute the group labels in all ways if these are few, otherwise at random
        elif (every := test.enumerated(resampling.n_resamples)) is not None:
            block, log_probability = every
            null = Null(test.statistics([block], None), log_probability)
            tested[place] = _compare(test, _permutations(test, null), [block])
        else:
            drawn[place] = _stopping_rule(test, resampling)
    requests = [tests[place].request(_stop(tests[place], rule)) for place, rule in drawn.items()]
    # tests that exchange the same labels share them
    permuted = permute(requests, resampling) if requests else []
    for (place, rule), blocks in zip(drawn.items(), permuted, strict=True):
        test, n = tests[place], None
        if resampling.stops_early:
            n = rule.count(test.statistics(blocks, rule.min_draws))
        # each permutation is studentized by its own standard error, as the sample is
        null = Null(test.statistics(blocks, n)[:n], stopped_early=n is not None)
        tested[place] = _compare(test, _permutations(test, null), blocks)
    return [tested[place] for place in range(len(tests))]


def _permutations(test: PermutationTest[B], null: Null) -> Permutations:
    return Permutations(null, test.smallest(), test.observed.has_normal_floor)


def _compare(test: PermutationTest[B], reference: Reference, blocks: Sequence[B]) -> Tested:
    """Count the draws that are at least as extreme as the sample."""
    seen = test.observed
    p = reference.pvalue(seen.statistic, seen.ordering, seen.tolerance, seen.level)
    return Tested(seen, reference, p, test.notes(reference.null, blocks))


def _stopping_rule(test: PermutationTest[B], resampling: Resampling) -> StoppingRule:
    seen = test.observed
    least = seen.min_draws
    if seen.reach is not None:  # intervals at higher levels may be asked for
        least = max(least, resampling.min_draws or 0)
    return StoppingRule(seen.statistic, seen.ordering, seen.tolerance, least)


def _stop(test: PermutationTest[B], rule: StoppingRule) -> Stop[B]:
    """Return when the permutations of a test suffice: once its p-value is clear."""

    def is_enough(blocks: list[B]) -> bool:
        return rule.count(test.statistics(blocks, rule.min_draws)) is not None

    return Stop(rule.min_draws, is_enough)
