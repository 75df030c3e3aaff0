"""Audits of selection: impact ratios to the group that is selected most."""
