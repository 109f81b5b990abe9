"""Architectures: one configurable decoder, and per architecture a declaration and a table of weight names."""
