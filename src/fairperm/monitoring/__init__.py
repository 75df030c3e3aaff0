"""Monitoring: tests of a gap that may be looked at every day."""
