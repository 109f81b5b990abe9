"""The catalogue: one room per category, a few rules per file."""
