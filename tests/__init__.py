"""Tests mirror the source; what they share is in ``tests.support``."""
