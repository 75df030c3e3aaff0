"""Files of any format as one relation in DuckDB, and the columns that a test needs of it."""
