"""A second tier for blocks that the pool gives up: copies in memory or in a file, found by the same hashes."""
