"""From statistics and their null distribution to p-values, intervals and adjusted p-values."""
