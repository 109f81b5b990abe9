"""What outlives a request: caches, replays, vectors."""
