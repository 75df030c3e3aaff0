"""The test of rankings: of queries by the quality of their lists, and of items within lists."""
