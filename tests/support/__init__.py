"""Data, oracles and runners that several tests share."""
