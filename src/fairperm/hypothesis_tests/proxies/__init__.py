"""Groups known only as probabilities: the test of their gap, and bounds on it."""
