"""The calibration study: level and power of our tests and of their rivals."""
