"""Uniformly random subsets of rows, 64 permutations at a time.

A permutation of group labels is a random choice of who is in group A. It is kept as one bit: bit
``l`` of ``words[i]`` says whether unit ``i`` is in A in permutation (lane) ``l``. Units lie in
consecutive blocks inside which labels are exchanged.

A block is filled in two steps. *Thinning*: every unit joins A with the same probability, near
wanted/size, independently. Whatever that probability, the subset is uniform given its size.
*Correction*: while a lane has too few units in A, a unit is picked at random among all of the
block and joins if it was outside (and the reverse where there are too many). The unit that moves
is uniform among those that may, so the subset stays uniform given its size, and it ends with
exactly the size wanted: every subset is equally likely, with no approximation. Small blocks,
where correcting costs more than filling, are decided unit by unit instead.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fairperm._utils.arrays import Booleans, Integers, Words
from fairperm.engines.kernels.kernel import LANES, inlined, kernel

STATE_WORDS = 32  # of a random stream: eight generators of four words
_STREAMS = 8  # xoshiro256++ generators side by side, for the compiler to vectorize
_POOL = 1024  # random words made at a time
_STEP = 256  # of them, those for which the states of the generators are kept
_ROW = _STREAMS + _STEP
_PLANES = 8  # bit planes of a counter, which therefore counts to 255
_ROWS = _STREAMS * 255  # rows that eight counters side by side can count
_BITS = 8  # of the probability used in thinning
SMALL_BLOCK = 64  # up to here, deciding unit by unit is faster


def random_subsets(sizes: Integers, wanted: Integers, state: Words) -> Words:
    """Choose ``wanted[b]`` of the ``sizes[b]`` units of every block, in 64 independent lanes.

    Units lie in consecutive blocks, ``wanted`` of which are in group A. The state, of
    ``STATE_WORDS`` random words, is not changed. There is a word for each unit: bit ``l`` says
    whether it is in A in permutation ``l``.
    """
    sizes = np.ascontiguousarray(sizes, np.int64)
    wanted = np.ascontiguousarray(wanted, np.int64)
    return _fill(sizes, wanted, state, SMALL_BLOCK)


class _Room(NamedTuple):
    """Generators of random words, a pool of these, and what counts bits in."""

    state: Words
    pool: Words
    planes: Words
    totals: Integers


def _fill(sizes: Integers, wanted: Integers, state: Words, small: int) -> Words:
    """Fill blocks up to the size ``small`` unit by unit, and larger ones by thinning."""
    words = np.zeros(int(sizes.sum()), np.uint64)
    room = _Room(
        state.astype(np.uint64).reshape(4, _STREAMS),
        np.empty(_POOL, np.uint64),
        np.zeros((_PLANES, _STREAMS), np.uint64),
        np.empty(LANES, np.int64),
    )
    _fill_blocks(sizes, wanted, small, words, room)
    return words


def same_in_all_lanes(in_a: Booleans) -> Words:
    """Return the words of one given choice of group A, such as the observed one."""
    return np.where(in_a, np.uint64(2**64 - 1), np.uint64(0))


def lane_bits(words: Words) -> Booleans:
    """Return who is in group A by lane and unit, one byte each."""
    octets = np.ascontiguousarray(words).astype("<u8", copy=False).view(np.uint8)
    bits = np.unpackbits(octets.reshape(-1, 8), axis=1, bitorder="little")
    return bits.T.astype(np.bool_)


@kernel
def _fill_blocks(sizes: Integers, wanted: Integers, small: int, words: Words, room: _Room) -> None:
    used = room.pool.size  # none are left
    start = 0
    for b in range(sizes.size):
        block = words[start : start + sizes[b]]
        if sizes[b] <= small and 0 < wanted[b] < sizes[b]:
            used = _select(block, wanted[b], room, used)
        else:
            used = _fill_block(block, wanted[b], room, used)
        start += sizes[b]


@inlined
def _fill_block(block: Words, wanted: int, room: _Room, used: int) -> int:
    """Thin a block and correct it; return how many words of the pool are used."""
    size = block.size
    if wanted == size:
        block[:] = ~np.uint64(0)
    elif wanted > 0:
        # Rounded away from 1/2, so that corrections look for a unit of the more frequent kind.
        scaled = (wanted << _BITS) // size
        if 2 * wanted > size:
            scaled = (1 << _BITS) - ((size - wanted) << _BITS) // size
        room.totals[:] = 0
        for first in range(0, size, _ROWS):
            rows = block[first : first + _ROWS]
            used = _thin(rows, scaled, room, used)
            _count_rows(rows, room.planes, room.totals)
        used = _correct(block, wanted, room, used)
    return used


@kernel
def _refill(state: Words, pool: Words) -> None:
    """Fill the pool with random words: xoshiro256++ (Blackman and Vigna 2021), eight at a time."""
    # every new state is written behind the one before it, in a loop that the compiler vectorizes
    a, b, c = np.uint64(23), np.uint64(17), np.uint64(45)
    a_, c_ = np.uint64(41), np.uint64(19)
    states = np.empty(4 * _ROW, np.uint64)
    for first in range(0, pool.size, _STEP):
        part = pool[first : first + _STEP]
        for row in range(4):
            for stream in range(_STREAMS):
                states[row * _ROW + stream] = state[row, stream]
        for i in range(part.size):
            x0, x1 = states[i], states[_ROW + i]
            x2, x3 = states[2 * _ROW + i], states[3 * _ROW + i]
            total = x0 + x3
            part[i] = ((total << a) | (total >> a_)) + x0
            shifted = x1 << b
            x2 ^= x0
            x3 ^= x1
            states[_STREAMS + i] = x0 ^ x3
            states[_ROW + _STREAMS + i] = x1 ^ x2
            states[2 * _ROW + _STREAMS + i] = x2 ^ shifted
            states[3 * _ROW + _STREAMS + i] = (x3 << c) | (x3 >> c_)
        for row in range(4):
            for stream in range(_STREAMS):
                state[row, stream] = states[row * _ROW + part.size + stream]


@kernel
def _thin(rows: Words, scaled: int, room: _Room, used: int) -> int:
    """Set every bit with probability ``scaled`` / 2**_BITS, from zero; return what is used."""
    # One random word for each binary digit of the probability p, the least significant first: "or"
    # takes p to (1 + p) / 2, "and" takes it to p / 2. Trailing zeros need no words.
    pool = room.pool
    if scaled == 1 << _BITS:
        rows[:] = ~np.uint64(0)
        return used
    started = False
    for bit in range(_BITS):
        digit = (scaled >> bit) & 1
        started = started or digit == 1
        if not started:
            continue
        either = ~np.uint64(0) if digit else np.uint64(0)
        done = 0
        while done < rows.size:
            if used == pool.size:
                _refill(room.state, pool)
                used = 0
            count = min(rows.size - done, pool.size - used)
            here, random = rows[done : done + count], pool[used : used + count]
            for i in range(count):
                here[i] = (here[i] & random[i]) | (either & (here[i] | random[i]))
            done += count
            used += count
    return used


@kernel
def add_to_totals(words: Words, totals: Integers) -> None:
    """Add the number of set bits of every lane."""
    planes = np.zeros((_PLANES, _STREAMS), np.uint64)
    for first in range(0, words.size, _ROWS):
        _count_rows(words[first : first + _ROWS], planes, totals)


@kernel
def _count_rows(rows: Words, planes: Words, totals: Integers) -> None:
    """Add the number of set bits of every lane, for at most ``_ROWS`` rows."""
    # Eight counters take turns. A counter is a binary number for each lane, its digits spread over
    # bit planes, so that one addition with carries counts in 64 lanes.
    whole = rows.size // _STREAMS * _STREAMS
    for i in range(0, whole, _STREAMS):
        for j in range(_STREAMS):
            carry = rows[i + j]
            for p in range(_PLANES):
                before = planes[p, j]
                planes[p, j] = before ^ carry
                carry &= before
    for j in range(rows.size - whole):
        carry = rows[whole + j]
        for p in range(_PLANES):
            before = planes[p, j]
            planes[p, j] = before ^ carry
            carry &= before
    for p in range(_PLANES):
        if rows.size >> p == 0:
            break
        for j in range(min(_STREAMS, rows.size)):
            plane = planes[p, j]
            planes[p, j] = 0
            for lane in range(LANES):
                totals[lane] += np.int64((plane >> np.uint64(lane)) & np.uint64(1)) << p


@kernel
def _correct(block: Words, wanted: int, room: _Room, used: int) -> int:
    """Move random units in or out of A until every lane has the wanted total."""
    # A random position is the upper half of (32 random bits x size); the few products whose lower
    # half is below 2**32 mod size are drawn again, which makes it uniform (Lemire 2019)
    pool, totals = room.pool, room.totals
    size, half, low = np.uint64(block.size), np.uint64(32), np.uint64(2**32 - 1)
    redraw = np.uint64(2**32) % size
    for lane in range(LANES):
        surplus = totals[lane] > wanted
        kind = np.uint64(surplus)  # what a unit must be in order to move
        left = abs(totals[lane] - wanted)
        while left > 0:
            if used == pool.size:
                _refill(room.state, pool)
                used = 0
            product = (pool[used] >> half) * size
            used += 1
            if product & low < redraw:
                continue
            i = product >> half
            moves = ((block[i] >> np.uint64(lane)) & np.uint64(1)) == kind
            block[i] ^= np.uint64(moves) << np.uint64(lane)
            left -= moves
    return used


@kernel
def _select(block: Words, wanted: int, room: _Room, used: int) -> int:
    """Fill a small block unit by unit: the chance to join is (still missing) / (units left)."""
    # each chance is a random position among the units left, made as in ``_correct`` from 16 bits;
    # where one lane must draw again, all do, which happens for less than 64 x 64 / 2**16 of units
    need = LANES // 4  # words for 16 bits in every lane
    pool, missing = room.pool, room.totals
    missing[:] = wanted
    for i in range(block.size):
        left = np.int64(block.size - i)
        redraw = 2**16 % left
        lowest = np.int64(-1)
        draws = pool[:need].view(np.uint16)
        while lowest < redraw:
            if used + need > pool.size:
                _refill(room.state, pool)
                used = 0
            draws = pool[used : used + need].view(np.uint16)
            used += need
            lowest = np.int64(0xFFFF)
            for lane in range(LANES):
                lowest = min(lowest, (np.int64(draws[lane]) * left) & 0xFFFF)
        word = np.uint64(0)
        for lane in range(LANES):
            joins = (np.int64(draws[lane]) * left) >> 16 < missing[lane]
            missing[lane] -= joins
            word |= np.uint64(joins) << np.uint64(lane)
        block[i] = word
    return used
