"""Small tools that know nothing of statistics: checks, sorting, progress, files, random streams."""
