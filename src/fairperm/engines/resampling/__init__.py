"""Permutations and bootstrap samples in seeded blocks; nothing of metrics here."""
