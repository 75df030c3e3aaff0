"""From whatever the user passed to a table of rows with counts; nothing of statistics here."""
