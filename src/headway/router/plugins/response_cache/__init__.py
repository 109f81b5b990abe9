"""response_cache: an earlier answer instead of a new one, where that means the same."""
