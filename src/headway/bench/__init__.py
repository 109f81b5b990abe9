"""Load generators and measurement."""
