"""Lazy frames: rows are counted, summed or sampled where they are, and little is fetched."""
