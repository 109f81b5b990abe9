"""Configurations that were active: kept, compared, changed by compare-and-swap, brought back."""
