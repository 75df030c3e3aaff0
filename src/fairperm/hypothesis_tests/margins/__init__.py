"""Equivalence and noninferiority: one-sided tests at a margin."""
