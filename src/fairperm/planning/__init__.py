"""Power, sample sizes, detectable gaps and the real level of a test."""
