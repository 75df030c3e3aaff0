"""The one way in which this library makes a loop fast: compiled if Numba is there, else as it is.

Both return the same bits, which ``tests/engines/kernels/test_interpreted.py`` proves.
"""

from __future__ import annotations

__all__ = ["LANES", "inlined", "kernel"]

LANES = 64  # permutations handled at once: lane l of a unit's word is bit l

try:
    from fairperm.engines.kernels.compiled import inlined, kernel
except ImportError as error:  # also a Numba that is too old for NumPy
    from fairperm.engines.kernels.interpreted import inlined, kernel, tell_why

    tell_why(error)
