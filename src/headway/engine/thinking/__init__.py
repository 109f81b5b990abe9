"""Budgets for the reasoning at the beginning of an answer."""
