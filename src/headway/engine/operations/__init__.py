"""What operators do to an engine that runs: pause it, let it sleep, forget its caches, profile it."""
