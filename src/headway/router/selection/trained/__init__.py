"""Selectors that were trained on rows: their files, what they predict, how they are trained and judged."""
