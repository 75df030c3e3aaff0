"""The public tests: check the arguments, then the algorithm on one screen."""
