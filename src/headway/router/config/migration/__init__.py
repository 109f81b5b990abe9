"""Older layouts of the configuration, rewritten."""
