"""Sorting numbers by their bits, in half the time that comparing them takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fairperm.engines.kernels.kernel import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairperm._utils.arrays import Array, Integers, Places, Words

_DIGIT = 11  # bits sorted by in one pass: their counters stay in the nearest cache
_BUCKETS = 1 << _DIGIT
_PASSES = 6  # of 11 bits make 64
_FEW = 1 << 16  # numbers that are not worth compiling for


def argsort_numbers(values: Array) -> Places:
    """Return the order of finite numbers, equal ones as they came; −0 and 0 are equal."""
    is_few = len(values) <= _FEW
    return np.argsort(values, kind="stable") if is_few else radix_argsort(values)


def radix_argsort(values: Array) -> Places:
    """Return the same in half the time, once it is compiled."""
    keys = (values + 0.0).view(np.uint64)
    order = np.arange(len(values), dtype=np.uint32)
    counts = np.zeros((_PASSES, _BUCKETS), np.int64)
    order = _sort(keys, np.empty_like(keys), order, np.empty_like(order), counts)
    del keys  # millions of rows would take memory twice
    return order.astype(np.intp)


@kernel
def _sort(
    keys: Words,
    other_keys: Words,
    order: NDArray[np.uint32],
    other_order: NDArray[np.uint32],
    counts: Integers,
) -> NDArray[np.uint32]:
    """Sort the bits of numbers, which are changed."""
    n, sign = len(keys), np.uint64(1 << 63)
    for i in range(n):
        # as unsigned integers, negative numbers would come last and in reverse
        key = ~keys[i] if keys[i] & sign else keys[i] | sign
        keys[i] = key
        for p in range(_PASSES):
            counts[p, key & np.uint64(_BUCKETS - 1)] += 1
            key >>= np.uint64(_DIGIT)
    for p in range(_PASSES):
        first = (keys[0] >> np.uint64(_DIGIT * p)) & np.uint64(_BUCKETS - 1)
        if counts[p, first] == n:  # all numbers have the same digit here
            continue
        start = 0
        for b in range(_BUCKETS):
            start, counts[p, b] = start + counts[p, b], start
        for i in range(n):
            digit = (keys[i] >> np.uint64(_DIGIT * p)) & np.uint64(_BUCKETS - 1)
            place = counts[p, digit]
            counts[p, digit] += 1
            other_keys[place] = keys[i]
            other_order[place] = order[i]
        keys, other_keys = other_keys, keys
        order, other_order = other_order, order
    return order
