"""The management address."""
