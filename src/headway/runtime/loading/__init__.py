"""From a line of the configuration to a model in memory, and what can go wrong on the way."""
