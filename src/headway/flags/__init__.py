"""Rows of flag tables, and how the text of a flag becomes its value."""
