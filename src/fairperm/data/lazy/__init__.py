"""Lazy frames: the engine counts, sums or samples the rows, and only the results are fetched."""
