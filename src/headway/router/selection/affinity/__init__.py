"""Sessions that stay with their model."""
