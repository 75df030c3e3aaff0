"""Tests of a change of the gap: between two models of the same rows."""
