"""Random and complete permutations of pairs, and the three sums that a correlation test needs.

Compiled by Numba, so it is imported only when such a test is run. One function finds the sums
of the observed pairing, of every random one and of every enumerated one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairperm._utils.arrays import Array, Words
from fairperm.engines.kernels.kernel import kernel

Order = NDArray[np.uint32]  # x's i-th value is paired with y's order[i]-th

_HALF, _MASK = np.uint64(32), np.uint64(2**32 - 1)


class Margin(NamedTuple):
    """One side of the pairs in ascending order, whatever it is paired with.

    The i-th value is tied with those from ``starts[i]`` to before ``stops[i]``. ``per_rank`` is
    half of what one rank counts in ``values``; zero if they are not ranks.
    """

    values: Array  # centred, squares add to one
    per_rank: float
    starts: NDArray[np.uint32]
    stops: NDArray[np.uint32]


@kernel
def sums(x: Margin, y: Margin, order: Order) -> tuple[float, float, float]:
    """Return the correlation of the pairs, Σw² and, for values, Σψ³ in the test's notes."""
    if x.per_rank > 0:
        return _rank_sums(x, y, order, np.empty((len(order), 2)), np.zeros((2, len(order) + 1)))
    return _product_sums(x.values, y.values[order])


@kernel
def _product_sums(x: Array, y: Array) -> tuple[float, float, float]:
    correlation = square = cube = 0.0
    for i in range(len(x)):
        product = x[i] * y[i]
        correlation += product
        square += product * product
    for i in range(len(x)):
        influence = x[i] * y[i] - 0.5 * correlation * (x[i] * x[i] + y[i] * y[i])
        cube += influence * influence * influence
    return correlation, square, cube


@kernel
def _rank_sums(
    x: Margin, y: Margin, order: Order, of_y: Array, above: Array
) -> tuple[float, float, float]:
    """Return the same for ranks, each of which depends on all the values of its side."""
    # ``of_y`` and ``above`` are room to work in. ``above`` has for every value of one side the
    # total of the partners of it and of all larger values; its last column stays zero.
    n = len(order)
    for k in range(n):
        of_y[k, 0] = y.values[k]
    for i in range(n - 1, -1, -1):
        k = order[i]
        above[0, i] = above[0, i + 1] + of_y[k, 0]
        of_y[k, 1] = x.values[i]
    for k in range(n - 1, -1, -1):
        above[1, k] = above[1, k + 1] + of_y[k, 1]
    for k in range(n):
        of_y[k, 1] = y.per_rank * (above[1, y.starts[k]] + above[1, y.stops[k]])
    correlation = square = 0.0
    for i in range(n):
        k = order[i]
        product = x.values[i] * of_y[k, 0]
        by_x = x.per_rank * (above[0, x.starts[i]] + above[0, x.stops[i]])
        influence = product + by_x + of_y[k, 1]
        correlation += product
        square += influence * influence
    return correlation, square, 0.0


@kernel
def random_sums(x: Margin, y: Margin, draws: int, state: Words) -> Array:
    """Return the three sums of each of so many random pairings; ``state`` moves on."""
    n = len(x.values)
    found = np.empty((3, draws))
    if x.per_rank > 0:
        order = np.arange(n).astype(np.uint32)
        of_y, above = np.empty((n, 2)), np.zeros((2, n + 1))
        for draw in range(draws):
            shuffle(order, state)
            found[0, draw], found[1, draw], found[2, draw] = _rank_sums(x, y, order, of_y, above)
    else:  # y's values need no order beside them
        values = y.values.copy()
        for draw in range(draws):
            shuffle(values, state)
            found[0, draw], found[1, draw], found[2, draw] = _product_sums(x.values, values)
    return found


@kernel
def all_sums(x: Margin, y: Margin, permutations: int) -> Array:
    """Return the three sums of each of the n! pairings."""
    # the digits of a number in the factorial system are the swaps of one Fisher–Yates shuffle
    n = len(x.values)
    found = np.empty((3, permutations))
    order = np.empty(n, np.uint32)
    for number in range(permutations):
        rest = number
        for i in range(n):
            order[i] = i
        for i in range(n - 1, 0, -1):
            j = rest % (i + 1)
            rest //= i + 1
            order[i], order[j] = order[j], order[i]
        found[0, number], found[1, number], found[2, number] = sums(x, y, order)
    return found


@kernel
def shuffle(values: Order | Array, state: Words) -> None:
    """Shuffle in place (Fisher–Yates) with words from xoshiro256++, every order equally likely."""
    # the upper half of a word times the bound, shifted, is below the bound; Lemire's rejection of
    # the few products that would favour some numbers makes it exactly uniform
    a, b, c, d = state[0], state[1], state[2], state[3]
    for i in range(len(values) - 1, 0, -1):
        bound = np.uint64(i + 1)
        word, a, b, c, d = _next(a, b, c, d)
        product = (word >> _HALF) * bound
        if product & _MASK < bound:
            favoured = (_MASK + np.uint64(1) - bound) % bound
            while product & _MASK < favoured:
                word, a, b, c, d = _next(a, b, c, d)
                product = (word >> _HALF) * bound
        j = product >> _HALF
        values[i], values[j] = values[j], values[i]
    state[0], state[1], state[2], state[3] = a, b, c, d


@kernel
def _next(
    a: np.uint64, b: np.uint64, c: np.uint64, d: np.uint64
) -> tuple[np.uint64, np.uint64, np.uint64, np.uint64, np.uint64]:
    """Return the next word of xoshiro256++ (Blackman and Vigna, 2021) and its new state."""
    word = _rotated(a + d, np.uint64(23)) + a
    shifted = b << np.uint64(17)
    c ^= a
    d ^= b
    b ^= c
    a ^= d
    c ^= shifted
    return word, a, b, c, _rotated(d, np.uint64(45))


@kernel
def _rotated(word: np.uint64, by: np.uint64) -> np.uint64:
    return (word << by) | (word >> (np.uint64(64) - by))
