"""Temperatures and thresholds of a decision model, fitted to labelled examples and kept with the model's identity."""
