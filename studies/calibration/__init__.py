"""The calibration study: level and power of the default tests and of their rivals."""
