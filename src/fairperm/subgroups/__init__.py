"""Who is affected? A search for subgroups, with control of its errors."""
