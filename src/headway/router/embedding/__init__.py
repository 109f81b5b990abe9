"""Vectors of texts and images: who makes them, and those of the configuration kept ready."""
