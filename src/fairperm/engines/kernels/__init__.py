"""Compiled loops over rows (Numba); imported only when a comparison needs them."""
