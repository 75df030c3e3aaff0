"""Draws of labels within lists and strata: every arrangement is equally likely."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.stats import chisquare

from fairperm.engines.rankings import DivergenceEngine

# A list of one stratum, and one of two: 4!/(2! 1! 1!) · 3 · 2 permutations.
QUERY = np.repeat([7, 9], [4, 5])
STRATUM = np.array([0, 0, 0, 0, 1, 0, 1, 0, 1])
GROUP = np.array([2, 0, 0, 1, 0, 1, 2, 0, 2])
WEIGHT = np.sqrt([0.4, 0.3, 0.2, 0.1, 0.3, 0.25, 0.2, 0.15, 0.1])  # no two sums are equal


def test_permutations_are_all_and_equally_likely() -> None:
    engine = DivergenceEngine.of(QUERY, STRATUM, GROUP, WEIGHT)
    every = engine.enumerated(72)
    assert every is not None
    assert engine.enumerated(71) is None
    places, copies = np.unique(every.round(12), return_counts=True)
    draws = engine.permuted(20_000, np.random.default_rng(1)).round(12)
    counts = np.array([(draws == one).sum() for one in places])
    assert counts.sum() == 20_000
    assert chisquare(counts, 20_000 * copies / 72).pvalue > 0.001


def test_lists_of_many_kinds_are_told_apart() -> None:
    """Reversing the order of lists changes no draw, whatever their strata and groups."""
    rng = np.random.default_rng(2)
    query = np.repeat(np.arange(300), rng.integers(2, 9, 300))
    stratum, group = rng.integers(0, 3, (2, len(query)))
    weight = 1 / (1 + np.arange(len(query)) - np.searchsorted(query, query))
    back = np.argsort(-query, kind="stable")
    here = DivergenceEngine.of(query, stratum, group, weight)
    there = DivergenceEngine.of(-query[back], 2 - stratum[back], 2 - group[back], weight[back])
    assert here.observed == there.observed
    first, second = (one.permuted(5, np.random.default_rng(3)) for one in (here, there))
    assert np.array_equal(first, second)


@pytest.mark.parametrize("counts", [(3, 2), (2, 2, 1), (1, 1, 1, 1), (5,)])
def test_arrangements_follow_each_other(counts: tuple[int, ...]) -> None:
    from fairperm.engines.kernels.divergences import _advance

    first = np.repeat(np.arange(len(counts)), counts).astype(np.uint32)
    labels, seen = first.copy(), [tuple(first.tolist())]
    while _advance(labels):
        seen.append(tuple(labels.tolist()))
    assert seen == sorted(set(itertools.permutations(first.tolist())))
    assert np.array_equal(labels, first)
