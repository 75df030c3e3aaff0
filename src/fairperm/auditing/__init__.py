"""Every gap between groups tested, adjusted for multiple comparisons and given a verdict."""
