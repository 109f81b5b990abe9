"""Signals that models answer."""
