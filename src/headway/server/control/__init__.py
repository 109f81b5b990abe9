"""Routes by which an operator steers the engine: sleep, pause, caches, profiles."""
