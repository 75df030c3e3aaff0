"""The gap at every threshold of a score."""
