"""The language of a text."""
