"""The command line: arguments in, tests run, tables and files out. No statistics here.

Only what ``--help`` needs is imported at the top of these modules; NumPy, DuckDB and the tests are
imported by the commands that use them.
"""
