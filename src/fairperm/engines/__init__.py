"""Estimates of the observed sample, of its permutations and of its bootstrap samples."""
