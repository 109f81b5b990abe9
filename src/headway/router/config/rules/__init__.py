"""Rules across fields of a configuration, by topic."""
