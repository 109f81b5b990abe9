"""Reasoning: the part of an answer that a model writes for itself, told apart from what it says."""
