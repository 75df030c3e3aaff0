"""The engines of ranked lists, whose labels are exchanged within each list."""
