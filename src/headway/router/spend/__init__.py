"""What was spent, by API key and model."""
