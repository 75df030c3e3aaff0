"""Short names for the types of arrays."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]
Booleans: TypeAlias = NDArray[np.bool_]
Codes: TypeAlias = NDArray[np.integer[Any]]
"""Small numbers of groups, strata and the like, in as few bytes as they need."""
Integers: TypeAlias = NDArray[np.int64]
Places: TypeAlias = NDArray[np.intp]  # indices into another array
Words: TypeAlias = NDArray[np.uint64]  # Bits: of one unit in 64 draws, or random ones
