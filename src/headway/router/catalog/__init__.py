"""Facts about the world outside that configurations refer to by id."""
