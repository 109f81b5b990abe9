"""The public address."""
