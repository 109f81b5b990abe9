"""Input longer than a model reads: beginnings, windows, and proof of what was covered."""
