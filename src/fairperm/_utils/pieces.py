"""Millions of rows in pieces, of which a copy takes little memory."""

from __future__ import annotations

SIZE = 1 << 20  # rows


def split_rows(n: int) -> list[slice]:
    """Return slices that divide ``n`` rows into pieces."""
    return [slice(start, min(start + SIZE, n)) for start in range(0, n, SIZE)]
