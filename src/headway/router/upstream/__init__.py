"""Backends: pools, attempts, timeouts, streams."""
