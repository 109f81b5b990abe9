"""Projections: scores and bands made of signals."""
